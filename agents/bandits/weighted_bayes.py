"""Bayes' rule with weights: how much prior and evidence count in a stated probability."""

from __future__ import annotations

from math import exp, log, pi, sqrt

import numpy as np
from numba import njit
from scipy.special import ndtri

from knownminds.agents.agent import Agent
from knownminds.agents.exponential import exp_of_negative
from knownminds.agents.parameters import IDENTITY, POSITIVE, Array, Parameter, Parameters
from knownminds.environments.environment import Observation

LANES = 32  # as in sequences.py
TINY = 1e-300  # whose logarithm and quantile are finite
LEAST = 1e-5  # answers are held between this and 1 minus this, where their logit is finite
HALF_LOG_2_PI = 0.5 * log(2.0 * pi)


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def log_likelihood(theta, lapse, n_actions, row, start, response, prior, likelihood, ball):  # type: ignore[no-untyped-def]
    """Log density of the answers, with its gradient; a lapse has density 1."""
    total = np.zeros(len(theta))
    gradient = np.zeros((len(theta), 4 if lapse is None else 5))
    for block in range(len(row)):
        for i in range(LANES):
            q = row[block, i]
            b_0, b_prior, b_likelihood, sigma = theta[q]
            constant = -HALF_LOG_2_PI - log(sigma)
            for t in range(start[block], start[block + 1]):
                if not response[t, i] >= 0.0:
                    continue
                y = min(max(response[t, i], LEAST), 1.0 - LEAST)
                before = log(prior[t, i] / (1.0 - prior[t, i]))
                ratio = log(likelihood[t, i] / (1.0 - likelihood[t, i]))
                evidence = ratio if ball[t, i] > 0.5 else -ratio
                said = log(y / (1.0 - y))
                off = (said - b_0 - b_prior * before - b_likelihood * evidence) / sigma
                # The last term is the Jacobian: the density is that of y, not of its logit.
                own = constant - 0.5 * off * off - log(y * (1.0 - y))
                weight = 1.0
                if lapse is not None:
                    density = exp(min(own, 700.0))
                    mixed = max((1.0 - lapse[q]) * density + lapse[q], TINY)
                    gradient[q, 4] += (1.0 - density) / mixed
                    weight = (1.0 - lapse[q]) * density / mixed
                    own = log(mixed)
                total[q] += own
                pull = weight * off / sigma
                gradient[q, 0] += pull
                gradient[q, 1] += pull * before
                gradient[q, 2] += pull * evidence
                gradient[q, 3] += weight * (off * off - 1.0) / sigma
    return total, gradient


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def answers(theta, lapse, row, start, uniforms, noise, before, evidence):  # type: ignore[no-untyped-def]
    """Answer; the first uniform decides on a lapse, which gives the second as the answer."""
    response = np.empty((start[-1], LANES))
    own, lapses = np.empty((4, LANES)), np.zeros(LANES)
    for block in range(len(row)):
        for i in range(LANES):
            q = row[block, i]
            own[0, i], own[1, i], own[2, i], own[3, i] = theta[q]
            if lapse is not None:
                lapses[i] = lapse[q]
        for t in range(start[block], start[block + 1]):
            for i in range(LANES):
                x = own[0, i] + own[1, i] * before[t, i] + own[2, i] * evidence[t, i]
                x += own[3, i] * noise[t, i]
                e = exp_of_negative(-abs(x))
                y = (1.0 if x > 0.0 else e) / (1.0 + e)
                y = min(max(y, LEAST), 1.0 - LEAST)
                if lapse is not None:
                    y = uniforms[t, 1, i] if uniforms[t, 0, i] < lapses[i] else y
                response[t, i] = y
    return response


def simulate(theta, lapse, n_actions, row, start, uniforms, before, evidence):  # type: ignore[no-untyped-def]
    """Answer the problems; uniforms [places, 2, LANES], log-odds and log-likelihood ratios."""
    noise = ndtri(np.maximum(uniforms[:, 1], TINY))
    return answers(theta, lapse, row, start, uniforms, noise, before, evidence)


class WeightedBayes(Agent):
    """Adds weighted log-odds and errs: Bayes' rule where both weights are 1 and bias and noise 0.

    logit(answer) = b_0 + b_prior logit(prior) + b_likelihood L + sigma N(0, 1), where L is the
    log-likelihood ratio of the ball, log P(ball | asked urn) - log P(ball | other urn). The
    likelihood is that of the answer itself, held between 1e-5 and 1 - 1e-5.
    """

    name = "weighted_bayes"
    summary = "states probabilities by Bayes' rule with weights on prior and likelihood"
    source = "Grether 1980; Dasgupta, Schulz, Tenenbaum and Gershman 2020"
    parameters = Parameters(
        Parameter(
            "b_0",
            IDENTITY,
            mean=0.0,
            sd=0.5,
            description="bias towards the asked urn, in log-odds",
        ),
        Parameter(
            "b_prior",
            IDENTITY,
            mean=1.0,
            sd=0.5,
            description="weight of the prior's log-odds; 1 by Bayes' rule",
            source="Grether 1980",
        ),
        Parameter(
            "b_likelihood",
            IDENTITY,
            mean=1.0,
            sd=0.5,
            description="weight of the log-likelihood ratio; 1 by Bayes' rule",
            source="Grether 1980",
        ),
        Parameter(
            "sigma",
            POSITIVE,
            mean=-1.0,
            sd=0.5,
            description="standard deviation of the answer's log-odds",
        ),
    )
    columns = ("response", "prior", "likelihood", "ball")
    design = ("log_odds", "log_likelihood_ratio")
    separate = ()
    given = "response"
    n_uniforms = 2
    remembers = False
    log_likelihood = staticmethod(log_likelihood)
    simulate = staticmethod(simulate)

    def reset(self) -> None:
        """Nothing to forget."""

    def action_probabilities(self, observation: Observation) -> Array:
        """Return nothing: there are no actions."""
        return np.empty(0)

    def learn(self, observation: Observation, action: int, reward: float) -> None:
        """Nothing to learn."""

    def log_density(
        self, observation: Observation, response: float, action: int | None = None
    ) -> float:
        """Return the log density of an answer, a logit-normal one."""
        y = min(max(response, LEAST), 1.0 - LEAST)
        sigma = float(self.theta[3])
        off = (log(y / (1.0 - y)) - self._mean(observation)) / sigma
        return -0.5 * off**2 - log(sigma * sqrt(2.0 * pi) * y * (1.0 - y))

    def choose(self, observation: Observation, rng: np.random.Generator) -> float:
        """Draw an answer with two uniform numbers."""
        lapses, u = rng.random(2).tolist()
        if lapses < self.lapse:
            return float(u)
        x = self._mean(observation) + float(self.theta[3]) * float(ndtri(max(u, TINY)))
        return min(max(1.0 / (1.0 + exp(-x)), LEAST), 1.0 - LEAST)

    def _mean(self, observation: Observation) -> float:
        b_0, b_prior, b_likelihood, _ = self.theta.tolist()
        prior, likelihood = float(observation["prior"]), float(observation["likelihood"])
        evidence = log(likelihood / (1.0 - likelihood)) * (1.0 if observation["ball"] else -1.0)
        mean: float = b_0 + b_prior * log(prior / (1.0 - prior)) + b_likelihood * evidence
        return mean
