"""What a command answers: verdicts, tables, figures and notes, from which all else follows."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from math import isnan
from pathlib import Path
from textwrap import shorten, wrap
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from knownminds.environments import unknown
from knownminds.environments.record.text_table import WIDTH, text_table

from .methods import methods_text
from .scores import Interval, Score
from .verdicts import Verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CELL = 72  # characters of a cell on a screen; reports have all
UNSHOWN = 40  # rows of a table from which on it is printed in part


@dataclass(frozen=True)
class Drawing:
    """A figure: the tidy frame that it shows, and the function that draws it.

    Parameters
    ----------
    data
        Saved as CSV beside the pictures.
    draw
        Returns a Matplotlib figure of the frame.
    """

    data: pd.DataFrame
    draw: Callable[[pd.DataFrame], Figure]

    def figure(self) -> Figure:
        """Draw it."""
        return self.draw(self.data)


@dataclass(frozen=True)
class Part:
    """A part of a result, under a title of its own: a paragraph, tables and figures.

    Parameters
    ----------
    name
        Of the file of its rows.
    title, text
        Its head, and the paragraph below it.
    rows
        The tidy frame that its tables and figures are views of; saved whole.
    tables, figures
        By title, and by caption, as in `Result`.
    command
        The command line that computes its numbers from files; "" if there is none.
    """

    name: str
    title: str
    text: str = ""
    rows: pd.DataFrame = field(default_factory=pd.DataFrame, repr=False)
    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    figures: Mapping[str, Drawing] = field(default_factory=dict, repr=False)
    command: str = ""

    def __post_init__(self) -> None:
        """Leave out tables without rows."""
        object.__setattr__(self, "tables", {k: t for k, t in self.tables.items() if len(t)})


@dataclass(frozen=True)
class Result:
    """All that a command answers. Text, JSON, page, files and notebook view follow from it.

    Parameters
    ----------
    title
        The question.
    verdicts
        By what they are about; words and thresholds are those of `verdicts`.
    tables
        By title. The index names the rows; cells are numbers, texts or `Score`s. Tables without
        rows are left out.
    figures
        By caption.
    parts
        Parts of this part; they stand after its tables and figures.
    notes
        Fixed texts: what columns mean, and rules.
    attempted, failed
        Units (subjects, data sets), and those without a result.
    missing
        Units of a study that is not finished that are not there yet.
    rows
        The units, one each, from which tables and figures are made.
    options
        The values of the command's options.
    command
        The command line that asks it again; "" if there is none.
    seconds
        Computing time, summed over processes.
    versions
        Of the packages that the numbers depend on.
    """

    title: str
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)
    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    figures: Mapping[str, Drawing] = field(default_factory=dict, repr=False)
    parts: Sequence[Part] = ()
    notes: Sequence[str] = ()
    attempted: int = 0
    failed: int = 0
    missing: int = 0
    rows: pd.DataFrame = field(default_factory=pd.DataFrame, repr=False)
    options: Mapping[str, Any] = field(default_factory=dict)
    command: str = ""
    seconds: float = 0.0
    versions: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        """Leave out tables without rows."""
        object.__setattr__(self, "tables", {k: t for k, t in self.tables.items() if len(t)})

    def __getitem__(self, title: str) -> pd.DataFrame:
        """Return a table by its title, the first that bears it."""
        for name, table in self.every_table:
            if name == title:
                return table
        raise ValueError(unknown("table", title, [name for name, _ in self.every_table]))

    def part(self, name: str) -> Part:
        """Return a part by its name; ValueError names the nearest if there is none."""
        for part in self.parts:
            if part.name == name:
                return part
        raise ValueError(unknown("part", name, [part.name for part in self.parts]))

    @property
    def every_table(self) -> list[tuple[str, pd.DataFrame]]:
        """Titles and tables, those of parts last."""
        parts = (part.tables for part in self.parts)
        return [item for tables in (self.tables, *parts) for item in tables.items()]

    @property
    def every_figure(self) -> list[tuple[str, Drawing]]:
        """Captions and figures, those of parts last."""
        parts = (part.figures for part in self.parts)
        return [item for figures in (self.figures, *parts) for item in figures.items()]

    @property
    def finished(self) -> bool:
        """Whether all units are there."""
        return self.missing == 0

    @property
    def methods(self) -> str:
        """What was done, as a methods section says it; "" without a command."""
        _, _, words = self.command.partition("knownminds ")
        version = self.versions.get("knownminds", "")
        return methods_text(words.partition(" ")[0], self.options, version)

    def about(self, **more: Any) -> Result:
        """Return the same with more said about where it comes from."""
        return replace(self, **more)

    def plot(self, number: int = 1) -> Figure:
        """Return a figure, counted from 1, as a Matplotlib figure.

        Raises
        ------
        ValueError
            If there is no such figure.
        """
        from knownminds.environments.record.plots import showing

        figures = self.every_figure
        if not 1 <= number <= len(figures):
            raise ValueError(f"There are {len(figures)} figures; got number={number}.")
        return showing(figures[number - 1][1].figure())

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as plain values: scores as NAME and NAME_error, missing as None.

        Of a part, the rows stand there of which its tables are views.
        """
        return {
            "title": self.title,
            "methods": self.methods,
            "options": _plain(self.options),
            "verdicts": {name: one.to_dict() for name, one in self.verdicts.items()},
            "tables": {title: records(table) for title, table in self.tables.items()},
            **(
                {"parts": {part.name: records(part.rows) for part in self.parts}}
                if self.parts
                else {}
            ),
            "notes": list(self.notes),
            "attempted": self.attempted,
            "failed": self.failed,
            "missing": self.missing,
            "command": self.command,
            "seconds": round(self.seconds, 3),
            "versions": dict(self.versions),
        }

    def to_json(self) -> str:
        """Return `to_dict` as JSON."""
        return json.dumps(self.to_dict(), allow_nan=False)

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write report.html, result.json, and tables and figures as files; return the page."""
        from knownminds.validation.pages.result_page import write_page

        return write_page(self, folder)

    def __repr__(self) -> str:
        """Return a line; `print` shows all."""
        sizes = {"verdict": self.verdicts, "table": self.tables, "figure": self.figures}
        told = ", ".join(f"{len(v)} {k}{'' if len(v) == 1 else 's'}" for k, v in sizes.items())
        return f"<Result: {self.title} {told}>"

    def __str__(self) -> str:
        """Title, counts, verdicts, and tables that fit a screen."""
        lines = [self.title]
        if self.missing:
            lines.append(f"not finished: {self.missing:,} units are missing")
        for name, verdict in self.verdicts.items():
            lines += wrap(f"{name}: {verdict}", WIDTH, subsequent_indent="  ")
        for title, table in self.every_table:
            lines += ["", title, *_printed(table)]
        for note in self.notes:
            lines += ["", *wrap(note, WIDTH)]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Show a notebook the page, in a frame of its own."""
        from knownminds.validation.pages.result_page import page_text

        text = escape(page_text(self), quote=True)
        return f'<iframe srcdoc="{text}" style="width: 100%; height: 40em; border: 0"></iframe>'


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


