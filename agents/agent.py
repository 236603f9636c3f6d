"""What every agent provides: a parameter table, two kernels, and a subject who plays."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from knownminds.environments.environment import Choice, Environment, Given, Observation

from .parameters import LAPSE, Array, Parameters
from .recommended_design import Recommended

Kernel = Callable[..., Any]
Integers = NDArray[np.int64]
Prepared = tuple[Integers, Integers, Mapping[str, Array]]  # subject, sequence, columns of places

ANSWERS = ("action", "response", "reward")  # columns of trials that are not shown
_ASKED = {
    "action": "an action",
    "response": "a number",
    "both": "an action and a number",
    "either": "an action on some trials and a number on the others",
}


@dataclass(frozen=True)
class Selection:
    """The trials to which a model is fitted unless all are wanted.

    Parameters
    ----------
    column, value
        The trials are those with this value in this column.
    trials
        What they are called, such as "first free choices".
    reason
        Why the others are left out, a sentence.
    """

    column: str
    value: float
    trials: str
    reason: str

    def of(self, columns: Any, owner: str) -> NDArray[np.bool_]:
        """Mark the trials that are fitted, from columns or a frame.

        Raises ValueError if what tells them is not there.
        """
        if self.column not in columns:
            raise ValueError(
                f"{owner} is fitted to {self.trials}, trials whose {self.column!r} is "
                f"{self.value:g}; the trials have no {self.column!r}. Map one with "
                f"--columns {self.column}=YOUR_NAME, or fit all trials (--all-trials)."
            )
        mask: NDArray[np.bool_] = np.asarray(columns[self.column], dtype=float) == self.value
        return mask

    def describe(self, all_trials: bool) -> str:
        """Say which trials were fitted, and why."""
        if all_trials:
            return (
                f"All trials were fitted, not the {self.trials} alone (--all-trials). {self.reason}"
            )
        return f"Only the {self.trials} were fitted (--all-trials takes all). {self.reason}"


class Agent(ABC):
    """A generative model of behaviour; an instance is one subject with known parameters.

    A model author writes the class attributes below, three short methods, and two compiled
    functions of arrays:

    ``log_likelihood(theta, lapse, n_actions, row, start, *columns) -> total, gradient``
        theta [N, P]; lapse None or [N]; row, start and the columns as laid out by
        `Sequences`; total [N]; gradient [N, P], or [N, P + 1] with the derivative for the lapse
        rate last. A trial whose action is negative (whose response is minus infinity) has no
        answer: it adds nothing and teaches nothing.
    ``simulate(theta, lapse, n_actions, row, start, uniforms, *design) -> action``
        Plays each sequence with one uniform per trial: the action is the first whose
        cumulative probability exceeds it. A model with several uniforms per trial gets them as
        [places, n_uniforms, LANES]; one that gives responses returns these, one that gives both
        returns actions and responses. Where earlier actions make a trial fall away, its action
        is -1.

    Attributes
    ----------
    columns
        Trial columns the likelihood reads.
    design
        Entries of the design table the simulation reads.
    separate
        Stimulus columns across which nothing is carried over: one state per value.
    given
        What the model gives on a trial: an "action", a "response" (a number), "both", or
        "either", as the trial asks: an int is then an action and a float a number.
    span
        The range of the numbers that the model gives; None for any range.
    n_uniforms
        How many uniform numbers a trial takes.
    n_actions
        How many actions the model can choose between; None for any number.
    remembers
        Whether earlier trials change what the model does.
    starts
        Values of some parameters, on the natural scale, at which searches for estimates begin
        besides those that every model has; the other parameters are at their prior means.
    selection
        The trials to which the model is fitted unless all are wanted; None for all.
    recommended
        The design that gives its parameters back.
    prepare
        What is done to trials once, before any likelihood: (subject [trials], sequence [trials],
        columns, whether lapses are mixed in) -> (subject [places], sequence [places], columns that
        the likelihood reads instead). Places of a sequence stay in order of time. None if the
        likelihood reads the trials themselves.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    source: ClassVar[str]
    parameters: ClassVar[Parameters]
    starts: ClassVar[Sequence[Mapping[str, float]]] = ()
    columns: ClassVar[tuple[str, ...]] = ("action", "reward")
    design: ClassVar[tuple[str, ...]] = ("payoffs",)
    separate: ClassVar[tuple[str, ...]] = ("context",)
    given: ClassVar[Given] = "action"
    span: ClassVar[tuple[float, float] | None] = None
    n_uniforms: ClassVar[int] = 1
    n_actions: ClassVar[int | None] = None
    remembers: ClassVar[bool] = True
    selection: ClassVar[Selection | None] = None
    recommended: ClassVar[Any] = Recommended()
    prepare: ClassVar[
        staticmethod[[Integers, Integers, Mapping[str, Array], bool], Prepared] | None
    ] = None
    log_likelihood: ClassVar[Kernel]
    simulate: ClassVar[Kernel]

    def __init__(self, *, lapse: float = 0.0, actions: int | None = None, **values: float):
        self.theta: Array = self.parameters.vector(values, owner=type(self).__name__)
        if not LAPSE.support.contains(np.asarray(lapse)):
            raise ValueError(f"lapse lies in {LAPSE.support}; got {lapse:g}.")
        self.lapse = float(lapse)
        self.actions = 0 if self.given == "response" else actions or self.n_actions or 2
        self.reset()

    @classmethod
    def from_theta(cls, theta: Array, *, lapse: float = 0.0, actions: int | None = None) -> Agent:
        """Make the subject with parameter vector theta[P]."""
        named: Mapping[str, float] = dict(zip(cls.parameters.names, theta.tolist(), strict=True))
        return cls(lapse=lapse, actions=actions, **named)

    @classmethod
    def kernel(cls, n_actions: int) -> Kernel:
        """Return the compiled likelihood for so many actions, which compiled code can call."""
        return cls.log_likelihood

    @classmethod
    def reads(cls, columns: Mapping[str, Array], n_actions: int) -> dict[str, Array]:
        """Return what the likelihood reads, from the flat columns of trials, in its order."""
        return dict(columns)

    @classmethod
    def simulation(cls, environment: Environment) -> tuple[Kernel, tuple[str, ...]]:
        """Return what simulates the model in an experiment, and the tables that it reads."""
        return cls.simulate, cls.design

    @classmethod
    def check_plays(cls, environment: Environment) -> None:
        """Raise ValueError if this model cannot play the environment."""
        if not environment.feedback and ("reward" in cls.columns or "payoffs" in cls.design):
            raise ValueError(
                f"{cls.name} learns from rewards; {environment.name} pays none. "
                "Choose a model that does without, such as random_responder."
            )
        if environment.past == "none" and cls.remembers:
            raise ValueError(
                f"{cls.name} goes by earlier trials; those of {environment.name} stand alone, "
                "untold by later ones. Choose a model that does without, such as random_responder."
            )
        if cls.given != environment.given:
            raise ValueError(
                f"{cls.name} gives {_ASKED[cls.given]}; {environment.name} asks for "
                f"{_ASKED[environment.given]}. Choose another model."
            )
        (low, high), span = environment.response_range, cls.span
        if span is not None and (low, high) != span:
            raise ValueError(
                f"{cls.name} gives numbers from {span[0]:g} to {span[1]:g}; {environment.name} "
                f"asks for numbers from {low:g} to {high:g}. Choose another model."
            )
        shown = {*environment.fields.stimulus, *environment.fields.feedback, *ANSWERS}
        unknown = [name for name in cls.columns if name not in shown]
        unknown += [name for name in cls.design if name not in environment.drawn]
        if unknown:
            raise ValueError(
                f"{cls.name} goes by {unknown[0]!r}; trials of {environment.name} have no such "
                "thing. Choose another model."
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
        """Take in what the action brought; NaN if the trial pays no reward.

        Without an action it is -1. Where numbers are given the observation may hold that of the
        trial as "response": None if it is missing.
        """

    def probabilities(self, observation: Observation) -> Array:
        """Return the probability of each action, lapses included, [n_actions]."""
        p = self.action_probabilities(observation)
        return (1.0 - self.lapse) * p + self.lapse / len(p) if self.lapse else p

    def log_density(
        self, observation: Observation, response: float, action: int | None = None
    ) -> float:
        """Return the log density of a response, given the action if there is one; no lapses."""
        raise NotImplementedError(f"{self.name} gives no responses.")

    @abstractmethod
    def log_probability(
        self, observation: Observation, action: int | None, response: float | None
    ) -> float:
        """Return the log probability (density) of what is given on a trial, lapses included."""

    @abstractmethod
    def choose(self, observation: Observation, rng: np.random.Generator) -> Choice:
        """Draw what is given, using `n_uniforms` numbers."""
