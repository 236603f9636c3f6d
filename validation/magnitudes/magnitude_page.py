"""The pages of magnitude estimation: one for the whole table, and one of pictures per task."""

from __future__ import annotations

import difflib
import io
import shlex
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
from knownminds.inference.magnitudes.consistency_score import DISREGARD, KNOWN_OBSERVERS, MOST
from knownminds.inference.magnitudes.cue_combination import MEANINGS, combine, pair
from knownminds.inference.magnitudes.factor_evidence import FACTORS
from knownminds.inference.magnitudes.magnitude_answers import (
    BASE,
    BOTH,
    IMAGE,
    MULTIMODAL,
    TEXT,
    Answers,
    MagnitudeAnswers,
)
from knownminds.validation.engine.monte_carlo import share
from knownminds.validation.pages import figures as draw
from knownminds.validation.pages.page import Finding, Page, Table, counted, number, outcome_table

from .magnitude_table import MagnitudeTable, shortened

MOST_SHOWN = 6  # participants in the pictures of a task
STEPS = 4  # groups of trials whose blur grows
WINDOW_COLOURS = draw.PALETTE[:3]
_LETTERS = {"S": "composite", "A": "accuracy", "E": "efficiency", "C": "consistency"}


def magnitude_page(table: MagnitudeTable) -> Page:
    """Return the page of the whole table."""
    full, table = table, table.labelled()
    mass, rounds = table.options["mass"], table.options["rounds"]
    figures = []
    if table.composite["value"].notna().any():
        drawn = "The composite and its parts. What is missing is not drawn."
        if rounds:
            drawn += f" Lines: {mass:.0%} intervals of {rounds} bootstraps that keep the sessions."
        figures.append((drawn, composites(table)))
    figures.append(
        (
            "Error in the base condition, with all that a task shows, against the evidence for a "
            "Bayesian observer, the efficiency of combining cues (mean of the two published "
            "references) and the consistency score; means over tasks.",
            against_error(table),
        )
    )
    if len(table.known):
        figures.append(
            (
                "The consistency score (black) among the scores of known minds with the "
                "participant's own noise in the same design: mean and 2 standard deviations.",
                consistency(table),
            )
        )
    return Page(
        title="Magnitude estimation",
        asked=[
            ("data", ", ".join(table.sources)),
            ("participants", f"{', '.join(full.participants)}"),
            ("tasks", ", ".join(table.tasks)),
            ("trials", f"{len(table.trials):,}"),
            ("bootstraps", f"{rounds}, intervals of {mass:.0%}" if rounds else "none"),
        ],
        findings=[_finding(table, who) for who in table.participants],
        sentences=[],
        notes=[
            "NRMSE: error in units of that of a constant answer at the middle of each window, "
            "squared errors pooled over windows; bias and variance are the parts of its square. "
            "RRE: error of a reference over that of the answers to text and image; above 1 the "
            "answers are the better. Consistency: how often the prior weight of a static Bayesian "
            "observer is at least that of the base condition where it should grow, less how often "
            f"it is not; a weight above {DISREGARD} counts 0.",
            "The consistency score cannot be read alone. An observer without any error earns the "
            "maximum; one that never adapts earns 0 only on average, with a wide spread, and more "
            "where its weight is near 0: therefore the known minds beside it.",
            *(
                [
                    "Bootstraps add noise of their own to every weight, which draws scores by sign "
                    "towards 0: the interval of a consistency score near its ends, and with it "
                    "that of the composite, may lie beside the value."
                ]
                if rounds
                else []
            ),
            "Trials without a readable answer are left out and counted; nothing is put in their "
            "place. A part that lacks a task, a modality or a condition has no value.",
            *(f"{name}: {what}." for name, what in MEANINGS.items()),
            *(
                [f"Pictures of each task: {', '.join(f'{task}.html' for task in table.tasks)}."]
                if table.tasks
                else []
            ),
        ],
        tables=_tables(table),
        figures=figures,
        command=magnitude_command(table),
        versions=table.versions,
    )


def magnitude_command(table: MagnitudeTable) -> str:
    """Return the command line that computes the same again."""
    words, options = ["knownminds", "score", *table.sources], table.options
    if options["columns"]:
        words += ["--columns", ",".join(f"{k}={v}" for k, v in options["columns"].items())]
    if options["environment"]:
        words += ["--environment", options["environment"]]
    words += ["--by", table.by] if table.by not in ("", "model") else []
    for name, option in (("rounds", "--bootstraps"), ("mass", "--mass"), ("seed", "--seed")):
        words += [option, f"{options[name]:g}"]
    return shlex.join(words)


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
            _cell_table(own),
            *_weight_table(weights),
            *_cue_table(table.cues[table.cues["task"] == task]),
        ],
        figures=figures,
        command=magnitude_command(table),
        versions=table.versions,
    )  # fmt: skip


