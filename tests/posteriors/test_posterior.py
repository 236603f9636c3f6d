"""Single-agent posteriors: calibrated, equal to NUTS, and honest about their weights."""

import importlib

import numpy as np
import pytest

from knownminds.agents import (
    RandomResponder,
    RescorlaWagnerDual,
    StaticBayesObserverAffine,
    simulate,
)
from knownminds.environments import InstrumentalLearning, MarkerLocation
from knownminds.inference import ModelData, Unknowns, posterior
from knownminds.inference.posteriors.pareto_smoothing import smooth_weights
from knownminds.inference.posteriors.single_posterior_nuts import sample_separately


def learners(n, visits=24, seed=1):
    theta = RescorlaWagnerDual.parameters.draw(np.random.default_rng(seed), n)
    return theta, simulate(RescorlaWagnerDual, theta, InstrumentalLearning(visits), seed)


def test_intervals_hold_the_truth_as_often_as_they_say():
    n = 600
    theta, trials = learners(n, seed=3)
    result = posterior(RescorlaWagnerDual, trials, nuts=False)
    for mass in (0.5, 0.8, 0.9, 0.95):
        low, high = result.interval(mass)
        held = ((theta >= low) & (theta <= high)).mean(axis=0)
        # Binomial standard error; 16 comparisons at 3.5 errors fail once in 130 seeds.
        assert np.all(np.abs(held - mass) < 3.5 * np.sqrt(mass * (1 - mass) / n)), (mass, held)


def test_posterior_means_beat_modes():
    theta, trials = learners(400, seed=5)
    result = posterior(RescorlaWagnerDual, trials, nuts=False)
    error = [((e - theta) ** 2).mean(axis=0) for e in (result.mean, result.fit.estimate)]
    assert (error[0][:2] < error[1][:2]).all()


def test_importance_draws_and_nuts_agree():
    _, trials = learners(6, seed=8)
    data = ModelData.read(RescorlaWagnerDual, trials)
    draws = 2000
    z = sample_separately(data, Unknowns.of(RescorlaWagnerDual), draws, seed=1)
    ours = posterior(RescorlaWagnerDual, data, draws=draws, nuts=False)
    assert z.shape == ours.z_draws.shape
    # Means of about 1,000 effective draws each: standard error sd * sqrt(2 / 1000), times 4.5 for
    # the largest of 24; spreads have half the variance of means.
    sd = z.std(axis=0)
    assert np.all(np.abs(z.mean(axis=0) - ours.z_draws.mean(axis=0)) < 4.5 * sd * np.sqrt(2e-3))
    assert np.all(np.abs(ours.z_draws.std(axis=0) / sd - 1) < 4.5 * np.sqrt(1e-3) * 1.5)


def test_weights_without_overlap_are_found_out():
    rng = np.random.default_rng(0)
    x = rng.normal(size=4000)
    good = -0.5 * (x / 0.9) ** 2 + 0.5 * x**2
    bad = -0.5 * ((x - 6) / 3) ** 2 + 0.5 * x**2
    _, shape = smooth_weights(np.stack([good, bad]))
    assert shape[0] < 0.7 < shape[1]


def test_smoothing_keeps_the_order_of_the_weights():
    raw = np.random.default_rng(1).normal(size=(1, 500))
    smoothed, _ = smooth_weights(raw)
    assert np.array_equal(raw.argsort(), smoothed.argsort())


def test_a_subject_has_the_same_posterior_in_any_company():
    _, trials = learners(70, seed=2)
    data = ModelData.read(RescorlaWagnerDual, trials)
    together = posterior(RescorlaWagnerDual, data, nuts=False)
    apart = posterior(RescorlaWagnerDual, data.repeat([66]), nuts=False)
    assert np.allclose(apart.z_draws[:, 0], together.z_draws[:, 66], atol=1e-4)


def test_weights_of_the_target_itself_are_uniform():
    log_weights, _ = smooth_weights(np.zeros((1, 1000)))
    assert np.exp(log_weights).sum() == pytest.approx(1.0)


def test_nothing_to_estimate_is_no_error():
    _, trials = learners(2)
    result = posterior(RandomResponder, trials, draws=10)
    assert result.z_draws.shape == (10, 2, 0)


def test_draws_that_rest_on_few_points_are_not_trusted(monkeypatch):
    """An observer's prior weight and gain lie on a curved ridge, of which k alone knows nothing."""
    model = StaticBayesObserverAffine
    theta = model.parameters.draw(np.random.default_rng(1), 20)
    data = ModelData.read(model, simulate(model, theta, MarkerLocation(), 1))

    def worth():
        """Of the poorest posterior that is trusted, from how often its points were drawn."""
        result = posterior(model, data, nuts=False)
        trusted = np.flatnonzero(result.pareto_k <= 0.7)
        times = [np.unique(result.z_draws[:, i, 0], return_counts=True)[1] for i in trusted]
        return min(1 / ((n / n.sum()) ** 2).sum() for n in times), len(trusted)

    module = importlib.import_module("knownminds.inference.posteriors.posterior")
    least, trusted = worth()
    monkeypatch.setattr(module, "LEAST_EFFECTIVE", 0.0)
    without, more = worth()
    assert trusted < more
    # Drawing 1,000 from weights that are worth 400 leaves 1 / (1 / 400 + 1 / 1,000) or more.
    assert without < 200 < least
