"""What the pages of all benchmarks share: models side by side, in tables and figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from knownminds.environments import ANSWERED
from knownminds.validation.pages import figures as draw
from knownminds.validation.pages.page import Column, Section, Table, table

WHO = "participant"
# Conditions by which one's answers may be told apart, beside those that a page has itself.
FURTHER = ("history", "modality", "noise", "temperature", "effort")
PEOPLES = "#CC79A7"  # colour of people, in all figures
MOST_ROWS = 60  # of a table on a page; its file has all


def part(
    title: str,
    told: str,
    name: str,
    numbers: pd.DataFrame,
    tables: Sequence[Table] = (),
    figures: Sequence[tuple[str, str]] = (),
    scores: pd.DataFrame | None = None,
) -> Section:
    """Return a section with a paragraph, whose numbers are kept as NAME.csv."""
    return Section(name, title, (told,), tables, figures, frames={name: numbers}, scores=scores)


def readable(trials: pd.DataFrame) -> pd.Series[bool]:
    """Say which trials have an answer that could be read, [rows]."""
    if "outcome" in trials:
        return trials["outcome"].isin(ANSWERED)
    return trials[[c for c in ("action", "response") if c in trials]].notna().any(axis=1)


def apart(trials: pd.DataFrame, own: Sequence[str] = ()) -> list[str]:
    """Return the further conditions that vary within a participant, beside a page's `own`.

    Who was asked in one way alone (each at a temperature of its own) is told apart by name; what
    somebody was asked in several ways is told apart by these columns.
    """
    names = [name for name in FURTHER if name in trials and name not in own]
    names = [name for name in names if trials[name].nunique() > 1]
    told = [WHO, *own]
    return [name for name in names if (trials.groupby(told)[name].nunique() > 1).any()]


def interval(value: float, low: float, high: float, digits: int = 3) -> str:
    """Write down a value with its interval; "-" where there is none."""
    if not np.isfinite(value):
        return "-"
    told, *ends = (f"{number:z.{digits}f}" for number in (value, low, high))
    return f"{told} ({' to '.join(ends)})" if np.isfinite(low) else f"{told} (-)"


def first_rows(title: str, rows: pd.DataFrame, *columns: Column) -> Table:
    """Return the table of the first rows of many; the section's file has all."""
    more = f" (the first {MOST_ROWS} of {len(rows):,})" if len(rows) > MOST_ROWS else ""
    return table(f"{title}{more}", rows.head(MOST_ROWS), *columns)


def beside(
    title: str,
    rows: pd.DataFrame,
    column: str,
    cell: Callable[[Mapping[Any, Any]], str],
    lines: Sequence[str] = (WHO,),
) -> Table:
    """Return a table with a line per participant and a column per value of `column`.

    Parameters
    ----------
    rows
        One per line and column; a pair that is not there has "-".
    column
        Whose values head the columns.
    cell
        How a row is written.
    lines
        Columns that make a line.
    """
    keys = list(map(tuple, rows[list(lines)].astype(str).to_numpy().tolist()))
    heads = rows[column].astype(str).to_list()
    told = rows.to_dict("records")
    held = {
        place: cell(row) for place, row in zip(zip(keys, heads, strict=True), told, strict=True)
    }
    written = [
        [*key, *(held.get((key, head), "-") for head in dict.fromkeys(heads))]
        for key in dict.fromkeys(keys)
    ]
    names = ["model" if name == WHO else name.replace("_", " ") for name in lines]
    return title, [*names, *dict.fromkeys(heads)], written


def looks_of(names: Sequence[str]) -> dict[str, draw.Style]:
    """Return a look for each name."""
    return dict(zip(names, draw.styles(len(names)), strict=True))


