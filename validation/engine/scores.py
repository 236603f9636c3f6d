"""Scores with their Monte-Carlo errors, and estimates with their intervals.

A standard error is that of the delta method: the standard deviation of the statistic's influence
function over the square root of n; of shares that of Agresti and Coull (1998). Where rows of a
cluster depend on each other, as subjects that are fitted together do, influences are summed within
clusters first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan, nan, sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray

from knownminds.agents.parameters import Array

Clusters = NDArray[np.int64] | None


@dataclass(frozen=True)
class Score:
    """A number and its Monte-Carlo standard error, NaN where there is none."""

    value: float
    error: float = nan

    def __str__(self) -> str:
        """Value and error, with three decimals; "-" where there is no value."""
        if isnan(self.value):
            return "-"
        return (
            f"{self.value:.3f} (-)" if isnan(self.error) else f"{self.value:.3f} ({self.error:.3f})"
        )

    def __float__(self) -> float:
        return self.value


@dataclass(frozen=True)
class Interval:
    """A number and the ends of its interval, NaN where there is none."""

    value: float
    low: float = nan
    high: float = nan

    def __str__(self) -> str:
        """Value and ends, with three decimals; "-" where there is no value."""
        if isnan(self.value):
            return "-"
        ends = "-" if isnan(self.low) else f"{self.low:z.3f} to {self.high:z.3f}"
        return f"{self.value:z.3f} ({ends})"

    def __float__(self) -> float:
        return self.value


NOTHING = Score(nan, nan)


def share(successes: float, n: int) -> Score:
    """Return a share of n independent trials; 0 and 1 have an error too."""
    if n == 0:
        return NOTHING
    shrunk = (successes + 2) / (n + 4)
    return Score(successes / n, float(np.sqrt(shrunk * (1 - shrunk) / (n + 4))))


def mean(values: ArrayLike, clusters: Clusters = None) -> Score:
    """Return the mean of some values."""
    x = np.asarray(values, dtype=float)
    return NOTHING if len(x) == 0 else Score(float(x.mean()), error_of(x - x.mean(), clusters))


def share_of(hits: NDArray[np.bool_], clusters: Clusters = None) -> Score:
    """Return the share of rows that are hits; within clusters the larger of both errors."""
    closed = share(float(hits.sum()), len(hits))
    if clusters is None or len(hits) == 0:
        return closed
    return Score(closed.value, float(np.nanmax([closed.error, mean(hits, clusters).error])))


def error_of(influence: Array, clusters: Clusters = None) -> float:
    """Return the standard error of a statistic from the influence of each row on it, [n]."""
    n = len(influence)
    with np.errstate(over="ignore", invalid="ignore"):
        if clusters is None:
            variance = (influence**2).sum() / n / (n - 1) if n > 1 else nan
        else:
            _, position = np.unique(clusters, return_inverse=True)
            sums = np.bincount(position, influence)
            g = len(sums)
            variance = (sums**2).sum() * g / (g - 1) / n**2 if g > 1 else nan
    return float(np.sqrt(variance)) if np.isfinite(variance) else nan


@dataclass(frozen=True)
class Agreement:
    """How far estimates y agree with truths x.

    Parameters
    ----------
    n : Pairs.
    bias, rmse : Mean and root mean square of y - x.
    r, concordance : Pearson's correlation; Lin's (1989), which counts bias as well.
    shrinkage : 1 - slope of y on x: 0 none, 1 complete.
    truth_varies, finite : Whether x differs between rows; whether squares of all values are
        numbers.
    """

    n: int
    truth_varies: bool
    finite: bool
    bias: Score = NOTHING
    rmse: Score = NOTHING
    r: Score = NOTHING
    concordance: Score = NOTHING
    shrinkage: Score = NOTHING


def agreement(x: Array, y: Array, clusters: Clusters = None) -> Agreement:
    """Compare estimates y with truths x, [n] each; scores are NaN where nothing varies."""
    n = len(x)
    with np.errstate(over="ignore", invalid="ignore"):
        off = y - x
        finite = bool(np.isfinite([x**2, y**2, x * y, off**2]).all())
        varies = n > 1 and bool(x.max() > x.min())
        if n == 0 or not finite:
            return Agreement(n, varies, finite)
        root = float(np.sqrt((off**2).mean()))
        spread = error_of(off**2 - root**2, clusters)
        rmse = Score(root, spread / (2 * root) if root > 0 else 0.0)
        if not (varies and n > 2 and y.max() > y.min()):
            return Agreement(n, varies, finite, mean(off, clusters), rmse)
        dx, dy = x - x.mean(), y - y.mean()
        vx, vy, cxy = (dx**2).mean(), (dy**2).mean(), (dx * dy).mean()
        scale = np.sqrt(vx) * np.sqrt(vy)
        r = cxy / scale
        apart = x.mean() - y.mean()
        below = vx + vy + apart**2
        c = 2 * cxy / below
        stretch = dx**2 + dy**2 + 2 * apart * (dx - dy) - (vx + vy)
        influences = (
            (dx * dy - cxy) / scale - r * ((dx**2 / vx - 1) + (dy**2 / vy - 1)) / 2,
            (2 * (dx * dy - cxy) - c * stretch) / below,
            (dx * dy - cxy / vx * dx**2) / vx,
        )
        values = (r, c, 1 - cxy / vx)
    r_score, concordance, shrinkage = (
        Score(float(value), error_of(influence, clusters))
        for value, influence in zip(values, influences, strict=True)
    )
    bias = mean(off, clusters)
    return Agreement(n, varies, finite, bias, rmse, r_score, concordance, shrinkage)


def coverage(
    truth: Array, low: Array, high: Array, clusters: Clusters = None
) -> tuple[Score, Score]:
    """Return the share of intervals that hold the truth, and the mean width of those with ends.

    An interval without ends holds nothing.
    """
    held = share_of((low <= truth) & (truth <= high), clusters)
    with np.errstate(invalid="ignore"):
        width = high - low
    ends = np.isfinite(width)
    return held, mean(width[ends], None if clusters is None else clusters[ends])


def together(scores: Sequence[Score], sizes: Sequence[int]) -> Score:
    """Return the mean over the rows of several parts from each part's mean and size."""
    n = sum(sizes)
    value = sum(k * score.value for k, score in zip(sizes, scores, strict=True)) / n
    square = sum((k * score.error) ** 2 for k, score in zip(sizes, scores, strict=True))
    return Score(value, sqrt(square) / n)
