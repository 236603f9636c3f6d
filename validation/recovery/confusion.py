"""`confuse`: how often the best-fitting model is the true one, and the smallest design for it."""

from __future__ import annotations

from pathlib import Path

from knownminds.validation.engine.engine import run
from knownminds.validation.engine.population import check_step_loop
from knownminds.validation.engine.question import verb
from knownminds.validation.engine.result import Result
from knownminds.validation.engine.study import Rows, read_study

from . import smallest_comparison
from .model_recovery import confusion_study, say, score_batch
from .questions import Confuse

confuse = verb(Confuse, __name__)


def compute(question: Confuse) -> Result:
    """Answer `confuse`: designs, or the smallest one."""
    if question.find is not None:
        return smallest_comparison.search(question)
    study = confusion_study(question)
    check_step_loop(study)
    return run(study, score_batch, say, question)


def read(folder: str | Path) -> Result:
    """Return what the study in a folder says, also if it is not finished."""
    if read_study(folder)[0].cells[0].step == "start":
        return smallest_comparison.read_search(folder)
    return say(Rows.read(folder))
