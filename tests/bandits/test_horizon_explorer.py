import numpy as np

from knownminds.agents import HorizonBlind, HorizonExplorer, simulate
from knownminds.environments import Horizon
from knownminds.inference import ModelData


def test_the_blind_explorer_is_the_one_whose_horizons_are_alike():
    blind = np.array([[0.4, 0.2, 0.6], [-0.3, 0.0, 1.5]])
    both = blind[:, [0, 0, 1, 2, 2]]
    environment = Horizon(30)
    trials = simulate(HorizonBlind, blind, environment, 4)
    assert trials.frame.equals(simulate(HorizonExplorer, both, environment, 4).frame)
    for lapse in (None, np.array([0.1, 0.3])):
        own, wide = (
            ModelData.read(model, trials, all_trials=True).log_likelihood(theta, lapse)
            for model, theta in ((HorizonBlind, blind), (HorizonExplorer, both))
        )
        assert np.allclose(own[0], wide[0], rtol=1e-12)
        folded = np.column_stack(
            [wide[1][:, :2].sum(axis=1), wide[1][:, 2], wide[1][:, 3:5].sum(axis=1), wide[1][:, 5:]]
        )
        assert np.allclose(own[1], folded, rtol=1e-12)


def test_a_bonus_draws_to_the_machine_seen_once_and_noise_away_from_the_better_one():
    environment, n = Horizon(40), 100
    quiet = {"A_1": 0.0, "A_6": 0.0, "B": 0.0, "s_1": 0.3, "s_6": 0.3}

    def chosen(**changed):
        mind = HorizonExplorer(**{**quiet, **changed})
        frame = simulate(HorizonExplorer, np.repeat(mind.theta[None], n, axis=0), environment, 7)
        first = frame.frame[(frame.frame["play"] == 0) & (frame.frame["horizon"] == 6)]
        uneven = first[first["count_0"] != first["count_1"]]
        once = (uneven["count_1"] < uneven["count_0"]).astype(int)
        better = (first["mean_1"] > first["mean_0"]).astype(int)
        return (uneven["action"] == once).mean(), (first["action"] == better).mean()

    rest, curious, noisy = chosen(), chosen(A_6=1.0), chosen(s_6=2.0)
    # About 1,000 and 2,000 choices: standard errors are below .016.
    assert curious[0] > rest[0] + 0.1
    assert noisy[1] < rest[1] - 0.1
    assert abs(chosen(A_1=2.0)[0] - rest[0]) < 1e-12
