"""Learners of the values of actions, each with one idea more than Rescorla-Wagner's rule.

They choose by softmax(beta V + kappa [a was the last choice in this context]), from V = 0.5.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from knownminds.agents.choice_trace import ALPHA_C, BETA_C, follow_choice
from knownminds.agents.compiler.definition import positive, unit
from knownminds.agents.model import Model
from knownminds.agents.powers import power

from .rescorla_wagner import RescorlaWagner

__all__ = [
    "RescorlaWagnerChoiceKernel",
    "ForgettingLearner",
    "PearceHall",
    "DecayingRateLearner",
    "OutcomeSensitivity",
    "ActorCritic",
]


class ValueLearner(Model):
    """Values of any number of actions in each context, chosen by softmax with perseveration."""

    source = "Sutton and Barto 2018, chapter 2"
    n_actions = None
    last_parameters: ClassVar[tuple[str, ...]] = ("beta", "kappa")

    beta, kappa = RescorlaWagner.beta, RescorlaWagner.kappa

    def begin(self) -> None:
        self.values = np.full(self.actions, 0.5)
        self.last = np.zeros(self.actions)

    def respond(self, trial: Any) -> Any:
        return self.beta * self.values + self.kappa * self.last

    def remember(self, trial: Any) -> None:
        """Remember which action was chosen."""
        self.last[:] = 0
        self.last[trial.action] = 1


class ForgettingLearner(ValueLearner):
    """Values step toward rewards when their action is chosen, and fade when it is not.

    In each context V = 0.5 for all actions at first. After the reward r of action a, V[a] += alpha
    (r - V[a]), and V[b] -= phi V[b] for every other action b. P(a) is softmax(beta V + kappa [a was
    the last choice in this context]). With phi = 0 it is `RescorlaWagner`.
    """

    summary = "Rescorla-Wagner learner who forgets what was not chosen"
    source = "Ito and Doya 2009"
    contains: ClassVar = {"rescorla_wagner": {"phi": 0.0}}

    alpha = unit(
        "learning rate of the chosen action", mean=-0.5, sd=1.0, source="Ito and Doya 2009"
    )
    phi = unit(
        "share of the value of an action not chosen that is forgotten at each choice",
        mean=-1.5,
        sd=1.0,
        source="Ito and Doya 2009",
    )

    def update(self, trial: Any) -> None:
        value = self.values[trial.action]
        self.values *= 1 - self.phi
        self.values[trial.action] = value + self.alpha * (trial.reward - value)
        self.remember(trial)


class PearceHall(ValueLearner):
    """Values step toward rewards at a rate that follows how surprising the action has been.

    In each context V = 0.5 and the associability A = 1 for all actions at first. The reward r of
    action a brings the surprise d = r - V[a]. Then V[a] += alpha A[a] d, and after that A[a] += eta
    (|d| - A[a]). P(a) is softmax(beta V + kappa [a was the last choice in this context]). With eta
    = 0 it is `RescorlaWagner`.
    """

    summary = "learns fast of what has been surprising and slowly of what has not"
    source = "Pearce and Hall 1980; Li, Schiller, Schoenbaum, Phelps and Daw 2011"
    contains: ClassVar = {"rescorla_wagner": {"eta": 0.0}}

    alpha = unit(
        "learning rate where the associability is 1", mean=0.0, sd=1.0, source="Li et al. 2011"
    )
    eta = unit(
        "how fast the associability follows the size of the surprises",
        mean=-0.5,
        sd=1.0,
        source="Li et al. 2011",
    )

    def begin(self) -> None:
        super().begin()
        self.associability = np.ones(self.actions)

    def update(self, trial: Any) -> None:
        surprise = trial.reward - self.values[trial.action]
        associability = self.associability[trial.action]
        self.values[trial.action] += self.alpha * associability * surprise
        self.associability[trial.action] += self.eta * (np.abs(surprise) - associability)
        self.remember(trial)


class DecayingRateLearner(ValueLearner):
    """Values step toward rewards, by less each time.

    In each context V = 0.5 for all actions at first. When action a is chosen for the n-th time and
    brings the reward r, V[a] += (r - V[a]) / (n + 1)**omega. P(a) is softmax(beta V + kappa [a was
    the last choice in this context]). With omega = 1 the value is the mean of 0.5 and all rewards.
    A smaller omega gives late rewards more weight.
    """

    summary = "learns by less each time, as who takes the mean of all rewards"
    source = "Even-Dar and Mansour 2003; Sutton and Barto 2018, section 2.5"

    omega = positive(
        "decay of the learning rate; at 1 all rewards count alike",
        mean=-0.5,
        sd=0.5,
        source="Even-Dar and Mansour 2003",
    )

    def begin(self) -> None:
        super().begin()
        self.count = np.ones(self.actions)

    def update(self, trial: Any) -> None:
        self.count[trial.action] += 1
        rate = power(self.count[trial.action], -self.omega)
        self.values[trial.action] += rate * (trial.reward - self.values[trial.action])
        self.remember(trial)


class ActorCritic(ValueLearner):
    """A critic learns the value of a context; an actor prefers actions that bring more than that.

    In each context V = 0.5 and the preferences H = 0 at first. The reward r of action a brings the
    surprise d = r - V. Then H[a] += alpha_actor d, and after that V += alpha_critic d. P(a) is
    softmax(H + kappa [a was the last choice in this context]). Preferences have no bound, so that
    choices become ever more certain.
    """

    summary = "prefers actions that brought more than their context is worth"
    source = "Barto, Sutton and Anderson 1983; Sutton and Barto 1998, section 2.8"

    alpha_critic = unit(
        "learning rate of the context's value", mean=-0.5, sd=1.0, source="Barto et al. 1983"
    )
    alpha_actor = positive(
        "step of a preference, in log-odds per unit of surprise",
        mean=0.0,
        sd=0.7,
        source="Barto et al. 1983",
    )
    beta = None

    def begin(self) -> None:
        super().begin()
        self.worth: Any = 0.5
        self.values = np.zeros(self.actions)

    def respond(self, trial: Any) -> Any:
        return self.values + self.kappa * self.last

    def update(self, trial: Any) -> None:
        surprise = trial.reward - self.worth
        self.values[trial.action] += self.alpha_actor * surprise
        self.worth = self.worth + self.alpha_critic * surprise
        self.remember(trial)


class OutcomeSensitivity(ValueLearner):
    """A win counts rho_win and a trial without a win counts -rho_loss, in log-odds.

    In each context V = 0 for all actions at first. Action a brings u = rho_win if it pays more than
    0, else -rho_loss, and V[a] += alpha (u - V[a]). P(a) is softmax(V + kappa [a was the last
    choice in this context]). With rho_win = rho_loss = beta / 2 it is `RescorlaWagner`.
    """

    summary = "Rescorla-Wagner learner to whom wins and their absence matter differently"
    source = "Seymour, Daw, Roiser, Dayan and Dolan 2012"
    contains: ClassVar = {
        "rescorla_wagner": {
            "rho_win": lambda inner: inner.beta / 2,
            "rho_loss": lambda inner: inner.beta / 2,
        }
    }

    alpha = unit("learning rate", mean=-0.5, sd=1.0, source="Seymour et al. 2012")
    rho_win = positive(
        "sensitivity to wins, in log-odds", mean=0.5, sd=0.7, source="Seymour et al. 2012"
    )
    rho_loss = positive(
        "sensitivity to their absence, in log-odds", mean=0.5, sd=0.7, source="Seymour et al. 2012"
    )
    beta = None

    def begin(self) -> None:
        super().begin()
        self.values = np.zeros(self.actions)

    def respond(self, trial: Any) -> Any:
        return self.values + self.kappa * self.last

    def update(self, trial: Any) -> None:
        felt = np.where(trial.reward > 0, self.rho_win, -self.rho_loss)
        self.values[trial.action] += self.alpha * (felt - self.values[trial.action])
        self.remember(trial)


class RescorlaWagnerChoiceKernel(ValueLearner):
    """Values step toward rewards, and a trace of earlier choices adds to them.

    In each context V = 0.5 and C = 0 for all actions at first. After the reward r of action a, V[a]
    += alpha (r - V[a]), and C[b] += alpha_c ([b = a] - C[b]) for every action b. P(a) is
    softmax(beta V + beta_c C). With alpha_c = 1 it is `RescorlaWagner`, whose kappa is beta_c.
    """

    summary = "Rescorla-Wagner learner with a trace of all earlier choices"
    source = "Wilson and Collins 2019, model 5; Lau and Glimcher 2005"
    contains: ClassVar = {
        "rescorla_wagner": {"alpha_c": 1.0, "beta_c": "kappa"},
        "choice_kernel": {"alpha": 0.5, "beta": 0.0},
    }
    last_parameters = ("beta", "alpha_c", "beta_c")

    alpha = unit("learning rate of values", mean=-0.5, sd=1.0, source="Wilson and Collins 2019")
    kappa = None
    alpha_c, beta_c = ALPHA_C, BETA_C

    def respond(self, trial: Any) -> Any:
        return self.beta * self.values + self.beta_c * self.last

    def update(self, trial: Any) -> None:
        self.values[trial.action] += self.alpha * (trial.reward - self.values[trial.action])
        follow_choice(self.last, self.alpha_c, trial.action)
