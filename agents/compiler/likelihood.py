"""The text of a likelihood: one forward pass in lanes, with the exact gradient beside it.

Parts of an answer are symbols: utilities, log odds, the fields of a law. The log density of a trial
is an expression in these parts. Its slopes in the parts, times their slopes in the parameters, are
the gradient. The same rule serves all kinds of answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import log, prod
from typing import Any

import numpy as np

from .printing import Frame, Printer, block, costly, costly_of_parameters, largest, row
from .symbols import (
    CONDITIONS,
    COSTLY,
    DATA,
    PARAMETER,
    STATE,
    Expr,
    Symbols,
    UntraceableError,
    make,
    merged,
    negated,
    node,
    number,
    select,
    slope,
    substituted,
    symbol,
    within,
)
from .tracing import LAPSE, Definition, State, TracedAnswer, Trial

TINY = 1e-150  # a probability counts as at least this much
LOG_TINY = log(TINY)
ACTION, RESPONSE = "action", "response"


@dataclass(frozen=True)
class Density:
    """The log density of an answer, its density, and the density of an answer in a lapse."""

    log: Any
    plain: Any
    of_lapse: Any


def density(answer: TracedAnswer, parts: dict[str, Expr], actions: int) -> Density:
    """Return the density of an answer, given its parts."""
    action, response = symbol(ACTION, DATA), symbol(RESPONSE, DATA)
    if answer.law is not None:
        law = answer.law(**parts)
        both = merged(
            lambda: {"plain": law.log_density(response), "lapse": law.lapse_density(response)}
        )
        return Density(both["plain"], np.exp(both["plain"]), both["lapse"])
    u, each = Symbols.of(list(parts.values())), number(1.0 / actions)
    if answer.stated:
        return Density(np.log(np.maximum(u[action], TINY)), u[action], each)
    if actions == 2:
        lead = u[0] if len(u) == 1 else u[1] - u[0]
        ahead = lead * select(make("eq", action, 1.0), 1.0, -1.0)
        e = np.exp(-abs(ahead))
        chosen = select(ahead > 0.0, 1.0, e) / (1.0 + e)
        return Density(np.minimum(ahead, 0.0) - np.log(1.0 + e), chosen, each)
    top = node("hold", (np.maximum.reduce(u),))
    weights = np.exp(u - top).view(Symbols)
    whole = weights.sum()
    return Density(u[action] - top - np.log(whole), weights[action] / whole, each)


def log_density(densities: list[Density], lapses: bool, either: bool) -> Any:
    """Join the log densities of an answer's parts: all, or with `either` the one that was given."""
    if either:
        acts = negated(make("gt", 0.0, symbol(ACTION, DATA)))
        a, b = (vars(one).values() for one in densities)
        densities = [Density(*(select(acts, x, y) for x, y in zip(a, b, strict=True)))]
    if not lapses:
        return sum((d.log for d in densities[1:]), densities[0].log)
    rate: Any = symbol(LAPSE, PARAMETER)
    plain, of_lapse = (
        prod((getattr(d, name) for d in densities), start=number(1.0))
        for name in ("plain", "of_lapse")
    )
    return np.log(np.maximum((1.0 - rate) * plain + rate * of_lapse, TINY))


def parted(x: Expr) -> tuple[Expr, Expr]:
    """Split a log density into a term and a factor: it is the term plus the factor's logarithm."""
    if x.op == "log" and x.on not in (0, PARAMETER, DATA):
        return number(0.0), x.args[0]
    if x.op not in ("add", "sub"):
        return x, number(1.0)
    (a, over), (b, under) = map(parted, x.args)
    return make(x.op, a, b), make("mul" if x.op == "add" else "div", over, under)


def carried(
    parameters: Iterable[str], start: State, afters: list[State]
) -> dict[tuple[str, str], Expr]:
    """Return a symbol for each slope of a remembered number that is not always 0, by (state, p)."""
    symbols: dict[tuple[str, str], Expr] = {}
    parameters, count = list(parameters), -1
    while count < len(symbols):
        count = len(symbols)
        for p in parameters:
            by_symbol, known = seeds(p, symbols), {}  # type: ignore[var-annotated]
            for s in start:
                slopes = (slope(x[s], by_symbol, known) for x in (start, *afters))
                if (s, p) not in symbols and any(x is not number(0.0) for x in slopes):
                    symbols[s, p] = symbol(f"{s}_by_{p}", STATE)
    return symbols


