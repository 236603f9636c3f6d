"""What results are made of: parts, figures, and tables as files have them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from .scores import Interval, Score
from .screen import named_rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Drawing:
    """A figure: the tidy frame that it shows, and the function that draws it.

    Parameters
    ----------
    data : Saved as CSV beside the pictures.
    draw : Returns a Matplotlib figure of the frame.
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
    name : Of the file of its rows.
    title, text : Its head, and the paragraph below it.
    rows : The tidy frame that its tables and figures are views of; saved whole.
    tables, figures : By title, and by caption, as in `Result`.
    command : The command line that computes its numbers from files; "" if there is none.
    folded : Whether a page shows its title alone until a reader opens it.
    """

    name: str
    title: str
    text: str = ""
    rows: pd.DataFrame = field(default_factory=pd.DataFrame, repr=False)
    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    figures: Mapping[str, Drawing] = field(default_factory=dict, repr=False)
    command: str = ""
    folded: bool = False

    def __post_init__(self) -> None:
        """Leave out tables without rows."""
        object.__setattr__(self, "tables", {k: t for k, t in self.tables.items() if len(t)})


def identifier(name: str) -> str:
    """Return what a table or a column is called in JSON and CSV: "90% covers" is coverage_90."""
    name = re.sub(r"(\d+)% covers", r"coverage \1", name)
    name = re.sub(r"(\d+)% width|width of (\d+)%", r"width \1\2", name)
    plain = unicodedata.normalize("NFKD", name.lower()).encode("ascii", "ignore").decode()
    words = "_".join(re.findall(r"[a-z0-9]+", plain)) or "column"
    return f"n_{words}" if words[0].isdigit() else words


def flat(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table with its index as columns.

    Columns are named by identifiers. A score is two columns, NAME and NAME_error; an interval
    three, NAME, NAME_low and NAME_high.
    """
    whole = named_rows(table)
    columns: dict[str, Any] = {}
    for called, column in whole.items():
        name = identifier(str(called))
        columns[name] = column.to_numpy()
        for kind, more in ((Score, ("error",)), (Interval, ("low", "high"))):
            if any(isinstance(value, kind) for value in column):
                columns[name] = [v.value if isinstance(v, kind) else v for v in column]
                for end in more:
                    ends = [getattr(v, end) if isinstance(v, kind) else np.nan for v in column]
                    columns[f"{name}_{end}"] = ends
    return pd.DataFrame(columns)


def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a table as JSON has them."""
    rows: list[dict[str, Any]] = plain_values(flat(table).to_dict("records"))
    return rows


def plain_values(value: Any) -> Any:
    """Return a value as JSON has it: missing numbers as None, what is no value as text."""
    if isinstance(value, Mapping):
        return {str(k): plain_values(v) for k, v in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return plain_values(value.tolist())
    if isinstance(value, list | tuple):
        return [plain_values(v) for v in value]
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value if isinstance(value, str | int | float | bool | None) else str(value)
