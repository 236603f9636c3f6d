"""How a conclusion about a measure is drawn: declared once, and carried out by every verb."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from knownminds.agents.parameters import Array
from knownminds.environments import Trials

from .measure import (
    UNBOUNDED,
    Estimate,
    FittedMeasure,
    Measure,
    SubjectMeasure,
    Tests,
    interval_tests,
    t_tests,
    welch_tests,
)
from .questions.stopping import StoppingRule

LEVEL = 0.05  # of every test; intervals have mass .95

Comparison = Literal["one", "between", "paired"]
Estimator = Literal["own", "together", "each", "marginal", "hierarchical"]
_SAID: dict[str, str] = {
    "own": "estimated and tested by its own regression over all answers",
    "together": "one value of all sessions of a participant, with a jackknife over {unit}s",
    "each": "the mean over {unit}s, with a t test over them",
    "marginal": "the mean of the law of the participants, by its marginal likelihood",
    "hierarchical": "the mean of the law of the participants, by its posterior",
}
_AGAINST = {
    "one": "",
    "between": "; two groups are compared by their difference (Welch)",
    "paired": "; two conditions of a participant are compared by their difference",
}


@dataclass(frozen=True)
class AgentValues:
    """A measure of each of R participants, read off all sessions of each.

    Parameters
    ----------
    value, error, freedom : The value, its standard error by the jackknife over sessions, and the
        degrees of freedom of that, [R].
    n : How many sessions have a value, [R].
    """

    value: Array
    error: Array
    freedom: Array
    n: NDArray[np.int64]

    @classmethod
    def of(cls, measure: SubjectMeasure, trials: Trials) -> AgentValues:
        """Read the measure off the trials of each subject."""
        _, tests, *_ = measure.over_blocks(trials)
        return cls(tests.mean, tests.standard_error, tests.freedom, tests.n)

    def minus(self, other: AgentValues, mass: float) -> Tests:
        """Test the value of each participant minus that of another one (Satterthwaite 1946)."""
        mine, theirs = self.error**2, other.error**2
        with np.errstate(invalid="ignore", divide="ignore"):
            freedom = (mine + theirs) ** 2 / (mine**2 / self.freedom + theirs**2 / other.freedom)
        error, n = np.sqrt(mine + theirs), np.stack([other.n, self.n])
        difference = self.value - other.value
        return interval_tests(difference, error, freedom, n, 0.0, mass, UNBOUNDED)


@dataclass(frozen=True)
class Analysis:
    """What is read off trials and how it is tested.

    The same analysis is of simulated data sets (`power`, `budget`, `audit`) and of recorded ones
    (`score`, the pages, `run --stop`), so that a plan is about what will be done.

    Parameters
    ----------
    measure : What is read off.
    estimator : "together": one value of all sessions of a participant, with an error over sessions.
        "each": a value of each participant, and their mean. "marginal" and "hierarchical": the mean
        of the law of the participants, by its marginal likelihood or its posterior. "own": the
        measure estimates and tests by itself.
    unit : What the error is over: "session", "subject", or what the measure calls its blocks.
    comparison : With the null value ("one"), of two groups ("between") or of two conditions of the
        same participants ("paired").
    level : Of the test; the interval has the mass 1 - level.
    stop : After how many units is looked, and what ends the questions; None for a fixed number.
    """

    measure: Measure
    estimator: Estimator
    unit: str
    comparison: Comparison = "one"
    level: float = LEVEL
    stop: StoppingRule | None = None

    @classmethod
    def of(
        cls, measure: Measure, subjects: int, comparison: Comparison = "one",
        estimator: Literal["marginal", "hierarchical"] = "marginal",
        stop: StoppingRule | None = None,
    ) -> Analysis:  # fmt: skip
        """Return the analysis of so many participants; one of them is a unit with its sessions.

        Parameters
        ----------
        estimator : Of a contrast of parameters and several participants.
        """
        if not isinstance(measure, SubjectMeasure):
            return cls(measure, "own", "answer", comparison, stop=stop)
        if isinstance(measure, FittedMeasure) and (estimator == "hierarchical" or subjects > 1):
            chosen: Estimator = estimator if stop is None else "each"
            return cls(measure, chosen, "subject", comparison, stop=stop)
        if subjects == 1:
            return cls(measure, "together", measure.unit, comparison, stop=stop)
        return cls(measure, "each", "subject", comparison, stop=stop)

    @property
    def null(self) -> float:
        """The value from which effects are counted: of a difference it is zero."""
        return self.measure.null if self.comparison == "one" else 0.0

    def estimate(self, trials: Trials) -> Estimate:
        """Return the estimate of one condition, with its interval and test."""
        return self.measure.estimate(trials)

    def tests(
        self, samples: Sequence[AgentValues] | Sequence[Array], mass: float | None = None
    ) -> Tests:
        """Test R data sets of one condition, or of two.

        Parameters
        ----------
        samples : For each condition the values of R participants ("together"), or [R, n] values of
            n participants ("each").
        mass : Of the intervals; 1 - level if None.
        """
        mass, measure = 1 - self.level if mass is None else mass, self.measure
        first, last = samples[0], samples[-1]
        if isinstance(first, AgentValues):
            assert isinstance(last, AgentValues)
            if self.comparison != "one":
                return last.minus(first, mass)
            about = first.value, first.error, first.freedom, first.n
            return interval_tests(*about, measure.null, mass, measure.bounds)
        assert not isinstance(last, AgentValues)
        if self.comparison == "between":
            return welch_tests(first, last, mass)
        if self.comparison == "paired":
            return t_tests(last - first, mass=mass)
        return t_tests(first, measure.null, mass, measure.bounds)

    def at_look(self, tests: Tests, look: int) -> Tests:
        """Return tests with intervals that are right after a stop, where the rule promises that."""
        if self.stop is None or self.stop.nominal is None:
            return tests
        bounds = self.measure.bounds if self.comparison == "one" else UNBOUNDED
        about = tests.mean, tests.standard_error, tests.freedom, tests.of_groups
        level = np.minimum(self.stop.level(tests, look), self.level)
        return interval_tests(*about, self.null, 1 - level, bounds)

    @property
    def looks(self) -> tuple[int, ...]:
        """The numbers of units after which is looked; none for a fixed number."""
        return () if self.stop is None else self.stop.looks

    def as_dict(self) -> dict[str, Any]:
        """Return everything that defines the stopping rule, JSON-able."""
        return {} if self.stop is None else self.stop.as_dict()

    def __call__(self, trials: Trials, look: int) -> dict[str, Any]:
        """Look at the sessions of one participant so far.

        Returns
        -------
        dict : A dictionary fit for JSON, with None for numbers that do not exist: units; estimate,
            low, high and p_value of the measure, with its interval; statistic (the p-value, the
            Bayes factor or the width); bound, its limit (for a Bayes factor the upper one); stop,
            whether to stop here; found, "effect", "no effect" or "" if there is no conclusion.

        Raises
        ------
        ValueError : If there is no rule, or the measure has no value of each session.
        """
        rule = self.stop
        if rule is None or not isinstance(self.measure, SubjectMeasure):
            raise ValueError(
                "A look needs a stopping rule and a measure that sessions have; got "
                f"{self.measure.name} {'without a rule' if rule is None else ''}. Give both."
            )
        tests = self.at_look(self.tests([AgentValues.of(self.measure, trials)]), look)
        statistic, stop, effect, none = rule.judge(tests, look, self.null)
        bounds = {"bayes_factor": rule.evidence, "interval_width": rule.width}
        numbers = {
            "estimate": tests.mean[0], "low": tests.low[0], "high": tests.high[0],
            "p_value": tests.p_value[0], "statistic": statistic[0],
            "bound": bounds.get(rule.kind, float(rule.level(tests, look)[0])),
        }  # fmt: skip
        return {
            "units": rule.looks[look],
            **{name: float(v) if np.isfinite(v) else None for name, v in numbers.items()},
            "stop": bool(stop[0]),
            "found": "effect" if effect[0] else "no effect" if none[0] else "",
        }

    def __str__(self) -> str:
        said = f"{self.measure.name}: {_SAID[self.estimator].format(unit=self.unit)}"
        said += _AGAINST[self.comparison]
        if np.isfinite(self.null):
            said += f"; a two-sided test of {self.null:g} at {self.level:.0%}"
        return f"{said}; {self.stop}" if self.stop is not None else said
