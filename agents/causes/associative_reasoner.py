"""A reasoner that goes by a graph in part only: what is present goes with what is present."""

from __future__ import annotations

from knownminds.agents.parameters import UNIT, Array, Parameter, Parameters
from knownminds.environments.causes.causal_graph import Graph

from .causal_reasoner import (
    LANES,
    MIXTURE,
    NOISE,
    CausalReasoner,
    likelihood,
    simulation,
)
from .noisy_or import M1, M2, B, P, noisy_or

__all__ = ["LANES", "AssociativeReasoner"]

PLACES = (0, 0, 1, 2, 3, 4, 5)


class AssociativeReasoner(CausalReasoner):
    """Mixes (1 - k) noisy-OR with k times the share of observed variables that are present.

    At k = 0 this is `noisy_or`; at k = 1 the direction of the arrows plays no part.
    """

    name = "associative_reasoner"
    summary = "mixes a noisy-OR with the share of observed variables that are present"
    source = "association as the rival of causal inference; Rehder and Waldmann 2017"
    parameters = Parameters(
        P,
        B,
        M1,
        M2,
        Parameter("k", UNIT, mean=-1.0, sd=1.5, description="share of association in an answer"),
        NOISE,
    )
    log_likelihood = staticmethod(likelihood(PLACES, MIXTURE))
    simulate = staticmethod(simulation(PLACES, MIXTURE))

    def weigh(self, graph: Graph) -> Array:
        """Return the probabilities of the states under the noisy-OR."""
        return noisy_or(graph, self.theta[[0, 0, 1, 2, 3]])

    def answer(self, graph: Graph, query: int, told: tuple[int, int, int]) -> float:
        """Return the mixture."""
        shown = [value for value in told if value >= 0]
        association = sum(shown) / len(shown) if shown else 0.5
        k = float(self.theta[4])
        return (1.0 - k) * super().answer(graph, query, told) + k * association
