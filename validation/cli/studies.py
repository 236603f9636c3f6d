"""Commands of studies: recovery, calibration, power, audits, and their reports."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from knownminds.validation.calibration.questions import Calibrate
from knownminds.validation.design.questions import AskDesign
from knownminds.validation.engine.question import Question, StudyQuestion, frozen_question, option
from knownminds.validation.power.questions import Audit, Power
from knownminds.validation.recovery.questions import Confuse, Recover
from knownminds.validation.referee.questions import Referee

from .application import command, leave
from .interrupts import kept_in
from .output import Form, note, print_json, progress_bar


@frozen_question
class Report(Question[Path]):
    """Draw the report of a folder again, without computing anything anew.

    Parameters
    ----------
    folder
        The folder of a study, a fit, a score or a run.
    """

    command: ClassVar[str] = "report"
    screened: ClassVar[bool] = False

    folder: Path = option(argument=True, kw_only=False)


def run_study(question: StudyQuestion[Any], form: Form) -> None:
    """Compute a study, print its result, and leave its report where a folder was named."""
    from knownminds.validation.engine.engine import ShareDone

    with kept_in(question.out, "parts/*.parquet"):
        with progress_bar(question.command) as progress:
            watched: dict[str, Any] = {"progress": progress}
            if hasattr(question, "tell"):
                watched["tell"] = note
            try:
                result = replace(question, **watched).answer()
            except ShareDone as done:
                note(str(done))
                return
        leave(result, question.out, form)


def _report(question: Report, form: Form) -> None:
    from knownminds.validation.report import drawn

    page, missing = drawn(question.folder)
    if missing:
        note(f"not finished: {missing:,} units are missing")
    if form is Form.JSON:
        print_json({"report": str(page)})
    else:
        print(page)


for study in (Recover, Confuse, Calibrate, Power, AskDesign, Audit, Referee):
    command(study, run_study)
command(Report, _report)
