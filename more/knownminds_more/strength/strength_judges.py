"""Judges of causal strength from tables of counts: contrast, causal power, causal support."""

from __future__ import annotations

from typing import Any

import numpy as np

from knownminds.agents.causes.percentages import NOISE, PercentJudge
from knownminds.agents.compiler.definition import positive, real, unit
from knownminds.agents.variants import holding

__all__ = ["CausalSupport", "DeltaP", "PowerPc", "StrengthJudge"]

LEAST = 1e-9  # least room for a cause to show


class StrengthJudge(PercentJudge):
    """Mixes causal power with the contrast, with the weights w and 1 - w.

    With p = P(effect | cause) and q = P(effect | no cause), the contrast is dP = p - q, and the
    power to produce is dP / (1 - q) (Cheng 1997). For a cause that prevents, the contrast is q - p
    and the power is (q - p) / q. Where the table speaks for the opposite of the question, both are
    0. A table without room for the cause is judged 0. Answers are 100 times Normal(w power + (1 -
    w) dP, sigma), cut off at 0 and 100.
    """

    source = "Jenkins and Ward 1965; Cheng 1997"
    summary = "mixes causal power with the contrast: weight, noise"

    w: Any = unit("weight of causal power; that of the contrast is 1 - w", mean=0.0, sd=1.3)
    sigma = NOISE

    def judge(self, trial: Any) -> Any:
        p = trial.both / np.maximum(trial.both + trial.cause, 1.0)
        q = trial.effect / np.maximum(trial.effect + trial.neither, 1.0)
        contrast = np.maximum(np.where(trial.kind == 1, q - p, p - q), 0.0)
        room = np.where(trial.kind == 1, q, 1.0 - q)
        power = np.minimum(contrast / np.maximum(room, LEAST), 1.0)
        return contrast + self.w * (power - contrast)


PowerPc = holding(
    StrengthJudge, "power_pc", "judges strength by causal power: noise", source="Cheng 1997", w=1.0
)
DeltaP = holding(
    StrengthJudge,
    "delta_p",
    "judges strength by the contrast of shares: noise",
    source="Jenkins and Ward 1965",
    w=0.0,
)


class CausalSupport(PercentJudge):
    """Answers by how strongly the table speaks for there being a cause at all.

    The support is the log Bayes factor of a noisy-OR with the cause against one without
    (`causal_support`); for a cause that prevents, of a noisy-AND-NOT. Answers are 100 times
    Normal(1 / (1 + exp(-(bias + gain support))), sigma), cut off at 0 and 100.
    """

    name = "causal_support"
    source = "Griffiths and Tenenbaum 2005, with a logistic scale"
    summary = "judges strength by the evidence for a cause: bias, gain, noise"

    bias: Any = real("log odds of the answer, as a share, where the evidence is even", sd=0.7)
    gain: Any = positive("log odds per unit of the support", mean=-0.5, sd=0.5)
    sigma = NOISE

    def judge(self, trial: Any) -> Any:
        odds = np.clip(self.bias + self.gain * trial.support, -300.0, 300.0)
        return 1.0 / (1.0 + np.exp(-odds))
