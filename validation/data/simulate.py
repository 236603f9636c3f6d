"""Trials of known agents, or a prior predictive check of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from knownminds.environments import Trials
from knownminds.environments.record.csv_cells import csv_text
from knownminds.environments.record.folders import check_writable, writable
from knownminds.environments.record.tabled_result import plain
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


@dataclass(frozen=True)
class Simulated:
    """Trials of known agents, as a command tells of them.

    Parameters
    ----------
    answered : The trials.
    question, trials_per_session : What was asked, and how long a session is.
    """

    answered: Trials
    question: Simulate
    trials_per_session: int

    def __str__(self) -> str:
        out = self.question.out
        if out is None:
            return csv_text(self.answered.frame).rstrip("\n")
        return f"{self.answered}, written to {out}"

    def to_dict(self) -> dict[str, Any]:
        """Return the options, each subject's true values, and the trials or where they are."""
        frame, out = self.answered.frame, self.question.out
        names = [name for name in frame if str(name).startswith("true_")]
        truth = frame.drop_duplicates("subject")[["subject", *names]]
        truth = truth.rename(columns=lambda name: str(name).removeprefix("true_"))
        options = self.question.option_values()
        return {
            **plain(options),
            "environment": options["subject_matter"],
            "trials_per_session": self.trials_per_session,
            "truth": plain(truth),
            **({"trials": plain(frame)} if out is None else {"out": str(out)}),
        }


def compute(question: Simulate) -> Simulated | Result:
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
    return Simulated(trials, question, question.questions or environment.n_trials)
