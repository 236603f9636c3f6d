"""Misuse at the command line: one sentence, exit code 2, nothing half-written."""

import json

import pandas as pd
import pytest

from knownminds import recover, simulate
from knownminds.agents import RescorlaWagner
from knownminds.environments import make

PLACE = "instrumental_learning"
POWER = ("power", PLACE, "--sessions", 5)


@pytest.fixture
def refused(knownminds):
    """Call with words; return the sentence of the refusal."""

    def call(*words):
        code, out, err = knownminds(*words)
        assert (code, out) == (2, "")
        assert "Traceback" not in err
        assert err.count("\n") == 1, err
        return err

    return call


@pytest.fixture(scope="module")
def trials():
    return simulate(make(PLACE), RescorlaWagner, subjects=3)


@pytest.fixture
def table(trials):
    return trials.frame[["subject", "trial", "context", "action", "reward"]].copy()


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (("show", "rescorla"), "rescorla_wagner"),
        (("recover", "instrumental_lerning"), PLACE),
        (("recover", PLACE, "--model", "rescorla_wagner_duel"), "rescorla_wagner_dual"),
        (("recover", PLACE, "--model", "rw"), "Nearest: rescorla_wagner,"),
        (("recover", PLACE, "--model", "zzz"), "`knownminds list`"),
        (("recover", PLACE, "--set", "alfa=0.2"), "Nearest: alpha_negative, alpha_positive"),
        (("recover", PLACE, "--set", "kappa", "0"), "NAME=VALUE"),
        (("recover", PLACE, "--subjects", "20,40"), "--subjects 1 --subjects 2; got 20,40"),
        ((*POWER, "--effect", "optimism_bias=0.1", "--target", "0.7"), "goes with --find"),
        (("budget", PLACE, "--power", "nowhere"), "there is none at nowhere"),
        (("recover", PLACE, "--method", "mpa"), "mpa"),
        (("recover", PLACE, "--intervals", "laplas"), "laplace"),
        (("recover", PLACE, "--model", "random_responder"), "random_responder"),
        (("recover", PLACE, "--set", "alpha_positive=1.5"), "1.5"),
        (("recover", PLACE, "--set", "alpha_positiv=0.5"), "alpha_positive"),
        (("recover", PLACE, "--set", "n_visit=3"), "n_visits"),
        (("recover", PLACE, "--set", "beta"), "'beta'"),
        (("recover", PLACE, "--set", "beta=much"), "much"),
        (("recover", PLACE, "--fix", "betta=1"), "beta"),
        (("recover", PLACE, "--fix", "beta=-1"), "-1"),
        (("recover", PLACE, "--lapse", "1.5"), "1.5"),
        (("recover", PLACE, "--subjects", "-3"), "-3"),
        (("recover", PLACE, "--replicates", "0"), "replicates"),
        (("recover", PLACE, "--sessions", "0"), "sessions"),
        (("recover", PLACE, "--workers", "0"), "workers"),
        (("recover", PLACE, "--seed", "-1"), "-1"),
        (("recover", PLACE, "--trials", "97"), "97"),
        (("recover", PLACE, "--method", "hierarchical", "--subjects", "1"), "subjects"),
        (("simulate", PLACE, "--subjects", "0"), "subjects"),
        (("simulate", PLACE, "--out", "trials.xlsx"), ".xlsx"),
        (("fit", "nowhere.csv"), "nowhere.csv"),
        (("report", "nowhere"), "nowhere"),
        (("recover", PLACE, "--workers", "2", "--backend", "dask"), "--scheduler"),
        (("recover", PLACE, "--backend", "lokey"), "backend"),
        (("recover", PLACE, "--share", "3/2"), "3/2"),
        (("confuse", PLACE, "--model", "rescorla_wagner"), "rescorla_wagner"),
        (("confuse", PLACE, "--model", "rescorla", "--model", "perseverator"), "rescorla_wagner"),
        (("confuse", PLACE, "--criterion", "aik"), "aic"),
        (("calibrate", PLACE, "--model", "random_responder"), "random_responder"),
        (("calibrate", PLACE, "--subjects", "3"), "3"),
        (("calibrate", PLACE, "--set", "beta=3"), "--fix"),
        (("calibrate", PLACE, "--method", "mle"), "map"),
        (("simulate", PLACE, "--report", "--subjects", "1"), "--subjects"),
        (("audit", "channel", "--set", "contaminants=refused=0.1"), "refusal"),
        (("power", PLACE, "--effect", "optimism=0.1"), "optimism_bias"),
        (("power", PLACE, "--effect", "optimism_bias"), "optimism_bias"),
        (("power", PLACE, "--effect", "optimism_bias=0.1"), "2"),
        ((*POWER, "--effect", "optimism_bias=2"), "2"),
        ((*POWER, "--effect", "beta=1"), "beta"),
        ((*POWER, "--effect", "beta=1", "--comparison", "betwen"), "between"),
        ((*POWER, "--effect", "beta=1", "--comparison", "paired"), "subjects"),
        (
            (*POWER, "--effect", "optimism_bias=.1", "--set", "win_probability=[[0,0]]"),
            "alpha_positive",
        ),
        ((*POWER, "--effect", "optimism_bias=.1", "--spread", "bet=1"), "beta"),
        ((*POWER, "--effect", "optimism_bias=.1", "--find", "session"), "sessions"),
        ((*POWER, "--effect", "optimism_bias=.1", "--find", "trials", "--target", "2"), "2"),
        (("audit", "optimism"), "optimism_bias"),
        (("audit", "optimism_bias", "--effect", "1.5"), "1.5"),
        (("audit", "optimism_bias", "--subjects", "1"), "1"),
        (("run", PLACE, "--llm", "openai:a", "--llm=openai:b"), "--llm once"),
        (("benchmark", "cogbench", "--llm", "openai:a", "--llm", "openai:a"), "openai:a twice"),
        (
            ("benchmark", "magnitudes", "--llm", "openai:a", "--people", "a.csv"),
            "there is none at a.csv",
        ),
        (("budget", PLACE), "language model"),
        (("budget", PLACE, "--llm", "openai:gpt-4o-minni"), "gpt-4o-mini"),
        (("budget", PLACE, "--llm", "openai:gpt-4o-mini", "--price", "a:b=x"), "a:b"),
        (("budget", PLACE, "--llm", "openai:gpt-4o-mini", "--reasoning", "9-1"), "9"),
        (("budget", PLACE, "--llm", "openai:gpt-4o-mini", "--date", "May"), "May"),
        (("budget", PLACE, "--llm", "openai:gpt-4o-mini", "--power", "nowhere"), "nowhere"),
    ],
)
def test_misuse_is_one_sentence(refused, tmp_path, monkeypatch, words, name):
    monkeypatch.chdir(tmp_path)
    folder = ("--out", "made") if words[0] not in ("show", "simulate", "fit", "report") else ()
    assert name in refused(*words, *folder)
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
    ("spoil", "name"),
    [
        (_no_column, "reward"),
        (_strange_action, "row 6"),
        (_strange_reward, "row 6"),
        (_doubled_trial, "subject"),
        (_empty, "row"),
    ],
)
def test_bad_data_are_refused_with_the_row_or_the_name(refused, tmp_path, table, spoil, name):
    file, folder = tmp_path / "t.csv", tmp_path / "out"
    spoil(table).to_csv(file, index=False)
    assert name in refused("fit", file, "--out", folder)
    assert not folder.exists()


