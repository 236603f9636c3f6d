"""What the page of a result says; `report` puts it on paper, one module per kind fills it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite, isnan
from string import Formatter
from typing import Any

import pandas as pd

from knownminds.environments import Rate
from knownminds.validation.engine.scores import Score
from knownminds.validation.engine.verdicts import Verdict

ERRORS = "Monte-Carlo standard errors in parentheses."
STATUSES = (
    "Statuses: flat, the trials say next to nothing about a parameter; boundary, the data ask for "
    "an infinite value; failed, no trustworthy estimate."
)
GOOD = ("recoverable", "calibrated", "size holds", "confirmed")
FAIR = ("weak", "too few false alarms")
BAD = (
    "not identified",
    "too many false alarms",
    "not confirmed",
    "not reproduced",
    "biased high",
    "biased low",
    "over-confident",
    "under-confident",
    "miscalibrated",
)

Table = tuple[str, Sequence[str], Sequence[Sequence[str]]]  # title, head and rows
# Of a table: its head, and how a row is written there, see `table`.
Column = tuple[str, str | Callable[[Any], str]]


def tone(word: str) -> str:
    """Return the colour of a verdict, "good", "fair" or "bad"; "" of any other text.

    A verdict "between" two words is fair: it is neither proven nor refuted.
    """
    if word.startswith("between "):
        return "fair"
    first = word.partition(", ")[0]
    tones = {"good": GOOD, "fair": FAIR, "bad": BAD}
    return next((name for name, words in tones.items() if first in words), "")


@dataclass(frozen=True)
class Finding:
    """An answer to what was asked.

    Parameters
    ----------
    name, word, why
        What it is about, the verdict or answer, and its reasons.
    tone
        See `tone`.
    anchors
        Label and anchor of places on the page where it can be looked up, beside those that bear
        its name.
    """

    name: str
    word: str
    why: str
    tone: str
    anchors: Sequence[tuple[str, str]] = ()

    @classmethod
    def of(cls, name: str, verdict: Verdict) -> Finding:
        """Return what a verdict says."""
        return cls(name, verdict.word, " ".join(verdict.reasons), tone(verdict.word))


@dataclass(frozen=True)
class Turn:
    """A question of a session: what was shown, what was answered, and how that was read.

    Parameters
    ----------
    session, title
        The session it belongs to, and its heading.
    anchor
        Under which the page has it.
    messages
        Role and text of what was shown and had not been shown before in this session.
    answers
        Texts that came; several where it was asked again.
    read
        What became of the answer.
    tone
        See `tone`; "" where it was read.
    """

    session: str
    title: str
    anchor: str
    messages: Sequence[tuple[str, str]]
    answers: Sequence[str]
    read: str
    tone: str = ""


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


@dataclass(frozen=True)
class Page:
    """The content of a report.

    Parameters
    ----------
    asked
        Pairs of name and text: what was asked.
    sentences, notes
        Paragraphs before and after the tables.
    tables
        Those without a row are left out.
    figures
        Caption and SVG text of each.
    command
        The command line that computes it again; empty if there is none.
    sections
        Parts with headings of their own, behind figures and tables.
    transcripts, transcripts_told
        Questions and answers of sessions, and which of all these are.
    """

    title: str
    asked: Sequence[tuple[str, str]]
    findings: Sequence[Finding]
    sentences: Sequence[str]
    notes: Sequence[str]
    tables: Sequence[Table]
    figures: Sequence[tuple[str, str]]
    command: str
    versions: Mapping[str, str]
    sections: Sequence[Section] = ()
    transcripts: Sequence[Turn] = ()
    transcripts_told: Sequence[str] = ()

    @property
    def drawn(self) -> list[tuple[str, str]]:
        """Caption and SVG text of all figures, also those of sections."""
        return [*self.figures, *(one for part in self.sections for one in part.figures)]

    @property
    def listed(self) -> list[Table]:
        """All tables, also those of sections, in the order of the page."""
        return [*self.tables, *(one for part in self.sections for one in part.tables)]

    def __post_init__(self) -> None:
        """Leave out what is empty."""
        object.__setattr__(self, "tables", [table for table in self.tables if table[2]])


def listed(values: Mapping[str, Any]) -> str:
    """Write down named values, but for those that are not set."""
    kept = {
        k: v for k, v in values.items() if v is not None and v is not False and v not in ({}, [])
    }
    return "; ".join(f"{k}: {_plain(v)}" for k, v in kept.items())


def _plain(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{k}={_plain(v)}" for k, v in value.items())
    return f"{value:g}" if isinstance(value, float) else str(value)


def numbers(values: Iterable[Any]) -> str:
    """Write down several numbers, each once, in order."""
    return ", ".join(_plain(value) for value in sorted(set(values)))


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


def number(value: float, digits: int = 3) -> str:
    """Write down a number; "-" if there is none."""
    return f"{value:.{digits}f}" if isfinite(value) else "-"


def small(p: float) -> str:
    """Write down a p-value with three decimals; "<.001" below these, "-" if there is none."""
    if not isfinite(p):
        return "-"
    return "<.001" if p < 0.001 else f"{p:.3f}"


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


def status_table(statuses: Mapping[str, int], attempted: int, of: str = "fits") -> Table:
    """Count the statuses of all that was attempted."""
    return table(
        f"Status of the {of}",
        statuses.items(),
        ("status", "{0}"),
        ("number", "{1:,}"),
        ("share", lambda row: f"{row[1] / attempted:.1%}" if attempted else "-"),
    )


def outcome_table(rates: Sequence[Rate], of: str = "") -> Table:
    """Count what became of the answers, with 95% intervals of Wilson."""
    return table(
        "Outcomes of the answers" + (f": {of}" if of else ""),
        [rate for rate in rates if rate.of],
        ("outcome", "{outcome}"),
        ("trials", "{count:,}"),
        ("share", "{share:.1%}"),
        ("95% interval", "{low:.1%} to {high:.1%}"),
    )
