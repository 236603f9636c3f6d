"""How much of a surprise enters what is expected next."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from knownminds.agents import Agent, RescorlaWagner
from knownminds.agents.parameters import Array
from knownminds.inference.measure import Dial, FittedMeasure


class LearningRate(FittedMeasure):
    """The rate alpha of the Rescorla-Wagner learner, by MAP with its priors.

    It has no null value, and no counterpart in the released code, whose fit maximises no
    likelihood. For agents that learn otherwise it has no true value.
    """

    name = "learning_rate"
    summary = "share of a surprise that enters the expectation"
    source = "Rescorla and Wagner 1972; Coda-Forno, Binz, Wang and Schulz 2024"
    environments = ("instrumental_learning",)
    null = float("nan")
    bounds = (0.0, 1.0)
    rational = ""
    violator = "rescorla_wagner"
    dial = Dial({"alpha": 1.0})
    model = RescorlaWagner
    contrast: Mapping[str, float] = {"alpha": 1.0}

    def truth(self, model: type[Agent], theta: Array) -> Array:
        """Return alpha; NaN for agents of another model."""
        if model is not self.model:
            return np.full(len(theta), np.nan)
        return super().truth(model, theta)
