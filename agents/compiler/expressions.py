"""Expressions of numbers, built by Python's operators; each distinct one exists once.

An expression that was built before is found again, so that equality is identity, shared parts are
shared by construction, and tables go by the node itself.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from scipy import special

# What an expression hangs on, as bits; SEQUENCE is a column that is the same in all of a sequence.
PARAMETER, DATA, STATE, SEQUENCE = 1, 2, 4, 8

CONDITIONS = ("greater", "equal", "not", "and")
MOST_FACTORS = 8  # of a power that is written as a product

HALF_LOG_2_PI = 0.5 * math.log(2.0 * math.pi)
FUNCTIONS: dict[str, Callable[[float], float]] = {
    "exp": math.exp,
    "log": math.log,
    "sqrt": math.sqrt,
    "abs": abs,
    "over": lambda x: 1.0 / x,
    "ndtr": lambda x: float(special.ndtr(x)),
    "log_ndtr": lambda x: float(special.log_ndtr(x)),
}
SCALAR = ("ndtr", "log_ndtr", "mills")  # calls that no vector instruction does
COSTLY = ("over", "exp", "log", "sqrt", *SCALAR)
LONGEST_CHAIN = 16  # of selections among the entries of a table; others are looked up


class UntraceableError(TypeError):
    """What a definition does that no kernel could; says what to write instead."""


class Expr:
    """A node: an operation, the nodes it works on, and a value (a number, a name, coefficients).

    `on` says what it hangs on; `number` counts nodes in the order in which they were made.
    """

    __slots__ = ("args", "number", "on", "op", "value")

    op: str
    args: tuple[Expr, ...]
    value: Any
    on: int
    number: int

    def __add__(self, other: Any) -> Any:
        return add([(1.0, self), (1.0, other)]) if is_number(other) else NotImplemented

    def __sub__(self, other: Any) -> Any:
        return add([(1.0, self), (-1.0, other)]) if is_number(other) else NotImplemented

    def __rsub__(self, other: Any) -> Any:
        return add([(1.0, other), (-1.0, self)]) if is_number(other) else NotImplemented

    def __mul__(self, other: Any) -> Any:
        return multiply([self, other]) if is_number(other) else NotImplemented

    def __truediv__(self, other: Any) -> Any:
        return multiply([self, apply("over", other)]) if is_number(other) else NotImplemented

    def __rtruediv__(self, other: Any) -> Any:
        return multiply([other, apply("over", self)]) if is_number(other) else NotImplemented

    def __pow__(self, power: Any) -> Any:
        if isinstance(power, Expr) and power.op == "number":
            power = power.value
        if isinstance(power, int | float) and power == int(power) and abs(power) <= MOST_FACTORS:
            whole = multiply([self] * abs(int(power)))
            return whole if power >= 0 else apply("over", whole)
        if isinstance(power, int | float) and power == 0.5:
            return apply("sqrt", self)
        return apply("exp", multiply([power, apply("log", self)]))

    def __rpow__(self, base: Any) -> Any:
        return apply("exp", multiply([self, apply("log", base)]))

    def __neg__(self) -> Any:
        return multiply([-1.0, self])

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return apply("abs", self)

    def exp(self) -> Any:
        """Return what np.exp asks of the elements of an array of its own."""
        return apply("exp", self)

    def log(self) -> Any:
        """Return what np.log asks of them."""
        return apply("log", self)

    def sqrt(self) -> Any:
        """Return what np.sqrt asks of them."""
        return apply("sqrt", self)

    def __gt__(self, other: Any) -> Any:
        return greater(self, other) if is_number(other) else NotImplemented

    def __lt__(self, other: Any) -> Any:
        return greater(other, self) if is_number(other) else NotImplemented

    def __ge__(self, other: Any) -> Any:
        return negation(greater(other, self)) if is_number(other) else NotImplemented

    def __le__(self, other: Any) -> Any:
        return negation(greater(self, other)) if is_number(other) else NotImplemented

    def __eq__(self, other: object) -> Any:
        return equal(self, other) if is_number(other) else NotImplemented

    def __ne__(self, other: object) -> Any:
        return negation(equal(self, other)) if is_number(other) else NotImplemented

    def __and__(self, other: Any) -> Any:
        return both(self, as_expr(other))

    def __or__(self, other: Any) -> Any:
        return negation(both(negation(self), negation(as_expr(other))))

    def __invert__(self) -> Any:
        if self.op not in CONDITIONS and self.op != "number":
            raise UntraceableError("~ turns conditions around; write 1 - x for numbers 0 and 1")
        return negation(self)

    __radd__ = __add__
    __rmul__ = __mul__
    __rand__ = __and__
    __ror__ = __or__
    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        if self.op == "number":
            return bool(self.value)
        if _decide is None:
            raise TypeError("An expression has no truth of its own outside of tracing.")
        return _decide(self)

    def __float__(self) -> float:
        if self.op == "number":
            return float(self.value)
        raise UntraceableError(
            "float(), the functions of `math` and arrays of plain numbers need a plain number; "
            "write np.exp, np.log, ..., leave float() out, and fill np.zeros_like(self.values)"
        )

    def __int__(self) -> int:
        if self.op == "number":
            return int(self.value)
        raise UntraceableError(
            "int() needs a plain number; leave it out where it is an index, and write np.where "
            "where it is a case"
        )

    def __index__(self) -> int:
        if self.op == "number" and self.value == int(self.value):
            return int(self.value)
        raise UntraceableError(
            "lists, tuples and range() need a plain number; index a NumPy array, and let loops "
            "run over fixed ranges"
        )

    def __format__(self, how: str) -> str:
        raise UntraceableError(
            "no text can be made of what is only known in the trial; index a NumPy array"
        )

    def __repr__(self) -> str:
        """Write as a call."""
        if self.op in ("number", "symbol"):
            return str(self.value)
        inner = ", ".join(map(repr, self.args))
        return f"{self.op}({inner})"


def is_number(x: object) -> bool:
    """Say whether x is one number: an expression, Python's, or NumPy's; no array of several."""
    if isinstance(x, Expr | int | float):
        return True
    return isinstance(x, np.generic | np.ndarray) and x.shape == ()


_known: dict[tuple[Any, ...], Expr] = {}
_not_negative: frozenset[Expr] = frozenset()
_index_sizes: dict[Expr, int] = {}
_lasting: list[tuple[tuple[Any, ...], Expr]] = []
_decide: Callable[[Expr], bool] | None = None
_lock = threading.RLock()


@contextmanager
def new_graph() -> Iterator[None]:
    """Forget all nodes but the constants: a text must not hang on what was traced before it."""
    with _lock:
        _index_sizes.clear()
        _known.clear()
        _known.update(_lasting)
        yield


def used_as_index(x: Expr, size: int) -> None:
    """Note that a number indexes an axis of this size."""
    _index_sizes[x] = size


def index_sizes() -> dict[Expr, int]:
    """Return the sizes of the axes that numbers index."""
    return dict(_index_sizes)


@contextmanager
def deciding(decide: Callable[[Expr], bool]) -> Iterator[None]:
    """Let `decide` say which course is taken where a condition is asked for its truth."""
    global _decide
    before, _decide = _decide, decide
    try:
        yield
    finally:
        _decide = before


@contextmanager
def not_negative(symbols: Iterable[Expr]) -> Iterator[None]:
    """Take symbols for numbers that are never negative."""
    global _not_negative
    before, _not_negative = _not_negative, _not_negative | set(symbols)
    try:
        yield
    finally:
        _not_negative = before


def never_negative(x: Expr) -> bool:
    """Say whether x is 0 or more, by the way it is made; an action that was taken is."""
    match x.op:
        case "number":
            return bool(x.value >= 0.0)
        case "symbol":
            return x is ACTION or x in _not_negative
        case "select" | "max" | "min":
            arms = map(never_negative, x.args[-2:])
            return any(arms) if x.op == "max" else all(arms)
        case "add":
            return min(x.value) > 0.0 and all(map(never_negative, x.args))
        case "multiply":
            return all(map(never_negative, x.args))
    return x.op in ("exp", "sqrt", "abs")


def node(op: str, args: tuple[Expr, ...] = (), value: Any = None, on: int = 0) -> Expr:
    """Return the one node of this operation on these nodes."""
    key = (op, value, on, *map(id, args))
    found = _known.get(key)
    if found is None:
        found = Expr()
        found.op, found.args, found.value, found.number = op, args, value, len(_known)
        for a in args:
            on |= a.on
        found.on = on
        _known[key] = found
    return found


def number(x: float) -> Expr:
    """Return a constant."""
    return node("number", value=float(x))


def symbol(name: str, on: int) -> Expr:
    """Return what is only known when a kernel runs: a parameter, a column, a remembered number."""
    return node("symbol", value=name, on=on)


ZERO, ONE = number(0.0), number(1.0)
FALSE, TRUE = ZERO, ONE  # of conditions that are known
ACTION, RESPONSE = symbol("action", DATA), symbol("response", DATA)
_lasting += _known.items()


def as_expr(x: Any) -> Expr:
    """Return x as an expression; conditions stay conditions."""
    return x if isinstance(x, Expr) else number(float(x))


def as_number(x: Any) -> Expr:
    """Return x as a number to reckon with: a condition counts as 1 or 0."""
    x = as_expr(x)
    return select(x, ONE, ZERO) if x.op in CONDITIONS else x


def split(x: Expr) -> tuple[float, Expr]:
    """Take the numerical factor off a product."""
    if x.op == "number":
        return x.value, ONE
    if x.op == "multiply" and x.args[0].op == "number":
        rest = x.args[1:]
        return x.args[0].value, rest[0] if len(rest) == 1 else node("multiply", rest)
    return 1.0, x


def terms_of(x: Expr) -> dict[Expr, float]:
    """Return the terms of a sum with their coefficients; anything else is a single term."""
    if x.op == "add":
        return dict(zip(x.args, x.value, strict=True))
    c, rest = split(x)
    return {rest: c}


def factors_of(x: Expr) -> tuple[Expr, ...]:
    """Return the factors of a product; anything else is a single factor."""
    return x.args if x.op == "multiply" else (x,)


def collected(pairs: Iterable[tuple[float, Any]]) -> dict[Expr, float]:
    """Add up the coefficients of each distinct term."""
    found: dict[Expr, float] = {}
    for c, x in pairs:
        own, rest = split(as_number(x))
        found[rest] = found.get(rest, 0.0) + c * own
    return {x: c for x, c in found.items() if c != 0.0}


def add(pairs: Iterable[tuple[float, Any]]) -> Expr:
    """Sum coefficients times expressions. Inner sums are opened only where terms then meet."""
    terms = collected(pairs)
    for x in [x for x in terms if x.op == "add"]:
        c = terms.get(x)
        if c is None or not any(y in terms for y in x.args):
            continue
        del terms[x]
        inner = ((c * v, y) for y, v in terms_of(x).items())
        terms = collected([*((v, y) for y, v in terms.items()), *inner])
    if not terms:
        return ZERO
    if len(terms) == 1:
        ((x, c),) = terms.items()
        return multiply([c, x])
    ordered = sorted(terms, key=lambda x: (x is ONE, x.number))
    return node("add", tuple(ordered), tuple(terms[x] for x in ordered))


def place_of(x: Expr, parts: Collection[Expr]) -> int | None:
    """Find a node among others by identity: `in` would ask whether expressions are equal."""
    return next((k for k, y in enumerate(parts) if y is x), None)


def without(x: Expr, parts: Iterable[Expr]) -> list[Expr]:
    """Leave out one occurrence of a node."""
    rest = list(parts)
    k = place_of(x, rest)
    if k is not None:
        del rest[k]
    return rest


def multiply(factors: Iterable[Any]) -> Expr:
    """Multiply; x / x is 1, and a factor -1 goes into a sum."""
    c, parts = 1.0, []
    for f in map(as_number, factors):
        for g in factors_of(f):
            if g.op == "number":
                c *= g.value
            else:
                parts.append(g)
    for g in [g for g in parts if g.op == "over"]:
        if place_of(g.args[0], parts) is not None and place_of(g, parts) is not None:
            parts = without(g, without(g.args[0], parts))
    if c == 0.0:
        return ZERO
    if not parts:
        return number(c)
    if len(parts) == 1 and parts[0].op == "add" and c == -1.0:
        return add((-v, x) for x, v in terms_of(parts[0]).items())
    parts.sort(key=lambda x: x.number)
    if c != 1.0:
        parts.insert(0, number(c))
    return parts[0] if len(parts) == 1 else node("multiply", tuple(parts))


def apply(op: str, x: Any) -> Expr:
    """Apply a function of one number: exp, log, sqrt, abs, ndtr, log_ndtr, or over, 1 / x."""
    x = as_number(x)
    if x.op == "number":
        return number(FUNCTIONS[op](x.value))
    if op == "over" and x.op == "over":
        inner: Expr = x.args[0]
        return inner
    return node(op, (x,))


def lookup(table: tuple[float, ...], place: Any) -> Expr:
    """Return the entry of a table at a place, a whole number from 0 to less than its length."""
    place = as_number(place)
    if place.op == "number":
        return number(table[int(place.value)])
    return node("lookup", (place,), table)


def greater(a: Any, b: Any) -> Expr:
    """Return the condition a > b."""
    a, b = as_number(a), as_number(b)
    if a.op == b.op == "number":
        return TRUE if a.value > b.value else FALSE
    if a.op == "number" and a.value <= 0.0 and never_negative(b):
        return FALSE
    return FALSE if a is b else node("greater", (a, b))


def equal(a: Any, b: Any) -> Expr:
    """Return the condition a == b; a constant comes first."""
    a, b = as_number(a), as_number(b)
    if a.op == b.op == "number":
        return TRUE if a.value == b.value else FALSE
    if b.number < a.number:
        a, b = b, a
    if b.op == "number":
        a, b = b, a
    if a.op == "number" and a.value < 0.0 and never_negative(b):
        return FALSE
    return TRUE if a is b else node("equal", (a, b))


def negation(a: Expr) -> Expr:
    """Return the condition that holds where a does not."""
    if a.op == "number":
        return FALSE if a.value else TRUE
    if a.op not in CONDITIONS:
        a = negation(equal(a, ZERO))
    return a.args[0] if a.op == "not" else node("not", (a,))


def both(a: Expr, b: Expr) -> Expr:
    """Return the condition that holds where both do."""
    if a is FALSE or b is FALSE:
        return FALSE
    if a is TRUE or a is b:
        return b
    if b is TRUE:
        return a
    return node("and", (a, b) if a.number < b.number else (b, a))


def select(c: Expr, a: Any, b: Any) -> Expr:
    """Return a where c holds, else b. What both have in common is done once, outside."""
    return _selected(c, as_number(a), as_number(b))


def _selected(c: Expr, a: Expr, b: Expr) -> Expr:
    if c.op == "number":
        return a if c.value else b
    if c.op == "not":
        return _selected(c.args[0], b, a)
    while a.op == "select" and a.args[0] is c:
        a = a.args[1]
    while b.op == "select" and b.args[0] is c:
        b = b.args[2]
    if a is b:
        return a
    if c.op == "greater" and c.args[0] is a and c.args[1] is b:
        return node("max", (a, b))
    if c.op == "greater" and c.args[0] is b and c.args[1] is a:
        return node("min", (a, b))
    shared = _shared(c, a, b)
    return node("select", (c, a, b)) if shared is None else shared


def _shared(c: Expr, a: Expr, b: Expr) -> Expr | None:
    """Return the selection with what both arms share taken out; None if they share nothing."""
    if a.op == b.op and a.op in FUNCTIONS:
        return apply(a.op, select(c, a.args[0], b.args[0]))
    if a.op == b.op == "select" and a.args[0] is b.args[0]:
        d, x, y = a.args
        v, w = b.args[1:]
        if x is v or y is w:
            return select(d, select(c, x, v), select(c, y, w))
    if a is ZERO or b is ZERO:
        return None
    if "add" in (a.op, b.op):
        of_a, of_b = terms_of(a), terms_of(b)
        common = {x: v for x, v in of_a.items() if of_b.get(x) == v}
        if common:
            rest = [add((v, x) for x, v in of.items() if x not in common) for of in (of_a, of_b)]
            return add([*((v, x) for x, v in common.items()), (1.0, select(c, *rest))])
    if "multiply" in (a.op, b.op):
        left, right, factors = factors_of(a), factors_of(b), []
        for f in left:
            if place_of(f, right) is not None:
                left, right = tuple(without(f, left)), tuple(without(f, right))
                factors.append(f)
        if factors:
            return multiply([*factors, select(c, multiply(left), multiply(right))])
    return None


def rebuilt(x: Expr, args: list[Expr]) -> Expr:
    """Apply the operation of a node to other arguments."""
    if all(a is b for a, b in zip(args, x.args, strict=True)):
        return x
    if x.op == "add":
        return add(zip(x.value, args, strict=True))
    if x.op == "multiply":
        return multiply(args)
    if x.op in FUNCTIONS:
        return apply(x.op, args[0])
    if x.op == "lookup":
        return lookup(x.value, args[0])
    made: dict[str, Callable[..., Expr]] = {
        "select": select,
        "greater": greater,
        "equal": equal,
        "not": negation,
        "and": both,
    }
    return made[x.op](*args) if x.op in made else node(x.op, tuple(args), x.value)


def substituted(x: Expr, by: dict[Expr, Expr]) -> Expr:
    """Put expressions in the place of symbols; `by` takes up what was found on the way."""
    if x not in by:
        by[x] = rebuilt(x, [substituted(a, by) for a in x.args]) if x.args else x
    return by[x]


def within(roots: Iterable[Expr], stop: Collection[Expr] = ()) -> list[Expr]:
    """List all nodes of expressions, each after those it works on; not what `stop` is made of."""
    found: dict[Expr, None] = {}
    stack = [(r, False) for r in reversed(list(roots))]
    while stack:
        x, ready = stack.pop()
        if ready:
            found[x] = None
        elif x not in found:
            stack.append((x, True))
            if x not in stop:
                stack += [(a, False) for a in reversed(x.args) if a not in found]
    return list(found)
