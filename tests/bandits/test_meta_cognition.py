import numpy as np
import pandas as pd
import pytest

from knownminds.agents import RandomResponderConfidence
from knownminds.environments import Trials, correctness
from knownminds.inference import MEASURES

MEASURE, RELEASED = MEASURES["meta_cognition"], MEASURES["meta_cognition_released"]


def rows(correct, confidence, subject="a", session="0"):
    n = len(correct)
    return pd.DataFrame(
        {
            "subject": subject,
            "session": session,
            "trial": range(n),
            "action": [0 if right else 1 for right in correct],
            "response": confidence,
            "reward": 50.0,
            "mean_0": 60.0,
            "mean_1": 40.0,
        }
    )


def test_a_guesser_has_the_score_of_uniform_numbers():
    truth = MEASURE.truth(RandomResponderConfidence, np.empty((512, 0)))
    # Confidences that are evenly spread over [0, 1] have E (correct - c)**2 = 1/3; scaling by the
    # extremes of 80 spreads them by some 2.5%, which moves that by less than .01.
    assert truth.mean() == pytest.approx(2 / 3, abs=0.01)


def test_the_last_trial_of_a_block_is_no_longer_judged_by_the_next_block_once_a_row_is_gone():
    frame = rows([True] * 6, [0.1, 0.9, 0.5, 0.5, 0.5, 0.5])
    frame.loc[3:, ["mean_0", "mean_1"]] = 40.0, 60.0
    frame["action"] = [0, 0, 0, 1, 1, 1]
    whole = correctness(Trials.from_frame(frame), after=True)
    assert whole.tolist() == [1, 1, 0, 1, 1, 0]
    gone = correctness(Trials.from_frame(frame.drop(index=2)), after=True)
    assert np.array_equal(gone, [1, np.nan, 1, 1, 0], equal_nan=True)
