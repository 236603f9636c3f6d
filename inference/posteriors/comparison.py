"""How well a model predicts left-out data, by Pareto-smoothed importance sampling."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from knownminds.agents.parameters import Array
from knownminds.environments.later import pandas as pd
from knownminds.environments.record.tabled_result import TabledResult
from knownminds.inference.fits.cross_validation import Folds, SequenceData
from knownminds.inference.fits.model_data import LikelihoodAtPoints, ModelData, Unknowns

from .arviz_scores import LARGEST_PARETO_K, smooth_weights
from .posterior import Posterior, posterior

SUBJECTS_AT_ONCE = 512  # posteriors of so many subjects are in memory when sequences are left out


@dataclass(frozen=True)
class LeaveOneOut(TabledResult):
    """Expected log predictive density of left-out data, piece by piece.

    Parameters
    ----------
    model : name of the model
    subjects : names of the subjects
    elpd : log predictive density of each subject's trials, [N]: given all other subjects, or
        summed over its sequences, each given the others; NaN without a posterior
    pareto_k : reliability of each (of the worst sequence), [N]; not to be trusted above 0.7
    refitted : number of each subject's sequences that were predicted by a posterior without them,
        [N]; empty if subjects were left out
    """

    model: str
    subjects: tuple[str, ...]
    elpd: Array
    pareto_k: Array
    refitted: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    @property
    def total(self) -> float:
        """The sum of elpd over subjects."""
        return float(self.elpd.sum())

    @property
    def standard_error(self) -> float:
        """Standard error of the sum, from the spread between subjects."""
        return float(np.sqrt(len(self.elpd)) * self.elpd.std(ddof=1))

    @property
    def unreliable(self) -> int:
        """How many subjects have a Pareto k above 0.7."""
        return int((~(self.pareto_k <= LARGEST_PARETO_K)).sum())

    def to_frame(self) -> pd.DataFrame:
        """One row per subject."""
        return pd.DataFrame(
            {"subject": self.subjects, "elpd": self.elpd, "pareto_k": self.pareto_k}
        )


def leave_one_sequence_out(
    data: ModelData,
    folds: Folds,
    *,
    lapse: bool = False,
    draws: int = 1000,
    workers: int | None = None,
    refit: bool = True,
) -> LeaveOneOut:
    """Estimate by PSIS how well each subject's posterior predicts its sequences left out.

    The estimate is the sum over sequences k of log p(y_k | y without y_k). It uses draws of each
    subject's posterior given all its trials, weighted by 1 / p(y_k | draw) (Vehtari, Gelman and
    Gabry 2017). A posterior that depends much on one sequence has a large Pareto k. If `refit`,
    such sequences are predicted by a new posterior given the other sequences.

    Parameters
    ----------
    data : Data of the model that is judged.
    folds : The sequences, from `Folds.read` with all rivals, so that all models leave out the same
        ones.
    lapse, draws, workers : Arguments as in `posterior`.

    Raises
    ------
    ValueError : If the model carries something from one of the sequences into another.
    """
    unknowns = Unknowns.of(data.model, lapse=lapse)

    def draw_from(trials: ModelData) -> Posterior:
        return posterior(data.model, trials, lapse=lapse, draws=draws, workers=workers)

    parts = []
    for first in range(0, len(data), SUBJECTS_AT_ONCE):
        some = np.arange(first, min(first + SUBJECTS_AT_ONCE, len(data)))
        cut = SequenceData.cut(data.repeat(some), folds.of_subjects(some))
        parts.append(_leave_out(cut, unknowns, draw_from, refit))
    elpd, pareto_k, refitted = (np.concatenate(part) for part in zip(*parts, strict=True))
    return LeaveOneOut(data.model.name, data.subjects, elpd, pareto_k, refitted)


def _leave_out(
    cut: SequenceData, unknowns: Unknowns, draw_from: Callable[[ModelData], Posterior], refit: bool
) -> tuple[Array, Array, NDArray[np.int64]]:
    """Return elpd, worst Pareto k and the number of refitted sequences of each subject, [N]."""
    draws = draw_from(cut.data)
    n, (subject, _) = len(cut.data), cut.pairs
    elpd, pareto_k = np.empty(len(subject)), np.empty(len(subject))
    for chosen in cut.chunks():  # in chunks, since memory grows with draws x pairs
        at_draws = LikelihoodAtPoints(cut.only(chosen), unknowns, len(draws.z_draws))
        log_likelihood = at_draws(draws.z_draws[:, subject[chosen]]).T
        log_weights, pareto_k[chosen] = smooth_weights(-log_likelihood)
        elpd[chosen] = logsumexp(log_weights + log_likelihood, axis=1)
    lost = np.array(draws.status) == "failed"
    poor: NDArray[np.bool_] = ~(pareto_k <= LARGEST_PARETO_K) & ~lost[subject]
    again = np.flatnonzero(poor & refit).astype(np.int64)
    if len(again):
        rest = draw_from(cut.without(again))
        at_draws = LikelihoodAtPoints(cut.only(again), unknowns, len(rest.z_draws))
        log_likelihood = at_draws(rest.z_draws).T
        exact = logsumexp(log_likelihood, axis=1) - np.log(len(rest.z_draws))
        elpd[again] = np.where(np.array(rest.status) == "failed", np.nan, exact)
        nuts = np.array(rest.method) == "nuts"
        pareto_k[again] = np.where(nuts, -np.inf, rest.pareto_k)
    total, worst = np.zeros(n), np.full(n, -np.inf)
    np.add.at(total, subject, elpd)
    np.maximum.at(worst, subject, pareto_k)
    total[lost], worst[lost] = np.nan, np.inf
    return total, worst, np.bincount(subject[again], minlength=n).astype(np.int64)
