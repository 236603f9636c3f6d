"""Observers who answer with the median of a posterior that is not normal.

Each is solved by halving an interval between two constants, so that the place found has no slope,
and then by one step of Newton, which carries the slope that the implicit-function theorem gives.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import expit, ndtr

from .cue_weighers import Share
from .curved_observers import LEAST, ROOT_2_PI, BimodalObserver, SkewedObserver, UniformObserver

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
        """Return the median of the posterior."""
        middle, half = 0.5 * (low + high), 0.5 * (high - low)
        # From x toward the middle is up, so that the ends lie in the tail that is exact.
        away, wide = np.abs(x - middle) / self.noise, half / self.noise
        aim = 0.5 * (ndtr(-away - wide) + ndtr(wide - away))
        place = _halved(lambda t: ndtr(wide * t - away) - aim)
        z = wide * place - away
        place = place - (ndtr(z) - aim) / (wide * _density(z) + LEAST)
        return middle + np.where(x > middle, half, -half) * place


class BimodalObserverMedian(BimodalObserver):
    """Is a bimodal observer who answers with the median of the posterior.

    The posterior is a mixture of two normal laws around c - h and c + h, where
    c = (1 - w_prior) x + w_prior middle and h = w_prior gap / 2, of variance
    w_prior (1 - w_prior) spread**2. With r the share of the upper law, as for a bimodal observer,
    and k = h**2 over that variance, the median is c + h u, where r Phi(sqrt(k) (u - 1)) + (1 - r) Phi(sqrt(k) (u + 1)) = 1 / 2.
    y ~ N(median, sigma), held to 0 and 1.
    """

    name = "bimodal_observer_median"
    summary = "prior of magnitudes with two modes, answers with the posterior median"

    def place(self, lead: Any, k: Any) -> Any:
        """Return where the answer lies between both laws, from -1 to 1."""
        return _median(lead, k)

    def respond(self, trial: Any) -> Any:
        """Return the law of the answer."""
        return _between(self, trial.value)


class SkewedObserverMedian(BimodalObserverMedian):
    """Is one with a median of the posterior to whom the lower mode is three times as likely."""

    name = "skewed_observer_median"
    summary = "skewed prior of magnitudes, answers with the posterior median"

    odds = SkewedObserver.odds


def _between(mind: Any, x: Any) -> Any:
    w, gap, spread = mind.w_prior, mind.gap, mind.spread
    lead = gap * (x - mind.middle) / spread**2 + mind.odds
    k = w * gap**2 / (4.0 * (1.0 - w) * spread**2)
    centre = (1.0 - w) * x + w * mind.middle
    return Share(centre + 0.5 * w * gap * mind.place(lead, k), mind.sigma)


def _median(lead: Any, k: Any) -> Any:
    share, root = expit(lead), np.sqrt(k)

    def above(u: Any) -> Any:
        return share * ndtr(root * (u - 1.0)) + (1.0 - share) * ndtr(root * (u + 1.0)) - 0.5

    u = _halved(above)
    upper, lower = _density(root * (u - 1.0)), _density(root * (u + 1.0))
    return u - above(u) / (root * (share * upper + (1.0 - share) * lower) + LEAST)


def _halved(excess: Callable[[Any], Any]) -> Any:
    """Return where a function from -1 to 1 turns from negative to positive."""
    place: Any = 0.0
    for n in range(HALVINGS):
        place = place + np.where(excess(place) > 0.0, -1.0, 1.0) * 0.5 ** (n + 1)
    return place


def _density(z: Any) -> Any:
    return np.exp(-0.5 * z * z) / ROOT_2_PI
