"""The page of pictures of one task of magnitude estimation: stimuli, answers, weights."""

from __future__ import annotations

import difflib
import io
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from knownminds.agents import KalmanObserver
from knownminds.agents.parameters import Array
from knownminds.environments import CONDITIONS, MODALITIES, WINDOWS, make
from knownminds.environments.environment import Observation
from knownminds.environments.magnitudes.magnitude import BLUR, Magnitude
from knownminds.inference.magnitudes.cue_combination import combine, pair
from knownminds.inference.magnitudes.magnitude_answers import (
    BASE,
    BOTH,
    MULTIMODAL,
    TEXT,
    Answers,
    MagnitudeAnswers,
)
from knownminds.inference.magnitudes.magnitude_composite import cue_cells
from knownminds.validation.pages import figures as draw
from knownminds.validation.pages.page import Page, Table, table

from .magnitude_page import cell_table, cue_table, magnitude_command
from .magnitude_table import MagnitudeTable

MOST_SHOWN = 6  # participants in the pictures of a task
STEPS = 4  # groups of trials whose blur grows
WINDOW_COLOURS = draw.PALETTE[:3]


def task_pages(table: MagnitudeTable) -> dict[str, Page]:
    """Return a page of pictures for each task, by the task's name."""
    table = table.labelled()
    answers = MagnitudeAnswers.read(
        table.trials, table.by or None, table.options["rounds"], table.options["seed"]
    )
    return {task: task_page(table, answers, task) for task in table.tasks}


def task_page(table: MagnitudeTable, answers: MagnitudeAnswers, task: str) -> Page:
    """Return the page of pictures of one task."""
    shown = [
        who for who in table.participants if any(key[:2] == (who, task) for key in answers.cells)
    ]
    left = len(shown) - MOST_SHOWN
    shown = shown[:MOST_SHOWN]
    own = table.cells[table.cells["task"] == task]
    figures = [
        ("A stimulus as each condition shows it as shipped: blur in pixels, earlier trials retold.",
         stimuli(task)),
        (
            "Answers against stimuli in the base condition: single answers (light), their means "
            "(dots), and static Bayesian observers fitted to them (lines), by window. Lines less "
            "steep than the dashed one, of perfect answers, are regression to the mean. Dotted: "
            "the linear observer, which has one line for all windows.",
            responses(table, answers, task, shown),
        ),
        (
            "Prior weight of the static Bayesian observer by condition; the dashed line is that of "
            "the base condition.",
            prior_weights(table, task, shown),
        ),
        (
            "Answers of the first session in the order of the trials (dots), the stimuli (grey) "
            "and the beliefs of the sequential observer fitted to all answers (lines), which "
            "begins anew in each window.",
            trajectories(table, answers, task, shown),
        ),
    ]  # fmt: skip
    weights = blur_weights(answers, task, shown)
    if len(weights):
        figures.append(
            (
                "Weight of the text in answers to text and image, by the blur of the image; "
                "hollow: the weight that the errors of the answers to each would deserve (inverse "
                "variances).",
                cue_weights(weights, shown),
            )
        )  # fmt: skip
    return Page(
        title=f"Magnitude estimation: {task.replace('_', ' ')}",
        asked=[
            ("task", make(task).summary),
            ("participants", ", ".join(shown) + (f", and {left} more" if left > 0 else "")),
            ("trials", f"{own['n'].sum():,.0f}, {own['missing'].sum():,.0f} without an answer"),
        ],
        findings=[],
        sentences=condition_words(task),
        notes=[f"Intervals: {table.options['mass']:.0%}, percentiles of "
               f"{table.options['rounds']} bootstraps; sessions stay as they were."]
        if table.options["rounds"]
        else [],
        tables=[
            cell_table(own),
            _weight_table(weights),
            cue_table(table.cues[table.cues["task"] == task]),
        ],
        figures=figures,
        command=magnitude_command(table),
        versions=table.versions,
    )  # fmt: skip


