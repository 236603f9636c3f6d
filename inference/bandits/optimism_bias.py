"""How much more is learned from good surprises than from bad ones."""

from __future__ import annotations

from collections.abc import Mapping

from knownminds.agents import RescorlaWagnerDual
from knownminds.inference.measure import Dial, FittedMeasure


class OptimismBias(FittedMeasure):
    """Learning rate for good surprises minus that for bad ones, alpha_positive - alpha_negative.

    Fitted with the dual-rate learner; a learner with one rate has none (Lefebvre et al. 2017).
    """

    name = "optimism_bias"
    summary = "learning rate for good surprises minus that for bad ones"
    source = "Lefebvre et al. 2017"
    environments = ("instrumental_learning",)
    bounds = (-1.0, 1.0)
    rational = "rescorla_wagner"
    violator = "rescorla_wagner_dual"
    dial = Dial({"alpha_positive": 1.0, "alpha_negative": -1.0})
    model = RescorlaWagnerDual
    contrast: Mapping[str, float] = {"alpha_positive": 1.0, "alpha_negative": -1.0}
