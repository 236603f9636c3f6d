"""Observers who answer with the median of a posterior that is not normal.

It is solved by halving an interval between two constants, so that the result has no slope,
and then by one step of Newton, which carries the slope that the implicit-function theorem gives.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import ndtr

from .curved_observers import LEAST, ROOT_2_PI, UniformObserver

__all__ = ["UniformObserverMedian"]

HALVINGS = 24  # leave an error of 1e-7, that of the step of Newton is its square


class UniformObserverMedian(UniformObserver):
    """Is a uniform observer who answers with the median of the posterior.

    The posterior is a normal law around x cut off at both ends of the prior; its median m halves
    what is left: Phi((m - x) / noise) is midway between Phi at both ends.
    y ~ N(median, sigma), held to 0 and 1.
    """

    name = "uniform_observer_median"
    summary = "uniform prior of magnitudes, answers with the posterior median"

    def estimate(self, x: Any, low: Any, high: Any) -> Any:
        middle, half = 0.5 * (low + high), 0.5 * (high - low)
        # From x toward the middle is up, so that the ends lie in the tail that is exact.
        away, wide = np.abs(x - middle) / self.noise, half / self.noise
        aim = 0.5 * (ndtr(-away - wide) + ndtr(wide - away))
        position = _halved(lambda t: ndtr(wide * t - away) - aim)
        z = wide * position - away
        position = position - (ndtr(z) - aim) / (wide * _density(z) + LEAST)
        return middle + np.where(x > middle, half, -half) * position


def _halved(excess: Callable[[Any], Any]) -> Any:
    """Return where a function from -1 to 1 turns from negative to positive."""
    position: Any = 0.0
    for n in range(HALVINGS):
        position = position + np.where(excess(position) > 0.0, -1.0, 1.0) * 0.5 ** (n + 1)
    return position


def _density(z: Any) -> Any:
    return np.exp(-0.5 * z * z) / ROOT_2_PI
