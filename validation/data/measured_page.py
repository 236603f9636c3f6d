"""The pages of `score` and `phenotype`: every measure with its interval, and on one scale."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from knownminds.environments import Rate
from knownminds.inference import MEASURES
from knownminds.inference.measure import told_counts
from knownminds.validation.engine.question import command_line, in_one
from knownminds.validation.pages import figures as draw
from knownminds.validation.pages.page import (
    STATUSES,
    Column,
    Finding,
    Page,
    Table,
    between,
    counted,
    listed,
    number,
    outcome_table,
    table,
)

from .phenotype import Phenotype
from .scores_of_trials import Measured, null_of

CAPTION = (
    "Each measure with its 95% interval, where it has one; a dashed line is the value that its "
    "test rejects. Samples without a value stand in grey."
)
INTERVALS = (
    "Intervals are of 95%. What each rests on stands in the column n: subjects; sessions, where a "
    "single subject has several; or the rows of a regression over all of them, with errors that "
    "are robust to dependence within subjects or sessions. Those of bounded quantities stay within "
    "the bounds."
)
UNREAD = "Trials without a readable answer are left out and counted; nothing is put in their place."
PHENOTYPE_BARS = (
    "Each metric on the scale from random answers (dashed, 0) to the reference (1), a bar per "
    "participant with its 95% interval."
)
RADAR = "The metrics of each participant on one scale, with 95% intervals."
SCALE = (
    "The scale is (score - random) / (reference - random) and keeps its sign. Intervals are of "
    "95% and those of the measure; random answers and reference are taken as known."
)
UNSIGNED = "As in the published code, normalised scores are without sign."
MISSING = (
    "What is missing is missing for a reason, which stands in the table; nothing is filled in."
)


def measured_page(measured: Measured) -> Page:
    """Return the page of the measures of a trial file."""
    told = {k: ", ".join(v) if isinstance(v, list) else v for k, v in measured.options.items() if v}
    usable = measured.table[measured.table["status"] == "ok"]
    return Page(
        title=f"The measures of {measured.source}",
        asked=[
            ("data", measured.source),
            ("experiments", ", ".join(measured.outcomes)),
            *([("samples", measured.by)] if measured.by else []),
            *([("options", listed(told))] if told else []),
        ],
        findings=_without_value(measured),
        sentences=_flat(measured),
        notes=[
            INTERVALS,
            UNREAD,
            *([STATUSES] if measured.table["fits"].map(bool).any() else []),
            *(_meaning(name) for name in usable["measure"].unique() if name in MEASURES),
        ],
        tables=_tables(measured),
        figures=[(CAPTION, intervals(measured))] if len(usable) else [],
        command=measured_command(measured),
        versions=measured.versions,
    )


def measured_command(measured: Measured) -> str:
    """Return the command line that computes the same again."""
    options = measured.options
    usual = "pooled" if options["released"] else "by_cause"
    scoring = options.get("scoring", usual)
    return command_line(
        "score",
        *options.get("data", [measured.source]),
        measure=options["measures"],
        environment=options["environment"],
        columns=in_one(options["columns"] or {}),
        set=options.get("settings"),
        by=measured.by,
        released=options["released"],
        scoring=scoring if scoring != usual else None,
        seed=options.get("seed") or None,
    )


def _without_value(measured: Measured) -> list[Finding]:
    """Name the samples of which no measure has a value, and say what was left out."""
    found = []
    for name, some in measured.table.groupby("sample", sort=False):
        if name and not (some["status"] == "ok").any():
            why = "; ".join(
                f"{row['measure']}: {_left_out(row)}" for row in some.to_dict("records")
            )
            found.append(Finding(str(name), "has no value", f"{why}.", "bad"))
    return found


def _flat(measured: Measured) -> list[str]:
    """Say of which values many fits say next to nothing."""
    told = []
    for row in measured.table.to_dict("records"):
        total, flat = sum(row["fits"].values()), row["fits"].get("flat", 0)
        if flat:
            who = f"{row['measure']} of {row['sample']}" if row["sample"] else row["measure"]
            told.append(
                f"{flat} of {total} fits behind {who} ({flat / total:.0%}) are flat: their trials "
                "say next to nothing about a parameter, and the prior speaks in their place."
            )
    return told


def _meaning(name: str) -> str:
    measure = MEASURES[name]
    return f"{name}: {measure.summary} ({measure.source})."


def _tables(measured: Measured) -> list[Table]:
    apart = bool((measured.table["sample"] != "").any())
    fitted = bool(measured.table["fits"].map(bool).any())
    columns: list[Column] = [
        ("experiment", "{environment}"),
        *([(measured.by or "sample", "{sample}")] if apart else []),
        ("measure", "{measure}"),
        ("value", "{value:.3f}"),
        ("95%", between),
        ("p", "{p_value:.3g}"),
        ("n", lambda row: counted(row["n"], row["unit"])),
        ("left out", _left_out),
        *([("fits", lambda row: told_counts(row["fits"]))] if fitted else []),
        *([("remark", "{note}")] if measured.table["note"].astype(bool).any() else []),
    ]
    tables = [table("Measures", measured.table, *columns)]
    if measured.released:
        tables.append(_departures(measured))
    for place, rates in measured.outcomes.items():
        tables.append(outcome_table(rates, place))
        samples = measured.outcomes_by_sample.get(place, {})
        if len(samples) > 1:
            tables.append(_outcomes_by_sample(place, measured.by or "sample", samples))
    return tables


def _departures(measured: Measured) -> Table:
    """Say what is followed of a published script, and what must differ from its numbers."""
    return table(
        "Against the numbers of the published script",
        measured.released,
        ("experiment", lambda one: one["environment"]),
        ("measure", lambda one: one["measure"]),
        ("followed", lambda one: one["followed"]),
        ("differs", lambda one: one["differs"]),
        ("rows", lambda one: f"{one['rows']:,}"),
    )


def _left_out(row: Mapping[Any, Any]) -> str:
    left = [f"{n} {why}" for why, n in row["excluded"].items() if n]
    left += [row["status"]] if row["status"] != "ok" and not left else []
    return ", ".join(left) or "nothing"


def _outcomes_by_sample(place: str, by: str, samples: Mapping[str, Sequence[Rate]]) -> Table:
    """Count the outcomes of each sample."""
    rows = [
        {by: sample, "trials": rates[0].of} | {rate.outcome: rate.count for rate in rates}
        for sample, rates in samples.items()
    ]
    outcomes = [rate.outcome for rate in next(iter(samples.values()))]
    named = [name for name in outcomes if any(row[name] for row in rows)]
    columns = [(name, f"{{{name}:,}}") for name in ("trials", *named)]
    return table(f"Outcomes by {by}: {place}", rows, (by, lambda row: row[by]), *columns)


def intervals(measured: Measured) -> str:
    """Draw each measure that some sample has in a panel of its own, one line per sample."""
    every = measured.table.groupby(["environment", "measure"], sort=False)
    groups = [(key, some) for key, some in every if (some["status"] == "ok").any()]
    lines = sum(len(some) for _, some in groups) / len(groups)
    figure, axes = draw.panels(len(groups), height=1.6 + 0.12 * lines)
    named: list[str] = []
    for axis, ((place, name), some) in zip(axes, groups, strict=True):
        rows: list[dict[Any, Any]] = some.to_dict("records")
        at = np.arange(len(rows))[::-1]
        low, high, value = ([row[name] for row in rows] for name in ("low", "high", "value"))
        axis.hlines(at, low, high, color=draw.BLUE, linewidth=2)
        axis.plot(value, at, "o", color=draw.BLUE, markersize=5)
        null = null_of(str(name))
        if np.isfinite(null):
            axis.axvline(null, color=draw.GREY, linestyle="--", linewidth=1)
        for place_of, row in zip(at, rows, strict=True):
            if row["status"] != "ok":
                middle = (0.5, place_of)
                axis.annotate(
                    "no value", middle, xycoords=axis.get_yaxis_transform(), color=draw.GREY,
                    ha="center", va="center", fontsize=draw.SMALL,
                )  # fmt: skip
        samples = [row["sample"] for row in rows]
        # Those of the panel to the left need not be said again.
        axis.set_yticks(
            at, samples if draw.leftmost(axis) or samples != named else [""] * len(rows)
        )
        named = samples
        axis.set_ylim(-0.7, len(rows) - 0.3)
        title = str(name).replace("_", " ")
        named_alike = str(name).startswith("performance")
        draw.entitle(axis, f"{title}\n{place}" if named_alike else title)
    return draw.svg(figure)


def phenotype_page(found: Phenotype) -> Page:
    """Return the page of phenotypes."""
    told = found.options
    return Page(
        title="Phenotypes: participants between random answers and a reference",
        asked=[
            ("participants", ", ".join(found.participants)),
            ("metrics", ", ".join(found.metrics)),
            *([("reference", told["reference"])] if told.get("reference") else []),
            *([("data", ", ".join(told["data"]))] if told.get("data") else []),
        ],
        findings=_without_score(found),
        sentences=[],
        notes=[
            SCALE,
            *([UNSIGNED] if found.released else []),
            *([MISSING] if np.isnan(found.normalised).any() else []),
            *(
                f"{name}: {MEASURES[name].summary} ({MEASURES[name].source})."
                for name in found.metrics
                if name in MEASURES
            ),
        ],
        tables=[_side_by_side(found), _phenotype_scores(found)],
        figures=_phenotype_figures(found),
        command=_phenotype_command(told),
        versions=found.versions,
    )


def _without_score(found: Phenotype) -> list[Finding]:
    """Name those of whom nothing is known, and why."""
    gone = np.asarray(np.isnan(found.normalised).all(axis=1))
    return [
        Finding(name, "has no score", f"{'; '.join(dict.fromkeys(filter(None, why)))}.", "bad")
        for name, why, none in zip(found.participants, found.reason, gone, strict=True)
        if none
    ]


def _phenotype_figures(found: Phenotype) -> list[tuple[str, str]]:
    there = np.isfinite(found.normalised)
    people, metrics = np.asarray(there.any(axis=1)), np.asarray(there.any(axis=0))
    if not there.any():
        return []
    drawn = [(PHENOTYPE_BARS, draw.svg(found.bars()))]
    if metrics.sum() > 2:  # of fewer there is no shape
        drawn.append((RADAR, draw.svg(found.of(people, metrics).radar())))
    return drawn


def _side_by_side(found: Phenotype) -> Table:
    """Write down a row per participant, a column per metric."""
    columns: list[Column] = [("participant", "{name}")]
    columns += [
        (metric.replace("_", " "), f"{{value[{j}]:.2f}}") for j, metric in enumerate(found.metrics)
    ]
    rows = [
        {"name": name, "value": [float(value) for value in values]}
        for name, values in zip(found.participants, found.normalised, strict=True)
    ]
    return table("From random answers (0) to the reference (1)", rows, *columns)


def _phenotype_scores(found: Phenotype) -> Table:
    """Write down a row per participant and metric, also where there is no score."""
    return table(
        "Scores",
        found.to_frame(),
        ("participant", "{participant}"),
        ("metric", "{metric}"),
        ("normalised", "{normalised:.3f}"),
        ("95%", lambda row: _between_ends(row, "normalised_low", "normalised_high")),
        ("score", "{score:.3f}"),
        ("95% of it", lambda row: _between_ends(row, "low", "high")),
        ("random", "{random:.3f}"),
        ("reference", "{reference:.3f}"),
        ("missing", lambda row: row["missing"] or "-"),
    )


def _between_ends(row: Mapping[Any, Any], low: str, high: str) -> str:
    return f"{number(row[low])} to {number(row[high])}" if np.isfinite(row[low]) else "-"


def _phenotype_command(told: Mapping[str, Any]) -> str:
    """Return the command line that computes the same again; "" where no command did."""
    if not told:
        return ""
    options = {name: value for name, value in told.items() if name != "data"}
    return command_line("phenotype", *told["data"], **options)
