"""Populations by the draws of a group, and the likelihoods of subjects that are integrated out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy.special import logsumexp

from knownminds.agents.parameters import Array
from knownminds.inference.fits.model_data import LikelihoodAtPoints
from knownminds.inference.posteriors.importance import DEGREES_OF_FREEDOM, Proposals

from .deviations import Deviations
from .sampling import stacked

if TYPE_CHECKING:
    from .group_model import HierarchicalFit

PROPOSALS = 256  # per subject and draw of the group, a power of two


def marginal_log_likelihood(
    fit: HierarchicalFit, chosen: NDArray[np.int64], seed: int = 0, proposals: int = PROPOSALS
) -> Array:
    """Return log p(y_i | group), [S, N], for S `chosen` draws of the group, chain after chain.

    A subject with several rows of parameters has one value. The number of proposals is a power of
    two.
    """
    population = PopulationDraws.of(fit)
    at_once = LikelihoodAtPoints(fit.data, fit.unknowns, proposals)
    return population.marginals(at_once, population.standardised(fit), chosen, seed)


def marginals_of_others(
    fit: HierarchicalFit,
    others: PopulationDraws,
    whose: NDArray[np.int64],
    seed: int,
    proposals: int,
) -> Array:
    """Return log p(y_i | group), [S, n], of a group's subjects under S draws of another group.

    Parameters
    ----------
    fit : The group that includes these subjects; proposals are matched to its draws of them.
    others : The population of the other group, for the rows of these subjects.
    whose : Positions of these subjects, [n].
    """
    rows = np.flatnonzero(np.isin(fit.design.deviations.subject, whose))
    at_once = LikelihoodAtPoints(fit.data.repeat(rows), fit.unknowns, proposals)
    standard = PopulationDraws.of(fit).standardised(fit)[:, whose]
    return others.marginals(at_once, standard, np.arange(len(others.spread)), seed)


@dataclass(frozen=True)
class PopulationDraws:
    """The population of subjects by each of S draws of a group.

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
    def of(cls, fit: HierarchicalFit) -> PopulationDraws:
        """Return the populations that the draws of a fit describe."""
        rows = fit.design.deviations
        return cls(
            fit.expected_z,
            fit.spreads,
            fit.covariance_roots if fit.correlated else None,
            None if rows.simple else rows,
        )

    def standardised(self, fit: HierarchicalFit) -> Array:
        """Return the fit's deviations in units of these populations' spread, [S, N, Q]."""
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
