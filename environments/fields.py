"""Tables in which an experiment declares the fields of its trials and its settings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Range = tuple[int, int] | tuple[float, float]
Role = Literal["stimulus", "wording", "hidden", "feedback"]
Rule = Callable[[str, Any], Any]
ANYTHING: Range = (-np.inf, np.inf)


def coded(names: Sequence[str]) -> str:
    """Return which number stands for which name: "0 collider, 1 chain"."""
    return ", ".join(f"{code} {name.replace('_', ' ')}" for code, name in enumerate(names))


@dataclass(frozen=True)
class Field:
    """A number that is recorded with each trial.

    Parameters
    ----------
    name : name of the column
    range : lowest and highest value, whole numbers if both are; or a function that gets the
        experiment and returns them; or, for things numbered from 0, the attribute of the experiment
        that says how many there are
    help : what it is
    role : "stimulus" is shown, and trials from elsewhere must have it; "wording" is shown and
        matters for the words alone, such as the order of mention; "hidden" is never shown;
        "feedback" is what an action brings besides the reward, shown with it and read by models
    dependent : whether it depends on earlier actions; all others are drawn up front
    unit : the unit of measurement; "" if there is none
    setting : the setting that its highest value depends on, if trials may have been played with
        another value and it is not the attribute in `range`
    gaps : whether it may be missing in rows of trials
    """

    name: str
    range: Range | str | Callable[[Any], Range] = ANYTHING
    help: str = ""
    role: Role = "stimulus"
    dependent: bool = False
    unit: str = ""
    setting: str = ""
    gaps: bool = False

    def bounds(self, environment: Any) -> Range:
        """Return lowest and highest value with the settings of an experiment.

        Numbers from 0 have room for two: spaces of Gymnasium need ends that differ.
        """
        if isinstance(self.range, str):
            return 0, max(getattr(environment, self.range) - 1, 1)
        return self.range(environment) if callable(self.range) else self.range


class Fields(tuple[Field, ...]):
    """The fields that are recorded with the trials of an experiment, in order."""

    def __new__(cls, *fields: Field) -> Fields:
        """Make the table from single fields."""
        return super().__new__(cls, fields)

    @cached_property
    def stimulus(self) -> tuple[str, ...]:
        """Fields that are shown, and that trials must have."""
        return self._of("stimulus")

    @cached_property
    def wording(self) -> tuple[str, ...]:
        """Fields that matter for the words alone; recorded, but not required."""
        return self._of("wording")

    @cached_property
    def hidden(self) -> tuple[str, ...]:
        """Fields that are recorded and never shown."""
        return self._of("hidden")

    @cached_property
    def feedback(self) -> tuple[str, ...]:
        """Fields that an action brings besides the reward; trials must have them."""
        return self._of("feedback")

    @cached_property
    def shown(self) -> tuple[str, ...]:
        """The fields of an observation, except "trial"."""
        return (*self.stimulus, *self.wording)

    @cached_property
    def dependent(self) -> tuple[str, ...]:
        """Fields that depend on earlier actions."""
        return tuple(field.name for field in self if field.dependent)

    def bounds(self, environment: Any) -> dict[str, Range]:
        """Return lowest and highest value of each shown field, with an experiment's settings."""
        known = {field.name: field for field in self}
        return {name: known[name].bounds(environment) for name in self.shown}

    def _of(self, role: Role) -> tuple[str, ...]:
        return tuple(field.name for field in self if field.role == role)


@dataclass(frozen=True)
class Setting:
    """A choice that an experiment offers to its users; made by `setting`.

    Parameters
    ----------
    default : its value unless it is set
    rule : takes the setting's name and the given value; returns the value, or raises ValueError
        with the rule, what was got and a remedy. Its text says which values are allowed.
    help : what it does
    size : whether the number of trials is proportional to it
    called : the name of the argument, if it differs from the attribute's name
    last : whether it stands after the settings of the base class, not before them
    kind : its type, as the class annotates it
    """

    default: Any
    rule: Rule
    help: str = ""
    size: bool = False
    called: str = ""
    last: bool = False
    kind: str = "Any"


def setting(
    default: Any,
    rule: Rule,
    help: str = "",
    *,
    size: bool = False,
    called: str = "",
    last: bool = False,
) -> Any:
    """Declare that an attribute of an experiment can be set; see `Setting`."""
    return Setting(default, rule, help, size, called, last)


