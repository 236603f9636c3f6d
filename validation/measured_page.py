"""The page of `knownminds score`: every measure with its interval."""

from __future__ import annotations

import shlex
from typing import Any

import numpy as np

from knownminds.inference import MEASURES

from . import figures as draw
from .causal_page import causal_figures, causal_notes, causal_tables
from .measured import Measured, null_of
from .pages import Page, Table, listed, number, outcome_table

COLUMNS = 4


def measured_page(measured: Measured) -> Page:
    """Return the page of the measures of a trial file."""
    told = {k: ", ".join(v) if isinstance(v, list) else v for k, v in measured.options.items() if v}
    usable = measured.table[measured.table["status"] == "ok"]
    caption = (
        "Each measure with its 95% interval; the dashed line is the value that its test rejects."
    )
    return Page(
        title=f"The measures of {measured.source}",
        asked=[
            ("data", measured.source),
            ("experiments", ", ".join(measured.outcomes)),
            *([("samples", measured.by)] if measured.by else []),
            *([("options", listed(told))] if told else []),
        ],
        findings=[],
        sentences=[],
        notes=[
            "95% intervals, over subjects or robust to dependence within sessions. Trials without "
            "a readable answer are left out and counted; nothing is put in their place.",
            *(_meaning(name) for name in usable["measure"].unique() if name in MEASURES),
            *(causal_notes(measured.causal) if measured.causal else []),
        ],
        tables=_tables(measured) + (causal_tables(measured.causal) if measured.causal else []),
        figures=[
            *(causal_figures(measured.causal) if measured.causal else []),
            *([(caption, intervals(measured))] if len(usable) else []),
        ],
        command=measured_command(measured),
        versions=measured.versions,
    )


def measured_command(measured: Measured) -> str:
    """Return the command line that computes the same again."""
    words, options = ["knownminds", "score", measured.source], measured.options
    for name in options["measures"] or ():
        words += ["--measure", name]
    if options["environment"]:
        words += ["--environment", options["environment"]]
    if options["columns"]:
        words += ["--columns", ",".join(f"{k}={v}" for k, v in options["columns"].items())]
    words += ["--by", measured.by] if measured.by else []
    words += ["--released"] if options["released"] else []
    for name in options.get("over") or ():
        words += ["--over", name]
    words += ["--reference", options["reference"]] if options.get("reference") else []
    usual = "pooled" if options["released"] else "by_cause"
    if options.get("scoring", usual) != usual:
        words += ["--scoring", options["scoring"]]
    words += ["--seed", str(options["seed"])] if options.get("seed") else []
    return shlex.join(words)


def _meaning(name: str) -> str:
    measure = MEASURES[name]
    return f"{name}: {measure.summary} ({measure.source})."


def _tables(measured: Measured) -> list[Table]:
    apart = bool((measured.table["sample"] != "").any())
    head = ["experiment", *([measured.by or "sample"] if apart else []), "measure", "value", "95%"]
    head += ["p", "n", "left out"]
    rows = []
    for row in measured.table.to_dict("records"):
        left = [f"{n} {why}" for why, n in row["excluded"].items() if n]
        left += [row["status"]] if row["status"] != "ok" and not left else []
        rows.append(
            [
                row["environment"],
                *([row["sample"]] if apart else []),
                row["measure"],
                number(row["value"]),
                f"{number(row['low'])} to {number(row['high'])}",
                "-" if np.isnan(row["p_value"]) else f"{row['p_value']:.3g}",
                f"{row['n']} {row['unit']}s",
                ", ".join(left) or "nothing",
            ]
        )
    tables: list[Table] = [("Measures", head, rows)]
    for place, rates in measured.outcomes.items():
        title, columns, counted = outcome_table(rates)
        tables.append((f"{title}: {place}", columns, counted))
    return tables


def intervals(measured: Measured) -> str:
    """Draw each measure in a panel of its own, one line per sample."""
    usable = measured.table[measured.table["status"] == "ok"]
    groups = list(usable.groupby(["environment", "measure"], sort=False))
    figure, axes = draw.panels(len(groups), height=1.6 + 0.12 * len(usable) / len(groups))
    named: list[str] = []
    for k, (axis, ((place, name), some)) in enumerate(zip(axes, groups, strict=True)):
        rows: list[dict[Any, Any]] = some.to_dict("records")
        at = np.arange(len(rows))[::-1]
        low, high, value = ([row[name] for row in rows] for name in ("low", "high", "value"))
        axis.hlines(at, low, high, color=draw.BLUE, linewidth=2)
        axis.plot(value, at, "o", color=draw.BLUE, markersize=5)
        null = null_of(str(name))
        if np.isfinite(null):
            axis.axvline(null, color=draw.GREY, linestyle="--", linewidth=1)
        samples = [row["sample"] for row in rows]
        # Those of the panel to the left need not be said again.
        axis.set_yticks(at, samples if k % COLUMNS == 0 or samples != named else [""] * len(rows))
        named = samples
        axis.set_ylim(-0.7, len(rows) - 0.3)
        title = str(name).replace("_", " ")
        draw.entitle(axis, f"{title}\n{place}" if name == "performance" else title)
    return draw.svg(figure)
