"""Measures of sessions: that of a subject is a mean over them, and truths are simulated."""

from __future__ import annotations

import copy
import json
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from knownminds.agents import Agent, simulate
from knownminds.agents.parameters import Array
from knownminds.environments import Environment, Trials
from knownminds.environments.later import pandas as pd

from .measure import SubjectMeasure, Values, sessions_of, with_columns

SEED = 1994  # of the sessions by which a truth is computed
SESSIONS = 2**11  # that are simulated for it, over all agents together
FEWEST = 2  # of each agent
LEAST = 1e-12  # sum of squares below which a slope has nothing to rest on

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class SessionRows:
    """The rows of several sessions, one for each trial.

    Parameters
    ----------
    session, trial
        Number of the session, from 0 on and ascending, and of the trial in it, [rows].
    columns
        What a measure names, NaN where nothing was given, each [rows].
    """

    session: Integers
    trial: Integers
    columns: Mapping[str, Array]

    def __getitem__(self, name: str) -> Array:
        """Return a column, [rows]."""
        return self.columns[name]

    @property
    def n(self) -> int:
        """How many sessions there are."""
        return int(self.session.max(initial=-1)) + 1

    def sums(self, values: Array | NDArray[np.bool_]) -> Array:
        """Return the sum of values [rows] in each session, [sessions]."""
        return np.bincount(self.session, values, self.n).astype(float)

    def mean(self, values: Array | NDArray[np.bool_], where: NDArray[np.bool_]) -> Array:
        """Return the mean of some of the values [rows] in each session, NaN of none, [sessions]."""
        return mean_by(self.session[where], np.asarray(values, dtype=float)[where], self.n)

    def slope(self, x: Array, y: Array) -> Array:
        """Return the slope of y on x through the origin in each session, [sessions].

        Rows without both are passed over; NaN where no x differs from 0.
        """
        known = np.isfinite(x + y)
        x, y = np.where(known, x, 0.0), np.where(known, y, 0.0)
        squares, slope = self.sums(x**2), np.full(self.n, np.nan)
        np.divide(self.sums(x * y), squares, out=slope, where=squares > LEAST)
        return slope

    def followed(self) -> NDArray[np.bool_]:
        """Say which rows, but for the last, are followed by the next trial, [rows - 1]."""
        return np.asarray((np.diff(self.session) == 0) & (np.diff(self.trial) == 1))


def mean_by(group: Integers, values: Array, n: int) -> Array:
    """Return the mean of values in each of n groups, NaN where there is none, [n]."""
    with np.errstate(invalid="ignore"):
        means: Array = np.bincount(group, values, n) / np.bincount(group, minlength=n)
    return means


class SimulatedMeasure(SubjectMeasure):
    """A measure whose truth is simulated: the value of an agent in many separate sessions.

    Sessions are from a fixed seed, the same for all agents, so that the truth grows smoothly with a
    dial. It hangs on the design: `in_place` returns the measure whose truth is that of an
    experiment.

    Attributes
    ----------
    environment
        The experiment in which the truth is meant.
    """

    environment: Environment

    def truth(self, model: type[Agent], theta: Array) -> Array:
        """Return the value in sessions of this design, [n]; the null of rational agents."""
        n = len(theta)
        if model.name == self.rational:
            return np.full(n, self.null)
        repeats = max(FEWEST, -(-SESSIONS // n))
        trials = simulate(model, np.repeat(theta, repeats, axis=0), self.environment, SEED)
        number = trials.frame["subject"].astype(np.int64)
        names = {"subject": number // repeats, "session": number % repeats}
        frame = trials.frame.assign(**{name: each.astype(str) for name, each in names.items()})
        return self.values(Trials(frame)).value

    def in_place(self, environment: Environment) -> SimulatedMeasure:
        """Return the measure whose truth is that of the experiment."""
        if environment.name not in self.environments:
            return self
        return in_experiment(self, environment)


def in_experiment(measure: SimulatedMeasure, environment: Environment) -> SimulatedMeasure:
    """Return the measure whose truth is that of an experiment, always the same object."""
    return _placed(measure, type(environment), json.dumps(environment.settings, sort_keys=True))


@lru_cache(maxsize=64)  # one object each, by which curves of dials are kept
def _placed(measure: SimulatedMeasure, kind: type[Environment], settings: str) -> SimulatedMeasure:
    chosen = kind(**json.loads(settings))
    if (chosen.name, chosen.settings) == (measure.environment.name, measure.environment.settings):
        return measure
    placed = copy.copy(measure)
    placed.environment = chosen
    return placed


class SessionMeasure(SimulatedMeasure):
    """A number of each session; that of a subject is the mean over its sessions.

    Attributes
    ----------
    kind
        The experiment; the truth is meant in its default design.
    columns
        What is read.
    reason
        Why a session has no value.
    """

    kind: ClassVar[type[Environment]]
    columns: tuple[str, ...]
    reason: str
    null = float("nan")
    rational = ""

    def __init_subclass__(cls) -> None:
        """Name the experiment."""
        if "kind" in vars(cls):
            cls.environments = (cls.kind.name,)

    def __init__(self) -> None:
        self.environment = self.kind()

    @abstractmethod
    def by_session(self, rows: SessionRows) -> Array:
        """Return the number of each session, NaN where it has none, [sessions]."""

    def values(self, trials: Trials) -> Values:
        """Return each subject's mean over sessions."""
        frame = with_columns(trials, self.name, self.columns)
        session = sessions_of(trials)
        columns = {name: trials.numbers(name) for name in self.columns}
        rows = SessionRows(session, frame["trial"].to_numpy(dtype=np.int64), columns)
        subject, names = pd.factorize(frame["subject"])
        whose = subject[np.unique(session, return_index=True)[1]]
        return Values.means(whose, self.by_session(rows), len(names), self.reason)
