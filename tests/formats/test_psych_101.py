"""Sessions told as texts with the choices marked, and read back."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from played import played, short

from knownminds.environments import (
    ENVIRONMENTS,
    Answer,
    InstrumentalLearning,
    MarkerLocation,
    Outcome,
    Trials,
    answer_columns,
    make,
)
from knownminds.environments.formats.psych_101 import (
    psych_101_records,
    read_psych_101,
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
def test_a_session_comes_back_as_it_was_played(name, tmp_path):
    trials = played(name)
    write_psych_101(trials, tmp_path / "t.jsonl", short(name))
    back = read_psych_101(tmp_path / "t.jsonl")
    assert set(trials.frame) <= set(back.frame)
    for column in trials.frame:
        if pd.api.types.is_numeric_dtype(trials.frame[column]):
            there, here = numbers(trials.frame, column), numbers(back.frame, column)
            assert np.array_equal(there, here, equal_nan=True), column
        else:
            assert trials.frame[column].tolist() == back.frame[column].tolist(), column
    [line] = (tmp_path / "t.jsonl").read_text().splitlines()
    record = json.loads(line)
    assert (record["experiment"], record["participant"]) == (name, "0")
    # Every choice is marked, and nothing else is.
    assert len(re.findall("<<.*?>>", record["text"], re.DOTALL)) == len(trials)


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


@pytest.mark.parametrize("name", [name for name in TOLD if make(name).size])
def test_a_text_tells_of_sessions_as_long_as_they_were(name):
    place, size = short(name), make(name).size
    frame = played(name).frame
    for trials in (frame, frame.assign(trial=frame["trial"] + 1)):  # also if counted from 1
        [record] = psych_101_records(Trials.from_frame(trials))
        assert record["knownminds"]["settings"][size] == place.settings[size]
        back = trials_of_psych_101([record]).frame
        assert back["trial"].tolist() == trials["trial"].tolist()


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


def test_an_answer_that_could_not_be_read_stays_one():
    frame = played("instrumental_learning").frame.copy()
    frame["raw_text"] = None
    said = {2: ("refused", "I cannot answer that."), 5: ("malformed", "both, really"),
            8: ("error", None), 15: ("truncated", "Let me")}  # fmt: skip
    for row, (outcome, text) in said.items():
        frame.loc[row, ["action", "reward"]] = None
        frame.loc[row, "outcome"] = outcome
        frame.loc[row, "raw_text"] = text
    trials = Trials.from_frame(frame)
    records = psych_101_records(trials, short("instrumental_learning"))
    assert "<<I cannot answer that.>>" in records[0]["text"]
    back = trials_of_psych_101(records).frame
    assert back["outcome"].tolist() == trials.frame["outcome"].tolist()
    assert back["action"].isna().tolist() == trials.frame["action"].isna().tolist()
    assert back["action"].dropna().tolist() == trials.frame["action"].dropna().tolist()
    # Without our own field, what was said is judged anew: nothing was said on trial 8.
    seen = trials_of_psych_101(bare(records), short("instrumental_learning")).frame["outcome"]
    assert [seen[2], seen[5], seen[8]] == ["refused", "malformed", "empty"]


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


def test_several_experiments_stand_in_one_file():
    both = Trials.concatenate([played("coins"), played("two_step")])
    back = trials_of_psych_101(psych_101_records(both))
    assert back.frame["environment"].tolist() == both.frame["environment"].tolist()
    assert back.frame["action"].tolist() == both.frame["action"].tolist()


@pytest.mark.parametrize(
    ("name", "change", "sentence"),
    [
        ("diagnosis", {}, "Trials of diagnosis cannot be told in a text that tells them back"),
        ("coins", {"environment": None}, "do not name it"),
        ("coins", {"environment": "coinz"}, "There is no environment named 'coinz'"),
        ("instrumental_learning", {"first": None}, "tell of 'first', which these trials lack"),
        (
            "coins",
            {"action": None, "outcome": "malformed", "raw_text": "a << b"},
            "marks choices with << and >>; trial 0",
        ),
    ],
)
def test_what_cannot_be_told_is_refused_with_one_sentence(name, change, sentence):
    frame = played(name).frame.head(50).copy().assign(**change)
    if "action" in change:
        frame["action"] = frame["action"].astype("Int64")
    with pytest.raises(ValueError, match=re.escape(sentence)):
        psych_101_records(Trials.from_frame(frame))


def test_a_text_that_would_be_read_otherwise_is_not_written(tmp_path):
    class Misread(InstrumentalLearning):
        def parse(self, text, observation):
            return Answer(Outcome.OK, action=0, text=text)

    trials = played("instrumental_learning")
    assert trials.frame["action"].nunique() == 2
    with pytest.raises(ValueError, match="cannot be told: its text would be read with other"):
        write_psych_101(trials, tmp_path / "t.jsonl", Misread(n_visits=4))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", sorted(NOT_TOLD))
def test_what_no_text_tells_back_is_refused_in_a_sentence(name):
    with pytest.raises(ValueError, match=r"text|distributions"):
        psych_101_records(played(name), short(name))


def test_pictures_are_refused():
    place = MarkerLocation(modality="image")
    frame = played("marker_location").frame.assign(modality=1)
    with pytest.raises(ValueError, match="A text cannot show pictures"):
        psych_101_records(Trials.from_frame(frame), place)


@pytest.mark.parametrize(
    ("record", "sentence"),
    [
        ({"experiment": "coins", "participant": 1}, "line 1 has no 'text'"),
        ({"text": "a <<b>>", "experiment": "other2020tasks/exp1.csv", "participant": 1},
         "Line 1 cannot be read: There is no environment named 'other2020tasks/exp1.csv'"),
        ({"text": "Heads or tails?", "experiment": "coins", "participant": 1},
         "Choices stand between << and >>; the text has none"),
        ({"text": "Heads or tails? <<heads>> You win.", "experiment": "coins", "participant": 1},
         "ends with a choice; this one goes on with 'You win.'"),
        ({"text": "Heads or tails? <<heads>>", "experiment": "coins", "participant": 1},
         "Line 1 cannot be read"),
    ],
    ids=["field", "experiment", "marks", "end", "words"],
)  # fmt: skip
def test_a_text_of_other_words_is_refused(record, sentence):
    with pytest.raises(ValueError, match=re.escape(sentence)):
        trials_of_psych_101([record])


def test_a_file_that_is_none_is_refused(tmp_path):
    with pytest.raises(ValueError, match="there is none at"):
        read_psych_101(tmp_path / "none.jsonl")
    (tmp_path / "a.jsonl").write_text("\n[1]\n")
    with pytest.raises(ValueError, match=r"line 2 of a.jsonl begins '\[1\]"):
        read_psych_101(tmp_path / "a.jsonl")
    (tmp_path / "b.jsonl").write_text("")
    with pytest.raises(ValueError, match="there is none"):
        read_psych_101(tmp_path / "b.jsonl")
