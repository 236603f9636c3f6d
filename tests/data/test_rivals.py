"""Rivals: subjects left out are predicted, weighed, and what cannot be compared is told."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp
from scipy.stats import norm

from knownminds.agents import ForgettingLearner, Perseverator, RandomResponder, simulate
from knownminds.environments import make
from knownminds.inference import ModelData, maximum_likelihood
from knownminds.inference.groups import left_out_subjects
from knownminds.inference.groups.left_out_subjects import predict_left_out
from knownminds.inference.posteriors.model_weights import protected_exceedance, stacking_weights

PLACE = make("instrumental_learning", n_visits=12)


def people(model, n, seed, **held):
    theta = model.parameters.draw(np.random.default_rng(seed), n)
    for name, value in held.items():
        theta[:, model.parameters.index(name)] = value
    return simulate(model, theta, PLACE, seed)


def by_quadrature(trials):
    """Return log p(y_i | others) of a model of one parameter on grids of z, mean and sd."""
    data = ModelData.read(Perseverator, trials, 2)
    (kappa,) = Perseverator.parameters
    z = np.linspace(-8, 8, 601)
    theta = kappa.support.constrain(kappa.mean + kappa.sd * z)
    each = np.stack([data.log_likelihood(np.full((len(data), 1), t))[0] for t in theta])
    mean, sd = np.linspace(-3, 3, 61), np.exp(np.linspace(np.log(0.05), np.log(5), 61))
    marginal = np.empty((len(mean), len(sd), len(data)))
    for b, spread in enumerate(sd):
        law = norm.logpdf(z[None], mean[:, None], spread)
        law -= logsumexp(law, axis=1, keepdims=True)
        marginal[:, b] = logsumexp(law[..., None] + each[None], axis=1)
    scale = kappa.group_sd / kappa.sd
    # spreads are spaced evenly in their logarithm, whose volume is sd
    prior = norm.logpdf(mean)[:, None] + norm.logpdf(sd / scale)[None] + np.log(sd)[None]
    whole = marginal.sum(axis=2)
    found = []
    for i in range(len(data)):
        rest = whole - marginal[..., i] + prior
        found.append(logsumexp(rest + marginal[..., i]) - logsumexp(rest))
    return np.array(found)


@pytest.mark.long
def test_left_out_subjects_are_predicted_as_quadrature_over_the_group_says():
    trials = people(Perseverator, 12, 1)
    truth = by_quadrature(trials)
    found = predict_left_out(ModelData.read(Perseverator, trials, 2), workers=1).left_out
    assert found.unreliable == 0
    # at least 400 effective draws: a weight's relative sd below .6 leaves errors of .03; 4 of them
    assert np.abs(found.elpd - truth).max() < 0.125
    assert abs(found.total - truth.sum()) < 0.125 * 12**0.5


@pytest.mark.long
def test_nobody_is_predicted_better_than_the_best_parameters_would(monkeypatch):
    # Choices at random say next to nothing, and the group's spreads may be nothing: a sum over
    # fixed points promised 24 nats per subject there.
    monkeypatch.setattr(left_out_subjects, "MOST_REFITS", 1)
    trials = people(RandomResponder, 20, 5)
    data = ModelData.read(ForgettingLearner, trials, 2)
    found = predict_left_out(data, workers=1).left_out
    best = maximum_likelihood(ForgettingLearner, data, workers=1).log_likelihood
    assert (found.elpd < best).all()
    # and chance, the truth, loses at most what 4 parameters of a group of 20 can: well below 1 each
    chance = 48 * np.log(0.5)
    assert abs(found.elpd.mean() - chance) < 1.0
    assert found.elpd.mean() < chance + 2 * found.elpd.std() / 20**0.5


def test_weights_are_the_best_mixture_and_frequencies_count_subjects():
    rng = np.random.default_rng(4)
    elpd = rng.normal([0.0, 0.4, -1.0], 3.0, size=(40, 3))

    def loss(x):
        share = np.exp(x - logsumexp(x))
        return -logsumexp(elpd + np.log(share), axis=1).sum()

    best = minimize(loss, np.zeros(3), method="Nelder-Mead", options={"maxiter": 4000}).x
    assert stacking_weights(elpd) == pytest.approx(np.exp(best - logsumexp(best)), abs=2e-3)
    # Evidence that decides: models are counted, and the law of frequencies is Dirichlet
    winner = np.repeat([0, 1], [30, 10])
    sure = np.full((40, 2), -50.0)
    sure[np.arange(40), winner] = 0.0
    found = protected_exceedance(sure)
    assert found.counts == pytest.approx([31, 11], abs=1e-6)
    draws = rng.dirichlet([31, 11], 200_000)
    # a share of 200,000 draws has an error of at most .0011
    assert found.exceedance[0] == pytest.approx((draws[:, 0] > 0.5).mean(), abs=0.005)
    # Evidence that says nothing: all models are alike
    alike = protected_exceedance(np.zeros((10, 3)))
    assert alike.protected == pytest.approx(np.full(3, 1 / 3))
    assert alike.omnibus > 0.5
