"""Least-squares fits of a noisy-OR, tasks left out in turn, and what missing tasks leave open."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize

from knownminds.agents import MutationSampler, NoisyOr, simulate
from knownminds.environments import Collider
from knownminds.environments.causes.causal_graph import TASKS, direction_of, noisy_or_table, task_of
from knownminds.inference import leave_one_task_out
from knownminds.inference.causes.least_squares_reasoner import COLUMNS

QUESTION = ("query", "first", "second", "third")
ROMAN = [task.roman for task in TASKS]


def answers(seed, n=6, sigma=0.1, model=NoisyOr):
    """Answers of n reasoners to one question of each kind, 240 each."""
    theta = model.parameters.draw(np.random.default_rng(seed), n)
    theta[:, -1] = sigma
    return theta, simulate(model, theta, Collider(), seed).frame


def exact(theta, pooled=False):
    """One answer to each of the twenty questions, without noise, for theta = p, b, m1, m2."""
    rows = []
    for i, (p, b, m1, m2) in enumerate(np.atleast_2d(theta).tolist()):
        table = noisy_or_table(p, p, b, m1, m2)
        for number, task in enumerate(TASKS):
            for direction, question in enumerate((task.question, task.mirrored)):
                if question is not None:
                    said = 100 * table[number, 0 if pooled else direction]
                    rows.append((str(i), *question, said))
    return pd.DataFrame(rows, columns=["subject", *QUESTION, "response"])


def only(frame, *romans):
    task = task_of(*(frame[name].to_numpy() for name in QUESTION))
    return frame[np.isin(np.array(ROMAN)[task], romans)]


@pytest.mark.long
@pytest.mark.parametrize("size", [3, 4, 5])
@pytest.mark.parametrize("scoring", ["by_cause", "pooled"])
def test_no_other_search_ends_lower(size, scoring):
    """L-BFGS-B over single answers, no sums of them; agents that are no noisy-OR."""
    _, frame = answers(1, n=3, model=MutationSampler)
    fit = leave_one_task_out(frame, parameters=(size,), scoring=scoring)
    loss_of, mae, rmse, r2 = (values[:, 0] for values in fit.residuals.values())
    rng = np.random.default_rng(0)
    for i, (_, own) in enumerate(frame.groupby("subject", sort=False)):
        question = [own[name].to_numpy() for name in QUESTION]
        place = task_of(*question)
        side = direction_of(*question) if scoring == "by_cause" else np.zeros(len(own), dtype=int)
        y = own["response"].to_numpy() / 100

        def loss(theta):
            table = noisy_or_table(*theta[list(COLUMNS[size])])
            return 0.5 * np.mean((table[place, side] - y) ** 2)  # noqa: B023

        bounds = [(1e-6, 1 - 1e-6)] * size
        ends = [
            minimize(loss, start, bounds=bounds, method="L-BFGS-B", options={"ftol": 1e-14})
            for start in rng.uniform(0.05, 0.95, (2, size))
        ]
        estimate = np.empty(size)
        estimate[list(COLUMNS[size])] = fit.estimate[i, 0]
        assert loss(estimate) == pytest.approx(loss_of[i], abs=1e-14)
        assert loss_of[i] <= min(end.fun for end in ends) + 1e-10
        assert mae[i] <= rmse[i] == pytest.approx(np.sqrt(2 * loss_of[i]))
        assert r2[i] == pytest.approx(1 - 2 * loss_of[i] / y.var())


def test_answers_of_a_noisy_or_are_fitted_without_a_rest_and_foretold():
    theta = np.random.default_rng(2).uniform(0.1, 0.9, (20, 4))
    consistency = leave_one_task_out(exact(theta))
    assert np.allclose(consistency.theta, theta, atol=1e-5)
    assert np.allclose(consistency.residuals["r2"][:, 1], 1.0)
    assert set(consistency.status[1]) == {"ok"}
    assert np.allclose(consistency.value, 1.0, atol=1e-6)
    assert np.allclose(consistency.predicted[:, 1], consistency.mean, atol=1e-4)
    assert (consistency.n_parameters == 4).all()
    equal = leave_one_task_out(exact([[0.4, 0.1, 0.8, 0.8]]))
    assert equal.theta[0] == pytest.approx([0.4, 0.1, 0.8, 0.8], abs=1e-4)


def test_a_task_is_foretold_by_the_fit_to_the_rest():
    _, frame = answers(3, n=3)
    whole = leave_one_task_out(frame, parameters=(3, 4))
    for task in (0, 1, 6, 10):
        rest = only(frame, *(r for r in ROMAN if r != ROMAN[task]))
        asked = only(frame, ROMAN[task])
        # Task II is asked in two directions; their mean answer is foretold.
        sides = [0, 1] if TASKS[task].mirrored else [0]
        for f, size in enumerate((3, 4)):
            theta = leave_one_task_out(rest, parameters=(size,)).estimate[:, 0]
            table = noisy_or_table(*theta.T)[:, task][:, sides]
            assert np.allclose(whole.predicted[:, f, task], table.mean(axis=1), atol=1e-4)
        mean = asked.groupby("subject", sort=False)["response"].mean() / 100
        assert np.allclose(whole.mean[:, task], mean)
    off = whole.predicted - whole.mean[:, None]
    around = whole.mean - whole.mean.mean(axis=1, keepdims=True)
    r2 = 1 - (off**2).sum(axis=2) / (around**2).sum(axis=1)[:, None]
    assert np.allclose(whole.r2, r2)
    assert np.allclose(whole.rmse, np.sqrt((off**2).mean(axis=2)))
    assert np.array_equal(whole.chosen, r2.argmax(axis=1))
    assert np.allclose(whole.value, r2.max(axis=1))
