"""Words of the user's beside the shipped ones, and people as a participant of any page."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import knownminds.environments.bandits as shipped
from knownminds.agents import AGENTS
from knownminds.agents.play import simulate_sessions
from knownminds.environments import make
from knownminds.inference.differences import Side, difference
from knownminds.validation.benchmarks.paper import SCORES
from knownminds.validation.benchmarks.plan import read_plan
from knownminds.validation.benchmarks.stability import contrasts_of_words

PLAN = """
benchmark = "cogbench"
[experiments]
balloon_risk = { sessions = 4, settings = { n_balloons = 6 } }
[known.random]
balloon_risk = { model = "random_responder" }
"""
CHANCE = """
benchmark = "revealed_belief"
[experiments]
choice_4 = { environment = "choice", sessions = 20, settings = { n_options = 4 } }
[known.rational]
choice_4 = { model = "belief_sampler", bias_first = 0.0 }
"""

SHIPPED = (Path(shipped.__file__).parent / "balloon_risk.toml").read_text(encoding="utf-8")


@pytest.fixture
def words(tmp_path):
    file = tmp_path / "words" / "balloon_risk.toml"
    file.parent.mkdir()
    file.write_text(SHIPPED.replace(" balloon ", " bubble "), encoding="utf-8")
    (tmp_path / "plan.toml").write_text(PLAN)
    return file


@pytest.mark.long
def test_cells_are_played_in_own_words_beside_the_shipped_ones(tmp_path, words, knownminds):
    out = tmp_path / "b"
    code, _, err = knownminds(
        "benchmark", "cogbench", "--plan", tmp_path / "plan.toml", "--templates", words.parent,
        "--llm", "synthetic:balloon_pumper", "--out", out,
    )  # fmt: skip
    assert code == 0, err
    cells = pd.read_csv(out / "tables" / "cells.csv")
    assert cells["wording"].tolist() == ["shipped", "own words"]
    rows = pd.read_csv(out / "tables" / "wordings.csv")
    assert rows["score"].tolist() == ["balloon_risk_performance", "risk"]
    # Words are nothing to a known agent: it answers the same in both.
    assert rows["value"].tolist() == [0.0, 0.0]
    assert rows["shared"].tolist() == [4, 4]
    plan = read_plan("cogbench", tmp_path / "plan.toml", templates=words)
    assert plan.cells[1].environment.settings["templates"] == str(words)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [("nobody.toml", "x = 'a'", "named as its experiment"),
     ("balloon_risk.toml", "x = 'a'", "Copy the shipped file"),
     ("balloon_risk.toml", SHIPPED + "another = 'a'", "has an unknown 'another'"),
     ("balloon_risk.toml", SHIPPED.replace("{n_all} ", ""), "lacks {n_all}")],
)  # fmt: skip
def test_words_that_are_none_are_refused(tmp_path, knownminds, name, text, said):
    (tmp_path / "plan.toml").write_text(PLAN)
    (tmp_path / name).write_text(text)
    code, _, err = knownminds(
        "benchmark", "cogbench", "--plan", tmp_path / "plan.toml", "--templates", tmp_path / name,
        "--llm", "synthetic:balloon_pumper", "--out", tmp_path / "b",
    )  # fmt: skip
    assert code == 2
    assert said in err
    assert not (tmp_path / "b").exists()


def test_differences_of_words_are_of_the_same_sessions():
    moved = {"0/0": 0.3, "0/1": -0.1, "0/2": -0.2}
    other = {name: 0.9 * value for name, value in moved.items()}
    sides = [Side(value, float(np.sqrt(sum(x**2 for x in one.values()))), 2.0, one)
             for value, one in ((1.0, moved), (1.5, other))]  # fmt: skip
    scores = pd.DataFrame([
        dict(zip(SCORES, ("m", "risk", "c", s.value, s.standard_error, 2.0, s.influence),
                 strict=True)) | {"template": words}
        for s, words in zip(sides, ("shipped", "mine"), strict=True)
    ])  # fmt: skip
    frame, _ = contrasts_of_words(scores)
    row = frame.iloc[0]
    assert (row["value"], row["shared"]) == (0.5, 3)
    expected = difference(sides[1], sides[0]).standard_error
    assert row["standard_error"] == pytest.approx(expected)
    assert expected < 0.2 * sides[0].standard_error  # pairs, not independent ones


@pytest.mark.long
def test_people_are_a_participant_where_a_page_has_no_values_of_them(tmp_path, knownminds):
    (tmp_path / "plan.toml").write_text(CHANCE)
    place, model = make("choice", n_options=4), AGENTS["belief_sampler"]
    theta = np.tile(model.parameters.constrain(model.parameters.mean), (40, 1))
    simulate_sessions(model, theta, place, 5).to_trials().save(tmp_path / "crowd.parquet")
    out = tmp_path / "b"
    code, _, err = knownminds(
        "benchmark", "revealed_belief", "--plan", tmp_path / "plan.toml", "--people",
        tmp_path / "crowd.parquet", "--llm", "synthetic:belief_sampler", "--out", out,
    )  # fmt: skip
    assert code == 0, err
    shares = pd.read_csv(out / "tables" / "distances.csv")
    assert set(shares["participant"]) == {"synthetic:belief_sampler", "rational", "people"}
    # There is one model: people are no second one to compare it with.
    assert "people" not in (out / "tables" / "differences.csv").read_text()
