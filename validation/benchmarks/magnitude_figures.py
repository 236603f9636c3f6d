"""Figures of the page of magnitudes."""

from __future__ import annotations

import numpy as np
import pandas as pd

from knownminds.inference.magnitudes.magnitude_answers import (
    BASE,
    MULTIMODAL,
    TASKS,
    MagnitudeAnswers,
)
from knownminds.validation.pages import figures as draw

from .shown import WHO, dots


def arrows(answers: MagnitudeAnswers) -> list[tuple[str, str]]:
    """Return the figure of arrows from stimuli to mean answers, a panel per task."""
    names = list(answers.participants)
    tasks = [
        task for task in TASKS
        if any((who, task, BASE, _whole(task)) in answers.cells for who in names)
    ]  # fmt: skip
    if not tasks:
        return []
    figure, axes = draw.panels(len(tasks), height=0.34 * len(names) + 1.2)
    figure.set_size_inches(max(figure.get_size_inches()[0], 5.5), figure.get_size_inches()[1])
    for k, (axis, task) in enumerate(zip(axes, tasks, strict=True)):
        for y, who in enumerate(names):
            cell = answers.cells.get((who, task, BASE, _whole(task)))
            if cell is None:
                continue
            for window in np.unique(cell.window):
                mine = (cell.window == window) & np.isfinite(cell.response)
                x, said = cell.value[mine], cell.response[mine]
                if not len(x):
                    continue
                at = y + 0.22 * (int(window) - 1)
                colour = draw.PALETTE[int(window) % len(draw.PALETTE)]
                for chosen in (x <= np.quantile(x, 1 / 3), x >= np.quantile(x, 2 / 3)):
                    begin, end = float(x[chosen].mean()), float(said[chosen].mean())
                    arrow = axis.annotate(
                        "", (end, at), (begin, at),
                        arrowprops={"arrowstyle": "->", "color": colour, "linewidth": 1.1},
                    )  # fmt: skip
                    arrow.set_in_layout(False)  # it ends where the dots are
                    axis.plot(begin, at, ".", color=colour, markersize=3, label=f"_{who}")
                    axis.plot(end, at, alpha=0.0, label=f"_{who}, mean answer")
        axis.set_yticks(range(len(names)), names if k == 0 else [""] * len(names))
        axis.set_ylim(len(names) - 0.4, -0.6)
        draw.entitle(axis, task.replace("_", " "))
    return [
        (
            "Regression to the mean in the base condition, with all that a task shows: from the "
            "mean of low and of high stimuli to the mean answer, a colour per window.",
            draw.svg(figure),
        )
    ]


def _whole(task: str) -> str:
    return "text+image" if task in MULTIMODAL else "text"


def cue_figures(base: pd.DataFrame) -> list[tuple[str, str]]:
    """Return the figures of weights of the text, and of efficiencies."""
    found = []
    for value, ends, label, told in (
        (
            "text_weight",
            ("weight_low", "weight_high"),
            "weight of the text",
            "Weight of the text in combined answers, by task: fitted, and as references have it.",
        ),
        (
            "efficiency",
            ("low", "high"),
            "RRE",
            "Efficiency RRE by task and reference; above the line the answers are better.",
        ),
    ):
        rows = base.assign(
            value=base[value],
            low=base[ends[0]],
            high=base[ends[1]],
            task=base["task"].str.replace("_", " "),
            reference=base["reference"].str.replace("_", " "),
        )
        rows = rows[rows["value"].notna()]
        if len(rows):
            line = 1.0 if value == "efficiency" else None
            figure = dots(rows, along=WHO, panel="task", series="reference", label=label, null=line)
            found.append((told, draw.svg(figure)))
    return found


def error_figures(base: pd.DataFrame) -> list[tuple[str, str]]:
    """Return the figure of errors by task and modality."""
    rows = base.assign(value=base["error"], task=base["task"].str.replace("_", " "))
    if not rows["value"].notna().any():
        return []
    figure = dots(rows, along=WHO, panel="task", series="modality", label="NRMSE", null=1.0)
    return [
        (
            "NRMSE in the base condition by task and modality, with bootstrap intervals; grey "
            "line: a constant answer at the middle of each window.",
            draw.svg(figure),
        )
    ]


def steering_figures(rows: pd.DataFrame) -> list[tuple[str, str]]:
    """Return the figures of bias, variance and sequential evidence under steering."""
    found = []
    for value, label, told in (
        ("bias", "bias²", "Bias (squared, a part of the squared NRMSE) under steering, by task."),
        ("variance", "variance", "Variance (the other part) under steering, by task."),
        ("sequential", "evidence", "Evidence for a sequential observer under steering, by task."),
    ):
        whole = rows["modality"] == rows["task"].map(_whole)
        drawn = rows[whole].assign(
            value=rows.loc[whole, value],
            low=np.nan,
            high=np.nan,
            task=lambda r: r["task"].str.replace("_", " "),
            condition=lambda r: r["condition"].str.replace("_", " "),
        )
        if drawn["value"].notna().any():
            figure = dots(drawn, along=WHO, panel="task", series="condition", label=label)
            found.append((told, draw.svg(figure)))
    return found
