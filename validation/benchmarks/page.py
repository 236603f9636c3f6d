"""The page of a benchmark: what has become of every cell, the paper's parts, the comparisons."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pandas as pd

from knownminds.environments import ANSWERED, Outcome
from knownminds.validation.costs.wordings import SHIPPED
from knownminds.validation.engine.question import command_line
from knownminds.validation.pages.page import Column, Finding, Page, Section, listed, table

from .benchmark import FINISHED, RUNS, UNREAD, BenchmarkResult
from .comparison import SEVERAL, comparison
from .known import recovery
from .stability import stability

MEASURED = ("metrics",)  # sections whose numbers `score` prints as well
SCORES = ["participant", "score", "cell", "value", "standard_error", "freedom"]


def benchmark_page(result: BenchmarkResult) -> Page:
    """Return the page of a benchmark, finished or not."""
    about, kind = result.about, result.benchmark
    sections: list[Section] = []
    if len(result.trials):
        sections = [*kind.sections(result.trials, about)]
        if about.known:
            sections.append(recovery(result.trials, about))
        scores = [part.scores for part in sections if part.scores is not None]
        if scores:
            every = pd.concat(scores, ignore_index=True).reindex(columns=SCORES)
            sections.append(comparison(every, result.trials, about))
        if about.paraphrases > 1:
            sections.append(stability(result.trials, about, kind.scores))
    options = {k: v for k, v in result.options.items() if v is not None}
    return Page(
        title=kind.title,
        asked=[
            ("paper", kind.paper),
            ("models", ", ".join(result.models)),
            ("known minds", ", ".join(about.known) or "none"),
            ("cells", ", ".join(cell.name for cell in result.plan.cells)),
            ("seed", str(result.plan.seed)),
            *([("options", listed(options))] if options else []),
        ],
        findings=_findings(result),
        sentences=[],
        notes=[
            "Known minds live the sessions that models live, as simulated agents whose parameters "
            "stand in the plan. Trials without a readable answer are left out and counted."
        ],
        tables=[
            table("What has become of every model", _of_models(result.cells), *_COLUMNS),
        ],
        figures=[],
        command=command_line(
            "benchmark",
            result.plan.benchmark,
            llm=list(result.models),
            plan=str(result.folder / "plan.toml"),
            small=result.options.get("small"),
            seed=result.options.get("seed"),
            paraphrases=result.options.get("paraphrases"),
            features=result.options.get("features"),
            people=result.options.get("people"),
            context=result.options.get("context"),
            out=str(result.folder),
        ),
        versions=result.versions,
        sections=[*(_with_command(part, result) for part in sections), _cells(result)],
    )


def _with_command(part: Section, result: BenchmarkResult) -> Section:
    """Return a section of measures with the commands that read them off its runs again."""
    if part.name not in MEASURED or part.scores is None:
        return part
    every = [one for cells in part.scores["cell"] for one in str(cells).split(SEVERAL)]
    cells = [cell for cell in dict.fromkeys(every) if cell]
    place = shlex.quote(str(result.folder / RUNS))
    lines = [f"knownminds score {place}/*/{cell.replace('/', '+')} --by model" for cell in cells]
    return replace(part, command="\n".join(lines))


def _readable(row: Mapping[str, Any]) -> str:
    return f"{row['readable'] / row['trials']:.1%}" if row["trials"] else "-"


def _of_models(cells: pd.DataFrame) -> pd.DataFrame:
    """Return what has become of each model in all of its cells together."""
    counts = ["ended", "sessions", "trials", "readable", *(one.value for one in Outcome), "calls"]
    whole = cells.assign(over=cells["status"].isin((FINISHED, UNREAD)).astype(int))
    found = whole.groupby("model", sort=False)[[*counts, "over"]].sum().reset_index()
    by = cells.groupby("model", sort=False)
    # What a model costs is known where all its cells that were begun have a price.
    dollars = by["dollars"].sum(min_count=1)
    return found.assign(cells=by.size().to_numpy(), dollars=dollars.to_numpy())


_COLUMNS: tuple[Column, ...] = (
    ("model", "{model}"),
    ("cells", lambda row: f"{row['over']} of {row['cells']}"),
    ("sessions", lambda row: f"{row['ended']:,} of {row['sessions']:,}"),
    ("trials", "{trials:,}"),
    ("readable", _readable),
    ("unread", lambda row: _unread(row)),
    ("calls", "{calls:,}"),
    ("dollars", "{dollars:.2f}"),
)


def _cells(result: BenchmarkResult) -> Section:
    """Return the section that tells what has become of every cell."""
    return Section(
        "cells",
        "What has become of every cell",
        tables=[
            table(
                "Cells",
                result.cells,
                ("model", "{model}"),
                ("cell", _in_which),
                ("sessions", lambda row: f"{row['ended']} of {row['sessions']}"),
                ("trials", "{trials:,}"),
                ("readable", _readable),
                ("unread", _unread),
                ("dollars", "{dollars:.4f}"),
                ("status", "{status}"),
            )
        ],
        frames={"cells": result.cells},
    )


def _in_which(row: Mapping[str, Any]) -> str:
    """Name a cell, and its wording where there are several."""
    return row["cell"] if row["wording"] == SHIPPED else f"{row['cell']}, {row['wording']}"


def _unread(row: Mapping[str, Any]) -> str:
    """Say how many answers of which kind could not be read."""
    kinds = [outcome.value for outcome in Outcome if outcome.value not in ANSWERED]
    return ", ".join(f"{row[kind]:,} {kind}" for kind in kinds if row[kind]) or "-"


def _findings(result: BenchmarkResult) -> list[Finding]:
    """Say of each model whether it has lived its cells, and what is missing."""
    found = []
    for model, rows in result.cells.groupby("model", sort=False):
        done = rows["status"].isin((FINISHED, UNREAD))
        fine = bool((rows["status"] == FINISHED).all())
        reasons: dict[str, list[str]] = {}
        for row in rows[rows["status"] != FINISHED].to_dict("records"):
            told = row["status"] + (f", {row['reason']}" if row["reason"] else "")
            reasons.setdefault(told, []).append(_in_which(row))
        why = "; ".join(f"{', '.join(cells)}: {told}" for told, cells in reasons.items())
        word = (
            "has lived every cell" if done.all() else f"has lived {done.sum()} of {len(rows)} cells"
        )
        found.append(Finding(str(model), word, why, "" if fine else "fair"))
    return found
