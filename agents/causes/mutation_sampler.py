"""A reasoner who walks from state to state of a graph, and not for long."""

from __future__ import annotations

import numpy as np
import scipy

from knownminds.agents.parameters import POSITIVE, Array, Parameter, Parameters
from knownminds.environments.causes.causal_graph import Graph

from .causal_reasoner import (
    ENDLESS,
    LANES,
    NOISE,
    WALK,
    CausalReasoner,
    likelihood,
    simulation,
)
from .noisy_or import M1, M2, B, P, noisy_or

__all__ = ["LANES", "MutationSampler", "expected_visits"]

PLACES = (0, 0, 1, 2, 3, 4, 5)
PROTOTYPES = (0, 7)  # the states in which nothing is present, and everything


def transitions(joint: Array) -> Array:
    """Return the transition matrix [8, 8] of a Metropolis walk that proposes to flip a variable."""
    matrix = np.zeros((8, 8))
    for state in range(8):
        for bit in (4, 2, 1):
            matrix[state, state ^ bit] = min(1.0, joint[state ^ bit] / joint[state]) / 3.0
        matrix[state, state] = 1.0 - matrix[state].sum()
    return matrix


def expected_visits(joint: Array, steps: float) -> Array:
    """Return how often a walk of Poisson(steps) steps visits each state, in expectation, [8].

    The sum over t = 0, 1, ... of P(N >= t) times the distribution after t steps; of `ENDLESS` steps
    and more the probabilities themselves, which are the shares of visits in the limit.
    """
    if steps >= ENDLESS:
        return joint
    matrix, now = transitions(joint), np.zeros(8)
    now[list(PROTOTYPES)] = 0.5
    visits: Array = now.copy()
    longest = int(steps + 10.0 * np.sqrt(steps)) + 30  # more steps are all but impossible
    for more in scipy.stats.poisson.sf(np.arange(longest), steps).tolist():
        now = now @ matrix
        visits += more * now
    return visits


class MutationSampler(CausalReasoner):
    """Judges by the states that a short walk through the graph's states visits.

    A Metropolis walk over the eight states begins at a prototype, where nothing or everything is
    present (equal odds), proposes to flip one of the three variables at each of its
    N ~ Poisson(lambda) steps, and accepts with the ratio of the probabilities that a leaky
    noisy-OR gives to the states. A judgement is a share of visited states: of those that agree with
    what is told, where the walk begins among them, the share in which the queried variable is
    present; the answer is the ratio of the expected numbers of both,

        V(queried present and told) / V(told),   V = sum over t of P(N >= t) d T^t,

    with d the prototypes and T the transition matrix. That is what walks come to whose visits are
    pooled. The mean of shares each taken within a single walk is another number, off by up to .15
    for lambda from 1 to 50, and not defined for walks that never meet what is told (at lambda = 7
    up to nine in ten).

    Short walks stay near the prototypes: they make variables look alike, and so weaken explaining
    away and violate the Markov condition, as people do. As lambda grows the visits become the
    probabilities, and the model is `noisy_or`: from 400,000 steps on it is taken to be, though
    where a cause all but never varies even such a walk has not been everywhere.
    """

    name = "mutation_sampler"
    summary = "samples states of a noisy-OR by a short random walk from its prototypes"
    source = "Davis and Rehder 2020"
    parameters = Parameters(
        P,
        B,
        M1,
        M2,
        Parameter(
            "lambda",
            POSITIVE,
            mean=2.0,
            sd=0.7,
            description="mean number of steps of the walk; many make a noisy-OR",
            source="Davis and Rehder 2020",
        ),
        NOISE,
    )
    log_likelihood = staticmethod(likelihood(PLACES, WALK))
    simulate = staticmethod(simulation(PLACES, WALK))

    def weigh(self, graph: Graph) -> Array:
        """Return the expected visits of the states, by powers of the transition matrix."""
        joint = noisy_or(graph, self.theta[[0, 0, 1, 2, 3]])
        return expected_visits(joint, float(self.theta[4]))