@pytest.mark.parametrize(
    ("options", "name"),
    [
        (("--columns", "subject=runs"), "subject=runs"),
        (("--columns", "subject"), "'subject'"),
        (("--columns", "subject=trial,action=trial"), "'trial'"),
        (("--environment", "two_stp"), "two_step"),
        (("--model", "resc"), "resc"),
        (("--formula", "alpha_positive ~ trial"), "hierarchical"),
        (("--method", "hierarchical", "--formula", "alpha_positive ~ treatment"), "treatment"),
        (("--method", "hierarchical", "--formula", "alfa ~ context"), "alpha"),
        (("--fix", "alpha_positive=2"), "2"),
    ],
)
def test_bad_options_of_a_fit_are_refused(refused, tmp_path, table, options, name):
    file, folder = tmp_path / "t.csv", tmp_path / "out"
    table.to_csv(file, index=False)
    assert name in refused("fit", file, *options, "--out", folder)
    assert not folder.exists()


def test_empty_and_unreadable_files_are_refused(refused, tmp_path):
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 but not really")
    assert "empty.csv" in refused("fit", tmp_path / "empty.csv")
    assert "broken.parquet" in refused("fit", tmp_path / "broken.parquet")


@pytest.mark.parametrize("command", ["recover", "fit", "simulate"])
def test_a_place_that_cannot_be_written_is_refused_before_any_work(
    refused, tmp_path, table, command
):
    data, file = tmp_path / "t.csv", tmp_path / "a_file"
    table.to_csv(data, index=False)
    file.write_text("")
    what = data if command == "fit" else PLACE
    out = file / "inside.csv"
    assert "a_file" in refused(command, what, "--out", out)


def test_a_folder_of_another_design_is_refused_and_kept(refused, tmp_path):
    folder = tmp_path / "s"
    recover(PLACE, "rescorla_wagner", subjects=12, intervals="laplace", workers=1, out=folder)
    before = (folder / "study.json").read_text()
    words = ("recover", PLACE, "--model", "rescorla_wagner", "--intervals", "laplace")
    sentence = refused(*words, "--subjects", 13, "--out", folder)
    assert "13" in sentence
    refused("fit", "x.csv", "--out", folder)
    assert (folder / "study.json").read_text() == before


def test_damaged_folders_are_refused(refused, tmp_path):
    (tmp_path / "study.json").write_text(json.dumps({"command": "recover"}))
    assert "study.json" in refused("report", tmp_path)


def test_subjects_with_a_single_trial_are_named(refused, tmp_path, table):
    file, out = tmp_path / "t.csv", tmp_path / "out"
    pd.concat([table, table.iloc[:1].assign(subject="lonely")]).to_csv(file, index=False)
    for method in ("map", "hierarchical"):
        refusal = refused("fit", file, "--method", method, "--out", out)
        assert '"lonely"' in refusal
        assert not out.exists()


def test_a_wrong_argument_gets_the_nearest_name_and_a_result_is_a_line_to_look_at(knownminds):
    with pytest.raises(TypeError, match=r"'subject'\. Nearest: subjects"):
        recover("instrumental_learning", "rescorla_wagner", subject=3)
    result = recover("instrumental_learning", "rescorla_wagner", subjects=5, intervals="laplace")
    assert len(repr(result).splitlines()) == 1
    assert len(repr(result)) < 120
    assert knownminds("recover", "-h") == knownminds("recover", "--help")
