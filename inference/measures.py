"""Measures: numbers read off sessions of several subjects, with an interval and a test."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from knownminds.agents import Agent
from knownminds.agents.parameters import Array
from knownminds.environments import Environment, Trials

from .model_data import ModelData
from .point import maximum_a_posteriori

ROUNDING = 1e-12  # values that differ by less, in units of the larger of them and 1, are the same


@dataclass(frozen=True)
class Estimate:
    """The value of a measure, and how far it can be trusted.

    Parameters
    ----------
    value, standard_error, low, high
        The estimate, its standard error and the ends of its 95% interval; NaN if there is none.
    n, unit
        How many of what it rests on.
    p_value
        Of the two-sided test of the measure's null value; NaN if there is none.
    excluded
        How many units were left out, by reason.
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

    def to_json(self) -> str:
        """Return all fields as JSON; what is missing is null."""
        content = asdict(self)
        missing = {k for k, v in content.items() if isinstance(v, float) and not np.isfinite(v)}
        return json.dumps({k: None if k in missing else v for k, v in content.items()})

    def __str__(self) -> str:
        """Value, interval, test and exclusions in one line."""
        left = ", ".join(f"{n} excluded ({why})" for why, n in self.excluded.items() if n)
        told = (
            f"{self.measure} {self.value:.3f} (95% {self.low:.3f} to {self.high:.3f}), "
            f"p = {self.p_value:.3g}, {self.n} {self.unit}s"
        )
        return f"{told}; {left}" if left else told


@dataclass(frozen=True)
class Values:
    """A measure of each of n subjects; NaN where it could not be read off.

    Parameters
    ----------
    value
        [n].
    reason
        Why a value is missing, in a word; empty where it is not.
    """

    value: Array
    reason: tuple[str, ...]


class Measure(ABC):
    """A number read off the sessions of several subjects, with its own test.

    Besides the estimate a measure says by which known minds it can be audited: the `rational`
    model, for which it has its null value, and the `violator`, whose value grows with a dial.

    Attributes
    ----------
    settings
        Settings without which it cannot be read off; all of its experiments have them.
    null
        Value under the hypothesis that its test rejects.
    rational
        Name of the model for which the measure has its null value, whatever the parameters.
    violator
        Name of the model that deviates from it.
    dial
        Direction on the unconstrained scale, by parameter, in which the violator deviates.
    reach, steps
        How far the dial is turned to either side, and at how many places the truth is computed.
    lowest
        Where the dial begins, if not at -reach: at 0 where a turn to either side is a deviation.
    least_subjects
        Over how many subjects it has a test; 1 where it tests the answers of a single one.
    """

    name: str
    summary: str
    source: str
    environments: tuple[str, ...]
    settings: Mapping[str, Any] = {}
    null: float = 0.0
    rational: str
    violator: str
    dial: Mapping[str, float]
    reach: float = 12.0
    steps: int = 481
    lowest: float | None = None
    least_subjects: int = 2

    def in_place(self, environment: Environment) -> Measure:
        """Return the measure as it is in an experiment; itself if it is the same in all.

        Where what minds with given parameters have of it hangs on the settings, as a share over
        the contexts that were asked does, `truth` of what this returns is that of the experiment.
        """
        return self

    @abstractmethod
    def truth(self, model: type[Agent], theta: Array) -> Array:
        """Return the measure of minds with parameters theta[n, P], [n]."""

    def group_truth(self, model: type[Agent], theta: Array) -> float:
        """Return what the measure is for all minds with parameters theta[n, P] together."""
        return float(self.truth(model, theta).mean())

    @abstractmethod
    def estimate(self, trials: Trials) -> Estimate:
        """Read the measure off the trials of several subjects."""


class SubjectMeasure(Measure):
    """A measure that every subject has; its test is a t test over subjects (Student 1908)."""

    @abstractmethod
    def values(self, trials: Trials) -> Values:
        """Read the measure off each subject's trials, in the order in which they first appear."""

    def estimate(self, trials: Trials) -> Estimate:
        """Return the mean over subjects with its t interval; subjects without a value are counted.

        Raises
        ------
        ValueError
            If there are fewer than two subjects.
        """
        if trials.frame["subject"].nunique() < 2:
            raise ValueError(
                f"The test of {self.name} is over subjects and needs at least 2; got 1. Give each "
                "session its own subject name if the sessions are the sample."
            )
        return self.over_subjects(self.values(trials))

    def over_subjects(self, values: Values) -> Estimate:
        """Return mean, interval and test of values that were read before."""
        tests = t_tests(values.value[None, :], self.null)
        reasons = [reason for reason in values.reason if reason]
        return Estimate(
            measure=self.name,
            value=float(tests.mean[0]),
            standard_error=float(tests.standard_error[0]),
            low=float(tests.low[0]),
            high=float(tests.high[0]),
            n=int(tests.n[0]),
            unit="subject",
            p_value=float(tests.p_value[0]),
            excluded={reason: reasons.count(reason) for reason in dict.fromkeys(reasons)},
        )


