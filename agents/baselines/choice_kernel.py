"""A responder who repeats what was chosen often of late, whatever it paid."""

from __future__ import annotations

from typing import Any

from knownminds.agents.choice_trace import ALPHA_C, BETA_C, follow_choice

from .perseverator import Perseverator

__all__ = ["ChoiceKernel"]


class ChoiceKernel(Perseverator):
    """P(a) is softmax(beta_c C[a]), with C the recency-weighted share of a among earlier choices.

    In each context C = 0 at first, and the choice of a brings C[b] += alpha_c ([b = a] - C[b]) for
    every action b. With alpha_c = 1 it is `Perseverator`, whose kappa is beta_c.
    """

    summary = "repeats what was chosen often of late, whatever the rewards"
    source = "Wilson and Collins 2019, model 4; Lau and Glimcher 2005"

    kappa = None
    alpha_c, beta_c = ALPHA_C, BETA_C

    def respond(self, trial: Any) -> Any:
        return self.beta_c * self.last

    def update(self, trial: Any) -> None:
        follow_choice(self.last, self.alpha_c, trial.action)
