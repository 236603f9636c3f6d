"""What an import understood: rows read, trials made, what was derived, and what was left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from knownminds.environments import ANSWERED, Trials
from knownminds.environments.record.tabled_result import TabledResult
from knownminds.environments.record.text_table import counted

DERIVED, UNREADABLE, LEFT_OUT, TOLD = "derived", "unreadable", "left out", "note"
ASSUMED, ASKED = "assumed", "please say"
KINDS = (DERIVED, UNREADABLE, LEFT_OUT, TOLD, ASSUMED, ASKED)


@dataclass(frozen=True)
class Entry:
    """One thing that was done to rows.

    Parameters
    ----------
    kind : One of `KINDS`: a column or row that was worked out from others; an answer that could not
        be taken, whose trial counts as malformed or what else its outcome says; a row that is no
        trial; something that a reader has to know; a setting of the experiment that the files do
        not tell, and one of these that they contradict.
    what : In words.
    rows : How many rows of the files it concerns.
    example : Where the first of them stands.
    """

    kind: str
    what: str
    rows: int
    example: str = ""

    def __str__(self) -> str:
        count = counted(self.rows, "row")
        text = f"{count}, the first: {self.example}" if self.example else count
        return (
            f"  {self.kind:<10}  {self.what} ({text})"
            if self.rows
            else f"  {self.kind:<10}  {self.what}"
        )


@dataclass(frozen=True)
class Account(TabledResult):
    """What an import understood of some files, and what became of every row.

    Parameters
    ----------
    format, environment : The format and the experiment, by name.
    files : Their names.
    rows : How many there were, without heads.
    trials, subjects, sessions : How many were made of them.
    outcomes : How many trials have each outcome.
    entries : What was derived, unreadable and left out.
    """

    format: str
    environment: str
    files: tuple[str, ...]
    rows: int
    trials: int
    subjects: int
    sessions: int
    outcomes: Mapping[str, int]
    entries: tuple[Entry, ...]

    def __str__(self) -> str:
        """Return the account as text: what was read, made, derived, unreadable and left out."""
        few = ", ".join(self.files[:3]) + (
            f" and {len(self.files) - 3} more" if len(self.files) > 3 else ""
        )
        outcomes = ", ".join(f"{n:,} {name}" for name, n in self.outcomes.items())
        head = (
            f"{self.environment or 'trials'} from {few} ({self.format}): "
            f"{counted(self.rows, 'row')} read, {counted(self.trials, 'trial')} of "
            f"{counted(self.subjects, 'subject')} in {counted(self.sessions, 'session')}"
        )
        ordered = sorted(self.entries, key=lambda entry: KINDS.index(entry.kind))
        return "\n".join([head, *map(str, ordered), f"  outcomes    {outcomes}"])


@dataclass
class Tally:
    """Collects what is done to rows while files are read."""

    rows: int = 0
    _found: dict[tuple[str, str], list[Any]] = field(default_factory=dict)

    def add(self, kind: str, what: str, rows: int = 0, example: str = "") -> None:
        """Count rows under a kind and what was done; the first example is kept."""
        kept = self._found.setdefault((kind, what), [0, example])
        kept[0] += rows
        kept[1] = kept[1] or example

    def mark(self, kind: str, what: str, table: CellTable, which: ArrayLike) -> None:
        """Count the rows of a table that a mask marks; nothing if it marks none."""
        rows = np.flatnonzero(np.asarray(which, dtype=bool))
        if len(rows):
            self.add(kind, what, len(rows), table.row_name(int(rows[0])))

    @property
    def entries(self) -> tuple[Entry, ...]:
        """What was counted, in order of appearance."""
        return tuple(Entry(kind, what, n, at) for (kind, what), (n, at) in self._found.items())


@dataclass(frozen=True)
class CellTable:
    """A table of cells as they stand in a file, all text; a gap is a missing value.

    Parameters
    ----------
    name : The file's, without its ending.
    file : The file's, with it.
    cells : One row per row of the file.
    lines : Number of each row in the file, from 1, heads not counted, [rows].
    delimiter : Between cells; "" where the file is no text.
    version : Of the experiment, from the file's folder; "" if it tells none.
    folder : The name of that folder.
    cut : Whether the file ends within a row, which was left out.
    """

    name: str
    file: str
    cells: pd.DataFrame
    lines: np.ndarray[Any, np.dtype[np.int64]]
    delimiter: str = ","
    version: str = ""
    folder: str = ""
    cut: bool = False

    def __len__(self) -> int:
        return len(self.cells)

    def row_name(self, row: int) -> str:
        """Say where a row stands."""
        return f"row {self.lines[row]} of {self.file}"

    def keep(self, which: ArrayLike) -> CellTable:
        """Return the table of the rows that a mask marks."""
        mask = np.asarray(which, dtype=bool)
        if mask.all():
            return self
        cells = self.cells[mask].reset_index(drop=True)
        return replace(self, cells=cells, lines=self.lines[mask])

    def named(self, names: Mapping[str, str]) -> CellTable:
        """Return the table with other names of columns: theirs -> ours."""
        return replace(self, cells=self.cells.rename(columns=dict(names)))


def account_of(
    format: str, environment: str, tables: Sequence[CellTable], tally: Tally, frame: pd.DataFrame
) -> Account:
    """Return the account of trials that were made of tables."""
    return Account(
        format,
        environment,
        tuple(table.file for table in tables),
        tally.rows,
        len(frame),
        frame["subject"].nunique(),
        len(frame[["subject", "session"]].drop_duplicates()),
        {str(name): int(n) for name, n in frame["outcome"].value_counts().items()},
        tally.entries,
    )


def account_of_texts(format: str, files: Sequence[str], trials: Trials) -> Account:
    """Return the account of trials that were read from words: texts of sessions, or logs."""
    frame = trials.frame
    tally = Tally(rows=len(frame))
    answered = frame["outcome"].isin(ANSWERED)
    if "reward" in frame and frame["reward"].notna().any():
        untold = int((answered & frame["reward"].isna()).sum())
        if untold:
            tally.add(TOLD, "an answer whose reward no words tell, so that it is missing", untold)
    repaired = int((frame["outcome"] == "repaired").sum())
    if repaired:
        tally.add(DERIVED, "an answer in another form than was wanted", repaired)
    for outcome in frame["outcome"][~answered].unique():
        n = int((frame["outcome"] == outcome).sum())
        tally.add(UNREADABLE, f"an answer that is {outcome}", n)
    names = frame["environment"].dropna().unique() if "environment" in frame else ()
    tables = [CellTable(file, file, frame.iloc[:0], np.zeros(0, dtype=np.int64)) for file in files]
    return account_of(format, ", ".join(map(str, names)), tables, tally, frame)
