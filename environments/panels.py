"""What to look at in the trials of an experiment: means of what was done, by where it was done.

An experiment declares its `panels` as a tuple beside its fields; `panels_of` gives those of any
experiment, also of one that declares none. A panel is read off any rows alike, recorded or
simulated, so that a model's rows can be laid over those of people.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from .environment import Environment

Numbers = NDArray[np.float64]
Integers = NDArray[np.int64]
MOST_PLACES = 10  # along a panel, unless it says otherwise
FEW_PLACES = 4  # of panels with several series, whose means would be of little each
LEAST_ROWS = 5  # of the data at a place; fewer show no mean
MOST_LAG = 5  # trials back that a panel of returning tells apart


class Rows:
    """Rows of many sessions in order of time, and what panels look up in them.

    Parameters
    ----------
    environment
        What was played.
    columns
        Stimuli, answers, rewards; each [rows].
    session
        Number of each row's session, one that no other subject's session has, [rows].
    reference
        The recorded rows, if these are simulated: what is cut at the median is cut at theirs.
    """

    def __init__(
        self,
        environment: Environment,
        columns: Mapping[str, Any],
        session: Integers,
        reference: Rows | None = None,
    ):
        self.environment, self.session = environment, session
        self.columns, self.reference = columns, reference
        self._previous: dict[tuple[str, ...], Integers] = {}
        self._order: dict[tuple[str, ...], tuple[Integers, NDArray[np.bool_]]] = {}

    def __len__(self) -> int:
        """Count the rows."""
        return len(self.session)

    def __getitem__(self, name: str) -> Numbers:
        """Return a column as numbers; KeyError if there is none."""
        return np.asarray(self.columns[name], dtype=float)

    @cached_property
    def everything(self) -> Integers:
        """The number of each row."""
        return np.arange(len(self), dtype=np.int64)

    def order(self, *within: str) -> tuple[Integers, NDArray[np.bool_]]:
        """Sort rows by session and these columns, in order of time.

        Returns the order, [rows], and where in it a sequence begins.
        """
        if within not in self._order:
            keys = [self.session, *(self[name] for name in within)]
            order = np.lexsort(keys[::-1]).astype(np.int64)  # which is stable
            begins = np.zeros(len(self), dtype=bool)
            if len(begins):
                begins[0] = True
            for key in keys:
                begins[1:] |= key[order][1:] != key[order][:-1]
            self._order[within] = order, begins
        return self._order[within]

    def previous(self, *within: str) -> Integers:
        """Return the row before each, of the same session and values of `within`; -1 for none."""
        if within not in self._previous:
            order, begins = self.order(*within)
            before = np.full(len(self), -1, dtype=np.int64)
            before[order[1:]] = np.where(begins[1:], -1, order[:-1])
            self._previous[within] = before
        return self._previous[within]

    def before(self, name: str, *within: str) -> Numbers:
        """Return a column's value on the row before each; NaN where there is none."""
        row = self.previous(*within)
        return np.where(row >= 0, self[name][row], np.nan)

    def count(self, *within: str) -> Numbers:
        """Return which row of its session and values of `within` each is, from 1."""
        order, begins = self.order(*within)
        first = np.maximum.accumulate(np.where(begins, self.everything, 0))
        counts = np.empty(len(self))
        counts[order] = self.everything - first + 1
        return counts

    def median(self, name: str) -> float:
        """Return the median of a column of the recorded rows."""
        return float(np.nanmedian((self.reference or self)[name]))


@dataclass(frozen=True)
class Seen:
    """Points of a panel: the row each is about, its place, its value and its series, [points]."""

    row: Integers
    x: Numbers
    y: Numbers
    series: Integers


Column = Callable[[Rows], Numbers]  # a number for each row; NaN where there is none
Look = Callable[[Rows], Seen]


@dataclass(frozen=True)
class Panel:
    """One thing to look at: the mean of a value, along places, for one or several series.

    Parameters
    ----------
    title, x, y
        What it is about; what its places are; of what it shows the mean.
    look
        Reads the points off rows; KeyError where a column is missing.
    names
        What places are called, where they are no numbers.
    series
        What series are called; () for one without a name.
    most
        Places at most; more values than these are cut into as many groups of equal size.
    """

    title: str
    x: str
    y: str
    look: Look
    names: Mapping[float, str] | None = None
    series: tuple[str, ...] = ()
    most: int = MOST_PLACES

    def cells(self, rows: Rows) -> Cells | None:
        """Return the places at which recorded rows show a mean; None if they show nothing."""
        try:
            seen = self.look(rows)
        except KeyError:
            return None
        usable = np.isfinite(seen.x) & np.isfinite(seen.y) & (seen.series >= 0)
        x = seen.x[usable]
        if not len(x):
            return None
        values = np.unique(x)
        if self.names is not None or len(values) <= self.most:
            edges = (values[1:] + values[:-1]) / 2
        else:
            cuts = np.quantile(x, np.linspace(0, 1, self.most + 1)[1:-1])
            edges = np.unique(cuts[(cuts > values[0]) & (cuts < values[-1])])
        cells = Cells(self, edges, np.zeros(0), np.zeros(0, dtype=np.int64))
        mean, count = cells.means(rows, np.zeros(len(rows), dtype=np.int64), 1, of_x=True)
        kept = np.flatnonzero(count[0] >= LEAST_ROWS)
        return Cells(self, edges, mean[0][kept], kept) if len(kept) else None


