import numpy as np
import pytest

from knownminds.agents import HorizonExplorer, simulate
from knownminds.environments import Horizon, Session, Trials, session_stream
from knownminds.environments.bandits.horizon import ARMS, POINTS


def drawn(environment, n, seed=0):
    return environment.tables(np.random.default_rng(seed).random((n, environment.n_draws)))


def played(n=5, seed=0, **settings):
    environment = Horizon(**{"n_games": 8, **settings})
    theta = HorizonExplorer.parameters.draw(np.random.default_rng(seed), n)
    return environment, simulate(HorizonExplorer, theta, environment, seed)


def test_games_have_the_design_that_was_published():
    environment = Horizon()
    assert environment.n_trials == 600
    table = drawn(environment, 200)
    first = {
        name: values[:, ::6].reshape(20_000, *values.shape[2:]) for name, values in table.items()
    }
    n = 20_000
    half = 4 * 0.5 / np.sqrt(n)  # four standard errors of a share of one half
    assert set(first["horizon"]) == {1, 6}
    assert abs((first["horizon"] == 6).mean() - 0.5) < half
    shown = first["forced_count"][:, 1]
    assert abs((shown == 2).mean() - 0.5) < half
    assert abs((shown == 1).mean() - 0.25) < half
    assert set(shown) == {1, 2, 3}
    means = np.stack([first["true_mean_0"], first["true_mean_1"]], axis=1)
    assert np.isin(means, (40, 60)).any(axis=1).all()
    gaps, counts = np.unique(means[:, 1] - means[:, 0], return_counts=True)
    assert gaps.tolist() == [-30, -20, -12, -8, -4, 4, 8, 12, 20, 30]
    assert np.all(np.abs(counts / n - 0.1) < 4 * np.sqrt(0.09 / n))
    # Each of the four positions holds machine 1 as often as the others: the order is shuffled.
    arms = np.stack([first[name] for name in ARMS], axis=1)
    assert np.all(np.abs(arms.mean(axis=0) - 0.5) < half)
    assert np.array_equal(arms.sum(axis=1), shown)


def test_points_are_whole_numbers_around_the_means_and_are_not_clipped():
    table = drawn(Horizon(), 200)
    mean = np.stack([table["true_mean_0"], table["true_mean_1"]], axis=2)
    points = table["points"]
    noise = (points - mean).ravel()
    assert np.array_equal(points, np.round(points))
    assert points.min() < 0
    assert not np.signbit(points[points == 0]).any()
    assert abs(noise.mean()) < 4 * 8 / np.sqrt(noise.size)
    # Rounding adds the variance of a uniform number; 4 standard errors of a variance.
    variance = 64 + 1 / 12
    assert abs(noise.var() - variance) < 4 * variance * np.sqrt(2 / noise.size)
    assert abs(np.corrcoef((points - mean).reshape(-1, 2).T)[0, 1]) < 4 / np.sqrt(noise.size / 2)
    forced = np.stack([table[name] for name in POINTS], axis=2)[:, ::6]
    arms = np.stack([table[name] for name in ARMS], axis=2)[:, ::6]
    off = (forced - np.take_along_axis(mean[:, ::6], arms, axis=2)).ravel()
    assert abs(off.mean()) < 4 * 8 / np.sqrt(off.size)


def test_what_is_known_before_a_play_is_what_was_seen_in_this_game():
    environment = Horizon(5)
    session = Session(environment, environment.draw(session_stream(2)))
    seen = {}
    for observation in session:
        if observation["play"] == 0:
            seen = {0: [], 1: []}
            for arm, points in zip(ARMS, POINTS, strict=True):
                seen[observation[arm]].append(observation[points])
        for a in (0, 1):
            assert observation[f"mean_{a}"] == pytest.approx(np.mean(seen[a]))
            assert observation[f"count_{a}"] == len(seen[a])
        action = None if observation["play"] == 2 else int(observation["trial"]) % 2
        game = observation["game"]
        reward = session.take(action).reward
        if action is not None:
            seen[action].append(reward)
    assert game == 4


def test_means_that_do_not_follow_from_the_plays_before_are_named():
    environment, trials = played(long_share=1.0)
    frame = trials.to_frame()
    frame.loc[3, "mean_1"] += 1.0
    with pytest.raises(ValueError, match="do not follow from the trial before") as told:
        Trials.from_frame(frame, environment=environment)
    assert "row 4" in str(told.value)
    for column in ("game", "mean_0", "reward"):
        with pytest.raises(ValueError, match=f"have a column '{column}'"):
            Trials.from_frame(trials.to_frame().drop(columns=column), environment=environment)
