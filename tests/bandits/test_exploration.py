import numpy as np
import pytest
import statsmodels.api as sm
from scipy.special import expit

from knownminds.agents import HorizonBlind, HorizonExplorer, Perseverator, RandomResponder
from knownminds.environments import Horizon
from knownminds.inference import MEASURES
from knownminds.inference.bandits.exploration import Exploration

NAMES = ("directed_exploration", "random_exploration")
MINDS = np.array(
    [
        [0.2, 0.9, 0.0, 0.6, 0.9],
        [0.2, 0.9, 0.8, 0.6, 0.9],
        [-0.5, 0.3, 0.0, 0.4, 0.5],
        [0.0, 1.0, 0.5, 1.5, 0.5],
    ]
)


def test_without_side_bias_the_truths_are_contrasts_of_the_parameters():
    theta = MINDS[[0, 2]]
    a_1, a_6, _, s_1, s_6 = theta.T
    directed, random = (MEASURES[name].truth(HorizonExplorer, theta) for name in NAMES)
    assert np.allclose(directed, a_6 / s_6 - a_1 / s_1, atol=1e-8)
    assert np.allclose(random, 1 / s_1 - 1 / s_6, atol=1e-8)


def test_a_side_bias_weakens_directed_exploration_and_leaves_random_exploration():
    plain, biased = MINDS[[0]], MINDS[[1]]
    directed, random = (MEASURES[name] for name in NAMES)
    gap = directed.truth(HorizonExplorer, plain) - directed.truth(HorizonExplorer, biased)
    assert 0.02 < gap[0] < 0.1
    same = random.truth(HorizonExplorer, np.concatenate([plain, biased]))
    assert same[0] == pytest.approx(same[1], abs=1e-8)


# Random exploration by observed means has no error to test: there the shares are logistic.
@pytest.mark.parametrize(
    ("kind", "released"), [("directed", False), ("directed", True), ("random", True)]
)
def test_the_truth_is_what_shares_of_many_designed_games_give(kind, released):
    a_1, a_6, bias, s_1, s_6 = mind = np.array([-0.5, 0.5, 0.2, 0.3, 0.7])
    environment = Horizon(40_000)
    drawn = environment.tables(np.random.default_rng(1).random((1, environment.n_draws)))
    game = {name: values[0, ::6] for name, values in drawn.items()}
    count = game["forced_count"]
    seen = (game["forced_sum"] / count) @ (-0.1, 0.1)
    long = game["horizon"] > 1
    bonus = np.where(long, a_6, a_1) * np.sign(count[:, 0] - count[:, 1])
    share = expit((seen + bonus + bias) / np.where(long, s_6, s_1))
    side = np.where(count[:, 1] == 3, -1, 1) if kind == "directed" else np.ones(len(share))
    lead = game["true_mean_1"] - game["true_mean_0"] if released else seen
    kept = (count[:, 0] == count[:, 1]) == (kind == "random")
    x, h = (side * lead)[kept], (np.where(long, 1, -1) if released else 1 * long)[kept]
    y = np.where(side > 0, share, 1 - share)[kept]
    regressors = np.column_stack([np.ones(len(x)), x, h, x * h])
    fit = sm.GLM(y, regressors, sm.families.Binomial()).fit(cov_type="HC0")
    at, sign = (2, 1) if kind == "directed" else (3, -1)
    truth = Exploration(kind, released).truth(HorizonExplorer, mind[None])[0]
    # Shares instead of choices: their errors are those of the design alone.
    assert abs(sign * fit.params[at] - truth) < 4 * fit.bse[at]


@pytest.mark.parametrize("released", [False, True])
def test_minds_that_take_no_notice_of_the_horizon_have_none(released):
    theta = HorizonBlind.parameters.draw(np.random.default_rng(0), 6)
    for kind in ("directed", "random"):
        measure = Exploration(kind, released)
        assert np.abs(measure.truth(HorizonBlind, theta)).max() < 1e-12
        assert abs(measure.group_truth(HorizonBlind, theta)) < 1e-12
        for model in (RandomResponder, Perseverator):
            none = model.parameters.draw(np.random.default_rng(0), 3)
            assert measure.group_truth(model, none) == 0
            assert not measure.truth(model, none).any()
