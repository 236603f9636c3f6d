"""Evidence against agents without the factor, and signed shifts against ones that never adapt."""

import numpy as np
import pytest
from magnitude_sets import answers_of
from scipy import stats

from knownminds.agents import AGENTS, simulate
from knownminds.environments import CONDITIONS, make
from knownminds.inference.magnitudes.consistency_score import consistency_score
from knownminds.inference.magnitudes.evidence_calibration import (
    calibrated_evidence,
    p_value_of,
    probability_of,
)
from knownminds.inference.magnitudes.magnitude_answers import MULTIMODAL, MagnitudeAnswers


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
    """Of n agents without the factor no more are below .05 than chance of 1 in 1,000 allows."""
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


GROWN = {name: 0.45 for name in CONDITIONS} | {"base": 0.15}


def shifts(prior, seed=0, replicates=400):
    frame = answers_of("a", tasks=MULTIMODAL, prior=prior, seed=seed)
    answers = MagnitudeAnswers.read(frame, by="model", rounds=0)
    return consistency_score(answers, "a", replicates=replicates, seed=seed)


@pytest.mark.long
def test_intervals_hold_the_true_shift_and_minds_that_never_adapt_show_none():
    steady = dict.fromkeys(CONDITIONS, 0.3)
    p = [shifts(steady, seed, 150).effects["p_value"].iloc[0] for seed in range(8)]
    # Of 8 at a level of .05, three or more are a chance of .006.
    assert sum(value <= 0.05 for value in p) <= 2
    there = [shifts(GROWN, seed, 150).effects.iloc[0] for seed in range(10)]
    # Of 10 intervals of 95%, six or fewer hold it with a chance of .001.
    assert sum(row["low"] < 0.3 < row["high"] for row in there) >= 7
