"""How well a model predicts left-out data, by Pareto-smoothed importance sampling."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy.special import logsumexp

from knownminds.agents.parameters import Array
from knownminds.environments.later import pandas as pd
from knownminds.environments.record.result import Result
from knownminds.inference.fits.cross_validation import Folds, SequenceData
from knownminds.inference.fits.model_data import LikelihoodAtPoints, ModelData, Unknowns
from knownminds.inference.groups.deviations import Deviations

from .arviz_scores import LARGEST_PARETO_K, smooth_weights
from .importance import DEGREES_OF_FREEDOM, Proposals
from .posterior import Posterior, posterior
from .sampling import stacked

if TYPE_CHECKING:
    from .group_model import HierarchicalFit

PROPOSALS = 256  # per subject and draw of the group, a power of two
SUBJECTS_AT_ONCE = 512  # posteriors of so many subjects are in memory when sequences are left out


@dataclass(frozen=True)
class LeaveOneOut(Result):
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
    data
        Data of the model that is judged.
    folds
        The sequences, from `Folds.read` with all rivals, so that all models leave out the same
        ones.
    lapse, draws, workers
        Arguments as in `posterior`.

    Raises
    ------
    ValueError
        If the model carries something from one of the sequences into another.
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


def marginal_log_likelihood(
    fit: HierarchicalFit, chosen: NDArray[np.int64], seed: int = 0, proposals: int = PROPOSALS
) -> Array:
    """Return log p(y_i | group), [S, N], for S `chosen` draws of the group, chain after chain.

    A subject with several rows of parameters has one value. The number of proposals is a power of
    two.
    """
    law = GroupLaw.of(fit)
    at_once = LikelihoodAtPoints(fit.data, fit.unknowns, proposals)
    return law.marginals(at_once, law.standardised(fit), chosen, seed)


def marginals_of_others(
    fit: HierarchicalFit, others: GroupLaw, whose: NDArray[np.int64], seed: int, proposals: int
) -> Array:
    """Return log p(y_i | group), [S, n], of a group's subjects under S draws of another group.

    Parameters
    ----------
    fit
        The group that includes these subjects; proposals are matched to its draws of them.
    others
        The law of the other group, for the rows of these subjects.
    whose
        Positions of these subjects, [n].
    """
    rows = np.flatnonzero(np.isin(fit.design.deviations.subject, whose))
    at_once = LikelihoodAtPoints(fit.data.repeat(rows), fit.unknowns, proposals)
    standard = GroupLaw.of(fit).standardised(fit)[:, whose]
    return others.marginals(at_once, standard, np.arange(len(others.spread)), seed)


@dataclass(frozen=True)
class GroupLaw:
    """The distribution of subjects by S draws of a group.

    Parameters
    ----------
    expected : the group's expectation of each row of parameters, [S, M or 1, K]
    spread : spread of each deviation, [S, Q]
    root : Cholesky roots of the deviations' covariance, [S, Q, Q]; None if they are independent
    rows : how deviations enter rows; None if each subject has a row and deviates in it alone
    """

    expected: Array
    spread: Array
    root: Array | None
    rows: Deviations | None

    @classmethod
    def of(cls, fit: HierarchicalFit) -> GroupLaw:
        """Return the law that the draws of a fit describe."""
        rows = fit.design.deviations
        return cls(
            fit.expected_z,
            fit.spreads,
            fit.covariance_roots if fit.correlated else None,
            None if rows.simple else rows,
        )

    def standardised(self, fit: HierarchicalFit) -> Array:
        """Return the fit's deviations from this law in units of their spread, [S, N, Q]."""
        if self.rows is None:
            away = fit.z_draws - self.expected
        else:
            away = stacked(fit.posterior, "own", "owner", "own_deviation")
        if self.root is None:
            standard: Array = away / self.spread[:, None]
            return standard
        return np.swapaxes(np.linalg.solve(self.root, np.swapaxes(away, 1, 2)), 1, 2)

    def marginals(
        self, at_once: LikelihoodAtPoints, standard: Array, chosen: NDArray[np.int64], seed: int
    ) -> Array:
        """Integrate subjects' likelihoods over their deviations, [chosen, N].

        Proposals are matched to draws of the standardised deviations, [D, N, Q].
        """
        eta, log_weight = _proposals(standard, seed, at_once.points)
        marginal = np.empty((len(chosen), standard.shape[1]))
        for row, s in enumerate(chosen):
            deviation = self.spread[s] * eta if self.root is None else eta @ self.root[s].T
            if self.rows is not None:
                deviation = self.rows.enter(deviation)
            log_likelihood = at_once(self.expected[s] + deviation)
            if self.rows is not None:
                log_likelihood = self.rows.summed(log_likelihood)
            marginal[row] = logsumexp(log_likelihood + log_weight, axis=0)
        return marginal - float(np.log(at_once.points))


def _proposals(standard: Array, seed: int, count: int) -> tuple[Array, Array]:
    """Return standardised proposals [count, N, K] and their log weights [count, N].

    Half of them come from the group itself, half from a t matched to the subject's standardised
    draws [D, N, K]. So the weights are at most 2, whatever the group's spread.
    """
    n, k = standard.shape[1:]
    uniforms, heavy, _ = Proposals.of(k, count // 2, seed)
    eta = np.empty((count, n, k))
    log_weight = np.empty((count, n))
    for i in range(n):
        column = standard[:, i]
        factor = np.linalg.cholesky(np.atleast_2d(np.cov(column.T)) + 1e-9 * np.eye(k))
        eta[: count // 2, i] = scipy.stats.norm.ppf(uniforms)
        eta[count // 2 :, i] = column.mean(axis=0) + heavy @ factor.T
        back = np.linalg.solve(factor, (eta[:, i] - column.mean(axis=0)).T).T
        matched = (
            scipy.stats.t.logpdf(back, DEGREES_OF_FREEDOM).sum(axis=1)
            - np.log(np.diag(factor)).sum()
        )
        prior = scipy.stats.norm.logpdf(eta[:, i]).sum(axis=1)
        log_weight[:, i] = prior - np.logaddexp(prior, matched) + np.log(2.0)
    return eta, log_weight
