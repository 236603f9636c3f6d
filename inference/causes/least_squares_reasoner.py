"""The published least-squares fits of a noisy-OR to causal judgements, and what they predict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, get_args

import numpy as np
import scipy
from numba import njit
from numpy.typing import NDArray

from knownminds.agents.compiled import compiled
from knownminds.agents.parameters import Array
from knownminds.environments import Trials
from knownminds.environments.causes.causal_graph import direction_of, task_of
from knownminds.environments.later import pandas as pd
from knownminds.environments.record.result import Result, records
from knownminds.environments.words.names import unknown
from knownminds.inference.fits.batches import in_batches

from .causal_answers import QUESTION, ROMAN, causal_answers

Scoring = Literal["by_cause", "pooled"]
Integers = NDArray[np.int64]

N_TASKS = len(ROMAN)
BOX = 1e-6  # estimates are held this far from 0 and 1, where some evidence is impossible
FLAT = 1e-18  # sum of squares that rounding leaves of equal answers from 0 to 1
SAME_END = 1e-8  # starts whose mean loss ends this close to the best agree with it
MOST_ROUNDS = 200
TOUCHED = 1e-6  # a null direction has a component along a parameter above this
SUBJECTS_PER_BATCH = 64

NAMES: dict[int, tuple[str, ...]] = {
    3: ("p", "b", "m"),
    4: ("p", "b", "m1", "m2"),
    5: ("p1", "p2", "b", "m1", "m2"),
}
# In which column of theta p1, p2, b, m1, m2 stand.
PLACES = {3: (0, 0, 1, 2, 2), 4: (0, 0, 1, 2, 3), 5: (0, 1, 2, 3, 4)}
# In which column of the fit with a parameter less each parameter stands: a fit begins there too, so
# that it never ends above it.
SMALLER = {4: (0, 1, 2, 2), 5: (0, 0, 1, 2, 3)}


@njit(error_model="numpy")
def _copy(into, values):  # type: ignore[no-untyped-def]
    """Number by number: the error message of an assignment to slices takes seconds to compile."""
    for k in range(len(into)):
        into[k] = values[k]


@compiled(fastmath={"contract"})
def _bayes(prior, place, with_it, without, effect, answer, slope):  # type: ignore[no-untyped-def]
    """Fill in prior u / (prior u + (1 - prior) v) with its slopes; u and v are rows of `effect`."""
    u, v = effect[with_it, 0], effect[without, 0]
    total = prior * u + (1.0 - prior) * v
    share = prior * u / total
    for k in range(5):
        by_u, by_v = effect[with_it, 1 + k], effect[without, 1 + k]
        slope[k] = ((1.0 - share) * prior * by_u - share * (1.0 - prior) * by_v) / total
    slope[place] += ((1.0 - share) * u + share * v) / total
    answer[0] = share


@compiled(fastmath={"contract"})
def _tasks(own, other, b, m_own, m_other, columns, effect, answer, slope):  # type: ignore[no-untyped-def]
    """Fill in the answers to the eleven tasks, [11], and their slopes in p1, p2, b, m1, m2.

    `own` is the prior of the cause that is asked about; `columns` are the positions among the five
    parameters of own prior, other prior, own strength, other strength.
    """
    fails, fails_own, fails_other = 1.0 - b, 1.0 - m_own, 1.0 - m_other
    c_p, c_q, c_m, c_n = columns
    effect[:] = 0.0
    # Rows: neither cause, own, other, both; then with the other unknown: own absent, present.
    effect[0, 0], effect[0, 3] = b, 1.0
    effect[1, 0], effect[1, 3] = 1.0 - fails * fails_own, fails_own
    effect[1, 1 + c_m] = fails
    effect[2, 0], effect[2, 3] = 1.0 - fails * fails_other, fails_other
    effect[2, 1 + c_n] = fails
    effect[3, 0], effect[3, 3] = 1.0 - fails * fails_own * fails_other, fails_own * fails_other
    effect[3, 1 + c_m], effect[3, 1 + c_n] = fails * fails_other, fails * fails_own
    slope[:] = 0.0
    for task, row in enumerate((0, 2, 3)):
        answer[task] = effect[row, 0]
        _copy(slope[task], effect[row, 1:])
    answer[3] = answer[4] = own
    slope[3, c_p] = slope[4, c_p] = 1.0
    for task in (5, 8):
        if task == 8:  # now without the effect
            for row in range(4):
                effect[row, 0] = 1.0 - effect[row, 0]
                for k in range(1, 6):
                    effect[row, k] = -effect[row, k]
        for row in range(2):
            for k in range(6):
                effect[4 + row, k] = other * effect[2 + row, k] + (1.0 - other) * effect[row, k]
            effect[4 + row, 1 + c_q] += effect[2 + row, 0] - effect[row, 0]
        _bayes(own, c_p, 3, 2, effect, answer[task:], slope[task])
        _bayes(own, c_p, 5, 4, effect, answer[task + 1 :], slope[task + 1])
        _bayes(own, c_p, 1, 0, effect, answer[task + 2 :], slope[task + 2])


@compiled(fastmath={"contract"})
def _predict(theta, places, effect, answer, slope):  # type: ignore[no-untyped-def]
    """Fill in the answers [2, 11] in both directions and their slopes [2, 11, 5]."""
    p1, p2, b = theta[places[0]], theta[places[1]], theta[places[2]]
    m1, m2 = theta[places[3]], theta[places[4]]
    _tasks(p1, p2, b, m1, m2, (0, 1, 3, 4), effect, answer[0], slope[0])
    _tasks(p2, p1, b, m2, m1, (1, 0, 4, 3), effect, answer[1], slope[1])


@compiled(fastmath={"contract"})
def _solve(matrix, vector, k):  # type: ignore[no-untyped-def]
    """Solve a positive definite system [k, k] in place (Cholesky); say whether it is one."""
    for i in range(k):
        for j in range(i + 1):
            value = matrix[i, j]
            for m in range(j):
                value -= matrix[i, m] * matrix[j, m]
            if i == j:
                if not value > 0.0:
                    return False
                matrix[i, i] = np.sqrt(value)
            else:
                matrix[i, j] = value / matrix[j, j]
    for i in range(k):
        for m in range(i):
            vector[i] -= matrix[i, m] * vector[m]
        vector[i] /= matrix[i, i]
    for i in range(k - 1, -1, -1):
        for m in range(i + 1, k):
            vector[i] -= matrix[m, i] * vector[m]
        vector[i] /= matrix[i, i]
    return True


@compiled(fastmath={"contract"})
def _normal(theta, places, count, mean, left_out, effect, answer, slope, curvature, gradient):  # type: ignore[no-untyped-def]
    """Half the squared distance of the cell means, with its gradient and Gauss-Newton matrix."""
    k = len(theta)
    _predict(theta, places, effect, answer, slope)
    own = np.zeros(5)
    value = 0.0
    curvature[:] = 0.0
    gradient[:] = 0.0
    for direction in range(2):
        for task in range(N_TASKS):
            n = count[direction, task]
            if n == 0.0 or task == left_out:
                continue
            off = answer[direction, task] - mean[direction, task]
            value += 0.5 * n * off * off
            own[:] = 0.0
            for j in range(5):
                own[places[j]] += slope[direction, task, j]
            for i in range(k):
                gradient[i] += n * off * own[i]
                for j in range(i + 1):
                    curvature[i, j] += n * own[i] * own[j]
    return value


@compiled(fastmath={"contract"})
def _descend(theta, places, count, mean, left_out):  # type: ignore[no-untyped-def]
    """Minimise from theta, in place, within the box; return half the sum of squares.

    Levenberg (1944) and Marquardt (1963), with coordinates held that press against the box.
    """
    k = len(theta)
    effect, answer, slope = np.empty((6, 6)), np.empty((2, N_TASKS)), np.empty((2, N_TASKS, 5))
    curvature, gradient = np.empty((k, k)), np.empty(k)
    matrix, step, trial = np.empty((k, k)), np.empty(k), np.empty(k)
    new_curvature, new_gradient = np.empty((k, k)), np.empty(k)
    free = np.empty(k, np.int64)
    value = _normal(
        theta, places, count, mean, left_out, effect, answer, slope, curvature, gradient
    )
    damping = 1e-3
    for _ in range(MOST_ROUNDS):
        n_free = 0
        for i in range(k):
            at_low = theta[i] <= BOX and gradient[i] > 0.0
            at_high = theta[i] >= 1.0 - BOX and gradient[i] < 0.0
            if not (at_low or at_high):
                free[n_free] = i
                n_free += 1
        if n_free == 0:
            break
        for a in range(n_free):
            step[a] = -gradient[free[a]]
            for c in range(a + 1):
                i, j = free[a], free[c]
                matrix[a, c] = curvature[i, j] if i >= j else curvature[j, i]
            matrix[a, a] += damping * matrix[a, a] + 1e-14
        solved = _solve(matrix, step, n_free)
        _copy(trial, theta)
        moved = 0.0
        if solved:
            for a in range(n_free):
                i = free[a]
                trial[i] = min(max(theta[i] + step[a], BOX), 1.0 - BOX)
                moved = max(moved, abs(trial[i] - theta[i]))
            if moved < 1e-9:
                break
            reached = _normal(
                trial, places, count, mean, left_out,
                effect, answer, slope, new_curvature, new_gradient,
            )  # fmt: skip
        if solved and reached <= value:
            gain = value - reached
            value = reached
            _copy(theta, trial)
            _copy(gradient, new_gradient)
            for i in range(k):
                _copy(curvature[i], new_curvature[i])
            damping = max(damping * 0.1, 1e-10)
            if gain <= 1e-13 * value and damping < 1e-3:
                break
        else:
            damping = max(damping * 10.0, 1e-6)
            if damping > 1e10:
                break
    return value


@compiled(fastmath={"contract"})
def _fit(count, mean, places, starts, within, refit):  # type: ignore[no-untyped-def]
    """Fit N subjects, count and mean [N, 2, 11], from all starts [S, K], the best of which counts.

    Also from `within` [N, F, 0 or 1, K], where the fit with a parameter less ended.

    Returns theta [N, F, K], half the sums of squares [N, F], the share of starts that ended there,
    [N, F], and the predictions [N, F, 2, 11]; F is 1, or 12 with `refit`: then fit 1 + t goes
    without task t.
    """
    n, k = len(count), starts.shape[1]
    fits = 1 + N_TASKS if refit else 1
    theta, value = np.empty((n, fits, k)), np.full((n, fits), np.inf)
    agreement, predicted = np.zeros((n, fits)), np.empty((n, fits, 2, N_TASKS))
    ends, trial = np.empty(len(starts)), np.empty(k)
    effect, slope = np.empty((6, 6)), np.empty((2, N_TASKS, 5))
    for q in range(n):
        answered = count[q].sum()
        for f in range(fits):
            for s in range(len(starts)):
                _copy(trial, starts[s])
                ends[s] = _descend(trial, places, count[q], mean[q], f - 1)
                if ends[s] < value[q, f]:
                    value[q, f] = ends[s]
                    _copy(theta[q, f], trial)
            for s in range(within.shape[2]):
                _copy(trial, within[q, f, s])
                end = _descend(trial, places, count[q], mean[q], f - 1)
                if end < value[q, f]:
                    value[q, f] = end
                    _copy(theta[q, f], trial)
            for s in range(len(starts)):
                if ends[s] <= value[q, f] + SAME_END * answered:
                    agreement[q, f] += 1.0 / len(starts)
            _predict(theta[q, f], places, effect, predicted[q, f], slope)
    return theta, value, agreement, predicted


@dataclass(frozen=True)
class _Cells:
    """Answers of N subjects merged by direction and task: count, mean, spread [N, 2, 11]."""

    subjects: tuple[str, ...]
    subject: Integers
    direction: Integers
    task: Integers
    answer: Array
    n_asked: Integers
    count: Array
    mean: Array
    spread: Array

    @classmethod
    def read(cls, trials: Trials | pd.DataFrame, scoring: Scoring, by: Sequence[str]) -> _Cells:
        frame = causal_answers(trials)
        for name in by:
            if name not in frame:
                raise ValueError(unknown("column", name, list(map(str, frame.columns))))
        if len(by) == 1:
            codes, names = pd.factorize(frame[by[0]].astype(str))
        else:
            codes, names = pd.factorize(frame[list(by)].astype(str).agg(" ".join, axis=1))
        question = [frame[name].to_numpy(dtype=np.int64) for name in QUESTION]
        answer = frame["answer"].to_numpy(dtype=float)
        given = np.isfinite(answer)
        outside = given & ((answer < 0.0) | (answer > 1.0))
        if outside.any():
            row = int(np.argmax(outside))
            raise ValueError(
                f"Answers go from 0 to 100; row {row + 1} has {100.0 * answer[row]:g}. Correct or "
                "leave out such rows."
            )
        task, direction = task_of(*question)[given], direction_of(*question)[given]
        if scoring == "pooled":
            direction = np.zeros_like(direction)
        subject, y, n = np.asarray(codes, dtype=np.int64)[given], answer[given], len(names)
        cell = (subject * 2 + direction) * N_TASKS + task

        def added(values: Array | None) -> Array:
            return np.bincount(cell, values, minlength=n * 2 * N_TASKS).astype(float)

        count = added(None)
        mean = added(y) / np.maximum(count, 1.0)
        spread = added((y - mean[cell]) ** 2)
        shape = (n, 2, N_TASKS)
        return cls(
            tuple(map(str, names)), subject, direction, task, y, np.bincount(codes, minlength=n),
            count.reshape(shape), mean.reshape(shape), spread.reshape(shape),
        )  # fmt: skip

    @property
    def n_answers(self) -> Integers:
        """Answers of each subject, [N]."""
        return np.asarray(self.count.sum(axis=(1, 2)).astype(np.int64))

    def fit(
        self, n_parameters: int, starts: int, refit: bool, workers: int | None
    ) -> tuple[Array, Array, Array, Array]:
        """Run `_fit` over batches of subjects, in threads."""
        points = scipy.stats.qmc.Halton(n_parameters, scramble=False).random(starts + 1)[1:]
        points = np.ascontiguousarray(BOX + (1.0 - 2.0 * BOX) * points)
        n = len(self.subjects)
        within = np.empty((n, 1 + N_TASKS if refit else 1, 0, n_parameters))
        if n_parameters - 1 in NAMES:
            fewer, *_ = self.fit(n_parameters - 1, starts, refit, workers)
            within = fewer[:, :, None, list(SMALLER[n_parameters])]

        def one(batch: Integers) -> Any:
            cells, places = (self.count[batch], self.mean[batch]), PLACES[n_parameters]
            return _fit(*cells, places, points, np.ascontiguousarray(within[batch]), refit)

        parts = in_batches(one, n, SUBJECTS_PER_BATCH, workers)
        theta, value, agreement, predicted = (np.concatenate(p) for p in zip(*parts, strict=True))
        return theta, value, agreement, predicted

    def fit_from(self, start: Array, workers: int | None) -> Array:
        """Return the estimates [N, 12, K] to all tasks and without each, searched from `start`."""
        n_parameters = start.shape[-1]
        no_points = np.empty((0, n_parameters))

        def one(batch: Integers) -> Any:
            cells, places = (self.count[batch], self.mean[batch]), PLACES[n_parameters]
            own = np.ascontiguousarray(start[batch][:, :, None])
            return _fit(*cells, places, no_points, own, True)

        parts = in_batches(one, len(self.subjects), SUBJECTS_PER_BATCH, workers)
        found: Array = np.concatenate([part[0] for part in parts])
        return found

    def predict(self, theta: Array, n_parameters: int) -> Array:
        """Return the answers [N, F, 2, 11] of estimates [N, F, K]."""
        told: Array = _predicted(np.ascontiguousarray(theta), PLACES[n_parameters])
        return told


@compiled(fastmath={"contract"})
def _predicted(theta, places):  # type: ignore[no-untyped-def]
    """Return the answers [N, F, 2, 11] of estimates [N, F, K]."""
    n, fits = theta.shape[0], theta.shape[1]
    effect, slope = np.empty((6, 6)), np.empty((2, N_TASKS, 5))
    answer = np.empty((n, fits, 2, N_TASKS))
    for q in range(n):
        for f in range(fits):
            _predict(theta[q, f], places, effect, answer[q, f], slope)
    return answer


@dataclass(frozen=True)
class LeastSquaresFit(Result):
    """Least-squares estimates of N subjects.

    Parameters
    ----------
    names
        Of the K parameters.
    scoring
        "by_cause" or "pooled".
    subjects
        Their names.
    estimate
        [N, K]; NaN where the answers do not tell a parameter.
    loss
        Mean of half the squared residuals of the answers, [N]: Huber's loss with delta = 1, which
        no residual exceeds.
    mae, rmse, r2
        Mean absolute residual, root mean squared residual and share of the answers' variance that
        is predicted, [N]; the last is NaN for somebody whose answers do not vary.
    agreement
        Share of the starts that ended at the smallest loss, [N].
    status
        "ok"; "boundary": an estimate at 0 or 1; "unidentified": some parameter is not told;
        "failed": no answers.
    message
        Which parameters, and which tasks have no answers, in words.
    n_answers, n_missing
        Answers, and questions without one, [N].
    """

    names: tuple[str, ...]
    scoring: Scoring
    subjects: tuple[str, ...]
    estimate: Array
    loss: Array
    mae: Array
    rmse: Array
    r2: Array
    agreement: Array
    status: tuple[str, ...]
    message: tuple[str, ...]
    n_answers: Integers
    n_missing: Integers

    def to_frame(self) -> pd.DataFrame:
        """One row per subject."""
        columns: dict[str, Any] = {"subject": self.subjects}
        columns |= {name: self.estimate[:, k] for k, name in enumerate(self.names)}
        for name in ("loss", "mae", "rmse", "r2", "agreement", "n_answers", "n_missing"):
            columns[name] = getattr(self, name)
        return pd.DataFrame(columns | {"status": self.status, "message": self.message})

    def content(self) -> Any:
        """What `to_json` holds."""
        return {
            "parameters": self.names,
            "scoring": self.scoring,
            "subjects": records(self.to_frame()),
        }

    def __str__(self) -> str:
        """Medians over subjects, and the count of each status."""
        lines = [
            f"noisy-OR with {len(self.names)} parameters, least squares, scoring {self.scoring}, "
            f"{len(self.subjects)} subjects"
        ]
        for k, name in enumerate(self.names):
            lines.append(_told(name, self.estimate[:, k]))
        lines += [_told(name, getattr(self, name)) for name in ("mae", "rmse", "r2")]
        counts = {s: self.status.count(s) for s in dict.fromkeys(self.status)}
        lines.append(", ".join(f"{n} {status}" for status, n in counts.items()))
        return "\n".join(lines)


@dataclass(frozen=True)
class ReasoningConsistency(Result):
    """How well a noisy-OR fitted to some tasks predicts the others, for N subjects.

    Each task with answers is left out in turn, the parameters are fitted to the others, and the
    mean answer to the task is predicted. R2 = 1 - sum (mean - predicted)^2 / sum (mean - mean of
    means)^2, and RMSE, are taken over all these pairs.

    Parameters
    ----------
    fits
        The fits to all tasks, one for each number of parameters, M in all.
    subjects
        Their names.
    r2, rmse
        [N, M]; NaN where there is a reason.
    chosen
        Position of the number of parameters with the larger R2, the published choice, [N]; of
        fewer parameters where they are equal, -1 where there is none.
    mean
        Mean answer to each task, [N, 11]; NaN for tasks without answers.
    predicted
        By fits without the task, [N, M, 11]; NaN where the other tasks do not tell it.
    reason
        Why a subject has no R2, in words; empty otherwise.
    """

    fits: tuple[LeastSquaresFit, ...]
    subjects: tuple[str, ...]
    r2: Array
    rmse: Array
    chosen: Integers
    mean: Array
    predicted: Array
    reason: tuple[str, ...]

    @property
    def value(self) -> Array:
        """R2 of the chosen number of parameters, [N]."""
        return self._of_chosen(self.r2)

    @property
    def error(self) -> Array:
        """RMSE of the chosen number of parameters, [N]."""
        return self._of_chosen(self.rmse)

    @property
    def n_parameters(self) -> Integers:
        """The chosen number of parameters, [N]; 0 where there is none."""
        sizes = np.array([len(fit.names) for fit in self.fits])
        return np.where(self.chosen < 0, 0, sizes[self.chosen])

    @property
    def strengths(self) -> Array:
        """Leak b and strengths m1, m2 of the chosen fit, [N, 3], with m1 = m2 = m if it has m."""
        n = len(self.subjects)
        values = np.full((n, len(self.fits), 3), np.nan)
        for f, fit in enumerate(self.fits):
            for k, name in enumerate(("b", "m1", "m2")):
                own = name if name in fit.names else "m"
                values[:, f, k] = fit.estimate[:, fit.names.index(own)]
        return np.where(self.chosen[:, None] < 0, np.nan, values[np.arange(n), self.chosen])

    def to_frame(self) -> pd.DataFrame:
        """One row per subject: R2 and RMSE of each number of parameters and of the chosen one."""
        columns: dict[str, Any] = {
            "subject": self.subjects,
            "consistency": self.value,
            "rmse": self.error,
            "n_parameters": self.n_parameters,
        }
        for m, fit in enumerate(self.fits):
            columns[f"r2_{len(fit.names)}"] = self.r2[:, m]
            columns[f"rmse_{len(fit.names)}"] = self.rmse[:, m]
        columns |= dict(zip(("b", "m1", "m2"), self.strengths.T, strict=True))
        return pd.DataFrame(columns | {"reason": self.reason})

    def content(self) -> Any:
        """What `to_json` holds."""
        return records(self.to_frame())

    def __str__(self) -> str:
        """Medians over subjects, and how often each number of parameters is chosen."""
        lines = [
            f"reasoning consistency of {len(self.subjects)} subjects, tasks left out in turn, "
            f"scoring {self.fits[0].scoring}",
            _told("R2", self.value),
            _told("RMSE", self.error),
        ]
        sizes = self.n_parameters
        counts = {size: int((sizes == size).sum()) for size in np.unique(sizes).tolist()}
        told = [f"{size} parameters: {n}" if size else f"none: {n}" for size, n in counts.items()]
        return "\n".join([*lines, ", ".join(told)])

    def _of_chosen(self, values: Array) -> Array:
        taken: Array = values[np.arange(len(values)), self.chosen]
        return np.where(self.chosen < 0, np.nan, taken)


def least_squares(
    trials: Trials | pd.DataFrame,
    *,
    parameters: int = 4,
    scoring: Scoring = "by_cause",
    starts: int = 10,
    by: Sequence[str] = ("subject",),
    workers: int | None = None,
) -> LeastSquaresFit:
    """Fit a noisy-OR to each subject's answers about a collider by least squares.

    Minimises the sum over answers of (prediction - answer / 100)^2 / 2 within [0, 1] (held 1e-6
    away from the ends). It depends on the answers through the count, mean and spread of those to
    the same question alone, which is what the compiled search sees.

    Parameters
    ----------
    parameters
        3 (p, b, m), 4 (p, b, m1, m2) or 5 (p1, p2, b, m1, m2).
    scoring
        "by_cause": m1 and m2 belong to C1 and C2. "pooled", the published way: questions about C2
        are answered by the formula of C1.
    starts
        Starting points, a fixed low-discrepancy set.
    by
        Columns whose values make a subject, for instance ("subject", "condition").
    workers
        Threads; None for one per core.
    """
    _check(parameters, scoring, starts)
    cells = _Cells.read(trials, scoring, by)
    fitted = (part[:, 0] for part in cells.fit(parameters, starts, False, workers))
    return _summary(cells, parameters, scoring, *fitted)


def leave_one_task_out(
    trials: Trials | pd.DataFrame,
    *,
    parameters: Sequence[int] = (3, 4),
    scoring: Scoring = "by_cause",
    starts: int = 10,
    by: Sequence[str] = ("subject",),
    workers: int | None = None,
) -> ReasoningConsistency:
    """Predict the mean answer to each task from the least-squares fit to the others.

    Parameters
    ----------
    parameters
        Numbers of parameters to choose from.
    scoring, starts, by, workers
        As in `least_squares`.
    """
    for size in parameters:
        _check(size, scoring, starts)
    cells = _Cells.read(trials, scoring, by)
    n, m = len(cells.subjects), len(parameters)
    weight = cells.count.sum(axis=1)
    held = weight > 0.0
    with np.errstate(invalid="ignore"):
        share = cells.count / weight[:, None]
        mean = np.where(held, (share * cells.mean).sum(axis=1), np.nan)
    fits, told = [], np.empty((n, m, N_TASKS))
    for f, size in enumerate(parameters):
        fitted = cells.fit(size, starts, True, workers)
        fits.append(_summary(cells, size, scoring, *(part[:, 0] for part in fitted)))
        predicted = fitted[3]
        for task in range(N_TASKS):
            told[:, f, task] = (share[:, :, task] * predicted[:, 1 + task, :, task]).sum(axis=1)
        told[:, f][~_predictable(cells, size)] = np.nan
    r2, rmse = np.full((n, m), np.nan), np.full((n, m), np.nan)
    reason = []
    for i in range(n):
        own = mean[i, held[i]]
        around = ((own - own.mean()) ** 2).sum() if len(own) else 0.0
        if len(own) < 3:
            reason.append(f"answers to {len(own)} tasks, 3 are the least")
        elif not around > FLAT:
            reason.append("the same mean answer to all tasks")
        else:
            squares = ((told[i][:, held[i]] - own) ** 2).sum(axis=1)
            r2[i], rmse[i] = 1.0 - squares / around, np.sqrt(squares / len(own))
            lost = np.isnan(told[i][:, held[i]]).any(axis=1).all()
            reason.append("some task cannot be predicted from the others" if lost else "")
    best = np.where(np.isnan(r2), -np.inf, r2)
    chosen = np.where(np.isfinite(best).any(axis=1), best.argmax(axis=1), -1)
    return ReasoningConsistency(
        tuple(fits), cells.subjects, r2, rmse, chosen, mean, told, tuple(reason)
    )


def what_is_not_told(asked: NDArray[np.bool_], parameters: int) -> tuple[str, ...]:
    """Say which parameters the answers to some questions leave open, in words; empty if none.

    Parameters
    ----------
    asked
        Which questions have answers, [2, 11]: direction and task.
    parameters
        3, 4 or 5.
    """
    return _open(asked.astype(bool).tobytes(), parameters)


@lru_cache(maxsize=1024)
def _open(asked: bytes, parameters: int) -> tuple[str, ...]:
    projection, names = _null(asked, parameters), NAMES[parameters]
    linked = np.abs(projection) > TOUCHED
    _, block = scipy.sparse.csgraph.connected_components(linked, directed=False)
    said = []
    for b in np.unique(block):
        own = np.flatnonzero(block == b)
        lost = round(float(np.trace(projection[np.ix_(own, own)])))
        if lost == 0:
            continue
        listed = ", ".join(names[k] for k in own)
        if lost == len(own):
            said.append(f"nothing is told of {listed}")
        else:
            left = len(own) - lost
            what = "one combination" if left == 1 else f"{left} combinations"
            said.append(f"of {listed} only {what} can be told")
    return tuple(said)


def _check(parameters: int, scoring: str, starts: int) -> None:
    if parameters not in NAMES:
        raise ValueError(
            "A noisy-OR is fitted with 3 parameters (p, b, m), 4 (p, b, m1, m2) or 5 (p1, p2, b, "
            f"m1, m2); got parameters={parameters!r}."
        )
    if scoring not in get_args(Scoring):
        raise ValueError(unknown("scoring", scoring, get_args(Scoring)))
    if starts < 1:
        raise ValueError(f"A fit needs at least one start; got starts={starts}.")


def _summary(
    cells: _Cells,
    n_parameters: int,
    scoring: Scoring,
    theta: Array,
    value: Array,
    agreement: Array,
    predicted: Array,
) -> LeastSquaresFit:
    """Judge the fits and take their residuals, answer by answer."""
    n, names, answers = len(theta), NAMES[n_parameters], cells.n_answers
    off = np.abs(predicted[cells.subject, cells.direction, cells.task] - cells.answer)

    def per_subject(values: Array) -> Array:
        return np.bincount(cells.subject, values, minlength=n) / np.where(answers, answers, np.nan)

    squared = per_subject(off**2)
    grand = per_subject(cells.answer)
    around = per_subject((cells.answer - grand[cells.subject]) ** 2)
    estimate, status, message = theta.copy(), [], []
    for i in range(n):
        asked = cells.count[i] > 0.0
        missing = [
            roman for roman, any_of in zip(ROMAN, asked.any(axis=0), strict=True) if not any_of
        ]
        open_ = what_is_not_told(asked, n_parameters)
        lost = np.diag(_null(asked.tobytes(), n_parameters)) > TOUCHED
        estimate[i, lost] = np.nan
        ends = [
            name
            for name, x, gone in zip(names, theta[i], lost, strict=True)
            if not gone and not 2 * BOX < x < 1 - 2 * BOX
        ]
        said = [f"no answers to {', '.join(missing)}"] if missing else []
        if not answers[i]:
            status.append("failed")
            said = ["no answers"]
        elif open_:
            status.append("unidentified")
            said += open_
        elif ends:
            status.append("boundary")
        else:
            status.append("ok")
        if ends and answers[i]:
            said.append(f"{', '.join(ends)} at the end of the range")
        message.append("; ".join(said))
    with np.errstate(invalid="ignore", divide="ignore"):
        r2 = np.where(around > FLAT, 1.0 - squared / around, np.nan)
    return LeastSquaresFit(
        names=names,
        scoring=scoring,
        subjects=cells.subjects,
        estimate=estimate,
        loss=0.5 * squared,
        mae=per_subject(off),
        rmse=np.sqrt(squared),
        r2=r2,
        agreement=agreement,
        status=tuple(status),
        message=tuple(message),
        n_answers=answers,
        n_missing=cells.n_asked - answers,
    )


def _slopes(n_parameters: int, theta: Array) -> Array:
    """Slopes of the predictions in theta[K], [2, 11, K]."""
    places = PLACES[n_parameters]
    slope = np.empty((2, N_TASKS, 5))
    _predict(theta, places, np.empty((6, 6)), np.empty((2, N_TASKS)), slope)
    own = np.zeros((2, N_TASKS, n_parameters))
    for j, k in enumerate(places):
        own[..., k] += slope[..., j]
    return own


@lru_cache(maxsize=1024)
def _null(asked: bytes, n_parameters: int) -> Array:
    """Project on what the questions leave open, [K, K], at a point where nothing is special."""
    mask = np.frombuffer(asked, dtype=bool).reshape(2, N_TASKS)
    told = _slopes(n_parameters, _ordinary(n_parameters))[mask]
    if not len(told):
        return np.eye(n_parameters)
    _, sizes, rows = np.linalg.svd(told)
    rank = int((sizes > 1e-9 * sizes[0]).sum())
    rest: Array = rows[rank:].T @ rows[rank:]
    return rest


def _ordinary(n_parameters: int) -> Array:
    return np.array({3: (0.37, 0.21, 0.64), 4: (0.37, 0.21, 0.64, 0.83)}.get(
        n_parameters, (0.37, 0.56, 0.21, 0.64, 0.83)
    ))  # fmt: skip


def _predictable(cells: _Cells, n_parameters: int) -> NDArray[np.bool_]:
    """Say for each subject and task whether the other tasks tell its mean answer, [N, 11]."""
    found: dict[bytes, NDArray[np.bool_]] = {}
    asked = cells.count > 0.0
    told = np.empty((len(asked), N_TASKS), dtype=bool)
    slopes = _slopes(n_parameters, _ordinary(n_parameters))
    for i, own in enumerate(asked):
        key = own.tobytes()
        if key not in found:
            row = np.zeros(N_TASKS, dtype=bool)
            for task in np.flatnonzero(own.any(axis=0)):
                others = own.copy()
                others[:, task] = False
                open_ = slopes[own[:, task], task] @ _null(others.tobytes(), n_parameters)
                row[task] = not (np.abs(open_) > TOUCHED).any()
            found[key] = row
        told[i] = found[key]
    return told


def _told(name: str, values: Array) -> str:
    """Median and quartiles of what is known, in a line."""
    known = values[np.isfinite(values)]
    if not len(known):
        return f"{name:<8} none"
    low, middle, high = np.quantile(known, [0.25, 0.5, 0.75])
    return f"{name:<8}{middle:>8.3f}  (quartiles {low:.3f} to {high:.3f})"
