"""What a command answers, declared once.

A question is a frozen dataclass. Its fields are the arguments of the function that answers it and
the options of the command, its docstring is the help of both; the options go into a study's
identity, and a command line that asks it again follows from there. Nothing here is slow to import.
"""

from __future__ import annotations

import inspect
import json
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from datetime import date
from functools import partial
from importlib import import_module
from numbers import Integral, Real
from pathlib import Path
from textwrap import fill, indent
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Generic,
    Literal,
    ParamSpec,
    TypeVar,
    cast,
    dataclass_transform,
    get_args,
)

import typer

from knownminds import calling
from knownminds.members import packages, unknown
from knownminds.validation import reading
from knownminds.validation.completion import check_member, completes
from knownminds.validation.studies import STUDY, check_own_folder, check_same_question

if TYPE_CHECKING:
    from knownminds.agents import Model
    from knownminds.environments import Environment

P = ParamSpec("P")
R = TypeVar("R", covariant=True)
T = TypeVar("T")
# How a value is typed, where help begins with it: "NAME=VALUE: a true parameter".
TYPED = re.compile(r"^([A-Z]+=[A-Z]+|LOW-HIGH|YYYY-MM-DD|ours=yours,\.\.\.)[:,.]? ")
# What the functions of all questions raise.
RAISES = (
    "Raises", "------", "TypeError",
    "    If an argument is missing, or of another type than the signature says.", "ValueError",
    "    If a name is unknown (the nearest are named), a value lies outside its range, arguments",
    "    contradict each other, or a folder holds something else. Nothing is written then.",
)  # fmt: skip
GRID = "Several give a grid."  # where a size may be a list
RARE = "Rarely needed"  # the title of the group of rare options

# Fields whose words the shell completes.
MEMBERS = {
    "environment": "environment",
    "model": "model",
    "models": "model",
    "adaptive": "model",
    "measure": "measure",
    "measures": "measure",
}
# Fields whose options have other names, and those whose words are read in a way of their own.
FLAGS = {
    "settings": "--set",
    "truth": "--set",
    "pilot": "--from",
    "fixed": "--fix",
    "caps": "--cap",
    "contaminants": "--contaminate",
}
READ = {"temperature": reading.read_temperature, "columns": reading.read_mapping}
# Of a field's annotation: how it is typed, and what reads the words, if not Typer. The first that
# fits counts.
KINDS: tuple[tuple[str, Any, Callable[[str, Any], Any] | None], ...] = (
    ("Mapping[str, float]", list[str], reading.read_numbers),
    ("Mapping[str, Any]", list[str], reading.read_settings),
    ("Mapping[str, str]", list[str], reading.read_texts),
    ("Caps", list[str], reading.read_caps),
    ("Contaminants", list[str], reading.read_contaminants),
    ("date", str, reading.read_day),
    ("tuple[int, int]", str, reading.read_range),
    ("Sequence[int]", list[int], None),
    ("Sequence[float]", list[float], None),
    ("Sequence[Path]", list[Path], None),
    ("Sequence[", list[str], None),
    ("bool", bool, None),
    ("Path", Path, None),
    ("float", float, None),
    ("int", int, None),
    ("", str, None),
)
RANGES, SIZES = ("reasoning", "image_tokens"), ("subjects", "sessions", "trials")


# Type checkers read `default` and `kw_only` off the calls alone, where they are given by name.
def option(
    flag: str = "",
    *,
    default: Any = MISSING,
    kw_only: bool = True,
    argument: bool = False,
    of: tuple[str, ...] = (),
    read: Callable[[Any], Any] | None = None,
    alone: str = "",
) -> Any:
    """Return a field of a question that is not typed as its annotation says.

    Parameters
    ----------
    flag : "--set" for instance, or "--a,--b"; "" for one that is called as the field
    kw_only : whether it has a name in Python
    argument, of : whether it is typed without a name; of members, which kinds it may be
    read : what reads its word
    alone : what the option means without a value, if it may stand without one
    """
    metadata = {"flag": flag, "argument": argument, "of": of, "read": read, "alone": alone}
    return field(default=default, kw_only=kw_only, metadata=metadata)


