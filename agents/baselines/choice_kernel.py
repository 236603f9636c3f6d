"""A responder who repeats what was chosen often of late, whatever it paid."""

from __future__ import annotations

from typing import Any

from knownminds.agents.compiler.definition import real, unit

from .perseverator import Perseverator


class ChoiceKernel(Perseverator):
    """P(a) is softmax(beta_c C[a]), with C the recency-weighted share of a among earlier choices.

    In each context C = 0 at first, and the choice of a brings C[b] += alpha_c ([b = a] - C[b]) for
    every action b. With alpha_c = 1 it is `Perseverator`, whose kappa is beta_c.
    """

    summary = "repeats what was chosen often of late, whatever the rewards"
    source = "Wilson and Collins 2019, model 4; Lau and Glimcher 2005"

    kappa = None
    alpha_c = unit(
        "how fast the trace of choices follows them",
        mean=-0.5,
        sd=1.0,
        source="Wilson and Collins 2019",
    )
    beta_c = real(
        "weight of the trace, in log-odds; below 0 choices alternate",
        mean=1.0,
        sd=1.5,
        source="Wilson and Collins 2019, where it is positive",
    )

    def respond(self, trial: Any) -> Any:
        """Softmax over the traces."""
        return self.beta_c * self.last

    def update(self, trial: Any) -> None:
        """Step all traces toward the choice."""
        self.last *= 1 - self.alpha_c
        self.last[trial.action] += self.alpha_c
