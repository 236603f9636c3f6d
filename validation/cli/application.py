"""The application, how a question becomes a command, and what is left of an answer."""

from __future__ import annotations

import importlib.metadata
import inspect
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from time import perf_counter
from types import MappingProxyType
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from knownminds.members import unknown
from knownminds.validation.engine.question import Question, ShareDone, TypedOption

from .interrupts import Stopped, is_interrupt, kept_in
from .output import note, note_step, print_json, progress_bar
from .run_file import typed_values, write_run_file

Json = Annotated[
    bool, typer.Option("--json", metavar=" ", help="Print one JSON object and nothing else.")
]
Full = Annotated[
    bool, typer.Option("--full", metavar=" ", help="Print all tables and notes, not what answers.")
]


class _Untyped:
    """Shows no types of parameters in the help: what may be typed stands in words."""

    def get_params(self, ctx: Any) -> Any:
        """Return all parameters."""
        parameters = list(super().get_params(ctx))  # type: ignore[misc]
        for parameter in parameters:
            parameter.display_type = lambda ctx: None
        return parameters


class _Commands(_Untyped, TyperGroup):
    """All commands."""


def _print_version(wanted: bool) -> None:
    """Print the version and end."""
    if wanted:
        print(f"knownminds {importlib.metadata.version('knownminds')}")
        raise typer.Exit


def every_command(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Take what goes before a command."""


ADDED: dict[str, type[Question[Any]]] = {}  # commands of files of the user's


def add(question: type[Question[Any]]) -> None:
    """Add the command of a question in a file of the user's."""
    ADDED[question.command] = question


Misuse: Any = typer.BadParameter.__mro__[1]  # what Typer raises of words that no command takes
# Where that is which somebody looks for who gives a command a name that it does not take.
HINTS = {
    "list": "An experiment's models and measures: `knownminds list --environment NAME`; one thing: "
    "`knownminds show NAME`."
}


class Command(_Untyped, TyperCommand):
    """A command that takes an option once, unless it takes a list: no value is passed over."""

    alone: Mapping[str, str] = MappingProxyType({})  # what options mean without a value

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Refuse an option that is given twice; fill in what one means without a value."""
        pairs = zip(args, [*args[1:], "--"], strict=False)
        bare = self.alone.keys() & {word for word, after in pairs if after.startswith("--")}
        for word in bare:
            args.insert(args.index(word) + 1, self.alone[word])
        for parameter in self.params:
            values = typed_values(parameter, args)
            single = not (getattr(parameter, "multiple", True) or getattr(parameter, "is_flag", 0))
            if single and len(values) > 1:
                raise ValueError(
                    f"{ctx.info_name} takes {parameter.opts[0]} once; got {' and '.join(values)}."
                )
        return super().parse_args(ctx, args)


def sentence_of(error: Any, words: Sequence[str]) -> str:
    """Say what was typed wrongly, and what shows what may be typed."""
    context, text = error.ctx, str(error.format_message()).rstrip(".")
    verb, option = context.info_name, getattr(error, "option_name", "")
    if option:
        flags = [flag for one in context.command.params for flag in one.opts]
        text = unknown(f"option of {verb}", option, flags).rstrip(".")
    elif context.parent is None:
        text = unknown("command", words[0], context.command.commands).rstrip(".")
    elif got := typed_values(error.param, words) if getattr(error, "param", None) else ():
        flag, several = error.param.opts[0], getattr(error.param, "multiple", False)
        if found := re.search("valid (integer|number)", text):
            number = "a whole number" if found[1] == "integer" else "a number"
            text = f"{flag} is {number}" + f"; several are {flag} 1 {flag} 2" * several
        text += f"; got {' and '.join(got)}"
    elif "extra argument" in text:
        text += ". Pairs are one word, NAME=VALUE, and several values repeat their option"
    return f"{text}. {HINTS.get(verb) or f'`{context.command_path} -h` shows what may be typed.'}"


def application(
    questions: Mapping[type[Question[Any]], str], with_options: bool = True
) -> typer.Typer:
    """Return the application of these questions, in panels of the help."""
    app = typer.Typer(
        cls=_Commands,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        help="Simulated agents with known parameters, and the tests that inference must pass on "
        "them.",
        epilog="Anywhere: --plugin FILE brings the models, experiments, measures and adapters of a "
        "Python file of your own (repeatable; or listed in knownminds.toml); -q prints the answer "
        "alone, -v each step as well.",
    )
    app.callback()(every_command)
    for question, panel in questions.items():
        _add(app, question, panel, with_options)
    return app


def _add(app: typer.Typer, question: type[Question[Any]], panel: str, with_options: bool) -> None:
    """Add a command: its options are those of the question's fields."""
    options = {**question.options(), "as_json": TypedOption(Json, False)} if with_options else {}
    if question.screened and with_options:
        options["full"] = TypedOption(Full, False)

    def typed(context: typer.Context, **given: Any) -> None:
        as_json, full = given.pop("as_json"), given.pop("full", False)
        if as_json and full:
            raise ValueError("--json prints all there is; --full is given beside it. Leave it out.")
        values = dict(given)
        code = _answer(question.of_typed(given), as_json, full or not question.screened)
        if values.get("out") is not None and Path(values["out"]).is_dir():
            file = Path(values["out"]) / f"{question.command}.toml"
            write_run_file(file, context.command, values, context.obj or ())
            note_step(f"run file: {file}")
        if code:
            raise typer.Exit(code)

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
    alone = {f"--{one.name}": one.metadata.get("alone") for one in fields(question)}
    kind = type("Command", (Command,), {"alone": {k: v for k, v in alone.items() if v}})
    app.command(question.command, cls=kind, rich_help_panel=panel)(typed)


def _answer(question: Question[Any], as_json: bool, full: bool) -> int:
    """Answer a question, print the answer, leave its page in a folder; return the exit code."""
    folder, where = question.left_in, "a report with --out FOLDER"
    question.check_folder()
    began = perf_counter()
    try:
        with progress_bar(question.command) as draw:
            told = {"tell": note, "progress": draw}
            named = {one.name for one in fields(question)}
            said = replace(question, **{k: v for k, v in told.items() if k in named}).said()
        if said is None:
            return 0
        if folder is not None:
            where = "the report"
        if page := question.leave(said):
            note(f"report: {page}")
    except ShareDone as done:
        note(str(done))
        return 0
    except (KeyboardInterrupt, SystemError) as stopped:  # numba says the latter of an interrupt
        if not is_interrupt(stopped):
            raise
        said = str(stopped) if isinstance(stopped, KeyboardInterrupt) else ""
        raise Stopped(said or kept_in(folder)) from None
    note_step(f"{question.command}: answered in {perf_counter() - began:.1f} s")
    if as_json:
        print_json(said.to_dict())
    elif not hasattr(said, "screen"):  # which says all there is in some lines
        print(said)
    elif full:
        print(said.text())
    else:
        print(said.screen(f"--full, or {where}"))
    return getattr(said, "exit_code", 0)
