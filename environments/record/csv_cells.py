"""Tables as CSV that a spreadsheet reads as plain data: no cell is run as a formula."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from knownminds.environments.later import pandas as pd

# A spreadsheet may run such texts; an apostrophe before them makes them plain text. A text that
# already begins with an apostrophe gets another one, so that every text comes back unchanged.
_RUN = re.compile(r"'*[=+\-@\t\r\n＝＋－＠]")
_GUARDED = re.compile(r"'+[=+\-@\t\r\n＝＋－＠]")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")


def csv_text(frame: pd.DataFrame, **how: Any) -> str:
    """Return a table as CSV without its index; texts that a spreadsheet would run are quoted."""
    text: str = guarded(frame).to_csv(index=False, **how)
    return text


def guarded(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table with an apostrophe before each text that a spreadsheet would run.

    This includes the names of columns.
    """
    return _mapped(frame, lambda text: f"'{text}" if _runs(text) else text)


def unguarded(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table as it was before `guarded`."""
    return _mapped(frame, lambda text: text[1:] if _GUARDED.match(text) else text)


def _runs(text: str) -> bool:
    return bool(_RUN.match(text)) and not _NUMBER.fullmatch(text)


def _texts_of(column: pd.Series[Any]) -> set[str]:
    cells: Any = column
    with suppress(TypeError, AttributeError):  # a column may hold lists, and a name may stand twice
        cells = column.unique()
    return {cell for cell in cells if isinstance(cell, str)}


def _mapped(frame: pd.DataFrame, change: Callable[[str], str]) -> pd.DataFrame:
    """Change the texts of a table; a text that occurs several times is changed once."""
    texts = frame.columns[[not pd.api.types.is_numeric_dtype(kind) for kind in frame.dtypes]]
    changed = {}
    for name in texts:
        different = _texts_of(frame[name])
        by = {cell: new for cell in different if (new := change(cell)) != cell}
        if by:
            changed[name] = frame[name].map(
                lambda cell, by=by: by.get(cell, cell) if isinstance(cell, str) else cell
            )
    if changed:
        frame = frame.assign(**changed)
    names = {name: change(name) for name in frame.columns if isinstance(name, str)}
    renamed = {old: new for old, new in names.items() if old != new}
    return frame.rename(columns=renamed) if renamed else frame
