"""Ambiguity: urns, the equations of who bets on them, and what is refused."""

import numpy as np
import pytest
from scipy.special import expit

from knownminds.agents import AGENTS, simulate
from knownminds.environments import Ambiguity, check_environment
from knownminds.inference import ModelData

VALUES = {"alpha": 0.7, "aversion": 0.3, "insensitivity": 0.4, "tau": 0.1}


def by_hand(name, least, most):
    middle, unknown = (least + most) / 2, most - least
    return {
        "ambiguity_neutral": middle,
        "alpha_maxmin": 0.7 * least + 0.3 * most,
        "ambiguity_insensitive": middle - unknown * (0.15 + 0.4 * (middle - 0.5)),
    }[name]


def test_urns_keep_the_contract_and_one_of_a_pair_is_known():
    place = Ambiguity(repeats=2)
    check_environment(place)
    table = place.draw(np.random.default_rng(1)).table
    width = {side: table[f"{side}_most"] - table[f"{side}_least"] for side in "ab"}
    assert ((width["a"] == 0) != (width["b"] == 0)).all()
    assert 0.3 < (width["a"] == 0).mean() < 0.7  # 142 sides are drawn: 4 errors are .17


@pytest.mark.parametrize("name", ["ambiguity_neutral", "alpha_maxmin", "ambiguity_insensitive"])
def test_likelihoods_are_those_of_the_equations(name):
    model = AGENTS[name]
    theta = np.array([[VALUES[p] for p in model.parameters.names]])
    trials = simulate(model, theta, Ambiguity(), 5)
    x = {c: trials.numbers(c) for c in ("a_least", "a_most", "b_least", "b_most", "action")}
    lead = by_hand(name, x["b_least"], x["b_most"]) - by_hand(name, x["a_least"], x["a_most"])
    sign = np.where(x["action"] == 1, 1, -1)
    found = ModelData.read(model, trials).log_likelihood(theta)[0][0]
    assert found == pytest.approx(np.log(expit(sign * lead / 0.1)).sum(), rel=1e-9)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"middles": []}, "rising order"),
        ({"middles": [0.5, 1.2]}, "shares of red balls"),
        ({"middles": [0.1], "widths": [0.5]}, "none fit together"),
    ],
)
def test_urns_that_cannot_be_are_refused(settings, told):
    with pytest.raises(ValueError, match=told):
        Ambiguity(**settings)
