"""What a terminal shows of a result: all of it, or what answers the question in 24 lines."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from io import StringIO
from math import isnan
from textwrap import shorten, wrap
from typing import Any, Protocol

import numpy as np
from rich.console import Console
from rich.table import Table

from knownminds.environments.later import pandas as pd
from knownminds.environments.record.text_table import GAP, WIDTH, counted, text_table

from .scores import Interval
from .verdicts import Verdict

LINES = 24  # of a terminal
SAID_BESIDE = 4  # of them are for what a command says besides: its report, what it took for granted
READ = 100  # columns beyond which sentences are not read with ease
CELL = 72  # characters of a cell; reports have all
NAME = 36  # characters of each of several names on a screen
WARNED = 3  # warnings on a screen, of two lines each
LEAST = 5  # rows of the table that answers, whatever else there is to say
UNSHOWN = 40  # rows of a table from which on it is printed in part
INTERVALS = "intervals"  # of a table's `attrs`: the mass of those that low and high are the ends of


class Said(Protocol):
    """What a terminal shows of a result."""

    @property
    def title(self) -> str: ...  # noqa: D102
    @property
    def verdicts(self) -> Mapping[str, Verdict]: ...  # noqa: D102
    @property
    def every_table(self) -> Sequence[tuple[str, pd.DataFrame]]: ...  # noqa: D102
    @property
    def shows(self) -> Sequence[str]: ...  # noqa: D102
    @property
    def leads(self) -> str: ...  # noqa: D102
    @property
    def counts(self) -> Mapping[str, Mapping[str, int]]: ...  # noqa: D102
    @property
    def warnings(self) -> Sequence[str]: ...  # noqa: D102
    @property
    def notes(self) -> Sequence[str]: ...  # noqa: D102
    @property
    def missing(self) -> int: ...  # noqa: D102


def width_of_screen() -> int:
    """Return the columns of the terminal, or what the variable COLUMNS says, also in a pipe."""
    return max(shutil.get_terminal_size((WIDTH, LINES)).columns, WIDTH // 2)


def screen(result: Said, where: str) -> str:
    """Return title, verdicts, the table that answers, counts, and what is not shown.

    Parameters
    ----------
    where : The rest is shown: "--full".
    """
    width = width_of_screen()
    lines = wrap(result.title, width) or [""]
    if result.missing:
        lines.append(f"not finished: {result.missing:,} units are missing")
    counts = {of: n for of, n in result.counts.items() if sum(n.values())}
    ending = [text for of, n in counts.items() for text in wrap(_said(of, n), width)]
    for text in result.warnings[:WARNED]:
        ending += wrap(text, width, max_lines=2, placeholder=" ...")
    verdicts = _judged(result.verdicts, width)
    room = LINES - SAID_BESIDE - len(lines) - len(ending) - 1  # one for the rest
    tables = result.every_table
    tables = sorted(tables, key=lambda item: item[0] != result.leads)  # which keeps their order
    if tables:
        room -= 4  # title, head and two empty lines
        verdicts = _first(verdicts, room - min(len(tables[0][1]), LEAST), result.verdicts)
    lines += [line for verdict in verdicts for line in verdict]
    hidden = 0
    if tables:
        title, table = tables[0]
        body, hidden = _answering(table, result.shows, width, room - sum(map(len, verdicts)))
        lines += ["", *wrap(headed(title, table), width), *body, *([""] if ending else [])]
    warned = len(result.warnings) - WARNED
    left = [(len(tables) - 1, "table"), (hidden, "column"), (warned, "warning")]
    left.append((len(result.notes), "note"))
    rest = ", ".join([counted(n, what) for n, what in left if n > 0])
    ending += wrap(f"Not shown: {rest} ({where})", width) if rest else []
    return "\n".join([*lines, *ending])


def text_of(result: Said) -> str:
    """Return title, counts, verdicts, all tables and all notes."""
    width = width_of_screen()
    lines = [result.title]
    if result.missing:
        lines.append(f"not finished: {result.missing:,} units are missing")
    for name, verdict in result.verdicts.items():
        lines += wrap(f"{name}: {verdict}", min(width, READ), subsequent_indent="  ")
    for title, table in result.every_table:
        lines += ["", headed(title, table), *_printed(table, width)]
    for note in (*result.warnings, *result.notes):
        lines += ["", *wrap(note, min(width, READ))]
    return "\n".join(lines)


def headed(title: str, table: pd.DataFrame) -> str:
    """Return a table's title, with the mass of the intervals that its columns low and high end."""
    mass = table.attrs.get(INTERVALS)
    return f"{title} (low, high: {mass:.0%} intervals)" if mass else title


def _said(of: str, counts: Mapping[str, int]) -> str:
    """Write down counts: "50 fits: 43 ok, 7 flat"."""
    each = ", ".join(f"{n:,} {name}" for name, n in counts.items() if n)
    return f"{counted(sum(counts.values()), of.removesuffix('s'))}: {each}"


def _judged(verdicts: Mapping[str, Verdict], width: int) -> list[list[str]]:
    """Return the lines of each verdict: its word, and what would decide or one reason."""
    judged = []
    for name, verdict in verdicts.items():
        why = str(verdict.more) if verdict.more else "".join(verdict.reasons[:1])
        line = f"{name}: {verdict.word}{f' ({why})' if why else ''}"
        judged.append(wrap(line, width, subsequent_indent="  ", max_lines=2, placeholder=" ..."))
    return judged


