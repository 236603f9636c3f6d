"""Learners of decks of cards: by expectancy or prospect utility, with perseverance, exploration."""

from __future__ import annotations

from typing import Any

import numpy as np

from knownminds.agents.compiler.definition import positive, real, unit
from knownminds.agents.model import Model
from knownminds.agents.powers import power

from .iowa_gambling import N_DECKS

__all__ = [
    "ExpectancyValence",
    "OutcomeRepresentation",
    "ProspectValenceDecay",
    "ProspectValenceDelta",
    "ValuePlusExploration",
    "ValuePlusPerseverance",
]

UNIT = 100.0  # amounts are divided by this, so that utilities are of the order of 1


class DeckLearner(Model):
    """The base of learners of decks: values of four decks, zero at first."""

    n_actions = N_DECKS
    separate = ()

    def begin(self) -> None:
        self.values = np.zeros(N_DECKS)


class ExpectancyValence(DeckLearner):
    """Weighs gains against losses, learns by the delta rule, and chooses more strictly with time.

    V = 0 for all decks at first. A card of deck a has the utility u = (1 - w) gain - w loss, in
    hundreds, and V[a] += A (u - V[a]). On trial t (from 1), P(a) is softmax((t / 10)**c V).
    """

    summary = "weighted gains and losses, delta rule, choices stricter or looser with time (EV)"
    source = "Busemeyer and Stout 2002"

    weight = unit("attention to losses, w", mean=0.0, sd=0.8, source="Busemeyer and Stout 2002")
    rate = unit("learning rate A", mean=-1.0, sd=1.0)
    consistency = real("how choices grow stricter with time, c", mean=0.3, sd=0.4)

    def begin(self) -> None:
        super().begin()
        self.number = 1.0

    def respond(self, trial: Any) -> Any:
        return power(self.number / 10, self.consistency) * self.values

    def update(self, trial: Any) -> None:
        felt = ((1 - self.weight) * trial.gain - self.weight * trial.loss) / UNIT
        self.values[trial.action] += self.rate * (felt - self.values[trial.action])
        self.number += 1


class ProspectValenceDelta(DeckLearner):
    """The deck's value steps toward the prospect utility of its card's net gain.

    V = 0 for all decks at first. A card of deck a has the net gain x = gain - loss, in hundreds,
    and the utility u = x**alpha where x >= 0 and -lambda |x|**alpha otherwise. V[a] += A (u -
    V[a]). P(a) is softmax(beta V), where beta = 3**c - 1 with the consistency c.
    """

    summary = "prospect utility of the net gain, delta rule (PVL-delta)"
    source = "Ahn, Busemeyer, Wagenmakers and Stout 2008; Fridberg et al. 2010"

    last_parameters = ("beta",)

    alpha = unit("shape of utility: 1 is linear, 0 counts gains and losses", mean=0.0, sd=0.8)
    loss_aversion = positive("weight of losses, lambda", mean=0.0, sd=0.6)
    rate = unit("learning rate A", mean=-1.0, sd=1.0)
    beta = positive("inverse temperature", mean=0.5, sd=0.5)

    def respond(self, trial: Any) -> Any:
        return self.beta * self.values

    def felt(self, trial: Any) -> Any:
        """Return the prospect utility of the net gain."""
        size = power(np.abs(trial.reward) / UNIT, self.alpha)
        return size if trial.reward >= 0 else -self.loss_aversion * size

    def update(self, trial: Any) -> None:
        self.values[trial.action] += self.rate * (self.felt(trial) - self.values[trial.action])


class ProspectValenceDecay(ProspectValenceDelta):
    """All values decay, and the deck's value grows by the prospect utility of its card.

    V = 0 for all decks at first, and u is as in `ProspectValenceDelta`. V *= A for all decks, then
    V[a] += u. P(a) is softmax(beta V).
    """

    summary = "prospect utility of the net gain, values decay (PVL-decay)"
    source = "Erev and Roth 1998; Ahn, Busemeyer, Wagenmakers and Stout 2008"

    rate = unit("share of a value that remains after each card, A", mean=0.8, sd=1.0)
    beta = positive("inverse temperature", mean=-0.7, sd=0.5)

    def update(self, trial: Any) -> None:
        self.values *= self.rate
        self.values[trial.action] += self.felt(trial)


