"""Evidence and posterior moments of single agents, thousands at a time, by importance sampling."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy.special import logsumexp

from knownminds.agents.parameters import Array
from knownminds.inference.fits.model_data import LikelihoodAtPoints, ModelData, Unknowns
from knownminds.inference.fits.point import PointFit, fit_points

from .posterior import DEGREES_OF_FREEDOM, POINTS_PER_BATCH

POINTS = 256  # proposed for a subject, a power of two
POOR = 0.1  # weights that are worth a smaller share of the points are proposed once more
MORE = 4  # times as many points
LEAST = 10.0  # what the weights of a usable subject are worth at least, in points
STARTS = 2  # of the search for the mode: a proposal need not be perfect

Density = Callable[[Array, NDArray[np.int64]], Array]  # of z [n, S, K] of so many subjects


@dataclass(frozen=True, eq=False)
class Evidence:
    """What the data of N subjects say under a model's priors.

    Parameters
    ----------
    log_evidence
        log p(y), [N], in nats; NaN where no point had a finite likelihood.
    z, z_sd
        Posterior means and standard deviations on the unconstrained scale, [N, K].
    low, high
        Ends of the central 90% intervals on the unconstrained scale, [N, K].
    covariance
        Of the posterior on the unconstrained scale, [N, K, K].
    worth
        Effective number of points, [N] (Kong 1992).
    """

    log_evidence: Array
    z: Array
    z_sd: Array
    low: Array
    high: Array
    covariance: Array
    worth: Array

    @property
    def usable(self) -> NDArray[np.bool_]:
        """Whether a subject's weights are worth `LEAST` points, [N]."""
        mask: NDArray[np.bool_] = self.worth >= LEAST
        return mask


def laplace_evidence(fit: PointFit) -> Array:
    """Return the log evidence of each subject by Laplace's approximation, [N].

    log p(y, z) + K/2 log 2 pi + 1/2 log |covariance| at the mode z of the posterior (Tierney and
    Kadane 1986); NaN where the covariance is not positive.
    """
    sign, size = np.linalg.slogdet(fit.covariance)
    k = fit.z.shape[1]
    values: Array = fit.log_posterior + 0.5 * (
        k * np.log(2 * np.pi) + np.where(sign > 0, size, np.nan)
    )
    return values


def evidence(
    data: ModelData, unknowns: Unknowns, *, points: int = POINTS, workers: int | None = None
) -> Evidence:
    """Integrate each subject's likelihood over the priors of its unknowns.

    Points are proposed from a t around the mode with the inverse observed information as its scale
    (Laplace's approximation, corrected by importance weights); the points of all subjects are the
    same beforehand. Where the weights are worth few points they are proposed once more, from the
    weighted moments.

    Parameters
    ----------
    points
        Proposed for each subject, a power of two.
    """
    fit = fit_points(data, unknowns, "map", STARTS, workers)
    parameters, n = unknowns.parameters, len(data)
    prior = np.diag(parameters.sd**2)
    sound = _positive(fit.covariance)
    centre = np.where(np.isfinite(fit.z), fit.z, parameters.mean)
    covariance = np.where(sound[:, None, None], fit.covariance, prior)

    def log_posterior(z: Array, chosen: NDArray[np.int64]) -> Array:
        return _log_likelihood(data, unknowns, chosen, z) + parameters.log_prior(z)[0]

    everyone = np.arange(n)
    result = _integrated(log_posterior, everyone, centre, covariance, points)
    poor = np.flatnonzero(~(result.worth >= POOR * points))
    if len(poor):
        known = np.isfinite(result.z[poor]).all(axis=1) & _positive(result.covariance[poor])
        centre[poor] = np.where(known[:, None], result.z[poor], centre[poor])
        wider = np.where(known[:, None, None], result.covariance[poor], covariance[poor])
        again = _integrated(log_posterior, poor, centre[poor], wider + 1e-3 * prior, MORE * points)
        better = again.worth > np.nan_to_num(result.worth[poor])
        for name, mine in vars(result).items():
            mine[poor[better]] = getattr(again, name)[better]
    return result


