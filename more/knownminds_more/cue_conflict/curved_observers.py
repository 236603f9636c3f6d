"""Observers whose answers do not lie on a line: other priors, estimators, noise, sequences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import expit, ndtr

from knownminds.agents.compiler.definition import positive, unit
from knownminds.agents.model import Model

from .cue_weighers import Share

__all__ = [
    "BimodalObserver",
    "SkewedObserver",
    "TwoScaleObserver",
    "UniformObserver",
    "UniformObserverMedian",
    "WeberObserver",
]

ROOT_2_PI = 2.5066282746310002
LEAST = 1e-200  # added to a probability before dividing by it
JAZAYERI = "Jazayeri and Shadlen 2010"


class UniformObserver(Model):
    """Treats all values between two ends as equally likely, and answers with the posterior mean.

    The measurement x is taken to have normal noise, of standard deviation `noise`, and the prior is
    uniform on middle +- width / 2. So the posterior is a normal law cut off at both ends. The
    answer is its mean (least squares), y ~ N(mean, sigma), held to 0 and 1: a line of slope 1 in
    the middle that bends toward the middle at both ends.
    """

    name = "uniform_observer"
    summary = "uniform prior of magnitudes, answers with the posterior mean"
    source = JAZAYERI

    middle = unit("middle of the prior", mean=0.0, sd=0.3)
    width = positive("width of the prior", mean=-0.7, sd=0.3)
    noise = positive("standard deviation that measurements are taken to have", mean=-2.3, sd=0.5)
    sigma = positive("standard deviation of answers", mean=-3.2, sd=0.5)

    def estimate(self, x: Any, low: Any, high: Any) -> Any:
        """Return the mean of the posterior."""
        below, above, turned = _sides(x, low, high, self.noise)
        return x + turned * self.noise * _push(below, above)

    def respond(self, trial: Any) -> Any:
        low, high = self.middle - 0.5 * self.width, self.middle + 0.5 * self.width
        return Share(self.estimate(trial.value, low, high), self.sigma)


class BimodalObserver(Model):
    """Treats values near two modes as likely, and answers with the posterior mean.

    The prior is an even mixture of normal laws around middle - gap / 2 and middle + gap / 2.
    w_prior is the weight of either law against a measurement; spread is the standard deviation of
    measurements around a mode. The posterior mean is (1 - w_prior) x + w_prior (middle + gap (r -
    1/2)), where the share of the upper mode is r = 1 / (1 + exp(-gap (x - middle) / spread**2)). y
    ~ N(mean, sigma), held to 0 and 1.
    """

    name = "bimodal_observer"
    summary = "prior of magnitudes with two modes, answers with the posterior mean"
    source = "Acerbi, Vijayakumar and Wolpert 2014"

    w_prior = unit("weight of a mode against a measurement", mean=0.0, sd=0.7)
    middle = unit("middle between both modes", mean=0.0, sd=0.3)
    gap = positive("distance of the modes", mean=-0.9, sd=0.3)
    spread = positive("standard deviation of measurements around a mode", mean=-1.9, sd=0.3)
    sigma = positive("standard deviation of answers", mean=-3.2, sd=0.5)
    odds = 0.0  # log odds of the upper mode

    def respond(self, trial: Any) -> Any:
        x = trial.value
        upper = expit(self.gap * (x - self.middle) / self.spread**2 + self.odds)
        prior = self.middle + self.gap * (upper - 0.5)
        return Share((1.0 - self.w_prior) * x + self.w_prior * prior, self.sigma)


class SkewedObserver(BimodalObserver):
    """A bimodal observer for whom the lower mode is three times as likely: a skewed prior."""

    name = "skewed_observer"
    summary = "skewed prior of magnitudes, answers with the posterior mean"

    odds = float(-np.log(3.0))


class WeberObserver(Model):
    """Measures with scalar noise: the larger a magnitude, the noisier it is, and the more the prior
    counts.

    Measurements have a standard deviation proportional to x, and the prior is normal around mu. So
    the weight of the prior is (rho x)**2 / (1 + (rho x)**2), with rho = Weber fraction / standard
    deviation of the prior. Answers scatter by weber x: y ~ N(mean, weber x), held to 0 and 1.
    """

    name = "weber_observer"
    summary = "noise of measurements and answers in proportion to the magnitude"
    source = "Petzschner, Glasauer and Stephan 2015; " + JAZAYERI

    rho = positive("Weber fraction over the standard deviation of the prior", mean=0.0, sd=0.5)
    mu = unit("mean of the prior", mean=0.0, sd=0.5)
    weber = positive("standard deviation of answers over the magnitude", mean=-2.3, sd=0.5)

    def respond(self, trial: Any) -> Any:
        x = trial.value
        noise = (self.rho * x) ** 2
        return Share((x + noise * self.mu) / (1.0 + noise), self.weber * x)


class TwoScaleObserver(Model):
    """Is drawn to recent stimuli, and to the stimuli of a longer past.

    A fast and a slow trace begin at 1/2 and move toward each stimulus, m += rate (x - m). The
    answer is (1 - w_fast - w_slow) x + w_fast m_fast + w_slow m_slow, with the traces as they were
    before the trial, and w_slow = (1 - w_fast) weight_slow. y ~ N(mean, sigma), held to 0 and 1.
    """

    name = "two_scale_observer"
    summary = "drawn to stimuli of late and of long ago: sequential effects with two time scales"
    source = "Petzschner and Glasauer 2011; Hachen, Reinartz, Brasselet, Stroligo and Diamond 2021"

    w_fast = unit("weight of the fast trace", mean=-1.0, sd=0.5)
    weight_slow = unit("weight of the slow trace in what is left", mean=-1.0, sd=0.5)
    rate_fast = unit("rate of the fast trace", mean=1.5, sd=0.5)
    rate_slow = unit("rate of the slow trace", mean=-2.2, sd=0.5)
    sigma = positive("standard deviation of answers", mean=-3.2, sd=0.5)

    def begin(self) -> None:
        self.fast = np.full(1, 0.5)
        self.slow = np.full(1, 0.5)

    def respond(self, trial: Any) -> Any:
        slow = (1.0 - self.w_fast) * self.weight_slow
        present = (1.0 - self.w_fast - slow) * trial.value
        return Share(present + self.w_fast * self.fast[0] + slow * self.slow[0], self.sigma)

    def update(self, trial: Any) -> None:
        self.fast += self.rate_fast * (trial.value - self.fast)
        self.slow += self.rate_slow * (trial.value - self.slow)


def _density(z: Any) -> Any:
    return np.exp(-0.5 * z * z) / ROOT_2_PI


def _sides(x: Any, low: Any, high: Any, noise: Any) -> tuple[Any, Any, Any]:
    """Return both ends relative to x in units of the noise, turned to the side of exact tails.

    Also returned is -1 if they were turned, else 1.
    """
    below, above = (low - x) / noise, (high - x) / noise
    over = below + above > 0.0
    return (np.where(over, -above, below), np.where(over, -below, above), np.where(over, -1.0, 1.0))


def _push(below: Any, above: Any) -> Any:
    """Return the mean of a standard normal law that is cut off at both ends."""
    whole = ndtr(above) - ndtr(below)
    return (_density(below) - _density(above)) / (whole + LEAST)


HALVINGS = 24  # leave an error of 1e-7; the Newton step leaves its square


class UniformObserverMedian(UniformObserver):
    """A uniform observer that answers with the median of the posterior.

    The posterior is a normal law around x, cut off at both ends of the prior. Its median m
    satisfies: Phi((m - x) / noise) is midway between Phi at both ends. y ~ N(median, sigma), held
    to 0 and 1.
    """

    name = "uniform_observer_median"
    summary = "uniform prior of magnitudes, answers with the posterior median"

    def estimate(self, x: Any, low: Any, high: Any) -> Any:
        middle, half = 0.5 * (low + high), 0.5 * (high - low)
        # The direction from x toward the middle is up, so that the ends lie in the tail that is
        # exact.
        away, wide = np.abs(x - middle) / self.noise, half / self.noise
        aim = 0.5 * (ndtr(-away - wide) + ndtr(wide - away))
        position = _halved(lambda t: ndtr(wide * t - away) - aim)
        z = wide * position - away
        position = position - (ndtr(z) - aim) / (wide * _density(z) + LEAST)
        return middle + np.where(x > middle, half, -half) * position


# The result has no slope; a Newton step after it adds the slope of the implicit function.
def _halved(excess: Callable[[Any], Any]) -> Any:
    """Return where a function from -1 to 1 turns from negative to positive."""
    position: Any = 0.0
    for n in range(HALVINGS):
        position = position + np.where(excess(position) > 0.0, -1.0, 1.0) * 0.5 ** (n + 1)
    return position
