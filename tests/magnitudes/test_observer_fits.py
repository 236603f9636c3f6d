"""All observers at once: the maxima of `maximum_likelihood`, AIC across scales, what is flat."""

import numpy as np
import pytest

from knownminds.agents import AGENTS, simulate
from knownminds.environments import MarkerLocation, MazeDistance, Trials
from knownminds.inference.fits.model_data import ModelData
from knownminds.inference.fits.point import maximum_likelihood
from knownminds.inference.magnitudes.observer_fits import OBSERVERS, fit_observers

N = 24


def sessions(name, environment=None, seed=1, n=N):
    model = AGENTS[name]
    theta = model.parameters.draw(np.random.default_rng(seed), n)
    return simulate(model, theta, environment or MarkerLocation(), seed)


def together(*parts):
    """Number the subjects of several simulations through."""
    frames = [p.to_frame().assign(subject=lambda f, k=k: f"{k}-" + f["subject"].astype(str))
              for k, p in enumerate(parts)]  # fmt: skip
    return Trials.concatenate([Trials.from_frame(frame) for frame in frames])


@pytest.fixture(scope="module")
def mixed():
    trials = together(
        sessions("linear_observer"),
        sessions("static_bayes_observer", MazeDistance(), seed=2),
        sessions("kalman_observer_gain", seed=3),
    )
    return trials, fit_observers(trials)


@pytest.mark.long
@pytest.mark.parametrize("name", OBSERVERS)
def test_fits_are_those_of_maximum_likelihood(mixed, name):
    trials, fits = mixed
    fit, slow = fits[name], maximum_likelihood(AGENTS[name], trials, starts=3)
    assert fit.subjects == slow.subjects
    apart = fit.log_likelihood - slow.log_likelihood
    # What is reported is the likelihood at the estimate.
    own = ModelData.read(AGENTS[name], trials).log_likelihood(fit.estimate)[0]
    assert np.allclose(own, fit.log_likelihood, rtol=1e-9, atol=1e-7)
    # Interior maxima are the same; along bounds searches end where nothing more is gained.
    sound = np.array([a == b == "ok" for a, b in zip(fit.status, slow.status, strict=True)])
    if "gain" not in name and "affine" not in name and "kalman" not in name:
        assert sound.sum() > N
        assert np.abs(apart[sound]).max() < 1e-6
        off = (fit.z - slow.z)[sound] / fit.standard_error[sound]
        assert np.abs(off).max() < 1e-2
        assert np.allclose(fit.covariance[sound], slow.covariance[sound], rtol=1e-3, atol=1e-5)
    assert (apart > -0.2).mean() > 0.95
    assert np.quantile(apart, 0.25) > -1e-2


@pytest.mark.long
def test_the_observer_that_answered_is_found_and_the_scale_with_it():
    # A power law with a small relative error is no straight line, and the other way round.
    bent = simulate(AGENTS["linear_observer_log"], [[1.6, 0.3, 0.05]] * 8, MarkerLocation(), 1)
    straight = simulate(AGENTS["linear_observer"], [[0.5, 0.3, 0.03]] * 8, MarkerLocation(), 2)
    for trials, scale, other in ((bent, "_log", ""), (straight, "", "_log")):
        fits = fit_observers(trials, ["linear_observer", "linear_observer_log"])
        assert (fits["linear_observer" + scale].aic < fits["linear_observer" + other].aic - 5).all()
        assert set(fits.best) == {"linear_observer" + scale}
