"""The score of the questionnaire: its ends, its branches, its truth, the released variant."""

import numpy as np
import pandas as pd
import pytest

from knownminds.agents import (
    ExponentialDiscounter,
    HyperbolicDiscounter,
    QuasiHyperbolicDiscounter,
    RandomResponder,
    simulate,
)
from knownminds.environments import TemporalDiscounting, Trials
from knownminds.inference import MEASURES

SCORE, RELEASED = MEASURES["temporal_discounting"], MEASURES["temporal_discounting_released"]


def questionnaires(choose):
    """Return the trials of a subject who chooses so, by trial number and observation."""
    environment, rows, over = TemporalDiscounting(), [], False
    observation, _ = environment.reset(seed=0)
    while not over:
        action = choose(observation)
        rows.append({**observation, "action": action})
        observation, _, over, _, _ = environment.step(action)
    return Trials.from_frame(frame_of(rows), environment=environment)


def frame_of(rows):
    frame = pd.DataFrame(rows).assign(subject="a")
    frame["outcome"] = np.where(frame["action"].isna(), "malformed", "ok")
    return frame


def test_the_ends_are_reached():
    always_sooner, always_later = (questionnaires(lambda seen, a=a: a) for a in (0, 1))
    assert SCORE.values(always_sooner).value.tolist() == [19.0]
    assert SCORE.values(always_later).value.tolist() == [0.0]


@pytest.mark.parametrize(
    ("path", "points"),
    [
        ((1, 1, 1), 0), ((1, 1, 0), 1), ((1, 0, -1), 2), ((0, 1, -1), 3), ((0, 0, 1), 4),
        ((0, 0, 0), 5),
    ],
)  # fmt: skip
@pytest.mark.parametrize("baseline", [0, 1, 2])
def test_a_baseline_scores_where_the_switch_lies(path, points, baseline):
    actions = np.ones((1, 13), dtype=int)
    actions[0, 3 * baseline : 3 * baseline + 3] = path
    assert SCORE.score(actions).tolist() == [points]


@pytest.mark.parametrize("item", [0, 1, 2, 3])
def test_each_item_scores_one_for_the_sooner_sum_and_the_released_fourth_for_the_later(item):
    actions = np.ones((1, 13), dtype=int)
    plain, released = SCORE.score(actions)[0], RELEASED.score(actions)[0]
    assert (plain, released) == (0, 1)
    actions[0, 9 + item] = 0
    assert SCORE.score(actions)[0] == 1
    assert RELEASED.score(actions)[0] == (0 if item == 3 else 2)


def test_the_released_score_skips_the_items_of_who_never_waited():
    sooner = np.zeros((1, 13), dtype=int)
    assert RELEASED.score(sooner).tolist() == [15.0]
    # Only the first baseline decides on that.
    sooner[0, 2] = 1
    assert RELEASED.score(sooner).tolist() == [4 + 5 + 5 + 3]


def test_an_item_without_an_answer_leaves_no_score():
    for gap in (0, 4, 11):
        values = SCORE.values(questionnaires(lambda s, gap=gap: None if s["trial"] == gap else 0))
        assert np.isnan(values.value).all()
        assert values.reason == ("unanswered items",)


def test_sessions_of_a_subject_are_averaged_and_incomplete_ones_left_out():
    one, two, gap = (
        questionnaires(choose).frame
        for choose in (lambda s: 0, lambda s: 1, lambda s: None if s["trial"] == 9 else 0)
    )
    parts = [one.assign(session="0"), two.assign(session="1"), gap.assign(session="2")]
    trials = Trials.concatenate([Trials.from_frame(part) for part in parts])
    values = SCORE.values(trials)
    assert values.value.tolist() == [9.5]
    assert values.reason == ("",)


@pytest.mark.parametrize(
    "model",
    [RandomResponder, ExponentialDiscounter, HyperbolicDiscounter, QuasiHyperbolicDiscounter],
)
@pytest.mark.parametrize("measure", [SCORE, RELEASED])
def test_the_truth_is_the_mean_over_many_questionnaires(model, measure):
    n, theta = 4000, model.parameters.draw(np.random.default_rng(3), 4)
    lived = simulate(model, np.repeat(theta, n, axis=0), TemporalDiscounting(), 1)
    values = measure.values(lived).value.reshape(4, n)
    error = values.std(axis=1) / np.sqrt(n)
    # Four standard errors, eight tests of four minds each. Courses so rare that some minds never
    # take them have at most a few points in one of the questionnaires.
    off = np.abs(values.mean(axis=1) - measure.truth(model, theta))
    assert (off < 4 * error + 10 / n).all()
