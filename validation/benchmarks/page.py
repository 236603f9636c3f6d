"""The result of a benchmark: what each cell has come to, the paper's parts, the comparisons."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from knownminds.environments import ANSWERED, Outcome
from knownminds.validation.costs.wordings import SHIPPED
from knownminds.validation.engine.parts import Part
from knownminds.validation.engine.question import command_line
from knownminds.validation.engine.result import Result, Text
from knownminds.validation.engine.screen import text_of
from knownminds.validation.engine.verdicts import Verdict
from knownminds.validation.pages.views import WHO, Cell, Rows

from .benchmark import FILE, FINISHED, OVER, UNREAD, Played, read_benchmark
from .claims import (
    PUBLISHED,
    RUN_NOW,
    ClaimGroup,
    beside_printed,
    claims_part,
    covered,
    judged,
    numbers_part,
    read_numbers,
)
from .comparison import comparison, first_which_differ
from .features import read_features
from .known import recovery
from .paper import SCORES, Paper, joined, part_of
from .plan import Plan
from .public_files import with_summaries
from .registry import paper_of, plan_of
from .seen import seen
from .stability import stability

NOTES = (
    "Known agents play the sessions that models play; their parameters stand in the plan. Trials "
    "without a readable answer are left out and counted.",
)
OPTIONS = ("small", "seed", "paraphrases", "templates", "features", "people")


def read_result(folder: str | Path) -> Result:
    """Read a benchmark from its folder and compute what its page shows."""
    return benchmark_result(read_benchmark(folder))


def benchmark_result(
    played: Played, paper: Paper | None = None, fail_under: float | None = None
) -> Result:
    """Return the result of a benchmark, finished or not.

    Parameters
    ----------
    paper : A reference of the user; if None the one that the plan names.
    fail_under : The share of a cell's trials that are to be readable, above 0 and up to 1.
    """
    about, paper = played.about, paper or paper_of(played.plan.benchmark)
    parts: list[Part] = []
    scores = further = pd.DataFrame(columns=SCORES)
    compared = Part("", "")
    if len(played.trials):
        parts, scores, further = paper.parts(played.trials, about)
        if about.known:
            parts.append(recovery(played.trials, about))
        if len(scores):
            compared = comparison(scores, played.trials, about)
            parts.append(compared)
            parts.append(seen(scores, about, played.plan))
        if about.paraphrases > 1:
            parts += stability(played.trials, about, paper)
    parts += claimed(played, joined([scores, further]))
    parts.append(_cells(played.cells))
    options = {name: played.options.get(name) for name in OPTIONS}
    over = played.cells["status"].isin(OVER)
    asked = [model for model in played.models if model not in played.taken]
    result = Result(
        paper.title,
        verdicts=_verdicts(played.cells, fail_under),
        tables={"Models": _models(played.cells)},
        counts={"cells": _readable(played.cells)},
        parts=parts,
        notes=NOTES,
        attempted=len(played.cells),
        failed=int((played.cells["status"] == UNREAD).sum()),
        missing=int((~over).sum()),
        rows=played.cells,
        options={
            "benchmark": paper.name,
            "paper": paper.source,
            "models": asked or None,
            "taken": played.taken or None,
            "known": about.known,
            "cells": list(dict.fromkeys(cell.name for cell in played.plan.cells)),
            **options,
            "seed": played.plan.seed,
        },
        command=command_line(
            "benchmark",
            paper.name,
            llm=asked,
            plan=str(played.folder / "plan.toml"),
            out=str(played.folder),
            **options,
        ),
        versions=played.versions,
    )
    return first_which_differ(result, compared)


def claimed(played: Played, scores: pd.DataFrame) -> list[Part]:
    """Return the parts of claims and of printed numbers; none where a plan has neither.

    Published scores stand in the place of those of trials: they are of all participants, and as
    the paper computed them.
    """
    plan, about = played.plan, played.about
    groups = []
    theirs, now = set(played.published), [m for m in about.models if m not in played.published]
    features = None if about.features is None else read_features(about.features)
    if theirs:
        if len(played.scores):
            known = set() if features is None else set(features[WHO].astype(str))
            every = [str(name) for name in played.scores[WHO].unique()]
            who = [name for name in every if name in known] or every
            published = with_summaries(played.scores, set(who))
            groups.append(ClaimGroup(PUBLISHED, tuple(who), published, ("human",)))
        else:
            who = [m for m in about.models if m in theirs]
            groups.append(ClaimGroup(PUBLISHED, tuple(who), scores, played.people))
    if now:
        groups.append(ClaimGroup(RUN_NOW, tuple(now), scores, played.people))
    groups += [ClaimGroup(name, (name,), scores, played.people) for name in about.known]
    parts = []
    if plan.claims:
        parts.append(claims_part(judged(plan.claims, groups, features)))
    values, places = read_numbers(plan_of(plan.benchmark), plan.benchmark)
    if len(values):
        beside = beside_printed(values, groups, features)
        parts.append(numbers_part(beside, covered(values, places)))
    return parts


def only_claims(folder: Path, plan: Plan, name: str, options: Mapping[str, Any]) -> Text:
    """Return the claims, or the printed numbers, of a benchmark alone; nothing is written.

    Options that are given here, features for instance, take the place of those in the folder.
    Without a benchmark there the lines stand as they are, and nothing is checked.
    """
    if (folder / FILE).is_file():
        played = read_benchmark(folder)
        given = {key: value for key, value in options.items() if value is not None}
        played = replace(played, options={**played.options, **given})
        paper, about = paper_of(played.plan.benchmark), played.about
        scores = (
            paper.claimed(played.trials, about) if len(played.trials)
            else pd.DataFrame(columns=SCORES)
        )  # fmt: skip
        parts, title = claimed(played, scores), paper.title
    else:
        if options.get("people"):
            raise ValueError(
                f"--people stand beside answers; there are none in {folder}. Give --from or --llm."
            )
        values, places = read_numbers(plan_of(plan.benchmark), plan.benchmark)
        parts = [claims_part(judged(plan.claims, [], None))] if plan.claims else []
        if len(values):
            beside = beside_printed(values, [], None)
            parts.append(numbers_part(beside, covered(values, places)))
        title = paper_of(plan.benchmark).title
    chosen = [part for part in parts if part.name == name]
    if not chosen:
        raise ValueError(f"The plan of {plan.benchmark} has no {name}. Leave --{name} out.")
    return Text(text_of(Result(title, tables=dict(chosen[0].tables), notes=(chosen[0].text,))))


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


def below(cells: pd.DataFrame, share: float | None) -> pd.Series:
    """Say of each cell whether a smaller share of its trials is readable."""
    return cells["readable"] < (share or 0.0) * cells["trials"]


def _readable(cells: pd.DataFrame) -> dict[str, int]:
    """Count the cells of all models by what can be read of them."""
    read, trials = cells["readable"], cells["trials"]
    return {
        "readable": int(((read == trials) & (trials > 0)).sum()),
        "partly readable": int(((read > 0) & (read < trials)).sum()),
        UNREAD: int(((read == 0) & (trials > 0)).sum()),
        "without a trial": int((trials == 0).sum()),
    }


def _verdicts(cells: pd.DataFrame, fail_under: float | None) -> dict[str, Verdict]:
    """Return of each model whether it has played its cells, and why it has not."""
    verdicts = {}
    for model, rows in cells.groupby("model", sort=False):
        done = rows["status"].isin(OVER)
        reasons: dict[str, list[str]] = {}
        for row in rows[rows["status"] != FINISHED].to_dict("records"):
            why = row["status"] + (f", {row['reason']}" if row["reason"] else "")
            reasons.setdefault(why, []).append(_named(row["cell"], row["wording"]))
        texts = [f"{', '.join(names)}: {why}" for why, names in reasons.items()]
        few = rows[below(rows, fail_under)]
        shares = zip(few["cell"], few["readable"] / few["trials"], strict=True)
        texts += [f"{cell}: {share:.1%} readable, under {fail_under:.1%}" for cell, share in shares]
        verdicts[str(model)] = Verdict("finished" if done.all() else "not finished", tuple(texts))
    return verdicts
