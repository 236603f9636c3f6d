"""Measures of whether decisions follow from stated beliefs, and these from each other."""

from __future__ import annotations

import copy
import json
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
import scipy

from knownminds.agents import Agent
from knownminds.agents.parameters import Array
from knownminds.agents.play import simulate_sessions
from knownminds.environments import Diagnosis, Environment, Trials, make
from knownminds.environments.later import pandas as pd
from knownminds.inference.measure import (
    UNBOUNDED,
    Dial,
    Estimate,
    Measure,
    Values,
    t_tests,
)

from .belief_decisions import (
    ELICITATIONS,
    PART_COLUMNS,
    BeliefDecisions,
)
from .coherence_test import CoherenceTest
from .conditional_independence import (
    conditional_independence,
    conditional_mutual_information,
    excess_information,
)
from .elicitation_consistency import PLAIN, elicitation_consistency, elicitation_distances
from .iterated_expectation import iterated_expectation, ratios, signed_gap
from .monotone_choice import monotone_choice, turning
from .predictive_gain import predictive_gain, saved_share

SIMULATED = 128  # known agents that are simulated for a truth
AT_ONCE = 32  # of them, which bounds the memory
SEED = 20080  # of the agents that are simulated for a truth
STEPS = 6  # of a dial; who turns it to either side deviates, so that most begin at 0
EXCHANGES = 50  # of states, for the mean of an estimate under the null


