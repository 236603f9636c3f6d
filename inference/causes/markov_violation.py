"""How much a judgement of one cause follows the other cause, of which it is independent."""

from __future__ import annotations

import numpy as np

from knownminds.agents import Agent, LogisticCollider, NoisyOr
from knownminds.agents.parameters import Array
from knownminds.inference.measure import Dial

from .cell_contrast import CellContrast

COMPLIANT = 0.05  # largest violation, to either side, that passes for none


class MarkovViolation(CellContrast):
    """IV - V: P(Ci | Cj = 1) - P(Ci | Cj = 0), from raw answers as shares of 1, with its sign.

    As long as nothing is known of their effect, causes that work on their own tell nothing of each
    other: every noisy-OR, whatever its parameters, has 0. An associative reasoner has its share of
    association. Published as a distance; here positive means that causes are taken to go together.

    Parameters
    ----------
    released
        As the published numbers are, of cells that hold the questions about both causes. Where no
        answer is missing it is the same.
    """

    source = "Rehder and Waldmann 2017; Dettki 2025"
    rational = "noisy_or"
    violator = "associative_reasoner"
    # The first moves the associative reasoner, the second the mutation sampler.
    dial = Dial({"k": 1.0, "lambda": -1.0}, reach=6.0, steps=49)
    plus, minus = "IV", "V"

    def __init__(self, released: bool = False):
        self.pooled = released
        self.name = "markov_violation" + ("_released" if released else "")
        ending = ", of cells with both directions" if released else ""
        self.summary = (
            f"how much the presence of one cause raises the judgement of the other{ending}"
        )

    def truth(self, model: type[Agent], theta: Array) -> Array:
        """Return the difference of the judgements, [n]; 0 where causes are independent."""
        if issubclass(model, NoisyOr | LogisticCollider):
            return np.full(len(theta), self.null)
        return super().truth(model, theta)


def complies(violation: float) -> bool:
    """Say whether a Markov violation is small enough to pass for none."""
    return abs(violation) <= COMPLIANT
