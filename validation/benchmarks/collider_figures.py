"""Figures of their own kind of the colliders' paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.dates as mdates
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from knownminds.inference.causes.cell_contrast import COMPLIANT
from knownminds.validation.pages import figures as draw

from .views import PEOPLE_COLOUR, WHO, looks_of, mark_people, wide_panels

SETTING, PROMPT, PEOPLE = "setting", "prompt", "people"
# Which tasks share a panel, and what they ask.
PANELS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("the effect, given its causes", ("I", "II", "III")),
    ("a cause, given the other", ("IV", "V")),
    ("a cause, the effect present", ("VI", "VII", "VIII")),
    ("a cause, the effect absent", ("IX", "X", "XI")),
)
MOST_DRAWN = 10  # models, each in a row of panels
MOST_NAMED = 8  # models with a colour of their own
QUIET = "#bbbbbb"
SHORT = {
    "reasoning_consistency": "consistency",
    "explaining_away": "explaining away\nVII - VI",
    "explaining_away_released": "explaining away\nVIII - VI",
    "markov_violation": "Markov violation\nIV - V",
    "r2": "R2 of the fit",
}
CONTRASTS = ("explaining_away", "explaining_away_released", "markov_violation")
People = Mapping[str, Mapping[str, float] | None]


def four_panels(rows: pd.DataFrame) -> Figure:
    """Draw answers and predictions over the eleven tasks, a row of four panels per model."""
    models = list(dict.fromkeys(rows[WHO]))[:MOST_DRAWN]
    looks = looks_of(list(dict.fromkeys(rows[PROMPT])))
    across = [len(tasks) for _, tasks in PANELS]
    figure = Figure(figsize=(10.5, 2.35 * len(models) + 0.9), layout="constrained")
    grid = figure.add_gridspec(len(models), len(PANELS), width_ratios=across)
    question = dict(zip(rows["task"], rows["question"], strict=True))
    for i, model in enumerate(models):
        for j, (title, tasks) in enumerate(PANELS):
            axis = figure.add_subplot(grid[i, j])
            own = rows[(rows[WHO] == model) & rows["task"].isin(tasks)]
            for k, (prompt, some) in enumerate(own.groupby(PROMPT, sort=False)):
                shift = 0.07 * (k - (own[PROMPT].nunique() - 1) / 2)
                _answers(axis, some.set_index("task").loc[list(tasks)], looks[str(prompt)], shift,
                         str(prompt))  # fmt: skip
            labels = list(tasks)
            if i == len(models) - 1:
                given = [question[task].partition("| ")[2].rstrip(")") for task in tasks]
                labels = [
                    f"{t}\n" + g.replace(", ", "\n") for t, g in zip(tasks, given, strict=True)
                ]
            axis.set_xticks(range(len(tasks)), labels)
            axis.set_xlim(-0.4, len(tasks) - 0.6)
            axis.set_ylim(-3, 103)
            axis.set_yticks([0, 25, 50, 75, 100], [] if j else ["0", "25", "50", "75", "100"])
            axis.grid(axis="y", color="#e5e5e5", linewidth=0.6)
            axis.spines[["top", "right"]].set_visible(False)
            axis.tick_params(labelsize=draw.SMALL)
            if i == 0:
                draw.entitle(axis, title)
            if j == 0:
                axis.set_ylabel(model, fontsize=draw.TITLE)
    if len(looks) > 1:
        draw.key(figure, figure.axes[0])
    return figure


def _answers(axis: Axes, rows: pd.DataFrame, look: draw.Style, shift: float, label: str) -> None:
    """Draw one model in one prompt and panel."""
    colour, marker, _ = look
    x = np.arange(len(rows)) + shift
    mean, low, high = (100.0 * rows[name].to_numpy(dtype=float) for name in ("mean", "low", "high"))
    axis.vlines(x, low, high, color=colour, linewidth=1.2)
    axis.plot(x, 100.0 * rows["fitted"].to_numpy(dtype=float), "--", color=colour, linewidth=1.2)
    axis.plot(x, mean, color=colour, marker=marker, markersize=4.5, linewidth=1.2, label=label)


def paired_lines(rows: pd.DataFrame, factor: str) -> Figure:
    """Draw each parameter and measure over the levels of a factor, a line per model."""
    quantities = [name for name in rows if name not in (WHO, factor)]
    levels, models = (list(dict.fromkeys(rows[name])) for name in (factor, WHO))
    figure, axes = draw.panels(len(quantities), height=2.5, columns=5)
    few = len(models) <= MOST_NAMED
    looks = draw.styles(len(models)) if few else [(QUIET, "", "-")] * len(models)
    for axis, quantity in zip(axes, quantities, strict=True):
        wide = rows.pivot_table(index=WHO, columns=factor, values=quantity, sort=False)
        wide = wide.reindex(index=models, columns=levels)
        for look, (model, values) in zip(looks, wide.iterrows(), strict=True):
            draw.line(axis, range(len(levels)), values.to_list(), look, str(model) if few else "")
        if len(models) > 1:
            mean = wide.dropna().mean().to_numpy()
            axis.plot(range(len(levels)), mean, color="black", linewidth=2.5, zorder=3)
        if quantity == "markov_violation":
            axis.axhspan(-COMPLIANT, COMPLIANT, color="#dddddd", zorder=0, linewidth=0)
        elif quantity in CONTRASTS:
            draw.limit(axis, 0.0, "-")
        axis.set_xticks(range(len(levels)), [str(level).replace("_", " ") for level in levels])
        if sum(map(len, map(str, levels))) > 18:
            axis.tick_params(axis="x", labelrotation=30)
        axis.margins(x=0.2)
        draw.entitle(axis, SHORT.get(str(quantity), str(quantity)))
    draw.key(figure, axes[0])
    return figure


def signature_scatter(rows: pd.DataFrame, people: People) -> Figure:
    """Draw explaining away against Markov violations, a panel per setting."""
    names = ("explaining_away_released", "markov_violation")
    keys = [WHO, SETTING, PROMPT]
    wide = {
        name: rows[rows["quantity"] == name].set_index(keys)[["value", "low", "high"]]
        for name in names
    }
    both = wide[names[0]].add_suffix("_x").join(wide[names[1]].add_suffix("_y")).reset_index()
    number = {name: str(k + 1) for k, name in enumerate(dict.fromkeys(both[WHO]))}
    looks = looks_of(list(dict.fromkeys(both[PROMPT])))
    settings = list(both.groupby(SETTING, sort=False))
    figure, axes = wide_panels(len(settings), height=3.0)
    ends = [draw.limits(*(both[f"{end}_{axis}"].to_numpy(dtype=float)
                          for end in ("value", "low", "high"))) for axis in "xy"]  # fmt: skip
    for axis, (setting, own) in zip(axes, settings, strict=True):
        axis.axhspan(-COMPLIANT, COMPLIANT, color=draw.GREY, alpha=0.2, zorder=0, linewidth=0)
        axis.axvline(0.0, color=draw.GREY, linewidth=1, zorder=0)
        for name, across in zip(names, (False, True), strict=True):
            if (theirs := people.get(name)) is not None:
                mark_people(axis, theirs, across=across)
        for prompt, some in own.groupby(PROMPT, sort=False):
            colour, marker, _ = looks[str(prompt)]
            x, y = (some[f"value_{axis_}"].to_numpy(dtype=float) for axis_ in "xy")
            axis.hlines(y, some["low_x"], some["high_x"], color=colour, linewidth=0.7, alpha=0.6)
            axis.vlines(x, some["low_y"], some["high_y"], color=colour, linewidth=0.7, alpha=0.6)
            axis.plot(x, y, marker, color=colour, markersize=4, label=str(prompt))
            for a, b, who in zip(x, y, some[WHO], strict=True):
                if np.isfinite(a) and np.isfinite(b):
                    axis.annotate(
                        number[who], (a, b), xytext=(3, 3), textcoords="offset points",
                        fontsize=draw.SMALL - 1,
                    )  # fmt: skip
        axis.set_xlim(*ends[0])
        axis.set_ylim(*ends[1])
        axis.set_xlabel("explaining away, VIII - VI", fontsize=draw.SMALL)
        draw.entitle(axis, str(setting))
    axes[0].set_ylabel("Markov violation, IV - V", fontsize=draw.SMALL)
    draw.key(figure, axes[0])
    return figure


def determinacy_scatter(rows: pd.DataFrame) -> Figure:
    """Draw determinacy against consistency, explaining away and Markov violations."""
    label = dict(zip(rows["quantity"], rows["label"], strict=True))
    wide = rows.set_index([WHO, SETTING, PROMPT, "quantity"])["value"].unstack("quantity")
    units = wide.reset_index()
    names = [name for name in label if name != "determinacy"]
    figure, axes = draw.panels(len(names), height=3.2)
    looks, marks = _looks(rows)
    for axis, name in zip(axes, names, strict=True):
        if name == "markov_violation":
            axis.axvspan(-COMPLIANT, COMPLIANT, color=draw.GREY, alpha=0.2, zorder=0, linewidth=0)
        for model, own in units.groupby(WHO, sort=False):
            x, y = (own[column].to_numpy(dtype=float) for column in (name, "determinacy"))
            if model == PEOPLE:
                axis.plot(x, y, "*", color=PEOPLE_COLOUR, markersize=11, label=PEOPLE, zorder=3)
                continue
            axis.plot(x, y, color=draw.GREY, alpha=0.5, linewidth=0.6, zorder=0.5)
            for a, b, setting, prompt in zip(x, y, own[SETTING], own[PROMPT], strict=True):
                axis.plot(a, b, marks[setting], color=looks[prompt][0], markersize=4)
        axis.set_xlim(*draw.limits(units[name].to_numpy(dtype=float)))
        axis.set_xlabel(label[name], fontsize=draw.SMALL)
    axes[0].set_ylabel("determinacy", fontsize=draw.SMALL)
    _mark_key(figure, axes[0], looks, marks)
    return figure


def over_dates(rows: pd.DataFrame, people: People) -> Figure:
    """Draw scores against release dates, a panel per score."""
    names: Sequence[str] = list(dict.fromkeys(rows["quantity"]))
    label = dict(zip(rows["quantity"], rows["label"], strict=True))
    figure, axes = draw.panels(len(names), height=2.9, columns=2)
    figure.set_size_inches(8.0, 6.0)
    looks, marks = _looks(rows)
    for axis, name in zip(axes, names, strict=True):
        own = rows[rows["quantity"] == name]
        if (theirs := people.get(name)) is not None and np.isfinite(theirs["value"]):
            mark_people(axis, theirs, across=True)
        for (setting, prompt), some in own.groupby([SETTING, PROMPT], sort=False):
            x = mdates.date2num(some["release_date"].to_numpy())  # type: ignore[no-untyped-call]
            colour = looks[str(prompt)][0]
            axis.vlines(x, some["low"], some["high"], color=colour, linewidth=0.8, alpha=0.6)
            axis.plot(x, some["value"], marks[setting], color=colour, markersize=4)
        ends = own[["value", "low", "high"]].to_numpy(dtype=float).ravel()
        axis.set_ylim(*draw.limits(np.maximum(ends, -1.0)))
        dates = mdates.date2num(own["release_date"].to_numpy())  # type: ignore[no-untyped-call]
        ticks = draw.spaced(dates.tolist(), log=False)
        axis.set_xticks(ticks[:: -(-len(ticks) // 5)])
        months = mdates.DateFormatter("%Y-%m")  # type: ignore[no-untyped-call]
        axis.xaxis.set_major_formatter(months)
        axis.set_ylabel(label[name], fontsize=draw.SMALL)
    _mark_key(figure, axes[0], looks, marks)
    return figure


def _looks(rows: pd.DataFrame) -> tuple[dict[str, draw.Style], dict[Any, str]]:
    """Return a colour for each prompt and a mark for each setting."""
    looks = looks_of(list(dict.fromkeys(rows[PROMPT])))
    settings = list(dict.fromkeys(rows[SETTING]))
    marks = {setting: draw.MARKERS[k % len(draw.MARKERS)] for k, setting in enumerate(settings)}
    return looks, marks


def _mark_key(
    figure: Figure, axis: Axes, looks: Mapping[str, draw.Style], marks: Mapping[Any, str]
) -> None:
    """Name colours and marks above the panels."""
    for prompt, (colour, _, _) in looks.items():
        axis.plot([], [], "o", color=colour, markersize=4, label=prompt)
    if len(marks) > 1:
        for setting, mark in marks.items():
            axis.plot([], [], mark, color=draw.GREY, markersize=4, label=str(setting))
    draw.key(figure, axis)
