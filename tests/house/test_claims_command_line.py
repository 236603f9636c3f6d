"""What the command line says beside results, what `doctor` says, and what pages share."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import urllib.request
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from claims import check
from claims.command_line import REPORT
from claims.doctor import REPORT as DOCTOR
from claims.pages import REPORT as PAGES
from house.test_claims_budget import lived
from house.test_claims_run import PRICE, Scripted, answer, facts_of, go
from statsmodels.stats.proportion import proportion_confint

from knownminds.agents import AGENTS
from knownminds.environments import InstrumentalLearning, outcome_rates
from knownminds.llm_adapters import Rejected, ServerFailed
from knownminds.validation.cli.models.run import _standing
from knownminds.validation.costs.budget import budget
from knownminds.validation.engine.study import Cell
from knownminds.validation.gates import doctor as module
from knownminds.validation.gates.doctor import doctor
from knownminds.validation.pages.page import about_time, about_truth, outcome_table, status_table

PLACE = "instrumental_learning"
MIND = "synthetic:rescorla_wagner_dual"
SAID = ("report", "trials", "estimate", "--price", "experiment", "Computed")


def notes_of(err):
    return [line for line in err.splitlines() if line.startswith(SAID) or "written to" in line]


def test_what_is_said_before_and_after_a_run_is_so(knownminds, tmp_path):
    words = ["run", PLACE, "--trials", 8, "--sessions", 3, "--out", tmp_path, "--llm"]
    found = budget(InstrumentalLearning(n_visits=2), ["openai:gpt-4o"], model="rescorla_wagner",
                   sessions=3)  # fmt: skip
    facts = SimpleNamespace(
        content=json.loads(found.to_json()), sessions=lived(found), aloud=False, price=None
    )
    code, _, err = knownminds(*words, MIND, "--cap", "calls=5")
    assert code == 1
    told = notes_of(err)
    assert len(told) == 3
    check(REPORT, told, facts)
    facts.price = facts.kept = (1.0, 4.0)
    check(REPORT, notes_of(knownminds(*words, MIND, "--price", "1,4")[2]), facts)
    facts.given = (2.0, 8.0)
    told = notes_of(knownminds(*words, MIND, "--price", "2,8")[2])
    assert any("is not used" in text for text in told)
    check(REPORT, told, facts)


def test_what_is_said_of_a_run_whose_questions_are_chosen_is_so(knownminds, tmp_path):
    words = ["run", "temporal_discounting", "--design", "grid", "--questions", 3, "--sessions", 2]
    words += ["--llm", "synthetic:hyperbolic_discounter", "--adaptive", "hyperbolic_discounter"]
    code, _, err = knownminds(*words, "--out", tmp_path)
    assert code == 0, err
    facts = SimpleNamespace(rows=len(pd.read_parquet(tmp_path / "trials.parquet")))
    check(REPORT, [line for line in err.splitlines() if "calls at most" in line], facts)
    assert "calls at most" in err


@pytest.mark.parametrize("price", [None, PRICE])
def test_what_the_progress_line_says_is_so(tmp_path, price):
    script = [ServerFailed("lost"), "?", answer(), Rejected("no"), answer(10, 5)]
    seen = []
    run = go(tmp_path, Scripted(*script), price=price, progress=seen.append, concurrency=2)
    ledger = facts_of(run)
    facts = SimpleNamespace(
        rows=ledger.rows, attempts=ledger.attempts, sessions=2, trials=8, concurrency=2
    )
    check(REPORT, [_standing(seen[-1], 2)], facts)


def test_what_is_said_of_files_is_so(knownminds, tmp_path):
    out = tmp_path / "s.csv"
    words = ["simulate", PLACE, "--model", "rescorla_wagner", "--subjects", 2, "--trials", 8]
    told = " ".join(knownminds(*words, "--out", out)[2].split())
    facts = SimpleNamespace(environment=PLACE)
    check(REPORT, [told], facts)
    told = notes_of(knownminds("fit", out, "--model", "rescorla_wagner")[2])
    assert told[0].startswith("experiment: ")
    check(REPORT, told, facts)
    copy = tmp_path / "t.parquet"
    check(REPORT, [knownminds("export", out, "--out", copy)[1].strip()], facts)


def test_what_is_said_of_an_import_is_so(knownminds, tmp_path):
    file, kept = tmp_path / "t.csv", tmp_path / "m.toml"
    file.write_text("person,casino,choice,points\na,0,left,1\na,1,right,0\n")
    code, told, _ = knownminds("import", file, "--environment", PLACE, "--save-map", kept)
    assert code == 2
    check(REPORT, told.splitlines()[-1:], SimpleNamespace())
    before = sorted(tmp_path.iterdir())
    code, told, err = knownminds("import", file, "--map", kept)
    assert code == 0, err
    facts = SimpleNamespace(before=before, after=sorted(tmp_path.iterdir()))
    check(REPORT, told.splitlines()[-1:], facts)


def test_a_study_without_a_folder_leaves_none(knownminds, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    words = ["power", PLACE, "--effect", "optimism_bias=0.8", "--sessions", 4, "--trials", 24]
    code, _, err = knownminds(*words, "--replicates", 4, "--workers", 1)
    assert code == 0, err
    facts = SimpleNamespace(before=[], after=[f for f in tmp_path.iterdir() if "study" in f.name])
    check(REPORT, notes_of(err), facts)


def test_a_run_in_vain_says_where_what_was_paid_for_is(knownminds, tmp_path):
    from fault_server import FaultServer

    pytest.importorskip("openai")
    with FaultServer(script=["ok", "404"]) as server:
        code, _, err = knownminds(
            "run", PLACE, "--llm", "openai:m", "--base-url", server.address["openai"],
            "--trials", 8, "--out", tmp_path,
        )  # fmt: skip
    assert code == 2
    last = err.splitlines()[-1].removeprefix("knownminds: ")
    check(REPORT, [last], SimpleNamespace())


def test_what_is_said_of_a_served_mind_is_so():
    code = "import sys; from knownminds.validation.cli import main; main(sys.argv[1:])"
    command = [sys.executable, "-c", code, "serve", PLACE, "--name", "someone"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            said = process.stderr.readline().strip()
            url = re.search(r"http://\S+/v1", said)[0]
            with urllib.request.urlopen(f"{url}/models", timeout=20) as answer_:
                assert "someone" in answer_.read().decode()
        finally:
            process.send_signal(signal.SIGINT)
            rest = process.stderr.read().strip()
            process.wait(20)
    facts = SimpleNamespace(url=url, served="someone", answered=0)
    check(REPORT, [said, rest], facts)


def doctor_says(found, environment):
    lines = [line for line in str(found).splitlines() if line.endswith(".") and line[0].isupper()]
    keys = [one.why.split(";")[0] for one in found.adapters if "is not set" in one.why]
    facts = SimpleNamespace(content=json.loads(found.to_json()), environment=environment)
    check(DOCTOR, [*lines, *keys], facts)
    return lines


def test_what_the_doctor_says_is_so(monkeypatch):
    for name in ("OPENAI_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "something")
    assert len(doctor_says(doctor(), os.environ)) == 3


def test_what_the_doctor_says_of_what_is_not_there_is_so(monkeypatch):
    monkeypatch.setattr(module, "_cache", lambda: module.Path("/proc/nothing"))
    lines = doctor_says(doctor(measure=False), os.environ)
    assert any("cannot be kept" in line for line in lines)
    assert lines[-1] == "Something needed is not ok."


def test_what_pages_share_is_so():
    cell = Cell(PLACE, {}, "rescorla_wagner", truth={"beta": 3.0}, lapse=0.05)
    facts = SimpleNamespace(seconds=[1.25, 2000.5], truth={"beta": 3.0}, lapse=0.05)
    check(PAGES, [about_truth(cell), about_time(2001.75)[1]], facts)
    facts = SimpleNamespace(truth={}, lapse=0.0)
    check(PAGES, [about_truth(Cell(PLACE, {}, "rescorla_wagner"))], facts)
    counts = {"ok": 7, "flat": 0, "failed": 2}
    _, _, rows = status_table(counts, 9)
    assert rows == [["ok", "7", "77.8%"], ["flat", "0", "0.0%"], ["failed", "2", "22.2%"]]
    assert status_table({"ok": 0}, 0)[2] == [["ok", "0", "-"]]  # nothing was attempted


@pytest.mark.parametrize("counts", [{"ok": 5, "error": 3}, {"refused": 1}, {"ok": 1000}])
def test_the_table_of_outcomes_is_a_count_with_wilsons_intervals(counts):
    _, _, rows = outcome_table(outcome_rates(counts))
    table = pd.DataFrame(rows, columns=["outcome", "n", "share", "interval"]).set_index("outcome")
    of = sum(counts.values())
    for name, row in table.iterrows():
        n = counts.get(name, 0)
        low, high = proportion_confint(n, of, method="wilson")
        assert row["n"] == f"{n:,}"
        told = [float(x) for x in re.findall(r"[\d.]+", f"{row['share']} {row['interval']}")]
        assert np.allclose(told, [100 * n / of, 100 * low, 100 * high], atol=0.0501)


def test_a_fit_without_a_model_takes_the_usual_one_of_the_data(knownminds, tmp_path):
    file = tmp_path / "trials.csv"
    knownminds("sample", "two_step", "--subjects", 2, "--set", "n_days=20", "--out", file)
    code, _, err = knownminds("fit", file)
    assert code == 0, err
    told = [line for line in err.splitlines() if line.startswith(("experiment", "model"))]
    assert len(told) == 2
    # who `sample` takes, from the file beside it
    columns = pd.read_csv(tmp_path / "trials_truth.csv").columns
    facts = SimpleNamespace(environment="two_step", model="two_step_reduced")
    assert set(columns) == {"subject", *AGENTS["two_step_reduced"].parameters.names}
    check(REPORT, told, facts)