def seeds(p: str, symbols: dict[tuple[str, str], Expr]) -> dict[Expr, Expr]:
    """Return the slope of each symbol in a parameter."""
    of_states = {symbol(s, STATE): x for (s, q), x in symbols.items() if q == p}
    return {symbol(p, PARAMETER): number(1.0), **of_states}


class Likelihood:
    """The text of a likelihood: a function without lapses and one with them.

    Both are called as ``(theta, lapse, n_actions, row, start, *columns) -> total, gradient``.

    Parameters
    ----------
    either : whether a trial has an action or a number, not both
    slopes : whether there are gradients; without, there are columns, laws and afters alone

    Attributes
    ----------
    columns : trial columns that the definition reads, the answer first
    used : columns that the function takes, before the hoisted ones
    hoisted : costly expressions of columns alone, by name
    question : columns that tell questions with costly answers apart
    order : columns in whose order trials are read fastest, the last first; none in order of time
    laws : laws of the parts of an answer; None for actions
    afters : what is remembered after a trial, by kind of trial
    """

    def __init__(self, definition: Definition, either: bool = False, slopes: bool = True):
        self.definition, self.either, self.slopes = definition, either, slopes
        self.start = definition.start
        self.kind: str
        values: tuple[int, ...]
        self.kind, values = definition.model.kinds or ("", (0,))
        self.values = values
        trials = [_trial_of(self.kind, value) for value in values]
        answers = [definition.answers(trial, trial) for trial in trials]
        afters = [definition.after(trial) for trial in trials]
        self.afters = afters
        forms = [[(answer.law, answer.stated) for answer in one] for one in answers]
        if any(form != forms[0] for form in forms):
            raise UntraceableError("respond() returns different kinds of answers; return one kind")
        self.laws = [law for law, _ in forms[0]]
        self._passes = [_Pass(self, answers, afters, lapses=False)]
        if definition.model.mixes_lapses:
            lapsing = Definition(definition.model, definition.actions, lapses=True)
            answers = [lapsing.answers(trial, trial) for trial in trials]
            afters = [lapsing.after(trial) for trial in trials]
        if slopes or definition.model.mixes_lapses:  # other lapses read no further column
            self._passes.append(_Pass(self, answers, afters, lapses=True))
        trial_roots = [x for one in self._passes for part in one.parts for x in part.roots]
        self.roots = [*trial_roots, *self.start.values()]
        first = [*self.given, *([self.kind] if self.kind else [])]
        read = [x.value for x in within(self.roots) if _is_column(x)]
        self.columns = tuple(dict.fromkeys([*first, *sorted(read, key=_rank)]))
        if not slopes:
            return
        wanted = [
            x
            for x in within(trial_roots)
            if x.on == DATA and x.args and x.op not in CONDITIONS and costly(x)
        ]
        rare = dict.fromkeys(one.rare for one in self._passes if one.rare is not None)
        hoisted = largest(trial_roots, wanted)
        if len(hoisted) > MOST_COLUMNS:
            hoisted = largest(trial_roots, [x for x in wanted if x.op in COSTLY])
        hoisted += rare
        self.hoisted = {x: f"once_{k}" for k, x in enumerate(hoisted)}
        left = within([*within(trial_roots, stop=self.hoisted), *self.start.values()], self.hoisted)
        used = {x.value for x in left if _is_column(x)} | set(first)
        self.used = tuple(name for name in self.columns if name in used)
        parts = [part for one in self._passes for part in one.parts]
        asked = within([x for part in parts if part.costly for x in part.carried.values()])
        names = {symbol(name, DATA): name for name in self.used} | self.hoisted
        self.question = [name for x, name in names.items() if x in asked]
        moved = any(part.changed for part in parts)
        self.order = () if moved else (*(self.hoisted[x] for x in rare), *self.question)

    @property
    def given(self) -> tuple[str, ...]:
        """The columns that hold the answers."""
        acts = any(law is None for law in self.laws)
        tells = any(law is not None for law in self.laws)
        return ((ACTION,) if acts else ()) + ((RESPONSE,) if tells else ())

    def lines(self) -> list[str]:
        """Return the lines of both functions."""
        columns = ", ".join(f"{name}_all" for name in (*self.used, *self.hoisted.values()))
        arguments = f"theta, lapse, n_actions, row, start, {columns}"
        lines: list[str] = []
        for name, one in zip(("without_lapses", "with_lapses"), self._passes, strict=True):
            whole = ['"""Log-likelihood of each row of theta, with its gradient."""', *one.lines()]
            lines += [
                '@compiled(fastmath={"contract"})',
                *block(f"def {name}({arguments}):", whole),
            ]
            lines += ["", ""]
        return lines[:-2]

    def is_given(self, at: str) -> str:
        """Return the condition that a trial has an answer."""
        texts = {ACTION: f"{ACTION}_{at} >= 0.0", RESPONSE: f"{RESPONSE}_{at} > -1e300"}
        if self.either:
            return f"({texts[ACTION]}) | ({texts[RESPONSE]})"
        return texts[self.given[0]]


