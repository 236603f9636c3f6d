"""Bayes' rule with weights: how much prior and evidence count in a stated probability."""

from __future__ import annotations

from typing import Any

import numpy as np

from knownminds.agents.compiler.definition import LogitNormal, positive, real
from knownminds.agents.compiler.model import Model

__all__ = ["WeightedBayes"]


class WeightedBayes(Model):
    """Adds weighted log-odds and errs: Bayes' rule where both weights are 1 and bias and noise 0.

    logit(answer) = b_0 + b_prior logit(prior) + b_likelihood L + sigma N(0, 1), where L is the
    log-likelihood ratio of the ball, log P(ball | queried urn) - log P(ball | other urn). The
    likelihood is that of the answer itself, held between 1e-5 and 1 - 1e-5.
    """

    summary = "states probabilities by Bayes' rule with weights on prior and likelihood"
    source = "Grether 1980; Dasgupta, Schulz, Tenenbaum and Gershman 2020"
    separate = ()

    b_0 = real("bias towards the queried urn, in log-odds", mean=0.0, sd=0.5)
    b_prior = real(
        "weight of the prior's log-odds; 1 by Bayes' rule", mean=1.0, sd=0.5, source="Grether 1980"
    )
    b_likelihood = real(
        "weight of the log-likelihood ratio; 1 by Bayes' rule",
        mean=1.0,
        sd=0.5,
        source="Grether 1980",
    )
    sigma = positive("standard deviation of the answer's log-odds", mean=-1.0, sd=0.5)

    def respond(self, trial: Any) -> Any:
        before = np.log(trial.prior / (1 - trial.prior))
        ratio = np.log(trial.likelihood / (1 - trial.likelihood))
        evidence = ratio if trial.ball > 0.5 else -ratio
        mean = self.b_0 + self.b_prior * before + self.b_likelihood * evidence
        return LogitNormal(mean, self.sigma)
