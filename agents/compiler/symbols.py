"""Numbers that are known only in a trial: plain NumPy code runs on them and leaves expressions."""

from __future__ import annotations

import math
import operator
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import product
from typing import Any

import numpy as np
from scipy import special

from .definition import HALF_LOG_2_PI

PARAMETER, DATA, STATE = 1, 2, 4  # what an expression depends on, as bits
CONDITIONS = ("gt", "eq", "not", "and")
COSTLY = ("div", "exp", "log", "sqrt", "ndtr", "log_ndtr", "hazard", "lookup")
LARGEST_POWER = 8  # powers up to this one are written as products
LONGEST_CHAIN = 16  # comparisons among the entries of a table; longer tables are looked up
MOST_PATHS = 4096  # 12 conditions one after the other
MOST_CONDITIONS = 64  # conditions on one path
MOST_QUESTIONS = 2000  # conditions asked on one path, repeated ones included

# Each operation has the function that it applies to numbers, or to arrays of them.
NUMERIC: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "abs": np.abs,
    "ndtr": special.ndtr,
    "log_ndtr": special.log_ndtr,
    "hazard": lambda x: math.sqrt(2.0 / math.pi) / special.erfcx(-x / math.sqrt(2.0)),
    "gt": np.greater,
    "eq": np.equal,
    "and": np.logical_and,
    "not": np.logical_not,
    "select": np.where,
}


class UntraceableError(TypeError):
    """An operation in a definition that no kernel can have; it says what to write instead."""


def _binary(op: Callable[[Any, Any], Any]) -> Any:
    def method(self: Expr, other: Any) -> Any:
        return op(self, other) if is_number(other) else NotImplemented

    return method


class Expr:
    """An operation, the expressions it works on, and a value (a number, a name, a table).

    Each distinct expression exists once, so that equality is identity. `on` says what it depends
    on; `number` counts expressions in the order in which they were made.
    """

    __slots__ = ("args", "number", "on", "op", "value")

    op: str
    args: tuple[Expr, ...]
    value: Any
    on: int
    number: int
    __hash__ = object.__hash__

    __add__ = _binary(lambda a, b: make("add", a, b))
    __sub__ = _binary(lambda a, b: make("sub", a, b))
    __mul__ = _binary(lambda a, b: make("mul", a, b))
    __truediv__ = _binary(lambda a, b: make("div", a, b))
    __radd__ = _binary(lambda a, b: make("add", b, a))
    __rsub__ = _binary(lambda a, b: make("sub", b, a))
    __rmul__ = _binary(lambda a, b: make("mul", b, a))
    __rtruediv__ = _binary(lambda a, b: make("div", b, a))
    __gt__ = _binary(lambda a, b: make("gt", a, b))
    __lt__ = _binary(lambda a, b: make("gt", b, a))
    __ge__ = _binary(lambda a, b: negated(make("gt", b, a)))
    __le__ = _binary(lambda a, b: negated(make("gt", a, b)))
    __eq__ = _binary(lambda a, b: make("eq", a, b))
    __ne__ = _binary(lambda a, b: negated(make("eq", a, b)))

    def __neg__(self) -> Expr:
        return make("sub", 0.0, self)

    def __pos__(self) -> Expr:
        return self

    def __abs__(self) -> Expr:
        return make("abs", self)

    def __and__(self, other: Any) -> Expr:
        return make("and", self, other)

    def __or__(self, other: Any) -> Expr:
        return negated(make("and", negated(self), negated(as_expr(other))))

    def __invert__(self) -> Expr:
        if self.op not in CONDITIONS and self.op != "number":
            raise UntraceableError("~ turns conditions around; write 1 - x for numbers 0 and 1")
        return negated(self)

    __rand__, __ror__ = __and__, __or__

    def exp(self) -> Expr:
        """Return the exponential; NumPy's np.exp calls this on elements of object arrays."""
        return make("exp", self)

    def log(self) -> Expr:
        """Return the logarithm; NumPy's np.log calls this on elements of object arrays."""
        return make("log", self)

    def sqrt(self) -> Expr:
        """Return the square root; NumPy's np.sqrt calls this on elements of object arrays."""
        return make("sqrt", self)

    def __pow__(self, power: Any) -> Any:
        if isinstance(power, Expr) and power.op == "number":
            power = power.value
        if isinstance(power, int | float) and power == int(power) and abs(power) <= LARGEST_POWER:
            whole: Any = number(1.0)
            for _ in range(abs(int(power))):
                whole = whole * self
            return whole if power >= 0 else 1.0 / whole
        if isinstance(power, int | float) and power == 0.5:
            return self.sqrt()
        return make("exp", make("mul", power, self.log()))

    def __rpow__(self, base: Any) -> Expr:
        return make("exp", make("mul", self, make("log", base)))

    def __bool__(self) -> bool:
        if self.op == "number":
            return bool(self.value)
        if _decide is None:
            raise UntraceableError("what is known only in the trial is no truth; write np.where")
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
            "no text can be made of what is known only in the trial; index a NumPy array"
        )

    def __repr__(self) -> str:
        return f"{self.op}({', '.join(map(repr, self.args))})" if self.args else str(self.value)

    def looked_up(self, values: Any, key: Any) -> Any:
        """Return the entry of a table of constants, or of parameters, at an index."""
        keys = key if isinstance(key, tuple) else (key,)
        few = values.size <= LONGEST_CHAIN or values.dtype.kind == "O"
        if few or len(keys) < values.ndim:
            return Symbols.of(values)[key]
        index: Any = 0
        for k, size in zip(keys, values.shape, strict=True):
            index = index * size + k
        if not isinstance(index, Expr) or index.op == "number":
            return number(values.flat[int(index)])
        return node("lookup", (index,), tuple(values.ravel().astype(float).tolist()))

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        return applied(ufunc, method, *inputs, **options)

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        if function in FUNCTIONS:
            return FUNCTIONS[function](*args, **options)
        return function._implementation(*args, **options)


