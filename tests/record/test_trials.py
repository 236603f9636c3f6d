import json
import time

import numpy as np
import pandas as pd
import pytest

from knownminds.agents import AGENTS, simulate
from knownminds.environments import (
    COLUMNS,
    InstrumentalLearning,
    Trials,
    environment_of,
    schema,
)


def table(**columns):
    rows = {
        "subject": ["a", "a", "b", "b"],
        "trial": [0, 1, 0, 1],
        "action": [0, 1, 1, 0],
        "reward": [1.0, 0.0, 0.0, 1.0],
        "context": [0, 1, 1, 0],
    }
    return pd.DataFrame({**rows, **columns})


def rich():
    """A record with everything that is hard to keep: gaps, odd texts, factors of all kinds."""
    return Trials.from_frame(
        pd.DataFrame(
            {
                "subject": ["007", "007", "7", "7"],
                "session": ["s2", "s2", "s1", "s1"],
                "trial": [0, 1, 0, 1],
                "action": pd.array([0, None, 1, 1], dtype="Int64"),
                "reward": [1.0, None, 0.1 + 0.2, 1e-17],
                "outcome": ["ok", "malformed", "repaired", "ok"],
                "raw_text": ["K", "NA", '"K",\nsaid\r\nhe', "  é  "],
                "attempt": [1, 1, 2, 1],
                "condition": ["01", "01", "2", "2"],
                "level": [1, 1, 2, 2],
                "dose": [0.1, 0.1, None, None],
                "drug": [True, True, False, False],
                "site": ["x", "x", None, None],
                "nothing": [None, None, None, None],
            }
        )
    )


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_saving_and_loading_give_the_same_record(tmp_path, suffix):
    trials = rich()
    trials.save(tmp_path / f"trials{suffix}")
    back = Trials.load(tmp_path / f"trials{suffix}")
    pd.testing.assert_frame_equal(back.frame, trials.frame, check_exact=True)
    assert back.subjects == ("007", "7")
    assert [p.name for p in tmp_path.iterdir()] == [f"trials{suffix}"]


def test_a_save_that_fails_leaves_the_old_file_and_no_part(tmp_path, monkeypatch):
    file = tmp_path / "trials.csv"
    rich().save(file)
    before = file.read_bytes()

    def fail(*_, **__):
        raise OSError("disk full")

    monkeypatch.setattr(pd.DataFrame, "to_csv", fail)
    with pytest.raises(OSError, match="disk full"):
        rich().save(file)
    assert file.read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 1


def test_ordering_an_ordered_record_changes_nothing():
    frame = table(subject=["a", "b", "b", "a"], session=["1", "2", "3", "3"], trial=[0, 0, 0, 0])
    once = Trials.from_frame(frame)
    assert list(once.frame["subject"] + once.frame["session"]) == ["a1", "a3", "b2", "b3"]
    pd.testing.assert_frame_equal(Trials.from_frame(once.frame).frame, once.frame)


def test_rows_are_ordered_by_subject_session_and_trial_in_order_of_appearance():
    frame = table().iloc[[3, 0, 2, 1]]
    trials = Trials.from_frame(frame)
    assert trials.subjects == ("b", "a")
    assert list(trials.frame["trial"]) == [0, 1, 0, 1]
    assert list(trials.frame["action"]) == [1, 0, 0, 1]
    assert list(trials.frame.index) == [0, 1, 2, 3]


def test_the_given_table_is_left_alone():
    frame = table()
    before = frame.copy()
    Trials.from_frame(frame, environment="instrumental_learning")
    pd.testing.assert_frame_equal(frame, before)


def test_own_column_names_are_mapped(tmp_path):
    frame = table().rename(columns={"subject": "run", "action": "choice"})
    frame["run"] = ["01", "01", "02", "02"]
    frame.to_csv(tmp_path / "own.csv", index=False)
    trials = Trials.load(tmp_path / "own.csv", columns={"subject": "run", "action": "choice"})
    assert trials.subjects == ("01", "02")
    assert list(trials.frame["action"]) == [0, 1, 1, 0]


def test_two_columns_can_swap_names():
    trials = Trials.from_frame(table(), columns={"context": "reward", "reward": "context"})
    assert list(trials.frame["reward"]) == [0, 1, 1, 0]


