"""A group by its marginal likelihood: subjects are integrated out by weighted points."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from knownminds.agents.parameters import Array, Parameters
from knownminds.environments.record.tabled_result import TabledResult
from knownminds.inference.fits.model_data import LikelihoodAtPoints, ModelData, Unknowns
from knownminds.inference.fits.point import STARTS, fit_points, inverted
from knownminds.inference.fits.quasi_newton import minimise
from knownminds.inference.posteriors.importance import DEGREES_OF_FREEDOM, finite

from .contrasts import NODES, WEIGHTS
from .formulas import GroupDesign

POINTS = (64, 256, 256, 256, 1024, 1024, 4096)  # of each subject, round after round
LEAST_ROUNDS = 2  # the first is around the modes under the model's priors
LEAST_EFFECTIVE = 30.0  # points that those of a subject are worth, in the harmonic mean
FARTHEST = 0.7  # that a round moves log spreads, and means in spreads: there its points are good
WEAK = 5.0  # times the model's priors: those of means and weights, which are to pull nothing
WIDER = 1.1  # of proposals, in standard deviations, than the curvature at the mode says
STEP = 1e-3  # of differences, on the unconstrained scale


@dataclass(frozen=True)
class MarginalFit(TabledResult):
    """A group where its marginal posterior is largest.

    Parameters
    ----------
    model : Name of the model.
    parameters, design : What is estimated, and what moves it.
    values, covariance : Group means [K], regression weights [E], log spreads [Q] and x of the
        partial correlations tanh(x) [P], one after the other, on the unconstrained scale; and the
        covariance of their errors, the inverse of the observed information.
    effective : How many points those of each subject are worth, [N].
    points : How many points each subject had.
    message : Why the group is not to be trusted; empty where it is.
    """

    model: str
    parameters: Parameters
    design: GroupDesign = field(repr=False)
    values: Array
    covariance: Array
    effective: Array
    points: int
    message: str = ""

    @property
    def freedom(self) -> int:
        """Degrees of freedom: subjects less one, and less the weights of the most moved mean."""
        moved = np.bincount(self.design.regressors.parameter, minlength=1)
        return max(len(self.effective) - 1 - int(moved.max()), 1)

    def mean_of(
        self, contrast: Mapping[str, float], share: Array | None = None
    ) -> tuple[float, float]:
        """Return the group's mean of a contrast on the natural scale, and its standard error.

        It is the mean over the population, not the value of the group's typical member;
        the error is that of the delta method.

        Parameters
        ----------
        contrast : Weights of parameters.
        share : Of each row of parameters, [M]; all alike if None. Shares of two conditions with
            opposite signs give the mean change from one to the other.
        """
        rows = len(self.design.rows)
        share = np.full(rows, 1.0 / rows) if share is None else share
        units = _units(self.design, len(self.values))
        steps = STEP * np.diag(units)
        above, below = (
            np.array([self._mean_at(self.values + sign * step, contrast, share) for step in steps])
            for sign in (1.0, -1.0)
        )
        slope = (above - below) / (2 * STEP * units)
        error = float(np.sqrt(slope @ self.covariance @ slope))
        return self._mean_at(self.values, contrast, share), error

    def _mean_at(self, values: Array, contrast: Mapping[str, float], share: Array) -> float:
        deviations, regressors = self.design.deviations, self.design.regressors
        mean, effect, root = _parts(values, self.design)
        total = 0.0
        for name, weight in contrast.items():
            k = self.parameters.index(name)
            moving, entering = regressors.parameter == k, deviations.moved == k
            middle = mean[k] + regressors.by_subject[:, moving] @ effect[moving]
            spread = np.linalg.norm(deviations.weight[:, entering] @ root[entering], axis=1)
            z = middle[:, None] + spread[:, None] * NODES
            natural = self.parameters[name].support.constrain(z) @ WEIGHTS / WEIGHTS.sum()
            total += weight * float(share @ natural)
        return total


def marginal(data: ModelData, unknowns: Unknowns, design: GroupDesign) -> MarginalFit:
    """Estimate a group whose subjects are integrated out.

    What subject i has, v_i ~ Normal(A_i (mean, effect), D R D), makes its rows of parameters.
    Spreads D and correlations R have the priors of `hierarchical`, means and effects five times as
    wide ones, which pull next to nothing. The likelihood of a subject's trials is averaged over
    points from a t distribution around the mode of v_i: first under the model's priors, then under
    the group that the points before gave (Pinheiro and Bates 1995), until the group lies where its
    points are and these are worth 30 or more equal ones. The estimate is the mode of the marginal
    posterior by log spreads, and its errors are those of the curvature there. Where no round gets
    so far, a message says why, and the estimate is not to be used.

    Raises
    ------
    ValueError : If a column that changes within subjects moves what these do not deviate in.
    """
    group = _Group(data, unknowns, design, _expected(design))
    fit = fit_points(data, unknowns, "map", STARTS, workers=1)
    own = _own_of(design, np.where(np.isfinite(fit.z), fit.z, unknowns.parameters.mean))
    around, values = group.priors(), group.guess(own)
    covariance = np.full((len(values), len(values)), np.nan)
    for number, points in enumerate(POINTS, 1):
        weighted = group.weighted(around, own, points)
        values, inside = weighted.optimum(values)
        effective, own = weighted.worth(values)
        worth, around = 1.0 / np.mean(1.0 / effective), values  # errors go by 1 / effective
        message = f"{points} points of a subject are worth {worth:.1f}"
        if number < LEAST_ROUNDS or not worth >= LEAST_EFFECTIVE:
            continue
        units = _units(design, len(values))
        covariance = inverted(weighted.information(values, units)[None])[0] * np.outer(units, units)
        message = "the marginal likelihood has no maximum"
        if inside and np.isfinite(covariance).all():
            message = ""
            break
    parameters = unknowns.parameters
    return MarginalFit(
        data.model.name, parameters, design, values, covariance, effective, points, message
    )


def _parts(values: Array, design: GroupDesign) -> tuple[Array, Array, Array]:
    """Return means [K], weights [E] and the root of the covariance of deviations, [Q, Q]."""
    deviations = design.deviations
    k, q = deviations.n_parameters, len(deviations.names)
    c = k + len(design.regressors.names)
    root = np.exp(values[c : c + q])[:, None] * deviations.roots(values[None, c + q :])[0]
    return values[:k], values[k:c], root


def _units(design: GroupDesign, length: int) -> Array:
    """Return in what units a group's values are of the size of 1: weights go by their columns."""
    units, first = np.ones(length), design.deviations.n_parameters
    units[first : first + len(design.regressors.names)] /= design.regressors.spread
    return units


