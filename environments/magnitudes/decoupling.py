"""How to draw stimuli in which nothing but the magnitude itself reveals the magnitude."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

HUNDREDTHS = 100  # shares are multiples of .01
_LEAST_FREE = 0.6  # the lower bound is at most this share of the longest line
_TOLERANCE = 0.0045  # a share in whole dashes may differ by this from a multiple of .01


def mirrored(targets: NDArray[np.float64], uniforms: NDArray[np.float64]) -> NDArray[np.float64]:
    """Give the lowest and the highest target the same number, and so on inwards.

    A quantity made from these numbers alone is symmetric about the middle of the targets. So it
    does not correlate with targets that are equally spaced: r = 0 in each window of each session.
    The numbers stay as uniform as those given.

    Parameters
    ----------
    targets, uniforms : [..., items]

    Returns
    -------
    numbers, [..., items]
    """
    n = targets.shape[-1]
    rank = np.argsort(np.argsort(targets, axis=-1, kind="stable"), axis=-1, kind="stable")
    return np.take_along_axis(uniforms, np.minimum(rank, n - 1 - rank), axis=-1)


def length(lowest: float, highest: float, size: float) -> float:
    """Return a length whose logarithm is even between two bounds; a lower bound too high is cut.

    To draw a line whose part must not be shorter than s, take lowest = s / share. The expected
    logarithm of the whole then falls by half of what the logarithm of the share rises, so that part
    and whole depend on the share equally little. No other pair of lines depends on it less: the
    logarithms of part and whole differ by that of their ratio, so that their covariances with it
    differ by its variance.

    Parameters
    ----------
    size : A number from 0 to 1; it chooses the length between the bounds.
    """
    low = min(lowest, _LEAST_FREE * highest)
    return float(low * (highest / low) ** size)


def dashes(share: float, wanted: float, most: int) -> tuple[int, int]:
    """Return the numbers of dashes of part and whole that show a share.

    The whole has at most `most` dashes, and its part is the share to within .0045. Of such wholes
    it is the one nearest to `wanted`.

    Parameters
    ----------
    share : A multiple of .01 from 0 to 1.
    """
    wholes = _wholes(round(share * HUNDREDTHS), most)
    whole = int(wholes[np.argmin(np.abs(wholes - wanted))])
    return round(share * whole), whole


@cache
def _wholes(hundredths: int, most: int) -> NDArray[np.int64]:
    wholes = np.arange(1, most + 1)
    parts = np.round(hundredths / HUNDREDTHS * wholes)
    near = np.abs(parts / wholes - hundredths / HUNDREDTHS) <= _TOLERANCE
    return wholes[near & ((parts > 0) | (hundredths == 0))]
