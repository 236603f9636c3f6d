import numpy as np

from knownminds.agents import HorizonExplorer, simulate
from knownminds.environments import Horizon


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