@dataclass(frozen=True)
class TypedOption:
    """How a field is typed on the command line.

    Parameters
    ----------
    kind : the type with its Typer option or argument
    default : its value there if nothing is typed
    flag : of the option, "--set" for instance; "" of an argument
    read : makes the field's value of what is typed
    """

    kind: Any
    default: Any
    flag: str = ""
    read: Callable[[Any], Any] | None = None

    @property
    def name(self) -> str:
        """The option without its dashes; an argument is the subject matter."""
        first = self.flag.split(",")[0].split("/")[0]
        return first.removeprefix("--").replace("-", "_") or "subject_matter"


def option_of(declared: Field[Any], help: str, rare: bool = False) -> TypedOption:
    """Return how a field is typed, from its annotation, its default and its help.

    Rare options stand in a group at the end of a command's help.
    """
    annotation, metadata = str(declared.type), declared.metadata
    kind, reads = next((kind, read) for text, kind, read in KINDS if text in annotation)
    flag, read = flag_of(declared), metadata.get("read")
    if own := READ.get(declared.name):
        kind, reads = str, own
    if read is not None:
        kind = str
    elif reads is not None:
        read = partial(reads, flag)
    member = MEMBERS.get(declared.name)
    more: dict[str, Any] = {"help": help, "metavar": " "}  # of the type the help says enough
    if rare:
        more["rich_help_panel"] = RARE
    if member:
        more["autocompletion"] = completes(f"{member}s")
    annotated: Any = Annotated
    required = inspect.Parameter.empty if declared.default is MISSING else None
    if metadata.get("argument"):
        if kinds := metadata["of"] or ((member,) if member == declared.name else ()):
            more["callback"] = check_member(*kinds)
        kind = kind | None if required is None else kind
        more["metavar"] = declared.name.upper()
        return TypedOption(annotated[kind, typer.Argument(**more)], required, read=read)
    if declared.name == "model":
        more["callback"] = check_member("model")
    if choices := choices_of(declared):
        more["callback"] = one_of_choices(flag, choices)
    if "int | Sequence[int]" in annotation:
        more["help"] = help = f"{help} {GRID}"
    if kind is bool:
        flags = flag if declared.default is False else f"{flag}/--no-{flag[2:]}"
        return TypedOption(annotated[bool, typer.Option(flags, **more)], declared.default, flag)
    if declared.default not in (MISSING, None, "", (), calling.Caps()):
        usual = declared.default
        usual = "-".join(map(str, usual)) if declared.name in RANGES else usual
        more["help"] = f"{help} Default: {usual}."  # Rich takes brackets for markup
    kind = kind | None if required is None else kind
    return TypedOption(
        annotated[kind, typer.Option(*flag.split(","), **more)], required, flag, read
    )


def flag_of(declared: Field[Any]) -> str:
    """Return the option of a field."""
    usual = f"--{declared.name.removesuffix('_').replace('_', '-')}"
    return str(declared.metadata.get("flag") or FLAGS.get(declared.name, usual))


def choices_of(declared: Field[Any]) -> Sequence[str]:
    """Return what a field's annotation lets it be; nothing if that is no Literal."""
    found = re.match(r"Literal\[([^\]]*)\]", str(declared.type))
    named = get_args(getattr(calling, str(declared.type).partition(" ")[0], None))
    return re.findall(r"[\w-]+", found[1]) if found else named


def one_of_choices(flag: str, choices: Sequence[str]) -> Callable[[str | None], str | None]:
    """Return what refuses a word that is none of the choices, and names the nearest."""

    def check(value: str | None) -> str | None:
        if value is None or value in choices:
            return value
        raise ValueError(unknown(flag.strip("-"), value, choices))

    return check


