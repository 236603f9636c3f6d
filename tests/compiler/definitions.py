"""Definitions that tests of the compiler share."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import log_ndtr, ndtr

from knownminds.agents import (
    Law,
    LogitNormal,
    Model,
    Normal,
    Payoffs,
    Probabilities,
    Table,
    World,
    positive,
    real,
    unit,
)


class Forgetful(Model):
    """Any number of arms; the value of one that was not chosen fades toward its start."""

    alpha = unit("learning rate", mean=-0.5)
    phi = unit("share of a value that is forgotten each trial", mean=-1.5)
    beta = positive("inverse temperature", mean=1.0, sd=0.7)
    n_actions = None

    def begin(self):
        self.values = np.full(self.actions, 0.5)

    def respond(self, trial):
        return self.beta * self.values

    def update(self, trial):
        chosen = self.values[trial.action]
        self.values += self.phi * (0.5 - self.values)
        self.values[trial.action] = chosen + self.alpha * (trial.reward - chosen)


class Odd(Model):
    """Nobody's model: as many ways of writing as possible."""

    alpha = unit("rate")
    beta = positive("inverse temperature")
    n_actions = None

    def begin(self):
        self.q = np.full((2, self.actions), 0.5)
        self.count = np.zeros(self.actions)
        self.streak = 0

    def respond(self, trial):
        row = self.q[trial.state]
        best = np.argmax(row)
        bonus = np.zeros(self.actions)
        bonus = bonus + 1 / (1 + self.count) ** 2
        utilities = self.beta * row + 0.3 * bonus
        utilities[best] += 0.1 * self.streak
        return utilities

    def update(self, trial):
        row = self.q[trial.state]
        surprise = trial.reward - row[trial.action]
        row[trial.action] += self.alpha * surprise  # writes to self.q
        row *= 0.99
        for k in range(self.actions):
            if k == trial.action:
                self.count[k] += 1
            elif self.count[k] > 2 and surprise > 0:
                self.count[k] -= 0.5
        self.streak = max(self.streak - 1, 0) if surprise < 0 else min(self.streak + 1, 3)
        self.q[0][trial.action] -= 0.01 * np.sign(surprise) * self.q.sum() / self.q.size


class Stage(World):
    """First choices lead to a place, which pays."""

    span = "day"
    waits = Table([[0.0, 1.0], [1.0, 0.0]])

    def begin(self):
        self.went = self.place = self.never = 0

    def show(self, drawn):
        self.place = np.where(drawn.arrives > 0, self.went, 1 - self.went)
        return {"state": self.place, "present": self.went >= self.never}

    def pay(self, drawn, action):
        if drawn.stage == 0:
            self.went = action
            return None
        return drawn.gems[self.place, action] + self.waits[action, self.place]


class Staged(Model):
    """Two kinds of trials; a parameter that is named as templates name things."""

    x = unit("rate")
    A_1 = positive("inverse temperature")
    kinds = ("stage", (0, 1))
    separate = ()

    def begin(self):
        self.t1 = np.full((2, 2), 0.5)
        self.a_1 = np.zeros(2)
        self.place = 0  # as the world calls something of its own

    def respond(self, trial):
        if trial.stage == 1:
            return self.A_1 * self.t1[trial.state]
        return self.t1.max(axis=1) + self.a_1 * np.where(self.place > 0, 0.9, 1.1)

    def update(self, trial):
        if trial.stage == 0:
            self.a_1[:] = 0
            self.a_1[trial.action] = 1
            self.place = trial.action
        else:
            surprise = trial.reward - self.t1[trial.state, trial.action]
            self.t1[trial.state, trial.action] += self.x * surprise


class Tied(Staged):
    """The same with its rate held."""

    x = 0.3


class Kalman(Model):
    """Answers with its estimate of a drifting number."""

    drift = positive("variance of the step")
    first = positive("variance of the first belief")
    mu = real("first belief", mean=0.5, sd=0.2)
    sigma = positive("standard deviation of the answer", mean=-2.0, sd=0.5)
    separate = ()

    def begin(self):
        self.mean, self.variance = self.mu, self.first

    def respond(self, trial):
        return Normal(self.after(trial)[0], self.sigma)

    def update(self, trial):
        self.mean, self.variance = self.after(trial)

    def after(self, trial):
        before = self.variance + self.drift
        gain = before / (before + 1)
        return self.mean + gain * (trial.value - self.mean), gain


