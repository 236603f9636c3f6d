"""Combiners of cues: what they combine, missing answers, members of the family, recovery."""

import numpy as np
import pytest
from scipy.stats import norm

from knownminds.agents import CueCombiner, CueCombinerEqual, CueCombinerOptimal, play, simulate
from knownminds.agents.magnitudes.cue_combiner import blurred
from knownminds.environments import MarkerLocation, Trials
from knownminds.inference import ModelData, maximum_a_posteriori

ALL = MarkerLocation(modality="all")
ONE = np.array([[0.7, 0.05, 0.1, 0.02]])


def test_the_answer_to_both_is_the_weighted_mean_of_the_two_before():
    theta = [[0.7, 0.05, 0.1, 1e-9]]
    frame = simulate(CueCombiner, theta, ALL, 1).frame
    wide = frame.pivot_table(index=["window", "item"], columns="modality", values="response")
    assert len(wide) == 99
    assert np.allclose(wide[2], 0.7 * wide[0] + 0.3 * wide[1], atol=1e-7)
    assert (wide[0] - wide[1]).abs().median() > 0.01


def test_the_likelihood_is_that_of_the_three_passes():
    trials = simulate(CueCombiner, ONE, ALL, 3)
    frame = trials.frame
    wide = frame.pivot_table(
        index=["window", "item"], columns="modality", values=["response", "value"]
    )
    y, x = wide["response"], wide["value"][0]
    passes = ((0, x, 0.05), (1, x, 0.1), (2, 0.7 * y[0] + 0.3 * y[1], 0.02))
    expected = 0.0
    for modality, mean, sd in passes:
        inside = norm.logpdf(y[modality], mean, sd)
        below, above = norm.logcdf(-mean / sd), norm.logsf((1.0 - mean) / sd)
        own = np.where(y[modality] <= 0, below, np.where(y[modality] >= 1, above, inside))
        expected += own.sum()
    found = ModelData.read(CueCombiner, trials).log_likelihood(ONE)[0][0]
    assert found == pytest.approx(expected, rel=1e-12)


def test_a_missing_answer_leaves_the_third_with_more_spread():
    trials = simulate(CueCombiner, ONE, ALL, 3)
    frame = trials.frame.copy()
    text = frame.index[(frame["modality"] == 0) & (frame["window"] == 1)][4]
    item = frame.loc[text, "item"]
    whole = ModelData.read(CueCombiner, trials).log_likelihood(ONE)[0][0]
    frame.loc[text, "response"] = None
    frame["outcome"] = "ok"
    frame.loc[text, "outcome"] = "malformed"
    holes = ModelData.read(CueCombiner, Trials.from_frame(frame))
    same = trials.frame[(trials.frame["window"] == 1) & (trials.frame["item"] == item)]
    (y_text, y_image, y), x = same["response"].to_numpy(float), same["value"].iloc[0]
    spread = np.sqrt(0.02**2 + (0.7 * 0.05) ** 2)
    change = norm.logpdf(y, 0.7 * x + 0.3 * y_image, spread)
    change -= norm.logpdf(y, 0.7 * y_text + 0.3 * y_image, 0.02) + norm.logpdf(y_text, x, 0.05)
    assert holes.log_likelihood(ONE)[0][0] - whole == pytest.approx(change, abs=1e-9)
    assert holes.n_trials[0] == 296


def test_members_of_the_family_agree_where_they_should():
    rng = np.random.default_rng(2)
    theta = CueCombinerEqual.parameters.draw(rng, 10)
    trials = simulate(CueCombinerEqual, theta, ALL, 3)
    equal = ModelData.read(CueCombinerEqual, trials).log_likelihood(theta)[0]
    half = np.column_stack([np.full(10, 0.5), theta])
    assert np.array_equal(equal, ModelData.read(CueCombiner, trials).log_likelihood(half)[0])
    weight = theta[:, 1] ** 2 / (theta[:, 0] ** 2 + theta[:, 1] ** 2)
    own = ModelData.read(CueCombiner, trials).log_likelihood(np.column_stack([weight, theta]))[0]
    optimal = ModelData.read(CueCombinerOptimal, trials).log_likelihood(theta)[0]
    assert np.allclose(own, optimal, rtol=1e-13)
    assert not np.allclose(optimal, equal)


@pytest.mark.parametrize("model", [CueCombiner, CueCombinerOptimal])
@pytest.mark.parametrize("lapse", [0.0, 0.2])
def test_kernel_and_step_loop_play_the_same_three_passes(model, lapse):
    theta = model.parameters.draw(np.random.default_rng(4), 3)
    fused = simulate(model, theta, ALL, 5, address=(1,), lapse=lapse).frame
    for i in range(3):
        loop = play(model.from_theta(theta[i], lapse=lapse), ALL, 5, 1, i).frame
        own = fused[fused["subject"] == str(i)]
        assert np.allclose(loop["response"], own["response"].to_numpy(float), atol=1e-12)


@pytest.mark.parametrize("lapse", [None, 0.1])
def test_the_gradient_of_three_passes_is_that_of_finite_differences(lapse):
    theta = CueCombinerOptimal.parameters.draw(np.random.default_rng(0), 6)
    trials = simulate(CueCombinerOptimal, theta, ALL, 5)
    data = ModelData.read(CueCombinerOptimal, trials)
    rates = None if lapse is None else np.full(6, lapse)
    theta = CueCombinerOptimal.parameters.draw(np.random.default_rng(1), 6)
    gradient = data.log_likelihood(theta, rates)[1]
    for k in range(3):
        h = np.zeros_like(theta)
        h[:, k] = 1e-4 * theta[:, k]
        above, below = (data.log_likelihood(theta + s * h, rates)[0] for s in (1, -1))
        # Central differences err by about h**2 of the third derivative, relative.
        assert np.allclose(gradient[:, k], (above - below) / (2 * h[:, k]), rtol=1e-4, atol=1e-3)


def test_weights_are_recovered_over_a_grid_of_blur_and_optimal_ones_follow_it():
    truth, n = [], 40
    for blur in (0.0, 8.0, 16.0):
        noise = {"condition": "constant_noise", "blur": blur} if blur else {}
        environment = MarkerLocation(modality="all", **noise)
        spread = blurred(0.03, blur)
        theta = np.column_stack([np.full(n, 0.06), np.full(n, spread), np.full(n, 0.03)])
        fit = maximum_a_posteriori(
            CueCombiner, simulate(CueCombinerOptimal, theta, environment, 7), starts=1
        )
        optimal = spread**2 / (spread**2 + 0.06**2)
        error = 0.03 / (np.hypot(0.06, spread) * np.sqrt(99))  # of one participant's weight
        # Five standard errors of the mean; the prior pulls by less than a tenth of one.
        assert abs(fit.estimate[:, 0].mean() - optimal) < 5 * error / np.sqrt(n) + 0.1 * error
        assert abs(fit.estimate[:, 0].std() / error - 1) < 4 / np.sqrt(2 * n)
        truth.append(optimal)
    assert truth[0] < 0.25 < 0.6 < truth[1] < truth[2]


def test_pictures_and_words_alone_tell_nothing_of_the_weight():
    trials = simulate(CueCombiner, ONE, MarkerLocation(modality="text"), 3)
    gradient = ModelData.read(CueCombiner, trials).log_likelihood(ONE)[1][0]
    assert gradient[0] == gradient[2] == gradient[3] == 0.0
    assert gradient[1] != 0.0
