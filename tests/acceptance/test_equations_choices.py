"""Deciders against their equations, written out anew: probabilities, densities, likelihoods."""

import math

import numpy as np
import pandas as pd
import pytest
from plain_equations import gambles_of
from scipy.integrate import quad
from scipy.special import expit, logit, logsumexp
from scipy.stats import norm

from knownminds.agents import (
    AGENTS,
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
    play,
    simulate,
)
from knownminds.environments import (
    AdjustingAmount,
    Ambiguity,
    ProbabilisticReasoning,
    PublicGoods,
    RiskyChoice,
    Trials,
    Ultimatum,
)
from knownminds.inference import (
    MEASURES,
    ModelData,
    area_under_curve,
    indifference_points,
    maximum_likelihood,
)


def session(model, theta, environment):
    agent = model.from_theta(np.asarray(theta, dtype=float), actions=environment.n_actions)
    return play(agent, environment, 5)


def log_likelihood(model, theta, environment, trials):
    """What an agent gives the answers of a session, one after the other, without a kernel."""
    agent = model.from_theta(np.asarray(theta, dtype=float), actions=environment.n_actions)
    total = 0.0
    for row in trials.frame.to_dict("records"):
        given = (row.get(name) for name in ("action", "response"))
        total += agent.log_probability(row, *given)
    return total


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
        outcomes, chances = np.array([1.0, -1.5 * (pump - 1)]), np.array([1 - p, p])
        mean = chances @ outcomes
        return 0.8 * (mean + 0.02 * (chances @ (outcomes - mean) ** 2))

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
        {
            "sooner_amount": sooner,
            "sooner_delay": soon,
            "later_amount": later,
            "later_delay": late,
        }
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


# Ladders


HYPERBOLIC = AGENTS["hyperbolic_discounter"]


SURE = 1e-4  # temperature without slips


def climbed(share, questions):
    """Go up a ladder for a gain by plain bisection; return offers and the interval, as shares."""
    low, high, offers = 0.0, 1.0, []
    for _ in range(questions):
        offers.append((low + high) / 2)
        low, high = (offers[-1], high) if share > offers[-1] else (low, offers[-1])
    return offers, low, high


def test_who_makes_no_slips_is_led_to_the_indifference_point():
    """Exact intervals, gains and losses; and the kernel lives the session of the step loop."""
    place = AdjustingAmount(delays=[1, 12, 60], repeats=2)
    theta = {"k": 0.07, "tau": SURE, "eta": 2.0}
    trials = simulate(HYPERBOLIC, [list(theta.values())], place, 5)
    alone = play(HYPERBOLIC(**theta), place, 5, 0)
    assert trials.frame["action"].equals(alone.frame["action"])
    assert trials.frame["sooner_amount"].equals(alone.frame["sooner_amount"])
    points = indifference_points(trials)
    assert len(points) == 12
    for row in points.itertuples():
        offers, low, high = climbed(1 / (1 + 0.07 * row.delay), 6)
        own = trials.frame[trials.frame["ladder"] == row.ladder]
        assert own["sooner_amount"].tolist() == [row.amount * offer for offer in offers]
        assert (row.low, row.high) == (row.amount * low, row.amount * high)
        assert abs(row.high - row.low) == 10  # 640 / 2**6
        assert row.point == (row.low + row.high) / 2


def test_the_area_is_that_of_its_definition_and_its_ends_hold_the_true_one():
    trials = simulate(HYPERBOLIC, [[0.07, SURE, 1.0]], AdjustingAmount(), 5)
    areas = area_under_curve(indifference_points(trials)).set_index("amount")
    delays = [0, 1, 3, 6, 12, 24, 60]

    def area(heights):
        return sum(
            (b - a) / 60 * (x + y) / 2
            for a, b, x, y in zip(delays, delays[1:], heights, heights[1:], strict=False)
        )

    ends = np.array([climbed(1 / (1 + 0.07 * d), 6)[1:] for d in delays[1:]])
    assert areas.loc[640, "area"] == pytest.approx(area([1, *ends.mean(axis=1)]))
    true = area([1 / (1 + 0.07 * d) for d in delays])
    for amount in (640, -640):
        assert areas.loc[amount, "low"] <= true <= areas.loc[amount, "high"]
    assert areas.loc[640, "high"] - areas.loc[640, "low"] < 1 / 64
    measure = MEASURES["area_under_curve"].estimate(trials)
    assert measure.value == pytest.approx(areas.loc[640, "area"])


