"""The independence test against a plain estimator, and against deciders that are known."""

import numpy as np
import pandas as pd
import pytest
from deciders import decided
from scipy.optimize import isotonic_regression
from scipy.special import digamma

from knownminds.inference import BeliefDecisions
from knownminds.inference.diagnosis.conditional_independence import (
    conditional_independence,
    neighbourhoods,
    permuted,
)


def plainly(p, action, state, k=3):
    """Mesner & Shalizi (2020) over all pairs of rows, distances apart from rounding."""
    of_p = np.round(np.abs(p[:, None] - p[None, :]), 9)
    of_action = (action[:, None] != action[None, :]).astype(float)
    of_state = (state[:, None] != state[None, :]).astype(float)
    found = []
    for i in range(len(p)):
        joint = np.maximum(np.maximum(of_p[i], of_action[i]), of_state[i])
        radius = np.sort(np.delete(joint, i))[k - 1]

        def others(*distances, radius=radius):
            return (np.max(distances, axis=0) <= radius).sum() - 1

        found.append(
            digamma(others(joint))
            - digamma(others(of_p[i], of_action[i]))
            - digamma(others(of_p[i], of_state[i]))
            + digamma(others(of_p[i]))
        )
    return np.mean(found)


def estimated(p, action, state, **options):
    """The estimate with every row a context of its own."""
    about = dict.fromkeys(("participant", "subject", "session", "repetition"), 0)
    frame = pd.DataFrame({"plain": p, "action": action, "state": state, "context": range(len(p))})
    data = BeliefDecisions(frame.assign(**about), pd.DataFrame())
    return conditional_independence(data, replicates=1, bootstraps=0, **options)["value"]


@pytest.mark.parametrize("k", [1, 3, 8])
@pytest.mark.parametrize("decimals", [1, 2, 12])
def test_the_estimate_is_that_of_all_pairs_of_rows(k: int, decimals: int) -> None:
    rng = np.random.default_rng(k + 10 * decimals)
    p = np.round(rng.random(150), decimals)
    state = (rng.random(150) < p).astype(int)
    action = rng.integers(0, 3, 150)
    found = estimated(p, action, state, k=k)
    assert found == pytest.approx(plainly(p, action, state, k), abs=1e-12)


def test_the_calibrated_variant_takes_the_isotonic_regression_for_the_belief() -> None:
    rng = np.random.default_rng(5)
    p = np.round(rng.random(200), 2)
    state, action = (rng.random(200) < p).astype(int), rng.integers(0, 3, 200)
    _, place, n = np.unique(p, return_inverse=True, return_counts=True)
    share = np.bincount(place, state) / n
    calibrated = isotonic_regression(share, weights=n.astype(float)).x[place]
    found = estimated(p, action, state, calibrated=True)
    assert found == pytest.approx(plainly(calibrated, action, state), abs=1e-12)


def test_states_are_exchanged_between_whole_contexts_of_nearly_the_same_belief() -> None:
    rng = np.random.default_rng(6)
    p = np.round(rng.random(200), 2)
    blocks = neighbourhoods(p, block=5, width=0.05)
    for b in np.unique(blocks):
        assert np.ptp(p[blocks == b]) <= 0.05 + 1e-9
    for value in np.unique(p):
        assert len(np.unique(blocks[p == value])) == 1
    state = (rng.random(200) < p).astype(int)
    drawn = permuted(state, blocks, 50, rng)
    for b in np.unique(blocks):
        assert (drawn[:, blocks == b].sum(axis=1) == state[blocks == b].sum()).all()
    assert (drawn != state).any(axis=1).all()


@pytest.fixture(scope="module")
def rational():
    return [conditional_independence(decided(i), replicates=99, bootstraps=60, seed=i)
            for i in range(100)]  # fmt: skip


@pytest.mark.long
def test_truthful_rational_deciders_are_accused_as_often_as_the_level_says(rational) -> None:
    p_value = np.array([found["p_value"] for found in rational])
    # 100 deciders: standard error .022 at .05, .05 at .5; three of them.
    assert np.mean(p_value <= 0.05) <= 0.05 + 0.066
    assert abs(np.mean(p_value <= 0.5) - 0.5) <= 0.15


def test_the_published_interval_is_around_the_estimate_and_its_percentiles_are_no_test(
    rational,
) -> None:
    rows = pd.concat([found.table for found in rational])
    around = (rows["published_low"] + rows["published_high"]) / 2
    assert around.to_numpy() == pytest.approx(rows["value"].to_numpy(), abs=1e-12)
    half = (rows["published_high"] - rows["value"]).to_numpy()
    assert half == pytest.approx(1.96 * rows["published_error"].to_numpy(), abs=1e-12)
    # An interval of 95% around what is 0 lies above it in 2.5%: 2.5 of 100, with an sd of 1.6.
    # Estimates of rational deciders lie below 0, so there are fewer.
    assert (rows["published_low"] > 0).sum() <= 7
    # Percentile intervals do so in 39% of the audit's deciders; .1 is 6 standard errors below.
    assert np.mean(rows["percentile_low"] > 0) > 0.1
    added = np.mean(rows["bootstrap_mean"] - rows["value"])
    assert 0.01 < added < 0.03  # what a row as its own neighbour adds


def test_the_calibrated_test_keeps_its_level() -> None:
    p_value = [
        conditional_independence(decided(i), calibrated=True, replicates=99, bootstraps=0, seed=i)[
            "p_value"
        ]
        for i in range(40)
    ]
    # Standard error .034; three of them.
    assert np.mean(np.array(p_value) <= 0.05) <= 0.05 + 0.103


def test_permuting_rows_instead_of_contexts_would_accuse_rational_deciders() -> None:
    """Negative control of the unit: the same test with every row a context of its own."""
    accused = []
    for i in range(40):
        data = decided(i, repetitions=20, contexts=50, decimals=1)
        data.frame["plain"] = 0.5  # states vary between contexts, and so do the decider's acts
        idle = data.frame.assign(
            action=np.repeat(np.random.default_rng(i).integers(0, 3, 50), 20).astype(float)
        )
        rows = idle.assign(context=np.arange(len(idle)))
        p_value = [
            conditional_independence(
                type(data)(frame, data.counts), replicates=99, bootstraps=0, seed=i
            )["p_value"]
            for frame in (idle, rows)
        ]
        accused.append([p <= 0.05 for p in p_value])
    by_context, by_row = np.mean(accused, axis=0)
    assert by_context <= 0.05 + 0.103  # standard error .034; three of them
    assert by_row > 0.5