MANY = 100  # from so many operations on, an answer is computed once for equal questions in a row
MOST_COLUMNS = 64  # hoisted columns; to read more takes longer than to add and multiply anew
TAILS = ("ndtr", "log_ndtr")


def _is_column(x: Expr) -> bool:
    return x.op == "symbol" and x.on == DATA


def _rank(name: str) -> tuple[bool, str]:
    return name != "reward", name  # the reward comes right after the answer, as elsewhere


def _trial_of(kind: str, value: int) -> Callable[[], Trial]:
    return lambda: Trial({kind: value} if kind else {})


def _multiplied(factor: str) -> list[str]:
    """Return statements that multiply a lane's product and keep it far from 0 and infinity."""
    if factor == "1.0":
        return []
    return [
        f"product = {row(1)} * pick(given, {factor}, 1.0)",
        f"tiny, huge = product < {TINY}, product > {1 / TINY}",
        f"{row(1)} = product * pick(tiny, {1 / TINY}, pick(huge, {TINY}, 1.0))",
        f"{row(0)} += pick(tiny, {LOG_TINY}, pick(huge, {-LOG_TINY}, 0.0))",
    ]


class _Part:
    """The computations on a trial of one kind.

    Attributes
    ----------
    heads : symbols that stand for the parts of the answer, and their expressions
    log : the log density in these symbols
    turns : slopes of heads, by parameter
    costly : whether heads should be computed only where a question differs from the one before
    carried : heads and slopes that have loops and rows of their own, and their expressions
    cases : terms of the log-likelihood and the gradient, by the value of a condition
    changed : the new values of what is remembered, slopes included
    """

    def __init__(
        self, whole: Likelihood, answers: list[TracedAnswer], after: State, parameters: list[str],
        slopes: dict[tuple[str, str], Expr],
    ):  # fmt: skip
        actions, model = whole.definition.actions, whole.definition.model
        self.heads: dict[Expr, Expr] = {}
        densities = []
        for k, answer in enumerate(answers):
            parts = answer.parts
            if answer.law is None and not answer.stated and len(parts) == actions == 2:
                parts = {"0": make("sub", parts["1"], parts["0"])}
            heads = {n: self._head(f"{k}_{n}", x) for n, x in parts.items()}
            densities.append(density(answer, heads, actions))
        lapses = LAPSE in parameters and not model.mixes_lapses
        self.log = log_density(densities, lapses, whole.either)
        self.changed = {symbol(s, STATE): after[s] for s in whole.start}
        self.turns: dict[str, dict[Expr, Any]] = {}
        for p in parameters:
            own_slopes, known = seeds(p, slopes), {}  # type: ignore[var-annotated]
            self.turns[p] = {head: slope(x, own_slopes, known) for head, x in self.heads.items()}
            for s in whole.start:
                if (s, p) in slopes:
                    self.changed[slopes[s, p]] = slope(after[s], own_slopes, known)
        self.changed = {s: x for s, x in self.changed.items() if x is not s}
        turns = [x for by_head in self.turns.values() for x in by_head.values()]
        tells = all(answer.law is not None for answer in answers)
        self.costly = tells and not self.changed and len(within(turns)) > MANY
        self.carried: dict[Expr, Expr] = {}
        self.cases: dict[float | None, list[Expr]] = {}

    def split(self, rare: Expr | None) -> None:
        """Make the cases, by a condition on columns under which a normal tail is rare."""
        if rare is not None or self.costly:
            self.carried = dict(self.heads)
            for p, turns in self.turns.items():
                for head, x in turns.items():
                    if x.on not in (0, PARAMETER, DATA):
                        turns[head] = symbol(f"{head.value}_by_{p}", x.on)
                        self.carried[turns[head]] = x
        for value in (None,) if rare is None else (0.0, 1.0):
            log = self.log if rare is None else substituted(self.log, {rare: number(value)})
            self.cases[value] = [*parted(log)]
            if not self.turns:
                continue
            pushes = {head: slope(log, {head: number(1.0)}, {}) for head in self.heads}
            for p, turns in self.turns.items():
                score: Any = slope(log, {symbol(p, PARAMETER): number(1.0)}, {})
                for head, turn in turns.items():
                    score = score + pushes[head] * turn
                self.cases[value].append(score)

    def _head(self, name: str, x: Expr) -> Expr:
        """Return a symbol for a part of an answer, if trials and parameters determine that part."""
        if x.on in (0, PARAMETER, DATA):
            return x
        head = symbol(f"head_{name}", x.on)
        self.heads[head] = x
        return head

    @property
    def roots(self) -> list[Expr]:
        """All expressions that a trial of this kind computes."""
        results = [x for case in self.cases.values() for x in case]
        return [*self.heads.values(), *self.carried.values(), *results, *self.changed.values()]