def evidence_given(
    data: ModelData,
    unknowns: Unknowns,
    held: Sequence[int],
    z_held: Array,
    about: Evidence,
    *,
    points: int = POINTS,
) -> Array:
    """Integrate over all unknowns but some, each subject's values of which are known.

    Parameters
    ----------
    held
        Positions of the known ones among the unknowns, [H].
    z_held
        Their values on the unconstrained scale, [N, H].
    about
        The posterior of all unknowns, from which the proposal is conditioned.

    Returns
    -------
    log p(y | held), [N], in nats.
    """
    parameters, k = unknowns.parameters, len(unknowns.parameters)
    known = np.array(held, dtype=np.int64)
    free = np.setdiff1d(np.arange(k), known)

    def log_density(z: Array, chosen: NDArray[np.int64]) -> Array:
        full = np.empty((*z.shape[:2], k))
        full[:, :, free], full[:, :, known] = z, z_held[chosen][:, None]
        standard = (z - parameters.mean[free]) / parameters.sd[free]
        constant = np.log(parameters.sd[free] * np.sqrt(2 * np.pi))
        prior: Array = -(0.5 * standard**2 + constant).sum(axis=2)
        return _log_likelihood(data, unknowns, chosen, full) + prior

    everyone = np.arange(len(data))
    if not len(free):
        return log_density(np.empty((len(data), 1, 0)), everyone)[:, 0]
    ridge = 1e-9 * np.diag(parameters.sd[known] ** 2)
    sound = _positive(about.covariance)
    joint = np.where(sound[:, None, None], about.covariance, np.diag(parameters.sd**2))
    mean = np.where(sound[:, None], about.z, parameters.mean)
    across = joint[:, free[:, None], known]
    pull = np.linalg.solve(
        joint[:, known[:, None], known] + ridge, across.transpose(0, 2, 1)
    ).transpose(0, 2, 1)
    centre = mean[:, free] + np.einsum("nfh,nh->nf", pull, z_held - mean[:, known])
    covariance = joint[:, free[:, None], free] - pull @ across.transpose(0, 2, 1)
    covariance = covariance + 1e-3 * np.diag(parameters.sd[free] ** 2)
    return _integrated(log_density, everyone, centre, covariance, points).log_evidence


def _log_likelihood(
    data: ModelData, unknowns: Unknowns, chosen: NDArray[np.int64], z: Array
) -> Array:
    """Return the log-likelihood [n, S] of the chosen subjects at points z [n, S, K]."""
    at_points = LikelihoodAtPoints(data.repeat(chosen), unknowns, z.shape[1])
    return at_points(z.transpose(1, 0, 2)).T


def _integrated(
    log_density: Density, chosen: NDArray[np.int64], centre: Array, covariance: Array, points: int
) -> Evidence:
    """Integrate the density of the chosen subjects by proposals around each centre."""
    n, k = centre.shape
    # Scrambled, but always alike: plain points begin in a far corner, where weights are extreme.
    sequence = scipy.stats.qmc.Sobol(k, rng=np.random.default_rng(0)).random(points)
    base = scipy.stats.t.ppf(
        np.clip(sequence, 1e-12, 1 - 1e-12), DEGREES_OF_FREEDOM
    )  # independent coordinates: their density is exact
    log_base = scipy.stats.t.logpdf(base, DEGREES_OF_FREEDOM).sum(axis=1)
    each = max(1, POINTS_PER_BATCH // points)
    parts = []
    for first in range(0, n, each):
        mine = slice(first, first + each)
        root = np.linalg.cholesky(covariance[mine])
        z = centre[mine, None] + np.einsum("nij,sj->nsi", root, base)
        volume = np.log(np.diagonal(root, axis1=1, axis2=2)).sum(axis=1)
        weights = log_density(z, chosen[mine]) - log_base + volume[:, None]
        parts.append(_moments(z, np.where(np.isfinite(weights), weights, -np.inf)))
    return Evidence(*(np.concatenate(part) for part in zip(*parts, strict=True)))


def _moments(z: Array, log_weights: Array) -> tuple[Array, ...]:
    """Return the fields of `Evidence` from points [n, S, K] and their log weights [n, S]."""
    n, points, k = z.shape
    with np.errstate(invalid="ignore", divide="ignore"):
        total = logsumexp(log_weights, axis=1)
        weights = np.exp(log_weights - total[:, None])
        weights = np.where(np.isfinite(total)[:, None], weights, np.nan)
        mean = np.einsum("ns,nsk->nk", weights, z)
        away = z - mean[:, None]
        covariance = np.einsum("ns,nsi,nsj->nij", weights, away, away)
        worth = np.asarray(np.nan_to_num(1.0 / (weights**2).sum(axis=1)))
        sd = np.sqrt(np.diagonal(covariance, axis1=1, axis2=2))
    ends = np.full((2, n, k), np.nan)
    for j in range(k):
        order = np.argsort(z[:, :, j], axis=1)
        values = np.take_along_axis(z[:, :, j], order, axis=1)
        sorted_weights = np.take_along_axis(weights, order, axis=1)
        reached = np.cumsum(sorted_weights, axis=1) - sorted_weights / 2
        for e, share in enumerate((0.05, 0.95)):
            ends[e, :, j] = [np.interp(share, c, v) for c, v in zip(reached, values, strict=True)]
    log_evidence = np.where(np.isfinite(total), total - np.log(points), np.nan)
    return log_evidence, mean, sd, ends[0], ends[1], covariance, worth


def _positive(covariance: Array) -> NDArray[np.bool_]:
    """Say which matrices [N, K, K] are finite and positive definite."""
    finite = np.asarray(np.isfinite(covariance).all(axis=(1, 2)))
    values = np.linalg.eigvalsh(np.where(finite[:, None, None], covariance, 0.0))
    return np.asarray(finite & (values > 1e-12).all(axis=1), dtype=bool)
