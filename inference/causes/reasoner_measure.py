"""Measures read off the noisy-ORs that are fitted to an agent's answers by least squares."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from knownminds.agents import Model, NoisyOr
from knownminds.agents.parameters import Array
from knownminds.environments import Trials
from knownminds.environments.causes.causal_graph import questions
from knownminds.environments.later import pandas as pd
from knownminds.inference.measure import Dial, SubjectMeasure, Values

from .causal_answers import QUESTION, SCALE, causal_answers, judgements
from .least_squares_reasoner import ReasoningConsistency, Scoring, leave_one_task_out

FEWER_STARTS = 4  # starts of fits to judgements without noise
SIMULATED = 128  # so many agents' judgements are fitted for the truth of a group


@dataclass(eq=False)
class ReasonerMeasure(SubjectMeasure):
    """A number read off the better one of the fits with 3 and 4 parameters.

    The better one predicts left-out tasks better. With several subjects the test is over subjects.
    A single subject has the interval of the jackknife over its settings, the cells of domain and
    sense (Tukey 1958).

    Parameters
    ----------
    of : A function that returns the number of each subject, [N], given fits.
    scoring : "pooled" as in Dettki (2025): questions about C2 are answered by the formula of C1.
        The truth of an agent is then that of the pooled fit to its judgements.
    of_noisy_or : A function that returns the truth, given the parameters of noisy-ORs, [n] by name;
        None if the truth is that of fits to their judgements, as for all other models.
    """

    of: Callable[[ReasoningConsistency], Array]
    _: KW_ONLY
    scoring: Scoring = "by_cause"
    of_noisy_or: Callable[[dict[str, Array]], Array] | None = None
    environments: tuple[str, ...] = ("collider",)
    source: str = "Dettki 2025"
    unit: ClassVar[str] = "setting"

    def values(self, trials: Trials) -> Values:
        """Fit each subject and return its number."""
        fits = leave_one_task_out(trials, scoring=self.scoring)
        value, reasons = self.of(fits), []
        for i, number in enumerate(value):
            message = fits.message[max(int(fits.chosen[i]), 0)][i]
            why = fits.reason[i] or message or "no value"
            reasons.append("" if np.isfinite(number) else why)
        return Values(value, tuple(reasons))

    def blocks(self, trials: Trials) -> NDArray[np.int64]:
        """Return the number of each trial's setting within its subject, [rows]."""
        answers = causal_answers(trials)
        block = np.full(len(trials), -1)
        setting = answers.groupby(["subject", "domain", "sense"], sort=False).ngroup()
        block[trials.frame.index.get_indexer(answers.index)] = setting
        return block

    def _alone(self, trials: Trials, block: NDArray[np.int64]) -> Values:
        """Say that every setting counts; none is fitted alone."""
        return Values.of(np.zeros(int(block.max()) + 1), "")

    def truth(self, model: type[Model], theta: Array) -> Array:
        """Return the number of agents with parameters theta[n, P], [n]."""
        if self.of_noisy_or and self.scoring == "by_cause" and issubclass(model, NoisyOr):
            names = model.parameters.names
            return self.of_noisy_or(dict(zip(names, np.asarray(theta, float).T, strict=True)))
        design = questions("collider")
        n = len(theta)
        table = pd.DataFrame(np.tile(np.array(design), (n, 1)), columns=list(QUESTION))
        table["subject"] = np.repeat(np.arange(n), len(design))
        table["response"] = SCALE * judgements(model, theta, design).ravel()
        return self.of(leave_one_task_out(table, starts=FEWER_STARTS, scoring=self.scoring))

    def group_truth(self, model: type[Model], theta: Array) -> float:
        """Return the mean of some agents, drawn evenly."""
        return super().group_truth(model, theta[:SIMULATED])


def reasoning_consistency(released: bool = False) -> ReasonerMeasure:
    """R2 of leaving out each task in turn: a noisy-OR fitted to the others predicts its mean.

    The noisy-OR with 3 or with 4 parameters counts, whichever predicts better. The truth is that of
    judgements without noise: 1 for every noisy-OR. Noisy answers lower the measure, and the more so
    the fewer they are: it reflects the number of answers as well as the reasoning. As released (see
    `ReasonerMeasure`), a noisy-OR with two different strengths has less than 1.
    """
    what = "R2 of a noisy-OR, fitted without a task, in predicting that task"
    return ReasonerMeasure(
        lambda fits: fits.value,
        name="reasoning_consistency" + ("_released" if released else ""),
        summary=what + (", both directions by one formula" if released else ""),
        scoring="pooled" if released else "by_cause",
        bounds=(-np.inf, 1.0),
        violator="mutation_sampler",
        # The first parameter moves the mutation sampler, the second the associative reasoner.
        dial=Dial({"lambda": 1.0, "k": -1.0}, reach=2.0, steps=9),
    )


def determinacy(released: bool = False) -> ReasonerMeasure:
    """Leak-adjusted determinacy: mean of the strengths m1 and m2 minus the leak b, from -1 to 1.

    The noisy-OR is fitted by least squares, with one strength for each cause or one for both,
    whichever predicts left-out tasks better. For other reasoners the truth is that of the noisy-OR
    closest to their judgements; see `ReasonerMeasure` for `released`.
    """

    def of_parameters(values: dict[str, Array]) -> Array:
        strengths = [values[name] for name in ("m", "m1", "m2") if name in values]
        return np.asarray(np.mean(strengths, axis=0) - values["b"])

    what = "mean causal strength minus leak of the fitted noisy-OR"
    return ReasonerMeasure(
        lambda fits: np.asarray(fits.theta[:, 2:].mean(axis=1) - fits.theta[:, 1]),
        name="determinacy" + ("_released" if released else ""),
        summary=what + (", both directions by one formula" if released else ""),
        scoring="pooled" if released else "by_cause",
        of_noisy_or=of_parameters,
        bounds=(-1.0, 1.0),
        violator="noisy_or",
        dial=Dial({"m": 1.0, "m1": 1.0, "m2": 1.0, "b": -1.0}, reach=4.0, steps=33),
    )


FITTED = tuple(
    measure(released)
    for measure in (determinacy, reasoning_consistency)
    for released in (False, True)
)
