"""A subject's posterior as weighted particles, updated with each answer to a single question."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from knownminds.agents.parameters import Array, Parameters
from knownminds.inference.posteriors.importance import Proposals, finite

LEAST_SHARE = 0.25  # points are drawn anew when the weights are worth less than this share of them
ROUNDS = 3  # a proposal is matched to the moments of the one before so often, at most
_SEED = 20  # of the points: every posterior uses the same low-discrepancy set


@dataclass
class Particles:
    """Points on the unconstrained scale and their weights, beginning with the prior.

    Parameters
    ----------
    parameters : The unknown parameters, with their priors.
    n : The number of points, a power of two.

    Attributes
    ----------
    z : Points on the unconstrained scale, [n, K].
    weights : Weights of the points, which add up to 1, [n].
    generation : How often the points were drawn anew; 0 for those of the prior.
    impossible : Number of answers that no particle can give. They are left out of the weights.
    """

    parameters: Parameters
    n: int
    z: Array = field(init=False)
    weights: Array = field(init=False)
    generation: int = field(init=False, default=0)
    impossible: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self.z = prior_points(self.parameters, self.n)
        self.weights = np.full(self.n, 1.0 / self.n)

    @property
    def theta(self) -> Array:
        """The points on the natural scale, [n, K]."""
        return self.parameters.constrain(self.z)

    @property
    def worth(self) -> float:
        """How many equally weighted points the weights are worth: 1 / (sum of their squares)."""
        return float(1.0 / np.square(self.weights).sum())

    @property
    def worn(self) -> bool:
        """Whether too few of the points count."""
        return self.worth < LEAST_SHARE * self.n

    @property
    def mean(self) -> Array:
        """Posterior mean on the unconstrained scale, [K]."""
        return np.asarray(self.weights @ self.z)

    @property
    def sd(self) -> Array:
        """Posterior standard deviation on the unconstrained scale, [K]."""
        return np.sqrt(self.weights @ np.square(self.z - self.mean))

    def take_in(self, log_likelihood: Array) -> bool:
        """Weigh the points by one more answer, [n]; False if no point can give it."""
        most = log_likelihood.max()
        weights = (
            self.weights * np.exp(log_likelihood - most) if np.isfinite(most) else self.weights
        )
        total = weights.sum()
        if not (np.isfinite(most) and total > 0):
            self.impossible += 1
            return False
        self.weights = weights / total
        return True

    def renew(self, log_likelihood: Callable[[Array], Array]) -> None:
        """Draw new points near the posterior and weigh them by all answers so far.

        Proposals are multivariate t with the moments of the weighted points, twice as wide. They
        are matched again as long as the weights are worth too little; the best round is kept. With
        the prior in the weights this is importance sampling of the exact posterior.

        Parameters
        ----------
        log_likelihood : A function that returns the log-likelihood of all answers at natural-scale
            points: [n, K] -> [n].
        """
        k = self.z.shape[1]
        proposals = Proposals.of(k, self.n, _SEED)
        floor = 1e-6 * np.diag(self.parameters.sd**2)
        best, kept = -1.0, (self.z, self.weights)
        z, weights, wider = self.z, self.weights, 2.0
        for _ in range(ROUNDS):
            mean = weights @ z
            off = z - mean
            covariance = wider * (weights * off.T) @ off + floor
            around, log_density = proposals.around(mean[None], covariance[None])
            z = around[:, 0]
            log_joint = log_likelihood(self.parameters.constrain(z))
            log_joint = log_joint + self.parameters.log_prior(z)[0]
            log_weights = finite(log_joint - log_density[:, 0])
            if not np.isfinite(log_weights.max()):
                break
            weights = np.exp(log_weights - log_weights.max())
            weights /= weights.sum()
            worth = float(1.0 / np.square(weights).sum())
            if worth > best:
                best, kept = worth, (z, weights)
            if worth >= 2 * LEAST_SHARE * self.n:
                break
            wider = 1.5
        self.z, self.weights = kept
        self.generation += 1


def prior_points(parameters: Parameters, n: int) -> Array:
    """Return n points of the prior on the unconstrained scale, [n, K], of low discrepancy."""
    standard = ndtri(Proposals.of(len(parameters), n, _SEED).uniforms)
    return np.asarray(parameters.mean + parameters.sd * standard)


def evenly(weights: Array, n: int) -> NDArray[np.int64]:
    """Return n positions in proportion to weights, by systematic resampling without chance."""
    at = np.searchsorted(np.cumsum(weights), (np.arange(n) + 0.5) / n * weights.sum())
    return np.asarray(np.minimum(at, len(weights) - 1), dtype=np.int64)
