"""Measures: numbers read off sessions of several subjects, with an interval and a test."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
import scipy
from numpy.typing import NDArray

from knownminds.agents import Model
from knownminds.agents.parameters import Array
from knownminds.environments import ANSWERED, ENVIRONMENTS, Environment, Trials
from knownminds.environments.later import pandas as pd
from knownminds.environments.record.tabled_result import TabledResult
from knownminds.inference.fits.model_data import ModelData, Unknowns
from knownminds.inference.fits.point import maximum_a_posteriori

from .left_out_blocks import LeftOutBlocks

MOST_SAMPLED = 20_000  # trials of a group whose law is sampled for a measure
ROUNDING = 1e-12  # values that differ by less, in units of the larger of them and 1, count as equal
UNBOUNDED = (-np.inf, np.inf)
UNANSWERED = "trials without an answer"


@dataclass(frozen=True)
class Estimate(TabledResult):
    """The value of a measure, and how far it can be trusted.

    Parameters
    ----------
    value, standard_error, low, high : The estimate, its standard error and the ends of its 95%
        interval; NaN if there is none.
    n, unit : How many units the estimate uses, and the name of such a unit.
    p_value : p-value of the two-sided test of the measure's null value; NaN if there is none.
    excluded : How many units were left out, and how many trials without an answer, by reason.
    fits : How many fits behind the value ended in each status; empty if nothing is fitted.
    note : A remark on the interval; "" if there is none.
    freedom : Degrees of freedom of the standard error; infinite where it counts as known.
    influence : How far each session of a single subject moves the value, by the name of its design:
        the sum of squares is the squared standard error. Empty where the error is over something
        else.
    """

    measure: str
    value: float
    standard_error: float
    low: float
    high: float
    n: int
    unit: str
    p_value: float
    excluded: Mapping[str, int]
    fits: Mapping[str, int] = field(default_factory=dict)
    note: str = ""
    freedom: float = np.inf
    influence: Mapping[str, float] = field(default_factory=dict)

    def content(self) -> Any:
        """All fields but the influences, which are there for `difference`."""
        return {k: v for k, v in super().content().items() if k != "influence"}

    def __str__(self) -> str:
        """Return value, interval, test and exclusions in one line."""
        left = ", ".join(f"{n} excluded ({why})" for why, n in self.excluded.items() if n)
        line = f"{self.measure} {value_text(self.value, self.low, self.high, self.p_value)}"
        line += f", {self.n} {self.unit}{'' if self.n == 1 else 's'}"
        more = [left, f"fits: {counts_text(self.fits)}" if self.fits else "", self.note]
        return "; ".join([line, *(text for text in more if text)])


def reason_of(estimate: Estimate) -> str:
    """Return why an estimate has no value, in the words of its exclusions."""
    reasons = [why for why, n in estimate.excluded.items() if n]
    distinct = [why for why in reasons if why not in ("no answer", UNANSWERED)]
    return ", ".join(distinct or reasons) or "no value"


def value_text(value: float, low: float, high: float, p_value: float) -> str:
    """Return a value in words, with its interval and p-value if there are any."""
    text = f"{round(value, 3) + 0.0:.3f}"  # never -0.000
    if np.isfinite(low):
        text += f" (95% {low:.3f} to {high:.3f})"
    return f"{text}, p = {p_value:.3g}" if np.isfinite(p_value) else text


def counts_text(counts: Mapping[str, int]) -> str:
    """Return counts in words: "3 flat, 5 ok"."""
    return ", ".join(f"{n} {name}" for name, n in sorted(counts.items()))


@dataclass(frozen=True)
class Values:
    """A measure of each of n subjects; NaN where it could not be read off.

    Parameters
    ----------
    value : The values, [n].
    reason : Why a value is missing, in a word; empty where it is not missing.
    fits : Statuses of the fits that gave the values, [n]; empty if nothing is fitted.
    """

    value: Array
    reason: tuple[str, ...]
    fits: tuple[str, ...] = ()

    @classmethod
    def of(cls, value: Array, reason: str) -> Values:
        """Return values that all have the same reason if they are missing."""
        return cls(value, tuple("" if known else reason for known in np.isfinite(value)))

    @classmethod
    def means(
        cls, subject: NDArray[np.int64], score: Array, n_subjects: int, reason: str
    ) -> Values:
        """Return each subject's mean score [rows], without NaN; the reason if none is left."""
        held = np.isfinite(score)
        n = np.bincount(subject, held, n_subjects)
        with np.errstate(invalid="ignore"):
            value = np.bincount(subject, np.where(held, score, 0.0), n_subjects) / n
        return cls.of(value, reason)


