import numpy as np
import pandas as pd

from knownminds.agents import BalloonPumper, RandomResponder
from knownminds.environments import BalloonRisk, Trials
from knownminds.inference import MEASURES

MEASURE = MEASURES["risk"]


def trials_of(table):
    frame = pd.DataFrame(
        table, columns=["subject", "trial", "balloon", "type", "pump", "action", "reward"]
    )
    frame["outcome"] = np.where(frame["action"].isna(), "malformed", "ok")
    return Trials.from_frame(frame.astype({"action": "Int64"}))


def test_balloons_that_did_not_end_are_left_out_and_nobody_is_given_a_zero():
    rows = [
        ("a", 0, 0, 0, 1, 1, 1.0),
        ("a", 1, 0, 0, 2, None, None),  # taken away
        ("a", 2, 1, 0, 1, 0, 0.0),
        ("b", 0, 0, 0, 1, None, None),
        ("b", 1, 1, 0, 1, 1, 1.0),  # the data break off
    ]
    values = MEASURE.values(trials_of(rows))
    assert values.value[0] == 0.0
    assert np.isnan(values.value[1])
    assert values.reason == ("", "no balloon ended")
    told = MEASURE.over_subjects(values)
    assert told.n == 1
    assert told.excluded == {"no balloon ended": 1}


def test_the_truth_of_random_answers_is_that_of_the_formula():
    maxima, repeats = (128, 32, 8), 30
    exact = np.mean([sum(0.5**k * (m - k + 1) / m for k in range(1, m + 1)) for m in maxima])
    drawn = [MEASURE.truth(RandomResponder, np.zeros((repeats, 0))).mean()]
    # A balloon's attempts have a variance of about 2; there are 4,110 sessions of 30.
    assert abs(drawn[0] - exact) < 4 * np.sqrt(2 / 4110 / 30)


def test_in_another_design_another_value_is_true():
    theta = np.array([[0.9, 0.05, 1.0, 0.4]])
    few, many, small = (
        MEASURE.in_place(BalloonRisk(**design)).truth(BalloonPumper, theta)[0]
        for design in ({"n_balloons": 1}, {"n_balloons": 20}, {"maxima": (4,)})
    )
    assert many > few + 1  # who expects the worst learns that most pumps hold
    assert small < 4