def rare_condition(roots: Iterable[Expr]) -> Expr | None:
    """Return a condition on columns that decides whether a normal tail is computed."""
    for x in within(roots):
        if x.op == "select" and x.args[0].on == DATA:
            tails = [any(y.op in TAILS for y in within([arm])) for arm in x.args[1:]]
            if tails[0] != tails[1]:
                return x.args[0]
    return None


class _Pass:
    """The function without lapses, or the one with lapses."""

    def __init__(
        self,
        whole: Likelihood,
        answers: list[list[TracedAnswer]],
        afters: list[State],
        lapses: bool,
    ):
        self.whole, self.lapses, start = whole, lapses, whole.start
        parameters = [*whole.definition.parameters, *([LAPSE] if lapses else [])]
        self.parameters = parameters if whole.slopes else []
        slopes = carried(self.parameters, start, afters)
        self.parts = [
            _Part(whole, one, after, self.parameters, slopes)
            for one, after in zip(answers, afters, strict=True)
        ]
        self.rare = rare_condition(part.log for part in self.parts)
        self.start = {symbol(s, STATE): x for s, x in start.items()}
        for (s, p), x in slopes.items():
            self.start[x] = slope(start[s], seeds(p, slopes), {})
        for part in self.parts:
            part.split(self.rare)
            self.start |= dict.fromkeys(part.carried, number(0.0))

    def lines(self) -> list[str]:
        """Return the lines of the function's body."""
        whole, n = self.whole, len(self.parameters)
        named: dict[Expr, str] = {}  # everything that has a row
        for part in self.parts:
            once = costly_of_parameters(part.roots, len(named))
            left = within(part.roots, stop={*once, *whole.hoisted})
            symbols = [x for x in (*left, *part.changed) if x.op == "symbol" and x.on != DATA]
            inline = set(part.heads) - set(part.carried)
            named |= {x: f"{x.value}_i" for x in symbols if x not in inline}
            named |= {x: name for x, name in once.items() if x not in named}
        places = {x: row(2 + n + k) for k, x in enumerate(named)}
        return Frame(
            ["total = np.zeros(len(theta))", f"gradient = np.zeros((len(theta), {n}))"],
            2 + n + len(named),
            [f"{row(1)} = 1.0", *self._begin(named, places)],
            [
                loop
                for value, part in zip(whole.values, self.parts, strict=True)
                for loop in self._loops(
                    [f"{whole.kind}_all[t, i] == {value}.0"] if whole.kind else [],
                    part, named, places,
                )
            ],
            [
                f"total[q] += {row(0)} + log({row(1)})",
                *(f"gradient[q, {k}] += {row(2 + k)}" for k in range(n)),
            ],
            "total, gradient",
        ).lines()  # fmt: skip

    def _loops(
        self, kinds: list[str], part: _Part, named: dict[Expr, str], places: dict[Expr, str]
    ) -> list[tuple[str, list[str]]]:
        """Return the loops of a trial, each under the condition on which a lane enters it."""
        loops = []
        if part.carried:
            differ = [f"({n}_all[t, i] != {n}_all[t - 1, i])" for n in self.whole.question]
            anew = " | ".join(["(t == start[block])", *differ]) if part.costly else ""
            begins = " & ".join(kinds) or anew
            first = self._trial(kinds, {}, part.carried, [], part.changed, named, places)
            loops = [(begins, first)]
        heads, changed = ({}, {}) if part.carried else (part.heads, part.changed)
        for value, case in part.cases.items():
            when = list(kinds)
            if self.rare is not None:
                when.append(f"{self.whole.hoisted[self.rare]}_all[t, i] == {value}")
            lines = self._trial(when, heads, {}, case, changed, named, places)
            loops.append((" & ".join(when), lines))
        return loops

    def _trial(
        self,
        when: list[str],
        heads: dict[Expr, Expr],
        carried: dict[Expr, Expr],
        results: list[Expr],
        changed: dict[Expr, Expr],
        named: dict[Expr, str],
        places: dict[Expr, str],
    ) -> list[str]:
        """Return the statements of a trial in a lane."""
        whole, n, zero = self.whole, len(self.parameters), number(0.0)
        roots = [*heads.values(), *carried.values(), *results, *changed.values()]
        left = within([*roots, *changed], stop={**named, **whole.hoisted})
        columns = {symbol(c, DATA): c for c in whole.used} | whole.hoisted
        read = [c for x, c in columns.items() if x in left]
        mine = {x: name for x, name in named.items() if x in left}
        body = Printer({**mine, **{x: f"{c}_t" for x, c in columns.items()}})
        body.names |= dict(zip(heads, body.write(heads.values()), strict=True))
        texts = iter(body.write([*carried.values(), *results, *changed.values()]))
        lines = [f"{places[x]} = {next(texts)}" for x in carried]
        if results:
            lines += [f"{row(0)} += pick(given, {next(texts)}, 0.0)", *_multiplied(next(texts))]
            scores = [f"{row(2 + k)} += pick(given, {next(texts)}, 0.0)" for k in range(n)]
            lines += [line for line, x in zip(scores, results[2:], strict=True) if x is not zero]
        lines += [f"{places[x]} = pick(given, {next(texts)}, {mine[x]})" for x in changed]
        given = " & ".join(f"({one})" for one in (whole.is_given("all[t, i]"), *when))
        return [
            *(f"{c}_t = {c}_all[t, i]" for c in read),
            *(f"{name} = {places[x]}" for x, name in mine.items()),
            *([f"given = {given}"] if results or changed else []),
            *body.lines,
            *lines,
        ]

    def _begin(self, named: dict[Expr, str], places: dict[Expr, str]) -> list[str]:
        """Return the statements that fill the rows of a lane before its first trial."""
        names = {symbol(p, PARAMETER): f"theta[q, {k}]" for k, p in enumerate(self.parameters)}
        if self.lapses:
            names[symbol(LAPSE, PARAMETER)] = "lapse[q]"
        roots = [self.start.get(x, x) for x in named]
        steady = [x for x in within(roots) if _is_column(x)]
        printer = Printer({**names, **{x: f"{x.value}_all[s, i]" for x in steady}})
        texts = printer.write(roots)
        missing = self.whole.is_given("all[s, i]")
        look = [
            "s = start[block]",
            *block(f"while (s < start[block + 1] - 1) and not ({missing}):", ["s += 1"]),
        ]
        stores = [
            f"{places[x]} = {text}"
            for x, text in zip(named, texts, strict=True)
            if text not in ("0.0", "-0.0")
        ]
        return [*(look if steady else []), *printer.lines, *stores]
