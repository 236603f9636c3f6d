"""Importance sampling from a multivariate t around a centre, the one proposal for all integrals."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy

from knownminds.agents.parameters import Array

DEGREES_OF_FREEDOM = 5.0  # of the proposal; wide enough for the skewed posteriors of rates


class Proposals(NamedTuple):
    """Points of low discrepancy for S proposals of K numbers, the same for all subjects.

    Parameters
    ----------
    uniforms : uniform numbers in (0, 1), [S, K]
    base : t variables, independent so that their density is exact, [S, K]
    log_density : log density of these variables, [S]
    """

    uniforms: Array
    base: Array
    log_density: Array

    @classmethod
    def of(cls, k: int, count: int, seed: int) -> Proposals:
        """Draw the points; the count must be a power of two.

        They are scrambled, since plain points begin in a far corner, where weights are extreme.
        """
        points = scipy.stats.qmc.Sobol(k, rng=np.random.default_rng(seed)).random(count)
        uniforms = np.clip(points, 1e-12, 1 - 1e-12)
        base = scipy.stats.t.ppf(uniforms, DEGREES_OF_FREEDOM)
        return cls(uniforms, base, scipy.stats.t.logpdf(base, DEGREES_OF_FREEDOM).sum(axis=1))

    def around(self, centre: Array, covariance: Array) -> tuple[Array, Array]:
        """Return proposals around centres [N, K], [S, N, K], and their log densities, [S, N]."""
        root = np.linalg.cholesky(covariance)
        volume = np.log(np.diagonal(root, axis1=1, axis2=2)).sum(axis=1)
        return centre + np.einsum("nij,sj->sni", root, self.base), (
            self.log_density[:, None] - volume
        )


def finite(log_weights: Array) -> Array:
    """Return log weights, with minus infinity for those that are not numbers."""
    return np.where(np.isfinite(log_weights), log_weights, -np.inf)
