"""Measures of whether decisions follow from stated beliefs, and these from each other."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

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
    without_interval,
)

from .belief_decisions import (
    BELIEF,
    DECISION,
    ELICITATIONS,
    GIVEN,
    PART,
    PART_COLUMNS,
    SHARE,
    BeliefDecisions,
)
from .conditional_independence import (
    NEIGHBOURS,
    conditional_independence,
    conditional_mutual_information,
    exchanged_mean,
)
from .elicitation_consistency import PLAIN, distances, elicitation_consistency
from .iterated_expectation import MedianRatio, SignedGap, iterated_expectation, signed_gap
from .monotone_choice import counts_by_bin, monotone_choice, turning
from .predictive_gain import exchanged_gain, predictive_gain

SIMULATED = 128  # known agents that are simulated for a truth
AT_ONCE = 32  # of them, which bounds the memory
SEED = 20080  # of the agents that are simulated for a truth
STEPS = 6  # of a dial; who turns it to either side deviates, so that most begin at 0
EXCHANGES = 50  # of states, for the mean of an estimate under the null


@dataclass(frozen=True)
class SubjectAnswers:
    """What one subject said, one entry per context and repetition.

    Parameters
    ----------
    context, state : [n]; contexts are numbered from 0.
    action : [n]; NaN where none was taken, or none was asked for.
    beliefs : By elicitation, [n].
    parts, givens : P(z in B_j | x) and P(state 1 | x, z in B_j), [n, J].
    elicitation : How P(z in B_j | x) was asked for, of `PART_COLUMNS`; "" if it was not.
    """

    context: NDArray[np.int64]
    state: NDArray[np.int64]
    action: Array
    beliefs: Mapping[str, Array]
    parts: Array
    givens: Array
    elicitation: str = ""

    @classmethod
    def of(cls, data: BeliefDecisions) -> SubjectAnswers:
        """Return what the only participant of `data` said."""
        frame = data.frame
        how = next(iter(data.part_elicitations), "")

        def side_by_side(kind: str) -> Array:
            return frame[[f"{kind}_{j}" for j in data.parts]].to_numpy(dtype=float)

        return cls(
            context=data.context,
            state=frame["state"].to_numpy(dtype=np.int64),
            action=frame["action"].to_numpy(dtype=float),
            beliefs={e: frame[e].to_numpy(dtype=float) for e in ELICITATIONS if e in frame},
            parts=side_by_side(PART_COLUMNS.get(how, "")),
            givens=side_by_side("given"),
            elicitation=how,
        )

    def decisions(self) -> BeliefDecisions:
        """Return the same as a table, of a subject without a name."""
        known = self.context, self.state
        order = pd.Series(np.zeros(len(self.context))).groupby(self.context).cumcount().to_numpy()
        frame = pd.DataFrame({"context": known[0], "repetition": order, "state": known[1]})
        frame = frame.assign(participant="", subject="", session="0", action=self.action)
        for name, said in self.beliefs.items():
            frame[name] = said
        column = PART_COLUMNS.get(self.elicitation, "part")
        for kind, side in ((column, self.parts), ("given", self.givens)):
            for j in range(side.shape[1]):
                frame[f"{kind}_{j}"] = side[:, j]
        stems = ("part_", "share", "given")
        asked = ["action", *self.beliefs, *(n for n in frame if str(n)[:5] in stems)]
        counts = [
            {"participant": "", "question": str(name), "asked": len(frame),
             "missing": int(frame[name].isna().sum())}
            for name in asked
        ]  # fmt: skip
        return BeliefDecisions(frame, pd.DataFrame(counts))

    def decided(self) -> tuple[Array, NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Return plain belief, action, state and context of the rows that have all.

        Raises
        ------
        ValueError
            If none has.
        """
        p = self.beliefs.get(PLAIN, np.full(len(self.context), np.nan))
        held = np.isfinite(p) & np.isfinite(self.action)
        if not held.any():
            raise ValueError("no context with both a plain belief and a decision")
        context = np.unique(self.context[held], return_inverse=True)[1]
        action = self.action[held].astype(np.int64)
        return p[held], action, self.state[held], context.astype(np.int64)


