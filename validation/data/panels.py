"""What predictive checks look at: means of what was done, along trials and stimuli.

`panels_of` reads them off what an experiment declares: its fields, what a trial asks for, whether
it pays, and the fields within which its trials follow each other. A panel is read off any rows
alike, recorded or simulated, so that a model's rows can be laid over those of people.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from knownminds.environments import Environment

Numbers = NDArray[np.float64]
Integers = NDArray[np.int64]
MOST_POSITIONS = 10  # along a panel; more values are cut into as many groups of equal size
LEAST_ROWS = 5  # of the data in a cell; fewer show no mean
MOST_LAG = 5  # trials back that the panel of returning separates
MOST_OPTIONS = 10  # of which each has a series


class PanelRows:
    """Rows of many sessions in order of time, and what panels look up in them.

    Parameters
    ----------
    environment : The experiment.
    columns : Stimuli, answers, rewards; each [rows].
    session : Number of each row's session, one that no other subject's session has, [rows].
    reference : The recorded rows, if these are simulated: rewards are cut at the mean of the
        recorded ones.
    """

    def __init__(
        self,
        environment: Environment,
        columns: Mapping[str, Any],
        session: Integers,
        reference: PanelRows | None = None,
    ):
        self.environment, self.session = environment, session
        self.columns, self.reference = columns, reference

    def __len__(self) -> int:
        return len(self.session)

    def __getitem__(self, name: str) -> Numbers:
        """Return a column as numbers; KeyError if there is none."""
        return np.asarray(self.columns[name], dtype=float)

    @cached_property
    def order(self) -> tuple[Integers, NDArray[np.bool_]]:
        """The rows by sequence, each in order of time, [rows], and where a sequence begins.

        A sequence is what has one session and one value of each of the fields `sequence`.
        """
        keys = [self.session, *(self[name] for name in self.environment.sequence)]
        order = np.lexsort(keys[::-1]).astype(np.int64)  # which is stable
        begins = np.arange(len(self)) == 0
        for key in keys:
            begins[1:] |= key[order][1:] != key[order][:-1]
        return order, begins

    @cached_property
    def number(self) -> Numbers:
        """Which row of its sequence each is, from 1."""
        order, begins = self.order
        row = np.arange(len(self))
        number = np.empty(len(self))
        number[order] = row - np.maximum.accumulate(np.where(begins, row, 0)) + 1
        return number

    def before(self, name: str) -> Numbers:
        """Return a column's value on the row before, of the same sequence; NaN where none is."""
        order, begins = self.order
        values = np.full(len(self), np.nan)
        values[order[1:]] = np.where(begins[1:], np.nan, self[name][order[:-1]])
        return values

    def paid(self, reward: Numbers) -> Numbers:
        """Tell whether rewards are above the mean of the recorded ones; NaN where there is none."""
        mean = np.nanmean((self.reference or self)["reward"])
        return np.where(np.isfinite(reward), (reward > mean) * 1.0, np.nan)


@dataclass(frozen=True)
class PanelPoints:
    """Points of a panel: the row each is about, its position, value and series, [points]."""

    row: Integers
    x: Numbers
    y: Numbers
    series: Integers

    @classmethod
    def of_rows(cls, x: Numbers, y: Numbers, series: Numbers | None = None) -> PanelPoints:
        """Return a point for each row; rows whose series is NaN are left out."""
        which = np.zeros(len(x)) if series is None else series
        known = np.where(np.isfinite(which), which, -1).astype(np.int64)
        return cls(np.arange(len(x)), x, y, known)


@dataclass(frozen=True)
class Panel:
    """One thing to look at: the mean of a value along positions, for one or several series.

    Parameters
    ----------
    title, x, y : What it is about; what its positions are; of what it shows the mean.
    look : Reads the points off rows; KeyError where a column is missing.
    series : What series are called; () for one without a name.
    """

    title: str
    x: str
    y: str
    look: Callable[[PanelRows], PanelPoints]
    series: tuple[str, ...] = ()

    def cells(self, rows: PanelRows) -> Cells | None:
        """Return the cells in which recorded rows show a mean; None for one position only."""
        try:
            points = self.look(rows)
        except KeyError:
            return None
        x = points.x[_usable(points)]
        values = np.unique(x)
        if len(values) < 2:
            return None
        if len(values) <= MOST_POSITIONS:
            edges = (values[1:] + values[:-1]) / 2
        else:
            cuts = np.quantile(x, np.linspace(0, 1, MOST_POSITIONS + 1)[1:-1])
            edges = np.unique(cuts[(cuts > values[0]) & (cuts < values[-1])])
        size = (len(edges) + 1) * max(len(self.series), 1)
        grid = Cells(self, edges, np.zeros(0), np.arange(size))
        mean, count = grid.means(rows, np.zeros(len(rows), dtype=np.int64), 1, of_x=True)
        kept = np.flatnonzero(count[0] >= LEAST_ROWS)
        return Cells(self, edges, mean[0][kept], kept) if len(kept) else None