def field_texts(kind: type) -> dict[str, str]:
    """Return what a class's docstring, or those of its bases, say of each parameter."""
    texts: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        text = inspect.cleandoc(base.__doc__ or "")
        _, _, listed = text.partition("Parameters\n----------\n")
        for entry in re.split(r"\n(?! )", listed.partition("\n\n")[0]):
            names, _, told = entry.partition(" : ")
            texts |= dict.fromkeys(names.split(", "), " ".join(told.split()))
    return texts


def field_helps(kind: type) -> dict[str, str]:
    """Return the first sentence about each parameter."""
    return {
        name: re.split(r"(?<!\.\.)(?<=\.) ", text)[0] for name, text in field_texts(kind).items()
    }


def documented(kind: type[Question[Any]], names: Iterable[str]) -> str:
    """Return the docstring of a question with its fields, also those that its bases describe."""
    flags = {flag_of(one): one.name for one in fields(kind)}
    texts = {name: _as_argument(text, flags) for name, text in field_texts(kind).items()}
    about = inspect.cleandoc(kind.__doc__ or "").partition("\n\nParameters\n----------\n")[0]
    grids = {one.name for one in fields(kind) if "int | Sequence[int]" in str(one.type)}
    texts |= {name: f"{texts[name]} {GRID}" for name in grids}
    listed = [f"{name}\n{indent(fill(texts[name], 92), '    ')}" for name in names]
    return "\n".join([about, "", "Parameters", "----------", *listed, "", *RAISES])


def _as_argument(text: str, flags: Mapping[str, str]) -> str:
    """Return what is said of a field without how it is typed: a mapping is no NAME=VALUE.

    Parameters
    ----------
    flags : the names of fields by their options
    """
    said = re.sub(TYPED, "", text)
    said = said if said == text or re.match(r"\w+=", said) else said[:1].upper() + said[1:]
    return re.sub(r"--[a-z][a-z-]*", lambda found: f"`{flags.get(found[0], found[0])}`", said)


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(field, option))
def frozen_question(kind: type[T]) -> type[T]:
    """Make a frozen dataclass of a question; its arguments have names unless it says otherwise."""
    return dataclass(frozen=True, kw_only=True)(kind)


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(field, option))
def asked_by(
    command: str, computed_in: str, *, verb: str = "", rare: str = "", quiet: str = "", **about: Any
) -> Callable[[type[T]], type[T]]:
    """Make a question of a command of a class.

    Parameters
    ----------
    command, computed_in : the command, and "module:compute" that answers it
    verb : the function's name, if it is another
    rare, quiet : fields whose options few people need, and those that are not named at their
        defaults
    about : further class variables of `Question`
    """

    def made(kind: type[T]) -> type[T]:
        several = {"rare": tuple(rare.split()), "quiet": tuple(quiet.split())}
        told = {"command": command, "verb": verb or command, "computed_in": computed_in}
        for name, value in (told | {k: v for k, v in several.items() if v} | about).items():
            setattr(kind, name, value)
        return frozen_question(kind)

    return made


