"""Null models: every action, every number, or both with the same probability."""

from __future__ import annotations

from math import log
from typing import Any, ClassVar

import numpy as np

from knownminds.agents.compiled import compiled
from knownminds.agents.model import Model
from knownminds.agents.parameters import Array
from knownminds.environments.turn import Choice, Observation

__all__ = ["RandomResponder", "RandomRater", "RandomJudge"]

LANES = 32  # the same as in sequences.py


def likelihood(width: float, *, acts: bool) -> Any:
    """Return the kernel of a null model: numbers on a range of this width, actions, or both."""

    @compiled()
    def log_likelihood(theta, lapse, n_actions, row, start, *columns):  # type: ignore[no-untyped-def]
        total, each = np.zeros(len(theta)), log(width * (n_actions if acts else 1))
        for block in range(len(row)):
            for t in range(start[block], start[block + 1]):
                for i in range(LANES):
                    if columns[0][t, i] >= 0.0:
                        total[row[block, i]] -= each
        return total, np.zeros((len(theta), 0 if lapse is None else 1))

    return log_likelihood


def action_at(uniforms: Any, n_actions: int) -> Any:
    """Return the actions at uniform numbers."""
    return np.minimum(np.floor(uniforms * n_actions), n_actions - 1.0)


class NullModel(Model):
    """A model without parameters: all answers are equally likely, with or without lapses."""

    separate = ()
    n_actions = None
    n_uniforms = 1
    remembers = False
    given = "action"
    span: ClassVar[tuple[float, float] | None] = None
    width: ClassVar[float] = 1.0  # width of the range of numbers

    def reset(self) -> None:
        """Do nothing: there is nothing to forget."""

    def learn(self, observation: Observation, action: int, reward: float) -> None:
        """Do nothing: there is nothing to learn."""

    def action_probabilities(self, observation: Observation) -> Array:
        return np.full(self.actions, 1.0 / self.actions) if self.actions else np.empty(0)

    def log_density(
        self, observation: Observation, response: float, action: int | None = None
    ) -> float:
        return -log(self.width)

    def log_probability(
        self, observation: Observation, action: int | None, response: float | None
    ) -> float:
        each = log(self.actions) if action is not None else 0.0
        return -each - (log(self.width) if response is not None else 0.0)

    def choose(self, observation: Observation, rng: np.random.Generator) -> Choice:
        return int(action_at(rng.random(), self.actions))


class RandomResponder(NullModel):
    """Every action has probability 1 / n, whatever has happened."""

    name = "random_responder"
    summary = "picks uniformly among the actions; no parameters"
    source = "the null model of every choice task"
    columns = ("action",)
    log_likelihood = staticmethod(likelihood(1.0, acts=True))

    @staticmethod
    def simulate(theta, lapse, n_actions, row, start, uniforms):  # type: ignore[no-untyped-def]
        """Turn each uniform into an action."""
        return action_at(uniforms, n_actions)


class RandomRater(NullModel):
    """Every response from 0 to 1 has the density 1, whatever is shown."""

    name = "random_rater"
    summary = "states any number from 0 to 1, evenly; no parameters"
    source = "the null model of every experiment that asks for a number"
    columns = ("response",)
    given = "response"
    span = (0.0, 1.0)
    log_likelihood = staticmethod(likelihood(1.0, acts=False))

    @staticmethod
    def simulate(theta, lapse, n_actions, row, start, uniforms):  # type: ignore[no-untyped-def]
        """Return the uniforms themselves."""
        return uniforms.copy()

    def choose(self, observation: Observation, rng: np.random.Generator) -> Choice:
        return self.width * float(rng.random())


class RandomJudge(RandomRater):
    """Every response from 0 to 100 has the density 1/100, whatever is shown."""

    name = "random_judge"
    summary = "states any number from 0 to 100, evenly; no parameters"
    source = "the null model of every experiment that asks for a number up to 100"
    span = (0.0, 100.0)
    width = 100.0
    log_likelihood = staticmethod(likelihood(100.0, acts=False))

    @staticmethod
    def simulate(theta, lapse, n_actions, row, start, uniforms):  # type: ignore[no-untyped-def]
        """Return the uniforms, scaled to 0 to 100."""
        return 100.0 * uniforms
