"""Where the numbers of a figure lie in its SVG, for the script of a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.projections.polar import PolarAxes

from .figure_data import Row, figure_rows, series_artists

POINTS = 72  # per inch: the unit of the SVG
MOST = 1500  # marks of a figure whose values a page holds; of more, its CSV alone has them
_Held = tuple[int, str, bool, float]
SHOWN = ("points", "line", "bar", "cell", "interval")


def series_of(figure: Figure) -> list[str]:
    """Return the names of all that a figure draws, each once; the first is that of what has none.

    A page's script looks for marks of the k-th under the id `series-k-`, see `mark_series`.
    """
    named = (name for axis in figure.axes for name, _ in series_artists(axis))
    return list(dict.fromkeys(["", *named]))


def mark_series(figure: Figure) -> None:
    """Give all that a figure draws under a name an id that says so in its SVG."""
    order = {name: k for k, name in enumerate(series_of(figure))}
    drawn = (one for axis in figure.axes for one in series_artists(axis))
    for n, (name, artist) in enumerate(drawn):
        if artist.get_gid() is None:
            artist.set_gid(f"series-{order[name]}-{n}")


def figure_spots(figure: Figure) -> Mapping[str, Any]:
    """Return the numbers of a figure at their places in its SVG; empty if it has none.

    Returns
    -------
    panels
        Title and names of both axes of each.
    series
        See `series_of`.
    spots
        Of each number or interval: x and y in points from the upper left, the numbers of panel and
        series, and what stands there on either axis, as text.
    """
    series = {name: k for k, name in enumerate(series_of(figure))}
    axes = {id(axis): k for k, axis in enumerate(figure.axes)}
    rows = [(axes[id(axis)], axis, row) for axis, row in figure_rows(figure)
            if row["mark"] in SHOWN and _has_numbers(axis, row)]  # fmt: skip
    if len(rows) > MOST:
        return {}
    ends = {_held_by(k, row): _ends(row) for k, _, row in rows if row["mark"] == "interval"}
    met: set[_Held] = set()
    spots: list[list[Any]] = []
    for k, axis, row in sorted(rows, key=lambda one: one[2]["mark"] == "interval"):
        if row["mark"] == "interval":
            held = _held_by(k, row)
            if held in met:
                continue
            place = (row["x"] + row["x_to"]) / 2, (row["y"] + row["y_to"]) / 2
            x, y = (_word(row, "x"), ends[held]) if held[2] else (ends[held], _word(row, "y"))
        else:
            place, x, y = _told(row)
            for upright, at in ((True, row["x"]), (False, row["y"])):
                held = k, row["series"], upright, at
                if row["mark"] != "cell" and held in ends:
                    met.add(held)
                    x, y = (x, f"{y} ({ends[held]})") if upright else (f"{x} ({ends[held]})", y)
        spots += _spot(figure, axis, place, [k, series.get(row["series"], 0), x, y])
    titles = {k: row["panel"] for k, _, row in rows}
    panels = [
        {
            "title": "" if titles.get(k, "").isdigit() else titles.get(k, ""),
            "x": " ".join(axis.get_xlabel().split()),
            "y": " ".join(axis.get_ylabel().split()),
        }
        for k, axis in enumerate(figure.axes)
    ]
    return {"panels": panels, "series": list(series), "spots": spots} if spots else {}


def _has_numbers(axis: Axes, row: Row) -> bool:
    """Tell whether a mark stands for a number: on a radar, lines between these do not."""
    return not isinstance(axis, PolarAxes) or row["mark"] == "points"


def _held_by(panel: int, interval: Row) -> _Held:
    """Return panel, series and place of an interval, and whether it is upright."""
    upright = interval["x"] == interval["x_to"]
    return panel, interval["series"], upright, interval["x"] if upright else interval["y"]


def _ends(interval: Row) -> str:
    name = "y" if interval["x"] == interval["x_to"] else "x"
    return f"{_number(interval[name])} to {_number(interval[f'{name}_to'])}"


def _told(row: Row) -> tuple[tuple[float, float], str, str]:
    """Return the place of a number, and what stands there on either axis."""
    if row["mark"] == "cell":
        words = _word(row, "x"), f"{_word(row, 'y')}: {_number(row['value'])}"
        return (row["x"], row["y"]), *words
    if row["mark"] != "bar":
        return (row["x"], row["y"]), _word(row, "x"), _word(row, "y")
    if row.get("y_name") is not None and row.get("x_name") is None:
        middle = (row["y"] + row["y_to"]) / 2
        return (row["x_to"], middle), _number(row["x_to"] - row["x"]), _word(row, "y")
    middle = (row["x"] + row["x_to"]) / 2
    named = row.get("x_name") is not None
    at = _word(row, "x") if named else f"{_number(row['x'])} to {_number(row['x_to'])}"
    return (middle, row["y_to"]), at, _number(row["y_to"] - row["y"])


def _spot(
    figure: Figure, axis: Axes, place: tuple[float, float], told: list[Any]
) -> Iterator[list[Any]]:
    """Return a spot in points, if it lies within its panel."""
    if not np.isfinite(place).all():
        return
    x, y = axis.transData.transform(place)
    if not isinstance(axis, PolarAxes) and not axis.bbox.padded(3).contains(x, y):
        return
    scale = POINTS / figure.dpi
    yield [round(x * scale, 1), round((figure.bbox.height - y) * scale, 1), *told]


def _word(row: Row, name: str) -> str:
    word = row.get(f"{name}_name")
    return _number(row[name]) if word is None else str(word)


def _number(value: float) -> str:
    return f"{value:.4g}" if np.isfinite(value) else "-"
