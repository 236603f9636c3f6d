"""What actions bring in many sessions at once: a world as a compiled loop over their trials."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from knownminds.environments import Design, Environment
from knownminds.environments.world import World

from . import expressions as ex
from .cache import folder_of, loaded, module_text
from .expressions import DATA, STATE, Expr
from .model import Model
from .printing import BY_LIBRARY, Printer, bare, block, local
from .program import TAKEN, Passage, Shapes, trace_world

Integers = NDArray[np.int64]
Brought = Mapping[str, NDArray[Any]]
Follow = Callable[[Brought, Integers], Brought]

FEWEST = 20_000  # trials; with fewer a kernel is not worth its compilation
# Not as other kernels: nothing may be rounded otherwise than NumPy does it.
JIT = "@compiled()"

# By world and the tables that it reads: what follows whole sessions, None where nothing printed
# does what the world does.
_known: dict[Any, Follow | None] = {}


class Bystander(Model):
    """Looks at nothing: a world is traced with it."""

    separate = ()

    def respond(self, trial: Any) -> Any:
        """Choose evenly."""
        return np.zeros(2)


def follow(environment: Environment, tables: Brought, actions: Integers) -> Brought:
    """Return what `Environment.follow` does, sooner where sessions are many.

    The first time the world itself is run, and a printed kernel is held against it; it is used
    from then on if both say the same of every trial.
    """
    design = Design(tables)
    if actions.size < FEWEST or type(environment).follow is not Environment.follow:
        return environment.follow(design, actions)
    inner = {name: table.shape[actions.ndim :] for name, table in tables.items()}
    kinds = tuple(sorted((name, t.dtype.str, inner[name]) for name, t in tables.items()))
    key = environment.world, kinds
    if key not in _known:
        brought = environment.follow(design, actions)
        _known[key] = _checked(environment.world, inner, tables, actions, brought)
        return brought
    kernel = _known[key]
    return environment.follow(design, actions) if kernel is None else kernel(tables, actions)


def _checked(
    world: type[World], shapes: Shapes, tables: Brought, actions: Integers, brought: Brought
) -> Follow | None:
    """Return a kernel that brings the same on these trials, None if there is none."""
    try:
        with ex.new_graph():
            passage = trace_world(Bystander, world, shapes)
            text = following_source(world, passage, shapes)
    except ValueError:  # it cannot be traced: only agents with simulations of their own play there
        return None
    if {*passage.columns, "present"} != {*brought, "present"}:
        return None
    module = loaded(text, f"follow_{world.__name__}", folder_of(world), lambda: None)
    kinds = {name: column.dtype for name, column in brought.items()}

    def kernel(tables: Brought, actions: Integers) -> Brought:
        shape = actions.shape
        lived = tables.get("present", np.ones(shape, dtype=bool))
        there = np.zeros(shape, dtype=bool)
        found = {name: np.zeros(shape) for name in passage.columns}
        read = [_as_numbers(tables[name]) for name in passage.tables]
        module.follow(actions, np.ascontiguousarray(lived), there, *found.values(), *read)
        parts = {**found, "present": there}
        return {name: parts[name].astype(kind, copy=False) for name, kind in kinds.items()}

    got, there = kernel(tables, actions), brought.get("present", np.ones(actions.shape, dtype=bool))
    same = np.array_equal(got.get("present", there), there) and all(
        np.array_equal(got[name][there], brought[name][there], equal_nan=True)
        for name in passage.columns
    )
    return kernel if same else None


def _as_numbers(table: NDArray[Any]) -> NDArray[Any]:
    return np.ascontiguousarray(table.view(np.int8) if table.dtype == bool else table)


def following_source(world: type[World], passage: Passage, shapes: Shapes) -> str:
    """Return the text of a module that follows whole sessions of a world.

    ``follow(taken, lived, there, *columns, *tables)`` fills `there` and the columns, [N, T] each,
    from the actions that were taken.
    """
    present = ex.as_number(passage.present)
    roots = [*passage.columns.values(), present, *passage.after.values()]
    names: dict[Expr, str] = {ex.symbol(TAKEN, DATA): "action"}
    loads = ["action = taken[n, t]"]
    places = _places(shapes)
    for x in sorted(ex.within(roots), key=lambda x: x.number):
        if x.op != "symbol" or x in names:
            continue
        names[x] = local(x.value) if x.on == STATE else f"{x.value}_t"
        if x.on == DATA:
            loads.append(f"{names[x]} = 1.0 * {places[x.value]}")
    printer = Printer(names, by_name=BY_LIBRARY)
    texts = printer.write(roots)
    body = [*loads, *printer.taken()]
    n = len(passage.columns)
    body += [f"out_{k}[n, t] = {bare(text)}" for k, text in enumerate(texts[:n])]
    body += [f"present = {bare(texts[n])}", "there[n, t] = present > 0.0"]
    own = [local(name) for name in passage.after]
    body += [f"new_{name} = {bare(text)}" for name, text in zip(own, texts[n + 1 :], strict=True)]
    body += [f"{name} = new_{name}" for name in own]
    begin = [f"{local(name)} = {bare(text)}" for name, text in _written(passage.start).items()]
    trials = block("for t in range(taken.shape[1]):", block("if lived[n, t]:", body))
    sessions = block("for n in range(taken.shape[0]):", [*begin, *trials])
    outputs = [f"out_{k}" for k in range(n)]
    arguments = ", ".join(["taken, lived, there", *outputs, *(f"{t}_" for t in passage.tables)])
    lines = [JIT, *block(f"def follow({arguments}):", ['"""Follow the actions."""', *sessions])]
    return module_text(f"What actions bring in {world.__name__}.", roots, lines)


def _places(shapes: Shapes) -> dict[str, str]:
    """Return the text of each number that tables hold for a trial."""
    found = {}
    for name, shape in shapes.items():
        if not shape:
            found[name] = f"{name}_[n, t]"
        for k, place in enumerate(np.ndindex(shape) if shape else ()):
            found[f"{name}_{k}"] = f"{name}_[n, t, {', '.join(map(str, place))}]"
    return found


def _written(start: Mapping[str, Expr]) -> dict[str, str]:
    texts = Printer({}).write(list(start.values()))
    return dict(zip(start, texts, strict=True))
