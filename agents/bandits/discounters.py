"""Discounters: a sum is worth less the later it comes, by curves of one or two parameters."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from knownminds.agents.compiler.definition import positive, unit
from knownminds.agents.model import Model
from knownminds.agents.powers import power

__all__ = [
    "ExponentialDiscounter",
    "HyperbolicDiscounter",
    "QuasiHyperbolicDiscounter",
    "GeneralisedHyperbolicDiscounter",
    "RachlinDiscounter",
    "ConstantSensitivityDiscounter",
    "FixedCostDiscounter",
]


class ExponentialDiscounter(Model):
    """Values a sum A after D months at V = A exp(-k D) and chooses by softmax.

    Both sums of a choice are divided by the larger one. Losses mirror gains, with the weight eta:
    V(-A, D) = -eta V(A, D). P(later) is logistic((V(later) - V(sooner)) / tau). So impatience makes
    an agent take a gain now and put a loss off.
    """

    summary = "discounts at a constant rate, V = A exp(-k D)"
    source = "Samuelson 1937"
    separate = ()
    last_parameters = ("tau", "eta")

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

    def curve(self, months: Any) -> Any:
        return 1 / (1 + self.k * months)


class QuasiHyperbolicDiscounter(ExponentialDiscounter):
    """Values a sum A after D > 0 months at V = A beta delta**D, and at A if it comes now.

    Sums are scaled, losses mirrored and choices made as in `ExponentialDiscounter`.
    """

    summary = "sets the present apart and discounts the future at a constant rate, V = A b d^D"
    source = "Laibson 1997"
    contains: ClassVar = {
        "exponential_discounter": {"beta": 1.0, "delta": lambda inner: np.exp(-inner.k)}
    }

    k = None
    beta = unit(
        "share that remains of a sum that does not come now",
        mean=1.5,
        sd=1.0,
        source="Laibson 1997",
    )
    delta = unit("share that remains after each month", mean=3.0, sd=1.0, source="Laibson 1997")

    def curve(self, months: Any) -> Any:
        later = self.beta * power(self.delta, months)
        return np.where(months > 0, later, 1.0)


def _rate(description: str, source: str) -> Any:
    """Declare a rate per month, with the prior that the rates of all curves share."""
    return positive(description, mean=-3.0, sd=1.0, source=source)


def _bend(description: str, source: str) -> Any:
    """Declare the exponent that bends a curve; at 1 the curve is one of the plain ones."""
    return positive(description, mean=0.0, sd=0.5, source=source)


class GeneralisedHyperbolicDiscounter(ExponentialDiscounter):
    """Values a sum A after D months at V = A / (1 + k D)**s and chooses by softmax.

    With s = 1 this is `HyperbolicDiscounter`; as s grows and k falls it nears the exponential.
    Sums are scaled, losses mirrored and choices made as in `ExponentialDiscounter`.
    """

    summary = "discounts by a hyperbola of any bend, V = A / (1 + k D)^s"
    source = "Myerson and Green 1995; Loewenstein and Prelec 1992"
    contains: ClassVar = {"hyperbolic_discounter": {"s": 1.0}}

    k = _rate("discount rate per month", "Myerson and Green 1995")
    s = _bend("bend of the curve; 1 is the hyperbola of Mazur", "Myerson and Green 1995")

    def curve(self, months: Any) -> Any:
        return np.exp(-self.s * np.log(1 + self.k * months))


class RachlinDiscounter(ExponentialDiscounter):
    """Values a sum A after D months at V = A / (1 + k D**s) and chooses by softmax.

    With s = 1 this is `HyperbolicDiscounter`; with s < 1 long delays feel shorter than they are.
    Sums are scaled, losses mirrored and choices made as in `ExponentialDiscounter`.
    """

    summary = "discounts by a hyperbola of a delay felt as a power, V = A / (1 + k D^s)"
    source = "Rachlin 2006"
    contains: ClassVar = {"hyperbolic_discounter": {"s": 1.0}}

    k = _rate("discount rate at a delay of one month", "Rachlin 2006")
    s = _bend("sensitivity to delays: exponent of months", "Rachlin 2006")

    def curve(self, months: Any) -> Any:
        return 1 / (1 + self.k * power(months, self.s))


class ConstantSensitivityDiscounter(ExponentialDiscounter):
    """Values a sum A after D months at V = A exp(-(k D)**s) and chooses by softmax.

    With s = 1 this is `ExponentialDiscounter`. With s near 0, delays are only either soon or late.
    Sums are scaled, losses mirrored and choices made as in `ExponentialDiscounter`.
    """

    summary = "discounts by impatience and by sensitivity to time, V = A exp(-(k D)^s)"
    source = "Ebert and Prelec 2007"
    contains: ClassVar = {"exponential_discounter": {"s": 1.0}}

    k = _rate("impatience: one over the months after which 1/e remains", "Ebert and Prelec 2007")
    s = _bend("sensitivity to time; 1 discounts at a constant rate", "Ebert and Prelec 2007")

    def curve(self, months: Any) -> Any:
        return np.exp(-power(self.k * months, self.s))


class FixedCostDiscounter(HyperbolicDiscounter):
    """Values a sum A after D > 0 months at V = A / (1 + k D) - b, and at A if it comes now.

    The cost b is in the unit of the sums and does not grow with them, unlike the present bias of
    `QuasiHyperbolicDiscounter`. The source combines it with a family of curves; this model uses the
    hyperbola. Sums are scaled, losses mirrored and choices made as in `ExponentialDiscounter`.
    """

    summary = "discounts hyperbolically, and any wait costs the same, V = A / (1 + k D) - b"
    source = "Benhabib, Bisin and Schotter 2010"
    contains: ClassVar = {"hyperbolic_discounter": {"b": 0.0}}

    b = positive(
        "what any wait costs, in the unit of the sums",
        mean=3.0,
        sd=1.0,
        source="Benhabib et al. 2010",
    )

    def respond(self, trial: Any) -> Any:
        sooner, later = np.abs(trial.sooner_amount), np.abs(trial.later_amount)
        waits = np.where(trial.later_delay > 0, 1.0, 0.0) - np.where(
            trial.sooner_delay > 0, 1.0, 0.0
        )
        cost = self.b * waits / np.maximum(sooner, later) / self.tau
        return super().respond(trial) - np.where(trial.later_amount < 0, -self.eta, 1.0) * cost
