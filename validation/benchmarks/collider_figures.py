"""Figures of the collider benchmark's page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import matplotlib.dates as mdates
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from knownminds.inference.causes.markov_violation import COMPLIANT
from knownminds.validation.causes.causal_page import MOST_NAMED, paired_lines
from knownminds.validation.causes.causal_profile import CausalProfile
from knownminds.validation.pages import figures as draw

from .shown import PEOPLES, WHO, boxes, dots, looks_of, mark_people

SETTING, PROMPT = "setting", "prompt"
OfPeople = Callable[[str], Mapping[str, float] | None]
LABELS = {
    "determinacy": "determinacy",
    "explaining_away_released": "explaining away, VIII - VI",
    "explaining_away": "explaining away, VII - VI",
    "markov_violation": "Markov violation, IV - V",
    "reasoning_consistency": "consistency",
}


def by_setting(
    rows: pd.DataFrame,
    quantity: str,
    label: str,
    people: Mapping[str, float] | None,
    zone: tuple[float, float] | None = None,
) -> Figure:
    """Draw a quantity of each model with its interval, a panel per setting, a colour per prompt."""
    own = rows[(rows["quantity"] == quantity) & (rows[WHO] != "people")]
    null = 0.0 if quantity.startswith(("explaining", "markov")) else None
    return dots(
        own, along=WHO, panel=SETTING, series=PROMPT, label=label,
        zone=zone, null=null, people=people,
    )  # fmt: skip


def alignment_figures(rows: pd.DataFrame) -> list[tuple[str, str]]:
    """Return the figure of rank correlations with people, a panel per domain."""
    if not len(rows):
        return []
    several = rows[SETTING].nunique() > 1
    kind = rows[SETTING] + ", " + rows[PROMPT] if several else rows[PROMPT]
    drawn = rows.assign(kind=kind)
    pooled = drawn.groupby(WHO, sort=False)["value"].max().sort_values(ascending=False)
    order = {name: k for k, name in enumerate(pooled.index)}
    drawn = drawn.sort_values(WHO, key=lambda names: names.map(order), kind="stable")
    figure = dots(
        drawn, along=WHO, panel="domain", series="kind", label="Spearman's rho with people"
    )
    return [
        (
            "Rank correlation with people, pooled and by domain, with 95% bootstrap intervals; "
            "models in the order of the highest.",
            draw.svg(figure),
        )
    ]


def consistency_boxes(
    rows: pd.DataFrame, people_name: str, people: Mapping[str, float] | None
) -> Figure:
    """Draw boxes of consistency over models, a box per setting and prompt."""
    own = rows[rows[WHO] != people_name]
    groups = list(own.groupby([SETTING, PROMPT], sort=False)["value"])
    figure = Figure(figsize=(max(4.0, 1.3 * len(groups) + 1.0), 3.2), layout="constrained")
    axis = figure.add_subplot()
    if people is not None and np.isfinite(people["value"]):
        mark_people(axis, people, across=True)
    names = [f"{setting}\n{prompt}".replace(", ", "\n") for (setting, prompt), _ in groups]
    boxes(axis, [values.to_list() for _, values in groups], names, 1.5)
    axis.set_ylabel("R2, left out", fontsize=draw.SMALL)
    known = own["value"].dropna()
    if len(known):  # one runaway would leave the others a line
        axis.set_ylim(max(-1.0, float(known.min()) - 0.05), 1.05)
    _frame(axis)
    return figure


def numbered(models: pd.Series[Any]) -> list[str]:
    """Return the number by which a figure names each model; none for people."""
    order = [name for name in dict.fromkeys(models) if name != "people"]
    at = {name: str(k + 1) for k, name in enumerate(order)}
    return [at.get(name, "-") for name in models]


def signature_scatter(units: pd.DataFrame, of_people: OfPeople) -> Figure:
    """Draw explaining away against Markov violations, a panel per setting."""
    settings = list(dict.fromkeys(units[SETTING]))
    figure, axes = draw.panels(max(len(settings), 1), height=3.0)
    _at_least(figure, 5.5)
    x_name, y_name = "explaining_away_released", "markov_violation"
    looks = looks_of(list(dict.fromkeys(units[PROMPT])))
    units = units.assign(place=numbered(units[WHO]))
    people = [of_people(name) for name in (x_name, y_name)]
    ends = [
        draw.limits(*(units[f"{name}{end}"].to_numpy(dtype=float) for end in ("", "_low", "_high")))
        for name in (x_name, y_name)
    ]
    for axis, setting in zip(axes, settings, strict=False):
        own = units[units[SETTING] == setting]
        axis.axhspan(-COMPLIANT, COMPLIANT, color=draw.GREY, alpha=0.2, zorder=0, linewidth=0)
        axis.axvline(0.0, color=draw.GREY, linewidth=1, zorder=0)
        if people[0] is not None and people[1] is not None:
            mark_people(axis, people[0])
            mark_people(axis, people[1], across=True)
        for prompt, some in own.groupby(PROMPT, sort=False):
            colour = looks[str(prompt)][0]
            x, y = (some[name].to_numpy(dtype=float) for name in (x_name, y_name))
            for name, lines, at in ((x_name, axis.hlines, y), (y_name, axis.vlines, x)):
                low, high = (some[f"{name}_{end}"].to_numpy(dtype=float) for end in ("low", "high"))
                lines(at, low, high, color=colour, linewidth=0.7, alpha=0.6, label=f"_{prompt}")
            axis.plot(x, y, looks[str(prompt)][1], color=colour, markersize=4, label=str(prompt))
            for a, b, place in zip(x, y, some["place"], strict=True):
                if np.isfinite(a) and np.isfinite(b):
                    axis.annotate(
                        place, (a, b), xytext=(3, 3), textcoords="offset points",
                        fontsize=draw.SMALL - 1,
                    )  # fmt: skip
        axis.set_xlim(*ends[0])
        axis.set_ylim(*ends[1])
        axis.set_xlabel(LABELS[x_name], fontsize=draw.SMALL)
        draw.entitle(axis, setting)
    axes[0].set_ylabel(LABELS[y_name], fontsize=draw.SMALL)
    draw.key(figure, axes[0])
    return figure


def determinacy_scatter(units: pd.DataFrame, people_name: str) -> Figure:
    """Draw determinacy against consistency, explaining away and Markov violations."""
    names = ("reasoning_consistency", "explaining_away_released", "markov_violation")
    figure, axes = draw.panels(len(names), height=3.2)
    looks = looks_of(list(dict.fromkeys(units[PROMPT])))
    marks = dict(zip(dict.fromkeys(units[SETTING]), draw.MARKERS, strict=False))
    for axis, name in zip(axes, names, strict=True):
        if name == "markov_violation":
            axis.axvspan(-COMPLIANT, COMPLIANT, color=draw.GREY, alpha=0.2, zorder=0, linewidth=0)
        for model, own in units.groupby(WHO, sort=False):
            x, y = (own[c].to_numpy(dtype=float) for c in (name, "determinacy"))
            if model == people_name:
                axis.plot(x, y, "*", color=PEOPLES, markersize=11, label=people_name, zorder=3)
                continue
            axis.plot(
                x, y, color=draw.GREY, alpha=0.5, linewidth=0.6, zorder=0.5, label=f"_{model}"
            )
            for a, b, setting, prompt in zip(x, y, own[SETTING], own[PROMPT], strict=True):
                axis.plot(
                    a, b, marks.get(setting, "o"), color=looks[prompt][0], markersize=4,
                    label=f"_{model}, {setting}, {prompt}",
                )  # fmt: skip
        axis.set_xlim(*draw.limits(units[name].to_numpy(dtype=float)))
        axis.set_xlabel(LABELS[name], fontsize=draw.SMALL)
    axes[0].set_ylabel("determinacy", fontsize=draw.SMALL)
    _mark_key(figure, axes[0], looks, marks)
    return figure


def over_dates(rows: pd.DataFrame, names: Sequence[str], of_people: OfPeople) -> Figure:
    """Draw scores against release dates, a panel per score."""
    figure, axes = draw.panels(len(names), height=2.9, columns=2)
    figure.set_size_inches(8.0, 6.0)
    looks = looks_of(list(dict.fromkeys(rows[PROMPT])))
    marks = dict(zip(dict.fromkeys(rows[SETTING]), draw.MARKERS, strict=False))
    for axis, name in zip(axes, names, strict=True):
        own = rows[rows["quantity"] == name]
        people = of_people(name)
        if people is not None and np.isfinite(people["value"]):
            mark_people(axis, people, across=True)
        for (setting, prompt), some in own.groupby([SETTING, PROMPT], sort=False):
            x = mdates.date2num(some["release_date"].to_numpy())  # type: ignore[no-untyped-call]
            value, low, high = (some[c].to_numpy(dtype=float) for c in ("value", "low", "high"))
            told, colour = f"_{setting}, {prompt}", looks[str(prompt)][0]
            axis.vlines(x, low, high, color=colour, linewidth=0.8, alpha=0.6, label=told)
            axis.plot(x, value, marks.get(setting, "o"), color=colour, markersize=4, label=told)
        ends = own[["value", "low", "high"]].to_numpy(dtype=float).ravel()
        axis.set_ylim(*draw.limits(np.maximum(ends, -1.0)))
        dates = mdates.date2num(own["release_date"].to_numpy())  # type: ignore[no-untyped-call]
        ticks = draw.spaced(dates.tolist(), log=False)
        axis.set_xticks(ticks[:: -(-len(ticks) // 5)])
        months = mdates.DateFormatter("%Y-%m")  # type: ignore[no-untyped-call]
        axis.xaxis.set_major_formatter(months)
        axis.set_ylabel(LABELS[name], fontsize=draw.SMALL)
    _mark_key(figure, axes[0], looks, marks)
    return figure


def distribution_functions(rows: pd.DataFrame) -> Figure:
    """Draw distribution functions of answers, a panel per domain and prompt, a line per model."""
    panels = list(rows.groupby([PROMPT, "domain"], sort=False))
    panels.sort(key=lambda panel: list(dict.fromkeys(rows[PROMPT])).index(panel[0][0]))
    domains = rows["domain"].nunique()
    figure, axes = draw.panels(len(panels), height=2.4, columns=min(max(domains, 1), 4))
    _at_least(figure, 5.5)
    models = list(dict.fromkeys(rows[WHO]))
    few = len(models) <= MOST_NAMED
    looks = looks_of(models)
    for axis, ((prompt, domain), own) in zip(axes, panels, strict=True):
        for model, some in own.groupby(WHO, sort=False):
            colour = looks[str(model)][0] if few else "#bbbbbb"
            special = str(model) == "people"
            axis.step(
                np.append(some["answer"].to_numpy(dtype=float), 100.0),
                np.append(some["at_most"].to_numpy(dtype=float), 1.0),
                where="post",
                color=PEOPLES if special else colour,
                linewidth=2.2 if special else 1.0,
                linestyle="-" if special else looks[str(model)][2],
                label=str(model) if few or special else f"_{model}",
                zorder=3 if special else 2,
            )
        axis.set_xlim(-2, 102)
        axis.set_ylim(0, 1.02)
        draw.entitle(axis, f"{domain}, {prompt}")
    draw.key(figure, max(axes, key=lambda axis: len(axis.get_legend_handles_labels()[1])))
    return figure


def changes(profile: CausalProfile, factors: Sequence[str]) -> list[tuple[str, str]]:
    """Return the figures of parameters and measures over settings, and over prompts."""
    return [
        (
            f"Parameters and measures by {factor}: a line per model, averaged over the other "
            "condition; in black the mean of models with a value everywhere.",
            draw.svg(paired_lines(profile, factor)),
        )
        for factor in factors
    ]


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


def _frame(axis: Axes) -> None:
    axis.spines[["top", "right"]].set_visible(False)
    axis.tick_params(labelsize=draw.SMALL)


def _at_least(figure: Figure, width: float) -> None:
    now = figure.get_size_inches()
    figure.set_size_inches(max(now[0], width), now[1])
