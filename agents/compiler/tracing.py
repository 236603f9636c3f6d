"""Run a definition on symbols: conditions fork the run, and forks are joined as selections."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from itertools import product
from typing import Any

import numpy as np
from scipy import special

from . import expressions as ex
from .expressions import Expr, UntraceableError

MOST_COURSES = 4096  # 12 conditions one after the other
MOST_CONDITIONS = 64  # of one course
SHORT = 8  # parts that are told apart one after the other
MOST_QUESTIONS = 2000  # of one course, known answers included


class Traced(np.ndarray[Any, Any]):
    """An array of expressions; an index may be an expression too, and rows write through."""

    _of: tuple[Traced, Any] | None = None  # the array this is a row of, and where

    @classmethod
    def of(cls, values: Any) -> Traced:
        """Make one of an array of numbers and expressions."""
        plain = np.array(values, dtype=object)
        for place in np.ndindex(plain.shape):
            plain[place] = ex.as_expr(plain[place])
        return plain.view(cls)

    def __array_finalize__(self, source: Any) -> None:
        self._of = None

    def __getitem__(self, key: Any) -> Any:
        keys = key if isinstance(key, tuple) else (key,)
        for p, k in enumerate(keys):
            if isinstance(k, Expr):
                rows = [self[(*keys[:p], n, *keys[p + 1 :])] for n in range(_n(self, p, k))]
                found = chosen(rows, k)
                if isinstance(found, Traced):
                    found._of = (self, key)
                return found
        return super().__getitem__(key)

    def __setitem__(self, key: Any, value: Any) -> None:
        keys = key if isinstance(key, tuple) else (key,)
        symbolic = [p for p, k in enumerate(keys) if isinstance(k, Expr)]
        for place in product(*(range(_n(self, p, keys[p])) for p in symbolic)):
            at, holds = list(keys), ex.TRUE
            for p, n in zip(symbolic, place, strict=True):
                holds, at[p] = ex.both(holds, ex.equal(keys[p], n)), n
            new = where(holds, value, self[tuple(at)]) if symbolic else value
            super().__setitem__(tuple(at) if symbolic else key, new)
        self._pass_on()

    def _pass_on(self) -> None:
        if self._of is not None:
            whole, key = self._of
            whole[key] = self

    def __array_ufunc__(self, ufunc: Any, method: Any, *inputs: Any, **options: Any) -> Any:
        return applied(ufunc, method, *inputs, **options)

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        if function in _FUNCTIONS:
            return _FUNCTIONS[function](*args, **options)
        return super().__array_function__(function, (np.ndarray,), args, options)

    def clip(self, low: Any = None, high: Any = None, **options: Any) -> Any:  # type: ignore[override]
        """Keep between two numbers; None for no end."""
        found = self if low is None else np.maximum(self, low)
        return found if high is None else np.minimum(found, high)

    def argmax(self, *args: Any, **options: Any) -> Any:
        """Return the first place of the largest number, as NumPy does."""
        best, found = self[0], ex.ZERO
        for k in range(1, len(self)):
            larger = ex.greater(self[k], best)
            best, found = ex.select(larger, self[k], best), ex.select(larger, k, found)
        return found


def _n(array: np.ndarray[Any, Any], axis: int, index: Expr) -> int:
    n = int(array.shape[axis])
    ex.used_as_index(index, n)
    return n


def chosen(parts: list[Any], k: Expr) -> Any:
    """Return the part whose number is k."""
    if len(parts) > SHORT and all(is_constant(part) for part in parts):
        return _looked_up_among([ex.as_number(part) for part in parts], k)
    terms = ex.terms_of(k)
    shift = terms.get(ex.ONE, 0.0)  # whole numbers: what is added can be taken off
    rest = ex.add((c, x) for x, c in terms.items() if x is not ex.ONE) if shift else k
    found = parts[-1]
    for n in reversed(range(len(parts) - 1)):
        found = where(ex.equal(rest, n - shift), parts[n], found)
    return found


def is_constant(part: Any) -> bool:
    """Say whether a part is one number that is known when the kernel is made."""
    return isinstance(part, Expr) and part.op == "number"


def _looked_up_among(parts: list[Expr], k: Expr) -> Expr:
    """Return the constant whose number is k; a kernel compares k once for each and selects little.

    Places of equal constants are one condition; the most frequent one is what is left.
    """
    places: dict[Expr, list[int]] = {}
    for n, part in enumerate(parts):
        places.setdefault(part, []).append(n)
    found, *others = sorted(places, key=lambda part: -len(places[part]))
    for part in others:
        condition = ex.equal(k, places[part][0])
        for n in places[part][1:]:
            condition = condition | ex.equal(k, n)
        found = ex.select(condition, part, found)
    return found


def where(condition: Any, a: Any, b: Any) -> Any:
    """Return a where the condition holds, else b: of numbers, expressions or arrays of either."""
    if not isinstance(condition, Expr):
        return a if condition else b
    if not (isinstance(a, np.ndarray) or isinstance(b, np.ndarray)):
        return ex.select(condition, a, b)
    left, right = np.broadcast_arrays(np.asarray(a, object), np.asarray(b, object))
    joined = np.empty(left.shape, dtype=object)
    for place in np.ndindex(left.shape):
        joined[place] = ex.select(condition, left[place], right[place])
    return joined.view(Traced)


def maximum(a: Any, b: Any) -> Any:
    """Return the larger number."""
    return where(ex.greater(a, b), a, b)


def minimum(a: Any, b: Any) -> Any:
    """Return the smaller number."""
    return where(ex.greater(b, a), a, b)


def tanh(x: Any) -> Any:
    """Return the hyperbolic tangent."""
    return 1.0 - 2.0 / (ex.apply("exp", 2.0 * x) + 1.0)


_OPERATIONS: dict[Any, Callable[..., Any]] = {
    np.add: operator.add,
    np.subtract: operator.sub,
    np.multiply: operator.mul,
    np.divide: operator.truediv,
    np.power: operator.pow,
    np.negative: operator.neg,
    np.positive: operator.pos,
    np.absolute: abs,
    np.square: lambda x: x * x,
    np.maximum: maximum,
    np.minimum: minimum,
    np.greater: operator.gt,
    np.greater_equal: operator.ge,
    np.less: operator.lt,
    np.less_equal: operator.le,
    np.equal: operator.eq,
    np.not_equal: operator.ne,
    np.logical_and: lambda a, b: ex.both(a, b),
    np.logical_or: lambda a, b: a | b,
    np.logical_not: ex.negation,
    np.exp: lambda x: ex.apply("exp", x),
    np.expm1: lambda x: ex.apply("exp", x) - 1.0,
    np.log: lambda x: ex.apply("log", x),
    np.log1p: lambda x: ex.apply("log", 1.0 + x),
    np.sqrt: lambda x: ex.apply("sqrt", x),
    np.sign: lambda x: where(x > 0, 1.0, where(x < 0, -1.0, 0.0)),
    np.tanh: tanh,
    special.expit: lambda x: 1.0 / (1.0 + ex.apply("exp", -x)),
    special.ndtr: lambda x: ex.apply("ndtr", x),
    special.log_ndtr: lambda x: ex.apply("log_ndtr", x),
}


def _told(function: Any) -> str:
    home = "np" if getattr(np, function.__name__, None) is function else "scipy.special"
    return f"{home}.{function.__name__}"


def applied(
    ufunc: Any, method: str, *inputs: Any, out: Any = None, axis: Any = None, **_: Any
) -> Any:
    """Apply what NumPy would to every element, as expressions: without asking for their truth."""
    if ufunc is np.matmul and method == "__call__":
        left, right = (np.asarray(x, dtype=object).view(np.ndarray) for x in inputs)
        whole = np.dot(left, right)
        return whole.view(Traced) if isinstance(whole, np.ndarray) else whole
    if ufunc not in _OPERATIONS:
        known = ", ".join(sorted(map(_told, _OPERATIONS)))
        raise UntraceableError(
            f"{_told(ufunc)} is not among the functions of definitions; write it with {known}"
        )
    operation = _OPERATIONS[ufunc]
    arrays = [np.asarray(x, dtype=object).view(np.ndarray) for x in inputs]
    found: Any
    if method == "reduce":
        (array,) = arrays
        array = array.ravel() if axis is None else np.moveaxis(array, axis, 0)
        found = array[0]
        for part in array[1:]:
            found = applied(ufunc, "__call__", found, part)
    elif method == "__call__":
        wide = np.broadcast_arrays(*arrays)
        found = np.empty(wide[0].shape, dtype=object)
        for place in np.ndindex(found.shape):
            found[place] = ex.as_expr(operation(*(ex.as_expr(w[place]) for w in wide)))
        found = found[()]
    else:
        raise UntraceableError(f"np.{ufunc.__name__}.{method} is unknown here; write a loop")
    found = found.view(Traced) if isinstance(found, np.ndarray) else found
    if out is not None:
        (target,) = out
        np.ndarray.__setitem__(target, ..., found)
        target._pass_on()
        return target
    return found


def _where(condition: Any, a: Any, b: Any) -> Any:
    if isinstance(condition, Expr):
        return where(condition, a, b)
    parts = np.broadcast_arrays(*(np.asarray(x, dtype=object) for x in (condition, a, b)))
    found = np.empty(parts[0].shape, dtype=object)
    for place in np.ndindex(found.shape):
        found[place] = where(*(np.asarray(p)[place] for p in parts))
    return found.view(Traced)


def _clip(x: Any, low: Any, high: Any) -> Any:
    return np.minimum(np.maximum(x, low), high)


_FUNCTIONS: dict[Any, Callable[..., Any]] = {np.where: _where, np.clip: _clip}


def _of_expression(self: Expr, function: Any, types: Any, args: Any, options: Any) -> Any:
    if function in _FUNCTIONS:
        return _FUNCTIONS[function](*args, **options)
    return function._implementation(*args, **options)


def _ufunc_of_expression(self: Expr, *args: Any, **options: Any) -> Any:
    return applied(*args, **options)


def _looked_up(self: Expr, values: Any, key: Any) -> Any:
    keys = key if isinstance(key, tuple) else (key,)
    few = values.size <= ex.LONGEST_CHAIN or values.dtype.kind == "O"
    if few or len(keys) < values.ndim:
        return Traced.of(values)[key]
    place: Any = 0
    for k, size in zip(keys, values.shape, strict=True):
        ex.used_as_index(ex.as_expr(k), size)
        place = place * size + k
    return ex.lookup(tuple(values.ravel().astype(float).tolist()), place)


# An expression alone is to NumPy what an array of them is, and to a table of constants an index.
Expr.__array_ufunc__ = _ufunc_of_expression  # type: ignore[attr-defined]
Expr.__array_function__ = _of_expression  # type: ignore[attr-defined]
Expr.looked_up = _looked_up  # type: ignore[attr-defined]


class Course:
    """One way through a definition: what was decided so far, and what will be.

    Parameters
    ----------
    ahead : answers to the first questions; later ones are answered with yes
    """

    def __init__(self, ahead: list[bool]):
        self.ahead = ahead
        self.taken: list[Expr] = []
        self.known: dict[Expr, bool] = {}
        self.questions = 0

    def decide(self, condition: Expr) -> bool:
        """Answer a condition: alike whenever it comes again."""
        self.questions += 1
        if self.questions > MOST_QUESTIONS or len(self.taken) > MOST_CONDITIONS:
            raise UntraceableError(
                "a loop does not end while symbols run through it; write `for` over a fixed range "
                "in place of `while` or of a method that calls itself"
            )
        if condition.op == "number":
            return bool(condition.value)
        if condition.op == "not":
            return not self.decide(condition.args[0])
        if condition.op == "and":
            return self.decide(condition.args[0]) and self.decide(condition.args[1])
        if condition.op not in ex.CONDITIONS:
            return not self.decide(ex.equal(condition, ex.ZERO))
        if condition not in self.known:
            if self._excluded(condition):
                return False
            k = len(self.taken)
            self.known[condition] = self.ahead[k] if k < len(self.ahead) else True
            self.taken.append(condition)
        return self.known[condition]

    def _excluded(self, condition: Expr) -> bool:
        """Say whether a number is known to equal another constant already."""
        if condition.op != "equal" or condition.args[0].op != "number":
            return False
        return any(
            held and c.op == "equal" and c.args[1] is condition.args[1] and c.args[0].op == "number"
            for c, held in self.known.items()
        )


def merged(run: Callable[[], Mapping[str, Any]]) -> dict[str, Expr]:
    """Run a function through all courses of its conditions; join what it returns by selections.

    Raises
    ------
    UntraceableError
        If there are too many courses, or they return different names.
    """
    courses = 0

    def explore(ahead: list[bool]) -> dict[str, Expr]:
        nonlocal courses
        courses += 1
        course = Course(ahead)
        with ex.deciding(course.decide):
            found = {name: ex.as_expr(value) for name, value in run().items()}
        if courses > MOST_COURSES:
            raise UntraceableError(
                f"the definition has more than {MOST_COURSES} courses through its ifs; write "
                "np.where for values and keep `if` for cases"
            )
        decided = [course.known[c] for c in course.taken]
        for k in reversed(range(len(ahead), len(decided))):
            other = explore([*decided[:k], False])
            if other.keys() != found.keys():
                odd = ", ".join(sorted(other.keys() ^ found.keys()))
                raise UntraceableError(
                    f"{odd} is there after some courses of an `if` and not after all"
                )
            found = {n: ex.select(course.taken[k], found[n], other[n]) for n in found}
        return found

    return explore([])


class Seen:
    """A trial whose columns are symbols, made as they are asked for.

    Parameters
    ----------
    known : what is known of it already, by name
    arrays : shapes of those columns that hold several numbers
    """

    def __init__(self, known: Mapping[str, Any], arrays: Mapping[str, Any] | None = None):
        self.__dict__.update(known)
        self._arrays = dict(arrays or {})

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        shape = self._arrays.get(name)
        if shape is None:
            made: Any = ex.symbol(name, ex.DATA)
        else:
            made = Traced.of(
                [ex.symbol(f"{name}_{k}", ex.DATA) for k in range(int(np.prod(shape)))]
            ).reshape(shape)
        self.__dict__[name] = made
        return made

    def __getitem__(self, name: str) -> Any:
        raise UntraceableError(f"a trial's columns are attributes; write trial.{name}")


class Steady:
    """What is known where a sequence begins: the columns that are the same in all of it."""

    def __init__(self, columns: Mapping[str, Any]):
        self.__dict__.update(columns)

    def __getattr__(self, name: str) -> Any:
        raise UntraceableError(
            f"begin() reads trial.{name}, which may change within a sequence; name it in "
            f"`separate`, or leave it to respond()"
        )


def flat(state: Mapping[str, Any]) -> dict[str, Any]:
    """Spread arrays over names with numbers: values -> values_0, values_1."""
    found: dict[str, Any] = {}
    for name, value in state.items():
        if ex.is_number(value) and not isinstance(value, np.ndarray):
            found[name] = value
        elif isinstance(value, np.ndarray) and value.dtype.kind in "biufO":
            for place in np.ndindex(value.shape):
                found["_".join((name, *map(str, place)))] = value[place]
        else:
            raise UntraceableError(
                f"what is remembered is numbers and NumPy arrays of numbers; self.{name} is a "
                f"{type(value).__name__}"
            )
    return found


def shaped(state: Mapping[str, Any], values: Callable[[str], Expr]) -> dict[str, Any]:
    """Put values, asked for by flat names, into the shapes of a state: the inverse of `flat`."""
    found: dict[str, Any] = {}
    for name, value in state.items():
        if isinstance(value, np.ndarray):
            array = np.empty(value.shape, dtype=object)
            for place in np.ndindex(value.shape):
                array[place] = values("_".join((name, *map(str, place))))
            found[name] = array.view(Traced)
        else:
            found[name] = values(name)
    return found


def with_symbols(state: Mapping[str, Any]) -> dict[str, Any]:
    """Replace the numbers of a state by symbols, shapes kept."""
    return shaped(state, lambda name: ex.symbol(name, ex.STATE))