@dataclass(frozen=True)
class Cells:
    """The places and series of a panel that data show, and the means of any rows there.

    Parameters
    ----------
    panel
        What is looked at.
    edges
        Between places, in order.
    x
        Mean place of each cell, [cells].
    kept
        Which cells of the whole grid of series and places these are, [cells].
    """

    panel: Panel
    edges: Numbers
    x: Numbers
    kept: Integers

    @property
    def series(self) -> Integers:
        """Number of each cell's series, [cells]."""
        return self.kept // (len(self.edges) + 1)

    @property
    def places(self) -> list[str]:
        """What each cell's place is called; "" for one that is a number."""
        names = self.panel.names or {}
        return [names.get(float(x), "") for x in self.x]

    def means(
        self, rows: Rows, owner: Integers, n: int, *, of_x: bool = False
    ) -> tuple[Numbers, Numbers]:
        """Return the mean value in each cell and the number of its points, [n, cells].

        Parameters
        ----------
        owner
            Which of n sets each row belongs to, [rows].
        of_x
            Take the mean of the places instead, of all cells of the grid.
        """
        seen = self.panel.look(rows)
        across = len(self.edges) + 1
        size = across * max(len(self.panel.series), 1)
        usable = np.isfinite(seen.x) & np.isfinite(seen.y) & (seen.series >= 0)
        bins = np.searchsorted(self.edges, seen.x[usable], side="right")
        code = (owner[seen.row[usable]] * size + seen.series[usable] * across + bins).astype(int)
        value = (seen.x if of_x else seen.y)[usable]
        count = np.bincount(code, minlength=n * size).reshape(n, size).astype(float)
        total = np.bincount(code, value, minlength=n * size).reshape(n, size)
        with np.errstate(invalid="ignore"):
            mean = total / np.where(count > 0, count, np.nan)
        return (mean, count) if of_x else (mean[:, self.kept], count[:, self.kept])


def read_off(name: str, where: Column | None = None) -> Column:
    """Take a column, on rows for which `where` is not 0."""
    return lambda rows: _where(rows[name], rows, where)


def chose(action: int, where: Column | None = None) -> Column:
    """Tell whether an action was chosen."""
    return lambda rows: _where(_same(rows["action"], np.full(len(rows), action)), rows, where)


def stayed(*within: str) -> Column:
    """Tell whether an action is that of the row before."""
    return lambda rows: _same(rows["action"], rows.before("action", *within))


def previous(name: str, *within: str) -> Column:
    """Take a column's value on the row before."""
    return lambda rows: rows.before(name, *within)


def won_before(cut: float | None = None, *within: str, name: str = "reward") -> Column:
    """Tell whether the row before paid more than `cut`, by default more than the median."""
    return lambda rows: _above(
        rows.before(name, *within), rows.median(name) if cut is None else cut
    )


def trial(*within: str) -> Column:
    """Count the rows of a session, and of values of `within`, from 1."""
    return lambda rows: rows.count(*within)


def looked(y: Column, x: Column, series: Column | None = None) -> Look:
    """Make a look of numbers that each row has; rows whose series is NaN are passed over."""

    def look(rows: Rows) -> Seen:
        which = np.zeros(len(rows)) if series is None else series(rows)
        known = np.where(np.isfinite(which), which, -1).astype(np.int64)
        return Seen(rows.everything, x(rows), y(rows), known)

    return look


def learning_curve(*within: str, y: str = "reward") -> Panel:
    """What choices bring, as trials go by."""
    return Panel("learning curve", "trial", f"mean {y}", looked(read_off(y), trial(*within)))


def share_of(action: int, label: str, *within: str, series: Sequence[str] = ()) -> Panel:
    """How often an action is chosen, as trials go by; with a first of `within` that is a series."""
    by = read_off(within[0]) if series else None
    look = looked(chose(action), trial(*within), by)
    return Panel("choices", "trial", label, look, series=tuple(series))


