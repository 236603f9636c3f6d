"""What an author writes: one class with its parameters, what it remembers, and one trial."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import inf, log
from types import SimpleNamespace
from typing import Any, ClassVar, Self
from weakref import WeakKeyDictionary

import numpy as np
from scipy.special import ndtri

from knownminds.agents.agent import Agent, Kernel
from knownminds.agents.parameters import Array, Parameter, Parameters
from knownminds.environments.environment import Choice, Environment, Observation
from knownminds.environments.world import Payoffs, World

from . import expressions as ex
from .cache import folder_of, loaded, simulation_source, source
from .checking import check_kernels, check_simulation
from .definition import SMALLEST, Law, log_mixed, shares
from .program import Program, Shapes, trace

PRINTED = ("log_likelihood", "begin", "respond", "report", "update", "quantile", "prepared")


@dataclass(frozen=True)
class Outline:
    """What a definition tells by itself, for so many actions."""

    columns: tuple[str, ...]
    given: str
    n_uniforms: int
    remembers: bool
    span: tuple[float, float] | None


class _Told:
    """A class attribute that the definition tells, by tracing it at the first use."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: object, owner: type[Model]) -> Any:
        return getattr(owner.outline(), self.name)


class _Actions:
    """How many actions there are where an author does not say: two, and any if there are none."""

    def __get__(self, instance: object, owner: type[Model]) -> int | None:
        return None if owner.given == "response" else 2


class _Prepare:
    """What is reckoned once of columns, as a class attribute; None where nothing is."""

    def __get__(self, instance: object, owner: type[Model]) -> Any:
        if owner is Model or (owner.n_actions is None and owner.given != "response"):
            return None
        prepared = getattr(owner.kernels(owner.n_actions or 2), "prepared", None)
        if prepared is None:
            return None

        def prepare(subject: Any, sequence: Any, columns: tuple[Array, ...], lapse: bool) -> Any:
            with np.errstate(all="ignore"):
                return subject, sequence, prepared(*columns)

        return prepare


