"""The posterior of a group with its subjects' parameters integrated out, without a sampler.

On the unconstrained scale subjects are z_i ~ Normal(mean, sd), each parameter for itself, with the
hyperpriors of `hierarchical`: Normal(prior mean, prior sd) for means, half-normal of scale
`group_sd` for spreads. The likelihood of each subject is computed once, at points from a proposal
that holds the subject's own posterior, the fitted group and the posterior under that group. What a
group gives a subject's data, p(y_i | mean, sd), is then a sum over these points, cheap enough for
the few dimensions of the group to be sampled by importance.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy.special import logsumexp

from knownminds.agents.parameters import Array
from knownminds.inference.fits.model_data import ModelData, Unknowns

from .comparison import LeaveOneOut
from .fitted_population import fitted_population
from .pareto_smoothing import LARGEST_PARETO_K, smooth_weights
from .posterior import posterior

DEGREES_OF_FREEDOM = 5.0
POINTS = 256  # of each part of a subject's proposal, a power of two
MOST_POINTS = 400_000  # of all subjects together; of more subjects each has fewer
DRAWS = 1024  # of the group, a power of two
ROUNDS = 3  # of moving the proposal of the group to where its weights are
LEAST_LOG_WEIGHT = 100.0  # below the largest
LEAST_SD = 1e-3  # of the group, in prior sds; below this nobody differs


@dataclass(frozen=True)
class IntegratedGroup:
    """Subjects' likelihoods at points, from which those of any group follow.

    Parameters
    ----------
    data
        What was fitted.
    unknowns
        What was estimated.
    powers
        The points z and their squares in units of the prior, [N, P, 2 K].
    log_weight
        Log-likelihood at each point less its log proposal density, [N, P].
    there
        Subjects with an answer, [N]; the others tell nothing and are left out.
    """

    data: ModelData
    unknowns: Unknowns
    powers: Array
    log_weight: Array
    there: NDArray[np.bool_]

    @classmethod
    def of(
        cls,
        data: ModelData,
        *,
        fixed: Mapping[str, float] | None = None,
        lapse: bool = False,
        seed: int = 0,
        workers: int | None = None,
    ) -> IntegratedGroup:
        """Compute the subjects' likelihoods; `fixed`, `lapse`, `workers` as in `posterior`."""
        unknowns = Unknowns.of(data.model, fixed, lapse)
        there = np.asarray(data.n_trials) > 0
        parameters, n, k = unknowns.parameters, len(data), len(unknowns.parameters)
        if k == 0:
            total, _ = unknowns.log_likelihood(data, np.zeros((n, 0)))
            return cls(data, unknowns, np.zeros((n, 1, 0)), total[:, None], there)
        own = posterior(
            data.model, data, fixed=fixed, lapse=lapse, seed=seed, workers=workers, nuts=False
        )
        z = (own.z_draws - parameters.mean) / parameters.sd
        usable = np.array([status != "failed" for status in own.status]) & there
        usable &= np.isfinite(z).all(axis=(0, 2))
        mean, sd = np.zeros(k), np.ones(k)
        if usable.sum() > 1:
            group = fitted_population(own)
            mean = (group.mean - parameters.mean) / parameters.sd
            sd = np.maximum(group.sd / parameters.sd, 0.05)
        count = POINTS
        while count > 64 and 3 * count * n > MOST_POINTS:
            count //= 2
        alone = _moments(z, usable)
        shrunk = _moments(z, usable, mean, sd)
        points, log_density = _propose(alone, shrunk, mean, sd, count, seed)
        log_likelihood = np.empty(points.shape[:2])
        for p in range(points.shape[1]):
            theta = parameters.constrain(parameters.mean + parameters.sd * points[:, p])
            log_likelihood[:, p] = unknowns.log_likelihood(data, theta)[0]
        log_weight = np.where(np.isfinite(log_likelihood), log_likelihood, -np.inf) - log_density
        powers = np.concatenate([points, points**2], axis=2)
        return cls(data, unknowns, powers, log_weight, there)

    def marginal(self, mean: Array, log_sd: Array) -> Array:
        """Return log p(y_i | group) [S, N] of groups mean [S, K], log_sd [S, K], in prior units."""
        n, p, double = self.powers.shape
        if double == 0:
            return np.broadcast_to(self.log_weight[:, 0], (len(mean), n))
        precision = np.exp(-2 * log_sd)
        slope = np.concatenate([mean * precision, -0.5 * precision], axis=1)
        constant = (-0.5 * mean**2 * precision - log_sd - 0.5 * np.log(2 * np.pi)).sum(axis=1)
        found = np.empty((len(mean), n))
        at_once = max(500_000 // (n * p), 1)
        flat = self.powers.reshape(-1, double)
        for begin in range(0, len(mean), at_once):
            some = slice(begin, begin + at_once)
            density = (slope[some] @ flat.T).reshape(-1, n, p) + self.log_weight
            found[some] = logsumexp(density, axis=2) - np.log(p)
        total: Array = found + constant[:, None]
        return total

    def log_prior(self, mean: Array, log_sd: Array) -> Array:
        """Log density of the hyperpriors [S] in prior units, with that of log_sd's volume."""
        parameters = self.unknowns.parameters
        scale = np.array([p.group_sd for p in parameters]) / parameters.sd
        half_normal = -0.5 * (np.exp(log_sd) / scale) ** 2 + log_sd
        total: Array = (scipy.stats.norm.logpdf(mean) + half_normal).sum(axis=1)
        return total

    def draws(
        self, chosen: NDArray[np.bool_] | None = None, seed: int = 0
    ) -> tuple[Array, Array, float]:
        """Draw groups from their posterior given some of the subjects, all of them by default.

        Returns mean and log_sd [DRAWS, K] in prior units, equally weighted, and the Pareto k of
        the weights they were drawn by.
        """
        k = self.powers.shape[2] // 2
        if k == 0:
            return np.zeros((DRAWS, 0)), np.zeros((DRAWS, 0)), -np.inf
        kept = self.there if chosen is None else chosen & self.there

        def log_density(x: Array) -> Array:
            mean, log_sd = x[:, :k], x[:, k:]
            total = self.marginal(mean, log_sd)[:, kept].sum(axis=1)
            density: Array = total + self.log_prior(mean, log_sd)
            # A spread that is nothing has all the same density below it.
            return np.where((log_sd < np.log(LEAST_SD)).any(axis=1), -np.inf, density)

        centre, covariance = self._mode(kept)
        sobol = scipy.stats.qmc.Sobol(2 * k, rng=np.random.default_rng([seed, 3]))
        points = np.clip(sobol.random(DRAWS), 1e-9, 1 - 1e-9)
        heavy = scipy.stats.t.ppf(points, DEGREES_OF_FREEDOM)
        log_proposal = scipy.stats.t.logpdf(heavy, DEGREES_OF_FREEDOM).sum(axis=1)
        best: tuple[float, Array, Array] | None = None
        for _ in range(ROUNDS):
            root = np.linalg.cholesky(covariance)
            x = centre + heavy @ root.T
            weight = log_density(x) - log_proposal
            # Weights that are nothing may still not be too small for a Pareto tail to be fitted.
            weight = np.maximum(weight, np.nanmax(weight) - LEAST_LOG_WEIGHT)
            smoothed, shape = smooth_weights(weight[None])
            if best is None or float(shape[0]) < best[0]:
                best = float(shape[0]), x, smoothed[0]
            if best[0] <= 0.5:
                break
            own = np.exp(smoothed[0])
            centre = own @ x
            away = x - centre
            covariance = (own * away.T) @ away + 1e-4 * np.eye(2 * k)
        assert best is not None
        own = np.exp(best[2])
        at = (np.arange(DRAWS) + np.random.default_rng([seed, 4]).random()) / DRAWS
        drawn = best[1][np.minimum(np.searchsorted(np.cumsum(own), at), DRAWS - 1)]
        return drawn[:, :k], drawn[:, k:], best[0]

    def _mode(self, kept: NDArray[np.bool_]) -> tuple[Array, Array]:
        """Return the mode of the group's posterior and its inverse curvature."""
        k = self.powers.shape[2] // 2
        scale = np.array([p.group_sd for p in self.unknowns.parameters])
        scale = scale / self.unknowns.parameters.sd
        powers, log_weight = self.powers[kept], self.log_weight[kept]

        def loss(x: Array) -> tuple[float, Array]:
            mean, log_sd = x[:k], x[k:]
            precision = np.exp(-2 * log_sd)
            slope = np.concatenate([mean * precision, -0.5 * precision])
            density = powers @ slope + log_weight
            whole = logsumexp(density, axis=1)
            weight = np.exp(density - whole[:, None])
            expected = np.einsum("np,npk->nk", weight, powers)
            first, second = expected[:, :k].sum(axis=0), expected[:, k:].sum(axis=0)
            n = len(whole)
            constant = n * (-0.5 * mean**2 * precision - log_sd).sum()
            total = whole.sum() + constant - 0.5 * (mean**2).sum()
            total += (-0.5 * (np.exp(log_sd) / scale) ** 2 + log_sd).sum()
            by_mean = (first - n * mean) * precision - mean
            squares = second - 2 * mean * first + n * mean**2
            by_sd = squares * precision - n - (np.exp(log_sd) / scale) ** 2 + 1
            return -float(total), -np.concatenate([by_mean, by_sd])

        start = np.concatenate([np.zeros(k), np.full(k, -0.3)])
        bounds = [(-8.0, 8.0)] * k + [(np.log(LEAST_SD) + 1.0, 3.0)] * k
        found = scipy.optimize.minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds)
        step = 1e-4
        hessian = np.empty((2 * k, 2 * k))
        for j in range(2 * k):
            away = np.zeros(2 * k)
            away[j] = step
            hessian[j] = (loss(found.x + away)[1] - loss(found.x - away)[1]) / (2 * step)
        values, vectors = np.linalg.eigh((hessian + hessian.T) / 2)
        # No direction is taken to be wider than the hyperpriors leave it.
        covariance = (vectors / np.clip(values, 0.5, None)) @ vectors.T
        return found.x, covariance

    def leave_one_out(self, seed: int = 0) -> LeaveOneOut:
        """Predict each subject from the others, with its own parameters integrated out.

        By PSIS over draws of the group; where the Pareto k is above 0.7 from the posterior without
        the subject, drawn anew. Subjects without an answer have NaN.
        """
        mean, log_sd, _ = self.draws(seed=seed)
        marginal = self.marginal(mean, log_sd).T
        n = len(marginal)
        log_weights, pareto_k = smooth_weights(-marginal)
        elpd = logsumexp(log_weights + marginal, axis=1)
        again = np.flatnonzero(~(pareto_k <= LARGEST_PARETO_K) & self.there)
        refitted = np.zeros(n, dtype=np.int64)
        for i in again:
            others = np.arange(n) != i
            left_mean, left_sd, own_k = self.draws(others, seed)
            elpd[i] = logsumexp(self.marginal(left_mean, left_sd)[:, i]) - np.log(len(left_mean))
            pareto_k[i], refitted[i] = own_k, 1
        elpd[~self.there], pareto_k[~self.there] = np.nan, -np.inf
        return LeaveOneOut(self.data.model.name, self.data.subjects, elpd, pareto_k, refitted)


