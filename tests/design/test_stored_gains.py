"""Best designs against the papers' at equal cost, and chosen questions against the first ones.

The searches, the recoveries that confirm them, and the recoveries from chosen questions are stored
with their commands in tests/long/best_designs.json and tests/long/chosen_questions.json.
"""

import contextlib
import io
import json
import shlex
from pathlib import Path

import numpy as np
import pytest
from stored_runs import keep, stored

from knownminds.validation.cli import main
from knownminds.validation.design.best_design import read_best_design
from knownminds.validation.design.goals import judge_batch
from knownminds.validation.engine.study import Batch, Cell, Study

SEARCHES = {
    "instrumental_learning": "design instrumental_learning --for beta --budget trials=480 "
    "--designs 40 --replicates 50 --fresh 500 --seed 1",
    "temporal_discounting": "design temporal_discounting --set design=grid --for parameters "
    "--model hyperbolic_discounter --budget trials=104 --designs 100 --seed 1",
    "horizon": "design horizon --for parameters --model horizon_explorer --budget trials=1050 "
    "--designs 30 --replicates 50 --fresh 300 --seed 1",
}
GRID = (
    "recover temporal_discounting --design grid --set losses=false --set eta=1 --fix eta=1 "
    "--model hyperbolic_discounter --questions 20"
)
PROBLEMS = (
    "recover probabilistic_reasoning --set n_problems=60 --model weighted_bayes --questions 10"
)
QUESTIONS = {
    "temporal_discounting": (GRID, f"{GRID} --adaptive hyperbolic_discounter"),
    "probabilistic_reasoning": (PROBLEMS, f"{PROBLEMS} --adaptive weighted_bayes"),
}
# What the choice of questions is there for: parameters that the first ones tell little of.
TOLD_MORE = {"temporal_discounting": ["k"], "probabilistic_reasoning": ["b_prior", "b_likelihood"]}
GUIDE = Path(__file__).parents[2] / "docs" / "how-to" / "plan-a-study.md"


def answered(command, *more):
    """Run a command as one types it; return its JSON."""
    told = io.StringIO()
    with contextlib.redirect_stdout(told), contextlib.suppress(SystemExit):
        main([*shlex.split(command), "--json", *more])
    return json.loads(told.getvalue())


def recovered(command, *more):
    """What a recovery says of each parameter: RMSE, r and coverage, with Monte-Carlo errors."""
    found = answered(command, *more)
    numbers = {}
    for name, one in found["parameters"].items():
        errors, regions = one["monte_carlo_error"], one["regions"]
        n = [region["n"] for region in regions]
        squares = [region["relative_error"] ** 2 for region in regions]
        numbers[name] = {
            "rmse": [one["rmse"], errors["rmse"]],
            "r": [one["r"], errors["r"]],
            "coverage": [one["coverage"]["90"], errors["coverage"]["90"]],
            # On the unconstrained scale, in standard deviations of the prior, as the spread is.
            "relative_error": float(np.average(squares, weights=n) ** 0.5),
        }
    return {"command": f"knownminds {command}", "parameters": numbers}


def searched(command, folder):
    """What a search found, and what fresh recoveries say of the best design and the paper's."""
    answered(command, "--out", str(folder))
    found = read_best_design(folder)
    other = found.of_role("published") or found.of_role("shipped")
    numbers = {"command": f"knownminds {command}"}
    for name, design in (("best", found.winner), ("paper", other)):
        fresh = found.fresh_of(design)[-1]
        recovery = found.recovery_command(design).removeprefix("knownminds ")
        numbers[name] = {
            "settings": dict(design.settings),
            "sessions": fresh.sessions,
            "trials": fresh.trials,
            "cost": fresh.cost,
            "spread": [fresh.score.value, fresh.score.error],
            "recovery": recovered(recovery),
        }
    gain = next(one for one in found.gains if one.over == other.role)
    return numbers | {"gain": [gain.score.value, *gain.interval], "goal": list(found.goal.names)}


@pytest.mark.long
def test_searches_are_those_that_are_stored(tmp_path):
    numbers = {name: searched(command, tmp_path / name) for name, command in SEARCHES.items()}
    there = keep("best_designs", numbers, 1, __file__)
    assert json.loads(json.dumps(numbers)) == there


@pytest.mark.long
def test_chosen_questions_are_those_that_are_stored():
    numbers = {
        name: {
            way: recovered(f"{command} --subjects 200 --seed 3")
            for way, command in zip(("first", "chosen"), commands, strict=True)
        }
        for name, commands in QUESTIONS.items()
    }
    there = keep("chosen_questions", numbers, 3, __file__)
    assert json.loads(json.dumps(numbers)) == there