def _own_of(design: GroupDesign, z: Array) -> Array:
    """Return what subjects have, [N, Q], that makes rows of parameters nearest to z [M, K]."""
    deviations = design.deviations
    if deviations.simple:
        return z
    own = np.zeros((deviations.n_subjects, len(deviations.names)))
    for i, k in np.ndindex(deviations.n_subjects, deviations.n_parameters):
        rows, entering = deviations.subject == i, deviations.moved == k
        own[i, entering] = np.linalg.lstsq(deviations.weight[rows][:, entering], z[rows, k])[0]
    return own


def _expected(design: GroupDesign) -> Array:
    """Return A_i: how means and weights make what is expected of each subject, [N, Q, K + E]."""
    deviations, regressors = design.deviations, design.regressors
    k, q = deviations.n_parameters, len(deviations.names)
    matrix = np.zeros((deviations.n_subjects, q, k + len(regressors.names)))
    matrix[:, np.arange(k), np.arange(k)] = 1.0
    for e, (name, moved) in enumerate(zip(regressors.names, regressors.parameter, strict=True)):
        rows = regressors.by_subject[:, e, None] * np.eye(k)[moved]
        matrix[..., k + e] = _own_of(design, rows)
        left = deviations.enter(matrix[..., k + e]) - rows
        if not np.allclose(left / regressors.spread[e], 0.0):
            raise ValueError(
                "The marginal estimator is of what subjects deviate in; they do not deviate in "
                f"{name}, which changes within them. Write (column | subject), or take --method "
                "hierarchical."
            )
    return matrix


@lru_cache(maxsize=8)
def _base(n: int, points: int, q: int) -> tuple[Array, Array]:
    """Return t variables of each subject, [N, S, Q], and their log density, [N, S].

    Points of low discrepancy, shifted at random for each subject (Cranley and Patterson 1976):
    subjects that shared points would share errors.
    """
    rng = np.random.default_rng(0)
    net = scipy.stats.qmc.Sobol(q, rng=rng).random(points)
    uniform = np.clip((net + rng.random((n, 1, q))) % 1.0, 1e-9, 1 - 1e-9)
    base = np.asarray(scipy.special.stdtrit(DEGREES_OF_FREEDOM, uniform))
    return base, scipy.stats.t.logpdf(base, DEGREES_OF_FREEDOM).sum(axis=2)


