"""Figures of the page of revealed belief."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from knownminds.validation.pages import figures as draw

from .shown import WHO, dots, looks_of

FORM, VARIANT = "form", "variant"
MOST_NAMED = 24  # participants beside each other in a figure of boxes
MOST_PANELS = 12  # of participants
MOST_BARS = 6  # participants whose shares stand as bars beside each other


def distance_figures(contexts: pd.DataFrame) -> list[tuple[str, str]]:
    """Return the boxes of Chebyshev distances by scenario, and the mean distances."""
    rows = contexts[np.isfinite(contexts["chebyshev"].astype(float))]
    if not len(rows):
        return []
    return [
        (
            "Chebyshev distance of the contexts of each part: quartiles, 10% and 90%, median in "
            "orange. Crosses: what as many draws of the truth show on average." + _first(rows),
            draw.svg(_boxes(rows, "chebyshev", "Chebyshev", noise="chebyshev_noise")),
        )
    ]


def increase_figures(rows: pd.DataFrame) -> list[tuple[str, str]]:
    """Return the boxes of increases over the baseline, of revealed and of stated errors."""
    found = []
    for what, own in rows.groupby("what", sort=False):
        known = own[np.isfinite(own["increase"].astype(float))]
        if len(known):
            found.append(
                (
                    f"Increase over the baseline, {what} errors: quartiles, 10% and 90%, median in "
                    "orange; 0 is none." + _first(known),
                    draw.svg(_boxes(known, "increase", "increase", null=0.0)),
                )
            )
    return found


def stated_figures(
    stated: pd.DataFrame, revealed: pd.DataFrame, guess: float
) -> list[tuple[str, str]]:
    """Return the figure of stated errors beside revealed distances."""
    parts = [stated.assign(what="stated error"), revealed.assign(what="revealed (Chebyshev)")]
    rows = pd.concat(parts, ignore_index=True)
    figure = dots(rows, along=WHO, panel=VARIANT, series="what", label="error", null=guess)
    return [
        (
            "Stated error and revealed distance by scenario, with 95% intervals over contexts; "
            f"grey line: stated error by guessing ({guess:g}).",
            draw.svg(figure),
        )
    ]


def bias_figures(rows: pd.DataFrame, words: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the figure of the biases, a panel per scenario and mark."""
    if not len(rows):
        return []
    drawn = rows[rows["value"].notna()].assign(
        panel=lambda r: r["scenario"] + ", " + r["mark"].map(words)
    )
    if not len(drawn):
        return []
    figure = dots(drawn, along=WHO, panel="panel", series=FORM, label="bias", null=0.0)
    return [
        (
            "Biases: what marked outcomes are believed to have more than they have, with 95% "
            "intervals over contexts; 0 is none.",
            draw.svg(figure),
        )
    ]


def excluded_figures(means: pd.DataFrame) -> list[tuple[str, str]]:
    """Return the figure of the mass on outcomes that were excluded."""
    if not means["value"].notna().any():
        return []
    figure = dots(means, along=WHO, panel=VARIANT, series=FORM, label="mass", null=0.0)
    return [
        (
            "Share of the belief on outcomes that cannot come, with 95% intervals over contexts.",
            draw.svg(figure),
        )
    ]


def order_figures(rows: pd.DataFrame) -> list[tuple[str, str]]:
    """Return the figure of equally probable options in both orders."""
    own = rows.assign(outcome=rows["outcome"].astype(str).str.casefold())
    own = own[own["outcome"].isin(("heads", "left"))]
    if not len(own):
        return []
    drawn = own.rename(columns={"share": "value"}).assign(
        order=own["first"] + " named first", what="share of " + own["outcome"]
    )
    figure = dots(drawn, along=WHO, panel="what", series="order", label="share", null=0.5)
    return [
        (
            "Share of heads and of left among equally probable options, by which is named first; "
            "grey line: one half.",
            draw.svg(figure),
        )
    ]


