"""Questions about causal networks of up to four variables, as columns of trials.

Variables stand in an order in which causes come before their effects. A row describes the network
by the base rates b1 to b4 and the strengths w12 to w34 of all possible edges, 0 where there is no
edge. A network of fewer variables has base rates and strengths of 0 for the rest. A row also says
which variable is queried, and what is told of each: -1 nothing, 0 it was observed to be absent, 1
it was observed to be present, 2 it was made absent from outside, 3 it was made present.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .networks import CausalNetwork

Array = NDArray[np.float64]
Question = tuple[int, int, int, int, int]  # query, what is known of each variable

MOST = 4  # variables
NOT_TOLD, SEEN_ABSENT, SEEN_PRESENT, MADE_ABSENT, MADE_PRESENT = -1, 0, 1, 2, 3
CODES = "-1 nothing, 0 seen absent, 1 seen present, 2 made absent, 3 made present"
BASES = tuple(f"b{i + 1}" for i in range(MOST))
STRENGTHS = tuple(f"w{i + 1}{j + 1}" for i, j in combinations(range(MOST), 2))
TOLD = ("first", "second", "third", "fourth")
NETWORK = (*BASES, *STRENGTHS)
QUESTION = ("query", *TOLD)
INTERVENTIONS = ("some", "none", "all")
STATES = np.array(list(product((0, 1), repeat=MOST)), dtype=np.int64)  # [16, 4]


def columns_of(network: CausalNetwork) -> dict[str, float]:
    """Return the columns that describe a network, by name."""
    row = dict.fromkeys(NETWORK, 0.0)
    for position, name in enumerate(network.variables):
        row[BASES[position]] = network.bases[name]
    for (cause, effect), strength in network.strengths.items():
        i, j = (network.variables.index(name) + 1 for name in (cause, effect))
        row[f"w{i}{j}"] = float(strength)
    return row


def network_of(columns: Mapping[str, Any]) -> CausalNetwork:
    """Return the network that the columns describe; its variables are A, B, C, D.

    Raises
    ------
    ValueError : If a base rate or a strength lies outside its range, or there is no edge.
    """
    edges = {edge: float(columns[edge]) for edge in STRENGTHS}
    strengths = {("ABCD"[int(e[1]) - 1], "ABCD"[int(e[2]) - 1]): w for e, w in edges.items() if w}
    names = {name for edge in strengths for name in edge}
    base = {name: float(columns[BASES["ABCD".index(name)]]) for name in sorted(names)}
    return CausalNetwork(strengths, base)


def questions(n_variables: int, most_told: int, interventions: str) -> tuple[Question, ...]:
    """Return every question about a network that tells of one to `most_told` other variables.

    Parameters
    ----------
    interventions : "none" for observations alone; "some" for observations, and interventions on one
        variable at most; "all" for questions with one intervention each.
    """
    every: list[Question] = []
    for query in range(n_variables):
        others = [i for i in range(n_variables) if i != query]
        codes = product(range(NOT_TOLD, MADE_PRESENT + 1), repeat=len(others))
        for values in codes:
            n_told = sum(value != NOT_TOLD for value in values)
            n_made = sum(value >= MADE_ABSENT for value in values)
            if not 1 <= n_told <= most_told or n_made > 1:
                continue
            if (interventions == "none" and n_made) or (interventions == "all" and not n_made):
                continue
            known = dict(zip(others, values, strict=True))
            a, b, c, d = (known.get(i, NOT_TOLD) for i in range(MOST))
            every.append((query, a, b, c, d))
    return tuple(every)


def exact_answers(columns: Mapping[str, Any], seeing: bool = False) -> Array:
    """Return P(query | told) of each row, [rows], by a sum over the 16 states.

    Parameters
    ----------
    columns : The columns of `NETWORK` and `QUESTION`, each [rows].
    seeing : Treat interventions as observations, as a reasoner does who ignores the difference.

    Returns
    -------
    NaN where the given facts have probability 0.
    """
    given = np.stack([np.asarray(columns[name], dtype=float) for name in TOLD])
    query = np.asarray(columns["query"], dtype=float).astype(np.int64)
    weights = np.ones((len(STATES), given.shape[1]))
    for j in range(MOST):
        base = np.asarray(columns[BASES[j]], dtype=float)
        absent = np.repeat(1.0 - base[None], len(STATES), axis=0)
        kept = np.ones_like(absent)
        for i in range(j):
            strength = np.asarray(columns[f"w{i + 1}{j + 1}"], dtype=float)
            x = STATES[:, i, None]
            absent *= 1.0 - np.maximum(strength, 0.0) * x
            kept *= 1.0 - np.maximum(-strength, 0.0) * x
        present = (1.0 - absent) * kept
        missing = absent + (1.0 - absent) * (1.0 - kept)  # this form has no cancellation near 0
        chance = np.where(STATES[:, j, None] == 1, present, missing)
        made = (given[j] >= MADE_ABSENT) & (not seeing)
        agrees = (given[j] == NOT_TOLD) | (given[j] % 2 == STATES[:, j, None])
        weights *= np.where(made, 1.0, chance) * agrees
    fits = weights.sum(axis=0)
    holds = (weights * (STATES[:, query] == 1)).sum(axis=0)
    answers: Array = np.full(len(query), np.nan)
    np.divide(holds, fits, out=answers, where=fits > 0.0)
    return answers


def separated(columns: Mapping[str, Any], variable: int, row: int) -> bool:
    """Say whether the given facts screen the query off from a variable, whatever the strengths.

    The rule is that of the moral graph (Lauritzen and Spiegelhalter 1988). Take the query, the
    variable, what is told, and all their causes. Join the parents of each effect, and drop the
    edges into variables that were set from outside. The query and the variable are separated if
    every path between them goes through something told.

    Parameters
    ----------
    columns : Those of `NETWORK` and `QUESTION`, each [rows].
    The columns of `NETWORK` and `QUESTION`, each [rows].
        Its position; what is known of this variable itself does not count.
    row : The row of `columns` that holds the question.
    """
    states = [int(np.asarray(columns[name])[row]) for name in TOLD]
    query = int(np.asarray(columns["query"])[row])
    made = {j for j in range(MOST) if states[j] >= MADE_ABSENT}
    given = {j for j in range(MOST) if states[j] != NOT_TOLD} - {variable, query}
    parents = {
        j: {i for i in range(j) if j not in made and np.asarray(columns[f"w{i + 1}{j + 1}"])[row]}
        for j in range(MOST)
    }
    kept = {query, variable, *given}
    for j in reversed(range(MOST)):  # causes stand first
        kept |= parents[j] if j in kept else set()
    joined = {frozenset((i, j)) for j in kept for i in parents[j]}
    joined |= {frozenset(pair) for j in kept for pair in combinations(parents[j], 2)}
    reached = {query}
    for _ in range(MOST):
        reached |= {j for pair in joined for j in pair if pair & reached - given and j not in given}
    return variable not in reached
