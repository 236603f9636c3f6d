"""The kernels of a model: its definition is traced, printed, and compiled at its first use."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from knownminds.environments import answer_columns
from knownminds.environments.environment import Environment
from knownminds.environments.world import World

from .cache import folder_of, loaded, module_text
from .definition import SMALLEST, Definable
from .errors import explained
from .likelihood import Likelihood
from .simulation import Simulation
from .symbols import STATE, new_graph, symbol
from .tracing import Definition, Shapes

Kernel = Callable[..., Any]
Array = NDArray[np.float64]


class Compiled(NamedTuple):
    """A compiled likelihood; the columns that it reads, and then expressions of columns."""

    without_lapses: Kernel
    with_lapses: Kernel
    columns: tuple[str, ...]
    hoisted: tuple[Any, ...]


@dataclass(frozen=True)
class CompiledSimulation:
    """A compiled simulation; called as kernels are, it returns [columns, places, LANES].

    Parameters
    ----------
    kernel : the function
    columns : names of the returned columns: the answer, what was shown and paid, and "present"
    tables : the tables of the design that it takes after the uniforms
    noisy : whether it takes normal numbers as well
    remembers : whether the world remembers anything from trial to trial
    depends : whether the answers depend on that memory
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
        """Play sequences; kernels have no quantile function, so that normal noise is made here."""
        noise = [ndtri(np.maximum(uniforms[:, 1], SMALLEST))] if self.noisy else []
        rates = np.zeros(len(theta)) if lapse is None else lapse
        values: Array = self.kernel(theta, rates, n_actions, row, start, uniforms, *noise, *tables)
        return values


# By class, and by number of actions or world. This is not an attribute of the class, since the
# class may be sent to another process.
_compiled: WeakKeyDictionary[type[Definable], dict[int, Compiled]] = WeakKeyDictionary()
_played: WeakKeyDictionary[type[Definable], dict[Any, CompiledSimulation]] = WeakKeyDictionary()


def outline(model: type[Definable]) -> dict[str, Any]:
    """Return the attributes of the model that follow from its definition alone.

    Raises
    ------
    ValueError : If it cannot be traced. The error has the line and what to write instead.
    """
    if "_outline" not in vars(model):
        with new_graph(), explained(model):
            traced = _traced(model, _declared(model), slopes=False)
            laws = [law for law in traced.laws if law is not None]
            moved = (x is not symbol(n, STATE) for after in traced.afters for n, x in after.items())
            model._outline = {
                "columns": traced.columns,  # columns that the likelihood reads, the answer first
                "given": "response" if traced.laws[0] else "both" if laws else "action",
                "n_uniforms": 2 if laws else 1,
                "remembers": any(moved),
                "span": laws[0].span if laws else None,
            }
    return model._outline


def order_of(model: type[Definable]) -> tuple[str, ...]:
    """Return the columns in whose order trials are read fastest; none in order of time."""
    if "_order" not in vars(model):
        with new_graph(), explained(model):
            model._order = _traced(model, _declared(model)).order
    return model._order


def _declared(model: type[Definable]) -> int:
    declared = inspect.getattr_static(model, "n_actions")
    return declared if isinstance(declared, int) else 2


def _traced(model: type[Definable], actions: int, slopes: bool = True) -> Likelihood:
    either = inspect.getattr_static(model, "given") == "either"
    return Likelihood(Definition(model, actions), either and model.prepare is None, slopes)


def _actions(model: type[Definable], n_actions: int | None) -> int:
    """Return for how many actions a likelihood is compiled; prepared rows serve any number."""
    return model.n_actions or (n_actions if model.prepare is None else 2) or 2


def _printed(model: type[Definable], actions: int) -> tuple[str, Likelihood]:
    with new_graph(), explained(model):
        traced = _traced(model, actions)
        about = f"Likelihood of {model.name} for {actions} actions, from its definition."
        return module_text(about, traced.roots, traced.lines()), traced


def likelihood_text(model: type[Definable], n_actions: int | None = None) -> str:
    """Return the text of a model's likelihood for a number of actions."""
    return _printed(model, _actions(model, n_actions))[0]


def likelihood_of(model: type[Definable], n_actions: int | None) -> Compiled:
    """Return a model's likelihood for a number of actions, compiled at its first call.

    Raises
    ------
    ValueError : If the definition cannot be traced. The error has the line and what to write
        instead.
    """
    actions = _actions(model, n_actions)
    known = _compiled.setdefault(model, {})
    if actions not in known:
        text, traced = _printed(model, actions)
        module = loaded(text, model.name, folder_of(model))
        functions = module.without_lapses, module.with_lapses
        known[actions] = Compiled(*functions, traced.used, tuple(traced.hoisted))
    return known[actions]


def _printed_in(
    model: type[Definable], world: type[World], shapes: Shapes, actions: int
) -> tuple[str, Simulation]:
    with new_graph(), explained(model, world):
        traced = Simulation(model, world, shapes, actions)
        about = f"Simulation of {model.name} for {actions} actions, in {world.__name__}."
        return module_text(about, traced.roots, traced.lines()), traced


def simulation_text(model: type[Definable], environment: Environment) -> str:
    """Return the text of a model's simulation in an experiment."""
    actions = model.n_actions or environment.n_actions or 2
    return _printed_in(model, environment.world, environment.drawn, actions)[0]


def simulation_of(model: type[Definable], environment: Environment) -> CompiledSimulation:
    """Return the simulation of a model in an experiment, compiled at its first call.

    Raises
    ------
    ValueError : If the model or the world cannot be traced, or if the model begins anew between
        trials that the world connects.
    """
    actions = model.n_actions or environment.n_actions or 2
    played = played_in(model, environment.world, environment.drawn, actions)
    crossed = _crossed(model, environment) if played.remembers else None
    if crossed is not None and played.depends:
        raise ValueError(
            f"{model.name} tells trials apart by {crossed!r}, and what {environment.name} shows "
            f"and pays depends on earlier trials of another {crossed!r}. Leave it out of "
            "`separate`."
        )
    if crossed is not None:  # only whole sessions show what follows from the answers
        played = replace(played, columns=played.columns[: len(answer_columns(environment))])
    return played


def played_in(
    model: type[Definable], world: type[World], shapes: Shapes, actions: int
) -> CompiledSimulation:
    """Return the simulation of a model in a world, given the shapes of the design's tables."""
    key = actions, world, tuple(sorted(shapes.items()))
    known = _played.setdefault(model, {})
    if key not in known:
        text, traced = _printed_in(model, world, shapes, actions)
        module = loaded(text, f"{model.name}_in_{world.__name__}", folder_of(model))
        known[key] = CompiledSimulation(
            module.simulate, traced.columns, traced.tables, "response" in traced.given,
            traced.remembers, traced.depends,
        )  # fmt: skip
    return known[key]


def _crossed(model: type[Definable], environment: Environment) -> str | None:
    """Return a column by which the model begins anew between trials that the world connects."""
    span = environment.world.span
    tables = environment.tables(np.full((1, environment.n_draws), 0.5))
    within = np.ones(environment.n_trials - 1, dtype=bool)
    if span is not None:
        within = np.diff(tables[span][0]) == 0
    for name in model.separate:
        if name in tables and (np.diff(tables[name][0])[within] != 0).any():
            return name
    return None
