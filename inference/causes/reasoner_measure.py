"""Measures read off the noisy-ORs that are fitted to somebody's answers by least squares."""

from __future__ import annotations

from abc import abstractmethod
from copy import copy
from dataclasses import replace
from typing import ClassVar, Self

import numpy as np

from knownminds.agents import Agent, NoisyOr
from knownminds.agents.parameters import Array
from knownminds.environments import Trials
from knownminds.environments.causes.causal_graph import questions
from knownminds.environments.later import pandas as pd
from knownminds.inference.measure import (
    Dial,
    Estimate,
    Measure,
    SubjectMeasure,
    Values,
    interval_tests,
    t_tests,
)
from knownminds.inference.resampling import jackknife

from .causal_answers import QUESTION, SCALE, causal_answers, judgements
from .least_squares_reasoner import ReasoningConsistency, Scoring, leave_one_task_out

FEWER_STARTS = 4  # of fits to judgements without noise


class ReasonerMeasure(SubjectMeasure):
    """A number read off the fits with 3 and 4 parameters, of which the better one counts.

    Better is the one that predicts left-out tasks better. With several subjects the test is over
    subjects. A single one has the interval of the jackknife over its settings, the cells of domain
    and sense (Tukey 1958).

    Parameters
    ----------
    released
        As in Dettki (2025): questions about C2 are answered by the formula of C1 (`scoring`
        "pooled"). The truth of an agent is then that of the pooled fit to its judgements.
    """

    environments = ("collider",)
    null = float("nan")
    rational = ""
    stands_for_all = 128
    described: ClassVar[str]

    def __init__(self, released: bool = False):
        self.scoring: Scoring = "pooled" if released else "by_cause"
        self.name = type(self).name + ("_released" if released else "")
        ending = ", both directions by one formula" if released else ""
        self.summary = f"{self.described}{ending}"

    def scored(self, scoring: Scoring) -> Self:
        """Return the measure with another scoring of the two directions."""
        other = copy(self)
        other.scoring = scoring
        return other

    @abstractmethod
    def of(self, fits: ReasoningConsistency) -> Array:
        """Return the number of each subject, [N]."""

    def values(self, trials: Trials | pd.DataFrame) -> Values:
        """Fit each subject and return its number."""
        return self._of_fits(leave_one_task_out(trials, scoring=self.scoring))

    of_each = Measure.of_each  # their interval is not over sessions

    def estimate(self, trials: Trials | pd.DataFrame) -> Estimate:
        """Return the mean over subjects, or the number of a single one."""
        answers = causal_answers(trials)
        values = self.values(answers)
        lost = self.unanswered(trials)
        if len(values.value) > 1:
            result = self.over_subjects(values)
            return replace(result, excluded={**result.excluded, **lost})
        estimate = self._estimate(t_tests(values.value[None, :]), values, "setting")
        estimate = replace(estimate, excluded={**estimate.excluded, **lost})
        story, stories = pd.factorize(pd.MultiIndex.from_frame(answers[["domain", "sense"]]))
        n = len(stories)
        if n < 2 or values.reason[0]:
            return replace(estimate, n=0 if values.reason[0] else n)
        parts = [answers[story != k].assign(subject=k) for k in range(n)]
        left = self.of(leave_one_task_out(pd.concat(parts), scoring=self.scoring))
        error, freedom = (np.array([one]) for one in jackknife(left))
        tests = interval_tests(values.value, error, freedom, np.array([n]), bounds=self.bounds)
        result = self._estimate(tests, values, "setting")
        note = result.note or "interval by the jackknife over settings"
        return replace(result, p_value=np.nan, excluded=estimate.excluded, note=note)

    def of_judgements(self, model: type[Agent], theta: Array) -> Array:
        """Return the number that fits to judgements without noise have, [n]."""
        design = questions("collider")
        n = len(theta)
        table = pd.DataFrame(np.tile(np.array(design), (n, 1)), columns=list(QUESTION))
        table["subject"] = np.repeat(np.arange(n), len(design))
        table["response"] = SCALE * judgements(model, theta, design).ravel()
        return self.of(leave_one_task_out(table, starts=FEWER_STARTS, scoring=self.scoring))

    def _of_fits(self, fits: ReasoningConsistency) -> Values:
        value = self.of(fits)
        reasons = []
        for i, number in enumerate(value):
            message = fits.message[max(int(fits.chosen[i]), 0)][i]
            why = fits.reason[i] or message or "no value"
            reasons.append("" if np.isfinite(number) else why)
        return Values(value, tuple(reasons))


class Consistency(ReasonerMeasure):
    """R2 of leaving out each task in turn: a noisy-OR fitted to the others predicts its mean.

    Of the noisy-ORs with 3 and 4 parameters the one that predicts better counts. The truth is that
    of judgements without noise: 1 in every noisy-OR. Noisy answers lower the measure, the more the
    fewer there are, so that it tells the number of answers as well as the reasoning. As released
    (see `ReasonerMeasure`), a noisy-OR with two different strengths has less than 1.
    """

    name = "reasoning_consistency"
    described = "R2 of a noisy-OR, fitted without a task, in predicting that task"
    source = "Dettki 2025"
    bounds = (-np.inf, 1.0)
    violator = "mutation_sampler"
    # The first moves the mutation sampler, the second the associative reasoner.
    dial = Dial({"lambda": 1.0, "k": -1.0}, reach=2.0, steps=9)

    def of(self, fits: ReasoningConsistency) -> Array:
        """Return R2 of the better number of parameters, [N]."""
        return fits.value

    def truth(self, model: type[Agent], theta: Array) -> Array:
        """Return R2 in judgements without noise, [n]."""
        return self.of_judgements(model, theta)


class Determinacy(ReasonerMeasure):
    """Leak-adjusted determinacy: mean of the strengths m1 and m2 minus the leak b, from -1 to 1.

    Of the noisy-OR, fitted by least squares, that predicts left-out tasks better: the one with a
    strength for each cause or the one with a single strength. Of other reasoners the truth is that
    of the noisy-OR closest to their judgements; see `ReasonerMeasure` for `released`.
    """

    name = "determinacy"
    described = "mean causal strength minus leak of the fitted noisy-OR"
    source = "Dettki 2025"
    bounds = (-1.0, 1.0)
    violator = "noisy_or"
    dial = Dial({"m": 1.0, "m1": 1.0, "m2": 1.0, "b": -1.0}, reach=4.0, steps=33)

    def of(self, fits: ReasoningConsistency) -> Array:
        """Return mean strength minus leak of the better fit, [N]."""
        return np.asarray(fits.theta[:, 2:].mean(axis=1) - fits.theta[:, 1])

    def truth(self, model: type[Agent], theta: Array) -> Array:
        """Return mean strength minus leak, [n]."""
        if self.scoring == "pooled" or not issubclass(model, NoisyOr):
            return self.of_judgements(model, theta)
        values = dict(zip(model.parameters.names, np.asarray(theta, dtype=float).T, strict=True))
        strengths = [values[name] for name in ("m", "m1", "m2") if name in values]
        return np.asarray(np.mean(strengths, axis=0) - values["b"])
