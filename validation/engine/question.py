"""What a study is asked, said once.

A question is a frozen dataclass. Its fields are the arguments of the function that answers it and,
with how each is typed, the options of the command; what was asked goes into the study's identity,
and a command line that asks it again follows from there. Nothing here is slow to import.
"""

from __future__ import annotations

import inspect
import json
import os
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Generic,
    ParamSpec,
    TypeVar,
    cast,
    dataclass_transform,
)

import typer

from knownminds.validation.completion import completes, given_model, named_or_usual
from knownminds.validation.completion import named as check_member
from knownminds.validation.options import DesignName, Out, Workers
from knownminds.validation.reading import (
    read_numbers,
    read_settings,
    read_texts,
    resolve_experiment,
)

from .notebook import notebook_bar

if TYPE_CHECKING:
    from .engine import Progress, Running

P = ParamSpec("P")
R = TypeVar("R", covariant=True)
T = TypeVar("T")


@dataclass(frozen=True)
class Typed:
    """How a field is typed on the command line.

    Parameters
    ----------
    option
        The type with its Typer option or argument.
    untyped
        Its value there if nothing is typed.
    name
        Of the option; the field's if "".
    read
        Makes the field's value of what is typed.
    """

    option: Any
    untyped: Any
    name: str = ""
    read: Callable[[Any], Any] | None = None


def asks(
    option: Any,
    *,
    default: Any = MISSING,
    untyped: Any = MISSING,
    name: str = "",
    read: Callable[[Any], Any] | None = None,
    kw_only: bool = True,
) -> Any:
    """Return a field of a question with its option; see `Typed`.

    Parameters
    ----------
    default
        Of the function's argument; without one it must be given.
    """
    untyped = default if untyped is MISSING else untyped
    how = Typed(option, inspect.Parameter.empty if untyped is MISSING else untyped, name, read)
    return field(default=default, kw_only=kw_only, metadata={"typed": how})


def option(
    kind: Any,
    help: str,
    default: Any = MISSING,
    *,
    flag: str = "",
    completion: Callable[[str], list[str]] | None = None,
    **how: Any,
) -> Any:
    """Return a field of a question that is typed as an option of this kind; see `asks`."""
    told = typer.Option(*([flag] if flag else []), help=help, autocompletion=completion)
    annotated: Any = Annotated
    return asks(annotated[kind, told], default=default, **how)


# Fields whose words the shell completes, and that are refused early where they name no member.
MEMBERS = {
    "environment": "environment",
    "model": "model",
    "models": "model",
    "adaptive": "model",
    "measure": "measure",
    "measures": "measure",
}
# Of a field's annotation: how it is typed. The first that fits counts.
KINDS: tuple[tuple[str, Any], ...] = (
    ("Mapping[str, float]", list[str]),
    ("Mapping[str, Any]", list[str]),
    ("Mapping[str, str]", list[str]),
    ("Sequence[int]", list[int]),
    ("Sequence[float]", list[float]),
    ("Sequence[", list[str]),
    ("bool", bool),
    ("Path", Path),
    ("float", float),
    ("int", int),
)


# Type checkers read `default` and `kw_only` off the calls alone, where they are said by name.
def named(flag: str, *, default: Any = MISSING) -> Any:
    """Return a field whose option has another name, "--set" for instance, or "--a,--b"."""
    return field(default=default, metadata={"flag": flag})


def read_with(read: Callable[[Any], Any], *, default: Any = MISSING, kw_only: bool = True) -> Any:
    """Return a field whose words a function reads."""
    return field(default=default, kw_only=kw_only, metadata={"read": read})


def argument(*, default: Any = MISSING, kw_only: bool = False) -> Any:
    """Return a field that is typed without a name, and is given in Python without one."""
    return field(default=default, kw_only=kw_only, metadata={"argument": True})


def positional(flag: str = "", *, default: Any = MISSING, kw_only: bool = False) -> Any:
    """Return a field that may be given in Python without its name."""
    return field(default=default, kw_only=kw_only, metadata={"flag": flag})


def declared(own: Any, help: str) -> Typed:
    """Return how a field is typed, from its annotation, its default and its help."""
    kind = next((kind for text, kind in KINDS if text in own.type), str)
    if "read" in own.metadata:
        kind = str
    flag = own.metadata.get("flag") or f"--{own.name.removesuffix('_').replace('_', '-')}"
    read = own.metadata.get("read")
    if read is None and "Mapping[str, float]" in own.type:
        read = partial(read_numbers, flag)
    elif read is None and "Mapping[str, Any]" in own.type:
        read = read_settings
    elif read is None and "Mapping[str, str]" in own.type:
        read = partial(read_texts, flag)
    member = MEMBERS.get(own.name)
    more: dict[str, Any] = {"help": help}
    if member:
        more["autocompletion"] = completes(f"{member}s")
    annotated: Any = Annotated
    if own.metadata.get("argument"):
        if member and member != "measure":  # audits have names besides
            more["callback"] = check_member(member)
        return Typed(annotated[kind, typer.Argument(**more)], inspect.Parameter.empty)
    if own.name == "model":
        more["callback"] = given_model if "None" in own.type else named_or_usual
    flags = flag.split(",")
    if kind is bool:
        return Typed(annotated[bool, typer.Option(*flags, **more)], False)
    if own.default not in (MISSING, None, "", ()):
        more["help"] = f"{help} Default: {own.default}."  # Rich takes brackets for markup
    return Typed(annotated[kind | None, typer.Option(*flags, **more)], None, read=read)


