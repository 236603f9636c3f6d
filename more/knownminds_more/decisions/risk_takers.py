"""Choosers between gambles: by expected value, expected utility, prospect theory, or a rule."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from knownminds.agents.compiler.definition import Probabilities, positive, unit
from knownminds.agents.model import Model
from knownminds.agents.powers import power, prelec, tversky_kahneman

__all__ = [
    "ExpectedUtility",
    "ExpectedValue",
    "Minimax",
    "PriorityHeuristic",
    "ProspectTheory",
    "ProspectTheoryTverskyKahneman",
]

UNIT = 100.0  # points; amounts are counted in these
TVERSKY = "Tversky and Kahneman 1992"
PRELEC = "Prelec 1998"


class ExpectedValue(Model):
    """Chooses by expected value, V = sum of p x / 100, and by softmax.

    P(b) = logistic((V(b) - V(a)) / tau).
    """

    name = "expected_value"
    summary = "chooses between gambles by expected value"
    nested_in = "expected_utility"
    source = "Bernoulli 1738, who argues against it"
    separate = ()
    last_parameters: ClassVar[tuple[str, ...]] = ("tau",)

    alpha: Any = 1.0
    alpha_loss: Any = 1.0
    loss_aversion: Any = 1.0
    gamma: Any = 1.0
    gamma_loss: Any = 1.0
    tau = positive(
        "temperature: how little choices follow the values, which are 1 at 100 points",
        mean=-2.0,
        sd=0.5,
    )

    def weight(self, p: Any, gamma: Any) -> Any:
        """Return the weight of a probability."""
        return p

    def utility(self, x: Any) -> Any:
        """Return the utility of an amount."""
        return x / UNIT

    def value(self, low: Any, middle: Any, high: Any, p_low: Any, p_high: Any) -> Any:
        """Return the value of a gamble of three amounts, the first the lowest.

        The decision weight of a gain is the weight of receiving at least that much, less the weight
        of receiving more. Losses have the same rule for losing.
        """
        best, worst = self.weight(p_high, self.gamma), self.weight(p_low, self.gamma_loss)
        better = self.weight(1.0 - p_low, self.gamma)
        worse = self.weight(1.0 - p_high, self.gamma_loss)
        return (
            np.where(low < 0, worst, 1.0 - better) * self.utility(low)
            + np.where(middle < 0, worse - worst, better - best) * self.utility(middle)
            + np.where(high < 0, 1.0 - worse, best) * self.utility(high)
        )

    def respond(self, trial: Any) -> Any:
        a = self.value(
            trial.a_low, trial.a_middle, trial.a_high, trial.a_low_chance, trial.a_high_chance
        )
        b = self.value(
            trial.b_low, trial.b_middle, trial.b_high, trial.b_low_chance, trial.b_high_chance
        )
        return (b - a) / self.tau


class ExpectedUtility(ExpectedValue):
    """Chooses by expected utility, a power of gains and of losses.

    u(x) = (x / 100)**alpha for gains and -(-x / 100)**alpha for losses. Probabilities count
    unchanged, and losses as much as gains. Softmax is as in `ExpectedValue`, which is this model
    with alpha = 1.
    """

    name = "expected_utility"
    summary = "chooses between gambles by expected utility, a power of amounts"
    nested_in = "prospect_theory"
    source = "von Neumann and Morgenstern 1944"

    alpha = positive("exponent of utility; below 1, a second point is worth less", -0.2, 0.3)
    alpha_loss = property(lambda self: self.alpha)

    def utility(self, x: Any) -> Any:
        size = power(np.abs(x) / UNIT, np.where(x < 0, self.alpha_loss, self.alpha))
        return np.where(x < 0, -self.loss_aversion, 1.0) * size


class ProspectTheory(ExpectedUtility):
    """Chooses by cumulative prospect theory with Prelec's weights.

    v(x) = (x / 100)**alpha for gains and -lambda (-x / 100)**alpha_loss for losses. The weight of a
    probability is w(p) = exp(-(-ln p)**gamma), with gamma for gains and gamma_loss for losses.
    Decision weights are differences of w along the ranks of amounts. Softmax is as in
    `ExpectedValue`. Because amounts are counted in 100 points, `loss_aversion` is lambda = -v(-100)
    / v(100) even if the exponents differ.
    """

    name = "prospect_theory"
    summary = "chooses between gambles by cumulative prospect theory, weights of Prelec"
    source = "Tversky and Kahneman 1992; Prelec 1998"

    alpha = positive("exponent of utility for gains", -0.2, 0.3, source=TVERSKY)
    alpha_loss = positive("exponent of utility for losses", -0.2, 0.3, source=TVERSKY)
    loss_aversion = positive("weight of losing 100 points, where winning 100 has 1", 0.5, 0.5,
                             source=TVERSKY)  # fmt: skip
    gamma = positive("exponent of the weights of probabilities of gains; 1: as they are", -0.35,
                     0.3, source=PRELEC)  # fmt: skip
    gamma_loss = positive("exponent of the weights of probabilities of losses", -0.35, 0.3,
                          source=PRELEC)  # fmt: skip

    def weight(self, p: Any, gamma: Any) -> Any:
        return prelec(p, gamma)


class ProspectTheoryTverskyKahneman(ProspectTheory):
    """Weighs with w(p) = p**gamma / (p**gamma + (1 - p)**gamma)**(1 / gamma).

    Below gamma = 0.28 this w does not rise everywhere. Everything else is as in `ProspectTheory`.
    """

    name = "prospect_theory_tversky_kahneman"
    summary = "chooses by cumulative prospect theory, weights of Tversky and Kahneman"
    source = TVERSKY
    contains: ClassVar = {"expected_utility": {}}
    last_parameters = ("tau", "gamma", "gamma_loss")

    gamma = positive("exponent of the weights of probabilities of gains; 1: as they are", -0.35,
                     0.25, source=TVERSKY)  # fmt: skip
    gamma_loss = positive("exponent of the weights of probabilities of losses", -0.35, 0.25,
                          source=TVERSKY)  # fmt: skip

    def weight(self, p: Any, gamma: Any) -> Any:
        return tversky_kahneman(p, gamma)


def _last(p_low: Any, p_middle: Any, p_high: Any) -> Any:
    """Return the probability of the highest amount, which may stand in any position."""
    return np.where(p_high > 0, p_high, np.where(p_middle > 0, p_middle, p_low))


class Minimax(Model):
    """Chooses the gamble whose least amount is larger, but at random in a share `error` of trials.

    If the least amounts are equal, it chooses at random.
    """

    name = "minimax"
    summary = "chooses the gamble whose least amount is larger"
    source = "Wald 1945"
    contains: ClassVar = {"random_responder": {"error": 1.0}}
    separate = ()

    error = unit("share of choices that are made by lot", mean=-1.5, sd=0.7)

    def lead(self, trial: Any) -> Any:
        """Return 1 where gamble b is taken, -1 where a is, 0 where neither is better."""
        return np.where(
            trial.b_low > trial.a_low, 1.0, np.where(trial.b_low < trial.a_low, -1.0, 0.0)
        )

    def respond(self, trial: Any) -> Any:
        p = 0.5 + 0.5 * (1.0 - self.error) * self.lead(trial)
        return Probabilities([1.0 - p, p])


class PriorityHeuristic(Minimax):
    """Goes through three reasons; the first one that tells the gambles apart decides.

    For gains the reasons are: the better minimum, if the minima differ by a tenth of the largest
    amount or more; the less likely minimum, if its probabilities differ by .1 or more; the larger
    maximum. If no gamble has a gain, the reasons are: the smaller of the smallest losses; the more
    likely of these; the smaller of the largest losses. The aspiration level is exactly a tenth, not
    rounded to a prominent number. The choice is random in a share `error` of trials, and if no
    reason decides.
    """

    name = "priority_heuristic"
    summary = "chooses between gambles by the first of three reasons that decides"
    source = "Brandstaetter, Gigerenzer and Hertwig 2006"

    error = Minimax.error

    def lead(self, trial: Any) -> Any:
        """Return 1 where gamble b is taken, -1 where a is, 0 where neither is better."""
        a_low, a_high, b_low, b_high = trial.a_low, trial.a_high, trial.b_low, trial.b_high
        pa_low, pb_low = trial.a_low_chance, trial.b_low_chance
        pa_high = _last(pa_low, trial.a_middle_chance, trial.a_high_chance)
        pb_high = _last(pb_low, trial.b_middle_chance, trial.b_high_chance)
        losing = (a_high <= 0) & (b_high <= 0)
        largest = np.where(
            losing, -np.minimum(a_low, b_low), np.maximum(np.abs(a_high), np.abs(b_high))
        )
        first = np.where(losing, b_high - a_high, b_low - a_low)
        second = np.where(losing, pb_high - pa_high, pa_low - pb_low)
        third = np.where(losing, b_low - a_low, b_high - a_high)
        reason = np.where(
            np.abs(first) >= 0.1 * largest,
            first,
            np.where(np.abs(second) >= 0.1 - 1e-12, second, third),
        )
        return np.where(reason > 0, 1.0, np.where(reason < 0, -1.0, 0.0))
