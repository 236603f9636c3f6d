"""What a session shows and pays, written once: a world, and the numbers that it is run on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

_PLAIN = frozenset({int, float, bool, type(None)})


class World:
    """What a session shows and pays, given what was drawn before it and what was done in it.

    A world is written in plain Python and NumPy, as a model is. `Session` and `follow_world` run it
    on the numbers of one session. The simulation of a model runs it on symbols, which become the
    model's kernel. `drawn` has the numbers of the design's tables for the trial as attributes. A
    table with several numbers per trial is indexed: `drawn.payoffs[action]`.

    Attributes
    ----------
    span : A table of the design; the world begins anew where its value changes. None if it begins
        once in a session.
    falls_for_good : Whether a trial that falls away takes all later trials of its span with it, so
        that they need not be drawn.
    """

    span: ClassVar[str | None] = None
    falls_for_good: ClassVar[bool] = False

    def begin(self) -> None:
        """Set what changes in the course of a session: numbers and NumPy arrays of numbers."""

    def show(self, drawn: Any) -> dict[str, Any]:
        """Return the dependent fields of a trial, once for each trial that may happen.

        If they include "present" and that is false, the trial falls away.
        """
        return {}

    def pay(self, drawn: Any, action: Any) -> Any:
        """Return the reward, None where nothing is paid, and take note of the action.

        If an action also brings feedback fields, return a dictionary of "reward" and these. A trial
        without an action has -1; its payoff is ignored.
        """
        return None


def by_column(paid: Any) -> dict[str, Any]:
    """Return what a world paid, by column; the reward is NaN where nothing is paid."""
    if isinstance(paid, dict):
        return paid
    return {"reward": np.nan if paid is None else paid}


def follow_world(
    world: type[World], table: Mapping[str, NDArray[Any]], actions: NDArray[np.int64]
) -> dict[str, NDArray[Any]]:
    """Return what the actions of whole sessions bring, each [..., n_trials]; -1 means no action.

    The result has "reward" (NaN where nothing is paid), the feedback fields, the dependent fields,
    and "present", which trials happen, if some fell away.
    """
    if world.pay is World.pay and world.show is World.show and "present" not in table:
        return {"reward": np.full(actions.shape, np.nan)}
    n_trials = actions.shape[-1]
    sessions = actions.reshape(-1, n_trials).tolist()
    inner = {name: values.shape[actions.ndim :] for name, values in table.items()}
    flat = {name: table[name].reshape(-1, n_trials, *shape) for name, shape in inner.items()}
    rows: list[int] = []
    columns: dict[str, list[Any]] = {"reward": []}
    for number, taken in enumerate(sessions):
        tables_of_session = {name: values[number] for name, values in flat.items()}
        for trial, brought in _follow_session(world, tables_of_session, taken):
            rows.append(number * n_trials + trial)
            for name, value in brought.items():
                columns.setdefault(name, []).append(value)
    brought = {name: _spread(values, rows, actions.shape) for name, values in columns.items()}
    if len(rows) < actions.size or "present" in table:
        brought["present"] = _spread([True] * len(rows), rows, actions.shape)
    return brought


def _follow_session(
    world: type[World], table: Mapping[str, NDArray[Any]], actions: Sequence[int]
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the trials of a session that happen, each with what it shows and pays."""
    present = table["present"].tolist() if "present" in table else [True] * len(actions)
    spans = table[world.span].tolist() if world.span else [0] * len(actions)
    session_world, drawn, span, fell = world(), TrialTables(table), None, False
    for trial, action in enumerate(actions):
        if not present[trial]:
            continue
        if spans[trial] != span:
            span, fell = spans[trial], False
            session_world.begin()
        if fell:
            continue
        drawn.at(trial)
        shown = dict(session_world.show(drawn))
        if shown.pop("present", True):
            yield trial, shown | by_column(session_world.pay(drawn, action))
        else:
            fell = world.falls_for_good


def _spread(values: Sequence[Any], rows: Sequence[int], shape: tuple[int, ...]) -> NDArray[Any]:
    """Return a column over all trials, given its values on those that happen."""
    array = np.asarray(values)
    whole = np.zeros(shape, array.dtype)
    whole.reshape(-1)[rows] = array
    return whole


class Payoffs(World):
    """Each action pays what the table "payoffs" holds for it."""

    def pay(self, drawn: Any, action: Any) -> Any:
        """Return the entry of the action."""
        return drawn.payoffs[action]


class Points(World):
    """Each action pays what the table "points" holds for it."""

    def pay(self, drawn: Any, action: Any) -> Any:
        """Return the entry of the action."""
        return drawn.points[action]


class Table:
    """A table of constants, or of parameters, whose index is known only in the trial.

    In a kernel, more than 16 constants are an array; fewer are chosen among by comparisons.
    """

    def __init__(self, values: Any):
        self.values = np.asarray(values)
        self._rows = self.values.tolist()

    def __getitem__(self, key: Any) -> Any:
        """Return the entry at a key, which may be a symbol."""
        rows = self._rows
        for k in key if isinstance(key, tuple) else (key,):
            if hasattr(k, "looked_up"):
                return k.looked_up(self.values, key)
            rows = rows[k]
        return rows


class TrialTables:
    """The numbers that the tables of one session hold for a trial, as attributes."""

    def __init__(self, table: Mapping[str, NDArray[Any]]):
        self._table = table
        self._columns: list[tuple[str, Any]] = []
        self._trial = 0

    def __getattr__(self, name: str) -> Any:
        """Find a table at its first use in a session; from then on `at` sets it."""
        column = column_of(self._table, name)
        columns = column.tolist() if column.ndim < 3 else column
        self._columns.append((name, columns))
        self.__dict__[name] = columns[self._trial]
        return columns[self._trial]

    def at(self, trial: int) -> None:
        """Set the attributes to the numbers of a trial."""
        here = self.__dict__
        here["_trial"] = trial
        for name, column in self._columns:
            here[name] = column[trial]


def where(condition: Any, a: Any, b: Any) -> Any:
    """Return a where the condition holds, else b: np.where, but fast on plain numbers."""
    if condition is True:
        return a
    return b if condition is False else np.where(condition, a, b)


def plain(x: Any) -> Any:
    """Return a number as a plain Python number."""
    return x if type(x) in _PLAIN else x.item()


def column_of(table: Mapping[str, NDArray[Any]], name: str) -> NDArray[Any]:
    """Return the table of the design that a world asks for, by name."""
    if name.startswith("_") or name not in table:
        known = ", ".join(sorted(table))
        raise AttributeError(f"A world reads tables of the design, {known}; got {name!r}.")
    return table[name]
