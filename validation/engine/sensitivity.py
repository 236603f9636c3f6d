"""What a check could have missed: which errors it would have found with a chance of 80%.

Errors are planted into what a study has already: estimates are moved by a bias or drawn towards
their mean, intervals are made narrower, tests reject too often. None of this simulates anything
anew. Each is found where a two-sided test at 5% of the study's own numbers finds it: a mean or a
slope by its Monte-Carlo error, a share by Wilson's interval. Errors half as large take four times
as many replicates, since what is found falls with the root of their number.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from math import ceil, isnan, log10, nan

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy.special import ndtri

from knownminds.agents.parameters import Array

from .verdicts import NOTICED

LEVEL = 0.05  # of the tests by which planted errors are found
# How many standard errors a true difference is away that is found with a chance of 80%.
REACH = float(-ndtri(LEVEL / 2) + ndtri(NOTICED))
_WIDTH, _BINS = 0.002, 2000  # of the histogram of distances; those beyond 4 are together


def found_difference(error: float) -> float:
    """Return the difference that is found with a chance of 80%, from its standard error."""
    return REACH * error


def replicates_for(size: float, found: float, n: int) -> int:
    """Return about how many replicates find an error of this size where n find one of `found`.

    Of two digits, rounded up.
    """
    return _two_digits(n * (found / size) ** 2)


@lru_cache(maxsize=256)
def found_share(n: int, promised: float, above: bool = True) -> float:
    """Return the true share nearest to the promised one that n trials tell from it.

    It is told where Wilson's 95% interval of the observed share lies beyond the promised one.
    NaN where no share is told with a chance of 80%.
    """
    counts = np.arange(n + 1)
    low, high = wilson(counts, n)
    told = low > promised if above else high < promised
    if not told.any():
        return nan
    edge = int(counts[told].min() if above else counts[told].max())

    def chance(share: float) -> float:
        return float(
            scipy.stats.binom.sf(edge - 1, n, share)
            if above
            else scipy.stats.binom.cdf(edge, n, share)
        )

    near, far = promised, 1.0 if above else 0.0
    if chance(far) < NOTICED:
        return nan
    for _ in range(50):
        middle = (near + far) / 2
        if chance(middle) >= NOTICED:
            far = middle
        else:
            near = middle
    return far


def wilson(counts: Array, n: int) -> tuple[Array, Array]:
    """Return the ends of Wilson's (1927) 95% intervals of counts out of n."""
    z = float(-ndtri(LEVEL / 2))
    share = counts / n
    middle = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    return middle - half, middle + half


def trials_for_share(share: float, promised: float) -> int:
    """Return about how many trials tell a true share from a promised one below it, of two digits.

    Each of them is enough with a chance of 80%.
    """
    few, many = 1, 2
    while not found_share(many, promised) <= share:  # NaN with very few
        few, many = many, 2 * many
    while many - few > max(1, many // 100):
        middle = (few + many) // 2
        if found_share(middle, promised) <= share:
            many = middle
        else:
            few = middle
    return _two_digits(many)


@dataclass
class Distances:
    """How far truths lie from the middles of their intervals, in halves of their widths.

    A histogram, gathered in pieces: by it intervals are made narrower that are there already.
    """

    counts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(_BINS + 1, dtype=np.int64))

    def add(self, truth: Array, low: Array, high: Array) -> None:
        """Take in truths and the ends of their intervals, [n]; those without ends are left out."""
        kept = np.isfinite(low) & np.isfinite(high) & np.isfinite(truth) & (high > low)
        middle, half = (low[kept] + high[kept]) / 2, (high[kept] - low[kept]) / 2
        place = np.abs(truth[kept] - middle) / half / _WIDTH
        place = np.minimum(np.nan_to_num(place, nan=_BINS, posinf=_BINS), _BINS).astype(np.int64)
        self.counts += np.bincount(place, minlength=_BINS + 1)

    def found_narrowing(self, mass: float, error: float) -> float:
        """Return the width, relative to the study's own, at which intervals are found too narrow.

        Parameters
        ----------
        mass
            The share that they promise.
        error
            Monte-Carlo error of the share that they hold, by which it is known how many
            independent intervals they are worth.

        Returns
        -------
        The largest factor at which the share that holds the truth is told from the promised one
        with a chance of 80%; NaN if none is, or the study's own intervals are there already.
        """
        n = int(self.counts.sum())
        if n == 0 or not error > 0:
            return nan
        worth = min(n, max(1, round(mass * (1 - mass) / error**2)))
        below = found_share(worth, mass, above=False)
        if np.isnan(below):
            return nan
        held = np.cumsum(self.counts) / n  # by intervals as narrow as the end of each bin
        factor = float((np.searchsorted(held, below, side="right")) * _WIDTH)
        return factor if 0 < factor < 1 else nan


@dataclass(frozen=True)
class WouldHaveFound:
    """Which errors a recovery would have found with a chance of 80%.

    Parameters
    ----------
    bias : mean error of the estimates, on the natural scale
    shrinkage : 1 - slope of estimate on truth, above the study's own
    interval_width : of 90% intervals, relative to the study's own; NaN where none is told
    half : fits that find errors half as large
    unit : of what `half` is a number
    """

    bias: float
    shrinkage: float
    interval_width: float
    half: int
    unit: str

    def sentence(self, name: str) -> str:
        """Say it of a parameter."""
        if isnan(self.interval_width):
            return (
                f"With a chance of {NOTICED:.0%} the study would have found of {name} a bias of "
                f"{self.bias:.3g} and a further shrinkage of {self.shrinkage:.3g}; errors half as "
                f"large take about {self.half:,} {self.unit}s."
            )
        return (
            f"With a chance of {NOTICED:.0%} the study would have found of {name} a bias of "
            f"{self.bias:.3g}, a further shrinkage of {self.shrinkage:.3g} or 90% intervals "
            f"{self.interval_width:.2f} times as wide as they are; errors half as large take about "
            f"{self.half:,} {self.unit}s."
        )


def _two_digits(number: float) -> int:
    step = 10 ** max(0, int(log10(max(number, 1))) - 1)
    return ceil(number / step - 1e-9) * step