@dataclass(frozen=True)
class Dial:
    """How a violator is made to deviate: turned by s, z of every agent grows by s x direction.

    Parameters
    ----------
    direction : The direction on the unconstrained scale, by parameter.
    reach, steps : How far it is turned to either side, and at how many positions the truth is
        computed.
    lowest : Where it begins, if not at -reach: at 0 if a turn to either side is a deviation.
    """

    direction: Mapping[str, float] = field(default_factory=dict)
    reach: float = 12.0
    steps: int = 481
    lowest: float | None = None

    @property
    def turns(self) -> Array:
        """The turns at which the truth is computed, ascending, [steps]."""
        return np.linspace(
            -self.reach if self.lowest is None else self.lowest, self.reach, self.steps
        )

    def along(self, names: Sequence[str]) -> Array:
        """Return the direction over parameters of these names, [P]."""
        return np.array([self.direction.get(name, 0.0) for name in names])


@dataclass(eq=False, kw_only=True)
class Measure(ABC):
    """A number read off the sessions of several subjects, with its test.

    A measure also names the known agents that audit it: the `rational` model, which has the null
    value, and the `violator`, whose value grows with a dial.

    Parameters
    ----------
    environments, settings : Experiments off which it is read, and settings that these need for it.
    violator : Name of the model that deviates from the null value.
    dial : How the violator is made to deviate.
    rational : Name of the model for which the measure has its null value, whatever the parameters;
        "" if there is no such model.
    null : Value under the hypothesis that its test rejects: by default 0 if there is a rational
        model, and NaN otherwise.
    bounds : Lowest and highest value, whatever the answers; they also hold for its intervals over
        subjects.
    least_subjects : How many subjects a test needs; 1 if the answers of a single subject can be
        tested.
    remark : A remark on the trials for the note of an estimate; "" if there is none.
    environment : The experiment for which the truth holds, if it depends on the design; if None,
        the first of `environments`, with `settings`.
    """

    name: str
    summary: str
    source: str
    environments: tuple[str, ...]
    violator: str
    dial: Dial = field(default_factory=Dial)
    rational: str = ""
    null: float = np.nan
    bounds: tuple[float, float] = UNBOUNDED
    settings: Mapping[str, Any] = field(default_factory=dict)
    least_subjects: int = 2
    remark: Callable[[Trials], str] | None = None
    environment: Environment | None = None

    def __post_init__(self) -> None:
        """Set the null value of a measure with a rational model to 0, unless it is given."""
        if self.rational and np.isnan(self.null):
            self.null = 0.0

    @property
    def place(self) -> Environment:
        """The experiment for which the truth holds."""
        kind = ENVIRONMENTS[self.environments[0]]
        return self.environment or made(kind, json.dumps(dict(self.settings)))

    def in_place(self, environment: Environment) -> Measure:
        """Return the measure for an experiment; itself if it is the same in all experiments.

        The truth of some measures depends on the settings, as a share over contexts depends on the
        contexts. `truth` of the returned measure is then that of the experiment.
        """
        return self

    @abstractmethod
    def truth(self, model: type[Model], theta: Array) -> Array:
        """Return the measure of agents with parameters theta[n, P], [n]."""

    def group_truth(self, model: type[Model], theta: Array) -> float:
        """Return the measure of all agents with parameters theta[n, P] together."""
        return float(self.truth(model, theta).mean())

    @abstractmethod
    def estimate(self, trials: Trials) -> Estimate:
        """Return the measure, read off the trials of one or several subjects."""

    def of_each(self, trials: Trials) -> list[Estimate]:
        """Return the measure of each subject alone, in order of first appearance."""
        parts = trials.frame.groupby("subject", sort=False)
        return [self.estimate(Trials(part.reset_index(drop=True))) for _, part in parts]

    def reads(self, trials: Trials) -> NDArray[np.bool_]:
        """Say which trials the measure reads if they have an answer, [rows]; usually all."""
        return np.ones(len(trials), dtype=bool)

    def missing(self, trials: Trials) -> NDArray[np.bool_]:
        """Say which trials lack the readable answer that the measure needs, [rows]."""
        return ~trials.frame["outcome"].isin(ANSWERED).to_numpy() & self.reads(trials)

    def unanswered(self, trials: Trials) -> dict[str, int]:
        """Count the trials that lack the readable answer that the measure needs."""
        n = int(self.missing(trials).sum())
        return {UNANSWERED: n} if n else {}

    def with_remark(self, estimate: Estimate, trials: Trials) -> Estimate:
        """Return the estimate with the measure's remark in its note."""
        more = self.remark(trials) if self.remark else ""
        return replace(estimate, note="; ".join(part for part in (estimate.note, more) if part))

    def with_counts(self, estimate: Estimate, trials: Trials) -> Estimate:
        """Return the estimate with its remark, and with a count of the trials without an answer."""
        excluded = {**estimate.excluded, **self.unanswered(trials)}
        return self.with_remark(replace(estimate, excluded=excluded), trials)

    def estimate_of(self, tests: Tests, values: Values, unit: str) -> Estimate:
        """Return the estimate for values whose mean was tested; it is the first of the tests."""
        mean, error, low, high, p_value, n = tests.first.values()
        note = ""
        if np.isfinite(mean) and not np.isfinite(low):
            note = without_interval(n, unit, error)
        elif np.isfinite(low) and unit != "subject":
            note = f"interval by the jackknife over {unit}s"
        excluded = counts_of([reason for reason in values.reason if reason])
        fits = counts_of(values.fits)
        numbers = (mean, error, low, high, n, unit, p_value)
        return Estimate(
            self.name, *numbers, excluded, fits, note, float(np.ravel(tests.freedom)[0])
        )


