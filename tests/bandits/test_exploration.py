from dataclasses import replace

import numpy as np
import pytest
import statsmodels.api as sm
from scipy.special import expit

from knownminds.agents import HorizonBlind, HorizonExplorer, Perseverator, RandomResponder, simulate
from knownminds.environments import Horizon, Trials
from knownminds.inference import MEASURES
from knownminds.inference.bandits.exploration import Exploration
from knownminds.validation.power.dials import GroupDial

NAMES = ("directed_exploration", "random_exploration")
MINDS = np.array(
    [
        [0.2, 0.9, 0.0, 0.6, 0.9],
        [0.2, 0.9, 0.8, 0.6, 0.9],
        [-0.5, 0.3, 0.0, 0.4, 0.5],
        [0.0, 1.0, 0.5, 1.5, 0.5],
    ]
)


def lived(theta, n_games=100, seed=0, model=HorizonExplorer):
    return simulate(model, theta, Horizon(n_games), seed)


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


@pytest.mark.parametrize("name", [*NAMES, *(f"{name}_released" for name in NAMES)])
def test_the_estimate_of_a_long_session_lies_at_the_truth(name):
    measure = MEASURES[name]
    truth = measure.truth(HorizonExplorer, MINDS)
    for theta, value in zip(MINDS, truth, strict=True):
        found = measure.estimate(lived(theta[None], 6000, seed=3))
        # Four standard errors, in each of 16 cases.
        assert abs(found.value - value) < 4 * found.standard_error
        assert found.low < found.value < found.high


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


@pytest.mark.parametrize("name", NAMES)
def test_different_minds_together_have_a_truth_of_their_own(name):
    measure = MEASURES[name]
    theta = np.repeat(MINDS, 60, axis=0)
    group = measure.group_truth(HorizonExplorer, MINDS)
    found = measure.estimate(lived(theta, 100, seed=2))
    assert abs(found.value - group) < 4 * found.standard_error
    # Pooling flattens the curves of minds that differ: the mean over minds is something else. The
    # minds are the same ones each time, so that the estimate varies less than its error says.
    mean = measure.truth(HorizonExplorer, MINDS).mean()
    assert abs(found.value - mean) > 2 * abs(found.value - group)


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


def test_the_released_coding_halves_the_coefficients():
    trials = lived(np.repeat(MINDS[[0]], 8, axis=0))
    frame = trials.to_frame()
    # Where true and observed means are the same, only the coding of the horizon differs.
    frame[["true_mean_0", "true_mean_1"]] = frame[["mean_0", "mean_1"]]
    same = Trials.from_frame(frame)
    # And the unit, which only slopes have: points, as published, instead of tens of points.
    for kind, times in (("directed", 2), ("random", 20)):
        plain, coded = Exploration(kind).estimate(same), Exploration(kind, True).estimate(same)
        assert plain.value == pytest.approx(times * coded.value, rel=1e-6)
        assert plain.standard_error == pytest.approx(times * coded.standard_error, rel=1e-6)
        assert plain.p_value == pytest.approx(coded.p_value, rel=1e-5)


def test_only_first_free_choices_with_an_answer_count():
    trials = lived(np.repeat(MINDS, 3, axis=0))
    frame = trials.frame
    later = frame["play"] > 0
    scrambled = frame.assign(action=frame["action"].where(~later, 1 - frame["action"]))
    gone = (frame["play"] == 0) & (frame["game"] < 5)
    holes = frame.copy()
    holes.loc[gone, ["action", "reward"]] = None
    holes.loc[gone, "outcome"] = "refused"
    for name, of in zip(NAMES, ("!=", "=="), strict=True):
        measure = MEASURES[name]
        asked = frame.query(f"play == 0 and count_0 {of} count_1")
        whole = measure.estimate(trials)
        assert whole.n == len(asked)
        assert whole == measure.estimate(Trials.from_frame(scrambled))
        left = measure.estimate(Trials.from_frame(holes))
        assert left.excluded["no answer"] == (asked["game"] < 5).sum()
        assert left.n == whole.n - left.excluded["no answer"]


def test_what_cannot_be_estimated_is_missing_with_its_reason():
    greedy = np.array([[0.0, 0.0, 0.0, 1e-6, 1e-6]])
    found = MEASURES["random_exploration"].estimate(lived(greedy))
    assert np.isnan(found.value)
    assert found.excluded["separation"] == found.n
    assert '"value": null' in found.to_json()
    short = simulate(HorizonExplorer, MINDS, Horizon(50, long_share=0.0), 0)
    found = MEASURES["directed_exploration"].estimate(short)
    assert np.isnan(found.value)
    assert "depend on each other" in str(found)


@pytest.mark.parametrize("released", [False, True])
def test_the_dial_moves_the_group_steadily(released):
    mean, spread = HorizonExplorer.parameters.mean, HorizonExplorer.parameters.sd
    for kind in ("directed", "random"):
        measure = Exploration(kind, released)
        measure.dial = replace(measure.dial, steps=13)
        turns, values = GroupDial(measure, HorizonExplorer, mean, spread).curve
        assert len(turns) == 13
        assert np.all(np.diff(values) > 0)
        assert values[0] < 0 < values[-1]


def test_a_missing_column_is_named():
    frame = lived(MINDS[:2], 10).to_frame()
    for column, name in (("count_0", NAMES[0]), ("true_mean_1", f"{NAMES[1]}_released")):
        trials = Trials.from_frame(frame.drop(columns=column))
        with pytest.raises(ValueError, match=f"no '{column}'. Map one"):
            MEASURES[name].estimate(trials)


def test_released_exploration_is_the_regression_of_the_published_code():
    """Written anew from the description: true means in points, horizon -1 or 1, no clusters."""
    trials = lived(MINDS[[0]], 300, seed=5)
    first = trials.frame.query("play == 0")
    long = np.where(first["horizon"] > 1, 1.0, -1.0)
    gap = (first["true_mean_1"] - first["true_mean_0"]).to_numpy(dtype=float)
    choice = first["action"].to_numpy(dtype=float)
    count_1, count_0 = first["count_1"].to_numpy(), first["count_0"].to_numpy()
    for kind, at, sign in (("random", 3, -1), ("directed", 2, 1)):
        kept = (count_0 == count_1) == (kind == "random")
        side = np.where(count_1 > count_0, -1.0, 1.0)
        y, x = np.where(side > 0, choice, 1 - choice)[kept], (side * gap)[kept]
        regressors = np.column_stack([np.ones(len(x)), x, long[kept], x * long[kept]])
        fit = sm.Logit(y, regressors).fit(disp=0)
        found = Exploration(kind, True).estimate(trials)
        assert found.value == pytest.approx(sign * fit.params[at], rel=1e-6)
        assert found.standard_error == pytest.approx(fit.bse[at], rel=1e-6)
