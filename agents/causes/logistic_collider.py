"""A rival of the noisy-OR: causes whose influences add up in log odds."""

from __future__ import annotations

from knownminds.agents.parameters import IDENTITY, Array, Parameter, Parameters
from knownminds.environments.causes.causal_graph import Graph, logistic_joint

from .causal_reasoner import (
    LANES,
    LOGISTIC,
    NOISE,
    CausalReasoner,
    held,
    likelihood,
    prior,
    simulation,
)

__all__ = ["LANES", "LogisticCollider"]

PLACES = (0, 0, 1, 2, 3, -1, 4)


class LogisticCollider(CausalReasoner):
    """Infers by a logistic regression of the effect on its causes, exactly.

    P(E = 1 | c1, c2) = logistic(b_0 + w_1 c1 + w_2 c2), and each cause has the prior p. Edges of a
    chain or a fork have the weights w_1 (the first) and w_2, and the same intercept.
    """

    name = "logistic_collider"
    summary = "reasons by a logistic function of the causes: prior, intercept, two weights, noise"
    source = "logistic regression as a causal mechanism; the additive rival of Cheng 1997"
    parameters = Parameters(
        prior("p", "probability of a cause before anything is told"),
        Parameter(
            "b_0", IDENTITY, mean=0.0, sd=1.5, description="log odds of an effect without causes"
        ),
        Parameter(
            "w_1", IDENTITY, mean=1.5, sd=1.5, description="log odds that the first edge adds"
        ),
        Parameter(
            "w_2", IDENTITY, mean=1.5, sd=1.5, description="log odds that the second edge adds"
        ),
        NOISE,
    )
    log_likelihood = staticmethod(likelihood(PLACES, LOGISTIC))
    simulate = staticmethod(simulation(PLACES, LOGISTIC))

    def weigh(self, graph: Graph) -> Array:
        """Return the probabilities of the states."""
        p, b_0, w_1, w_2, _ = self.theta.tolist()
        return logistic_joint(graph, held(p), b_0, (w_1, w_2))
