"""Point estimates for one subject or for thousands at once, from exact gradients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from knownminds.agents import Model
from knownminds.agents.nesting import nestings_of
from knownminds.agents.parameters import Array, Parameters
from knownminds.environments import Trials
from knownminds.environments.later import pandas as pd
from knownminds.environments.record.tabled_result import TabledResult
from knownminds.inference.subject_table import subject_table

from .batches import in_batches
from .model_data import ModelData, Unknowns
from .nested_starts import embedded, reach_of
from .quasi_newton import minimise

STATUSES = ("ok", "boundary", "flat", "failed")

STARTS = 5

SUBJECTS_PER_BATCH = 512  # 128 spends its time in Python, 1,000 leave the second core idle
BOUNDARY = 5.0  # an estimate further out than this is called a boundary estimate
FLAT_POSTERIOR = 0.98  # posterior sd above this share of the prior sd: nothing was learned
FLAT_LIKELIHOOD = 1e-3  # least curvature of the log-likelihood per squared prior sd
SAME_END = 1e-3  # starts whose objective ends this close to the best agree with it
UNFINISHED = 1e-6  # a point from which a Newton step promises more than this is no optimum
KINK = 1e-6  # of the prior sd, to either side of a point that may lie on a kink


@dataclass(frozen=True)
class PointFit(TabledResult):
    """Point estimates of N subjects, with everything that one must know before believing them.

    Parameters
    ----------
    model, method : Name of the model; "mle" or "map".
    subjects, parameters : Names, in the order of the rows and columns below.
    z, covariance : Estimates [N, K] and inverse of the observed information [N, K, K] on the
        unconstrained scale; for "map" the prior's information is included.
    log_likelihood, log_posterior : At the estimate, [N]; for "mle" they are the same.
    status : "ok"; "boundary": more than 5 prior sds from the prior mean (the data ask for an
        infinite value); "flat": the data say next to nothing about a parameter; "failed": no
        optimum.
    message : Which parameters, in words; empty where the status is "ok".
    agreement : Share of the starts that ended at the best value found, [N].
    n_trials : Trials with a response, [N].
    """

    model: str
    method: str
    subjects: tuple[str, ...]
    parameters: Parameters
    z: Array
    covariance: Array
    log_likelihood: Array
    log_posterior: Array
    status: tuple[str, ...]
    message: tuple[str, ...]
    agreement: Array
    n_trials: NDArray[np.int64]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the estimated parameters."""
        return self.parameters.names

    @property
    def estimate(self) -> Array:
        """Estimates on the natural scale, [N, K]."""
        return self.parameters.constrain(self.z)

    @property
    def standard_error(self) -> Array:
        """Standard errors on the unconstrained scale, [N, K]; NaN where there is no curvature."""
        variance = np.diagonal(self.covariance, axis1=1, axis2=2)
        return np.sqrt(np.where(variance > 0, variance, np.nan))

    def interval(self, mass: float = 0.9) -> tuple[Array, Array]:
        """Central intervals of the normal approximation on the z scale, mapped to natural."""
        half = scipy.stats.norm.ppf(0.5 + mass / 2) * self.standard_error
        return self.parameters.constrain(self.z - half), self.parameters.constrain(self.z + half)

    @property
    def aic(self) -> Array:
        """Akaike's criterion, [N]: 2 K - 2 log L, smaller is better (Akaike 1974)."""
        return 2.0 * len(self.names) - 2.0 * self.log_likelihood

    @property
    def bic(self) -> Array:
        """Schwarz's criterion, [N]: K log n - 2 log L, smaller is better (Schwarz 1978)."""
        return len(self.names) * np.log(np.maximum(self.n_trials, 1)) - 2.0 * self.log_likelihood

    def counts(self) -> dict[str, int]:
        """How many subjects have each status."""
        return {status: self.status.count(status) for status in STATUSES}

    def to_frame(self, mass: float = 0.9) -> pd.DataFrame:
        """One row per subject: estimates, interval ends, status, criteria."""
        more = {
            "n_trials": self.n_trials,
            "log_likelihood": self.log_likelihood,
            "aic": self.aic,
            "bic": self.bic,
            "agreement": self.agreement,
            "status": self.status,
            "message": self.message,
        }
        return subject_table(self.subjects, self.names, self.estimate, self.interval(mass), more)