def field_helps(kind: type) -> dict[str, str]:
    """Return the first sentence about each parameter in a class's docstring, or in its bases'."""
    helps: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        text = inspect.cleandoc(base.__doc__ or "")
        _, _, listed = text.partition("Parameters\n----------\n")
        listed, _, _ = listed.partition("\n\n")
        names: list[str] = []
        for line in listed.splitlines():
            if not line.startswith(" "):
                names = [name.strip() for name in line.split(",")]
                helps |= dict.fromkeys(names, "")
            else:
                for name in names:
                    helps[name] = f"{helps[name]} {line.strip()}".strip()
    return {name: re.split(r"(?<=\.) ", text)[0] for name, text in helps.items()}


@dataclass_transform(
    kw_only_default=True,
    frozen_default=True,
    field_specifiers=(asks, option, field, named, argument, positional, read_with),
)
def frozen_question(kind: type[T]) -> type[T]:
    """Make a frozen dataclass of a question; its arguments have names but where `asks` says so."""
    return dataclass(frozen=True, kw_only=True)(kind)


@frozen_question
class Question(Generic[R]):
    """What a command is asked."""

    command: ClassVar[str]
    help: ClassVar[str] = ""  # the docstring's first line where it is empty
    verb: ClassVar[str]  # the function's name

    def answer(self) -> R:
        """Compute the answer."""
        raise NotImplementedError

    @classmethod
    def typed(cls) -> dict[str, Typed]:
        """How each field is typed, in order, but for those of `StudyQuestion`."""
        helps = field_helps(cls)
        running = {"tell"} | _running(cls)
        options: dict[str, Typed] = {}
        for own in fields(cls):
            # A subclass that narrows a field's type does not repeat how it is typed.
            known = (vars(base).get("__dataclass_fields__", {}) for base in cls.__mro__)
            given = (at[own.name].metadata.get("typed") for at in known if own.name in at)
            how = next(filter(None, given), None)
            if how is not None:
                options[own.name] = how
            elif own.name not in running:
                options[own.name] = declared(own, helps.get(own.name, ""))
        return options

    @classmethod
    def defaults(cls) -> dict[str, Any]:
        """Values of the fields that need not be given."""
        return {own.name: own.default for own in fields(cls) if own.default is not MISSING}

    def asked(self) -> dict[str, Any]:
        """What was asked, by the names of the options."""
        told: dict[str, Any] = {}
        for name, how in self.typed().items():
            if hasattr(self, name):
                value = getattr(self, name)
                told[_option(name, how)] = dict(value) if isinstance(value, Mapping) else value
        return told

    @classmethod
    def of_typed(cls, given: Mapping[str, Any]) -> Question[Any]:
        """Make a question of what was typed; what was not typed is as the function has it."""
        return cls(**cls.read(given))

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments that were typed."""
        found: dict[str, Any] = {}
        own = {field.name for field in fields(cls)}
        for name, how in cls.typed().items():
            value = given[how.name or name]
            if value is not None and name in own and name != "truth":
                found[name] = value if how.read is None else how.read(value)
        return found


@frozen_question
class StudyQuestion(Question[R]):
    """What a study is asked; the fields here say where and how it is computed, see `Running`."""

    workers: int | None = None
    backend: str | None = None
    scheduler: str | None = None
    share: str | None = None
    out: str | os.PathLike[str] | None = None
    progress: Progress | None = None

    @property
    def running(self) -> Running:
        """Where and how it is computed."""
        return cast("Running", {own.name: getattr(self, own.name) for own in fields(StudyQuestion)})

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments that were typed, and where and how to compute."""
        running = {own.name: given.get(own.name) for own in fields(StudyQuestion)}
        return {**super().read(given), **running}


def _running(kind: type) -> set[str]:
    """Return the fields of a study's question that say where and how it is computed."""
    return {own.name for own in fields(StudyQuestion)} if issubclass(kind, StudyQuestion) else set()


# How is typed what all studies share.
RUNNING = {
    "workers": Typed(Workers, None),
    "backend": Typed(
        Annotated[str | None, typer.Option(help="processes, threads, or dask with --scheduler.")],
        None,
    ),
    "scheduler": Typed(
        Annotated[str | None, typer.Option(help="tcp://HOST:PORT of a dask cluster.")], None
    ),
    "share": Typed(
        Annotated[
            str | None,
            typer.Option(help="2/3: only the second third; all into one folder."),
        ],
        None,
    ),
    "out": Typed(Out, None),
}


