"""The result of a benchmark: what each cell has come to, the paper's parts, the comparisons."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from knownminds.environments import ANSWERED, Outcome
from knownminds.validation.costs.wordings import SHIPPED
from knownminds.validation.engine.parts import Part
from knownminds.validation.engine.question import command_line
from knownminds.validation.engine.result import Result
from knownminds.validation.engine.verdicts import Verdict
from knownminds.validation.pages.views import Cell, Rows

from .benchmark import FINISHED, UNREAD, Played, read_benchmark
from .comparison import comparison
from .known import recovery
from .paper import Paper, part_of
from .registry import paper_of
from .stability import stability

NOTES = (
    "Known agents play the sessions that models play; their parameters stand in the plan. Trials "
    "without a readable answer are left out and counted.",
)
OPTIONS = ("small", "seed", "paraphrases", "features", "people")


def read_result(folder: str | Path) -> Result:
    """Read a benchmark from its folder and compute what its page shows."""
    return benchmark_result(read_benchmark(folder))


def benchmark_result(played: Played, paper: Paper | None = None) -> Result:
    """Return the result of a benchmark, finished or not.

    Parameters
    ----------
    paper
        A reference of the user; if None the one that the plan names.
    """
    about, paper = played.about, paper or paper_of(played.plan.benchmark)
    parts: list[Part] = []
    if len(played.trials):
        parts, scores = paper.parts(played.trials, about)
        if about.known:
            parts.append(recovery(played.trials, about))
        if len(scores):
            parts.append(comparison(scores, played.trials, about))
        if about.paraphrases > 1:
            parts += stability(played.trials, about, paper)
    parts.append(_cells(played.cells))
    options = {name: played.options.get(name) for name in OPTIONS}
    over = played.cells["status"].isin((FINISHED, UNREAD))
    return Result(
        paper.title,
        verdicts=_verdicts(played.cells),
        tables={"Models": _models(played.cells)},
        parts=parts,
        notes=NOTES,
        attempted=len(played.cells),
        failed=int((played.cells["status"] == UNREAD).sum()),
        missing=int((~over).sum()),
        rows=played.cells,
        options={
            "benchmark": paper.name,
            "paper": paper.source,
            "models": played.models,
            "known": about.known,
            "cells": list(dict.fromkeys(cell.name for cell in played.plan.cells)),
            **options,
            "seed": played.plan.seed,
        },
        command=command_line(
            "benchmark",
            paper.name,
            llm=list(played.models),
            plan=str(played.folder / "plan.toml"),
            out=str(played.folder),
            **options,
        ),
        versions=played.versions,
    )


def _models(cells: pd.DataFrame) -> pd.DataFrame:
    """Return what has become of each model in all of its cells together."""
    outcomes = [one.value for one in Outcome if one.value not in ANSWERED]
    counts = ["sessions", "ended", "trials", "readable", *outcomes, "calls", "tokens"]
    over = cells["status"].isin((FINISHED, UNREAD)).astype(int)
    by = cells.assign(finished=over).groupby("model", sort=False)
    table = by[["finished", *counts]].sum()
    table.insert(0, "cells", by.size())
    # What a model costs is known where all its cells that were begun have a price.
    table["dollars"] = by["dollars"].sum(min_count=1)
    unused = [name for name in outcomes if not table[name].any()]
    return table.drop(columns=unused)


def _cells(cells: pd.DataFrame) -> Part:
    """Return the part that says what has become of every cell."""
    columns: dict[str, Cell] = {
        "cell": lambda row: _named(row["cell"], row["wording"]),
        **{name: name for name in ("sessions", "ended", "trials", "readable", "dollars", "status")},
        "reason": lambda row: row["reason"] or "-",
    }
    view = Rows("Cells", columns, ("model",))
    return part_of("cells", "What has become of every cell", "", (cells, view))


def _named(cell: str, wording: str) -> str:
    """Name a cell, and its wording where there are several."""
    return cell if wording == SHIPPED else f"{cell}, {wording}"


def _verdicts(cells: pd.DataFrame) -> dict[str, Verdict]:
    """Return of each model whether it has played its cells, and why it has not."""
    verdicts = {}
    for model, rows in cells.groupby("model", sort=False):
        done = rows["status"].isin((FINISHED, UNREAD))
        reasons: dict[str, list[str]] = {}
        for row in rows[rows["status"] != FINISHED].to_dict("records"):
            why = row["status"] + (f", {row['reason']}" if row["reason"] else "")
            reasons.setdefault(why, []).append(_named(row["cell"], row["wording"]))
        texts = tuple(f"{', '.join(names)}: {why}" for why, names in reasons.items())
        verdicts[str(model)] = Verdict("finished" if done.all() else "not finished", texts)
    return verdicts
