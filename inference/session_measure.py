"""Measures of sessions: that of a subject is a mean over them, and truths are simulated."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from knownminds.agents import Model, simulate
from knownminds.agents.parameters import Array
from knownminds.environments import Environment, Trials, make
from knownminds.environments.later import pandas as pd

from .measure import Measure, SubjectMeasure, Values, sessions_of, with_columns

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


@dataclass(eq=False, kw_only=True)
class PlacedMeasure(Measure):
    """A measure whose truth hangs on the design of an experiment.

    Parameters
    ----------
    environment
        The experiment in which the truth is meant; if None the first of `environments`, with
        `settings`.
    """

    environment: Environment | None = None

    @property
    def place(self) -> Environment:
        """The experiment in which the truth is meant."""
        return self.environment or made(self.environments[0], json.dumps(dict(self.settings)))

    def in_place(self, environment: Environment) -> PlacedMeasure:
        """Return the measure whose truth is that of the experiment, always the same object."""
        if environment.name not in self.environments:
            raise ValueError(
                f"{self.name} is read off answers in {', '.join(self.environments)}; got "
                f"{environment!r}. Choose one of these."
            )
        return _placed(self, type(environment), json.dumps(environment.settings, sort_keys=True))


@lru_cache(maxsize=64)  # one object each, by which curves of dials are kept
def _placed(measure: PlacedMeasure, kind: type[Environment], settings: str) -> PlacedMeasure:
    chosen, known = kind(**json.loads(settings)), measure.place
    same = (chosen.name, chosen.settings) == (known.name, known.settings)
    return measure if same else replace(measure, environment=chosen)


@lru_cache(maxsize=64)  # what a design holds is computed once for each
def made(name: str, settings: str) -> Environment:
    """Return the experiment of a name with settings as JSON has them, always the same object."""
    return make(name, **json.loads(settings))


@dataclass(eq=False, kw_only=True)
class SimulatedMeasure(PlacedMeasure, SubjectMeasure):
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
    """The mean score of a subject's trials; those without a score count for nothing.

    Parameters
    ----------
    score
        From trials, the score of each, NaN where it has none, [rows].
    columns
        What is read.
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


@dataclass(eq=False)
class SessionMeasure(SimulatedMeasure):
    """A number of each session; that of a subject is the mean over its sessions.

    Parameters
    ----------
    by_session
        From the rows of sessions, the number of each, NaN where it has none, [sessions].
    columns
        What is read.
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
