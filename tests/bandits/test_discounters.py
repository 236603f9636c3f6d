"""What is special to discounters: their curves, mirror images, and what a questionnaire tells."""

import numpy as np

from knownminds.agents import HyperbolicDiscounter, simulate
from knownminds.environments import TemporalDiscounting
from knownminds.inference import maximum_a_posteriori


def test_a_questionnaire_does_not_tell_the_parameters():
    n = 300
    theta = HyperbolicDiscounter.parameters.draw(np.random.default_rng(1), n)
    fit = maximum_a_posteriori(
        HyperbolicDiscounter, simulate(HyperbolicDiscounter, theta, TemporalDiscounting(), 2)
    )
    truth = HyperbolicDiscounter.parameters.unconstrain(theta)
    for k in (1, 2):
        assert np.corrcoef(truth[:, k], fit.z[:, k])[0, 1] < 0.7
