"""Causal graphs of three binary variables: their questions, and the answers of a noisy-OR.

A question asks how likely a variable is to be present, given what is known of the two others. It is
the tuple (query, first, second, third): the position of the queried variable, and what is known of
each variable (-1 nothing, 0 absent, 1 present).

The published tables hold traps, which the functions below avoid:

- Given that the effect is absent (task X), the denominator is P(E=0) = 1 - P(E=1); the appendix
  of the thesis prints P(E=1).
- The published fits answer both directions of a task by the formula of the first cause. With
  m1 != m2 this describes no graph: the answers about C2 then differ from those of the mirrored
  graph, and m1 - m2 is a mismatch between tasks. `noisy_or_table` gives both directions; the
  pooled scoring uses its direction 0 for both.
- Explaining away is described as VII - VI, but the published numbers are VIII - VI.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .network_questions import MADE_ABSENT, NETWORK, QUESTION, exact_answers

Graph = Literal["collider", "chain", "fork"]
Directions = Literal["both", "one"]
Question = tuple[int, int, int, int]  # query, first, second, third
Array = NDArray[np.float64]

GRAPHS: tuple[Graph, ...] = get_args(Graph)
DIRECTIONS: tuple[Directions, ...] = get_args(Directions)
NOT_TOLD, ABSENT, PRESENT = -1, 0, 1
VARIABLES: dict[Graph, tuple[str, str, str]] = {
    "collider": ("C1", "C2", "E"),
    "chain": ("C1", "C2", "C3"),
    "fork": ("C1", "C2", "C3"),
}
# Each graph has pairs of cause and effect; the first pair has the strength m1, the second m2.
EDGES: dict[Graph, tuple[tuple[int, int], tuple[int, int]]] = {
    "collider": ((0, 2), (1, 2)),
    "chain": ((0, 1), (1, 2)),
    "fork": ((0, 1), (0, 2)),
}
# If the graph is mirrored, each variable goes to this position; a chain has no mirror image.
_MIRROR: dict[Graph, tuple[int, int, int]] = {"collider": (1, 0, 2), "fork": (0, 2, 1)}


@dataclass(frozen=True)
class Task:
    """A question about the collider, together with its mirror image unless the two are the same.

    Parameters
    ----------
    query, told : The question in direction 0: the position of the queried variable, and what is
        known of each.
    roman, letter : The names that the thesis gives it.
    """

    query: int
    told: tuple[int, int, int]
    roman: str
    letter: str

    @property
    def question(self) -> Question:
        """The question in direction 0."""
        return (self.query, *self.told)

    @property
    def formula(self) -> str:
        """The question in direction 0, as P(C1 | C2=1, E=1)."""
        names = VARIABLES["collider"]
        given = [f"{names[i]}={v}" for i, v in enumerate(self.told) if v != NOT_TOLD]
        return f"P({names[self.query]} | {', '.join(given)})"

    @property
    def mirrored(self) -> Question | None:
        """The question in direction 1; None if mirroring does not change it."""
        mirror = _mirrored("collider", self.question)
        return None if mirror == self.question else mirror


def _mirrored(graph: Graph, question: Question) -> Question:
    order = _MIRROR.get(graph, (0, 1, 2))
    query, *values = question
    first, second, third = (values[i] for i in order)  # the inverse of a mirroring is itself
    return order[query], first, second, third


# The eleven tasks of Rehder and Waldmann (2017), in the order of their roman numbers. They ask for
# a cause, given anything that can be shown of the two others, and for the effect, given both
# causes.
TASKS: tuple[Task, ...] = (
    Task(2, (0, 0, -1), "I", "i"),
    Task(2, (0, 1, -1), "II", "j"),
    Task(2, (1, 1, -1), "III", "k"),
    Task(0, (-1, 1, -1), "IV", "d"),
    Task(0, (-1, 0, -1), "V", "e"),
    Task(0, (-1, 1, 1), "VI", "a"),
    Task(0, (-1, -1, 1), "VII", "b"),
    Task(0, (-1, 0, 1), "VIII", "c"),
    Task(0, (-1, 1, 0), "IX", "f"),
    Task(0, (-1, -1, 0), "X", "g"),
    Task(0, (-1, 0, 0), "XI", "h"),
)


def questions(graph: Graph, directions: Directions = "both") -> tuple[Question, ...]:
    """Return the questions about a graph, each before its mirror image.

    The questions of the collider are the tasks, 20 in both directions. Those of chain and fork ask
    for every variable, given anything that can be shown of one or both of the others. They never
    ask for a variable given nothing, which would be a frequency that no prompt tells. This makes 24
    for the chain, which has no mirror image, and 24 for the fork, 13 in one direction.
    """
    firsts = [task.question for task in TASKS] if graph == "collider" else _every_question()
    every: list[Question] = []
    mirrors: set[Question] = set()
    for question in firsts:
        mirror = _mirrored(graph, question)
        if question in mirrors:
            continue
        mirrors.add(mirror)
        every.append(question)
        if directions == "both" and mirror != question:
            every.append(mirror)
    return tuple(every)


def _every_question() -> list[Question]:
    """Return every question about one of three variables that tells something of another."""
    every: list[Question] = []
    for query in range(3):
        for others in product((NOT_TOLD, PRESENT, ABSENT), repeat=2):
            values = list(others)
            values.insert(query, NOT_TOLD)
            first, second, third = values
            if others != (NOT_TOLD, NOT_TOLD):
                every.append((query, first, second, third))
    return every


# The columns of a question, each from -1 on, index the number of its task and its direction.
_TASK_AT, _DIRECTION_AT = np.full((3, 3, 3, 3), -1), np.full((3, 3, 3, 3), -1)
for _number, _task in enumerate(TASKS):
    for _direction, _question in enumerate((_task.question, _task.mirrored)):
        if _question is not None:
            _place = _question[0], *(value + 1 for value in _question[1:])
            _TASK_AT[_place], _DIRECTION_AT[_place] = _number, _direction


def task_of(
    query: ArrayLike, first: ArrayLike, second: ArrayLike, third: ArrayLike
) -> NDArray[np.int64]:
    """Return the numbers of the collider's tasks, 0 to 10 for I to XI, -1 for no task."""
    return np.asarray(_TASK_AT[_at(query, first, second, third)])