def is_number(x: object) -> bool:
    """Say whether x is one number: an expression, a Python or NumPy number, not an array."""
    if isinstance(x, Expr | int | float):
        return True
    return isinstance(x, np.generic | np.ndarray) and x.shape == ()


_nodes: dict[tuple[Any, ...], Expr] = {}
_graphs = 0  # how many are being traced, each within the one before
_decide: Callable[[Expr], bool] | None = None
_lock = threading.RLock()


@contextmanager
def new_graph() -> Iterator[None]:
    """Begin without expressions: a text must not depend on what was traced before it.

    A graph that is traced within another one leaves the expressions of that one as they were.
    """
    global _nodes, _graphs
    with _lock:
        outer, _nodes = _nodes, {}
        _graphs += 1
        try:
            yield
        finally:
            _graphs -= 1
            if _graphs:
                _nodes = outer


def node(op: str, args: tuple[Expr, ...] = (), value: Any = None, on: int = 0) -> Expr:
    """Return the one expression of this operation on these arguments."""
    key = (op, value, on, *map(id, args))
    known = _nodes.get(key)
    if known is None:
        known = Expr()
        known.op, known.args, known.value, known.number = op, args, value, len(_nodes)
        for a in args:
            on |= a.on
        known.on = on
        _nodes[key] = known
    return known


def number(x: Any) -> Expr:
    """Return the expression of a constant."""
    return node("number", value=float(x))


def symbol(name: str, on: int) -> Expr:
    """Return a symbol for a number known only when a kernel runs: parameter, column or memory."""
    return node("symbol", value=name, on=on)


def as_expr(x: Any) -> Expr:
    """Return x as an expression; conditions stay conditions."""
    return x if isinstance(x, Expr) else number(x)


def as_number(x: Any) -> Expr:
    """Return x as a number to calculate with: a condition counts as 1 or 0."""
    x = as_expr(x)
    return select(x, 1.0, 0.0) if x.op in CONDITIONS else x


def negated(x: Expr) -> Expr:
    """Return the condition that holds where x does not."""
    if x.op == "number":
        return number(not x.value)
    if x.op not in CONDITIONS:
        x = make("eq", x, 0.0)
    return x.args[0] if x.op == "not" else node("not", (x,))


def select(condition: Any, a: Any, b: Any) -> Expr:
    """Return a where a condition holds, else b."""
    first, second = as_number(a), as_number(b)
    if not isinstance(condition, Expr):
        return first if condition else second
    if condition.op == "number":
        return first if condition.value else second
    if condition.op == "not":
        return select(condition.args[0], second, first)
    if condition.op not in CONDITIONS:
        return select(make("eq", condition, 0.0), second, first)
    while first.op == "select" and first.args[0] is condition:
        first = first.args[1]
    while second.op == "select" and second.args[0] is condition:
        second = second.args[2]
    if first is second:
        return first
    shared = _shared(condition, first, second)
    return node("select", (condition, first, second)) if shared is None else shared


