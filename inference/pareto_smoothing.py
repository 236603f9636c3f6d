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
    try:
        from arviz_stats.base import array_stats
    except ImportError:
        from arviz import psislw

        smoothed, shape = psislw(log_weights)
    else:
        smoothed, shape = array_stats.psislw(log_weights)
    smoothed = np.asarray(smoothed, dtype=float)
    return smoothed - logsumexp(smoothed, axis=-1, keepdims=True), np.asarray(shape, dtype=float)
