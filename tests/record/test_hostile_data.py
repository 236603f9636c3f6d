"""Attacks on files: names like addresses, cells like formulas, and no end of brackets."""

import csv
import sqlite3
import time
from contextlib import closing
from types import SimpleNamespace

import pandas as pd
import pytest
from house.test_layout import rooms

from knownminds.environments import Trials
from knownminds.environments.formats.psych_101 import _split
from knownminds.environments.record.csv_cells import csv_text, guarded, unguarded
from knownminds.llm_adapters.providers.endpoint import _message, parsed
from knownminds.llm_adapters.runs.ledger import FILE, Ledger
from knownminds.llm_adapters.runs.prices import read_prices
from knownminds.validation.engine.study import Study

DEEP = "[" * 100_000


def trials(**columns):
    return Trials.from_frame(
        pd.DataFrame({"subject": ["a", "a"], "trial": [0, 1], "action": [0, 1], **columns})
    )


@pytest.mark.parametrize("folder", ["openai:gpt", "st:udy", "s3:bucket"])
def test_a_folder_whose_name_looks_like_an_address_is_a_folder(tmp_path, monkeypatch, folder):
    monkeypatch.chdir(tmp_path)
    (tmp_path / folder).mkdir()
    kept = trials()
    for file in (f"{folder}/trials.parquet", f"{folder}/trials.csv"):
        kept.save(file)
        pd.testing.assert_frame_equal(Trials.load(file).frame, kept.frame)


RUN = ["=cmd|' /C calc'!A0", "+1+cmd", "-2+3", "@SUM(1)", "\t=1", "\n=1", "＝1+1", "'=1", "''@x"]


def test_a_cell_that_a_spreadsheet_would_run_is_a_text_and_comes_back(tmp_path):
    kept = trials(raw_text=["=1+1", "'=2"], note=["-5", "@x"], labels=["fine", "-0.5"])
    kept.save(tmp_path / "t.csv")
    written = (tmp_path / "t.csv").read_text()
    assert "'=1+1" in written
    assert "''=2" in written
    assert "'@x" in written
    assert "'-0.5" not in written  # a number is no formula
    loaded = Trials.load(tmp_path / "t.csv").frame
    assert loaded["raw_text"].tolist() == ["=1+1", "'=2"]
    assert loaded["note"].tolist() == kept.frame["note"].tolist()
    table = pd.DataFrame({"text": RUN, "=head()": 1.0})
    assert all(cell.startswith("'") for cell in guarded(table)["text"])
    assert [*guarded(table)] == ["text", "'=head()"]
    pd.testing.assert_frame_equal(unguarded(guarded(table)), table)
    assert csv_text(pd.DataFrame({"n": [-1.5]})) == "n\n-1.5\n"