def spreads(told, name, n):
    """Judge n data sets of each stored design anew, with minds of another seed: [2, n]."""
    model = told["best"]["recovery"]["command"].partition("--model ")[2].split()[0]
    cells = [
        Cell(
            name, told[which]["settings"], model, law={"common": 1}, subjects=1, batch=n,
            sessions=told[which]["sessions"], options={"goal": "parameters", "named": told["goal"]},
        )
        for which in ("best", "paper")
    ]  # fmt: skip
    study = Study("design", tuple(cells), n, 99, "replicate", {})
    rows = [judge_batch(study, Batch(cell, 0, n), 1) for cell in (0, 1)]
    assert all((one["status"] == "ok").all() for one in rows)
    return np.array([one["score"] for one in rows])


@pytest.mark.parametrize("name", SEARCHES)
def test_the_best_design_is_better_than_the_papers_at_equal_cost(name):
    told = stored("best_designs")[name]
    assert told["command"] == f"knownminds {SEARCHES[name]}"
    assert told["best"]["cost"] <= 1.01 * told["paper"]["cost"]
    n = 12
    mine, papers = spreads(told, name, n)
    apart = mine - papers
    error = np.hypot(apart.std(ddof=1) / n**0.5, (told["gain"][2] - told["gain"][0]) / 3.92)
    assert abs(apart.mean() - told["gain"][0]) < 4 * error
    assert apart.mean() < 0
    for which, scores in (("best", mine), ("paper", papers)):
        value, its = told[which]["spread"]
        assert abs(scores.mean() - value) < 4 * np.hypot(scores.std(ddof=1) / n**0.5, its)


@pytest.mark.parametrize("name", SEARCHES)
def test_fresh_recoveries_confirm_the_search(name):
    """Errors of the estimates, on the scale on which designs were judged."""
    told = stored("best_designs")[name]
    best, paper = (
        np.mean(
            [told[which]["recovery"]["parameters"][p]["relative_error"] ** 2 for p in told["goal"]]
        )
        for which in ("best", "paper")
    )
    # A mean square of 500 errors, normal or with tails up to a kurtosis of 5, is known to 9%.
    assert best < paper * (1 - 3 * 0.09)


@pytest.mark.parametrize("name", QUESTIONS)
def test_chosen_questions_tell_more_than_the_first_ones(name):
    told = stored("chosen_questions")[name]
    for parameter in TOLD_MORE[name]:
        first, chosen = (told[way]["parameters"][parameter]["rmse"] for way in ("first", "chosen"))
        assert first[0] - chosen[0] > 3 * np.hypot(first[1], chosen[1])
    for one in told["chosen"]["parameters"].values():
        assert abs(one["coverage"][0] - 0.9) < 3 * (0.9 * 0.1 / 200) ** 0.5


def test_a_few_minds_of_another_seed_answer_chosen_questions_as_those_that_are_stored():
    """Of the experiment whose questions are chosen in seconds."""
    name = "temporal_discounting"
    again = recovered(f"{QUESTIONS[name][1]} --subjects 12 --seed 4", "--workers", "1")
    for parameter, one in again["parameters"].items():
        value, error = stored("chosen_questions")[name]["chosen"]["parameters"][parameter]["rmse"]
        assert abs(one["rmse"][0] - value) < 4 * np.hypot(one["rmse"][1], error)


def test_the_guide_shows_what_is_stored():
    guide = GUIDE.read_text(encoding="utf-8").replace("\\\n    ", "")
    for told in stored("best_designs").values():
        assert told["command"] in guide
        value, low, high = (f"{n:.3f}".replace("0.", ".") for n in told["gain"])
        assert f"{value} ({low} to {high})" in guide
        for which in ("best", "paper"):
            spread, error = (f"{n:.3f}".removeprefix("0") for n in told[which]["spread"])
            assert f"{spread} ({error})" in guide
            for one in (told[which]["recovery"]["parameters"][p] for p in told["goal"]):
                assert f"{one['relative_error']:.2f}".removeprefix("0") in guide
    for told in stored("chosen_questions").values():
        for way in ("first", "chosen"):
            assert told[way]["command"] in guide
            for one in told[way]["parameters"].values():
                value, error = (f"{n:.3f}".removeprefix("0") for n in one["rmse"])
                assert f"{value} ({error})" in guide