@dataclass(frozen=True)
class Cells:
    """The positions and series of a panel that data show, and the means of any rows there.

    Parameters
    ----------
    panel : Whose cells these are.
    edges : Between positions, in order.
    x : Mean position of each cell, [cells].
    kept : Which cells of the whole grid of series and positions these are, [cells].
    """

    panel: Panel
    edges: Numbers
    x: Numbers
    kept: Integers

    @property
    def series(self) -> Integers:
        """Number of each cell's series, [cells]."""
        return self.kept // (len(self.edges) + 1)

    def means(
        self, rows: PanelRows, owner: Integers, n: int, *, of_x: bool = False
    ) -> tuple[Numbers, Numbers]:
        """Return the mean value in each cell and the number of its points, [n, cells].

        Parameters
        ----------
        owner : Which of n sets each row belongs to, [rows].
        of_x : Take the mean of the positions instead.
        """
        points = self.panel.look(rows)
        across = len(self.edges) + 1
        size = across * max(len(self.panel.series), 1)
        usable = _usable(points)
        bins = np.searchsorted(self.edges, points.x[usable], side="right")
        code = owner[points.row[usable]] * size + points.series[usable] * across + bins
        value = (points.x if of_x else points.y)[usable]
        count = np.bincount(code, minlength=n * size).reshape(n, size).astype(float)
        total = np.bincount(code, value, minlength=n * size).reshape(n, size)
        with np.errstate(invalid="ignore"):
            mean = total / np.where(count > 0, count, np.nan)
        return mean[:, self.kept], count[:, self.kept]


def panels_of(environment: Environment) -> tuple[Panel, ...]:
    """Return what to look at in the trials of an experiment, by what they ask for and show."""
    panels: list[Panel] = []
    stimuli = [name for name in environment.fields.stimulus if name not in environment.sequence]
    if environment.given != "response":
        n = environment.n_actions
        if environment.feedback:
            panels.append(Panel("learning curve", "trial", "mean reward", _along_trials("reward")))
        if n == 2:
            panels.append(Panel("choices", "trial", "action 1 chosen", _along_trials("action")))
            panels += [
                Panel(f"choices by {name}", name, "action 1 chosen", _along(name, "action"))
                for name in stimuli
            ]
        elif n <= MOST_OPTIONS:
            names = tuple(f"action {k}" for k in range(n))
            panels.append(Panel("choices", "trial", "share of choices", _shares, names))
        else:
            panels.append(
                Panel("choices", "trial", "mean number of the action", _along_trials("action"))
            )
        if environment.feedback:
            series = ("after less", "after more")
            panels.append(
                Panel("staying after rewards", "trial", "choices repeated", _staying, series)
            )
            along = f"trials since it was tried ({MOST_LAG}: or more)"
            series = ("it paid less", "it paid more")
            panels.append(
                Panel("returning to what was left", along, "taken up again", _returning, series)
            )
    if environment.given != "action":
        panels += [
            Panel(f"answers by {name}", name, "mean answer", _along(name, "response"))
            for name in stimuli
        ]
        panels.append(Panel("answers", "trial", "mean answer", _along_trials("response")))
    return tuple(panels)


def panel_means(
    environment: Environment, shown: PanelRows, rows: PanelRows, n: int
) -> Iterator[tuple[Panel, str, float, Numbers]]:
    """Yield panel, name of the series, mean position and the means of n sessions there.

    Parameters
    ----------
    shown : The rows that say in which cells there is a mean.
    rows : Those whose means are taken.
    """
    for panel in panels_of(environment):
        cells = panel.cells(shown)
        if cells is None:
            continue
        means, _ = cells.means(rows, rows.session, n)
        for series, x, mean in zip(cells.series, cells.x, means.T, strict=True):
            yield panel, panel.series[series] if panel.series else "", float(x), mean


def _usable(points: PanelPoints) -> NDArray[np.bool_]:
    return np.isfinite(points.x) & np.isfinite(points.y) & (points.series >= 0)


def _answered(values: Numbers) -> Numbers:
    """Return answers, NaN where there is none."""
    return np.where(values >= 0, values, np.nan)


def _value_of(rows: PanelRows, name: str) -> Numbers:
    return _answered(rows[name]) if name == "action" else rows[name]


def _along(x: str, y: str) -> Callable[[PanelRows], PanelPoints]:
    return lambda rows: PanelPoints.of_rows(rows[x], _value_of(rows, y))


def _along_trials(y: str) -> Callable[[PanelRows], PanelPoints]:
    return lambda rows: PanelPoints.of_rows(rows.number, _value_of(rows, y))


def _shares(rows: PanelRows) -> PanelPoints:
    """How often each action is chosen, as trials go by."""
    action, k = _answered(rows["action"]), rows.environment.n_actions
    chosen = np.where(np.isfinite(action), action == np.arange(k)[:, None], np.nan)
    row, x = np.tile(np.arange(len(rows)), k), np.tile(rows.number, k)
    return PanelPoints(row, x, chosen.ravel(), np.repeat(np.arange(k), len(rows)))


def _staying(rows: PanelRows) -> PanelPoints:
    """Whether choices are repeated, by what they brought and as trials go by."""
    action, last = _answered(rows["action"]), _answered(rows.before("action"))
    stayed = np.where(np.isfinite(action + last), action == last, np.nan)
    return PanelPoints.of_rows(rows.number, stayed, rows.paid(rows.before("reward")))


def _returning(rows: PanelRows) -> PanelPoints:
    """Whether an option left is taken up again, by how long ago it was tried and what it paid."""
    order, begins = rows.order
    action, paid = rows["action"][order], rows.paid(rows["reward"])[order]
    at = np.arange(len(order))
    first = np.maximum.accumulate(np.where(begins, at, 0))
    parts = []
    for option in range(rows.environment.n_actions):
        tried = np.maximum.accumulate(np.where(action == option, at, -1))
        last = np.concatenate([[-1], tried[:-1]])
        left = np.flatnonzero((last >= first) & (last < at - 1))
        lag = np.minimum(left - last[left], MOST_LAG).astype(float)
        series = np.nan_to_num(paid[last[left]], nan=-1.0).astype(np.int64)
        parts.append((order[left], lag, (action[left] == option) * 1.0, series))
    row, x, y, which = (np.concatenate(part) for part in zip(*parts, strict=True))
    return PanelPoints(
        row.astype(np.int64), x.astype(float), y.astype(float), which.astype(np.int64)
    )
