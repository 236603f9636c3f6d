"""Responders who repeat choices, whatever these paid: the last one, or frequent recent ones."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from knownminds.agents.choice_trace import ALPHA_C, BETA_C, follow_choice
from knownminds.agents.compiler.definition import real
from knownminds.agents.model import Model
from knownminds.environments.environment import Environment

__all__ = ["Perseverator", "ChoiceKernel"]


class Perseverator(Model):
    """P(a) is softmax(kappa [a was the last choice in this context]); the first is uniform."""

    summary = "repeats (or, with negative kappa, alternates) whatever the rewards"
    source = "Lau and Glimcher 2005, choice kernel of length one"
    contains: ClassVar = {"random_responder": {"kappa": 0.0}}
    n_actions = None
    separate = ("context", "stage", "game")

    kappa = real("log-odds added to the last choice in the same context", mean=1.0, sd=1.0)

    @classmethod
    def check_plays(cls, environment: Environment) -> None:
        """Raise ValueError also if a choice ends later trials, which a kernel would not see."""
        super().check_plays(environment)
        if environment.ends_early:
            raise ValueError(
                f"{cls.name} repeats its last choice; in {environment.name} one of the choices "
                "ends what could be repeated. Choose another model."
            )

    def begin(self) -> None:
        self.last = np.zeros(self.actions)

    def respond(self, trial: Any) -> Any:
        return self.kappa * self.last

    def update(self, trial: Any) -> None:
        self.last[:] = 0
        self.last[trial.action] = 1


class ChoiceKernel(Perseverator):
    """P(a) is softmax(beta_c C[a]), with C the recency-weighted share of a among earlier choices.

    In each context C = 0 at first. After the choice of a, C[b] += alpha_c ([b = a] - C[b]) for
    every action b. With alpha_c = 1 it is `Perseverator`, whose kappa is beta_c.
    """

    summary = "repeats what was chosen often of late, whatever the rewards"
    source = "Wilson and Collins 2019, model 4; Lau and Glimcher 2005"
    contains: ClassVar = {"perseverator": {"alpha_c": 1.0, "beta_c": "kappa"}}

    kappa = None
    alpha_c, beta_c = ALPHA_C, BETA_C

    def respond(self, trial: Any) -> Any:
        return self.beta_c * self.last

    def update(self, trial: Any) -> None:
        follow_choice(self.last, self.alpha_c, trial.action)