class ValuePlusPerseverance(ProspectValenceDelta):
    """A value learned as in PVL-delta, and a tendency to come back or to stay away.

    The perseverance P = 0 for all decks at first. After a card of deck a, P *= k for all decks,
    then P[a] += epsilon_gain if the gain is at least the loss, and epsilon_loss otherwise. V is
    learned as in `ProspectValenceDelta`. P(a) is softmax(beta (w V + (1 - w) P)).
    """

    summary = "values by the delta rule beside perseverance (VPP)"
    source = "Worthy, Pang and Byrne 2013"

    epsilon_gain = real("perseverance after a net gain", mean=0.0, sd=1.0)
    epsilon_loss = real("perseverance after a net loss", mean=0.0, sd=1.0)
    decay = unit("share of perseverance that remains after each card, k", mean=0.0, sd=1.0)
    weight = unit("weight of values against perseverance, w", mean=0.0, sd=1.0)

    def begin(self) -> None:
        super().begin()
        self.perseverance = np.zeros(N_DECKS)

    def respond(self, trial: Any) -> Any:
        mixed = self.weight * self.values + (1 - self.weight) * self.perseverance
        return self.beta * mixed

    def update(self, trial: Any) -> None:
        super().update(trial)
        self.perseverance *= self.decay
        self.perseverance[trial.action] += (
            self.epsilon_gain if trial.reward >= 0 else self.epsilon_loss
        )


class OutcomeRepresentation(DeckLearner):
    """Learns how much decks bring and how often they win, and tends to come back.

    V = F = P = 0 for all decks at first. A card of deck a has the net gain x = gain - loss, in
    hundreds, with the sign s. Let A be rate_gain where x >= 0 and rate_loss otherwise, and B the
    other of the two. Then V[a] += A (x - V[a]) and F[a] += A (s - F[a]); for the other decks j,
    F[j] += B (-s / 3 - F[j]). P[a] becomes 1, then P *= 3**-k for all decks. P(a) is softmax(V +
    beta_frequency F + beta_perseverance P).
    """

    summary = "expected value, win frequency and perseverance (ORL)"
    source = "Haines, Vassileva and Ahn 2018"

    rate_gain = unit("learning rate after net gains", mean=-1.0, sd=1.0)
    rate_loss = unit("learning rate after net losses", mean=-1.5, sd=1.0)
    decay = positive("decay of perseverance, k: 3**-k remains", mean=0.0, sd=0.6)
    beta_frequency = real("weight of win frequency", mean=1.0, sd=1.5)
    beta_perseverance = real("weight of perseverance", mean=0.5, sd=1.5)

    def begin(self) -> None:
        super().begin()
        self.frequency, self.perseverance = np.zeros(N_DECKS), np.zeros(N_DECKS)

    def respond(self, trial: Any) -> Any:
        drawn = self.beta_perseverance * self.perseverance
        return self.values + self.beta_frequency * self.frequency + drawn

    def update(self, trial: Any) -> None:
        won = trial.reward >= 0
        rate, others = (
            np.where(won, self.rate_gain, self.rate_loss),
            np.where(won, self.rate_loss, self.rate_gain),
        )
        sign, known = np.sign(trial.reward), self.frequency[trial.action]
        self.values[trial.action] += rate * (trial.reward / UNIT - self.values[trial.action])
        self.frequency += others * (-sign / 3 - self.frequency)
        self.frequency[trial.action] = known + rate * (sign - known)
        self.perseverance[trial.action] = 1.0
        self.perseverance *= power(3.0, -self.decay)


class ValuePlusExploration(DeckLearner):
    """Exploits what decks have brought of late, and seeks those that were not tried for a while.

    V = E = 0 for all decks at first. After a card of deck a, V *= delta for all decks, then V[a] +=
    gain**theta - loss**theta, in hundreds. E[a] becomes 0, and for the other decks j, E[j] += alpha
    (phi - E[j]). P(a) is softmax(beta (V + E)), where beta = 3**c - 1 with the consistency c.
    """

    summary = "decaying values beside sequential exploration (VSE)"
    source = "Ligneul 2019"

    sensitivity = unit("sensitivity to value, theta: 1 is linear", mean=0.0, sd=0.8)
    delta = unit("share of a value that remains after each card", mean=0.8, sd=1.0)
    alpha = unit("learning rate of exploration", mean=-1.0, sd=1.0)
    phi = real("exploration bonus", mean=0.5, sd=1.0)
    beta = positive("inverse temperature", mean=0.0, sd=0.5)

    def begin(self) -> None:
        super().begin()
        self.explore = np.zeros(N_DECKS)

    def respond(self, trial: Any) -> Any:
        return self.beta * (self.values + self.explore)

    def update(self, trial: Any) -> None:
        gain, loss = trial.gain / UNIT, trial.loss / UNIT
        self.values *= self.delta
        self.values[trial.action] += power(gain, self.sensitivity) - power(loss, self.sensitivity)
        self.explore += self.alpha * (self.phi - self.explore)
        self.explore[trial.action] = 0.0
