"""Figures of scores, each of a tidy frame."""

from __future__ import annotations

from textwrap import wrap

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.projections.polar import PolarAxes

from knownminds.inference import MEASURES
from knownminds.validation.pages import figures as draw

SPAN = (-2.0, 3.0)  # of the normalised scale; what lies beyond has an arrow
LONGEST = 34  # letters of a line above a radar
MOST_LINES = 80  # participants that have a line each; of more, their distribution is drawn
MOST_RADARS = 24


def null_of(measure: str) -> float:
    """Return the value that a measure's test rejects; NaN if it has none."""
    return MEASURES[measure].null if measure in MEASURES else np.nan


def draw_intervals(scores: pd.DataFrame) -> Figure:
    """Draw each measure in a panel of its own, a line per participant, with 95% intervals.

    Columns experiment, measure, participant, value, low, high, status.
    """
    groups = [(key, some) for key, some in scores.groupby(["experiment", "measure"], sort=False)
              if (some["status"] == "ok").any()]  # fmt: skip
    lines = sum(len(some) for _, some in groups) / len(groups)
    figure, axes = draw.panels(len(groups), height=1.6 + 0.12 * lines)
    named: list[str] = []
    for axis, ((experiment, measure), some) in zip(axes, groups, strict=True):
        name = str(measure)
        place = np.arange(len(some))[::-1]
        axis.hlines(place, some["low"], some["high"], color=draw.BLUE, linewidth=2)
        axis.plot(some["value"], place, "o", color=draw.BLUE, markersize=5)
        if np.isfinite(null_of(name)):
            axis.axvline(null_of(name), color=draw.GREY, linestyle="--", linewidth=1)
        for at, status in zip(place, some["status"], strict=True):
            if status != "ok":
                axis.annotate("no value", (0.5, at), xycoords=axis.get_yaxis_transform(),
                              color=draw.GREY, ha="center", va="center",
                              fontsize=draw.SMALL)  # fmt: skip
        who = some["participant"].tolist()
        # Those of the panel to the left need not be said again.
        axis.set_yticks(place, who if draw.leftmost(axis) or who != named else [""] * len(who))
        named = who
        axis.set_ylim(-0.7, len(some) - 0.3)
        title = name.replace("_", " ")
        alike = name.startswith("performance")
        draw.entitle(axis, f"{title}\n{experiment}" if alike else title)
    return figure


def draw_distributions(scores: pd.DataFrame, value: str = "value", name: str = "measure") -> Figure:
    """Draw a histogram of the values of each measure over participants; dashed: its null value.

    Columns `name`, `value`; of measures on the scale, 0 (random answers) and 1 (the reference)
    are drawn.
    """
    known = scores[np.isfinite(scores[value])]
    groups = list(known.groupby(name, sort=False))
    figure, axes = draw.panels(len(groups))
    for axis, (measure, some) in zip(axes, groups, strict=True):
        axis.hist(some[value], bins="auto", color=draw.BLUE)
        null = null_of(str(measure)) if value == "value" else 0.0
        if np.isfinite(null):
            axis.axvline(null, color=draw.GREY, linestyle="--", linewidth=1)
        if value != "value":
            axis.axvline(1.0, color="black", linewidth=1)
        draw.entitle(axis, str(measure).replace("_", " "))
        axis.set_ylabel("participants" if draw.leftmost(axis) else "")
    return figure


