"""Posteriors of single agents, thousands at a time: Laplace, corrected by importance sampling."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from knownminds.agents import Model
from knownminds.agents.parameters import Array, Parameters
from knownminds.environments import Trials
from knownminds.environments.later import pandas as pd
from knownminds.environments.record.tabled_result import TabledResult
from knownminds.inference.fits.model_data import LikelihoodAtPoints, ModelData, Unknowns
from knownminds.inference.fits.point import PointFit, maximum_a_posteriori
from knownminds.inference.subject_table import subject_table

from .arviz_scores import LARGEST_PARETO_K, smooth_weights
from .importance import Proposals, finite

POINTS_PER_BATCH = 2**17  # subjects x points proposed at once
LEAST_EFFECTIVE = 400.0  # the bound that samplers must meet as well
ROUNDS = (1, 1, 4, 16)  # how many times the points of the first round


class SubjectDraws(TabledResult):
    """Draws of the parameters of N subjects."""

    if TYPE_CHECKING:  # a field of a dataclass must not find a property of its name

        @property
        def parameters(self) -> Parameters:
            """The estimated parameters."""

        @property
        def z_draws(self) -> Array:
            """Draws on the unconstrained scale, [draws, N, K]; equally weighted."""

    @cached_property
    def draws(self) -> Array:
        """Draws on the natural scale, [draws, N, K]."""
        return self.parameters.constrain(self.z_draws)

    @cached_property
    def estimate(self) -> Array:
        """Posterior means on the natural scale, [N, K]."""
        mean: Array = self.draws.mean(axis=0)
        return mean

    def interval(self, mass: float = 0.9) -> tuple[Array, Array]:
        """Central posterior intervals on the natural scale."""
        low, high = np.quantile(self.draws, [0.5 - mass / 2, 0.5 + mass / 2], axis=0)
        return low, high


@dataclass(frozen=True)
class Posterior(SubjectDraws):
    """Independent posteriors of N subjects under the model's priors.

    Parameters
    ----------
    fit : The MAP fits on which the proposals are based.
    z_draws : Draws on the unconstrained scale, [draws, N, K]; equally weighted.
    pareto_k : Quality of the importance weights, [N]. Above 0.7 the draws are not to be trusted;
        infinite if too few of them count.
    method : How each subject's draws were made: "importance" or "nuts".
    log_evidence : log p(y), [N], in nats, by the weights of all points; as trustworthy as the
        draws.
    z_mean, z_covariance : Posterior moments on the unconstrained scale by the same weights, [N, K]
        and [N, K, K].
    """

    fit: PointFit
    z_draws: Array
    pareto_k: Array
    method: tuple[str, ...]
    log_evidence: Array
    z_mean: Array
    z_covariance: Array

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the estimated parameters."""
        return self.fit.names

    @property
    def subjects(self) -> tuple[str, ...]:
        """Names of the subjects."""
        return self.fit.subjects

    @property
    def parameters(self) -> Parameters:
        """The estimated parameters."""
        return self.fit.parameters

    @property
    def status(self) -> tuple[str, ...]:
        """The status of the MAP fit, or "failed" if there are no trustworthy draws."""
        usable = (self.pareto_k <= LARGEST_PARETO_K) | (np.array(self.method) == "nuts")
        return tuple(s if ok else "failed" for s, ok in zip(self.fit.status, usable, strict=True))

    def to_frame(self, mass: float = 0.9) -> pd.DataFrame:
        """One row per subject: posterior means, interval ends, Pareto k."""
        more = {"pareto_k": self.pareto_k, "method": self.method, "status": self.status}
        return subject_table(self.subjects, self.names, self.estimate, self.interval(mass), more)


