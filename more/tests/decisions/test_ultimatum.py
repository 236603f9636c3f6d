"""The ultimatum game: what is asked and earned, the equations of its agents, and what it tells."""

import numpy as np
import pytest

from knownminds.agents import AGENTS, simulate
from knownminds.environments import check_environment
from knownminds.inference import MEASURES, ModelData, maximum_a_posteriori
from knownminds_more.decisions.ultimatum import Ultimatum


def test_questions_keep_the_contract_and_payoffs_are_exact():
    place = Ultimatum(stake=10, offers=[2, 7.5], proposals=[[[1, 0.5], [4, 0.8]]], repeats=2)
    check_environment(place)
    trials = simulate(AGENTS["selfish"], [[0.3]], place, 1)
    earned = place.performance(trials)
    for (_, row), found in zip(trials.frame.iterrows(), earned, strict=True):
        by_hand = {0: {0: 0.0, 1: row["more"]}, 1: {0: 0.5 * 9, 1: 0.8 * 6}}
        assert found == pytest.approx(by_hand[row["role"]][row["action"]])


def test_envy_and_guilt_come_back_and_a_responder_alone_does_not_tell_guilt():
    """80 subjects: an r of .9 has the error (1 - .81) / sqrt(80) = .02, one of .3 has .10."""
    model = AGENTS["inequity_averse"]
    theta = model.parameters.draw(np.random.default_rng(2), 80)
    r = {}
    for roles, repeats in ((("responder", "proposer"), 2), (("responder",), 5)):
        trials = simulate(model, theta, Ultimatum(roles=roles, repeats=repeats), 3)
        found = maximum_a_posteriori(model, ModelData.read(model, trials)).estimate
        r[roles[-1]] = [np.corrcoef(theta[:, k], found[:, k])[0, 1] for k in range(3)]
        if len(roles) == 2:
            off = found[:, :2] - theta[:, :2]
            assert (np.abs(off.mean(0)) < 4 * off.std(0) / np.sqrt(80)).all()
    assert min(r["proposer"]) > 0.8
    assert r["responder"][0] > 0.85
    assert r["responder"][1] < 0.3 + 4 * 0.1


def test_measures_count_what_they_say_and_the_selfish_show_neither():
    place = Ultimatum(repeats=2)
    averse = simulate(AGENTS["inequity_averse"], np.tile([0.4, 0.6, 0.1], (20, 1)), place, 1)
    selfish = simulate(AGENTS["selfish"], np.full((20, 1), 0.02), place, 2)
    x = averse.frame
    low = x[(x["role"] == 0) & (x["more"] < 0.3 * x["stake"])]
    dear = x[(x["role"] == 1) & (x["less_chance"] * (x["stake"] - x["less"]) - 1e-9
                                 > x["more_chance"] * (x["stake"] - x["more"]))]  # fmt: skip
    for name, share in (("low_offers_rejected", (low["action"] == 0).mean()),
                        ("generous_offers", (dear["action"] == 1).mean())):  # fmt: skip
        found = MEASURES[name].estimate(averse)
        assert found.value == pytest.approx(share)
        assert found.low < found.value < found.high
        assert MEASURES[name].estimate(selfish).value < 0.1 < found.value
