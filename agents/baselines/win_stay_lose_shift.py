"""A responder who keeps what has just paid and leaves what has not."""

from __future__ import annotations

from math import log

import numpy as np
from numba import njit

from knownminds.agents.agent import Agent
from knownminds.agents.parameters import UNIT, Array, Parameter, Parameters
from knownminds.environments.environment import Observation

LANES = 32  # as in sequences.py


@njit(cache=True, nogil=True, error_model="numpy")
def log_likelihood(theta, lapse, n_actions, row, start, action, reward):  # type: ignore[no-untyped-def]
    """Log-likelihood and gradient, counted trial by trial."""
    total = np.zeros(len(theta))
    gradient = np.zeros((len(theta), 2 if lapse is None else 3))
    for block in range(len(row)):
        for i in range(LANES):
            q = row[block, i]
            last, won = -1.0, 0
            for t in range(start[block], start[block + 1]):
                a = action[t, i]
                if a < 0.0:
                    continue
                k = 0 if won else 1
                moved = 0.0  # d p / d theta[k]
                if last < 0.0:
                    p = 1.0 / n_actions
                elif (a == last) == (k == 0):
                    p, moved = theta[q, k], 1.0
                    if k == 1:
                        p, moved = p / (n_actions - 1), moved / (n_actions - 1)
                else:
                    p, moved = 1.0 - theta[q, k], -1.0
                    if k == 0:
                        p, moved = p / (n_actions - 1), moved / (n_actions - 1)
                if lapse is not None:
                    mixed = (1.0 - lapse[q]) * p + lapse[q] / n_actions
                    gradient[q, 2] += (1.0 / n_actions - p) / mixed
                    p, moved = mixed, (1.0 - lapse[q]) * moved
                total[q] += log(p)
                gradient[q, k] += moved / p
                last, won = a, reward[t, i] > 0.0
    return total, gradient


@njit(cache=True, nogil=True, error_model="numpy")
def simulate(theta, lapse, n_actions, row, start, uniforms, payoffs):  # type: ignore[no-untyped-def]
    """Play the sequences."""
    action = np.empty((start[-1], LANES))
    for block in range(len(row)):
        for i in range(LANES):
            q = row[block, i]
            last, won = -1, False
            for t in range(start[block], start[block + 1]):
                stay = theta[q, 0] if won else 1.0 - theta[q, 1]
                below, chosen = 0.0, n_actions - 1
                for a in range(n_actions - 1):
                    p = 1.0 / n_actions
                    if last >= 0:
                        p = stay if a == last else (1.0 - stay) / (n_actions - 1)
                    if lapse is not None:
                        p = (1.0 - lapse[q]) * p + lapse[q] / n_actions
                    below += p
                    if uniforms[t, i] < below:
                        chosen = a
                        break
                action[t, i] = last = chosen
                won = payoffs[t, chosen, i] > 0.0
    return action


class WinStayLoseShift(Agent):
    """After a win the choice is repeated with probability p_stay, after none left with p_shift.

    A win is a reward above 0. Whoever leaves picks uniformly among the other actions; the first
    choice in each context is uniform.
    """

    name = "win_stay_lose_shift"
    summary = "repeats what has just paid and leaves what has not, each with a probability"
    source = "Worthy, Hawthorne and Otto 2013; the noisy rule of Wilson and Collins 2019"
    parameters = Parameters(
        Parameter(
            "p_stay",
            UNIT,
            mean=1.0,
            sd=1.0,
            description="probability of repeating a choice that has just paid",
        ),
        Parameter(
            "p_shift",
            UNIT,
            mean=1.0,
            sd=1.0,
            description="probability of leaving a choice that has just paid nothing",
        ),
    )
    log_likelihood = staticmethod(log_likelihood)
    simulate = staticmethod(simulate)

    def reset(self) -> None:
        """Forget the last choices and what they paid."""
        self.last: dict[int, tuple[int, bool]] = {}

    def action_probabilities(self, observation: Observation) -> Array:
        """Stay or leave, by what the last choice in this context paid."""
        before = self.last.get(int(observation.get("context", 0)))
        if before is None:
            return np.full(self.actions, 1.0 / self.actions)
        last, won = before
        stay = self.theta[0] if won else 1.0 - self.theta[1]
        share = np.full(self.actions, (1.0 - stay) / (self.actions - 1))
        share[last] = stay
        return share

    def learn(self, observation: Observation, action: int, reward: float) -> None:
        """Remember the choice and whether it paid."""
        self.last[int(observation.get("context", 0))] = (action, reward > 0.0)
