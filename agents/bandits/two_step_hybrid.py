"""Models of the two-step task: a mixture of planned and cached values, and its special cases."""

from __future__ import annotations

from typing import Any

import numpy as np

from knownminds.agents.compiler.definition import positive, real, unit
from knownminds.agents.model import Model
from knownminds.agents.variants import holding

__all__ = ["TwoStepHybrid", "TwoStepModelFree", "TwoStepModelBased", "TwoStepReduced"]

DAW = "Daw et al. 2011"


def _rate(description: str) -> Any:
    return unit(description, mean=0.0, sd=1.0, source=DAW)


def _temperature(choices: str) -> Any:
    source = "Daw et al. 2011, whose medians are 5.2 and 3.7"
    return positive(f"inverse temperature of {choices}", mean=1.3, sd=0.6, source=source)


class TwoStepHybrid(Model):
    """First choices follow a mixture of planned and cached values, second ones the aliens' values.

    All values are 0.5 at first. If shuttle a reaches planet s, alien b is chosen there, and the
    reward is r, the day ends with

    d_1 = Q2[s, b] - Q1[a],  d_2 = r - Q2[s, b],
    Q1[a] += alpha_1 (d_1 + lambda d_2),  Q2[s, b] += alpha_2 d_2.

    The plan knows the probability p of a common transition (the column "transition"): QP[a] =
    p max Q2[a] + (1 - p) max Q2[1 - a]. P(a) is softmax(beta_1 (w QP + (1 - w) Q1) + pi [a was
    the last first choice]), and P(b) is softmax(beta_2 Q2[s]).

    Sessions of 2,000 days recover all seven parameters; sessions of 1,000 days recover all but
    alpha_1 and lambda; sessions of 20 days recover none. The best alien changes where values cross:
    the likelihood has kinks in alpha_2.
    """

    summary = "plans and caches: the seven-parameter mixture for the two-step task"
    source = "Daw, Gershman, Seymour, Dayan and Dolan 2011"
    kinds = ("stage", (0, 1))
    separate = ()

    alpha_1 = _rate("learning rate of the first stage's cached values")
    alpha_2 = _rate("learning rate of the second stage's values")
    lambda_ = _rate("share of the second stage's surprise that the first learns from")
    beta_1 = _temperature("the first stage")
    beta_2 = _temperature("the second stage")
    w = _rate("share of planning, as against caching, in the first stage's values")
    pi = real(
        "perseveration: log-odds added to the last choice of the first stage",
        mean=0.0,
        sd=0.5,
        source="Lau and Glimcher 2005; Daw et al. 2011",
    )

    def begin(self) -> None:
        self.aliens = np.full((2, 2), 0.5)
        self.cached = np.full(2, 0.5)
        self.last = np.zeros(2)
        self.pending = np.zeros(2)  # the shuttle whose day is not over yet

    def respond(self, trial: Any) -> Any:
        if trial.stage == 1:
            return self.beta_2 * self.aliens[trial.state]
        best = self.aliens.max(axis=1)
        plan = trial.transition * best + (1 - trial.transition) * best[::-1]
        return self.beta_1 * (self.w * plan + (1 - self.w) * self.cached) + self.pi * self.last

    def update(self, trial: Any) -> None:
        if trial.stage == 0:
            self.last[:] = 0
            self.last[trial.action] = 1
            self.pending = self.last.copy()
            return
        value = self.aliens[trial.state, trial.action]
        surprise = trial.reward - value
        step = value - self.cached + self.lambda_ * surprise
        self.cached += self.pending * self.alpha_1 * step
        self.pending = np.zeros(2)
        self.aliens[trial.state, trial.action] += self.alpha_2 * surprise


TwoStepModelFree = holding(
    TwoStepHybrid, "two_step_model_free", "caches and never plans: the hybrid with w = 0", w=0.0
)
TwoStepModelBased = holding(
    TwoStepHybrid,
    "two_step_model_based",
    "plans and never caches: the hybrid with w = 1, in which alpha_1 and lambda have no part",
    alpha_1=0.0,
    lambda_=0.0,
    w=1.0,
)


class TwoStepReduced(TwoStepHybrid):
    """The hybrid with one learning rate, one inverse temperature and lambda = 1.

    Single sessions of 300 days recover all four parameters; sessions of 100 days recover all but w;
    sessions of 20 days recover none.
    """

    summary = "the hybrid with four parameters: one alpha, one beta, lambda = 1"
    nested_in = "two_step_hybrid"
    alpha = _rate("learning rate of all values")
    beta = _temperature("both stages")
    w, pi = TwoStepHybrid.w, TwoStepHybrid.pi
    alpha_1 = alpha_2 = property(lambda self: self.alpha)
    beta_1 = beta_2 = property(lambda self: self.beta)
    lambda_ = 1.0