def _shared(condition: Expr, a: Expr, b: Expr) -> Expr | None:
    """Return a selection that computes what both arms share only once; None if they share nothing.

    This does not change how any number is rounded.
    """
    if a.op != b.op or not a.args or a.op in (*CONDITIONS, "lookup", "hold"):
        return None
    if a.op == "select":
        if a.args[0] is b.args[0] and (a.args[1] is b.args[1] or a.args[2] is b.args[2]):
            arms = (select(condition, x, y) for x, y in zip(a.args[1:], b.args[1:], strict=True))
            return select(a.args[0], *arms)
        return None
    if len(a.args) == 1:
        return make(a.op, select(condition, a.args[0], b.args[0]))
    orders = [b.args, b.args[::-1]] if a.op in ("add", "mul") else [b.args]
    for other in orders:
        if a.args[0] is other[0] or a.args[1] is other[1]:
            pairs = zip(a.args, other, strict=True)
            return make(a.op, *(select(condition, x, y) for x, y in pairs))
    return None


def _is(x: Expr, value: float) -> bool:
    return x.op == "number" and x.value == value


def make(op: str, *operands: Any) -> Expr:
    """Return the expression of an operation, simplified where that is plain."""
    args = tuple(map(as_expr if op == "and" else as_number, operands))
    if all(x.op == "number" for x in args):
        with np.errstate(all="ignore"):
            return number(NUMERIC[op](*(x.value for x in args)))
    a, b = args[0], args[-1]
    if op in ("mul", "and") and (_is(a, 0) or _is(b, 0)):
        return number(0.0)
    if (op == "div" and _is(a, 0)) or (op in ("sub", "gt") and a is b):
        return number(0.0)
    if op == "eq" and a is b:
        return number(1.0)
    if (op == "add" and _is(a, 0)) or (op == "mul" and _is(a, 1)) or (op == "and" and _is(a, 1)):
        return b
    if op == "and" and (_is(b, 1) or a is b):
        return a
    if (op in ("add", "sub") and _is(b, 0)) or (op in ("mul", "div") and _is(b, 1)):
        return a
    if op == "sub" and _is(a, 0) and b.op == "sub":
        return make("sub", b.args[1], b.args[0])
    if op in ("add", "mul", "eq", "and") and b.number < a.number:
        args = (b, a)
    return node(op, args)


class Symbols(np.ndarray[Any, Any]):
    """An array of expressions; an index may be an expression too, and rows write through."""

    _of: tuple[Symbols, Any] | None = None  # this is a row of that array

    @classmethod
    def of(cls, values: Any) -> Symbols:
        """Make an array of symbols from an array of numbers and expressions."""
        plain = np.array(values, dtype=object)
        for index in np.ndindex(plain.shape):
            plain[index] = as_expr(plain[index])
        return plain.view(cls)

    def __array_finalize__(self, source: Any) -> None:
        self._of = None

    def __getitem__(self, key: Any) -> Any:
        keys = key if isinstance(key, tuple) else (key,)
        for p, k in enumerate(keys):
            if isinstance(k, Expr):
                rows = [self[(*keys[:p], n, *keys[p + 1 :])] for n in range(self.shape[p])]
                chosen = rows[-1]
                for n in reversed(range(len(rows) - 1)):
                    chosen = where(make("eq", k, n), rows[n], chosen)
                if isinstance(chosen, Symbols):
                    chosen._of = (self, key)
                return chosen
        return super().__getitem__(key)

    def __setitem__(self, key: Any, value: Any) -> None:
        keys = key if isinstance(key, tuple) else (key,)
        symbolic = [p for p, k in enumerate(keys) if isinstance(k, Expr)]
        for index in product(*(range(self.shape[p]) for p in symbolic)):
            at, holds = list(keys), number(1.0)
            for p, n in zip(symbolic, index, strict=True):
                holds, at[p] = make("and", holds, make("eq", keys[p], n)), n
            new = where(holds, value, self[tuple(at)]) if symbolic else value
            super().__setitem__(tuple(at) if symbolic else key, new)
        self._write_through()

    def _write_through(self) -> None:
        if self._of is not None:
            whole, key = self._of
            whole[key] = self
        elif isinstance(self.base, Symbols):  # a part of a row
            self.base._write_through()

    def __array_ufunc__(self, ufunc: Any, method: Any, *inputs: Any, **options: Any) -> Any:
        return applied(ufunc, method, *inputs, **options)

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        if function in FUNCTIONS:
            return FUNCTIONS[function](*args, **options)
        return super().__array_function__(function, (np.ndarray,), args, options)

    def clip(self, min: Any = None, max: Any = None, **options: Any) -> Any:  # type: ignore[override]
        """Keep the elements between two numbers; None for no bound."""
        return _clip(self, min, max, **options)

    def argmax(self, axis: Any = None, out: Any = None, **options: Any) -> Any:
        """Return the first position of the largest number of a row, as NumPy does."""
        _check_options("argmax", {"out": out, **options})
        if self.ndim != 1 or axis not in (None, 0, -1):
            raise UntraceableError("argmax goes through one row; write a loop over rows")
        best, index = self[0], number(0.0)
        for k in range(1, len(self)):
            larger = make("gt", self[k], best)
            best, index = select(larger, self[k], best), select(larger, k, index)
        return index


