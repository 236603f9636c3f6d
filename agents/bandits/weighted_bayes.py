"""Bayes' rule with weights: how much prior and evidence count in a stated probability."""

from __future__ import annotations

from typing import Any

import numpy as np

from knownminds.agents.compiler.definition import LogitNormal, declared, positive, real
from knownminds.agents.model import Model
from knownminds.agents.parameters import interval

__all__ = ["WeightedBayes", "ConservativeBayes", "ProbabilityNoise"]


class WeightedBayes(Model):
    """Adds weighted log-odds, with a bias and noise; Bayes' rule if weights are 1 and the rest 0.

    logit(answer) = b_0 + b_prior logit(prior) + b_likelihood L + sigma N(0, 1). L is the
    log-likelihood ratio of the ball, log P(ball | queried urn) - log P(ball | other urn). The
    density is that of the answer itself, not of its log-odds; answers are held between 1e-5 and 1 -
    1e-5.
    """

    summary = "states probabilities by Bayes' rule with weights on prior and likelihood"
    source = "Grether 1980; Dasgupta, Schulz, Tenenbaum and Gershman 2020"
    separate = ()
    last_parameters = ("sigma",)

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


class ConservativeBayes(WeightedBayes):
    """Weights prior and evidence alike; a weight below 1 pulls the answer towards one half.

    logit(answer) = b_0 + b (logit(prior) + L) + sigma N(0, 1). This is `WeightedBayes` with a
    single weight.
    """

    summary = "states probabilities by Bayes' rule with one weight on all evidence"
    nested_in = "weighted_bayes"
    source = "Edwards 1968; Zhang and Maloney 2012"

    b = real("weight of all log-odds; 1 by Bayes' rule", mean=0.7, sd=0.5, source="Edwards 1968")
    b_prior = b_likelihood = property(lambda self: self.b)


class ProbabilityNoise(WeightedBayes):
    """Reads off Bayes' posterior with noise, which pulls the mean answer towards one half.

    With the posterior P, logit(answer) = logit(P (1 - 2 d) + d) + sigma N(0, 1). In the theory of
    probability plus noise, d is the rate at which an event is misread. The Bayesian sampler with N
    samples and a symmetric Beta(g, g) prior has d = g / (N + 2 g).
    """

    summary = "states Bayes' posterior as misread at a rate d"
    source = "Costello and Watts 2014; Zhu, Sanborn and Chater 2020"

    b_0 = b_prior = b_likelihood = None
    d = declared(
        interval(0.0, 0.5),
        "rate at which events are misread",
        mean=-1.0,
        sd=1.0,
        source="Costello and Watts 2014",
    )

    def respond(self, trial: Any) -> Any:
        rate = np.where(trial.ball > 0.5, trial.likelihood, 1 - trial.likelihood)
        queried, other = trial.prior * rate, (1 - trial.prior) * (1 - rate)
        read = (1 - 2 * self.d) * queried / (queried + other) + self.d
        return LogitNormal(np.log(read / (1 - read)), self.sigma)
