"""Figures of scores, each of a tidy frame."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.projections.polar import PolarAxes

from knownminds.inference import MEASURES
from knownminds.validation.pages import figures as draw
from knownminds.validation.pages.views import Dots, draw_dots, quantiles

SPAN = (-2.0, 3.0)  # of the normalised scale; what lies beyond has an arrow
CORNERS = 3  # of a radar at least; fewer have no shape
LONGEST = 34  # letters of a line above a radar
MOST_LINES = 80  # participants that have a line each; of more, their distribution is drawn
MOST_RADARS = 24
INTERVALS = Dots("", "value", "measure", null="null", free=True)
ON_SCALE = Dots("", "0 = random answers, 1 = reference", "metric", null=0.0, people={"value": 1.0},
                within=SPAN)  # fmt: skip


def draw_intervals(scores: pd.DataFrame) -> Figure:
    """Draw each measure in a panel, a line per participant, with 95% intervals.

    Columns experiment, measure, participant, value, low, high. A cross marks the null value.
    """
    known = _with_null(scores)
    alike = known["measure"].str.startswith("performance")
    names = known["measure"].where(~alike, known["measure"] + ", " + known["experiment"])
    return draw_dots(known.assign(measure=names), INTERVALS)


def draw_distributions(scores: pd.DataFrame) -> Figure:
    """Draw median, 10% and 90% of each measure over participants; a cross marks its null value."""
    known = _with_null(scores).assign(participant="all")
    spread = quantiles(known, ["participant", "measure"], "value", mean_of="null")
    return draw_dots(spread.rename(columns={"mean": "null"}), INTERVALS)


def draw_scale(scores: pd.DataFrame) -> Figure:
    """Draw each metric of each participant on the scale from random answers to the reference.

    Columns participant, metric, normalised, normalised_low, normalised_high. Of many participants
    the distribution is drawn.
    """
    known = scores[np.isfinite(scores["normalised"])]
    if known["participant"].nunique() > MOST_LINES:
        every = known.assign(participant="all")
        return draw_dots(quantiles(every, ["participant", "metric"], "normalised"), ON_SCALE)
    columns = {"value": "normalised", "low": "normalised_low", "high": "normalised_high"}
    ends = {name: known[column].astype(float) for name, column in columns.items()}
    return draw_dots(known.assign(**ends), ON_SCALE)


def _with_null(scores: pd.DataFrame) -> pd.DataFrame:
    """Return the scores that have a value, with the value that each measure's test rejects."""
    known: pd.DataFrame = scores[np.isfinite(scores["value"])]
    null = [MEASURES[name].null if name in MEASURES else np.nan for name in known["measure"]]
    return known.assign(null=null)


def draw_radar(scores: pd.DataFrame) -> Figure:
    """Draw a radar per participant: dashed ring random answers, bold ring the reference.

    Columns participant, metric, normalised, normalised_low, normalised_high.
    """
    groups = list(scores.groupby("participant", sort=False))
    across = draw.beside(min(len(groups), 2))
    down = -(-len(groups) // across)
    wide, high, disc, below = 3.6, 3.6, 2.0, 0.4  # inches of a panel, its disc, the key
    size = wide * across, high * down + below
    figure = Figure(figsize=size)
    for i, (name, rows) in enumerate(groups):
        row, column = divmod(i, across)
        x, y = (column + 0.5) * wide, below + (down - row - 0.55) * high
        corner = ((x - disc / 2) / size[0], (y - disc / 2) / size[1])
        axis = figure.add_axes((*corner, disc / size[0], disc / size[1]), projection="polar")
        assert isinstance(axis, PolarAxes)
        _radar(axis, rows)
        title = draw.in_lines(str(name), LONGEST)
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
    ends = table[["normalised_low", "normalised_high"]].to_numpy(dtype=float)
    low, high = np.clip(ends, *SPAN).T
    known = np.isfinite(low) & np.isfinite(high)
    axis.vlines(angles[known], low[known], high[known], color=draw.BLUE, linewidth=1)
    for cut, edge in zip((ends[:, 0] < SPAN[0], ends[:, 1] > SPAN[1]), SPAN, strict=True):
        at = angles[known & cut]
        axis.plot(at, np.full(len(at), edge), "^", color=draw.BLUE, markersize=4, clip_on=False)
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
