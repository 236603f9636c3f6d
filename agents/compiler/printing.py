"""Expressions as text: statements in straight lines, and the rows of the buffer they work on."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

from . import expressions as ex
from .expressions import ACTION, DATA, PARAMETER, SEQUENCE, Expr

LONGEST = 64  # characters of an expression that is written where it is used
PLAIN = ("add", "multiply", "abs", "not", "greater", "equal", "and")  # cheap, and short to read
BY_NAME = {  # of the functions that kernels bring along
    "exp": "exp_of",
    "log": "log_of",
    "ndtr": "ndtr_of",
    "log_ndtr": "log_ndtr_of",
    "mills": "mills_of",
    "select": "pick",  # a branch would cost the compiler several times as much as a call
}

BY_LIBRARY = {
    name: BY_NAME[name] for name in (*ex.SCALAR, "select")
}  # where the others are those of `math`

# Names of the templates; an author's name that is one of them is written with a dash more.
# fmt: off
RESERVED = frozenset((
    "theta", "lapse", "n_actions", "row", "start", "uniforms", "total", "gradient", "z",
    "block", "i", "q", "t", "side", "x", "e", "missed", "push", "taken", "share", "mixed",
    "product", "large", "own", "weight", "density", "logarithm", "slope", "change", "top",
    "whole", "per", "below", "given", "kept", "present", "lead", "p_0", "first", "second",
    "response", "action", "noise", "state", "trial", "u", "bound", "p", "meant", "any_of",
    "lapses", "any_number", "each", "there", "both", "alone", "fewer", "part", "exp",
    "log", "nan", "sqrt", "abs", "max", "min", "np", "pick",
))
# fmt: on


MADE_UP = ("new_", "held_", "is_", "push_", "there_", "once_", "rare_", "any_")


def local(name: str) -> str:
    """Return the name that a parameter or a remembered number has within a kernel."""
    numbered = name[:1] in "tuep" and name[1:].isdigit()
    made_up = name.startswith(MADE_UP)
    return f"{name}__" if name in RESERVED or numbered or made_up else name


def block(head: str, lines: Iterable[str]) -> list[str]:
    """Put lines under a head that ends in a colon."""
    return [head, *("    " + line for line in lines)]


def bare(text: str) -> str:
    """Take off brackets that enclose all of the text."""
    if not text.startswith("("):
        return text
    depth = 0
    for k, c in enumerate(text):
        depth += (c == "(") - (c == ")")
        if depth == 0:
            return text[1:-1] if k == len(text) - 1 else text
    return text


def table_name(table: tuple[float, ...]) -> str:
    """Return the name of a table's constant."""
    return f"TABLE_{hashlib.sha256(repr(table).encode()).hexdigest()[:8].upper()}"