def both_ways_figures(rows: pd.DataFrame) -> list[tuple[str, str]]:
    """Return the figure of stated and revealed probabilities against the truth."""
    if not len(rows):
        return []
    panels = list(rows.groupby([WHO, FORM], sort=False))[:MOST_PANELS]
    figure, axes = draw.panels(len(panels), height=2.6)
    figure.set_size_inches(max(figure.get_size_inches()[0], 5.5), figure.get_size_inches()[1])
    for axis, ((who, form), own) in zip(axes, panels, strict=True):
        axis.plot([0, 1], [0, 1], "--", color=draw.GREY, linewidth=1)
        for name, (colour, marker, _) in zip(("revealed", "stated"), draw.styles(2), strict=True):
            axis.plot(
                own["truth"].to_numpy(dtype=float), own[name].to_numpy(dtype=float), marker,
                color=colour, markersize=2.5, alpha=0.4, label=name, rasterized=True,
            )  # fmt: skip
        axis.set_xlim(-0.02, 1.02)
        axis.set_ylim(-0.02, 1.02)
        several = rows[FORM].nunique() > 1
        draw.entitle(axis, f"{who}, {form}" if several else str(who))
    axes[0].set_ylabel("told probability", fontsize=draw.SMALL)
    draw.key(figure, axes[0])
    more = _first(rows, len(panels))
    return [
        (
            "The same outcome asked both ways: revealed and stated probability against the true "
            "one; on the dashed line they are right." + more,
            draw.svg(figure),
        )
    ]


def context_figure(shares: pd.DataFrame) -> str:
    """Draw the shares of the outcomes, a panel per context, the truth and each participant."""
    several = shares[FORM].nunique() > 1
    shares = shares.assign(named=shares[WHO] + (", " + shares[FORM] if several else ""))
    panels = list(shares.groupby("words", sort=False))
    figure, axes = draw.panels(len(panels), height=2.9, columns=2)
    width = 4.0 * min(len(panels), 2) + 1.0
    figure.set_size_inches(max(width, 5.5), figure.get_size_inches()[1])
    names = list(dict.fromkeys(shares["named"]))
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
            low, high = (some[end].to_numpy(dtype=float) for end in ("low", "high"))
            if few:
                axis.vlines(at, low, high, color=colour, linewidth=1.0, label=f"_{name}")
            axis.plot(
                at, some["share"].to_numpy(dtype=float), marker, color=colour, linestyle="none",
                markersize=4 if few else 3, label=name,
            )  # fmt: skip
        axis.set_xticks(x, [str(outcome) for outcome in first["outcome"]], fontsize=draw.SMALL)
        axis.set_ylim(0, None)
        axis.set_title(str(words), fontsize=draw.SMALL)
    draw.key(figure, axes[0], columns=3)
    return draw.svg(figure)


def _boxes(
    rows: pd.DataFrame, value: str, label: str, *, null: float | None = None, noise: str = ""
) -> Figure:
    """Draw boxes of quartiles with whiskers at 10% and 90%, a panel per part."""
    several = rows[FORM].nunique() > 1
    rows = rows.assign(named=rows[WHO] + (", " + rows[FORM] if several else ""))
    names = list(dict.fromkeys(rows["named"]))[:MOST_NAMED]
    panels = list(rows.groupby(VARIANT, sort=False))
    figure, axes = draw.panels(len(panels), height=0.26 * len(names) + 1.2)
    figure.set_size_inches(max(figure.get_size_inches()[0], 5.5), figure.get_size_inches()[1])
    for axis, (variant, own) in zip(axes, panels, strict=True):
        if null is not None:
            axis.axvline(null, color=draw.GREY, linewidth=1, zorder=0)
        for y, name in enumerate(names):
            _one_box(axis, own[own["named"] == name], value, y, noise)
        axis.set_yticks(range(len(names)), names if draw.leftmost(axis) else [""] * len(names))
        axis.set_ylim(len(names) - 0.4, -0.6)
        axis.set_xlabel(label, fontsize=draw.SMALL)
        draw.entitle(axis, str(variant))
    return figure


def _one_box(axis: Axes, own: pd.DataFrame, value: str, y: int, noise: str) -> None:
    values = own[value].to_numpy(dtype=float)
    values = values[np.isfinite(values)]
    if not len(values):
        return
    tenth, lower, median, upper, ninetieth = np.quantile(values, [0.1, 0.25, 0.5, 0.75, 0.9])
    axis.hlines(y, tenth, ninetieth, color=draw.BLUE, linewidth=1)
    axis.barh(y, upper - lower, 0.55, left=lower, color="#0072B240", edgecolor=draw.BLUE, zorder=2)
    axis.vlines(median, y - 0.27, y + 0.27, color=draw.ORANGE, linewidth=1.8, zorder=3)
    if noise:
        expected = own[noise].to_numpy(dtype=float)
        axis.plot(np.nanmean(expected), y, "x", color="black", markersize=4, zorder=4)


def _first(rows: pd.DataFrame, drawn: int = MOST_NAMED) -> str:
    """Say how many are drawn, where these are not all."""
    named = rows[[WHO, FORM]].drop_duplicates() if FORM in rows else rows[[WHO]].drop_duplicates()
    return f" The first {drawn} of {len(named)}." if len(named) > drawn else ""