@dataclass(frozen=True)
class _Group:
    """The trials of a group, and how means and weights make what is expected of each subject."""

    data: ModelData
    unknowns: Unknowns
    design: GroupDesign
    expected: Array

    def priors(self) -> Array:
        """Return the law of the model's priors, of which every subject is drawn alone."""
        parameters, deviations = self.unknowns.parameters, self.design.deviations
        weights, turns = (
            np.zeros(len(self.design.regressors.names)),
            np.zeros(len(deviations.pairs)),
        )
        spread = np.log(parameters.sd[deviations.moved])
        return np.concatenate([parameters.mean, weights, spread, turns])

    def guess(self, own: Array) -> Array:
        """Return a first guess of the group, from estimates [N, Q] of what subjects have."""
        c = self.expected.shape[2]
        found = np.linalg.lstsq(self.expected.reshape(-1, c), own.ravel())[0]
        spread = (own - self.expected @ found).std(axis=0)
        spread = np.clip(spread, 0.5 * self.scale, 2.0 * self.scale)
        return np.concatenate([found, np.log(spread), np.zeros(len(self.design.deviations.pairs))])

    @property
    def scale(self) -> Array:
        """Scales of the half-normal priors of spreads, [Q]."""
        return self.design.deviations.prior_scale(self.unknowns.parameters)

    def modes(self, values: Array, start: Array) -> tuple[Array, Array]:
        """Return the mode [N, Q] of what each subject has under a group, and the curvature."""
        parameters, deviations = self.unknowns.parameters, self.design.deviations
        root = _parts(values, self.design)[2]
        law = root @ root.T
        precision, spread = np.linalg.inv(law), np.sqrt(np.diagonal(law))
        middle = self.expected @ values[: self.expected.shape[2]]

        def objective(some: Array, subjects: Any) -> tuple[Array, Array]:
            own = start.copy()
            own[subjects] = some
            theta = parameters.constrain(deviations.enter(own))
            total, gradient = self.unknowns.log_likelihood(self.data, theta)
            by_row = deviations.weight * (gradient * parameters.slope(theta))[:, deviations.moved]
            away = own - middle
            pull = away @ precision
            value = 0.5 * (away * pull).sum(axis=1) - deviations.summed(total)
            return value[subjects], (pull - deviations.summed(by_row.T).T)[subjects]

        every, far = np.arange(len(start)), np.full(len(spread), np.inf)
        mode, _ = minimise(objective, start, spread, centre=np.zeros(len(spread)), reach=far)
        mode = np.where(np.isfinite(mode), mode, middle)
        ends = [
            [objective(mode + sign * s, every)[1] for sign in (1.0, -1.0)]
            for s in STEP * np.diag(spread)
        ]
        curvature = np.stack(
            [
                (above - below) / (2 * STEP * s)
                for (above, below), s in zip(ends, spread, strict=True)
            ],
            axis=1,
        )
        covariance = inverted(0.5 * (curvature + np.swapaxes(curvature, 1, 2)))
        usable: NDArray[np.bool_] = np.asarray(np.isfinite(covariance).all(axis=(1, 2)))
        return mode, np.where(usable[:, None, None], covariance, law)

    def weighted(self, values: Array, start: Array, points: int) -> _Weighted:
        """Draw points around each subject's mode under a group."""
        mode, covariance = self.modes(values, start)
        base, log_density = _base(*mode.shape[:1], points, mode.shape[1])
        root = WIDER * np.linalg.cholesky(covariance)
        volume = np.log(np.diagonal(root, axis1=1, axis2=2)).sum(axis=1)
        own = mode[:, None] + base @ np.swapaxes(root, 1, 2)
        deviations = self.design.deviations
        rows = deviations.enter(np.ascontiguousarray(np.swapaxes(own, 0, 1)))
        likelihood = LikelihoodAtPoints(self.data, self.unknowns, points)(rows)
        total = deviations.summed(likelihood).T
        return _Weighted(self, own, finite(total - log_density + volume[:, None]))