class Printer:
    """Writes expressions as statements; what is used twice, or is long, gets a name.

    Parameters
    ----------
    names : what has a name already
    by_name : names of functions
    """

    def __init__(self, names: Mapping[Expr, str], by_name: Mapping[str, str] = BY_NAME):
        self.names = dict(names)
        self.by_name = by_name
        self._lines: list[str] = []
        self._made = 0

    def taken(self) -> list[str]:
        """Return the statements written since the last call."""
        lines, self._lines = self._lines, []
        return lines

    def write(self, roots: list[Expr], later: Iterable[Expr] = ()) -> list[str]:
        """Return the text of each root; the statements that it needs are then `taken`.

        What is needed `later` counts as used.
        """
        order = ex.within(roots, stop=self.names)
        uses = dict.fromkeys([*roots, *later], 1)
        dividing = set()
        for x in ex.within([*roots, *later], stop=self.names):
            for a in () if x in self.names else x.args:
                uses[a] = uses.get(a, 0) + 1
                if x.op == "multiply":
                    dividing.add(a)
        once = {x for x in order if x.op == "over" and uses[x] == 1 and x in dividing}
        once = set() if "over" in self.by_name else once
        for x in order:
            if x in self.names or x.op == "number" or x in once:
                continue
            text = self._text(x)
            if x.op in PLAIN and uses[x] == 1 and len(text) < LONGEST:
                self.names[x] = f"({text})"
            else:
                self.names[x] = self._assign(text)
        return [self._name(r) for r in roots]

    def _assign(self, text: str) -> str:
        self._made += 1
        self._lines.append(f"t{self._made} = {text}")
        return f"t{self._made}"

    def _name(self, x: Expr) -> str:
        return repr(x.value) if x.op == "number" else self.names[x]

    def _named(self, x: Expr) -> str:
        """Return a name or number: arms of selections do no work, so that none is a branch."""
        text = self._name(x)
        if text.startswith("("):
            text = self.names[x] = self._assign(text[1:-1])
        return text

    def _text(self, x: Expr) -> str:
        if x.op == "add":
            return self._sum(x)
        if x.op == "multiply":
            return self._product(x)
        a, b = self._name(x.args[0]), self._name(x.args[-1])
        match x.op:
            case "select":
                first, second = self._named(x.args[1]), self._named(x.args[2])
                if "select" in self.by_name:
                    return f"{self.by_name['select']}({bare(a)}, {first}, {second})"
                return f"{first} if {a} else {second}"
            case "max" | "min":
                return f"{x.op}({self._named(x.args[0])}, {self._named(x.args[1])})"
            case "over" if "over" not in self.by_name:
                return f"1.0 / {a}"
            case "greater":
                return f"{a} > {b}"
            case "equal":
                return f"{b} == {a}"
            case "and":
                return f"{a} & {b}"
            case "not":
                return f"not {a}"
            case "mills":
                return f"{BY_NAME[x.op]}({a}, {b})"
            case "lookup":
                place = self._named(x.args[0])
                inside = f"({place} >= 0.0) & ({place} < {len(x.value)}.0)"
                return f"{table_name(x.value)}[int({place} if {inside} else 0.0)]"
        return f"{self.by_name.get(x.op, x.op)}({a})"

    def _sum(self, x: Expr) -> str:
        text = ""
        for a, c in sorted(ex.terms_of(x).items(), key=lambda pair: pair[1] < 0):
            size = abs(c)
            name = self._name(a)
            part = repr(size) if a is ex.ONE else name if size == 1.0 else f"{size!r} * {name}"
            if text:
                text += f" {'-' if c < 0 else '+'} {part}"
            else:
                text = f"-{part}" if c < 0 else part
        return text

    def _product(self, x: Expr) -> str:
        divided = [a.args[0] for a in x.args if a.op == "over" and a not in self.names]
        above = [self._name(a) for a in x.args if a.op != "over" or a in self.names]
        text = " * ".join(above) or "1.0"
        return text + "".join(f" / {self._name(a)}" for a in divided)


def kept_without_answer(x: Expr, old: Expr) -> bool:
    """Say whether x is `old` on a trial without an answer, by the way it is made."""
    if x is old:
        return True
    if x.op == "select":
        c, a, b = x.args
        return kept_without_answer(b, old) and (_needs_answer(c) or kept_without_answer(a, old))
    if x.op == "multiply" and old is ex.ZERO:
        return any(kept_without_answer(a, old) for a in x.args)
    if x.op == "add":
        terms = ex.terms_of(x)
        rest = [a for a, c in terms.items() if not (a is old and c == 1.0)]
        whole = len(rest) == len(terms)
        return (whole == (old is ex.ZERO)) and all(kept_without_answer(a, ex.ZERO) for a in rest)
    return False


def _needs_answer(c: Expr) -> bool:
    if c.op == "and":
        return any(map(_needs_answer, c.args))
    return c.op == "equal" and c.args[0].op == "number" and c.args[1] is ACTION


def may_fail(x: Expr) -> bool:
    """Say whether data that stand for nothing could make x infinite or NaN."""
    return any(y.op in ex.COSTLY and y.on & (DATA | SEQUENCE) for y in ex.within([x]))


