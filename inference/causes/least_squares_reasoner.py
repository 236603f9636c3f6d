"""The published least-squares fits of a noisy-OR to causal judgements, and their predictions.

Least squares is maximum likelihood for answers with Gaussian noise, whatever its size. So the fits
are those of `maximum_likelihood` at a fixed sigma.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from knownminds.agents import Model, NoisyOr, NoisyOrFive, NoisyOrThree
from knownminds.agents.parameters import Array
from knownminds.environments import Trials
from knownminds.environments.causes.causal_graph import direction_of, noisy_or_table, task_of
from knownminds.environments.later import pandas as pd
from knownminds.inference.fits.model_data import ModelData
from knownminds.inference.fits.point import maximum_likelihood
from knownminds.members import unknown

from .causal_answers import QUESTION, ROMAN, SCALE, causal_answers

Scoring = Literal["by_cause", "pooled"]
Integers = NDArray[np.int64]

N_TASKS = len(ROMAN)
STARTS = 10  # with fewer starts, fits to few tasks have ended in worse optima
SIGMA = 0.05  # of the Gaussian noise; the optimum is the same at any value
INSIDE = 1e-12  # answers at the ends are moved this far inside, where they count like any other
END = 1e-6  # estimates this close to 0 or 1 are at the end of the range
FLAT = 1e-18  # rounding leaves this sum of squares of equal answers, on a scale from 0 to 1
TOUCHED = 1e-6  # a null direction involves a parameter if its component along it is above this

MODELS: dict[int, type[Model]] = {3: NoisyOrThree, 4: NoisyOr, 5: NoisyOrFive}
NAMES = {size: model.parameters.names[:-1] for size, model in MODELS.items()}
ALL_PARAMETERS = ("p1", "p2", "b", "m1", "m2")
# For each number of parameters: the model's column that holds p1, p2, b, m1 and m2.
COLUMNS = {3: (0, 0, 1, 2, 2), 4: (0, 0, 1, 2, 3), 5: (0, 1, 2, 3, 4)}
POINT = (0.37, 0.56, 0.21, 0.64, 0.83)  # at this point no slope of a prediction is special


@dataclass(frozen=True)
class _Answers:
    """The answers of N subjects one by one: their questions, and the answers from 0 to 1."""

    subjects: tuple[str, ...]
    subject: Integers
    question: Integers  # [4, answers]: query, first, second, third
    task: Integers
    direction: Integers
    answer: Array

    @classmethod
    def read(cls, trials: Trials | pd.DataFrame, scoring: Scoring, by: Sequence[str]) -> _Answers:
        frame = causal_answers(trials)
        codes, names = pd.factorize(subjects_of(frame, by))
        answer = frame["answer"].to_numpy(dtype=float)
        given = np.isfinite(answer)
        outside = given & ((answer < 0.0) | (answer > 1.0))
        if outside.any():
            row = int(np.argmax(outside))
            raise ValueError(
                f"Answers go from 0 to 100; row {row + 1} has {SCALE * answer[row]:g}. Correct or "
                "leave out such rows."
            )
        question = frame[list(QUESTION)].to_numpy(dtype=np.int64).T[:, given]
        direction = np.asarray(direction_of(*question), dtype=np.int64)
        if scoring == "pooled":  # the mirror image, whose formula is that of C1
            query, first, second, third = question
            mirrored = np.stack([np.where(query < 2, 1 - query, query), second, first, third])
            question = np.where(direction == 1, mirrored, question)
            direction = np.zeros_like(direction)
        task = task_of(*question)
        return cls(tuple(map(str, names)), codes[given], question, task, direction, answer[given])

    @property
    def answered(self) -> NDArray[np.bool_]:
        """Which questions have answers, [N, 2, 11]: direction and task."""
        mask = np.zeros((len(self.subjects), 2, N_TASKS), dtype=bool)
        mask[self.subject, self.direction, self.task] = True
        return mask

    def mean(self, values: Array, *, by_task: bool = False) -> Array:
        """Return the mean of values of the answers, [N], or [N, 11]; NaN without answers."""
        n, cell = len(self.subjects), self.subject
        shape = (n, N_TASKS) if by_task else (n,)
        if by_task:
            cell = self.subject * N_TASKS + self.task
        size = int(np.prod(shape))
        with np.errstate(invalid="ignore"):
            mean = np.bincount(cell, values, size) / np.bincount(cell, minlength=size)
        return mean.reshape(shape)

    def merged(self) -> _Answers:
        """Return the fewest answers with the same optimum: means, repeated in proportion to counts.

        Sums of squares depend on the counts and means of the answers to each question. Their
        optimum depends only on the proportions of the counts.
        """
        cell = (self.subject * 2 + self.direction) * N_TASKS + self.task
        _, first, which, count = np.unique(
            cell, return_index=True, return_inverse=True, return_counts=True
        )
        mean = np.bincount(which, self.answer) / count
        begin = np.flatnonzero(np.diff(self.subject[first], prepend=-1))
        common = np.gcd.reduceat(count, begin) if len(begin) else count
        times = count // np.repeat(common, np.diff([*begin, len(count)]))
        row = np.repeat(first, times)
        return replace(
            self,
            subject=self.subject[row],
            question=self.question[:, row],
            task=self.task[row],
            direction=self.direction[row],
            answer=np.repeat(mean, times),
        )

    def fit(self, size: int, starts: int, workers: int | None) -> Array:
        """Fit all tasks, and all tasks but each one: theta [N, 12, K], NaN without answers."""
        few, fits = self.merged(), 1 + N_TASKS
        rows = [np.flatnonzero(few.task != left_out) for left_out in range(-1, N_TASKS)]
        row = np.concatenate(rows)
        which = np.repeat(np.arange(fits), [len(some) for some in rows])
        units, unit = np.unique(few.subject[row] * fits + which, return_inverse=True)
        flat = dict(zip(QUESTION, few.question[:, row].astype(float), strict=True))
        flat["graph"] = np.zeros(len(row))
        flat["response"] = SCALE * np.clip(few.answer[row], INSIDE, 1.0 - INSIDE)
        theta, model = np.full((len(self.subjects) * fits, size), np.nan), MODELS[size]
        if len(units):
            data = ModelData.of_columns(model, list(map(str, units)), unit, (), flat, 1)
            fixed = {"sigma": SIGMA}
            fit = maximum_likelihood(model, data, fixed=fixed, starts=starts, workers=workers)
            theta[units] = fit.estimate
        return theta.reshape(-1, fits, size)


def subjects_of(frame: pd.DataFrame, by: Sequence[str]) -> pd.Series:
    """Return the subject of each row: the values of the columns `by`, in words.

    Raises
    ------
    ValueError : If there is no such column.
    """
    for name in by:
        if name not in frame:
            raise ValueError(unknown("column", name, list(map(str, frame.columns))))
    text = frame[list(by)].astype(str)
    return text[by[0]] if len(by) == 1 else text.agg(" ".join, axis=1)


@dataclass(frozen=True)
class ReasoningConsistency:
    """Noisy-ORs of N subjects by least squares, and how well each predicts the tasks left out.

    Each task with answers is left out in turn, the parameters are fitted to the others, and the
    mean answer to the task is predicted. R2 = 1 - sum (mean - predicted)^2 / sum (mean - mean of
    means)^2; R2 and RMSE are taken over all these pairs.

    Parameters
    ----------
    sizes : Numbers of parameters, M of them.
    scoring : "by_cause" or "pooled".
    subjects : The subjects' names.
    r2, rmse : The scores, [N, M]; NaN where `reason` says why.
    chosen : Position of the number of parameters with the larger R2, the published choice, [N]; the
        smaller number if both are equal, -1 if there is no R2.
    mean : Mean answer to each task, [N, 11]; NaN for tasks without answers.
    predicted : Predictions by fits without the task, [N, M, 11]; NaN where the other tasks do not
        determine them.
    reason : Why a subject has no R2, in words; otherwise empty.
    estimate : p1, p2, b, m1 and m2 of the fits to all tasks, [N, M, 5]; NaN where the answers do
        not determine a parameter.
    residuals : Errors of the fits to all tasks, [N, M]: loss, the mean of half the squared
        residuals (Huber's with delta = 1, which no residual exceeds); mae, their mean size; rmse;
        and r2, the explained share of the answers' variance, NaN if answers do not vary.
    status : "ok"; "boundary": an estimate at 0 or 1; "unidentified": some parameter is not
        determined; "failed": no answers; [M][N].
    message : The parameters at fault, and the tasks without answers, in words, [M][N].
    """

    sizes: tuple[int, ...]
    scoring: Scoring
    subjects: tuple[str, ...]
    r2: Array
    rmse: Array
    chosen: Integers
    mean: Array
    predicted: Array
    reason: tuple[str, ...]
    estimate: Array
    residuals: dict[str, Array]
    status: tuple[tuple[str, ...], ...]
    message: tuple[tuple[str, ...], ...]

    @property
    def value(self) -> Array:
        """R2 of the chosen number of parameters, [N]."""
        return self.of_chosen(self.r2)

    @property
    def n_parameters(self) -> Integers:
        """The chosen number of parameters, [N]; 0 if there is none."""
        return np.where(self.chosen < 0, 0, np.array(self.sizes)[self.chosen])

    @property
    def theta(self) -> Array:
        """p, leak b and strengths m1, m2 of the chosen fit, [N, 4], m1 = m2 = m if it has m."""
        return self.of_chosen(self.estimate)[:, [0, 2, 3, 4]]

    def of_chosen(self, values: Array) -> Array:
        """Return the chosen fit's values, given those of each fit, [N, M, ...]; NaN without one."""
        chosen: Array = values[np.arange(len(self.chosen)), self.chosen]
        chosen[self.chosen < 0] = np.nan
        return chosen


def leave_one_task_out(
    trials: Trials | pd.DataFrame,
    *,
    parameters: Sequence[int] = (3, 4),
    scoring: Scoring = "by_cause",
    starts: int = STARTS,
    by: Sequence[str] = ("subject",),
    workers: int | None = None,
) -> ReasoningConsistency:
    """Fit a noisy-OR to answers about a collider, and predict each task from the others.

    The fits minimise the sum over answers of (prediction - answer / 100)^2 / 2.

    Parameters
    ----------
    parameters : Numbers of parameters to choose from: 3 (p, b, m), 4 (p, b, m1, m2), 5 (p1, p2, b,
        m1, m2).
    scoring : "by_cause": m1 and m2 belong to C1 and C2. "pooled", the published way: questions
        about C2 are answered by the formula of C1.
    starts : How many starting points; they are a fixed low-discrepancy set.
    by : Columns whose values make a subject, for instance ("subject", "condition").
    workers : Threads; None for one per core.
    """
    for size in parameters:
        if size not in NAMES:
            raise ValueError(
                "A noisy-OR is fitted with 3 parameters (p, b, m), 4 (p, b, m1, m2) or 5 (p1, p2, "
                f"b, m1, m2); got parameters={size!r}."
            )
    if scoring not in get_args(Scoring):
        raise ValueError(unknown("scoring", scoring, get_args(Scoring)))
    answers = _Answers.read(trials, scoring, by)
    answered, mean = answers.answered, answers.mean(answers.answer, by_task=True)
    grand = answers.mean(answers.answer)
    variance = answers.mean((answers.answer - grand[answers.subject]) ** 2)
    n, m = len(answers.subjects), len(parameters)
    predicted, estimate = np.empty((n, m, N_TASKS)), np.empty((n, m, 5))
    residuals = {name: np.empty((n, m)) for name in ("loss", "mae", "rmse", "r2")}
    said = []
    for f, size in enumerate(parameters):
        theta = answers.fit(size, starts, workers)
        # The axes are fit, task and direction.
        table = noisy_or_table(*theta.reshape(-1, size)[:, list(COLUMNS[size])].T)
        table = table.reshape(n, 1 + N_TASKS, N_TASKS, 2)
        question = answers.task, answers.direction
        without = table[answers.subject, 1 + answers.task, *question]
        undetermined, determined = _determined(answered, size)
        predicted[:, f] = np.where(determined, answers.mean(without, by_task=True), np.nan)
        whole = np.where(undetermined, np.nan, theta[:, 0])
        estimate[:, f] = whole[:, COLUMNS[size]]
        off = np.abs(table[answers.subject, 0, *question] - answers.answer)
        squared = answers.mean(off**2)
        with np.errstate(invalid="ignore", divide="ignore"):
            r2 = np.where(variance > FLAT, 1.0 - squared / variance, np.nan)
        columns = (0.5 * squared, answers.mean(off), np.sqrt(squared), r2)
        for name, column in zip(residuals, columns, strict=True):
            residuals[name][:, f] = column
        pairs = zip(answered, whole, strict=True)
        said.append([_status(mask, NAMES[size], row) for mask, row in pairs])
    r2, rmse, reason = _foretold(mean, predicted)
    best = np.where(np.isnan(r2), -np.inf, r2)
    return ReasoningConsistency(
        sizes=tuple(parameters),
        scoring=scoring,
        subjects=answers.subjects,
        r2=r2,
        rmse=rmse,
        chosen=np.where(np.isfinite(best).any(axis=1), best.argmax(axis=1), -1),
        mean=mean,
        predicted=predicted,
        reason=reason,
        estimate=estimate,
        residuals=residuals,
        status=tuple(tuple(status for status, _ in row) for row in said),
        message=tuple(tuple(message for _, message in row) for row in said),
    )


def _foretold(mean: Array, predicted: Array) -> tuple[Array, Array, tuple[str, ...]]:
    """Return R2 and RMSE [N, M] of predictions [N, M, 11], and the reasons where there are none."""
    r2, rmse = np.full(predicted.shape[:2], np.nan), np.full(predicted.shape[:2], np.nan)
    reasons = []
    for i, given in enumerate(np.isfinite(mean)):
        means = mean[i, given]
        around = ((means - means.mean()) ** 2).sum() if len(means) else 0.0
        if len(means) < 3:
            reasons.append(f"too few tasks with an answer ({len(means)} of the 3 that it takes)")
        elif not around > FLAT:
            reasons.append("the same mean answer to all tasks")
        else:
            squares = ((predicted[i][:, given] - means) ** 2).sum(axis=1)
            r2[i], rmse[i] = 1.0 - squares / around, np.sqrt(squares / len(means))
            lost = np.isnan(squares).all()
            reasons.append("some task cannot be predicted from the others" if lost else "")
    return r2, rmse, tuple(reasons)


def _status(answered: NDArray[np.bool_], names: Sequence[str], estimate: Array) -> tuple[str, str]:
    """Return the status of a fit to the questions that have answers, and its message."""
    if not answered.any():
        return "failed", "no answers"
    given = np.asarray(answered.any(axis=0))
    with np.errstate(invalid="ignore"):
        at_end = (estimate < END) | (estimate > 1.0 - END)
    lists = {
        "no answers to {}": [task for task, some in zip(ROMAN, given, strict=True) if not some],
        "answers do not determine {}": [
            names[k] for k in np.flatnonzero(np.isnan(estimate)).tolist()
        ],
        "{} at the end of the range": [names[k] for k in np.flatnonzero(at_end).tolist()],
    }
    status = "unidentified" if np.isnan(estimate).any() else "boundary" if at_end.any() else "ok"
    return status, "; ".join(text.format(", ".join(some)) for text, some in lists.items() if some)


def _determined(
    answered: NDArray[np.bool_], size: int
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Say which parameters the answers leave open, [N, K], and which tasks the others determine.

    The tasks, [N, 11], are among those with answers. Parameters are open in the null space of the
    slopes of predictions, taken at a point where no slope is special.
    """
    designs, which = np.unique(answered, axis=0, return_inverse=True)
    slopes = _slopes(size)
    without = np.repeat(designs[:, None], 1 + N_TASKS, axis=1)
    without[:, np.arange(1, 1 + N_TASKS), :, np.arange(N_TASKS)] = False
    seen = (slopes * without[..., None]).reshape(len(designs), 1 + N_TASKS, -1, size)
    null = np.eye(size) - np.linalg.pinv(seen, rcond=1e-8) @ seen
    undetermined = np.diagonal(null[:, 0], axis1=1, axis2=2) > TOUCHED
    moved = np.abs(np.einsum("dtk,ntkl->ndtl", slopes, null[:, 1:])).max(axis=3) > TOUCHED
    determined = designs.any(axis=1) & ~(moved & designs).any(axis=1)
    return undetermined[which.ravel()], determined[which.ravel()]


@lru_cache
def _slopes(size: int) -> Array:
    """Return slopes of predictions in theta, [2, 11, K], by central differences."""
    point, step = np.zeros(size), 1e-5 * np.eye(size)
    point[list(COLUMNS[size])] = POINT
    above, below = (noisy_or_table(*(point + s)[:, list(COLUMNS[size])].T) for s in (step, -step))
    return (above - below).transpose(2, 1, 0) / 2e-5
