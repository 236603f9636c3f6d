"""What a command answers: verdicts, tables, figures and notes, from which all else follows."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from knownminds.environments import unknown

from .methods import methods_text
from .parts import Drawing, Part, identifier, plain_values, records
from .scores import Interval
from .screen import screen, text_of
from .verdicts import Verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Result:
    """All that a command answers. Text, JSON, page, files and notebook view follow from it.

    Parameters
    ----------
    title : The question.
    verdicts : By what they are about; words and thresholds are those of `verdicts`.
    tables : By title, first the one that answers. The index names the rows; cells are numbers,
        texts or `Score`s. Tables without rows are left out.
    shows : Columns of the first table that a terminal shows, the most important first; all that it
        has room for if none are named.
    leads : Title of the table that a terminal shows; the first if none is named.
    counts : What was attempted, by its status: {"fits": {"ok": 43, "flat": 7}}.
    figures : By caption.
    parts : Parts of this part; they stand after its tables and figures.
    warnings : What was found in the data that a reader may not expect; a terminal shows them.
    notes : Fixed texts: what columns mean, and rules.
    attempted, failed : Units (subjects, data sets), and those without a result.
    missing : Units of a study that is not finished that are not there yet.
    rows : The units, one each, from which tables and figures are made.
    options : The values of the command's options.
    facts : What the methods paragraph says besides the options.
    command : The command line that asks it again; "" if there is none.
    seconds : Computing time, summed over processes.
    versions : Of the packages that the numbers depend on.
    exit_code : Of the command.
    """

    title: str
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)
    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    shows: Sequence[str] = ()
    leads: str = ""
    counts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    figures: Mapping[str, Drawing] = field(default_factory=dict, repr=False)
    parts: Sequence[Part] = ()
    warnings: Sequence[str] = ()
    notes: Sequence[str] = ()
    attempted: int = 0
    failed: int = 0
    missing: int = 0
    rows: pd.DataFrame = field(default_factory=pd.DataFrame, repr=False)
    options: Mapping[str, Any] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict, repr=False)
    command: str = ""
    seconds: float = 0.0
    versions: Mapping[str, str] = field(default_factory=dict, repr=False)
    exit_code: int = 0

    def __post_init__(self) -> None:
        """Leave out tables without rows."""
        object.__setattr__(self, "tables", {k: t for k, t in self.tables.items() if len(t)})

    def __getitem__(self, title: str) -> pd.DataFrame:
        """Return a table by its title, or by the name that it has in JSON."""
        for name, table in self.every_table:
            if title in (name, identifier(name)):
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
        return methods_text(words.partition(" ")[0], {**self.options, **self.facts}, version)

    def about(self, **more: Any) -> Result:
        """Return the same with more said about where it comes from."""
        return replace(self, **more)

    def led_by_estimates(self) -> Result:
        """Return the same, led by the first table with intervals: counts alone answer nothing.

        Those of tables with a single row, as of one participant, stand in one table.
        """
        found = [
            (title, table, str(name), value)
            for title, table in self.every_table
            for name in table
            for value in table[name]
            if isinstance(value, Interval) and np.isfinite(value.low)
        ]
        alone = {
            title if len(table.columns) == 1 else f"{title}: {name}": value
            for title, table, name, value in found
            if len(table) == 1
        }
        if len(alone) > 1:
            whole = pd.DataFrame({"estimate": alone}).rename_axis("of")
            return self.about(tables={"Estimates": whole, **self.tables}, leads="Estimates")
        return self.about(leads=found[0][0]) if found else self

    def plot(self, number: int = 1) -> Figure:
        """Return a figure, counted from 1, as a Matplotlib figure.

        Raises
        ------
        ValueError : If there is no such figure.
        """
        from knownminds.validation.engine.plots import showing

        figures = self.every_figure
        if not isinstance(number, int) or not 1 <= number <= len(figures):
            raise ValueError(f"There are {len(figures)} figures; got number={number!r}.")
        return showing(figures[number - 1][1].figure())

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as plain values: scores as NAME and NAME_error, missing as None.

        Keys of tables and columns are identifiers. `result_schema.json` describes it.
        Of a part, the rows stand there of which its tables are views.
        """
        return {
            "title": self.title,
            "methods": self.methods,
            "options": plain_values(self.options),
            "verdicts": {name: one.to_dict() for name, one in self.verdicts.items()},
            "tables": {identifier(title): records(table) for title, table in self.tables.items()},
            **(
                {"parts": {identifier(part.name): records(part.rows) for part in self.parts}}
                if self.parts
                else {}
            ),
            "warnings": list(self.warnings),
            "notes": list(self.notes),
            "counts": plain_values(self.counts),
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
        from knownminds.validation.pages.result_page import write_page  # Matplotlib is slow

        return write_page(self, folder)

    def __repr__(self) -> str:
        sizes = {"verdict": self.verdicts, "table": self.tables, "figure": self.figures}
        told = ", ".join(f"{len(v)} {k}{'' if len(v) == 1 else 's'}" for k, v in sizes.items())
        return f"<Result: {self.title} {told}>"

    def __str__(self) -> str:
        """Return what answers, in the lines of a terminal; `text()` is all of it."""
        return screen(self, "print(result.text())")

    def text(self) -> str:
        """Return title, counts, verdicts, all tables and all notes."""
        return text_of(self)

    def screen(self, where: str) -> str:
        """Return what answers, in the lines of a terminal, and `where` the rest is."""
        return screen(self, where)

    def _repr_html_(self) -> str:
        """Show a notebook the page, in a frame of its own."""
        from knownminds.validation.pages.result_page import page_text  # Matplotlib is slow

        text = escape(page_text(self), quote=True)
        return f'<iframe srcdoc="{text}" style="width: 100%; height: 40em; border: 0"></iframe>'


@dataclass(frozen=True)
class Text:
    """An answer in words, as that of a dry run.

    Parameters
    ----------
    words : All there is to say.
    content : What JSON has; the words if there is nothing else.
    """

    words: str
    content: Mapping[str, Any] = field(default_factory=dict, repr=False)
    exit_code: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return what JSON has."""
        return plain_values(self.content) if self.content else {"text": self.words}

    def __str__(self) -> str:
        return self.words