@dataclass(frozen=True)
class _Weighted:
    """Points [N, S, Q] of what each subject has; log likelihood less their log density, [N, S]."""

    group: _Group
    own: Array
    fixed: Array

    def weights(self, values: Array) -> tuple[Array, Array, Array, Array]:
        """Return log marginal likelihoods [N], weights [N, S], deviations and the law's root."""
        root = _parts(values, self.group.design)[2]
        expected = self.group.expected
        away = self.own - (expected @ values[: expected.shape[2]])[:, None]
        standard = away @ np.linalg.inv(root).T
        log_weight = self.fixed - 0.5 * np.einsum("nsq,nsq->ns", standard, standard)
        most = log_weight.max(axis=1, keepdims=True)
        weight = np.exp(log_weight - most)
        total = weight.sum(axis=1, keepdims=True)
        each = (most + np.log(total))[:, 0] - np.log(np.diagonal(root)).sum()
        return each, weight / total, away, root

    def objective(self, values: Array) -> tuple[float, Array]:
        """Return the negative log posterior of a group, up to a constant, and its gradient."""
        design, parameters = self.group.design, self.group.unknowns.parameters
        deviations, moved = design.deviations, design.regressors.parameter
        each, weight, away, root = self.weights(values)
        weighted = weight[..., None] * away
        second = np.einsum("nsp,nsq->pq", weighted, away, optimize=True)
        covariance = root @ root.T
        precision = np.linalg.inv(covariance)
        slope = np.einsum("nqc,nq->c", self.group.expected, weighted.sum(axis=1) @ precision)
        about = 0.5 * (precision @ second @ precision - len(each) * precision)
        c, q = len(slope), len(root)
        spread, turn = np.exp(values[c : c + q]), values[c + q :]
        steps = 1e-5 * np.eye(len(turn))
        ends = spread[:, None] * deviations.roots(np.concatenate([turn + steps, turn - steps]))
        above, below = np.split(ends @ np.swapaxes(ends, 1, 2), 2)
        of_turn = np.einsum("pij,ij->p", above - below, about) / 2e-5
        # Priors of means and weights, of spreads (half-normal, by their logarithm), of turns.
        sd = WEAK * np.append(parameters.sd, design.regressors.prior_sd(parameters))
        standard = (values[:c] - np.append(parameters.mean, np.zeros(len(moved)))) / sd
        relative, exponents = spread / self.group.scale, deviations.exponents
        total = each.sum() - 0.5 * (standard @ standard)
        total += (np.log(spread) - 0.5 * relative**2).sum()
        total -= 2.0 * exponents @ np.log(np.cosh(turn))
        of_spread = 2.0 * np.diagonal(about @ covariance) + 1.0 - relative**2
        of_turn = of_turn - 2.0 * exponents * np.tanh(turn)
        return -float(total), -np.concatenate([slope - standard / sd, of_spread, of_turn])

    def optimum(self, start: Array) -> tuple[Array, bool]:
        """Return the best group not far from another, and whether none at that distance is best.

        Points tell little of groups that lie elsewhere than the one they were drawn for.
        """
        design, c = self.group.design, self.group.expected.shape[2]
        spread = np.exp(start[c : c + design.deviations.n_parameters])
        reach = _units(design, len(start))
        reach[:c] *= np.append(spread, spread[design.regressors.parameter])

        def shifted(step: Array) -> tuple[float, Array]:
            value, slope = self.objective(start + reach * step)
            return value, reach * slope

        with threadpool_limits(1):  # threads of BLAS would wait for each other over tiny matrices
            found = scipy.optimize.minimize(
                shifted, np.zeros(len(start)), jac=True, method="L-BFGS-B",
                bounds=[(-FARTHEST, FARTHEST)] * len(start), options={"ftol": 1e-13, "gtol": 1e-7},
            )  # fmt: skip
        return start + reach * found.x, bool((np.abs(found.x) < FARTHEST * (1 - 1e-6)).all())

    def information(self, values: Array, units: Array) -> Array:
        """Return the observed information of a group's values in these units."""
        steps = STEP * np.diag(units)
        ends = [(self.objective(values + s)[1], self.objective(values - s)[1]) for s in steps]
        curvature = np.array([above - below for above, below in ends]) * units / (2 * STEP)
        return 0.5 * (curvature + curvature.T)

    def worth(self, values: Array) -> tuple[Array, Array]:
        """Return how many points those of each subject are worth, and means of what it has."""
        _, weight, _, _ = self.weights(values)
        mean = np.einsum("ns,nsq->nq", weight, self.own)
        return 1.0 / (weight**2).sum(axis=1), mean
