"""`power`: designs, the smallest of them, a stopping rule, or rival models."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

from knownminds.validation.engine.question import verb
from knownminds.validation.engine.result import Result
from knownminds.validation.engine.study import Rows, read_study
from knownminds.validation.recovery.questions import Confuse

from . import sequential, smallest_design
from .pilot import is_of_wordings
from .power_study import REPLICATES, designs, say
from .questions import Power
from .wordings import planned

power = verb(Power, __name__)


def compute(question: Power) -> Result:
    """Answer `power`: designs, a search, a stopping rule, rival models, or wordings."""
    if is_of_wordings(question.pilot):
        return planned(question)
    if question.against:
        result: Result = confusion_of(question).said()
        return result
    if question.find is not None:
        return smallest_design.search(question)
    if question.stop is not None:
        return sequential.stopping(question)
    return designs(question)


def read(folder: str | Path) -> Result:
    """Return what the study in a folder says, also if it is not finished."""
    study, _ = read_study(folder)
    if study.cells[0].step == "start":
        return smallest_design.read_search(Path(folder))
    if study.cells[0].analysis.rule:
        return sequential.say(Rows.read(folder))
    return say(Rows.read(folder))


def confusion_of(question: Power) -> Confuse:
    """Return the comparison of models of `against`."""
    allowed = (
        "environment", "model", "against", "criterion", "subjects", "sessions", "trials",
        "replicates", "truth", "pilot", "unconverged", "seed", "tell", *vars(question.running),
    )  # fmt: skip
    for option in fields(Power):
        if option.name not in allowed and getattr(question, option.name) != option.default:
            raise ValueError(
                "With --against models are compared and no effect is looked for; got "
                f"--{option.name.replace('_', '-')}. Leave one of them out."
            )
    return Confuse(
        question.environment,
        [question.agent, *question.against],
        criteria=[question.criterion],
        subjects=question.subjects,
        sessions=question.sessions,
        trials=question.trials,
        replicates=question.replicates or REPLICATES,
        truth=question.truth,
        pilot=question.pilot,  # type: ignore[arg-type]
        unconverged=question.unconverged,
        seed=question.seed,
        **vars(question.running),
    )
