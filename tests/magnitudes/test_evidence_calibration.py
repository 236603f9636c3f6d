"""Evidence against minds without the factor."""

import numpy as np
import pytest
from scipy import stats

from knownminds.agents import AGENTS, simulate
from knownminds.environments import make
from knownminds.inference.magnitudes.evidence_calibration import (
    calibrated_evidence,
    p_value_of,
    probability_of,
)


def linear(n, seed):
    rng = np.random.default_rng(seed)
    theta = [rng.uniform(0.6, 1, n), rng.uniform(0, 0.2, n), rng.uniform(0.04, 0.1, n)]
    return simulate(AGENTS["linear_observer"], np.column_stack(theta), make("line_ratio"), seed)


def bayesian(n, seed):
    rng = np.random.default_rng(seed)
    weight, sigma = rng.uniform(0.3, 0.5, n), rng.uniform(0.04, 0.06, n)
    theta = np.column_stack([weight, *np.tile([[0.3], [0.5], [0.7]], n), sigma])
    return simulate(AGENTS["static_bayes_observer"], theta, make("line_ratio"), seed)


def hold_level(found, replicates):
    """Of n minds without the factor no more are below .05 than chance of 1 in 1,000 allows."""
    n = len(found.p_value)
    assert (found.p_value <= 0.05).sum() <= stats.binom.ppf(0.999, n, 0.05)
    assert (found.probability > 0.9).sum() <= stats.binom.ppf(0.999, n, 0.01)
    # Uniform p-values have a mean of .5, whose standard error is .29 / sqrt(n).
    assert abs(found.p_value.mean() - 0.5) < 4 * 0.29 / np.sqrt(n) + 1 / replicates


@pytest.mark.long
def test_linear_minds_do_not_look_bayesian_with_many_seeds():
    for seed in range(5):
        found = calibrated_evidence(linear(60, 100 + seed), replicates=99, seed=seed)
        hold_level(found, 99)


def test_the_probability_is_the_bound_of_sellke_bayarri_and_berger():
    simulated = np.array([[0.1] * 95 + [0.9] * 4, [0.1] * 99, [0.9] * 99, [np.nan] * 99])
    p_value = p_value_of(np.full(4, 0.5), simulated)
    assert p_value[:3].tolist() == [0.05, 0.01, 1.0]
    probability = probability_of(p_value)
    assert probability[:3] == pytest.approx([0.711, 0.889, 0.5], abs=1e-3)  # their table 1
    assert np.isnan(probability[3])