def maximum_likelihood(
    model: type[Model],
    trials: Trials | ModelData,
    *,
    fixed: Mapping[str, float] | None = None,
    lapse: bool = False,
    starts: int = STARTS,
    workers: int | None = None,
    inner: Mapping[str, PointFit] | None = None,
) -> PointFit:
    """Fit each subject's most likely parameters.

    Likelihoods of people who never err have no maximum: such estimates run away and are
    returned with the status "boundary". `maximum_a_posteriori` is the better default.

    Parameters
    ----------
    fixed : Values of parameters that are fixed instead of estimated.
    lapse : Estimate a lapse rate as well.
    starts : Starting points per subject: the prior mean and a fixed low-discrepancy set around it.
    workers : Threads; None for one per core.
    inner : Fits of models that lie within this one to the same subjects, by name, with the same
        fixed values. The search also begins at these fits, instead of fitting these models first.
    """
    data = trials if isinstance(trials, ModelData) else ModelData.read(model, trials)
    return fit_points(data, Unknowns.of(model, fixed, lapse), "mle", starts, workers, inner)


def maximum_a_posteriori(
    model: type[Model],
    trials: Trials | ModelData,
    *,
    fixed: Mapping[str, float] | None = None,
    lapse: bool = False,
    starts: int = STARTS,
    workers: int | None = None,
) -> PointFit:
    """Fit each subject's most probable parameters under the model's priors.

    The maximum is that of the posterior density on the unconstrained scale. Parameters are as in
    `maximum_likelihood`.
    """
    data = trials if isinstance(trials, ModelData) else ModelData.read(model, trials)
    return fit_points(data, Unknowns.of(model, fixed, lapse), "map", starts, workers)


def fit_points(
    data: ModelData,
    unknowns: Unknowns,
    method: str,
    starts: int,
    workers: int | None,
    inner: Mapping[str, PointFit] | None = None,
) -> PointFit:
    """Fit each subject by "mle", or by "map" under the priors of the unknowns."""
    if starts < 1:
        raise ValueError(f"A fit needs at least one start; got starts={starts}.")

    def fit_batch(subjects: NDArray[np.int64]) -> PointFit:
        known = {name: fit.estimate[subjects] for name, fit in (inner or {}).items()}
        return _fit_batch(data.repeat(subjects), unknowns, method, starts, known)

    return joined(in_batches(fit_batch, len(data), SUBJECTS_PER_BATCH, workers))


def joined(fits: Sequence[PointFit]) -> PointFit:
    """Put fits of the same model to several subjects together."""
    first = fits[0]
    whole: dict[str, Any] = {}
    for field in fields(PointFit):
        parts = [getattr(fit, field.name) for fit in fits]
        if isinstance(parts[0], np.ndarray):
            whole[field.name] = np.concatenate(parts)
        elif field.name in ("subjects", "status", "message"):
            whole[field.name] = sum(parts, ())
        else:
            whole[field.name] = getattr(first, field.name)
    return PointFit(**whole)


