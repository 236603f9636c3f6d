"""Many sessions of a world run side by side, on arrays that behave as the numbers of one do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .world import World, by_column, column_of

State = dict[str, Any]
_FUNCTIONS = (np.where, np.clip)
_OF_TRUTHS = frozenset(  # of NumPy's functions those that take truths as such, not as 0 and 1
    {np.logical_and, np.logical_or, np.logical_not, np.bitwise_and, np.bitwise_or, np.invert}
)


class _Apart(Exception):  # noqa: N818
    """A condition that holds in some sessions and not in others."""

    def __init__(self, held: NDArray[np.bool_]):
        self.held = held


class Lanes(np.ndarray[Any, Any]):
    """Numbers of many sessions, [..., sessions], which a world takes for those of one.

    A condition that is the same in all is true or false. One that is not parts the sessions.
    """

    def __bool__(self) -> bool:
        """Say what holds in all sessions; where they differ, part them."""
        held = self.view(np.ndarray)
        if held.all():
            return True
        if not held.any():
            return False
        raise _Apart(held.astype(bool))

    def __array_ufunc__(
        self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **options: Any
    ) -> Any:
        """Apply what NumPy would; `x += 1` makes a new x, as with numbers."""
        if method != "__call__":
            raise TypeError(
                f"A world reckons number by number; np.{ufunc.__name__}.{method} takes an array "
                "whole. Index it, or write a loop."
            )
        return ufunc(*(_bare(x, ufunc in _OF_TRUTHS) for x in inputs), **options).view(Lanes)

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        """Apply np.where and np.clip."""
        if function not in _FUNCTIONS:
            raise TypeError(
                f"np.{function.__name__} is not among the functions of worlds; write it with "
                "np.where, np.clip, or a loop."
            )
        return function(*(_bare(x, truths=True) for x in args), **options).view(Lanes)

    def looked_up(self, values: NDArray[Any], key: Any) -> Lanes:
        """Return the entries of a table of constants."""
        keys = key if isinstance(key, tuple) else (key,)
        found: Lanes = values[tuple(map(_index, keys))].view(Lanes)
        return found

    def _place(self, key: Any) -> Any:
        keys = key if isinstance(key, tuple) else (key,)
        if len(keys) >= self.ndim:
            raise IndexError("A world indexes tables with several numbers a trial; this has one.")
        if any(isinstance(k, Lanes) for k in keys):
            if len(keys) < self.ndim - 1:
                raise IndexError("What differs between sessions indexes numbers; name all places.")
            return (*map(_index, keys), np.arange(self.shape[-1]))
        return key

    def __getitem__(self, key: Any) -> Any:
        """Index, also by what differs between sessions."""
        return self.view(np.ndarray)[self._place(key)].view(Lanes)

    def __setitem__(self, key: Any, value: Any) -> None:
        """Change an entry, in each session its own."""
        self.view(np.ndarray)[self._place(key)] = value


def _index(k: Any) -> Any:
    return k.view(np.ndarray).astype(np.intp) if isinstance(k, Lanes) else k


def _bare(x: Any, truths: bool) -> Any:
    if isinstance(x, Lanes):
        values = x.view(np.ndarray)
        return values if truths or values.dtype != bool else values.astype(np.int64)
    return x[..., None] if isinstance(x, np.ndarray) and x.ndim else x


class _Beside:
    """The numbers that tables hold for one trial in each of many sessions, as attributes."""

    def __init__(self, table: Mapping[str, NDArray[Any]], rows: NDArray[np.int64]):
        self._table, self._rows = table, rows

    def __getattr__(self, name: str) -> Any:
        """Find a table at its first use."""
        values = column_of(self._table, name)[self._rows]
        found = values.astype(np.int64) if values.dtype == bool else values
        if found.ndim > 1:
            found = np.moveaxis(found, 0, -1)
        self.__dict__[name] = lanes = found.view(Lanes)
        return lanes

    def of(self, sessions: NDArray[np.bool_]) -> _Beside:
        """Return some of the sessions."""
        return _Beside(self._table, self._rows[sessions])


class _Flat(dict[str, NDArray[Any]]):
    """Tables of sessions [..., n_trials, ...] row under row, made as they are asked for."""

    def __init__(self, table: Mapping[str, NDArray[Any]], shape: tuple[int, ...]):
        super().__init__()
        self.table, self.shape = table, shape

    def __contains__(self, name: object) -> bool:
        """Say whether there is a table."""
        return name in self.table

    def __iter__(self) -> Iterator[str]:
        """Go through the names."""
        return iter(self.table)

    def __missing__(self, name: str) -> NDArray[Any]:
        """Lay a table out."""
        inner = self.table[name].shape[len(self.shape) :]
        self[name] = flat = self.table[name].reshape(-1, *inner)
        return flat


def follow_world(
    world: type[World], table: Mapping[str, NDArray[Any]], actions: NDArray[np.int64]
) -> dict[str, NDArray[Any]]:
    """Return what the actions of whole sessions bring, each [..., n_trials]; -1 is no action.

    "reward", NaN where nothing is paid, and feedback fields; what the world shows; and "present",
    which trials take place, if some may fall away. Sessions, and the spans within them, are run
    side by side.
    """
    flat, taken = _Flat(table, actions.shape), actions.reshape(-1)
    falls, there = "present" in table, np.zeros(taken.shape, dtype=bool)
    lived = np.flatnonzero(flat["present"]) if falls else np.arange(taken.size)
    place = world()
    place.begin()
    begin, length = _stretches(world, dict(vars(place)), flat, lived)
    state = {name: _spread(value, len(begin)) for name, value in vars(place).items()}
    parts: dict[str, list[tuple[NDArray[np.int64], Any]]] = {"reward": []}
    for k in range(int(length.max(initial=0))):
        n = int(np.searchsorted(-length, -k))  # as many are longer
        rows = lived[begin[:n] + k]
        drawn, state = _Beside(flat, rows), _of(state, slice(n))
        shown, state = _run(place, state, drawn, None)
        present = shown.pop("present", True)
        falls |= present is not True
        held = np.asarray(present, dtype=bool)
        for name, value in shown.items():
            parts.setdefault(name, []).append((rows, value))
        if held.all():
            paid, state = _run(place, state, drawn, taken[rows].view(Lanes))
        else:
            held = np.broadcast_to(held, rows.shape)
            rows, left = rows[held], _of(state, ~held)
            own = taken[rows].view(Lanes)
            paid, state = _run(place, _of(state, held), _Beside(flat, rows), own)
            if world.falls_for_good:
                begin, length = begin[:n][held], length[:n][held]
            else:
                state = {name: _joined(held, state[name], left[name]) for name in left}
        there[rows] = True
        for name, value in paid.items():
            parts.setdefault(name, []).append((rows, value))
    brought = {name: _laid_out(column, taken.size) for name, column in parts.items()}
    if falls:
        brought["present"] = there
    return {name: column.reshape(actions.shape) for name, column in brought.items()}


def _stretches(
    world: type[World], begun: State, flat: _Flat, lived: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return where among the trials that are lived a world begins, and for how many; longest first.

    One that remembers nothing begins at every trial, so that all are run at once.
    """
    if not begun:
        return np.arange(len(lived)), np.ones(len(lived), dtype=np.int64)
    anew = np.zeros(len(lived) + 1, dtype=bool)
    anew[np.searchsorted(lived, np.arange(0, lived.max(initial=0) + 1, flat.shape[-1]))] = True
    if world.span is not None:
        span = flat[world.span][lived]
        anew[1:-1] |= span[1:] != span[:-1]
    anew = anew[:-1]
    begin = np.flatnonzero(anew)
    length = np.diff(begin, append=len(lived))
    longest_first = np.argsort(-length, kind="stable")
    return begin[longest_first], length[longest_first]


