"""A world as JavaScript, so that a page plays it, and all that it can show and pay on the way."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import product
from math import isnan, prod
from typing import Any

import numpy as np

from knownminds.environments import Design, Environment
from knownminds.environments.words.answer import decimal

from . import expressions as ex
from .cache import tables_in
from .expressions import DATA, STATE, Expr
from .following import Bystander
from .printing import Printer, bare, block, table_name
from .program import TAKEN, Passage, tables_by_entry, trace_world

# What JavaScript reckons as Python does, to the last bit.
EXACT = frozenset(
    ("number", "symbol", "add", "multiply", "over", "select", "greater", "equal", "not", "and")
) | {"lookup", "abs", "max", "min", "sqrt"}
MOST = 200_000  # combinations of what a world remembers, a trial
NO_ACTION = -1

_PICK = {"select": "pick"}
_NAMES = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}

# What a trial showed and paid, in the order of `Script.told`.
Lived = tuple[float, ...]


class Script:
    """The world of an experiment in JavaScript, and which values its columns can take.

    Parameters
    ----------
    environment
        What is played.
    told
        The columns that texts hang on, among those that the world shows; what is paid is always
        one of them.

    Raises
    ------
    ValueError
        If the world cannot be run on symbols, or needs functions that browsers round otherwise.
    """

    def __init__(self, environment: Environment, told: Collection[str] = ()) -> None:
        self.environment = environment
        with ex.new_graph():
            self._passage = trace_world(Bystander, environment.world, environment.drawn)
            roots = self._roots()
            odd = sorted({x.op for x in ex.within(roots)} - EXACT)
            if odd:
                raise ValueError(
                    f"A page plays worlds of sums, products, comparisons and tables; that of "
                    f"{environment.name} has {odd[0]}, which browsers round otherwise than Python. "
                    "Reckon it in the design's tables."
                )
            shown = [name for name in self._passage.columns if name in environment.fields.dependent]
            self.shown = tuple(name for name in shown if name in told)
            self.paid = tuple(n for n in self._passage.columns if n not in shown)
            self.text = self._javascript(roots)
            self._hangs = {a: self._hanging(a) for a in (NO_ACTION, *range(self._n_actions))}
            self._plays = _as_python(self._passage, roots, self._places())
        self._known: dict[Any, Any] = {}

    @property
    def start(self) -> dict[str, float]:
        """What the world remembers before the first trial."""
        return {name: float(x.value) for name, x in self._passage.start.items()}

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables of the design that it reads."""
        return self._passage.tables

    @property
    def _n_actions(self) -> int:
        return self.environment.n_actions

    def lived(self, design: Design) -> Iterator[dict[int, set[Lived]]]:
        """Yield for each trial, by action, what it can have shown and paid: `shown`, then `paid`.

        Each number that a world remembers is followed by itself, so that some of what is yielded
        may never come together. A trial that cannot take place yields nothing.

        Raises
        ------
        ValueError
            If a world can be in too many ways.
        """
        names = (*self.shown, *self.paid)
        passage = self._passage
        sets = {name: {value} for name, value in self.start.items()}
        table = design.table
        there = table.get("present")
        for t in range(self.environment.n_trials):
            found: dict[int, set[Lived]] = {}
            if there is None or there[t]:
                data = self._data(table, t)
                after: dict[str, set[float]] = {name: set() for name in self._needed}
                for action, hangs in self._hangs.items():
                    columns = hangs["present"].union(*(hangs[n] for n in names))
                    for made in self._made(t, columns, sets, data, action):
                        if made[len(passage.columns)] > 0.0:
                            at = dict(zip(passage.columns, made, strict=False))
                            found.setdefault(action, set()).add(tuple(at[n] for n in names))
                    for place, name in enumerate(passage.after, len(passage.columns) + 1):
                        if name in after:
                            own = self._made(t, hangs[name], sets, data, action)
                            after[name] |= {made[place] for made in own}
                sets |= after
            yield found

    def follow(self, design: Design, actions: Mapping[int, int]) -> dict[int, dict[str, float]]:
        """Return what the trials that take place show and pay, by trial, as a page reckons it."""
        passage, state, there = self._passage, self.start, design.table.get("present")
        found = {}
        for t in range(self.environment.n_trials):
            if there is None or there[t]:
                action = float(actions.get(t, NO_ACTION))
                made = self._plays(action, *self._data(design.table, t), *state.values())
                if made[len(passage.columns)] > 0.0:
                    found[t] = dict(zip(passage.columns, made, strict=False))
                after = dict(zip(passage.after, made[len(passage.columns) + 1 :], strict=True))
                state = {name: after.get(name, value) for name, value in state.items()}
        return found

    def _made(
        self,
        trial: int,
        names: Collection[str],
        sets: Mapping[str, Collection[float]],
        data: tuple[float, ...],
        action: int,
    ) -> Iterator[Lived]:
        """Yield what a trial makes of every combination of what is remembered by these names."""
        own = [name for name in self.start if name in names]
        ways = prod(len(sets[name]) for name in own)
        if ways > MOST:
            raise ValueError(
                f"A page holds a text for all that can be told; by trial {trial + 1} the world of "
                f"{self.environment.name} can be in {ways:,} ways, and {MOST:,} is the most. Set "
                "its size lower."
            )
        start = self.start
        for values in product(*(sets[name] for name in own)):
            key = (action, data, tuple(own), values)
            if key not in self._known:
                state = start | dict(zip(own, values, strict=True))
                self._known[key] = self._plays(float(action), *data, *state.values())
            yield self._known[key]

    def _roots(self) -> list[Expr]:
        passage = self._passage
        return [*passage.columns.values(), ex.as_number(passage.present), *passage.after.values()]

    def _places(self) -> dict[str, tuple[str, tuple[int, ...]]]:
        """Return the table, and the place in it, of each number that the world reads."""
        entries = tables_by_entry(self.environment.drawn)
        found = {}
        for x in ex.within(self._roots()):
            if x.op == "symbol" and x.on == DATA and x.value != TAKEN:
                name = entries.get(x.value, x.value)
                shape = self.environment.drawn[name]
                whole = list(_indices(shape))
                place = whole[int(x.value.rpartition("_")[2])] if shape else ()
                found[x.value] = name, place
        return found

    def _data(self, table: Mapping[str, Any], t: int) -> tuple[float, ...]:
        return tuple(float(table[name][(t, *at)]) for name, at in self._places_read)

    def _hanging(self, action: int) -> dict[str, frozenset[str]]:
        """Return what each column, and each number remembered, hangs on among these numbers."""
        passage, put = self._passage, {ex.symbol(TAKEN, DATA): ex.number(float(action))}
        self._places_read = tuple(self._places().values())
        whole = {**passage.columns, "present": ex.as_number(passage.present), **passage.after}
        found = {}
        for name, x in whole.items():
            parts = ex.within([ex.substituted(x, put)])
            symbols = {y.value for y in parts if y.op == "symbol" and y.on == STATE}
            found[name] = frozenset(symbols & passage.start.keys())
        return found

    @property
    def _needed(self) -> set[str]:
        """What is remembered that texts hang on, in this trial or a later one."""
        wanted = {"present", *self.shown, *self.paid}
        while True:
            more = {n for hangs in self._hangs.values() for name in wanted for n in hangs[name]}
            if more <= wanted:
                return wanted & self._passage.after.keys()
            wanted |= more

    def _javascript(self, roots: list[Expr]) -> str:
        """Return a function of what is remembered, the design's tables, trial and action."""
        passage = self._passage
        names = _symbols(roots)
        loads = [f"const {name} = state.{name};" for name in passage.start]
        for entry, (table, place) in self._places().items():
            inside = "".join(f"[{k}]" for k in place)
            loads.append(f"const {entry}_t = table.{table}[t]{inside};")
        printer = _ScriptPrinter(names, by_name=_PICK)
        texts = [bare(text) for text in printer.write(roots)]
        n = len(passage.columns)
        columns = ", ".join(f"{a}: {b}" for a, b in zip(passage.columns, texts, strict=False))
        after = ", ".join(f"{a}: {b}" for a, b in zip(passage.after, texts[n + 1 :], strict=True))
        ends = f"return {{columns: {{{columns}}}, present: {texts[n]} > 0, after: {{{after}}}}};"
        tables = [line.replace("np.array(", "").rstrip(")") for line in self._looked_up(roots)]
        body = [*(f"const {line};" for line in tables), *loads, *printer.taken(), ends]
        return "\n".join([*block("(state, table, t, action) => {", body), "}"])

    def _looked_up(self, roots: list[Expr]) -> list[str]:
        named = " ".join(table_name(x.value) for x in ex.within(roots) if x.op == "lookup")
        return tables_in(roots, named)