# Ambiguity


VALUES = {"alpha": 0.7, "aversion": 0.3, "insensitivity": 0.4, "tau": 0.1}


def by_hand(name, least, most):
    middle, unknown = (least + most) / 2, most - least
    return {
        "ambiguity_neutral": middle,
        "alpha_maxmin": 0.7 * least + 0.3 * most,
        "ambiguity_insensitive": middle - unknown * (0.15 + 0.4 * (middle - 0.5)),
    }[name]


@pytest.mark.parametrize("name", ["ambiguity_neutral", "alpha_maxmin", "ambiguity_insensitive"])
def test_likelihoods_are_those_of_the_equations(name):
    model = AGENTS[name]
    theta, place = [VALUES[p] for p in model.parameters.names], Ambiguity()
    trials = session(model, theta, place)
    x = {c: trials.numbers(c) for c in ("a_least", "a_most", "b_least", "b_most", "action")}
    lead = by_hand(name, x["b_least"], x["b_most"]) - by_hand(name, x["a_least"], x["a_most"])
    sign = np.where(x["action"] == 1, 1, -1)
    result = log_likelihood(model, theta, place, trials)
    assert result == pytest.approx(np.log(expit(sign * lead / 0.1)).sum(), rel=1e-9)


# Public goods


GIVEN = {
    "inequity_averse_contributor": (0.8, 0.6, 0.1),
    "selfish_contributor": (0.2,),
    "conditional_cooperator": (0.1, 0.7, 0.2),
}


def payoff(row, own, others):
    """What a member earns who puts in `own` while the others, one by one, put in `others`."""
    pool = (own + sum(others)) * row["multiplier"]
    return row["endowment"] - own + pool / row["group"]


def public_goods_by_hand(name, row, c):
    """Utility of contribution c, members' payoffs added up one by one."""
    theta, e, o = GIVEN[name], row["endowment"], row["others"]
    if name == "conditional_cooperator":
        base, slope, sigma = theta
        return -(((c / e) - base - slope * o / e) ** 2) / (2 * sigma**2)
    alpha, beta, tau = theta if len(theta) == 3 else (0.0, 0.0, *theta)
    n = int(row["group"])
    everyone = [c, *[o] * (n - 1)]
    each = [payoff(row, x, everyone[:k] + everyone[k + 1 :]) / e for k, x in enumerate(everyone)]
    more = sum(max(x - each[0], 0) for x in each[1:])
    less = sum(max(each[0] - x, 0) for x in each[1:])
    return (each[0] - (alpha * more + beta * less) / (n - 1)) / tau


@pytest.mark.parametrize("name", GIVEN)
def test_public_goods_likelihoods_are_those_of_the_equations(name):
    model, place = AGENTS[name], PublicGoods(multipliers=[1.6, 6.4])
    trials = session(model, GIVEN[name], place)
    total = 0.0
    for _, row in trials.frame.iterrows():
        u = np.array([public_goods_by_hand(name, row, c) for c in range(11)])
        total += (u - logsumexp(u))[row["action"]]
    result = log_likelihood(model, GIVEN[name], place, trials)
    assert result == pytest.approx(total, rel=1e-9)


# Risky choice


MINDS = ("expected_value", "expected_utility", "prospect_theory",
         "prospect_theory_tversky_kahneman")  # fmt: skip


THREE = [[[-80, 0.2], [0, 0.3], [150, 0.5]], [[20, 0.6], [60, 0.4]]]


RISKY_SURE = [[[40, 1]], [[100, 0.5], [0, 0.5]]]


def prelec(p, gamma):
    return 0.0 if p <= 0 else 1.0 if p >= 1 else math.exp(-((-math.log(p)) ** gamma))


def tversky(p, gamma):
    return p**gamma / (p**gamma + (1 - p) ** gamma) ** (1 / gamma)


def worth(outcomes, alpha, alpha_loss, loss, gamma, gamma_loss, weigh):
    """Cumulative prospect theory by its definition: gains from the best down, losses up."""
    total, before = 0.0, 0.0
    for x, p in sorted((o for o in outcomes if o[0] >= 0), reverse=True):
        total += (weigh(before + p, gamma) - weigh(before, gamma)) * (x / 100) ** alpha
        before += p
    before = 0.0
    for x, p in sorted(o for o in outcomes if o[0] < 0):
        share = weigh(before + p, gamma_loss) - weigh(before, gamma_loss)
        total -= loss * share * (-x / 100) ** alpha_loss
        before += p
    return total


