"""Designs of wordings and sessions, projected from a run in a few wordings."""

import json

import numpy as np
import pandas as pd
import pytest

from knownminds.agents import AGENTS, simulate
from knownminds.environments import Trials, make
from knownminds.inference import MEASURES
from knownminds.validation.cli import main
from knownminds.validation.power.wordings import (
    WordingPilot,
    best_splits,
    limit_over_wordings,
    project,
)

MEASURE, EXPERIMENT = "likelihood_weighting", "probabilistic_reasoning"


def table(rng, w, s, wording, session, rest, mean=0.0):
    """Draw scores of wordings in sessions, from the model of the module."""
    return (
        mean + wording * rng.standard_normal((w, 1)) + session * rng.standard_normal((1, s))
        + rest * rng.standard_normal((w, s))
    )  # fmt: skip


def rejects(rng, n, *more):
    return np.mean([is_found(table(rng, *more)) for _ in range(n)])


def is_found(scores, null=0.0):
    return abs(scores.mean() - null) > limit_over_wordings(scores)


def trials_of(wordings, sessions, seed, away=0.0, moved=0.0):
    """Let a known observer play several wordings, each of which moves how likelihoods weigh.

    Each session has another design in each wording, so that no variance is shared by them.
    """
    rng = np.random.default_rng(seed)
    place, frames = make(EXPERIMENT, n_problems=20), []
    for j, shift in enumerate(moved * rng.standard_normal(wordings)):
        theta = [[0.0, 1.0, away + shift, 1.5]] * sessions
        frame = simulate(AGENTS["weighted_bayes"], theta, place, seed=seed * 100 + j).frame
        names = {"session": frame["subject"], "subject": "m", "template": f"w{j}"}
        frames.append(frame.assign(**names, design_number=frame["subject"].astype(int)))
    return pd.concat(frames, ignore_index=True)


@pytest.mark.parametrize(
    "parts", [(0.3, 0.3, 1.0), (0.5, 0.0, 1.0), (0.0, 0.0, 1.0), (0.1, 0.5, 0.5), (1.0, 1.0, 0.1)]
)
def test_its_test_errs_in_no_more_than_it_says(parts):
    rng, n = np.random.default_rng(5), 1000
    for w, s in ((2, 5), (2, 20), (3, 10), (6, 5), (20, 2)):
        # Three errors of a share of .05 in 1,000 tables.
        assert rejects(rng, n, w, s, *parts) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / n)


def test_a_test_over_sessions_errs_where_wordings_differ():
    rng = np.random.default_rng(6)
    assert rejects(rng, 400, 1, 40, 0.3, 0.1, 0.5) > 0.3
    pilot = WordingPilot(("a",) * 8, table(rng, 8, 40, 0.3, 0.1, 0.5), 0, 0, 0)
    assert project(pilot, 0.5, [(1, 40)])["errs"].iloc[0] > 0.3


def test_what_is_projected_is_what_comes_true():
    # From a pilot so large that its components are known: the projection is then exact.
    rng, parts, sizes = np.random.default_rng(7), (0.3, 0.3, 1.0), [(2, 30), (6, 10), (10, 6)]
    pilot = WordingPilot(("a",) * 300, table(rng, 300, 300, *parts), 0, 0, 0)
    told = project(pilot, 0.5, sizes).set_index(["wordings", "sessions"])
    for size in sizes:
        n = 500
        found = rejects(rng, n, *size, *parts, 0.5)
        # Four errors of the share, and .03 for components that 300 wordings know to 8%.
        assert abs(found - told["power"][size]) <= 4 * np.sqrt(0.25 / n) + 0.03
        assert told["low"][size] <= told["power"][size] <= told["high"][size]
    assert list(best_splits(told.reset_index().assign(cost=60), "cost")) == [False, True, True]


@pytest.mark.long
def test_a_planted_effect_of_wordings_is_projected_from_pilots_of_known_agents():
    place, measure = make(EXPERIMENT, n_problems=20), MEASURES[MEASURE]
    sizes, away, moved = [(2, 12), (4, 6)], 0.25, 0.15

    def scores(w, s, seed):
        frame = trials_of(w, s, seed, away, moved)
        return WordingPilot.of(Trials(frame), measure, place, "pilot")

    for size in sizes:
        found = np.mean(
            [is_found(scores(*size, 1000 + k).scores, measure.null) for k in range(200)]
        )
        pilots = [project(scores(4, 6, 5000 + k), away, [size], k) for k in range(30)]
        told = np.mean([one["power"].iloc[0] for one in pilots])
        print(f"{size}: realised {found:.3f}, projected {told:.3f}")
        # A pilot of four wordings knows their variance badly: over pilots .1 is allowed for that,
        # and three errors of both means (a projection varies by about .2).
        assert abs(found - told) <= 0.1 + 3 * np.sqrt(0.25 / 200 + 0.04 / 30)