def _finding(table: MagnitudeTable, who: str) -> Finding:
    own = table.composite[table.composite["participant"] == who].set_index("part")
    value, low, high = table.part(who, "S")
    if np.isnan(value):
        lacks = {p: str(own.loc[p, "missing"]) for p in "AEC"}
        why = "; ".join(f"{p}: {shortened(what)}" for p, what in lacks.items() if what)
        return Finding(f"{who}:", "no composite", f"It lacks {why}.", "fair")
    parts = ", ".join(f"{_LETTERS[p]} {table.part(who, p)[0]:.3f}" for p in "AEC")
    minds = table.known[table.known["participant"] == who]
    within = f"({low:.3f} to {high:.3f})" if np.isfinite(low) else "without an interval"
    told = f"composite {value:.3f} {within}"
    if not len(minds):
        return Finding(f"{who}:", told, f"{parts}; no known minds beside it.", "")
    n = table.options["replicates"]
    reached = float(minds[minds["observer"] == KNOWN_OBSERVERS[0]]["reaching"].iloc[0])
    why = (
        f"{parts}. Of {n:,} simulated observers with the same noise that never adapt, "
        f"{round(n * reached):,} score at least this consistency."
    )
    found = share(n * reached, n)  # of which a simulation of this size tells so much
    rare = found.value + 2 * found.error < 0.05
    return Finding(f"{who}:", told, why, "good" if rare else "fair")


def _tables(table: MagnitudeTable) -> list[Table]:
    parts = [
        [
            row["participant"],
            f"{row['part']} {row['name']}",
            number(row["value"]),
            f"{number(row['low'])} to {number(row['high'])}",
            counted(len(row["missing"].split("; ")), "thing") if row["missing"] else "nothing",
        ]
        for row in table.composite.to_dict("records")
    ]
    shifts = [
        [
            row["participant"],
            row["task"],
            row["ablation"],
            row["modality"],
            number(row["base"]),
            number(row["weight"]),
            f"{row['score']:+.0f}" if row["score"] == row["score"] else "-",
            row["reason"] or "",
        ]
        for row in table.consistency.to_dict("records")
    ]
    minds = [
        [
            row["participant"],
            row["observer"],
            f"{row['expected']:+.2f}",
            f"{row['sd']:.2f}",
            f"{row['reaching']:.1%}",
        ]
        for row in table.known.to_dict("records")
    ]
    tables: list[Table] = [
        ("Composite", ["participant", "part", "value", "interval", "missing"], parts),
        _cell_table(table.cells, every=False),
        *_cue_table(table.cues[table.cues["condition"] == BASE]),
        (
            "Consistency: prior weights and shifts",
            ["participant", "task", "condition", "answers to", "base", "ablation", "score", ""],
            shifts,
        ),
        (
            "Consistency: known minds in the same design",
            ["participant", "mind", "expected", "sd", "score at least the participant's"],
            minds,
        ),
    ]
    for task, rates in table.outcomes.items():
        title, columns, rows = outcome_table(rates)
        tables.append((f"{title}: {task}", columns, rows))
    return [one for one in tables if one[2]]


def _cue_table(cues: pd.DataFrame) -> list[Table]:
    """Return weights and efficiencies by reference."""
    head = ["participant", "task", "condition", "reference", "weight of text", "RRE", "interval"]
    head += ["items", "left out"]
    rows = [
        [
            row["participant"],
            row["task"],
            row["condition"],
            row["reference"],
            number(row["text_weight"]),
            number(row["efficiency"]),
            f"{number(row['low'])} to {number(row['high'])}",
            f"{row['n']:,.0f}",
            f"{row['left_out']:,.0f}",
        ]
        for row in cues.to_dict("records")
    ]
    return [("Cue combination", head, rows)] if rows else []


