"""A world as JavaScript, so that a page plays it, and all that it can show and pay on the way."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import product
from math import isnan, prod
from typing import Any

import numpy as np

from knownminds.environments import Design, Environment
from knownminds.environments.words.answer import decimal

from .errors import explained
from .printing import Printer, block, table_name, tables
from .symbols import DATA, STATE, Expr, as_number, new_graph, number, substituted, symbol, within
from .tracing import Passage, entries

# What JavaScript calculates as Python does, to the last bit.
EXACT = frozenset(("number", "symbol", "add", "sub", "mul", "div", "select", "gt", "eq", "not"))
EXACT |= {"and", "lookup", "abs", "sqrt"}
MOST = 200_000  # combinations of what a world remembers, a trial
NO_ACTION = -1

_PYTHON = {"select": "pick", "abs": "abs", "sqrt": "sqrt"}
_SCRIPT = {"select": "pick", "abs": "Math.abs", "sqrt": "Math.sqrt"}
_SCRIPT |= {"max": "Math.max", "min": "Math.min"}
_NAMES = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}

# What a trial showed and paid, in the order of `Script.shown` and `Script.paid`.
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

    def __init__(self, environment: Environment, names: Collection[str] = ()) -> None:
        self.environment = environment
        with new_graph(), explained(environment.world):
            self._action = symbol("action", DATA)
            self._passage = Passage(
                environment.world,
                environment.drawn,
                self._action,
                environment.world.span is not None,
            )
            self._columns = {**self._passage.shown, **self._passage.paid}
            roots = self._roots()
            odd = sorted({x.op for x in within(roots)} - EXACT)
            if odd:
                raise ValueError(
                    f"A page plays worlds of sums, products, comparisons and tables; that of "
                    f"{environment.name} has {odd[0]}, which browsers round otherwise than Python. "
                    "Calculate it in the design's tables."
                )
            shown = [name for name in self._columns if name in environment.fields.dependent]
            self.shown = tuple(name for name in shown if name in names)
            self.paid = tuple(name for name in self._columns if name not in shown)
            self._places = self._read(roots)
            self.text = self._javascript(roots)
            self._depends = {a: self._depending(a) for a in (NO_ACTION, *range(self._n_actions))}
            self._plays = self._as_python(roots)
        self._known: dict[Any, Any] = {}

    @property
    def start(self) -> dict[str, float]:
        """What the world remembers before the first trial."""
        return {name: float(x.value) for name, x in self._passage.start.items()}

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables of the design that it reads."""
        return tuple(dict.fromkeys(table for table, _ in self._places.values()))

    @property
    def _n_actions(self) -> int:
        return self.environment.n_actions

    def ways(self, design: Design) -> Iterator[dict[int, set[Lived]]]:
        """Yield for each trial, by action, what it can have shown and paid: `shown`, then `paid`.

        Each number that a world remembers is followed by itself, so that some of what is yielded
        may never come together. A trial that cannot happen yields nothing.

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
            by_action: dict[int, set[Lived]] = {}
            if there is None or there[t]:
                data = self._data(table, t)
                after: dict[str, set[float]] = {name: set() for name in self._needed}
                for action, depends in self._depends.items():
                    columns = depends["present"].union(*(depends[n] for n in names))
                    for made in self._made(t, columns, sets, data, action):
                        if made[len(self._columns)] > 0.0:
                            at = dict(zip(self._columns, made, strict=False))
                            by_action.setdefault(action, set()).add(tuple(at[n] for n in names))
                    for k, name in enumerate(passage.after, len(self._columns) + 1):
                        if name in after:
                            ways_to_go = self._made(t, depends[name], sets, data, action)
                            after[name] |= {made[k] for made in ways_to_go}
                sets |= after
            yield by_action

    def follow(self, design: Design, actions: Mapping[int, int]) -> dict[int, dict[str, float]]:
        """Return what the trials that happen show and pay, by trial, as a page reckons it."""
        passage, state, there = self._passage, self.start, design.table.get("present")
        columns = {}
        for t in range(self.environment.n_trials):
            if there is None or there[t]:
                action = float(actions.get(t, NO_ACTION))
                made = self._plays(action, *self._data(design.table, t), *state.values())
                if made[len(self._columns)] > 0.0:
                    columns[t] = dict(zip(self._columns, made, strict=False))
                after = dict(zip(passage.after, made[len(self._columns) + 1 :], strict=True))
                state = {name: after.get(name, value) for name, value in state.items()}
        return columns

    def _made(
        self,
        trial: int,
        names: Collection[str],
        sets: Mapping[str, Collection[float]],
        data: tuple[float, ...],
        action: int,
    ) -> Iterator[Lived]:
        """Yield what a trial makes of every combination of what is remembered by these names."""
        start_names = [name for name in self.start if name in names]
        ways = prod(len(sets[name]) for name in start_names)
        if ways > MOST:
            raise ValueError(
                f"A page holds a text for all that can be told; by trial {trial + 1} the world of "
                f"{self.environment.name} can be in {ways:,} ways, and {MOST:,} is the most. Set "
                "its size lower."
            )
        start = self.start
        for values in product(*(sets[name] for name in start_names)):
            key = (action, data, tuple(start_names), values)
            if key not in self._known:
                state = start | dict(zip(start_names, values, strict=True))
                self._known[key] = self._plays(float(action), *data, *state.values())
            yield self._known[key]

    def _roots(self) -> list[Expr]:
        passage = self._passage
        return [*self._columns.values(), as_number(passage.present), *passage.after.values()]

    def _read(self, roots: list[Expr]) -> dict[str, tuple[str, tuple[int, ...]]]:
        """Return the table, and the position in it, of each number that the world reads."""
        places = entries(self.environment.drawn)
        read = [x for x in within(roots) if x.op == "symbol" and x.on == DATA]
        return {x.value: places[x.value] for x in read if x is not self._action}

    def _data(self, table: Mapping[str, Any], t: int) -> tuple[float, ...]:
        return tuple(float(table[name][(t, *at)]) for name, at in self._places.values())

    def _depending(self, action: int) -> dict[str, frozenset[str]]:
        """Return what each column, and each number remembered, depends on among these numbers."""
        passage, put = self._passage, {self._action: number(action)}
        by_name = {}
        for name, x in {**self._columns, "present": passage.present, **passage.after}.items():
            parts = within([substituted(x, put)])
            symbols = {y.value for y in parts if y.op == "symbol" and y.on == STATE}
            by_name[name] = frozenset(symbols & passage.start.keys())
        return by_name

    @property
    def _needed(self) -> set[str]:
        """What is remembered that texts hang on, in this trial or a later one."""
        wanted = {"present", *self.shown, *self.paid}
        while True:
            more = {
                n for depends in self._depends.values() for name in wanted for n in depends[name]
            }
            if more <= wanted:
                return wanted & self._passage.after.keys()
            wanted |= more

    def _names(self, roots: list[Expr]) -> dict[Expr, str]:
        names = {self._action: "action"}
        for x in within(roots):
            if x.op == "symbol" and x is not self._action:
                names[x] = x.value if x.on == STATE else f"{x.value}_t"
        return names

    def _javascript(self, roots: list[Expr]) -> str:
        """Return a function of what is remembered, the design's tables, trial and action."""
        passage = self._passage
        loads = [f"const {name} = state.{name};" for name in passage.start]
        for entry, (table, index) in self._places.items():
            inside = "".join(f"[{k}]" for k in index)
            loads.append(f"const {entry}_t = table.{table}[t]{inside};")
        printer = _ScriptPrinter(self._names(roots), _SCRIPT)
        texts = printer.write(roots)
        n = len(self._columns)
        columns = ", ".join(f"{a}: {b}" for a, b in zip(self._columns, texts, strict=False))
        after = ", ".join(f"{a}: {b}" for a, b in zip(passage.after, texts[n + 1 :], strict=True))
        ends = f"return {{columns: {{{columns}}}, present: {texts[n]} > 0, after: {{{after}}}}};"
        constants = [
            f"const {t};".replace("np.array(", "").replace(");", ";") for t in tables(roots)
        ]
        body = [*constants, *loads, *printer.lines, ends]
        return "\n".join([*block("(state, table, t, action) => {", body), "}"])

    def _as_python(self, roots: list[Expr]) -> Any:
        """Return a function of action, data and what is remembered, as the script has it."""
        printer = Printer(self._names(roots), _PYTHON)
        texts = printer.write(roots)
        names = [f"{name}_t" for name in self._places]
        arguments = ", ".join(["action", *names, *self._passage.start])
        body = [*printer.lines, f"return ({', '.join(texts)},)"]
        space: dict[str, Any] = {
            "np": np,
            "nan": np.nan,
            "inf": np.inf,
            "sqrt": np.sqrt,
            "pick": lambda c, a, b: a if c else b,
        }
        exec("\n".join([*tables(roots), *block(f"def play({arguments}):", body)]), space)
        play = space["play"]
        return lambda *values: tuple(float(x) for x in play(*values))


class _ScriptPrinter(Printer):
    """Writes the statements that `Printer` writes, in JavaScript."""

    assignment = "const {name} = {text};"

    def constant(self, value: float) -> str:
        """Return the text of a number."""
        text = super().constant(value)
        return _NAMES.get(text, text)

    def text(self, x: Expr) -> str:
        """Return the text of an operation."""
        return f"!{self.name(x.args[0])}" if x.op == "not" else super().text(x)

    def looked_up(self, x: Expr, index: str) -> str:
        """Return the text of an entry of a table; outside of it, the first."""
        inside = f"({index} >= 0) && ({index} < {len(x.value)})"
        return f"{table_name(x)}[Math.trunc({inside} ? {index} : 0)]"


def key_of(numbers: Collection[float | None]) -> str:
    """Return numbers as a page joins them to find a text; nothing and NaN are "null"."""
    parts = ["null" if x is None or isnan(x) else decimal(x + 0.0) for x in numbers]
    return "|".join(parts)
