"""Figures of the page of diagnosis."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.ticker import MaxNLocator

from knownminds.validation.pages import figures as draw

from .shown import WHO, looks_of

SET = "data_set"
MOST_PANELS = 12


def bars(
    rows: pd.DataFrame,
    value: str,
    label: str,
    caption: str,
    *,
    null: str = "",
    series: str = "",
    lines: Mapping[str, float] | None = None,
) -> list[tuple[str, str]]:
    """Return the figure of bars with intervals: a panel per data set, a bar per model.

    Parameters
    ----------
    null
        Column of the value under the hypothesis, a cross; "" for none.
    series
        Column of what stands beside each other at a model, in colours; "" for nothing.
    lines
        By data set, a value that is drawn across.
    """
    known = rows[np.isfinite(rows[value].astype(float))] if len(rows) else rows
    if not len(known):
        return []
    sets = list(dict.fromkeys(known[SET]))
    models = list(dict.fromkeys(known[WHO]))
    kinds = list(dict.fromkeys(known[series])) if series else [""]
    figure, axes = draw.panels(len(sets), height=0.3 * len(models) * max(1, len(kinds) / 2) + 1.2)
    figure.set_size_inches(max(figure.get_size_inches()[0], 5.5), figure.get_size_inches()[1])
    looks = looks_of(kinds)
    place = {name: k for k, name in enumerate(models)}
    thick = 0.8 / len(kinds)
    for axis, name in zip(axes, sets, strict=True):
        own = known[known[SET] == name]
        for j, kind in enumerate(kinds):
            some = own[own[series] == kind] if series else own
            at = some[WHO].map(place).to_numpy(dtype=float) + thick * (j - (len(kinds) - 1) / 2)
            size = some[value].to_numpy(dtype=float).round(9)  # what is 0 but for rounding is 0
            axis.barh(at, size, 0.8 * thick, color=looks[kind][0], alpha=0.45, label=kind or None)
            low, high = (some[end].to_numpy(dtype=float).round(9) for end in ("low", "high"))
            axis.hlines(at, low, high, color=looks[kind][0], linewidth=1.6, label=f"_{kind}")
            if null:
                axis.plot(
                    some[null].to_numpy(dtype=float), at, "x", color="black", markersize=4,
                    label="_null",
                )  # fmt: skip
        if lines and name in lines:
            axis.axvline(lines[name], color=draw.GREY, linewidth=1.4)
        axis.axvline(0.0, color=draw.GREY, linewidth=0.8, zorder=0)
        axis.set_yticks(range(len(models)), models if draw.leftmost(axis) else [""] * len(models))
        axis.set_ylim(len(models) - 0.4, -0.6)
        axis.xaxis.set_major_locator(MaxNLocator(4))
        axis.set_xlabel(label, fontsize=draw.SMALL)
        draw.entitle(axis, str(name))
    draw.key(figure, axes[0])
    return [(caption, draw.svg(figure))]


def odds(shares: pd.DataFrame) -> list[tuple[str, str]]:
    """Return the figure of choices by belief, a panel per model and data set."""
    if not len(shares):
        return []
    panels = list(shares.groupby([SET, WHO], sort=False))
    shown = panels[:MOST_PANELS]
    figure, axes = draw.panels(len(shown), height=2.5)
    figure.set_size_inches(max(figure.get_size_inches()[0], 5.5), figure.get_size_inches()[1])
    for axis, ((name, who), own) in zip(axes, shown, strict=True):
        pairs = own.groupby(["first", "second"], sort=False)
        for ((first, second), some), look in zip(pairs, draw.styles(3), strict=False):
            held = some[some["chose_first"] + some["chose_second"] > 0]
            a, b = (held[c].to_numpy(dtype=float) for c in ("chose_first", "chose_second"))
            draw.line(
                axis, held["belief"].to_list(), (a / (a + b)).tolist(), look, f"{first} of "
                f"{first} or {second}",
            )  # fmt: skip
        axis.set_xlim(-0.02, 1.02)
        axis.set_ylim(-0.03, 1.03)
        axis.set_title(f"{name}, {who}", fontsize=draw.SMALL)
    axes[0].set_ylabel("share of the first", fontsize=draw.SMALL)
    draw.key(figure, axes[0])
    left = len(panels) - len(shown)
    more = f" {left} more are in the file." if left else ""
    return [
        (
            "Share of the bolder action among two by stated belief, in five bins of it: lines "
            "of whoever maximises expected utility with noise only rise or only fall." + more,
            draw.svg(figure),
        )
    ]


def reliability_figures(rows: pd.DataFrame) -> list[tuple[str, str]]:
    """Return the figure of stated beliefs by exact probability, a panel per data set."""
    if not len(rows):
        return []
    sets = list(dict.fromkeys(rows[SET]))
    models = list(dict.fromkeys(rows[WHO]))
    looks = looks_of(models)
    figure, axes = draw.panels(len(sets), height=2.8)
    figure.set_size_inches(max(figure.get_size_inches()[0], 5.5), figure.get_size_inches()[1])
    for axis, name in zip(axes, sets, strict=True):
        axis.plot([0, 1], [0, 1], "--", color=draw.GREY, linewidth=1)
        for who, own in rows[rows[SET] == name].groupby(WHO, sort=False):
            colour = looks[str(who)][0]
            x = own["exact"].to_numpy(dtype=float)
            low, high = (own[end].to_numpy(dtype=float) for end in ("low", "high"))
            if len(models) <= 6:
                axis.vlines(x, low, high, color=colour, linewidth=0.8, label=f"_{who}")
            draw.line(axis, x.tolist(), own["stated"].to_list(), looks[str(who)], str(who), 3)
        axis.set_xlim(-0.02, 1.02)
        axis.set_ylim(-0.02, 1.02)
        axis.set_xlabel("exact probability", fontsize=draw.SMALL)
        draw.entitle(axis, str(name))
    axes[0].set_ylabel("stated belief", fontsize=draw.SMALL)
    draw.key(figure, axes[0])
    return [
        (
            "Mean plain belief by exact probability, in ten bins of it; on the dashed line beliefs "
            "are right.",
            draw.svg(figure),
        )
    ]
