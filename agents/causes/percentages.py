"""Judgements from 0 to 100, with a normal error cut off at the ends, and lapses to any number."""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import Any, ClassVar

import numpy as np
from scipy.special import log_ndtr

from knownminds.agents.compiler.definition import HALF_LOG_2_PI, Law, positive
from knownminds.agents.model import Model
from knownminds.environments.turn import Observation

WHOLE = 101.0  # how many whole numbers there are from 0 to 100
LOG_100 = log(100.0)


@dataclass(frozen=True)
class Percentage(Law):
    """A number from 0 to 100 around 100 mean, with a normal error of 100 sd, cut off at the ends.

    Anything beyond 0 or 100 is given as 0 or 100, so that these two have a probability. A lapse is
    any number from 0 to 100: rounded to whole numbers, all 101 are equally likely.

    Parameters
    ----------
    mean, sd : both divided by 100
    """

    mean: Any
    sd: Any
    span: ClassVar[tuple[float, float] | None] = (0.0, 100.0)

    def log_density(self, y: Any) -> Any:
        off = (np.clip(y / 100.0, 0.0, 1.0) - self.mean) / self.sd
        inside = -0.5 * off**2 - np.log(self.sd) - HALF_LOG_2_PI - LOG_100
        beyond = np.where(y <= 0.0, -self.mean, self.mean - 1.0) / self.sd
        return np.where((y <= 0.0) | (y >= 100.0), log_ndtr(beyond), inside)

    def at(self, normal: Any) -> Any:
        return np.clip(100.0 * (self.mean + self.sd * normal), 0.0, 100.0)

    def lapse_density(self, y: Any) -> Any:
        return np.where((y <= 0.0) | (y >= 100.0), 0.5, 1.0) / WHOLE

    def lapse_at(self, u: Any) -> Any:
        return np.clip(WHOLE * u - 0.5, 0.0, 100.0)


@dataclass(frozen=True)
class PlainPercentage(Percentage):
    """A number that is cut off like `Percentage`, but whose density ignores the cut.

    The density is a plain Gaussian, for which least squares gives the maximum likelihood.
    """

    def log_density(self, y: Any) -> Any:
        off = (y / 100.0 - self.mean) / self.sd
        return -0.5 * off**2 - np.log(self.sd) - HALF_LOG_2_PI - LOG_100

    def lapse_density(self, y: Any) -> Any:
        return 1.0 / WHOLE


NOISE = positive("standard deviation of answers on a scale from 0 to 1", mean=-2.2, sd=0.6)


class PercentJudge(Model):
    """Answers with a number from 0 to 100 around its judgement, which is on a scale from 0 to 1.

    Attributes
    ----------
    censored : Whether the likelihood knows that answers were cut off.
    """

    separate = ()
    censored: ClassVar[bool] = True
    sigma: Any = NOISE

    def judge(self, trial: Any) -> Any:
        """Return the answer to a question before any noise, on a scale from 0 to 1."""
        raise NotImplementedError

    def respond(self, trial: Any) -> Any:
        law = Percentage if self.censored else PlainPercentage
        return law(self.judge(trial), self.sigma)

    def predict(self, observation: Observation) -> float:
        """Return the answer to a question before any noise, on a scale from 0 to 1."""
        law: Any = self._law(observation, None)
        return float(law.mean)