def shares(names: Sequence[str], title: str = "choices", x: Column | None = None,
           along: str = "trial") -> Panel:  # fmt: skip
    """How often each action is chosen, as trials go by or along something else."""

    def look(rows: Rows) -> Seen:
        positions, action = (x or trial())(rows), rows["action"]
        n, k = len(rows), len(names)
        chosen = [_same(action, np.full(n, a)) for a in range(k)]
        which = np.repeat(np.arange(k, dtype=np.int64), n)
        return Seen(
            np.tile(rows.everything, k), np.tile(positions, k), np.concatenate(chosen), which
        )

    return Panel(title, along, "share of choices", look, series=tuple(names))


def staying(*within: str, cut: float | None = None, name: str = "reward") -> Panel:
    """Whether choices are repeated, by what they brought and as trials go by."""
    look = looked(stayed(*within), trial(*within), won_before(cut, *within, name=name))
    series = ("after no win", "after a win") if cut is not None else ("after less", "after more")
    return Panel(
        "staying after outcomes", "trial", "choices repeated", look, None, series, FEW_PLACES
    )


def returning(*within: str, cut: float | None = None) -> Panel:
    """Whether an option left is taken up again, by how long ago it was tried and what it paid."""

    def look(rows: Rows) -> Seen:
        order, begins = rows.order(*within)
        action, reward = rows["action"][order], rows["reward"][order]
        at = np.arange(len(order))
        first = np.maximum.accumulate(np.where(begins, at, 0))
        level = rows.median("reward") if cut is None else cut
        parts = []
        for option in range(rows.environment.n_actions):
            tried = np.maximum.accumulate(np.where(action == option, at, -1))
            last = np.concatenate([[-1], tried[:-1]]) if len(at) else tried
            known = np.flatnonzero((last >= first) & (last < at - 1))
            then = last[known]
            lag = np.minimum(known - then, MOST_LAG).astype(float)
            won = (reward[then] > level).astype(np.int64)
            parts.append((order[known], lag, (action[known] == option) * 1.0, won))
        row, x, y, series = (np.concatenate(part) for part in zip(*parts, strict=True))
        return Seen(row, x, y, series)

    names = ("it paid less", "it paid more") if cut is None else ("it had lost", "it had won")
    along = f"trials since it was tried ({MOST_LAG}: or more)"
    return Panel("returning to what was left", along, "taken up again", look, series=names)


def answers(
    x: str,
    label: str,
    *,
    y: str = "response",
    series: Column | None = None,
    names: Sequence[str] = (),
    title: str = "answers against questions",
    where: Column | None = None,
) -> Panel:
    """Mean answers along what was asked."""
    look = looked(read_off(y, where), read_off(x), series)
    return Panel(title, label, f"mean {'answer' if y == 'response' else y}", look,
                 series=tuple(names))  # fmt: skip


def usual_panels(environment: Environment) -> tuple[Panel, ...]:
    """Return the panels of an experiment that declares none, by what its trials ask for."""
    panels: list[Panel] = []
    if environment.given != "response":
        if environment.feedback:
            panels.append(learning_curve())
        few = environment.n_actions <= MOST_PLACES
        if few and environment.n_actions > 2:
            panels.append(shares([f"action {k}" for k in range(environment.n_actions)]))
        elif few:
            panels.append(share_of(1, "action 1 chosen"))
        else:
            look = looked(read_off("action"), trial())
            panels.append(Panel("choices", "trial", "mean number of the action", look))
        if environment.feedback:
            panels += [staying(), returning()]
        panels += [
            Panel(f"choices by {name}", name, "action 1 chosen", looked(chose(1), read_off(name)))
            for name in environment.fields.stimulus
            if environment.n_actions == 2
        ]
    if environment.given != "action":
        panels += [
            answers(name, name, title=f"answers by {name}") for name in environment.fields.stimulus
        ]
        panels.append(
            Panel("answers", "trial", "mean answer", looked(read_off("response"), trial()))
        )
    return tuple(panels)


def panels_of(environment: Environment) -> tuple[Panel, ...]:
    """Return what to look at in the trials of an experiment: its panels, or the usual ones."""
    return environment.panels or usual_panels(environment)


def _where(values: Numbers, rows: Rows, where: Column | None) -> Numbers:
    if where is None:
        return values
    wanted = where(rows)
    return np.where(np.isfinite(wanted) & (wanted != 0), values, np.nan)


def _same(a: Numbers, b: Numbers) -> Numbers:
    known = np.isfinite(a) & np.isfinite(b) & (a >= 0) & (b >= 0)
    return np.where(known, (a == b) * 1.0, np.nan)


def _above(values: Numbers, cut: float) -> Numbers:
    return np.where(np.isfinite(values), (values > cut) * 1.0, np.nan)
