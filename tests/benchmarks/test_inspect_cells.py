"""Cells as tasks of Inspect's, and the same page out of its logs."""

import pytest

pytest.importorskip("inspect_ai", reason="the extra inspect is not installed")
pytest.importorskip("openai")
from benchmark_server import serving
from inspect_tasks import evaluate

from knownminds.validation.benchmarks.benchmark import read_benchmark
from knownminds.validation.benchmarks.inspect_cells import CELLS, cell_task
from knownminds.validation.cli import main

PLAN = """
benchmark = "cogbench"
seed = 3
[sampling]
temperature = 1.0
[experiments]
probabilistic_reasoning = { sessions = 2, variants = ["base", "step_back"] }
[variants.step_back]
settings = { reasoning = "step_back" }
[known.rational]
probabilistic_reasoning = { model = "weighted_bayes", sigma = 0.05 }
"""


def test_a_log_fills_the_cell_it_was_made_of(tmp_path):
    from knownminds.validation.benchmarks.plan import read_plan

    assert "cogbench_two_step_step_back" in CELLS
    file, logs, folder = (tmp_path / name for name in ("mine.toml", "logs", "F"))
    file.write_text(PLAN, encoding="utf-8")
    plan = read_plan("cogbench", file)
    name = "probabilistic_reasoning/step_back"
    made = cell_task("cogbench", name, str(file))
    with serving(plan, **{"known-mind": ("rational", None, False)}) as servers:
        [server] = servers.values()
        log = evaluate(made, server.base_url, logs)
    assert log.status == "success"
    with pytest.raises(SystemExit) as end:
        main(["benchmark", "cogbench", "--plan", str(file), "--inspect", str(logs),
              "--out", str(folder)])  # fmt: skip
    assert not end.value.code
    found = read_benchmark(folder)
    [model] = found.models
    rows = found.cells.set_index("cell")
    assert (rows.loc[name, "status"], rows.loc[name, "trials"]) == ("finished", 4)
    assert rows.loc["probabilistic_reasoning", "status"] == "not begun"
    own = found.trials[found.trials["cell"] == name]
    answers = {who: part["response"].tolist() for who, part in own.groupby("participant")}
    # The answers are told to three digits in words.
    assert answers[model] == pytest.approx(answers["rational"], abs=6e-4)
    asked = own.groupby("participant")["temperature"].unique()
    assert [asked[who].tolist() for who in (model, "rational")] == [[1.0], ["none"]]
