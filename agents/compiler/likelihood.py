"""The text of a likelihood: one forward pass in lanes, with the exact gradient beside it."""

from __future__ import annotations

from dataclasses import dataclass
from math import log2

from . import expressions as ex
from .answers import Form, form_of
from .expressions import ACTION, PARAMETER, RESPONSE, STATE, Expr
from .printing import Printer, Rows, bare, block, kept_without_answer, local, may_fail
from .program import Kind, Program
from .slopes import Sensitivities, lowered, outer_and_inner

JIT = '@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})'
PREFIX = "L_"
FEWEST = 512  # trials after which a product of numbers from 1 to 2 is put away


@dataclass(frozen=True)
class Score:
    """What is added to a row on each trial, and what the sum is multiplied by in the end."""

    parameter: str
    row: str
    inner: Expr
    outer: Expr


def likelihood(program: Program) -> list[str]:
    """Return the lines of the function and of its constants.

    ``log_likelihood(theta, lapse, n_actions, row, start, *columns) -> total, gradient``
    """
    return _Text(program).lines()


class _Text:
    def __init__(self, program: Program):
        self.program = program
        self.rows = Rows(PREFIX, program.parameters)
        afters = [kind.after for kind in program.kinds]
        self.slopes = Sensitivities(program.parameters, program.start, afters)
        for name in ("lapse", "linear", "product", "score_lapse"):
            self.rows(name)
        self.scores: list[Score] = []
        self.bodies = [self._trial(n, kind) for n, kind in enumerate(program.kinds)]

    def _trial(self, n: int, kind: Kind) -> list[str]:
        """Return the statements of one lane on one trial of this kind."""
        form = form_of(kind.outcome, self.program.actions)
        suffix = f"_{n}" if len(self.program.kinds) > 1 else ""
        known: dict[Expr, Expr] = {}
        heads = [lowered(x, known) for x in form.heads]
        scores = self._scores(form, suffix, known)
        after = {name: lowered(x, known) for name, x in self._after(kind).items()}
        self.scores += scores
        later = [*(score.inner for score in scores), *after.values()]
        self.rows.hold([*heads, *later])

        answer = {RESPONSE: "response"} if self.program.law else {ACTION: "action"}
        columns = {c: f"{c}_[t, i]" for c in self.program.columns}
        loads, names = self.rows.loads([*heads, *later], columns, {**answer, **form.pushes})
        printer = Printer(names)
        texts = printer.write(heads, later)
        lines = [*self._given(kind), *loads, *printer.taken()]
        lines += form.likelihood(texts, self.rows)
        texts = printer.write(later)
        lines += printer.taken()
        for score, text in zip(scores, texts, strict=False):
            lines += self._added(score, text)
        for (name, x), text in zip(after.items(), texts[len(scores) :], strict=True):
            lines += self._renewed(name, x, text, names)
        return lines

    def _scores(self, form: Form, suffix: str, known: dict[Expr, Expr]) -> list[Score]:
        found = []
        for theta in self.program.parameters:
            whole = form.score(lambda x, theta=theta: self.slopes.of(x, theta))  # type: ignore[misc]
            outer, inner = outer_and_inner(whole)
            if whole is not ex.ZERO:
                row = self.rows(f"score_{theta}{suffix}")
                found.append(Score(theta, row, lowered(inner, known), outer))
        return found

    def _after(self, kind: Kind) -> dict[str, Expr]:
        """Return what a trial changes: what is remembered, and its slopes."""
        after = dict(kind.after)
        for (s, theta), symbol in self.slopes.symbols.items():
            after[symbol.value] = self.slopes.of(kind.after[s], theta)
        return {name: x for name, x in after.items() if x is not ex.symbol(name, STATE)}

    def _given(self, kind: Kind) -> list[str]:
        if self.program.law:
            return ["response = response_[t, i]", "given = 1.0 if response > -1e300 else 0.0"]
        action = "action = action_[t, i]"
        if self.program.kind_column:
            action += f" if {self.program.kind_column}_[t, i] == {kind.value}.0 else -1.0"
        return [action, "given = 1.0 if action >= 0.0 else 0.0"]

    def _added(self, score: Score, text: str) -> list[str]:
        if self.program.law or may_fail(score.inner):
            return [f"change = {bare(text)}", f"{score.row} += change if given > 0.0 else 0.0"]
        return [f"{score.row} += {bare(text)}"]

    def _renewed(self, name: str, x: Expr, text: str, names: dict[Expr, str]) -> list[str]:
        old = ex.symbol(name, STATE)
        if kept_without_answer(x, old):
            return [f"{self.rows(name)} = {bare(text)}"]
        before = names.get(old, self.rows(name))
        new = [f"new_{name} = {bare(text)}"]
        return [*new, f"{self.rows(name)} = new_{name} if given > 0.0 else {before}"]

    def lines(self) -> list[str]:
        """Return the constants and the function."""
        program, p = self.program, len(self.program.parameters)
        start = {**program.start}
        start |= {self.slopes.symbols[key].value: x for key, x in self.slopes.start.items()}
        columns = ", ".join(f"{c}_" for c in program.columns)
        lanes = block("for i in range(LANES):", self._begin(start))
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
        return [
            *self.rows.begin(start),
            f"{self.rows('product')} = 1.0",
            *block("if lapse is not None:", [f"{self.rows('lapse')} = lapse[q]"]),
        ]

    def _trials(self) -> list[str]:
        linear, product = self.rows("linear"), self.rows("product")
        lines = []
        if not self.program.law:
            every = max(1, int(FEWEST / log2(max(2, self.program.actions))))
            put_away = [f"{linear} -= log({product})", f"{product} = 1.0"]
            condition = f"if (t - start[block]) % {every} == {every - 1}:"
            lines += block(condition, block("for i in range(LANES):", put_away))
        return [*lines, *in_lanes(self.program, self.bodies)]

    def _end(self) -> list[str]:
        """Return the statements that add up a lane after its last trial."""
        program, rows = self.program, self.rows
        names = {ex.symbol(p, PARAMETER): local(p) for p in program.parameters}
        printer = Printer(names, by_name={})
        lines = [f"{local(p)} = theta[q, {j}]" for j, p in enumerate(program.parameters)]
        for score in self.scores:
            (text,) = printer.write([score.outer])
            times = "" if score.outer is ex.ONE else f"{text} * "
            column = program.parameters.index(score.parameter)
            lines += [*printer.taken(), f"gradient[q, {column}] += {times}{score.row}"]
        lapse = [f"gradient[q, {len(program.parameters)}] += {rows('score_lapse')}"]
        return [
            "q = row[block, i]",
            f"total[q] += {rows('linear')} - log({rows('product')})",
            *lines,
            *block("if lapse is not None:", lapse),
        ]


def in_lanes(program: Program, bodies: list[list[str]]) -> list[str]:
    """Return one loop over lanes for each kind of trial, entered if any lane has it."""
    if len(bodies) == 1:
        return block("for i in range(LANES):", bodies[0])
    kinds = [(f"there_{n}", kind.value) for n, kind in enumerate(program.kinds)]
    column = f"{program.kind_column}_[t, i]"
    lines = [f"{there} = 0" for there, _ in kinds]
    lines += block(
        "for i in range(LANES):", [f"{there} += {column} == {value}.0" for there, value in kinds]
    )
    for (there, _), body in zip(kinds, bodies, strict=True):
        lines += block(f"if {there}:", block("for i in range(LANES):", body))
    return lines
