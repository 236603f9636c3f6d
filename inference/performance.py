"""How well the trials of an experiment were done."""

from __future__ import annotations

import numpy as np
import pandas as pd

from knownminds.environments import Environment, Trials

from .measures import Estimate, Values, t_tests


def performances(trials: Trials, environment: Environment) -> Values:
    """Return each subject's mean performance, in the order in which they first appear.

    What a trial scores is `Environment.performance`; trials without an answer have no score and
    are left out of the mean.
    """
    subject, names = pd.factorize(trials.frame["subject"])
    score = environment.performance(trials)
    held = np.isfinite(score)
    n = np.bincount(subject[held], minlength=len(names))
    with np.errstate(invalid="ignore"):
        value = np.bincount(subject[held], score[held], len(names)) / n
    return Values(value, tuple("" if k else "no trial with a score" for k in n))


def performance(trials: Trials, environment: Environment) -> Estimate:
    """Return the mean performance over subjects, with its t interval over them.

    It has no null value, and so no test; of a single subject it has no interval.
    """
    values = performances(trials, environment)
    tests = t_tests(values.value[None, :], np.nan)
    reasons = [reason for reason in values.reason if reason]
    return Estimate(
        measure="performance",
        value=float(tests.mean[0]),
        standard_error=float(tests.standard_error[0]),
        low=float(tests.low[0]),
        high=float(tests.high[0]),
        n=int(tests.n[0]),
        unit="subject",
        p_value=np.nan,
        excluded={reason: reasons.count(reason) for reason in dict.fromkeys(reasons)},
    )
