from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from knownminds.agents import (
    ChangePointObserver,
    RandomResponderConfidence,
    RescorlaWagnerConfidence,
    simulate,
)
from knownminds.environments import RestlessBandit, Trials, correctness
from knownminds.inference import MEASURES, MetaCognition
from knownminds.inference.bandits.meta_cognition import scores
from knownminds.validation.power.dials import GroupDial

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


def test_shifting_or_stretching_confidences_changes_nothing_and_reversing_them_does():
    correct, confidence = [True, False, True, False], np.array([0.9, 0.2, 0.6, 0.5])
    plain = value(rows(correct, confidence)).value
    assert np.allclose(plain, value(rows(correct, 0.3 * confidence + 0.1)).value)
    assert value(rows(correct, 1 - confidence)).value[0] < plain[0] - 0.2


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


@pytest.mark.parametrize("model", [ChangePointObserver, RescorlaWagnerConfidence])
@pytest.mark.parametrize("measure", [MEASURE, RELEASED])
def test_the_truth_is_the_mean_over_other_sessions_too(model, measure):
    theta = model.parameters.draw(np.random.default_rng(3), 4)
    truth, n = measure.truth(model, theta), 500
    assert np.array_equal(truth, measure.truth(model, theta))
    trials = simulate(model, np.repeat(theta, n, axis=0), RestlessBandit(), 77)
    values = measure.values(trials).value.reshape(4, n)
    # Both means rest on samples: 500 sessions here and 2,048 there.
    error = values.std(axis=1) * np.sqrt(1 / n + 1 / 2048)
    assert np.all(np.abs(values.mean(axis=1) - truth) < 4 * error)


def test_the_dial_moves_the_group_steadily():
    mean, spread = ChangePointObserver.parameters.mean, ChangePointObserver.parameters.sd
    for released in (False, True):
        measure = MetaCognition(released)
        measure.dial = replace(measure.dial, steps=5)
        values = GroupDial(measure, ChangePointObserver, mean, spread).curve[1]
        assert np.all(np.diff(values) > 0)
        assert values[0] < 0.7 < 0.8 < values[-1]


def test_missing_columns_are_named():
    frame = rows([True, False], [0.5, 0.6])
    with pytest.raises(ValueError, match="the trials have no 'response'"):
        value(frame.drop(columns="response"))
    with pytest.raises(ValueError, match="no 'mean_0'"):
        value(frame.drop(columns="mean_0"))


@pytest.mark.parametrize("measure", [MEASURE, RELEASED])
def test_a_row_that_was_dropped_and_one_marked_malformed_give_the_same(measure):
    lived = simulate(ChangePointObserver, ChangePointObserver.parameters.draw(
        np.random.default_rng(0), 1), RestlessBandit(), 0).to_frame()  # fmt: skip
    ends = np.flatnonzero(np.diff(lived["block"].to_numpy(dtype=int)) == 1)
    for row in (1, *ends.tolist(), *(ends + 1).tolist(), *(ends - 3).tolist()):
        marked = lived.copy()
        marked.loc[row, ["action", "response", "reward"]] = None
        marked.loc[row, "outcome"] = "malformed"
        dropped = lived.drop(index=row)
        gone, unread = (measure.values(Trials.from_frame(f)).value[0] for f in (dropped, marked))
        if {row, row - 1} & set(ends) and measure is RELEASED:
            # The trial before is not judged: the swap may have come after it, or one trial later.
            assert abs(gone - unread) < 1 / 79
        else:
            assert gone == pytest.approx(unread, abs=1e-12)


def test_the_last_trial_of_a_block_is_no_longer_judged_by_the_next_block_once_a_row_is_gone():
    frame = rows([True] * 6, [0.1, 0.9, 0.5, 0.5, 0.5, 0.5])
    frame.loc[3:, ["mean_0", "mean_1"]] = 40.0, 60.0
    frame["action"] = [0, 0, 0, 1, 1, 1]
    whole = correctness(Trials.from_frame(frame), after=True)
    assert whole.tolist() == [1, 1, 0, 1, 1, 0]
    gone = correctness(Trials.from_frame(frame.drop(index=2)), after=True)
    assert np.array_equal(gone, [1, np.nan, 1, 1, 0], equal_nan=True)
