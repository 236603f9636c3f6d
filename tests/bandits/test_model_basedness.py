import numpy as np
import pandas as pd
import pytest

from knownminds.agents import TwoStepHybrid, simulate
from knownminds.environments import Trials, TwoStep
from knownminds.inference import MEASURES
from knownminds.inference.regression import coefficient

BOTH = (MEASURES["model_basedness"], MEASURES["model_basedness_released"])


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


def test_errors_go_by_subjects_who_differ_and_not_by_their_sessions():
    theta = np.repeat(drawn(TwoStepHybrid, 8, 2), 5, axis=0)
    frame = simulate(TwoStepHybrid, theta, TwoStep(20), 2).to_frame()
    number = frame["subject"].astype(int)
    several = frame.assign(subject=(number // 5).astype(str), session=(number % 5).astype(str))
    trials = Trials.from_frame(several)
    counts, stays, regressors = BOTH[0].design(trials)
    given = {name: column[counts] for name, column in regressors.items()}
    owner = trials.frame["subject"][counts].to_numpy()
    expected = coefficient("interaction", stays[counts], given, clusters=owner)
    found = BOTH[0].estimate(trials)
    assert (found.value, found.low, found.p_value) == (
        expected.value, expected.low, expected.p_value,
    )  # fmt: skip
    # Each session as a subject: errors without what subjects' differences add.
    assert BOTH[0].estimate(Trials.from_frame(frame)).low != found.low


@pytest.mark.long
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
