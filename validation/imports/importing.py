"""Files of others to trials, with an account of what was understood."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from knownminds.environments import Environment, Trials, make, unknown

from .account import DERIVED, LEFT_OUT, TOLD, Account, Table, Tally, account_of, counted
from .formats import Format, format_of
from .proposal import propose
from .tables import named_after_file, read_table

WIDE = 5  # numbered columns of one name, from which on a table is taken for wide


def import_tables(
    files: Sequence[Path],
    source: str | None = None,
    *,
    environment: str | None = None,
    settings: Mapping[str, Any] | None = None,
    where: Mapping[str, str] | None = None,
    encoding: str | None = None,
    missing: Sequence[str] = (),
    subject_from_file: bool = False,
) -> tuple[Trials, Account]:
    """Read tables in formats that are known, and say what was understood.

    Parameters
    ----------
    files
        Text tables; those of 0 bytes are passed over and counted.
    source
        None for what the heads tell; else a name of `formats.families`.
    environment
        Which experiment, where a head fits several.
    settings
        Of the experiment, beyond those that follow from the trials.
    where
        Only rows whose columns have these values, by their names in the file.
    encoding, missing
        See `tables.read_table`.
    subject_from_file
        Whether each file is of one subject, whose name is the file's.

    Raises
    ------
    ValueError
        If a file is of no known format, no row can be used, or files are of several experiments.
    """
    tally = Tally()
    tables: list[Table] = []
    used: list[Table] = []
    frames: list[pd.DataFrame] = []
    formats: list[Format] = []
    for file in files:
        if file.is_file() and not file.stat().st_size and len(files) > 1:
            tally.add(TOLD, f"{file.name} is empty and was passed over")
            continue
        table = chosen(read_table(file, tally, encoding=encoding, gaps=missing), where, tally)
        fitting = format_of(table, source, environment)
        if fitting is None:
            raise UnexplainedError(table, source, environment, subject_from_file)
        known, ready = fitting
        frame = known.read(ready, tally, settings or {})
        unread = known.unread(ready, frame)
        if unread and len(frame):
            tally.add(TOLD, f"columns that are not kept: {', '.join(unread)}")
        if subject_from_file:
            frame = frame.assign(subject=table.name)
        tables.append(table)
        if not len(frame):
            tally.add(TOLD, f"no row of {file.name} could be used")
            continue
        formats.append(known)
        used.append(table)
        frames.append(frame)
    if not frames:
        raise ValueError(_nothing(tables, tally))
    names = sorted({known.environment for known in formats})
    if len(names) > 1:
        raise ValueError(
            f"Trials of one experiment go into one file; these are of {', '.join(names)}. "
            "Import them apart."
        )
    whole = pd.concat(sessions_apart(frames, used, tally), ignore_index=True)
    place = _experiment(names[0], formats[0], whole, tables, settings or {})
    if "raw_text" in whole and whole["raw_text"].isna().all():
        whole = whole.drop(columns="raw_text")
    if place is None:
        whole = whole.assign(environment=names[0])
    trials = Trials.from_frame(whole, environment=place)
    account = account_of(formats[0].name, names[0], tables, tally, trials.frame)
    return trials, account


def sessions_apart(
    frames: Sequence[pd.DataFrame], tables: Sequence[Table], tally: Tally
) -> list[pd.DataFrame]:
    """Return the trials of several files, sessions that stand in several of them told apart.

    A session that is the same in an earlier file, trial by trial, is left out. One with other
    answers is a further pass, and its name says which.
    """
    places = [_places(frame) for frame in frames]
    if not pd.concat(places).duplicated().any():
        return list(frames)
    apart: list[pd.DataFrame] = []
    seen: dict[tuple[str, str], list[pd.DataFrame]] = {}
    for frame, table in zip(frames, tables, strict=True):
        own = frame if "session" in frame else frame.assign(session="0")
        kept = []
        for (subject, session), rows in own.groupby(["subject", "session"], sort=False):
            earlier = seen.setdefault((str(subject), str(session)), [])
            trials = rows.sort_values("trial", ignore_index=True)
            if any(trials.equals(other) for other in earlier):
                what = "a trial of a session that stands in an earlier file too"
                tally.add(LEFT_OUT, what, len(rows), f"session {session} in {table.file}")
                continue
            if any(set(trials["trial"]) & set(other["trial"]) for other in earlier):
                what = "a further pass of a session that stands in an earlier file"
                tally.add(DERIVED, what, len(rows), f"session {session} in {table.file}")
                rows = rows.assign(session=f"{session}, pass {len(earlier) + 1}")
            earlier.append(trials)
            kept.append(rows)
        if kept:
            apart.append(pd.concat(kept))
    return apart


def _places(frame: pd.DataFrame) -> pd.DataFrame:
    own = frame if "session" in frame else frame.assign(session="0")
    return own[["subject", "session", "trial"]]


class UnexplainedError(ValueError):
    """A table of no known format; `proposals` are mappings that may explain it.

    Parameters
    ----------
    table, source, environment, subject_from_file
        The table, and what was said of it.
    """

    def __init__(
        self,
        table: Table,
        source: str | None,
        environment: str | None,
        subject_from_file: bool = False,
    ) -> None:
        named = named_after_file(table) if subject_from_file else table
        self.proposals = propose(named, environment)
        of = f"a table of {source}" if source else "of a format that is known"
        names = ", ".join(one.mapping.environment for one in self.proposals)
        may = f"It may be of {names}, as proposed above. " if names else ""
        save = "; --save-map mine.toml keeps the proposal" if self.proposals else ""
        super().__init__(
            f"{table.file} is not {of}: it has the columns "
            f"{', '.join(map(str, table.cells.columns))}. {_wide(table)}{may}Say what they are "
            f"with --map{save}."
        )


def _wide(table: Table) -> str:
    """Return a sentence if a table has a column for each trial; else nothing."""
    numbered = Counter(
        match[1] for name in table.cells.columns if (match := re.fullmatch(r"(.*?)\d+", str(name)))
    )
    stem, n = max(numbered.items(), key=lambda item: item[1], default=("", 0))
    if n < WIDE:
        return ""
    return (
        f"It has {n} columns {stem}1, {stem}2, ...: a wide table, where an import takes a row for "
        "each trial. Make it long first (pandas.wide_to_long, or pivot_longer in R). "
    )


def chosen(table: Table, where: Mapping[str, str] | None, tally: Tally) -> Table:
    """Return the rows whose columns have these values; the others are counted."""
    for column, value in (where or {}).items():
        if column not in table.cells:
            raise ValueError(unknown(f"column of {table.file}", column, table.cells.columns))
        kept = (table.cells[column] == value).fillna(False)
        tally.mark(LEFT_OUT, f"{column} is not {value} (--where)", table, ~kept)
        if not kept.any():
            raise ValueError(
                f"--where keeps some rows; {column}={value} keeps none of {table.file}, which "
                f"has {', '.join(map(str, table.cells[column].dropna().unique()[:5]))}."
            )
        table = table.keep(kept)
    return table


def _experiment(
    name: str, known: Format, frame: pd.DataFrame, tables: Sequence[Table], given: Mapping[str, Any]
) -> Environment | None:
    if "content_name" in frame and frame["domain"].astype("str").isin(list("012")).any():
        return None  # abstract content that is not told in words here
    plain = make(name)
    for setting in given:
        if setting not in plain.settings:
            raise ValueError(unknown(f"setting of {name}", setting, plain.settings))
    return make(name, **{**known.settings(frame, tables), **given})


def _nothing(tables: Sequence[Table], tally: Tally) -> str:
    why = "; ".join(
        f"{entry.what} ({counted(entry.rows, 'row')})" for entry in tally.entries if entry.rows
    )
    names = ", ".join(table.file for table in tables[:3]) or "the files"
    return f"An import makes at least one trial; {names} gave none: {why or 'no rows'}."
