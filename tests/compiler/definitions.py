"""Definitions that tests of the compiler share."""

import numpy as np

from knownminds.agents import (
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


class Asked(Teller):
    """Chooses, or says how much the first is ahead, as the trial asks."""

    given = "either"

    def acts(self, trial):
        return trial.cue == 1

    def report(self, trial):
        return LogitNormal(self.beta * (self.values[0] - self.values[1]), self.noise)

    def update(self, trial):
        told = np.where(trial.cue == 1, 0.0, 0.1 * (trial.response - 0.5))
        self.values[0] += np.where(trial.cue == 1, 0.0, told)
        self.values[1] += np.where(trial.action == 1, self.alpha * trial.reward, 0.0)


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


STAGE = {"day": (), "stage": (), "arrives": (), "gems": (2, 2)}


def world_of(model, actions):
    """Return the world in which a definition is tried, and its tables."""
    if model is Staged:
        return Stage, STAGE
    if model is Kalman:
        return World, {"value": ()}
    columns = dict.fromkeys(("place", "item", "cue", "cost"), ())
    return Payoffs, {"payoffs": (actions,), **columns}
