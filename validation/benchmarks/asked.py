"""`benchmark`: models take a paper's experiments, or answers that there are are taken in."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from knownminds.calling import Calling, Reach, part_of
from knownminds.llm_adapters.runs.runner import RunOptions
from knownminds.validation.engine.question import verb
from knownminds.validation.engine.result import Result, Text

from .benchmark import Played, read_benchmark, take_answers
from .features import read_features
from .page import below, benchmark_result, only_claims
from .plan import Plan, read_plan
from .questions import SHOWN, AskBenchmark
from .registry import paper_of, plan_of
from .running import blocked_of, estimate, estimate_text, players_of, run_benchmark, watching

TOO_FEW = 4  # the exit code if fewer trials are readable than --fail-under asks for

benchmark = verb(AskBenchmark, __name__)


def compute(question: AskBenchmark) -> Result | Text:
    """Answer `benchmark`."""
    least = question.fail_under
    if least is not None and not 0 < least <= 1:
        raise ValueError(f"--fail-under is a share above 0 and up to 1; got {least:g}.")
    if question.plan == SHOWN:
        return Text(plan_of(question.name).read_text(encoding="utf-8").rstrip("\n"))
    how = {name: getattr(question, name) for name in ("small", "seed", "paraphrases", "templates")}
    plan = read_plan(question.name, question.plan, **how)
    if question.claims and question.numbers:
        raise ValueError("--claims and --numbers print one table alone each; got both. Give one.")
    alone = "claims" if question.claims else "numbers" if question.numbers else ""
    people = _people_alone(question)
    if (question.from_ or people) and not question.dry_run:
        files = [Path(file) for file in question.from_]
        for line in take_answers(question.folder, plan, files, _options(question), people):
            question.say(line)
        if not question.llm:
            return _shown(question, plan, alone)
    if alone and not question.llm:
        return _shown(question, plan, alone)
    options = _options(question)
    reach = Reach(**part_of(Reach, question))
    players = players_of(plan, question.llm, reach, prices=question.price, images=question.images)
    blocked = blocked_of(plan, players)
    costs = estimate(plan, players, blocked)
    if question.dry_run:
        text = estimate_text(costs)
        return Text(text, {"text": text, "cells": costs.to_dict("records")})
    question.say(estimate_text(costs, by_cell=False))
    watch = None if question.progress is None else watching(plan, players, question.progress)
    played = run_benchmark(
        plan, players, question.folder, asking=RunOptions(**part_of(Calling, question)),
        options=options, blocked=blocked, tell=question.say, watch=watch,
    )  # fmt: skip
    nothing = played.cells["trials"].sum() and not played.cells["readable"].sum()
    code = 3 if nothing else 0 if played.complete else 1
    if alone:
        said = only_claims(question.folder, plan, alone, options)
        return replace(said, exit_code=_code(question, played, code))
    return _result(question, played, code)


def _code(question: AskBenchmark, played: Played, code: int) -> int:
    """Return the exit code; a cell below --fail-under makes one of 0 one of 4."""
    few = below(played.cells, question.fail_under).any()
    return TOO_FEW if few and not code else code


def _result(question: AskBenchmark, played: Played, code: int) -> Result:
    """Return the whole page."""
    result = benchmark_result(played, fail_under=question.fail_under)
    return result.about(exit_code=_code(question, played, code))


def _shown(question: AskBenchmark, plan: Plan, alone: str) -> Result | Text:
    """Return the page of what is in the folder, or its claims or numbers alone."""
    if alone:
        return only_claims(question.folder, plan, alone, _options(question))
    return _result(question, read_benchmark(question.folder), 0)


def _people_alone(question: AskBenchmark) -> list[Path]:
    """Return the file of people's trials where the page has no place for their values."""
    if question.people is None or paper_of(question.name).people:
        return []
    return [Path(question.people)]


def _options(question: AskBenchmark) -> dict[str, Any]:
    """Return what the page is made of besides the trials."""
    for name, file in (("--features", question.features), ("--people", question.people)):
        if file is not None and not Path(file).is_file():
            raise ValueError(f"{name} is a CSV file; there is none at {file}.")
    if question.features is not None:
        read_features(Path(question.features))
    return {
        "small": question.small or None,
        "seed": question.seed,
        "paraphrases": question.paraphrases if question.paraphrases > 1 else None,
        "templates": None
        if question.templates is None
        else str(Path(question.templates).absolute()),
        "features": None if question.features is None else str(Path(question.features).absolute()),
        "people": None
        if question.people is None or _people_alone(question)
        else str(Path(question.people).absolute()),
    }
