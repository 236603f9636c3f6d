"""Learners that state how sure they are of each choice."""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import Any

import numpy as np
from scipy.special import expit, log_ndtr, ndtr

from knownminds.agents.compiler.definition import HALF_LOG_2_PI, SMALLEST, Law, positive, real, unit
from knownminds.agents.model import Model
from knownminds.environments.environment import Environment

__all__ = ["ChangePointObserver", "RescorlaWagnerConfidence"]

# The observer knows these rewards of the machines, as in restless_bandit.
HIGH, LOW, SPREAD = 60.0, 40.0, 8.0
MIDDLE = (HIGH + LOW) / 2
GAIN = (HIGH - LOW) / SPREAD**2  # log-odds per point above the middle
# The Rescorla-Wagner learner gives 20 points the value 0 and 80 points the value 1.
LEAST, WIDTH = 20.0, 60.0

# Confidences closer than this to 0 or 1 have a constant density. Nobody can tell them apart, and a
# stated 1 has infinite log-odds.
EDGE = 0.005
LIMIT = log((1.0 - EDGE) / EDGE)
LOG_EDGE = log(EDGE)


@dataclass(frozen=True)
class Confidence(Law):
    """A confidence whose log-odds are Normal(mean, sd); within EDGE of 0 and 1 it is flat."""

    mean: Any
    sd: Any

    def log_density(self, y: Any) -> Any:
        high, low = y >= 1 - EDGE, y <= EDGE
        inner = np.where(high | low, 0.5, y)
        off = (np.log(inner / (1 - inner)) - self.mean) / self.sd
        inside = -0.5 * off**2 - np.log(self.sd) - HALF_LOG_2_PI - np.log(inner * (1 - inner))
        beyond = (np.where(high, self.mean, -self.mean) - LIMIT) / self.sd
        return np.where(high | low, log_ndtr(beyond) - LOG_EDGE, inside)

    def at(self, normal: Any) -> Any:
        x = self.mean + self.sd * normal
        above = ndtr(-normal) / np.maximum(ndtr((self.mean - LIMIT) / self.sd), SMALLEST)
        below = ndtr(normal) / np.maximum(ndtr((-LIMIT - self.mean) / self.sd), SMALLEST)
        low = np.where(x <= -LIMIT, EDGE * np.minimum(below, 1), expit(x))
        return np.where(x >= LIMIT, 1 - EDGE * np.minimum(above, 1), low)


def _read_out(evidence: str) -> tuple[Any, Any, Any]:
    """Declare the parameters of the confidence, which several learners share."""
    return (
        real(
            "metacognitive bias: log-odds of the confidence where nothing is known",
            mean=0.0,
            sd=0.7,
        ),
        real(f"metacognitive sensitivity: log-odds per unit of {evidence}", mean=0.5, sd=0.3),
        positive(
            "metacognitive noise: spread of the log-odds of the confidence", mean=-0.7, sd=0.5
        ),
    )


class ConfidentLearner(Model):
    """A learner whose confidence is a noisy read-out of how far its choice is ahead.

    The log-odds of the confidence are Normal(c_0 + c_1 e, s), where e is the evidence that the
    chosen machine is the better one. The density is constant within 0.005 of 0 and of 1.
    """

    separate = ()
    c_0: Any
    c_1: Any
    s: Any

    def evidence(self) -> Any:
        """Return the evidence for machine 1 as the better one, in log-odds."""
        raise NotImplementedError

    def report(self, trial: Any) -> Any:
        side = 2 * trial.action - 1
        return Confidence(self.c_0 + self.c_1 * side * self.evidence(), self.s)


