"""Discrete belief networks as plain arrays, with exact posteriors of many contexts at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import ArrayLike, NDArray

from knownminds.members import unknown

Array = NDArray[np.float64]
States = NDArray[np.int64]

UNTOLD = -1  # the state of a node that is not shown
LARGEST_TABLE = 2**24  # one elimination may need so many entries per context
_AT_ONCE = 2**21  # so many entries are held at once for all contexts of a batch
_ROUNDING = 1e-6  # probabilities in a file may differ from a sum of 1 by this


@dataclass(frozen=True)
class NoisyOrLaw:
    """A node of two states that each of its parents can bring about without the others.

    The law is P(state 1 | parents) = 1 - (1 - leak) prod_k (1 - strengths[k][state of parent k])
    (Pearl 1988).

    Parameters
    ----------
    leak : probability of state 1 without any parent's help
    strengths : for each parent, the probability with which each of its states brings it about
    """

    leak: float
    strengths: tuple[tuple[float, ...], ...]

    def table(self) -> Array:
        """Return P(state | parents), [*states of the parents, 2]."""
        spared = np.array(1.0 - self.leak)
        for strength in self.strengths:
            spared = spared[..., None] * (1.0 - np.asarray(strength, dtype=float))
        return np.stack([spared, 1.0 - spared], axis=-1)


@dataclass(frozen=True)
class Node:
    """A variable of a network: the names of its states, and how it depends on its parents.

    Parameters
    ----------
    name : name of the variable
    states : names of its states
    parents : names of the nodes it depends on
    law : P(state | parents), [*states of the parents, states], or a noisy or
    """

    name: str
    states: tuple[str, ...]
    parents: tuple[str, ...]
    law: Array | NoisyOrLaw

    @property
    def table(self) -> Array:
        """P(state | parents), [*states of the parents, states]."""
        return self.law.table() if isinstance(self.law, NoisyOrLaw) else self.law


# A table over variables by number; its first axis is the context, of length 1 if all share it.
_Factor = tuple[tuple[int, ...], Array]


class BeliefNetwork:
    """A joint distribution of discrete variables: the product of P(node | its parents).

    Parameters
    ----------
    nodes : The nodes, in any order.

    Raises
    ------
    ValueError : If a name stands twice, a parent is unknown, nodes form a cycle, or probabilities
        have the wrong number or do not sum to 1. The error names the node.
    """

    def __init__(self, nodes: Sequence[Node]):
        self.nodes = tuple(nodes)
        self.names = tuple(node.name for node in self.nodes)
        twice = [name for name in self.names if self.names.count(name) > 1]
        if twice:
            raise ValueError(f"Nodes of a network have names of their own; got {twice[0]!r} twice.")
        if not self.nodes:
            raise ValueError("A network has at least one node; got none.")
        self._position = {name: i for i, name in enumerate(self.names)}
        for node in self.nodes:
            for parent in node.parents:
                if parent not in self._position:
                    message = unknown(
                        "node", parent, self.names, f" among the parents of {node.name}"
                    )
                    raise ValueError(message)
            if len(set(node.states)) < len(node.states) or not node.states:
                raise ValueError(
                    f"States of a node have names of their own; {node.name} has "
                    f"{', '.join(node.states) or 'none'}."
                )
        self.parents = tuple(
            tuple(self._position[parent] for parent in node.parents) for node in self.nodes
        )
        self.cards = tuple(len(node.states) for node in self.nodes)
        self.order = self._ordered()
        for node, parents in zip(self.nodes, self.parents, strict=True):
            _check_law(node, [self.nodes[parent] for parent in parents])

    def position(self, name: str) -> int:
        """Return the number of a node; ValueError names the nearest names if there is none."""
        if name not in self._position:
            raise ValueError(unknown("node", name, self.names, " in this network"))
        return self._position[name]

    def sample(self, uniforms: Array) -> States:
        """Draw states of all nodes, [cases, nodes], from uniforms[cases, nodes]."""
        states = np.zeros(uniforms.shape, dtype=np.int64)
        for i in self.order:
            row = self.nodes[i].table[tuple(states[:, parent] for parent in self.parents[i])]
            below = np.cumsum(row, axis=-1)[..., :-1]
            states[:, i] = (uniforms[:, i, None] >= below).sum(axis=-1)
        return states

    def posterior(self, query: Sequence[str], evidence: ArrayLike) -> Array:
        """Return P(query | evidence) exactly, [contexts, *states of the query].

        The method is variable elimination (Zhang and Poole 1994), for all contexts at once that
        show the same nodes. Evidence selects a part of each table before anything is multiplied,
        and nodes that do not matter for the question are left out.

        Parameters
        ----------
        query : Names of nodes; the answer for several nodes is their joint distribution.
        evidence : States, [contexts, nodes]; -1 where a node is not shown.

        Raises
        ------
        ValueError : If tables of more than 2**24 entries are needed, a node is unknown, a state is
            out of range, a node is both queried and shown, or the evidence has probability 0.
        """
        targets = tuple(self.position(name) for name in query)
        contexts = self._contexts(targets, evidence)
        posteriors = np.empty((len(contexts), *(self.cards[i] for i in targets)))
        kinds, kind = np.unique(contexts != UNTOLD, axis=0, return_inverse=True)
        for k, observed in enumerate(kinds):
            rows = np.flatnonzero(kind.ravel() == k)
            order, largest = self._plan(targets, observed)
            if largest > LARGEST_TABLE:
                raise ValueError(
                    f"Exact posteriors hold tables of up to {LARGEST_TABLE} entries; this network "
                    f"needs {largest} where {int(observed.sum())} nodes are told. Tell of more "
                    "nodes, or leave edges out."
                )
            step = max(_AT_ONCE // largest, 1)
            for start in range(0, len(rows), step):
                part = rows[start : start + step]
                joint = self._eliminated(targets, observed, contexts[part], order)
                posteriors[part] = self._normalised(joint, contexts[part], part)
        return posteriors

    def _ordered(self) -> tuple[int, ...]:
        """Return the nodes in an order in which parents come first."""
        order: list[int] = []
        left = set(range(len(self.nodes)))
        while left:
            free = sorted(i for i in left if not left.intersection(self.parents[i]))
            if not free:
                raise ValueError(
                    "Nodes of a network form no cycle; got "
                    f"{' -> '.join(self._cycle(left))}. Take one of these edges out."
                )
            order += free
            left.difference_update(free)
        return tuple(order)

    def _cycle(self, left: set[int]) -> list[str]:
        """Return a cycle among nodes, each of which has a parent among them."""
        path = [min(left)]
        while True:
            before = min(left.intersection(self.parents[path[-1]]))
            if before in path:
                round_trip = [*path[path.index(before) :], before]
                return [self.names[i] for i in reversed(round_trip)]
            path.append(before)

    def _contexts(self, targets: tuple[int, ...], evidence: ArrayLike) -> States:
        contexts = np.atleast_2d(np.asarray(evidence, dtype=np.int64))
        if contexts.shape[1] != len(self.nodes):
            raise ValueError(
                f"Evidence has a column per node; there are {len(self.nodes)} nodes and "
                f"{contexts.shape[1]} columns."
            )
        wrong = np.argwhere((contexts < UNTOLD) | (contexts >= np.array(self.cards)))
        if len(wrong):
            context, i = wrong[0]
            raise ValueError(
                f"States of {self.names[i]} are 0 to {self.cards[i] - 1}, -1 where nothing is "
                f"told; context {context} has {contexts[context, i]}."
            )
        both = np.argwhere(contexts[:, list(targets)] != UNTOLD)
        if len(both):
            context, k = both[0]
            raise ValueError(
                f"What is asked for is not told; context {context} tells {self.names[targets[k]]}."
            )
        return contexts

    def _normalised(self, joint: Array, evidence: States, contexts: States) -> Array:
        joint = np.maximum(joint, 0.0)  # a noisy or subtracts, with rounding errors
        total = joint.sum(axis=tuple(range(1, joint.ndim)), keepdims=True)
        lost = np.flatnonzero(total.ravel() <= 0.0)
        if len(lost):
            states = ", ".join(
                f"{node.name}={node.states[state]}"
                for node, state in zip(self.nodes, evidence[lost[0]], strict=True)
                if state != UNTOLD
            )
            raise ValueError(
                f"What is told has to be possible; context {contexts[lost[0]]} has probability "
                f"0: {states}."
            )
        normalised: Array = joint / total
        return normalised

    def _relevant(self, targets: tuple[int, ...], observed: NDArray[np.bool_]) -> list[int]:
        """Return the nodes that matter for a question: queried or shown, and their ancestors."""
        relevant: set[int] = set()
        above = [*targets, *np.flatnonzero(observed).tolist()]
        while above:
            i = above.pop()
            if i not in relevant:
                relevant.add(i)
                above += self.parents[i]
        return sorted(relevant)

    def _scopes(self, relevant: Sequence[int]) -> list[tuple[tuple[int, ...], Array]]:
        """Return the factors, without an axis of contexts.

        A noisy or becomes one factor per parent, so that a table over all its parents is never made
        (Heckerman 1993). An additional variable, numbered after the nodes, joins these factors. Its
        state 0 has the probability that no parent brings the effect about, and its state 1 has 1.
        So P(absent) = state 0, and P(present) = state 1 - state 0.
        """
        factors: list[tuple[tuple[int, ...], Array]] = []
        for i in relevant:
            node, law = self.nodes[i], self.nodes[i].law
            if not isinstance(law, NoisyOrLaw):
                factors.append(((*self.parents[i], i), law))
                continue
            joint = len(self.nodes) + i
            spared = 1.0 - law.leak
            factors.append(((joint, i), np.array([[spared, -spared], [0.0, 1.0]])))
            for parent, strength in zip(self.parents[i], law.strengths, strict=True):
                kept = 1.0 - np.asarray(strength, dtype=float)
                factors.append(((joint, parent), np.stack([kept, np.ones(len(kept))])))
            assert len(node.states) == 2
        return factors

    def _card(self, variable: int) -> int:
        return self.cards[variable] if variable < len(self.cards) else 2

    def _plan(
        self, targets: tuple[int, ...], observed: NDArray[np.bool_]
    ) -> tuple[tuple[int, ...], int]:
        """Return an order in which variables are eliminated, and the size of the largest table.

        It is the better one of two greedy orders: smallest table next, and fewest new neighbours
        next.
        """
        relevant = self._relevant(targets, observed)
        known = set(np.flatnonzero(observed).tolist())
        scopes = [frozenset(scope) - known for scope, _ in self._scopes(relevant)]
        plans = [self._greedy(targets, scopes, by_fill) for by_fill in (False, True)]
        return min(plans, key=lambda plan: plan[1])

    def _greedy(
        self, targets: tuple[int, ...], scopes: list[frozenset[int]], by_fill: bool
    ) -> tuple[tuple[int, ...], int]:
        near: dict[int, set[int]] = {v: set() for scope in scopes for v in scope}
        for scope in scopes:
            for v in scope:
                near[v] |= scope - {v}
        left = set(near) - set(targets)
        order: list[int] = []
        largest = prod(self._card(i) for i in targets)
        while left:
            sizes = {v: prod(self._card(i) for i in (v, *near[v])) for v in left}
            new = dict.fromkeys(left, 0)
            if by_fill:
                new = {v: sum(len(near[v] - near[w]) - 1 for w in near[v]) for v in left}
            v = min(left, key=lambda v: (new[v], sizes[v], v))
            largest = max(largest, sizes[v])
            for w in near[v]:
                near[w] |= near[v] - {w}
                near[w].discard(v)
            order.append(v)
            left.remove(v)
        return tuple(order), largest

    def _eliminated(
        self,
        targets: tuple[int, ...],
        observed: NDArray[np.bool_],
        evidence: States,
        order: Sequence[int],
    ) -> Array:
        """Return P(query, evidence), [contexts, *states of the query]."""
        factors: list[_Factor] = []
        for scope, table in self._scopes(self._relevant(targets, observed)):
            seen = [k for k, i in enumerate(scope) if i < len(observed) and observed[i]]
            rest = [k for k in range(len(scope)) if k not in seen]
            ordered = table.transpose(*seen, *rest)
            of_rows = ordered[tuple(evidence[:, scope[k]] for k in seen)] if seen else ordered[None]
            factors.append((tuple(scope[k] for k in rest), of_rows))
        for v in order:
            bucket = [factor for factor in factors if v in factor[0]]
            factors = [factor for factor in factors if v not in factor[0]]
            joined = sorted(set().union(*(scope for scope, _ in bucket)) - {v})
            factors.append((tuple(joined), _product(bucket, (*joined, v)).sum(axis=-1)))
        return np.broadcast_to(
            _product(factors, targets), (len(evidence), *(self.cards[i] for i in targets))
        )


def _product(factors: Sequence[_Factor], axes: tuple[int, ...]) -> Array:
    """Multiply tables, [contexts, *axes], the small ones first."""
    total: Array = np.ones((1,) * (len(axes) + 1))
    for scope, table in sorted(factors, key=lambda factor: factor[1].size):
        ordered = table.transpose(0, *(1 + scope.index(a) for a in axes if a in scope))
        total = total * ordered[:, *(slice(None) if a in scope else None for a in axes)]
    return total


def _check_law(node: Node, parents: Sequence[Node]) -> None:
    cards = tuple(len(parent.states) for parent in parents)
    if isinstance(node.law, NoisyOrLaw):
        return  # only networks that ship have None here
    due = (*cards, len(node.states))
    if node.law.shape != due:
        raise ValueError(
            f"The table of a node has an axis for each parent and one for itself; {node.name} "
            f"needs {due}, got {node.law.shape}."
        )
    wrong = np.argwhere(
        (np.abs(node.law.sum(axis=-1) - 1.0) > _ROUNDING) | ~(node.law >= 0.0).all(axis=-1)
    )
    if len(wrong):
        row = tuple(wrong[0].tolist())
        states = [f"{p.name}={p.states[k]}" for p, k in zip(parents, row, strict=True)]
        given = f" given {', '.join(states)}" if states else ""
        values = ", ".join(f"{p:g}" for p in node.law[row])
        raise ValueError(
            f"Probabilities of a node are 0 or more and sum to 1; {node.name}{given} has {values}."
        )
