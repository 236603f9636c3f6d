"""Figures of their own kind of the magnitudes' paper, and the frames that they show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from knownminds.agents import KalmanObserver
from knownminds.agents.parameters import Array
from knownminds.environments import MODALITIES, WINDOWS
from knownminds.inference.magnitudes.cue_combination import combine, pair
from knownminds.inference.magnitudes.magnitude_answers import (
    BASE,
    MULTIMODAL,
    TASKS,
    Answers,
    MagnitudeAnswers,
)
from knownminds.inference.magnitudes.magnitude_composite import cue_cells
from knownminds.validation.magnitudes.magnitude_frames import MagnitudeFrames, whole_modality
from knownminds.validation.pages import figures as draw

from .views import MOST_PANELS, WHO, looks_of, wide_panels

STEPS = 4  # groups of trials whose blur grows
MOST_SHOWN = 6  # participants in pictures of single answers
COLOURS = dict(zip(WINDOWS, draw.PALETTE, strict=False))


def arrows(answers: MagnitudeAnswers) -> pd.DataFrame:
    """Return the mean of low and of high stimuli of each window, and the mean answer to them.

    One row per participant, task, window (by number) and end: stimulus and answer.
    """
    rows = []
    for task in TASKS:
        for who in answers.participants:
            cell = answers.cells.get((who, task, BASE, whole_modality(task)))
            if cell is None:
                continue
            for window in np.unique(cell.window):
                mine = (cell.window == window) & np.isfinite(cell.response)
                x, y = cell.value[mine], cell.response[mine]
                if not len(x):
                    continue
                for end, third in (
                    ("low", x <= np.quantile(x, 1 / 3)),
                    ("high", x >= np.quantile(x, 2 / 3)),
                ):
                    means = {"stimulus": float(x[third].mean()), "answer": float(y[third].mean())}
                    rows.append({WHO: who, "task": task, "window": int(window), "end": end} | means)
    return pd.DataFrame(rows)


def draw_arrows(rows: pd.DataFrame) -> Figure:
    """Draw arrows from stimuli to mean answers, a panel per task."""
    names = list(dict.fromkeys(rows[WHO]))
    tasks = list(rows.groupby("task", sort=False))
    figure, axes = wide_panels(len(tasks), height=0.34 * len(names) + 1.2)
    for axis, (task, own) in zip(axes, tasks, strict=True):
        for row in own.to_dict("records"):
            at = names.index(row[WHO]) + 0.22 * (row["window"] - 1)
            colour = draw.PALETTE[row["window"] % len(draw.PALETTE)]
            arrow = axis.annotate(
                "", (row["answer"], at), (row["stimulus"], at),
                arrowprops={"arrowstyle": "->", "color": colour, "linewidth": 1.1},
            )  # fmt: skip
            arrow.set_in_layout(False)  # it ends where the dots are
            axis.plot(row["stimulus"], at, ".", color=colour, markersize=3)
            axis.plot(row["answer"], at, alpha=0.0)
        axis.set_yticks(range(len(names)), names if draw.leftmost(axis) else [""] * len(names))
        axis.set_ylim(len(names) - 0.4, -0.6)
        draw.entitle(axis, str(task).replace("_", " "))
    return figure


def blur_weights(answers: MagnitudeAnswers, tasks: Sequence[str]) -> pd.DataFrame:
    """Return the weight of the text by blur: fitted to the answers, and deserved.

    One row per participant, task, condition and group of trials with about the same blur; deserved
    is the weight by inverse variances of the errors of the answers to each.
    """
    rows: list[dict[str, Any]] = []
    for task in tasks:
        for who in answers.participants:
            for condition in (BASE, "constant_noise", "gradual_noise"):
                rows += [
                    {WHO: who, "task": task, "condition": condition} | row
                    for row in _blur_rows(answers, who, task, condition)
                ]
    return pd.DataFrame(rows)


def _blur_rows(
    answers: MagnitudeAnswers, who: str, task: str, condition: str
) -> list[dict[str, float]]:
    cells = cue_cells(answers, who, task, condition)
    if cells is None:
        return []
    pairs = pair(*cells)
    blur = pairs.combined.blur
    groups = 1 if len(np.unique(blur)) == 1 else STEPS
    rank = np.argsort(np.argsort(blur, kind="stable"), kind="stable")
    rows = []
    for k in range(groups):
        some = pairs.only(rank * groups // max(len(rank), 1) == k)
        combination = combine(some)
        if combination.reason:
            continue
        weight = combination.text_weight["linear"]
        ends = np.quantile(weight[1:], [0.16, 0.84]) if len(weight) > 1 else [np.nan] * 2
        rows.append(
            {
                "blur": float(some.combined.blur.mean()),
                "items": len(some),
                "text_weight": float(weight[0]),
                "low": float(ends[0]),
                "high": float(ends[1]),
                "deserved": float(combination.text_weight["bayes_residuals"][0]),
            }
        )
    return rows


def summary(frames: MagnitudeFrames) -> pd.DataFrame:
    """Return each participant's error, evidence for a Bayesian observer, efficiency and score.

    Error and evidence are means over tasks in the base condition with all that a task shows.
    """
    cells = frames.cells
    whole = cells["modality"] == cells["task"].map(whole_modality)
    base = cells[whole & (cells["condition"] == BASE)]
    means = base.groupby(WHO, sort=False)[["error", "bayesian"]].agg(_whole_mean)
    parts = frames.composite.set_index([WHO, "part"])["value"].unstack("part")
    score = frames.consistency.groupby(WHO, sort=False)["score"].agg(_whole_sum)
    table = means.join(parts["E"]).join(score)
    return table.set_axis(
        ["NRMSE", "evidence: Bayesian", "efficiency E", "consistency score"], axis=1
    ).reset_index()


def _whole_mean(values: pd.Series[float]) -> float:
    return float(values.mean(skipna=False))


def _whole_sum(values: pd.Series[float]) -> float:
    return float(values.sum(skipna=False))


def against_error(rows: pd.DataFrame) -> Figure:
    """Draw each participant's error against evidence, efficiency and consistency."""
    names = [name for name in rows.columns[2:] if rows[name].notna().any()]
    figure, axes = draw.panels(max(len(names), 1))
    looks = looks_of(rows[WHO].tolist())
    for axis, name in zip(axes, names, strict=False):
        for row in rows.to_dict("records"):
            colour, marker, _ = looks[row[WHO]]
            axis.plot(row["NRMSE"], row[name], marker, color=colour, markersize=7, label=row[WHO])
        axis.set(xlabel="NRMSE", ylabel=name)
        axis.margins(0.15)
    draw.key(figure, axes[0], columns=3)
    return figure


