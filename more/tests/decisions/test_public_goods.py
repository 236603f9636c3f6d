"""The public-goods game: what is earned, the equations of its agents, and what it tells."""

import numpy as np
import pytest

from knownminds.agents import AGENTS, simulate
from knownminds.environments import check_environment
from knownminds.inference import MEASURES, ModelData, maximum_a_posteriori
from knownminds_more.decisions.public_goods import PublicGoods


def payoff(row, own, others):
    """What a member earns who puts in `own` while the others, one by one, put in `others`."""
    pool = (own + sum(others)) * row["multiplier"]
    return row["endowment"] - own + pool / row["group"]


def test_rounds_keep_the_contract_and_payoffs_are_exact():
    place = PublicGoods(endowment=3, group=2, multipliers=[1.5, 4], repeats=2)
    check_environment(place)
    trials = simulate(AGENTS["random_responder"], np.empty((1, 0)), place, 1)
    earned = place.performance(trials)
    for (_, row), found in zip(trials.frame.iterrows(), earned, strict=True):
        assert found == pytest.approx(payoff(row, row["action"], [row["others"]]))


@pytest.mark.long
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
