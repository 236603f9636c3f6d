"""Figures of recovery studies and of fits, as SVG text for the report."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from knownminds.agents.parameters import Array

from .fit import Fit
from .parameter_recovery import MASSES, Recovery

# Okabe and Ito's palette: distinct under all common colour blindness, and in grey.
BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#777777"
MOST_POINTS = 1500  # more only blacken the panel and bloat the page
WIDTH = 2.6  # inches per panel


def recovery_scatter(recovery: Recovery) -> str:
    """Draw estimate against truth, one panel per parameter, with 90% intervals lightly."""
    figure, axes = _panels([scores.name for scores in recovery.parameters])
    rows = _thinned(recovery.rows)
    for axis, scores in zip(axes, recovery.parameters, strict=True):
        name = scores.name
        true, estimate = rows[f"true_{name}"].to_numpy(), rows[name].to_numpy()
        ends = rows[f"low_90_{name}"].to_numpy(), rows[f"high_90_{name}"].to_numpy()
        low, high = _range(true, estimate)
        axis.vlines(
            true, *ends, color=BLUE, alpha=_faint(len(true)), linewidth=0.8, rasterized=True
        )
        axis.plot(
            true, estimate, "o", color=BLUE, markersize=2.5, alpha=0.6, linewidth=0, rasterized=True
        )
        axis.plot([low, high], [low, high], color=GREY, linewidth=1, zorder=0)
        axis.set(xlim=(low, high), ylim=(low, high), xlabel="truth", ylabel="estimate")
        axis.set_title(f"{name}, r = {scores.r.value:.2f}", fontsize=10)
        axis.set_box_aspect(1)
    return _svg(figure)


def recovery_residuals(recovery: Recovery) -> str:
    """Draw error against truth, with the mean error in tenths of the subjects."""
    figure, axes = _panels([scores.name for scores in recovery.parameters])
    everyone = recovery.rows[recovery.rows["status"] != "failed"]
    rows = _thinned(recovery.rows)
    for axis, scores in zip(axes, recovery.parameters, strict=True):
        name = scores.name
        true, estimate = rows[f"true_{name}"].to_numpy(), rows[name].to_numpy()
        axis.axhline(0, color=GREY, linewidth=1)
        axis.plot(
            true,
            estimate - true,
            "o",
            color=BLUE,
            markersize=2.5,
            alpha=0.4,
            linewidth=0,
            rasterized=True,
        )
        all_true = everyone[f"true_{name}"].to_numpy()
        error = everyone[name].to_numpy() - all_true
        tenths = np.array_split(np.argsort(all_true), max(min(10, len(all_true) // 10), 1))
        middle = [float(all_true[t].mean()) for t in tenths]
        mean = [float(error[t].mean()) for t in tenths]
        axis.plot(middle, mean, color=ORANGE, linewidth=1.6, label="mean in tenths")
        low, high = _range(error)
        axis.set(xlim=_range(true), ylim=(low, high), xlabel="truth", ylabel="estimate - truth")
        axis.set_title(name, fontsize=10)
    axes[0].legend(frameon=False, fontsize=8)
    return _svg(figure)


def recovery_coverage(recovery: Recovery) -> str:
    """Draw coverage minus nominal mass, with the band in which 95% of exact intervals would lie."""
    figure = Figure(figsize=(6.4, 2.9), layout="constrained")
    axis = figure.add_subplot()
    n = max(recovery.parameters[0].n, 1)
    masses = np.array(MASSES)
    grid = np.linspace(0.45, 0.98, 60)
    half = 1.96 * np.sqrt(grid * (1 - grid) / n)
    axis.fill_between(grid, -half, half, color=GREY, alpha=0.2, linewidth=0, label="95% by chance")
    axis.axhline(0, color=GREY, linewidth=1)
    styles = zip(_colours(len(recovery.parameters)), "osD^vP*X" * 4, strict=False)
    spread = np.linspace(-0.008, 0.008, len(recovery.parameters))
    for scores, shift, (colour, marker) in zip(recovery.parameters, spread, styles, strict=False):
        held = [scores.coverage[f"{mass * 100:g}"] for mass in MASSES]
        off = np.array([score.value for score in held]) - masses
        error = [2 * score.error for score in held]
        axis.errorbar(
            masses + shift,
            off,
            error,
            fmt=marker,
            color=colour,
            markersize=4,
            linewidth=1,
            label=scores.name,
        )
    axis.set(xlabel="nominal mass of the interval", ylabel="coverage - nominal")
    axis.set_xticks(masses, [f"{mass:.0%}" for mass in MASSES])
    axis.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
    _plain(axis)
    return _svg(figure)


def subject_forest(fit: Fit) -> str:
    """Draw every subject's 90% interval, sorted by estimate, and the group value."""
    tall = float(np.clip(0.06 * fit.n_subjects, 2.4, 8))
    figure, axes = _panels(fit.parameters, height=tall, columns=4)
    for axis, name in zip(axes, fit.parameters, strict=True):
        frame = fit.subjects.sort_values(name, ignore_index=True)
        place = np.arange(len(frame))
        sure = (frame["status"] == "ok").to_numpy()
        for chosen, colour, label in ((sure, BLUE, "ok"), (~sure, ORANGE, "other status")):
            if not chosen.any():
                continue
            some = frame[chosen]
            axis.hlines(
                place[chosen],
                some[f"{name}_low"],
                some[f"{name}_high"],
                color=colour,
                alpha=0.45,
                linewidth=1.2,
            )
            axis.plot(some[name], place[chosen], "o", color=colour, markersize=2.6, label=label)
        group = fit.group[name]
        if np.isfinite(group.estimate):
            axis.axvspan(group.low, group.high, color=GREEN, alpha=0.2, linewidth=0)
            axis.axvline(group.estimate, color=GREEN, linewidth=1.2, label=group.meaning)
        low, high = _range(frame[name].to_numpy(), *_ends(frame, name))
        axis.set(xlim=(low, high), xlabel=name)
        axis.set_yticks([])
    axes[0].set_ylabel("subjects, sorted")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3, frameon=False, fontsize=8)
    return _svg(figure)


