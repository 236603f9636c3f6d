import numpy as np
import pytest

from knownminds.agents import HorizonBlind, HorizonExplorer, Perseverator, RandomResponder, simulate
from knownminds.environments import make
from knownminds.inference import MEASURES

NAMES = ("directed_exploration", "random_exploration")
MINDS = np.array([[0.2, 0.9, 0.0, 0.6, 0.9], [-0.5, 0.3, 0.0, 0.4, 0.5]])


@pytest.mark.long
def test_without_side_bias_the_truths_are_contrasts_of_the_parameters():
    a_1, a_6, _, s_1, s_6 = MINDS.T
    directed, random = (MEASURES[name].truth(HorizonExplorer, MINDS) for name in NAMES)
    # Of some 100,000 games each: standard errors are about .015.
    assert np.allclose(directed, a_6 / s_6 - a_1 / s_1, atol=0.06)
    assert np.allclose(random, 1 / s_1 - 1 / s_6, atol=0.06)


@pytest.mark.parametrize("name", [*NAMES, *(f"{name}_released" for name in NAMES)])
def test_minds_that_take_no_notice_of_the_horizon_have_none(name):
    for model in (HorizonBlind, RandomResponder, Perseverator):
        theta = model.parameters.draw(np.random.default_rng(0), 3)
        assert MEASURES[name].group_truth(model, theta) == 0
        assert not MEASURES[name].truth(model, theta).any()


def test_a_rational_player_whose_choices_are_separated_has_a_value():
    theta = np.array([[0.0, 1.0, 0.0, 0.2, 0.6]])  # A_1, A_6, B, s_1, s_6
    trials = simulate(HorizonExplorer, theta.repeat(10, 0), make("horizon", n_games=10), 7)
    found = MEASURES["directed_exploration"].estimate(trials)
    assert "Firth" in found.note
    assert found.low < theta[0, 1] / theta[0, 4] < found.high
