"""Panels of predictive checks, drawn and as a table."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from knownminds.agents.parameters import Array
from knownminds.validation.pages import figures as draw
from knownminds.validation.pages.page import Finding, Table, number, table

from .predictive import Cell, PanelCheck, Predictive

CHECKED = (
    "Predictive checks: lines and points are means of the data; shaded are the middle 90% of "
    "sessions simulated from the fit, with the same trials and subjects."
)
ABOUT_P = (
    "The discrepancy of a panel is the squared Mahalanobis distance of its means from those of the "
    "replicates; p is the share of replicates at least as far off "
    "as the data. It is no share of false alarms: the fit has seen the data, so that true models "
    "come out below .05 less often than 5% of the time."
)
NOT_REPRODUCED = "not reproduced"
LONGEST = 30  # characters of a line under a panel
ROOM = 0.13  # of a panel's height, for each row of its key


def checked_table(found: Predictive | None) -> Table:
    """Return a row per panel of a check."""
    return table(
        "Predictive checks",
        found.panels if found else (),
        ("panel", "{title}"),
        ("means", lambda panel: f"{len(panel.cells)}"),
        ("discrepancy", "{discrepancy:.1f}"),
        ("usual", "{usual:.1f}"),
        ("p", lambda panel: p_value(panel.p)),
    )


def checked_findings(found: Predictive | None) -> list[Finding]:
    """Return a finding for each panel that a model does not reproduce."""
    return [
        Finding(
            panel.title,
            NOT_REPRODUCED,
            f"The data's discrepancy is {panel.discrepancy:.1f}; half of the sessions simulated "
            f"from the fit have less than {number(panel.usual, 1)} (p {p_value(panel.p)}).",
            "bad",
        )
        for panel in (found.missed if found else ())
    ]


def p_value(p: float) -> str:
    """Write a p with the digits it has."""
    return f"{p:.3f}" if p < 0.1 else f"{p:.2f}"


def draw_panels(panels: Sequence[PanelCheck], *, data: bool = True) -> Figure:
    """Draw panels: bands of the replicates, and the means of the data on top, unless not `data`."""
    figure, axes = draw.panels(len(panels), height=2.8, columns=2 if len(panels) == 4 else 3)
    for axis, panel in zip(axes, panels, strict=True):
        _panel(axis, panel, data)
    return figure


def _panel(axis: Axes, panel: PanelCheck, data: bool) -> None:
    names = list(dict.fromkeys(cell.series for cell in panel.cells))
    words = {cell.x: cell.place for cell in panel.cells if cell.place}
    order = {x: k for k, x in enumerate(sorted(words))}
    for name, (colour, marker, dash) in zip(names, draw.styles(len(names)), strict=True):
        cells = sorted((c for c in panel.cells if c.series == name), key=lambda c: c.x)
        x = np.array([order.get(cell.x, cell.x) for cell in cells], dtype=float)
        if words:
            _bars(axis, x, cells, colour)
        else:
            _band(axis, x, cells, colour)
        if data:
            own = [cell.data for cell in cells]
            joined = "none" if words else dash
            axis.plot(x, own, marker=marker, linestyle=joined, color=colour, markersize=4,
                      linewidth=1, label=name or "data")  # fmt: skip
        else:
            middle = [cell.middle for cell in cells]
            axis.plot(x, middle, color=colour, linestyle=dash, linewidth=1, label=name or "median")
    if words:
        ticks = sorted(order, key=lambda value: order[value])
        axis.set_xticks(range(len(ticks)), [words[t] for t in ticks], rotation=35, ha="right",
                        rotation_mode="anchor", fontsize=draw.SMALL - 1)  # fmt: skip
    axis.set_xlabel(fill(panel.x, LONGEST), fontsize=draw.SMALL + 1)
    axis.set_ylabel(fill(panel.y, LONGEST), fontsize=draw.SMALL + 1)
    told = f"{panel.title}\np {p_value(panel.p)}" if data else panel.title
    draw.entitle(axis, told, "left")
    if len(names) > 1:
        across = 2 if len(names) > 2 else 1
        low, high = axis.get_ylim()
        axis.set_ylim(low - ROOM * -(-len(names) // across) * (high - low), high)
        axis.legend(fontsize=draw.SMALL - 1, frameon=False, loc="lower left", ncols=across,
                    columnspacing=1.0)  # fmt: skip


def _band(axis: Axes, x: Array, cells: Sequence[Cell], colour: str) -> None:
    low, high = ([getattr(c, end) for c in cells] for end in ("low", "high"))
    if len(x) == 1:
        axis.vlines(x, low, high, color=colour, alpha=0.3, linewidth=8)
        return
    axis.fill_between(x, low, high, color=colour, alpha=0.22, linewidth=0, label="_replicates")


def _bars(axis: Axes, x: Array, cells: Sequence[Cell], colour: str) -> None:
    low, high = ([getattr(c, end) for c in cells] for end in ("low", "high"))
    axis.vlines(x, low, high, color=colour, alpha=0.3, linewidth=6, label="_replicates")
