"""Learners of reversals: by values, by actions not chosen, by the hidden state."""

from __future__ import annotations

from typing import Any

import numpy as np

from knownminds.agents.compiler.definition import positive, real, unit
from knownminds.agents.model import Model

__all__ = [
    "ExperienceWeightedAttraction",
    "FictitiousUpdate",
    "FictitiousUpdateDual",
    "HiddenStateReversal",
    "RewardPunishment",
]


class RewardPunishment(Model):
    """Values step toward rewards, at one rate after wins and at another after losses.

    V = 0 for both actions at first. After the reward r of action a, V[a] += alpha_reward (r - V[a])
    if r > 0, and alpha_punishment (r - V[a]) otherwise. P(a) is softmax(beta V).
    """

    summary = "learns from wins and from losses at separate rates"
    source = (
        "den Ouden, Daw, Fernandez, Elshout, Rijpkema, Hoogman, Franke and Cools 2013, "
        "reward-punishment model"
    )

    alpha_reward = unit("learning rate after wins", mean=-0.3, sd=1.0)
    alpha_punishment = unit("learning rate after losses", mean=-0.3, sd=1.0)
    beta = positive("inverse temperature", mean=0.7, sd=0.5)

    def begin(self) -> None:
        self.values = np.zeros(2)

    def respond(self, trial: Any) -> Any:
        return self.beta * self.values

    def update(self, trial: Any) -> None:
        rate = self.alpha_reward if trial.reward > 0 else self.alpha_punishment
        self.values[trial.action] += rate * (trial.reward - self.values[trial.action])


class FictitiousUpdateDual(Model):
    """Both values step: the chosen one toward the reward, the other toward its opposite.

    V = 0 for both actions at first. After the reward r of action a, with b the other action, V[a]
    += eta (r - V[a]) and V[b] += eta (-r - V[b]). Here eta is eta_positive if r >= V[a] and
    eta_negative otherwise. The log odds of action 1 are beta (V[1] - V[0] - bias).
    """

    summary = "takes what was not chosen to bring the opposite, with two learning rates"
    source = "Glaescher, Hampton and O'Doherty 2009; den Ouden et al. 2013"

    last_parameters = ("bias", "beta")

    eta_positive = unit("learning rate where the reward is no worse than expected", -0.3, 1.0)
    eta_negative = unit("learning rate where the reward is worse than expected", -0.3, 1.0)
    bias = real("indecision point: lead in value that action 1 needs", mean=0.0, sd=0.3)
    beta = positive("inverse temperature", mean=0.3, sd=0.5)

    def begin(self) -> None:
        self.values = np.zeros(2)

    def respond(self, trial: Any) -> Any:
        return self.beta * (self.values[1] - self.values[0] - self.bias)

    def update(self, trial: Any) -> None:
        better = trial.reward >= self.values[trial.action]
        rate = self.eta_positive if better else self.eta_negative
        known = self.values[trial.action]
        self.values += rate * (-trial.reward - self.values)
        self.values[trial.action] = known + rate * (trial.reward - known)


class FictitiousUpdate(FictitiousUpdateDual):
    """Both values step at one rate: the chosen one toward the reward, the other to its opposite.

    V = 0 for both actions at first. After the reward r of action a, with b the other action, V[a]
    += eta (r - V[a]) and V[b] += eta (-r - V[b]). The log odds of action 1 are beta (V[1] - V[0] -
    bias).
    """

    summary = "takes what was not chosen to bring the opposite"
    source = "Glaescher, Hampton and O'Doherty 2009"

    eta = unit("learning rate of both values", mean=-0.3, sd=1.0)
    eta_positive = eta_negative = property(lambda self: self.eta)


class ExperienceWeightedAttraction(Model):
    """Learns less from a reward, the more often the action was tried before.

    n = V = 0 for both actions at first. After the reward r of action a, its experience n becomes n'
    = rho n + 1 and its value becomes (phi n V + r) / n'. P(a) is softmax(beta V).
    """

    summary = "experience-weighted attraction: what was tried often moves little"
    source = "Camerer and Ho 1999; den Ouden et al. 2013"

    phi = unit("share that remains of the former value", mean=0.5, sd=1.0)
    rho = unit("share that remains of the former experience", mean=0.0, sd=1.0)
    beta = positive("inverse temperature", mean=0.7, sd=0.5)

    def begin(self) -> None:
        self.values, self.tried = np.zeros(2), np.zeros(2)

    def respond(self, trial: Any) -> Any:
        return self.beta * self.values

    def update(self, trial: Any) -> None:
        before = self.tried[trial.action]
        self.tried[trial.action] = self.rho * before + 1
        kept = self.phi * before * self.values[trial.action]
        self.values[trial.action] = (kept + trial.reward) / self.tried[trial.action]


class HiddenStateReversal(Model):
    """Infers by Bayes' rule which action is the better one now, and expects reversals.

    The belief that action a is the better one is p = 1/2 at first. A win multiplies its odds by g /
    (1 - g), and a loss divides them by that, where g = (1 + certainty) / 2. Then the two change
    places with probability hazard: p becomes p (1 - hazard) + (1 - p) hazard. The log odds of
    action 1 are beta (p[1] - p[0]).
    places with probability hazard: p becomes p (1 - hazard) + (1 - p) hazard. The log odds of
    action 1 are beta (p[1] - p[0]).
    """

    summary = "infers which action is the better one now, and expects reversals"
    source = "Hampton, Bossaerts and O'Doherty 2006"

    hazard = unit("probability of a reversal after each trial", mean=-2.0, sd=1.0)
    certainty = unit("rate of wins of the better one less that of the other", mean=0.5, sd=0.7)
    beta = positive("inverse temperature", mean=1.0, sd=0.5)

    def begin(self) -> None:
        self.belief = np.full(2, 0.5)

    def respond(self, trial: Any) -> Any:
        return self.beta * self.belief

    def update(self, trial: Any) -> None:
        tells = (1 + np.where(trial.reward > 0, 1, -1) * self.certainty) / 2
        right = tells * self.belief[trial.action]
        wrong = (1 - tells) * (1 - self.belief[trial.action])
        share = right / (right + wrong)
        still = share * (1 - self.hazard) + (1 - share) * self.hazard
        self.belief[:] = 1 - still
        self.belief[trial.action] = still