@dataclass(frozen=True)
class Tests:
    """Two-sided t tests of R samples; arrays [R], NaN where a sample has no spread."""

    __test__: ClassVar[bool] = False  # no test of ours, although pytest might think so

    mean: Array
    standard_error: Array
    low: Array
    high: Array
    p_value: Array
    n: NDArray[np.int64]


def t_tests(samples: Array, null: float = 0.0, mass: float = 0.95) -> Tests:
    """Test each row of samples[R, n]; NaN entries are left out of their row."""
    held = np.isfinite(samples)
    n = held.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(held, samples, 0.0).sum(axis=1) / n
        deviation = np.where(held, samples - mean[:, None], 0.0)
        error = np.sqrt((deviation**2).sum(axis=1) / (n - 1) / n)
    # Equal values may differ from their mean, and from each other, by rounding: .8 - .7 is not
    # .3 - .2. Values that were subtracted to give these are taken to be of the size of 1.
    low = np.where(held, samples, np.inf).min(axis=1, initial=np.inf)
    high = np.where(held, samples, -np.inf).max(axis=1, initial=-np.inf)
    size = np.maximum(1.0, np.maximum(np.abs(low), np.abs(high)))
    flat = ~(high - low > ROUNDING * size)
    return _tests(mean, np.where(flat, np.nan, error), n - 1.0, n, null, mass)


def welch_tests(samples: Array, others: Array, mass: float = 0.95) -> Tests:
    """Test the difference others - samples of each row (Welch 1947), [R, n] and [R, m]."""
    a, b = t_tests(samples), t_tests(others)
    with np.errstate(invalid="ignore", divide="ignore"):
        va, vb = a.standard_error**2, b.standard_error**2
        freedom = (va + vb) ** 2 / (va**2 / (a.n - 1) + vb**2 / (b.n - 1))
    return _tests(b.mean - a.mean, np.sqrt(va + vb), freedom, a.n + b.n, 0.0, mass)


def _tests(
    mean: Array, error: Array, freedom: Array, n: NDArray[np.int64], null: float, mass: float
) -> Tests:
    half = student.ppf(0.5 + mass / 2, freedom) * error
    p_value: Array = 2.0 * np.asarray(student.sf(np.abs(mean - null) / error, freedom))
    return Tests(mean, error, mean - half, mean + half, p_value, n)


class FittedMeasure(SubjectMeasure):
    """A linear contrast of a model's parameters, fitted to each subject by MAP.

    Attributes
    ----------
    model
        The model that is fitted.
    contrast
        Weights of its parameters on the natural scale.
    """

    model: type[Agent]
    contrast: Mapping[str, float]

    def truth(self, model: type[Agent], theta: Array) -> Array:
        """Return the contrast of minds with parameters theta[n, P]; the null for rational ones."""
        if model is not self.model and model.name == self.rational:
            return np.full(len(theta), self.null)
        weights = np.array([self.contrast.get(name, 0.0) for name in model.parameters.names])
        value: Array = theta @ weights
        return value

    def values(self, trials: Trials) -> Values:
        """Fit each subject and return the contrast of its estimates."""
        return self.values_of(ModelData.read(self.model, trials))

    def values_of(self, data: ModelData, workers: int | None = None) -> Values:
        """Do the same with data that are laid out for the model already."""
        fit = maximum_a_posteriori(self.model, data, workers=workers)
        weights = np.array([self.contrast.get(name, 0.0) for name in fit.names])
        failed = np.array([status == "failed" for status in fit.status])
        value = np.where(failed, np.nan, fit.estimate @ weights)
        return Values(value, tuple("failed fit" if f else "" for f in failed))


class ParameterMeasure(FittedMeasure):
    """A single parameter of a model, as a measure without a null value of its own."""

    def __init__(self, model: type[Agent], parameter: str):
        model.parameters.index(parameter)
        self.name = parameter
        self.summary = model.parameters[parameter].description
        self.source = model.source
        self.environments = ()
        self.model = model
        self.contrast = {parameter: 1.0}
        self.null = float("nan")
        self.rational, self.violator = "", model.name
        self.dial = {parameter: 1.0}
