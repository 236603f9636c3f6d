"""Intervals of values that were computed anew from resampled data."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from knownminds.agents.parameters import Array
from knownminds.environments import session_stream


@lru_cache(maxsize=4)
def times_drawn(n: int, rounds: int, seed: int, stream: int) -> NDArray[np.int64]:
    """Return how often each of n is drawn in n draws with replacement, [rounds, n].

    All callers with the same n, seed and stream get the same numbers.
    """
    drawn = session_stream(seed, stream).multinomial(n, np.full(n, 1 / n), size=rounds)
    drawn.flags.writeable = False
    return np.asarray(drawn, dtype=np.int64)


def jackknife(without: Array) -> tuple[float, float]:
    """Return error and degrees of freedom from values [G] without each of G groups (Tukey 1958).

    Only known values count; NaN if there are fewer than two.
    """
    known = without[np.isfinite(without)]
    if len(known) < 2:
        return np.nan, np.nan
    # This is the standard error of the mean of the pseudo-values.
    error = (len(without) - 1) * known.std(ddof=1) / np.sqrt(len(known))
    return float(error), len(known) - 1.0


def percentile_ends(
    rounds: Array, tails: tuple[float, float] = (0.025, 0.975)
) -> tuple[float, float, float]:
    """Return the ends of the percentile interval (Efron 1979) and the spread of resamples [B].

    Only resamples with a value count. Without resamples the interval is NaN, and with a single one
    the spread is NaN.
    """
    known = rounds[np.isfinite(rounds)]
    if not len(known):
        return np.nan, np.nan, np.nan
    low, high = np.quantile(known, tails)
    error = float(known.std(ddof=1)) if len(known) > 1 else np.nan
    return float(low), float(high), error


class Resampled(NamedTuple):
    """A value of the data with its 95% percentile interval and standard error over resamples."""

    value: float
    low: float = np.nan
    high: float = np.nan
    standard_error: float = np.nan


def resampled(rounds: Array) -> Resampled:
    """Return the value of the data, round 0, with the interval of the other rounds, of [1 + B]."""
    value = float(rounds[0])
    return Resampled(value, *percentile_ends(rounds[1:] if np.isfinite(value) else rounds[:0]))


def percentile_interval(values: Array, mass: float) -> tuple[float, float]:
    """Return the percentile interval of values[B], of which row 0 are the data.

    NaN if there are no resamples, or the data themselves have no value.
    """
    if not np.isfinite(values[0]):
        return np.nan, np.nan
    low, high, _ = percentile_ends(values[1:], (0.5 - mass / 2, 0.5 + mass / 2))
    return low, high
