"""Observers along straight lines: merged trials, censored answers, the Jacobian, members alike."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from knownminds.agents import (
    LinearObserver,
    LinearObserverLog,
    NoisyBayesObserver,
    StaticBayesObserver,
    StaticBayesObserverAffineLog,
    StaticBayesObserverGain,
    StaticBayesObserverLog,
    simulate,
)
from knownminds.environments import LineRatio, MarkerLocation, MazeDistance
from knownminds.inference import ModelData, maximum_a_posteriori, maximum_likelihood
from knownminds.validation.recovery.parameter_recovery import shuffled

N = 300


def observation(value=0.4, window=1, unit=1.0, ceiling=1.0):
    return {"window": window, "value": value, "unit": unit, "ceiling": ceiling}


def data(model, responses, values, windows=None, unit=1.0, ceiling=1.0):
    n = len(responses)
    columns = {
        "response": np.asarray(responses, dtype=float),
        "value": np.broadcast_to(np.asarray(values, dtype=float), (n,)),
        "window": np.ones(n) if windows is None else np.asarray(windows, dtype=float),
        "unit": np.full(n, unit),
        "ceiling": np.full(n, ceiling),
    }
    return ModelData.of_columns(model, ["a"], np.zeros(n, dtype=np.int64), [], columns, 0)


def test_answers_inside_have_the_density_of_a_gaussian_per_unit_of_the_task():
    theta = np.array([[0.7, 0.1, 0.05]])
    rng = np.random.default_rng(0)
    x = rng.uniform(2.0, 16.0, 40)
    y = np.clip(18 * (0.7 * x / 18 + 0.1) + rng.normal(0, 1.0, 40), 0.1, 59.0)
    found = data(LinearObserver, y, x, unit=18.0, ceiling=60.0).log_likelihood(theta)[0]
    assert found[0] == pytest.approx(norm.logpdf(y, 0.7 * x + 1.8, 0.05 * 18).sum(), rel=1e-12)


def test_the_log_scale_counts_its_jacobian():
    agent = LinearObserverLog(w=0.8, b=-0.2, sigma=0.15)
    shown = observation(9.0, unit=18.0, ceiling=60.0)
    at_the_end = sum(np.exp(agent.log_density(shown, end)) for end in (0.0, 60.0))
    inside, _ = quad(lambda y: np.exp(agent.log_density(shown, y)), 0.0, 60.0, limit=200)
    assert inside + at_the_end == pytest.approx(1.0, abs=1e-7)
    one = data(LinearObserverLog, [7.0, 11.0], [9.0, 9.0], unit=18.0, ceiling=60.0)
    expected = agent.log_density(shown, 7.0) + agent.log_density(shown, 11.0)
    assert one.log_likelihood(agent.theta[None])[0][0] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("response", "beyond"), [(0.0, -1), (1.0, 1)])
def test_an_answer_at_an_end_has_the_probability_of_all_beyond_it(response, beyond):
    theta = np.array([[0.9, 0.05, 0.3]])
    mean = 0.9 * 0.4 + 0.05
    expected = norm.logcdf(beyond * (mean - response) / 0.3)
    found = data(LinearObserver, [response, 0.5], 0.4).log_likelihood(theta)[0][0]
    assert found - norm.logpdf(0.5, mean, 0.3) == pytest.approx(expected, rel=1e-12)


def test_far_answers_at_an_end_stay_finite_and_right():
    for sigma in (0.4 / 34.9, 0.4 / 35.1, 1e-3, 1e-7):  # both sides of where the series begins
        theta = np.array([[1.0, 0.0, sigma]])
        total, gradient = data(LinearObserver, [0.0, 0.0], 0.4).log_likelihood(theta)
        assert total[0] == pytest.approx(2 * norm.logcdf(-0.4 / sigma), rel=1e-9)
        z = 0.4 / sigma
        # The hazard of a Gaussian: above z, and below z + 1 / z - 2 / z**3 + 10 / z**5.
        hazard = -gradient[0, 1] * sigma / 2 - z
        assert 1 / z - 2 / z**3 <= hazard * (1 + 1e-7) + 1e-12 * z
        assert hazard <= 1 / z - 2 / z**3 + 10 / z**5 + 1e-12 * z
        assert np.isfinite(gradient).all()


@pytest.mark.parametrize("model", [StaticBayesObserver, StaticBayesObserverAffineLog])
def test_merged_trials_have_the_likelihood_of_single_ones(model):
    theta = model.parameters.draw(np.random.default_rng(1), 40)
    trials = simulate(model, theta, MarkerLocation(), 2)
    own = ModelData.read(model, trials)
    merged = own.log_likelihood(theta)
    single = own.log_likelihood(theta, np.zeros(40))  # with a lapse rate nothing is merged
    assert np.allclose(merged[0], single[0], rtol=1e-10)
    assert np.allclose(merged[1], single[1][:, :-1], rtol=1e-7, atol=1e-6)
    at_ends = ((trials.frame["response"] == 0) | (trials.frame["response"] == 1)).sum()
    assert 0 < at_ends < 0.3 * len(trials.frame)
    places = sum(len(part) for part in own.prepared()[1][:1])
    assert places <= 3 * 40 + at_ends


def test_a_window_that_there_is_not_is_told():
    with pytest.raises(ValueError, match=r"Windows are 0 .*got 3\. Recode"):
        data(LinearObserver, [0.2, 0.4], 0.3, windows=[0, 3]).log_likelihood(np.ones((1, 3)))


def test_extreme_parameters_stay_finite():
    z = np.random.default_rng(0).uniform(-12, 12, (400, 7))
    theta = StaticBayesObserverAffineLog.parameters.constrain(z)
    one = data(StaticBayesObserverAffineLog, [0.0, 0.3, 1.0, 1e-9], [0.1, 0.4, 0.8, 0.0])
    for lapse in (None, np.full(400, 1e-5)):
        total, gradient = one.repeat(np.zeros(400, dtype=int)).log_likelihood(theta, lapse)
        assert np.isfinite(total).all()
        assert np.isfinite(gradient).all()


def test_a_perfect_observer_answers_the_truth_in_every_task():
    perfect = {"w_prior": 1e-12, "mu_short": 0.3, "mu_medium": 0.5, "mu_long": 0.7, "sigma": 1e-12}
    for environment in (MarkerLocation(), LineRatio(), MazeDistance()):
        for model in (StaticBayesObserver, StaticBayesObserverLog):
            frame = simulate(model, [list(perfect.values())], environment, 1).frame
            assert np.allclose(frame["response"], frame["value"], atol=1e-9)


def test_answers_are_drawn_towards_the_prior_of_their_window():
    theta = [[0.5, 0.2, 0.5, 0.9, 1e-9]]
    frame = simulate(StaticBayesObserver, theta, MarkerLocation(), 1).frame
    mu = np.array([0.2, 0.5, 0.9])[frame["window"].astype(int)]
    assert np.allclose(frame["response"], 0.5 * frame["value"] + 0.5 * mu, atol=1e-7)


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


def test_maximum_likelihood_is_least_squares():
    theta = np.column_stack([np.full(3, 0.6), np.full(3, 0.2), [0.01, 0.02, 0.03]])
    trials = simulate(LinearObserver, theta, MarkerLocation(), 6)
    fit = maximum_likelihood(LinearObserver, trials)
    for k, (_, own) in enumerate(trials.frame.groupby("subject", sort=False)):
        x = np.column_stack([own["value"], np.ones(len(own))])
        weights, rest, _, _ = np.linalg.lstsq(x, own["response"].to_numpy(float), rcond=None)
        expected = [*weights, np.sqrt(rest[0] / len(own))]
        assert np.allclose(fit.estimate[k], expected, rtol=1e-5, atol=1e-6)


def test_weights_are_recovered_from_a_session_and_not_from_shuffled_answers():
    theta = StaticBayesObserver.parameters.draw(np.random.default_rng(1), N)
    trials = simulate(StaticBayesObserver, theta, MarkerLocation(), 2)
    fits = [maximum_a_posteriori(StaticBayesObserver, t) for t in (trials, shuffled(trials))]
    recovered, lost = (np.corrcoef(theta[:, 0], fit.estimate[:, 0])[0, 1] for fit in fits)
    # Fisher's z has the standard error 1 / sqrt(n - 3) = .058.
    assert np.arctanh(recovered) > np.arctanh(0.85) + 3.5 * 0.058
    assert np.arctanh(lost) < np.arctanh(0.6)


def test_a_gain_multiplies_the_belief():
    own = dict(w_prior=0.3, mu_short=0.3, mu_medium=0.5, mu_long=0.7, sigma=0.1)
    plain, scaled = StaticBayesObserver(**own), StaticBayesObserverGain(**own, gain=1.5)
    shown = observation(0.42)
    assert scaled.expected(shown)[0] == pytest.approx(1.5 * plain.expected(shown)[0], rel=1e-14)
