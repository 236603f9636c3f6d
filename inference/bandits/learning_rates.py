"""How much of a surprise enters the expectation, and how much more if it is a good one."""

from __future__ import annotations

from knownminds.agents import RescorlaWagner, RescorlaWagnerDual
from knownminds.inference.measure import Dial, FittedMeasure

# The learning rate for good surprises minus that for bad ones, fitted with the dual-rate learner. A
# learner with one rate does not have it.
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
# It has no null value. The released code has no counterpart: its fit does not maximise a
# likelihood.
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
