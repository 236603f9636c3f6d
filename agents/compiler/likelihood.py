"""The text of a likelihood: one forward pass in lanes, with the exact gradient beside it."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from math import log2

from . import expressions as ex
from .answers import Form, form_of
from .expressions import ACTION, DATA, SEQUENCE, STATE, Expr
from .passes import before, has, spared
from .printing import BY_LIBRARY, Printer, Rows, bare, block, kept_without_answer, local, may_fail
from .program import Kind, Program
from .slopes import Sensitivities, derivative, factored, lowered, outer_and_inner

JIT = '@compiled(fastmath={"contract"})'
PREFIX = "L_"
ONCE = (*ex.COSTLY, "lookup")  # worth reckoning once where they hang on columns alone
FIRST = "at_first_"  # before a name: what is remembered so before the first trial
FEWEST = 512  # trials after which a product of numbers from 1 to 2 is put away


@dataclass(frozen=True)
class Score:
    """What is added to a row on each trial, and what the sum is multiplied by in the end."""

    parameter: str
    row: str
    inner: Expr
    outer: Expr


@dataclass(frozen=True)
class Parts:
    """What is reckoned on a trial of one kind.

    Parameters
    ----------
    heads : what the answer is made of
    added : what is added to rows of scores
    after : what is remembered anew, slopes included
    """

    kind: Kind
    form: Form
    heads: list[Expr]
    added: dict[str, Expr]
    after: dict[str, Expr]

    @property
    def later(self) -> list[Expr]:
        """What is reckoned once the answer's part is known."""
        return [*self.added.values(), *self.after.values()]

    @property
    def roots(self) -> list[Expr]:
        """All of it."""
        return [*self.heads, *self.later]

    def pushed(self, x: Expr) -> bool:
        """Say whether an expression hangs on how the answer's part comes out."""
        return any(y in self.form.pushes for y in ex.within([x]))


