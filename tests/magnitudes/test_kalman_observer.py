"""The Kalman observer: its recursion, where it begins anew, ratios, extremes, recovery."""

import numpy as np

from knownminds.agents import (
    KalmanObserver,
    simulate,
)
from knownminds.environments import MarkerLocation
from knownminds.inference import ModelData, maximum_a_posteriori


def test_passes_in_other_modalities_begin_anew():
    theta = [[1e-3, 1e-3, 0.3, 0.5, 0.7, 1e-9]]
    environment = MarkerLocation(modality="all")
    frame = simulate(KalmanObserver, theta, environment, 1).frame
    wide = frame.pivot_table(index=["window", "item"], columns="modality", values="response")
    # The same stimuli in the same order from the same belief: the same answers.
    assert np.allclose(wide[0], wide[1], atol=1e-7)
    assert np.allclose(wide[0], wide[2], atol=1e-7)


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
