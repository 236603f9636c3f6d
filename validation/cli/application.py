"""The application, how a question becomes a command, and what is left of an answer."""

from __future__ import annotations

import importlib.metadata
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup

from knownminds.validation.engine.question import Question, TypedOption

from .interrupts import NOTHING_KEPT, Stopped
from .output import Form, note, print_json
from .run_file import typed_values, write_run_file

Json = Annotated[
    bool, typer.Option("--json", metavar=" ", help="Print one JSON object and nothing else.")
]
Full = Annotated[
    bool, typer.Option("--full", metavar=" ", help="Print all tables and notes, not what answers.")
]
Asked = TypeVar("Asked", bound=Question[Any])


def _without_types(parameters: list[Any]) -> list[Any]:
    """Return parameters of which the help shows no types: what may be typed stands in words."""
    for parameter in parameters:
        parameter.display_type = lambda ctx: None
    return parameters


class _Commands(TyperGroup):
    """All commands."""

    def get_params(self, ctx: Any) -> Any:
        """Return all parameters, none of which shows its type."""
        return _without_types(list(super().get_params(ctx)))


app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Simulated agents with known parameters, and the tests that inference must pass on them.",
    epilog="Anywhere: --plugin FILE brings the models, experiments, measures and adapters of a "
    "Python file of your own (repeatable; or listed in knownminds.toml); -q prints the answer "
    "alone, -v each step as well.",
)


def _print_version(wanted: bool) -> None:
    """Print the version and end."""
    if wanted:
        print(f"knownminds {importlib.metadata.version('knownminds')}")
        raise typer.Exit


@app.callback()
def every_command(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Take what goes before a command."""


class Command(TyperCommand):
    """A command that takes an option once, unless it takes a list: no value is passed over."""

    def get_params(self, ctx: Any) -> Any:
        """Return all parameters, none of which shows its type."""
        return _without_types(list(super().get_params(ctx)))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Refuse an option that is given twice."""
        for parameter in self.params:
            values = typed_values(parameter, args)
            single = not (getattr(parameter, "multiple", True) or getattr(parameter, "is_flag", 0))
            if single and len(values) > 1:
                raise ValueError(
                    f"{ctx.info_name} takes {parameter.opts[0]} once; got {' and '.join(values)}."
                )
        return super().parse_args(ctx, args)


def command(
    question: type[Asked],
    run: Callable[[Asked, Form], None],
    parser: type[Command] = Command,
) -> None:
    """Make a command: its options are those of a question's fields, --json and --full.

    Parameters
    ----------
    run
        Called with the question that was typed, and how its answer is printed.
    parser
        What takes the words apart, if they are no plain options.
    """
    options = {**question.options(), "as_json": TypedOption(Json, False)}
    if question.screened:
        options["full"] = TypedOption(Full, False)

    def typed(context: typer.Context, **given: Any) -> None:
        form = Form.of(given.pop("as_json"), given.pop("full", False))
        values = dict(given)
        end: typer.Exit | None = None
        try:
            run(question.of_typed(given), form)  # type: ignore[arg-type]
        except typer.Exit as caught:  # an exit code of a result, which is there
            end = caught
        except KeyboardInterrupt:
            raise Stopped(NOTHING_KEPT) from None
        if values.get("out") is not None and Path(values["out"]).is_dir():
            file = Path(values["out"]) / f"{question.command}.toml"
            write_run_file(file, context.command, values, context.obj or ())
        if end is not None:
            raise end

    keyword = inspect.Parameter.KEYWORD_ONLY
    parameters = [inspect.Parameter("context", keyword, annotation=typer.Context)]
    parameters += [
        inspect.Parameter(name, keyword, default=option.default, annotation=option.kind)
        for name, option in options.items()
    ]
    typed.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    typed.__annotations__ = {p.name: p.annotation for p in parameters}
    text = inspect.cleandoc(question.__doc__ or "").partition("\n\nParameters\n")[0]
    text = re.sub(r"(?<!\n)\n(?!\n)", " ", text)  # a paragraph is wrapped by the screen
    first, _, more = text.partition("\n\n")
    typed.__doc__ = text if "exit code" in more else first
    app.command(question.command, cls=parser)(typed)


def leave(result: Any, out: Any, form: Form) -> None:
    """Print a result, and leave its report in a folder, if there is one."""
    where = "a report with --out FOLDER"
    if out is not None:
        page = result.save(out)
        where = "the report"
        note(f"report: {page}")
    print_result(result, form, where)


def print_result(result: Any, form: Form, where: str) -> None:
    """Print a result: what answers and `where` the rest is, or all of it."""
    if form is Form.JSON:
        print_json(result.to_dict())
    elif not hasattr(result, "screen"):  # which says all there is in some lines
        print(result)
    elif form is Form.FULL:
        print(result.text())
    else:
        print(result.screen(f"--full, or {where}" if where else "--full"))