@lru_cache(maxsize=64)  # values of a design are computed once for each object
def made(kind: type[Environment], settings: str) -> Environment:
    """Return the experiment with settings as JSON has them, always the same object."""
    return kind(**json.loads(settings))


@dataclass(eq=False, kw_only=True)
class SubjectMeasure(Measure):
    """A measure that every subject has; its test is over subjects.

    For several subjects the interval is that of `t_tests`. A single subject has the value of all
    its trials, with the interval of the jackknife over its blocks (Tukey 1958): each block, or each
    of 50 groups of blocks, is left out in turn. Blocks are sessions unless the measure defines
    others. A single block has no interval.
    """

    unit: ClassVar[str] = "session"  # the name of a block

    @abstractmethod
    def values(self, trials: Trials) -> Values:
        """Return the measure of each subject's trials, in order of first appearance."""

    def estimate(self, trials: Trials) -> Estimate:
        """Return the mean over subjects, or the value of a single one, with its interval.

        Subjects without a value are counted, and so are trials without an answer.
        """
        if trials.frame["subject"].nunique() == 1:
            return self.of_each(trials)[0]
        return self.with_counts(self.over_subjects(self.values(trials)), trials)

    def over_subjects(self, values: Values) -> Estimate:
        """Return mean, interval and test of values that are given."""
        tests = t_tests(values.value[None, :], self.null, bounds=self.bounds_of(values.value))
        return self.estimate_of(tests, values, "subject")

    def blocks(self, trials: Trials) -> NDArray[np.int64]:
        """Return the number of each trial's block, from 0, [rows].

        Blocks are numbered in order of first appearance; -1 marks a trial outside any block.
        """
        return independent_sessions_of(trials)

    def weights(self, trials: Trials) -> Array:
        """Say how much each trial weighs in a subject's value, [rows]: 1 if it was answered."""
        answered = trials.frame["outcome"].isin(ANSWERED).to_numpy()
        return np.asarray(answered & self.reads(trials), dtype=float)

    def of_each(self, trials: Trials) -> list[Estimate]:
        """Return each subject's value with its interval over blocks."""
        values, tests, reasons, influence = self.over_blocks(trials)
        subject = pd.factorize(trials.frame["subject"])[0]
        estimates = []
        for k, why in enumerate(reasons):
            single = Values(*(column[k : k + 1] for column in vars(values).values()))
            if tests.n[k]:
                single = replace(single, reason=why)
            estimate = self.estimate_of(tests.of(k), single, self.unit)
            part = Trials(trials.frame[subject == k].reset_index(drop=True))
            estimate = replace(estimate, influence=influence[k])
            estimates.append(self.with_counts(estimate, part))
        return estimates

    def over_blocks(
        self, trials: Trials
    ) -> tuple[Values, Tests, list[tuple[str, ...]], list[dict[str, float]]]:
        """Return each subject's value, its test over blocks, why blocks lack one, and influences.

        Influences are by the designs of sessions; of other blocks there are none.
        """
        subject, names = pd.factorize(trials.frame["subject"])
        values, block = self.values(trials), self.blocks(trials)
        numbers, first = np.unique(block, return_index=True)
        owner = subject[first[numbers >= 0]]
        reason = np.array(self._alone(trials, block).reason, dtype=object)
        left_out = LeftOutBlocks.of(subject, block, owner, reason == "", np.isfinite(values.value))
        without = np.full(len(names) * left_out.most, np.nan)
        for rows, labels in left_out.copies():
            copies = trials.frame.iloc[rows].reset_index(drop=True)
            found = self.values(Trials(copies.assign(subject=labels.astype(str))))
            without[pd.unique(labels)] = found.value
        error, freedom, moved = left_out.errors(values.value, without, self.weights(trials))
        tests = Tests.together(
            interval_tests(
                values.value[k], error[k], freedom[k], left_out.n[k], self.null,
                bounds=self.bounds_of(values.value[k]),
            )
            for k in (slice(k, k + 1) for k in range(len(names)))
        )  # fmt: skip
        influence: list[dict[str, float]] = [{} for _ in names]
        if self.unit == SubjectMeasure.unit:
            designs, at = designs_of(trials).astype(str).to_numpy(), left_out.group
            for s, g in np.unique(np.stack([subject, at])[:, at >= 0], axis=1).T.tolist():
                name = "|".join(pd.unique(designs[(subject == s) & (at == g)]))
                influence[s][name] = float(moved[s, g])
        return values, tests, [tuple(reason[owner == k]) for k in range(len(names))], influence

    def bounds_of(self, value: Array) -> tuple[float, float]:
        """Return the bounds of the measure, without those that the data exceed."""
        low, high = self.bounds
        known = value[np.isfinite(value)]
        below, above = (known < low).any(), (known > high).any()
        return -np.inf if below else low, np.inf if above else high

    def _alone(self, trials: Trials, block: NDArray[np.int64]) -> Values:
        """Return the measure of each block, in order of first appearance."""
        return self.values(Trials(trials.frame.assign(subject=block.astype(str))[block >= 0]))