class Stayer(Model):
    """States its probabilities itself."""

    stay = unit("probability of the last action")
    n_actions = None

    def begin(self):
        self.last = np.full(self.actions, 1 / self.actions)

    def respond(self, trial):
        return Probabilities(self.stay * self.last + (1 - self.stay) / self.actions)

    def update(self, trial):
        self.last[:] = 0
        self.last[trial.action] = 1


class Teller(Forgetful):
    """Says with each choice how much it is ahead."""

    noise = positive("standard deviation of what is said, in log odds", mean=-0.5)

    def report(self, trial):
        return LogitNormal(self.beta * (self.values[trial.action] - 0.5), self.noise)


class StatedTeller(Stayer):
    """States probabilities, and a number with each choice."""

    sigma = positive("standard deviation")

    def report(self, trial):
        return LogitNormal(self.last[trial.action], self.sigma)


@dataclass(frozen=True)
class Held(Law):
    """A normal number in fractions of a unit, held between 0 and the ceiling."""

    mean: Any
    sd: Any
    unit: Any
    ceiling: Any
    span = None

    def log_density(self, y):
        off = (y / self.unit - self.mean) / self.sd
        inside = -0.5 * off**2 - np.log(self.sd) - np.log(self.unit) - 0.5 * np.log(2 * np.pi)
        below, above = y <= 0, y >= self.ceiling
        return np.where(below | above, log_ndtr(np.where(below, off, -off)), inside)

    def at(self, normal):
        return np.clip((self.mean + self.sd * normal) * self.unit, 0, self.ceiling)

    def lapse_density(self, y):
        return np.where((y > 0) & (y < self.ceiling), 1 / self.ceiling, 0.0)

    def lapse_at(self, u):
        return u * self.ceiling


class Follower(Kalman):
    """Begins with a belief that hangs on what is the same in all of a sequence."""

    mu_2 = real("first belief in the other window", mean=0.3, sd=0.2)
    separate = ("window",)

    def begin(self):
        self.moved, self.rest, self.variance = 0.0, 1.0, self.first

    def respond(self, trial):
        mean, _, rest = self.after(trial)
        start = Table([self.mu, self.mu_2])[trial.window]
        return Held(mean + rest * start, self.sigma, trial.unit, trial.ceiling)

    def update(self, trial):
        self.moved, self.variance, self.rest = self.after(trial)

    def after(self, trial):
        before = self.variance + self.drift
        gain = before / (before + 1)
        x = np.log(trial.value / trial.unit + 0.001)
        return self.moved + gain * (x - self.moved), gain, self.rest * (1 - gain)


class KalmanOnce(Model):
    """The Kalman observer of magnitudes, which begins by its window."""

    q_over_r = positive("variance of the step")
    p0_over_r = positive("variance of the first belief")
    mu_short = real("first belief in the short window", mean=0.3, sd=0.2)
    mu_medium = real("first belief in the medium window", mean=0.5, sd=0.2)
    mu_long = real("first belief in the long window", mean=0.7, sd=0.2)
    sigma = positive("standard deviation of the answer", mean=-2.7, sd=0.7)
    separate = ("window", "modality")

    def begin(self, trial):
        means = [self.mu_short, self.mu_medium, self.mu_long]
        self.mean, self.variance = Table(means)[trial.window], self.p0_over_r

    def respond(self, trial):
        return Held(self.after(trial)[0], self.sigma, trial.unit, trial.ceiling)

    def update(self, trial):
        self.mean, self.variance = self.after(trial)

    def after(self, trial):
        before = self.variance + self.q_over_r
        gain = before / (before + 1)
        return self.mean + gain * (self.scaled(trial) - self.mean), gain

    def scaled(self, trial):
        return trial.value / trial.unit


class KalmanOnceGain(KalmanOnce):
    """The same, whose answers are its beliefs times a gain."""

    gain = positive("factor between belief and answer", sd=0.3)
    sigma = KalmanOnce.sigma

    def respond(self, trial):
        return Held(self.gain * self.after(trial)[0], self.sigma, trial.unit, trial.ceiling)


