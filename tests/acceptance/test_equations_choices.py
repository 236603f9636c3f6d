"""Deciders against their equations, written out anew: probabilities, densities, likelihoods."""

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.special import logit
from scipy.stats import norm

from knownminds.agents import (
    BalloonPumper,
    ConservativeBayes,
    ConstantSensitivityDiscounter,
    ExponentialDiscounter,
    FixedCostDiscounter,
    GeneralisedHyperbolicDiscounter,
    HyperbolicDiscounter,
    MeanVariancePumper,
    ProbabilityNoise,
    QuasiHyperbolicDiscounter,
    RachlinDiscounter,
    WeightedBayes,
    simulate,
)
from knownminds.environments import ProbabilisticReasoning, Trials
from knownminds.inference import ModelData, maximum_likelihood

# Balloons


def rows(played, subject="a"):
    """Lay out balloons as (type, pumps that hold, how it ends: "stop", "burst" or "gone")."""
    out = []
    for balloon, (kind, safe, end) in enumerate(played):
        at = {"subject": subject, "balloon": balloon, "type": kind}
        out += [{**at, "pump": k, "action": 1, "reward": 1.0} for k in range(1, safe + 1)]
        ends = {"stop": (0, 0.0), "burst": (1, float(-safe)), "gone": (None, None)}
        action, reward = ends[end]
        out.append({**at, "pump": safe + 1, "action": action, "reward": reward})
    table = pd.DataFrame(out)
    table["action"] = table["action"].astype("Int64")
    table["outcome"] = np.where(table["action"].isna(), "malformed", "ok")
    return table.assign(trial=np.arange(len(table)))


def data_of(played):
    return ModelData.read(BalloonPumper, Trials.from_frame(rows(played)))


def closed_form(theta, played):
    """Follow the definition, with the beliefs of each type kept apart."""
    phi, eta, gamma, tau = theta
    pumps, bursts, total = {}, {}, 0.0
    for kind, safe, end in played:
        seen, burst = pumps.get(kind, 0), bursts.get(kind, 0)
        p = (phi + eta * (seen - burst)) / (1 + eta * seen)
        target = -gamma / np.log(p)
        made = safe + (end == "burst")
        x = tau * (target - np.arange(1, made + 1))
        total -= np.log1p(np.exp(-x)).sum()
        if end == "stop":
            total -= np.log1p(np.exp(tau * (target - safe - 1)))
        pumps[kind] = seen + made
        bursts[kind] = burst + (end == "burst")
    return total


PLAYED = [
    (0, 4, "stop"), (1, 2, "burst"), (0, 0, "burst"),
    (1, 3, "gone"), (1, 1, "stop"), (0, 6, "stop"),
]  # fmt: skip


@pytest.mark.parametrize(
    "theta", [(0.95, 0.1, 1.2, 0.5), (0.5, 2.0, 3.0, 0.2), (0.99, 0.001, 0.1, 2)]
)
def test_the_likelihood_is_that_of_the_definition(theta):
    total, _ = data_of(PLAYED).log_likelihood(np.array([theta]))
    assert total[0] == pytest.approx(closed_form(theta, PLAYED), rel=1e-12)


def test_pumps_before_a_burst_are_observed_too():
    theta = np.array([[0.9, 0.5, 1.0, 0.5]])
    gains = []
    for safe in (1, 10):
        alone = data_of([(0, safe, "burst")]).log_likelihood(theta)[0][0]
        both = data_of([(0, safe, "burst"), (0, 3, "stop")]).log_likelihood(theta)[0][0]
        gains.append(both - alone)
    # Ten pumps that held before it make the burst weigh less: stopping at 3 is less likely.
    assert gains[1] < gains[0] - 0.5


def test_a_pump_is_weighed_by_its_mean_and_variance():
    values = {"phi": 0.1, "xi": 0.05, "rho": 0.02, "lambda_": 1.5, "tau": 0.8}
    agent = MeanVariancePumper(**values)

    def lead(pump):
        stop, go = agent.action_probabilities({"type": 0, "pump": pump})
        return np.log(go / stop)

    def worth(p, pump):
        """Mean and variance of a gamble: 1 point, or a loss of l."""
        amounts, chances = np.array([1.0, -1.5 * (pump - 1)]), np.array([1 - p, p])
        mean = chances @ amounts
        return 0.8 * (mean + 0.02 * (chances @ (amounts - mean) ** 2))

    assert lead(1) == pytest.approx(worth(0.1, 1))
    # Two pumps that hold and a burst: 3 pumps, a third of which burst; the same balloon goes by
    # the belief with which it began.
    for pump in (1, 2):
        agent.learn({"type": 0, "pump": pump}, 1, 1.0)
        assert lead(pump + 1) == pytest.approx(worth(0.1, pump + 1))
    agent.learn({"type": 0, "pump": 3}, 1, -2.0)
    p = 0.1 + (1 - np.exp(-0.05 * 3)) * (1 / 3 - 0.1)
    assert lead(1) == pytest.approx(worth(p, 1))


