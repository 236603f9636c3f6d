"""A player of balloons who weighs each pump by its mean and its variance."""

from __future__ import annotations

from typing import Any

import numpy as np

from knownminds.agents.compiler.definition import positive, real, unit
from knownminds.agents.compiler.model import Model

__all__ = ["MeanVariancePumper"]


class MeanVariancePumper(Model):
    """Weighs a pump's mean and variance under a belief that moves from a prior to what was seen.

    For each type of balloon, with n pumps and b bursts in the balloons before this one,
    p = phi + (1 - exp(-xi n)) (b / n - phi), and pump k is worth, with the loss l = lambda (k - 1)
    of all points of the balloon,

    U = (1 - p) - p l + rho p (1 - p) (1 + l)**2;  P(pump k) = logistic(tau U).
    """

    summary = "weighs the mean and the variance of each pump; beliefs move to what was seen"
    source = "Park, Yang, Vassileva and Ahn 2021"
    separate = ("type",)

    phi = unit("prior belief that a pump bursts", mean=-3.0, sd=1.0, source="Park et al. 2021")
    xi = positive(
        "how fast the belief moves, per pump, from the prior to what was seen",
        mean=-3.0,
        sd=0.7,
        source="Park et al. 2021",
    )
    rho = real(
        "liking of variance; below 0 it is shunned", mean=0.0, sd=0.05, source="Park et al. 2021"
    )
    lambda_ = positive("weight of losses", mean=0.0, sd=0.5, source="Park et al. 2021")
    tau = positive(
        "consistency: how sharply pumping follows the worth of a pump",
        mean=1.0,
        sd=0.7,
        source="Park et al. 2021",
    )

    def begin(self) -> None:
        self.pumps: Any = 0
        self.exploded: Any = 0

    def respond(self, trial: Any) -> Any:
        # Those of this balloon all held, and do not count yet.
        seen = np.maximum(self.pumps - (trial.pump - 1), 0)
        rate = self.exploded / np.maximum(seen, 1)
        p = self.phi + (1 - np.exp(-self.xi * seen)) * (rate - self.phi)
        loss = self.lambda_ * (trial.pump - 1)
        return self.tau * (1 - p - p * loss + self.rho * p * (1 - p) * (1 + loss) ** 2)

    def update(self, trial: Any) -> None:
        self.pumps = self.pumps + trial.action
        self.exploded = self.exploded + np.where(trial.reward < 1, trial.action, 0)