def with_columns(trials: Trials | pd.DataFrame, name: str, columns: Sequence[str]) -> pd.DataFrame:
    """Return the table of trials after checking that it has the columns of a measure.

    Raises
    ------
    ValueError : If a column is missing; the error names the first one.
    """
    frame = trials.frame if isinstance(trials, Trials) else trials
    for column in columns:
        if column not in frame:
            raise ValueError(
                f"{name} is read off the columns {', '.join(columns)}; the trials have no "
                f"{column!r}. Map one with --columns {column}=YOUR_NAME."
            )
    return frame


def separated_by(frame: pd.DataFrame, column: str | None) -> pd.Series[str] | str:
    """Return each row's participant: the value of a column, or "" if all rows are of one.

    Raises
    ------
    ValueError : If there is no such column.
    """
    if column is not None and column not in frame:
        raise ValueError(
            f"Participants are separated by a column of the trials; there is no {column!r} among "
            f"{', '.join(map(str, frame.columns))}. Name one with --by."
        )
    return "" if column is None else frame[column].astype(str)


def without_interval(n: int, unit: str, error: float) -> str:
    """Return why a value has no interval, in words."""
    if n < 2:
        why = f"a single {unit}" if n else f"no {unit} has a value of its own"
    else:
        why = "the value lies at its bound" if error > 0 else f"all {unit}s are alike"
    return f"no interval: {why}"


