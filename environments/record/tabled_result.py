"""Results of inference as values: text, JSON and the notebook view follow from their rows."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from html import escape
from typing import Any

import numpy as np

from knownminds.environments.later import pandas as pd

from .text_table import counted

LINE = 100  # characters of a result's short text
ROWS, WIDTH = 40, 80  # rows and characters of the table in a result's text


class TabledResult:
    """A result; a subclass is a frozen dataclass with a table of its rows, `to_frame`."""

    def __init_subclass__(cls, **options: Any) -> None:
        """Keep dataclasses from printing all fields; a result prints as one line."""
        super().__init_subclass__(**options)
        if "__repr__" not in vars(cls):
            cls.__repr__ = TabledResult.__repr__  # type: ignore[method-assign]

    def __str__(self) -> str:
        """Return what the result is, how many rows it has, and the table of `summary`."""
        words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(self).__name__).lower()
        table = self.summary()
        rows = table.to_string(index=False, float_format="%.4g", max_rows=ROWS, line_width=WIDTH)
        return f"{words}, {counted(len(table), 'row')}\n{rows}"

    def __repr__(self) -> str:
        """Return the first line of the text."""
        kind, first = type(self).__name__, str(self).splitlines()[0]
        return f"<{kind}: {first if len(first) <= LINE else first[: LINE - 3] + '...'}>"

    def summary(self) -> pd.DataFrame:
        """Return the table of rows, or of the fields that are single values."""
        if hasattr(self, "to_frame"):
            table: pd.DataFrame = self.to_frame()
            return table
        whole = pd.json_normalize(self.to_dict(), sep=" ")
        return whole[[name for name in whole if not isinstance(whole[name].iloc[0], list)]]

    def content(self) -> Any:
        """What `to_dict` gives, of any types that `plain` knows: the rows, or else all fields."""
        if hasattr(self, "to_frame"):
            return self.to_frame()
        return {entry.name: getattr(self, entry.name) for entry in fields(self)}  # type: ignore[arg-type]

    def to_dict(self) -> Any:
        """Return the result as plain dictionaries and lists, as `to_json` writes it."""
        return plain(self.content())

    def to_json(self) -> str:
        """Return the result as JSON; missing values are null."""
        return json.dumps(self.to_dict())

    def _repr_html_(self) -> str:
        """Return the text as HTML, for a notebook."""
        return f"<pre>{escape(str(self))}</pre>"


def plain(value: Any) -> Any:
    """Return a value in a form that JSON allows: tables as records, NaN and infinity as None."""
    if isinstance(value, TabledResult):
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
        return {entry.name: plain(getattr(value, entry.name)) for entry in fields(value)}
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value