def _writing_through(name: str) -> Callable[..., None]:
    """Return a method of arrays that changes them, in what they are a row of too."""
    plain = getattr(np.ndarray, name)

    def change(self: Symbols, *args: Any, **options: Any) -> None:
        plain(self, *args, **options)
        self._write_through()

    return change


for _name in ("fill", "partition", "put", "sort"):
    setattr(Symbols, _name, _writing_through(_name))


def where(condition: Any, a: Any, b: Any) -> Any:
    """Return a where the condition holds, else b, for numbers, expressions or arrays of either."""
    if not any(isinstance(x, np.ndarray) and x.ndim for x in (condition, a, b)):
        return select(condition, a, b)
    parts = np.broadcast_arrays(*(np.asarray(x, dtype=object) for x in (condition, a, b)))
    joined = np.empty(parts[0].shape, dtype=object)
    for index in np.ndindex(joined.shape):
        joined[index] = select(*(np.asarray(part)[index] for part in parts))
    return joined.view(Symbols)


def _clip(a: Any, a_min: Any = None, a_max: Any = None, **options: Any) -> Any:
    low, high = options.pop("min", a_min), options.pop("max", a_max)
    _check_options("clip", options)
    a = a if low is None else np.maximum(a, low)
    return a if high is None else np.minimum(a, high)


_ABSENT = {"initial": np._NoValue, "keepdims": False, "where": True}


def _check_options(function: str, options: Mapping[str, Any]) -> None:
    """Refuse what an option of NumPy's would do otherwise, and no kernel does."""
    given = [name for name, value in options.items() if value is not _ABSENT.get(name)]
    odd = [name for name in given if name not in ("casting", "subok")]  # these change no number
    if odd:
        raise UntraceableError(
            f"{function} is called with {' and '.join(odd)}, which kernels do not know; leave it "
            "out, and write np.where or a loop"
        )


def _changing(function: Any) -> Callable[..., Any]:
    """Return a function that changes its first argument, in what that is a row of too."""

    def change(target: Any, *args: Any, **options: Any) -> Any:
        if not isinstance(target, Symbols):
            raise UntraceableError(f"{function.__name__} fills an array of plain numbers; {_FILL}")
        function._implementation(target, *args, **options)
        target._write_through()

    return change


_FILL = "fill np.zeros_like(self.values), an array of what is known in the trial"
_CHANGING = (np.copyto, np.fill_diagonal, np.place, np.putmask)
FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.where: where,
    np.clip: _clip,
    **{function: _changing(function) for function in _CHANGING},
}

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
    np.maximum: lambda a, b: select(make("gt", a, b), a, b),
    np.minimum: lambda a, b: select(make("gt", b, a), a, b),
    np.greater: operator.gt,
    np.greater_equal: operator.ge,
    np.less: operator.lt,
    np.less_equal: operator.le,
    np.equal: operator.eq,
    np.not_equal: operator.ne,
    np.logical_and: operator.and_,
    np.bitwise_and: operator.and_,
    np.logical_or: operator.or_,
    np.bitwise_or: operator.or_,
    np.logical_not: negated,
    np.invert: operator.invert,
    np.exp: Expr.exp,
    np.log: Expr.log,
    np.sqrt: Expr.sqrt,
    np.expm1: lambda x: x.exp() - 1.0,
    np.log1p: lambda x: make("log", 1.0 + x),
    np.sign: lambda x: select(x > 0, 1.0, select(x < 0, -1.0, 0.0)),
    np.tanh: lambda x: 1.0 - 2.0 / (make("exp", 2.0 * x) + 1.0),
    special.expit: lambda x: 1.0 / (1.0 + make("exp", -x)),
    special.ndtr: lambda x: make("ndtr", x),
    special.log_ndtr: lambda x: make("log_ndtr", x),
}