class NegativeLogPosterior:
    """The objective of all subjects and starts; it drops the data of those that have arrived."""

    def __init__(self, data: ModelData, unknowns: Unknowns, with_prior: bool, starts: int):
        self.unknowns, self.with_prior = unknowns, with_prior
        self.source = data
        self.subject = np.tile(np.arange(len(data)), starts)
        self.rows = np.arange(len(self.subject))
        self.data = data.repeat(self.subject)

    def __call__(self, z: Array, rows: NDArray[np.int64]) -> tuple[Array, Array]:
        """Return values and gradients of the problems that are still searched."""
        if len(rows) < 0.7 * len(self.rows):
            self.rows = rows
            self.data = self.source.repeat(self.subject[rows])
        if len(rows) == len(self.rows):
            return self.evaluate(self.data, z)
        position = np.searchsorted(self.rows, rows)
        full = np.broadcast_to(self.unknowns.parameters.mean, (len(self.rows), z.shape[1])).copy()
        full[position] = z
        value, gradient = self.evaluate(self.data, full)
        return value[position], gradient[position]

    def evaluate(self, data: ModelData, z: Array) -> tuple[Array, Array]:
        """Return the negative log posterior [M] at z[M, K], and its gradient."""
        parameters = self.unknowns.parameters
        theta = parameters.constrain(z)
        total, gradient = self.unknowns.log_likelihood(data, theta)
        gradient = gradient * parameters.slope(theta)
        if self.with_prior:
            prior, slope = parameters.log_prior(z)
            total, gradient = total + prior, gradient + slope
        return -total, -gradient


def _starting_points(
    parameters: Parameters, starts: int, named: Sequence[Mapping[str, float]]
) -> Array:
    """Return the prior mean, quantiles of the prior at points of a Halton sequence, and named
    points.

    Values of parameters that are not estimated are ignored. A named point without any other value
    is left out.
    """
    if len(parameters) == 0:
        return np.zeros((1, 0))
    points = scipy.stats.qmc.Halton(len(parameters), scramble=False).random(starts)[1:]
    spread = parameters.mean + parameters.sd * scipy.stats.norm.ppf(points)
    middle = parameters.constrain(parameters.mean)
    more = [
        [values.get(name, usual) for name, usual in zip(parameters.names, middle, strict=True)]
        for values in named
        if set(values) & set(parameters.names)
    ]
    wanted = parameters.unconstrain(np.unique(more, axis=0)) if more else spread[:0]
    return np.concatenate([parameters.mean[None], spread, wanted])


def _nested_points(
    data: ModelData, unknowns: Unknowns, method: str, starts: int, known: Mapping[str, Array]
) -> list[Array]:
    """Fit the models that lie within this one, and return their estimates as further starts.

    Searches without these starts have ended below the inner models, if answers are few, alike or at
    the ends of the scale. This is for "mle" alone: under priors, an outer model may well be less
    probable.
    """
    points = []
    for nesting in nestings_of(data.model) if method == "mle" else ():
        names = nesting.inner.parameters.names
        fixed = {k: v for k, v in unknowns.held(data.model).items() if k in names}
        inner = Unknowns.of(nesting.inner, fixed, unknowns.lapse)
        estimate = known.get(nesting.inner.name)
        if estimate is None:
            fit = _fit_batch(data.read_by(nesting.inner), inner, method, starts, known)
            estimate = fit.estimate
        points.append(embedded(nesting, unknowns, inner.whole(estimate))[None])
    return points


def _fit_batch(
    data: ModelData, unknowns: Unknowns, method: str, starts: int, known: Mapping[str, Array]
) -> PointFit:
    parameters, n, k = unknowns.parameters, len(data), len(unknowns.parameters)
    reach = reach_of(data.model, unknowns)
    points = _starting_points(parameters, starts, data.model.starts)
    points = np.repeat(points[:, None], n, axis=1)  # [starts, N, K]
    points = np.concatenate([points, *_nested_points(data, unknowns, method, starts, known)])
    objective = NegativeLogPosterior(data, unknowns, method == "map", len(points))
    reached, values = minimise(
        objective,
        points.reshape(len(points) * n, k),
        parameters.sd,
        centre=parameters.mean,
        reach=reach,
    )
    value = np.where(np.isfinite(values), values, np.inf).reshape(len(points), n)
    best = value.argmin(axis=0)
    agreement = (value <= value.min(axis=0) + SAME_END).mean(axis=0)
    z = reached.reshape(len(points), n, k)[best, np.arange(n)]

    return judged(objective, data, z, agreement)