@frozen_question
class Question(Generic[R]):
    """A question of a command.

    What fields are that several questions have; a question describes those that differ.

    Parameters
    ----------
    llm : PROVIDER:MODEL, openai:gpt-4o-mini for instance.
    environment : The experiment.
    model : A model; the experiment's usual one if none. `knownminds list` shows all.
    subjects : How many subjects.
    sessions : Sessions of each subject.
    trials : Trials per session, where the experiment lets one choose.
    design : Of an experiment with several designs: which (--set design=).
    settings : NAME=VALUE: a setting of the experiment.
    truth : NAME=VALUE: a true parameter, or a setting of the experiment.
    where : COLUMN=VALUE: only trials that have it.
    fixed : NAME=VALUE: a parameter held at a value in the fit.
    correlation : NAME,NAME=R: how parameters go together over subjects, unconstrained scale.
    most : With --find: the largest number to consider.
    columns : ours=yours,...: your columns by our names, subject=run,action=choice for instance.
    questions : How many questions a session has, where trials are questions; all if not given.
    adaptive : MODEL: ask next what tells most about its parameters, up to --questions.
    lapse : Lapse rate of the simulated subjects.
    fit_lapse : Estimate a lapse rate.
    all_trials : Fit all trials, also where a model is fitted to some.
    unconverged : With --from: go on with a posterior that did not converge.
    price : PROVIDER:MODEL=IN,OUT dollars per million tokens.
    date : YYYY-MM-DD: the day of the prices. Today if none.
    reasoning : LOW-HIGH: tokens of thought before each answer.
    contaminants : NAME=RATE of a known agent: refusal, malformed, truncation, verbosity.
    dry_run : Only estimate calls, tokens and money.
    seed : Everything random follows from it.
    out : Folder for the results and the report.
    """

    command: ClassVar[str]
    verb: ClassVar[str]  # the function's name
    computed_in: ClassVar[str] = ""  # where in validation its answer is: "module:compute"
    screened: ClassVar[bool] = True  # whether a part of the answer fills a screen, or --full all
    holds: ClassVar[str | None] = None  # by which its folder is known; "" for a page alone
    rare: ClassVar[tuple[str, ...]] = ()  # fields whose options few people need
    quiet: ClassVar[tuple[str, ...]] = ()  # fields that no command line names at their defaults
    only_with: ClassVar[Mapping[str, str]] = {}  # fields that it names if another one is given

    def __post_init__(self) -> None:
        """Check what a question takes from `knownminds.calling`, and what needs another option."""
        for base in type(self).__mro__:
            if base.__module__ == calling.__name__ and "__post_init__" in vars(base):
                vars(base)["__post_init__"](self)
        usual = {one.name: one.default for one in fields(self) if one.name in self.only_with}
        for name, other in self.only_with.items():
            if getattr(self, name) != usual[name] and not getattr(self, other):
                raise ValueError(f"--{name} goes with --{other}; add --{other} or leave it out.")

    @property
    def agent(self) -> type[Model]:
        """The class of `model`; ValueError names the nearest ones if there is none."""
        from .arguments import resolve_model

        return resolve_model(getattr(self, "model"))  # noqa: B009 - of a subclass

    @property
    def left_in(self) -> Path | None:
        """The folder that its command leaves a page in; None if there is none."""
        if self.holds is None or getattr(self, "dry_run", False):
            return None
        folder = getattr(self, "folder", getattr(self, "out", None))  # some have one in any case
        return None if folder is None else Path(folder)

    def said(self) -> Any:
        """Compute the answer as a command prints it: it has a text, and `to_dict`.

        It may have `exit_code`, `save`, and in `answered` what the function returns.
        """
        module, _, name = self.computed_in.partition(":")
        return load(module, name or "compute")(self)

    def answer(self) -> R:
        """Compute the answer."""
        self.check_folder()
        said = self.said()
        self.leave(said)
        answered: R = getattr(said, "answered", said)
        return answered

    def check_folder(self) -> None:
        """Raise ValueError, before any work, if its folder cannot be its own."""
        if self.left_in is not None:
            check_own_folder(self.holds or "", self.command, self.left_in)

    def leave(self, said: Any) -> Path | None:
        """Leave the page of an answer in the folder, if there are both, and return its file."""
        folder = self.left_in
        if folder is None or not hasattr(said, "save"):
            return None
        if not self.holds or not (folder / self.holds).is_file():  # which tells what was asked
            check_same_question(said.command, folder)
        page: Path = said.save(folder)
        return page

    @classmethod
    def options(cls) -> dict[str, TypedOption]:
        """How each field is typed: those of the class, of its bases, and of `Running`."""
        helps, running = field_helps(cls), running_of(cls)
        declared = [one for one in fields(cls) if one.metadata.get("typed", True)]
        declared.sort(key=lambda one: (one.name in running, one.name not in cls.__annotations__))
        rare = {name for base in cls.__mro__ for name in vars(base).get("rare", ())}
        declared.sort(key=lambda one: one.name in rare)
        return {
            one.name: option_of(one, helps.get(one.name, ""), one.name in rare)
            for one in declared
            if "Callable" not in str(one.type)
        }

    @classmethod
    def of_typed(cls, typed: Mapping[str, Any]) -> Question[Any]:
        """Make a question of what was typed; what was not typed is as the function has it."""
        options, arguments = cls.options(), {}
        for one in fields(cls):
            value, option = typed.get(one.name), options.get(one.name)
            if value is not None:
                read = None if option is None else option.read
                arguments[one.name] = value if read is None else read(value)
        return cls(**arguments)

    def option_values(self) -> dict[str, Any]:
        """Values of the options by name; rates of zero are not named."""
        running = running_of(type(self))
        usual = {one.name: one.default for one in fields(self) if one.name in self.quiet}
        values = {name: getattr(self, name, None) for name in self.options()}
        for name, value in values.items():
            lacks = name in self.only_with and not values[self.only_with[name]]
            values[name] = None if lacks or (name, value) in usual.items() else value
        return {
            option.name: _plain(values[name], name)
            for name, option in self.options().items()
            if name not in running and hasattr(self, name)
        }

    def command_line(self) -> str:
        """Return the command line that asks it again."""
        options = self.option_values()
        about = options.pop("subject_matter", "")
        return command_line(
            self.command, *([about] if isinstance(about, str) else about), **options
        )


