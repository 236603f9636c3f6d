"""Discounters with one more parameter than the rate: how the curve bends, or what any wait costs.

Sums are scaled, losses mirrored and choices made as in `ExponentialDiscounter`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from knownminds.agents.compiler.definition import positive

from .discounters import SMALLEST, ExponentialDiscounter, HyperbolicDiscounter

__all__ = [
    "GeneralisedHyperbolicDiscounter",
    "RachlinDiscounter",
    "ConstantSensitivityDiscounter",
    "FixedCostDiscounter",
]


def _rate(description: str, source: str) -> Any:
    """Declare a rate per month, with the prior that the rates of all curves have."""
    return positive(description, mean=-3.0, sd=1.0, source=source)


def _bend(description: str, source: str) -> Any:
    """Declare what bends a curve; at 1 it is one of the plain ones."""
    return positive(description, mean=0.0, sd=0.5, source=source)


def _power(x: Any, exponent: Any) -> Any:
    """Return x**exponent, which is 0 at x = 0."""
    return np.where(x > 0, np.exp(exponent * np.log(np.maximum(x, SMALLEST))), 0.0)


class GeneralisedHyperbolicDiscounter(ExponentialDiscounter):
    """Values a sum A after D months at V = A / (1 + k D)**s and chooses by softmax.

    With s = 1 this is `HyperbolicDiscounter`; as s grows and k falls it nears the exponential.
    Sums are scaled, losses mirrored and choices made as in `ExponentialDiscounter`.
    """

    summary = "discounts by a hyperbola of any bend, V = A / (1 + k D)^s"
    source = "Myerson and Green 1995; Loewenstein and Prelec 1992"

    k = _rate("discount rate per month", "Myerson and Green 1995")
    s = _bend("bend of the curve; 1 is the hyperbola of Mazur", "Myerson and Green 1995")
    tau, eta = ExponentialDiscounter.tau, ExponentialDiscounter.eta

    def curve(self, months: Any) -> Any:
        return np.exp(-self.s * np.log(1 + self.k * months))


class RachlinDiscounter(ExponentialDiscounter):
    """Values a sum A after D months at V = A / (1 + k D**s) and chooses by softmax.

    With s = 1 this is `HyperbolicDiscounter`; s < 1 says that a long delay is felt as less long.
    Sums are scaled, losses mirrored and choices made as in `ExponentialDiscounter`.
    """

    summary = "discounts by a hyperbola of a delay felt as a power, V = A / (1 + k D^s)"
    source = "Rachlin 2006"

    k = _rate("discount rate at a delay of one month", "Rachlin 2006")
    s = _bend("sensitivity to delays: exponent of months", "Rachlin 2006")
    tau, eta = ExponentialDiscounter.tau, ExponentialDiscounter.eta

    def curve(self, months: Any) -> Any:
        return 1 / (1 + self.k * _power(months, self.s))


class ConstantSensitivityDiscounter(ExponentialDiscounter):
    """Values a sum A after D months at V = A exp(-(k D)**s) and chooses by softmax.

    With s = 1 this is `ExponentialDiscounter`; with s near 0 there is a soon and a later, and
    little between. Sums are scaled, losses mirrored and choices made as there.
    """

    summary = "discounts by impatience and by sensitivity to time, V = A exp(-(k D)^s)"
    source = "Ebert and Prelec 2007"

    k = _rate("impatience: one over the months after which 1/e remains", "Ebert and Prelec 2007")
    s = _bend("sensitivity to time; 1 discounts at a constant rate", "Ebert and Prelec 2007")
    tau, eta = ExponentialDiscounter.tau, ExponentialDiscounter.eta

    def curve(self, months: Any) -> Any:
        return np.exp(-_power(self.k * months, self.s))


class FixedCostDiscounter(HyperbolicDiscounter):
    """Values a sum A after D > 0 months at V = A / (1 + k D) - b, and at A if it comes now.

    The cost b is in the unit of the sums and does not grow with them, unlike the present bias of
    `QuasiHyperbolicDiscounter`. The source has it with a family of curves; this is the hyperbola.
    Sums are scaled, losses mirrored and choices made as in `ExponentialDiscounter`.
    """

    summary = "discounts hyperbolically, and any wait costs the same, V = A / (1 + k D) - b"
    source = "Benhabib, Bisin and Schotter 2010"

    k = HyperbolicDiscounter.k
    b = positive(
        "what any wait costs, in the unit of the sums",
        mean=3.0,
        sd=1.0,
        source="Benhabib et al. 2010",
    )
    tau, eta = ExponentialDiscounter.tau, ExponentialDiscounter.eta

    def respond(self, trial: Any) -> Any:
        sooner, later = np.abs(trial.sooner_amount), np.abs(trial.later_amount)
        waits = np.where(trial.later_delay > 0, 1.0, 0.0) - np.where(
            trial.sooner_delay > 0, 1.0, 0.0
        )
        cost = self.b * waits / np.maximum(sooner, later) / self.tau
        return super().respond(trial) - np.where(trial.later_amount < 0, -self.eta, 1.0) * cost
