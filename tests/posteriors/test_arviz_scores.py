"""Scores of chains and smoothed weights: what they are when they cannot be computed."""

import numpy as np
from scipy.special import logsumexp

from knownminds.inference.posteriors.arviz_scores import ess, r_hat, smooth_weights


def test_scores_of_draws_that_are_not_finite_or_too_few_are_nan():
    x = np.random.default_rng(0).normal(size=(2, 50, 7))
    x[1, 3, 2] = np.inf
    for scores in (r_hat(x), ess(x), ess(x, "tail")):
        assert np.isnan(scores).tolist() == [k == 2 for k in range(7)]
    assert np.isnan(r_hat(x[:1])).all()
    assert np.isnan(ess(x[:, :3])).all()


def test_independent_draws_are_worth_their_number_and_chains_apart_are_seen():
    x = np.random.default_rng(1).normal(size=(4, 1000, 50))
    # Of independent draws the standard error of an estimated ESS is about 5% of their number.
    assert abs(ess(x).mean() / 4000 - 1) < 0.05
    assert (r_hat(x) < 1.01).all()
    assert (r_hat(x + np.arange(4)[:, None, None]) > 1.5).all()


def test_pareto_k_is_that_of_the_tail_and_rows_without_a_tail_are_not_smoothed():
    rng = np.random.default_rng(2)
    few = np.full(4000, -np.inf)
    few[:4] = [0.0, -1.0, -2.0, -3.0]  # four weights and nothing else: no tail
    # Weights exp(k E) of exponential E have a Pareto tail of shape k.
    rows = np.stack([0.3 * rng.exponential(size=4000), 1.2 * rng.exponential(size=4000)])
    rows = np.vstack([rows, few, np.zeros(4000)])
    smoothed, k = smooth_weights(rows)
    # The shape's standard error from the 190 largest weights is about (1 + k) / sqrt(190).
    assert abs(k[0] - 0.3) < 3 * 1.3 / np.sqrt(190)
    assert abs(k[1] - 1.2) < 3 * 2.2 / np.sqrt(190)
    assert k[2] == np.inf
    assert k[3] == -np.inf
    assert np.allclose(logsumexp(smoothed, axis=1), 0)
    assert np.allclose(smoothed[2:], rows[2:] - logsumexp(rows[2:], axis=1, keepdims=True))
