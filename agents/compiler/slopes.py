"""Slopes of expressions: forward mode, carried along the trials beside what is remembered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .expressions import (
    CONDITIONS,
    HALF_LOG_2_PI,
    ONE,
    PARAMETER,
    SEQUENCE,
    STATE,
    ZERO,
    Expr,
    add,
    apply,
    collected,
    factors_of,
    greater,
    multiply,
    node,
    place_of,
    rebuilt,
    select,
    symbol,
    terms_of,
    without,
)

Slopes = dict[Expr, Expr]  # by expression; of symbols that are not there the slope is 0


def derivative(x: Expr, slopes: Mapping[Expr, Expr], known: Slopes) -> Expr:
    """Differentiate x; `slopes` are those of symbols, `known` those found so far.

    Where an arm of a selection is taken, its slope is: kinks have the slope of the side taken.
    """
    if not x.on & (PARAMETER | STATE) or x.op in CONDITIONS:
        return ZERO
    if x not in known:
        known[x] = slopes.get(x, ZERO) if x.op == "symbol" else _by_rule(x, slopes, known)
    return known[x]


def _by_rule(x: Expr, slopes: Mapping[Expr, Expr], known: Slopes) -> Expr:
    def d(y: Expr) -> Expr:
        return derivative(y, slopes, known)

    a, b = x.args[0], x.args[-1]
    match x.op:
        case "add":
            return add(zip(x.value, map(d, x.args), strict=True))
        case "multiply":
            parts = enumerate(x.args)
            return add((1.0, multiply([*x.args[:k], d(f), *x.args[k + 1 :]])) for k, f in parts)
        case "over":
            return multiply([-1.0, x, x, d(a)])
        case "exp":
            return multiply([x, d(a)])
        case "log":
            return multiply([apply("over", a), d(a)])
        case "sqrt":
            return multiply([0.5, apply("over", x), d(a)])
        case "ndtr":
            squares = multiply([a, a])
            return multiply([apply("exp", add([(-0.5, squares), (-HALF_LOG_2_PI, ONE)])), d(a)])
        case "log_ndtr":
            return multiply([node("mills", (a, x)), d(a)])  # which spares a second tail
        case "lookup":
            return ZERO
        case "abs":
            return multiply([select(greater(a, ZERO), ONE, -ONE), d(a)])
        case "select":
            return select(a, d(x.args[1]), d(b))
        case "max":
            return select(greater(a, b), d(a), d(b))
        case "min":
            return select(greater(b, a), d(a), d(b))
    raise TypeError(f"{x.op} has no slope")


class Sensitivities:
    """Slopes of what is remembered in each parameter, where they are not always 0.

    Parameters
    ----------
    parameters : names
    start : what is remembered before the first trial, by name
    after : the same after a trial, for each kind of trial

    Attributes
    ----------
    symbols, start : by (name of what is remembered, parameter), as carried and before the first
        trial
    """

    def __init__(
        self,
        parameters: Sequence[str],
        start: Mapping[str, Expr],
        after: Sequence[Mapping[str, Expr]],
    ):
        self.symbols: dict[tuple[str, str], Expr] = {}
        self.start: dict[tuple[str, str], Expr] = {}
        count = -1
        while count < len(self.symbols):  # one that is carried may wake others
            count = len(self.symbols)
            for theta in parameters:
                slopes, known = self._slopes(theta), {}  # type: tuple[Slopes, Slopes]
                for s, first in start.items():
                    moved = [derivative(x, slopes, known) for x in (first, *(a[s] for a in after))]
                    if any(x is not ZERO for x in moved) and (s, theta) not in self.symbols:
                        self.symbols[s, theta] = symbol(f"{s}_by_{theta}", STATE)
                        self.start[s, theta] = moved[0]
        self._tables: dict[str, tuple[Slopes, Slopes]] = {
            theta: (self._slopes(theta), {}) for theta in parameters
        }

    def _slopes(self, theta: str) -> Slopes:
        carried = {symbol(s, STATE): x for (s, of), x in self.symbols.items() if of == theta}
        return {symbol(theta, PARAMETER): ONE, **carried}

    def of(self, x: Expr, theta: str) -> Expr:
        """Return the slope of an expression in a parameter."""
        return derivative(x, *self._tables[theta])


def factored(x: Expr) -> Expr:
    """Take out of a sum the factor that most of its terms share, and so on."""
    if x.op == "multiply":
        return multiply(map(factored, x.args))
    if x.op != "add":
        return x
    terms = collected(_opened(x))
    counts: dict[Expr, int] = {}
    for t in terms:
        for f in dict.fromkeys(factors_of(t)):
            counts[f] = counts.get(f, 0) + 1
    counts.pop(ONE, None)
    best = max(counts, key=lambda f: (counts[f], -f.number), default=None)
    if best is None or counts[best] < 2:
        return x
    inside, outside = [], []
    for t, c in terms.items():
        if place_of(best, factors_of(t)) is None:
            outside.append((c, t))
        else:
            inside.append((c, multiply(without(best, factors_of(t)))))
    return add([(1.0, multiply([best, factored(add(inside))])), (1.0, factored(add(outside)))])


def _opened(x: Expr, by: float = 1.0) -> list[tuple[float, Expr]]:
    """List the terms of a sum of sums."""
    found: list[tuple[float, Expr]] = []
    for y, c in terms_of(x).items():
        for inner, own in terms_of(y).items() if y.op != "add" else ((y, 1.0),):
            if inner.op == "add":
                found += _opened(inner, by * c * own)
            else:
                found.append((by * c * own, inner))
    return found


def outer_and_inner(x: Expr) -> tuple[Expr, Expr]:
    """Split a product into what hangs on parameters alone, which leaves sums, and the rest."""
    factors, steady = factors_of(x), PARAMETER | SEQUENCE
    own = [a for a in factors if not a.on & ~steady]
    return multiply(own), multiply(a for a in factors if a.on & ~steady)


def lowered(x: Expr, known: Slopes) -> Expr:
    """Turn factors that are selections between 0 and 1 into selections, which cost less."""
    if x not in known:
        found = rebuilt(x, [lowered(a, known) for a in x.args])
        if found.op == "multiply":
            for f in found.args:
                arms = f.args[1:] if f.op == "select" else ()
                if arms and {id(ZERO), id(ONE)} == set(map(id, arms)):
                    rest = lowered(multiply(without(f, found.args)), known)
                    kept = [rest if a is ONE else ZERO for a in arms]
                    found = select(f.args[0], *kept)
                    break
        known[x] = found
    return known[x]