def counts_of(names: Sequence[str]) -> dict[str, int]:
    """Return how often each name occurs, in order of first appearance."""
    return {name: list(names).count(name) for name in dict.fromkeys(names)}


def sessions_of(trials: Trials) -> NDArray[np.int64]:
    """Return the number of each trial's session, by first appearance, [rows]."""
    result = trials.frame.groupby(["subject", "session"], sort=False).ngroup()
    return np.asarray(result, dtype=np.int64)


def independent_sessions_of(trials: Trials) -> NDArray[np.int64]:
    """Return the number of each trial's session, one for all wordings of a design, [rows].

    Sessions of one seed share their design, whatever the wording: they are no independent ones.
    """
    result = trials.frame.groupby(["subject", designs_of(trials)], sort=False).ngroup()
    return np.asarray(result, dtype=np.int64)


def designs_of(trials: Trials) -> pd.Series[Any]:
    """Return the name of the design of each trial's session, [rows].

    It is in the column `design_number` where there are several wordings, and else the session's.
    """
    return trials.frame["design_number" if "design_number" in trials.frame else "session"]


@dataclass(frozen=True)
class Tests:
    """Two-sided t tests of R samples; arrays [R], NaN where a sample has no spread."""

    __test__: ClassVar[bool] = False  # this is no test case, although pytest might think so

    mean: Array
    standard_error: Array
    low: Array
    high: Array
    p_value: Array
    freedom: Array  # of the standard errors
    of_groups: NDArray[np.int64]  # how many values there are of each group, [groups, R]

    @property
    def n(self) -> NDArray[np.int64]:
        """How many values there are, [R]."""
        total: NDArray[np.int64] = self.of_groups.sum(axis=0)
        return total

    @property
    def first(self) -> dict[str, Any]:
        """Mean, error, interval, p-value and n of the first sample, by name."""
        names = ("mean", "standard_error", "low", "high", "p_value", "n")
        return {name: getattr(self, name)[0].item() for name in names}

    @classmethod
    def together(cls, several: Iterable[Tests]) -> Tests:
        """Return the tests of several samples as one."""
        columns = zip(*(vars(one).values() for one in several), strict=True)
        return cls(*(np.concatenate(column, axis=-1) for column in columns))

    def of(self, k: int) -> Tests:
        """Return the test of sample k alone."""
        return Tests(*(column[..., k : k + 1] for column in vars(self).values()))


def t_tests(
    samples: Array, null: float = 0.0, mass: float = 0.95, bounds: tuple[float, float] = UNBOUNDED
) -> Tests:
    """Test the mean of each row of samples[R, n]; NaN entries are left out of their row.

    Without bounds it is Student's t test (1908), and between bounds the score test of
    `interval_tests`.
    """
    held = np.isfinite(samples)
    n = held.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(held, samples, 0.0).sum(axis=1) / n
        deviation = np.where(held, samples - mean[:, None], 0.0)
        error = np.sqrt((deviation**2).sum(axis=1) / (n - 1) / n)
    # Equal values may differ from their mean, and from each other, by rounding: .8 - .7 is not .3 -
    # .2. If values are differences, the numbers that were subtracted are taken to be of size 1.
    low = np.where(held, samples, np.inf).min(axis=1, initial=np.inf)
    high = np.where(held, samples, -np.inf).max(axis=1, initial=-np.inf)
    size = np.maximum(1.0, np.maximum(np.abs(low), np.abs(high)))
    flat = ~(high - low > ROUNDING * size)
    error = np.where(flat, np.nan, error)
    return interval_tests(mean, error, n - 1.0, n, null, mass, bounds)


def welch_tests(samples: Array, others: Array, mass: float = 0.95) -> Tests:
    """Test the difference others - samples of each row (Welch 1947), [R, n] and [R, m]."""
    a, b = t_tests(samples), t_tests(others)
    with np.errstate(invalid="ignore", divide="ignore"):
        va, vb = a.standard_error**2, b.standard_error**2
        freedom = (va + vb) ** 2 / (va**2 / (a.n - 1) + vb**2 / (b.n - 1))
    error = np.sqrt(va + vb)
    return interval_tests(b.mean - a.mean, error, freedom, np.stack([a.n, b.n]), 0.0, mass)