def answer(capsys, *typed):
    with pytest.raises(SystemExit) as ended:
        main(list(typed))
    told = capsys.readouterr()
    return ended.value.code, told.out, " ".join(told.err.split())


@pytest.mark.long
def test_the_command_projects_from_a_run(tmp_path, capsys):
    folder = str(tmp_path / "run")
    run = ("run", EXPERIMENT, "--llm", "synthetic:weighted_bayes", "--set", "n_problems=10")
    assert answer(capsys, *run, "--sessions", "3", "--paraphrases", "3", "--out", folder)[0] == 0
    power = ("power", EXPERIMENT, "--effect", f"{MEASURE}=0.3", "--from", folder)
    code, out, _ = answer(capsys, *power, "--wordings", "2", "--sessions", "8", "--json")
    told = json.loads(out)
    assert code == 0
    (row,) = told["tables"]["designs"]
    assert (row["wordings"], row["sessions"], row["in_all"]) == (2, 8, 16)
    # A known agent answers by its numbers alone: all wordings have the same sessions.
    assert any("All wordings" in text for text in told["warnings"])
    assert "projected" in told["methods"]
    for more, said in {
        ("--dollars", "3"): "nothing was charged",
        ("--dollars", "nan"): "above 0",
        ("--dollars", "3", "--sessions", "4"): "Leave one out",
        ("--subjects", "3"): "--subjects",
        ("--rope", "0.1"): "--rope",
        ("--wordings", "0"): "wordings is a whole number",
        ("--set", "n_problems=20"): "n_problems=10",
        ("--seed", "-1"): "Seeds",
        ("--wordings", "2", "--effect", f"{MEASURE}=nan"): "--effect once",
    }.items():
        code, _, told_of = answer(capsys, *power, *more)
        assert code == 2
        assert said in told_of
    for size in ("nan", "inf", "pilot"):
        code, _, _ = answer(capsys, *power[:2], "--effect", f"{MEASURE}={size}", *power[4:])
        assert code == 2
    assert answer(capsys, *power[:4], "--sessions", "5", "--wordings", "3")[0] == 2  # no run
    assert answer(capsys, *power[:5], "nowhere")[0] == 2
    budget = ("budget", EXPERIMENT, "--llm", "openai:gpt-4o-mini", "--from", folder)
    code, out, _ = answer(
        capsys, *budget, "--effect", f"{MEASURE}=0.3", "--dollars", "0.1", "--json"
    )
    assert code == 0
    told = json.loads(out)
    assert told["options"]["trials"] == 10  # sessions that are priced are like those of the run
    rows = told["tables"]["wordings_and_sessions"]
    bought = {row["wordings"]: row["sessions"] for row in rows}
    assert bought[2] == bought[1] // 2  # the same money buys half as many sessions of each
    assert answer(capsys, *budget, "--dollars", "0.1")[0] == 2  # no effect
    for wrong in ("nan", "inf", "-1", "0"):
        effect = ("--effect", f"{MEASURE}=0.3")
        assert answer(capsys, *budget, *effect, "--dollars", wrong)[0] == 2
    alone = str(tmp_path / "alone")
    assert answer(capsys, *run, "--sessions", "3", "--out", alone)[0] == 0
    code, _, said = answer(capsys, *power[:-1], alone)
    assert code == 2
    assert "1 wording" in said


def test_repeats_are_pairs_of_one_prompt_in_two_sessions():
    frame = trials_of(2, 4, 3)
    frame["prompt_hash"] = frame["trial"].astype(str)
    frame["action"], frame["response"] = 0, 1.0
    place = make(EXPERIMENT, n_problems=20)
    varied = frame.assign(response=np.random.default_rng(1).random(len(frame)))
    pilot = WordingPilot.of(Trials(varied), MEASURES[MEASURE], place, "pilot")
    assert pilot.repeats == 2 * 20 * 6  # wordings, trials, pairs of four sessions
    assert pilot.alike == 0
    same = varied.assign(response=varied.groupby("trial")["response"].transform("first"))
    assert WordingPilot.of(Trials(same), MEASURES[MEASURE], place, "pilot").alike == 240
