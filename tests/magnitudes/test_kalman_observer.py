"""The Kalman observer: its recursion, where it begins anew, ratios, extremes, recovery."""

import numpy as np
import pytest

from knownminds.agents import KalmanObserver, simulate
from knownminds.environments import MarkerLocation
from knownminds.inference import maximum_a_posteriori


@pytest.mark.long
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
