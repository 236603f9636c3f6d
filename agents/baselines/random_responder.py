"""A responder who picks every action with the same probability."""

from __future__ import annotations

from math import log

import numpy as np

from knownminds.agents.agent import Agent
from knownminds.agents.compiled import compiled
from knownminds.agents.parameters import Array, Parameters
from knownminds.environments.environment import Observation

LANES = 32  # as in sequences.py


@compiled()
def log_likelihood(theta, lapse, n_actions, row, start, action):  # type: ignore[no-untyped-def]
    """Count the choices; each has probability 1 / n_actions, lapse or not."""
    total = np.zeros(len(theta))
    for block in range(len(row)):
        for t in range(start[block], start[block + 1]):
            for i in range(LANES):
                if action[t, i] >= 0.0:
                    total[row[block, i]] -= log(n_actions)
    return total, np.zeros((len(theta), 0 if lapse is None else 1))


@compiled()
def simulate(theta, lapse, n_actions, row, start, uniforms):  # type: ignore[no-untyped-def]
    """Turn each uniform into an action."""
    action = np.empty((start[-1], LANES))
    for t in range(start[-1]):
        for i in range(LANES):
            action[t, i] = min(int(uniforms[t, i] * n_actions), n_actions - 1)
    return action


class RandomResponder(Agent):
    """Every action has probability 1 / n, whatever has happened."""

    name = "random_responder"
    summary = "picks uniformly among the actions; no parameters"
    source = "the null model of every choice task"
    parameters = Parameters()
    columns = ("action",)
    design = ()
    separate = ()
    remembers = False
    log_likelihood = staticmethod(log_likelihood)
    simulate = staticmethod(simulate)

    def reset(self) -> None:
        """Nothing to forget."""

    def action_probabilities(self, observation: Observation) -> Array:
        """Return the same share for all."""
        return np.full(self.actions, 1.0 / self.actions)

    def learn(self, observation: Observation, action: int, reward: float) -> None:
        """Nothing to learn."""
