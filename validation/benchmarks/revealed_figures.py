"""Figures of their own kind of the paper on revealed beliefs."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from knownminds.validation.pages import figures as draw

from .views import MOST_PANELS, WHO, entitle, key, looks_of, wide_panels

FORM = "form"
MOST_BARS = 6  # participants whose intervals stand beside each other


def draw_both_ways(rows: pd.DataFrame) -> Figure:
    """Draw stated and revealed probabilities against the truth, a panel per participant."""
    panels = list(rows.groupby([WHO, FORM], sort=False))[:MOST_PANELS]
    figure, axes = wide_panels(len(panels), height=2.6)
    for axis, ((who, form), own) in zip(axes, panels, strict=True):
        axis.plot([0, 1], [0, 1], "--", color=draw.GREY, linewidth=1)
        for name, (colour, marker, _) in zip(("revealed", "stated"), draw.styles(2), strict=True):
            axis.plot(
                own["truth"], own[name], marker, color=colour, markersize=2.5, alpha=0.4,
                label=name, rasterized=True,
            )  # fmt: skip
        axis.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
        entitle(axis, f"{who}, {form}" if rows[FORM].nunique() > 1 else str(who))
    axes[0].set_ylabel("told probability", fontsize=draw.SMALL)
    key(figure, axes[0])
    return figure


def draw_context(rows: pd.DataFrame) -> Figure:
    """Draw the shares of the outcomes, a panel per context, the truth and each participant."""
    several = rows[FORM].nunique() > 1
    rows = rows.assign(named=rows[WHO] + (", " + rows[FORM] if several else ""))
    panels = list(rows.groupby("words", sort=False))
    figure, axes = draw.panels(len(panels), height=2.6, columns=3 if len(panels) > 4 else 2)
    names = list(dict.fromkeys(rows["named"]))
    looks = looks_of(names)
    few = len(names) <= MOST_BARS
    for axis, (words, own) in zip(axes, panels, strict=True):
        first = own[own["named"] == own["named"].iloc[0]]
        x = np.arange(len(first))
        axis.bar(x, first["truth"], 0.9, color=draw.GREY, alpha=0.35, label="truth", zorder=1)
        for k, name in enumerate(names):
            some = own[own["named"] == name]
            if len(some) != len(first):
                continue
            at = x + 0.8 * ((k + 0.5) / len(names) - 0.5)
            colour, marker, _ = looks[name]
            if few:
                axis.vlines(at, some["low"], some["high"], color=colour, linewidth=1.0)
            axis.plot(
                at, some["share"], marker, color=colour, linestyle="none",
                markersize=4 if few else 3, label=name,
            )  # fmt: skip
        every = max(1, -(-len(x) // 12))
        labels = [str(o) if i % every == 0 else "" for i, o in enumerate(first["outcome"])]
        axis.set_xticks(x, labels, fontsize=draw.SMALL)
        axis.set_ylim(0, None)
        entitle(axis, str(words))
    key(figure, axes[0])
    return figure
