import numpy as np
import pandas as pd
import pytest
from scipy.special import logit

from knownminds.agents import AGENTS, TwoStepHybrid, simulate
from knownminds.environments import Trials, TwoStep
from knownminds.inference import MEASURES, ModelBasedness

BOTH = (ModelBasedness(), ModelBasedness(released=True))


def drawn(model, n, seed=0, **held):
    theta = model.parameters.draw(np.random.default_rng(seed), n)
    for name, value in held.items():
        theta[:, model.parameters.index(name)] = value
    return theta


def session(name, days):
    """Make one session of days (shuttle, planet, gems); None for a missing shuttle."""
    rows = []
    for day, (flight, planet, gems) in enumerate(days):
        rows.append((2 * day, 0, -1, flight, np.nan))
        if flight is not None:
            rows.append((2 * day + 1, 1, planet, None if gems is None else 0, gems))
    frame = pd.DataFrame(rows, columns=["trial", "stage", "state", "action", "reward"])
    frame["action"], frame["transition"] = frame["action"].astype("Int64"), 0.7
    frame["reward"] = frame["reward"].astype(float)
    frame["outcome"] = np.where(frame["action"].isna(), "malformed", "ok")
    return frame.assign(subject=name)


def pairs(stays):
    """Make sessions of two days with given numbers of (leaves, stays) by [reward][common]."""
    frames = []
    for reward in (0, 1):
        for common in (0, 1):
            for stay, n in enumerate(stays[reward][common]):
                for _ in range(n):
                    days = [(1, common, reward), (stay, stay, 0)]
                    frames.append(session(str(len(frames)), days))
    return Trials.from_frame(pd.concat(frames), environment=TwoStep(2))


def test_the_coefficient_is_the_difference_of_differences_by_hand():
    trials = pairs([[(5, 15), (10, 10)], [(12, 8), (4, 16)]])
    odds = logit([[0.75, 0.5], [0.4, 0.8]])
    expected = odds[1, 1] - odds[1, 0] - odds[0, 1] + odds[0, 0]
    found = BOTH[0].estimate(trials)
    assert found.value == pytest.approx(expected, abs=1e-6)
    assert (found.n, found.unit) == (80, "day")
    # One pair a session: the robust error is that of the counts, but for its finite-sample factor.
    error = np.sqrt(sum(1 / n for n in (5, 15, 10, 10, 12, 8, 4, 16)))
    assert found.standard_error == pytest.approx(error, rel=0.03)
    linear = BOTH[1].estimate(trials)
    assert linear.value == pytest.approx((0.8 - 0.4 - 0.5 + 0.75) / 4, abs=1e-9)


def test_days_without_an_answer_are_counted_and_left_out():
    days = [(1, 1, 1), (1, 1, 0), (None, -1, None), (0, 0, 1), (0, 1, None), (1, 0, 1), (1, 1, 1)]
    trials = Trials.from_frame(session("a", days), environment=TwoStep(7))
    found = BOTH[0].estimate(trials)
    # Of six days that are followed by one: day 1 and 2 lack a flight, day 4 a deal.
    assert found.excluded["no answer"] == 3
    assert found.n == 3
    assert np.isnan(found.value)
    assert found.excluded["too few rows"] == 3


def test_sessions_are_not_joined_where_they_meet():
    frame = pd.concat(
        [session("a", [(1, 1, 1), (1, 1, 0)]), session("a", [(0, 0, 1), (0, 0, 1)])],
        keys=["0", "1"], names=["session"],
    ).reset_index("session")  # fmt: skip
    assert BOTH[0].estimate(Trials.from_frame(frame)).n == 2


def test_somebody_who_always_stays_after_some_days_has_no_estimate():
    found = BOTH[0].estimate(pairs([[(5, 15), (10, 10)], [(12, 8), (0, 20)]]))
    assert np.isnan(found.value)
    assert np.isnan(found.p_value)
    assert found.excluded["separation"] == 80


def test_each_mind_has_a_truth_of_its_own_and_minds_without_reward_have_none():
    theta = drawn(TwoStepHybrid, 3, w=0.5)
    theta[:, TwoStepHybrid.parameters.index("w")] = [1e-6, 0.5, 1 - 1e-6]
    fixed = {"alpha_1": 0.5, "alpha_2": 0.5, "lambda_": 0.8, "beta_1": 5, "beta_2": 4, "pi": 0.2}
    for name, value in fixed.items():
        theta[:, TwoStepHybrid.parameters.index(name)] = value
    truth = BOTH[0].truth(TwoStepHybrid, theta)
    assert truth.shape == (3,)
    # Of 256 sessions each: a standard error of about .13.
    assert abs(truth[0]) < 0.5 < truth[2]
    assert truth[0] < truth[1] < truth[2]
    for name in ("random_responder", "perseverator"):
        model = AGENTS[name]
        assert BOTH[0].truth(model, drawn(model, 2)).tolist() == [0.0, 0.0]
        assert BOTH[0].group_truth(model, drawn(model, 2)) == 0.0


def test_intervals_hold_the_truth_as_often_as_they_say():
    held, n = [], 100
    truth = BOTH[0].group_truth(TwoStepHybrid, drawn(TwoStepHybrid, 512))
    for seed in range(n):
        theta = drawn(TwoStepHybrid, 60, seed)
        found = BOTH[0].estimate(simulate(TwoStepHybrid, theta, TwoStep(20), seed))
        held.append(found.low < truth < found.high)
    # 3.5 Monte-Carlo errors.
    assert abs(np.mean(held) - 0.95) < 3.5 * np.sqrt(0.95 * 0.05 / n)


def test_who_always_takes_the_same_shuttle_has_none_and_no_test():
    always = np.array([[0.5, 0.5, 0.5, 0.0, 5.0, 0.5, 50.0]])
    for seed in range(14):
        lived = simulate(TwoStepHybrid, always, TwoStep(200), seed)
        for name in ("model_basedness", "model_basedness_released"):
            found = MEASURES[name].estimate(lived)
            assert np.isnan([found.value, found.p_value]).all()
        assert found.excluded == {"no answer": 0, "no variation": 199}