@pytest.mark.parametrize("name", MINDS)
def test_risky_likelihoods_are_those_of_the_equations(name):
    values = {"alpha": 0.7, "alpha_loss": 0.9, "loss_aversion": 1.8, "gamma": 0.6,
              "gamma_loss": 0.8, "tau": 0.2}  # fmt: skip
    model, place = AGENTS[name], RiskyChoice(problems=[THREE, THREE[::-1], RISKY_SURE], repeats=8)
    theta = [values[p] for p in model.parameters.names]
    trials = session(model, theta, place)
    own = dict(values) if "gamma" in model.parameters.names else {
        "alpha": 0.7 if name == "expected_utility" else 1.0, "gamma": 1.0, "gamma_loss": 1.0,
        "loss_aversion": 1.0, "tau": 0.2}  # fmt: skip
    own.setdefault("alpha_loss", own["alpha"])
    weigh = tversky if name.endswith("kahneman") else prelec
    total = 0.0
    for _, row in trials.frame.iterrows():
        a, b = (worth(g, own["alpha"], own["alpha_loss"], own["loss_aversion"], own["gamma"],
                      own["gamma_loss"], weigh) for g in gambles_of(row))  # fmt: skip
        p = expit((b - a) / own["tau"])
        total += math.log(p if row["action"] == 1 else 1 - p)
    result = log_likelihood(model, theta, place, trials)
    assert result == pytest.approx(total, rel=1e-9)


@pytest.mark.parametrize(
    ("model", "pair", "taken"),
    [
        ("minimax", RISKY_SURE, 0),
        ("priority_heuristic", [[[3000, 1]], [[4000, 0.8], [0, 0.2]]], 0),  # minima, 3000 > 400
        ("priority_heuristic", [[[3000, 0.25], [0, 0.75]], [[4000, 0.2], [0, 0.8]]], 1),  # maxima
        ("priority_heuristic", [[[-3000, 1]], [[-4000, 0.8], [0, 0.2]]], 1),  # smaller least loss
        ("priority_heuristic", [[[6000, 0.45], [0, 0.55]], [[3000, 0.9], [0, 0.1]]], 1),  # chances
        ("priority_heuristic", [[[6000, 0.001], [0, 0.999]], [[3000, 0.002], [0, 0.998]]], 0),
    ],
)
def test_rules_choose_what_their_authors_say(model, pair, taken):
    """Problems of Kahneman and Tversky (1979) as the heuristic's authors work them out."""
    place = RiskyChoice(problems=[pair], repeats=20)
    frame = session(AGENTS[model], [1e-6], place).frame
    first = np.array([gambles_of(row)[0] == sorted(map(tuple, pair[0])) for _, row in
                      frame.iterrows()])  # fmt: skip
    assert 0 < first.sum() < 20  # sides are drawn
    assert (np.where(first, frame["action"], 1 - frame["action"]) == taken).all()


# Ultimatum


ULTIMATUM_GIVEN = {"inequity_averse": (0.8, 0.6, 0.1), "selfish": (0.1,)}


def utility(own, other, alpha, beta):
    """Fehr and Schmidt's, by cases."""
    if other > own:
        return own - alpha * (other - own)
    return own - beta * (own - other)


def lead(row, alpha, beta):
    """Value of action 1 less that of action 0, in stakes, from what the question says."""
    stake = row["stake"]
    if row["role"] == 0:
        return utility(row["more"] / stake, 1 - row["more"] / stake, alpha, beta)
    return sum(
        sign * row[f"{n}_chance"] * utility(1 - row[n] / stake, row[n] / stake, alpha, beta)
        for sign, n in ((1, "more"), (-1, "less"))
    )


@pytest.mark.parametrize("name", ULTIMATUM_GIVEN)
def test_ultimatum_likelihoods_are_those_of_the_equations(name):
    theta = ULTIMATUM_GIVEN[name]
    alpha, beta, tau = theta if len(theta) == 3 else (0.0, 0.0, *theta)
    place = Ultimatum(stake=20)
    trials = session(AGENTS[name], theta, place)
    total = 0.0
    for _, row in trials.frame.iterrows():
        p = expit(lead(row, alpha, beta) / tau)
        total += np.log(p if row["action"] == 1 else 1 - p)
    result = log_likelihood(AGENTS[name], theta, place, trials)
    assert result == pytest.approx(total, rel=1e-9)