def direction_of(
    query: ArrayLike, first: ArrayLike, second: ArrayLike, third: ArrayLike
) -> NDArray[np.int64]:
    """Return 0 for questions as they stand in `TASKS`, 1 for mirrored ones, -1 for no task.

    Direction 1 asks about C2, or about the effect given C1 alone. Tasks I and III equal their
    mirror images.
    """
    return np.asarray(_DIRECTION_AT[_at(query, first, second, third)])


def _at(query: ArrayLike, *known: ArrayLike) -> tuple[NDArray[np.int64], ...]:
    values = (np.asarray(value, dtype=np.int64) + 1 for value in known)
    return (np.asarray(query, dtype=np.int64), *values)


def noisy_or_table(
    p1: ArrayLike, p2: ArrayLike, b: ArrayLike, m1: ArrayLike, m2: ArrayLike
) -> Array:
    """Answer the eleven collider tasks under a leaky noisy-OR, [..., 11, 2].

    The last axis is the direction; tasks I and III have the same answer in both. The published
    scoring takes direction 0 for both directions.

    Parameters
    ----------
    p1, p2 : Prior probabilities of the causes; the published models have one, p1 = p2.
    b : Leak: the probability of the effect without any cause.
    m1, m2 : Strengths of the causes.
    """
    given = np.broadcast_arrays(p1, p2, b, m1, m2)
    asked = np.array([(task.question, task.mirrored or task.question) for task in TASKS])
    # Causes have no causes, so an observed cause has the same effect as one that was set.
    asked[..., 1:3] += np.where(asked[..., 1:3] == NOT_TOLD, 0, MADE_ABSENT)
    columns = {name: np.zeros(asked[..., 0].size * given[0].size) for name in NETWORK}
    for name, values in zip(("b1", "b2", "b3", "w13", "w23"), given, strict=True):
        columns[name] = np.repeat(values.ravel(), asked[..., 0].size)
    for name, values in zip(QUESTION, np.moveaxis(asked, -1, 0), strict=False):
        columns[name] = np.tile(values.ravel(), given[0].size)
    columns["fourth"] = np.full(len(columns["query"]), NOT_TOLD)
    return exact_answers(columns).reshape(*given[0].shape, *asked.shape[:2])