def condition_words(task: str) -> list[str]:
    """Say what each condition changes: the words that it adds, the past, the blur."""
    plain, told = "", []
    for condition in CONDITIONS:
        environment = _shown_in(task, condition)
        if environment is None:
            told.append(f"{condition}: not of this task, whose stimuli are words alone.")
            continue
        prompt = _first_prompt(environment)
        plain = plain or prompt
        added = [
            line[2:]
            for line in difflib.ndiff(plain.split("\n"), prompt.split("\n"))
            if line.startswith("+ ") and line[2:].strip()
        ]
        words = [f"as shipped, {environment.context} earlier trials retold"]
        if environment.blur:
            growing = " in the end" if condition == "gradual_noise" else ""
            words.append(f"blur of {environment.blur:g} px{growing}")
        if condition == "reversed":
            words.append("each window in reversed order")
        elif added:
            words.append(f"added words: “{' '.join(added).rstrip('.')}”")
        told.append(f"{condition}: {'; '.join(words)}.")
    return told


def stimuli(task: str) -> str:
    """Draw a stimulus as each condition shows it: pictures cropped, or words."""
    panels = list(_examples(task))
    images = [_cropped(png) if png else None for _, png, _ in panels]
    flat = all(image is None or image.shape[0] < 0.4 * image.shape[1] for image in images)
    pictured = any(image is not None for image in images)
    height = 1.15 if pictured and flat else 2.9 if pictured else 2.4
    columns = 3 if pictured else 2  # words take more room
    figure, axes = draw.panels(len(panels), height=height, columns=columns)
    figure.set_size_inches(draw.PAGE_WIDTH, height * -(-len(panels) // columns))
    for axis, image, (title, _, text) in zip(axes, images, panels, strict=True):
        axis.set_axis_off()
        draw.entitle(axis, "\n".join(title.split(", ")), "left" if image is None else "center")
        if image is not None:
            axis.imshow(image, interpolation="antialiased")
        else:
            axis.text(
                0.0, 1.0, text, family="monospace", fontsize=6, va="top", transform=axis.transAxes
            )
    return draw.svg(figure)


def _cropped(png: bytes) -> Array:
    """Return a picture without the white around what is drawn, but for a margin."""
    image: Array = np.asarray(mpl.image.imread(io.BytesIO(png)))[..., :3]
    drawn = np.argwhere(image.min(axis=2) < 0.98)
    (top, left), (bottom, right) = drawn.min(axis=0), drawn.max(axis=0)
    margin = 14
    return image[
        max(top - margin, 0) : bottom + margin + 1, max(left - margin, 0) : right + margin + 1
    ]


def responses(
    table: MagnitudeTable, answers: MagnitudeAnswers, task: str, shown: Sequence[str]
) -> str:
    """Draw answers against stimuli, a row per participant and a column per modality."""
    modalities = MODALITIES if task in MULTIMODAL else MODALITIES[:1]
    columns = len(modalities) if len(modalities) > 1 else 3
    figure, axes = draw.panels(len(shown) * len(modalities), columns=columns, height=3.2)
    width, height = figure.get_size_inches()
    figure.set_size_inches(max(1.3 * width, 6.0), height + 0.3)
    panels = iter(axes)
    for who in shown:
        for modality in modalities:
            axis = next(panels)
            cell = answers.cells.get((who, task, BASE, modality))
            draw.entitle(axis, f"{who}, {modality}" if len(modalities) > 1 else who)
            if cell is None:
                axis.text(0.5, 0.5, "not played", transform=axis.transAxes, ha="center")
                continue
            _against_stimuli(axis, cell)
            _lines(axis, table, (who, task, BASE, modality), cell)
    handles = [
        *(Line2D([], [], color=c, marker="o", label=w) for w, c in _by_window()),
        Line2D([], [], color=draw.GREY, linestyle="--", label="perfect"),
        Line2D([], [], color="black", linestyle=":", label="linear observer"),
    ]
    figure.legend(
        handles=handles, loc="outside upper center", ncols=5, frameon=False, fontsize=draw.SMALL
    )
    return draw.svg(figure)


def prior_weights(table: MagnitudeTable, task: str, shown: Sequence[str]) -> str:
    """Draw the prior weight by condition, a panel per participant."""
    figure, axes = draw.panels(len(shown), height=3.2, columns=2)
    figure.set_size_inches(5.2 * min(len(shown), 2), 3.2 * -(-len(shown) // 2))
    own = table.cells[table.cells["task"] == task]
    for axis, who in zip(axes, shown, strict=True):
        for k, (modality, style) in enumerate(
            zip(MODALITIES, draw.styles(len(MODALITIES)), strict=True)
        ):
            some = own[(own["participant"] == who) & (own["modality"] == modality)]
            if not len(some):
                continue
            at = np.array([CONDITIONS.index(c) for c in some["condition"]]) + 0.2 * (k - 1)
            axis.vlines(at, some["prior_low"], some["prior_high"], color=style[0], linewidth=1.5)
            axis.plot(
                at, some["prior_weight"], style[1], color=style[0], markersize=4, label=modality
            )
            base = some[some["condition"] == BASE]["prior_weight"]
            if len(base):
                axis.axhline(base.iloc[0], color=style[0], linestyle="--", linewidth=0.7, zorder=0)
        names = [c.replace("_", " ") for c in CONDITIONS]
        axis.set_xticks(
            range(len(CONDITIONS)), names, rotation=40, ha="right", rotation_mode="anchor"
        )
        axis.set(ylim=(-0.03, 1.03), xlim=(-0.6, len(CONDITIONS) - 0.4), ylabel="prior weight")
        draw.entitle(axis, who)
    draw.key(figure, axes[0])
    return draw.svg(figure)


def trajectories(
    table: MagnitudeTable, answers: MagnitudeAnswers, task: str, shown: Sequence[str]
) -> str:
    """Draw answers and beliefs of the sequential observer trial by trial, a row per participant."""
    modality = BOTH if task in MULTIMODAL else TEXT
    figure, axes = draw.panels(len(shown), height=2.2, columns=1)
    figure.set_size_inches(10.4, 2.2 * len(shown))
    for axis, who in zip(axes, shown, strict=True):
        cell = answers.cells.get((who, task, BASE, modality))
        draw.entitle(axis, who)
        if cell is None:
            axis.text(0.5, 0.5, f"{modality}: not played", transform=axis.transAxes, ha="center")
            continue
        belief = _beliefs(table, (who, task, BASE, modality), cell)
        begin = 0
        # Sessions have orders of their own and cannot be averaged: the first is drawn.
        for window, (name, colour) in enumerate(_by_window()):
            places = np.unique(cell.place[cell.window == window])
            if not len(places):
                continue
            rows = np.flatnonzero(cell.place == places[0])
            rows = rows[np.argsort(cell.trial[rows], kind="stable")]
            at = begin + np.arange(len(rows))
            axis.plot(at, cell.value[rows], color=draw.GREY, linewidth=0.9, zorder=1)
            axis.plot(at, belief[rows], color=colour, linewidth=1.6, label=name)
            axis.plot(at, cell.response[rows], "o", color=colour, markersize=3)
            begin += len(rows) + 1
        axis.set(xlabel="trial", ylabel="answer", xlim=(-1, begin))
    draw.key(figure, axes[0])
    return draw.svg(figure)


def blur_weights(answers: MagnitudeAnswers, task: str, shown: Sequence[str]) -> pd.DataFrame:
    """Return the weight of the text by blur: fitted to the answers, and deserved.

    One row per participant and group of trials with about the same blur.
    """
    rows: list[dict[str, Any]] = []
    for who in shown:
        for condition in (BASE, "constant_noise", "gradual_noise"):
            cells = cue_cells(answers, who, task, condition)
            if cells is None:
                continue
            pairs = pair(*cells)
            blur = pairs.combined.blur
            groups = 1 if len(np.unique(blur)) == 1 else STEPS
            rank = np.argsort(np.argsort(blur, kind="stable"), kind="stable")
            for k in range(groups):
                some = pairs.only(rank * groups // max(len(rank), 1) == k)
                found = combine(some)
                if found.reason:
                    continue
                weight = found.text_weight["linear"]
                ends = np.quantile(weight[1:], [0.16, 0.84]) if len(weight) > 1 else [np.nan] * 2
                rows.append(
                    {
                        "participant": who,
                        "condition": condition,
                        "blur": float(some.combined.blur.mean()),
                        "items": len(some),
                        "text_weight": float(weight[0]),
                        "low": float(ends[0]),
                        "high": float(ends[1]),
                        "deserved": float(found.text_weight["bayes_residuals"][0]),
                    }
                )
    return pd.DataFrame(rows)


def cue_weights(weights: pd.DataFrame, shown: Sequence[str]) -> str:
    """Draw the weight of the text against blur, a panel per participant."""
    there = [who for who in shown if (weights["participant"] == who).any()]
    figure, axes = draw.panels(len(there))
    for axis, who in zip(axes, there, strict=True):
        own = weights[weights["participant"] == who]
        groups = own.groupby("condition", sort=False)
        for (condition, some), style in zip(groups, draw.styles(len(groups)), strict=True):
            some = some.sort_values("blur")
            axis.vlines(some["blur"], some["low"], some["high"], color=style[0], linewidth=1)
            label = str(condition).replace("_", " ")
            blur, found, deserved = (
                some[name].tolist() for name in ("blur", "text_weight", "deserved")
            )
            draw.line(axis, blur, found, style, label, 5)
            draw.line(axis, blur, deserved, (*style[:2], "none"), "", 5, True)
        axis.set(ylim=(-0.05, 1.05), xlabel="blur (px)", ylabel="weight of the text")
        draw.entitle(axis, str(who))
    draw.key(figure, axes[0])
    return draw.svg(figure)


def _weight_table(weights: pd.DataFrame) -> Table:
    return table(
        "Weight of the text by blur",
        weights,
        ("participant", "{participant}"),
        ("condition", "{condition}"),
        ("mean blur", "{blur:.1f}"),
        ("items", "{items}"),
        ("weight of text", "{text_weight:.3f}"),
        ("interval", "{low:.3f} to {high:.3f}"),
        ("deserved", "{deserved:.3f}"),
    )


def _against_stimuli(axis: Axes, cell: Answers) -> None:
    for window, (_, colour) in enumerate(_by_window()):
        mine = (cell.window == window) & np.isfinite(cell.response)
        x, y = cell.value[mine], cell.response[mine]
        axis.plot(x, y, "o", color=colour, markersize=2.5, alpha=0.3, markeredgewidth=0)
        values, kind = np.unique(x, return_inverse=True)
        if len(values) < len(x):
            mean = np.bincount(kind, y) / np.bincount(kind)
            axis.plot(values, mean, "o", color=colour, markersize=4)
    ends = [float(cell.value.min()), float(cell.value.max())]
    axis.plot(ends, ends, color=draw.GREY, linestyle="--", linewidth=1, zorder=0)
    axis.set(xlabel="stimulus", ylabel="answer")


def _lines(axis: Axes, table: MagnitudeTable, key: tuple[str, ...], cell: Answers) -> None:
    """Draw the fitted static observer by window, and the linear one."""
    static, linear = (
        _fitted(table, key, name) for name in ("static_bayes_observer", "linear_observer")
    )
    if static:
        weight = static["w_prior"]
        for window, (name, colour) in enumerate(_by_window()):
            mine = cell.window == window
            if mine.any():
                x = np.array([cell.value[mine].min(), cell.value[mine].max()])
                mean = (1 - weight) * x + weight * static[f"mu_{name}"] * cell.unit
                axis.plot(x, np.clip(mean, 0, cell.ceiling), color=colour, linewidth=1.8)
    if linear:
        x = np.array([cell.value.min(), cell.value.max()])
        axis.plot(x, linear["w"] * x + linear["b"] * cell.unit, ":", color="black", linewidth=1)


def _beliefs(table: MagnitudeTable, key: tuple[str, ...], cell: Answers) -> Array:
    """Return what the fitted sequential observer would answer on average, [n]."""
    belief = np.full(len(cell), np.nan)
    values = _fitted(table, key, "kalman_observer")
    if not values:
        return belief
    theta = np.array([values[name] for name in KalmanObserver.parameters.names])
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
                "modality": MODALITIES.index(key[3]),
                "unit": cell.unit,
                "ceiling": cell.ceiling,
            }
            belief[row] = observer.expected(seen)[0] * cell.unit
            if np.isfinite(cell.response[row]):  # of other trials the observer knows nothing
                observer.learn(seen, 0, 0.0)
    return belief


def _fitted(table: MagnitudeTable, key: tuple[str, ...], variant: str) -> dict[str, float]:
    fits = table.fits
    chosen = fits["variant"] == variant
    for name, value in zip(("participant", "task", "condition", "modality"), key, strict=True):
        chosen &= fits[name] == value
    found = fits[chosen & (fits["status"] != "failed")]
    return dict(found["parameters"].iloc[0]) if len(found) else {}


def _shown_in(task: str, condition: str) -> Magnitude | None:
    """Return the task in a condition; None where it has none: noise needs pictures."""
    if condition in BLUR and task not in MULTIMODAL:
        return None
    environment = make(task, condition=condition, modality=BOTH if task in MULTIMODAL else TEXT)
    assert isinstance(environment, Magnitude)
    return environment


def _examples(task: str) -> Iterator[tuple[str, bytes, str]]:
    """Give title, picture and words of a stimulus in each condition."""
    if task in MULTIMODAL:
        words = make(task, modality=TEXT)
        assert isinstance(words, Magnitude)
        words.reset(seed=1)
        prompt = words.render(_at(words, 0), [])
        yield "in words (never blurred)", b"", _excerpt(prompt.messages[-1].content)
    for condition in CONDITIONS:
        environment = _shown_in(task, condition)
        if environment is None:
            continue
        environment.reset(seed=1)
        last = environment.n_items - 1
        for t in (0, last // 2, last) if condition == "gradual_noise" else (0,):
            seen = _at(environment, t)
            prompt = environment.render(seen, [])
            pictures = [image for message in prompt.messages for image in message.images]
            more = [f"trial {t + 1}, blur {seen['blur']:.0f} px"] if environment.blur else []
            more += [f"{environment.context} retold"] if environment.context != 10 else []
            title = ", ".join([condition.replace("_", " "), *more])
            text = _excerpt(prompt.messages[-1].content)
            yield title, pictures[-1] if pictures else b"", text


def _at(environment: Magnitude, trial: int) -> Observation:
    table = environment.design.table
    names = environment.fields.shown
    return {"trial": trial, **{name: table[name][trial].item() for name in names}}


def _excerpt(prompt: str, lines: int = 18, letters: int = 76) -> str:
    """Return the question of a prompt, wrapped and cut to a panel."""
    asked = "\n".join(prompt.split("\n\n")[-2:]).split("\n")
    wrapped = [part for line in asked for part in textwrap.wrap(line, letters) or [""]]
    return "\n".join([*wrapped[:lines], *(["…"] if len(wrapped) > lines else [])])


def _first_prompt(environment: Magnitude) -> str:
    seen, _ = environment.reset(seed=1)
    return "\n".join(message.content for message in environment.render(seen, []).messages)


def _by_window() -> Iterator[tuple[str, str]]:
    return zip(WINDOWS, WINDOW_COLOURS, strict=True)
