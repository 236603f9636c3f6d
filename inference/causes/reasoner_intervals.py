"""Intervals of a fitted noisy-OR, by leaving out the stories one at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from knownminds.agents.parameters import Array
from knownminds.environments import Trials
from knownminds.environments.later import pandas as pd
from knownminds.environments.record.tabled_result import TabledResult
from knownminds.inference.differences import Side, difference
from knownminds.inference.measure import interval_tests
from knownminds.inference.resampling import jackknife

from .causal_answers import causal_answers
from .least_squares_reasoner import ReasoningConsistency, leave_one_task_out, subjects_of

STARTS = 3  # starts of the fits without a block
# These quantities have intervals, which stay within these bounds.
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
BLOCKS = ("domain", "sense")  # the values of both together make a block


@dataclass(frozen=True)
class ReasonerIntervals(TabledResult):
    """Values of N subjects with errors, and their values without each block.

    Parameters
    ----------
    subjects : The subjects' names.
    value, error, low, high : By quantity (see `BOUNDS`), [N]; NaN where a value is missing.
    blocks : The blocks of each subject, in the order of `without`.
    without : By quantity, each subject's values without each of its blocks; NaN where the rest
        leaves a parameter open.
    """

    subjects: tuple[str, ...]
    value: dict[str, Array]
    error: dict[str, Array]
    low: dict[str, Array]
    high: dict[str, Array]
    blocks: tuple[tuple[str, ...], ...]
    without: dict[str, tuple[Array, ...]]

    def side(self, quantity: str, subject: str) -> Side:
        """Return a quantity of a subject, with what each story does to it."""
        i = self.subjects.index(subject)
        value, error = (float(each[quantity][i]) for each in (self.value, self.error))
        without, names = self.without[quantity][i], self.blocks[i]
        moved = jackknife(0.0, without, np.ones(len(without)))[2].tolist()
        influence = dict(zip(names, moved, strict=True)) if np.isfinite(error) else {}
        return Side(value, error, max(len(names) - 1.0, 1.0), influence)

    def difference(self, quantity: str, one: str, other: str) -> tuple[float, float, float]:
        """Return `one` minus `other` of a quantity, with the ends of its interval.

        It is a contrast of pairs of the stories that both answered, see `differences.difference`.
        """
        gap = difference(self.side(quantity, one), self.side(quantity, other))
        return gap.value, gap.low, gap.high


def reasoner_intervals(
    trials: Trials | pd.DataFrame, whole: ReasoningConsistency
) -> ReasonerIntervals:
    """Leave out each block of stories in turn, and fit the choice of `leave_one_task_out` again.

    Answers within a story depend on each other (its words are the same), so stories are left out as
    a whole. The error is that of the delete-one jackknife (Quenouille 1949, Tukey 1958). It is used
    with Student's t, with one degree of freedom less than there are blocks; ends stay within the
    bounds of the quantity (`interval_tests`). Subjects with a single block have no interval.

    Parameters
    ----------
    trials : The same trials that were given to `leave_one_task_out`.
    whole : Its result; the chosen number of parameters holds for all fits.

    Raises
    ------
    ValueError : If the trials are of other subjects.
    """
    frame = causal_answers(trials)
    frame = frame[frame["answer"].notna()]
    subject = subjects_of(frame, ("subject",))
    others = set(subject) - set(whole.subjects)
    if others or not len(frame):
        raise ValueError(
            "Intervals are of the subjects that were fitted; got trials of "
            f"{', '.join(sorted(others)[:3])}, and fits of {', '.join(whole.subjects[:3])}. Give "
            "the same trials."
        )
    block = subjects_of(frame, BLOCKS)
    names, parts = [], []
    for i, name in enumerate(whole.subjects):
        rows = frame[(subject == name).to_numpy()]
        own_block = block[rows.index]
        names.append(tuple(sorted(own_block.unique())))
        parts += [(i, rows[own_block != one]) for one in names[-1]]
    value, without = _quantities(whole), _without(whole, parts)
    error, low, high = {}, {}, {}
    n_blocks = np.array([len(rows) for rows in names])
    for name, bounds in BOUNDS.items():
        error[name] = np.array([_error(rows) for rows in without[name]])
        ends = interval_tests(value[name], error[name], n_blocks - 1.0, n_blocks, bounds=bounds)
        low[name], high[name] = ends.low, ends.high
    return ReasonerIntervals(whole.subjects, value, error, low, high, tuple(names), without)


def _error(without: Array) -> float:
    """Return the jackknife's error; NaN if some remainder has no value."""
    if not np.isfinite(without).all():
        return float("nan")
    return jackknife(0.0, without, np.ones(len(without)))[0]  # of equal blocks any whole will do


def _without(
    whole: ReasoningConsistency, parts: Sequence[tuple[int, pd.DataFrame]]
) -> dict[str, tuple[Array, ...]]:
    """Return each quantity of each subject without each block, from (subject, answers left)."""
    owner = np.array([i for i, _ in parts], dtype=np.int64)
    values = {name: np.full(len(parts), np.nan) for name in BOUNDS}
    for f, size in enumerate(whole.sizes):
        at = [k for k in np.flatnonzero(whole.chosen[owner] == f).tolist() if len(parts[k][1])]
        if not at:
            continue
        again = leave_one_task_out(
            pd.concat([parts[k][1].assign(part=str(k)) for k in at]),
            parameters=(size,),
            scoring=whole.scoring,
            starts=STARTS,
            by=("part",),
        )
        # A remainder has no value if it leaves something open that all answers determine.
        lost = np.isnan(again.estimate[:, 0]) & ~np.isnan(whole.estimate[owner[at], f])
        again = replace(again, chosen=np.zeros(len(at), dtype=np.int64))
        for name, some in _quantities(again).items():
            values[name][at] = np.where(lost.any(axis=1), np.nan, some)
    n = len(whole.subjects)
    return {name: tuple(some[owner == i] for i in range(n)) for name, some in values.items()}


def _quantities(fitted: ReasoningConsistency) -> dict[str, Array]:
    """Return all quantities of the chosen fits, [N]; NaN where none is chosen."""
    p, b, m1, m2 = fitted.theta.T
    quantities = {"p": p, "b": b, "m1": m1, "m2": m2, "determinacy": (m1 + m2) / 2.0 - b}
    quantities |= {name: fitted.of_chosen(each) for name, each in fitted.residuals.items()}
    return quantities | {"reasoning_consistency": fitted.value}