def _cell_table(cells: pd.DataFrame, every: bool = True) -> Table:
    """Return the scores of each cell; of the base condition alone unless `every`."""
    some = cells if every else cells[cells["condition"] == BASE]
    lead = ["participant", "condition" if every else "task", "modality"]
    rows = [
        [
            *(row[name] for name in lead),
            f"{row['n']:,.0f}",
            f"{row['missing']:,.0f}",
            number(row["error"]),
            f"{number(row['low'])} to {number(row['high'])}",
            number(row["bias"], 2),
            number(row["variance"], 2),
            number(row["prior_weight"], 2),
            *(number(row[factor], 2) for factor in FACTORS),
        ]
        for row in some.to_dict("records")
    ]
    head = [*lead[:-1], "answers to", "trials", "missing", "NRMSE", "interval"]
    head += ["bias²", "variance", "prior weight", *FACTORS]
    title = "Errors and observers" + ("" if every else ", base condition")
    return title, head, rows


def composites(table: MagnitudeTable) -> str:
    """Draw the composite and its parts, a panel each."""
    figure, axes = draw.panels(4, height=1.3 + 0.28 * len(table.participants))
    at = np.arange(len(table.participants))[::-1]
    for axis, (part, name) in zip(axes, _LETTERS.items(), strict=True):
        for y, who in zip(at, table.participants, strict=True):
            value, low, high = table.part(who, part)
            axis.plot([low, high], [y, y], color=draw.BLUE, linewidth=2)
            axis.plot(value, y, "o", color=draw.BLUE, markersize=5)
        axis.set_yticks(at, table.participants if part == "S" else [""] * len(at))
        axis.set_ylim(-0.7, len(at) - 0.3)
        axis.axvline(1.0, color=draw.GREY, linestyle="--", linewidth=1)
        axis.margins(x=0.12)
        draw.entitle(axis, f"{part}: {name}")
    return draw.svg(figure)


def against_error(table: MagnitudeTable) -> str:
    """Draw each participant's error against evidence, efficiency and consistency."""
    summary = table.summary()
    error = _mean(summary, "NRMSE_")
    others = {
        "evidence: Bayesian": _mean(summary, "bayesian_"),
        "efficiency E": summary["E"].to_numpy(dtype=float),
        "consistency score": summary["BCS"].to_numpy(dtype=float),
    }
    others = {name: values for name, values in others.items() if np.isfinite(values).any()}
    figure, axes = draw.panels(max(len(others), 1))
    looks = draw.styles(len(summary))
    for axis, (name, values) in zip(axes, others.items(), strict=False):
        for k, who in enumerate(summary["participant"]):
            colour, marker, _ = looks[k]
            axis.plot(error[k], values[k], marker, color=colour, markersize=7, label=who)
        axis.set(xlabel="NRMSE", ylabel=name)
        axis.margins(0.15)
        if name == "consistency score":
            axis.set_ylim(-MOST - 1, MOST + 1)
    draw.key(figure, axes[0])
    return draw.svg(figure)


def consistency(table: MagnitudeTable) -> str:
    """Draw the scores among those of known minds, a panel per participant."""
    groups = list(table.known.groupby("participant", sort=False))
    figure, axes = draw.panels(len(groups), height=2.1)
    for axis, (who, some) in zip(axes, groups, strict=True):
        minds = some.to_dict("records")
        score, low, high = (float(minds[0][name]) for name in ("score", "low", "high"))
        for y, (mind, colour) in enumerate(zip(minds, draw.PALETTE, strict=False)):
            ends = np.clip(
                [mind["expected"] - 2 * mind["sd"], mind["expected"] + 2 * mind["sd"]], -MOST, MOST
            )
            axis.plot(ends, [y, y], color=colour, linewidth=6, alpha=0.35, solid_capstyle="butt")
            axis.plot(mind["expected"], y, "o", color=colour, markersize=6)
        axis.axvline(score, color="black", linewidth=1.6)
        if np.isfinite(low):
            axis.axvspan(low, high, color="black", alpha=0.1, linewidth=0)
        names = [str(mind["observer"]) for mind in minds]
        axis.set_yticks(range(len(minds)), names)
        axis.set(xlim=(-MOST - 1, MOST + 1), ylim=(-0.6, len(minds) - 0.4), xlabel="score")
        draw.entitle(axis, str(who))
    return draw.svg(figure)


