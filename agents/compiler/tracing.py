"""Models and worlds run on symbols: what is answered, shown, paid and remembered on a trial."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from knownminds.environments.world import World, by_column

from .definition import Definable, Law, Probabilities
from .symbols import (
    DATA,
    PARAMETER,
    STATE,
    Expr,
    Symbols,
    UntraceableError,
    as_number,
    is_number,
    make,
    merged,
    number,
    select,
    symbol,
    within,
)

LAPSE = "lapse"

Shapes = Mapping[str, tuple[int, ...]]  # shapes of the tables' entries for a trial
State = dict[str, Expr]  # what is remembered, by flat names


class Trial:
    """A trial whose columns are symbols, made when they are read.

    Parameters
    ----------
    known : columns that are known already
    shapes : shapes of the columns that hold several numbers
    only : the names that may be read; None for all
    """

    def __init__(
        self,
        known: Mapping[str, Any] | None = None,
        shapes: Shapes | None = None,
        only: tuple[str, ...] | None = None,
    ):
        self.__dict__.update(known or {})
        self._shapes, self._only = dict(shapes or {}), only

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if self._only is not None and name not in self._only:
            raise UntraceableError(
                f"begin() reads trial.{name}, which may change within a sequence; name it in "
                f"`separate`, or leave it to respond()"
            )
        empty = {name: np.empty(self._shapes.get(name, ()))}
        self.__dict__[name] = made = shaped(empty, lambda n: symbol(n, DATA))[name]
        return made

    def __getitem__(self, name: str) -> Any:
        raise UntraceableError(f"a trial's columns are attributes; write trial.{name}")


def flat(state: Mapping[str, Any]) -> dict[str, Any]:
    """Spread arrays over numbered names: values -> values_0, values_1."""
    parts: dict[str, Any] = {}
    for name, value in state.items():
        array = np.asarray(value, dtype=object)
        if not is_number(value) and not (isinstance(value, np.ndarray) and array.size):
            raise UntraceableError(
                f"what is remembered is numbers and NumPy arrays of numbers; self.{name} is a "
                f"{type(value).__name__}"
            )
        for index in np.ndindex(array.shape):
            parts["_".join((name, *map(str, index)))] = array[index]
    return parts


def numbers(state: Mapping[str, Any]) -> State:
    """Return what is remembered by flat names, with conditions as 1 or 0."""
    return {name: as_number(value) for name, value in flat(state).items()}


def shaped(state: Mapping[str, Any], value_of: Callable[[str], Expr]) -> dict[str, Any]:
    """Put values, by flat names, into the shapes of a state: the inverse of `flat`."""
    made: dict[str, Any] = {}
    for name, value in state.items():
        array = np.empty(np.shape(value), dtype=object)
        for index in np.ndindex(array.shape):
            array[index] = value_of("_".join((name, *map(str, index))))
        made[name] = array.view(Symbols) if array.shape else array[()]
    return made


def _remembered(name: str) -> Expr:
    return symbol(name, STATE)


@dataclass(frozen=True)
class TracedAnswer:
    """The return value of `respond` or `report`: fields of a law, utilities, or probabilities.

    Parameters
    ----------
    law : the class of the law; None for actions
    stated : whether the parts are probabilities; else they are utilities, or log odds of action 1
    parts : the parts, by name
    """

    law: type[Law] | None
    stated: bool
    parts: dict[str, Expr]


class Definition:
    """A model run on symbols.

    Parameters
    ----------
    lapses : whether the rate of lapses is a parameter, `self.lapse`

    Attributes
    ----------
    parameters : the symbols of the parameters
    start : what is remembered before the first trial, by flat names
    """

    def __init__(self, model: type[Definable], actions: int, lapses: bool = False):
        self.model, self.actions = model, actions
        names = (*model.parameters.names, *([LAPSE] if lapses else []))
        self.parameters = {n: symbol(n, PARAMETER) for n in names}
        self._begun: dict[str, Any] = {}
        self.start = merged(self._begin)

    def _agent(self) -> Definable:
        first = Trial(only=self.model.separate)
        return self.model.with_values(self.parameters, self.actions, first)

    def _begin(self) -> State:
        agent = self._agent()
        self._begun = agent.remembered()
        _check_apart(self._begun, "begin")
        return numbers(self._begun)

    def _remembering(self) -> Definable:
        agent = self._agent()
        vars(agent).update(shaped(self._begun, _remembered))
        return agent

    def answers(self, trial: Callable[[], Any], acting: Callable[[], Any]) -> list[TracedAnswer]:
        """Return the answers on a trial; `acting` is the trial with the action."""
        answers = [self._answer("respond", trial)]
        if self.model.reports():
            answers.append(self._answer("report", acting))
            if answers[1].law is None:
                raise UntraceableError(
                    "report() returns no law; return one, such as Normal(mean, sd)"
                )
        return answers

    def _answer(self, method: str, trial: Callable[[], Any]) -> TracedAnswer:
        kinds = set()

        def run() -> dict[str, Any]:
            agent = self._remembering()
            out = getattr(agent, method)(trial())
            self._check_unchanged(agent, method)
            if out is None:
                raise UntraceableError(f"{method}() returns nothing; return utilities or log odds")
            kinds.add(type(out) if isinstance(out, Law | Probabilities) else None)
            if len(kinds) > 1:
                raise UntraceableError(
                    f"{method}() returns different kinds of answers; return one kind"
                )
            if isinstance(out, Law):
                return {f.name: as_number(getattr(out, f.name)) for f in fields(out)}  # type: ignore[arg-type]
            parts = np.ravel(np.asarray(getattr(out, "values", out), dtype=object))
            return {str(k): as_number(x) for k, x in enumerate(parts)}

        parts = merged(run)
        (kind,) = kinds
        stated = kind is Probabilities
        law: Any = None if stated else kind
        one = self.actions == 2 and not stated
        if law is None and len(parts) not in ((self.actions, 1) if one else (self.actions,)):
            raise UntraceableError(
                f"{method}() returns {len(parts)} numbers for {self.actions} actions; return one "
                "for each"
            )
        return TracedAnswer(law, stated, parts)

    def acts(self, trial: Callable[[], Any]) -> Expr:
        """Return whether a trial asks for an action and not for a number."""
        return merged(lambda: {"acts": as_number(self._remembering().acts(trial()))})["acts"]

    def after(self, trial: Callable[[], Any]) -> State:
        """Return what is remembered after a trial."""

        def run() -> State:
            agent = self._remembering()
            agent.update(trial())
            self._check_parameters(agent, "update")
            after = agent.remembered()
            odd = ", ".join(f"self.{name}" for name in sorted(set(after) ^ set(self._begun)))
            if odd:
                raise UntraceableError(
                    f"update() sets or drops {odd}; set all that is remembered in begin()"
                )
            for name, value in after.items():
                if np.shape(value) != np.shape(self._begun[name]):
                    raise UntraceableError(
                        f"self.{name} changes its shape in update(); keep that of begin()"
                    )
            _check_apart(after, "update")
            return numbers(after)

        return merged(run)

    def _check_parameters(self, agent: Definable, method: str) -> None:
        """Refuse a definition that changes a parameter, which must be one number for all trials."""
        for name, value in self.parameters.items():
            if agent.__dict__.get(name) is not value:
                raise UntraceableError(
                    f"{method}() changes self.{name}, a parameter; remember another number, "
                    f"set to self.{name} in begin(), and change that"
                )

    def _check_unchanged(self, agent: Definable, method: str) -> None:
        """Refuse an answer that changes what is remembered, since only `update` may do that."""
        self._check_parameters(agent, method)
        after, before = agent.remembered(), flat(shaped(self._begun, _remembered))
        odd = sorted(set(after) ^ set(self._begun))
        if not odd:
            now = flat(after)
            odd = [name for name, x in before.items() if now.get(name) is not x]
        if odd:
            raise UntraceableError(
                f"{method}() changes self.{odd[0]}; what a trial changes is changed in update()"
            )


def _check_apart(remembered: Mapping[str, Any], method: str) -> None:
    """Refuse two names for one array."""
    arrays = {n: v for n, v in remembered.items() if isinstance(v, np.ndarray)}
    for n, v in arrays.items():
        for m, w in arrays.items():
            if m < n and np.shares_memory(v, w):
                raise UntraceableError(
                    f"self.{m} and self.{n} are one array after {method}(), and what changes one "
                    f"would change the other; assign a copy, self.{m}.copy()"
                )


def of_world(name: str) -> str:
    """Return the name in a kernel of a number that a world remembers, unlike any of a model."""
    return f"{name}_of_world"


class WorldTrial:
    """A trial of a world run on symbols.

    Parameters
    ----------
    world, shapes : the world, and the shapes of the tables that it reads
    action : the action on the trial
    anew : whether the world begins anew where its span changes, within what a kernel plays as
        one sequence

    Attributes
    ----------
    drawn : the trial as the design has it
    start, after : what is remembered before the first trial, and after this one
    shown, paid : the columns that are shown, and those that are paid
    present : whether the trial happens
    """

    def __init__(self, world: type[World], shapes: Shapes, action: Expr, anew: bool = False):
        self.drawn = Trial(shapes=shapes)
        world_state = world()
        world_state.begin()
        begun = dict(vars(world_state))
        self.start = {of_world(n): x for n, x in numbers(begun).items()}
        entered = {n: symbol(of_world(n), STATE) for n in flat(begun)}
        span = getattr(self.drawn, str(world.span)) if begun and anew and world.span else None
        if span is not None:
            goes_on = make("eq", span, symbol(of_world("span"), STATE))
            entered = {n: select(goes_on, x, numbers(begun)[n]) for n, x in entered.items()}

        def run(method: str, state: Mapping[str, Expr], *args: Any) -> dict[str, Any]:
            vars(world_state).clear()
            vars(world_state).update(shaped(begun, lambda n: state[n]))
            columns = by_column(getattr(world_state, method)(self.drawn, *args))
            return {f"column {n}": x for n, x in columns.items()} | numbers(vars(world_state))

        went = merged(lambda: run("show", entered))
        self.shown: dict[str, Expr] = _columns(went)
        self.present = self.shown.pop("present", number(1.0))
        left = merged(lambda: run("pay", went, action))
        self.paid = _columns(left)
        self.after = {of_world(n): select(self.present, left[n], went[n]) for n in entered}
        if span is not None:
            self.start[of_world("span")] = number(-1.0)  # a world that has begun may begin again
            self.after[of_world("span")] = span

    def tables(self, roots: list[Expr]) -> tuple[str, ...]:
        """Return the tables of the design that expressions read."""
        whole = entries(self.drawn._shapes)
        read = [x.value for x in within(roots) if x.op == "symbol" and x.on == DATA]
        return tuple(dict.fromkeys(whole[name][0] for name in read if name in whole))


def _columns(values: Mapping[str, Expr]) -> dict[str, Expr]:
    head = "column "
    return {n.removeprefix(head): x for n, x in values.items() if n.startswith(head)}


def entries(shapes: Shapes) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Return, for each symbol of a table's number, the table and the position in it."""
    return {
        "_".join((name, *map(str, index))): (name, index)
        for name, shape in shapes.items()
        for index in np.ndindex(tuple(shape))
    }