def _plain(value: Any, name: str) -> Any:
    """Return a field's value as a study's identity has it: members by name, no rate of zero."""
    if name in MEMBERS and isinstance(value, list | tuple):
        return [getattr(one, "name", one) for one in value]
    if name in MEMBERS:
        return getattr(value, "name", value)
    if name == "llm" and isinstance(value, list | tuple):
        return [getattr(one, "llm", one) for one in value]
    if name in ("caps", "contaminants") and value is not None:
        return {k: str(v) for k, v in vars(value).items() if v not in (None, 0.0)} or None
    if name in RANGES and isinstance(value, tuple):
        return "-".join(map(str, value))
    if isinstance(value, Mapping):
        return dict(value) or None
    if isinstance(value, os.PathLike | date):
        return str(value)
    return None if isinstance(value, float) and value == 0.0 else value


@frozen_question
class Running:
    """How a study is computed and where it is kept; no number depends on it.

    Parameters
    ----------
    workers : Processes or threads, each on one core; if none, the time of the first batch decides.
    backend : processes, threads, or dask with --scheduler.
    scheduler : tcp://HOST:PORT of a dask cluster.
    share : 2/3: only the second third of the batches; all into one folder.
    out : Folder for the results and the report. A folder of the same study is resumed.
    progress : Called with (batches done, batches in all).
    """

    workers: int | None = None
    backend: Literal["processes", "threads", "dask"] | None = None
    scheduler: str | None = None
    share: str | None = None
    out: str | os.PathLike[str] | None = None
    progress: Callable[[int, int], None] | None = None

    @property
    def running(self) -> Running:
        """These fields alone."""
        return Running(**{one.name: getattr(self, one.name) for one in fields(Running)})

    def checked(self) -> Running:
        """Return the same; ValueError if the fields do not go together."""
        if self.workers is not None and self.workers < 1:
            raise ValueError(f"The number of workers is at least 1; got {self.workers}.")
        if (self.backend == "dask") != (self.scheduler is not None):
            raise ValueError(
                "A dask cluster is named by both: --backend dask --scheduler tcp://host:port; "
                f"got backend {self.backend!r} and scheduler {self.scheduler!r}."
            )
        if self.share is not None and self.out is None:
            raise ValueError("A share of a study is kept in a folder; name one with --out.")
        return self

    @property
    def part_of(self) -> tuple[int, int]:
        """Which share it is, and of how many."""
        first, slash, last = (self.share or "1/1").partition("/")
        if not (slash and first.isdecimal() and last.isdecimal() and 1 <= int(first) <= int(last)):
            raise ValueError(f"A share reads 2/3, the second of three; got {self.share!r}.")
        return int(first), int(last)


