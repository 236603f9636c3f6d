"""Slots fill the placeholders of sentences: each writes a value and reads it back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .answer import decimal

if TYPE_CHECKING:
    from knownminds.environments.turn import Observation, Turn

ANSWERS = ("action", "response", "reward")
# The names of the options of a trial, given the labels of its session.
Options = Callable[[Any, Any], Sequence[str]]


@dataclass(frozen=True)
class Slot:
    """A number that a placeholder shows as it is; "nothing" if there is none.

    Parameters
    ----------
    field : a field of the experiment, or "trial", "action", "response" or "reward"
    """

    field: str

    def write(self, options: Options, labels: Any, turn: Turn) -> object:
        """Return the word for a trial and its answer."""
        value = value_in(turn, self.field)
        return "nothing" if value is None else decimal(value)

    def read(self, options: Options, labels: Any, word: str, seen: Observation) -> float:
        """Return the number, given what is known of the trial; ValueError if there is none."""
        return number_in(word)


@dataclass(frozen=True)
class Count(Slot):
    """A field that is counted from 1 in words."""

    def write(self, options: Options, labels: Any, turn: Turn) -> object:
        return int(turn.observation[self.field]) + 1

    def read(self, options: Options, labels: Any, word: str, seen: Observation) -> float:
        return int(word) - 1


@dataclass(frozen=True)
class Label(Slot):
    """The name that a session gives to the value of a field.

    Parameters
    ----------
    names : the entry of `Environment.labels` that holds the names
    """

    names: str

    def write(self, options: Options, labels: Any, turn: Turn) -> object:
        names: Sequence[object] = labels[self.names]
        value = int(turn.observation[self.field])
        return names[value] if value >= 0 else ""

    def read(self, options: Options, labels: Any, word: str, seen: Observation) -> float:
        return position_of(word, [str(name) for name in labels[self.names]])


@dataclass(frozen=True)
class Option(Slot):
    """The name of an option: of the action, or of the option that a field names.

    Parameters
    ----------
    shift : how many options further to go; after the last comes the first
    """

    shift: int = 0

    def write(self, options: Options, labels: Any, turn: Turn) -> object:
        names, value = options(labels, turn.observation), value_in(turn, self.field)
        assert value is not None
        return names[(int(value) + self.shift) % len(names)]

    def read(self, options: Options, labels: Any, word: str, seen: Observation) -> float:
        names = options(labels, seen)
        return (position_of(word, names) - self.shift) % len(names)


def value_in(turn: Turn, field: str) -> float | None:
    """Return the value of a field, an answer or a reward; None if there is none."""
    known: Mapping[str, Any] = turn.known
    value: float | None = getattr(turn, field) if field in ANSWERS else known[field]
    return value


def position_of(name: str, names: Sequence[str]) -> int:
    """Return the position of a name that a prompt uses."""
    if name not in names:
        raise ValueError(
            f"The prompt names {name!r} where the session has {', '.join(names)}. "
            "Use the seed, settings and templates it was rendered with."
        )
    return names.index(name)


def number_in(text: str) -> float:
    """Return the number that a text of a prompt stands for."""
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"A number is due here in a prompt; got {text!r}.") from None