def _run(place: World, state: State, drawn: _Beside, action: Any) -> tuple[State, State]:
    """Let a world show (action None) or pay; sessions in which a condition differs are parted."""
    vars(place).clear()
    vars(place).update({name: _own(value) for name, value in state.items()})
    try:
        found = place.show(drawn) if action is None else by_column(place.pay(drawn, action))
        return dict(found), dict(vars(place))
    except _Apart as apart:
        held = apart.held
    sides = [_run(place, _of(state, m), drawn.of(m), _at(action, m)) for m in (held, ~held)]
    (yes, after_yes), (no, after_no) = sides
    return (
        {name: _joined(held, yes[name], no[name]) for name in yes},
        {name: _joined(held, after_yes[name], after_no[name]) for name in after_yes},
    )


def _spread(value: Any, n: int) -> Any:
    """Repeat an array that is remembered for n sessions; a number stays one."""
    if not isinstance(value, np.ndarray) or not value.ndim:
        return value
    return np.repeat(value[..., None], n, axis=-1).view(Lanes)


def _own(value: Any) -> Any:
    """Copy an array, which a world may change in its place."""
    if not isinstance(value, Lanes) or value.ndim == 1:
        return value
    return value.view(np.ndarray).copy().view(Lanes)


def _at(value: Any, sessions: Any) -> Any:
    """Return a number in some of the sessions."""
    if not isinstance(value, Lanes):
        return value
    return value.view(np.ndarray)[..., sessions].view(Lanes)


def _of(state: State, sessions: Any) -> State:
    """Return what is remembered in some of the sessions."""
    return {name: _at(value, sessions) for name, value in state.items()}


def _joined(held: NDArray[np.bool_], a: Any, b: Any) -> Any:
    """Return numbers of all sessions: a, where `held`, and b, elsewhere."""
    if not isinstance(a, Lanes) and not isinstance(b, Lanes) and type(a) is type(b) and a == b:
        return a
    inner = next((x.shape[:-1] for x in (a, b) if isinstance(x, Lanes)), ())
    found = np.empty((*inner, len(held)), np.result_type(_kind(a), _kind(b)))
    found[..., held], found[..., ~held] = a, b
    return found.view(Lanes)


def _kind(value: Any) -> np.dtype[Any]:
    return np.asarray(value).dtype


def _laid_out(parts: list[tuple[NDArray[np.int64], Any]], size: int) -> NDArray[Any]:
    """Bring what was shown or paid on some rows each to all rows."""
    if not parts:
        return np.full(size, np.nan)
    found = np.zeros(size, np.result_type(*(_kind(value) for _, value in parts)))
    for rows, value in parts:
        found[rows] = value
    return found