def draw_bars(scores: pd.DataFrame) -> Figure:
    """Draw a panel per metric, with a bar from random answers to each participant.

    Columns participant, metric, normalised, normalised_low, normalised_high.
    """
    known = scores.groupby("metric", sort=False).filter(lambda own: own["normalised"].notna().any())
    names = list(dict.fromkeys(known["participant"]))
    metrics = list(dict.fromkeys(known["metric"]))
    across = min(len(metrics), 3)
    down = -(-len(metrics) // across)
    longest = min(max(map(len, names)), LONGEST)
    wide = max(min(2.0 * across + 0.075 * longest, draw.PAGE_WIDTH), draw.COLUMN_WIDTH)
    tall = down * (0.24 * len(names) + 1.1) + 0.6
    figure = Figure(figsize=(wide, tall), layout="constrained")
    for j, metric in enumerate(metrics):
        axis = figure.add_subplot(down, across, j + 1)
        own = known[known["metric"] == metric].set_index("participant").reindex(names)
        _bars(axis, own)
        axis.set_title(_label(metric), fontsize=draw.TITLE)
        shown = ["\n".join(wrap(name, LONGEST)) for name in names]
        axis.set_yticks(range(len(names)), shown if j % across == 0 else [""] * len(names),
                        fontsize=draw.SMALL)  # fmt: skip
        axis.set_ylim(len(names) - 0.4, -0.6)
    figure.supxlabel("0 = random answers, 1 = reference", fontsize=draw.SMALL + 1)
    return figure


def _bars(axis: Axes, table: pd.DataFrame) -> None:
    low, high = SPAN[0] - 0.25, SPAN[1] + 0.25
    axis.axvline(0, color=draw.GREY, linewidth=1, linestyle="--")
    axis.axvline(1, color="black", linewidth=1)
    columns = (table["normalised"], table["normalised_low"], table["normalised_high"])
    for i, (value, start, end) in enumerate(zip(*columns, strict=True)):
        if np.isnan(value):
            axis.text(0.06, i, "none", color=draw.GREY, fontsize=draw.SMALL - 1, va="center")
            continue
        colour = draw.BLUE if value >= 0 else draw.ORANGE
        inside = float(np.clip(value, low, high))
        axis.barh(i, inside, color=colour, height=0.7, alpha=0.85)
        if np.isfinite(start):
            axis.hlines(i, *np.clip([start, end], low, high), color="black", linewidth=1)
        if inside != value:
            axis.plot(inside, i, marker=">" if value > 0 else "<", color=colour, markersize=7,
                      clip_on=False)  # fmt: skip
            axis.text(inside - np.sign(value) * 0.12, i, f"{value:.1f}", color="white",
                      ha="right" if value > 0 else "left", va="center",
                      fontsize=draw.SMALL - 1, fontweight="bold")  # fmt: skip
    axis.set_xlim(low, high)
    axis.set_xticks(np.arange(np.ceil(low), high))
    axis.tick_params(axis="x", labelsize=draw.SMALL)
    axis.tick_params(axis="y", length=0, labelsize=draw.SMALL)
    axis.spines[["top", "right", "left"]].set_visible(False)


def draw_radar(scores: pd.DataFrame) -> Figure:
    """Draw a radar per participant: dashed ring random answers, bold ring the reference.

    Columns participant, metric, normalised, normalised_low, normalised_high.
    """
    groups = list(scores.groupby("participant", sort=False))
    across = min(len(groups), 2)
    down = -(-len(groups) // across)
    wide, high, disc, below = 3.6, 3.6, 2.0, 0.4  # inches of a panel, its disc, the key
    size = wide * across, high * down + below
    figure = Figure(figsize=size)
    for i, (name, own) in enumerate(groups):
        row, column = divmod(i, across)
        x, y = (column + 0.5) * wide, below + (down - row - 0.55) * high
        corner = ((x - disc / 2) / size[0], (y - disc / 2) / size[1])
        axis = figure.add_axes((*corner, disc / size[0], disc / size[1]), projection="polar")
        assert isinstance(axis, PolarAxes)
        _radar(axis, own)
        title = "\n".join(wrap(str(name), LONGEST))
        axis.set_title(title, fontsize=draw.TITLE, fontweight="bold", pad=28)
    key = (
        "dashed ring: random answers (0)", "bold ring: reference (1)",
        f"centre {SPAN[0]:g}, rim {SPAN[1]:g}", "triangle: further out", "grey x: missing",
    )  # fmt: skip
    text = "; ".join(key) if across > 1 else "\n".join(key)
    figure.text(0.5, 0.05 / size[1], text, ha="center", va="bottom", fontsize=draw.SMALL + 1)
    return figure


def _radar(axis: PolarAxes, table: pd.DataFrame) -> None:
    angles = np.arange(len(table)) * 2 * np.pi / len(table)
    values = table["normalised"].to_numpy(dtype=float)
    inside = np.clip(values, *SPAN)
    ring = np.linspace(0, 2 * np.pi, 200)
    axis.plot(ring, np.zeros_like(ring), color=draw.GREY, linewidth=1, linestyle="--")
    axis.plot(ring, np.ones_like(ring), color="black", linewidth=1.8)
    there = np.isfinite(values)
    if there.all():
        axis.fill(angles, inside, color=draw.BLUE, alpha=0.25)
    around = np.append(np.arange(len(table)), 0)
    axis.plot(angles[around], inside[around], color=draw.BLUE, linewidth=1.8)  # NaN: a gap
    within = there & (inside == values)
    axis.plot(angles[within], inside[within], "o", color=draw.BLUE, markersize=5)
    low, high = (np.clip(table[f"normalised_{end}"], *SPAN).to_numpy() for end in ("low", "high"))
    known = np.isfinite(low) & np.isfinite(high)
    axis.vlines(angles[known], low[known], high[known], color=draw.BLUE, linewidth=1)
    beyond = there & ~within
    axis.plot(angles[beyond], inside[beyond], "^", color=draw.ORANGE, markersize=8, clip_on=False)
    axis.plot(angles[~there], np.full((~there).sum(), 0.5), "x", color=draw.GREY, markersize=7)
    axis.set_theta_zero_location("N")
    axis.set_theta_direction(-1)
    axis.set_ylim(*SPAN)
    axis.set_yticks(np.arange(SPAN[0], SPAN[1] + 1), [])
    axis.set_xticks(angles, [_label(metric) for metric in table["metric"]], fontsize=draw.SMALL)
    axis.tick_params(axis="x", pad=11)
    for label, known_one in zip(axis.get_xticklabels(), there, strict=True):
        label.set_color("black" if known_one else draw.GREY)
    axis.grid(color="#dddddd", linewidth=0.6)
    axis.spines["polar"].set_color("#dddddd")


def _label(metric: str) -> str:
    """Return the name of a metric as words on short lines."""
    return str(metric).replace("_released", "").replace("_", "\n")