class _ScriptPrinter(Printer):
    """Writes the statements that `Printer` writes, in JavaScript."""

    def _assign(self, text: str) -> str:
        name = super()._assign(text)
        self._lines[-1] = f"const {self._lines[-1]};"
        return name

    def _name(self, x: Expr) -> str:
        name = super()._name(x)
        return _NAMES.get(name, name)

    def _text(self, x: Expr) -> str:
        match x.op:
            case "not":
                return f"!{self._named(x.args[0])}"
            case "max" | "min":
                return f"Math.{super()._text(x)}"
            case "abs" | "sqrt":
                return f"Math.{x.op}({self._name(x.args[0])})"
            case "lookup":
                at = self._named(x.args[0])
                inside = f"({at} >= 0) && ({at} < {len(x.value)})"
                return f"{table_name(x.value)}[Math.trunc({inside} ? {at} : 0)]"
        return super()._text(x)


def key_of(numbers: Collection[float | None]) -> str:
    """Return numbers as a page joins them to find a text; nothing and NaN are "null"."""
    parts = ["null" if x is None or isnan(x) else decimal(x + 0.0) for x in numbers]
    return "|".join(parts)


def _symbols(roots: list[Expr]) -> dict[Expr, str]:
    found = {ex.symbol(TAKEN, DATA): "action"}
    for x in ex.within(roots):
        if x.op == "symbol" and x not in found:
            found[x] = x.value if x.on == STATE else f"{x.value}_t"
    return found


def _as_python(
    passage: Passage, roots: list[Expr], places: Mapping[str, tuple[str, tuple[int, ...]]]
) -> Any:
    """Return a function of action, data and what is remembered, that reckons as the script does."""
    printer = Printer(_symbols(roots), by_name=_PICK)
    texts = printer.write(roots)
    arguments = ", ".join(["action", *(f"{name}_t" for name in places), *passage.start])
    body = [*printer.taken(), f"return ({', '.join(texts)},)"]
    lines = [*tables_in(roots, " ".join(body)), *block(f"def play({arguments}):", body)]
    space: dict[str, Any] = {
        "np": np,
        "nan": np.nan,
        "inf": np.inf,
        "pick": lambda c, a, b: a if c else b,
    }
    exec("\n".join(lines), space)
    play = space["play"]
    return lambda *values: tuple(float(x) for x in play(*values))


def _indices(shape: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    return product(*map(range, shape))
