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
from functools import partial
from importlib import import_module
from pathlib import Path
from textwrap import fill, indent
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

from knownminds.members import packages
from knownminds.validation.completion import check_member, completes
from knownminds.validation.reading import (
    read_numbers,
    read_settings,
    read_texts,
    resolve_experiment,
)
from knownminds.validation.studies import AUDITS

if TYPE_CHECKING:
    from knownminds.agents import Model

P = ParamSpec("P")
R = TypeVar("R", covariant=True)
T = TypeVar("T")
Progress = Callable[[int, int], None]
# How a value is typed, where help begins with it: "NAME=VALUE: a true parameter".
TYPED = re.compile(r"^([A-Z]+=[A-Z]+|LOW-HIGH|YYYY-MM-DD|ours=yours,\.\.\.)[:,.]? ")
RARE = "Rarely needed"  # the title of the group of rare options
BACKENDS = ("processes", "threads", "dask")

# Fields whose words the shell completes.
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
    ("Sequence[Path]", list[Path]),
    ("Sequence[", list[str]),
    ("bool", bool),
    ("Path", Path),
    ("float", float),
    ("int", int),
)


# Type checkers read `default` and `kw_only` off the calls alone, where they are given by name.
def option(
    flag: str = "",
    *,
    default: Any = MISSING,
    kw_only: bool = True,
    argument: bool = False,
    of: tuple[str, ...] = (),
    read: Callable[[Any], Any] | None = None,
    several: bool = False,
) -> Any:
    """Return a field of a question that is not typed as its annotation says.

    Parameters
    ----------
    flag
        "--set" for instance, or "--a,--b"; "" for one that is called as the field.
    kw_only
        Whether it has a name in Python.
    argument, of
        Whether it is typed without a name; of members, which kinds it may be ("model", ...).
    read, several
        What reads its words, and whether there may be several.
    """
    metadata: dict[str, Any] = {"flag": flag, "argument": argument, "of": of, "read": read}
    if read is not None:
        metadata["kind"] = list[str] if several else str
    return field(default=default, kw_only=kw_only, metadata=metadata)


@dataclass(frozen=True)
class TypedOption:
    """How a field is typed on the command line.

    Parameters
    ----------
    kind
        The type with its Typer option or argument.
    default
        Its value there if nothing is typed.
    flag
        Of the option, "--set" for instance; "" of an argument.
    read
        Makes the field's value of what is typed.
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
    fitting = (kind for text, kind in KINDS if text in annotation)
    kind: Any = metadata.get("kind") or next(fitting, str)
    flag = metadata.get("flag") or f"--{declared.name.removesuffix('_').replace('_', '-')}"
    read = metadata.get("read")
    if read is None and "Mapping[str, float]" in annotation:
        read = partial(read_numbers, flag)
    elif read is None and "Mapping[str, Any]" in annotation:
        read = read_settings
    elif read is None and "Mapping[str, str]" in annotation:
        read = partial(read_texts, flag)
    member = MEMBERS.get(declared.name)
    more: dict[str, Any] = {"help": help, "metavar": " "}  # of the type the help says enough
    if rare:
        more["rich_help_panel"] = RARE
    if member:
        more["autocompletion"] = completes(f"{member}s")
    annotated: Any = Annotated
    required = inspect.Parameter.empty if declared.default is MISSING else None
    if metadata.get("argument"):
        if member == declared.name == "measure":
            more["callback"] = check_member(member, besides=AUDITS)
        elif metadata["of"]:
            more["callback"] = check_member(*metadata["of"])
        elif member == declared.name:
            more["callback"] = check_member(member)
        kind = kind | None if required is None else kind
        more["metavar"] = declared.name.upper()
        return TypedOption(annotated[kind, typer.Argument(**more)], required, read=read)
    if declared.name == "model":
        more["callback"] = check_member("model")
    if declared.name == "models":  # without one, all that play
        required = None
    if choices := re.match(r"Literal\[([^\]]*)\]", annotation):
        more["callback"] = one_of_choices(flag, re.findall(r"[\w-]+", choices[1]))
    if "int | Sequence[int]" in annotation:
        more["help"] = help = f"{help} Several give a grid."
    if kind is bool:
        flags = flag if declared.default is False else f"{flag}/--no-{flag[2:]}"
        return TypedOption(annotated[bool, typer.Option(flags, **more)], declared.default, flag)
    if declared.default not in (MISSING, None, "", ()):
        more["help"] = f"{help} Default: {declared.default}."  # Rich takes brackets for markup
    kind = kind | None if required is None else kind
    return TypedOption(
        annotated[kind, typer.Option(*flag.split(","), **more)], required, flag, read
    )


def one_of_choices(flag: str, choices: Sequence[str]) -> Callable[[str | None], str | None]:
    """Return what refuses a word that is none of the choices, and names the nearest."""

    def check(value: str | None) -> str | None:
        if value is None or value in choices:
            return value
        from knownminds.environments.words.names import unknown

        raise ValueError(unknown(flag.strip("-"), value, choices))

    return check


def field_texts(kind: type) -> dict[str, str]:
    """Return what a class's docstring, or those of its bases, say of each parameter."""
    texts: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        text = inspect.cleandoc(base.__doc__ or "")
        _, _, listed = text.partition("Parameters\n----------\n")
        listed, _, _ = listed.partition("\n\n")
        names: list[str] = []
        for line in listed.splitlines():
            if not line.startswith(" "):
                names = [name.strip() for name in line.split(",")]
                texts |= dict.fromkeys(names, "")
            else:
                for name in names:
                    texts[name] = f"{texts[name]} {line.strip()}".strip()
    return texts