def running_of(kind: type) -> set[str]:
    """Return the fields of a question that say how it is computed; none where it is no study."""
    return {one.name for one in fields(Running)} if issubclass(kind, Running) else set()


class ShareDone(Exception):  # noqa: N818 - it is no error
    """A share of a study is computed; there is a result once all are."""


@frozen_question
class StudyQuestion(Running, Question[R]):
    """A question of a study."""

    holds: ClassVar[str | None] = STUDY
    rare: ClassVar[tuple[str, ...]] = ("backend", "scheduler", "share", "unconverged")


@frozen_question
class PlayedQuestion(Question[R]):
    """A question about an experiment that is played.

    Subclasses have `trials`, and `model` or `models`.
    """

    environment: Environment | str = option(argument=True, kw_only=False)
    design: str | None = None
    truth: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        """Take the experiment's usual model where none is named; of `truth` take its settings."""
        from .arguments import played_as

        super().__post_init__()
        take_usual_model(self)
        if self.design is not None and "design" in (self.truth or {}):
            raise ValueError("--set names each thing once; got 'design' twice.")
        given = dict(self.truth or {}) | ({} if self.design is None else {"design": self.design})
        if given:
            environment, truth = played_as(self.environment, self.playing, given)
            for name, value in (("environment", environment), ("truth", truth), ("design", None)):
                object.__setattr__(self, name, value)

    @property
    def playing(self) -> Sequence[Any]:
        """The models whose parameters have true values."""
        models: Sequence[Any] = getattr(self, "models", ()) or [getattr(self, "model")]  # noqa: B009
        return models

    def option_values(self) -> dict[str, Any]:
        """Return the options: names, not things, and no setting at its default."""
        from .arguments import changed_settings, resolve_environment

        environment = resolve_environment(self.environment)
        options = super().option_values()
        del options["design"]  # it is one of the settings by now
        truth = {name: float(value) for name, value in (options["set"] or {}).items()}
        return options | {"set": {**truth, **changed_settings(environment)}}


@frozen_question
class ExperimentQuestion(StudyQuestion[R], PlayedQuestion[R]):
    """A question of a study about models in an experiment."""

    seed: int = 0

    def check_single(self, way: str) -> None:
        """Raise ValueError if a size that goes with a search or a rule has several numbers."""
        for name in SIZES:
            value = getattr(self, name)
            if isinstance(value, Sequence) and len(value) > 1:
                raise ValueError(
                    f"With {way} the other sizes are single numbers; got {name} twice."
                )


def take_usual_model(question: Any) -> None:
    """Let a question that names no model be about the usual one of its experiment."""
    if getattr(question, "model", "") is None:
        from .usual_models import usual_model

        object.__setattr__(question, "model", usual_model(question.environment))


def load(module: str, name: str = "") -> Any:
    """Return a module of validation ("power.audit") or of a package, or a name in it."""
    known = module in sys.modules or module.partition(".")[0] in packages()
    whole = import_module(module if known else f"knownminds.validation.{module}")
    return getattr(whole, name) if name else whole


def verb(question: Callable[P, Question[R]], module: str) -> Callable[P, R]:
    """Return the function that answers a question: its arguments are the question's fields.

    In a notebook it shows how far it is, where the question takes a `progress` and none was given.

    Parameters
    ----------
    module : in which it is a name
    """

    kind = cast("type[Question[Any]]", question)

    def ask(*args: P.args, **arguments: P.kwargs) -> R:
        for name in arguments:
            if name not in known:
                raise TypeError(_no_argument(kind, name, known))
        instance: Any = kind(**_given(kind, args, arguments))
        if isinstance(instance, Running) and instance.progress is None:
            from .notebook import notebook_bar

            with notebook_bar(kind.verb) as bar:
                return cast("R", replace(cast("Any", instance), progress=bar).answer())
        return cast("R", instance.answer())

    ask.__name__ = ask.__qualname__ = kind.verb
    ask.question = kind  # type: ignore[attr-defined]
    ask.__module__ = module
    # In a dataclass the fields of its base come first.
    known, running = inspect.signature(kind).parameters, running_of(kind)
    ordered = sorted(known.values(), key=lambda argument: argument.name in running)
    ask.__doc__ = documented(kind, (argument.name for argument in ordered))
    ask.__signature__ = inspect.Signature(ordered)  # type: ignore[attr-defined]
    return ask