def interval_tests(
    mean: Array,
    error: Array,
    freedom: Array,
    n: NDArray[np.int64],
    null: float = 0.0,
    mass: float | Array = 0.95,
    bounds: tuple[float, float] = UNBOUNDED,
) -> Tests:
    """Return intervals and tests of estimates with known standard errors, [R].

    n [R] is how many values each rests on; of a difference, those of either group, [2, R].

    Between bounds a and b, the error of the mean is assumed to be proportional to the root of (mu -
    a) (b - mu), and equal to the estimated error where mu is the mean. The interval holds the mu
    whose distance from the mean is less than Student's quantile times their error. It is the score
    interval of Wilson (1927) with an estimated dispersion. It never leaves the bounds, and covers
    at least as often as mean +- t errors: 94.5% against 91.2% for 2 values from Beta(20, 1), 93.1%
    against 89.0% for 5 (`tests/core/test_bounds.py`). With one bound, the error goes by the root of
    the distance from it. The test rejects values outside the interval.
    """
    low, high = bounds
    # Copies of one session or one subject differ by rounding: no test is made of such an error.
    error = np.where(error > ROUNDING * np.maximum(1.0, np.abs(mean)), error, np.nan)
    quantile = np.asarray(scipy.stats.t.ppf(0.5 + mass / 2, freedom))
    with np.errstate(invalid="ignore", divide="ignore"):  # for errors that are 0
        if not (np.isfinite(low) or np.isfinite(high)):
            statistic = np.abs(mean - null) / error
            half = quantile * error
            ends = mean - half, mean + half
        else:
            shape = _shape(mean, bounds)
            scale = error**2 / shape
            ends = _score_ends(mean, quantile**2 * scale, bounds)
            inside = low < null < high
            statistic = np.abs(mean - null) / np.sqrt(
                scale * _shape(np.array(null), bounds) if inside else error**2
            )
    p_value: Array = 2.0 * np.asarray(scipy.stats.t.sf(statistic, freedom))
    return Tests(mean, error, ends[0], ends[1], p_value, freedom, np.atleast_2d(n))


def _shape(mean: Array, bounds: tuple[float, float]) -> Array:
    """Return the variance of means between bounds, up to a factor."""
    low, high = bounds
    above = np.maximum(mean - low, 0.0) if np.isfinite(low) else np.ones_like(mean)
    below = np.maximum(high - mean, 0.0) if np.isfinite(high) else np.ones_like(mean)
    return np.asarray(above * below)


def _score_ends(mean: Array, c: Array, bounds: tuple[float, float]) -> tuple[Array, Array]:
    """Return the two mu with (mean - mu)**2 = c shape(mu)."""
    low, high = bounds
    if not np.isfinite(low):
        ends = _score_ends(-mean, c, (-high, np.inf))
        return -ends[1], -ends[0]
    x = mean - low
    if not np.isfinite(high):
        half = np.sqrt(c * x + c**2 / 4)
        return low + x + c / 2 - half, low + x + c / 2 + half
    span = high - low
    half = np.sqrt(c * x * (span - x) + (c * span / 2) ** 2)
    middle = x + c * span / 2
    return low + (middle - half) / (1 + c), low + (middle + half) / (1 + c)


