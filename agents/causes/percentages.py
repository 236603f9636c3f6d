"""Judgements from 0 to 100: a normal error that is cut off at the ends, and lapses to any number.

As a `Law`, of which kernels are printed, and as an agent whose kernels are written by hand.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from math import exp, inf, log, pi, sqrt
from typing import Any, ClassVar

import numpy as np
from scipy.special import log_ndtr, ndtri

from knownminds.agents.agent import Responder
from knownminds.agents.compiler.definition import HALF_LOG_2_PI, Law
from knownminds.environments.environment import Observation

TINY = 1e-300  # whose logarithm and quantile are finite
WHOLE = 101.0  # numbers from 0 to 100
LOG_100 = log(100.0)


@dataclass(frozen=True)
class Percentage(Law):
    """A number from 0 to 100 around 100 mean, with a normal error of 100 sd, cut off at the ends.

    What lies beyond 0 or 100 is given as 0 or 100, which have a probability therefore. A lapse is
    any number from 0 to 100: rounded to whole numbers, all 101 are equally likely.

    Parameters
    ----------
    mean, sd : as shares of 1
    """

    mean: Any
    sd: Any
    span: ClassVar[tuple[float, float] | None] = (0.0, 100.0)

    def log_density(self, y: Any) -> Any:
        """Return the log density per unit; at the ends the log probability."""
        off = (np.clip(y / 100.0, 0.0, 1.0) - self.mean) / self.sd
        inside = -0.5 * off**2 - np.log(self.sd) - HALF_LOG_2_PI - LOG_100
        beyond = np.where(y <= 0.0, -self.mean, self.mean - 1.0) / self.sd
        return np.where((y <= 0.0) | (y >= 100.0), log_ndtr(beyond), inside)

    def at(self, normal: Any) -> Any:
        """Return the number at a quantile."""
        return np.clip(100.0 * (self.mean + self.sd * normal), 0.0, 100.0)

    def lapse_density(self, y: Any) -> Any:
        """Return the density of a number that is given in a lapse; at the ends its probability."""
        return np.where((y <= 0.0) | (y >= 100.0), 0.5, 1.0) / WHOLE

    def lapse_at(self, u: Any) -> Any:
        """Return the number of a lapse."""
        return np.clip(WHOLE * u - 0.5, 0.0, 100.0)


class PercentJudge(Responder):
    """An agent that answers with a number from 0 to 100 around what it predicts.

    The last parameter is the noise sigma, on a scale from 0 to 1. What would lie below 0 or above
    100 is 0 or 100, and the likelihood counts it as such: a density between the ends, a
    probability at them. A lapse is any number from 0 to 100: rounded to whole numbers, all 101 are
    equally likely.

    Attributes
    ----------
    censored
        Whether the likelihood knows that answers were cut off.
    """

    separate = ()
    n_uniforms = 2
    censored: ClassVar[bool] = True

    @abstractmethod
    def predict(self, observation: Observation) -> float:
        """Return the answer to a question before any noise, on a scale from 0 to 1."""

    def log_density(
        self, observation: Observation, response: float, action: int | None = None
    ) -> float:
        """Return the log density of an answer, per unit; at the ends the log probability."""
        y, mean, sigma = response / 100.0, self.predict(observation), float(self.theta[-1])
        if self.censored and y <= 0.0:
            return float(log_ndtr(-mean / sigma))
        if self.censored and y >= 1.0:
            return float(log_ndtr((mean - 1.0) / sigma))
        return -0.5 * ((y - mean) / sigma) ** 2 - log(100.0 * sigma * sqrt(2.0 * pi))

    def log_probability(
        self,
        observation: Observation,
        action: int | None,
        response: float | None,
        response_range: tuple[float, float] = (0.0, 100.0),
    ) -> float:
        """Return the log density of an answer, lapses included."""
        if response is None:
            return 0.0
        own = self.log_density(observation, response)
        if not self.lapse:
            return own
        at_an_end = self.censored and not 0.0 < response < 100.0
        mixed = (1.0 - self.lapse) * exp(own) + self.lapse * (0.5 if at_an_end else 1.0) / WHOLE
        return log(mixed) if mixed > 0.0 else -inf

    def choose(self, observation: Observation, rng: np.random.Generator) -> float:
        """Draw an answer with two uniform numbers."""
        lapses, u = rng.random(2).tolist()
        if lapses < self.lapse:
            answer = WHOLE * u - 0.5
        else:
            noise = float(self.theta[-1]) * float(ndtri(max(u, TINY)))
            answer = 100.0 * (self.predict(observation) + noise)
        return float(min(max(answer, 0.0), 100.0))
