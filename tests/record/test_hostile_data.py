"""Attacks on files: names like addresses, cells like formulas, no end of brackets or of trials."""

import json
import sqlite3
import time
from contextlib import closing

import numpy as np
import pandas as pd
import pytest
from walked import ROOT

from knownminds.environments import Trials
from knownminds.environments.record.csv_cells import csv_text, guarded, unguarded
from knownminds.llm_adapters.runs.ledger import FILE

DEEP = "[" * 100_000
PLACE = "instrumental_learning"


def trials(**columns):
    return Trials.from_frame(
        pd.DataFrame({"subject": ["a", "a"], "trial": [0, 1], "action": [0, 1], **columns})
    )


@pytest.fixture
def refused(knownminds):
    """Call with words; return the sentence of the refusal."""

    def call(*words):
        code, out, err = knownminds(*words)
        assert (code, out) == (2, ""), err
        assert "Traceback" not in err
        return " ".join(err.split())

    return call


# Names and cells ----------------------------------------------------------------------------------


@pytest.mark.parametrize("folder", ["openai:gpt", "s3:bucket"])
def test_a_folder_whose_name_looks_like_an_address_is_a_folder(tmp_path, monkeypatch, folder):
    monkeypatch.chdir(tmp_path)
    (tmp_path / folder).mkdir()
    kept = trials()
    for file in (f"{folder}/trials.parquet", f"{folder}/trials.csv"):
        kept.save(file)
        pd.testing.assert_frame_equal(Trials.load(file).frame, kept.frame)


RUN = ["=cmd|' /C calc'!A0", "+1+cmd", "-2+3", "@SUM(1)", "\t=1", "\n=1", "＝1+1", "'=1", "''@x"]


def test_a_cell_or_a_name_that_a_spreadsheet_would_run_is_a_text_and_comes_back(tmp_path):
    table = pd.DataFrame({"text": RUN, "=head()": 1.0})
    assert all(cell.startswith("'") for cell in guarded(table)["text"])
    assert [*guarded(table)] == ["text", "'=head()"]
    pd.testing.assert_frame_equal(unguarded(guarded(table)), table)
    assert csv_text(pd.DataFrame({"n": [-1.5], "text": "-0.5"})) == "n,text\n-1.5,-0.5\n"
    kept = trials(raw_text=["=1+1", "'=2"], **{"=cmd()": ["@x", "b"]})
    kept.save(tmp_path / "t.csv")
    head, first, _ = (tmp_path / "t.csv").read_text().splitlines()
    assert {"'=cmd()"} <= {*head.split(",")}
    assert {"'=1+1", "'@x"} <= {*first.split(",")}
    loaded = Trials.load(tmp_path / "t.csv").frame
    for name in ("raw_text", "=cmd()"):
        assert loaded[name].tolist() == kept.frame[name].tolist()


def test_every_table_is_written_by_what_guards_its_cells():
    files = (
        file
        for floor in ("environments", "agents", "llm_adapters", "inference", "validation")
        for file in (ROOT / floor).rglob("*.py")
    )
    assert {f.name for f in files if ".to_csv(" in f.read_text("utf-8")} == {"csv_cells.py"}


@pytest.mark.parametrize("words", [("simulate", ":x:[m]"), ("fit", ":x:[m].csv")])
def test_words_between_colons_or_brackets_are_printed_as_they_are(refused, words):
    assert ":x:[m]" in refused(*words)


# No end -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "most"),
    [
        (("simulate", PLACE, "--subjects", 10**6, "--sessions", 10**6), "50,000,000"),
        (("simulate", PLACE, "--trials", 10**9), "1,000,000"),
        (("budget", "collider", "--llm", "openai:gpt-4o-mini", "--sessions", 10**30), "1,000,000"),
    ],
)
def test_so_much_that_a_command_would_never_end_is_refused(refused, words, most):
    model = ("--model", "random_responder") if words[0] == "simulate" else ()
    assert most in refused(*words, *model)


