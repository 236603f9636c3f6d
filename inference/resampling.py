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


def jackknife(whole: float, without: Array, sizes: Array) -> tuple[float, float, Array]:
    """Return error, degrees of freedom and influences by leaving out one of G groups in turn.

    Groups weigh by their sizes (Busing, Meijer and van der Leeden 1999, delete-m_j). With shares
    w_j = m_j / n the pseudo-value of a group is t / w_j - (1 / w_j - 1) t_j, and the variance is
    the mean of w_j / (1 - w_j) times its squared distance from the weighted mean of all. The
    degrees of freedom are Satterthwaite's (1946), where a group's variance is inverse to its size:
    G - 1 of equal groups (Tukey 1958), fewer of unequal ones. The influence of each group [G] is
    what it adds: the sum of squares is the variance. Groups without which there is no value are
    left out and have none; NaN below two groups.

    Parameters
    ----------
    whole : the value t of all groups
    without : the value t_j without each group, [G]
    sizes : how much each group weighs in the value, in any unit, [G]
    """
    known, influence = np.isfinite(without) & (sizes > 0), np.zeros(len(without))
    if known.sum() < 2:
        return np.nan, np.nan, influence
    share = sizes[known] / sizes.sum()
    odds = share / (1.0 - share)
    values = whole / share - without[known] / odds
    center = float(share @ values) / float(share.sum())
    influence[known] = np.sqrt(odds / len(share)) * (values - center)
    freedom = len(share) ** 2 / float(len(share) + odds.sum() ** 2 - (odds**2).sum())
    return float(np.sqrt((influence**2).sum())), freedom, influence


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
