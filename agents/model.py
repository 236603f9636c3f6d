"""The class of a model: an author writes its parameters, its memory, and one trial."""

from __future__ import annotations

import inspect
import re
from abc import ABCMeta
from collections.abc import Callable, Mapping, Sequence
from contextvars import copy_context
from dataclasses import dataclass
from functools import lru_cache
from math import inf, log
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from knownminds.environments.environment import Environment
from knownminds.environments.turn import Choice, Observation

from .compiler.definition import SMALLEST, Law, log_mixed, probabilities
from .compiler.kernels import Kernel, likelihood_of, order_of, outline, simulation_of
from .compiler.symbols import evaluated
from .parameters import LAPSE, Array, Parameter, Parameters
from .recommended_design import Recommended

Integers = NDArray[np.int64]
Prepared = tuple[Integers, Integers, Mapping[str, Array]]  # subject, sequence, columns of places

ANSWERS = ("action", "response", "reward")  # columns of trials that are not shown
# Where NumPy does not warn of infinite numbers; entered in a tenth of the time of `errstate`.
with np.errstate(all="ignore"):
    _SILENT = copy_context()
_ASKED = {
    "action": "an action",
    "response": "a number",
    "both": "an action and a number",
    "either": "an action on some trials and a number on the others",
}


@dataclass(frozen=True)
class Selection:
    """The trials to which a model is fitted unless all trials are requested.

    Parameters
    ----------
    column, value : The trials are those with this value in this column.
    trials : The name of these trials, such as "first free choices".
    reason : Why the other trials are left out, in a sentence.
    """

    column: str
    value: float
    trials: str
    reason: str

    def of(self, columns: Any, owner: str) -> NDArray[np.bool_]:
        """Return a mask of the trials that are fitted, from columns or a frame.

        Raises ValueError if the column that tells them is missing.
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
        """Return a sentence that says which trials were fitted, and why."""
        if all_trials:
            return (
                f"All trials were fitted, not the {self.trials} alone (--all-trials). {self.reason}"
            )
        return f"Only the {self.trials} were fitted (--all-trials takes all). {self.reason}"


class _Follows:
    """A class attribute that follows from the definition, which is traced at the first use."""

    def __init__(self, value_of: Callable[[type[Model]], Any]):
        self.value_of = value_of

    def __get__(self, instance: object, owner: type[Model]) -> Any:
        return self.value_of(owner)


def _follows(value_of: Callable[[type[Model]], Any]) -> Any:
    return _Follows(value_of)


def _outlined(name: str) -> Any:
    return _follows(lambda model: outline(model)[name])


def _likelihood(model: type[Model]) -> Kernel:
    """Return the likelihood; its functions are compiled at their first use."""

    def log_likelihood(theta: Any, lapse: Any, n_actions: int, *rest: Any) -> Any:
        return model.kernel(n_actions, lapse is not None)(theta, lapse, n_actions, *rest)

    return log_likelihood


class Model(metaclass=ABCMeta):  # tells mypy that models are hashable
    """A generative model of behaviour; an instance is one subject with known parameters.

    An author writes parameters as class attributes, and `begin`, `respond` and `update` in plain
    NumPy (also `report`, if a number is given with an action). At the first use these methods run
    on symbols and become the likelihood, with its exact gradient, and the simulation. On numbers
    they are the step agent. `check_agent` compares all of these. A subclass may fix a parameter by
    setting it to a number, and may tie parameters by properties.

    A model whose work per trial has no fixed size also brings its two kernels, compiled functions
    of arrays, as static methods:

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
    columns : Trial columns that the likelihood reads; they follow from the methods.
    design : Entries of the design table that `simulate` reads.
    separate : Stimulus columns across which nothing is carried over: the model has one state per
        value.
    order : Columns that the likelihood reads. It is fastest if trials are ordered by them, the last
        column first. Empty for a model that remembers, which reads trials in order of time.
    given : What the model gives on a trial: an "action", a "response" (a number), or "both", which
        follows from the methods. "either" if a trial asks for an action (`respond`) or for a number
        (`report`), as `acts` says; an int is then an action and a float a number.
    span : The range of the numbers that the model gives; None for any range.
    n_uniforms : How many uniform numbers a trial takes.
    n_actions : How many actions there are, 2 unless stated; None for any number, which methods find
        in `self.actions`.
    remembers : Whether earlier trials change what the model does.
    kinds : A column that tells kinds of trials apart, with its values. `trial.stage`, for instance,
        is then a number, and `if trial.stage == 0` is decided when the kernel is made.
    mixes_lapses : Whether the methods themselves mix lapses in, if `self.lapse` is not None.
    starts : Values of some parameters, on the natural scale, from which searches for estimates also
        start, besides the starts that every model has. The other parameters start at their prior
        means.
    selection : The trials to which the model is fitted unless all are requested; None for all.
    nested_in : The name of a model whose parameters, some of them fixed or tied, this one has; ""
        for none.
    contains : By the name of a model that lies within this one otherwise, the values of the
        parameters at which it does, see `Nesting`.
    last_parameters : The names of parameters that stand behind all others, in variants of the model
        as well.
    recommended : The design that recovers its parameters.
    prepare : A preparation of trials, done once before any likelihood: (subject [trials], sequence
        [trials], columns, whether lapses are mixed in) -> (subject [places], sequence [places],
        columns that the likelihood reads instead). Places of a sequence stay in order of time. None
        if the likelihood reads the trials themselves.
    """

    name: ClassVar[str]
    summary: ClassVar[str] = ""
    source: ClassVar[str] = ""
    parameters: ClassVar[Parameters] = Parameters()
    starts: ClassVar[Sequence[Mapping[str, float]]] = ()
    columns: ClassVar[tuple[str, ...]] = _outlined("columns")
    design: ClassVar[tuple[str, ...]] = ()
    separate: ClassVar[tuple[str, ...]] = ("context",)
    order: ClassVar[tuple[str, ...]] = _follows(
        lambda model: () if model.by_hand() else order_of(model)
    )
    given: ClassVar[Any] = _outlined("given")
    span: ClassVar[tuple[float, float] | None] = _outlined("span")
    n_uniforms: ClassVar[int] = _outlined("n_uniforms")
    n_actions: ClassVar[int | None] = _follows(
        lambda model: None if model.given == "response" else 2
    )
    remembers: ClassVar[bool] = _outlined("remembers")
    kinds: ClassVar[tuple[str, tuple[int, ...]] | None] = None
    mixes_lapses: ClassVar[bool] = False
    selection: ClassVar[Selection | None] = None
    nested_in: ClassVar[str] = ""
    contains: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    last_parameters: ClassVar[tuple[str, ...]] = ()
    recommended: ClassVar[Any] = Recommended()
    prepare: ClassVar[
        staticmethod[[Integers, Integers, Mapping[str, Array], bool], Prepared] | None
    ] = None
    log_likelihood: ClassVar[Any] = _follows(_likelihood)
    simulate: ClassVar[Any] = None

    _outline: ClassVar[dict[str, Any]]
    _order: ClassVar[tuple[str, ...]]
    _own: frozenset[str]  # names of attributes that an agent does not count as its memory

    def __init_subclass__(cls, **options: Any) -> None:
        """Gather the parameters of a class, and name it."""
        super().__init_subclass__(**options)
        if "world" in vars(cls):
            raise TypeError(
                f"{cls.__name__} has a world; what happens between trials is said once, beside the "
                "experiment (`Environment.world`), and a model is played in any. Leave it out."
            )
        declared: dict[str, Parameter] = {}
        for base in reversed(cls.__mro__):
            for name, value in vars(base).items():
                if isinstance(value, Parameter):
                    declared.pop(name, None)  # a parameter declared anew stands at its new position
                    declared[name] = Parameter(**{**vars(value), "name": name})
                elif name in declared:  # a subclass fixes or ties this parameter
                    del declared[name]
        for name in filter(declared.__contains__, cls.last_parameters):
            declared[name] = declared.pop(name)
        every = {name for base in Model.__mro__ for name in vars(base)} | set(_OWN)
        taken = [name for name in declared if name in every]
        if taken:
            raise ValueError(
                f"{cls.__name__} calls a parameter {taken[0]!r}, as something is called that every "
                "model has; give it another name."
            )
        if "parameters" not in vars(cls):
            cls.parameters = Parameters(*declared.values())
        if "name" not in vars(cls):
            cls.name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", cls.__name__).lower()
        if "action_probabilities" in vars(cls):  # a model that says them chooses by them
            cls._shares = cls._stated_shares
        if not cls.summary:
            cls.summary = (cls.__doc__ or "").strip().partition("\n")[0].rstrip(".")

    # An author writes the following methods.

    def begin(self) -> None:  # noqa: B027
        """Set the memory to its state before the first trial.

        Written as ``begin(self, trial)``, it also gets the columns of `separate`, as attributes of
        the trial; they are the same in all of a sequence.
        """

    def respond(self, trial: Any) -> Any:
        """Return utilities of the actions, log odds of action 1, `Probabilities`, or a `Law`."""
        raise NotImplementedError(f"{type(self).__name__} needs a method respond(self, trial)")

    def report(self, trial: Any) -> Any:
        """Return the `Law` of a number that is given with the action, `trial.action`."""
        raise NotImplementedError(f"{type(self).__name__} gives no number with an action")

    def acts(self, trial: Any) -> Any:
        """Say whether a trial asks for an action, in a model whose `given` is "either"."""
        raise NotImplementedError(f"{type(self).__name__} needs a method acts(self, trial)")

    @classmethod
    def reports(cls) -> bool:
        """Say whether a number is given with each action."""
        return cls.report is not Model.report

    def update(self, trial: Any) -> None:  # noqa: B027
        """Change the memory by what the trial brought: `trial.action`, `trial.reward`."""

    @classmethod
    def by_hand(cls) -> bool:
        """Say whether the model brings a likelihood of its own instead of using the definition."""
        return not isinstance(inspect.getattr_static(cls, "log_likelihood"), _Follows)

    @classmethod
    def kernel(cls, n_actions: int, lapse: bool) -> Kernel:
        """Return the compiled likelihood for a number of actions, in a form that compiled code can
        call.

        `lapse` says whether it is called with lapse rates, or with None.
        """
        if cls.by_hand():
            by_hand: Kernel = cls.log_likelihood
            return by_hand
        compiled = likelihood_of(cls, n_actions)
        return compiled.with_lapses if lapse else compiled.without_lapses

    @classmethod
    def reads(cls, columns: Mapping[str, Array], n_actions: int) -> dict[str, Array]:
        """Return the arguments of the kernel in its order, given the flat columns of trials.

        Arguments that follow from several columns are computed.
        """
        if cls.by_hand():
            return dict(columns)
        kernel = likelihood_of(cls, n_actions)
        shape = np.shape(next(iter(columns.values())))
        columns_read = {name: columns[name] for name in kernel.columns}
        for k, column in enumerate(evaluated(kernel.hoisted, columns)):
            columns_read[f"once_{k}"] = np.broadcast_to(np.asarray(column, dtype=float), shape)
        return columns_read

    @classmethod
    def simulation(cls, environment: Environment) -> tuple[Kernel, tuple[str, ...]]:
        """Return the simulation of the model in an experiment, and the tables that it reads."""
        if cls.simulate is not None:
            return cls.simulate, cls.design
        played = simulation_of(cls, environment)
        return played, played.tables

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
                f"{cls.name} needs earlier trials; trials of {environment.name} stand alone, and "
                "later ones do not show them. Choose a model without memory, such as "
                "random_responder."
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
        fields = environment.fields
        hang = [name for name in fields.dependent if name not in fields.hidden]
        if "reward" in cls.columns and hang and not set(hang) & set(cls.columns):
            raise ValueError(
                f"{cls.name} goes by rewards alone; those of {environment.name} depend on "
                f"{hang[0]!r} as well, which it does not read. Choose another model."
            )

    @classmethod
    def plays(cls, environment: Environment) -> bool:
        """Say whether this model can play the environment."""
        try:
            cls.check_plays(environment)
        except ValueError:
            return False
        return True

    # The step agent is the definition, run on numbers.

    def __init__(self, *, lapse: float = 0.0, actions: int | None = None, **values: float):
        self.theta: Array = self.parameters.vector(values, owner=type(self).__name__)
        if not LAPSE.support.contains(np.asarray(lapse)):
            raise ValueError(f"lapse lies in {LAPSE.support}; got {lapse:g}.")
        self.lapse = float(lapse)
        self._given = self.given
        self.actions = 0 if self._given == "response" else actions or self.n_actions or 2
        self.reset()

    @classmethod
    def from_theta(cls, theta: Array, *, lapse: float = 0.0, actions: int | None = None) -> Self:
        """Make the subject with parameter vector theta[P]."""
        named: Mapping[str, float] = dict(zip(cls.parameters.names, theta.tolist(), strict=True))
        return cls(lapse=lapse, actions=actions, **named)

    @classmethod
    def with_values(cls, values: Mapping[str, Any], actions: int, trial: Any = None) -> Self:
        """Return one agent of the model: parameters as attributes, and its memory at first.

        `trial` has the columns that are the same in all of a sequence.
        """
        made = cls.__new__(cls)
        made.__dict__.update(values)
        made.actions = actions
        made._own = frozenset(made.__dict__) | {"_own"}
        begin: Callable[..., None] = made.begin
        begin(*([trial] if _begins_by_trial(cls.begin) else []))
        return made

    def remembered(self) -> dict[str, Any]:
        """Return the memory of an agent, by name."""
        return {k: v for k, v in self.__dict__.items() if k not in self._own}

    def __repr__(self) -> str:
        if "theta" not in vars(self):
            return f"an agent of {type(self).__name__}"
        pairs = zip(self.parameters.names, self.theta, strict=True)
        values = ", ".join(f"{name}={value:.4g}" for name, value in pairs)
        return f"{type(self).__name__}({values})"

    def reset(self) -> None:
        """Forget everything."""
        self._agents: dict[tuple[Any, ...], Model] = {}

    def _agent_of(self, observation: Observation) -> Model:
        """Return the agent with the memory of this trial's sequence."""
        key = tuple(map(observation.get, self.separate))
        agent = self._agents.get(key)
        if agent is None:
            values = dict(zip(self.parameters.names, self.theta.tolist(), strict=True))
            agent = self.with_values(values, self.actions or 2, _Row(observation))
            self._agents[key] = agent
        return agent

    def _responded(self, observation: Observation) -> list[float]:
        return probabilities(self._agent_of(observation).respond(_Row(observation)))

    _shares = _responded  # by which it chooses

    def _stated_shares(self, observation: Observation) -> list[float]:
        return [float(p) for p in self.action_probabilities(observation)]

    def _updated(self, brought: _Row) -> None:
        self._agent_of(brought._observation).update(brought)

    def _law(self, observation: Observation, action: int | None) -> Law:
        agent = self._agent_of(observation)
        if self._given == "response":
            law = agent.respond(_Row(observation))
        elif self._given != "action" and (action is not None or self._given == "either"):
            trial = _Row(observation)
            trial.action = -1 if action is None else action
            law = agent.report(trial)
        else:
            raise NotImplementedError(f"{self.name} gives no responses.")
        assert isinstance(law, Law)
        return law

    def action_probabilities(self, observation: Observation) -> Array:
        """Return the probability of each action before any lapse."""
        if self._given == "response":
            return np.array([])
        return np.array(_SILENT.copy().run(self._responded, observation))

    def learn(self, observation: Observation, action: int, reward: float) -> None:
        """Learn from what the action brought; a trial without an answer teaches nothing."""
        stated = observation.get("response", 0.0) is not None
        if action >= 0 or (self._given in ("response", "either") and stated):
            brought = _Row(observation)
            brought.action, brought.reward = action, reward
            if not stated:
                brought.response = -inf  # kernels have this for a missing response
            _SILENT.copy().run(self._updated, brought)

    def probabilities(self, observation: Observation) -> Array:
        """Return the probability of each action, lapses included, [n_actions]."""
        p = self.action_probabilities(observation)
        return (1.0 - self.lapse) * p + self.lapse / len(p) if self.lapse else p

    def log_density(
        self, observation: Observation, response: float, action: int | None = None
    ) -> float:
        """Return the log density of a response, given any action with it; without lapses."""
        with np.errstate(all="ignore"):
            return float(self._law(observation, action).log_density(response))

    def log_probability(
        self, observation: Observation, action: int | None, response: float | None
    ) -> float:
        """Return the log probability (density) of the answer on a trial, lapses included."""
        shares = self.action_probabilities(observation) if action is not None else np.ones(1)
        if response is None:
            shares = (1.0 - self.lapse) * shares + self.lapse / len(shares)
        share = float(shares[action or 0])
        log_share = log(share) if share > 0.0 else -inf
        if response is None:
            return log_share
        with np.errstate(all="ignore"):
            law = self._law(observation, action)
            log_share += float(law.log_density(response))
            if not self.lapse:
                return log_share
            return log_mixed(
                log_share, float(law.lapse_density(response)) / len(shares), self.lapse
            )

    def choose(self, observation: Observation, rng: np.random.Generator) -> Choice:
        """Draw an answer: an action takes one uniform number, an answer with a number takes two."""
        lapse, given = self.lapse, self._given
        if given == "action":
            shares = _SILENT.copy().run(self._shares, observation)
            return first_above(shares, rng.random(), lapse)
        u, second = rng.random(2).tolist()
        action = None
        if given == "either" and self._agent_of(observation).acts(_Row(observation)):
            return first_above(_SILENT.copy().run(self._shares, observation), u, lapse)
        if given == "both":
            shares = _SILENT.copy().run(self._shares, observation)
            if u < lapse:
                action = first_above([lapse / len(shares)] * len(shares), u, 0.0)
            else:
                action = first_above([p * (1.0 - lapse) for p in shares], u - lapse, 0.0)
        with np.errstate(all="ignore"):
            law = self._law(observation, action)
            noise = float(ndtri(max(second, SMALLEST)))
            response = float(law.lapse_at(second) if u < lapse else law.at(noise))
        return response if action is None else (action, response)


class _Row:
    """A trial on numbers: its columns are attributes, and whole numbers are ints."""

    action: int
    reward: float
    response: float

    def __init__(self, observation: Observation):
        self._observation = observation

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self._observation:
            raise AttributeError(f"the trial has no {name!r}")
        value = self._observation[name]
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        self.__dict__[name] = value
        return value


def first_above(shares: Sequence[float], u: float, lapse: float) -> int:
    """Return the first action whose cumulative probability, lapses mixed in, exceeds u."""
    below, each, last = 0.0, lapse / len(shares), len(shares) - 1
    for action in range(last):
        below += (1.0 - lapse) * shares[action] + each
        if u < below:
            return action
    return last


@lru_cache
def _begins_by_trial(begin: Callable[..., None]) -> bool:
    return len(inspect.signature(begin).parameters) > 1


# A parameter must not have these names, nor those of attributes that every agent has.
_OWN = ("theta", "lapse", "actions", "action", "reward", "response", "trial")
