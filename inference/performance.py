"""How well the trials of an experiment were done."""

from __future__ import annotations

import numpy as np

from knownminds.agents import Agent
from knownminds.agents.parameters import Array
from knownminds.environments import Environment, Trials
from knownminds.environments.later import pandas as pd

from .measure import UNBOUNDED, Dial, Estimate, SubjectMeasure, Values


class Performance(SubjectMeasure):
    """Mean performance over the trials that have a score (`Environment.performance`).

    It has no null value, and so no test.
    """

    name = "performance"
    summary = "mean score of the trials"
    source = ""
    null = float("nan")
    rational, violator = "", ""
    dial = Dial()

    def __init__(self, environment: Environment):
        self.environment = environment
        self.environments = (environment.name,)
        self.bounds = environment.performance_bounds or UNBOUNDED

    def values(self, trials: Trials) -> Values:
        """Return each subject's mean; trials without an answer have no score and are left out."""
        subject, names = pd.factorize(trials.frame["subject"])
        score = self.environment.performance(trials)
        return Values.means(subject, score, len(names), "no trial with a score")

    def truth(self, model: type[Agent], theta: Array) -> Array:
        """Return NaN: it hangs on the session."""
        return np.full(len(theta), np.nan)


def performance(trials: Trials, environment: Environment) -> Estimate:
    """Return the mean performance over subjects, or that of a single one over its sessions."""
    return Performance(environment).estimate(trials)