# Discounting


TAU = 0.2


def log_odds(agent, sooner, soon, later, late):
    sooner_p, later_p = agent.action_probabilities(
        {"sooner_amount": sooner, "sooner_delay": soon, "later_amount": later, "later_delay": late}
    )
    return np.log(later_p / sooner_p)


@pytest.mark.parametrize(
    ("model", "curve"),
    [
        (GeneralisedHyperbolicDiscounter, lambda d: (1 + 0.05 * d) ** -1.4),
        (RachlinDiscounter, lambda d: 1 / (1 + 0.05 * d**1.4)),
        (ConstantSensitivityDiscounter, lambda d: np.exp(-((0.05 * d) ** 1.4))),
    ],
)
def test_the_curves_are_those_of_the_sources(model, curve):
    agent = model(k=0.05, s=1.4, tau=TAU, eta=2.0)
    for soon, late in ((0, 1), (0, 24), (6, 30)):
        expected = (curve(late) - 0.4 * curve(soon)) / TAU
        assert log_odds(agent, 200, soon, 500, late) == pytest.approx(expected, abs=1e-9)
        assert log_odds(agent, -200, soon, -500, late) == pytest.approx(-2 * expected, abs=1e-9)


def test_a_cost_of_waiting_stays_the_same_whatever_the_sum_and_however_long():
    free, costly = (FixedCostDiscounter(k=0.02, b=b, tau=TAU, eta=1.0) for b in (0.0, 30.0))

    def cost(*seen):
        """Return what waiting costs, in the unit of the sums."""
        return (log_odds(free, *seen) - log_odds(costly, *seen)) * TAU * max(seen[0], seen[2])

    assert cost(200, 0, 500, 1) == pytest.approx(30.0)
    assert cost(200, 0, 500, 48) == pytest.approx(30.0)
    assert cost(2000, 0, 5000, 1) == pytest.approx(30.0)
    assert cost(200, 6, 500, 12) == pytest.approx(0.0)  # either way one waits


# Discounting of the textbook


MODELS = (ExponentialDiscounter, HyperbolicDiscounter, QuasiHyperbolicDiscounter)


every = pytest.mark.parametrize("model", MODELS)


def choice(sooner, soon, later, late):
    return {
        "sooner_amount": sooner, "sooner_delay": soon, "later_amount": later, "later_delay": late,
    }  # fmt: skip


def discounter_log_odds(agent, *seen):
    sooner, later = agent.action_probabilities(choice(*seen))
    return np.log(later / sooner)


def test_the_curves_are_those_of_the_textbook():
    tau = 0.2
    exponential = ExponentialDiscounter(k=0.03, tau=tau, eta=1.0)
    hyperbolic = HyperbolicDiscounter(k=0.03, tau=tau, eta=1.0)
    quasi = QuasiHyperbolicDiscounter(beta=0.8, delta=0.97, tau=tau, eta=1.0)
    for agent, curve in (
        (exponential, lambda d: np.exp(-0.03 * d)),
        (hyperbolic, lambda d: 1 / (1 + 0.03 * d)),
        (quasi, lambda d: 0.8 * 0.97**d if d else 1.0),
    ):
        for soon, late in ((0, 1), (0, 24), (6, 30)):
            expected = (curve(late) - 0.4 * curve(soon)) / tau
            assert discounter_log_odds(agent, 200, soon, 500, late) == pytest.approx(
                expected, abs=1e-9
            )


@every
def test_losses_are_mirrored_with_their_weight(model):
    theta = model.parameters.draw(np.random.default_rng(1), 5)
    for row in theta:
        agent = model.from_theta(row)
        gain, loss = (discounter_log_odds(agent, s * 450, 0, s * 500, 6) for s in (1, -1))
        assert loss == pytest.approx(-row[-1] * gain, rel=1e-6)


def test_only_a_curve_that_flattens_reverses_its_preference_when_all_is_put_off():
    near, far = (100, 0, 130, 6), (100, 60, 130, 66)
    hyperbolic = HyperbolicDiscounter(k=0.1, tau=0.05, eta=1.0)
    assert discounter_log_odds(hyperbolic, *near) < 0 < discounter_log_odds(hyperbolic, *far)
    quasi = QuasiHyperbolicDiscounter(beta=0.7, delta=0.99, tau=0.05, eta=1.0)
    assert discounter_log_odds(quasi, *near) < 0 < discounter_log_odds(quasi, *far)
    exponential = ExponentialDiscounter(k=0.1, tau=0.05, eta=1.0)
    assert discounter_log_odds(exponential, *near) < 0
    assert discounter_log_odds(exponential, *far) < 0


# Urns


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
    named, other = 0.7 * 0.2, 0.3 * 0.8
    expected = 0.1 + 0.8 * named / (named + other)
    assert stated(agent, 0.7, 0.8, 0) == pytest.approx(expected, abs=1e-3)
