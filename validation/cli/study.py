"""What all studies share: a command of a question, and what is left of its answer."""

from __future__ import annotations

import inspect
from typing import Any

from knownminds.validation.cli.application import app
from knownminds.validation.cli.output import notes, print_json, progress_bar
from knownminds.validation.engine.question import StudyQuestion, Typed
from knownminds.validation.options import Json


def study(question: type[StudyQuestion[Any]]) -> None:
    """Make a command of a question: its options are those of the fields."""

    def command(as_json: bool, **given: Any) -> None:
        _answer(question, given, as_json)

    options = [*question.typed().items(), *question.typed_running().items()]
    parameters = [_parameter(name, how) for name, how in options]
    json = inspect.Parameter("as_json", _KIND, default=False, annotation=Json)
    command.__signature__ = inspect.Signature([*parameters, json])  # type: ignore[attr-defined]
    command.__annotations__ = {p.name: p.annotation for p in (*parameters, json)}
    command.__doc__ = question.help
    app.command(question.command)(command)


_KIND = inspect.Parameter.KEYWORD_ONLY


def _parameter(name: str, how: Typed) -> inspect.Parameter:
    return inspect.Parameter(how.name or name, _KIND, default=how.untyped, annotation=how.option)


def _answer(question: type[StudyQuestion[Any]], given: dict[str, Any], as_json: bool) -> None:
    """Compute a study, show its result, and leave its report."""
    from knownminds.validation.engine.engine import ShareDone
    from knownminds.validation.report import write_report

    with progress_bar(question.command) as progress:
        try:
            result = question.of_typed(given | {"progress": progress}).answer()
        except ShareDone as done:
            notes.print(str(done), markup=False, soft_wrap=True)
            return
    if given["out"] is None:
        notes.print(
            "Computed in a temporary folder, now removed; --out FOLDER keeps rows and report."
        )
    else:
        notes.print(f"report: {write_report(result, given['out'])}", markup=False, soft_wrap=True)
    if as_json:
        print_json(result.to_dict())
    else:
        print(result)