class Likelihood:
    """The text of a likelihood and of what it takes in.

    ``log_likelihood(theta, lapse, n_actions, row, start, *columns) -> total, gradient``; columns
    are those of the program, or what ``prepared(*columns)`` makes of them, where parts of them can
    be reckoned once.
    """

    def __init__(self, program: Program):
        self.program = program
        self.rows = Rows(PREFIX, program.parameters)
        afters = [kind.after for kind in program.kinds]
        self.firsts = _made_of_several(program)
        own = {**program.start, **{x.value.removeprefix(FIRST): x for x in self.firsts}}
        self.turned = (*program.parameters, *(x.value for x in self.firsts))
        self.slopes = Sensitivities(self.turned, own, afters)
        self.start = {**program.start}
        self.start |= {self.slopes.symbols[key].value: x for key, x in self.slopes.start.items()}
        for name in ("lapse", "linear", "score_lapse", *([] if program.law else ["product"])):
            self.rows(name)
        self.scores: list[Score] = []
        self.once: dict[Expr, str] = {}  # what is reckoned once, by the name of its column
        parts = [self._parts(n, kind) for n, kind in enumerate(program.kinds)]
        for part in parts:
            self.rows.hold(part.roots)
            self._find_once(part)
        self.bodies = [self._trial(part) for part in parts]
        outer = [score.outer for score in self.scores]
        self.steady = tuple(
            x.value
            for x in ex.within(
                [*outer, *(x for part in parts for x in part.roots), *self.start.values()]
            )
            if x.op == "symbol" and x.on == SEQUENCE
        )  # columns that are read where a sequence begins

    @property
    def columns(self) -> tuple[str, ...]:
        """What the function takes in, by name."""
        if not self.once:
            return self.program.columns
        first = ["given" if self.program.law else "action"]
        read = [c for c in self.program.columns if c in self.rows.read or c in self.steady]
        kinds = [self.program.kind_column] if self.program.kind_column else []
        return tuple(dict.fromkeys([*first, *kinds, *read, *self.once.values()]))

    def _parts(self, n: int, kind: Kind) -> Parts:
        """Return what is reckoned on a trial of this kind."""
        form = form_of(kind, self.program.actions)
        suffix = f"_{n}" if len(self.program.kinds) > 1 else ""
        known: dict[Expr, Expr] = {}
        heads = [lowered(x, known) for x in form.heads]
        own = self._after(kind)
        scores, shared = self._scores(form, suffix, known, set(own.values()))
        after = {name: lowered(shared.get(x, x), known) for name, x in own.items()}
        self.scores += scores
        return Parts(kind, form, heads, {score.row: score.inner for score in scores}, after)

    def _trial(self, parts: Parts) -> list[str]:
        """Return the statements of a trial, in all lanes."""
        columns = {c: f"{c}_[t, i]" for c in self.program.columns}
        given = self._given(parts.kind)
        passes = self._rare(parts, columns, given)
        answer: dict[Expr, str] = {} if self.program.law else {ACTION: "action"}
        pushes = parts.form.pushes
        loads, names = self.rows.loads(parts.roots, columns, {**answer, **pushes})
        printer = Printer(names)
        texts = printer.write(parts.heads, parts.later)
        body = [*given, *loads, *printer.taken()]
        body += parts.form.likelihood(texts, self.rows)
        texts = printer.write(parts.later)
        body += printer.taken()
        for (row, x), text in zip(parts.added.items(), texts, strict=False):
            body += self._added(row, x, text)
        for (name, x), text in zip(parts.after.items(), texts[len(parts.added) :], strict=True):
            body += self._renewed(name, x, text, names)
        return [*passes, *block("for i in range(LANES):", body)]

    def _find_once(self, parts: Parts) -> None:
        """Find the costly parts that hang on columns alone, as large as they come."""
        if not self.program.fixed:
            return  # the number of actions is not known where data are read
        order = ex.within(parts.roots, stop=self.rows.held)
        mine = {x for x in order if x.args and x.on == DATA and x.op not in ex.CONDITIONS}
        mine = {x for x in mine if has(x, ONCE) and not parts.pushed(x)}
        whole = {a for x in order if x not in mine for a in x.args} | set(parts.roots)
        for x in order:
            if x in mine and x in whole and x not in self.rows.kept:
                name = self.once.setdefault(x, f"once_{len(self.once)}")
                self.rows.kept[x] = name, f"{name}_[t, i]"
        for x in order if self.once else ():
            if x.op == "and" and x.on == DATA and x not in self.rows.kept:
                name = self.once.setdefault(x, f"once_{len(self.once)}")
                self.rows.kept[x] = name, f"{name}_[t, i] > 0.0"

    def _rare(self, parts: Parts, columns: dict[str, str], given: list[str]) -> list[str]:
        """Return passes for what stands under conditions on columns alone."""
        known = {**self.rows.held, **self.rows.kept}
        lines: list[str] = []
        names: dict[Expr, str] = {}
        for holds, own in spared(parts.roots, known, lambda x: not parts.pushed(x)):
            named = {x: f"rare_{len(names) + k}" for k, x in enumerate(own)}
            lines += before(holds, named, self.rows, columns, given)
            names |= named
        self.rows.kept |= {x: (name, self.rows(name)) for x, name in names.items()}
        return lines

    def _scores(
        self, form: Form, suffix: str, known: dict[Expr, Expr], after: Collection[Expr]
    ) -> tuple[list[Score], dict[Expr, Expr]]:
        """Return what each parameter's row adds up; what is alike is added up once.

        And of those slopes that are remembered `after` the trial as well, the form that both have.
        """
        found = []
        rows: dict[Expr, str] = {}
        shared: dict[Expr, Expr] = {}
        stands_for: dict[Expr, Expr] = {}  # for a while a symbol, so that it is not taken apart

        def slope(x: Expr, theta: str) -> Expr:
            own = self.slopes.of(x, theta)
            if not own.args or own not in after:
                return own
            shared[own] = factored(own)
            symbol = ex.symbol(f"slope {own.number}", STATE)
            stands_for[symbol] = shared[own]
            return symbol

        for theta in self.turned:
            whole = form.score(lambda x, theta=theta: slope(x, theta))  # type: ignore[misc]
            outer, inner = outer_and_inner(whole)
            if whole is not ex.ZERO:
                inner = lowered(ex.substituted(inner, dict(stands_for)), known)
                if inner not in rows:
                    rows[inner] = self.rows(f"score_{theta}{suffix}")
                for name, share in self._shares(theta):
                    found.append(Score(name, rows[inner], inner, ex.multiply([outer, share])))
        return found, shared

    def _shares(self, theta: str) -> list[tuple[str, Expr]]:
        """Return the parameters by which a score is turned, each with the slope of theta in it."""
        if theta in self.program.parameters:
            return [(theta, ex.ONE)]
        whole = self.firsts[ex.symbol(theta, ex.PARAMETER)]
        return list(_slopes(whole, self.program.parameters).items())

    def _after(self, kind: Kind) -> dict[str, Expr]:
        """Return what a trial changes: what is remembered, and its slopes."""
        after = dict(kind.after)
        for (s, theta), symbol in self.slopes.symbols.items():
            after[symbol.value] = self.slopes.of(kind.after[s], theta)
        return {name: x for name, x in after.items() if x is not ex.symbol(name, STATE)}

    def _given(self, kind: Kind) -> list[str]:
        if self.program.law:
            here = f"({self._is_given()})"
            if self.program.kind_column:
                here += f" & ({self.program.kind_column}_[t, i] == {kind.value}.0)"
            return [f"given = pick({here}, 1.0, 0.0)"]
        action = "action = action_[t, i]"
        if self.program.kind_column:
            here = f"{self.program.kind_column}_[t, i] == {kind.value}.0"
            action = f"action = pick({here}, action_[t, i], -1.0)"
        return [action, "given = pick(action >= 0.0, 1.0, 0.0)"]

    def _is_given(self) -> str:
        if not self.program.law:
            return "action_[t, i] >= 0.0"
        return "given_[t, i] > 0.0" if self.once else "response_[t, i] > -1e300"

    def _added(self, row: str, x: Expr, text: str) -> list[str]:
        if self.program.given != "action" or may_fail(x):
            return [f"change = {bare(text)}", f"{row} += pick(given > 0.0, change, 0.0)"]
        return [f"{row} += {bare(text)}"]

    def _renewed(self, name: str, x: Expr, text: str, names: dict[Expr, str]) -> list[str]:
        old = ex.symbol(name, STATE)
        if kept_without_answer(x, old):
            return [f"{self.rows(name)} = {bare(text)}"]
        before = names.get(old, self.rows(name))
        new = [f"new_{name} = {bare(text)}"]
        return [*new, f"{self.rows(name)} = pick(given > 0.0, new_{name}, {before})"]

    def lines(self) -> list[str]:
        """Return the constants and the function."""
        p = len(self.program.parameters)
        columns = ", ".join(f"{c}_" for c in self.columns)
        lanes = block("for i in range(LANES):", self._begin(self.start))
        trials = block("for t in range(start[block], start[block + 1]):", self._trials())
        blocks = ["z[:] = 0.0", *lanes, *trials]
        blocks += block("for i in range(LANES):", self._end())
        body = [
            '"""Log-likelihood of each row of theta, with its gradient carried forward."""',
            "total = np.zeros(len(theta))",
            f"gradient = np.zeros((len(theta), {p} if lapse is None else {p + 1}))",
            f"z = np.empty({PREFIX}ROWS * LANES)",
            *block("for block in range(len(row)):", blocks),
            "return total, gradient",
        ]
        head = f"def log_likelihood(theta, lapse, n_actions, row, start, {columns}):"
        return [*self.rows.constants(), "", "", JIT, *block(head, body)]

    def _begin(self, start: dict[str, Expr]) -> list[str]:
        found = [f"{self.rows(f'{name}_all')} = {name}_[t, i]" for name in self.steady]
        look = block("for t in range(start[block], start[block + 1]):", [
            *block(f"if {self._is_given()}:", [*found, f"{self.rows('answered')} = 1.0", "break"])
        ]) if found else []  # fmt: skip
        return [
            *look,
            *self.rows.begin(start),
            *([] if self.program.law else [f"{self.rows('product')} = 1.0"]),
            *block("if lapse is not None:", [f"{self.rows('lapse')} = lapse[q]"]),
        ]

    def _trials(self) -> list[str]:
        lines = []
        if not self.program.law:
            linear, product = self.rows("linear"), self.rows("product")
            every = max(1, int(FEWEST / log2(max(2, self.program.actions))))
            put_away = [f"{linear} -= log({product})", f"{product} = 1.0"]
            condition = f"if (t - start[block]) % {every} == {every - 1}:"
            lines += block(condition, block("for i in range(LANES):", put_away))
        return [*lines, *in_lanes(self.program, self.bodies)]

    def _end(self) -> list[str]:
        """Return the statements that add up a lane after its last trial."""
        program, rows = self.program, self.rows
        outer = ex.within([score.outer for score in self.scores])
        steady = [x for x in outer if x.on == SEQUENCE and x.op == "symbol"]
        printer = Printer(rows.steady_names(steady), by_name=BY_LIBRARY)
        lines = block(f"if {rows('answered')} == 0.0:", ["continue"]) if self.steady else []
        lines += [f"{local(p)} = theta[q, {j}]" for j, p in enumerate(program.parameters)]
        lines += [f"{x.value}_all = {rows(f'{x.value}_all')}" for x in steady]
        for score in self.scores:
            (text,) = printer.write([score.outer])
            times = "" if score.outer is ex.ONE else f"{text} * "
            column = program.parameters.index(score.parameter)
            lines += [*printer.taken(), f"gradient[q, {column}] += {times}{score.row}"]
        lapse = [f"gradient[q, {len(program.parameters)}] += {rows('score_lapse')}"]
        product = "" if program.law else f" - log({rows('product')})"
        return [
            "q = row[block, i]",
            f"total[q] += {rows('linear')}{product}",
            *lines,
            *block("if lapse is not None:", lapse),
        ]


