"""What was found, as a value: its JSON, its files and its view in a notebook follow from it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from knownminds.environments.later import pandas as pd

from .csv_cells import csv_text
from .folders import writable, write_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LINE = 100  # characters of a result's short text
ROWS = 40  # of the table in a result's text


class Result:
    """What was found; a subclass is a frozen dataclass that writes itself as text.

    `content` is all that its JSON needs, `tables` and `file` all that its files need, and
    `from_dict` is enough to read them back.
    """

    file: ClassVar[str] = ""  # the JSON file in the folder of such a result

    def __init_subclass__(cls, **options: Any) -> None:
        """Keep dataclasses from writing all fields down where a line tells what it is."""
        super().__init_subclass__(**options)
        if "__repr__" not in vars(cls):
            cls.__repr__ = Result.__repr__  # type: ignore[method-assign]

    def __str__(self) -> str:
        """Return what it is, and the table of `summary`."""
        words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(self).__name__).lower()
        table = self.summary().to_string(index=False, float_format="%.4g", max_rows=ROWS)
        return f"{words}\n{table}"

    def __repr__(self) -> str:
        """Return the first line of the text."""
        kind, first = type(self).__name__, str(self).splitlines()[0]
        return f"<{kind}: {first if len(first) <= LINE else first[: LINE - 3] + '...'}>"

    def summary(self) -> pd.DataFrame:
        """Return the table that says most: one row per subject, term, design or measure."""
        if hasattr(self, "to_frame"):
            table: pd.DataFrame = self.to_frame()
            return table
        for table in self.tables().values():
            return table
        content = self.to_dict()
        flat = content if isinstance(content, Mapping) else {"value": content}
        kept = {k: v for k, v in flat.items() if not isinstance(v, dict | list)}
        return pd.DataFrame([kept])

    def plot(self) -> Figure:
        """Draw `summary` as a Matplotlib figure: estimates with their intervals.

        Raises
        ------
        ValueError
            If there are no numbers to draw.
        """
        from .plots import forest, showing

        return showing(forest(self.summary()))

    def content(self) -> Any:
        """What `to_dict` gives, of any types that `plain` knows: the rows, or else all fields."""
        if hasattr(self, "to_frame"):
            return self.to_frame()
        return {own.name: getattr(self, own.name) for own in fields(self)}  # type: ignore[arg-type]

    def tables(self) -> Mapping[str, pd.DataFrame]:
        """The tables that `save` writes as CSV files, by the names of these."""
        return {}

    def to_dict(self) -> Any:
        """The content of `to_json`."""
        return plain(self.content())

    def to_json(self) -> str:
        """Return all that was found as JSON; what is missing is null."""
        return json.dumps(self.to_dict())

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write tables and JSON file into a folder; `read` gives the same back."""
        with writable(folder) as path:
            for name, table in self.tables().items():
                write_text(path / f"{name}.csv", csv_text(_flat(table)))
            write_text(path / self.file, json.dumps(self.to_dict(), indent=1))

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> Self:
        """Make a result of what `to_dict` gave."""
        raise NotImplementedError(f"A {cls.__name__} is not kept in files.")

    @classmethod
    def read(cls, folder: str | os.PathLike[str]) -> Self:
        """Read what `save` wrote; ValueError if it is missing, damaged or something else."""
        file = Path(folder) / cls.file
        try:
            return cls.from_dict(json.loads(file.read_text(encoding="utf-8")))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{file} is damaged or not of knownminds ({error}).") from None

    def _repr_html_(self) -> str:
        """Show a notebook the text."""
        return f"<pre>{escape(str(self))}</pre>"


class SubjectResult(Result):
    """What was found of several subjects, with intervals that hold the mass one asks for."""

    def content(self, mass: float = 0.9) -> Any:
        """What `to_dict` gives, with these intervals."""
        return self.to_frame(mass)  # type: ignore[attr-defined]

    def to_dict(self, mass: float = 0.9) -> Any:
        """The content of `to_json`."""
        return plain(self.content(mass))

    def to_json(self, mass: float = 0.9) -> str:
        """Return all that was found as JSON; what is missing is null."""
        return json.dumps(self.to_dict(mass))


def plain(value: Any) -> Any:
    """Make a value fit for JSON: tables become records, fields keys, NaN and infinity None."""
    if isinstance(value, Result):
        return plain(value.content())
    if isinstance(value, pd.DataFrame):
        return plain(value.to_dict("records"))
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if is_dataclass(value) and not isinstance(value, type):
        return {own.name: plain(getattr(value, own.name)) for own in fields(value)}
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value


def records(table: pd.DataFrame, *, digits: int = 10) -> Any:
    """Return the rows of a table as JSON has them, numbers with so many decimal places."""
    return json.loads(table.to_json(orient="records", double_precision=digits))


def _flat(table: pd.DataFrame) -> pd.DataFrame:
    """Write what is no number or text in a column as JSON."""
    nested = [name for name in table if table[name].map(_is_nested).any()]
    return table.assign(**{str(name): table[name].map(json.dumps) for name in nested})


def _is_nested(value: Any) -> bool:
    return isinstance(value, dict | list | tuple)
