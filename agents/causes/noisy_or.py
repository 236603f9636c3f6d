"""Reasoners over causal graphs of three binary variables: leaky noisy-OR, its variants, rivals.

A reasoner answers with a share: the probability of the states that agree with what is shown and
have the queried variable present, over the probability of all states that agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit

from knownminds.agents.compiler.definition import real, unit
from knownminds.agents.model import Model
from knownminds.agents.parameters import Array
from knownminds.environments.causes.causal_graph import GRAPHS, Graph
from knownminds.environments.environment import Environment

from .percentages import NOISE, PercentJudge

__all__ = [
    "NoisyOr",
    "NoisyOrThree",
    "NoisyOrFive",
    "NoisyOrGaussian",
    "NoisyOrPooled",
    "LogisticCollider",
    "AssociativeReasoner",
]

EDGE = 1e-9  # probabilities keep this distance from 0 and 1, so that every state is possible
STEEPEST = 300.0  # beyond such log odds a logistic function is practically 0 or 1
QUESTION = ("query", "first", "second", "third")
COLLIDER, CHAIN, FORK = 0, 1, 2  # positions in `GRAPHS`


class CausalReasoner(Model):
    """An agent with a causal graph, which answers questions on a scale from 0 to 100.

    An answer is 100 times (prediction + sigma N(0, 1)), cut off at 0 and 100.

    Attributes
    ----------
    graphs : The graphs that the model can reason about.
    """

    graphs: ClassVar[Sequence[Graph]] = GRAPHS

    @classmethod
    def check_plays(cls, environment: Environment) -> None:
        """Raise ValueError also if the model does not know the graph."""
        super().check_plays(environment)
        graph = environment.settings.get("graph", "collider")
        if graph not in cls.graphs:
            raise ValueError(
                f"{cls.name} reasons about a {' or a '.join(cls.graphs)}; {environment.name} has a "
                f"{graph} here. Choose another model, such as noisy_or."
            )

    @classmethod
    def judgements(cls, theta: Array, graph: Array, questions: Array) -> Array:
        """Return the judgements of agents with theta[n, P] on questions, [n, Q], from 0 to 1.

        Parameters
        ----------
        graph, questions : [Q], positions in `GRAPHS`; [Q, 4], the queried variable and what is
            known of each variable.
        """
        raise NotImplementedError


def prior(description: str) -> Any:
    """Declare a probability of a graph, with the prior that all of them share."""
    return unit(description, mean=0.0, sd=1.5)


def _inside(probability: Any) -> Any:
    return np.clip(probability, EDGE, 1.0 - EDGE)


class GraphReasoner(CausalReasoner, PercentJudge):
    """Sums over the eight states of a graph; its edges are of one kind and differ in strength.

    The graph is a collider C1 -> E <- C2, a chain C1 -> C2 -> C3 or a fork C2 <- C1 -> C3. Each
    variable without causes has a prior.
    """

    def priors(self) -> tuple[Any, Any]:
        raise NotImplementedError

    def effect(self, first: int, second: int) -> Any:
        raise NotImplementedError

    def question(self, trial: Any) -> tuple[Any, tuple[Any, Any, Any]]:
        """Return which variable is queried, and what is known of the three."""
        return trial.query, (trial.first, trial.second, trial.third)

    def chances(self, graph: int) -> dict[tuple[int, ...], Any]:
        """Return the probability of each state of a graph."""
        p1, p2 = self.priors()
        joint: dict[tuple[int, ...], Any] = {}
        for x1, x2 in product((0, 1), repeat=2):
            second = p2 if graph == COLLIDER else self.effect(x1, 0)
            causes = {COLLIDER: (x1, x2), CHAIN: (0, x2), FORK: (0, x1)}[graph]
            third = self.effect(*causes)
            both = (p1 if x1 else 1.0 - p1) * (second if x2 else 1.0 - second)
            joint[x1, x2, 0], joint[x1, x2, 1] = both * (1.0 - third), both * third
        return joint

    def judge(self, trial: Any) -> Any:
        query, states = self.question(trial)
        collider, chain, fork = (self.chances(graph) for graph in (COLLIDER, CHAIN, FORK))
        fits: Any = 0.0
        holds: Any = 0.0
        for state in product((0, 1), repeat=3):
            chance: Any = np.where(trial.graph == CHAIN, chain[state], fork[state])
            chance = np.where(trial.graph == COLLIDER, collider[state], chance)
            differs = sum(np.where(t == 1 - x, 1, 0) for t, x in zip(states, state, strict=True))
            chance = np.where(differs > 0, 0.0, chance)
            present = sum(np.where(query == k, x, 0) for k, x in enumerate(state))
            fits, holds = fits + chance, holds + np.where(present > 0, chance, 0.0)
        return holds / fits

    @classmethod
    def judgements(cls, theta: Array, graph: Array, questions: Array) -> Array:
        named = zip(cls.parameters.names, np.asarray(theta).T, strict=True)
        trial = SimpleNamespace(graph=graph, **dict(zip(QUESTION, questions.T, strict=True)))
        values: Array = cls.with_values({name: x[:, None] for name, x in named}, 0).judge(trial)
        return values


class LeakyNoisyOr(GraphReasoner):
    """The base of leaky noisy-ORs: P(E = 0) = (1 - b) (1 - m1)^c1 (1 - m2)^c2."""

    source = "Cheng 1997; Rehder and Waldmann 2017"

    p: Any = prior("probability of a cause before anything is shown")
    b = prior("leak: probability of an effect none of whose causes is present")
    m1: Any = prior(
        "strength of the first edge: probability that the cause brings about its effect"
    )
    m2: Any = prior("strength of the second edge")
    p1: Any = property(lambda self: self.p)
    p2: Any = property(lambda self: self.p)

    def priors(self) -> tuple[Any, Any]:
        return _inside(self.p1), _inside(self.p2)

    def effect(self, first: Any, second: Any) -> Any:
        fails = (1.0 - _inside(self.m1) * first) * (1.0 - _inside(self.m2) * second)
        return 1.0 - (1.0 - _inside(self.b)) * fails


class NoisyOr(LeakyNoisyOr):
    """Infers by the probabilities of a leaky noisy-OR, exactly.

    P(E = 0 | c1, c2) = (1 - b) (1 - m1)^c1 (1 - m2)^c2, and each cause has the prior p. The edges
    of a chain or a fork are noisy-ORs with a single cause. They have the strengths m1 (the first
    edge) and m2, and the same leak; p is the prior of the variable without causes.
    """

    name = "noisy_or"
    summary = "reasons by a leaky noisy-OR: prior, leak, two strengths, noise"
    nested_in = "noisy_or_five"
    sigma = NOISE


class NoisyOrFive(NoisyOr):
    """A noisy-OR in which each cause of the collider has a prior of its own."""

    name = "noisy_or_five"
    summary = "a leaky noisy-OR with a prior and a strength for each cause"
    graphs = ("collider",)

    p = None
    p1 = prior("probability of C1 before anything is shown")
    p2 = prior("probability of C2 before anything is shown")
    b, m1, m2, sigma = NoisyOr.b, NoisyOr.m1, NoisyOr.m2, NOISE


class NoisyOrThree(NoisyOr):
    """A noisy-OR whose two edges have the same strength m = m1 = m2: the published 3 parameters."""

    name = "noisy_or_three"
    summary = "a leaky noisy-OR with one strength for both edges"
    nested_in = "noisy_or"

    m = prior("strength of both edges")
    m1 = m2 = property(lambda self: self.m)
    sigma = NOISE


class NoisyOrGaussian(NoisyOr):
    """Answers as `NoisyOr` does, cut off at 0 and 100, but its likelihood ignores the cut.

    The density is a plain Gaussian, for which least squares gives the maximum likelihood. The
    published fits assume this. It is not a density of answers from 0 to 100, as some of it lies
    outside. So its posteriors are too narrow and its sigma is too small.
    """

    name = "noisy_or_gaussian"
    summary = "a leaky noisy-OR fitted as if answers were not cut off at 0 and 100"
    censored = False


class NoisyOrPooled(NoisyOr):
    """Answers questions about C2 by the formula of their mirror images about C1.

    This is the published scoring. Here m1 and m2 do not belong to the two causes; a difference
    between them is one between predictive and diagnostic questions. No graph gives such answers
    unless m1 = m2.
    """

    name = "noisy_or_pooled"
    summary = "a leaky noisy-OR that answers both directions of a task by the formula of C1"
    graphs = ("collider",)

    def question(self, trial: Any) -> tuple[Any, tuple[Any, Any, Any]]:
        one_cause = (trial.query == 2) & (trial.first == 1) & (trial.second == 0)
        turned = (trial.query == 1) | one_cause
        first = np.where(turned, trial.second, trial.first)
        second = np.where(turned, trial.first, trial.second)
        return np.where(trial.query == 1, 0, trial.query), (first, second, trial.third)


class AssociativeReasoner(LeakyNoisyOr):
    """Mixes (1 - k) noisy-OR with k times the share of observed variables that are present.

    At k = 0 this is `noisy_or`; at k = 1 the direction of the arrows does not matter.
    """

    name = "associative_reasoner"
    summary = "mixes a noisy-OR with the share of observed variables that are present"
    source = "association as the rival of causal inference; Rehder and Waldmann 2017"
    contains: ClassVar = {"noisy_or": {"k": 0.0}}

    k = unit("share of association in an answer", mean=-1.0, sd=1.5)
    sigma = NOISE

    def judge(self, trial: Any) -> Any:
        states = (trial.first, trial.second, trial.third)
        shown = sum(np.where(t >= 0, 1.0, 0.0) for t in states)
        present = sum(np.where(t == 1, 1.0, 0.0) for t in states)
        share = np.where(shown > 0.0, present / np.maximum(shown, 1.0), 0.5)
        return (1.0 - self.k) * super().judge(trial) + self.k * share


class LogisticCollider(GraphReasoner):
    """Infers by a logistic regression of the effect on its causes, exactly.

    P(E = 1 | c1, c2) = logistic(b_0 + w_1 c1 + w_2 c2), and each cause has the prior p. The edges
    of a chain or a fork have the weights w_1 (the first edge) and w_2, and the same intercept.
    """

    name = "logistic_collider"
    summary = "reasons by a logistic function of the causes: prior, intercept, two weights, noise"
    source = "logistic regression as a causal mechanism; the additive rival of Cheng 1997"

    p = prior("probability of a cause before anything is shown")
    b_0 = real("log odds of an effect without causes", mean=0.0, sd=1.5)
    w_1 = real("log odds that the first edge adds", mean=1.5, sd=1.5)
    w_2 = real("log odds that the second edge adds", mean=1.5, sd=1.5)
    sigma = NOISE

    def priors(self) -> tuple[Any, Any]:
        return _inside(self.p), _inside(self.p)

    def effect(self, first: Any, second: Any) -> Any:
        odds = self.b_0 + self.w_1 * first + self.w_2 * second
        return expit(np.clip(odds, -STEEPEST, STEEPEST))