@dataclass(frozen=True)
class Optimum:
    """The ends of searches: z [N, K], the value [N] of the minimised function, its shape there.

    Parameters
    ----------
    precision, covariance : The objective's curvature and its inverse, [N, K, K].
    promise : By how much a Newton step would still lower the objective, [N].
    """

    z: Array
    value: Array
    precision: Array
    covariance: Array
    promise: Array


def judged(
    objective: NegativeLogPosterior, data: ModelData, z: Array, agreement: Array
) -> PointFit:
    """Polish estimates z [N, K], compute the curvature there, and name their status."""
    parameters = objective.unknowns.parameters
    reach = reach_of(data.model, objective.unknowns)
    z, value, gradient, precision = _polish(objective, data, z, reach)
    with np.errstate(all="ignore"):
        covariance = inverted(precision)
        step = np.einsum("nij,nj->ni", covariance, gradient)
        # The gain that a Newton step promises, without coordinates at the end of the reach.
        free = np.abs(z - parameters.mean) < reach * (1 - 1e-9)
        promise = np.where(free, np.abs(step * gradient), 0.0).sum(axis=1)
    doubtful = np.flatnonzero(~(promise <= UNFINISHED))
    if len(doubtful):
        kinks = _kinks(objective, data.repeat(doubtful), z[doubtful])
        with np.errstate(all="ignore"):
            rest = np.where(kinks, 0.0, gradient[doubtful])
            step = np.einsum("nij,nj->ni", covariance[doubtful], rest)
            left = np.where(free[doubtful], np.abs(step * rest), 0.0).sum(axis=1)
        promise[doubtful] = left
    method = "map" if objective.with_prior else "mle"
    optimum = Optimum(z, value, precision, covariance, promise)
    status, message = statuses(parameters, method, optimum, data.n_trials)
    prior = parameters.log_prior(z)[0] if objective.with_prior else 0.0
    return PointFit(
        model=data.model.name,
        method=method,
        subjects=data.subjects,
        parameters=parameters,
        z=z,
        covariance=covariance,
        log_likelihood=-value - prior,
        log_posterior=-value,
        status=status,
        message=message,
        agreement=agreement,
        n_trials=data.n_trials,
    )


def _polish(
    objective: NegativeLogPosterior, data: ModelData, z: Array, reach: Array
) -> tuple[Array, Array, Array, Array]:
    """Take Newton steps with the observed information while they help; return the curvature."""
    parameters = objective.unknowns.parameters
    value, gradient = objective.evaluate(data, z)
    precision = _curvature(objective, data, z)
    for _ in range(2):
        with np.errstate(all="ignore"):
            step = np.einsum("nij,nj->ni", inverted(precision), gradient)
        aim = np.clip(z - np.nan_to_num(step), parameters.mean - reach, parameters.mean + reach)
        new_value, new_gradient = objective.evaluate(data, aim)
        better = new_value < value
        z = np.where(better[:, None], aim, z)
        gradient = np.where(better[:, None], new_gradient, gradient)
        value = np.where(better, new_value, value)
    return z, value, gradient, precision


def _curvature(objective: NegativeLogPosterior, data: ModelData, z: Array) -> Array:
    """Return the observed information [N, K, K], by central differences of the exact gradient."""
    sd = objective.unknowns.parameters.sd
    n, k = z.shape
    precision = np.empty((n, k, k))
    for i in range(k):
        # The error of a central difference is h**2 f''' / 6 + rounding / h: about 1e-8 in all.
        shift = np.zeros(k)
        shift[i] = 1e-4 * sd[i]
        above = objective.evaluate(data, z + shift)[1]
        below = objective.evaluate(data, z - shift)[1]
        precision[:, i] = (above - below) / (2 * shift[i])
    return 0.5 * (precision + precision.transpose(0, 2, 1))


