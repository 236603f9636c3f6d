"""The Kalman observer: its recursion, where it begins anew, ratios, extremes, recovery."""

from math import log

import numpy as np
import pytest
from numba import njit
from scipy.stats import norm

from knownminds.agents import (
    KalmanObserver,
    KalmanObserverAffineLog,
    KalmanObserverShared,
    LinearObserver,
    simulate,
)
from knownminds.agents.magnitudes.kalman_observer import log_of
from knownminds.environments import MarkerLocation, MazeDistance
from knownminds.inference import ModelData, maximum_a_posteriori

WINDOWS = ("mu_short", "mu_medium", "mu_long")


def beliefs(frame, q, p0, mu, r=1.0):
    """Follow one session by the textbook's recursion with measurement variance r."""
    found, place, m, p = [], None, 0.0, 0.0
    for window, value, unit in frame[["window", "value", "unit"]].to_numpy(float):
        if window != place:
            place, m, p = window, mu[int(window)], p0
        p += q
        gain = p / (p + r)
        m += gain * (value / unit - m)
        p = (1.0 - gain) * p
        found.append(m)
    return np.array(found)


@pytest.mark.parametrize("r", [1.0, 0.04, 30.0])
def test_the_likelihood_is_that_of_the_recursion_and_knows_only_ratios(r):
    theta = np.array([[0.3, 2.0, 0.2, 0.6, 0.9, 0.07]])
    frame = simulate(KalmanObserver, theta, MazeDistance(), 4).frame
    m = beliefs(frame, 0.3 * r, 2.0 * r, theta[0, 2:5], r)
    y = frame["response"].to_numpy(float)
    assert ((y > 0) & (y < 60)).all()
    found = ModelData.read(KalmanObserver, simulate(KalmanObserver, theta, MazeDistance(), 4))
    expected = norm.logpdf(y, 18 * m, 18 * 0.07).sum()
    assert found.log_likelihood(theta)[0][0] == pytest.approx(expected, rel=1e-12)


def test_a_window_begins_with_its_own_belief_and_without_the_last_one():
    theta = [[1e-9, 1e-9, 0.11, 0.55, 0.99, 1e-9]]  # a belief that nothing moves
    frame = simulate(KalmanObserver, theta, MarkerLocation(), 1).frame
    mu = np.array([0.11, 0.55, 0.99])[frame["window"].astype(int)]
    assert np.allclose(frame["response"], mu, atol=1e-6)
    shared = simulate(KalmanObserverShared, [[1e-9, 1e-9, 0.4, 1e-9]], MarkerLocation(), 1).frame
    assert np.allclose(shared["response"], 0.4, atol=1e-6)


def test_passes_in_other_modalities_begin_anew():
    theta = [[1e-3, 1e-3, 0.3, 0.5, 0.7, 1e-9]]
    environment = MarkerLocation(modality="all")
    frame = simulate(KalmanObserver, theta, environment, 1).frame
    wide = frame.pivot_table(index=["window", "item"], columns="modality", values="response")
    # The same stimuli in the same order from the same belief: the same answers.
    assert np.allclose(wide[0], wide[1], atol=1e-7)
    assert np.allclose(wide[0], wide[2], atol=1e-7)


def test_infinite_drift_follows_every_stimulus():
    theta = LinearObserver.parameters.draw(np.random.default_rng(1), 20)
    theta[:, 0], theta[:, 1] = 1.0, 0.0  # all that is left without gain and offset
    trials = simulate(LinearObserver, theta, MarkerLocation(), 3)
    linear = ModelData.read(LinearObserver, trials).log_likelihood(theta)[0]
    fast = np.column_stack([np.full(20, 1e12), np.ones(20), *np.full((3, 20), 0.5), theta[:, 2]])
    kalman = ModelData.read(KalmanObserver, trials).log_likelihood(fast)[0]
    assert np.allclose(kalman, linear, rtol=1e-9)
    fast[:, 0] = 1.0
    slower = ModelData.read(KalmanObserver, trials).log_likelihood(fast)[0]
    assert (np.abs(slower - linear) > 1e-3).all()


def test_a_first_trial_without_an_answer_does_not_hide_its_window():
    theta = np.array([[1.0, 1.0, 0.3, 0.5, 0.7, 0.1]])
    trials = simulate(KalmanObserver, theta, MarkerLocation(windows=("long",)), 1)
    frame = trials.frame.copy()
    frame.loc[0, "response"] = None
    frame["outcome"] = "ok"
    frame.loc[0, "outcome"] = "malformed"
    holes = ModelData.read(KalmanObserver, type(trials).from_frame(frame))
    without = ModelData.read(KalmanObserver, type(trials).from_frame(frame[1:]))
    assert np.allclose(holes.log_likelihood(theta)[0], without.log_likelihood(theta)[0])
    assert holes.log_likelihood(theta)[1][0, 4] != 0.0  # of mu_long


def test_extreme_parameters_stay_finite():
    model = KalmanObserverAffineLog
    trials = simulate(
        model, model.parameters.draw(np.random.default_rng(0), 1), MarkerLocation(), 1
    )
    z = np.random.default_rng(0).uniform(-12, 12, (300, len(model.parameters)))
    many = ModelData.read(model, trials).repeat(np.zeros(300, dtype=int))
    for lapse in (None, np.full(300, 1e-5)):
        total, gradient = many.log_likelihood(model.parameters.constrain(z), lapse)
        assert np.isfinite(total).all()
        assert np.isfinite(gradient).all()


def test_the_logarithm_is_that_of_the_library():
    @njit
    def all_of(x):
        return np.array([log_of(v) for v in x])

    x = np.exp(np.random.default_rng(0).uniform(-30, 30, 2000))
    x = np.concatenate([x, [1.0, 0.5, 2.0, 1e-3, np.sqrt(0.5), np.nextafter(1.0, 2.0)]])
    assert np.allclose(all_of(x), [log(v) for v in x], rtol=1e-15, atol=2e-16)


def test_the_drift_is_recovered_and_the_variance_at_the_beginning_is_not():
    n = 300
    theta = KalmanObserver.parameters.draw(np.random.default_rng(1), n)
    trials = simulate(KalmanObserver, theta, MarkerLocation(), 2)
    z = KalmanObserver.parameters.unconstrain(theta)
    fit = maximum_a_posteriori(KalmanObserver, trials, starts=1)
    r = [np.corrcoef(z[:, k], fit.z[:, k])[0, 1] for k in range(z.shape[1])]
    # Fisher's z has the standard error 1 / sqrt(n - 3) = .058.
    assert np.arctanh(r[0]) > np.arctanh(0.8) + 3 * 0.058
    assert np.arctanh(r[1]) < np.arctanh(0.8) - 3 * 0.058
    assert r[5] > 0.95
    # A session in which the order of trials is lost does not tell the drift.
    frame = trials.frame.copy()
    order = np.random.default_rng(0).permutation(len(frame))
    frame = frame.iloc[order].sort_values(["subject", "window"], kind="stable")
    frame["trial"] = np.tile(np.arange(99), n)
    mixed = maximum_a_posteriori(KalmanObserver, type(trials).from_frame(frame), starts=1)
    chosen = [list(fit.subjects).index(s) for s in mixed.subjects]
    lost = np.corrcoef(z[chosen, 0], mixed.z[:, 0])[0, 1]
    assert np.arctanh(r[0]) - np.arctanh(abs(lost)) > 3.5 * np.sqrt(2) * 0.058
