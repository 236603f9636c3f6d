"""Observers along straight lines: merged trials, censored answers, the Jacobian, members alike."""

import numpy as np
import pytest
from plain_equations import judgements
from scipy.stats import norm

from knownminds.agents import LinearObserver, NoisyBayesObserver, simulate
from knownminds.environments import MarkerLocation


def test_far_answers_at_an_end_stay_finite_and_right():
    for sigma in (0.4 / 34.9, 0.4 / 35.1, 1e-3, 1e-7):  # both sides of where the series begins
        theta = np.array([[1.0, 0.0, sigma]])
        total, gradient = judgements(LinearObserver, [0.0, 0.0], 0.4).log_likelihood(theta)
        assert total[0] == pytest.approx(2 * norm.logcdf(-0.4 / sigma), rel=1e-9)
        z = 0.4 / sigma
        # The hazard of a Gaussian: above z, and below z + 1 / z - 2 / z**3 + 10 / z**5.
        hazard = -gradient[0, 1] * sigma / 2 - z
        assert 1 / z - 2 / z**3 <= hazard * (1 + 1e-7) + 1e-12 * z
        assert hazard <= 1 / z - 2 / z**3 + 10 / z**5 + 1e-12 * z
        assert np.isfinite(gradient).all()


def test_a_noisy_observer_weights_its_prior_by_its_noise():
    theta = np.array([[0.1, 0.2, 0.3, 0.5, 0.7, 0.03]])
    environment = MarkerLocation(repeats=400)
    frame = simulate(NoisyBayesObserver, theta, environment, 1).frame
    inside = frame[frame["window"] == 1]
    slope, _ = np.polyfit(inside["value"], inside["response"], 1)
    rest = inside["response"] - 0.8 * inside["value"] - 0.2 * 0.5
    n = len(inside)
    # w = .01 / (.01 + .04); the slope's standard error is sigma / (sd of values * sqrt(n)).
    sigma = np.sqrt(0.03**2 + 0.8**2 * 0.1**2)
    assert abs(slope - 0.8) < 4 * sigma / (inside["value"].std() * np.sqrt(n))
    assert abs(rest.std() / sigma - 1) < 4 / np.sqrt(2 * n)
