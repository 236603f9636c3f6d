"""Pareto-smoothed importance weights (Vehtari, Simpson, Gelman, Yao and Gabry 2024).

They are ArviZ's numbers, to which tests hold them, without the seconds that it takes to import.
"""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp

from knownminds.agents.parameters import Array

# Above this the importance weights have no usable variance.
LARGEST_PARETO_K = 0.7
LEAST_TAIL = 5  # weights above the cut, for a law to be fitted to them
SMALLEST = np.log(np.finfo(float).tiny)
# How strongly the law of the tail is held: the scale of its prior, and how many weights the prior
# k = 1/2 is worth.
PRIOR_SCALE, PRIOR_WORTH = 3, 10


def smooth_weights(log_weights: Array) -> tuple[Array, Array]:
    """Smooth log importance weights [..., draws].

    Returns normalised log weights of the same shape and the Pareto shape k of each row; k is
    infinite where there is no tail to fit a law to, and minus that where all weights are equal.
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
    x = log_weights - log_weights.max()
    size = int(np.ceil(min(len(x) / 5.0, 3 * len(x) ** 0.5)))
    cut = max(np.sort(x)[-size - 1], SMALLEST)
    tail = np.flatnonzero(x > cut)
    shape = np.inf
    if len(tail) >= LEAST_TAIL:
        tail = tail[np.argsort(x[tail])]
        shape, scale = _pareto(np.exp(x[tail]) - np.exp(cut))
        if np.isfinite(shape):
            places = np.arange(0.5, len(tail)) / len(tail)
            x[tail] = np.log(_quantiles(places, shape, scale) + np.exp(cut))
            x[x > 0] = 0
    return x - logsumexp(x), float(shape)


def _pareto(excess: Array) -> tuple[float, float]:
    """Fit shape and scale of a generalised Pareto law to sorted values (Zhang and Stephens 2009).

    The posterior mean over a grid of its other parameter; the shape is drawn a little toward 1/2.
    """
    n = len(excess)
    points = 30 + int(n**0.5)
    grid = 1 - np.sqrt(points / (np.arange(1, points + 1, dtype=float) - 0.5))
    grid /= PRIOR_SCALE * excess[int(n / 4 + 0.5) - 1]
    grid += 1 / excess[-1]
    shapes = np.log1p(-grid[:, None] * excess).mean(axis=1)
    likelihood = n * (np.log(-(grid / shapes)) - shapes - 1)
    with np.errstate(over="ignore"):
        weight = 1 / np.exp(likelihood - likelihood[:, None]).sum(axis=1)
    heavy = weight >= 10 * np.finfo(float).eps
    weight, grid = weight[heavy], grid[heavy]
    at = np.sum(grid * (weight / weight.sum()))
    shape = np.log1p(-at * excess).mean()
    return float((n * shape + PRIOR_WORTH * 0.5) / (n + PRIOR_WORTH)), float(-shape / at)


def _quantiles(share: Array, shape: float, scale: float) -> Array:
    """Return quantiles of a generalised Pareto law; NaN where its scale is not above 0."""
    if scale <= 0:
        return np.full_like(share, np.nan)
    if abs(shape) < np.finfo(float).eps:
        return np.asarray(-scale * np.log1p(-share))
    return np.asarray(np.expm1(-shape * np.log1p(-share)) / shape * scale)
