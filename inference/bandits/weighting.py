"""How much weight prior and likelihood have in stated probabilities."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from knownminds.agents import Agent
from knownminds.agents.parameters import Array
from knownminds.environments import Trials
from knownminds.inference.measure import Dial, Estimate, with_columns
from knownminds.inference.regression import RegressionMeasure

from .released_code import held_note, trimmed


class Weighting(RegressionMeasure):
    """A weight in logit(answer) = b_0 + b_prior logit(prior) + b_likelihood L, by least squares.

    L is the log-likelihood ratio of the ball. All trials are pooled, with errors that are robust
    to dependence within subjects (within sessions, if there is one subject). Both weights are 1
    by Bayes' rule and 0 in somebody who does not take the quantity into account, which is what
    the test rejects. Answers are held between 1e-5 and 1 - 1e-5, where their logit is finite.

    Parameters
    ----------
    weight
        "prior" or "likelihood".
    released
        As in CogBench's released code, which fits no intercept: a general leaning towards the
        target urn then goes into the error, and into both weights where designs are lopsided. It
        also takes any number for an answer, one above 1 for 1 - 1e-5; these are counted.
    """

    source = "Dasgupta, Schulz, Tenenbaum and Gershman 2020; CogBench"
    environments = ("probabilistic_reasoning",)
    rational = "random_rater"
    violator = "weighted_bayes"
    logistic = False

    def __init__(self, weight: Literal["prior", "likelihood"], released: bool = False):
        self.weight = self.of = weight
        self.intercept = not released
        self.released = released
        self.name = f"{weight}_weighting" + ("_released" if released else "")
        what = {"prior": "of the prior's log-odds", "likelihood": "of the log-likelihood ratio"}
        ending = ", regression without intercept" if released else ""
        self.summary = f"weight {what[weight]} in stated probabilities{ending}"
        # Beyond this reach answers are held at their limits, and the weights with them.
        self.dial = Dial({f"b_{weight}": 1.0}, reach=3.0, steps=121)

    def truth(self, model: type[Agent], theta: Array) -> Array:
        """Return the weight of agents with parameters theta[n, P]; 0 for those without any."""
        name = f"b_{self.weight}"
        if name not in model.parameters.names:
            return np.zeros(len(theta))
        weights: Array = theta[:, model.parameters.index(name)]
        return weights

    def group_truth(self, model: type[Agent], theta: Array) -> float:
        """Return the mean weight of agents with parameters theta[n, P]."""
        return float(self.truth(model, theta).mean())

    def design(self, trials: Trials) -> tuple[NDArray[np.bool_], Array, dict[str, Array]]:
        """Return the log-odds of all answers, of the prior, and of the likelihood."""
        frame = with_columns(trials, self.name, ("prior", "likelihood", "ball", "response"))
        response, beyond = trimmed(trials)
        side = np.where(frame["ball"].to_numpy(dtype=float) > 0.5, 1.0, -1.0)
        regressors = {
            "prior": logit(frame["prior"].to_numpy(dtype=float)),
            "likelihood": side * logit(frame["likelihood"].to_numpy(dtype=float)),
        }
        response = response if self.released else np.where(beyond, np.nan, response)
        return np.ones(len(frame), dtype=bool), logit(response), regressors

    def estimate(self, trials: Trials) -> Estimate:
        """Regress the log-odds of all answers on those of prior and likelihood."""
        estimate = super().estimate(trials)
        beyond = int(trimmed(trials)[1].sum()) if self.released else 0
        return replace(estimate, note=held_note(estimate.note, beyond))