def _no_argument(kind: type[Question[Any]], name: str, known: Iterable[str]) -> str:
    """Return a sentence on an argument that there is not; an option's may have another name."""
    meant = [field for field, one in kind.options().items() if one.flag == f"--{name}"]
    if meant:
        return f"What the command takes as --{name} is the argument {meant[0]} of {kind.verb}."
    return unknown(f"argument of {kind.verb}", name, known)


# What values of an annotation are: of these types, in words.
TYPES: Mapping[str, tuple[Any, str]] = {
    "int": (Integral, "a whole number"),
    "float": (Real, "a number"),
    "Mapping": (Mapping, "a dictionary"),
    "datetime.date": (date, "a date of datetime"),
    "Caps": (calling.Caps | Mapping, "Caps of knownminds.calling, or a dictionary"),
}


def _given(
    kind: type[Question[Any]], args: Sequence[Any], arguments: Mapping[str, Any]
) -> dict[str, Any]:
    """Return a function's arguments by name, one value as a list where several may be.

    Raises
    ------
    TypeError
        If one is missing, or of another type than the annotation says.
    """
    try:
        given = inspect.signature(kind).bind(*args, **arguments).arguments
    except TypeError as error:
        raise TypeError(f"{kind.verb}: {error}.") from None
    for one in fields(kind):
        value: Any = given.get(one.name)
        annotation = str(one.type)
        first = annotation.partition(" ")[0].partition("[")[0]
        several = "Sequence[" in annotation
        if first == "Sequence" and isinstance(value, str | Path | type):
            given[one.name] = value = [value]
        listed = several and isinstance(value, list | tuple)
        wanted, words = TYPES.get(first, (object, ""))
        for each in value if listed else [] if value is None else [value]:
            if not isinstance(each, wanted) or (isinstance(each, bool) and words):
                raise TypeError(f"{kind.verb}: {one.name} is {words}; got {each!r}.")
            if choices := choices_of(one):
                one_of_choices(one.name, choices)(each)
    return given


def command_line(command: str, *about: str, **options: Any) -> str:
    """Return a command line; it names the files of the user's that were loaded.

    Parameters
    ----------
    about : arguments; empty ones are left out
    options : by their names, with _ for -. What is None, False or empty is left out, True is a
        flag, and each entry of a mapping (NAME=VALUE) or list is an option of its own.
    """
    here = f"{Path.cwd()}{os.sep}"
    files = [file.removeprefix(here) for file in load("engine.members", "loaded_files")()]
    words = ["knownminds", command, *about]
    for name, value in {**options, "plugin": files}.items():
        flag = f"--{name.replace('_', '-')}"
        if value is None or value is False or value == "":
            continue
        if value is True:
            words.append(flag)
        elif isinstance(value, Mapping):
            for key, one in value.items():
                words += [flag, f"{key}={_written(one)}"]
        else:
            for one in value if isinstance(value, list | tuple) else [value]:
                words += [flag, _written(one)]
    return shlex.join(word for word in words if word)


def in_one(values: Mapping[str, str]) -> str:
    """Write pairs as options that hold several have them: ours=yours,..."""
    return ",".join(f"{name}={value}" for name, value in values.items())


def _written(value: Any) -> str:
    if isinstance(value, float):
        return repr(float(value)).removesuffix(".0")  # repr: all digits, or the study is another
    return str(value) if isinstance(value, str | Path) else json.dumps(value)
