"""Combiners of cues: what they combine, missing answers, members of the family, recovery."""

import numpy as np

from knownminds.agents import CueCombiner, CueCombinerEqual, CueCombinerOptimal, simulate
from knownminds.agents.magnitudes.cue_combiner import blurred
from knownminds.environments import MarkerLocation
from knownminds.inference import ModelData, maximum_a_posteriori

ALL = MarkerLocation(modality="all")


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
