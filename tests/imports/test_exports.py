"""What goes out in others' columns comes back the same; a row that a schema shows is a trial."""

from types import SimpleNamespace

import pandas as pd
import pytest
import their_files
from claims import check
from claims.command_line import REPORT

from knownminds.environments import ENVIRONMENTS, Trials, make, trial_schema
from knownminds.validation.cli import main
from knownminds.validation.data.exchange import export_trials, import_trials
from knownminds.validation.engine.sample import sample
from knownminds.validation.imports.importing import import_tables

HBAYESDM = (their_files.hb_bandit, their_files.hb_two_step, their_files.hb_balloons,
            their_files.hb_cards, their_files.hb_sums)  # fmt: skip


@pytest.mark.parametrize("make_file", HBAYESDM, ids=lambda one: one.__name__)
def test_a_table_of_hbayesdm_goes_out_as_it_came_in(make_file, tmp_path):
    made = make_file(seed=7)
    (tmp_path / made.name).write_text(made.text)
    trials, _ = import_tables([tmp_path / made.name], **made.options)
    export_trials(trials, tmp_path / "again.txt", "hbayesdm")
    there, again = (pd.read_csv(tmp_path / name, sep="\t") for name in (made.name, "again.txt"))
    # Without a choice there is no outcome of it.
    if "choice" in there and "outcome" in there:
        there.loc[there["choice"].isna(), "outcome"] = float("nan")
    pd.testing.assert_frame_equal(there, again[there.columns], check_dtype=False)


def test_casinos_are_not_joined_to_one_course_of_learning(tmp_path, capsys):
    trials = sample(make("instrumental_learning", n_visits=3), subjects=2, seed=1).trials
    trials.save(tmp_path / "trials.csv")
    words = ["export", str(tmp_path / "trials.csv"), "--format", "hbayesdm", "--out"]
    with pytest.raises(SystemExit):
        main([*words, str(tmp_path / "b.txt")])
    said = " ".join(capsys.readouterr().err.split())
    check(REPORT, [said], SimpleNamespace(file=tmp_path / "b.txt", rows=trials.frame))
    told = pd.read_csv(tmp_path / "b.txt", sep="\t")
    assert told["subjID"].nunique() == 8
    kept = trials.frame[trials.frame["subject"].astype(str) == "1"].query("context == 2")
    own = told["subjID"] == "1 | 2"
    assert (told.loc[own, "choice"] - 1).tolist() == kept["action"].tolist()


def test_choices_with_reaction_times_are_those_of_hssm(tmp_path):
    made = their_files.hb_bandit(seed=7)
    (tmp_path / made.name).write_text(made.text)
    trials, _ = import_tables([tmp_path / made.name], **made.options)
    with pytest.raises(ValueError, match="HSSM fits reaction times"):
        export_trials(trials, tmp_path / "h.csv", "hssm")
    timed = Trials.from_frame(trials.frame.assign(rt_s=0.5))
    export_trials(timed, tmp_path / "h.csv", "hssm", environment="instrumental_learning")
    table = pd.read_csv(tmp_path / "h.csv")
    answered = [one for one in made.trials if one["outcome"] == "ok"]
    assert table["response"].tolist() == [2 * one["action"] - 1 for one in answered]
    assert table["participant_id"].astype(str).tolist() == [one["subject"] for one in answered]
    assert (table["rt"] == 0.5).all()


@pytest.mark.parametrize(
    ("name", "settings"),
    [("instrumental_learning", {}), ("two_step", {}), ("reversal_learning", {})],
)
def test_what_goes_out_for_hssm_comes_back_the_same(name, settings, tmp_path):
    found = sample(make(name, **settings), subjects=2, seed=5)
    timed = Trials.from_frame(found.trials.frame.assign(rt_s=0.25), environment=found.environment)
    export_trials(timed, tmp_path / "h.csv", "hssm")
    back, account = import_tables([tmp_path / "h.csv"])
    assert account.environment == name
    assert account.format == "hssm"
    for column in timed.frame:
        there, here = timed.frame[column], back.frame[column]
        assert there.isna().equals(here.isna()), column
        assert there.dropna().tolist() == here.dropna().tolist(), column
    export_trials(back, tmp_path / "again.csv", "hssm")
    there, again = (pd.read_csv(tmp_path / file) for file in ("h.csv", "again.csv"))
    pd.testing.assert_frame_equal(there, again[there.columns], check_dtype=False)


@pytest.mark.parametrize("file", ["t.csv", "t.parquet", "t.jsonl"])
def test_what_goes_out_as_a_table_or_as_texts_comes_back_the_same(file, tmp_path):
    found = sample("reversal_learning", subjects=2, seed=5)
    export_trials(found.trials, tmp_path / file)
    back = import_trials([tmp_path / file])
    for column in ("subject", "session", "trial", "action", "reward", "outcome"):
        assert back.frame[column].tolist() == found.trials.frame[column].tolist(), column


def test_a_folder_for_r_has_every_column_in_words(tmp_path):
    made = their_files.blocks(seed=7)
    (tmp_path / made.name).write_text(made.text)
    trials, _ = import_tables([tmp_path / made.name])
    export_trials(trials, tmp_path / "r", "r", environment="restless_bandit")
    table, told = (pd.read_csv(tmp_path / "r" / f"{name}.csv") for name in ("trials", "dictionary"))
    assert told["column"].tolist() == table.columns.tolist()
    assert told["meaning"].notna().all()
    back = import_trials([tmp_path / "r" / "trials.parquet"])
    assert back.frame.equals(trials.frame)
    assert table["action"].isna().sum() == trials.frame["action"].isna().sum()


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_the_row_that_a_schema_shows_is_a_trial_of_the_experiment(name):
    place = make(name)
    schema = trial_schema(place)
    trials = Trials.from_frame(pd.DataFrame([schema.example]), environment=place)
    assert len(trials) == 1
    assert schema.to_dict()["examples"] == [[dict(schema.example)]]
    assert "for example: subject=1" in str(schema)
    assert not any("position in `" in column.description for column in schema.columns)


def test_settings_can_be_said_wherever_data_are_read(tmp_path, knownminds):
    """Losses of another size: with a wrong setting the trials are refused, and the remedy works."""
    made = their_files.hb_bandit(seed=7, environment="reversal_learning")
    table = pd.DataFrame(made.trials).assign(reward=lambda t: t["reward"].replace(-1, -3))
    file = tmp_path / "t.csv"
    table.to_csv(file, index=False)
    for words in (["score"], ["fit", "--model", "rescorla_wagner"]):
        given = [words[0], file, "--environment", "reversal_learning", *words[1:]]
        code, _, err = knownminds(*given, "--set", "loss=-1")
        assert code == 2
        assert "--set loss" in err
        code, _, err = knownminds(*given, "--set", "loss=-3", "--out", tmp_path / words[0])
        assert code == 0, err
        page = (tmp_path / words[0] / "report.html").read_text()
        assert "--set loss=-3" in page
        code, _, err = knownminds(*given, "--set", "los=-3")
        assert code == 2
        assert "loss" in err
    (tmp_path / "reference.csv").write_text("metric,value\nrisk,1\n")
    given = ["phenotype", file, "--by", "subject", "--environment", "reversal_learning",
             "--reference", tmp_path / "reference.csv"]  # fmt: skip
    for wrong in ("loss=-1", "los=-3"):
        code, _, err = knownminds(*given, "--set", wrong)
        assert code == 2
        assert "loss" in err
