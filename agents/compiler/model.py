"""What an author writes: one class with its parameters, what it remembers, and one trial."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import inf, log
from typing import Any, ClassVar, NamedTuple, Self
from weakref import WeakKeyDictionary

import numpy as np
from scipy.special import ndtri

from knownminds.agents.agent import Agent, Kernel
from knownminds.agents.parameters import Array, Parameter, Parameters
from knownminds.environments import answer_columns
from knownminds.environments.environment import Choice, Environment, Observation
from knownminds.environments.world import World

from .cache import folder_of, loaded, module_text
from .definition import SMALLEST, Law, log_mixed, probabilities
from .errors import explained
from .likelihood import Likelihood
from .simulation import Simulation
from .symbols import STATE, evaluated, new_graph, symbol
from .tracing import Definition, Shapes


class _Follows:
    """A class attribute that follows from the definition, by tracing it at the first use."""

    def __init__(self, value_of: Callable[[type[Model]], Any]):
        self.value_of = value_of

    def __get__(self, instance: object, owner: type[Model]) -> Any:
        return self.value_of(owner)


def _follows(value_of: Callable[[type[Model]], Any]) -> Any:
    return _Follows(value_of)


def _outlined(name: str) -> Any:
    return _follows(lambda model: model.outline()[name])


def _likelihood(model: type[Model]) -> Kernel:
    """Return the compiled likelihood, of any number of actions where the model leaves that open."""
    if model.n_actions is not None or model.given == "response":
        return model.compiled(model.n_actions or 2).log_likelihood

    def log_likelihood(theta: Any, lapse: Any, n_actions: int, *rest: Any) -> Any:
        return model.compiled(n_actions).log_likelihood(theta, lapse, n_actions, *rest)

    return log_likelihood


class Compiled(NamedTuple):
    """A compiled likelihood; the columns that it reads, and after them expressions of columns."""

    log_likelihood: Kernel
    columns: tuple[str, ...]
    hoisted: tuple[Any, ...]


@dataclass(frozen=True)
class Played:
    """A compiled simulation; called as kernels are, it returns [columns, places, LANES].

    Parameters
    ----------
    kernel : the function
    columns : names of what comes back: what is given, shown and paid, and "present"
    tables : the tables of the design that it takes after the uniforms
    noisy : whether it takes normal numbers as well
    remembers : whether the world remembers anything from trial to trial
    depends : whether what is given depends on that
    """

    kernel: Kernel
    columns: tuple[str, ...]
    tables: tuple[str, ...]
    noisy: bool
    remembers: bool
    depends: bool

    def __call__(
        self,
        theta: Any,
        lapse: Any,
        n_actions: int,
        row: Any,
        start: Any,
        uniforms: Any,
        *tables: Any,
    ) -> Array:
        """Play sequences; kernels have no quantile function, so that noise is made here."""
        noise = [ndtri(np.maximum(uniforms[:, 1], SMALLEST))] if self.noisy else []
        rates = np.zeros(len(theta)) if lapse is None else lapse
        values: Array = self.kernel(theta, rates, n_actions, row, start, uniforms, *noise, *tables)
        return values


# By class and number of actions, and for simulation by the world and its tables; not on the class,
# which may be sent to another process.
_compiled: WeakKeyDictionary[type[Model], dict[int, Compiled]] = WeakKeyDictionary()
_played: WeakKeyDictionary[type[Model], dict[Any, Played]] = WeakKeyDictionary()


class Model(Agent):
    """A model written once: parameters as class attributes, and one trial in plain NumPy.

    An author writes `begin`, `respond` and `update` (and `report`, where a number is given with an
    action). Run on symbols, at the first use, they become the likelihood with its exact gradient
    and the simulation; run on numbers they are the step agent. `check_agent` holds these against
    each other. Columns and tables are what the methods
    read. A subclass holds a parameter by setting it to a number, and ties some by properties.

    Attributes
    ----------
    n_actions
        How many actions there are, 2 unless said otherwise; None for any number, which is
        `self.actions` within the methods.
    given
        "either" where a trial asks for an action (`respond`) or for a number (`report`), as `acts`
        says; else it follows from the methods.
    kinds
        A column that tells kinds of trials apart, and its values: `trial.stage` is then a
        number, and `if trial.stage == 0` is decided when the kernel is made.
    mixes_lapses
        Whether the methods mix lapses in, where `self.lapse` is not None.
    """

    source: ClassVar[str] = ""
    summary: ClassVar[str] = ""
    parameters: ClassVar[Parameters] = Parameters()
    n_actions: ClassVar[int | None] = _follows(
        lambda model: None if model.given == "response" else 2
    )
    kinds: ClassVar[tuple[str, tuple[int, ...]] | None] = None
    mixes_lapses: ClassVar[bool] = False
    columns: ClassVar[tuple[str, ...]] = _outlined("columns")
    design: ClassVar[tuple[str, ...]] = ()  # the world of an experiment says which
    given: ClassVar[Any] = _outlined("given")
    span: ClassVar[tuple[float, float] | None] = _outlined("span")
    n_uniforms: ClassVar[int] = _outlined("n_uniforms")
    remembers: ClassVar[bool] = _outlined("remembers")
    log_likelihood: ClassVar[Any] = _follows(_likelihood)

    _outline: ClassVar[dict[str, Any] | None] = None
    _own: frozenset[str]  # names of an agent's attributes that are not remembered

    def __init_subclass__(cls, **options: Any) -> None:
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
                    declared.pop(name, None)  # one declared anew stands where it is declared anew
                    declared[name] = Parameter(**{**vars(value), "name": name})
                elif name in declared:  # a subclass holds it at a value, or ties it
                    del declared[name]
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
        if not cls.summary:
            cls.summary = (cls.__doc__ or "").strip().partition("\n")[0].rstrip(".")
        cls._outline = None

    @classmethod
    def outline(cls) -> dict[str, Any]:
        """Return what the definition says by itself, by attribute.

        Raises
        ------
        ValueError
            If it cannot be traced, with the line and what to write instead.
        """
        if cls._outline is None:
            declared = inspect.getattr_static(cls, "n_actions")
            with new_graph(), explained(cls):
                traced = cls._traced(declared if isinstance(declared, int) else 2)
                laws = [law for law in traced.laws if law is not None]
                moved = (
                    x is not symbol(n, STATE) for after in traced.afters for n, x in after.items()
                )
                cls._outline = {
                    "columns": traced.columns,  # that the likelihood reads, the answer first
                    "given": "response" if traced.laws[0] else "both" if laws else "action",
                    "n_uniforms": 2 if laws else 1,
                    "remembers": any(moved),
                    "span": laws[0].span if laws else None,
                }
        return cls._outline

    @classmethod
    def _traced(cls, actions: int) -> Likelihood:
        either = inspect.getattr_static(cls, "given") == "either"
        return Likelihood(Definition(cls, actions), either and cls.prepare is None)

    @classmethod
    def kernel_source(cls, actions: int | None = None) -> str:
        """Return the text of the likelihood, for so many actions."""
        return cls._printed(actions or cls.n_actions or 2)[0]

    @classmethod
    def _printed(cls, actions: int) -> tuple[str, Likelihood]:
        with new_graph(), explained(cls):
            traced = cls._traced(actions)
            about = f"Likelihood of {cls.name} for {actions} actions, from its definition."
            return module_text(about, traced.roots, traced.lines()), traced

    @classmethod
    def compiled(cls, actions: int) -> Compiled:
        """Return the likelihood for so many actions, compiled at its first call.

        Raises
        ------
        ValueError
            If the definition cannot be traced, with the line and what to write instead.
        """
        known = _compiled.setdefault(cls, {})
        if actions not in known:
            text, traced = cls._printed(actions)
            module = loaded(text, cls.name, folder_of(cls))
            known[actions] = Compiled(module.log_likelihood, traced.used, tuple(traced.hoisted))
        return known[actions]

    @classmethod
    def kernel(cls, n_actions: int) -> Kernel:
        """Return the compiled likelihood for so many actions, which compiled code can call."""
        if "log_likelihood" in vars(cls):
            by_hand: Kernel = cls.log_likelihood
            return by_hand
        return cls.compiled(cls.n_actions or n_actions or 2).log_likelihood

    @classmethod
    def reads(cls, columns: Mapping[str, Array], n_actions: int) -> dict[str, Array]:
        """Return the flat columns that the kernel takes, what follows from others calculated."""
        if "log_likelihood" in vars(cls):
            return super().reads(columns, n_actions)
        kernel = cls.compiled(cls.n_actions or n_actions or 2)
        shape = np.shape(next(iter(columns.values())))
        columns_read = {name: columns[name] for name in kernel.columns}
        for k, column in enumerate(evaluated(kernel.hoisted, columns)):
            columns_read[f"once_{k}"] = np.broadcast_to(np.asarray(column, dtype=float), shape)
        return columns_read

    @classmethod
    def simulation_source(cls, environment: Environment) -> str:
        """Return the text of the simulation in an experiment."""
        actions = cls.n_actions or environment.n_actions or 2
        return cls._printed_in(environment.world, environment.drawn, actions)[0]

    @classmethod
    def _printed_in(
        cls, world: type[World], shapes: Shapes, actions: int
    ) -> tuple[str, Simulation]:
        with new_graph(), explained(cls, world):
            traced = Simulation(cls, world, shapes, actions)
            about = f"Simulation of {cls.name} for {actions} actions, in {world.__name__}."
            return module_text(about, traced.roots, traced.lines()), traced

    @classmethod
    def simulation(cls, environment: Environment) -> tuple[Kernel, tuple[str, ...]]:
        """Return what simulates the model in an experiment, and the tables that it reads.

        Raises
        ------
        ValueError
            If the model or the world cannot be traced, or if the model tells trials apart that the
            world holds together.
        """
        actions = cls.n_actions or environment.n_actions or 2
        if "simulate" in vars(cls) and cls.design:  # one by hand
            by_hand: Kernel = cls.simulate
            return by_hand, cls.design
        played = cls.played_in(environment.world, environment.drawn, actions)
        crossed = _crossed(cls, environment) if played.remembers else None
        if crossed is not None and played.depends:
            raise ValueError(
                f"{cls.name} tells trials apart by {crossed!r}, and what {environment.name} shows "
                f"and pays depends on earlier trials of another {crossed!r}. Leave it out of "
                "`separate`."
            )
        if crossed is not None:  # what follows from the answers is shown by whole sessions alone
            played = replace(played, columns=played.columns[: len(answer_columns(environment))])
        return played, played.tables

    @classmethod
    def played_in(cls, world: type[World], shapes: Shapes, actions: int) -> Played:
        """Return what simulates the model in a world, by the shapes of the design's tables."""
        key = actions, world, tuple(sorted(shapes.items()))
        known = _played.setdefault(cls, {})
        if key not in known:
            text, traced = cls._printed_in(world, shapes, actions)
            module = loaded(text, f"{cls.name}_in_{world.__name__}", folder_of(cls))
            known[key] = Played(
                module.simulate, traced.columns, traced.tables, "response" in traced.given,
                traced.remembers, traced.depends,
            )  # fmt: skip
        return known[key]

    @classmethod
    def check_plays(cls, environment: Environment) -> None:
        """Raise ValueError also where rewards hang on what the model does not look at."""
        super().check_plays(environment)
        fields = environment.fields
        hang = [name for name in fields.dependent if name not in fields.hidden]
        if "reward" in cls.columns and hang and not set(hang) & set(cls.columns):
            raise ValueError(
                f"{cls.name} goes by rewards alone; those of {environment.name} hang on "
                f"{hang[0]!r} as well, which it does not look at. Choose another model."
            )

    # What an author writes.

    def begin(self) -> None:
        """Set what is remembered to what it is before the first trial.

        Written as ``begin(self, trial)`` it also has the columns of `separate`, which are the same
        in all of a sequence, as attributes of the trial.
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

    def update(self, trial: Any) -> None:
        """Change what is remembered by what the trial brought: `trial.action`, `trial.reward`."""

    # The step agent: the definition run on numbers.

    @classmethod
    def begins_by_columns(cls) -> bool:
        """Whether what is remembered at first depends on the columns of `separate`."""
        return len(inspect.signature(cls.begin).parameters) > 1

    @classmethod
    def with_values(cls, values: Mapping[str, Any], actions: int, trial: Any = None) -> Self:
        """Make one agent of the model: parameters as attributes, and what it remembers at first.

        `trial` has the columns that are the same in all of a sequence.
        """
        made = cls.__new__(cls)
        made.__dict__.update(values)
        made.actions = actions
        made._own = frozenset(made.__dict__) | {"_own"}
        made.begin(*([trial] if cls.begins_by_columns() else []))
        return made

    def remembered(self) -> dict[str, Any]:
        """Return what an agent remembers, by name."""
        return {k: v for k, v in self.__dict__.items() if k not in self._own}

    def __repr__(self) -> str:
        """Show the parameters."""
        return super().__repr__() if "theta" in vars(self) else f"an agent of {type(self).__name__}"

    def reset(self) -> None:
        """Forget everything."""
        self._agents: dict[tuple[Any, ...], Model] = {}

    def _agent_of(self, observation: Observation) -> Model:
        """Return the agent that remembers what came before, where this trial belongs."""
        key = tuple([observation[name] for name in self.separate if name in observation])
        if key not in self._agents:
            values = dict(zip(self.parameters.names, self.theta.tolist(), strict=True))
            self._agents[key] = self.with_values(values, self.actions or 2, _Row(observation))
        return self._agents[key]

    def _law(self, observation: Observation, action: int | None) -> Law:
        agent = self._agent_of(observation)
        if self.given == "response":
            law = agent.respond(_Row(observation))
        elif self.given != "action" and (action is not None or self.given == "either"):
            law = agent.report(_Row(observation, action=-1 if action is None else action))
        else:
            raise NotImplementedError(f"{self.name} gives no responses.")
        assert isinstance(law, Law)
        return law

    def action_probabilities(self, observation: Observation) -> Array:
        """Return the probability of each action before any lapse."""
        if self.given == "response":
            return np.array([])
        with np.errstate(all="ignore"):
            return np.array(probabilities(self._agent_of(observation).respond(_Row(observation))))

    def learn(self, observation: Observation, action: int, reward: float) -> None:
        """Take in what the action brought; a trial without an answer teaches nothing."""
        stated = observation.get("response", 0.0) is not None
        if action >= 0 or (self.given in ("response", "either") and stated):
            gone = {} if stated else {"response": -inf}  # as kernels have it
            brought = _Row(observation, action=action, reward=reward, **gone)
            with np.errstate(all="ignore"):
                self._agent_of(observation).update(brought)

    def log_density(
        self, observation: Observation, response: float, action: int | None = None
    ) -> float:
        """Return the log density of a response, given the action if there is one; no lapses."""
        with np.errstate(all="ignore"):
            return float(self._law(observation, action).log_density(response))

    def log_probability(
        self,
        observation: Observation,
        action: int | None,
        response: float | None,
    ) -> float:
        """Return the log probability (density) of what is given on a trial, lapses included."""
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
        """Draw what is given: an action with one uniform number; with a number, two."""
        lapse, given = self.lapse, self.given
        if given == "action":
            return first_above(self.action_probabilities(observation), rng.random(), lapse)
        u, second = rng.random(2).tolist()
        action = None
        if given == "either" and self._agent_of(observation).acts(_Row(observation)):
            return first_above(self.action_probabilities(observation), u, lapse)
        if given == "both":
            shares = self.action_probabilities(observation)
            if u < lapse:
                shares = np.full(len(shares), lapse / len(shares))
                action = first_above(shares, u, 0.0)
            else:
                action = first_above(shares * (1.0 - lapse), u - lapse, 0.0)
        with np.errstate(all="ignore"):
            law = self._law(observation, action)
            noise = float(ndtri(max(second, SMALLEST)))
            response = float(law.lapse_at(second) if u < lapse else law.at(noise))
        return response if action is None else (action, response)


class _Row:
    """A trial on numbers: its columns as attributes, whole numbers as such."""

    def __init__(self, observation: Observation, **known: Any):
        self._observation = observation
        self.__dict__.update(known)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self._observation:
            raise AttributeError(f"the trial has no {name!r}")
        value = self._observation[name]
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        self.__dict__[name] = value
        return value


def first_above(shares: Array, u: float, lapse: float) -> int:
    """Return the first action whose cumulative probability, lapses mixed in, exceeds u."""
    below, each = 0.0, lapse / len(shares)
    for action, share in enumerate(shares[:-1].tolist()):
        below += (1.0 - lapse) * share + each
        if u < below:
            return action
    return len(shares) - 1


# Names that a parameter must not have, besides those of every agent.
_OWN = ("theta", "lapse", "actions", "action", "reward", "response", "trial")


def _crossed(model: type[Model], environment: Environment) -> str | None:
    """Return a column by which a model tells trials apart that a world holds together."""
    span = environment.world.span
    tables = environment.tables(np.full((1, environment.n_draws), 0.5))
    within = np.ones(environment.n_trials - 1, dtype=bool)
    if span is not None:
        within = np.diff(tables[span][0]) == 0
    for name in model.separate:
        if name in tables and (np.diff(tables[name][0])[within] != 0).any():
            return name
    return None