def shown(table: pd.DataFrame) -> tuple[list[str], list[list[str]]]:
    """Return head and cells of a table as texts, those of its index first."""
    whole = named_rows(table)
    head = [str(name).replace("_", " ") for name in whole]
    return head, [[cell_text(value) for value in row] for row in whole.itertuples(index=False)]


def flat(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table with its index as columns.

    A score is two columns, NAME and NAME_error; an interval three, NAME, NAME_low and NAME_high.
    """
    whole = named_rows(table)
    columns: dict[str, Any] = {}
    for name, column in whole.items():
        columns[str(name)] = column.to_numpy()
        for kind, more in ((Score, ("error",)), (Interval, ("low", "high"))):
            if any(isinstance(value, kind) for value in column):
                columns[str(name)] = [v.value if isinstance(v, kind) else v for v in column]
                for end in more:
                    ends = [getattr(v, end) if isinstance(v, kind) else np.nan for v in column]
                    columns[f"{name}_{end}"] = ends
    return pd.DataFrame(columns)


def named_rows(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table with its index as columns, unless that only counts."""
    return table if table.index.names == [None] else table.reset_index()


def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a table as JSON has them."""
    rows: list[dict[str, Any]] = _plain(flat(table).to_dict("records"))
    return rows


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def _printed(table: pd.DataFrame) -> list[str]:
    head, rows = shown(table)
    rows = [[shorten(cell, CELL, placeholder=" ...") for cell in row] for row in rows]
    several = rows if len(rows) <= UNSHOWN else rows[: UNSHOWN // 2]
    names = 1 if table.index.names == [None] else table.index.nlevels
    words = any(not _is_number(row[-1]) for row in several)
    lines = text_table(head, several, words=words, names=min(names, len(head) - 1) or 1)
    if len(several) < len(rows):
        lines.append(f"... {len(rows):,} rows in all; the report and its CSV hold them")
    return lines


def _is_number(text: str) -> bool:
    return text[:1] in "-0123456789∞"
