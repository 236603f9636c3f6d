"""R-hat, effective sample sizes, Monte-Carlo errors and smoothed importance weights, by ArviZ.

The sources are Vehtari, Gelman, Simpson, Carpenter and Buerkner (2021) and Vehtari, Simpson,
Gelman, Yao and Gabry (2024). `arviz_stats.base` needs NumPy and SciPy alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import logsumexp

from knownminds.agents.parameters import Array

# Above this the importance weights have no usable variance.
LARGEST_PARETO_K = 0.7
TAILS = (0.05, 0.95)
AXES = {"chain_axis": 0, "draw_axis": 1}


def r_hat(draws: Array) -> Array:
    """Return the rank-normalised split R-hat of draws [chains, draws, ...], bulk or tail.

    NaN if there is a single chain, or a draw is not finite.
    """
    return _of_finite(draws, "rhat")


def ess(draws: Array, method: str = "bulk") -> Array:
    """Return effective sample sizes of draws [chains, draws, ...]: "bulk", "tail" or "mean"."""
    return _of_finite(draws, "ess", method=method, prob=TAILS if method == "tail" else None)


def smooth_weights(log_weights: Array) -> tuple[Array, Array]:
    """Return normalised, Pareto-smoothed log weights [rows, draws] and each row's Pareto k.

    k is infinite if there is no tail for a law to fit, and minus infinity if all weights of a row
    are equal; such rows are not smoothed.
    """
    from arviz_stats.base import array_stats

    smoothed = log_weights - logsumexp(log_weights, axis=1, keepdims=True)
    pareto_k = np.where(np.ptp(smoothed, axis=1) == 0, -np.inf, np.inf)
    for row, weights in enumerate(log_weights):
        tail = np.partition(weights, -5)[-5:]  # the smallest tail that a law is fitted to
        if not np.isfinite(tail).all() or np.ptp(tail) == 0:
            continue
        with np.errstate(all="ignore"):
            log_weight, k = array_stats.psislw(-weights)
        if np.isfinite(k) and not np.isnan(log_weight).any():
            smoothed[row], pareto_k[row] = log_weight, k
    return smoothed, pareto_k


def _of_finite(draws: Array, score: str, **how: Any) -> Array:
    from arviz_stats.base import array_stats

    finite = np.isfinite(draws).all(axis=(0, 1))
    with np.errstate(all="ignore"):
        scores = getattr(array_stats, score)(np.where(finite, draws, 0.0), **AXES, **how)
    return np.where(finite, scores, np.nan)
