"""The published least-squares fits of a noisy-OR to causal judgements, and what they predict.

Least squares is the maximum likelihood of answers with Gaussian noise, whatever its size: the fits
are those of `maximum_likelihood` at a fixed sigma.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from knownminds.agents import Agent, NoisyOr, NoisyOrFive, NoisyOrThree
from knownminds.agents.parameters import Array
from knownminds.environments import Trials
from knownminds.environments.causes.causal_graph import direction_of, noisy_or_table, task_of
from knownminds.environments.later import pandas as pd
from knownminds.environments.record.result import Result
from knownminds.environments.words.names import unknown
from knownminds.inference.fits.model_data import ModelData
from knownminds.inference.fits.point import maximum_likelihood

from .causal_answers import QUESTION, ROMAN, SCALE, causal_answers

Scoring = Literal["by_cause", "pooled"]
Integers = NDArray[np.int64]

N_TASKS = len(ROMAN)
STARTS = 10  # with fewer, fits to few tasks have ended in worse optima
SIGMA = 0.05  # of the Gaussian noise; the optimum is the same at any value
INSIDE = 1e-12  # answers at the ends are read this far inside, where they count as any other
END = 1e-6  # estimates this close to 0 or 1 are at the end of the range
FLAT = 1e-18  # sum of squares that rounding leaves of equal answers from 0 to 1
TOUCHED = 1e-6  # a null direction has a component along a parameter above this

MODELS: dict[int, type[Agent]] = {3: NoisyOrThree, 4: NoisyOr, 5: NoisyOrFive}
NAMES = {size: model.parameters.names[:-1] for size, model in MODELS.items()}
# In which column of theta p1, p2, b, m1, m2 stand.
PLACES = {3: (0, 0, 1, 2, 2), 4: (0, 0, 1, 2, 3), 5: (0, 1, 2, 3, 4)}


@dataclass(frozen=True)
class _Answers:
    """The answers of N subjects one by one: whose they are, to which question, on a scale to 1."""

    subjects: tuple[str, ...]
    subject: Integers
    question: Integers  # [4, answers]: query, first, second, third
    task: Integers
    direction: Integers
    answer: Array
    n_missing: Integers

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
        n = len(names)
        return cls(
            tuple(map(str, names)), codes[given], question, task_of(*question), direction,
            answer[given], np.bincount(codes[~given], minlength=n),
        )  # fmt: skip

    @property
    def asked(self) -> NDArray[np.bool_]:
        """Which questions have answers, [N, 2, 11]: direction and task."""
        mask = np.zeros((len(self.subjects), 2, N_TASKS), dtype=bool)
        mask[self.subject, self.direction, self.task] = True
        return mask

    def by_task(self, values: Array) -> Array:
        """Return the mean of values of the answers over each task, [N, 11]; NaN without answers."""
        cell, n = self.subject * N_TASKS + self.task, len(self.subjects)
        count = np.bincount(cell, minlength=n * N_TASKS)
        with np.errstate(invalid="ignore"):
            mean = np.bincount(cell, values, minlength=n * N_TASKS) / count
        return mean.reshape(n, N_TASKS)

    def by_subject(self, values: Array) -> Array:
        """Return the mean of values of the answers of each subject, [N]; NaN without answers."""
        n = len(self.subjects)
        with np.errstate(invalid="ignore"):
            mean: Array = np.bincount(self.subject, values, minlength=n) / self.n_answers
        return mean

    @property
    def n_answers(self) -> Integers:
        """Answers of each subject, [N]."""
        return np.bincount(self.subject, minlength=len(self.subjects))

    def merged(self) -> _Answers:
        """Return as few answers as have the same optimum: means, as often as their counts ask for.

        Sums of squares hang on the counts and means of the answers to each question, and their
        optimum on the proportions of the counts.
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

    def fit(
        self, size: int, fits: int, starts: int, workers: int | None
    ) -> tuple[Array, Array, Array]:
        """Fit all tasks (fit 0), and, where there are 12 fits, all but task t (fit 1 + t).

        Returns theta [N, fits, K], the share of starts that agree [N, fits], and predictions
        [N, fits, 11, 2]; NaN where no answers are left.
        """
        few = self.merged()
        rows = [np.flatnonzero(few.task != left_out) for left_out in range(-1, fits - 1)]
        row = np.concatenate(rows)
        which = np.repeat(np.arange(fits), [len(own) for own in rows])
        units, unit = np.unique(few.subject[row] * fits + which, return_inverse=True)
        flat = dict(zip(QUESTION, few.question[:, row].astype(float), strict=True))
        flat["graph"] = np.zeros(len(row))
        flat["response"] = SCALE * np.clip(few.answer[row], INSIDE, 1.0 - INSIDE)
        n, model = len(self.subjects), MODELS[size]
        theta, agreement = np.full((n * fits, size), np.nan), np.full(n * fits, np.nan)
        if len(units):
            data = ModelData.of_columns(model, list(map(str, units)), unit, (), flat, 1)
            fixed = {"sigma": SIGMA}
            fit = maximum_likelihood(model, data, fixed=fixed, starts=starts, workers=workers)
            theta[units], agreement[units] = fit.estimate, fit.agreement
        predicted = noisy_or_table(*theta[:, list(PLACES[size])].T)
        return (
            theta.reshape(n, fits, size),
            agreement.reshape(n, fits),
            predicted.reshape(n, fits, N_TASKS, 2),
        )


