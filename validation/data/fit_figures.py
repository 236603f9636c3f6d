"""Figures of a fit, each of a tidy frame."""

from __future__ import annotations

from textwrap import fill

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from knownminds.validation.engine.plots import symbol
from knownminds.validation.pages import figures as draw
from knownminds.validation.pages.views import Dots, draw_dots

LONGEST = 30  # characters of a line under a panel
ROOM = 0.13  # of a panel's height, for each row of its key
CUT = 0.05  # of the ends of intervals, so that one subject does not set the scale


def draw_subjects(estimates: pd.DataFrame) -> Figure:
    """Draw every subject's 90% interval, sorted by estimate, and the group value.

    Columns parameter, estimate, low, high, status; group, group_low, group_high, meaning.
    """
    names = list(dict.fromkeys(estimates["parameter"]))
    n = len(estimates) // len(names)
    figure, axes = draw.panels(len(names), height=float(np.clip(0.06 * n, 2.4, 8)))
    for axis, name in zip(axes, names, strict=True):
        rows = estimates[estimates["parameter"] == name].sort_values("estimate", ignore_index=True)
        sure = rows["status"] == "ok"
        for some, colour, marker, label in (
            (rows[sure], draw.BLUE, "o", "ok"),
            (rows[~sure], draw.ORANGE, "s", "other status"),
        ):
            if not len(some):
                continue
            ends = some["low"], some["high"]
            axis.hlines(some.index, *ends, color=colour, alpha=0.45, linewidth=1.2)
            axis.plot(some["estimate"], some.index, marker, color=colour, markersize=2.6,
                      label=label)  # fmt: skip
        group = rows.iloc[0]
        if np.isfinite(group["group"]):
            axis.axvspan(group["group_low"], group["group_high"], color=draw.GREEN, alpha=0.2,
                         linewidth=0)  # fmt: skip
            axis.axvline(group["group"], color=draw.GREEN, linewidth=1.2, label=group["meaning"])
        shown = [rows["estimate"].to_numpy(dtype=float)]
        if rows[["low", "high"]].notna().all(axis=1).any():
            shown.append(rows["low"].clip(lower=rows["low"].quantile(CUT)).to_numpy(dtype=float))
            shown.append(
                rows["high"].clip(upper=rows["high"].quantile(1 - CUT)).to_numpy(dtype=float)
            )
        axis.set(xlim=draw.limits(*shown), xlabel=symbol(name))
        axis.set_yticks([])
    axes[0].set_ylabel("sorted")
    draw.key(figure, axes[0])
    return figure


def draw_contrasts(contrasts: pd.DataFrame) -> Figure:
    """Draw each contrast's 90% interval, a panel per parameter, and what is no difference."""
    groups = contrasts.groupby("parameter", sort=False)
    tall = float(np.clip(1.2 + 0.3 * groups.size().max(), 1.8, 8))
    figure, axes = draw.panels(len(groups), height=tall)
    for axis, (name, rows) in zip(axes, groups, strict=True):
        height = np.arange(len(rows))[::-1]
        rope = rows["rope"].iloc[0]
        axis.axvspan(-rope, rope, color=draw.GREEN, alpha=0.2, linewidth=0, label="no difference")
        axis.axvline(0.0, color=draw.GREEN, linewidth=1.0)
        axis.hlines(height, rows["low"], rows["high"], color=draw.BLUE, linewidth=1.6)
        axis.plot(
            rows["estimate"], height, "o", color=draw.BLUE, markersize=4, label="90% interval"
        )
        axis.set_yticks(height, [text.partition(": ")[2] for text in rows["contrast"]])
        axis.set_ylim(-0.7, len(rows) - 0.3)
        axis.set_xlabel(f"difference in {symbol(str(name))}")
    draw.key(figure, axes[0])
    return figure


