"""What every agent provides: a parameter table, two kernels, and a subject who plays."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np

from knownminds.environments.environment import Environment, Observation

from .parameters import LAPSE, Array, Parameters

Kernel = Callable[..., Any]


class Agent(ABC):
    """A generative model of behaviour; an instance is one subject with known parameters.

    A model author writes the class attributes below, three short methods, and two compiled
    functions of arrays:

    ``log_likelihood(theta, lapse, n_actions, row, start, *columns) -> total, gradient``
        theta [N, P]; lapse None or [N]; row, start and the columns as laid out by
        `Sequences`; total [N]; gradient [N, P], or [N, P + 1] with the derivative for the lapse
        rate last. A trial whose action is negative has no choice: it adds nothing and
        teaches nothing.
    ``simulate(theta, lapse, n_actions, row, start, uniforms, *design) -> action``
        Plays each sequence with one uniform per trial: the action is the first whose
        cumulative probability exceeds it.

    Attributes
    ----------
    columns
        Trial columns the likelihood reads.
    design
        Entries of the design table the simulation reads.
    separate
        Stimulus columns across which nothing is carried over: one state per value.
    n_actions
        How many actions the model can choose between; None for any number.
    remembers
        Whether earlier trials change what the model does.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    source: ClassVar[str]
    parameters: ClassVar[Parameters]
    columns: ClassVar[tuple[str, ...]] = ("action", "reward")
    design: ClassVar[tuple[str, ...]] = ("payoffs",)
    separate: ClassVar[tuple[str, ...]] = ("context",)
    n_actions: ClassVar[int | None] = None
    remembers: ClassVar[bool] = True
    log_likelihood: ClassVar[Kernel]
    simulate: ClassVar[Kernel]

    def __init__(self, *, lapse: float = 0.0, actions: int | None = None, **values: float):
        self.theta: Array = self.parameters.vector(values, owner=type(self).__name__)
        if not LAPSE.support.contains(np.asarray(lapse)):
            raise ValueError(f"lapse lies in {LAPSE.support}; got {lapse:g}.")
        self.lapse = float(lapse)
        self.actions = actions or self.n_actions or 2
        self.reset()

    @classmethod
    def from_theta(cls, theta: Array, *, lapse: float = 0.0, actions: int | None = None) -> Agent:
        """Make the subject with parameter vector theta[P]."""
        named: Mapping[str, float] = dict(zip(cls.parameters.names, theta.tolist(), strict=True))
        return cls(lapse=lapse, actions=actions, **named)

    @classmethod
    def check_plays(cls, environment: Environment) -> None:
        """Raise ValueError if this model cannot play the environment."""
        if not environment.feedback and ("reward" in cls.columns or "payoffs" in cls.design):
            raise ValueError(
                f"{cls.name} learns from rewards; {environment.name} pays none. "
                "Choose a model that does without, such as random_responder."
            )
        if not environment.retold and cls.remembers:
            raise ValueError(
                f"{cls.name} goes by earlier trials; those of {environment.name} stand alone, "
                "untold by later ones. Choose a model that does without, such as random_responder."
            )
        if cls.n_actions not in (None, environment.n_actions):
            raise ValueError(
                f"{cls.name} chooses between {cls.n_actions} actions; "
                f"{environment.name} offers {environment.n_actions}. Choose another model."
            )

    @classmethod
    def plays(cls, environment: Environment) -> bool:
        """Say whether this model can play the environment."""
        try:
            cls.check_plays(environment)
        except ValueError:
            return False
        return True

    def __repr__(self) -> str:
        """Show the parameters."""
        pairs = zip(self.parameters.names, self.theta, strict=True)
        values = ", ".join(f"{name}={value:.4g}" for name, value in pairs)
        return f"{type(self).__name__}({values})"

    @abstractmethod
    def reset(self) -> None:
        """Forget everything: a session begins."""

    @abstractmethod
    def action_probabilities(self, observation: Observation) -> Array:
        """Return the probability of each action before any lapse, [n_actions]."""

    @abstractmethod
    def learn(self, observation: Observation, action: int, reward: float) -> None:
        """Take in what the action brought; NaN if the experiment pays no rewards."""

    def probabilities(self, observation: Observation) -> Array:
        """Return the probability of each action, lapses included, [n_actions]."""
        p = self.action_probabilities(observation)
        return (1.0 - self.lapse) * p + self.lapse / len(p) if self.lapse else p

    def choose(self, observation: Observation, rng: np.random.Generator) -> int:
        """Draw an action, using one uniform number."""
        u, below = rng.random(), 0.0
        p = self.probabilities(observation).tolist()
        for action, share in enumerate(p[:-1]):
            below += share
            if u < below:
                return action
        return len(p) - 1
