"""The numbers that a figure shows, as one tidy table, whatever it draws."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.collections import Collection, LineCollection, PathCollection, PolyCollection
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import FixedLocator
from numpy.typing import NDArray

COLUMNS = ("panel", "mark", "series", "x", "y", "x_to", "y_to", "value", "x_name", "y_name")
Row = dict[str, Any]


def figure_data(figure: Figure) -> pd.DataFrame:
    """Return one row for each point, interval, bar, vertex of an area, and cell of a figure.

    `x` and `y` are in the units of the axes; `x_to` and `y_to` the other end of what has two
    (intervals, bars), `value` that of a cell, `x_name` and `y_name` what the axis writes where it
    writes words. What is at the edge of a panel (lines across, bands) has no place along it.
    Columns without any value are left out.
    """
    rows = [row for _, row in figure_rows(figure)]
    found = pd.DataFrame(rows, columns=pd.Index(COLUMNS))
    kept = [name for name in COLUMNS if name in COLUMNS[:3] or found[name].notna().any()]
    return found[kept]


def figure_rows(figure: Figure) -> Iterator[tuple[Axes, Row]]:
    """Go through the rows of `figure_data`, each with the panel that shows it."""
    for k, axis in enumerate(figure.axes):
        for row in _rows(axis):
            yield axis, {"panel": _panel(axis, k)} | row | _names(axis, row)


def series_artists(axis: Axes) -> Iterator[tuple[str, Artist]]:
    """Go through all that a panel draws under a name, also one that its key does not show."""
    named = _containers(axis)
    for artist in (*axis.get_lines(), *axis.collections, *axis.patches):
        if name := _series(artist, named):
            yield name, artist


def _panel(axis: Axes, k: int) -> str:
    titles = (axis.get_title(loc=where) for where in ("center", "left", "right"))
    return " ".join(next((title for title in titles if title), str(k + 1)).split())


def _rows(axis: Axes) -> Iterator[Row]:
    named = _containers(axis)
    for line in axis.get_lines():
        yield from _line(axis, line, named)
    for collection in axis.collections:
        yield from _collection(collection, _series(collection, named))
    for patch in axis.patches:
        yield from _patch(axis, patch, _series(patch, named))
    for image in axis.images:
        values: NDArray[np.float64] = np.ma.filled(
            np.ma.asarray(image.get_array(), dtype=float), np.nan
        )
        if values.ndim == 2:  # a picture in colours is no data
            for (i, j), value in np.ndenumerate(values):
                yield {"mark": "cell", "series": "", "x": j, "y": i, "value": value}


def _containers(axis: Axes) -> dict[int, str]:
    """Names of error bars and bars, which bear them together, by the artists within."""
    named: dict[int, str] = {}
    for container in axis.containers:
        parts: list[Any] = list(container)
        if isinstance(container, ErrorbarContainer):
            line, caps, bars = container.lines
            parts = [*([line] if line is not None else []), *caps, *bars]
        named |= {id(part): str(container.get_label()) for part in parts}
    return named


def _series(artist: Any, named: dict[int, str]) -> str:
    """Name of what is drawn; one that begins with "_" is hidden from the key."""
    label = named.get(id(artist), str(artist.get_label()))
    return "" if label.startswith(("_child", "_no", "_container")) else label.removeprefix("_")


def _line(axis: Axes, line: Line2D, named: dict[int, str]) -> Iterator[Row]:
    x = np.asarray(line.get_xdata(orig=False), dtype=float)
    y = np.asarray(line.get_ydata(orig=False), dtype=float)
    mark = "points" if line.get_linestyle() in ("None", "", " ") else "line"
    series = _series(line, named)
    across = _free(axis, line)
    if any(across):
        place = {"x": None if across[0] else x[0], "y": None if across[1] else y[0]}
        yield {"mark": "limit", "series": series} | place
        return
    for a, b in zip(x, y, strict=True):
        yield {"mark": mark, "series": series, "x": a, "y": b}


def _free(axis: Axes, artist: Any) -> tuple[bool, bool]:
    """Whether x, or y, is a share of the panel instead of a number of its axis."""
    moved: tuple[bool, bool] = artist.get_transform().contains_branch_seperately(axis.transData)
    return not moved[0], not moved[1]


def _collection(collection: Collection, series: str) -> Iterator[Row]:
    if isinstance(collection, LineCollection):
        for ends in filter(len, collection.get_segments()):  # of NaN nothing is left
            whole: NDArray[np.float64] = np.ma.filled(np.ma.asarray(ends, dtype=float), np.nan)
            (a, b), (c, d) = whole[0], whole[-1]
            place = {"x": a, "y": b, "x_to": c, "y_to": d}
            yield {"mark": "interval", "series": series} | place
    elif isinstance(collection, PathCollection):
        for a, b in np.ma.filled(np.ma.asarray(collection.get_offsets(), dtype=float), np.nan):
            yield {"mark": "points", "series": series, "x": a, "y": b}
    elif isinstance(collection, PolyCollection):
        for path in collection.get_paths():
            for a, b in np.asarray(path.vertices):
                yield {"mark": "area", "series": series, "x": a, "y": b}


def _patch(axis: Axes, patch: Patch, series: str) -> Iterator[Row]:
    if isinstance(patch, Rectangle):
        (x, y), width, height = patch.get_xy(), patch.get_width(), patch.get_height()
        free = _free(axis, patch)
        row: Row = {"mark": "band" if any(free) else "bar", "series": series}
        row |= {} if free[0] else {"x": x, "x_to": x + width}
        row |= {} if free[1] else {"y": y, "y_to": y + height}
        yield row
    else:
        for a, b in np.asarray(patch.get_path().vertices):
            yield {"mark": "area", "series": series, "x": a, "y": b}


def _names(axis: Axes, row: Row) -> Row:
    found: Row = {}
    for name, along in (("x", axis.xaxis), ("y", axis.yaxis)):
        ends = [row[end] for end in (name, f"{name}_to") if row.get(end) is not None]
        words = _words(along)
        if ends and words:
            found[f"{name}_name"] = next(
                (word for place, word in words.items() if _at(place, ends)), None
            )
    return found


def _words(along: Axis) -> dict[float, str]:
    """What an axis writes at its ticks, if it is words."""
    locator = along.get_major_locator()
    if not isinstance(locator, FixedLocator):
        return {}
    ticks = [float(tick) for tick in locator()]
    told = along.get_major_formatter().format_ticks(ticks)
    if all(_is_number(word) for word in told):
        return {}
    return dict(zip(ticks, told, strict=True))


def _at(place: float, ends: Sequence[float]) -> bool:
    """Whether a tick belongs to a place, or to the bar around it."""
    low, high = min(ends), max(ends)
    return bool(low - 0.45 <= place <= high + 0.45) if low == high else bool(low <= place <= high)


def _is_number(text: str) -> bool:
    plain = text.strip("$% ").replace(",", "").replace("\N{MINUS SIGN}", "-")
    try:
        float(plain or "0")
    except ValueError:
        return False
    return True
