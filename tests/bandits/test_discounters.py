"""What is special to discounters: their curves, mirror images, and what a questionnaire tells."""

import numpy as np

from knownminds.agents import (
    ExponentialDiscounter,
    HyperbolicDiscounter,
    QuasiHyperbolicDiscounter,
    simulate,
)
from knownminds.environments import TemporalDiscounting
from knownminds.environments.bandits import temporal_discounting as theirs
from knownminds.inference import ModelData, maximum_a_posteriori


def test_quasi_hyperbolic_discounting_without_a_present_bias_is_exponential():
    theta = ExponentialDiscounter.parameters.draw(np.random.default_rng(0), 8)
    wide = np.column_stack([np.ones(8), np.exp(-theta[:, 0]), theta[:, 1:]])
    for design in theirs.PLANS:
        environment = TemporalDiscounting(design)
        one = simulate(ExponentialDiscounter, theta, environment, 1)
        two = simulate(QuasiHyperbolicDiscounter, wide, environment, 1)
        assert one.frame.equals(two.frame)
        left = ModelData.read(ExponentialDiscounter, one).log_likelihood(theta)
        right = ModelData.read(QuasiHyperbolicDiscounter, two).log_likelihood(wide)
        assert np.allclose(left[0], right[0])
        # d / d delta = -d / dk / delta
        assert np.allclose(left[1][:, 0], -right[1][:, 1] * wide[:, 1])
        assert np.allclose(left[1][:, 1:], right[1][:, 2:])


def test_a_patient_mind_waits_for_gains_and_pays_at_once():
    theta = np.array([[1e-6, 1e-3, 1.0], [5.0, 1e-3, 1.0]])
    frame = simulate(HyperbolicDiscounter, theta, TemporalDiscounting(), 0).frame
    for subject, waits in (("0", 1), ("1", 0)):
        mine = frame[frame["subject"] == subject]
        baselines = mine[mine["item"] < 3]
        gains = baselines["later_amount"] > 0
        assert (baselines.loc[gains, "action"] == waits).all()
        assert (baselines.loc[~gains, "action"] == 1 - waits).all()


def test_a_questionnaire_does_not_tell_the_parameters():
    n = 300
    theta = HyperbolicDiscounter.parameters.draw(np.random.default_rng(1), n)
    fit = maximum_a_posteriori(
        HyperbolicDiscounter, simulate(HyperbolicDiscounter, theta, TemporalDiscounting(), 2)
    )
    truth = HyperbolicDiscounter.parameters.unconstrain(theta)
    for k in (1, 2):
        assert np.corrcoef(truth[:, k], fit.z[:, k])[0, 1] < 0.7
