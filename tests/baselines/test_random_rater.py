"""What is special to the rater who states any number."""

import numpy as np

from knownminds.agents import RandomRater, simulate
from knownminds.environments import ProbabilisticReasoning
from knownminds.inference import ModelData


def test_numbers_are_spread_evenly_whatever_is_shown():
    environment = ProbabilisticReasoning(n_problems=20)
    frame = simulate(RandomRater, np.empty((500, 0)), environment, 4).frame
    n, response = len(frame), frame["response"].to_numpy()
    counts = np.histogram(response, bins=20, range=(0, 1))[0]
    chi_square = ((counts - n / 20) ** 2 / (n / 20)).sum()
    assert chi_square < 19 + 5 * np.sqrt(2 * 19)
    for column in ("prior", "likelihood", "ball"):
        assert abs(np.corrcoef(response, frame[column])[0, 1]) < 4 / np.sqrt(n)


def test_nothing_it_states_is_more_likely_than_anything_else():
    trials = simulate(RandomRater, np.empty((3, 0)), ProbabilisticReasoning(), 0, lapse=0.3)
    total, gradient = ModelData.read(RandomRater, trials).log_likelihood(np.empty((3, 0)))
    assert total.tolist() == [0.0] * 3
    assert gradient.shape == (3, 0)
    assert RandomRater().log_density({"trial": 0}, 0.7) == 0.0