def draw_consistency(rows: pd.DataFrame, most: float) -> Figure:
    """Draw the scores among those of known minds, a panel per participant."""
    groups = list(rows.groupby(WHO, sort=False))[:MOST_PANELS]
    figure, axes = draw.panels(len(groups), height=2.1)
    for axis, (who, some) in zip(axes, groups, strict=True):
        minds = some.to_dict("records")
        for y, (mind, colour) in enumerate(zip(minds, draw.PALETTE, strict=False)):
            ends = np.array([-2.0, 2.0]) * mind["sd"] + mind["expected"]
            axis.plot(
                np.clip(ends, -most, most), [y, y], color=colour, linewidth=6, alpha=0.35,
                solid_capstyle="butt",
            )  # fmt: skip
            axis.plot(mind["expected"], y, "o", color=colour, markersize=6)
        axis.axvline(minds[0]["score"], color="black", linewidth=1.6)
        if np.isfinite(minds[0]["low"]):
            axis.axvspan(minds[0]["low"], minds[0]["high"], color="black", alpha=0.1, linewidth=0)
        axis.set_yticks(range(len(minds)), [str(mind["observer"]) for mind in minds])
        axis.set(xlim=(-most - 1, most + 1), ylim=(-0.6, len(minds) - 0.4), xlabel="score")
        draw.entitle(axis, str(who))
    return figure


def answers_and_observers(answers: MagnitudeAnswers, fits: pd.DataFrame) -> pd.DataFrame:
    """Return the answers of the first participants in the base condition, and fitted observers'.

    One row per trial: participant, task, modality, window, place (which session and window), trial,
    stimulus, answer, static and linear (mean answers of the fitted observers), and belief (of the
    sequential one).
    """
    parts = []
    for task in TASKS:
        there = [
            who for who in answers.participants if any(k[:2] == (who, task) for k in answers.cells)
        ]
        for who in there[:MOST_SHOWN]:
            for modality in MODALITIES if task in MULTIMODAL else MODALITIES[:1]:
                cell = answers.cells.get((who, task, BASE, modality))
                if cell is None:
                    continue
                chosen = (fits[WHO] == who) & (fits["task"] == task) & (fits["condition"] == BASE)
                own = fits[chosen & (fits["modality"] == modality) & (fits["status"] != "failed")]
                parts.append(
                    _observed(cell, own.set_index("variant"), modality).assign(
                        **{WHO: who, "task": task, "modality": modality}
                    )
                )
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def _observed(cell: Answers, fits: pd.DataFrame, modality: str) -> pd.DataFrame:
    names = np.array(WINDOWS)[cell.window]
    frame = pd.DataFrame(
        {
            "window": names, "place": cell.place, "trial": cell.trial, "stimulus": cell.value,
            "answer": cell.response, "static": np.nan, "linear": np.nan,
            "belief": _beliefs(cell, fits, modality),
        }
    )  # fmt: skip
    if "static_bayes_observer" in fits.index:
        static: Any = fits.loc["static_bayes_observer"]
        prior = np.array([static[f"mu_{name}"] for name in names], dtype=float) * cell.unit
        weight = float(static["w_prior"])
        mean = (1 - weight) * cell.value + weight * prior
        frame["static"] = np.clip(mean, 0, cell.ceiling)
    if "linear_observer" in fits.index:
        linear: Any = fits.loc["linear_observer"]
        frame["linear"] = float(linear["w"]) * cell.value + float(linear["b"]) * cell.unit
    return frame


