"""The page of magnitude estimation: the whole table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from knownminds.agents.parameters import Array
from knownminds.inference.magnitudes.consistency_score import DISREGARD, KNOWN_OBSERVERS, MOST
from knownminds.inference.magnitudes.cue_combination import MEANINGS
from knownminds.inference.magnitudes.factor_evidence import FACTORS
from knownminds.inference.magnitudes.magnitude_answers import (
    BASE,
)
from knownminds.validation.engine.question import command_line, in_one
from knownminds.validation.engine.scores import share
from knownminds.validation.pages import figures as draw
from knownminds.validation.pages.page import (
    Finding,
    Page,
    Table,
    between,
    counted,
    outcome_table,
    table,
)

from .magnitude_table import LEVEL, MagnitudeTable, shortened

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
        sentences=[_beside_lines(table, who) for who in table.evidence["participant"].unique()],
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
            "Evidence is a share of likelihoods at their maxima, and a straight line shows some by "
            "noise alone. Beside it stands that of straight lines, each fitted to the participant "
            "in the base condition and answering the same stimuli; p is the share of them, with "
            "the participant, that show as much or more.",
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
    options = table.options
    return command_line(
        "score",
        *table.sources,
        columns=in_one(options["columns"] or {}),
        environment=options["environment"],
        by=table.by if table.by != "model" else None,
        bootstraps=options["rounds"],
        mass=options["mass"],
        seed=options["seed"],
    )


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


def _beside_lines(table: MagnitudeTable, who: str) -> str:
    found, n = table.bayesian_tasks(who)
    return (
        f"{who}: more evidence for a Bayesian observer than straight lines with the same noise "
        f"show (p at most {LEVEL:g}) in {found} of {counted(n, 'task')}; by chance it is "
        f"{LEVEL * n:.2g}."
    )


def _tables(shown: MagnitudeTable) -> list[Table]:
    return [
        table(
            "Composite",
            shown.composite,
            ("participant", "{participant}"),
            ("part", "{part} {name}"),
            ("value", "{value:.3f}"),
            ("interval", between),
            ("missing", _lacking),
        ),
        cell_table(shown.cells, every=False),
        table(
            "Evidence for a Bayesian observer, beside that of straight lines",
            shown.evidence,
            ("participant", "{participant}"),
            ("task", "{task}"),
            ("evidence", "{evidence:.2f}"),
            ("lines, 5% to 95%", between),
            ("p", "{p:.3f}"),
            ("lines", "{lines:,.0f}"),
        ),
        cue_table(shown.cues[shown.cues["condition"] == BASE]),
        table(
            "Consistency: prior weights and shifts",
            shown.consistency,
            ("participant", "{participant}"),
            ("task", "{task}"),
            ("condition", "{ablation}"),
            ("answers to", "{modality}"),
            ("base", "{base:.3f}"),
            ("ablation", "{weight:.3f}"),
            ("score", "{score:+.0f}"),
            ("why none", lambda row: row["reason"] or ""),
        ),
        table(
            "Consistency: known minds in the same design",
            shown.known,
            ("participant", "{participant}"),
            ("mind", "{observer}"),
            ("expected", "{expected:+.2f}"),
            ("sd", "{sd:.2f}"),
            ("score at least the participant's", "{reaching:.1%}"),
        ),
        *(outcome_table(rates, task) for task, rates in shown.outcomes.items()),
    ]


def _lacking(row: Mapping[Any, Any]) -> str:
    return counted(len(row["missing"].split("; ")), "thing") if row["missing"] else "nothing"


def cue_table(cues: pd.DataFrame) -> Table:
    """Return weights and efficiencies by reference."""
    return table(
        "Cue combination",
        cues,
        ("participant", "{participant}"),
        ("task", "{task}"),
        ("condition", "{condition}"),
        ("reference", "{reference}"),
        ("weight of text", "{text_weight:.3f}"),
        ("RRE", "{efficiency:.3f}"),
        ("interval", between),
        ("items", "{n:,.0f}"),
        ("left out", "{left_out:,.0f}"),
    )


def cell_table(cells: pd.DataFrame, every: bool = True) -> Table:
    """Return the scores of each cell; of the base condition alone unless `every`."""
    varied = "condition" if every else "task"
    return table(
        "Errors and observers" + ("" if every else ", base condition"),
        cells if every else cells[cells["condition"] == BASE],
        ("participant", "{participant}"),
        (varied, f"{{{varied}}}"),
        ("answers to", "{modality}"),
        ("trials", "{n:,.0f}"),
        ("missing", "{missing:,.0f}"),
        ("NRMSE", "{error:.3f}"),
        ("interval", between),
        ("bias²", "{bias:.2f}"),
        ("variance", "{variance:.2f}"),
        ("prior weight", "{prior_weight:.2f}"),
        *((factor, f"{{{factor}:.2f}}") for factor in FACTORS),
    )


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


def _mean(frame: pd.DataFrame, beginning: str) -> Array:
    """Return each row's mean over the columns that begin so."""
    columns = [str(name) for name in frame if str(name).startswith(beginning)]
    if not columns:
        return np.full(len(frame), np.nan)
    values: Array = frame[columns].to_numpy(dtype=float).mean(axis=1)
    return values