class Coherence(Measure):
    """A measure of each subject's answers to `diagnosis`, with a test of a single subject.

    Of several subjects it is the mean, with the interval of `t_tests` over them. Contexts are a
    subject's, so those of different subjects are never compared.

    What known agents have of it hangs on the design and has no closed form: their truth is the mean
    over simulated sessions of the experiment, the same draws for all agents.

    Parameters
    ----------
    released
        Whether the measure is as published; there is no null and no test then.

    Attributes
    ----------
    asks
        The questions that it reads.
    exact
        Whether rational agents have the null value to the last digit.
    unit
        What a subject's estimate rests on: "context" or "row".
    scale
        Value of the measure for a value of 1 in the table of its test.
    published
        What the released form is, in a few words.
    """

    source = "Yamin et al. 2026"
    environments = ("diagnosis",)
    rational = "random_utility"
    least_subjects = 1
    exact = True
    asks: tuple[str, ...] = ("belief", "decision")
    elicited: tuple[str, ...] = (PLAIN,)
    stands_for_all: int = SIMULATED  # agents that are simulated for a truth
    unit: ClassVar[str] = "context"
    scale: ClassVar[float] = 1.0
    published: str
    environment: Diagnosis | None = None

    def __init__(self, released: bool = False):
        self.released = released
        if released:
            self.name = f"{self.name}_released"
            self.summary, self.rational, self.null = self.published, "", float("nan")

    @abstractmethod
    def value(self, data: BeliefDecisions) -> float:
        """Read the measure off one subject; NaN or ValueError with a reason if there is none."""

    @abstractmethod
    def test(self, data: BeliefDecisions) -> CoherenceTest:
        """Test one subject."""

    def single(self, data: BeliefDecisions) -> Estimate:
        """Estimate and test the measure of a single subject; as released, without a test."""
        result = self.test(data)
        if self.released:
            names, shift = ("published", "published_low", "published_high", "published_error"), 0.0
        else:
            names, shift = ("value", "low", "high", "standard_error"), float(result["null"])
        value, low, high, error = (self.scale * float(result[name]) for name in names)
        shift *= self.scale
        return Estimate(
            self.name,
            value - shift,
            error,
            low - shift,
            high - shift,
            int(result["n"]) if self.unit == "row" else result.contexts,
            self.unit,
            float("nan") if self.released else float(result["p_value"]),
            {reason: n for reason, n in result["excluded"].items() if n},
        )

    def in_place(self, environment: Environment) -> Measure:
        """Return the measure whose truth is that of the experiment."""
        if not isinstance(environment, Diagnosis):
            raise ValueError(
                f"{self.name} is read off answers in diagnosis; got {environment!r}. Choose that."
            )
        return _placed(self, json.dumps(environment.settings, sort_keys=True))

    def values(self, trials: Trials) -> Values:
        """Read the measure off each subject's trials, in the order in which they first appear."""
        return self._values(BeliefDecisions.read(trials, by="subject"))

    def estimate(self, trials: Trials) -> Estimate:
        """Return the mean over subjects, or the estimate and test of a single one."""
        data = BeliefDecisions.read(trials, by="subject")
        if len(data.participants) == 1:
            return self.single(data)
        estimate = self.over_subjects(self._values(data), data)
        return replace(estimate, excluded={**estimate.excluded, **self.unanswered(trials)})

    def over_subjects(self, values: Values, data: BeliefDecisions) -> Estimate:
        """Return mean, interval and test over subjects; who all have the null never reject it."""
        tests = t_tests(values.value[None, :], self.null, bounds=self.bounds)
        estimate = self._estimate(tests, values, "subject")
        known = values.value[np.isfinite(values.value)]
        if len(known) > 1 and (known == self.null).all():
            ends: dict[str, Any] = {"low": self.null, "high": self.null, "standard_error": 0.0}
            return replace(estimate, **ends, p_value=1.0, note="")
        return estimate

    def truth(self, model: type[Agent], theta: Array) -> Array:
        """Return the expected measure of agents with parameters theta[n, P] in the experiment."""
        if model.name == self.rational and self.exact:
            return np.full(len(theta), self.null)
        rounds = -(-self.stands_for_all // len(theta))
        given = {} if self.environment is None else self.environment.settings
        questions = [q for q in self.asks if q in given.get("questions", self.asks)]
        elicited = [e for e in self.elicited if e in given.get("elicitations", self.elicited)]
        narrow = {**given, "questions": questions, "elicitations": elicited}
        environment = _made(json.dumps(narrow, sort_keys=True))
        several = np.tile(theta, (rounds, 1))
        values = [self.value(data) for data in answers_of(model, several, environment, SEED)]
        return np.asarray(np.nanmean(np.array(values).reshape(rounds, -1), axis=0))

    def _values(self, data: BeliefDecisions) -> Values:
        values, reasons = [], []
        for _, subject in data.each():
            try:
                values.append(self.value(subject))
                reasons.append("" if np.isfinite(values[-1]) else "no value")
            except ValueError as error:
                values.append(float("nan"))
                reasons.append(str(error))
        return Values(np.array(values), tuple(reasons))


class ConditionalIndependence(Coherence):
    """I(action; state | stated belief) less its mean under exchanged states, in nats.

    The k-nearest-neighbour estimate of Mesner and Shalizi; states are exchanged between contexts
    with nearly the same belief, see `conditional_independence`. The truth is the expected value in
    the design: repetitions are each other's neighbours, which makes it less than the information
    that many contexts would show.

    Parameters
    ----------
    calibrated
        Whether beliefs are first replaced by the isotonic regression of the state on them.
    released
        As published: the estimate as it is, with 1.96 standard errors of resampled rows to either
        side. Without a null: in rational deciders it is below 0, by as much as repetitions lower
        it.
    """

    name = "conditional_independence"
    summary = "what decisions tell of the state beyond the stated belief"
    published = f"{summary}; as it is, 1.96 errors of resampled rows around it"
    violator = "outcome_peeker"
    dial = Dial({"delta": 1.0}, reach=1.0, steps=STEPS, lowest=0.0)

    def __init__(self, calibrated: bool = False, released: bool = False):
        self.calibrated = calibrated
        if calibrated:
            self.name, made = f"{self.name}_calibrated", ", made isotonic"
            self.summary += made
            self.published = self.published.replace(";", f"{made};")
        super().__init__(released)

    def value(self, data: BeliefDecisions) -> float:
        """Return the estimate less its mean over exchanges, or the estimate itself."""
        p, action, state, context = data.decided()
        if self.released:
            return conditional_mutual_information(p, action, state, calibrated=self.calibrated)
        return excess_information(p, action, state, context, EXCHANGES, self.calibrated)

    def test(self, data: BeliefDecisions) -> CoherenceTest:
        """Return the test by permutation, with the published interval."""
        bootstraps = 500 if self.released else 0
        return conditional_independence(data, calibrated=self.calibrated, bootstraps=bootstraps)


class PredictiveGain(Coherence):
    """Share of the log-loss of predicted decisions that knowing the state saves.

    By decision trees, which are quick enough for audits; `predictive_gain` boosts them. Decisions
    about contexts that were not learnt from are predicted from belief and state; the loss is held
    against that with states exchanged among these contexts where beliefs are nearly the same.

    Parameters
    ----------
    released
        As published: against predictions from the belief alone, with a bootstrap of contexts. A
        state that tells nothing costs, so there is no null value.
    """

    name = "predictive_gain"
    summary = "share of the log-loss of decisions that knowing the state saves"
    published = f"{summary}, against the belief alone"
    bounds = (-np.inf, 1.0)
    violator = "outcome_peeker"
    dial = Dial({"delta": 1.0}, reach=1.0, steps=STEPS, lowest=0.0)
    stands_for_all = 64  # each is learnt five times
    scale = 0.01

    def value(self, data: BeliefDecisions) -> float:
        """Return the share of the loss."""
        try:
            return saved_share(*data.decided(), against_belief=self.released)
        except ImportError as error:
            raise ValueError(str(error)) from None

    def test(self, data: BeliefDecisions) -> CoherenceTest:
        """Return the test by exchange in the contexts not learnt from."""
        try:
            replicates = 0 if self.released else 1000
            return predictive_gain(data, learner="tree", replicates=replicates)
        except ImportError as error:
            raise ValueError(str(error)) from None


class MonotoneChoice(Coherence):
    """Share of pairs of belief bins between which choice turns against its direction.

    Quantile bins of belief; for each pair of actions the share of the first may rise with belief or
    fall, but not both: after Holm's correction, the rarer of significant rises and falls counts.
    That holds of all who maximise expected utility with noise, whatever their utilities. The test
    asks whether there are both; of several subjects p-values are combined by Fisher's method.

    Parameters
    ----------
    released
        As published: falls at .05, uncorrected. Deciders whose utilities make them bolder where the
        state is less probable have many, and those with none have some by chance: no null.
    """

    name = "monotone_choice"
    summary = "share of pairs of beliefs between which choice turns round"
    published = "share of pairs of beliefs between which the bolder action falls, at .05"
    bounds = (0.0, 1.0)
    violator = "non_monotone_decider"
    dial = Dial({"kappa": 1.0}, steps=STEPS, lowest=0.0)
    unit = "row"

    def __init__(self, released: bool = False):
        super().__init__(released)
        if released:
            # What moves it most is not the violation but a liking for the bolder action where the
            # state is less probable.
            self.dial = Dial({"u_yes_1": -1.0, "u_yes_0": 1.0}, reach=4.0, steps=9, lowest=-4.0)

    def value(self, data: BeliefDecisions) -> float:
        """Return the share of pairs of bins."""
        p, action, _, _ = data.decided()
        fallen, turned, _ = turning(p, action)
        return fallen if self.released else turned

    def test(self, data: BeliefDecisions) -> CoherenceTest:
        """Return the test of turning, with the interval over resampled contexts."""
        return monotone_choice(data)

    def over_subjects(self, values: Values, data: BeliefDecisions) -> Estimate:
        """Return the mean share, and the combined test of subjects who may all have none."""
        estimate = super().over_subjects(values, data)
        if self.released:
            return estimate
        p_values = [
            turning(*subject.decided()[:2])[2]
            for (_, subject), reason in zip(data.each(), values.reason, strict=True)
            if not reason
        ]
        known = np.array([p for p in p_values if np.isfinite(p)])
        combined = scipy.stats.combine_pvalues(known).pvalue if len(known) else np.nan
        return replace(estimate, p_value=float(combined))


class ElicitationConsistency(Coherence):
    """Squared distance between beliefs under other elicitations and the plain ones.

    Between means over repetitions, averaged over contexts and elicitations, less what it is on
    average when answers to the two questions are exchanged within contexts: repetitions that
    differ among themselves are no inconsistency. Tested by such exchanges, with Holm's correction.

    Parameters
    ----------
    released
        As in the published table: root mean square distance of means over repetitions. Nothing is
        taken off for repetitions that differ among themselves.
    """

    name = "elicitation_consistency"
    summary = "squared distance between beliefs in other words"
    published = "distance of mean answers from the plain ones, noise included"
    asks = ("belief",)
    elicited = ELICITATIONS
    violator = "frame_dependent"
    dial = Dial({"kappa": 1.0}, reach=2.0, steps=STEPS, lowest=0.0)

    def __init__(self, released: bool = False):
        super().__init__(released)
        self.bounds = (0.0, 1.0) if released else UNBOUNDED

    def value(self, data: BeliefDecisions) -> float:
        """Return the mean over elicitations."""
        distances = elicitation_distances(data).values()
        return float(np.mean([means if self.released else excess for excess, means in distances]))

    def test(self, data: BeliefDecisions) -> CoherenceTest:
        """Return the test by exchange within contexts."""
        return elicitation_consistency(data)

    def single(self, data: BeliefDecisions) -> Estimate:
        """Return the mean over elicitations, with Holm's correction of their tests."""
        result = self.test(data)
        p_values = result.table["p_value"].iloc[1:]
        row = result.frames["summary"].iloc[int(self.released)]
        value, error, low, high = (
            float(row[name]) for name in ("value", "standard_error", "low", "high")
        )
        return Estimate(
            self.name,
            value,
            error,
            low,
            high,
            result.contexts,
            self.unit,
            float("nan") if self.released else min(1.0, len(p_values) * float(p_values.min())),
            {f"no {e}": n for e in ELICITATIONS if (n := data.total("missing").get(e, 0))},
        )


class IteratedExpectation(Coherence):
    """sum_j p(x, z_j) p(z_j | x) - p(x), averaged over contexts, with its sign.

    Noise in reports and rounding lift the distance of the two from 0, but hardly their difference.
    It is a t test over contexts. Noise of s log odds raises what is stated of p by about
    s^2 p (1 - p) (1 - 2p) / 2, which does not cancel in full between the whole and its parts: the
    difference of rational deciders is -.0000, -.0004 and -.0016 for s = .1, .3 and .6, in sessions
    of 200 contexts x 5 (.0005, .004 and .013 where parts are elicited in separate questions, whose
    sum noise lifts above 1): more than nothing to a test over many subjects.

    What is elicited as published, p(z_j | x) in one distribution, is read wherever a subject was
    asked so; where none was, what was asked part by part. Subjects who were asked otherwise than
    the others have no value.

    Parameters
    ----------
    released
        As published: median over answers of the distance over p(x).
    """

    name = "iterated_expectation"
    summary = "by how much beliefs given the parts exceed the belief in the whole"
    published = "median distance of beliefs given the parts from that in the whole"
    asks = ("belief", "expectation")
    exact = False
    violator = "incoherent_believer"

    def __init__(self, released: bool = False):
        super().__init__(released)
        self.bounds = (0.0, np.inf) if released else UNBOUNDED
        self.dial = Dial({"kappa": 1.0}, reach=2.0, steps=STEPS, lowest=0.0 if released else -2.0)

    def value(self, data: BeliefDecisions) -> float:
        """Return the mean difference, or the median ratio."""
        stem = next(iter(data.part_elicitations), "")
        sides = (
            data.numbers(PLAIN),
            data.of_parts(PART_COLUMNS.get(stem, "")),
            data.of_parts("given"),
        )
        total = sides[0] + (sides[1] * sides[2]).sum(axis=1)
        if not data.parts or not np.isfinite(total).any():
            raise ValueError("no context with beliefs in the whole and all its parts")
        if self.released:
            ratio = ratios(*sides)
            ratio = ratio[np.isfinite(ratio)]
            return float(np.median(ratio)) if len(ratio) else float("nan")
        return float(signed_gap(*sides, data.context).mean())

    def test(self, data: BeliefDecisions) -> CoherenceTest:
        """Return the t test over contexts, and the median with its bootstrap."""
        return iterated_expectation(data)

    def _values(self, data: BeliefDecisions) -> Values:
        """Read all subjects by one elicitation of the parts."""
        values = super()._values(data)
        how = next(iter(data.part_elicitations), "")
        each = [next(iter(subject.part_elicitations), "") for _, subject in data.each()]
        other = np.array([bool(one) and one != how for one in each])
        said = "asked for p(z | x) otherwise than others"
        reasons = (said if off else why for off, why in zip(other, values.reason, strict=True))
        return Values(np.where(other, np.nan, values.value), tuple(reasons))


def answers_of(
    model: type[Agent], theta: Array, environment: Diagnosis, seed: int, *address: int
) -> Iterator[BeliefDecisions]:
    """Simulate a session of each agent with parameters theta[n, P] and yield its answers."""
    for first in range(0, len(theta), AT_ONCE):
        some = np.arange(first, min(first + AT_ONCE, len(theta)))
        addresses = np.column_stack([*(np.full_like(some, part) for part in address), some])
        simulated = simulate_sessions(model, theta[some], environment, seed, addresses=addresses)
        frame = pd.DataFrame({**simulated.columns, "subject": simulated.subject.astype(str)})
        for _, answers in BeliefDecisions.read(frame, by="subject").each():
            yield answers


@lru_cache(maxsize=64)  # one object for each experiment, known to the dials
def _placed(measure: Coherence, settings: str) -> Coherence:
    placed = copy.copy(measure)
    placed.environment = _made(settings)
    return placed


@lru_cache(maxsize=64)  # contexts are computed once for each
def _made(settings: str) -> Diagnosis:
    environment = make("diagnosis", **json.loads(settings))
    assert isinstance(environment, Diagnosis)
    return environment
