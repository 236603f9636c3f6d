"""The difference of two estimates that were read off the same sessions or contexts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import scipy

from knownminds.agents.parameters import Array
from knownminds.inference.measure import ROUNDING

LEAST_SWAPPED = 6  # shared units: with fewer no test by swaps has a p-value below .05
MOST_LISTED = 12  # of more units not all swaps are made, but so many as of 12 at random
SEED = 1935  # of random swaps


@dataclass(frozen=True)
class Side:
    """One side of a difference: a value with its error, and how far each unit moves it.

    Parameters
    ----------
    influence : By the name of the unit; the sum of squares is the squared error. Empty if not
        known.
    """

    value: float
    standard_error: float
    freedom: float
    influence: Mapping[str, float]


@dataclass(frozen=True)
class Difference:
    """One value minus another one.

    Parameters
    ----------
    value, standard_error, low, high, p_value, freedom : With the 95% interval and the two-sided
        test, by Student's t.
    shared : How many units both were read off.
    correlation : Of what the shared units do to both values; NaN without such.
    swaps : p-value by all swaps of both within shared units; NaN below six of them, or if some unit
        is not shared.
    """

    value: float
    standard_error: float
    low: float
    high: float
    p_value: float
    freedom: float
    shared: int
    correlation: float
    swaps: float


def difference(one: Side, other: Side) -> Difference:
    """Return one value minus another one, as a contrast of pairs where they share units.

    The variance is the sum over units of the squared difference of influences: of means over the
    same sessions it is that of the paired t test, and without shared units the sum of both
    variances. Degrees of freedom are the smaller ones for what is shared, and joined as
    Satterthwaite (1946) does with the rest. Sessions of one design in several wordings are one
    unit. They are swapped together: where conditions differ by design, swaps of single wordings
    reject too often (.16 instead of .05, `tests/core/test_differences.py`).
    """
    a, b = one.influence, other.influence
    both = [name for name in a if name in b]
    mine, theirs = (np.array([k[name] for name in both]) for k in (a, b))
    parts = [(float(((mine - theirs) ** 2).sum()), min(one.freedom, other.freedom))]
    for each, moved in ((one, mine), (other, theirs)):
        parts.append((max(each.standard_error**2 - float((moved**2).sum()), 0.0), each.freedom))
    total = sum(variance for variance, _ in parts)
    spread = sum(variance**2 / freedom for variance, freedom in parts if variance > 0)
    gap, error = one.value - other.value, float(np.sqrt(total))
    freedom = total**2 / spread if spread > 0 else np.inf if np.isfinite(total) else np.nan
    # Of two that answered alike nothing differs: no test is made of rounding.
    differs = error > ROUNDING * max(1.0, abs(one.value), abs(other.value))
    half = float(scipy.special.stdtrit(freedom, 0.975)) * error if differs else np.nan
    p_value = 2 * float(scipy.special.stdtr(freedom, -abs(gap) / error)) if differs else np.nan
    sizes = float(np.sqrt((mine**2).sum() * (theirs**2).sum()))
    correlation = float(mine @ theirs) / sizes if sizes > 0 else np.nan
    whole = len(both) == len(a) == len(b) >= LEAST_SWAPPED and np.isfinite(p_value)
    swaps = swapped(gap, mine - theirs) if whole else np.nan
    return Difference(
        gap, error, gap - half, gap + half, p_value, freedom, len(both), correlation, swaps
    )


def swapped(gap: float, moved: Array) -> float:
    """Return how often swaps of two conditions within units differ as much as what was found.

    Parameters
    ----------
    gap, moved : The difference, and the influence of each of G units on it, [G].
    """
    n = len(moved)
    shares = gap / n + np.sqrt((n - 1) / n) * moved  # what each unit adds to the difference
    if n <= MOST_LISTED:
        signs = 1.0 - 2.0 * (np.arange(2**n)[:, None] >> np.arange(n) & 1)
    else:
        signs = np.random.default_rng(SEED).choice([-1.0, 1.0], (2**MOST_LISTED, n))
        signs[0] = 1.0
    found = np.abs(signs @ shares)
    return float(np.mean(found >= found[0] * (1 - 1e-9)))