def _moments(
    z: Array, usable: NDArray[np.bool_], mean: Array | None = None, sd: Array | None = None
) -> tuple[Array, Array]:
    """Return each subject's posterior mean [N, K] and Cholesky factor [N, K, K], in prior units.

    Under a group, if there is one, by weights of its density over the prior's.
    """
    n, k = z.shape[1:]
    centre, root = np.zeros((n, k)), np.tile(np.eye(k), (n, 1, 1))
    for i in np.flatnonzero(usable):
        own = z[:, i]
        weight = np.full(len(own), 1.0 / len(own))
        if mean is not None and sd is not None:
            log_weight = (
                scipy.stats.norm.logpdf(own, mean, sd) - scipy.stats.norm.logpdf(own)
            ).sum(axis=1)
            weight = np.exp(log_weight - logsumexp(log_weight))
        centre[i] = weight @ own
        away = own - centre[i]
        root[i] = np.linalg.cholesky((weight * away.T) @ away + 1e-3 * np.eye(k))
    return centre, root


def _propose(
    alone: tuple[Array, Array], shrunk: tuple[Array, Array], mean: Array, sd: Array,
    count: int, seed: int,
) -> tuple[Array, Array]:  # fmt: skip
    """Return points [N, 3 count, K] and their log density [N, 3 count], in prior units.

    A third from a t around each subject's own posterior, one from a t around the posterior under
    the fitted group, and one from a t around that group.
    """
    n, k = alone[0].shape
    parts = (alone, shrunk, (np.tile(mean, (n, 1)), np.tile(np.diag(1.2 * sd), (n, 1, 1))))
    uniforms = scipy.stats.qmc.Sobol(k, rng=np.random.default_rng([seed, 2])).random(count)
    base = scipy.stats.t.ppf(np.clip(uniforms, 1e-9, 1 - 1e-9), DEGREES_OF_FREEDOM)
    points = np.concatenate(
        [c[:, None] + np.einsum("nij,pj->npi", r, base) for c, r in parts], axis=1
    )
    log_density = np.empty((3, n, points.shape[1]))
    for part, (centre, root) in enumerate(parts):
        back = np.linalg.solve(root[:, None], (points - centre[:, None])[..., None])[..., 0]
        volume = np.log(np.diagonal(root, axis1=1, axis2=2)).sum(axis=1)
        log_density[part] = (
            scipy.stats.t.logpdf(back, DEGREES_OF_FREEDOM).sum(axis=2) - volume[:, None]
        )
    return points, logsumexp(log_density, axis=0) - np.log(3.0)
