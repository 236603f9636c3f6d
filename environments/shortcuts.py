"""What somebody may do instead of what an experiment wants: look at something else, or habits.

A shortcut of a trial that asks for a number is something that is shown and easily counted, from
which the right answer might be guessed. A shortcut where actions are chosen is a rule that needs no
look at what is shown. Every experiment gets the general ones. One that asks for numbers says which
are right (`Right`), and may name more to look at (`Named`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from .environment import Environment, Observation

Rule = Callable[[Observation, int | None], int]  # of what is seen and the last action

TRIAL, WORDS, CHARACTERS = "trial", "words of the question", "characters of the question"
LAST = "right answer of the trial before"


@runtime_checkable
class Right(Protocol):
    """An experiment that knows right numbers."""

    def right(self, columns: Mapping[str, NDArray[Any]]) -> NDArray[np.float64]:
        """Return the right number for each trial of these columns, NaN where none is wanted."""


@runtime_checkable
class Named(Protocol):
    """An experiment that names what can be counted instead of the question."""

    def shortcuts(self, observation: Observation) -> Mapping[str, float]:
        """Return it for one trial, by name."""


def looks(environment: Environment, observation: Observation) -> dict[str, float]:
    """Return what can be looked at on a trial: its number, length of the question, others.

    Parameters
    ----------
    environment
        With the session to which the trial belongs.
    """
    numbers = {TRIAL: float(observation["trial"])}
    if environment.has_words():
        text = environment.render(observation, ()).text
        numbers |= {WORDS: float(len(text.split())), CHARACTERS: float(len(text))}
    further = environment.shortcuts(observation) if isinstance(environment, Named) else {}
    return numbers | {name: float(v) for name, v in further.items()}


def habits(environment: Environment) -> Mapping[str, Rule]:
    """Return rules by which actions can be chosen without a look at what is given.

    Always the same action; another one each time; with two options of which one is named first
    (a column "first"), always that one or always the other.
    """
    n = environment.n_actions
    rules: dict[str, Rule] = {f"always action {k}": _always(k) for k in range(n)}
    rules["the action after the last one"] = lambda seen, last: (
        0 if last is None else (last + 1) % n
    )
    if n == 2 and "first" in environment.fields.shown:
        rules["named first"] = lambda seen, last: int(seen["first"])
        rules["named second"] = lambda seen, last: 1 - int(seen["first"])
    return rules


def _always(action: int) -> Rule:
    return lambda seen, last: action