def subjects_of(frame: pd.DataFrame, by: Sequence[str]) -> pd.Series:
    """Return the subject of each row: the values of the columns `by`, in words.

    Raises
    ------
    ValueError
        If there is no such column.
    """
    for name in by:
        if name not in frame:
            raise ValueError(unknown("column", name, list(map(str, frame.columns))))
    text = frame[list(by)].astype(str)
    return text[by[0]] if len(by) == 1 else text.agg(" ".join, axis=1)


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
        return self.of_chosen(list(self.r2.T))

    @property
    def error(self) -> Array:
        """RMSE of the chosen number of parameters, [N]."""
        return self.of_chosen(list(self.rmse.T))

    @property
    def n_parameters(self) -> Integers:
        """The chosen number of parameters, [N]; 0 where there is none."""
        sizes = np.array([len(fit.names) for fit in self.fits])
        return np.where(self.chosen < 0, 0, sizes[self.chosen])

    @property
    def strengths(self) -> Array:
        """Leak b and strengths m1, m2 of the chosen fit, [N, 3], with m1 = m2 = m if it has m."""
        columns = []
        for fit in self.fits:
            own = [name if name in fit.names else "m" for name in ("b", "m1", "m2")]
            columns.append(fit.estimate[:, [fit.names.index(name) for name in own]])
        return self.of_chosen(columns)

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

    def of_chosen(self, columns: Sequence[Array]) -> Array:
        """Take from what each fit has, [N, ...], the rows of the chosen fit; NaN without one."""
        taken: Array = np.stack(columns, axis=1)[np.arange(len(self.chosen)), self.chosen]
        taken[self.chosen < 0] = np.nan
        return taken


