"""How far the noisy-OR of somebody's answers is known: intervals over the stories told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from knownminds.agents.parameters import Array
from knownminds.environments import Trials
from knownminds.environments.causes.causal_graph import direction_of, task_of
from knownminds.environments.later import pandas as pd
from knownminds.environments.record.result import Result
from knownminds.inference.measure import interval_tests

from .causal_answers import QUESTION, causal_answers
from .least_squares_reasoner import (
    FLAT,
    N_TASKS,
    PLACES,
    Integers,
    ReasoningConsistency,
    _Cells,
    _predictable,
    what_is_not_told,
)

# What has an interval, and between which bounds it lies.
BOUNDS: dict[str, tuple[float, float]] = {
    "p": (0.0, 1.0),
    "b": (0.0, 1.0),
    "m1": (0.0, 1.0),
    "m2": (0.0, 1.0),
    "determinacy": (-1.0, 1.0),
    "loss": (0.0, 0.5),
    "rmse": (0.0, 1.0),
    "mae": (0.0, 1.0),
    "r2": (-np.inf, 1.0),
    "reasoning_consistency": (-np.inf, 1.0),
}
BLOCKS = ("domain", "sense")


@dataclass(frozen=True)
class ReasonerIntervals(Result):
    """Values of N subjects with errors, and what they would be without each block.

    Parameters
    ----------
    subjects
        Their names.
    value, error, low, high
        By quantity (see `BOUNDS`), [N]; NaN where there is none.
    blocks
        Of each subject, in the order of `without`.
    without
        By quantity, what each subject has without each of its blocks; NaN where that leaves
        something open.
    """

    subjects: tuple[str, ...]
    value: dict[str, Array]
    error: dict[str, Array]
    low: dict[str, Array]
    high: dict[str, Array]
    blocks: tuple[tuple[str, ...], ...]
    without: dict[str, tuple[Array, ...]]

    def to_frame(self) -> pd.DataFrame:
        """One row per subject and quantity."""
        parts = [
            pd.DataFrame(
                {
                    "subject": self.subjects,
                    "quantity": name,
                    "value": self.value[name],
                    "error": self.error[name],
                    "low": self.low[name],
                    "high": self.high[name],
                    "blocks": [len(own) for own in self.blocks],
                }
            )
            for name in self.value
        ]
        return pd.concat(parts, ignore_index=True)

    def difference(self, quantity: str, one: str, other: str) -> tuple[float, float, float]:
        """Return `one` minus `other` of a quantity, with the ends of its interval.

        Where both were told the same stories the blocks are left out of both together, so that
        what a story does to both cancels; otherwise the errors of both are taken as independent.
        """
        i, j = self.subjects.index(one), self.subjects.index(other)
        value = float(self.value[quantity][i] - self.value[quantity][j])
        if self.blocks[i] == self.blocks[j]:
            apart = self.without[quantity][i] - self.without[quantity][j]
            error, freedom = _jackknife(apart), float(len(apart) - 1)
        else:
            parts = [self.error[quantity][k] for k in (i, j)]
            error = float(np.hypot(*parts))
            sizes = [max(len(self.blocks[k]) - 1, 1) for k in (i, j)]
            with np.errstate(invalid="ignore", divide="ignore"):
                weights = sum(e**4 / n for e, n in zip(parts, sizes, strict=True))
                freedom = float(error**4 / weights)
        with np.errstate(invalid="ignore", divide="ignore"):  # of errors that are 0
            found = interval_tests(
                np.array([value]), np.array([error]), np.array([freedom]), np.array([2])
            )
        return value, float(found.low[0]), float(found.high[0])


def reasoner_intervals(
    trials: Trials | pd.DataFrame,
    found: ReasoningConsistency,
    blocks: Sequence[str] = BLOCKS,
    by: Sequence[str] = ("subject",),
    workers: int | None = None,
) -> ReasonerIntervals:
    """Leave out each block of stories in turn, and fit again what `leave_one_task_out` chose.

    Answers within a story hang together (its words are the same), so that stories are what is left
    out. The error is that of the delete-one jackknife (Quenouille 1949, Tukey 1958), to which
    Student's t with a degree of freedom less than there are blocks is referred; ends stay within
    the bounds of the quantity (`interval_tests`). Subjects with a single block have no interval.

    Parameters
    ----------
    trials
        The same that were given to `leave_one_task_out`, with the same `by`.
    found
        What it returned; the number of parameters that it chose is held.
    blocks
        Columns whose values together are a block.

    Raises
    ------
    ValueError
        If the trials are of other subjects.
    """
    frame = causal_answers(trials)
    whole = _Cells.read(frame, found.fits[0].scoring, by)
    if whole.subjects != found.subjects:
        raise ValueError(
            "Intervals are of the subjects that were fitted; got trials of "
            f"{', '.join(whole.subjects[:3])}, and fits of {', '.join(found.subjects[:3])}. Give "
            "the same trials and `by`."
        )
    parts, owner, names = _without_each(frame, whole, found.fits[0].scoring, blocks)
    n = len(whole.subjects)
    value = {name: np.full(n, np.nan) for name in BOUNDS}
    lacking = {name: np.full(len(owner), np.nan) for name in BOUNDS}
    for f, fit in enumerate(found.fits):
        size = len(fit.names)
        own = np.flatnonzero(found.chosen == f)
        if not len(own):
            continue
        theta = _fitted(whole, own, size, None, workers)
        at = np.flatnonzero(np.isin(owner, own))
        start = theta[np.searchsorted(own, owner[at])]
        again = _quantities(parts, at, size, _fitted(parts, at, size, start, workers))
        for name, values in _quantities(whole, own, size, theta).items():
            value[name][own] = values
            lacking[name][at] = again[name]
        open_ = _opened(whole, parts, at, owner, size)
        for name in lacking:
            lacking[name][at[open_]] = np.nan
    told = np.isfinite(value["p"])
    for k, name in enumerate(("b", "m1", "m2")):  # what the answers leave open has no value
        value[name] = np.where(np.isfinite(found.strengths[:, k]), value[name], np.nan)
    value["determinacy"] = value["determinacy"] + 0.0 * found.strengths.sum(axis=1)
    value["reasoning_consistency"] = np.where(told, found.value, np.nan)
    without = {
        name: tuple(values[owner == i] for i in range(n)) for name, values in lacking.items()
    }
    error, low, high = {}, {}, {}
    freedom = np.array([len(own) - 1.0 for own in names])
    for name, bounds in BOUNDS.items():
        error[name] = np.array([_jackknife(own) for own in without[name]])
        units = freedom.astype(np.int64) + 1
        with np.errstate(invalid="ignore", divide="ignore"):  # of errors that are 0
            ends = interval_tests(value[name], error[name], freedom, units, bounds=bounds)
        low[name], high[name] = ends.low, ends.high
    return ReasonerIntervals(whole.subjects, value, error, low, high, names, without)


def _jackknife(values: Array) -> float:
    """Return the error of a value from what it is without each of G blocks; NaN below two."""
    g = len(values)
    if g < 2 or not np.isfinite(values).all():
        return float("nan")
    return float(np.sqrt((g - 1.0) / g * ((values - values.mean()) ** 2).sum()))


def _without_each(
    frame: pd.DataFrame, whole: _Cells, scoring: str, blocks: Sequence[str]
) -> tuple[_Cells, Integers, tuple[tuple[str, ...], ...]]:
    """Return the answers of each subject without each of its blocks, each as a subject."""
    question = [frame[name].to_numpy(dtype=np.int64) for name in QUESTION]
    given = np.isfinite(frame["answer"].to_numpy(dtype=float))
    labels = frame[blocks[0]].astype(str)
    for name in blocks[1:]:
        labels = labels + " " + frame[name].astype(str)
    number, told = pd.factorize(labels.to_numpy()[given], sort=True)
    pairs, code = np.unique(whole.subject * len(told) + number, return_inverse=True)
    owner, which = np.divmod(pairs, len(told))
    n, m = len(whole.subjects), len(pairs)
    task, direction = task_of(*question)[given], direction_of(*question)[given]
    if scoring == "pooled":
        direction = np.zeros_like(direction)
    cell = (code * 2 + direction) * N_TASKS + task
    shape = (m, 2, N_TASKS)

    def added(values: Array | None) -> Array:
        return np.bincount(cell, values, minlength=m * 2 * N_TASKS).astype(float).reshape(shape)

    count = whole.count[owner] - added(None)
    total = (whole.count * whole.mean)[owner] - added(whole.answer)
    squares = (whole.spread + whole.count * whole.mean**2)[owner] - added(whole.answer**2)
    mean = np.where(count > 0, total / np.maximum(count, 1.0), 0.0)
    spread = np.maximum(squares - count * mean**2, 0.0)
    names = tuple(tuple(str(told[k]) for k in which[owner == i].tolist()) for i in range(n))
    # Answers one by one, of all blocks but the own: what mean absolute residuals are taken over.
    keeps = [np.flatnonzero((whole.subject == owner[k]) & (code != k)) for k in range(m)]
    rows = np.concatenate(keeps) if keeps else np.zeros(0, dtype=np.int64)
    parts = _Cells(
        tuple(f"{whole.subjects[o]} {k}" for k, o in enumerate(owner)),
        np.repeat(np.arange(m), [len(k) for k in keeps]),
        whole.direction[rows], whole.task[rows], whole.answer[rows],
        count.sum(axis=(1, 2)).astype(np.int64), count, mean, spread,
    )  # fmt: skip
    return parts, owner, names


def _part(cells: _Cells, at: Integers) -> _Cells:
    """Return some of the subjects, without their single answers."""
    nothing: Any = np.zeros(0, dtype=np.int64)
    return _Cells(
        tuple(cells.subjects[k] for k in at.tolist()), nothing, nothing, nothing, np.zeros(0),
        cells.n_asked[at], cells.count[at], cells.mean[at], cells.spread[at],
    )  # fmt: skip


def _fitted(
    cells: _Cells, at: Integers, size: int, start: Array | None, workers: int | None
) -> Array:
    """Return the estimates of some subjects, to all tasks and without each, [n, 12, K]."""
    some = _part(cells, at)
    if start is None:
        return some.fit(size, 10, True, workers)[0]
    return some.fit_from(start, workers)


def _quantities(cells: _Cells, at: Integers, size: int, theta: Array) -> dict[str, Array]:
    """Return all quantities of some subjects from their estimates [n, 12, K]."""
    some = _part(cells, at)
    predicted = some.predict(theta, size)  # [n, 12, 2, 11]
    count, mean = some.count, some.mean
    answers = count.sum(axis=(1, 2))
    answers = np.where(answers > 0, answers, np.nan)
    p1, _, b, m1, m2 = theta[:, 0][:, list(PLACES[size])].T
    off = (count * (predicted[:, 0] - mean) ** 2).sum(axis=(1, 2)) + some.spread.sum(axis=(1, 2))
    grand = (count * mean).sum(axis=(1, 2)) / answers
    around = (count * (mean - grand[:, None, None]) ** 2).sum(axis=(1, 2))
    around = around + some.spread.sum(axis=(1, 2))
    rows = np.isin(cells.subject, at)
    place = np.searchsorted(at, cells.subject[rows])
    residual = np.abs(
        predicted[place, 0, cells.direction[rows], cells.task[rows]] - cells.answer[rows]
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        weight = count.sum(axis=1)
        share = count / weight[:, None]
        own = np.where(weight > 0, (share * mean).sum(axis=1), np.nan)
        told = np.stack(
            [(share[:, :, t] * predicted[:, 1 + t, :, t]).sum(axis=1) for t in range(N_TASKS)],
            axis=1,
        )
        told[~_predictable(some, size)] = np.nan
        told[weight == 0] = np.nan
        held = weight > 0
        centre = (np.where(held, own, 0.0).sum(axis=1) / held.sum(axis=1))[:, None]
        missed = np.where(held, (told - own) ** 2, 0.0).sum(axis=1)
        spread = np.where(held, (own - centre) ** 2, 0.0).sum(axis=1)
        return {
            "p": p1,
            "b": b,
            "m1": m1,
            "m2": m2,
            "determinacy": (m1 + m2) / 2.0 - b,
            "loss": 0.5 * off / answers,
            "rmse": np.sqrt(off / answers),
            "mae": np.bincount(place, residual, minlength=len(at)) / answers,
            "r2": np.where(around > FLAT, 1.0 - off / around, np.nan),
            "reasoning_consistency": np.where(spread > FLAT, 1.0 - missed / spread, np.nan),
        }


def _opened(
    whole: _Cells, parts: _Cells, at: Integers, owner: Integers, size: int
) -> NDArray[np.bool_]:
    """Say which parts leave something open that the whole tells, [n]."""
    return np.array(
        [
            what_is_not_told(parts.count[k] > 0, size)
            != what_is_not_told(whole.count[owner[k]] > 0, size)
            for k in at.tolist()
        ],
        dtype=bool,
    )
