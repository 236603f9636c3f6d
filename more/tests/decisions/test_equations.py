"""Deciders between stated offers against their equations, written out anew."""

import math

import numpy as np
import pytest
from plain_equations import gambles_of, log_likelihood, session
from scipy.special import expit, logsumexp

from knownminds.agents import AGENTS, play, simulate
from knownminds.inference import MEASURES
from knownminds_more.decisions.adjusting_amount import AdjustingAmount
from knownminds_more.decisions.ambiguity import Ambiguity
from knownminds_more.decisions.ladders import area_under_curve, indifference_points
from knownminds_more.decisions.public_goods import PublicGoods
from knownminds_more.decisions.risky_choice import RiskyChoice
from knownminds_more.decisions.ultimatum import Ultimatum

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


def worth(gamble, alpha, alpha_loss, loss, gamma, gamma_loss, weigh):
    """Cumulative prospect theory by its definition: gains from the best down, losses up."""
    total, before = 0.0, 0.0
    for x, p in sorted((o for o in gamble if o[0] >= 0), reverse=True):
        total += (weigh(before + p, gamma) - weigh(before, gamma)) * (x / 100) ** alpha
        before += p
    before = 0.0
    for x, p in sorted(o for o in gamble if o[0] < 0):
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