def posterior(
    model: type[Model],
    trials: Trials | ModelData,
    *,
    fixed: Mapping[str, float] | None = None,
    lapse: bool = False,
    draws: int = 1000,
    seed: int = 0,
    workers: int | None = None,
    nuts: bool = True,
) -> Posterior:
    """Draw from each subject's posterior under the model's priors.

    Proposals come from a multivariate t around the MAP with the inverse observed information as its
    scale. Importance weights are Pareto-smoothed, and the draws are resampled by them. A proposal
    is poor if its Pareto k exceeds 0.7 (Vehtari et al. 2024), or if its weights are worth fewer
    than 400 draws (on a curved ridge, k alone may be small although a part was never proposed). A
    poor proposal is matched to the weighted moments and drawn again, three times at most and with
    more points. The few subjects for whom that fails are sampled by NUTS, if `nuts`.
    """
    data = trials if isinstance(trials, ModelData) else ModelData.read(model, trials)
    unknowns = Unknowns.of(model, fixed, lapse)
    fit = maximum_a_posteriori(model, data, fixed=fixed, lapse=lapse, workers=workers)
    n, k = fit.z.shape
    if k == 0:
        certain, known = np.full(n, -np.inf), (fit.log_likelihood, fit.z, np.zeros((n, 0, 0)))
        return Posterior(fit, np.zeros((draws, n, 0)), certain, ("importance",) * n, *known)
    least = int(np.ceil(np.log2(2 * draws)))
    z_draws, (pareto_k, log_evidence) = np.empty((draws, n, k)), np.full((2, n), np.inf)
    centre, covariance = fit.z.copy(), _proposal_covariance(fit)
    floor = 1e-3 * np.diag(fit.parameters.sd**2)  # keeps a proposal from collapsing to a point
    enough = min(LEAST_EFFECTIVE, 0.4 * draws)
    # Later rounds start from the moments of the round before, for subjects with a poor proposal.
    for times in ROUNDS:
        poor = np.flatnonzero(~(pareto_k <= LARGEST_PARETO_K))
        if len(poor) == 0:
            break
        count = times * 2**least
        proposals = Proposals.of(k, count, seed)
        for batch in np.array_split(poor, -(-len(poor) * count // POINTS_PER_BATCH)):
            z, log_density = proposals.around(centre[batch], covariance[batch])
            log_posterior = LikelihoodAtPoints(data.repeat(batch), unknowns, count)(z)
            log_posterior += unknowns.parameters.log_prior(z)[0]
            log_weights = finite(log_posterior - log_density)
            log_evidence[batch] = logsumexp(log_weights, axis=0) - np.log(count)
            smoothed, result = smooth_weights(log_weights.T)
            weights = np.exp(smoothed)
            worth = weights.sum(axis=1) ** 2 / (weights**2).sum(axis=1)
            pareto_k[batch] = np.where(worth >= enough, result, np.inf)
            for i, subject in enumerate(batch):
                # Each subject has the same stream, so that no result depends on the batches.
                chosen = _resample(weights[i], draws, np.random.default_rng([seed, 1]))
                z_draws[:, subject] = z[chosen, i]
                centre[subject] = weights[i] @ z[:, i]
                away = z[:, i] - centre[subject]
                covariance[subject] = (weights[i] * away.T) @ away + floor
    method = np.full(n, "importance", dtype=object)
    bad = np.flatnonzero(~(pareto_k <= LARGEST_PARETO_K))
    if nuts and len(bad):
        from .single_posterior_nuts import sample_separately

        z_draws[:, bad] = sample_separately(data.repeat(bad), unknowns, draws, seed)
        method[bad] = "nuts"
    moments = centre, covariance - floor
    return Posterior(fit, z_draws, pareto_k, tuple(method.tolist()), log_evidence, *moments)


def _proposal_covariance(fit: PointFit) -> Array:
    """Return the inverse observed information [N, K, K], or the prior's covariance without it."""
    prior = np.diag(fit.parameters.sd**2)
    usable = np.isfinite(fit.covariance).all(axis=(1, 2))
    return np.where(np.asarray(usable)[:, None, None], fit.covariance, prior)


def _resample(weights: Array, draws: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return `draws` positions by systematic resampling, in random order."""
    cumulative = np.cumsum(weights)
    points = (np.arange(draws) + rng.random()) / draws * cumulative[-1]
    return rng.permutation(np.minimum(np.searchsorted(cumulative, points), len(weights) - 1))