def _full_name(function: Any) -> str:
    home = "np" if getattr(np, function.__name__, None) is function else "scipy.special"
    return f"{home}.{function.__name__}"


_TRUTHS = (np.logical_and, np.logical_or)  # of which NumPy says that they give truths


def applied(
    ufunc: Any, method: str, *inputs: Any, out: Any = None, axis: Any = 0, **options: Any
) -> Any:
    """Apply what NumPy would to every element, as expressions: without asking for their truth."""
    if ufunc in _TRUTHS and np.dtype(options.get("dtype")) == np.dtype(bool):
        del options["dtype"]
    _check_options(_full_name(ufunc), options)
    arrays = [np.asarray(x, dtype=object).view(np.ndarray) for x in inputs]
    result: Any
    if ufunc is np.matmul and method == "__call__" and max(a.ndim for a in arrays) < 3:
        result = np.dot(*arrays)
    elif ufunc not in _OPERATIONS:
        raise UntraceableError(
            f"{_full_name(ufunc)} is not among the functions of definitions; write it with "
            + ", ".join(sorted(map(_full_name, _OPERATIONS)))
        )
    elif method == "reduce":
        if isinstance(axis, tuple):
            raise UntraceableError(
                f"{_full_name(ufunc)} goes along several axes; name one, one after the other"
            )
        array = arrays[0].ravel() if axis is None else np.moveaxis(arrays[0], axis, 0)
        result = array[0]
        for part in array[1:]:
            result = applied(ufunc, "__call__", result, part)
    elif method == "__call__":
        wide = np.broadcast_arrays(*arrays)
        result = np.empty(wide[0].shape, dtype=object)
        for index in np.ndindex(result.shape):
            result[index] = as_expr(_OPERATIONS[ufunc](*(as_expr(w[index]) for w in wide)))
        result = result[()]
    else:
        raise UntraceableError(f"np.{ufunc.__name__}.{method} is unknown here; write a loop")
    result = result.view(Symbols) if isinstance(result, np.ndarray) else result
    if out is not None:
        (target,) = out
        np.ndarray.__setitem__(target, ..., result)
        target._write_through()
        return target
    return result


class _Path:
    """One way through a definition: the conditions on it, and how each is answered."""

    def __init__(self, ahead: tuple[bool, ...]):
        self.ahead = ahead
        self.taken: list[Expr] = []
        self.known: dict[Expr, bool] = {}
        self.questions = 0

    def decide(self, condition: Expr) -> bool:
        """Answer a condition, in the same way whenever it comes again."""
        self.questions += 1
        if self.questions > MOST_QUESTIONS or len(self.taken) > MOST_CONDITIONS:
            raise UntraceableError(
                "a loop does not end while symbols run through it; write `for` over a fixed range "
                "and not `while` or of a method that calls itself"
            )
        match condition.op:
            case "number":
                return bool(condition.value)
            case "not":
                return not self.decide(condition.args[0])
            case "and":
                return self.decide(condition.args[0]) and self.decide(condition.args[1])
            case "gt" | "eq":
                return self._answered(condition)
        return not self.decide(make("eq", condition, 0.0))

    def _answered(self, condition: Expr) -> bool:
        if condition not in self.known:
            if self._excluded(condition):
                return False
            k = len(self.taken)
            self.known[condition] = self.ahead[k] if k < len(self.ahead) else True
            self.taken.append(condition)
        return self.known[condition]

    def _excluded(self, condition: Expr) -> bool:
        """Say whether a number is known to equal another constant already."""

        def sides(x: Expr) -> tuple[Expr | None, Expr | None]:
            constant = [a for a in x.args if a.op == "number"]
            other = [a for a in x.args if a.op != "number"]
            whole = x.op == "eq" and len(constant) == 1
            return (constant[0], other[0]) if whole else (None, None)

        constant, other = sides(condition)
        return constant is not None and any(
            holds and sides(x)[1] is other for x, holds in self.known.items()
        )


@contextmanager
def _deciding(decide: Callable[[Expr], bool]) -> Iterator[None]:
    global _decide
    before, _decide = _decide, decide
    try:
        yield
    finally:
        _decide = before


