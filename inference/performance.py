"""How well the trials of an experiment were done."""

from __future__ import annotations

from knownminds.environments import Environment, Trials

from .measure import UNBOUNDED, Estimate
from .session_measure import DeclaredMeasure, trial_measure

UNSCORED = "no trial with a score"


def performance_of(environment: Environment) -> DeclaredMeasure:
    """Return the measure of mean performance over the trials that have a score.

    `Environment.performance` gives the scores. The measure has no null value, and so no test.
    """
    return trial_measure(
        name="performance",
        summary="mean score of the trials",
        source="",
        environments=(environment.name,),
        environment=environment,
        violator="",
        bounds=environment.performance_bounds or UNBOUNDED,
        columns=(),
        reason=UNSCORED,
    )(environment.performance)


def performance(trials: Trials, environment: Environment) -> Estimate:
    """Return the mean performance over subjects, or that of a single one over its sessions."""
    return performance_of(environment).estimate(trials)
