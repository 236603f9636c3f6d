"""Ties: values that differ by rounding alone are the same, wherever ranks are taken."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from knownminds.agents.parameters import Array

ROUNDING = 1e-10  # of the largest value


def tied(*samples: ArrayLike, scale: float = 0.0) -> tuple[Array, ...]:
    """Return samples in which values that differ by rounding alone are equal.

    The mean of .1 and .2 is not .15 to the last digit, so that ranks of means would be decided by
    the order in which answers were summed. Values are joined, over all samples together, with the
    next smaller one if it is nearer than 1e-10 of the largest. Sums of n numbers are rounded by
    less than n times 1.1e-16 of it, which is less than that up to 900,000 answers; and different
    means of n and m whole answers from 0 to 100 lie at least 1 / (n m) apart, which is more than
    that up to 10,000 answers each. (Cutting off digits instead would part two such values where
    they lie to both sides of a cut.)

    Parameters
    ----------
    samples
        Arrays of any shape. NaN stays what it is.
    scale
        Of what the values were made of, if it is larger than they are: differences are rounded
        like the numbers that were subtracted.
    """
    arrays = [np.asarray(sample, dtype=float) for sample in samples]
    together = np.concatenate([array.ravel() for array in arrays])
    values, position = np.unique(together, return_inverse=True)  # all NaN are one, the last
    known = np.isfinite(values)
    reach = ROUNDING * max(scale, np.abs(values[known]).max(initial=0.0))
    if known.any():
        with np.errstate(invalid="ignore"):  # infinity less itself
            fresh = ~(np.diff(values, prepend=-np.inf) <= reach)
        group = np.cumsum(fresh) - 1
        lowest = values[fresh]
        near_zero = np.abs(lowest) <= reach
        values = np.where(near_zero, 0.0, lowest)[group]
    joined = values[position.reshape(-1)]
    ends = np.cumsum([array.size for array in arrays])[:-1]
    parts = np.split(joined, ends)
    return tuple(part.reshape(array.shape) for part, array in zip(parts, arrays, strict=True))
