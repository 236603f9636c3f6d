"""Best designs against the papers' at equal cost, and chosen questions against the first ones.

The searches, the recoveries that confirm them, and the recoveries from chosen questions are stored
with their commands in tests/long/best_designs.json and tests/long/chosen_questions.json.
"""

import contextlib
import io
import json
import shlex

import numpy as np
import pytest
from stored_runs import keep

from knownminds.validation.cli import main
from knownminds.validation.design.best_design import read_best_design

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
    for told in numbers.values():
        errors = [
            [told[which]["recovery"]["parameters"][p]["relative_error"] for p in told["goal"]]
            for which in ("best", "paper")
        ]
        best, paper = (np.mean(np.square(one)) for one in errors)
        # A mean square of 500 errors, with tails up to a kurtosis of 5, is known to 9%.
        assert best < paper * (1 - 3 * 0.09)


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
    for name, told in numbers.items():
        for parameter in TOLD_MORE[name]:
            first, chosen = (told[way]["parameters"][parameter]["rmse"] for way in told)
            assert first[0] - chosen[0] > 3 * np.hypot(first[1], chosen[1])
