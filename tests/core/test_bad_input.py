"""Misuse at the command line: one sentence, exit code 2, nothing half-written."""

import json

import pandas as pd
import pytest

from knownminds.environments import make
from knownminds.validation.cli import main
from knownminds.validation.engine.simulated_data import simulated_data
from knownminds.validation.recovery.parameter_recovery import recover, resolve_model

PLACE = "instrumental_learning"
POWER = ("power", PLACE, "--sessions", 5)


@pytest.fixture
def refused(capsys):
    """Call with words; return the sentence of the refusal."""

    def call(*words):
        with pytest.raises(SystemExit) as end:
            main([str(word) for word in words])
        captured = capsys.readouterr()
        assert end.value.code == 2
        assert captured.out == ""
        assert "Traceback" not in captured.err
        assert captured.err.count("\n") == 1, captured.err
        return captured.err

    return call


@pytest.fixture
def table():
    trials = simulated_data(resolve_model("rescorla_wagner"), make(PLACE), subjects=3)
    return trials.frame[["subject", "trial", "context", "action", "reward"]].copy()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("show", "rescorla"), "rescorla_wagner"),
        (("recover", "instrumental_lerning"), f"Nearest: {PLACE}"),
        (("recover", PLACE, "--model", "rescorla_wagner_duel"), "rescorla_wagner_dual"),
        (("recover", PLACE, "--method", "mpa"), "There is no method named 'mpa'. Nearest: map"),
        (("recover", PLACE, "--intervals", "laplas"), "Nearest: laplace"),
        (("recover", PLACE, "--model", "random_responder"), "needs a parameter to estimate"),
        (("recover", PLACE, "--set", "alpha_positive=1.5"), "lies in (0, 1); got 1.5"),
        (("recover", PLACE, "--set", "alpha_positiv=0.5"), "Nearest: alpha_positive"),
        (("recover", PLACE, "--set", "n_visit=3"), "n_visits"),
        (("recover", PLACE, "--set", "beta"), "--set takes NAME=VALUE; got 'beta'"),
        (("recover", PLACE, "--set", "beta=much"), "takes a number; got 'much'"),
        (("recover", PLACE, "--set", "beta=1", "--set", "beta=2"), "'beta' twice"),
        (("recover", PLACE, "--fix", "betta=1"), "Did you mean beta?"),
        (("recover", PLACE, "--fix", "beta=-1"), "lies in (0, inf); got -1"),
        (("recover", PLACE, "--lapse", "1.5"), "lapse lies in (0, 1); got 1.5"),
        (("recover", PLACE, "--subjects", "-3"), "number of subjects is at least 1; got -3"),
        (("recover", PLACE, "--subjects", "0"), "number of subjects is at least 1; got 0"),
        (("recover", PLACE, "--replicates", "0"), "replicates is at least 1"),
        (("recover", PLACE, "--sessions", "0"), "sessions is at least 1"),
        (("recover", PLACE, "--workers", "0"), "workers is at least 1"),
        (("recover", PLACE, "--seed", "-1"), "from 0 on; got -1"),
        (("recover", PLACE, "--trials", "97"), "multiple of 4 trials; got 97"),
        (("recover", PLACE, "--trials", "-4"), "multiple of 4 trials; got -4"),
        (("recover", PLACE, "--method", "hierarchical", "--subjects", "1"), "at least 2 subjects"),
        (("simulate", PLACE, "--subjects", "0"), "number of subjects is at least 1"),
        (("simulate", PLACE, "--out", "trials.xlsx"), ".parquet or .csv"),
        (("fit", "nowhere.csv"), "there is no nowhere.csv"),
        (("report", "nowhere"), "nowhere"),
        (("recover", PLACE, "--workers", "2", "--backend", "dask"), "--scheduler"),
        (("recover", PLACE, "--backend", "lokey"), "backend"),
        (("recover", PLACE, "--share", "3/2"), "A share reads 2/3"),
        (("recover", PLACE, "--trials", "24", "--trials", "25"), "multiple of 4 trials; got 25"),
        (("confuse", PLACE, "--model", "rescorla_wagner"), "at least"),
        (("confuse", PLACE, "--model", "rescorla", "--model", "perseverator"), "rescorla_wagner"),
        (("confuse", PLACE, "--criterion", "aik"), "Nearest: aic"),
        (("calibrate", PLACE, "--model", "random_responder"), "needs a parameter to estimate"),
        (("calibrate", PLACE, "--subjects", "3"), "Single posteriors have 1 subject"),
        (("calibrate", PLACE, "--set", "beta=3"), "--fix"),
        (("calibrate", PLACE, "--method", "mle"), "map"),
        (("power", PLACE, "--effect", "optimism=0.1"), "Nearest: optimism_bias"),
        (("power", PLACE, "--effect", "optimism_bias"), "--effect takes NAME=VALUE"),
        (("power", PLACE, "--effect", "optimism_bias=0.1"), "A test needs 2 units"),
        ((*POWER, "--effect", "optimism_bias=2"), "lies between -1 and 1; got 2"),
        ((*POWER, "--effect", "beta=1"), "no null value"),
        ((*POWER, "--effect", "beta=1", "--comparison", "betwen"), "Nearest: between"),
        ((*POWER, "--effect", "beta=1", "--comparison", "paired"), "one mind's sessions form none"),
        ((*POWER, "--effect", "optimism_bias=.1", "--set", "alpha_positive=2"), "lies in (0, 1)"),
        (
            (*POWER, "--effect", "optimism_bias=.1", "--set", "win_probability=[[0,0]]"),
            "cannot identify optimism_bias (alpha_positive: not at all)",
        ),
        ((*POWER, "--effect", "optimism_bias=.1", "--spread", "bet=1"), "Did you mean beta"),
        ((*POWER, "--effect", "optimism_bias=.1", "--find", "session"), "Nearest: sessions"),
        ((*POWER, "--effect", "optimism_bias=.1", "--find", "trials", "--target", "2"), "got 2"),
        (("audit", "optimism"), "Nearest: optimism_bias"),
        (("audit", "optimism_bias", "--effect", "1.5"), "lies between"),
        (("audit", "optimism_bias", "--subjects", "1"), "at least 2; got 1"),
        (("budget", PLACE), "at least one language model"),
        (("budget", PLACE, "--llm", "openai:gpt-4o-minni"), "gpt-4o-mini"),
        (("budget", PLACE, "--llm", "openai:gpt-4o-mini", "--price", "a:b=x"), "a:b"),
        (("budget", PLACE, "--llm", "openai:gpt-4o-mini", "--reasoning", "9-1"), "9"),
        (("budget", PLACE, "--llm", "openai:gpt-4o-mini", "--date", "May"), "YYYY-MM-DD"),
        (("budget", PLACE, "--llm", "openai:gpt-4o-mini", "--power", "nowhere"), "nowhere"),
        (("merge", "nowhere", "elsewhere"), "study.json"),
    ],
)
def test_misuse_is_one_sentence(refused, tmp_path, monkeypatch, words, sentence):
    monkeypatch.chdir(tmp_path)
    folder = ("--out", "made") if words[0] not in ("show", "simulate", "fit", "report") else ()
    assert sentence in refused(*words, *folder)
    assert list(tmp_path.iterdir()) == []


