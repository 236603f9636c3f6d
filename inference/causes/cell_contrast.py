"""Differences between the answers to two tasks, averaged over the cells of a design."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from knownminds.agents import Agent
from knownminds.agents.parameters import Array
from knownminds.environments import Trials
from knownminds.environments.later import pandas as pd
from knownminds.inference.measure import Estimate, Measure, SubjectMeasure, Values, t_tests

from .causal_answers import CELL_OF_TASKS, both_directions, causal_answers, judgements, told_cell

NAMED = 3  # cells that are named one by one where many have no answer


@dataclass(frozen=True)
class CellDifferences:
    """The difference of two tasks in each cell, for S subjects and C cells.

    Parameters
    ----------
    subjects : Their names.
    cells : Domain, sense and direction of each cell.
    value : [S, C]; NaN where a task has no answer.
    asked : Whether the subject was asked any of the two tasks in the cell, [S, C].
    lacks : By task, whether the subject was asked in the cell but did not answer this task, [S, C].
    """

    subjects: tuple[str, ...]
    cells: tuple[str, ...]
    value: Array
    asked: NDArray[np.bool_]
    lacks: Mapping[str, NDArray[np.bool_]]

    def gaps(self) -> Iterator[tuple[str, str, str]]:
        """Name each subject, cell and task without an answer."""
        for task, where in self.lacks.items():
            for s, c in np.argwhere(where).tolist():
                yield self.subjects[s], self.cells[c], task


class CellContrast(SubjectMeasure):
    """Mean answer to one task minus that to another, of raw answers as shares of 1.

    In each cell (domain, sense and direction of the question) the answers to each task are
    averaged; a subject's value is the mean of the differences over the cells, which all weigh the
    same. Cells that were asked but lack an answer to one of the tasks are counted and named, and
    nothing is put in their place. With several subjects the test is over subjects, with a single
    one over its cells.

    Attributes
    ----------
    plus, minus
        Roman numbers of the two tasks.
    pooled
        Whether a cell holds the questions about both causes, as in Dettki (2025): its domain and
        sense make it.
    """

    environments = ("collider",)
    bounds = (-1.0, 1.0)
    plus: str
    minus: str
    pooled: bool = False

    def values(self, trials: Trials | pd.DataFrame) -> Values:
        """Return each subject's mean difference over its cells."""
        return self.over_cells(self.by_cell(trials))

    of_each = Measure.of_each  # their interval is not over sessions

    def estimate(self, trials: Trials | pd.DataFrame) -> Estimate:
        """Return the mean over subjects, or over the cells of a single one."""
        found = self.by_cell(trials)
        if len(found.subjects) > 1:
            estimate = self.over_subjects(self.over_cells(found))
        else:
            asked = found.value[0, found.asked[0]]
            tests = t_tests(asked[None, :], self.null, bounds=self.bounds)
            estimate = self._told(tests, Values(asked, ()), "cell")
        counts = {**estimate.excluded, **_counted(found), **self.unanswered(trials)}
        return replace(estimate, excluded=counts)

    def reads(self, trials: Trials) -> NDArray[np.bool_]:
        """Say which trials ask one of the two tasks, [rows]."""
        asked = causal_answers(trials)
        mine = asked.index[asked["task"].isin([self.plus, self.minus])]
        return np.asarray(trials.frame.index.isin(mine))

    def by_cell(self, trials: Trials | pd.DataFrame) -> CellDifferences:
        """Return the difference in each cell of each subject."""
        answers = causal_answers(trials)
        number, subjects = pd.factorize(answers["subject"])
        asking = answers["task"].isin([self.plus, self.minus]).to_numpy()
        own, subject = answers[asking], number[asking]
        if len(own) == 0:
            raise ValueError(
                f"{self.name} compares the tasks {self.plus} and {self.minus}; the trials have "
                "none of them. Ask both."
            )
        if self.pooled:
            own = own.assign(direction="")
        cell, cells = pd.factorize(pd.MultiIndex.from_frame(own[list(CELL_OF_TASKS)]))
        place = subject * len(cells) + cell
        size = len(subjects) * len(cells)
        means, asked = [], np.bincount(place, minlength=size) > 0
        answer = own["answer"].to_numpy(dtype=float)
        for task in (self.plus, self.minus):
            mine = (own["task"] == task).to_numpy() & np.isfinite(answer)
            n = np.bincount(place[mine], minlength=size)
            with np.errstate(invalid="ignore"):
                means.append(np.bincount(place[mine], answer[mine], size) / n)
        shape = (len(subjects), len(cells))
        return CellDifferences(
            subjects=tuple(subjects),
            cells=tuple(told_cell(*cell) for cell in cells),
            value=(means[0] - means[1]).reshape(shape),
            asked=asked.reshape(shape),
            lacks={
                task: (asked & np.isnan(mean)).reshape(shape)
                for task, mean in zip((self.plus, self.minus), means, strict=True)
            },
        )

    def truth(self, model: type[Agent], theta: Array) -> Array:
        """Return the difference of the judgements themselves, before noise and rounding, [n]."""
        asked = [both_directions(task) for task in (self.plus, self.minus)]
        plus, minus = (judgements(model, theta, questions).mean(axis=1) for questions in asked)
        return np.asarray(plus - minus)

    def over_cells(self, found: CellDifferences) -> Values:
        """Return the mean over the cells of each subject; NaN with a reason where there is none."""
        held = np.isfinite(found.value)
        n = held.sum(axis=1)
        with np.errstate(invalid="ignore"):
            value = np.where(held, found.value, 0.0).sum(axis=1) / n
        reason = f"no cell with answers to both {self.plus} and {self.minus}"
        return Values(value, tuple("" if k else reason for k in n))


def _counted(cell_differences: CellDifferences) -> dict[str, int]:
    """Count the cells that lack a task, under a name that says which they are."""
    counts = {}
    for task, where in cell_differences.lacks.items():
        cells = [cell_differences.cells[c] for c in np.flatnonzero(where.any(axis=0))]
        if cells:
            more = f" and {len(cells) - NAMED} more" if len(cells) > NAMED else ""
            named = f"no answer to {task} in {', '.join(cells[:NAMED])}{more}"
            counts[named] = int(where.sum())
    return counts
