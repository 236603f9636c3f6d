import sys
from pathlib import Path

import pandas as pd
import pytest

from knownminds.agents import AGENTS

DOCS = Path(__file__).resolve().parents[2] / "docs"
sys.path.insert(0, str(DOCS))
from gates import (  # noqa: E402 - a script beside the pages
    LARGE,
    STORED,
    contradictions,
    design_of,
    environment_of,
    gates,
    judge_fall,
    kinds_of,
    write_gates,
)

sys.path.remove(str(DOCS))
ROW = {"gate": "recovery", "name": "perseverator", "quantity": "kappa", "attempted": 300}


@pytest.fixture(scope="module")
def stored():
    return pd.read_csv(STORED)


@pytest.mark.parametrize("name", AGENTS)
def test_every_model_has_a_recommended_design_that_builds_and_that_it_plays(name):
    design, model = design_of(AGENTS[name]), AGENTS[name]
    model.check_plays(environment_of(design))
    for reasons in (design.open, design.kept):
        assert set(reasons) <= set(model.parameters.names)
        assert all(reasons.values())
    assert design.sessions >= 1


@pytest.mark.parametrize("name", [name for name, model in AGENTS.items() if len(model.parameters)])
def test_every_model_has_stored_gates_of_full_size(name, stored):
    rows = stored[stored["name"] == name]
    for kind in kinds_of(AGENTS[name]):
        gate = rows[rows["gate"] == kind]
        if kind == "calibration":
            continue  # as far as time allowed; the gallery says so
        assert set(gate["quantity"]) == set(AGENTS[name].parameters.names)
        assert (gate["attempted"] >= LARGE[kind]).all()
        assert gate["command"].str.match("knownminds |python docs").all()
        assert gate[["date", "version"]].notna().all(axis=None)


def test_stored_gates_bear_out_what_is_claimed_of_the_designs(stored):
    assert contradictions(stored[stored["gate"] != "calibration"]).empty


def test_stored_calibrations_contradict_their_claim_by_chance_alone(stored):
    ranks = stored[(stored["gate"] == "calibration") & stored["name"].isin(list(AGENTS))]
    ranks = ranks.set_index("name")
    declared = {name for name in ranks.index if design_of(AGENTS[name]).uncalibrated}
    assert declared == {"noisy_or_gaussian", "noisy_reporter"}
    # 670 quantities: by chance the smallest p is below 1e-6 in 1 of 1,500 releases.
    assert ranks.drop(index=list(declared))["p"].min() >= 1e-6
    assert (ranks.loc[list(declared)].groupby("name")["p"].min() < 1e-6).all()


def test_gates_are_written_with_date_version_and_command(tmp_path):
    rows = gates(["perseverator"], small=True, workers=1)
    assert set(rows["gate"]) == {"recovery", "shuffled", "calibration"}
    write_gates(rows, tmp_path / "gates.csv")
    table = pd.read_csv(tmp_path / "gates.csv")
    shuffled = table[table["gate"] == "shuffled"].iloc[0]
    score = rows.set_index("gate").loc["shuffled", "r"]
    assert shuffled["r"] == pytest.approx(score.value, rel=1e-3)
    assert table[["date", "version", "command"]].notna().all(axis=None)
    assert contradictions(rows).empty  # the small form is there to see that it works


def test_a_fall_counts_when_it_is_clear_and_goes_below_what_is_weak():
    assert judge_fall(0.9, 0.1, n=100) == "lost"
    assert judge_fall(0.97, 0.7, n=100) == "less"
    assert judge_fall(0.9, 0.88, n=100) == "kept"
    assert judge_fall(0.3, 0.1, n=30) == "kept"  # within the error of so few
    assert judge_fall(0.9, 0.1, n=9) == "not judged"
    assert judge_fall(1.0, 0.0, n=100) == "lost"
    # Two errors of 100 subjects around .5 reach from .34 to .63.
    assert judge_fall(0.9, 0.45, n=100) == "between lost and less"
    # The fall is 2.3 or 2.6 of its errors: neither clear nor none.
    assert judge_fall(0.6, 0.35, n=100) == "between lost and kept"
    assert judge_fall(0.9, 0.8, n=100) == "between less and kept"


@pytest.mark.parametrize(
    ("gate", "verdict", "attempted", "claimed"),
    [
        ("recovery", "recoverable", 300, []),
        ("recovery", "weak", 300, ["given back"]),
        ("recovery", "between weak and not identified", 300, ["given back"]),
        ("recovery", "between recoverable and weak", 300, []),  # open: it contradicts nothing
        ("recovery", "weak", 30, []),  # small
        ("shuffled", "lost", 100, []),
        ("shuffled", "kept", 100, ["lost"]),
        ("shuffled", "between lost and kept", 100, []),
        ("calibration", "biased low", 200, ["calibrated"]),
        ("calibration", "not judged", 200, []),
    ],
)
def test_gates_that_contradict_a_claim_are_listed(gate, verdict, attempted, claimed):
    row = {**ROW, "gate": gate, "verdict": verdict, "attempted": attempted}
    assert list(contradictions(pd.DataFrame([row]))["claimed"]) == claimed
