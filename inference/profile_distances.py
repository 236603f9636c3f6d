"""Distances between profiles, rows of several scores of which some are missing."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from knownminds.agents.parameters import Array

DRAWS = 2000  # of the scores, for the interval of a distance


class Distance(NamedTuple):
    """How far a profile lies from a point; the interval holds 95%."""

    value: float
    low: float
    high: float
    n: int


def distance_from(
    point: float, profile: Array, errors: Array, rng: np.random.Generator
) -> Distance:
    """Return the root mean squared difference of the scores that have a value from a point.

    Its interval holds the middle 95% of draws of the scores from normal distributions with their
    errors. Errors of scores make the distance larger, never smaller.

    Parameters
    ----------
    profile, errors
        Scores and standard errors, [scores]; NaN where there are none.
    """
    known = np.isfinite(profile)
    if not known.any():
        return Distance(np.nan, np.nan, np.nan, 0)
    gap, spread = profile[known] - point, np.nan_to_num(errors)[known]
    drawn = gap + spread * rng.standard_normal((DRAWS, known.sum()))
    low, high = np.quantile(np.sqrt(np.mean(drawn**2, axis=1)), [0.025, 0.975])
    return Distance(root_mean_square(gap), float(low), float(high), int(known.sum()))


def root_mean_square(gaps: Array) -> float:
    """Return the root of the mean square of what is known of gaps [scores]; NaN if nothing is."""
    known = gaps[np.isfinite(gaps)]
    return float(np.sqrt(np.mean(known**2))) if len(known) else np.nan


def standardised(scores: Array) -> Array:
    """Return scores [profiles, scores] as z values of each score; NaN where all are the same."""
    known = np.isfinite(scores)
    count = np.maximum(known.sum(axis=0), 1)
    centred = scores - np.where(known, scores, 0.0).sum(axis=0) / count
    squares = np.where(known, centred, 0.0) ** 2
    with np.errstate(invalid="ignore", divide="ignore"):
        z: Array = centred / np.sqrt(squares.sum(axis=0) / (count - 1.0))
    return np.where(np.isfinite(z), z, np.nan)
