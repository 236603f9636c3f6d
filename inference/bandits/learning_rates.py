"""How much of a surprise enters what is expected next, and how much more of a good one."""

from __future__ import annotations

from knownminds.agents import RescorlaWagner, RescorlaWagnerDual
from knownminds.inference.measure import Dial, FittedMeasure

# Learning rate for good surprises minus that for bad ones. Fitted with the dual-rate learner; a
# learner with one rate has none.
OPTIMISM_BIAS = FittedMeasure(
    name="optimism_bias",
    summary="learning rate for good surprises minus that for bad ones",
    source="Lefebvre et al. 2017",
    environments=("instrumental_learning",),
    bounds=(-1.0, 1.0),
    rational="rescorla_wagner",
    violator="rescorla_wagner_dual",
    dial=Dial({"alpha_positive": 1.0, "alpha_negative": -1.0}),
    model=RescorlaWagnerDual,
    contrast={"alpha_positive": 1.0, "alpha_negative": -1.0},
)
# It has no null value, and no counterpart in the released code, whose fit maximises no likelihood.
LEARNING_RATE = FittedMeasure(
    name="learning_rate",
    summary="share of a surprise that enters the expectation",
    source="Rescorla and Wagner 1972; Coda-Forno, Binz, Wang and Schulz 2024",
    environments=("instrumental_learning",),
    bounds=(0.0, 1.0),
    violator="rescorla_wagner",
    dial=Dial({"alpha": 1.0}),
    model=RescorlaWagner,
    contrast={"alpha": 1.0},
)
