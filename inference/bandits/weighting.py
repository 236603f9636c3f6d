"""How much weight prior and likelihood have in stated probabilities."""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy.special import logit

from knownminds.environments import Trials
from knownminds.inference.measure import Dial, with_columns
from knownminds.inference.regression import Design, RegressionMeasure

from .released_code import answers_beyond, trimmed


def weighting(weight: Literal["prior", "likelihood"], released: bool = False) -> RegressionMeasure:
    """A weight in logit(answer) = b_0 + b_prior logit(prior) + b_likelihood L, by least squares.

    L is the log-likelihood ratio of the ball. All trials are pooled, with errors that are robust to
    dependence within subjects (within sessions, if there is one subject). Both weights are 1 by
    Bayes' rule, and 0 for a participant who ignores the quantity; the test rejects 0. Answers are
    held between 1e-5 and 1 - 1e-5, where their logit is finite.

    Parameters
    ----------
    weight : "prior" or "likelihood".
    released : As in CogBench's released code, which fits no intercept: a general bias towards the
        target urn then goes into the error, and into both weights if the design is not balanced. It
        also accepts any number as an answer, and takes one above 1 as 1 - 1e-5; these answers are
        counted.
    """
    name = f"{weight}_weighting" + ("_released" if released else "")

    def design(trials: Trials) -> Design:
        with_columns(trials, name, ("prior", "likelihood", "ball", "response"))
        response, beyond = trimmed(trials)
        side = np.where(trials.numbers("ball") > 0.5, 1.0, -1.0)
        prior, likelihood = (logit(trials.numbers(n)) for n in ("prior", "likelihood"))
        response = response if released else np.where(beyond, np.nan, response)
        regressors = {"prior": prior, "likelihood": side * likelihood}
        return np.ones(len(side), dtype=bool), logit(response), regressors

    what = "of the prior's log-odds" if weight == "prior" else "of the log-likelihood ratio"
    ending = ", regression without intercept" if released else ""
    return RegressionMeasure(
        design,
        name=name,
        summary=f"weight {what} in stated probabilities{ending}",
        source="Dasgupta, Schulz, Tenenbaum and Gershman 2020; CogBench",
        environments=("probabilistic_reasoning",),
        rational="random_rater",
        violator="weighted_bayes",
        # Beyond this reach answers are held at their limits, and the weights with them.
        dial=Dial({f"b_{weight}": 1.0}, reach=3.0, steps=121),
        of=weight,
        logistic=False,
        intercept=not released,
        parameter=f"b_{weight}",
        remark=answers_beyond if released else None,
    )


WEIGHTINGS = tuple(
    weighting(weight, released) for weight in ("prior", "likelihood") for released in (False, True)
)
