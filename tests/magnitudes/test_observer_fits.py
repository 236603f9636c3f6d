"""All observers at once: maxima of the Kalman observers, AIC across scales."""

import numpy as np
import pytest

from knownminds.agents import AGENTS, simulate
from knownminds.environments import MarkerLocation
from knownminds.inference.fits.model_data import ModelData
from knownminds.inference.fits.point import maximum_likelihood
from knownminds.inference.magnitudes.observer_fits import fit_observers


def test_kalman_observers_are_searched_from_slow_and_fast_filters():
    """Searches from the prior alone end below for some who follow fast or not at all."""
    model = AGENTS["kalman_observer"]
    theta = model.parameters.draw(np.random.default_rng(1), 60)
    trials = simulate(model, theta, MarkerLocation(), 1)
    found = fit_observers(trials, ["kalman_observer"])["kalman_observer"].log_likelihood
    other = maximum_likelihood(model, trials, starts=20).log_likelihood
    # Those that move without end are flat at the boundary: some hundredths are left there.
    assert (found > other - 0.2).all()
    assert (found >= ModelData.read(model, trials).log_likelihood(theta)[0] - 1e-6).all()


@pytest.mark.long
def test_the_observer_that_answered_is_found_and_the_scale_with_it():
    # A power law with a small relative error is no straight line, and the other way round.
    bent = simulate(AGENTS["linear_observer_log"], [[1.6, 0.3, 0.05]] * 8, MarkerLocation(), 1)
    straight = simulate(AGENTS["linear_observer"], [[0.5, 0.3, 0.03]] * 8, MarkerLocation(), 2)
    for trials, scale, other in ((bent, "_log", ""), (straight, "", "_log")):
        fits = fit_observers(trials, ["linear_observer", "linear_observer_log"])
        assert (fits["linear_observer" + scale].aic < fits["linear_observer" + other].aic - 5).all()
