"""Rescorla-Wagner learning of the values of two actions, with one learning rate or two."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from knownminds.agents.compiler.definition import positive, real, unit
from knownminds.agents.model import Model

__all__ = ["RescorlaWagner", "RescorlaWagnerDual"]


class RescorlaWagnerDual(Model):
    """Values step toward rewards, at a rate that depends on the sign of the surprise.

    In each context V = 0.5 for both actions at first. After the reward r of action a, V[a] +=
    alpha_positive (r - V[a]) if r > V[a], and alpha_negative (r - V[a]) otherwise. P(a) is
    softmax(beta V + kappa [a was the last choice in this context]).
    """

    summary = "Rescorla-Wagner learner with separate rates for good and for bad surprises"
    source = "Lefebvre, Lebreton, Meyniel, Bourgeois-Gironde and Palminteri 2017"
    last_parameters = ("beta", "kappa")

    alpha_positive = unit(
        "learning rate where the reward exceeds the value",
        mean=-0.5,
        sd=1.0,
        source="Lefebvre et al. 2017",
    )
    alpha_negative = unit(
        "learning rate where the reward falls short of the value",
        mean=-0.5,
        sd=1.0,
        source="Lefebvre et al. 2017",
    )
    beta = positive(
        "inverse temperature: how strictly choices follow the learned values", mean=1.0, sd=0.7
    )
    kappa = real(
        "perseveration: log-odds added to the last choice in the same context",
        mean=0.0,
        sd=0.5,
        source="Lau and Glimcher 2005; Katahira 2018",
    )

    def begin(self) -> None:
        self.values = np.full(2, 0.5)
        self.last = np.zeros(2)

    def respond(self, trial: Any) -> Any:
        return self.beta * self.values + self.kappa * self.last

    def update(self, trial: Any) -> None:
        surprise = trial.reward - self.values[trial.action]
        rate = self.alpha_positive if surprise > 0 else self.alpha_negative
        self.values[trial.action] += rate * surprise
        self.last[:] = 0
        self.last[trial.action] = 1


class RescorlaWagner(RescorlaWagnerDual):
    """Values step toward rewards at one learning rate.

    In each context V = 0.5 for both actions at first. After the reward r of action a, V[a] += alpha
    (r - V[a]). P(a) is softmax(beta V + kappa [a was the last choice in this context]).
    """

    summary = "Rescorla-Wagner learner with one learning rate"
    nested_in = "rescorla_wagner_dual"
    source = "Rescorla and Wagner 1972; Sutton and Barto 2018, chapter 2"
    contains: ClassVar = {"perseverator": {"alpha": 0.5, "beta": 0.0}}

    alpha = unit(
        "learning rate: share of the surprise that enters the value",
        mean=-0.5,
        sd=1.0,
        source="Rescorla and Wagner 1972",
    )
    alpha_positive = alpha_negative = property(lambda self: self.alpha)