def test_whole_float_subjects_lose_their_point():
    assert Trials.from_frame(table(subject=[1.0, 1.0, 2.0, 2.0])).subjects == ("1", "2")


def test_defaults_are_one_session_and_the_outcome_ok():
    trials = Trials.from_frame(table())
    assert set(trials.frame["session"]) == {"0"}
    assert set(trials.frame["outcome"]) == {"ok"}
    assert (trials.n_subjects, trials.n_sessions, len(trials)) == (2, 2, 4)
    assert str(trials) == "trials: 2 subjects, 2 sessions, 4 trials (4 ok)"


def test_continuous_responses_need_no_action():
    frame = table(response=[0.1, 0.2, 0.3, 0.4]).drop(columns=["action"])
    assert list(Trials.from_frame(frame).frame["response"]) == [0.1, 0.2, 0.3, 0.4]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"trial": [0, 0, 0, 1]}, r'row 2 repeats subject "a", session "0", trial 0'),
        ({"trial": [0, None, 0, 1]}, "Every row has a trial number; row 2"),
        ({"subject": ["a", None, "b", "b"]}, "Every trial has a subject; row 2"),
        ({"subject": ["a", "NA", "b", "b"]}, "Every trial has a subject; row 2"),
        ({"action": [0, 1.5, 1, 0]}, "'action' holds whole numbers; row 2 has 1.5"),
        ({"action": ["0", "left", "1", "0"]}, "'action' holds whole numbers; row 2 has 'left'"),
        ({"reward": [1, 0, np.inf, 0]}, "'reward' holds numbers; row 3 has inf"),
        ({"action": [0, None, 1, 0]}, "needs an outcome that says why .*row 2"),
        ({"outcome": ["ok", "fine", "ok", "ok"]}, "row 2 has 'fine'"),
        ({"outcome": ["ok", "refused", "ok", "ok"]}, "row 2 has a response"),
        (
            {"outcome": ["ok"] * 4, "action": [0, 1, None, 0]},
            "row 3 has no response and the outcome 'ok'",
        ),
    ],
)
def test_what_breaks_a_rule_is_named_with_its_row(change, sentence):
    with pytest.raises(ValueError, match=sentence):
        Trials.from_frame(table(**change))


def test_missing_doubled_and_unknown_columns_are_named():
    with pytest.raises(ValueError, match=r"'subject' is missing .*--columns subject=YOUR_NAME"):
        Trials.from_frame(table().drop(columns="subject"))
    with pytest.raises(ValueError, match="'action' is missing"):
        Trials.from_frame(table().drop(columns="action"))
    with pytest.raises(ValueError, match="subject=run names none of"):
        Trials.from_frame(table(), columns={"subject": "run"})
    with pytest.raises(ValueError, match="'trial' is mapped more than once"):
        Trials.from_frame(table(), columns={"subject": "trial", "session": "trial"})
    with pytest.raises(ValueError, match="'action' appears more than once"):
        Trials.from_frame(table(choice=[0, 0, 0, 0]), columns={"action": "choice"})
    with pytest.raises(ValueError, match="at least one row"):
        Trials.from_frame(table().iloc[:0])


def test_unreadable_files_are_named(tmp_path):
    with pytest.raises(ValueError, match=r"there is none at .*no\.csv"):
        Trials.load(tmp_path / "no.csv")
    with pytest.raises(ValueError, match=r"\.parquet or \.csv; got 'a\.xlsx'"):
        Trials.load(tmp_path / "a.xlsx")
    (tmp_path / "empty.csv").write_text("")
    with pytest.raises(ValueError, match=r"empty\.csv is empty"):
        Trials.load(tmp_path / "empty.csv")
    (tmp_path / "header.csv").write_text("subject,trial,action\n")
    with pytest.raises(ValueError, match="at least one row"):
        Trials.load(tmp_path / "header.csv")
    (tmp_path / "twice.csv").write_text('subject,"trial",trial,action\na,0,0,0\n')
    with pytest.raises(ValueError, match=r"twice\.csv has 'trial' 2 times"):
        Trials.load(tmp_path / "twice.csv")
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\x00subject")
    with pytest.raises(ValueError, match=r"binary\.csv cannot be read as csv"):
        Trials.load(tmp_path / "binary.csv")
    (tmp_path / "binary.parquet").write_bytes(b"PAR0")
    with pytest.raises(ValueError, match=r"binary\.parquet cannot be read as parquet"):
        Trials.load(tmp_path / "binary.parquet")