def field_helps(kind: type) -> dict[str, str]:
    """Return the first sentence about each parameter."""
    return {name: re.split(r"(?<=\.) ", text)[0] for name, text in field_texts(kind).items()}


def documented(kind: type, names: Iterable[str]) -> str:
    """Return the docstring of a question with its fields, also those that its bases describe."""
    texts = {name: _as_argument(text) for name, text in field_texts(kind).items()}
    about, _, own = inspect.cleandoc(kind.__doc__ or "").partition("\n\nParameters\n----------\n")
    listed = [f"{name}\n{indent(fill(texts[name], 92), '    ')}" for name in names]
    whole = "\n".join([about, "", "Parameters", "----------", *listed])
    return f"{whole}\n\n{own.partition(chr(10) * 2)[2]}".strip()


def _as_argument(text: str) -> str:
    """Return what is said of a field without how it is typed: a mapping is no NAME=VALUE."""
    said = re.sub(TYPED, "", text)
    return text if said == text else said[:1].upper() + said[1:]


@dataclass_transform(
    kw_only_default=True,
    frozen_default=True,
    field_specifiers=(field, option),
)
def frozen_question(kind: type[T]) -> type[T]:
    """Make a frozen dataclass of a question; its arguments have names unless it says otherwise."""
    return dataclass(frozen=True, kw_only=True)(kind)