class _Kernel:
    """A kernel as a class attribute: traced, printed and checked at the first use."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: object, owner: type[Model]) -> Any:
        if owner.n_actions is not None or owner.given == "response":
            return getattr(owner.kernels(owner.n_actions or 2), self.name)

        def kernel(theta: Any, lapse: Any, n_actions: int, *rest: Any) -> Any:
            return getattr(owner.kernels(n_actions), self.name)(theta, lapse, n_actions, *rest)

        return kernel


class _Simulate:
    """The simulation where actions pay what a table "payoffs" holds; see `Model.simulation`."""

    def __get__(self, instance: object, owner: type[Model]) -> Any:
        def kernel(theta: Any, lapse: Any, n_actions: int, *rest: Any) -> Any:
            actions = owner.n_actions or n_actions or 2
            world, shapes = (Payoffs, {"payoffs": (actions,)}) if n_actions else (World, {})
            return owner.played_in(world, shapes, actions)[0](theta, lapse, n_actions, *rest)

        return kernel


# By class and number of actions, and for simulation by the world and its tables; not on the class,
# which may be sent to another process.
_kernels: WeakKeyDictionary[type[Model], dict[int, Any]] = WeakKeyDictionary()
_simulations: WeakKeyDictionary[type[Model], dict[Any, Any]] = WeakKeyDictionary()


def _told() -> Any:
    return _Told()


def _kernel() -> Any:
    return _Kernel()


def _prepare() -> Any:
    return _Prepare()


def _two_or_any() -> Any:
    return _Actions()


class Model(Agent):
    """A mind written once: parameters as class attributes, and one trial in plain NumPy.

    An author writes `begin`, `respond` and `update` (and `report`, where a number is given with an
    action). Run on symbols, at the first use, they become
    the likelihood with its exact gradient, the simulation, and the step agent in plain Python; run
    on numbers they are what all three are held against. Columns and tables are what the methods
    read. A subclass holds a parameter by setting it to a number, and ties some by properties.

    Attributes
    ----------
    n_actions
        How many actions there are, 2 unless said otherwise; None for any number, which is
        `self.actions` within the methods.
    kinds
        A column that tells kinds of trials apart, and its values: `trial.stage` is then a
        number, and `if trial.stage == 0` is decided when the kernel is made.
    """

    source: ClassVar[str] = ""
    summary: ClassVar[str] = ""
    parameters: ClassVar[Parameters] = Parameters()
    n_actions: ClassVar[int | None] = _two_or_any()
    kinds: ClassVar[tuple[str, tuple[int, ...]] | None] = None
    columns: ClassVar[tuple[str, ...]] = _told()
    design: ClassVar[tuple[str, ...]] = ()  # the world of an experiment says which
    given: ClassVar[Any] = _told()
    span: ClassVar[tuple[float, float] | None] = _told()
    n_uniforms: ClassVar[int] = _told()
    remembers: ClassVar[bool] = _told()
    prepare: ClassVar[Any] = _prepare()
    log_likelihood: ClassVar[Any] = _kernel()
    simulate: ClassVar[Any] = _Simulate()

    _outline: ClassVar[Outline | None] = None
    _own: frozenset[str]  # names of a mind's attributes that are not remembered

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "world" in vars(cls):
            raise TypeError(
                f"{cls.__name__} has a world; what happens between trials is said once, beside the "
                "experiment (`Environment.world`), and a model is played in any. Leave it out."
            )
        found: dict[str, Parameter] = {}
        for base in reversed(cls.__mro__):
            for name, value in vars(base).items():
                if isinstance(value, Parameter):
                    found.pop(name, None)  # one declared anew stands where it is declared anew
                    found[name] = Parameter(**{**vars(value), "name": name})
                elif name in found:  # a subclass holds it at a value, or ties it
                    del found[name]
        every = {name for base in Model.__mro__ for name in vars(base)} | set(_OWN)
        taken = [name for name in found if name in every]
        if taken:
            raise ValueError(
                f"{cls.__name__} calls a parameter {taken[0]!r}, as something is called that every "
                "model has; give it another name."
            )
        if "parameters" not in vars(cls):
            cls.parameters = Parameters(*found.values())
        if "name" not in vars(cls):
            cls.name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", cls.__name__).lower()
        if not cls.summary:
            cls.summary = (cls.__doc__ or "").strip().partition("\n")[0].rstrip(".")
        cls._outline = None

    @classmethod
    def outline(cls) -> Outline:
        """Return what the definition tells by itself."""
        if cls._outline is None:
            with ex.new_graph():
                declared = inspect.getattr_static(cls, "n_actions")
                program = trace(cls, declared if isinstance(declared, int) else 2)
                number = program.kinds[0].number
                cls._outline = Outline(
                    program.columns,
                    program.given,
                    2 if number else 1,
                    program.remembers,
                    number.law.span if number and number.law else None,
                )
        return cls._outline

    @classmethod
    def kernel_source(cls, actions: int | None = None) -> str:
        """Return the text of the likelihood and the step agent, for so many actions."""
        with ex.new_graph():
            return source(trace(cls, actions or cls.n_actions or 2))

    @classmethod
    def simulation_source(cls, environment: Environment) -> str:
        """Return the text of the simulation in an experiment."""
        actions = cls.n_actions or environment.n_actions or 2
        with ex.new_graph():
            return simulation_source(trace(cls, actions, environment.world, environment.drawn))

    @classmethod
    def simulation(cls, environment: Environment) -> tuple[Kernel, tuple[str, ...]]:
        """Return what simulates the model in an experiment, and the tables that it reads.

        Raises
        ------
        ValueError
            If the model or the world cannot be traced, if what the kernel plays is something else
            than what they do, or if the model tells trials apart that the world holds together.
        """
        actions = cls.n_actions or environment.n_actions or 2
        if not isinstance(inspect.getattr_static(cls, "simulate"), _Simulate):  # one by hand
            with ex.new_graph():
                read = trace(cls, actions, environment.world, environment.drawn).design
            return cls.simulate, cls.design or read
        kernel, program = cls.played_in(environment.world, environment.drawn, actions)
        if program.world_goes_on:
            _check_stretches(cls, environment)
        return kernel, program.design

    @classmethod
    def played_in(cls, world: type[World], shapes: Shapes, actions: int) -> tuple[Kernel, Program]:
        """Return the kernel that simulates the model in a world, and what it was printed from."""
        key = actions, world, tuple(sorted(shapes.items()))
        known = _simulations.setdefault(cls, {})
        if key not in known:
            with ex.new_graph():
                program = trace(cls, actions, world, shapes)
                text = simulation_source(program)
            module = loaded(
                text,
                f"{cls.name}_in_{world.__name__}",
                folder_of(cls),
                lambda: check_simulation(cls, text, actions, world, shapes),
            )
            numbers = program.given != "action"
            known[key] = _with_noise(module.simulate) if numbers else module.simulate, program
        found: tuple[Kernel, Program] = known[key]
        return found

    @classmethod
    def kernels(cls, actions: int) -> Any:
        """Return the printed functions for so many actions, and what is made of their numbers.

        Raises
        ------
        ValueError
            If the definition cannot be traced, or its kernels do something else than it does.
        """
        known = _kernels.setdefault(cls, {})
        if actions not in known:
            with ex.new_graph():
                program = trace(cls, actions)
                text, kind = source(program), program.kinds[0]
            module = loaded(
                text, cls.name, folder_of(cls), lambda: check_kernels(cls, text, actions)
            )
            own = {name: value for name, value in vars(module).items() if name in PRINTED}
            law = kind.number.law if kind.number else None
            known[actions] = SimpleNamespace(
                **own,
                law=law,
                stated=kind.outcome.stated,
                acts=kind.outcome.law is None,
                begun_by=program.begun_by,
            )
        return known[actions]

    @classmethod
    def compiled(cls, actions: int) -> Any:
        """Return the printed functions for so many actions, `log_likelihood` among them."""
        return cls.kernels(actions)

    @classmethod
    def reads(cls, columns: Mapping[str, Array], n_actions: int) -> dict[str, Array]:
        """Return what the kernel reads of flat columns, in its order."""
        names = cls.outline().columns
        found = tuple(columns[name] for name in names)
        prepared = getattr(cls.kernels(n_actions), "prepared", None)
        if prepared is None:
            return dict(zip(names, found, strict=True))
        with np.errstate(all="ignore"):
            return {f"column_{k}": column for k, column in enumerate(prepared(*found))}

    @classmethod
    def kernel(cls, n_actions: int) -> Any:
        """Return the compiled likelihood for so many actions."""
        if "log_likelihood" in vars(cls):
            return cls.log_likelihood
        return cls.kernels(n_actions if cls.given == "action" else 2).log_likelihood

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

    @classmethod
    def reports(cls) -> bool:
        """Say whether a number is given with each action."""
        return cls.report is not Model.report

    def update(self, trial: Any) -> None:
        """Change what is remembered by what the trial brought: `trial.action`, `trial.reward`."""

    # The step agent.

    @classmethod
    def begins_by_columns(cls) -> bool:
        """Whether what is remembered at first hangs on the columns of `separate`."""
        return len(inspect.signature(cls.begin).parameters) > 1

    @classmethod
    def mind(cls, values: Mapping[str, Any], actions: int, trial: Any = None) -> Self:
        """Make one mind of the model: parameters as attributes, and what it remembers at first.

        `trial` has the columns that are the same in all of a sequence.
        """
        made = cls.__new__(cls)
        made.__dict__.update(values)
        made.actions = actions
        made._own = frozenset(made.__dict__) | {"_own"}
        made.begin(*([trial] if cls.begins_by_columns() else []))
        return made

    def remembered(self) -> dict[str, Any]:
        """Return what a mind remembers, by name."""
        return {k: v for k, v in self.__dict__.items() if k not in self._own}

    def __repr__(self) -> str:
        """Show the parameters."""
        return super().__repr__() if "theta" in vars(self) else f"a mind of {type(self).__name__}"

    def reset(self) -> None:
        """Forget everything."""
        self._made = type(self).kernels(self.actions or 2)
        self._values = self.theta.tolist()
        self._states: dict[tuple[Any, ...], list[float]] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Leave the functions at home: they are made again where this is read."""
        return {name: value for name, value in self.__dict__.items() if name != "_made"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Find the functions again."""
        self.__dict__.update(state)
        self._made = type(self).kernels(self.actions or 2)

    def _state(self, observation: Observation) -> list[float]:
        """Return what is remembered where this trial belongs."""
        place = tuple([observation[name] for name in self.separate if name in observation])
        found = self._states.get(place)
        if found is None:
            told = [observation] if self._made.begun_by else []
            found = self._states[place] = self._made.begin(self._values, *told)
        return found

    def _shares(self, observation: Observation) -> list[float]:
        parts = self._made.respond(self._values, self._state(observation), observation)
        return list(parts) if self._made.stated else shares(parts)

    def action_probabilities(self, observation: Observation) -> Array:
        """Return the probability of each action before any lapse."""
        return np.array(self._shares(observation) if self._made.acts else [])

    def learn(self, observation: Observation, action: int, reward: float) -> None:
        """Take in what the action brought; a trial without an answer teaches nothing."""
        if action >= 0 or (not self._made.acts and observation.get("response", 0.0) is not None):
            state = self._state(observation)
            self._made.update(self._values, state, observation, action, reward)

    def _law(self, observation: Observation, action: int | None) -> Law:
        seen = self._values, self._state(observation), observation
        if not self._made.acts:
            parts = self._made.respond(*seen)
        elif self._made.law is not None and action is not None:
            parts = self._made.report(*seen, action)
        else:
            raise NotImplementedError(f"{self.name} gives no responses.")
        law: Law = self._made.law(*parts)
        return law

    def log_density(
        self, observation: Observation, response: float, action: int | None = None
    ) -> float:
        """Return the log density of a response, given the action if there is one; no lapses."""
        return float(self._law(observation, action).log_density(response))

    def log_probability(
        self,
        observation: Observation,
        action: int | None,
        response: float | None,
        response_range: tuple[float, float] = (0.0, 1.0),
    ) -> float:
        """Return the log probability (density) of what is given on a trial, lapses included."""
        if response is None or not self.lapse:
            return super().log_probability(observation, action, response, response_range)
        found = self._shares(observation) if action is not None else [1.0]
        law = self._law(observation, action)
        share = found[action or 0]
        own = float(law.log_density(response)) + (log(share) if share > 0.0 else -inf)
        return log_mixed(own, float(law.lapse_density(response)) / len(found), self.lapse)

    def choose(self, observation: Observation, rng: np.random.Generator) -> Choice:
        """Draw what is given: an action with one uniform number; with a number, two."""
        made, lapse = self._made, self.lapse
        if made.law is None:
            return first_above(self._shares(observation), rng.random(), lapse)
        u, second = rng.random(2).tolist()
        lapsed, found = u < lapse, self._shares(observation) if made.acts else []
        action = None
        if lapsed and found:
            action = first_above([lapse / len(found)] * len(found), u, 0.0)
        elif found:
            action = first_above(found, u - lapse, 0.0, 1.0 - lapse)
        if lapsed:
            response = float(self._law(observation, action).lapse_at(second))
        else:
            noise = float(ndtri(max(second, SMALLEST)))
            seen = self._values, self._state(observation), observation
            response = float(made.quantile(*seen, action, noise))
        return response if action is None else (action, response)


def first_above(shares: list[float], u: float, lapse: float, whole: float = 1.0) -> int:
    """Return the first action whose cumulative probability, lapses mixed in, exceeds u.

    Probabilities sum to `whole`.
    """
    below, each = 0.0, lapse / len(shares)
    for action, share in enumerate(shares[:-1]):
        below += ((1.0 - lapse) * share + each) * whole
        if u < below:
            return action
    return len(shares) - 1


# Names that a parameter must not have, besides those of every agent.
_OWN = ("theta", "lapse", "actions", "minds", "action", "reward", "response", "trial")


def _check_stretches(model: type[Model], environment: Environment) -> None:
    """Raise ValueError if a model forgets between trials that a world holds together."""
    span = environment.world.span
    tables = environment.tables(np.full((1, environment.n_draws), 0.5))
    within = np.ones(environment.n_trials - 1, dtype=bool)
    if span is not None:
        within = np.diff(tables[span][0]) == 0
    for name in model.separate:
        if name in tables and (np.diff(tables[name][0])[within] != 0).any():
            raise ValueError(
                f"{model.name} tells trials apart by {name!r}, and what {environment.name} shows "
                f"and pays hangs on earlier trials of another {name!r}. Leave it out of `separate`."
            )


def _with_noise(simulate: Any) -> Any:
    """Hand a kernel the normal numbers of its uniforms, which it has no quantile function for."""

    def with_noise(
        theta: Any, lapse: Any, n_actions: int, row: Any, start: Any, uniforms: Any, *design: Any
    ) -> Any:
        noise = ndtri(np.maximum(uniforms[:, 1], SMALLEST))
        return simulate(theta, lapse, n_actions, row, start, uniforms, noise, *design)

    return with_noise
