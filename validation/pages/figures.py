"""What all figures share: colours, panels, curves over sizes of designs, SVG text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from textwrap import wrap
from typing import Any, Literal

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator
from numpy.typing import NDArray

from knownminds.agents.parameters import Array
from knownminds.validation.engine.plots import few_digits
from knownminds.validation.engine.scores import Score

# Okabe and Ito's palette: distinct under all common colour blindness, and in grey.
BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#777777"
PALETTE = (BLUE, ORANGE, GREEN, "#CC79A7", "#E69F00", "#56B4E9")
MARKERS = "osD^vP*X"
DASHES = ("-", "--", "-.", ":")
# Letters on light areas: black, but no ink of the page's, which is light on dark screens.
ON_LIGHT = "#010101"
# Inches: the column of a journal, and its page, to which a figure is laid out.
COLUMN_WIDTH, PAGE_WIDTH = 3.5, 7.2
WIDTH = PAGE_WIDTH / 3  # of a panel
SMALL, TITLE = 8, 9  # points of letters
ERRORS = 2  # standard errors that error bars show to either side

Style = tuple[str, str, str]  # colour, marker, dash
PHONE_WIDTH = 3.9  # inches: what a window of 420 px shows
_on_phones: ContextVar[bool] = ContextVar("on_phones", default=False)


@contextmanager
def on_phones() -> Iterator[None]:
    """Let figures be laid out for a narrow window: a panel in each row."""
    token = _on_phones.set(True)
    try:
        yield
    finally:
        _on_phones.reset(token)


def beside(most: int) -> int:
    """Return how many panels of so many stand side by side."""
    return 1 if _on_phones.get() else most


def letters(most: int) -> int:
    """Return how many of so many letters across a page there is room for."""
    return int(most * PHONE_WIDTH / PAGE_WIDTH) if _on_phones.get() else most


def widened(figure: Figure, least: float) -> None:
    """Make a figure at least so wide, in inches, where there is room."""
    wide, high = figure.get_size_inches()
    if not _on_phones.get():
        figure.set_size_inches(max(wide, least), high)


def in_lines(text: str, most: int) -> str:
    """Return a text in lines of so many letters; no name is broken, and none has long numbers."""
    return "\n".join(wrap(few_digits(text), most, break_long_words=False, break_on_hyphens=False))


def panels(n: int, *, height: float = 2.6, columns: int = 3) -> tuple[Figure, list[Axes]]:
    """Return a figure of n panels in rows, as wide as a journal's column or page at most."""
    across = beside(min(n, columns + (n == columns + 1 == 4)))  # none stands in a row alone
    wide = min(max(WIDTH * across, COLUMN_WIDTH), PAGE_WIDTH)
    if _on_phones.get():
        wide = PHONE_WIDTH
    down = -(-n // across)
    figure = Figure(figsize=(wide, height * down), layout="constrained")
    axes = [figure.add_subplot(down, across, k + 1) for k in range(n)]
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
        axis.tick_params(labelsize=SMALL)
        axis.xaxis.label.set_fontsize(SMALL + 1)
        axis.yaxis.label.set_fontsize(SMALL + 1)
    return figure, axes


def dots(
    axis: Axes, rows: pd.DataFrame, x: str, y: str, style: Style, label: str = "", most: int = 1500
) -> None:
    """Draw a dot for each row, of very many some, with the interval from `low` to `high` lightly.

    They are pixels inside the SVG: thousands of vector marks make a heavy page.
    """
    some = rows.iloc[:: -(-len(rows) // most) or 1]
    colour, marker, _ = style
    if "low" in some:
        faint = float(np.clip(30 / len(some), 0.04, 0.35))
        axis.vlines(
            some[x], some["low"], some["high"], color=colour, alpha=faint, linewidth=0.8,
            rasterized=True,
        )  # fmt: skip
    axis.plot(
        some[x], some[y], marker, label=label or None, color=colour, markersize=2.5, alpha=0.6,
        linewidth=0, rasterized=True,
    )  # fmt: skip


def leftmost(axis: Axes) -> bool:
    """Tell whether no panel stands to the left of a panel: there, rows are named."""
    position = axis.get_subplotspec()
    return position is None or position.is_first_col()


def entitle(axis: Axes, text: str, where: Literal["left", "center"] = "center") -> None:
    """Write a title above a panel."""
    axis.set_title(text, loc=where, fontsize=TITLE)


def styles(n: int) -> list[Style]:
    """Return n looks that differ in colour and, for eyes or printers without it, in shape."""
    return [
        (PALETTE[k % len(PALETTE)], MARKERS[k % len(MARKERS)], DASHES[k % len(DASHES)])
        for k in range(n)
    ]


def curve(
    axis: Axes,
    x: Sequence[float],
    scores: Sequence[Score],
    style: Style,
    label: str = "",
    size: float = 4,
    hollow: bool = False,
) -> None:
    """Draw scores with 2 standard errors, joined; markers of a size in points."""
    line(axis, x, [score.value for score in scores], style, label, size, hollow)
    low, high = ([s.value + sign * ERRORS * s.error for s in scores] for sign in (-1, 1))
    # Of the same name in the figure's data, but not in its key.
    axis.vlines(x, low, high, color=style[0], linewidth=1, zorder=1.9, label=f"_{label}")


def line(
    axis: Axes,
    x: Sequence[float],
    y: Sequence[float],
    style: Style,
    label: str = "",
    size: float = 4,
    hollow: bool = False,
) -> None:
    """Draw points, joined unless the dash is "none"."""
    colour, marker, dash = style
    axis.plot(
        x,
        y,
        color=colour,
        marker=marker,
        linestyle=dash,
        markersize=size,
        markerfacecolor="white" if hollow else colour,
        linewidth=1.2,
        label=label or None,
    )


def scale(axis: Axes, values: Sequence[float], named: float | None = None) -> None:
    """Let x be logarithmic, if nothing is 0, with ticks at the values, or at some of many.

    Parameters
    ----------
    named : A value that has a tick in any case.
    """
    log = min(values) > 0
    if log:
        axis.set_xscale("log")
    ticks = spaced(values, named, log=log)
    axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axis.xaxis.set_minor_locator(NullLocator())
    axis.margins(x=0.08)
    if len(set(values)) == 1:
        only = values[0]
        axis.set_xlim((only / 2, only * 2) if log else (only - 1, only + 1))


def spaced(values: Sequence[float], named: float | None = None, *, log: bool) -> list[float]:
    """Return those of the values whose names do not lie on top of each other on an axis."""
    several = sorted(set(values))
    position = {value: float(np.log(value)) if log else value for value in several}
    least = 0.12 * (position[several[-1]] - position[several[0]])
    kept = [several[0] if named is None else named]
    for value in several:
        if min(abs(position[value] - position[other]) for other in kept) >= max(least, 1e-9):
            kept.append(value)
    return sorted(kept)


def dollars(axis: Axes) -> None:
    """Write the values of x as dollars."""
    if axis.get_xscale() == "log":
        low, high = axis.get_xlim()
        few = high / low > 1000
        axis.xaxis.set_major_locator(LogLocator(subs=(1.0,) if few else (1.0, 2.0, 5.0)))
        axis.xaxis.set_minor_locator(NullLocator())
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"${value:,.6g}"))


def key(figure: Figure, axis: Axes, columns: int = 4) -> None:
    """Put the names of an axis's curves above the panels, if there are any."""
    handles, labels = axis.get_legend_handles_labels()
    if handles:
        figure.legend(
            handles,
            labels,
            loc="outside upper center",
            ncols=min(columns, len(labels)),
            frameon=False,
            fontsize=SMALL,
        )


def arrows(axis: Axes, low: Array, high: Array, at: Array, colour: str) -> None:
    """Draw an arrow where an interval, or all of it, lies beyond the limits of x."""
    left, right = axis.get_xlim()
    for there, x, marker in ((low < left, left, "<"), (high > right, right, ">")):
        if not there.any():
            continue
        axis.plot(
            np.full(int(there.sum()), x), at[there], linestyle="none", marker=marker, color=colour,
            markersize=4, clip_on=False,
        )  # fmt: skip


def limit(axis: Axes, value: float, dash: str = "--") -> None:
    """Draw a limit or a reference across."""
    axis.axhline(value, color=GREY, linewidth=1, linestyle=dash, zorder=0)


def heat_map(
    axis: Axes, values: Array, rows: Sequence[str], columns: Sequence[str], *, most: float = 1.0
) -> None:
    """Draw a matrix as shades from 0 to `most`, with the number in each cell; "-" where NaN."""
    shades = mpl.colormaps["Blues"].with_extremes(bad="white")
    axis.imshow(np.ma.masked_invalid(values), cmap=shades, vmin=0, vmax=most, aspect="auto")
    for (i, j), value in np.ndenumerate(values):
        dark = np.isfinite(value) and value > 0.65 * most
        axis.text(
            j,
            i,
            f"{value:.2f}" if np.isfinite(value) else "-",
            ha="center",
            va="center",
            fontsize=SMALL,
            color="white" if dark else ON_LIGHT,
        )
    axis.set_xticks(range(len(columns)), columns, rotation=30, ha="right", rotation_mode="anchor")
    axis.set_yticks(range(len(rows)), rows)
    axis.tick_params(length=0)
    axis.spines[:].set_visible(False)
    # Pages that brighten figures on dark screens leave these as they are: letters lie on them.
    axis.set_gid(f"shades-{axis.figure.axes.index(axis)}")


def limits(*columns: NDArray[Any]) -> tuple[float, float]:
    """Limits that show nearly all values; runaways of maximum likelihood are left outside."""
    values = np.concatenate([c[np.isfinite(c)] for c in columns])
    if len(values) == 0:
        return 0.0, 1.0
    low, high = np.quantile(values, [0.002, 0.998])
    margin = 0.05 * (high - low) or 0.5
    return float(low - margin), float(high + margin)
