"""Choosers between urns: by the middle of the possible shares, or with an attitude to ambiguity."""

from __future__ import annotations

from typing import Any, ClassVar

from knownminds.agents.compiler.definition import positive, real, unit
from knownminds.agents.model import Model

__all__ = ["AlphaMaxmin", "AmbiguityInsensitive", "AmbiguityNeutral"]


class AmbiguityNeutral(Model):
    """Takes the middle of the possible shares of red for the probability, and chooses by softmax.

    P(b) = logistic((W(b) - W(a)) / tau) with W = (least + most) / 2.
    """

    name = "ambiguity_neutral"
    summary = "bets by the middle of what may be red"
    nested_in = "alpha_maxmin"
    source = "Savage 1954"
    separate = ()
    last_parameters = ("tau",)

    alpha: Any = 0.5
    tau = positive("temperature: how little choices follow the weights of bets", mean=-2.5, sd=0.5)

    def weight(self, least: Any, most: Any) -> Any:
        """Return the weight of a bet."""
        return self.alpha * least + (1.0 - self.alpha) * most

    def respond(self, trial: Any) -> Any:
        b = self.weight(trial.b_least, trial.b_most)
        return (b - self.weight(trial.a_least, trial.a_most)) / self.tau


class AlphaMaxmin(AmbiguityNeutral):
    """Weighs a bet by a mean of the worst and the best possible share.

    W = alpha least + (1 - alpha) most. At alpha = 1 it is the maxmin rule of Gilboa and Schmeidler
    (1989); at 1/2 it is neutral.
    """

    name = "alpha_maxmin"
    summary = "bets by a weighted mean of the fewest and the most red balls that may be"
    source = "Hurwicz 1951; Ghirardato, Maccheroni and Marinacci 2004"

    alpha = unit("weight of the worst case; above 1/2: averse to ambiguity", mean=0.4, sd=0.8)


class AmbiguityInsensitive(AmbiguityNeutral):
    """Weighs bets on unknown urns by how likely they seem, with less than full sensitivity.

    With m the middle and u the unknown part, W = m - u (aversion / 2 + insensitivity (m - 1/2)).
    For a known urn (u = 0) W is its share. At u = 1 the two parameters are the indexes b (aversion)
    and a (insensitivity) of Dimmock, Kouwenberg and Wakker (2016).
    """

    name = "ambiguity_insensitive"
    summary = "bets with aversion to what is unknown, and insensitive to how likely it seems"
    source = "Dimmock, Kouwenberg and Wakker 2016; Chateauneuf, Eichberger and Grant 2007"
    contains: ClassVar = {"ambiguity_neutral": {"aversion": 0.0, "insensitivity": 0.0}}

    alpha = None
    aversion = real("ambiguity aversion, b; 0: none", mean=0.1, sd=0.3)
    insensitivity = real("insensitivity to likelihood, a; 0: none", mean=0.3, sd=0.4)

    def weight(self, least: Any, most: Any) -> Any:
        middle, unknown = 0.5 * (least + most), most - least
        return middle - unknown * (0.5 * self.aversion + self.insensitivity * (middle - 0.5))