class ChangePointObserver(ConfidentLearner):
    """Keeps a belief by Bayes' rule in which machine is the better one; the two may swap.

    Let b be the probability that machine 1 is the better one, 1/2 at first. Each reward r of a
    machine adds (60 - 40) / 8**2 (r - 50) to the log-odds that this machine is the better one: the
    observer knows that the better machine pays Normal(60, 8) and the other one Normal(40, 8). Then
    b becomes b (1 - h) + (1 - b) h. Choices are softmax(beta b): P(machine 1) = logistic(beta (2 b
    - 1)). The confidence has log-odds Normal(c_0 + c_1 logit P(chosen machine is the better one),
    s).
    """

    summary = "Bayesian belief in which machine is the better one; says how sure it is"
    source = "Behrens, Woolrich, Walton and Rushworth 2007, with two states; Fleming and Lau 2014"

    h = unit(
        "hazard: probability, as believed, that the machines swap after a trial", mean=-3.0, sd=1.0
    )
    beta = positive("inverse temperature: how strictly choices follow the belief", mean=1.2, sd=0.6)
    c_0, c_1, s = _read_out("log-odds that the chosen machine is the better one")

    @classmethod
    def check_plays(cls, environment: Environment) -> None:
        """Raise ValueError also if the machines do not pay what the observer assumes."""
        super().check_plays(environment)
        settings = environment.settings
        pays = tuple(settings.get(name) for name in ("high", "low", "sd"))
        if pays != (HIGH, LOW, SPREAD):
            raise ValueError(
                f"{cls.name} knows machines that pay Normal({HIGH:g}, {SPREAD:g}) and "
                f"Normal({LOW:g}, {SPREAD:g}); those of {environment!r} pay otherwise. "
                "Choose another model."
            )

    def begin(self) -> None:
        self.belief: Any = 0.0  # log-odds that machine 1 is the better one

    def evidence(self) -> Any:
        """Return the belief."""
        return self.belief

    def respond(self, trial: Any) -> Any:
        e = np.exp(-abs(self.belief))
        lead = (1 - e) / (1 + e)
        return self.beta * np.where(self.belief > 0, lead, -lead)

    def update(self, trial: Any) -> None:
        belief = self.belief + (2 * trial.action - 1) * GAIN * (trial.reward - MIDDLE)
        e = np.exp(-abs(belief))
        # For the machine that seems the better one, up to a factor; this way no digits are lost.
        kept, lost = 1 - self.h + e * self.h, e * (1 - self.h) + self.h
        odds = np.log(kept / lost)
        self.belief = np.where(belief > 0, odds, -odds)


class RescorlaWagnerConfidence(ConfidentLearner):
    """Values step toward rewards; the confidence follows the lead of the chosen value.

    V = 0.5 for both machines at first. After a reward of r points, V[a] += alpha (v - V[a]) with v
    = (r - 20) / 60, so that 20 points are worth 0 and 80 points 1. P(a) is softmax(beta V + kappa
    [a was the last choice]). The confidence has log-odds Normal(c_0 + c_1 beta (V[chosen] -
    V[other]), s).
    """

    summary = "Rescorla-Wagner learner that says how sure it is of each choice"
    source = "Rescorla and Wagner 1972, with the confidence of Fleming and Lau 2014"

    alpha = unit("learning rate: share of the surprise that enters the value", mean=0.0, sd=1.0)
    beta = positive(
        "inverse temperature: how strictly choices follow the learned values", mean=2.0, sd=0.6
    )
    kappa = real(
        "perseveration: log-odds added to the last choice",
        mean=0.0,
        sd=0.5,
        source="Lau and Glimcher 2005; Katahira 2018",
    )
    c_0, c_1, s = _read_out("beta times the lead of the chosen value")

    def begin(self) -> None:
        self.values = np.full(2, 0.5)
        self.last: Any = 0.0  # -1 or 1

    def evidence(self) -> Any:
        """Return the lead of machine 1."""
        return self.beta * (self.values[1] - self.values[0])

    def respond(self, trial: Any) -> Any:
        return self.evidence() + self.kappa * self.last

    def update(self, trial: Any) -> None:
        surprise = (trial.reward - LEAST) / WIDTH - self.values[trial.action]
        self.values[trial.action] += self.alpha * surprise
        self.last = 2 * trial.action - 1
