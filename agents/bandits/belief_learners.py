"""Learners with a belief about each machine: what it pays, and how sure that is."""

from __future__ import annotations

from typing import Any

import numpy as np

from knownminds.agents.compiler.definition import real, unit
from knownminds.agents.model import Model

from .rescorla_wagner import RescorlaWagner

__all__ = ["LeakyBeta"]


class LeakyBeta(Model):
    """Counts wins and losses of each action, forgets a share of both, and may seek uncertainty.

    In each context the belief in the rate of action b is Beta(1 + W[b], 1 + L[b]), with mean M and
    standard deviation S; W = L = 0 at first. At each choice all counts are multiplied by
    1 - leak, then the chosen action's W or L grows by 1. A win is a reward above 0. P(a) is
    softmax(beta M + bonus S).
    """

    summary = "Bayesian belief in each action's rate of wins, which fades; seeks the unsure"
    source = "Raj and Kalyani 2017 (fading counts); Gershman 2018 (bonus)"
    n_actions = None

    leak = unit(
        "share of what was counted that is forgotten at each choice",
        mean=-2.0,
        sd=1.0,
        source="Raj and Kalyani 2017",
    )
    beta = RescorlaWagner.beta
    bonus = real(
        "log-odds per standard deviation of the belief; below 0 what is unsure is shunned",
        mean=0.0,
        sd=5.0,
        source="Gershman 2018",
    )

    def begin(self) -> None:
        self.wins = np.zeros(self.actions)
        self.losses = np.zeros(self.actions)

    def respond(self, trial: Any) -> Any:
        wins, losses = self.wins + 1, self.losses + 1
        mean = wins / (wins + losses)
        spread = np.sqrt(mean * (1 - mean) / (wins + losses + 1))
        return self.beta * mean + self.bonus * spread

    def update(self, trial: Any) -> None:
        won = np.where(trial.reward > 0, 1, 0)
        self.wins *= 1 - self.leak
        self.losses *= 1 - self.leak
        self.wins[trial.action] += won
        self.losses[trial.action] += 1 - won