def _slopes(x: Expr, parameters: Iterable[str]) -> dict[str, Expr]:
    """Return the slopes in parameters that are not always 0."""
    own = {p: derivative(x, {ex.symbol(p, ex.PARAMETER): ex.ONE}, {}) for p in parameters}
    return {p: slope for p, slope in own.items() if slope is not ex.ZERO}


def _made_of_several(program: Program) -> dict[Expr, Expr]:
    """Return what is remembered at first that hangs on several parameters, by a symbol of its own.

    Scores are turned by it as by one parameter, and only their sums by those that it is made of.
    """
    return {
        ex.symbol(f"{FIRST}{name}", ex.PARAMETER): x
        for name, x in program.start.items()
        if len(_slopes(x, program.parameters)) > 1
    }


def in_lanes(program: Program, bodies: list[list[str]]) -> list[str]:
    """Return one loop over lanes for each kind of trial, entered if any lane has it."""
    if len(bodies) == 1:
        return bodies[0]
    kinds = [(f"there_{n}", kind.value) for n, kind in enumerate(program.kinds)]
    column = f"{program.kind_column}_[t, i]"
    lines = [f"{there} = 0" for there, _ in kinds]
    lines += block(
        "for i in range(LANES):", [f"{there} += {column} == {value}.0" for there, value in kinds]
    )
    for (there, _), body in zip(kinds, bodies, strict=True):
        lines += block(f"if {there}:", body)
    return lines