@frozen_question
class ExperimentQuestion(StudyQuestion[R]):
    """What is asked of models in an experiment.

    Subclasses have `environment`, `trials`, `truth` typed as --set, and `model` or `models`.
    """

    @classmethod
    def typed(cls) -> dict[str, Typed]:
        """Its own fields, and which of an experiment's designs is meant: one of its settings."""
        found: dict[str, Typed] = {}
        for name, how in super().typed().items():
            found[name] = how
            if name == "trials":
                found["design"] = Typed(DesignName, None)
        return found

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments; of --set, parameters are true values and the others settings."""
        from .arguments import resolve_model

        found = super().read(given)
        models = cls.named(found)
        agents = [resolve_model(model) for model in models]
        values = given["values"] if "values" in given else given["truth"]
        found["environment"], found["truth"] = resolve_experiment(
            given["environment"], agents, None, values, given["design"]
        )
        return found

    @classmethod
    def named(cls, found: Mapping[str, Any]) -> Sequence[str]:
        """Return the names of the models that were typed."""
        names: Sequence[str] = found.get("models") or [found["model"]]
        return names

    def asked(self) -> dict[str, Any]:
        """What was asked: names, not things, and no setting that is the experiment's own."""
        from .arguments import resolve_environment, resolve_model, settings_asked

        environment = resolve_environment(getattr(self, "environment"))  # noqa: B009 - of a subclass
        told = super().asked()
        told["subject_matter"] = environment.name
        truth = {name: float(value) for name, value in (told["set"] or {}).items()}
        told["set"] = {**truth, **settings_asked(environment)}
        model = told["model"]
        several = isinstance(model, Sequence) and not isinstance(model, str)
        names = [resolve_model(one).name for one in (model if several else [model])]
        told["model"] = names if several else names[0]
        return told


def _option(name: str, how: Typed) -> str:
    """Return the name of an option without its dashes; the argument is the subject matter."""
    (info,) = how.option.__metadata__
    if isinstance(info, typer.models.ArgumentInfo):
        return "subject_matter"
    # Within Annotated, Typer takes the first of the flags for a default.
    flag = info.default
    return flag.lstrip("-").replace("-", "_") if isinstance(flag, str) else how.name or name


def verb(question: Callable[P, Question[R]], module: str) -> Callable[P, R]:
    """Return the function that answers a question: its arguments are the question's fields.

    In a notebook it shows how far it is, where the question takes a `progress` and none was given.

    Parameters
    ----------
    module
        In which it is a name.
    """

    kind = cast("type[Question[Any]]", question)
    watched = "progress" in {own.name for own in fields(kind)}

    def ask(*args: P.args, **asked: P.kwargs) -> R:
        own = question(*args, **asked)
        if not watched or getattr(own, "progress") is not None:  # noqa: B009 - of a subclass
            return own.answer()
        with notebook_bar(kind.verb) as bar:
            shows: Any = own if bar is None else replace(cast("Any", own), progress=bar)
            answer: R = shows.answer()
            return answer

    ask.__name__ = ask.__qualname__ = kind.verb
    ask.__module__, ask.__doc__ = module, kind.__doc__
    # In a dataclass the fields of its base come first.
    running = _running(kind)
    arguments = inspect.signature(kind).parameters.values()
    ordered = sorted(arguments, key=lambda argument: argument.name in running)
    ask.__signature__ = inspect.Signature(ordered)  # type: ignore[attr-defined]
    return ask


def command_line(command: str, *about: str, **options: Any) -> str:
    """Return a command line.

    Parameters
    ----------
    about
        Arguments; empty ones are left out.
    options
        By their names, with _ for -. What is None, False or empty is left out, True is a flag,
        and of a mapping (NAME=VALUE) or list each entry is an option of its own.
    """
    words = ["knownminds", command, *about]
    for name, value in options.items():
        flag = f"--{name.replace('_', '-')}"
        if value is None or value is False:
            continue
        if value is True:
            words.append(flag)
        elif isinstance(value, Mapping):
            for key, one in value.items():
                words += [flag, f"{key}={_told(one)}"]
        elif isinstance(value, list | tuple):
            for one in value:
                words += [flag, _told(one)]
        else:
            words += [flag, _told(value)] if value != "" else []
    return shlex.join(word for word in words if word)


def in_one(values: Mapping[str, str]) -> str:
    """Write pairs as options that hold several have them: ours=yours,..."""
    return ",".join(f"{name}={value}" for name, value in values.items())


def _told(value: Any) -> str:
    if isinstance(value, float):
        return repr(float(value)).removesuffix(".0")  # repr: all digits, or the study is another
    return str(value) if isinstance(value, str | Path) else json.dumps(value)
