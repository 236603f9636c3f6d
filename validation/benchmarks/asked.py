"""`benchmark`: models take a paper's experiments, or answers that there are are taken in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from knownminds.llm_adapters.runs.admission import Caps
from knownminds.llm_adapters.runs.runner import Retries, RunOptions
from knownminds.validation.engine.question import verb
from knownminds.validation.engine.result import Result, Text

from .benchmark import take_answers
from .page import benchmark_result, only_claims, read_result
from .plan import Plan, read_plan
from .questions import AskBenchmark
from .registry import paper_of, plan_of
from .running import (
    blocked_of,
    estimate,
    estimate_text,
    players_of,
    run_benchmark,
    watching,
)

SHOWN = "-"  # the plan that --plan without a file asks to see

benchmark = verb(AskBenchmark, __name__)


def compute(question: AskBenchmark) -> Result | Text:
    """Answer `benchmark`."""
    if question.plan == SHOWN:
        return Text(plan_of(question.name).read_text(encoding="utf-8").rstrip("\n"))
    how = {name: getattr(question, name) for name in ("small", "seed", "paraphrases")}
    plan = read_plan(question.name, question.plan, **how)
    reach = {name: getattr(question, name) for name in ("base_url", "key_variable", "timeout")}
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
    players = players_of(plan, question.llm, prices=question.price, images=question.images, **reach)
    blocked = blocked_of(plan, players)
    about = estimate_text(estimate(plan, players, blocked))
    if question.dry_run:
        return Text(about)
    question.say(about)
    asking = RunOptions(
        caps=question.caps or Caps(),
        concurrency=question.concurrency,
        retries=Retries(attempts=question.attempts),
        re_ask=question.re_ask,
        retry_errors=question.retry_errors,
        seeded=not question.no_seed,
    )
    watch = None if question.progress is None else watching(plan, players, question.progress)
    played = run_benchmark(
        plan, players, question.folder, asking=asking, options=options, blocked=blocked,
        tell=question.say, watch=watch,
    )  # fmt: skip
    nothing = played.cells["trials"].sum() and not played.cells["readable"].sum()
    code = 3 if nothing else 0 if played.complete else 1
    if alone:
        return only_claims(question.folder, plan, alone)
    return benchmark_result(played).about(exit_code=code)


def _shown(question: AskBenchmark, plan: Plan, alone: str) -> Result | Text:
    """Return the page of what is in the folder, or its claims or numbers alone."""
    if alone:
        return only_claims(question.folder, plan, alone)
    return read_result(question.folder)


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
    return {
        "small": question.small or None,
        "seed": question.seed,
        "paraphrases": question.paraphrases if question.paraphrases > 1 else None,
        "features": None if question.features is None else str(question.features),
        "people": None
        if question.people is None or _people_alone(question)
        else str(question.people),
    }