FILES_OF_BRACKETS = {
    "plan.toml": ("benchmark", "cogbench", "--plan", "plan.toml", "--llm", "synthetic:x"),
    "recover.toml": ("recover", "recover.toml"),
    "texts.jsonl": ("import", "texts.jsonl", "--from", "psych-101"),
    "map.toml": ("import", "t.csv", "--map", "map.toml"),
    "t.csv": ("fit", "t.csv"),
}


@pytest.mark.parametrize("name", FILES_OF_BRACKETS)
def test_what_is_nested_without_end_is_refused(refused, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    table = "subject,trial,context,action,reward,environment,environment_settings\n"
    (tmp_path / "t.csv").write_text(f"{table}a,0,0,1,1,{PLACE},{DEEP}\n")
    if name != "t.csv":
        (tmp_path / name).write_text(f"set = {DEEP}" if name.endswith(".toml") else DEEP)
    assert "deeper" in refused(*FILES_OF_BRACKETS[name])


@pytest.mark.parametrize("value", ["1e30", "9007199254740994", "-1e300"])
def test_a_whole_number_that_is_none_is_named_with_its_row(refused, tmp_path, value):
    rows = f"subject,trial,context,action,reward\na,0,0,1,1\na,{value},0,1,1\n"
    (tmp_path / "t.csv").write_text(rows)
    told = refused("fit", tmp_path / "t.csv", "--environment", PLACE)
    assert "'trial' holds whole numbers; row 2 has" in told


def test_marks_that_never_close_are_read_in_no_time(refused, tmp_path):
    line = {"text": "<<" * 2**16, "experiment": PLACE, "participant": "1"}
    (tmp_path / "t.jsonl").write_text(json.dumps(line))
    (tmp_path / "map.toml").write_text(MAP)
    words = ("import", tmp_path / "t.jsonl", "--from", "psych-101", "--out", tmp_path / "t.csv")
    for more in ((), ("--map", tmp_path / "map.toml")):
        began = time.process_time()
        assert "ine 1" in refused(*words, *more)
        assert time.process_time() - began < 2.0  # 80 s, where every mark looks for its end


MAP = """
environment = "instrumental_learning"
pattern = 'You press <<(?P<action>[A-Z])>> and get (?P<reward>\\d+) points?\\.'
names = 'machines, (\\w+) and (\\w+)\\.'
[constants]
context = 0
"""


# Ledgers ------------------------------------------------------------------------------------------


HARM = {
    "no facts": "DELETE FROM fact",
    "no requests": "DELETE FROM request",
    "no end of brackets": f"UPDATE attempt SET reply = '{DEEP}'",
    "no bytes": "UPDATE attempt SET body = NULL",
    "no answer": "UPDATE attempt SET reply = NULL, body = NULL",
    "an answer of another kind": "UPDATE attempt SET reply = '[1, 2]'",
    "a settings text": "UPDATE fact SET value = 'x'",
    "a start of another kind": "UPDATE fact SET value = '{}' WHERE name GLOB 'start/*'",
    "tokens of another kind": """UPDATE attempt SET reply = '{"usage": {"in": 1}}'""",
    "no table": "DROP TABLE attempt",
}


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    from knownminds.validation.cli import main

    folder = tmp_path_factory.mktemp("run") / "r"
    words = ["run", PLACE, "--trials", "4", "--llm", "synthetic:rescorla_wagner", "--out"]
    with pytest.raises(SystemExit, match="0"):
        main([*words, str(folder), "--json"])
    return (folder / FILE).read_bytes()


@pytest.mark.parametrize("harm", [*HARM, "garbage"])
def test_a_damaged_ledger_is_one_sentence(refused, played, tmp_path, harm):
    file = tmp_path / FILE
    if harm == "garbage":
        rng = np.random.default_rng(1)
        file.write_bytes(played[:4096] + rng.bytes(len(played) - 4096))
    else:
        file.write_bytes(played)
        with closing(sqlite3.connect(file)) as connection:
            connection.execute("PRAGMA foreign_keys = OFF")
            connection.executescript(HARM[harm])
    before = file.read_bytes()
    assert refused("report", tmp_path).count("cannot be read as a ledger") == 1
    assert file.read_bytes() == before
