"""The null model of choices with a confidence."""

from __future__ import annotations

import numpy as np

from knownminds.environments.turn import Choice, Observation

from .random_responder import NullModel, action_at, likelihood

__all__ = ["RandomResponderConfidence"]


class RandomResponderConfidence(NullModel):
    """Every action has probability 1 / n, and every confidence the density 1."""

    name = "random_responder_confidence"
    summary = "picks uniformly among actions and confidences; no parameters"
    source = "the null model of choices with a confidence"
    columns = ("action", "response")
    given = "both"
    span = (0.0, 1.0)
    n_uniforms = 2
    log_likelihood = staticmethod(likelihood(1.0, acts=True))

    @staticmethod
    def simulate(theta, lapse, n_actions, row, start, uniforms):  # type: ignore[no-untyped-def]
        """Turn the first uniform of each row into an action, the second into a confidence."""
        return action_at(uniforms[:, 0], n_actions), uniforms[:, 1].copy()

    def choose(self, observation: Observation, rng: np.random.Generator) -> Choice:
        first, second = rng.random(2).tolist()
        return int(action_at(first, self.actions)), second
