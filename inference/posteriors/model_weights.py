"""Weights of several models by their predictions of the same subjects."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy
from scipy.special import digamma, gammainc, gammaincinv, gammaln, logsumexp, softmax, xlogy

from knownminds.agents.parameters import Array

ROUNDS, SETTLED = 2000, 1e-8
GRID = 20_001  # points at which exceedance probabilities are integrated


def stacking_weights(elpd: Array) -> Array:
    """Return the weights of the mixture of models that predicts best, [M], which sum to 1.

    They maximise sum_i log sum_m w_m exp(elpd[i, m]) (Yao, Vehtari, Simpson and Gelman 2018).

    Parameters
    ----------
    elpd : Log predictive densities of N subjects by M models, [N, M].
    """
    density = np.exp(elpd - elpd.max(axis=1, keepdims=True))
    m = density.shape[1]
    if m == 1:
        return np.ones(1)

    def loss(weights: Array) -> tuple[float, Array]:
        mixed = np.maximum(density @ weights, np.finfo(float).tiny)
        return -float(np.log(mixed).mean()), -(density / mixed[:, None]).mean(axis=0)

    sum_to_one = {"type": "eq", "fun": lambda w: w.sum() - 1.0, "jac": np.ones_like}
    result = scipy.optimize.minimize(
        loss, np.full(m, 1.0 / m), jac=True, method="SLSQP", bounds=[(0.0, 1.0)] * m,
        constraints=[sum_to_one], options={"ftol": 1e-12, "maxiter": 1000},
    )  # fmt: skip
    weights: Array = np.clip(result.x, 0.0, None)
    shares: Array = weights / weights.sum()
    return shares


@dataclass(frozen=True)
class Exceedance:
    """How frequent models are among subjects (Stephan et al. 2009; Rigoux et al. 2014).

    Parameters
    ----------
    counts : Counts of the Dirichlet posterior of the models' frequencies, [M].
    frequency : Expected frequencies, [M].
    exceedance : Probability that each model is the most frequent, [M], if frequencies differ.
    protected : The same, [M], averaged with equal frequencies by the probability that they are
        equal.
    omnibus : Probability that frequencies are equal: the Bayesian omnibus risk.
    """

    counts: Array
    frequency: Array
    exceedance: Array
    protected: Array
    omnibus: float


def protected_exceedance(evidence: Array, points: int = GRID) -> Exceedance:
    """Return how frequent models are among subjects, from log evidences [N, M].

    Each subject's data come from one model; frequencies have a uniform Dirichlet prior. The
    posterior is the variational one of Stephan, Penny, Daunizeau, Moran and Friston (2009); the
    omnibus risk is that of Rigoux, Stephan, Friston and Daunizeau (2014). Exceedance probabilities
    are integrated at `points` points.
    """
    n, m = evidence.shape
    prior = np.ones(m)
    counts = prior + n / m
    shares = np.full((n, m), 1.0 / m)
    for _ in range(ROUNDS):
        log_r = digamma(counts) - digamma(counts.sum())
        shares = softmax(evidence + log_r, axis=1)
        before, counts = counts, prior + shares.sum(axis=0)
        if np.abs(counts - before).max() < SETTLED:
            break
    log_r = digamma(counts) - digamma(counts.sum())
    joint = gammaln(prior.sum()) - gammaln(prior).sum() + ((prior - 1) * log_r).sum()
    joint += (shares * (log_r + evidence)).sum()
    entropy = gammaln(counts).sum() - gammaln(counts.sum()) - ((counts - 1) * log_r).sum()
    entropy -= xlogy(shares, shares).sum()
    same = float((logsumexp(evidence, axis=1) - np.log(m)).sum())
    omnibus = float(1.0 / (1.0 + np.exp(np.clip(joint + entropy - same, -700, 700))))
    most = _most_frequent(counts, points)
    return Exceedance(
        counts, counts / counts.sum(), most, most * (1 - omnibus) + omnibus / m, omnibus
    )


def _most_frequent(counts: Array, points: int) -> Array:
    """Return the probability that each part of a Dirichlet variable is the largest, [M].

    Its parts are independent gamma variables divided by their sum. So the probability is an
    integral over one of them.
    """
    u = (np.arange(points) + 0.5) / points
    result = np.empty(len(counts))
    for k, shape in enumerate(counts):
        x = gammaincinv(shape, u)
        result[k] = np.prod([gammainc(other, x) for other in np.delete(counts, k)], axis=0).mean()
    total: Array = result / result.sum()
    return total
