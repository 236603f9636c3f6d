"""Measures that functions declare: how they are read off trials, and what is true of agents."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from knownminds.agents import Model, simulate
from knownminds.agents.parameters import Array
from knownminds.environments import Environment, Trials
from knownminds.environments.later import pandas as pd

from .measure import Measure, SubjectMeasure, Values, made, sessions_of, with_columns

SEED = 1994  # seed of the sessions from which a truth is computed
SESSIONS = 2**11  # sessions that are simulated for a truth, over all agents together
FEWEST = 2  # least number of sessions of each agent
LEAST = 1e-12  # a slope needs a larger sum of squares than this

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class SessionRows:
    """The rows of several sessions, one for each trial.

    Parameters
    ----------
    session, trial : Number of the session, ascending from 0, and of the trial in it, [rows].
    columns : The columns that a measure names, NaN where nothing was given, each [rows].
    """

    session: Integers
    trial: Integers
    columns: Mapping[str, Array]

    def __getitem__(self, name: str) -> Array:
        return self.columns[name]

    @property
    def n(self) -> int:
        """How many sessions there are."""
        return int(self.session.max(initial=-1)) + 1

    def sums(self, values: Array | NDArray[np.bool_]) -> Array:
        """Return the sum of values [rows] in each session, [sessions]."""
        return np.bincount(self.session, values, self.n).astype(float)

    def mean(self, values: Array | NDArray[np.bool_], where: NDArray[np.bool_]) -> Array:
        """Return the mean of some values [rows] in each session, NaN without any, [sessions]."""
        return mean_by(self.session[where], np.asarray(values, dtype=float)[where], self.n)

    def slope(self, x: Array, y: Array) -> Array:
        """Return the slope of y on x through the origin in each session, [sessions].

        Rows without both numbers are left out; NaN if no x differs from 0.
        """
        known = np.isfinite(x + y)
        x, y = np.where(known, x, 0.0), np.where(known, y, 0.0)
        squares, slope = self.sums(x**2), np.full(self.n, np.nan)
        np.divide(self.sums(x * y), squares, out=slope, where=squares > LEAST)
        return slope

    def followed(self) -> NDArray[np.bool_]:
        """Say which rows, except the last, are followed by the next trial, [rows - 1]."""
        return np.asarray((np.diff(self.session) == 0) & (np.diff(self.trial) == 1))


def mean_by(group: Integers, values: Array, n: int) -> Array:
    """Return the mean of values in each of n groups, NaN for an empty group, [n]."""
    with np.errstate(invalid="ignore"):
        means: Array = np.bincount(group, values, n) / np.bincount(group, minlength=n)
    return means


@dataclass(eq=False, kw_only=True)
class DeclaredMeasure(SubjectMeasure):
    """A measure of each subject that is declared by functions, the first argument of which it is.

    Parameters
    ----------
    read : A function of trials that returns the value of each subject, in order of first
        appearance.
    of_parameters : A function of a model and of parameters theta[n, P] that returns the true
        values, [n]. If None, a truth is simulated: it is the value in many sessions of `place`. All
        agents take these from the same fixed seed, so that it grows smoothly with a dial.
    counts : A function of trials that says which ones are read if they have an answer, [rows]; None
        if all are.
    weigh : A function of trials that says how much each weighs in a subject's value, [rows]; None
        if all that are read and answered weigh the same.
    lacks : A function of trials that says which ones lack the answer that is needed, [rows]; None
        if they are those without a readable answer.
    at : A function of an experiment that returns the measure as it is read there, or says why it
        cannot be; None if it is the same in all of `environments`.
    """

    read: Callable[[DeclaredMeasure, Trials], Values]
    of_parameters: Callable[[DeclaredMeasure, type[Model], Array], Array] | None = None
    counts: Callable[[DeclaredMeasure, Trials], NDArray[np.bool_]] | None = None
    weigh: Callable[[DeclaredMeasure, Trials], Array] | None = None
    lacks: Callable[[DeclaredMeasure, Trials], NDArray[np.bool_]] | None = None
    at: Callable[[DeclaredMeasure, Environment], DeclaredMeasure] | None = None

    def values(self, trials: Trials) -> Values:
        """Return the measure of each subject's trials, in order of first appearance."""
        return self.read(self, trials)

    def truth(self, model: type[Model], theta: Array) -> Array:
        """Return the measure of agents with parameters theta[n, P], [n]; see `of_parameters`."""
        if self.of_parameters is not None:
            return self.of_parameters(self, model, theta)
        n = len(theta)
        if model.name == self.rational:
            return np.full(n, self.null)
        repeats = max(FEWEST, -(-SESSIONS // n))
        trials = simulate(model, np.repeat(theta, repeats, axis=0), self.place, SEED)
        number = trials.frame["subject"].astype(np.int64)
        names = {"subject": number // repeats, "session": number % repeats}
        frame = trials.frame.assign(**{name: each.astype(str) for name, each in names.items()})
        return self.values(Trials(frame)).value

    def in_place(self, environment: Environment) -> Measure:
        """Return the measure whose truth is that of the experiment, always the same object."""
        if self.of_parameters is not None:
            return self
        return placed(self if self.at is None else self.at(self, environment), environment)

    def reads(self, trials: Trials) -> NDArray[np.bool_]:
        """Say which trials the measure reads if they have an answer, [rows]."""
        return super().reads(trials) if self.counts is None else self.counts(self, trials)

    def weights(self, trials: Trials) -> Array:
        """Say how much each trial weighs in a subject's value, [rows]."""
        return super().weights(trials) if self.weigh is None else self.weigh(self, trials)

    def missing(self, trials: Trials) -> NDArray[np.bool_]:
        """Say which trials lack the answer that the measure needs, [rows]."""
        return super().missing(trials) if self.lacks is None else self.lacks(self, trials)


def placed(measure: Measure, environment: Environment) -> Measure:
    """Return the measure whose truth is that of the experiment, always the same object.

    Raises
    ------
    ValueError : If the measure is not read off answers in this experiment.
    """
    if environment.name not in measure.environments:
        raise ValueError(
            f"{measure.name} is read off answers in {', '.join(measure.environments)}; got "
            f"{environment!r}. Choose one of these."
        )
    return _placed(measure, type(environment), json.dumps(environment.settings, sort_keys=True))


@lru_cache(maxsize=64)  # one object each, since curves of dials are cached by object
def _placed(measure: Measure, kind: type[Environment], settings: str) -> Measure:
    chosen, known = made(kind, settings), measure.place
    same = (chosen.name, chosen.settings) == (known.name, known.settings)
    return measure if same else replace(measure, environment=chosen)


def trial_measure(
    *, columns: tuple[str, ...] = ("action",), reason: str = "no answer", **attributes: Any
) -> Callable[[Callable[[Trials], Array]], DeclaredMeasure]:
    """Return a decorator: a measure that is the mean score of a subject's trials.

    The function below it takes trials and returns the score of each, NaN without a score, [rows].

    Parameters
    ----------
    columns : The columns that it reads.
    reason : Why a subject has no value.
    attributes : Those of `DeclaredMeasure`.
    """

    def measure_of(score: Callable[[Trials], Array]) -> DeclaredMeasure:
        def read(measure: DeclaredMeasure, trials: Trials) -> Values:
            subject, names = pd.factorize(with_columns(trials, measure.name, columns)["subject"])
            return Values.means(subject, score(trials), len(names), reason)

        def scored(measure: DeclaredMeasure, trials: Trials) -> Array:
            return np.isfinite(score(trials)).astype(float)

        return DeclaredMeasure(**{"read": read, "weigh": scored} | attributes)

    return measure_of


def session_measure(
    *, columns: tuple[str, ...], reason: str, **attributes: Any
) -> Callable[[Callable[[SessionRows], Array]], DeclaredMeasure]:
    """Return a decorator: a measure that is the mean of a number of each of a subject's sessions.

    The function below it takes the rows of sessions and returns the number of each, NaN without
    one, [sessions]. Every session weighs the same, however long it is.

    Parameters
    ----------
    columns : The columns that it reads.
    reason : Why a session has no value.
    attributes : Those of `DeclaredMeasure`.
    """

    def measure_of(by_session: Callable[[SessionRows], Array]) -> DeclaredMeasure:
        def read(measure: DeclaredMeasure, trials: Trials) -> Values:
            frame = with_columns(trials, measure.name, columns)
            session = sessions_of(trials)
            numbers = {name: trials.numbers(name) for name in columns}
            rows = SessionRows(session, frame["trial"].to_numpy(dtype=np.int64), numbers)
            subject, names = pd.factorize(frame["subject"])
            whose = subject[np.unique(session, return_index=True)[1]]
            return Values.means(whose, by_session(rows), len(names), reason)

        return DeclaredMeasure(read=read, weigh=_alike, **attributes)

    return measure_of


def _alike(measure: DeclaredMeasure, trials: Trials) -> Array:
    session = sessions_of(trials)
    return np.asarray(1.0 / np.bincount(session)[session])