class Coherence(Measure):
    """A measure of each subject's answers to `diagnosis`, with a test of a single subject.

    Of several subjects the mean is told, with the interval of `t_tests` over them. Contexts are a
    subject's own, so those of different subjects are never compared.

    What known agents have of it hangs on the design and has no closed form: their truth is the mean
    over simulated sessions of the experiment, the same draws for all agents.

    Attributes
    ----------
    asks
        The questions that it reads.
    exact
        Whether rational agents have the null value to the last digit.
    """

    source = "Yamin et al. 2026"
    environments = ("diagnosis",)
    rational = "random_utility"
    least_subjects = 1
    exact = True
    asks: tuple[str, ...] = ("belief", "decision")
    elicited: tuple[str, ...] = (PLAIN,)
    stands_for_all: int = SIMULATED  # agents that are simulated for a truth
    released: bool
    environment: Diagnosis | None = None

    @abstractmethod
    def value(self, answers: SubjectAnswers) -> float:
        """Read the measure off one subject; NaN or ValueError with a reason if there is none."""

    @abstractmethod
    def single(self, data: BeliefDecisions) -> Estimate:
        """Estimate and test the measure of a single subject."""

    def told(
        self,
        value: float,
        error: float,
        ends: tuple[float, float],
        p_value: float,
        unit: tuple[int, str],
        excluded: Mapping[str, int],
    ) -> Estimate:
        """Return the estimate of a single subject; as released, without a test."""
        tested = float("nan") if self.released else p_value
        n, name = unit
        return Estimate(self.name, value, error, *ends, n, name, tested, dict(excluded))

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
        found = self.over_subjects(self._values(data), data)
        return replace(found, excluded={**found.excluded, **self.unanswered(trials)})

    def over_subjects(self, values: Values, data: BeliefDecisions) -> Estimate:
        """Return mean, interval and test over subjects; who all have the null never reject it."""
        tests = t_tests(values.value[None, :], self.null, bounds=self.bounds)
        reasons = [reason for reason in values.reason if reason]
        known = values.value[np.isfinite(values.value)]
        same = len(known) > 1 and bool((known == self.null).all())
        none = len(known) > 0 and not same and not np.isfinite(tests.low[0])
        return Estimate(
            measure=self.name,
            value=float(tests.mean[0]),
            standard_error=0.0 if same else float(tests.standard_error[0]),
            low=self.null if same else float(tests.low[0]),
            high=self.null if same else float(tests.high[0]),
            n=int(tests.n[0]),
            unit="subject",
            p_value=1.0 if same else float(tests.p_value[0]),
            excluded={reason: reasons.count(reason) for reason in dict.fromkeys(reasons)},
            note=without_interval(len(known), "subject", tests.standard_error[0]) if none else "",
        )

    def truth(self, model: type[Agent], theta: Array) -> Array:
        """Return the expected measure of agents with parameters theta[n, P] in the experiment."""
        if model.name == self.rational and self.exact:
            return np.full(len(theta), self.null)
        rounds = -(-self.stands_for_all // len(theta))
        found = np.array(
            [self.value(a) for a in self._simulated(model, np.tile(theta, (rounds, 1)))]
        )
        return np.asarray(np.nanmean(found.reshape(rounds, -1), axis=0))

    def _values(self, data: BeliefDecisions) -> Values:
        found, reasons = [], []
        for _, own in data.each():
            try:
                found.append(self.value(SubjectAnswers.of(own)))
                reasons.append("" if np.isfinite(found[-1]) else "no value")
            except ValueError as error:
                found.append(float("nan"))
                reasons.append(str(error))
        return Values(np.array(found), tuple(reasons))

    def _simulated(self, model: type[Agent], theta: Array) -> Iterator[SubjectAnswers]:
        """Let agents live one session each and yield what they say."""
        given = {} if self.environment is None else self.environment.settings
        asked = [q for q in self.asks if q in given.get("questions", self.asks)]
        elicited = [e for e in self.elicited if e in given.get("elicitations", self.elicited)]
        narrow = {**given, "questions": asked, "elicitations": elicited}
        yield from answers_of(model, theta, _made(json.dumps(narrow, sort_keys=True)), SEED)


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

    violator = "outcome_peeker"
    dial = Dial({"delta": 1.0}, reach=1.0, steps=STEPS, lowest=0.0)

    def __init__(self, calibrated: bool = False, released: bool = False):
        self.calibrated, self.released = calibrated, released
        self.name = "conditional_independence" + ("_calibrated" if calibrated else "")
        self.name += "_released" if released else ""
        self.summary = "what decisions tell of the state beyond the stated belief"
        self.summary += ", made isotonic" if calibrated else ""
        if released:
            self.rational, self.null = "", float("nan")
            self.summary += "; as it is, 1.96 errors of resampled rows around it"

    def value(self, answers: SubjectAnswers) -> float:
        """Return the estimate less its mean over exchanges, or the estimate itself."""
        p, action, state, context = answers.decided()
        if self.released:
            return conditional_mutual_information(p, action, state, calibrated=self.calibrated)
        found, null = exchanged_mean(
            p, action, state, context, EXCHANGES, NEIGHBOURS, self.calibrated
        )
        return found - null

    def single(self, data: BeliefDecisions) -> Estimate:
        """Return the estimate and the test by permutation, or the published interval."""
        found = conditional_independence(
            data, calibrated=self.calibrated, bootstraps=500 if self.released else 0
        )
        shift = 0.0 if self.released else found.null_mean
        low, high, error = found.low, found.high, found.standard_error
        if self.released and found.published is not None:
            low, high = found.published.low, found.published.high
            error = found.published.standard_error
        ends, unit = (low - shift, high - shift), (found.contexts, "context")
        return self.told(found.estimate - shift, error, ends, found.p_value, unit, found.excluded)


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

    bounds = (-np.inf, 1.0)
    violator = "outcome_peeker"
    dial = Dial({"delta": 1.0}, reach=1.0, steps=STEPS, lowest=0.0)
    stands_for_all = 64  # each is learnt five times

    def __init__(self, released: bool = False):
        self.released = released
        self.name = "predictive_gain" + ("_released" if released else "")
        self.summary = "share of the log-loss of decisions that knowing the state saves"
        if released:
            self.rational, self.null = "", float("nan")
            self.summary += ", against the belief alone"

    def value(self, answers: SubjectAnswers) -> float:
        """Return the share of the loss."""
        p, action, state, context = answers.decided()
        try:
            return exchanged_gain(p, action, state, context, against_belief=self.released)
        except ImportError as error:
            raise ValueError(str(error)) from None

    def single(self, data: BeliefDecisions) -> Estimate:
        """Return the share, and the test by exchange in the contexts not learnt from."""
        try:
            found = predictive_gain(data, learner="tree", replicates=0 if self.released else 1000)
        except ImportError as error:
            raise ValueError(str(error)) from None
        gain = found.belief
        told = gain if gain.excess is None else gain.excess
        ends, unit = (told.low / 100, told.high / 100), (found.contexts, "context")
        value, own = told.percent / 100, told.standard_error / 100
        return self.told(value, own, ends, gain.p_value, unit, found.excluded)


class MonotoneChoice(Coherence):
    """Share of pairs of belief bins between which choice turns against its own direction.

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

    bounds = (0.0, 1.0)
    violator = "non_monotone_decider"
    dial = Dial({"kappa": 1.0}, steps=STEPS, lowest=0.0)

    def __init__(self, released: bool = False):
        self.released = released
        self.name = "monotone_choice" + ("_released" if released else "")
        self.summary = "share of pairs of beliefs between which choice turns round"
        if released:
            self.rational, self.null = "", float("nan")
            self.summary = "share of pairs of beliefs between which the bolder action falls, at .05"
            # What moves it most is not the violation but a liking for the bolder action where the
            # state is less probable.
            self.dial = Dial({"u_yes_1": -1.0, "u_yes_0": 1.0}, reach=4.0, steps=9, lowest=-4.0)

    def value(self, answers: SubjectAnswers) -> float:
        """Return the share of pairs of bins."""
        p, action, _, _ = answers.decided()
        fallen, turned, _ = turning(counts_by_bin(p, action))
        return fallen if self.released else turned

    def single(self, data: BeliefDecisions) -> Estimate:
        """Return the share, its interval over resampled contexts, and the test of turning."""
        found = monotone_choice(data)
        value, error, *ends = (
            (found.fraction, found.standard_error, found.low, found.high)
            if self.released
            else (found.turned, found.turned_error, found.turned_low, found.turned_high)
        )
        unit = (int(found.n.sum()), "row")
        return self.told(value, error, (ends[0], ends[1]), found.p_turning, unit, found.excluded)

    def over_subjects(self, values: Values, data: BeliefDecisions) -> Estimate:
        """Return the mean share, and the combined test of subjects who may all have none."""
        estimate = super().over_subjects(values, data)
        if self.released:
            return estimate
        p_values = []
        for (_, some), reason in zip(data.each(), values.reason, strict=True):
            if not reason:
                p, action, _, _ = SubjectAnswers.of(some).decided()
                p_values.append(turning(counts_by_bin(p, action))[2])
        together = np.array([p for p in p_values if np.isfinite(p)])
        combined = (
            float(scipy.stats.combine_pvalues(together).pvalue) if len(together) else float("nan")
        )
        return replace(estimate, p_value=combined)


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

    asks = ("belief",)
    elicited = ELICITATIONS
    violator = "frame_dependent"
    dial = Dial({"kappa": 1.0}, reach=2.0, steps=STEPS, lowest=0.0)

    def __init__(self, released: bool = False):
        self.released = released
        self.name = "elicitation_consistency" + ("_released" if released else "")
        self.bounds = (0.0, 1.0) if released else UNBOUNDED
        self.summary = "squared distance between beliefs that are asked for in other words"
        if released:
            self.rational, self.null = "", float("nan")
            self.summary = "distance of mean answers from the plain ones, noise included"

    def value(self, answers: SubjectAnswers) -> float:
        """Return the mean over elicitations."""
        found = distances(answers.context, answers.beliefs)
        column = [d.rmse_means if self.released else d.excess for d in found]
        return float(np.mean(column))

    def single(self, data: BeliefDecisions) -> Estimate:
        """Return the mean over elicitations, and the test by exchange within contexts."""
        found = elicitation_consistency(data)
        n = min(d.contexts for d in found.distances)
        p_value = min(1.0, len(found.distances) * min(d.p_value for d in found.distances))
        value, low, high, error = found.means if self.released else found.excess
        missing = {f"no {name}": k for name, k in found.missing.items() if k}
        return self.told(value, error, (low, high), p_value, (n, "context"), missing)


class IteratedExpectation(Coherence):
    """sum_j p(x, z_j) p(z_j | x) - p(x), averaged over contexts, with its sign.

    Noise in reports and rounding lift the distance of the two from 0, but hardly their difference.
    It is a t test over contexts. Noise of s log odds raises what is stated of p by about
    s^2 p (1 - p) (1 - 2p) / 2, which does not cancel in full between the whole and its parts: the
    difference of rational deciders is -.0000, -.0004 and -.0016 for s = .1, .3 and .6, in sessions
    of 200 contexts x 5 (.0005, .004 and .013 where parts are asked for in separate questions, whose
    sum noise lifts above 1): more than nothing to a test over many subjects.

    What is asked for as published, p(z_j | x) in one distribution, is read wherever a subject was
    asked so; where none was, what was asked part by part. Subjects who were asked otherwise than
    the others have no value.

    Parameters
    ----------
    released
        As published: median over answers of the distance over p(x).
    """

    asks = ("belief", "expectation")
    exact = False
    violator = "incoherent_believer"

    def __init__(self, released: bool = False):
        self.released = released
        self.name = "iterated_expectation" + ("_released" if released else "")
        self.bounds = (0.0, np.inf) if released else UNBOUNDED
        self.summary = "by how much beliefs given the parts exceed the belief in the whole"
        self.dial = Dial({"kappa": 1.0}, reach=2.0, steps=STEPS, lowest=0.0 if released else -2.0)
        if released:
            self.rational, self.null = "", float("nan")
            self.summary = "median distance of beliefs given the parts from that in the whole"

    def value(self, answers: SubjectAnswers) -> float:
        """Return the mean difference, or the median ratio."""
        p = answers.beliefs.get(PLAIN, np.full(len(answers.context), np.nan))
        total = (answers.parts * answers.givens).sum(axis=1)
        held = np.isfinite(p) & np.isfinite(total) & (answers.parts.shape[1] > 0)
        if not held.any():
            raise ValueError("no context with beliefs in the whole and all its parts")
        if self.released:
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio = np.abs(total - p)[held] / p[held]
            ratio = ratio[np.isfinite(ratio)]
            return float(np.median(ratio)) if len(ratio) else float("nan")
        return float(signed_gap(p, answers.parts, answers.givens, answers.context).mean())

    def _values(self, data: BeliefDecisions) -> Values:
        """Read all subjects by one elicitation of the parts."""
        found = super()._values(data)
        how = next(iter(data.part_elicitations), "")
        own = [next(iter(some.part_elicitations), "") for _, some in data.each()]
        other = np.array([bool(each) and each != how for each in own])
        said = "asked for p(z | x) otherwise than others"
        reasons = (said if off else why for off, why in zip(other, found.reason, strict=True))
        return Values(np.where(other, np.nan, found.value), tuple(reasons))

    def single(self, data: BeliefDecisions) -> Estimate:
        """Return the mean and its t test over contexts, or the median and its bootstrap."""
        found = iterated_expectation(data)
        own: MedianRatio | SignedGap = found.stated if self.released else found.gap
        ends, unit = (own.low, own.high), (own.contexts, "context")
        return self.told(
            own.value, own.standard_error, ends, found.gap.p_value, unit, found.excluded
        )


def answers_of(
    model: type[Agent], theta: Array, environment: Diagnosis, seed: int, *address: int
) -> Iterator[SubjectAnswers]:
    """Let agents with parameters theta[n, P] live a session each and yield what they say."""
    for first in range(0, len(theta), AT_ONCE):
        some = np.arange(first, min(first + AT_ONCE, len(theta)))
        addresses = np.column_stack([*(np.full_like(some, part) for part in address), some])
        simulated = simulate_sessions(model, theta[some], environment, seed, addresses=addresses)
        asked = list(environment.elicitations)
        yield from _laid_out(simulated.columns, len(some), asked, environment.n_parts)


@lru_cache(maxsize=64)  # one object for each experiment, known to the dials
def _placed(measure: Coherence, settings: str) -> Coherence:
    coherence = object.__new__(type(measure))
    coherence.__dict__.update(measure.__dict__)
    coherence.environment = _made(settings)
    return coherence


@lru_cache(maxsize=64)  # contexts are found once for each
def _made(settings: str) -> Diagnosis:
    environment = make("diagnosis", **json.loads(settings))
    assert isinstance(environment, Diagnosis)
    return environment


def _laid_out(
    columns: Mapping[str, NDArray[Any]], n: int, elicited: list[str], parts: int
) -> Iterator[SubjectAnswers]:
    """Yield what each of n simulated agents said; all were asked the same, slot after slot."""
    table = {name: column.reshape(n, -1) for name, column in columns.items()}
    question, elicitation, part = (table[k][0] for k in ("question", "elicitation", "part"))
    asked = {e: (question == BELIEF) & (elicitation == ELICITATIONS.index(e)) for e in elicited}
    decided = question == DECISION
    slots = asked[elicited[0]] if elicited else decided
    shared, parted = bool((question == SHARE).any()), bool((question == PART).any())
    for i in range(n):
        said = {name: table[name][i] for name in ("response", "context", "state")}
        action = table["action"][i][decided].astype(float)
        n_slots = int(slots.sum())

        def of_parts(kind: int, said: Any = said, n_slots: int = n_slots) -> Array:
            found = [said["response"][(question == kind) & (part == j)] for j in range(parts)]
            return np.array(found).T if len(found[0]) else np.empty((n_slots, 0))

        yield SubjectAnswers(
            context=said["context"][slots].astype(np.int64),
            state=said["state"][slots].astype(np.int64),
            action=action if len(action) else np.full(n_slots, np.nan),
            beliefs={e: said["response"][where] for e, where in asked.items()},
            parts=of_parts(SHARE if shared else PART),
            givens=of_parts(GIVEN),
            elicitation="distribution" if shared else "separate" if parted else "",
        )