def least_squares(
    trials: Trials | pd.DataFrame,
    *,
    parameters: int = 4,
    scoring: Scoring = "by_cause",
    starts: int = STARTS,
    by: Sequence[str] = ("subject",),
    workers: int | None = None,
) -> LeastSquaresFit:
    """Fit a noisy-OR to each subject's answers about a collider by least squares.

    Minimises the sum over answers of (prediction - answer / 100)^2 / 2.

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
    answers = _Answers.read(trials, scoring, by)
    return _summary(answers, parameters, scoring, *answers.fit(parameters, 1, starts, workers))


def leave_one_task_out(
    trials: Trials | pd.DataFrame,
    *,
    parameters: Sequence[int] = (3, 4),
    scoring: Scoring = "by_cause",
    starts: int = STARTS,
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
    answers = _Answers.read(trials, scoring, by)
    asked, mean = answers.asked, answers.by_task(answers.answer)
    n, m = len(answers.subjects), len(parameters)
    fits, predicted = [], np.empty((n, m, N_TASKS))
    for f, size in enumerate(parameters):
        fitted = answers.fit(size, 1 + N_TASKS, starts, workers)
        fits.append(_summary(answers, size, scoring, *fitted))
        rows = answers.subject, 1 + answers.task, answers.task, answers.direction
        predicted[:, f] = answers.by_task(fitted[2][rows])
        predicted[:, f][~_predictable(asked, size)] = np.nan
    r2, rmse = np.full((n, m), np.nan), np.full((n, m), np.nan)
    reason = []
    for i, given in enumerate(np.asarray(asked.any(axis=1))):
        own = mean[i, given]
        around = ((own - own.mean()) ** 2).sum() if len(own) else 0.0
        if len(own) < 3:
            reason.append(f"answers to {len(own)} tasks, 3 are the least")
        elif not around > FLAT:
            reason.append("the same mean answer to all tasks")
        else:
            squares = ((predicted[i][:, given] - own) ** 2).sum(axis=1)
            r2[i], rmse[i] = 1.0 - squares / around, np.sqrt(squares / len(own))
            lost = np.isnan(squares).all()
            reason.append("some task cannot be predicted from the others" if lost else "")
    best = np.where(np.isnan(r2), -np.inf, r2)
    chosen = np.where(np.isfinite(best).any(axis=1), best.argmax(axis=1), -1)
    return ReasoningConsistency(
        tuple(fits), answers.subjects, r2, rmse, chosen, mean, predicted, tuple(reason)
    )


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
    answers: _Answers,
    size: int,
    scoring: Scoring,
    theta: Array,
    agreement: Array,
    predicted: Array,
) -> LeastSquaresFit:
    """Judge the fits to all tasks and take their residuals, answer by answer."""
    off = np.abs(predicted[answers.subject, 0, answers.task, answers.direction] - answers.answer)
    squared = answers.by_subject(off**2)
    grand = answers.by_subject(answers.answer)
    around = answers.by_subject((answers.answer - grand[answers.subject]) ** 2)
    estimate, status, message = theta[:, 0].copy(), [], []
    for i, asked in enumerate(answers.asked):
        estimate[i, np.diag(_null(asked.tobytes(), size)) > TOUCHED] = np.nan
        one, said = _status(asked, size, estimate[i])
        status.append(one)
        message.append(said)
    with np.errstate(invalid="ignore", divide="ignore"):
        r2 = np.where(around > FLAT, 1.0 - squared / around, np.nan)
    return LeastSquaresFit(
        names=NAMES[size],
        scoring=scoring,
        subjects=answers.subjects,
        estimate=estimate,
        loss=0.5 * squared,
        mae=answers.by_subject(off),
        rmse=np.sqrt(squared),
        r2=r2,
        agreement=agreement[:, 0],
        status=tuple(status),
        message=tuple(message),
        n_answers=answers.n_answers,
        n_missing=answers.n_missing,
    )


def _status(mask: NDArray[np.bool_], size: int, estimate: Array) -> tuple[str, str]:
    """Return the status of a fit to the questions that have answers, and what it says in words."""
    if not mask.any():
        return "failed", "no answers"
    given, names = np.asarray(mask.any(axis=0)), NAMES[size]
    with np.errstate(invalid="ignore"):
        at_end = (estimate < END) | (estimate > 1.0 - END)
    lists = {
        "no answers to {}": [task for task, some in zip(ROMAN, given, strict=True) if not some],
        "answers do not determine {}": [names[k] for k in np.flatnonzero(np.isnan(estimate))],
        "{} at the end of the range": [names[k] for k in np.flatnonzero(at_end)],
    }
    status = "unidentified" if np.isnan(estimate).any() else "boundary" if at_end.any() else "ok"
    return status, "; ".join(text.format(", ".join(some)) for text, some in lists.items() if some)


@lru_cache(maxsize=1024)
def _null(asked: bytes, size: int) -> Array:
    """Project on what the questions leave open, [K, K], at a point where nothing is special."""
    mask = np.frombuffer(asked, dtype=bool).reshape(2, N_TASKS)
    slopes = _slopes(size)[mask]
    if not len(slopes):
        return np.eye(size)
    _, sizes, rows = np.linalg.svd(slopes)
    rank = int((sizes > 1e-8 * sizes[0]).sum())
    rest: Array = rows[rank:].T @ rows[rank:]
    return rest


@lru_cache
def _slopes(size: int) -> Array:
    """Slopes of the predictions in theta at such a point, [2, 11, K], by central differences."""
    point = np.array({3: (0.37, 0.21, 0.64), 4: (0.37, 0.21, 0.64, 0.83)}.get(
        size, (0.37, 0.56, 0.21, 0.64, 0.83)
    ))  # fmt: skip
    step = 1e-5 * np.eye(size)
    above, below = (noisy_or_table(*(point + s)[:, list(PLACES[size])].T) for s in (step, -step))
    return (above - below).transpose(2, 1, 0) / 2e-5


def _predictable(asked: NDArray[np.bool_], size: int) -> NDArray[np.bool_]:
    """Say for each subject and task whether the other tasks tell its mean answer, [N, 11]."""

    @cache
    def of(own: bytes) -> list[bool]:
        mask = np.frombuffer(own, dtype=bool).reshape(2, N_TASKS)
        row = [False] * N_TASKS
        for task in np.flatnonzero(mask.any(axis=0)):
            others = mask.copy()
            others[:, task] = False
            open_ = _slopes(size)[mask[:, task], task] @ _null(others.tobytes(), size)
            row[task] = not (np.abs(open_) > TOUCHED).any()
        return row

    return np.array([of(own.tobytes()) for own in asked], dtype=bool).reshape(-1, N_TASKS)