class Rows:
    """The rows of LANES numbers that a kernel carries along the trials, all in one flat buffer.

    Only in one buffer can the compiler prove that rows do not overlap, and turn the loop over
    lanes into vector instructions.
    """

    def __init__(self, prefix: str, parameters: Iterable[str]):
        self.prefix = prefix
        self.parameters = tuple(parameters)
        self.names: dict[str, str] = {}  # of the constants that say where rows begin
        self.held: dict[Expr, str] = {}  # what hangs on parameters alone, by its name
        self.kept: dict[Expr, tuple[str, str]] = {}  # what was reckoned before: name and place
        self.read: dict[str, None] = {}  # the columns that are read

    def __call__(self, name: str) -> str:
        """Return the text of a row's place in this lane; a row is made where it is asked for."""
        if name not in self.names:
            constant = f"{self.prefix}{name.upper()}"
            while constant in self.names.values():  # names that differ in their case alone
                constant += "_"
            self.names[name] = constant
        return f"z[{self.names[name]} + i]"

    def hold(self, roots: list[Expr]) -> None:
        """Make rows of costly parts that hang on parameters alone: done once a block."""
        order = ex.within(roots)
        costly = {
            x
            for x in order
            if x.args
            and not x.on & ~(PARAMETER | SEQUENCE)
            and any(y.op in (*ex.COSTLY, "select") for y in ex.within([x]))
        }
        inner = {a for x in order if x in costly for a in x.args}
        used = {a for x in order if x not in costly for a in x.args} | set(roots)
        for x in order:
            if x in costly and (x not in inner or x in used) and x not in self.held:
                self.held[x] = f"held_{len(self.held)}"

    def loads(
        self, roots: list[Expr], columns: Mapping[str, str], given: Mapping[Expr, str]
    ) -> tuple[list[str], dict[Expr, str]]:
        """Return statements that read what the roots need, and the names it then has.

        `given` has a name already. A column may be called as something remembered is.
        """
        lines, names = [], dict(given)
        for x in sorted(ex.within(roots, stop={**self.held, **self.kept}), key=lambda x: x.number):
            if x in self.kept:
                names[x], place = self.kept[x]
            elif x in self.held:
                names[x], place = self.held[x], self(self.held[x])
            elif x.op != "symbol" or x in given:
                continue
            elif x.on == DATA:
                names[x], place = f"{x.value}_t", columns[x.value]
                self.read[x.value] = None
            elif x.on == SEQUENCE:
                names[x], place = f"{x.value}_all", self(f"{x.value}_all")
            else:
                names[x], place = local(x.value), self(x.value)
            lines.append(f"{names[x]} = {place}")
        return lines, names

    def begin(self, start: Mapping[str, Expr]) -> list[str]:
        """Return statements that fill the rows of a lane before its first trial."""
        lines = ["q = row[block, i]"]
        for k, name in enumerate(self.parameters):
            lines.append(f"{local(name)} = theta[q, {k}]")
            if name in self.names:
                lines.append(f"{self(name)} = {local(name)}")
        begun = {s: x for s, x in start.items() if s in self.names and x is not ex.ZERO}
        roots = [*self.held, *begun.values()]
        steady = [x for x in ex.within(roots) if x.on == SEQUENCE and x.op == "symbol"]
        lines += [f"{x.value}_all = {self(f'{x.value}_all')}" for x in steady]
        printer = Printer(self.steady_names(steady), by_name=BY_LIBRARY)
        texts = printer.write(roots)
        lines += printer.taken()
        targets = map(self, [*self.held.values(), *begun])
        return lines + [f"{a} = {bare(b)}" for a, b in zip(targets, texts, strict=True)]

    def steady_names(self, columns: Iterable[Expr]) -> dict[Expr, str]:
        """Return the names of parameters, and of columns that are the same in all of a sequence."""
        names = {ex.symbol(p, PARAMETER): local(p) for p in self.parameters}
        return names | {x: f"{x.value}_all" for x in columns}

    def constants(self) -> list[str]:
        """Return the statements that say where each row begins."""
        places = [f"{name} = {k} * LANES" for k, name in enumerate(self.names.values())]
        return [*places, f"{self.prefix}ROWS = {len(self.names)}"]
