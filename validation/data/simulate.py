"""Trials of known agents, or a prior predictive check of them."""

from __future__ import annotations

from pathlib import Path

from knownminds.environments import Trials
from knownminds.environments.record.folders import check_writable, writable
from knownminds.validation.engine.arguments import (
    check_lapse,
    check_truth,
    resolve_chosen,
    resolve_environment,
)
from knownminds.validation.engine.question import verb
from knownminds.validation.engine.result import Result
from knownminds.validation.engine.simulated_data import simulated_data

from .questions import Simulate

simulate = verb(Simulate, __name__)


def compute(question: Simulate) -> Trials | Result:
    """Answer `simulate`."""
    if question.report:
        from .prior import compute as check

        return check(question)
    environment = resolve_environment(question.environment, question.trials)
    model = question.agent
    model.check_plays(environment)
    out = None if question.out is None else Path(question.out)
    if out is not None:
        if out.suffix not in (".csv", ".parquet"):
            raise ValueError(f"Trials are kept as .parquet or .csv; got {out.name!r}.")
        check_writable(out)
    trials = simulated_data(
        model,
        environment,
        subjects=question.subjects,
        sessions=question.sessions,
        seed=question.seed,
        truth=check_truth(model.parameters, question.truth),
        lapse=check_lapse(question.lapse),
        chosen=resolve_chosen(environment, question.questions, question.adaptive),
    )
    if out is not None:
        with writable(out.parent):
            trials.save(out)
    return trials