@dataclass(frozen=True)
class HeldLog(Held):
    """The same law of logarithms."""

    def log_density(self, y):
        x = np.log(np.maximum(y, 0) / self.unit + 1e-3)
        off = (x - self.mean) / self.sd
        inside = -0.5 * off**2 - np.log(self.sd) - np.log(self.unit) - x - 0.5 * np.log(2 * np.pi)
        below, above = y <= 0, y >= self.ceiling
        return np.where(below | above, log_ndtr(np.where(below, off, -off)), inside)

    def at(self, normal):
        x = np.exp(np.minimum(self.mean + self.sd * normal, 700.0)) - 1e-3
        return np.clip(x * self.unit, 0, self.ceiling)


class KalmanOnceLog(KalmanOnce):
    """The same on a log scale."""

    def respond(self, trial):
        return HeldLog(self.after(trial)[0], self.sigma, trial.unit, trial.ceiling)

    def scaled(self, trial):
        return np.log(np.maximum(trial.value, 0) / trial.unit + 1e-3)


class Opener(KalmanOnce):
    """The same, told apart by an `if`, which forks the beginning."""

    separate = ("window",)

    def begin(self, trial):
        self.mean = self.mu_short if trial.window == 0 else self.mu_long
        self.variance = self.p0_over_r


class Weigher(Model):
    """Looks up, works out what hangs on columns alone, and reckons rarely."""

    weight = positive("weight of the table")
    tempo = unit("rate")
    entries = Table(np.sin(np.arange(30.0)).reshape(5, 6))
    n_actions = 3

    def begin(self):
        self.level, self.streak = 0.0, 0

    def respond(self, trial):
        found = self.entries[trial.place, self.streak]
        known = self.entries[trial.place, trial.item]
        aim = np.log(1 + self.level**2) if trial.cue == 1 else self.level
        return np.array([self.weight * found, self.weight * known, aim * np.exp(trial.cost)])

    def update(self, trial):
        self.level += self.tempo * (trial.reward - self.level)
        self.streak = min(self.streak + 1, 5) if trial.reward > 0.5 else 0


class Edged(Kalman):
    """Gives numbers that are even within the ends of the range."""

    def respond(self, trial):
        return EvenAtTheEnds(self.after(trial)[0], self.sigma)


@dataclass(frozen=True)
class EvenAtTheEnds(Law):
    """A normal number; below .2 any from 0 to .2."""

    mean: Any
    sd: Any

    def log_density(self, y):
        off = (np.maximum(y, 0.2) - self.mean) / self.sd
        own = -0.5 * off**2 - np.log(self.sd) - 0.5 * np.log(2 * np.pi)
        return np.where(y < 0.2, log_ndtr((0.2 - self.mean) / self.sd) - np.log(0.2), own)

    def at(self, normal):
        x = self.mean + self.sd * normal
        share = ndtr(normal) / np.maximum(ndtr((0.2 - self.mean) / self.sd), 1e-300)
        return np.where(x < 0.2, 0.2 * np.minimum(share, 1), x)


class Falling(World):
    """Trials fall away after an action; what is remembered is an array."""

    span = "walk"

    def begin(self):
        self.left = np.full(2, 2.0)

    def show(self, drawn):
        return {"state": np.where(self.left[0] > self.left[1], 1, 0), "present": self.left[0] > 0}

    def pay(self, drawn, action):
        self.left[action] -= 1
        return drawn.payoffs[action] if self.left.sum() > 1 else None


class Walker(Odd):
    """Plays where trials fall away; NaN for what is not paid would show in its values."""

    separate = ()

    def update(self, trial):
        if trial.reward > 0:
            super().update(trial)


STAGE = {"day": (), "stage": (), "arrives": (), "gems": (2, 2)}


def world_of(model, actions):
    """Return the world in which a definition is tried, and its tables."""
    asked = dict.fromkeys(("state", "place", "item", "cue", "cost"), ())
    payoffs = (Payoffs, {"payoffs": (actions,), **asked})
    magnitude = (World, dict.fromkeys(("window", "value", "unit", "ceiling"), ()))
    others = {
        Staged: (Stage, STAGE),
        Tied: (Stage, STAGE),
        Kalman: (World, {"value": ()}),
        Edged: (World, {"value": ()}),
        **dict.fromkeys((KalmanOnce, KalmanOnceGain, KalmanOnceLog, Opener, Follower), magnitude),
        Walker: (Falling, {"walk": (), "payoffs": (actions,)}),
    }
    return others.get(model, payoffs)