def _no_column(table):
    return table.drop(columns="reward")


def _strange_action(table):
    table.loc[5, "action"] = 7
    return table


def _strange_reward(table):
    table.loc[5, "reward"] = 12.5
    return table


def _doubled_trial(table):
    table.loc[1, "trial"] = 0
    return table


def _empty(table):
    return table.iloc[:0]


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (_no_column, "reward"),
        (_strange_action, "row 6"),
        (_strange_reward, "row 6"),
        (_doubled_trial, "repeats subject"),
        (_empty, "at least one row"),
    ],
)
def test_bad_data_are_refused_with_the_row_or_the_name(refused, tmp_path, table, spoil, sentence):
    file, folder = tmp_path / "t.csv", tmp_path / "out"
    spoil(table).to_csv(file, index=False)
    assert sentence in refused("fit", file, "--out", folder)
    assert not folder.exists()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--columns", "subject=runs"), "subject=runs names none of"),
        (("--columns", "subject"), "--columns takes NAME=VALUE; got 'subject'"),
        (("--columns", "subject=trial,action=trial"), "'trial' is mapped more than once"),
        (("--environment", "two_stp"), "There is no environment named 'two_stp'"),
        (("--model", "resc"), "There is no model named 'resc'"),
        (("--model", "resc"), "A model of your own comes with --plugin FILE."),
        (("--formula", "alpha_positive ~ trial"), "needs --method hierarchical"),
        (
            ("--method", "hierarchical", "--formula", "alpha_positive ~ treatment"),
            "treatment",
        ),
        (("--method", "hierarchical", "--formula", "alfa ~ context"), "alpha"),
        (("--fix", "alpha_positive=2"), "lies in (0, 1); got 2"),
    ],
)
def test_bad_options_of_a_fit_are_refused(refused, tmp_path, table, options, sentence):
    file, folder = tmp_path / "t.csv", tmp_path / "out"
    table.to_csv(file, index=False)
    assert sentence in refused("fit", file, *options, "--out", folder)
    assert not folder.exists()


def test_empty_and_unreadable_files_are_refused(refused, tmp_path):
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 but not really")
    assert "empty.csv is empty" in refused("fit", tmp_path / "empty.csv")
    assert "broken.parquet cannot be read" in refused("fit", tmp_path / "broken.parquet")


@pytest.mark.parametrize("command", ["recover", "fit", "simulate"])
def test_a_place_that_cannot_be_written_is_refused_before_any_work(
    refused, tmp_path, table, command
):
    data, file = tmp_path / "t.csv", tmp_path / "a_file"
    table.to_csv(data, index=False)
    file.write_text("")
    what = data if command == "fit" else PLACE
    out = file / "inside.csv"
    assert "cannot be written" in refused(command, what, "--out", out)


def test_a_folder_of_another_design_is_refused_and_kept(refused, tmp_path):
    folder = tmp_path / "s"
    recover(PLACE, "rescorla_wagner", subjects=12, intervals="laplace", workers=1, out=folder)
    before = (folder / "study.json").read_text()
    words = ("recover", PLACE, "--model", "rescorla_wagner", "--intervals", "laplace")
    sentence = refused(*words, "--subjects", 13, "--out", folder)
    assert "subjects is 12, here 13" in sentence
    assert "holds a study" in refused("fit", "x.csv", "--out", folder)
    assert (folder / "study.json").read_text() == before


def test_damaged_folders_are_refused(refused, tmp_path):
    (tmp_path / "study.json").write_text(json.dumps({"command": "recover"}))
    assert "damaged" in refused("report", tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    (other / "fit.json").write_text("{}")
    assert "damaged" in refused("report", other)


def test_subjects_with_a_single_trial_are_named(refused, tmp_path, table):
    file, out = tmp_path / "t.csv", tmp_path / "out"
    pd.concat([table, table.iloc[:1].assign(subject="lonely")]).to_csv(file, index=False)
    for method in ("map", "hierarchical"):
        said = refused("fit", file, "--method", method, "--out", out)
        assert '"lonely" has a single one' in said
        assert not out.exists()
