"""A world as JavaScript, so that a web page can play it, and everything it can show and pay."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import product
from math import isnan, nan, prod
from typing import Any

import numpy as np

from knownminds.environments import Design, Environment
from knownminds.environments.words.answer import decimal

from .errors import explained
from .printing import Printer, block, table_name, tables
from .symbols import (
    DATA,
    STATE,
    Expr,
    as_number,
    evaluated,
    new_graph,
    number,
    substituted,
    symbol,
    within,
)
from .tracing import WorldTrial, entries

# JavaScript computes these operations exactly as Python does, to the last bit.
EXACT = frozenset(("number", "symbol", "add", "sub", "mul", "div", "select", "gt", "eq", "not"))
EXACT |= {"and", "lookup", "abs", "sqrt"}
MOST = 200_000  # combinations of what a world remembers, per trial
NO_ACTION = -1
PRESENT = "present"

_SCRIPT = {"select": "pick", "abs": "Math.abs", "sqrt": "Math.sqrt"}
_SCRIPT |= {"max": "Math.max", "min": "Math.min"}
_NAMES = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}

# The values that a trial showed and paid, in the order of `Script.shown` and `Script.paid`.
Way = tuple[float, ...]


class Script:
    """The world of an experiment in JavaScript, and the values that its columns can take.

    Parameters
    ----------
    environment : The experiment.
    told : The columns on which texts depend, among those that the world shows; the reward is always
        one of them.

    Raises
    ------
    ValueError : If the world cannot be run on symbols, or needs functions that browsers round
        differently.
    """

    def __init__(self, environment: Environment, names: Collection[str] = ()) -> None:
        self.environment = environment
        with new_graph(), explained(environment.world):
            self._action = symbol("action", DATA)
            self._passage = WorldTrial(
                environment.world,
                environment.drawn,
                self._action,
                environment.world.span is not None,
            )
            self._columns = {**self._passage.shown, **self._passage.paid}
            after = self._passage.after
            self._results = {**self._columns, PRESENT: as_number(self._passage.present), **after}
            roots = list(self._results.values())
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

    @property
    def start(self) -> dict[str, float]:
        """The memory of the world before the first trial."""
        return {name: float(x.value) for name, x in self._passage.start.items()}

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables of the design that the world reads."""
        return tuple(dict.fromkeys(table for table, _ in self._places.values()))

    @property
    def _n_actions(self) -> int:
        return self.environment.n_actions

    def ways(self, design: Design) -> Iterator[dict[int, set[Way]]]:
        """Yield for each trial, by action, what it can have shown and paid: `shown`, then `paid`.

        Each number that a world remembers is followed by itself, so that some of the yielded
        combinations may never occur. A trial that cannot happen yields nothing.

        Raises
        ------
        ValueError : If a world can be in too many states.
        """
        names = (*self.shown, *self.paid)
        sets: dict[str, Collection[float]] = {name: {value} for name, value in self.start.items()}
        for t in range(self.environment.n_trials):
            by_action: dict[int, set[Way]] = {}
            if self._happens(design, t):
                after: dict[str, set[float]] = {name: set() for name in self._needed}
                for action in self._depends:
                    made = self._ways((PRESENT, *names), sets, design, t, action)
                    happen = {tuple(x) for there, *x in zip(*made, strict=True) if there > 0.0}
                    by_action |= {action: happen} if happen else {}
                    for name, values in after.items():
                        values.update(self._ways((name,), sets, design, t, action)[0])
                sets |= after
            yield by_action

    def follow(self, design: Design, actions: Mapping[int, int]) -> dict[int, dict[str, float]]:
        """Return what the trials that happen show and pay, by trial, as a page computes it."""
        state, columns = self.start, {}
        for t in range(self.environment.n_trials):
            if self._happens(design, t):
                data = self._data(design, t, actions.get(t, NO_ACTION)) | state
                values = evaluated(self._results.values(), data)
                made = dict(zip(self._results, values, strict=True))
                if made[PRESENT] > 0.0:
                    columns[t] = {name: float(made[name]) for name in self._columns}
                state = {name: float(made.get(name, value)) for name, value in state.items()}
        return columns

    def _happens(self, design: Design, t: int) -> bool:
        return "present" not in design.table or bool(design.table["present"][t])

    def _ways(
        self,
        names: Collection[str],
        sets: Mapping[str, Collection[float]],
        design: Design,
        trial: int,
        action: int,
    ) -> list[list[float]]:
        """Return by name what a trial makes of all combinations of the remembered numbers."""
        depends = frozenset[str]().union(*(self._depends[action][name] for name in names))
        start = {name: sets[name] if name in depends else [x] for name, x in self.start.items()}
        ways = prod(map(len, start.values()))
        if ways > MOST:
            raise ValueError(
                f"A page holds a text for all that can be told; by trial {trial + 1} the world of "
                f"{self.environment.name} can be in {ways:,} ways, and {MOST:,} is the most. Set "
                "its size lower."
            )
        state = zip(start, np.array(list(product(*start.values()))).T, strict=True)
        data = self._data(design, trial, action) | dict(state)
        made = evaluated([self._results[name] for name in names], data)
        lists = [np.broadcast_to(np.asarray(x, dtype=float), ways).tolist() for x in made]
        return [[nan if isnan(x) else x for x in one] for one in lists]  # NaN is one object

    def _read(self, roots: list[Expr]) -> dict[str, tuple[str, tuple[int, ...]]]:
        """Return the table, and the position in it, of each number that the world reads."""
        places = entries(self.environment.drawn)
        read = [x for x in within(roots) if x.op == "symbol" and x.on == DATA]
        return {x.value: places[x.value] for x in read if x is not self._action}

    def _data(self, design: Design, t: int, action: int) -> dict[str, Any]:
        """Return the numbers that the world reads on a trial, by name."""
        read = {name: design.table[table][(t, *at)] for name, (table, at) in self._places.items()}
        return {"action": float(action), **{name: float(x) for name, x in read.items()}}

    def _depending(self, action: int) -> dict[str, frozenset[str]]:
        """Return which of these numbers each column, and each remembered number, depends on."""
        by_name, put = {}, {self._action: number(action)}
        for name, x in self._results.items():
            parts = within([substituted(x, put)])
            symbols = {y.value for y in parts if y.op == "symbol" and y.on == STATE}
            by_name[name] = frozenset(symbols & self._passage.start.keys())
        return by_name

    @property
    def _needed(self) -> set[str]:
        """The remembered numbers on which texts depend, in this trial or a later one."""
        wanted = {PRESENT, *self.shown, *self.paid}
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
        """Return a JavaScript function of memory, the design's tables, trial and action."""
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


class _ScriptPrinter(Printer):
    """Writes the same statements as `Printer`, in JavaScript."""

    assignment = "const {name} = {text};"

    def constant(self, value: float) -> str:
        """Return the text of a number."""
        text = super().constant(value)
        return _NAMES.get(text, text)

    def text(self, x: Expr) -> str:
        """Return the text of an operation."""
        return f"!{self.name(x.args[0])}" if x.op == "not" else super().text(x)

    def looked_up(self, x: Expr, index: str) -> str:
        """Return the text of an entry of a table; an index outside of it gives the first entry."""
        inside = f"({index} >= 0) && ({index} < {len(x.value)})"
        return f"{table_name(x)}[Math.trunc({inside} ? {index} : 0)]"


def key_of(numbers: Collection[float | None]) -> str:
    """Return numbers joined as a page does to find a text; None and NaN are "null"."""
    parts = ["null" if x is None or isnan(x) else decimal(x + 0.0) for x in numbers]
    return "|".join(parts)