def _ends(frame: pd.DataFrame, name: str) -> list[Array]:
    """Interval ends, with the longest tenth cut so that one subject does not set the scale."""
    low, high = frame[f"{name}_low"].to_numpy(), frame[f"{name}_high"].to_numpy()
    cut_low, cut_high = np.nanquantile(low, 0.05), np.nanquantile(high, 0.95)
    return [np.maximum(low, cut_low), np.minimum(high, cut_high)]


def _panels(
    names: Sequence[str], height: float = 2.9, columns: int = 4
) -> tuple[Figure, list[Axes]]:
    across = min(len(names), columns)
    down = -(-len(names) // across)
    figure = Figure(figsize=(max(WIDTH * across, 4), height * down), layout="constrained")
    axes = [figure.add_subplot(down, across, k + 1) for k in range(len(names))]
    for axis in axes:
        _plain(axis)
    return figure, axes


def _dots(axis: Axes, x: Array, y: Array) -> None:
    # As pixels inside the SVG: thousands of vector dots make a heavy page.
    axis.plot(x, y, "o", color=BLUE, markersize=2.5, alpha=0.5, linewidth=0, rasterized=True)


def _plain(axis: Axes) -> None:
    axis.spines[["top", "right"]].set_visible(False)
    axis.tick_params(labelsize=8)


def _colours(n: int) -> list[str]:
    palette = (BLUE, ORANGE, GREEN, "#CC79A7", "#E69F00", "#56B4E9")
    return [palette[k % len(palette)] for k in range(n)]


def _thinned(rows: pd.DataFrame) -> pd.DataFrame:
    usable = rows[rows["status"] != "failed"]
    step = -(-len(usable) // MOST_POINTS) or 1
    return usable.iloc[::step]


def _faint(n: int) -> float:
    return float(np.clip(30 / max(n, 1), 0.04, 0.35))


def _range(*columns: NDArray[Any]) -> tuple[float, float]:
    """Limits that show nearly all values; runaways of maximum likelihood are left outside."""
    values = np.concatenate([c[np.isfinite(c)] for c in columns])
    if len(values) == 0:
        return 0.0, 1.0
    low, high = np.quantile(values, [0.002, 0.998])
    margin = 0.05 * (high - low) or 0.5
    return float(low - margin), float(high + margin)


def _svg(figure: Figure) -> str:
    """Return the figure as SVG text."""
    stream = io.StringIO()
    # No date and a fixed salt: the same study gives the same page.
    with mpl.rc_context({"svg.hashsalt": "knownminds", "svg.fonttype": "none"}):
        figure.savefig(stream, format="svg", dpi=200, metadata={"Date": None, "Creator": None})
    return stream.getvalue()
