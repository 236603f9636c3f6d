"""Choices between two machines by beliefs about their pay: means, and how sure they are."""

from __future__ import annotations

from typing import Any

import numpy as np

from knownminds.agents.compiler.definition import real
from knownminds.agents.model import Model
from knownminds.agents.variants import holding
from knownminds.environments.environment import Environment

__all__ = ["UncertaintyExplorer", "UpperConfidenceExplorer", "ThompsonExplorer"]

# The observer assumes these numbers, in points: mean and spread of the means, noise of a play.
MEAN, SPREAD, NOISE = 50.0, 16.0, 8.0
UNIT_OF_POINTS = 10.0


def _belief(count: Any, mean: Any) -> tuple[Any, Any]:
    """Return mean and variance of the belief after so many plays (at least one) with this mean."""
    count = np.maximum(count, 1)
    variance = 1 / (1 / SPREAD**2 + count / NOISE**2)
    return variance * (MEAN / SPREAD**2 + count * mean / NOISE**2), variance


class UncertaintyExplorer(Model):
    """Chooses by value, prefers what is less known, and chooses more randomly the less is known.

    Beliefs are those of a Kalman filter for machines that do not change. Before a game the mean of
    each machine is Normal(50, 16) points, and a play is Normal(mean, 8). By Bayes' rule, n plays
    with the mean m give S**2 = 1 / (1 / 16**2 + n / 8**2) and Q = S**2 (50 / 16**2 + n m / 8**2).
    Let V = Q_1 - Q_0, RU = S_1 - S_0 and TU = sqrt(S_0**2 + S_1**2), all in tens of points. Then

    P(machine 1) = logistic(w_value V + w_directed RU + w_random V / TU).

    The source has a probit instead of the logistic.
    """

    summary = "explores what is less known, and at random where little is known"
    source = "Gershman 2018; Speekenbrink and Konstantinidis 2015; Daw et al. 2006"
    separate = ()

    w_value = real("weight of the difference in value", mean=1.0, sd=1.0, source="Gershman 2018")
    w_directed = real(
        "directed exploration: weight of the difference in uncertainty",
        mean=0.5,
        sd=1.0,
        source="Gershman 2018",
    )
    w_random = real(
        "random exploration: weight of the value relative to the total uncertainty",
        mean=1.0,
        sd=1.0,
        source="Gershman 2018",
    )

    @classmethod
    def check_plays(cls, environment: Environment) -> None:
        """Raise ValueError also if plays scatter otherwise than the observer assumes."""
        super().check_plays(environment)
        if environment.settings.get("sd") != NOISE:
            raise ValueError(
                f"{cls.name} knows machines that pay Normal(mean, {NOISE:g}); those of "
                f"{environment!r} scatter otherwise. Choose another model."
            )

    def respond(self, trial: Any) -> Any:
        value_0, variance_0 = _belief(trial.count_0, trial.mean_0)
        value_1, variance_1 = _belief(trial.count_1, trial.mean_1)
        lead = (value_1 - value_0) / UNIT_OF_POINTS
        unsure = (np.sqrt(variance_1) - np.sqrt(variance_0)) / UNIT_OF_POINTS
        total = np.sqrt(variance_0 + variance_1) / UNIT_OF_POINTS
        return self.w_value * lead + self.w_directed * unsure + self.w_random * lead / total


UpperConfidenceExplorer = holding(
    UncertaintyExplorer,
    "upper_confidence_explorer",
    "Kalman filter with a bonus for what is less known",
    source="Gershman 2018; Auer, Cesa-Bianchi and Fischer 2002",
    w_random=0.0,
)
# Thompson sampling in the strict sense has w_random near 1.7, which turns a logistic into a probit.
ThompsonExplorer = holding(
    UncertaintyExplorer,
    "thompson_explorer",
    "Kalman filter with choices at random in proportion to what is not known",
    source="Thompson 1933; Gershman 2018; Speekenbrink and Konstantinidis 2015",
    w_value=0.0,
    w_directed=0.0,
)
ThompsonExplorer.contains = {"random_responder": {"w_random": 0.0}}
