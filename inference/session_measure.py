"""Measures of sessions: a subject's value is a mean over sessions, and truths are simulated."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from knownminds.agents import Model, simulate
from knownminds.agents.parameters import Array
from knownminds.environments import ENVIRONMENTS, Environment, Trials
from knownminds.environments.later import pandas as pd

from .measure import Measure, SubjectMeasure, Values, sessions_of, with_columns

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
    session, trial
        Number of the session, ascending from 0, and of the trial in it, [rows].
    columns
        The columns that a measure names, NaN where nothing was given, each [rows].
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
class DesignMeasure(Measure):
    """A measure whose truth depends on the design of an experiment.

    Parameters
    ----------
    environment
        The experiment for which the truth holds; if None, the first of `environments`, with
        `settings`.
    """

    environment: Environment | None = None

    @property
    def place(self) -> Environment:
        """The experiment for which the truth holds."""
        kind = ENVIRONMENTS[self.environments[0]]
        return self.environment or made(kind, json.dumps(dict(self.settings)))

    def in_place(self, environment: Environment) -> DesignMeasure:
        """Return the measure whose truth is that of the experiment, always the same object."""
        if environment.name not in self.environments:
            raise ValueError(
                f"{self.name} is read off answers in {', '.join(self.environments)}; got "
                f"{environment!r}. Choose one of these."
            )
        return _placed(self, type(environment), json.dumps(environment.settings, sort_keys=True))


@lru_cache(maxsize=64)  # one object each, since curves of dials are cached by object
def _placed(measure: DesignMeasure, kind: type[Environment], settings: str) -> DesignMeasure:
    chosen, known = kind(**json.loads(settings)), measure.place
    same = (chosen.name, chosen.settings) == (known.name, known.settings)
    return measure if same else replace(measure, environment=chosen)


@lru_cache(maxsize=64)  # values of a design are computed once for each object
def made(kind: type[Environment], settings: str) -> Environment:
    """Return the experiment with settings as JSON has them, always the same object."""
    return kind(**json.loads(settings))


@dataclass(eq=False, kw_only=True)
class SimulatedMeasure(DesignMeasure, SubjectMeasure):
    """A measure whose truth is simulated: the agent's value in many sessions made for this.

    All agents take sessions from the same fixed seed, so that the truth grows smoothly with a dial.
    """

    def truth(self, model: type[Model], theta: Array) -> Array:
        """Return the value in sessions of this design, [n]; the null of rational agents."""
        n = len(theta)
        if model.name == self.rational:
            return np.full(n, self.null)
        repeats = max(FEWEST, -(-SESSIONS // n))
        trials = simulate(model, np.repeat(theta, repeats, axis=0), self.place, SEED)
        number = trials.frame["subject"].astype(np.int64)
        names = {"subject": number // repeats, "session": number % repeats}
        frame = trials.frame.assign(**{name: each.astype(str) for name, each in names.items()})
        return self.values(Trials(frame)).value


@dataclass(eq=False)
class TrialMeasure(SimulatedMeasure):
    """The mean score of a subject's trials; trials without a score are ignored.

    Parameters
    ----------
    score
        A function of trials that returns the score of each, NaN without a score, [rows].
    columns
        The columns that it reads.
    reason
        Why a subject has no value.
    """

    score: Callable[[Trials], Array]
    _: KW_ONLY
    columns: tuple[str, ...] = ("action",)
    reason: str = "no answer"

    def values(self, trials: Trials) -> Values:
        """Return each subject's mean."""
        subject, names = pd.factorize(with_columns(trials, self.name, self.columns)["subject"])
        return Values.means(subject, self.score(trials), len(names), self.reason)

    def weights(self, trials: Trials) -> Array:
        """Let every trial with a score weigh the same."""
        return np.isfinite(self.score(trials)).astype(float)


@dataclass(eq=False)
class SessionMeasure(SimulatedMeasure):
    """A number of each session; a subject's value is the mean over its sessions.

    Parameters
    ----------
    by_session
        A function of the rows of sessions that returns the number of each, NaN without one,
        [sessions].
    columns
        The columns that it reads.
    reason
        Why a session has no value.
    """

    by_session: Callable[[SessionRows], Array]
    _: KW_ONLY
    columns: tuple[str, ...]
    reason: str

    def values(self, trials: Trials) -> Values:
        """Return each subject's mean over sessions."""
        frame = with_columns(trials, self.name, self.columns)
        session = sessions_of(trials)
        columns = {name: trials.numbers(name) for name in self.columns}
        rows = SessionRows(session, frame["trial"].to_numpy(dtype=np.int64), columns)
        subject, names = pd.factorize(frame["subject"])
        whose = subject[np.unique(session, return_index=True)[1]]
        return Values.means(whose, self.by_session(rows), len(names), self.reason)

    def weights(self, trials: Trials) -> Array:
        """Let every session weigh the same, however long it is."""
        session = sessions_of(trials)
        return np.asarray(1.0 / np.bincount(session)[session])
