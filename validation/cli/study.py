"""Commands of questions, and what all studies share: what is left of an answer."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from typer.core import TyperCommand

from knownminds.validation.cli.application import app
from knownminds.validation.cli.output import notes, print_json, progress_bar, tell
from knownminds.validation.engine.question import RUNNING, Question, StudyQuestion, Typed
from knownminds.validation.options import Json

_KIND = inspect.Parameter.KEYWORD_ONLY


def command(
    question: type[Question[Any]],
    more: Mapping[str, Typed],
    run: Callable[[dict[str, Any]], None],
    parser: type[TyperCommand] | None = None,
) -> None:
    """Make a command: its options are those of a question's fields, some more, and --json.

    Parameters
    ----------
    run
        Called with what was typed.
    parser
        What takes the words apart, if they are no plain options.
    """
    options = {**question.typed(), **more, "as_json": Typed(Json, False)}

    def typed(**given: Any) -> None:
        run(given)

    parameters = [
        inspect.Parameter(how.name or name, _KIND, default=how.untyped, annotation=how.option)
        for name, how in options.items()
    ]
    typed.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    typed.__annotations__ = {p.name: p.annotation for p in parameters}
    typed.__doc__ = question.help or (question.__doc__ or "").partition("\n")[0]
    app.command(question.command, cls=parser)(typed)


def study(question: type[StudyQuestion[Any]]) -> None:
    """Make a command of a question that a study answers."""

    def run(given: dict[str, Any]) -> None:
        from knownminds.validation.engine.engine import ShareDone

        with progress_bar(question.command) as progress:
            try:
                watched = {"progress": progress, "tell": _note}
                result = question.of_typed(given | watched).answer()
            except ShareDone as done:
                notes.print(str(done), markup=False, soft_wrap=True)
                return
        if given["out"] is None:
            notes.print("--out FOLDER keeps rows and report, and goes on where it was stopped.")
        leave(result, given)

    command(question, RUNNING, run)


def _note(text: str) -> None:
    notes.print(text, markup=False, soft_wrap=True)


def leave(result: Any, given: Mapping[str, Any]) -> None:
    """Print a result, and leave its report where one was asked for."""
    from knownminds.validation.pages.result_page import write_page

    if given["out"] is not None:
        notes.print(f"report: {write_page(result, given['out'])}", markup=False, soft_wrap=True)
    if given["as_json"]:
        print_json(result.to_dict())
    else:
        tell(result)
