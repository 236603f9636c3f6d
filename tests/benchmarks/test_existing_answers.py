"""A paper's page of answers that there are: each stands in the cell that it was asked in."""

import json

import numpy as np
import pytest

from knownminds.agents import AGENTS
from knownminds.agents.play import simulate_sessions
from knownminds.environments import Trials, make
from knownminds.inference import MEASURES
from knownminds.validation.benchmarks.benchmark import read_benchmark, take_answers
from knownminds.validation.benchmarks.measures import measures
from knownminds.validation.benchmarks.paper import Answers
from knownminds.validation.benchmarks.plan import read_plan

PLAN = """
benchmark = "cogbench"
seed = 1
[experiments]
balloon_risk = { sessions = 5, variants = ["base", "step_back"] }
[variants.step_back]
settings = { reasoning = "step_back" }
[known.random]
balloon_risk = { model = "random_responder" }
"""


def pumped(seed, **settings):
    model = AGENTS["balloon_pumper"]
    theta = np.tile(model.parameters.constrain(model.parameters.mean), (3, 1))
    trials = simulate_sessions(model, theta, make("balloon_risk", **settings), seed).to_trials()
    return trials


def named(trials, model):
    frame = trials.frame.assign(model=model)
    frame.attrs = dict(trials.frame.attrs)
    return Trials(frame)


def test_existing_answers_stand_in_their_cells_and_another_design_is_said(tmp_path):
    (tmp_path / "plan.toml").write_text(PLAN)
    plan = read_plan("cogbench", tmp_path / "plan.toml")
    people, wide = pumped(1), named(pumped(2, n_balloons=15, reasoning="step_back"), "m")
    people.save(tmp_path / "people.parquet")
    wide.save(tmp_path / "wide.parquet")
    sources = [tmp_path / "people.parquet", tmp_path / "wide.parquet"]
    lines = take_answers(tmp_path / "b", plan, sources, {"paraphrases": 1})
    assert lines[0].endswith(f"people in balloon_risk, {len(people)} trials")
    assert "m in balloon_risk/step_back" in lines[1]
    assert "n_balloons 15, not 10" in lines[1]
    played = read_benchmark(tmp_path / "b")
    cells = played.cells.set_index(["model", "cell"])
    assert cells.loc[("people", "balloon_risk"), ["ended", "status"]].tolist() == [3, "finished"]
    assert "n_balloons" in cells.loc[("m", "balloon_risk/step_back"), "reason"]
    # Who is of files cannot be asked: what they lack is no unit that is missing.
    assert cells.loc[("m", "balloon_risk"), "status"] == "not in the files"
    assert played.complete
    table = measures(Answers(played.trials, played.about), "risk")
    values = table.set_index(["participant", "cell"])["value"]
    for who, cell, trials in (("people", "balloon_risk", people),
                              ("m", "balloon_risk/step_back", wide)):  # fmt: skip
        assert values[who, cell] == pytest.approx(MEASURES["risk"].estimate(trials).value)


def test_answers_of_no_cell_are_refused_before_anything_is_written(tmp_path, knownminds):
    (tmp_path / "plan.toml").write_text(PLAN)
    pumped(1, reasoning="chain_of_thought").save(tmp_path / "t.parquet")
    words = ("benchmark", "cogbench", "--plan", tmp_path / "plan.toml", "--out", tmp_path / "b")
    code, _, err = knownminds(*words, "--from", tmp_path / "t.parquet")
    assert code == 2, json.dumps(err)
    assert "reasoning=chain_of_thought" in err
    assert not (tmp_path / "b").exists()


def test_an_agent_that_there_is_not_is_refused_before_anything_is_written(tmp_path, knownminds):
    (tmp_path / "plan.toml").write_text(PLAN)
    words = ("benchmark", "cogbench", "--plan", tmp_path / "plan.toml", "--out", tmp_path / "b")
    code, _, err = knownminds(*words, "--llm", "synthetic:balloon_pumpers")
    assert code == 2
    assert "balloon_pumper" in err
    assert not (tmp_path / "b").exists()