def _kinks(objective: NegativeLogPosterior, data: ModelData, z: Array) -> NDArray[np.bool_]:
    """Find the coordinates [N, K] in which the objective rises to both sides at once.

    If a choice follows the best of several values (the better of two aliens in a plan), the
    likelihood has kinks. An optimum may lie on a kink: there the gradient is not 0, but changes
    sign.
    """
    sd = objective.unknowns.parameters.sd
    mask = np.zeros(z.shape, dtype=bool)
    for i in range(z.shape[1]):
        shift = np.zeros(z.shape[1])
        shift[i] = KINK * sd[i]
        above = objective.evaluate(data, z + shift)[1][:, i]
        below = objective.evaluate(data, z - shift)[1][:, i]
        mask[:, i] = (above > 0) & (below < 0)
    return mask


def inverted(matrices: Array) -> Array:
    """Invert matrices [N, K, K]; NaN for the matrices that are not positive definite."""
    inverse = np.full_like(matrices, np.nan)
    usable: NDArray[np.bool_] = np.asarray(np.isfinite(matrices).all(axis=(1, 2)))
    if matrices.shape[1] and usable.any():
        values = np.linalg.eigvalsh(matrices[usable])
        # An eigenvalue below the last digit of the largest one is positive only by rounding.
        usable[usable] = values[:, 0] > 1e-16 * np.maximum(values[:, -1], 0.0)
        # `inv` works by elimination, which may meet a 0 even if the eigenvalues are positive.
        usable[usable] = np.linalg.slogdet(matrices[usable])[0] != 0
        inverse[usable] = np.linalg.inv(matrices[usable])
    return inverse


def statuses(
    parameters: Parameters, method: str, optimum: Optimum, n_trials: NDArray[np.int64]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Name the status of each fit, the worst that applies, and say why."""
    names = np.array(parameters.names, dtype=object)
    n = len(optimum.z)
    status = np.full(n, "ok", dtype=object)
    message = np.full(n, "", dtype=object)

    def mark(which: NDArray[np.bool_], name: str, why: NDArray[np.object_]) -> None:
        status[which] = name
        message[which] = why[which]

    def listed(mask: NDArray[np.bool_], sentence: str) -> NDArray[np.object_]:
        sentences = [sentence.format(", ".join(names[row])) if row.any() else "" for row in mask]
        return np.array(sentences, dtype=object)

    if len(names):
        scaled = optimum.precision * parameters.sd[:, None] * parameters.sd
        if method == "map":
            share = np.sqrt(np.diagonal(optimum.covariance, axis1=1, axis2=2)) / parameters.sd
            flat = ~(share <= FLAT_POSTERIOR)
            why = "the trials say next to nothing about {}: the prior speaks"
        else:
            finite = np.where(np.isfinite(scaled), scaled, 0.0)
            weakest, direction = (a[..., 0] for a in np.linalg.eigh(finite))
            flat = (np.abs(direction) > 0.5) & (weakest < FLAT_LIKELIHOOD)[:, None]
            why = "the likelihood is flat along {}"
        mark(np.any(flat, axis=1), "flat", listed(flat, why))
        far: NDArray[np.bool_] = np.abs(optimum.z - parameters.mean) > BOUNDARY * parameters.sd
        mark(np.any(far, axis=1), "boundary", listed(far, "{} runs to the end of its support"))
        unfinished: NDArray[np.bool_] = ~(optimum.promise <= UNFINISHED) & (status == "ok")
        mark(unfinished, "failed", np.full(n, "no start reached an optimum", dtype=object))
    silent: NDArray[np.bool_] = n_trials < 1
    mark(silent, "failed", np.full(n, "no trial has a response", dtype=object))
    lost: NDArray[np.bool_] = ~np.isfinite(optimum.value)
    mark(lost, "failed", np.full(n, "the likelihood is not finite", dtype=object))
    return tuple(status.tolist()), tuple(message.tolist())