def draw_levels(levels: pd.DataFrame) -> Figure:
    """Draw each group's value with its 90% interval, a panel per parameter."""
    parts = levels.groupby("parameter", sort=False)
    tall = float(np.clip(1.2 + 0.3 * parts.size().max(), 1.8, 8))
    figure, axes = draw.panels(len(parts), height=tall)
    for axis, (name, rows) in zip(axes, parts, strict=True):
        height = np.arange(len(rows))[::-1]
        axis.hlines(height, rows["low"], rows["high"], color=draw.BLUE, linewidth=1.6)
        axis.plot(rows["estimate"], height, "o", color=draw.BLUE, markersize=4)
        axis.set_yticks(height, rows["column"] + " " + rows["level"])
        axis.set_ylim(-0.7, len(rows) - 0.3)
        axis.set_xlabel(symbol(str(name)))
    return figure


def draw_rivals(rivals: pd.DataFrame) -> Figure:
    """Draw differences in elpd to the best model, with 2 standard errors.

    Columns model, difference, difference_error.
    """
    value, error = rivals["difference"], draw.ERRORS * rivals["difference_error"].fillna(0.0)
    rows = rivals.assign(value=value, low=value - error, high=value + error)
    return draw_dots(rows, Dots("", "difference in elpd", along="model", null=0.0))


def draw_taken_for(shares: pd.DataFrame) -> Figure:
    """Draw for what simulated agents are taken: one alone, and as many as the data have.

    Columns simulated, taken_for, one, all.
    """
    names = list(dict.fromkeys(shares["simulated"]))
    figure, axes = draw.panels(2, height=max(2.4, 0.45 * len(names) + 1.6))
    for axis, which in zip(axes, ("one", "all"), strict=True):
        table = shares.pivot_table(which, "simulated", "taken_for").loc[names, names]
        rows = names if which == "one" else [""] * len(names)
        draw.heat_map(axis, table.to_numpy(), rows, names)
        draw.entitle(axis, "one agent taken for" if which == "one" else "all agents taken for")
    return figure


def draw_panels(cells: pd.DataFrame) -> Figure:
    """Draw panels: bands of the replicates, and on top means of the data, where there are any.

    Columns panel, along, mean_of, series, x, low, middle, high, and of data "data" and "p".
    """
    groups = cells.groupby("panel", sort=False)
    figure, axes = draw.panels(len(groups), height=2.8, columns=2 if len(groups) == 4 else 3)
    for axis, (title, rows) in zip(axes, groups, strict=True):
        _panel(axis, str(title), rows)
    return figure


def _panel(axis: Axes, title: str, cells: pd.DataFrame) -> None:
    groups = cells.groupby("series", sort=False)
    for (name, some), style in zip(groups, draw.styles(len(groups)), strict=True):
        colour, marker, dash = style
        rows = some.sort_values("x")
        x = rows["x"].to_numpy(dtype=float)
        if len(x) == 1:
            axis.vlines(x, rows["low"], rows["high"], color=colour, alpha=0.3, linewidth=8,
                        label="_replicates")  # fmt: skip
        else:
            axis.fill_between(x, rows["low"], rows["high"], color=colour, alpha=0.22, linewidth=0,
                              label="_replicates")  # fmt: skip
        if "data" in rows:
            axis.plot(x, rows["data"], marker=marker, linestyle=dash, color=colour,
                      markersize=4, linewidth=1, label=name or "data")  # fmt: skip
        else:
            axis.plot(x, rows["middle"], color=colour, linestyle=dash, linewidth=1,
                      label=name or "median")  # fmt: skip
    first = cells.iloc[0]
    axis.set_xlabel(fill(first["along"], LONGEST), fontsize=draw.SMALL + 1)
    axis.set_ylabel(fill(first["mean_of"], LONGEST), fontsize=draw.SMALL + 1)
    draw.entitle(axis, f"{title}\np {first['p']:.3f}" if "p" in cells else title, "left")
    if len(groups) > 1:
        across = 2 if len(groups) > 2 else 1
        low, high = axis.get_ylim()
        axis.set_ylim(low - ROOM * -(-len(groups) // across) * (high - low), high)
        axis.legend(fontsize=draw.SMALL - 1, frameon=False, loc="lower left", ncols=across,
                    columnspacing=1.0)  # fmt: skip
