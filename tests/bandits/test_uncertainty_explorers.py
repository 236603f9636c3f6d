"""What is special to explorers of uncertainty: their beliefs, and what Thompson sampling is."""

import numpy as np
import pytest
from scipy.stats import norm

from knownminds.agents import (
    HorizonBlind,
    ThompsonExplorer,
    UncertaintyExplorer,
    UpperConfidenceExplorer,
)
from knownminds.environments import Horizon

SEEN = {"game": 0, "horizon": 6, "mean_0": 58.0, "mean_1": 47.0, "count_0": 3, "count_1": 1}


def lead(agent, **seen):
    p = agent.action_probabilities({**SEEN, **seen})
    return np.log(p[1] / p[0])


def after(plays):
    """Follow a Kalman filter from play to play; return mean and variance."""
    mean, variance = 50.0, 16.0**2
    for points in plays:
        gain = variance / (variance + 8.0**2)
        mean, variance = mean + gain * (points - mean), (1 - gain) * variance
    return mean, variance


def test_beliefs_are_those_of_a_kalman_filter():
    (mean_0, variance_0), (mean_1, variance_1) = after([50, 60, 64]), after([47])
    value, total = (mean_1 - mean_0) / 10, np.sqrt(variance_0 + variance_1) / 10
    unsure = (np.sqrt(variance_1) - np.sqrt(variance_0)) / 10
    both = UncertaintyExplorer(w_value=0.7, w_directed=1.5, w_random=0.4)
    assert lead(both) == pytest.approx(0.7 * value + 1.5 * unsure + 0.4 * value / total)
    bonus = UpperConfidenceExplorer(w_value=0.7, w_directed=1.5)
    assert lead(bonus) == pytest.approx(0.7 * value + 1.5 * unsure)


def test_drawing_a_value_from_each_belief_is_thompson_exploration():
    agent = ThompsonExplorer(w_random=1.7)
    for mean_0 in (30.0, 45.0, 52.0, 60.0, 75.0):
        (value_0, variance_0), (value_1, variance_1) = after([mean_0] * 3), after([47])
        larger = norm.cdf((value_1 - value_0) / np.sqrt(variance_0 + variance_1))
        # The logistic with 1.7 is nowhere further than .0095 from the normal distribution.
        told = agent.action_probabilities({**SEEN, "mean_0": mean_0})[1]
        assert told == pytest.approx(larger, abs=0.0096)


def test_machines_that_scatter_otherwise_are_refused():
    assert UncertaintyExplorer.plays(Horizon())
    with pytest.raises(ValueError, match=r"knows machines that pay Normal\(mean, 8\)"):
        UncertaintyExplorer.check_plays(Horizon(sd=4.0))
    assert HorizonBlind.plays(Horizon(sd=4.0))
