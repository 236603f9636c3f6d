from itertools import product

import numpy as np
import pandas as pd
import pytest

from knownminds.agents import HorizonBlind, HorizonExplorer, RandomResponder, play, simulate
from knownminds.environments import Horizon, Trials
from knownminds.inference import ModelData, maximum_a_posteriori

SEEN = {"horizon": 6, "mean_0": 40.0, "mean_1": 52.0, "count_0": 1, "count_1": 3}
MIND = {"A_1": 0.2, "A_6": 0.9, "B": -0.3, "s_1": 0.5, "s_6": 0.8}


def share(mind=MIND, **seen):
    return HorizonExplorer(**mind).probabilities({**SEEN, **seen})[1]


def test_the_probability_is_the_published_one():
    # 52 - 40 points are 1.2 tens, and machine 1 is the one that is known better.
    assert share() == pytest.approx(1 / (1 + np.exp(-(1.2 - 0.9 - 0.3) / 0.8)))
    assert share(count_1=1) == pytest.approx(1 / (1 + np.exp(-(1.2 - 0.3) / 0.8)))
    assert share(horizon=1) == pytest.approx(1 / (1 + np.exp(-(1.2 - 0.2 - 0.3) / 0.5)))
    assert share(horizon=10) == share()


def test_extreme_minds_are_still_certain_of_something():
    for z in (-12.0, 12.0):
        theta = HorizonExplorer.parameters.constrain(np.full((4, 5), z))
        trials = simulate(HorizonExplorer, theta, Horizon(5), 0)
        data = ModelData.read(HorizonExplorer, trials, all_trials=True)
        for lapse in (None, np.full(4, 0.5)):
            total, gradient = data.log_likelihood(theta, lapse)
            assert np.isfinite(total).all()
            assert np.isfinite(gradient).all()


def test_probabilities_of_all_courses_of_two_games_sum_to_one():
    environment = Horizon(2, long_horizon=4, long_share=1.0)
    environment.reset(seed=5)
    design, rows = environment.design, []
    for k, actions in enumerate(product(range(2), repeat=8)):
        observation, _ = environment.reset(options={"design": design})
        for action in actions:
            following, reward, *_ = environment.step(action)
            rows.append({"subject": str(k), **observation, "action": action, "reward": reward})
            observation = following
    trials = Trials.from_frame(pd.DataFrame(rows))
    data = ModelData.read(HorizonExplorer, trials, all_trials=True)
    theta = np.repeat(HorizonExplorer(**MIND).theta[None], 2**8, axis=0)
    for lapse in (None, np.full(2**8, 0.2)):
        assert np.exp(data.log_likelihood(theta, lapse)[0]).sum() == pytest.approx(1.0, abs=1e-12)


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


def test_an_endlessly_noisy_explorer_is_a_random_responder():
    theta = np.array([[0.0, 0.0, 0.0, 1e9, 1e9]] * 3)
    trials = simulate(HorizonExplorer, theta, Horizon(20), 1)
    guesses = ModelData.read(RandomResponder, trials).log_likelihood(np.empty((3, 0)))[0]
    own = ModelData.read(HorizonExplorer, trials, all_trials=True).log_likelihood(theta)[0]
    assert np.allclose(own, guesses, rtol=1e-6)


def test_first_free_choices_alone_can_be_fitted():
    theta = np.array([[0.2, 0.9, 0.1, 0.5, 0.8]] * 2)
    trials = simulate(HorizonExplorer, theta, Horizon(30), 2)
    first = Trials.from_frame(trials.frame[trials.frame["play"] == 0])
    agent = HorizonExplorer.from_theta(theta[0])
    rows = first.frame[first.frame["subject"] == "0"].to_dict("records")
    plain = sum(np.log(agent.probabilities(row)[row["action"]]) for row in rows)
    kernel = ModelData.read(HorizonExplorer, first).log_likelihood(theta)[0][0]
    assert kernel == pytest.approx(plain, rel=1e-12)


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


@pytest.mark.parametrize("model", [HorizonExplorer, HorizonBlind])
def test_parameters_are_recovered_and_other_peoples_are_not(model):
    n = 300
    theta = model.parameters.draw(np.random.default_rng(0), n)
    fit = maximum_a_posteriori(model, simulate(model, theta, Horizon(), 1))
    truth = model.parameters.unconstrain(theta)
    for k, name in enumerate(model.parameters.names):
        r = np.corrcoef(truth[:, k], fit.z[:, k])[0, 1]
        other = np.corrcoef(np.roll(truth[:, k], 1), fit.z[:, k])[0, 1]
        # Fisher's z has the standard error 1 / sqrt(n - 3).
        assert np.arctanh(r) > np.arctanh(0.8) - 3 / np.sqrt(n - 3), name
        assert abs(np.arctanh(other)) < 4 / np.sqrt(n - 3), name
    inside = [
        np.mean((low <= theta[:, k]) & (theta[:, k] <= high))
        for k, (low, high) in enumerate(zip(*(end.T for end in fit.interval(0.9)), strict=True))
    ]
    assert np.all(np.abs(np.array(inside) - 0.9) < 4 * np.sqrt(0.09 / n))


def test_missing_plays_teach_nothing_to_either_kernel_or_agent():
    environment = Horizon(3, long_share=1.0)
    environment.reset(seed=1)
    before = environment.step(None)[0]
    first = environment.reset(seed=1)[0]
    known = ("mean_0", "mean_1", "count_0", "count_1")
    assert [first[name] for name in known] == [before[name] for name in known]
    trials = play(HorizonExplorer(**MIND), environment, 1)
    assert len(trials) == 18
