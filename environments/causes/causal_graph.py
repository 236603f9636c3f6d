"""Causal graphs of three binary variables: their questions, and the answers of a noisy-OR.

A question asks how likely a variable is to be present, given what is told of the two others. It is
the tuple (query, first, second, third): the position of the variable asked about, and what is told
of each (-1 nothing, 0 absent, 1 present).

Traps of the published tables, which the functions below avoid:

- Given that the effect is absent (task X), the denominator is P(E=0) = 1 - P(E=1); the appendix
  of the thesis prints P(E=1).
- The published fits answer both directions of a task by the formula of the first cause. With
  m1 != m2 this describes no graph: the answers about C2 then differ from those of the mirrored
  graph, and m1 - m2 is a mismatch between tasks. `noisy_or_table` gives both directions; the
  pooled scoring is its direction 0 for both.
- Explaining away is told as VII - VI, but the published numbers are VIII - VI.
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
# Pairs of cause and effect; the first has the strength m1, the second m2.
EDGES: dict[Graph, tuple[tuple[int, int], tuple[int, int]]] = {
    "collider": ((0, 2), (1, 2)),
    "chain": ((0, 1), (1, 2)),
    "fork": ((0, 1), (0, 2)),
}
# Where each variable goes if the graph is mirrored; a chain has no mirror image.
_MIRROR: dict[Graph, tuple[int, int, int]] = {"collider": (1, 0, 2), "fork": (0, 2, 1)}


@dataclass(frozen=True)
class Task:
    """A question and, where the graph equals its mirror image, the mirrored one.

    Parameters
    ----------
    graph
        Name of the graph.
    query, told
        The question in direction 0: position of the queried variable, what is known of each.
    roman, letter
        How the thesis calls it; empty where it does not.
    """

    graph: Graph
    query: int
    told: tuple[int, int, int]
    roman: str = ""
    letter: str = ""

    @property
    def question(self) -> Question:
        """The question in direction 0."""
        return (self.query, *self.told)

    @property
    def formula(self) -> str:
        """The question in direction 0, as P(C1 | C2=1, E=1)."""
        names = VARIABLES[self.graph]
        given = [f"{names[i]}={v}" for i, v in enumerate(self.told) if v != NOT_TOLD]
        return f"P({names[self.query]} | {', '.join(given)})"

    @property
    def name(self) -> str:
        """The roman number, or the formula where there is none."""
        return self.roman or self.formula

    @property
    def mirrored(self) -> Question | None:
        """The question in direction 1; None if mirroring does not change it."""
        mirror = _mirrored(self.graph, self.question)
        return None if mirror == self.question else mirror


def _mirrored(graph: Graph, question: Question) -> Question:
    order = _MIRROR.get(graph, (0, 1, 2))
    query, *values = question
    first, second, third = (values[i] for i in order)  # a mirror image is its inverse
    return order[query], first, second, third


def _tasks(graph: Graph) -> tuple[Task, ...]:
    """Return every question about one variable that tells of another, mirror images once."""
    tasks: list[Task] = []
    seen: set[Question] = set()
    for query in range(3):
        for others in product((NOT_TOLD, PRESENT, ABSENT), repeat=2):
            values = list(others)
            values.insert(query, NOT_TOLD)
            first, second, third = values
            question = (query, first, second, third)
            if others != (NOT_TOLD, NOT_TOLD) and question not in seen:
                seen |= {question, _mirrored(graph, question)}
                tasks.append(Task(graph, query, (first, second, third)))
    return tuple(tasks)


# The eleven tasks of the collider, in the order of their roman numbers.
TASKS: tuple[Task, ...] = (
    Task("collider", 2, (0, 0, -1), "I", "i"),
    Task("collider", 2, (0, 1, -1), "II", "j"),
    Task("collider", 2, (1, 1, -1), "III", "k"),
    Task("collider", 0, (-1, 1, -1), "IV", "d"),
    Task("collider", 0, (-1, 0, -1), "V", "e"),
    Task("collider", 0, (-1, 1, 1), "VI", "a"),
    Task("collider", 0, (-1, -1, 1), "VII", "b"),
    Task("collider", 0, (-1, 0, 1), "VIII", "c"),
    Task("collider", 0, (-1, 1, 0), "IX", "f"),
    Task("collider", 0, (-1, -1, 0), "X", "g"),
    Task("collider", 0, (-1, 0, 0), "XI", "h"),
)
_TASKS: dict[Graph, tuple[Task, ...]] = {
    "collider": TASKS,
    "chain": _tasks("chain"),
    "fork": _tasks("fork"),
}


def tasks(graph: Graph) -> tuple[Task, ...]:
    """Return the tasks of a graph; a task's number is its position here.

    Those of the collider are the eleven of Rehder and Waldmann (2017): a cause given anything
    that can be shown of the two others, the effect given both causes. Those of chain and fork are
    made alike: every variable given anything that can be shown of one or both of the others, never
    given nothing, which would ask for a frequency that no prompt tells. That makes 24 of the
    chain, and 13 of the fork, whose two effects are mirror images.
    """
    return _TASKS[graph]


def questions(graph: Graph, directions: Directions = "both") -> tuple[Question, ...]:
    """Return the questions about a graph: task by task, direction 0 before direction 1.

    Both directions of the collider make 20, of the fork 24; a chain has one direction, of 24.
    """
    every: list[Question] = []
    for task in tasks(graph):
        every.append(task.question)
        if directions == "both" and task.mirrored is not None:
            every.append(task.mirrored)
    return tuple(every)


def _places() -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    task_at = np.full((3, 3, 3, 3, 3), -1)
    direction_at = np.full((3, 3, 3, 3, 3), -1)
    for g, graph in enumerate(GRAPHS):
        for number, task in enumerate(tasks(graph)):
            for direction, question in enumerate((task.question, task.mirrored)):
                if question is not None:
                    query, *values = question
                    index = (g, query, *(value + 1 for value in values))
                    task_at[index], direction_at[index] = number, direction
    return task_at, direction_at


_TASK_AT, _DIRECTION_AT = _places()


def task_of(
    query: ArrayLike, first: ArrayLike, second: ArrayLike, third: ArrayLike, graph: ArrayLike = 0
) -> NDArray[np.int64]:
    """Return the numbers of the tasks (0 to 10 are I to XI of the collider), -1 for no task."""
    return np.asarray(_TASK_AT[_at(query, first, second, third, graph)])


def direction_of(
    query: ArrayLike, first: ArrayLike, second: ArrayLike, third: ArrayLike, graph: ArrayLike = 0
) -> NDArray[np.int64]:
    """Return 0 for questions as they stand in `tasks`, 1 for mirrored ones, -1 for no task.

    In the collider direction 1 asks about C2, or about the effect given C1 alone; tasks I and III
    equal their mirror images.
    """
    return np.asarray(_DIRECTION_AT[_at(query, first, second, third, graph)])


def _at(
    query: ArrayLike, first: ArrayLike, second: ArrayLike, third: ArrayLike, graph: ArrayLike
) -> tuple[NDArray[np.int64], ...]:
    values = (np.asarray(value, dtype=np.int64) + 1 for value in (first, second, third))
    return (np.asarray(graph, dtype=np.int64), np.asarray(query, dtype=np.int64), *values)


def noisy_or_table(
    p1: ArrayLike, p2: ArrayLike, b: ArrayLike, m1: ArrayLike, m2: ArrayLike
) -> Array:
    """Answer the eleven collider tasks under a leaky noisy-OR, [..., 11, 2].

    The last axis is the direction; tasks I and III have the same answer in both. The published
    scoring takes direction 0 for both directions.

    Parameters
    ----------
    p1, p2
        Prior probabilities of the causes; the published models have one, p1 = p2.
    b
        Leak: the probability of the effect without any cause.
    m1, m2
        Strengths of the causes.
    """
    given = np.broadcast_arrays(p1, p2, b, m1, m2)
    asked = np.array([(task.question, task.mirrored or task.question) for task in TASKS])
    # Causes have no causes: what is seen of one is as if it were brought about, and is possible.
    asked[..., 1:3] += np.where(asked[..., 1:3] == NOT_TOLD, 0, MADE_ABSENT)
    columns = {name: np.zeros(asked[..., 0].size * given[0].size) for name in NETWORK}
    for name, values in zip(("b1", "b2", "b3", "w13", "w23"), given, strict=True):
        columns[name] = np.repeat(values.ravel(), asked[..., 0].size)
    for name, values in zip(QUESTION, np.moveaxis(asked, -1, 0), strict=False):
        columns[name] = np.tile(values.ravel(), given[0].size)
    columns["fourth"] = np.full(len(columns["query"]), NOT_TOLD)
    return exact_answers(columns).reshape(*given[0].shape, *asked.shape[:2])
