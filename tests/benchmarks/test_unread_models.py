"""A model none of whose answers can be read, on the page of each benchmark: a row that says so."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from benchmark_pages import laid_out

from knownminds.environments import Trials
from knownminds.validation.benchmarks import benchmark, diagnosis, magnitudes
from knownminds.validation.benchmarks.benchmark import begin, folder_of_cell, read_benchmark
from knownminds.validation.benchmarks.known import live
from knownminds.validation.benchmarks.page import benchmark_page
from knownminds.validation.benchmarks.plan import read_plan
from knownminds.validation.benchmarks.shown import interval
from knownminds.validation.pages import figures as draw
from knownminds.validation.pages.page import small
from knownminds.validation.report import render

CELLS = {
    "cogbench": ("probabilistic_reasoning", "instrumental_learning"),
    "colliders": None,  # the first two
    "magnitudes": ("marker_location/text", "marker_location/image", "marker_location", "duration"),
    "diagnosis": ("crying",),
    "revealed_belief": ("choice_4", "choice_4/stated"),
}
FINE, MUTE = "openai:fine", "openai:mute"


def refused(trials):
    """The same trials, every answer of which was refused."""
    gone = {name: np.nan for name in ("action", "response", "reward") if name in trials.frame}
    return Trials.from_frame(trials.frame.assign(outcome="refused", **gone))


def lived(folder, name, models, known, monkeypatch):
    """A benchmark of a few cells, small, in which `MUTE` has answered nothing."""
    whole = read_plan(name, small=True)
    chosen = CELLS[name] or [cell.name for cell in whole.cells[:2]]
    cells = tuple(cell for cell in whole.cells if cell.name in chosen)
    assert len(cells) == len(chosen)
    minds = {who: whole.known[who] for who in known}
    plan = replace(whole, cells=cells, known=minds)
    monkeypatch.setattr(benchmark, "read_plan", lambda *given, **more: plan)
    begin(folder, plan, models, {"small": True}, {})
    for model in models:
        for cell in cells:
            run = folder_of_cell(folder, model, cell)
            run.mkdir(parents=True)
            trials = live(whole, "rational", cell)
            (refused(trials) if model == MUTE else trials).save(run / "trials.parquet")
    return read_benchmark(folder)


@pytest.fixture(autouse=True)
def quick():
    """Figures are laid out, but not written; few known minds, trees learn."""
    with (
        laid_out(magnitudes, REPLICATES=5),
        laid_out(diagnosis, MOST_BOOSTED=0, ROUNDS=20),
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(draw, "svg", lambda figure: '<svg viewBox="0 0 1 1" width="1" height="1"/>')
        patch.setattr(diagnosis, "ahead", lambda trials, about: None)
        patch.setattr(diagnosis, "_forests", lambda beliefs, seed: iter(()))
        yield


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize("name", CELLS)
def test_a_model_without_a_readable_answer_has_rows_that_say_so(name, alone, tmp_path, monkeypatch):
    models, known = ([MUTE], []) if alone else ([FINE, MUTE], ["rational"])
    found = lived(tmp_path, name, models, known, monkeypatch)
    cells = found.cells.set_index("model")
    assert set(cells.loc[[MUTE], "status"]) == {"no readable answer"}
    assert (cells.loc[[MUTE], "readable"] == 0).all()
    assert (cells.loc[[MUTE], "refused"] == cells.loc[[MUTE], "trials"]).all()
    page = benchmark_page(found)
    text = render(page)
    assert text.count("no readable answer") >= len(found.plan.cells)
    assert MUTE in text
    assert (
        "nan" not in text.lower().replace("explanan", "").split("<script")[0].split("</style>")[1]
    )
    for part in page.sections:
        if part.scores is not None and len(part.scores):
            own = part.scores[part.scores["participant"] == MUTE]
            assert not np.isfinite(own["value"].astype(float)).any(), part.name
    [told] = [part.frames for part in page.sections if part.name == "comparison"] or [{}]
    verdicts = told.get("differences", pd.DataFrame({"verdict": []}))["verdict"]
    assert verdicts.astype(str).str.startswith("not compared: no value").all()


def test_numbers_of_tables_have_no_zero_below_zero_and_no_tiny_p():
    assert interval(-0.0004, -0.0002, 0.2, 2) == "0.00 (0.00 to 0.20)"
    assert [small(p) for p in (3.2e-12, 0.0016, float("nan"))] == ["<.001", "0.002", "-"]
