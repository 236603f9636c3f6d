"""The public-goods game: what is earned, the equations of its minds, and what it tells."""

import numpy as np
import pytest
from scipy.special import logsumexp

from knownminds.agents import AGENTS, simulate
from knownminds.environments import PublicGoods, check_environment
from knownminds.inference import MEASURES, ModelData, maximum_a_posteriori

GIVEN = {
    "inequity_averse_contributor": (0.8, 0.6, 0.1),
    "selfish_contributor": (0.2,),
    "conditional_cooperator": (0.1, 0.7, 0.2),
}


def payoff(row, own, others):
    """What a member earns who puts in `own` while the others, one by one, put in `others`."""
    pool = (own + sum(others)) * row["multiplier"]
    return row["endowment"] - own + pool / row["group"]


def by_hand(name, row, c):
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


def test_rounds_keep_the_contract_and_payoffs_are_exact():
    place = PublicGoods(endowment=3, group=2, multipliers=[1.5, 4], repeats=2)
    check_environment(place)
    trials = simulate(AGENTS["random_responder"], np.empty((1, 0)), place, 1)
    earned = place.performance(trials)
    for (_, row), found in zip(trials.frame.iterrows(), earned, strict=True):
        assert found == pytest.approx(payoff(row, row["action"], [row["others"]]))


@pytest.mark.parametrize("name", GIVEN)
def test_likelihoods_are_those_of_the_equations(name):
    model, place = AGENTS[name], PublicGoods(multipliers=[1.6, 6.4])
    trials = simulate(model, [GIVEN[name]], place, 5)
    total = 0.0
    for _, row in trials.frame.iterrows():
        u = np.array([by_hand(name, row, c) for c in range(11)])
        total += (u - logsumexp(u))[row["action"]]
    data = ModelData.read(model, trials, place.n_actions)
    found = data.log_likelihood(np.array([GIVEN[name]]))[0][0]
    assert found == pytest.approx(total, rel=1e-9)


def test_lines_come_back_and_their_slope_is_read_off():
    """80 subjects; an r of .93 has the error .015, and slopes of 44 choices one of sigma / 2."""
    model = AGENTS["conditional_cooperator"]
    theta = model.parameters.draw(np.random.default_rng(2), 80)
    trials = simulate(model, theta, PublicGoods(), 3)
    found = maximum_a_posteriori(model, ModelData.read(model, trials, 11)).estimate
    r = [np.corrcoef(theta[:, k], found[:, k])[0, 1] for k in range(3)]
    assert min(r) > 0.85
    first = trials.frame[trials.frame["subject"] == trials.frame["subject"].iloc[0]]
    fitted = np.polyfit(first["others"], first["action"].astype(float), 1)[0]
    measure = MEASURES["conditional_cooperation"]
    assert measure.values(trials).value[0] == pytest.approx(fitted)
    selfish = simulate(AGENTS["selfish_contributor"], np.full((80, 1), 0.2), PublicGoods(), 4)
    assert measure.estimate(selfish).p_value > 0.001
    assert measure.estimate(trials).p_value < 1e-6


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("group=1", "group is a whole number from 2 on; got 1"),
        ("multipliers=[0]", "multipliers are different numbers above 0"),
        ("multipliers=[1.6,-2]", "multipliers are different numbers above 0"),
        ("endowment=0", "endowment is a whole number from 1"),
    ],
)
def test_bad_games_are_refused_with_a_sentence(given, told, knownminds, tmp_path):
    words = ("simulate", "public_goods", "--model", "selfish_contributor", "--set", given)
    code, _, err = knownminds(*words, "--out", tmp_path / "x.csv")
    assert code == 2
    assert not list(tmp_path.iterdir())
    with pytest.raises(ValueError, match=told):
        raise ValueError(" ".join(err.split()))