def _beliefs(cell: Answers, fits: pd.DataFrame, modality: str) -> Array:
    """Return what the fitted sequential observer would answer on average, [n]."""
    belief = np.full(len(cell), np.nan)
    if "kalman_observer" not in fits.index:
        return belief
    names = KalmanObserver.parameters.names
    theta = fits.loc["kalman_observer", list(names)].to_numpy(dtype=float)
    for place in np.unique(cell.place):
        observer = KalmanObserver.from_theta(theta)
        assert isinstance(observer, KalmanObserver)
        observer.reset()
        rows = np.flatnonzero(cell.place == place)
        for row in rows[np.argsort(cell.trial[rows], kind="stable")]:
            seen: dict[str, int | float] = {
                "trial": int(cell.trial[row]),
                "window": int(cell.window[row]),
                "value": float(cell.value[row]),
                "modality": MODALITIES.index(modality),
                "unit": cell.unit,
                "ceiling": cell.ceiling,
            }
            belief[row] = observer.expected(seen)[0] * cell.unit
            if np.isfinite(cell.response[row]):  # of other trials the observer knows nothing
                observer.learn(seen, 0, 0.0)
    return belief


def draw_responses(rows: pd.DataFrame) -> Figure:
    """Draw answers against stimuli, a panel per participant and modality."""
    panels = list(rows.groupby([WHO, "modality"], sort=False))
    columns = max(rows["modality"].nunique(), 2)
    figure, axes = wide_panels(len(panels), height=2.8, columns=columns)
    for axis, ((who, modality), own) in zip(axes, panels, strict=True):
        for window, some in own.groupby("window", sort=False):
            colour = COLOURS[str(window)]
            said = some[some["answer"].notna()]
            axis.plot(
                said["stimulus"], said["answer"], "o", color=colour, markersize=2.5, alpha=0.3
            )
            mean = said.groupby("stimulus")["answer"].mean()
            if len(mean) < len(said):
                axis.plot(mean.index, mean, "o", color=colour, markersize=4)
            line = some.sort_values("stimulus")
            axis.plot(line["stimulus"], line["static"], color=colour, linewidth=1.8)
        ends = own.sort_values("stimulus").iloc[[0, -1]]
        axis.plot(ends["stimulus"], ends["stimulus"], color=draw.GREY, linestyle="--", zorder=0)
        axis.plot(ends["stimulus"], ends["linear"], ":", color="black", linewidth=1)
        axis.set(xlabel="stimulus", ylabel="answer")
        draw.entitle(axis, f"{who}\n{modality}")
    handles = [
        *(Line2D([], [], color=c, marker="o", label=w) for w, c in COLOURS.items()),
        Line2D([], [], color=draw.GREY, linestyle="--", label="perfect"),
        Line2D([], [], color="black", linestyle=":", label="linear observer"),
    ]
    figure.legend(
        handles=handles, loc="outside upper center", ncols=5, frameon=False, fontsize=draw.SMALL
    )
    return figure


def draw_trajectories(rows: pd.DataFrame) -> Figure:
    """Draw answers and beliefs of the sequential observer trial by trial, a row per participant."""
    rows = rows[rows["modality"] == rows["task"].map(whole_modality)]
    panels = list(rows.groupby(WHO, sort=False))
    figure, axes = draw.panels(max(len(panels), 1), height=2.2, columns=1)
    figure.set_size_inches(draw.PAGE_WIDTH, 2.2 * max(len(panels), 1))
    for axis, (who, own) in zip(axes, panels, strict=False):
        begin = 0
        # Sessions have orders of their own and cannot be averaged: the first is drawn.
        for window, some in own.groupby("window", sort=False):
            first = some[some["place"] == some["place"].min()].sort_values("trial", kind="stable")
            at = begin + np.arange(len(first))
            colour = COLOURS[str(window)]
            axis.plot(at, first["stimulus"], color=draw.GREY, linewidth=0.9, zorder=1)
            axis.plot(at, first["belief"], color=colour, linewidth=1.6, label=str(window))
            axis.plot(at, first["answer"], "o", color=colour, markersize=3)
            begin += len(first) + 1
        axis.set(xlabel="trial", ylabel="answer", xlim=(-1, begin))
        draw.entitle(axis, str(who))
    draw.key(figure, axes[0])
    return figure