def test_a_spreadsheet_export_with_a_byte_order_mark_is_read(tmp_path):
    (tmp_path / "excel.csv").write_bytes("\ufeffsubject,trial,action\r\n01,0,1\r\n".encode())
    assert Trials.load(tmp_path / "excel.csv").subjects == ("01",)


def test_records_are_put_together():
    other = table(subject=["c", "c", "d", "d"], condition=["x"] * 4)
    both = Trials.concatenate([Trials.from_frame(table()), Trials.from_frame(other)])
    assert both.subjects == ("a", "b", "c", "d")
    assert both.frame["condition"].isna().sum() == 4
    with pytest.raises(ValueError, match="at least one record"):
        Trials.concatenate([])
    with pytest.raises(ValueError, match="repeats subject"):
        Trials.concatenate([both, both])


def test_the_subject_frame_holds_what_is_constant_within_a_subject():
    trials = Trials.from_frame(
        table(group=["x", "x", "y", "y"], mood=[1, 2, 1, 1], site=[None, None, "z", "z"])
    )
    frame = trials.subject_frame()
    assert list(frame.columns) == ["group", "site"]
    assert frame.loc["b", "site"] == "z"
    assert pd.isna(frame.loc["a", "site"])


def test_an_environment_checks_actions_rewards_and_stimuli():
    environment = InstrumentalLearning()
    assert set(Trials.from_frame(table(), environment=environment).frame["environment"]) == {
        "instrumental_learning"
    }
    with pytest.raises(ValueError, match=r"are 0, 1; row 4 .subject \"b\", trial 1. has 2"):
        Trials.from_frame(table(action=[0, 1, 1, 2]), environment=environment)
    with pytest.raises(ValueError, match=r"are 0 or 1; row 2 .* has 0.5.*Recode"):
        Trials.from_frame(table(reward=[1, 0.5, 0, 0]), environment=environment)
    with pytest.raises(ValueError, match=r"row 2 .* an action but no reward"):
        Trials.from_frame(table(reward=[1, None, 0, 0]), environment=environment)
    silent = {"action": [0, None, 1, 0], "outcome": ["ok", "empty", "ok", "ok"]}
    with pytest.raises(ValueError, match=r"row 2 .* a reward but no action"):
        Trials.from_frame(table(**silent), environment=environment)
    silent["reward"] = [1, None, 0, 1]
    Trials.from_frame(table(**silent), environment=environment)
    for column in ("context", "reward"):
        with pytest.raises(ValueError, match=f"have a column '{column}'"):
            Trials.from_frame(table().drop(columns=column), environment=environment)
    with pytest.raises(ValueError, match="have a column 'action'"):
        Trials.from_frame(table(response=[0.0] * 4).drop(columns="action"), environment=environment)


def test_the_schema_is_published_as_json():
    assert [column["name"] for column in json.loads(schema())] == [c.name for c in COLUMNS]
    assert json.loads(Trials.from_frame(table()).to_json())[0]["subject"] == "a"


def test_ten_thousand_learners_are_checked_in_little_time():
    n = 10_000
    frame = pd.DataFrame(
        {
            "subject": np.repeat(np.arange(n), 96).astype(str),
            "trial": np.tile(np.arange(96), n),
            "action": np.tile([0, 1], 48 * n),
            "reward": np.tile([0.0, 1.0], 48 * n),
            "context": np.tile(np.arange(4), 24 * n),
        }
    )
    began = time.process_time()
    assert Trials.from_frame(frame, environment=InstrumentalLearning()).n_subjects == n
    assert time.process_time() - began < 6  # about one second on an idle core


class KnowsTheContext(InstrumentalLearning):
    """Completes a table that names contexts by letters."""

    def complete(self, trials):
        if "casino" not in trials.frame or "context" in trials.frame:
            return super().complete(trials)
        return trials.frame.assign(context=["KL".index(c) for c in trials.frame["casino"]])


