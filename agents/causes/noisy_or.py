"""Causes that each bring about the effect on their own: a leaky noisy-OR and its variants."""

from __future__ import annotations

from functools import partial

from knownminds.agents.agent import merging
from knownminds.agents.parameters import Array, Parameters
from knownminds.environments.causes.causal_graph import Graph, direction_of, noisy_or_joint

from .causal_reasoner import (
    LANES,
    NOISE,
    NOISY_OR,
    CausalReasoner,
    held,
    likelihood,
    merge,
    prior,
    simulation,
)

__all__ = [
    "LANES",
    "NoisyOr",
    "NoisyOrFive",
    "NoisyOrGaussian",
    "NoisyOrPooled",
    "NoisyOrThree",
]

FOUR = (0, 0, 1, 2, 3, -1, 4)  # both causes have the prior p
THREE = (0, 0, 1, 2, 2, -1, 3)
FIVE = (0, 1, 2, 3, 4, -1, 5)

P = prior("p", "probability of a cause before anything is told")
B = prior("b", "leak: probability of an effect none of whose causes is present")
M1 = prior("m1", "strength of the first edge: probability that the cause brings about its effect")
M2 = prior("m2", "strength of the second edge")


def noisy_or(graph: Graph, theta: Array) -> Array:
    """Return the probabilities of the eight states at theta = p1, p2, b, m1, m2."""
    p1, p2, b, m1, m2 = (held(value) for value in theta.tolist())
    return noisy_or_joint(graph, (p1, p2), b, (m1, m2))


class NoisyOr(CausalReasoner):
    """Infers by the probabilities of a leaky noisy-OR, exactly.

    P(E = 0 | c1, c2) = (1 - b) (1 - m1)^c1 (1 - m2)^c2, and each cause has the prior p. Edges of
    a chain or a fork are noisy-ORs with a single cause, of strength m1 (the first) and m2, and
    the same leak; p is the prior of the variable without causes.
    """

    name = "noisy_or"
    summary = "reasons by a leaky noisy-OR: prior, leak, two strengths, noise"
    source = "Cheng 1997; Rehder and Waldmann 2017"
    parameters = Parameters(P, B, M1, M2, NOISE)
    log_likelihood = staticmethod(likelihood(FOUR, NOISY_OR))
    simulate = staticmethod(simulation(FOUR, NOISY_OR))

    def weigh(self, graph: Graph) -> Array:
        """Return the probabilities of the states."""
        return noisy_or(graph, self._causal())

    def _causal(self) -> Array:
        """Return p1, p2, b, m1, m2."""
        return self.theta[[0, 0, 1, 2, 3]]


class NoisyOrThree(NoisyOr):
    """A noisy-OR whose two edges have the same strength m = m1 = m2: the published 3 parameters."""

    name = "noisy_or_three"
    summary = "a leaky noisy-OR with one strength for both edges"
    parameters = Parameters(P, B, prior("m", "strength of both edges"), NOISE)
    log_likelihood = staticmethod(likelihood(THREE, NOISY_OR))
    simulate = staticmethod(simulation(THREE, NOISY_OR))

    def _causal(self) -> Array:
        return self.theta[[0, 0, 1, 2, 2]]


class NoisyOrFive(NoisyOr):
    """A noisy-OR in which each cause of the collider has a prior of its own."""

    name = "noisy_or_five"
    summary = "a leaky noisy-OR with a prior and a strength for each cause"
    parameters = Parameters(
        prior("p1", "probability of C1 before anything is told"),
        prior("p2", "probability of C2 before anything is told"),
        B,
        M1,
        M2,
        NOISE,
    )
    graphs = ("collider",)
    log_likelihood = staticmethod(likelihood(FIVE, NOISY_OR))
    simulate = staticmethod(simulation(FIVE, NOISY_OR))

    def _causal(self) -> Array:
        return self.theta[:5]


class NoisyOrGaussian(NoisyOr):
    """Answers as `NoisyOr` does, cut off at 0 and 100; its likelihood does not know of the cut.

    A plain Gaussian, of which least squares is the maximum likelihood: what the published fits
    assume. It is no density of answers from 0 to 100, as some of it lies outside.
    """

    name = "noisy_or_gaussian"
    summary = "a leaky noisy-OR fitted as if answers were not cut off at 0 and 100"
    censored = False
    prepare = staticmethod(merging(partial(merge, censored=False)))


class NoisyOrPooled(NoisyOr):
    """Answers questions about C2 by the formula of their mirror images about C1.

    The published scoring: m1 and m2 do not belong to the two causes then, and a difference
    between them is one between predictive and diagnostic questions. No graph answers like this
    unless m1 = m2.
    """

    name = "noisy_or_pooled"
    summary = "a leaky noisy-OR that answers both directions of a task by the formula of C1"
    graphs = ("collider",)
    prepare = staticmethod(merging(partial(merge, pooled=True)))
    simulate = staticmethod(simulation(FOUR, NOISY_OR, pooled=True))

    def answer(self, graph: Graph, query: int, told: tuple[int, int, int]) -> float:
        """Return the answer to the question, or to its mirror image about C1."""
        if direction_of(query, *told) == 1:
            query, told = 1 - query if query < 2 else query, (told[1], told[0], told[2])
        return super().answer(graph, query, told)
