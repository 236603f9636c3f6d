"""Errors of magnitude estimates, in units of the error of a constant answer."""

from __future__ import annotations

import numpy as np

from knownminds.agents.parameters import Array
from knownminds.environments import Trials
from knownminds.environments.later import pandas as pd
from knownminds.inference.measure import Dial, Values, with_columns
from knownminds.inference.session_measure import DeclaredMeasure

from .magnitude_answers import TASKS, TaskAnswers, middles

STEPS = 11  # values of a window in the shipped designs
MOST_ALONE = 0.1  # largest share of answers that may be the only ones of their step


def normalised_error(answers: TaskAnswers) -> Array:
    """Return the NRMSE of the data and of each bootstrap, [B]; NaN where nothing was answered.

    It is the root mean square error over that of a constant answer at the middle of each window's
    range. Squared errors of all windows are pooled before the root is taken. Both errors are over
    the trials with an answer.
    """
    return relative_error(answers, answers.response)


def relative_error(answers: TaskAnswers, estimate: Array) -> Array:
    """Return the NRMSE of estimates[n] or [B, n] of the answers' stimuli, [B]."""
    held = np.isfinite(np.atleast_2d(estimate)).all(axis=0)
    weight = answers.weight * held
    squared = np.where(held, estimate - answers.value, 0.0) ** 2
    constant = (answers.middle - answers.value) ** 2
    with np.errstate(invalid="ignore", divide="ignore"):
        error: Array = np.sqrt((weight * squared).sum(axis=1) / (weight * constant).sum(axis=1))
    return np.where(np.isfinite(error), error, np.nan)


def error_by_items(answers: TaskAnswers) -> tuple[float, float]:
    """Return the standard error of the NRMSE of the data, and its degrees of freedom.

    Answers of a window are the unit, with their stimuli; where the design fixes these, the error is
    up to a fifth too wide. Each moves the NRMSE R by (e^2 - R^2 c^2) / (2 R sum c^2), of
    its error e and that of a constant answer c (the infinitesimal jackknife; Efron and Tibshirani
    1993, 21). NaN where a window has one answer, or there is no error.
    """
    held = np.isfinite(answers.response)
    squared = ((answers.response - answers.value) ** 2)[held]
    constant = ((answers.middle - answers.value) ** 2)[held]
    if not squared.sum() > 0 or not constant.sum() > 0:
        return float("nan"), float("nan")
    ratio = squared.sum() / constant.sum()
    moved = (squared - ratio * constant) / (2.0 * np.sqrt(ratio) * constant.sum())
    block = np.unique(answers.block[held], return_inverse=True)[1]
    n = np.bincount(block)
    if (n < 2).any():
        return float("nan"), float("nan")
    away = moved - (np.bincount(block, moved) / n)[block]
    variance = np.bincount(block, away**2) * n / (n - 1)
    return float(np.sqrt(variance.sum())), float(n.sum() - len(n))


def bias_and_variance(answers: TaskAnswers) -> tuple[float, float]:
    """Return the parts of NRMSE squared that are bias and variance; they sum to it.

    Stimuli are grouped with others of similar size, in as many steps per window as the shipped
    designs have. In the shipped designs the stimuli of a step are equal; continuous stimuli are
    nearly so. Bias is the mean error of a step, variance the spread of errors around it. NaN if
    steps hold too few answers to separate the two.
    """
    held = np.isfinite(answers.response)
    window, value = answers.window[held], answers.value[held]
    error = answers.response[held] - value
    step = np.zeros(len(value), dtype=np.int64)
    for k in np.unique(window):
        mine = window == k
        low, span = value[mine].min(), np.ptp(value[mine]) or 1.0
        step[mine] = np.round((value[mine] - low) / span * (STEPS - 1))
    group = window * STEPS + step
    count = np.bincount(group)
    if not len(value) or (count == 1).sum() > MOST_ALONE * len(value):
        return float("nan"), float("nan")
    mean = (np.bincount(group, error) / np.maximum(count, 1))[group]
    constant = ((answers.middle[held] - value) ** 2).sum()
    return float((mean**2).sum() / constant), float(((error - mean) ** 2).sum() / constant)


def _of_subjects(measure: DeclaredMeasure, trials: Trials) -> Values:
    """Return each subject's NRMSE: 0 is perfect, 1 is as good as a constant answer."""
    frame = with_columns(trials, measure.name, ("window", "value", "response"))
    subject, names = pd.factorize(frame["subject"])
    value, response = (trials.numbers(name) for name in ("value", "response"))
    held = np.isfinite(response)
    errors, constant = (response - value) ** 2, (middles(frame) - value) ** 2
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = np.divide(
            *(np.bincount(subject[held], x[held], len(names)) for x in (errors, constant))
        )
    return Values.of(np.sqrt(np.where(np.isfinite(ratio), ratio, np.nan)), "no answer")


# Its truth is that of `marker_location` as shipped; answers beyond the scale are cut off.
NORMALISED_ERROR = DeclaredMeasure(
    read=_of_subjects,
    name="normalised_error",
    summary="root mean square error in units of that of a constant answer at mid-range",
    source="Petzschner, Glasauer and Stephan 2015; BayesBench",
    environments=TASKS,
    bounds=(0.0, np.inf),
    violator="static_bayes_observer",
    dial=Dial({"sigma": 1.0}, reach=2.0, steps=17),
)
