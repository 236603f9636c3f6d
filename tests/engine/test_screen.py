"""What a terminal shows of a result, whatever its size."""

import numpy as np
import pandas as pd
import pytest

from knownminds.validation.engine.result import Result
from knownminds.validation.engine.scores import Score
from knownminds.validation.engine.screen import LINES, SAID_BESIDE
from knownminds.validation.engine.verdicts import More, Verdict

NAMES = ["paper", "experiment"]


def large(rows=60, columns=12, verdicts=30):
    """A result that fills several screens."""
    values = {f"score_{k}": [Score(k + 0.5, 0.1)] * rows for k in range(columns)}
    names = {"paper": ["one"] * rows, "experiment": [f"place {k}" for k in range(rows)]}
    words = [Verdict("weak", ("r 0.6",)), Verdict("between", (), More(1200, "subject"))]
    return Result(
        "Can so much be shown?",
        verdicts={f"parameter {k}": words[k % 2] for k in range(verdicts)},
        tables={
            "First": pd.DataFrame({**names, "empty": "", **values}),
            "Second": pd.DataFrame({"x": np.arange(3)}),
        },
        counts={"fits": {"ok": 58, "failed": 2}},
        notes=["One.", "Two."],
    )


@pytest.mark.parametrize("width", [60, 80, 200])
@pytest.mark.parametrize("verdicts", [0, 3, 30])
@pytest.mark.parametrize("rows", [1, 60])
def test_a_screen_holds_it_and_counts_what_it_leaves_out(width, verdicts, rows, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    lines = large(rows, verdicts=verdicts).screen("--full").splitlines()
    assert len(lines) <= LINES - SAID_BESIDE
    assert max(map(len, lines)) <= width
    assert lines[0] == "Can so much be shown?"
    assert "60 fits: 58 ok, 2 failed" in lines
    (head,) = [line for line in lines if line.startswith("paper")]
    hidden = 12 - head.count("score")
    columns = f"{hidden} columns, " if hidden else ""
    assert f"Not shown: 1 table, {columns}2 notes (--full)" in " ".join(lines[-2:])
    assert "empty" not in head
    assert any("60 rows in all" in line for line in lines) == (rows == 60)
    assert any("more verdicts: " in line for line in lines) == (verdicts == 30)
    assert verdicts == 0 or "about 1,200 more subjects" in " ".join(" ".join(lines).split())


def test_columns_that_answer_come_first_and_none_is_counted_twice(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    some = large(3, verdicts=0).about(shows=("score_7", "score_3"))
    text = some.screen("--full")
    (head,) = [line for line in text.splitlines() if line.startswith("paper")]
    assert head.split() == ["paper", "experiment", "score", "3", "score", "7"]
    assert "10 columns" in text


def test_each_block_of_a_broken_table_repeats_its_names(monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    lines = large(2, verdicts=0).text().splitlines()
    heads = [line for line in lines if "score" in line]
    assert len(heads) > 2
    assert all(head.split()[:2] == NAMES for head in heads)
    assert sum("place 1" in line for line in lines) == len(heads)
    assert all(name in "".join(lines) for name in ("Second", "One.", "Two."))
