"""Players of balloons: one goes by how safe a pump is, one by its mean and variance."""

from __future__ import annotations

from typing import Any

import numpy as np

from knownminds.agents.compiler.definition import positive, real, unit
from knownminds.agents.model import Model

__all__ = ["BalloonPumper", "MeanVariancePumper"]

RAREST = 1e-15  # a belief is at least this far from 0 and 1


class BalloonPumper(Model):
    """Learns how safe a pump is, sets a target from that, and stops pumping around the target.

    For each type of balloon, p = (phi + eta x pumps that held) / (1 + eta x pumps). It is computed
    before a balloon begins, over all earlier pumps of that type, those that burst included. Then
    target = -gamma / log(p), and P(pump k) = logistic(tau (target - k)). If p is constant, the
    target with gamma = 1 has the highest expected points.
    """

    summary = "learns from pumps and bursts how safe a pump is, and inflates up to a target"
    source = "van Ravenzwaaij, Dutilh and Wagenmakers 2011; Wallsten, Pleskac and Lejuez 2005"
    separate = ("type",)

    phi = unit(
        "prior belief that a pump is safe", mean=3.0, sd=1.0, source="van Ravenzwaaij et al. 2011"
    )
    eta = positive(
        "weight of a pump that was seen, against 1 for the prior belief",
        mean=-3.0,  # 20 pumps weigh as much as the prior belief
        sd=0.7,
        source="van Ravenzwaaij et al. 2011",
    )
    gamma = positive(
        "risk taking: the target grows with it",
        mean=0.0,
        sd=0.5,
        source="van Ravenzwaaij et al. 2011",
    )
    tau = positive(
        "consistency: how sharply pumping stops at the target",
        mean=-1.0,
        sd=0.7,
        source="van Ravenzwaaij et al. 2011",
    )

    def begin(self) -> None:
        self.pumps: Any = 0.0
        self.bursts: Any = 0.0
        self.target: Any = 0.0

    def aim(self, trial: Any) -> Any:
        """Return the target of the balloon, which is set before its first pump."""
        if trial.pump != 1:
            return self.target
        risk = (1 - self.phi + self.eta * self.bursts) / (1 + self.eta * self.pumps)
        return -self.gamma / np.log1p(-np.clip(risk, RAREST, 1 - RAREST))

    def respond(self, trial: Any) -> Any:
        return self.tau * (self.aim(trial) - trial.pump)

    def update(self, trial: Any) -> None:
        self.target = self.aim(trial)
        pumped = np.where(trial.action == 1, 1.0, 0.0)
        self.pumps = self.pumps + pumped
        self.bursts = self.bursts + np.where(trial.reward < 1, pumped, 0.0)


class MeanVariancePumper(Model):
    """Weighs a pump's mean and variance under a belief that moves from a prior to what was seen.

    For each type of balloon, with n pumps and b bursts in the balloons before this one, the belief
    that a pump bursts is p = phi + (1 - exp(-xi n)) (b / n - phi). Pump k may lose all points of
    the balloon, l = lambda (k - 1), and is worth

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
        # The pumps of this balloon have all held, and do not count yet.
        seen = np.maximum(self.pumps - (trial.pump - 1), 0)
        rate = self.exploded / np.maximum(seen, 1)
        p = self.phi + (1 - np.exp(-self.xi * seen)) * (rate - self.phi)
        loss = self.lambda_ * (trial.pump - 1)
        return self.tau * (1 - p - p * loss + self.rho * p * (1 - p) * (1 + loss) ** 2)

    def update(self, trial: Any) -> None:
        self.pumps = self.pumps + trial.action
        self.exploded = self.exploded + np.where(trial.reward < 1, trial.action, 0)