def test_a_column_whose_name_a_spreadsheet_would_run_comes_back(tmp_path):
    kept = trials(**{"=cmd()": ["a", "b"]})
    kept.save(tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text().splitlines()[0].split(",")[3] == "'=cmd()"
    assert Trials.load(tmp_path / "t.csv").frame["=cmd()"].tolist() == ["a", "b"]


def cells_of(file):
    with file.open(encoding="utf-8", newline="") as stream:
        return {cell for row in csv.reader(stream) for cell in row}


def test_no_cell_beside_a_figure_or_in_beliefs_is_a_formula(tmp_path):
    from matplotlib.figure import Figure

    from knownminds.validation.pages.figures import svg
    from knownminds.validation.report import _write_figures

    figure = Figure()
    figure.subplots().plot([1.0, -2.0], [3.0, 4.0], label="=1+1")
    _write_figures(SimpleNamespace(drawn=[("Lines", svg(figure))]), tmp_path, "")
    cells = cells_of(tmp_path / "1-lines.csv")
    assert {"'=1+1", "-2"} <= cells
    assert "=1+1" not in cells


def test_every_table_is_written_by_what_guards_its_cells():
    own = {f.name for room in rooms() for f in room.glob("*.py") if ".to_csv(" in f.read_text()}
    assert own == {"csv_cells.py"}


@pytest.mark.parametrize(
    "words",
    [
        ("simulate", ":x:[m]"),
        ("simulate", "collider", "--su:x:[m]"),
        ("run", "collider", "--llm", "openai::x:[m]", "--dry-run", "--cap", ":x:[m]=1"),
        ("fit", ":x:[m].csv"),
    ],
)
def test_words_between_colons_or_brackets_are_printed_as_they_are(knownminds, words):
    code, _, told = knownminds(*words)
    assert code == 2
    assert ":x:[m]" in told


def test_a_line_of_a_command_is_printed_as_it_is(capsys):
    from knownminds.validation.cli import output

    for console in (output.screen, output.notes):
        console.print(":x: [m]")
    told = capsys.readouterr()
    assert (told.out, told.err) == (":x: [m]\n",) * 2


@pytest.mark.parametrize(
    ("words", "most"),
    [
        (("simulate", "collider", "--subjects", "1000000", "--sessions", "1000000"), "50,000,000"),
        (("simulate", "instrumental_learning", "--trials", "1000000000"), "1,000,000"),
        (("simulate", "collider", "--sessions", "1000000000"), "1000000"),
        (("budget", "collider", "--sessions", "1" + "0" * 30), "1,000,000,000"),
    ],
)
def test_so_much_that_a_command_would_never_end_is_refused(knownminds, words, most):
    words += (
        ("--llm", "openai:gpt-4o-mini") if words[0] == "budget" else ("--model", "random_responder")
    )
    code, _, told = knownminds(*words)
    assert code == 2, told
    assert most in told


def test_what_is_nested_without_end_is_told(tmp_path, knownminds):
    with pytest.raises(ValueError, match="nested as deeply"):
        parsed(DEEP)
    assert _message(DEEP) == DEEP[:200]
    (tmp_path / "prices.json").write_text(DEEP)
    with pytest.raises(ValueError, match="readable JSON"):
        read_prices(tmp_path / "prices.json")
    (tmp_path / "study.json").write_text(DEEP)
    with pytest.raises(ValueError, match="damaged or was not written by a study"):
        Study.read(tmp_path)
    code, _, told = knownminds("report", tmp_path)
    assert code == 2
    assert "Traceback" not in told


@pytest.mark.parametrize("value", [1e30, 2.0**53, -1e300])
def test_a_whole_number_that_is_none_is_named_with_its_row(value):
    with pytest.raises(ValueError, match=r"'trial' holds whole numbers; row 2 has"):
        trials(trial=[0.0, value])


def test_marks_that_never_close_are_read_in_no_time():
    began = time.process_time()
    with pytest.raises(ValueError, match="the text has none"):
        _split("<<" * 2**16)
    assert time.process_time() - began < 1.0  # 14 s for a quarter of that, before
    assert _split("q <<a>>\n\nr <<b>>") == (["q ", "r "], ["a", "b"])


CONFIGURATION = {"environment": "e", "settings": {}, "provider": "p", "model": "m", "base_url": ""}
HARM = [
    "DELETE FROM meta WHERE name = 'configuration'",
    "DELETE FROM meta WHERE name = 'price'",
    "INSERT INTO call VALUES (1, 0, 0, 0, 'h', 'done', 7, 'ok', '')",
    "INSERT INTO attempt (id, call, number, state, began, reserved_tokens, reply, raw) "
    "VALUES (7, 1, 1, 'ok', 0, 9, '{}', '');"
    "INSERT INTO call VALUES (1, 0, 0, 0, 'h', 'done', 7, 'ok', '')",
    "INSERT INTO attempt (id, call, number, state, began, reserved_tokens, reply, raw) "
    f"VALUES (7, 1, 1, 'ok', 0, 9, '{'[' * 20_000}', '');"
    "INSERT INTO call VALUES (1, 0, 0, 0, 'h', 'done', 7, 'ok', '')",
]


@pytest.mark.parametrize("harm", HARM)
def test_a_ledger_that_lacks_a_row_is_named(tmp_path, harm):
    Ledger.open(tmp_path, CONFIGURATION, 1).close()
    with closing(sqlite3.connect(tmp_path / FILE)) as connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.executescript(harm)
    with pytest.raises(ValueError, match="cannot be read as a ledger"):
        _all_of(tmp_path)


def _all_of(folder):
    with Ledger.read(folder) as ledger:
        return ledger.configuration, ledger.calls_of(0)


def test_a_garbage_page_in_a_ledger_is_named(tmp_path):
    Ledger.open(tmp_path, {**CONFIGURATION, "long": "x" * 20_000}, 1).close()
    content = bytearray((tmp_path / FILE).read_bytes())
    content[4096:] = b"\xa5" * (len(content) - 4096)
    (tmp_path / FILE).write_bytes(content)
    with pytest.raises(ValueError, match="cannot be read as a ledger"):
        _all_of(tmp_path)
