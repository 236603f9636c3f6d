import numpy as np
import pandas as pd
import pytest

from knownminds.agents import AGENTS, simulate
from knownminds.environments import InstrumentalLearning, Trials, environment_of


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


def test_rows_are_ordered_by_subject_session_and_trial_in_order_of_appearance():
    frame = table().iloc[[3, 0, 2, 1]]
    trials = Trials.from_frame(frame)
    assert trials.subjects == ("b", "a")
    assert list(trials.frame["trial"]) == [0, 1, 0, 1]
    assert list(trials.frame["action"]) == [1, 0, 0, 1]
    assert list(trials.frame.index) == [0, 1, 2, 3]


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


def test_records_are_put_together():
    other = table(subject=["c", "c", "d", "d"], condition=["x"] * 4)
    both = Trials.concatenate([Trials.from_frame(table()), Trials.from_frame(other)])
    assert both.subjects == ("a", "b", "c", "d")
    assert both.frame["condition"].isna().sum() == 4
    with pytest.raises(ValueError, match="at least one record"):
        Trials.concatenate([])
    with pytest.raises(ValueError, match="repeats subject"):
        Trials.concatenate([both, both])


def test_an_environment_checks_actions_rewards_and_stimuli():
    environment = InstrumentalLearning()
    assert set(Trials.from_frame(table(), environment=environment).frame["environment"]) == {
        "instrumental_learning"
    }
    with pytest.raises(ValueError, match=r"are 0, 1; row 4 .subject \"b\", trial 1. has action 2"):
        Trials.from_frame(table(action=[0, 1, 1, 2]), environment=environment)
    with pytest.raises(ValueError, match=r"are 0 or 1; row 2 .* has reward 0.5.*Recode"):
        Trials.from_frame(table(reward=[1, 0.5, 0, 0]), environment=environment)
    with pytest.raises(ValueError, match=r"row 2 .* has action 1, no reward"):
        Trials.from_frame(table(reward=[1, None, 0, 0]), environment=environment)
    silent = {"action": [0, None, 1, 0], "outcome": ["ok", "empty", "ok", "ok"]}
    with pytest.raises(ValueError, match=r"row 2 .* has no action, reward 0"):
        Trials.from_frame(table(**silent), environment=environment)
    silent["reward"] = [1, None, 0, 1]
    Trials.from_frame(table(**silent), environment=environment)
    for column in ("context", "reward"):
        with pytest.raises(ValueError, match=f"have a column '{column}'"):
            Trials.from_frame(table().drop(columns=column), environment=environment)
    with pytest.raises(ValueError, match="have a column 'action'"):
        Trials.from_frame(table(response=[0.0] * 4).drop(columns="action"), environment=environment)


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


def test_a_blank_at_the_end_of_an_id_makes_no_other_subject(tmp_path):
    file = tmp_path / "people.csv"
    file.write_text('subject,session,trial,action\n"a ",1,0,1\na," 1",1,0\n b,1,0,1\n')
    trials = Trials.load(file)
    assert trials.frame["subject"].tolist() == ["a", "a", "b"]
    assert trials.n_sessions == 2
