"""Causal networks of any shape: exact answers after observations and after interventions.

A network is a directed graph without cycles over binary variables, with a strength for each edge. A
positive strength produces its effect, a negative one prevents it (Cheng 1997; Novick and Cheng
2004). Let b be the base rate of an effect, and x the states of its causes (0 or 1). The effect is
present with probability

    [1 - (1 - b) prod over producing causes (1 - w x)] prod over preventing causes (1 - |w| x),

and a variable without causes with its base rate. `CausalNetwork.answer` sums over all states. An
intervention cuts a variable off from its causes and holds it at a value, so that it says nothing
about them (Pearl 2000); an observation does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from math import nan
from numbers import Integral, Real

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Edge = tuple[str, str]  # cause, effect
MOST_VARIABLES = 12  # their 4096 states are summed over

# Graphs with a name in the literature, as edges.
NAMED_GRAPHS: dict[str, tuple[Edge, ...]] = {
    "common_effect": (("A", "C"), ("B", "C")),
    "common_cause": (("A", "B"), ("A", "C")),
    "chain": (("A", "B"), ("B", "C")),
    "triangle": (("A", "B"), ("A", "C"), ("B", "C")),
    "three_causes": (("A", "D"), ("B", "D"), ("C", "D")),
    "three_effects": (("A", "B"), ("A", "C"), ("A", "D")),
    "long_chain": (("A", "B"), ("B", "C"), ("C", "D")),
    "diamond": (("A", "B"), ("A", "C"), ("B", "D"), ("C", "D")),
}


@dataclass(frozen=True)
class CausalNetwork:
    """A directed graph without cycles over binary variables, with strengths and base rates.

    Parameters
    ----------
    strengths : A strength for each edge (cause, effect), -1 to 1: above 0 the cause produces its
        effect, below 0 it prevents it.
    base : Base rates, 0 to 1, one for all variables or one for each by name: how likely a variable
        is to be present if it has no causes, or while none of its causes is present.

    Raises
    ------
    ValueError : If the edges form a cycle, a number lies outside its range, a base rate is missing
        or belongs to no variable, or there are more than 12 variables.

    Examples
    --------
    >>> network = CausalNetwork.named("common_effect", strength=0.8, base=0.2)
    >>> round(network.answer("A", given={"C": 1}), 3), network.answer("A", do={"C": 1})
    (0.466, 0.2)
    """

    strengths: Mapping[Edge, float]
    base: float | Mapping[str, float] = 0.5
    variables: tuple[str, ...] = field(init=False)
    bases: dict[str, float] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Check everything that is given; put causes before their effects."""
        strengths = dict(self.strengths)
        for edge, strength in strengths.items():
            if not (isinstance(edge, tuple) and len(edge) == 2):
                raise ValueError(
                    f'An edge is a pair (cause, effect); got {edge!r}. Write it as ("A", "B").'
                )
            _in_range(f"The strength of {edge[0]} -> {edge[1]}", strength, -1.0)
        variables = _causes_first(tuple(strengths))
        if not 2 <= len(variables) <= MOST_VARIABLES:
            raise ValueError(
                f"A network has 2 to {MOST_VARIABLES} variables; got {len(variables)}. "
                "Give the edges of such a graph."
            )
        given = self.base if isinstance(self.base, Mapping) else dict.fromkeys(variables, self.base)
        if set(given) != set(variables):
            odd = sorted(map(str, set(given) ^ set(variables)))
            raise ValueError(
                f"Every variable of the edges has a base rate, and no other; got a difference in "
                f"{', '.join(odd)}. Name {', '.join(variables)}."
            )
        for name, value in given.items():
            _in_range(f"The base rate of {name}", value, 0.0)
        object.__setattr__(self, "strengths", strengths)
        object.__setattr__(self, "bases", {name: float(given[name]) for name in variables})
        object.__setattr__(self, "variables", variables)

    @classmethod
    def named(
        cls, graph: str, strength: float = 0.75, base: float | Mapping[str, float] = 0.25
    ) -> CausalNetwork:
        """Return one of `NAMED_GRAPHS`, all of whose edges have one strength.

        Raises
        ------
        ValueError : If no graph has this name.
        """
        if graph not in NAMED_GRAPHS:
            raise ValueError(
                f"The named graphs are {', '.join(NAMED_GRAPHS)}; got {graph!r}. Choose one of "
                "them, or give edges."
            )
        return cls(dict.fromkeys(NAMED_GRAPHS[graph], strength), base)

    @property
    def states(self) -> NDArray[np.int64]:
        """All states, [2 ** n, n]: columns are `variables`."""
        return np.array(list(product((0, 1), repeat=len(self.variables))))

    def chance(self, effect: str, state: Mapping[str, int]) -> float:
        """Return P(variable is present | states of its causes, 0 or 1)."""
        absent, kept = 1.0 - self.bases[effect], 1.0
        for (cause, variable), strength in self.strengths.items():
            if variable == effect and state[cause]:
                if strength >= 0:
                    absent *= 1.0 - strength
                else:
                    kept *= 1.0 + strength
        return (1.0 - absent) * kept

    def joint(self, do: Mapping[str, int] | None = None) -> Array:
        """Return the probability of each of the `states`, [2 ** n], under an intervention."""
        done = self._told("do", do)
        weights = np.ones(2 ** len(self.variables))
        for row, values in enumerate(self.states):
            state = dict(zip(self.variables, values.tolist(), strict=True))
            for name, value in state.items():
                if name in done:
                    weights[row] *= float(value == done[name])
                else:
                    present = self.chance(name, state)
                    weights[row] *= present if value else 1.0 - present
        return weights

    def answer(
        self,
        query: str,
        given: Mapping[str, int] | None = None,
        do: Mapping[str, int] | None = None,
    ) -> float:
        """Return P(query present | given, do), by summing over all states.

        Parameters
        ----------
        query : The queried variable.
        given : Observations, by variable: 0 absent, 1 present.
        do : Interventions from outside, by variable: 0 absent, 1 present.

        Returns
        -------
        float : NaN where the given facts have probability 0.

        Raises
        ------
        ValueError : If a variable is unknown, has two roles, or a state is not 0 or 1.
        """
        seen, done = self._told("given", given), self._told("do", do)
        self._told("query", {query: 1})
        twice = sorted((set(seen) & set(done)) | ({query} & (set(seen) | set(done))))
        if twice:
            raise ValueError(
                "A variable is asked about, observed or brought about, one of the three; got "
                f"{', '.join(twice)} twice. Leave one out."
            )
        weights, states = self.joint(done), self.states
        fits = np.ones(len(states), dtype=bool)
        for name, value in seen.items():
            fits &= states[:, self.variables.index(name)] == value
        total = float(weights[fits].sum())
        present = fits & (states[:, self.variables.index(query)] == 1)
        return float(weights[present].sum()) / total if total > 0 else nan

    def _told(self, role: str, values: Mapping[str, int] | None) -> dict[str, int]:
        """Return the given states, after a check."""
        states = dict(values or {})
        for name, value in states.items():
            if name not in self.variables:
                raise ValueError(
                    f"The variables are {', '.join(self.variables)}; {role} has {name!r}. "
                    "Choose one of them."
                )
            if not isinstance(value, Integral) or value not in (0, 1):
                raise ValueError(
                    f"A state is 0 (absent) or 1 (present); {role} has {name}={value!r}. "
                    "Give one of the two."
                )
        return states


def _causes_first(edges: tuple[Edge, ...]) -> tuple[str, ...]:
    """Return the variables, each after its causes, otherwise in the order of first mention."""
    left = list(dict.fromkeys(name for edge in edges for name in edge))
    ordered: list[str] = []
    while left:
        free = [v for v in left if not any(e == v and c in left for c, e in edges)]
        if not free:
            raise ValueError(
                f"Edges lead from causes to effects and never back; got a cycle among "
                f"{', '.join(map(str, left))}. Take one of its edges out."
            )
        ordered.append(free[0])
        left.remove(free[0])
    return tuple(ordered)


def _in_range(what: str, value: object, low: float) -> None:
    if not isinstance(value, Real) or isinstance(value, bool) or not low <= float(value) <= 1.0:
        raise ValueError(f"{what} is a number from {low:g} to 1; got {value!r}. Correct it.")
