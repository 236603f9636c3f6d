"""Discounters: a sum is worth less the longer it takes, by one of three curves."""

from __future__ import annotations

from typing import Any

import numpy as np

from knownminds.agents.compiler.definition import positive, unit
from knownminds.agents.compiler.model import Model

__all__ = ["ExponentialDiscounter", "HyperbolicDiscounter", "QuasiHyperbolicDiscounter"]

SMALLEST = 1e-300  # whose logarithm is finite


class ExponentialDiscounter(Model):
    """Values a sum A after D months at V = A exp(-k D) and chooses by softmax.

    Both sums of a choice are divided by the larger one, and losses are the mirror image of
    gains, with the weight eta: V(-A, D) = -eta V(A, D). P(later) is logistic((V(later) -
    V(sooner)) / tau). So the same impatience makes one take a gain now and put a loss off.
    """

    summary = "discounts at a constant rate, V = A exp(-k D)"
    source = "Samuelson 1937"
    separate = ()

    k = positive("discount rate per month", mean=-3.0, sd=1.0, source="Samuelson 1937")
    tau = positive(
        "temperature: how little choices follow the values, as a share of the sum",
        mean=-2.5,
        sd=0.5,
    )
    eta = positive(
        "weight of losses, where gains have the weight 1",
        mean=0.0,
        sd=0.5,
        source="Tversky and Kahneman 1992",
    )

    def curve(self, months: Any) -> Any:
        """Return the share of a sum that remains after a delay."""
        return np.exp(-self.k * months)

    def respond(self, trial: Any) -> Any:
        sooner, later = np.abs(trial.sooner_amount), np.abs(trial.later_amount)
        near, far = self.curve(trial.sooner_delay), self.curve(trial.later_delay)
        gain = (later * far - sooner * near) / np.maximum(sooner, later)
        return np.where(trial.later_amount < 0, -self.eta, 1.0) * gain / self.tau


class HyperbolicDiscounter(ExponentialDiscounter):
    """Values a sum A after D months at V = A / (1 + k D) and chooses by softmax.

    Sums are scaled, losses mirrored and choices made as in `ExponentialDiscounter`.
    """

    summary = "discounts steeply at first and less later on, V = A / (1 + k D)"
    source = "Mazur 1987"

    k = positive("discount rate per month", mean=-3.0, sd=1.0, source="Mazur 1987")
    tau, eta = ExponentialDiscounter.tau, ExponentialDiscounter.eta

    def curve(self, months: Any) -> Any:
        return 1 / (1 + self.k * months)


class QuasiHyperbolicDiscounter(ExponentialDiscounter):
    """Values a sum A after D > 0 months at V = A beta delta**D, and at A if it comes now.

    Sums are scaled, losses mirrored and choices made as in `ExponentialDiscounter`.
    """

    summary = "sets the present apart and discounts the future at a constant rate, V = A b d^D"
    source = "Laibson 1997"

    k = None
    beta = unit(
        "share that remains of a sum that does not come now",
        mean=1.5,
        sd=1.0,
        source="Laibson 1997",
    )
    delta = unit("share that remains after each month", mean=3.0, sd=1.0, source="Laibson 1997")
    tau, eta = ExponentialDiscounter.tau, ExponentialDiscounter.eta

    def curve(self, months: Any) -> Any:
        later = self.beta * np.exp(np.log(np.maximum(self.delta, SMALLEST)) * months)
        return np.where(months > 0, later, 1.0)
