"""What the page of a result says; `report` puts it on paper, one module per kind fills it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite, isnan
from string import Formatter
from typing import Any

import pandas as pd

from knownminds.validation.engine.scores import Score

Table = tuple[str, Sequence[str], Sequence[Sequence[str]]]  # title, head and rows
# Of a table: its head, and how a row is written there, see `table`.
Column = tuple[str, str | Callable[[Any], str]]


@dataclass(frozen=True)
class Section:
    """A part of a page under a heading of its own, as a table or figure of a paper is.

    Parameters
    ----------
    name
        A word for files: its tables are kept as NAME.csv.
    title
        The heading.
    sentences, notes
        Paragraphs before and after tables and figures.
    tables
        Those without a row are left out.
    figures
        Caption and SVG text of each.
    frames
        The numbers behind it: by name, each a CSV file beside the page.
    command
        The command line that computes these again; "" where the page's does.
    scores
        Of a benchmark, what participants are compared by, two at a time: one row per participant
        and score, with the columns participant, score, cell, value, standard_error and, where
        the standard error is estimated, freedom; or None.
    """

    name: str
    title: str
    sentences: Sequence[str] = ()
    tables: Sequence[Table] = ()
    figures: Sequence[tuple[str, str]] = ()
    notes: Sequence[str] = ()
    frames: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    command: str = ""
    scores: pd.DataFrame | None = None

    def __post_init__(self) -> None:
        """Leave out what is empty."""
        object.__setattr__(self, "tables", [table for table in self.tables if table[2]])


def counted(n: int, noun: str) -> str:
    """Write down how many: "1 session", "2 sessions"."""
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def shown(score: Score) -> str:
    """Write down a score with its error; "-" where there is none."""
    if isnan(score.value):
        return "-"
    return f"{score.value:.3f} (-)" if isnan(score.error) else str(score)


def between(row: Mapping[Any, Any]) -> str:
    """Write down the interval of a row, `low` to `high`; "-" if there is none."""
    return f"{row['low']:.3f} to {row['high']:.3f}" if isfinite(row["low"]) else "-"


def table(title: str, rows: pd.DataFrame | Iterable[Any], *columns: Column) -> Table:
    """Write a table from what its columns declare.

    Parameters
    ----------
    rows
        The rows of a frame, mappings, or values with attributes.
    columns
        Each a head and how a row is written there: a function of the row, or a format string over
        its fields, "{low:.3f} to {high:.3f}", of a tuple by number. In these a `Score` is written
        with its error, and a number that is not finite as "-".
    """
    several = rows.to_dict("records") if isinstance(rows, pd.DataFrame) else rows
    cells = [
        [written(how, row) if isinstance(how, str) else how(row) for _, how in columns]
        for row in several
    ]
    return title, [head for head, _ in columns], cells


def written(how: str, row: Any) -> str:
    """Write down the fields of a row, see `table`."""
    return _CELL.format(how, row=row)


class _Cell(Formatter):
    """Format strings over the fields of a row."""

    def get_value(self, key: int | str, args: Any, kwargs: Any) -> Any:
        """Look a field up in the row."""
        row = kwargs["row"]
        keyed = isinstance(key, int) or isinstance(row, Mapping)
        return row[key] if keyed else getattr(row, str(key))

    def format_field(self, value: Any, format_spec: str) -> str:
        """Write a field down."""
        if isinstance(value, Score):
            return shown(value)
        if isinstance(value, float) and not isfinite(value):
            return "-"
        return format(value, format_spec)


_CELL = _Cell()