def dots(
    rows: pd.DataFrame,
    *,
    along: str,
    panel: str,
    series: str,
    label: str,
    zone: tuple[float, float] | None = None,
    null: float | None = None,
    people: Mapping[str, float] | None = None,
) -> Figure:
    """Draw values with intervals: models down, a panel per condition, a colour per series.

    Parameters
    ----------
    rows
        With the columns value, low, high and those that are named.
    along, panel, series
        Columns of what stands down the side, in panels, and in colours.
    label
        What the values are.
    zone, null
        A shaded range, and a line.
    people
        Value, low and high of people: a line, and a band where there are ends.
    """
    columns = (along, panel, series)
    names, panels, kinds = (list(dict.fromkeys(rows[column].astype(str))) for column in columns)
    looks = looks_of(kinds)
    height = 0.24 * len(names) * max(1.0, 0.35 * len(kinds) + 0.5) + 0.9
    figure, axes = draw.panels(max(len(panels), 1), height=height)
    figure.set_size_inches(max(figure.get_size_inches()[0], 5.5), figure.get_size_inches()[1])
    place = {name: k for k, name in enumerate(names)}
    ends = [rows[end].to_numpy(dtype=float) for end in ("value", "low", "high")]
    more = [] if people is None else [people["value"], people.get("low"), people.get("high")]
    reach = draw.limits(*ends, np.array([x for x in [*more, null] if x is not None], dtype=float))
    for axis, title in zip(axes, panels, strict=False):
        own = rows[rows[panel].astype(str) == title]
        if zone is not None:
            axis.axvspan(*zone, color=draw.GREY, alpha=0.2, zorder=0, linewidth=0)
        if null is not None:
            axis.axvline(null, color=draw.GREY, linewidth=1, zorder=0)
        if people is not None and np.isfinite(people["value"]):
            mark_people(axis, people)
        for j, kind in enumerate(kinds):
            some = own[own[series].astype(str) == kind]
            shift = 0.22 * (j - (len(kinds) - 1) / 2)
            at = some[along].astype(str).map(place).to_numpy(dtype=float) + shift
            colour, marker, _ = looks[kind]
            shown = kind if len(kinds) > 1 else ""
            low, high = (some[end].to_numpy(dtype=float) for end in ("low", "high"))
            axis.hlines(at, low, high, color=colour, linewidth=1.3, label=f"_{shown}")
            value = some["value"].to_numpy(dtype=float)
            axis.plot(
                value, at, linestyle="none", marker=marker, color=colour, markersize=4,
                label=shown or None,
            )  # fmt: skip
        axis.set_yticks(range(len(names)), names if draw.leftmost(axis) else [""] * len(names))
        axis.set_ylim(len(names) - 0.4, -0.6)
        axis.set_xlim(*reach)
        draw.entitle(axis, title)
        axis.set_xlabel(label, fontsize=draw.SMALL)
    draw.key(figure, axes[0])
    return figure


def mark_people(axis: Axes, people: Mapping[str, float], *, across: bool = False) -> None:
    """Draw the value of people as a line, with a band where it has an interval.

    Parameters
    ----------
    across
        Whether it is a value of y instead of x.
    """
    low, high = people.get("low", np.nan), people.get("high", np.nan)
    span, line = (axis.axhspan, axis.axhline) if across else (axis.axvspan, axis.axvline)
    if np.isfinite(low) and np.isfinite(high):
        span(low, high, color=PEOPLES, alpha=0.25, zorder=0, linewidth=0)
    if np.isfinite(people["value"]):
        line(people["value"], color=PEOPLES, linewidth=1.4, zorder=0.5)


def boxes(
    axis: Axes, groups: Sequence[Sequence[float]], names: Sequence[str], whiskers: Any
) -> None:
    """Draw boxes of quartiles with the values beside them; empty groups keep their place."""
    held = [np.asarray(group, dtype=float) for group in groups]
    held = [group[np.isfinite(group)] for group in held]
    some = [k for k, group in enumerate(held) if len(group)]
    if some:
        axis.boxplot(
            [held[k] for k in some], positions=some, widths=0.5, whis=whiskers, showfliers=False,
            medianprops={"color": draw.ORANGE, "linewidth": 1.6},
        )  # fmt: skip
    for k, group in enumerate(held):
        across = np.linspace(-0.16, 0.16, len(group)) if len(group) > 1 else np.zeros(len(group))
        axis.plot(k + across, group, "o", color=draw.BLUE, markersize=2.5, alpha=0.6)
    axis.set_xticks(range(len(names)), names, fontsize=draw.SMALL)
    axis.set_xlim(-0.6, len(names) - 0.4)
