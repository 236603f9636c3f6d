"""Files of browser experiments: jsPsych's JSON, and JATOS's lines of such arrays, as tables."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from .account import LEFT_OUT, TOLD, CellTable, Tally
from .tables import GAPS, stem_of, unpacked

_DEEPEST = 20


def read_browser(path: Path, tally: Tally) -> CellTable:
    """Read screens of a browser experiment as rows; nested fields become columns with dots.

    Parameters
    ----------
    path : A JSON array of objects, one per screen; or such arrays one per line, or touching; or an
        object a line.
    tally : Counts the rows.

    Raises
    ------
    ValueError : If it is no such file.
    """
    rule = "A browser's file is a JSON array of objects, one per screen"
    try:
        text = unpacked(path).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{rule}; {path.name} cannot be read ({error}).") from None
    rows: list[dict[str, Any]] = []
    try:
        for number, value in enumerate(json_values(text)):
            screens = value if isinstance(value, list) else [value]
            if not all(isinstance(screen, Mapping) for screen in screens):
                raise ValueError(f"{rule}; {path.name} holds something else.")
            for screen in screens:
                row = dict(_flat(screen))
                rows.append({"result": str(number), **row} if isinstance(value, list) else row)
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"{rule}; {path.name} is damaged ({error}).") from None
    if not rows:
        raise ValueError(f"{rule}; {path.name} has none.")
    tally.rows += len(rows)
    cells = pd.DataFrame(rows).astype("object")
    cells = cells.where(cells.notna(), None)
    if "result" in cells and cells["result"].nunique() == 1:
        cells = cells.drop(columns="result")
    elif "result" in cells:
        tally.add(
            TOLD, f"{path.name} holds {cells['result'].nunique()} results; `result` numbers them"
        )
    text_cells = cells.astype("str").where(cells.notna())
    text_cells = text_cells.where(~text_cells.isin(GAPS))
    lines = np.arange(1, len(cells) + 1, dtype=np.int64)
    return CellTable(stem_of(path), path.name, text_cells, lines, "")


def is_json(file: Path) -> bool:
    """Whether a file begins as JSON does; ValueError if it cannot be read."""
    return unpacked(file)[:64].lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"[", b"{")


def json_values(text: str) -> Iterator[Any]:
    """Yield the JSON values of a text, one behind the other."""
    decoder, at = json.JSONDecoder(), 0
    while True:
        while at < len(text) and text[at] in " \t\r\n,":
            at += 1
        if at >= len(text):
            return
        value, at = decoder.raw_decode(text, at)
        yield value


def _flat(value: Mapping[str, Any], before: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Yield the fields of an object, those of objects within it by a name with dots."""
    for name, one in value.items():
        called = f"{before}{name}"
        if isinstance(one, Mapping) and depth < _DEEPEST:
            yield from _flat(one, f"{called}.", depth + 1)
        elif isinstance(one, list | Mapping):
            yield called, json.dumps(one)
        elif isinstance(one, float) and one.is_integer():
            yield called, int(one)
        else:
            yield called, one


def opened(table: CellTable, column: str, tally: Tally) -> pd.Series[Any] | None:
    """Return a field within a column of JSON text, named with dots; None if there is none."""
    base, dot, path = column.partition(".")
    if not dot or base not in table.cells:
        return None
    texts = table.cells[base]
    opened_columns: dict[str, str | None] = {}
    damaged = set()
    for text in texts.dropna().unique():
        try:
            value: Any = json.loads(text)
        except (json.JSONDecodeError, RecursionError):
            damaged.add(text)
            continue
        for name in path.split("."):
            value = value.get(name) if isinstance(value, Mapping) else None
        opened_columns[text] = None if value is None else str(value)
    tally.mark(LEFT_OUT, f"{base!r} is no JSON", table, texts.isin(list(damaged)))
    return texts.map(opened_columns)
