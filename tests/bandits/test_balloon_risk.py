import numpy as np
import pandas as pd
import pytest

from knownminds.agents import BalloonPumper, RandomResponder, simulate
from knownminds.environments import BalloonRisk, Session, Trials, session_stream
from knownminds.environments.world import follow_world

STOP, INFLATE = 0, 1


def tables(environment, n, seed=0):
    rng = np.random.default_rng(seed)
    return environment.tables(rng.random((n, environment.n_draws)))


def lived(environment, actions, seed=1):
    session = Session(environment, environment.draw(session_stream(seed)))
    for action in actions:
        session.take(action)
    return session.turns


def test_a_balloon_bursts_at_a_pump_that_is_drawn_evenly():
    environment = BalloonRisk(n_balloons=40, maxima=(8, 3))
    table = tables(environment, 500)
    for kind, most in enumerate((8, 3)):
        fatal = table["pump"][table["bursts"] & (table["type"] == kind)]
        n = 40 * 500
        count = np.bincount(fatal, minlength=most + 1)[1:]
        assert count.sum() == n
        # Multinomial: 4.5 standard errors in each of 11 cells fail once in 13,000 seeds.
        assert np.all(np.abs(count / n - 1 / most) < 4.5 * np.sqrt((1 - 1 / most) / most / n))
        # The hazard of the spec: pump k bursts with the probability 1 / (M - k + 1).
        left = n - np.concatenate([[0], np.cumsum(count)[:-1]])
        hazard = 1 / (most - np.arange(most))
        error = np.sqrt(hazard * (1 - hazard) / left)
        assert np.all(np.abs(count / left - hazard) <= 4.5 * error)


def test_the_released_design_has_fifteen_and_draws_types_evenly_while_any_are_left():
    assert BalloonRisk(released=True).n_balloons == 15
    assert BalloonRisk(7, released=True).n_balloons == 7
    environments = [BalloonRisk(2, (1, 1), released=released) for released in (False, True)]
    share = []
    for environment in environments:
        kind = tables(environment, 20_000)["type"]
        assert np.all(kind.sum(axis=1) == 2)
        share.append(np.mean(kind[:, 0] == kind[:, 1]))
    # Two of two types: a shuffle puts equal ones first in 1/3, even draws in 1/2 of sessions.
    for value, expected in zip(share, (1 / 3, 1 / 2), strict=True):
        assert abs(value - expected) < 4 * np.sqrt(expected * (1 - expected) / 20_000)


def test_points_are_the_pumps_made_or_nothing():
    environment = BalloonRisk(20, (6, 3))
    trials = simulate(RandomResponder, np.zeros((50, 0)), environment, 4)
    rows = trials.frame
    by = ["subject", "balloon"]
    points = rows.groupby(by)["reward"].sum()
    pumps = rows.groupby(by)["action"].sum()
    last = rows.groupby(by)["action"].last()
    assert set(points[last == STOP] - pumps[last == STOP]) == {0}
    assert set(points[last == INFLATE]) == {0.0}
    done = environment.performance(trials)
    assert np.isfinite(done).sum() == len(points) == 50 * 40
    assert np.nansum(done) == points.sum()


def test_mean_points_of_a_fixed_plan_are_those_of_the_formula():
    most, plan, n = 8, 4, 4000
    environment = BalloonRisk(n, (most,))
    design = environment.draw(session_stream(3))
    actions = np.where(design.table["pump"] <= plan, INFLATE, STOP)
    brought = follow_world(environment.world, design.table, actions)
    points = brought["reward"][brought["present"]].sum() / n
    # The plan works out with probability (M - k) / M.
    p = (most - plan) / most
    assert abs(points - plan * p) < 4 * plan * np.sqrt(p * (1 - p) / n)


def test_after_an_unreadable_answer_the_balloon_is_gone_and_counts_for_nothing():
    environment = BalloonRisk(maxima=(60, 70))
    turns = lived(environment, [INFLATE, None, STOP])
    assert [t.observation["balloon"] for t in turns] == [0, 0, 1]
    rows = [
        {**t.observation, "action": t.action, "reward": t.reward, "subject": "a",
         "outcome": "malformed" if t.action is None else "ok"}
        for t in turns
    ]  # fmt: skip
    trials = Trials.from_frame(pd.DataFrame(rows), environment=environment)
    assert np.array_equal(environment.performance(trials), [np.nan, np.nan, 0.0], equal_nan=True)


def test_most_of_a_session_is_not_simulated_pump_by_pump():
    """What lies behind the pump that bursts a balloon costs a kernel nothing."""
    table = tables(BalloonRisk(), 200)
    # Half of the pumps, (M + 1) / 2 of M on average.
    assert table["present"].mean() == pytest.approx(171 / 2 / 168, abs=0.02)
    assert BalloonRisk().n_draws < 120
    trials = simulate(
        BalloonPumper, BalloonPumper.parameters.draw(np.random.default_rng(0), 3), BalloonRisk(), 0
    )
    assert trials.frame["trial"].max() < 1680
