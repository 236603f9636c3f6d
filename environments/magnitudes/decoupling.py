"""How stimuli are drawn of which nothing but the magnitude itself tells the magnitude."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

HUNDREDTHS = 100  # shares are multiples of .01
_LEAST_FREE = 0.6  # relative to the longest line: whatever the share, so long it may be drawn
_TOLERANCE = 0.0045  # by how much whole dashes may miss a share of .01 steps


def mirrored(targets: NDArray[np.float64], uniforms: NDArray[np.float64]) -> NDArray[np.float64]:
    """Give the lowest and the highest target the same number, and so on inwards.

    What is made of these numbers alone is even about the middle of the targets, and so does not
    correlate with targets that are equally spaced: r = 0 in each window of each session. The
    numbers themselves are as uniform as those given.

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
    """Return a length, its logarithm even between two bounds, of which the lower may be too high.

    Whoever draws a line whose part must not be shorter than s takes lowest = s / share: its
    expected logarithm then falls by half as much as that of the share rises, so that part and
    whole hang on the share equally little. No pair of lines can hang on it less (the correlations
    of the logarithms of part and whole with that of their ratio differ by what it varies itself).

    Parameters
    ----------
    size
        From 0 to 1.
    """
    low = min(lowest, _LEAST_FREE * highest)
    return float(low * (highest / low) ** size)


def dashes(share: float, wanted: float, most: int) -> tuple[int, int]:
    """Return how many dashes part and whole have that tell a share, near a wanted whole.

    Of the wholes up to `most` whose part, in whole dashes, is the share to within .0045, the one
    next to what is wanted.

    Parameters
    ----------
    share
        A multiple of .01 from 0 to 1.
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