def test_an_experiment_completes_a_table_before_it_is_checked(tmp_path):
    named = table(casino=["K", "L", "L", "K"]).drop(columns="context")
    with pytest.raises(ValueError, match="have a column 'context'"):
        Trials.from_frame(named, environment=InstrumentalLearning())
    trials = Trials.from_frame(named, environment=KnowsTheContext())
    columns = ["environment", "subject", "session", "trial", "casino", "context", "action"]
    assert list(trials.frame.columns)[:7] == columns
    assert trials.frame["context"].tolist() == [0, 1, 1, 0]
    assert "context" not in Trials.from_frame(named, environment="instrumental_learning").frame
    trials.save(tmp_path / "t.csv")
    again = Trials.load(tmp_path / "t.csv", environment=KnowsTheContext())
    pd.testing.assert_frame_equal(again.frame, trials.frame)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_the_settings_that_trials_were_made_with_come_back_from_a_file(tmp_path, suffix):
    """Guessed back from the columns these would be 24 visits at the rates of the original."""
    made = InstrumentalLearning(n_visits=3, win_probability=[[0.1, 0.9]], history="chat")
    trials = simulate(AGENTS["random_responder"], np.zeros((2, 0)), made, 5)
    trials.save(tmp_path / f"t{suffix}")
    back = Trials.load(tmp_path / f"t{suffix}")
    words = {"templates"}
    assert back.settings == {made.name: {k: v for k, v in made.settings.items() if k not in words}}
    found = environment_of(back, made.name)
    assert found.settings == made.settings
    pd.testing.assert_frame_equal(back.frame, trials.frame)
    again = Trials.concatenate([back, back_of_another(back)])
    assert again.settings == back.settings
    other = Trials.from_frame(back_of_another(back).frame, environment=type(made)(n_visits=4))
    assert Trials.concatenate([back, other]).settings == {}  # told by the columns, as ever


def back_of_another(trials):
    """Return the same trials of other subjects."""
    return Trials.from_frame(trials.frame.assign(subject="b" + trials.frame["subject"]))


def test_settings_in_a_column_of_a_table_are_taken_and_what_is_no_json_is_named():
    rows = pd.DataFrame({"subject": "a", "trial": [0, 1], "context": 0, "action": 1, "reward": 1.0})
    rows = rows.assign(environment="instrumental_learning", environment_settings=None)
    rows["environment_settings"] = ['{"n_visits": 2}', None]
    trials = Trials.from_frame(rows)
    assert trials.settings == {"instrumental_learning": {"n_visits": 2}}
    assert "environment_settings" not in trials.frame
    with pytest.raises(ValueError, match=r"holds settings as JSON; row 1 has 'n_visits'.*Leave"):
        Trials.from_frame(rows.assign(environment_settings="n_visits"))
    # A file of an earlier version has none.
    assert Trials.from_frame(rows.drop(columns="environment_settings")).settings == {}


def test_columns_whose_kind_is_known_come_out_as_those_that_are_read_value_by_value():
    plain = pd.DataFrame(
        {
            "subject": pd.Series(["a", "a", "b", "b"], dtype="str"),
            "trial": [0, 1, 0, 1],
            "action": [0.0, np.nan, 1.0, 1.0],
            "reward": [0.5, np.nan, 1.0, 0.0],
            "cue": [1, 2, 3, 4],
            "outcome": ["ok", "refused", "ok", "repaired"],
        }
    )
    found = Trials.from_frame(plain).frame
    pd.testing.assert_frame_equal(found, Trials.from_frame(plain.astype(object)).frame)
    assert found.dtypes.astype(str).to_dict()["action"] == "Int64"
    for name, value in (("trial", 0.5), ("action", 2.0**53), ("reward", np.inf), ("subject", "")):
        broken = plain.astype({"trial": float})
        broken.loc[2, name] = value
        told = []
        for frame in (broken, broken.astype(object)):
            with pytest.raises(ValueError, match="row 3") as error:
                Trials.from_frame(frame)
            told.append(str(error.value))
        assert told[0] == told[1]
