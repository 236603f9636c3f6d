import numpy as np
import pandas as pd
import pytest

from knownminds.agents import (
    ChangePointObserver,
    RandomResponderConfidence,
    simulate,
)
from knownminds.environments import RestlessBandit, Trials, correctness
from knownminds.inference import MEASURES
from knownminds.inference.bandits.meta_cognition import scores

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


def value(*frames, measure=MEASURE):
    return measure.values(Trials.from_frame(pd.concat(frames, ignore_index=True)))


def test_the_score_is_the_published_one():
    # Scaled confidences 0, 1, 0.5: errors 1, 0 and -0.5.
    found = value(rows([True, True, False], [0.2, 0.6, 0.4]))
    assert found.value[0] == pytest.approx(1 - (1 + 0 + 0.25) / 3)


def test_confidences_are_scaled_within_each_session():
    one = rows([True, False], [0.9, 0.5])
    other = rows([True, False], [0.3, 0.1], session="1")
    assert value(one, other).value[0] == 1.0
    together = pd.concat([one, other.assign(session="0", trial=[2, 3])])
    assert value(together).value[0] < 1.0


def test_a_constant_confidence_is_scored_as_it_is():
    found = value(rows([True, True, False], [0.7] * 3))
    assert found.value[0] == pytest.approx(1 - (0.09 + 0.09 + 0.49) / 3)


def test_missing_answers_are_left_out_and_a_subject_without_any_is_counted():
    frame = rows([True, True, False, True], [0.2, 0.6, 0.4, 1.0])
    frame.loc[3, ["action", "response", "reward"]] = None
    frame["outcome"] = ["ok", "ok", "ok", "malformed"]
    silent = rows([True, True], [0.5, 0.5], subject="b").assign(outcome="refused")
    silent[["action", "response", "reward"]] = None
    found = value(frame, silent)
    assert found.value[0] == pytest.approx(1 - 1.25 / 3)
    assert np.isnan(found.value[1])
    assert found.reason == ("", "no answer")
    other = rows([True, False], [0.8, 0.1], subject="c").assign(outcome="ok")
    trials = Trials.from_frame(pd.concat([frame, silent, other], ignore_index=True))
    estimate = MEASURE.estimate(trials)
    assert estimate.excluded == {"no answer": 1, "trials without an answer": 3}
    assert estimate.n == 2


def test_the_released_score_takes_right_for_wrong_where_a_block_ends():
    theta = ChangePointObserver.parameters.draw(np.random.default_rng(0), 300)
    trials = simulate(ChangePointObserver, theta, RestlessBandit(), 1)
    frame = trials.frame
    plain, released = MEASURE.values(trials).value, RELEASED.values(trials).value
    following = frame.groupby("subject", sort=False)["block"].shift(-1).fillna(-1)
    ends = (following != frame["block"]).to_numpy()
    right = (frame["action"] == (frame["mean_1"] > frame["mean_0"])).to_numpy()
    session = frame["subject"].astype(int).to_numpy()
    by_hand = scores(
        np.where(ends, ~right, right).astype(float), frame["response"].to_numpy(), session
    )
    assert np.allclose(released, by_hand.reshape(300, -1).mean(axis=1))
    # Four of 80 trials are misjudged: good observers lose by it.
    assert plain[plain > 0.85].mean() - released[plain > 0.85].mean() > 0.02


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