def _first(judged: list[list[str]], room: int, verdicts: Mapping[str, Verdict]) -> list[list[str]]:
    """Return the verdicts that there is room for, and the words of the others in one line."""
    if sum(map(len, judged)) <= room:
        return judged
    kept: list[list[str]] = []
    while sum(map(len, kept)) + len(judged[len(kept)]) < room:
        kept.append(judged[len(kept)])
    words = Counter(verdict.word for verdict in list(verdicts.values())[len(kept) :])
    others = ", ".join(f"{n} {word}" for word, n in words.items())
    return [*kept, [shorten(f"{len(judged) - len(kept)} more verdicts: {others}", WIDTH)]]


def _answering(
    table: pd.DataFrame, shows: Sequence[str], width: int, room: int
) -> tuple[list[str], int]:
    """Return the lines of a table with those columns that answer, and how many are left out.

    Where none are named, those with intervals come before the others.
    Columns in which nothing stands are left out and not counted.
    """
    head, rows = shown(table)
    names = _keys(table, rows)
    told = [k for k in range(len(head)) if any(row[k] not in ("", "-") for row in rows)]
    estimated = {
        str(name).replace("_", " ")
        for name in table
        if any(isinstance(value, Interval) for value in table[name])
    }
    wanted = {name.replace("_", " "): place for place, name in enumerate(shows)}
    order = sorted(
        (k for k in told if k >= names and (not shows or head[k] in wanted)),
        key=lambda k: (not shows and head[k] not in estimated, wanted.get(head[k], k)),
    )
    # A single name has the room that the column leaves which answers.
    first = max((len(row[order[0]]) for row in rows), default=0) if order else 0
    most = max(NAME, width - first - GAP) if names == 1 else NAME
    cells = [[*(_short(name, most) for name in row[:names]), *row[names:]] for row in rows]
    widths = [max(map(len, column)) for column in zip(head, *cells, strict=True)]
    taken = [k for k in told if k < names]
    used = sum(widths[k] + GAP for k in taken) - GAP
    for k in order:
        if used + GAP + widths[k] <= width or len(taken) == names:
            taken.append(k)
            used += GAP + widths[k]
    taken.sort()
    few = cells if len(cells) <= room else cells[: max(room - 1, 1)]
    body = text_table(
        [head[k] for k in taken],
        [[row[k] for k in taken] for row in few],
        words=any(not _is_number(row[taken[-1]]) for row in few),
        names=sum(k < names for k in taken),
        width=width,
    )
    more = [f"... {len(cells):,} rows in all"] if len(few) < len(cells) else []
    return [*body, *more], len(told) - len(taken)


def _short(name: str, most: int) -> str:
    return name if len(name) <= most else name[: most - 4].rstrip() + " ..."


def _keys(table: pd.DataFrame, rows: Sequence[Sequence[str]]) -> int:
    """Count the first columns, which say what a row is about: the index, or columns of words."""
    columns = len(rows[0])
    named = 0 if table.index.names == [None] else table.index.nlevels
    if not named:
        while named < columns and not any(_is_number(row[named]) for row in rows):
            named += 1
    return min(max(named, 1), max(columns - 1, 1))


def _printed(table: pd.DataFrame, width: int) -> list[str]:
    """Return the lines of a table with all columns."""
    head, rows = shown(table)
    rows = [[shorten(cell, CELL, placeholder=" ...") for cell in row] for row in rows]
    several = rows if len(rows) <= UNSHOWN else rows[: UNSHOWN // 2]
    words = any(not _is_number(row[-1]) for row in several)
    lines = text_table(head, several, words=words, names=_keys(table, rows), width=width)
    if len(several) < len(rows):
        lines.append(f"... {len(rows):,} rows in all; the report and its CSV hold them")
    return lines


def _is_number(text: str) -> bool:
    return text != "" and text[0] in "-0123456789∞"


def shown(table: pd.DataFrame) -> tuple[list[str], list[list[str]]]:
    """Return head and cells of a table as texts, those of its index first."""
    whole = named_rows(table)
    head = [str(name).replace("_", " ") for name in whole]
    return head, [[cell_text(value) for value in row] for row in whole.itertuples(index=False)]


def folded_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table of texts that fits the screen: the first column is never wrapped."""
    table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0))
    for number, name in enumerate(head):
        table.add_column(name, no_wrap=number == 0, overflow="fold")
    for row in rows:
        table.add_row(*row)
    kept = StringIO()
    Console(file=kept, width=width_of_screen(), highlight=False, emoji=False, markup=False).print(
        table
    )
    return "\n".join(line.rstrip() for line in kept.getvalue().splitlines())


def cell_text(value: Any) -> str:
    """Write a cell of a table: numbers with three decimals, small ones with two digits."""
    if isinstance(value, np.floating):
        value = float(value)
    if isinstance(value, float):
        if not np.isfinite(value):
            return "-" if isnan(value) else ("∞" if value > 0 else "-∞")
        if value == round(value) and abs(value) < 1e6:
            return f"{value:.0f}"
        return f"{value:.3f}" if abs(value) >= 0.01 else f"{value:.2g}"
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, int | np.integer):
        return f"{value:,}"
    return "-" if value is None else str(value)


def named_rows(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table with its index as columns, unless that only counts."""
    return table if table.index.names == [None] else table.reset_index()
