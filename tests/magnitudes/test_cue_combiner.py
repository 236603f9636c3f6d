"""Combiners of cues: what they combine, missing answers, members of the family, recovery."""

import numpy as np

from knownminds.agents import CueCombiner, CueCombinerOptimal, simulate
from knownminds.agents.magnitudes.cue_combiner import blurred
from knownminds.environments import MarkerLocation
from knownminds.inference import maximum_a_posteriori


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