@frozen_question
class Question(Generic[R]):
    """A question of a command.

    What fields are that several questions have; a question describes those that differ.

    Parameters
    ----------
    llm
        PROVIDER:MODEL, openai:gpt-4o-mini for instance.
    environment
        The experiment.
    model
        Whose parameters; the experiment's usual model if not given.
    subjects
        How many subjects.
    sessions
        Sessions of each subject.
    trials
        Trials per session, where the experiment lets one choose.
    design
        Of an experiment with several designs: which (--set design=).
    settings
        NAME=VALUE: a setting of the experiment.
    truth
        NAME=VALUE: a true parameter, or a setting of the experiment.
    columns
        ours=yours,...: subject=run,context=task,action=choice.
    questions
        How many questions a session has, where trials are questions; all if not given.
    adaptive
        MODEL: ask next what tells most about its parameters, up to --questions.
    lapse
        Lapse rate of the simulated subjects.
    fit_lapse
        Estimate a lapse rate.
    all_trials
        Fit all trials, also where a model is fitted to some.
    unconverged
        With --from: go on with a posterior that did not converge.
    base_url
        A server of your own.
    key_variable
        The environment variable that holds the key.
    max_tokens
        Where an answer is cut off.
    price
        PROVIDER:MODEL=IN,OUT dollars per million tokens.
    date
        YYYY-MM-DD: the day of the prices.
    reasoning
        LOW-HIGH: tokens of thought before each answer.
    dry_run
        Only estimate calls, tokens and money.
    seed
        Everything random follows from it.
    out
        Folder for the results and the report.
    """

    command: ClassVar[str]
    verb: ClassVar[str]  # the function's name
    computed_in: ClassVar[str] = ""  # the module of validation whose `compute` answers it
    screened: ClassVar[bool] = True  # whether a part of the answer fills a screen, or --full all
    rare: ClassVar[tuple[str, ...]] = ()  # fields whose options few people need

    @property
    def agent(self) -> type[Model]:
        """The class of `model`; ValueError names the nearest ones if there is none."""
        from .arguments import resolve_model

        return resolve_model(getattr(self, "model"))  # noqa: B009 - of a subclass

    def answer(self) -> R:
        """Compute the answer."""
        compute: Callable[[Any], R] = load(self.computed_in, "compute")
        return compute(self)

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
        return cls(**cls.read(typed))

    @classmethod
    def read(cls, typed: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments that were typed, and functions that are called on the way."""
        options, arguments = cls.options(), {}
        for one in fields(cls):
            value, option = typed.get(one.name), options.get(one.name)
            if value is not None:
                read = None if option is None else option.read
                arguments[one.name] = value if read is None else read(value)
        return arguments

    def option_values(self) -> dict[str, Any]:
        """Values of the options by name; rates of zero are not named."""
        running = running_of(type(self))
        return {
            option.name: _plain(getattr(self, name))
            for name, option in self.options().items()
            if name not in running and hasattr(self, name)
        }

    def command_line(self) -> str:
        """Return the command line that asks it again."""
        options = self.option_values()
        return command_line(self.command, options.pop("subject_matter", ""), **options)


def _plain(value: Any) -> Any:
    """Return a value as a study's identity has it; a rate of zero as none."""
    if isinstance(value, Mapping):
        return dict(value) or None
    if isinstance(value, os.PathLike):
        return str(value)
    return None if isinstance(value, float) and value == 0.0 else value


@frozen_question
class Running:
    """How a study is computed and where it is kept; no number depends on it.

    Parameters
    ----------
    workers
        Processes or threads, each on one core. 1 stays in this process; if none, the time that the
        first batch takes decides.
    backend
        processes, threads, or dask with --scheduler.
    scheduler
        tcp://HOST:PORT of a dask cluster.
    share
        2/3: only the second third of the batches; all into one folder.
    out
        Folder for the results and the report. A folder of the same study is resumed.
    progress
        Called with (batches done, batches in all).

    Raises
    ------
    ValueError
        If a value is not one of these, or they do not go together.
    """

    workers: int | None = None
    backend: str | None = None
    scheduler: str | None = None
    share: str | None = None
    out: str | os.PathLike[str] | None = option(read=Path, default=None)
    progress: Callable[[int, int], None] | None = None

    @property
    def running(self) -> Running:
        """These fields alone."""
        return Running(**{one.name: getattr(self, one.name) for one in fields(Running)})

    def checked(self) -> Running:
        """Return the same; ValueError if the fields do not go together."""
        if self.workers is not None and self.workers < 1:
            raise ValueError(f"The number of workers is at least 1; got {self.workers}.")
        if self.backend is not None and self.backend not in BACKENDS:
            from knownminds.environments import unknown

            raise ValueError(unknown("backend", self.backend, BACKENDS))
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


@frozen_question
class StudyQuestion(Running, Question[R]):
    """A question of a study."""

    rare: ClassVar[tuple[str, ...]] = ("backend", "scheduler", "share", "unconverged")


@frozen_question
class PlayedQuestion(Question[R]):
    """A question about an experiment that is played.

    Subclasses have `environment`, `trials`, `truth` typed as --set, and `model` or `models`.
    """

    def __post_init__(self) -> None:
        """Take the experiment's usual model where none is named."""
        take_usual_model(self)

    @classmethod
    def options(cls) -> dict[str, TypedOption]:
        """Those of the fields, and which of an experiment's designs is meant: one of its settings.

        Of a setting there is no field.
        """
        design = typer.Option(help=field_helps(cls)["design"], metavar=" ")
        options: dict[str, TypedOption] = {}
        for name, option in super().options().items():
            options[name] = option
            if name == "trials":
                options["design"] = TypedOption(Annotated[str | None, design], None, "--design")
        return options

    @classmethod
    def read(cls, typed: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments; of --set, parameters are true values and the others settings."""
        from .arguments import resolve_model
        from .usual_models import usual_model

        arguments = super().read({**typed, "truth": None})
        if "model" in typed and typed["model"] is None:
            arguments["model"] = usual_model(typed["environment"])
        agents = [resolve_model(model) for model in cls.models_in(arguments)]
        arguments["environment"], arguments["truth"] = resolve_experiment(
            typed["environment"], agents, None, typed["truth"], typed["design"]
        )
        return arguments

    @classmethod
    def models_in(cls, arguments: Mapping[str, Any]) -> Sequence[str]:
        """Return the names of the models that were typed."""
        names: Sequence[str] = arguments.get("models") or [arguments["model"]]
        return names

    def option_values(self) -> dict[str, Any]:
        """Return the options: names, not things, and no setting at its default."""
        from .arguments import changed_settings, resolve_environment, resolve_model

        environment = resolve_environment(getattr(self, "environment"))  # noqa: B009 - of a subclass
        options = super().option_values()
        truth = {name: float(value) for name, value in (options["set"] or {}).items()}
        options["set"] = {**truth, **changed_settings(environment)}
        if "model" in options:
            model = options["model"]
            several = isinstance(model, Sequence) and not isinstance(model, str)
            names = [resolve_model(one).name for one in (model if several else [model])]
            options["model"] = names if several else names[0]
        return options | {"subject_matter": environment.name}


@frozen_question
class ExperimentQuestion(StudyQuestion[R], PlayedQuestion[R]):
    """A question of a study about models in an experiment."""


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
    module
        In which it is a name.
    """

    kind = cast("type[Question[Any]]", question)

    def ask(*args: P.args, **arguments: P.kwargs) -> R:
        from knownminds.environments.words.names import unknown

        for name in arguments:
            if name not in known:
                raise TypeError(unknown(f"argument of {kind.verb}", name, known))
        instance = question(*args, **arguments)
        if not isinstance(instance, Running) or instance.progress is not None:
            return instance.answer()
        from .notebook import notebook_bar

        with notebook_bar(kind.verb) as bar:
            answer: R = cast("Any", replace(cast("Any", instance), progress=bar)).answer()
            return answer

    ask.__name__ = ask.__qualname__ = kind.verb
    ask.question = kind  # type: ignore[attr-defined]
    ask.__module__ = module
    # In a dataclass the fields of its base come first.
    running = running_of(kind)
    known = inspect.signature(kind).parameters
    arguments = known.values()
    ordered = sorted(arguments, key=lambda argument: argument.name in running)
    ask.__doc__ = documented(kind, (argument.name for argument in ordered))
    ask.__signature__ = inspect.Signature(ordered)  # type: ignore[attr-defined]
    return ask


def command_line(command: str, *about: str, **options: Any) -> str:
    """Return a command line.

    Parameters
    ----------
    about
        Arguments; empty ones are left out.
    options
        By their names, with _ for -. What is None, False or empty is left out, True is a flag, and
        each entry of a mapping (NAME=VALUE) or list is an option of its own.
    """
    words = ["knownminds", command, *about]
    for name, value in options.items():
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