@dataclass(eq=False, kw_only=True)
class FittedMeasure(SubjectMeasure):
    """A linear contrast of a model's parameters, fitted to each subject by MAP.

    Of several subjects it is the mean of the law that they come from, see `marginal`: the prior
    pulls each estimate by itself, so that their mean would be biased however many there are.

    Parameters
    ----------
    model : The model that is fitted.
    contrast : Weights of its parameters on the natural scale.
    """

    model: type[Model]
    contrast: Mapping[str, float]

    def truth(self, model: type[Model], theta: Array) -> Array:
        """Return the contrast of agents with parameters theta[n, P].

        Rational agents have the null value; agents without the contrast's parameters have NaN.
        """
        names = model.parameters.names
        if model is not self.model and model.name == self.rational:
            return np.full(len(theta), self.null)
        if not set(self.contrast) <= set(names):
            return np.full(len(theta), np.nan)
        return np.asarray(theta @ self._weights(names))

    def _weights(self, names: Sequence[str]) -> Array:
        return np.array([self.contrast.get(name, 0.0) for name in names])

    def values(self, trials: Trials) -> Values:
        """Fit each subject and return the contrast of its estimates."""
        return self.values_of(ModelData.read(self.model, trials))

    def values_of(self, data: ModelData, workers: int | None = None) -> Values:
        """Return the contrast of each subject, given data that the model can already read."""
        fit = maximum_a_posteriori(self.model, data, workers=workers)
        failed = np.array(fit.status) == "failed"
        value = np.where(failed, np.nan, fit.estimate @ self._weights(fit.names))
        reason = tuple("failed fit" if f else "" for f in failed)
        return Values(value, reason, tuple(map(str, fit.status)))

    def estimate(self, trials: Trials) -> Estimate:
        """Return the mean of the group's law, or the value of a single subject.

        Subjects whose fit failed are left out and counted. Where points cannot integrate the
        subjects out, the group is sampled, and the note says so; a group of more than 20,000 trials
        is not, since that takes minutes, and has no value.
        """
        if trials.frame["subject"].nunique() == 1:
            return super().estimate(trials)
        data = ModelData.read(self.model, trials)
        values = self.values_of(data)
        usable = np.flatnonzero(np.isfinite(values.value))
        if len(usable) < 2:
            return self.with_counts(self.over_subjects(values), trials)
        tests, note = self._of_group(data.repeat(usable))
        estimate = replace(self.estimate_of(tests, values, "subject"), note=note)
        return self.with_counts(estimate, trials)

    def _of_group(self, data: ModelData) -> tuple[Tests, str]:
        from .groups.formulas import GroupDesign
        from .groups.marginal import marginal

        unknowns, sizes = Unknowns.of(self.model), np.array([len(data)])
        group = marginal(data, unknowns, GroupDesign.plain(unknowns.parameters, data.subjects))
        if not group.message:
            mean, error = group.mean_of(self.contrast)
            freedom = np.array([float(group.freedom)])
            tests = interval_tests(
                np.array([mean]), np.array([error]), freedom, sizes, self.null, bounds=self.bounds
            )
            return tests, ""
        if data.n_trials.sum() > MOST_SAMPLED:
            return t_tests(
                np.full((1, 1), np.nan)
            ), f"no value: {group.message}; sample the group (fit --method hierarchical)"
        from .groups.contrasts import drawn_means
        from .groups.group_model import GroupModel  # PyMC: only where it is needed

        fit = GroupModel.build(data).sample(data)
        draws = drawn_means(fit, self.contrast)
        low, high = np.quantile(draws, [0.025, 0.975])
        below = (np.sum(draws < self.null) + 0.5) / (len(draws) + 1)
        p_value = 2 * min(below, 1 - below) if np.isfinite(self.null) else np.nan
        numbers = np.array([draws.mean(), draws.std(ddof=1), low, high, p_value, np.inf])
        note = "; ".join([f"the group was sampled, as {group.message}", *fit.reasons])
        mean, error, low, high, p_value, freedom = numbers[:, None]
        return Tests(mean, error, low, high, p_value, freedom, sizes[None]), note

    def _alone(self, trials: Trials, block: NDArray[np.int64]) -> Values:
        """Say which sessions have answers to fit; they are not fitted one by one."""
        n = np.bincount(block, trials.frame["outcome"].isin(ANSWERED))
        return Values.of(np.where(n > 0, n, np.nan), "no answer in the session")


def parameter_measure(model: type[Model], parameter: str) -> FittedMeasure:
    """Return the measure of a single parameter of a model; it has no null value."""
    model.parameters.index(parameter)
    return FittedMeasure(
        name=parameter,
        summary=model.parameters[parameter].description,
        source=model.source,
        environments=(),
        violator=model.name,
        dial=Dial({parameter: 1.0}),
        model=model,
        contrast={parameter: 1.0},
    )