def condition_words(task: str) -> list[str]:
    """Say what each condition changes: the words that it adds, the past, the blur."""
    plain, told = "", []
    for condition in CONDITIONS:
        place = _place(task, condition)
        if place is None:
            told.append(f"{condition}: not of this task, whose stimuli are words alone.")
            continue
        prompt = _first_prompt(place)
        plain = plain or prompt
        added = [
            line[2:]
            for line in difflib.ndiff(plain.split("\n"), prompt.split("\n"))
            if line.startswith("+ ") and line[2:].strip()
        ]
        words = [f"as shipped, {place.context} earlier trials retold"]
        if place.blur:
            growing = " in the end" if condition == "gradual_noise" else ""
            words.append(f"blur of {place.blur:g} px{growing}")
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
    figure, axes = draw.panels(len(panels), height=height, columns=3)
    figure.set_size_inches(10.5, height * -(-len(panels) // 3))
    for axis, image, (title, _, text) in zip(axes, images, panels, strict=True):
        axis.set_axis_off()
        draw.entitle(axis, title, "left")
        if image is not None:
            axis.imshow(image, interpolation="antialiased")
        else:
            axis.text(
                0.0, 1.0, text, family="monospace", fontsize=5, va="top", transform=axis.transAxes
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
            cells = [answers.cells.get((who, task, condition, m)) for m in (TEXT, IMAGE, BOTH)]
            three = [cell for cell in cells if cell is not None]
            if len(three) < len(MODALITIES):
                continue
            pairs = pair(*three)
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


def _weight_table(weights: pd.DataFrame) -> list[Table]:
    head = ["participant", "condition", "mean blur", "items", "weight of text", "interval"]
    rows = [
        [
            row["participant"],
            row["condition"],
            f"{row['blur']:.1f}",
            str(row["items"]),
            number(row["text_weight"]),
            f"{number(row['low'])} to {number(row['high'])}",
            number(row["deserved"]),
        ]
        for row in weights.to_dict("records")
    ]
    return [("Weight of the text by blur", [*head, "deserved"], rows)] if rows else []


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


def _place(task: str, condition: str) -> Magnitude | None:
    """Return the task in a condition; None where it has none: noise needs pictures."""
    if condition in BLUR and task not in MULTIMODAL:
        return None
    place = make(task, condition=condition, modality=BOTH if task in MULTIMODAL else TEXT)
    assert isinstance(place, Magnitude)
    return place


def _examples(task: str) -> Iterator[tuple[str, bytes, str]]:
    """Give title, picture and words of a stimulus in each condition."""
    if task in MULTIMODAL:
        words = make(task, modality=TEXT)
        assert isinstance(words, Magnitude)
        words.reset(seed=1)
        prompt = words.render(_at(words, 0), [])
        yield "in words (never blurred)", b"", _excerpt(prompt.messages[-1].content)
    for condition in CONDITIONS:
        place = _place(task, condition)
        if place is None:
            continue
        place.reset(seed=1)
        last = place.n_items - 1
        for t in (0, last // 2, last) if condition == "gradual_noise" else (0,):
            seen = _at(place, t)
            prompt = place.render(seen, [])
            pictures = [image for message in prompt.messages for image in message.images]
            more = [f"trial {t + 1}, blur {seen['blur']:.0f} px"] if place.blur else []
            more += [f"{place.context} retold"] if place.context != 10 else []
            title = ", ".join([condition.replace("_", " "), *more])
            text = _excerpt(prompt.messages[-1].content)
            yield title, pictures[-1] if pictures else b"", text


def _at(place: Magnitude, trial: int) -> Observation:
    table = place.design.table
    names = place.fields.shown
    return {"trial": trial, **{name: table[name][trial].item() for name in names}}


def _excerpt(prompt: str, lines: int = 18, letters: int = 76) -> str:
    """Return the question of a prompt, wrapped and cut to a panel."""
    asked = "\n".join(prompt.split("\n\n")[-2:]).split("\n")
    wrapped = [part for line in asked for part in textwrap.wrap(line, letters) or [""]]
    return "\n".join([*wrapped[:lines], *(["…"] if len(wrapped) > lines else [])])


def _first_prompt(place: Magnitude) -> str:
    seen, _ = place.reset(seed=1)
    return "\n".join(message.content for message in place.render(seen, []).messages)


def _by_window() -> Iterator[tuple[str, str]]:
    return zip(WINDOWS, WINDOW_COLOURS, strict=True)


def _mean(frame: pd.DataFrame, beginning: str) -> Array:
    """Return each row's mean over the columns that begin so."""
    columns = [str(name) for name in frame if str(name).startswith(beginning)]
    if not columns:
        return np.full(len(frame), np.nan)
    values: Array = frame[columns].to_numpy(dtype=float).mean(axis=1)
    return values