def jsonable(value: Any) -> Any:
    """Return the value of a setting as JSON has it."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, tuple | list):
        return [jsonable(member) for member in value]
    if isinstance(value, Mapping):
        return {name: jsonable(member) for name, member in value.items()}
    return value


@dataclass(frozen=True)
class Whole:
    """A whole number within bounds."""

    least: int = 1
    most: int | None = None

    def __call__(self, name: str, given: Any) -> int:
        """Return the given value if it is such a number; ValueError otherwise."""
        good = isinstance(given, int | np.integer) and not isinstance(given, bool)
        if not good or given < self.least or (self.most is not None and given > self.most):
            raise ValueError(f"{name} is {self}; got {given!r}.")
        return int(given)

    def __str__(self) -> str:
        scope = (
            f"from {self.least} on" if self.most is None else f"from {self.least} to {self.most}"
        )
        return f"a whole number {scope}"


@dataclass(frozen=True)
class Number:
    """A finite number from `least` to `most`, or a number above `above`."""

    least: float = -np.inf
    most: float = np.inf
    above: float = -np.inf
    unit: str = ""

    def __call__(self, name: str, given: Any) -> float:
        """Return the given value if it is such a number; ValueError otherwise."""
        good = isinstance(given, int | float | np.number) and not isinstance(given, bool)
        if not good or not np.isfinite(given) or not self._holds(float(given)):
            raise ValueError(f"{name} is {self}; got {given!r}.")
        return float(given)

    def _holds(self, given: float) -> bool:
        return self.least <= given <= self.most and given > self.above

    def __str__(self) -> str:
        what = f"a number of {self.unit}" if self.unit else "a number"
        if np.isfinite(self.above):
            return f"{what} above {self.above:g}"
        if np.isfinite(self.most):
            return f"{what} from {self.least:g} to {self.most:g}"
        return f"{what} from {self.least:g} on" if np.isfinite(self.least) else what


@dataclass(frozen=True)
class OneOf:
    """One of some known values."""

    known: tuple[Any, ...]
    verb: str = "is"

    def __call__(self, name: str, given: Any) -> Any:
        """Return the given value if it is a known one; ValueError otherwise."""
        if isinstance(given, bool) or given not in self.known:
            raise ValueError(f"{name} {self.verb} {self}; got {given!r}.")
        return given if isinstance(given, str) else int(given)

    def __str__(self) -> str:
        return f"one of {', '.join(map(str, self.known))}"


@dataclass(frozen=True)
class SomeOf:
    """One or several of some known values, in their order there; `None` for all if `whole`."""

    known: tuple[Any, ...]

    def __call__(self, name: str, given: Any) -> tuple[Any, ...]:
        """Return the given values if they are known ones; ValueError otherwise."""
        many = isinstance(given, Iterable) and not isinstance(given, str)
        chosen = list(given) if many else [given]
        strange = [member for member in chosen if isinstance(member, bool)]
        strange += [member for member in chosen if member not in self.known]
        if strange or not chosen or len(set(chosen)) < len(chosen):
            raise ValueError(f"{name} are {self}; got {given!r}.")
        return tuple(member for member in self.known if member in chosen)

    def __str__(self) -> str:
        return f"one or more of {', '.join(map(str, self.known))}, each once"


@dataclass(frozen=True)
class Numbers:
    """A row of numbers, or a table of them, for which `holds` is true; returned as tuples.

    Parameters
    ----------
    what : the rule, with its verb
    holds : takes an array of the numbers and returns whether it keeps the rule
    shape : how many there are along each axis; 0 if any number of them is allowed
    decimals : how many decimals a number has; None for any, 0 for whole numbers
    sort : whether they are put in order, each once; a single number is then allowed
    """

    what: str
    holds: Callable[[NDArray[np.float64]], Any] = lambda values: True
    shape: tuple[int, ...] = (0,)
    decimals: int | None = None
    sort: bool = False

    def __call__(self, name: str, given: Any) -> tuple[Any, ...]:
        """Return the given numbers as tuples if they keep the rule; ValueError otherwise."""
        try:
            values = np.array(given, dtype=float)
        except (TypeError, ValueError):
            values = np.zeros(0)
        values = np.unique(values) if self.sort else values
        rounded = values if self.decimals is None else np.round(values, self.decimals)
        fits = values.ndim == len(self.shape) and all(
            due in (0, n) for due, n in zip(self.shape, values.shape, strict=True)
        )
        good = fits and values.size and np.isfinite(values).all() and np.allclose(values, rounded)
        if not good or not np.all(self.holds(values)):
            raise ValueError(f"{name} {self}; got {jsonable(given)!r}.")
        taken = rounded if self.decimals != 0 else rounded.astype(np.int64)
        return tuple(map(_tuples, taken.tolist()))

    def __str__(self) -> str:
        return self.what


def _tuples(values: Any) -> Any:
    return tuple(map(_tuples, values)) if isinstance(values, list) else values


@dataclass(frozen=True)
class CheckedBy:
    """Anything that a function of name and value accepts, with the rule in words."""

    take: Rule
    what: str

    def __call__(self, name: str, given: Any) -> Any:
        """Return what the function makes of the given value."""
        return self.take(name, given)

    def __str__(self) -> str:
        return self.what


@dataclass(frozen=True)
class OrNone:
    """None, or what another rule allows."""

    rule: Rule

    def __call__(self, name: str, given: Any) -> Any:
        """Return None, or what the other rule makes of the given value."""
        return None if given is None else self.rule(name, given)

    def __str__(self) -> str:
        return f"{self.rule}, or None"


def yes_or_no(name: str, given: Any) -> bool:
    """Return True or False as given; ValueError for anything else."""
    if not isinstance(given, bool | np.bool_):
        raise ValueError(f"{name} is True or False; got {given!r}.")
    return bool(given)


def as_given(name: str, given: Any) -> Any:
    """Return the value as given."""
    return given


YES_OR_NO = CheckedBy(yes_or_no, "True or False")
FILE = CheckedBy(as_given, "the path of a file, or None")
WORDS = CheckedBy(as_given, "the path of a TOML file, or None")  # changes words, never trials
TEXT = CheckedBy(lambda name, given: str(given), "a text")
ENDS = Numbers("is a lower and a higher number", lambda ends: ends[0] < ends[1], (2,))
