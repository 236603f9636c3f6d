"""Sessions told as texts with the choices marked, and read back."""

import numpy as np
import pandas as pd
import pytest
from played import played, short

from knownminds.environments import (
    ENVIRONMENTS,
    Answer,
    InstrumentalLearning,
    Outcome,
    Trials,
    answer_columns,
    make,
)
from knownminds.environments.formats.psych_101 import (
    psych_101_records,
    trials_of_psych_101,
    write_psych_101,
)

# Not told: distributions, pictures, and questions that only their own session can find again.
NOT_TOLD = {"diagnosis", "cue_conflict", "causal_strength"}
TOLD = [name for name in ENVIRONMENTS if name not in NOT_TOLD]
# Names are found in the text, but not which of them stood first: actions may be numbered anew.
RENAMED = {"instrumental_learning", "balloon_risk", "two_step", "restless_bandit", "horizon"}
RENAMED |= {"reversal_learning", "iowa_gambling"}


def numbers(frame, column):
    return frame[column].to_numpy(dtype=float, na_value=np.nan)


def bare(records):
    return [{k: r[k] for k in ("text", "experiment", "participant")} for r in records]


@pytest.mark.parametrize("name", TOLD)
def test_the_three_fields_alone_tell_the_answers(name):
    trials, place = played(name), short(name)
    back = trials_of_psych_101(bare(psych_101_records(trials, place)), place)
    assert len(back) == len(trials)
    assert set(back.frame["outcome"]) == {"ok"}
    for column in answer_columns(place):
        here, there = numbers(trials.frame, column), numbers(back.frame, column)
        if name in RENAMED and column == "action":
            assert np.isfinite(there).all()
        else:
            assert np.array_equal(here, there, equal_nan=True)
    for column in {"value", "probability"} & set(trials.frame):
        assert np.array_equal(numbers(trials.frame, column), numbers(back.frame, column))


def test_names_found_in_a_text_give_the_actions_up_to_their_numbering():
    place, trials = make("restless_bandit", n_blocks=1), played("restless_bandit")
    [record] = psych_101_records(trials, place)
    first, second = record["knownminds"]["labels"]["machines"]
    back = trials_of_psych_101(bare([record]), place).frame
    same = first < second  # machine 0 is then the one whose letter comes first
    assert (back["action"] == trials.frame["action"]).all() == same
    assert (back["action"] == 1 - trials.frame["action"]).all() != same


def test_what_the_text_does_not_tell_is_missing_and_not_invented():
    trials = played("marker_location")
    back = trials_of_psych_101(bare(psych_101_records(trials, short("marker_location"))))
    assert "item" in trials.frame
    assert "item" not in back.frame
    assert (
        "true_mean_0"
        not in trials_of_psych_101(
            bare(psych_101_records(played("horizon"), short("horizon"))), short("horizon")
        ).frame
    )


def test_sessions_and_subjects_keep_their_names():
    a, b = (played("coins", seed).frame for seed in (3, 4))
    named = [("x", "late", a), ("x", "early", b), ("y", "0", b)]
    parts = [frame.assign(subject=who, session=when) for who, when, frame in named]
    trials = Trials.from_frame(pd.concat(parts))
    records = psych_101_records(trials)
    back = trials_of_psych_101(records)
    for column in ("subject", "session", "action"):
        assert back.frame[column].tolist() == trials.frame[column].tolist()
    counted = trials_of_psych_101(bare(records))  # else sessions are counted
    assert counted.frame["session"].unique().tolist() == ["0", "1"]
    assert (counted.n_subjects, counted.n_sessions) == (2, 3)


def test_a_text_that_would_be_read_otherwise_is_not_written(tmp_path):
    class Misread(InstrumentalLearning):
        def parse(self, labels, text, observation):
            return Answer(Outcome.OK, action=0, text=text)

    trials = played("instrumental_learning")
    assert trials.frame["action"].nunique() == 2
    with pytest.raises(ValueError, match="cannot be told: its text would be read with other"):
        write_psych_101(trials, tmp_path / "t.jsonl", Misread(n_visits=4))
    assert list(tmp_path.iterdir()) == []
