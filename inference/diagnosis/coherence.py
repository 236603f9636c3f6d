"""Measures of whether decisions follow from stated beliefs, and these from each other."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np
import scipy

from knownminds.agents import Model
from knownminds.agents.parameters import Array
from knownminds.agents.play import simulate_sessions
from knownminds.environments import Diagnosis, Environment, Trials
from knownminds.environments.later import pandas as pd
from knownminds.inference.measure import Dial, Estimate, Measure, Values, made, t_tests
from knownminds.inference.resampling import Resampled
from knownminds.inference.session_measure import placed

from .belief_decisions import ELICITATIONS, BeliefDecisions
from .coherence_test import CoherenceTest, reading
from .conditional_independence import conditional_independence
from .elicitation_consistency import PLAIN, elicitation_consistency
from .iterated_expectation import iterated_expectation
from .monotone_choice import monotone_choice
from .predictive_gain import predictive_gain

SIMULATED = 128  # so many known agents are simulated for a truth
AT_ONCE = 32  # so many of them at a time, which limits the memory
SEED = 20080  # seed of the agents that are simulated for a truth
QUICK: dict[str, Any] = {
    "bootstraps": 0,
    "replicates": 50,
}  # exchanges of states, for the mean under the null
# Agents with a dial on either side deviate, so most dials begin at 0.
PEEKS = Dial({"delta": 1.0}, reach=1.0, steps=6, lowest=0.0)


@dataclass(eq=False)
class Coherence(Measure):
    """A measure of each subject's answers to `diagnosis`, with a test of a single subject.

    For several subjects it is the mean, with the interval of `t_tests` over them. Contexts belong
    to a subject, so those of different subjects are never compared.

    Its value for known agents depends on the design and has no closed form. Their truth is the mean
    over simulated sessions of the experiment, with the same draws for all agents. A released form
    is as published; it has neither null nor test.

    Parameters
    ----------
    test : The test of one subject. Its first reading has the value and the released value. If
        quick, as for truths, it has no intervals and few exchanges.
    released : Whether the measure is as published.
    asks, elicited : The questions whose answers it reads.
    exact : Whether rational agents have the null value to the last digit.
    unit : The unit of a subject's estimate: "context" or "row".
    scale : Value of the measure for a value of 1 in the table of its test.
    simulated : Number of agents that are simulated for a truth.
    combined : Whether p-values of several subjects are combined by Fisher's method; otherwise the
        test is of the subjects' mean.
    """

    test: Callable[[BeliefDecisions, bool], CoherenceTest]
    _: KW_ONLY
    released: bool = False
    asks: tuple[str, ...] = ("belief", "decision")
    elicited: tuple[str, ...] = (PLAIN,)
    exact: bool = True
    unit: str = "context"
    scale: float = 1.0
    simulated: int = SIMULATED
    combined: bool = False
    least_subjects: int = 1
    environments: tuple[str, ...] = ("diagnosis",)
    source: str = "Yamin et al. 2026"
    dial: Dial = field(default_factory=lambda: PEEKS)

    def in_place(self, environment: Environment) -> Measure:
        """Return the measure whose truth is that of the experiment, always the same object."""
        return placed(self, environment)

    def single(self, data: BeliefDecisions) -> Estimate:
        """Estimate and test the measure of a single subject; as released, without a test."""
        result = self.test(data, False)
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

    def value(self, data: BeliefDecisions) -> float:
        """Return the value of a single subject; as released, that of the published reading."""
        result = self.test(data, True)
        value = result["published"] if self.released else result["value"] - result["null"]
        return self.scale * float(value)

    def values(self, trials: Trials) -> Values:
        """Return the measure of each subject's trials, in order of first appearance."""
        return self._values(BeliefDecisions.read(trials, by="subject"))

    def estimate(self, trials: Trials) -> Estimate:
        """Return the mean over subjects, or the estimate and test of a single subject."""
        data = BeliefDecisions.read(trials, by="subject")
        if len(data.participants) == 1:
            return self.single(data)
        return self.with_counts(self._over_subjects(self._values(data), data), trials)

    def _over_subjects(self, values: Values, data: BeliefDecisions) -> Estimate:
        """Return mean, interval and test over subjects; if all have the null, none rejects it."""
        tests = t_tests(values.value[None, :], self.null, bounds=self.bounds)
        estimate = self.estimate_of(tests, values, "subject")
        known = values.value[np.isfinite(values.value)]
        if len(known) > 1 and (known == self.null).all():
            ends: dict[str, Any] = {"low": self.null, "high": self.null, "standard_error": 0.0}
            estimate = replace(estimate, **ends, p_value=1.0, note="")
        if not self.combined:
            return estimate
        pairs = zip(data.each(), values.reason, strict=True)
        each = np.array([self.test(one, True)["p_value"] for (_, one), why in pairs if not why])
        each = each[np.isfinite(each)]
        combined = scipy.stats.combine_pvalues(each).pvalue if len(each) else np.nan
        return replace(estimate, p_value=float(combined))

    def truth(self, model: type[Model], theta: Array) -> Array:
        """Return the expected measure of agents with parameters theta[n, P] in the experiment."""
        if model.name == self.rational and self.exact:
            return np.full(len(theta), self.null)
        rounds = -(-self.simulated // len(theta))
        given = {} if self.environment is None else self.environment.settings
        questions = [q for q in self.asks if q in given.get("questions", self.asks)]
        elicited = [e for e in self.elicited if e in given.get("elicitations", self.elicited)]
        narrow = {**given, "questions": questions, "elicitations": elicited}
        environment = made(Diagnosis, json.dumps(narrow, sort_keys=True))
        several = np.tile(theta, (rounds, 1))
        values = [self.value(data) for data in answers_of(model, several, environment, SEED)]
        return np.asarray(np.nanmean(np.array(values).reshape(rounds, -1), axis=0))

    def group_truth(self, model: type[Model], theta: Array) -> float:
        """Return the mean of some agents, drawn evenly."""
        return super().group_truth(model, theta[: self.simulated])

    def _values(self, data: BeliefDecisions) -> Values:
        """Return the values of all subjects; beliefs about parts are those of one elicitation."""
        how = next(iter(data.part_elicitations), "") if "expectation" in self.asks else ""
        values, reasons = [], []
        for _, subject in data.each():
            value, why = float("nan"), "no value"
            if how and how not in (subject.part_elicitations or (how,))[:1]:
                why = "asked for p(z | x) otherwise than others"
            else:
                try:
                    value = self.value(subject)
                except (ValueError, ImportError) as error:
                    why = str(error).partition(";")[0]
            values.append(value)
            reasons.append("" if np.isfinite(value) else why)
        return Values(np.array(values), tuple(reasons))


def _both(
    name: str,
    summaries: tuple[str, str],
    test: Callable[[BeliefDecisions, bool], CoherenceTest],
    violator: str,
    *,
    as_published: Mapping[str, Any] = MappingProxyType({}),
    **more: Any,
) -> tuple[Coherence, Coherence]:
    """Declare a measure, and its released form with the differences of that form."""
    corrected, published = (
        Coherence(
            test,
            name=name + ("_released" if released else ""),
            summary=summaries[released],
            released=released,
            rational="" if released else "random_utility",
            violator=violator,
            **(more | dict(as_published) if released else more),
        )
        for released in (False, True)
    )
    return corrected, published


def _independence(calibrated: bool) -> tuple[Coherence, Coherence]:
    """I(action; state | stated belief) less its mean under exchanged states, in nats.

    The truth is the expected value in the design. Repetitions are each other's neighbours, which
    makes it less than the information in many contexts. The published form has no null: for
    rational deciders it is below 0, by as much as repetitions lower it.

    Parameters
    ----------
    calibrated : Whether beliefs are first replaced by the isotonic regression of the state on them.
    """

    def test(data: BeliefDecisions, quick: bool) -> CoherenceTest:
        few: dict[str, Any] = QUICK | {"halves": 0} if quick else {}
        return conditional_independence(data, calibrated=calibrated, **few)

    isotonic = ", made isotonic" if calibrated else ""
    what = f"what decisions tell of the state beyond the stated belief{isotonic}"
    return _both(
        "conditional_independence" + ("_calibrated" if calibrated else ""),
        (what, f"{what}; as it is, 1.96 errors of resampled rows around it"),
        test,
        "outcome_peeker",
    )


def _distance(data: BeliefDecisions, quick: bool) -> CoherenceTest:
    """Return the mean squared distance over elicitations, less the part that noise makes.

    Its tests have Holm's correction. Published is the distance of means, noise included.
    """
    few: dict[str, Any] = QUICK | {"replicates": 1} if quick else {}
    result = elicitation_consistency(data, **few)
    p_values = result.table["p_value"].iloc[1:]
    excess, means = (
        Resampled(*row[["value", "low", "high", "standard_error"]])
        for _, row in result.frames["summary"].iterrows()
    )
    excluded = {f"no {e}": data.total("missing").get(e, 0) for e in ELICITATIONS}
    p_value = min(1.0, len(p_values) * float(p_values.min()))
    row = reading(
        "", excess, n=result.contexts, null=0.0, p_value=p_value, published=means, excluded=excluded
    )
    return CoherenceTest.of([row], result.contexts)


_SAVES = "share of the log-loss of decisions that knowing the state saves"
_DISTORTED = Dial({"kappa": 1.0}, reach=2.0, steps=6, lowest=0.0)
COHERENCE = (
    *_independence(calibrated=False),
    *_independence(calibrated=True),
    # Decision trees are quick enough for audits; `predictive_gain` boosts them.
    *_both(
        "predictive_gain",
        (_SAVES, f"{_SAVES}, against the belief alone"),
        lambda data, quick: predictive_gain(data, learner="tree", **(QUICK if quick else {})),
        "outcome_peeker",
        bounds=(-np.inf, 1.0),
        simulated=64,  # each agent is learnt ten times
        scale=0.01,
    ),
    *_both(
        "monotone_choice",
        (
            "share of pairs of beliefs between which choice turns round",
            "share of pairs of beliefs between which the bolder action falls, at .05",
        ),
        lambda data, quick: monotone_choice(data, bootstraps=0 if quick else 500),
        "non_monotone_decider",
        bounds=(0.0, 1.0),
        unit="row",
        dial=Dial({"kappa": 1.0}, steps=6, lowest=0.0),
        combined=True,
        # The strongest mover is not the violation but a preference for the bolder action where the
        # state is less probable.
        as_published={
            "dial": Dial({"u_yes_1": -1.0, "u_yes_0": 1.0}, reach=4.0, steps=9, lowest=-4.0),
            "combined": False,
        },
    ),
    *_both(
        "elicitation_consistency",
        (
            "squared distance between beliefs in other words",
            "distance of mean answers from the plain ones, noise included",
        ),
        _distance,
        "frame_dependent",
        asks=("belief",),
        elicited=ELICITATIONS,
        dial=_DISTORTED,
        as_published={"bounds": (0.0, 1.0)},
    ),
    # Noise of s log odds raises stated beliefs about p by about s^2 p (1 - p) (1 - 2p) / 2. This
    # does not cancel in full between the whole and its parts. The difference of rational deciders
    # is -.0000, -.0004 and -.0016 for s = .1, .3 and .6, in sessions of 200 contexts x 5. If each
    # part has a question of its own, noise lifts the sum of the parts above 1, and the difference
    # is .0005, .004 and .013: enough for a test over many subjects to notice. Subjects whose
    # question for p(z | x) differs from that of the first subject have no value.
    *_both(
        "iterated_expectation",
        (
            "by how much beliefs given the parts exceed the belief in the whole",
            "median distance of beliefs given the parts from that in the whole",
        ),
        lambda data, quick: iterated_expectation(data, bootstraps=0 if quick else 500),
        "incoherent_believer",
        asks=("belief", "expectation"),
        exact=False,
        dial=replace(_DISTORTED, lowest=-2.0),
        as_published={"bounds": (0.0, np.inf), "dial": _DISTORTED},
    ),
)


def answers_of(
    model: type[Model], theta: Array, environment: Environment, seed: int, *address: int
) -> Iterator[BeliefDecisions]:
    """Simulate a session of each agent with parameters theta[n, P] and yield its answers."""
    assert isinstance(environment, Diagnosis)
    for first in range(0, len(theta), AT_ONCE):
        some = np.arange(first, min(first + AT_ONCE, len(theta)))
        addresses = np.column_stack([*(np.full_like(some, part) for part in address), some])
        simulated = simulate_sessions(model, theta[some], environment, seed, addresses=addresses)
        frame = pd.DataFrame({**simulated.columns, "subject": simulated.subject.astype(str)})
        for _, answers in BeliefDecisions.read(frame, by="subject").each():
            yield answers
