"""Pareto-smoothed importance weights, from whichever ArviZ is installed."""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp

from knownminds.agents.parameters import Array

# Above this the importance weights have no usable variance (Vehtari et al. 2024).
LARGEST_PARETO_K = 0.7


def smooth_weights(log_weights: Array) -> tuple[Array, Array]:
    """Smooth log importance weights [..., draws].

    Returns normalised log weights of the same shape and the Pareto shape k of each row (Vehtari,
    Simpson, Gelman, Yao and Gabry 2024).
    """
    log_weights = np.asarray(log_weights, dtype=float)
    smoothed = np.empty_like(log_weights)
    shape = np.empty(log_weights.shape[:-1])
    for row in np.ndindex(shape.shape):
        smoothed[row], shape[row] = _smooth(log_weights[row])
    return smoothed - logsumexp(smoothed, axis=-1, keepdims=True), shape


def _smooth(log_weights: Array) -> tuple[Array, float]:
    if np.ptp(log_weights) == 0:
        return log_weights, -np.inf  # equal weights have no tail to smooth
    try:
        from arviz_stats.base import array_stats
    except ImportError:
        from arviz import psislw

        smoothed, shape = psislw(log_weights)
        return smoothed, float(shape)
    try:
        # ArviZ 1 takes log-likelihoods and turns their sign; ArviZ 0 takes the weights themselves.
        smoothed, shape = array_stats.psislw(-log_weights)
    except ValueError:  # raised where the largest weights are all the same: nothing to trust
        return log_weights, np.inf
    return smoothed, float(shape)