def merged(run: Callable[[], Mapping[str, Any]]) -> dict[str, Expr]:
    """Run a function through both sides of each `if` on symbols, and join what it returns.

    Raises
    ------
    UntraceableError : If there are too many paths, or they return different names.
    """
    paths = 0

    def explore(ahead: tuple[bool, ...]) -> dict[str, Expr]:
        nonlocal paths
        paths += 1
        path = _Path(ahead)
        with _deciding(path.decide):
            values = {name: as_expr(value) for name, value in run().items()}
        if paths > MOST_PATHS:
            raise UntraceableError(
                f"the definition has more than {MOST_PATHS} paths through its ifs; write "
                "np.where for values and keep `if` for cases"
            )
        decided = [path.known[c] for c in path.taken]
        for k in reversed(range(len(ahead), len(decided))):
            other = explore((*decided[:k], False))
            if other.keys() != values.keys():
                odd = ", ".join(sorted(other.keys() ^ values.keys()))
                raise UntraceableError(
                    f"{odd} is there after some paths of an `if` and not after all"
                )
            values = {n: select(path.taken[k], values[n], other[n]) for n in values}
        return values

    return explore(())


def within(roots: Iterable[Expr], stop: Collection[Expr] = ()) -> dict[Expr, None]:
    """Return the parts of expressions, each after those it works on; parts of `stop` are left out.

    The result has them as keys of a dictionary, since `in` a list would ask whether expressions are
    equal.
    """
    order: dict[Expr, None] = {}
    stack = [(r, False) for r in reversed(list(roots))]
    while stack:
        x, ready = stack.pop()
        if ready:
            order[x] = None
        elif x not in order:
            stack.append((x, True))
            if x not in stop:
                stack += [(a, False) for a in reversed(x.args) if a not in order]
    return order


def substituted(x: Expr, by: dict[Expr, Expr]) -> Expr:
    """Replace symbols by expressions; new expressions are added to `by`."""
    if x not in by:
        args = [substituted(a, by) for a in x.args]
        match x.op:
            case "number" | "symbol":
                by[x] = x
            case "not":
                by[x] = negated(*args)
            case "select":
                by[x] = select(*args)
            case "lookup" | "hold":
                by[x] = node(x.op, tuple(args), x.value)
            case _:
                by[x] = make(x.op, *args)
    return by[x]


def evaluated(roots: Iterable[Expr], columns: Mapping[str, Any]) -> list[Any]:
    """Compute expressions with NumPy, given the values of their symbols."""
    values: dict[Expr, Any] = {}
    roots = list(roots)
    with np.errstate(all="ignore"):
        for x in within(roots):
            args = [values[a] for a in x.args]
            if x.op in ("number", "symbol"):
                values[x] = x.value if x.op == "number" else columns[x.value]
            elif x.op == "lookup":
                inside = (args[0] >= 0.0) & (args[0] < len(x.value))
                values[x] = np.array(x.value)[np.where(inside, args[0], 0.0).astype(np.int64)]
            else:
                values[x] = NUMERIC[x.op](*args)
    return [values[x] for x in roots]


def slope(x: Expr, slopes: Mapping[Expr, Expr], known: dict[Expr, Expr]) -> Expr:
    """Differentiate; `slopes` are those of symbols, and derivatives are added to `known`."""
    if not x.on & (PARAMETER | STATE) or x.op in (*CONDITIONS, "lookup", "hold"):
        return number(0.0)
    if x not in known:
        known[x] = _derived(x, slopes, known)
    return known[x]


def _derived(x: Expr, slopes: Mapping[Expr, Expr], known: dict[Expr, Expr]) -> Any:
    if x.op == "symbol":
        return slopes.get(x, number(0.0))
    a: Any = x.args[0]
    b: Any = x.args[-1]
    da: Any = number(0.0) if x.op == "select" else slope(a, slopes, known)
    db: Any = slope(b, slopes, known)
    match x.op:
        case "add" | "sub":
            return make(x.op, da, db)
        case "mul":
            return a * db + b * da
        case "div":
            return (da - x * db) * (1.0 / b)
        case "exp":
            return x * da
        case "log":
            return da * (1.0 / a)
        case "sqrt":
            return 0.5 * da * (1.0 / x)
        case "abs":
            return select(a > 0, da, -da)
        case "select":
            return select(a, slope(x.args[1], slopes, known), db)
        case "ndtr":
            return make("exp", -0.5 * a * a - HALF_LOG_2_PI) * da
        case "log_ndtr":
            return make("hazard", a) * da  # exp(-a * a / 2 - log_ndtr(a)) would lose digits
    raise AssertionError(x.op)
