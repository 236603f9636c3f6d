"""A responder who repeats the last choice, whatever it paid."""

from __future__ import annotations

from math import exp, log
from typing import Any

import numpy as np
from numba import njit

from knownminds.agents.agent import Agent
from knownminds.agents.parameters import IDENTITY, Array, Parameter, Parameters
from knownminds.environments.environment import Environment, Observation

LANES = 32  # as in sequences.py


@njit(cache=True, nogil=True, error_model="numpy")
def log_likelihood(theta, lapse, n_actions, row, start, action):  # type: ignore[no-untyped-def]
    """Log-likelihood and gradient; a softmax in which only the last choice stands out."""
    total = np.zeros(len(theta))
    gradient = np.zeros((len(theta), 1 if lapse is None else 2))
    others = n_actions - 1.0
    for block in range(len(row)):
        for i in range(LANES):
            q = row[block, i]
            weight = exp(-abs(theta[q, 0]))
            # Probability of repeating, and of one particular other action.
            if theta[q, 0] > 0.0:
                again, other = 1.0 / (1.0 + others * weight), weight / (1.0 + others * weight)
            else:
                again, other = weight / (weight + others), 1.0 / (weight + others)
            slope = again * (1.0 - again)  # d again / d kappa; that of `other` is -again * other
            last = -1.0
            for t in range(start[block], start[block + 1]):
                a = action[t, i]
                if a < 0.0:
                    continue
                if last < 0.0:
                    p, change = 1.0 / n_actions, 0.0
                elif a == last:
                    p, change = again, slope
                else:
                    p, change = other, -again * other
                if lapse is not None:
                    mixed = (1.0 - lapse[q]) * p + lapse[q] / n_actions
                    gradient[q, 1] += (1.0 / n_actions - p) / mixed
                    p, change = mixed, (1.0 - lapse[q]) * change
                total[q] += log(p)
                gradient[q, 0] += change / p
                last = a
    return total, gradient


@njit(cache=True, nogil=True, error_model="numpy")
def simulate(theta, lapse, n_actions, row, start, uniforms):  # type: ignore[no-untyped-def]
    """Play the sequences."""
    action = np.empty((start[-1], LANES))
    for block in range(len(row)):
        for i in range(LANES):
            q = row[block, i]
            last = -1
            for t in range(start[block], start[block + 1]):
                below, chosen = 0.0, n_actions - 1
                for a in range(n_actions - 1):
                    if last < 0:
                        p = 1.0 / n_actions
                    else:
                        top = max(theta[q, 0], 0.0)
                        scale = exp(theta[q, 0] - top) + (n_actions - 1) * exp(-top)
                        p = exp((theta[q, 0] if a == last else 0.0) - top) / scale
                    if lapse is not None:
                        p = (1.0 - lapse[q]) * p + lapse[q] / n_actions
                    below += p
                    if uniforms[t, i] < below:
                        chosen = a
                        break
                action[t, i] = last = chosen
    return action


class Perseverator(Agent):
    """P(a) is softmax(kappa [a was the last choice in this context]); the first is uniform."""

    name = "perseverator"
    summary = "repeats (or, with negative kappa, alternates) whatever the rewards"
    source = "Lau and Glimcher 2005, choice kernel of length one"
    parameters = Parameters(
        Parameter(
            "kappa",
            IDENTITY,
            mean=1.0,
            sd=1.0,
            description="log-odds added to the last choice in the same context",
        )
    )
    columns = ("action",)
    design = ()
    separate = ("context", "stage", "game")
    log_likelihood = staticmethod(log_likelihood)
    simulate = staticmethod(simulate)

    @classmethod
    def check_plays(cls, environment: Environment) -> None:
        """Raise ValueError also where choices make later trials fall away, unseen by a kernel."""
        super().check_plays(environment)
        if environment.ends_early:
            raise ValueError(
                f"{cls.name} repeats its last choice; in {environment.name} one of the choices "
                "ends what could be repeated. Choose another model."
            )

    def reset(self) -> None:
        """Forget the last choices."""
        self.last: dict[Any, int] = {}

    def action_probabilities(self, observation: Observation) -> Array:
        """Softmax over the trace of the last choice."""
        log_odds = np.zeros(self.actions)
        last = self.last.get(self._place(observation))
        if last is not None:
            log_odds[last] = self.theta[0]
        weight = np.exp(log_odds - log_odds.max())
        share: Array = weight / weight.sum()
        return share

    def learn(self, observation: Observation, action: int, reward: float) -> None:
        """Remember the choice."""
        self.last[self._place(observation)] = action

    def _place(self, observation: Observation) -> tuple[float, ...]:
        return tuple(observation[name] for name in self.separate if name in observation)
