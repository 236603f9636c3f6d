"""What is special to weighted Bayes: its density, its limits, and when it is Bayes' rule."""

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.special import logit
from scipy.stats import norm

from knownminds.agents import ConservativeBayes, ProbabilityNoise, WeightedBayes, simulate
from knownminds.environments import ProbabilisticReasoning, Trials
from knownminds.environments.bandits.probabilistic_reasoning import posterior
from knownminds.inference import ModelData, maximum_a_posteriori, maximum_likelihood
from knownminds.validation.recovery.parameter_recovery import shuffled


def data(responses, prior=0.5, likelihood=0.7, ball=1):
    frame = pd.DataFrame(
        {
            "subject": "a",
            "trial": np.arange(len(responses)),
            "prior": prior,
            "likelihood": likelihood,
            "ball": ball,
            "response": responses,
        }
    )
    return ModelData.read(WeightedBayes, Trials.from_frame(frame))


def test_weights_of_one_without_noise_are_bayes_rule():
    environment = ProbabilisticReasoning(n_problems=50)
    frame = simulate(WeightedBayes, [[0.0, 1.0, 1.0, 1e-9]], environment, 2).frame
    shown = (frame[name].to_numpy() for name in ("prior", "likelihood", "ball"))
    assert np.allclose(frame["response"], posterior(*shown), atol=1e-8)


@pytest.mark.parametrize("ball", [0, 1])
def test_the_density_is_that_of_a_logit_normal(ball):
    agent = WeightedBayes(b_0=0.2, b_prior=0.7, b_likelihood=1.3, sigma=0.6)
    shown = {"trial": 0, "prior": 0.3, "likelihood": 0.8, "ball": ball}
    mean = 0.2 + 0.7 * logit(0.3) + 1.3 * logit(0.8) * (1 if ball else -1)
    for y in (0.01, 0.4, 0.97):
        expected = norm.logpdf(logit(y), mean, 0.6) - np.log(y * (1 - y))
        assert agent.log_density(shown, y) == pytest.approx(expected, abs=1e-12)
        both = data([y, y], 0.3, 0.8, ball).log_likelihood(agent.theta[None])[0][0]
        assert both == pytest.approx(2 * expected, abs=1e-11)
    whole, _ = quad(lambda y: np.exp(agent.log_density(shown, y)), 0, 1)
    assert whole == pytest.approx(1.0, abs=1e-6)


def test_a_mind_that_only_lapses_is_a_random_rater():
    theta = np.array([[0.0, 1.0, 1.0, 0.3]])
    total, gradient = data([0.0, 0.3, 1.0]).log_likelihood(theta, np.array([1.0]))
    assert total[0] == 0.0
    assert not gradient[0, :4].any()


def test_certainties_and_extreme_parameters_stay_finite():
    z = np.random.default_rng(0).uniform(-12, 12, (500, 4))
    theta = WeightedBayes.parameters.constrain(z)
    many = data([0.0, 1.0, 0.5, 1e-12], 0.1, 0.9).repeat(np.zeros(500, dtype=int))
    for lapse in (None, np.full(500, 1e-5)):
        total, gradient = many.log_likelihood(theta, lapse)
        assert np.isfinite(total).all()
        assert np.isfinite(gradient).all()
    # What lies beyond the limits counts as the limit.
    one = np.array([[0.0, 1.0, 1.0, 0.4]])
    assert data([0.0, 0.5]).log_likelihood(one)[0] == data([1e-5, 0.5]).log_likelihood(one)[0]


def test_maximum_likelihood_is_least_squares():
    environment = ProbabilisticReasoning(n_problems=40)
    theta = WeightedBayes.parameters.draw(np.random.default_rng(5), 3)
    trials = simulate(WeightedBayes, theta, environment, 6)
    fit = maximum_likelihood(WeightedBayes, trials)
    for k, (_, own) in enumerate(trials.frame.groupby("subject", sort=False)):
        side = np.where(own["ball"] == 1, 1.0, -1.0)
        x = np.column_stack([np.ones(40), logit(own["prior"]), side * logit(own["likelihood"])])
        y = logit(own["response"].to_numpy())
        weights, rest, _, _ = np.linalg.lstsq(x, y, rcond=None)
        expected = [*weights, np.sqrt(rest[0] / 40)]
        assert np.allclose(fit.estimate[k], expected, rtol=1e-4, atol=1e-4)


def test_parameters_are_recovered_from_twenty_problems_and_not_from_shuffled_answers():
    n = 300
    theta = WeightedBayes.parameters.draw(np.random.default_rng(1), n)
    trials = simulate(WeightedBayes, theta, ProbabilisticReasoning(n_problems=20), 2)
    fits = [maximum_a_posteriori(WeightedBayes, t) for t in (trials, shuffled(trials))]
    truth = WeightedBayes.parameters.unconstrain(theta)
    # Fisher's z has the standard error 1 / sqrt(n - 3) = .058.
    for k in range(1, 3):
        recovered, lost = (np.corrcoef(truth[:, k], fit.z[:, k])[0, 1] for fit in fits)
        assert np.arctanh(recovered) > np.arctanh(0.9) + 3.5 * 0.058
        assert abs(np.arctanh(lost)) < np.arctanh(0.6)
    for k in (0, 3):
        assert np.corrcoef(truth[:, k], fits[0].z[:, k])[0, 1] > 0.85


def stated(agent, prior, likelihood, ball):
    """Return the median answer."""
    seen = {"prior": prior, "likelihood": likelihood, "ball": ball}
    p = np.linspace(0.001, 0.999, 9981)
    density = np.exp([agent.log_density(seen, x) for x in p])
    return float(p[np.searchsorted(np.cumsum(density) / density.sum(), 0.5)])


def test_one_weight_pulls_all_log_odds_alike():
    agent = ConservativeBayes(b_0=0.0, b=0.5, sigma=0.05)
    odds = (0.7 / 0.3) * (0.2 / 0.8)  # a blue ball from an urn with 80 % red ones
    assert stated(agent, 0.7, 0.8, 0) == pytest.approx(1 / (1 + odds**-0.5), abs=1e-3)


def test_a_posterior_that_is_misread_lies_between_itself_and_one_half():
    agent = ProbabilityNoise(d=0.1, sigma=0.05)
    asked, other = 0.7 * 0.2, 0.3 * 0.8
    expected = 0.1 + 0.8 * asked / (asked + other)
    assert stated(agent, 0.7, 0.8, 0) == pytest.approx(expected, abs=1e-3)
