import numpy as np
import pytest

from knownminds.agents import MutationSampler, NoisyOr, NoisyOrFive, NoisyOrThree, simulate
from knownminds.environments import Collider
from knownminds.inference import MEASURES

MIND = np.array([0.4, 0.15, 0.8, 0.6, 0.08])  # p, b, m1, m2, sigma
DETERMINACY, CONSISTENCY = MEASURES["determinacy"], MEASURES["reasoning_consistency"]


def lived(theta, model=NoisyOr, seed=0, **settings):
    return simulate(model, np.atleast_2d(theta), Collider(**settings), seed)


def test_the_truth_of_determinacy_is_mean_strength_minus_leak():
    assert DETERMINACY.truth(NoisyOr, MIND[None])[0] == pytest.approx(0.7 - 0.15)
    three = np.array([[0.4, 0.15, 0.75, 0.1]])
    assert DETERMINACY.truth(NoisyOrThree, three)[0] == pytest.approx(0.6)
    five = np.array([[0.4, 0.9, 0.3, 0.2, 0.5, 0.1]])
    assert DETERMINACY.truth(NoisyOrFive, five)[0] == pytest.approx(0.05)


def test_noisy_ors_are_consistent_and_short_walks_are_not():
    theta = NoisyOr.parameters.draw(np.random.default_rng(0), 5)
    assert np.allclose(CONSISTENCY.truth(NoisyOr, theta), 1.0, atol=1e-6)
    steps = np.array([0.5, 4.0, 30.0, 3000.0])
    walks = np.column_stack([np.tile(MIND[:4], (4, 1)), steps, np.full(4, 0.1)])
    found = CONSISTENCY.truth(MutationSampler, walks)
    assert np.all(np.diff(found) > 0)
    assert found[0] < 0.7
    assert found[-1] > 0.999


def test_the_jackknife_is_as_wide_as_the_estimates_scatter():
    scatter = DETERMINACY.values(lived(np.tile(MIND, (50, 1)))).value.std(ddof=1)
    told = [DETERMINACY.estimate(lived(MIND, seed=s)).standard_error for s in range(1, 6)]
    # One error from 12 settings is known within 21%, the mean of five within 10%.
    assert 0.65 < np.mean(told) / scatter < 1.4
