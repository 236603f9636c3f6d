"""All observers of magnitudes fitted to thousands of participants at once.

The linear and the static Bayesian observers are one regression, solved from sums over the trials of
a window: by least squares, and with answers at an end by Newton's method in the coordinates (slope
/ sigma, intercepts / sigma, 1 / sigma), in which the likelihood has a single maximum (Olsen 1978).
Where that lies outside a model's parameters, and for the Kalman observers, the maximum is searched
by gradients, from where least squares is best on a grid of q/r and P0/r.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from math import erfc, exp, log, pi, sqrt
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from knownminds.agents import AGENTS, Agent, Parameters
from knownminds.agents.compiled import compiled
from knownminds.agents.magnitudes.observers import (
    EPSILON,
    KalmanObserver,
    LinearObserver,
    MagnitudeObserver,
    StaticBayesObserver,
)
from knownminds.agents.parameters import Array
from knownminds.environments import Trials, unknown
from knownminds.environments.later import pandas as pd
from knownminds.environments.record.result import Result, records
from knownminds.inference.fits.batches import in_batches
from knownminds.inference.fits.model_data import ModelData, Unknowns
from knownminds.inference.fits.nested_starts import reach_of
from knownminds.inference.fits.point import (
    SAME_END,
    SUBJECTS_PER_BATCH,
    NegativeLogPosterior,
    Optimum,
    PointFit,
    inverted,
    joined,
    judged,
    statuses,
)
from knownminds.inference.fits.quasi_newton import minimise

Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]
# Positions of subjects -> their estimates z [n, K], and the share of starts that agree, [n].
Find = Callable[[Integers], tuple[Array, Array]]

OBSERVERS = tuple(
    f"{family}{output}{scale}"
    for family, several in (
        ("linear_observer", ("",)),
        ("static_bayes_observer", ("", "_gain", "_affine")),
        ("kalman_observer", ("", "_gain", "_affine")),
    )
    for output in several
    for scale in ("", "_log")
)

HALF_LOG_2_PI = 0.5 * log(2.0 * pi)
ROOT_2 = sqrt(2.0)
TINY = 1e-300
FAR = -35.0  # below it the normal distribution's tail is a series
MOST_STEPS = 60
ARRIVED = 1e-14  # of the log-likelihood, which a Newton step still promises
SHARPEST = 1e6  # 1 / sigma beyond which answers are taken as free of noise
INSIDE = 0.999  # of the reach: closed forms further out are searched by gradients instead
TOLERANCE = 1e-6  # of a search, which Newton steps polish
MOST_CLIMBS, CLIMBED = 100, 1e-7  # steps of a climb; the gain of the log-likelihood that ends it
# Where least squares is tried for the Kalman observers, logarithms.
GRID = tuple(product((-6.0, -4.0, -2.5, -1.0, 0.0, 1.5, 4.0), (-3.0, 0.0, 3.0)))
RIDGES = np.linspace(-6.0, 6.0, 121)  # prior sds of w_prior at which a ridge is looked at


@dataclass(frozen=True)
class ObserverFits(Result, Mapping[str, PointFit]):
    """The most likely parameters of several observers for the same N participants, by model.

    Parameters
    ----------
    fits
        By model. "flat" means that the answers cannot tell the parameters (gain and offset of
        the static observers never); their log-likelihood and AIC are what they are.
    """

    fits: Mapping[str, PointFit]

    def __getitem__(self, name: str) -> PointFit:
        """Return the fit of a model."""
        if name not in self.fits:
            raise ValueError(unknown("fitted observer", name, tuple(self.fits)))
        return self.fits[name]

    def __iter__(self) -> Iterator[str]:
        """Go through the names of the models."""
        return iter(self.fits)

    def __len__(self) -> int:
        """Count the models."""
        return len(self.fits)

    @property
    def subjects(self) -> tuple[str, ...]:
        """Names of the participants."""
        return next(iter(self.fits.values())).subjects

    @cached_property
    def aic(self) -> Array:
        """Akaike's criterion, [N, M]; NaN where a fit failed.

        Densities are per unit of the task in all models, so that those on a log scale (whose
        Jacobian is counted) stand beside the others.
        """
        return np.column_stack(
            [
                np.where([s == "failed" for s in fit.status], np.nan, fit.aic)
                for fit in self.fits.values()
            ]
        )

    @cached_property
    def best(self) -> tuple[str, ...]:
        """Name of the model with the smallest AIC, [N]; empty where all fits failed."""
        names, table = tuple(self.fits), np.where(np.isnan(self.aic), np.inf, self.aic)
        first = table.argmin(axis=1)
        found = np.isfinite(table.min(axis=1))
        return tuple(names[k] if f else "" for k, f in zip(first, found, strict=True))

    def to_frame(self) -> pd.DataFrame:
        """One row per participant and model."""
        least = np.nanmin(np.where(np.isnan(self.aic), np.inf, self.aic), axis=1)
        parts = []
        for k, (name, fit) in enumerate(self.fits.items()):
            values = [
                dict(zip(fit.names, row, strict=True)) for row in fit.estimate.round(12).tolist()
            ]
            parts.append(
                pd.DataFrame(
                    {
                        "subject": fit.subjects,
                        "model": name,
                        "log_likelihood": fit.log_likelihood,
                        "n_parameters": len(fit.names),
                        "aic": self.aic[:, k],
                        "delta_aic": self.aic[:, k] - least,
                        "bic": fit.bic,
                        "n_trials": fit.n_trials,
                        "status": fit.status,
                        "message": fit.message,
                        "parameters": values,
                    }
                )
            )
        return pd.concat(parts, ignore_index=True)

    def content(self) -> Any:
        """What `to_json` holds."""
        return records(self.to_frame())

    def __str__(self) -> str:
        """One row per model: how often it is the best, how far off it is, statuses."""
        least = np.nanmin(np.where(np.isnan(self.aic), np.inf, self.aic), axis=1)
        lines = [
            f"observers fitted to {len(self.subjects)} participants (maximum likelihood)",
            f"{'model':<34}{'parameters':>11}{'best by AIC':>13}{'median dAIC':>13}  status",
        ]
        for k, (name, fit) in enumerate(self.fits.items()):
            off = self.aic[:, k] - least
            off = off[np.isfinite(off)]
            middle = f"{np.median(off):.1f}" if len(off) else "-"
            told = ", ".join(f"{n} {status}" for status, n in fit.counts().items() if n)
            lines.append(
                f"{name:<34}{len(fit.names):>11}{self.best.count(name):>13}{middle:>13}  {told}"
            )
        return "\n".join(lines)


def fit_observers(
    trials: Trials | ModelData,
    models: Sequence[str] = OBSERVERS,
    *,
    workers: int | None = None,
) -> ObserverFits:
    """Fit observers of magnitudes by maximum likelihood, each to each subject.

    The likelihoods, the search's bounds and the statuses are those of `maximum_likelihood`, which
    finds the same maxima more slowly. Of the ridge of equally likely values of the static observers
    with a gain the point with the greatest prior density is returned.

    Parameters
    ----------
    models
        Names of linear, static Bayesian and Kalman observers.
    workers
        Threads; None for one per core.

    Raises
    ------
    ValueError
        If a model is unknown or another kind of model, or the trials lack a column.
    """
    known = {name: model for name, model in AGENTS.items() if _is_fitted(model)}
    for name in models:
        if name not in known:
            raise ValueError(unknown("observer of magnitudes", name, tuple(known)))
    if not models:
        raise ValueError("A comparison needs at least one observer; got none.")
    chosen = [known[name] for name in models]
    straight = [model for model in chosen if not issubclass(model, KalmanObserver)]
    kalman = [model for model in chosen if issubclass(model, KalmanObserver)]
    fits: dict[str, PointFit] = {}
    if straight:
        fits |= _straight(straight, _read(straight, trials), workers)
    if kalman:
        fits |= _kalman(kalman, _read(kalman, trials), workers)
    return ObserverFits({name: fits[name] for name in models})


def _is_fitted(model: type[Agent]) -> bool:
    return issubclass(model, LinearObserver | StaticBayesObserver | KalmanObserver)


def _read(models: Sequence[type[Agent]], trials: Trials | ModelData) -> ModelData:
    """Return the trials as read by the model that reads most columns."""
    model = max(models, key=lambda model: len(model.columns))
    if not isinstance(trials, ModelData):
        return ModelData.read(model, trials)
    if trials.model.separate != model.separate or not {*model.columns} <= {*trials.model.columns}:
        raise ValueError(
            f"{trials.model.name} reads trials otherwise than {model.name} does: in other pieces, "
            "or fewer columns. Pass the trials instead."
        )
    return trials


def _columns(data: ModelData) -> tuple[Array, ...]:
    """Return response, window, value, unit and ceiling of all trials."""
    named = dict(zip(data.model.columns, data.flat, strict=True))
    names = ("response", "window", "value", "unit", "ceiling")
    if "window" not in named:  # a straight line is the same in all windows
        named["window"] = np.zeros_like(named["value"])
    return tuple(named[name] for name in names)


# ---- straight lines


@njit(error_model="numpy")
def _copy(into, values):  # type: ignore[no-untyped-def]
    """Number by number: the error message of an assignment to slices takes seconds to compile."""
    for k in range(len(into)):
        into[k] = values[k]


@compiled()
def _tail(z):  # type: ignore[no-untyped-def]
    """Return the logarithm of the normal distribution function at z, and its slope."""
    if z > FAR:
        share = 0.5 * erfc(-z / ROOT_2)
        return log(share), exp(-0.5 * z * z - HALF_LOG_2_PI) / share
    r = 1.0 / (z * z)
    series = 1.0 - r * (1.0 - r * (3.0 - r * (15.0 - 105.0 * r)))
    return -0.5 * z * z - log(-z) - HALF_LOG_2_PI + log(series), -z / series


@compiled()
def _least_squares(first, last, own, columns, point, held):  # type: ignore[no-untyped-def]
    """Fill in slope / sigma, intercepts / sigma, 1 / sigma of the answers that are not at an end.

    Says whether they can be a beginning: all windows have answers, which have noise.
    """
    window, count, x, y, xx, xy, yy, _, end = columns
    s_xx, s_xy, s_yy, n, held[:] = 0.0, 0.0, 0.0, 0.0, 0.0
    for pass_ in range(2):
        for k in range(own):
            n_k, mean_x, mean_y = 0.0, 0.0, 0.0
            for p in range(first, last):
                if min(int(window[p]), own - 1) == k:
                    held[k] += 1.0
                    if end[p] == 0.0:
                        n_k += count[p]
                        mean_x += count[p] * x[p]
                        mean_y += count[p] * y[p]
            if n_k > 0.0:
                mean_x, mean_y = mean_x / n_k, mean_y / n_k
                if pass_ == 0:
                    n += n_k
                    for p in range(first, last):
                        if min(int(window[p]), own - 1) == k and end[p] == 0.0:
                            off_x, off_y = x[p] - mean_x, y[p] - mean_y
                            s_xx += xx[p] + count[p] * off_x * off_x
                            s_xy += xy[p] + count[p] * off_x * off_y
                            s_yy += yy[p] + count[p] * off_y * off_y
            slope = s_xy / s_xx if s_xx > 0.0 else 1.0
            if pass_ == 1:
                point[1 + k] = mean_y - slope * mean_x
        if pass_ == 0:
            point[0] = s_xy / s_xx if s_xx > 0.0 else 1.0
    rest = s_yy - point[0] * s_xy
    sharp = sqrt(n / rest) if n > 2.0 and rest > 0.0 else 10.0
    sharp = min(sharp, SHARPEST)
    for k in range(own + 1):
        point[k] *= sharp
    point[own + 1] = sharp
    missing = False
    for k in range(own):
        missing = missing or held[k] == 0.0
    return not missing and sharp < SHARPEST and s_xx > 0.0


@compiled()
def _line_terms(at, first, last, own, columns, gradient, matrix):  # type: ignore[no-untyped-def]
    """Return the log-likelihood of lines; fill in its gradient and minus its second derivatives."""
    window, count, x, y, xx, xy, yy, constant, end = columns
    total, top, slope, h = 0.0, own + 1, at[0], at[own + 1]
    gradient[:] = 0.0
    matrix[:] = 0.0
    for p in range(first, last):
        k, n = 1 + min(int(window[p]), own - 1), count[p]
        off = h * y[p] - at[k] - slope * x[p]
        if end[p] == 0.0:
            squares = h * h * yy[p] - 2.0 * h * slope * xy[p] + slope * slope * xx[p]
            total += n * (log(h) - HALF_LOG_2_PI) + constant[p]
            total -= 0.5 * (squares + n * off * off)
            gradient[0] += n * off * x[p] + h * xy[p] - slope * xx[p]
            gradient[k] += n * off
            gradient[top] += n / h - n * off * y[p] - h * yy[p] + slope * xy[p]
            matrix[0, 0] += n * x[p] * x[p] + xx[p]
            matrix[0, k] += n * x[p]
            matrix[k, k] += n
            matrix[0, top] -= n * x[p] * y[p] + xy[p]
            matrix[k, top] -= n * y[p]
            matrix[top, top] += n / (h * h) + n * y[p] * y[p] + yy[p]
        else:
            z, side = -end[p] * off, end[p]
            log_share, rate = _tail(z)
            total += log_share
            bend = max(rate * (z + rate), 0.0)
            gradient[0] += rate * side * x[p]
            gradient[k] += rate * side
            gradient[top] -= rate * side * y[p]
            matrix[0, 0] += bend * x[p] * x[p]
            matrix[0, k] += bend * x[p]
            matrix[k, k] += bend
            matrix[0, top] -= bend * x[p] * y[p]
            matrix[k, top] -= bend * y[p]
            matrix[top, top] += bend * y[p] * y[p]
    return total


@compiled()
def _newton_step(curvature, gradient, root, step):  # type: ignore[no-untyped-def]
    """Fill in Newton's step by Cholesky's decomposition; return its promise, -1 without one."""
    d = len(gradient)
    for j in range(d):
        for k in range(j + 1):
            value = curvature[j, k]
            for m in range(k):
                value -= root[j, m] * root[k, m]
            if j == k:
                if not value > 1e-12 * curvature[j, j]:
                    return -1.0
                root[j, j] = sqrt(value)
            else:
                root[j, k] = value / root[k, k]
    promise = 0.0
    for j in range(d):
        value = gradient[j]
        for m in range(j):
            value -= root[j, m] * step[m]
        step[j] = value / root[j, j]
    for j in range(d):
        promise += step[j] * step[j]
    for j in range(d - 1, -1, -1):
        value = step[j]
        for m in range(j + 1, d):
            value -= root[m, j] * step[m]
        step[j] = value / root[j, j]
    return promise


@compiled()
def _fit_lines(begin, own, columns):  # type: ignore[no-untyped-def]
    """Fit a slope, `own` (1 or 3) intercepts and 1 / sigma to the places of each subject.

    Returns them all divided by sigma, [N, own + 2], the log-likelihood, minus its second
    derivatives [N, own + 2, own + 2], and whether a maximum was found.
    """
    n_subjects, d = len(begin) - 1, own + 2
    point, curvature = np.zeros((n_subjects, d)), np.zeros((n_subjects, d, d))
    best, found = np.full(n_subjects, -np.inf), np.zeros(n_subjects, dtype=np.bool_)
    gradient, step, trial = np.empty(d), np.empty(d), np.empty(d)
    matrix, root, held = np.empty((d, d)), np.empty((d, d)), np.empty(own)
    for s in range(n_subjects):
        if not _least_squares(begin[s], begin[s + 1], own, columns, point[s], held):
            continue
        _copy(trial, point[s])
        size = 1.0
        for _ in range(MOST_STEPS):
            total, usable = 0.0, trial[d - 1] > 0.0
            if usable:
                total = _line_terms(trial, begin[s], begin[s + 1], own, columns, gradient, matrix)
            if not usable or not total >= best[s] - 1e-12 * abs(best[s]):
                size *= 0.5
                if size < 1e-9:
                    break
                for k in range(d):
                    trial[k] = point[s, k] + size * step[k]
                continue
            best[s] = total
            for j in range(d):
                point[s, j] = trial[j]
                for k in range(j, d):
                    curvature[s, j, k] = curvature[s, k, j] = matrix[j, k]
            promise = _newton_step(curvature[s], gradient, root, step)
            if promise < 0.0:
                break
            if promise < ARRIVED * (1.0 + abs(total)):
                found[s] = True
                break
            size = 1.0
            for k in range(d):
                trial[k] = point[s, k] + step[k]
    return point, best, curvature, found


@dataclass(frozen=True)
class _Lines:
    """Lines fitted to N subjects: slope [N], intercepts [N, 1 or 3], log sigma [N].

    `curvature` is minus the second derivative of the log-likelihood in them, in this order.
    """

    slope: Array
    intercept: Array
    log_sigma: Array
    log_likelihood: Array
    curvature: Array
    found: Booleans

    @classmethod
    def fit(
        cls, subject: Integers, columns: Sequence[Array], n_subjects: int, intercepts: int
    ) -> _Lines:
        """Fit to the places of `_merged`."""
        order = np.argsort(subject, kind="stable")
        begin = np.searchsorted(subject[order], np.arange(n_subjects + 1))
        ordered = tuple(column[order] for column in columns)
        point, best, curvature, found = _fit_lines(begin, intercepts, ordered)
        sharp = np.where(found, point[:, -1], 1.0)
        # From (slope / sigma, intercepts / sigma, 1 / sigma) to (slope, intercepts, log sigma).
        turn = np.zeros_like(curvature)
        inner = np.arange(intercepts + 1)
        turn[:, inner, inner] = sharp[:, None]
        turn[:, :, -1] = -point
        curvature = turn.transpose(0, 2, 1) @ curvature @ turn
        own = point[:, :-1] / sharp[:, None]
        return cls(own[:, 0], own[:, 1:], -np.log(sharp), best, curvature, found)


def _merged(
    subject: Integers, columns: tuple[Array, ...], *, log_scale: bool
) -> tuple[Integers, tuple[Array, ...]]:
    """Merge the answers of a subject in a window to means and centred moments.

    A place holds `count` answers of a window by their means and centred moments, or a single one
    at an end (-1 lowest, 1 highest), whose likelihood has no such statistics. `constant` is the
    logarithm of the scale's slope. Returns the subject of each place, and its columns window,
    count, x, y, xx, xy, yy, constant and end.
    """
    response, window, value, unit, ceiling = columns
    given = response >= 0.0
    outside = given & ~np.isin(window, (0.0, 1.0, 2.0))
    if outside.any():
        raise ValueError(
            "Windows are 0 (short), 1 (medium) and 2 (long); got "
            f"{window[outside][0]:g}. Recode the column 'window'."
        )
    unit, ceiling = np.where(given, unit, 1.0), np.where(given, ceiling, 1.0)
    x, y = value / unit, np.where(given, response, 0.0) / unit
    constant = -np.log(unit)
    if log_scale:
        x, y = np.log(np.maximum(x, 0.0) + EPSILON), np.log(y + EPSILON)
        constant = constant - y
    end = np.where(response <= 0.0, -1.0, np.where(response >= ceiling, 1.0, 0.0))
    single, inner = np.flatnonzero(given & (end != 0.0)), np.flatnonzero(given & (end == 0.0))

    group = subject[inner] * 3 + window[inner].astype(np.int64)
    count = np.bincount(group)
    held = np.flatnonzero(count)
    place = (np.cumsum(count > 0) - 1)[group]
    n = count[held].astype(float)

    def summed(values: Array) -> Array:
        return np.bincount(place, values, minlength=len(held)).astype(float)

    mean_x, mean_y = summed(x[inner]) / n, summed(y[inner]) / n
    off_x, off_y = x[inner] - mean_x[place], y[inner] - mean_y[place]
    zero, ones = np.zeros(len(single)), np.ones(len(single))
    merged = (
        np.concatenate([(held % 3).astype(float), window[single]]),
        np.concatenate([n, ones]),
        np.concatenate([mean_x, x[single]]),
        np.concatenate([mean_y, y[single]]),
        np.concatenate([summed(off_x * off_x), zero]),
        np.concatenate([summed(off_x * off_y), zero]),
        np.concatenate([summed(off_y * off_y), zero]),
        np.concatenate([summed(constant[inner]), zero]),
        np.concatenate([np.zeros(len(held)), end[single]]),
    )
    return np.concatenate([held // 3, subject[single]]), merged


def _straight(
    models: Sequence[type[Agent]], data: ModelData, workers: int | None
) -> dict[str, PointFit]:
    fits: dict[str, PointFit] = {}
    lines: dict[tuple[bool, int], _Lines] = {}
    merged: dict[bool, tuple[Integers, tuple[Array, ...]]] = {}
    sequence, _, position = data.sequences.in_order()
    subject = data.sequences.subject[sequence]
    for model in models:
        assert issubclass(model, MagnitudeObserver)
        scale, means = model.log_scale, _means(model)
        if scale not in merged:  # once for all models of a scale
            columns = tuple(column[position] for column in _columns(data))
            merged[scale] = _merged(subject, columns, log_scale=scale)
        if (scale, means) not in lines:
            lines[scale, means] = _Lines.fit(*merged[scale], len(data), means)
        own = data.read_by(model)
        fits[model.name] = _of_lines(model, own, lines[scale, means], workers)
    return fits


def _of_lines(model: type[Agent], data: ModelData, lines: _Lines, workers: int | None) -> PointFit:
    """Read a model's parameters from its lines; search where these lie outside of them."""
    parameters, n = model.parameters, len(data)
    names = parameters.names
    with np.errstate(all="ignore"):
        if issubclass(model, LinearObserver):
            z = np.column_stack([lines.slope, lines.intercept, lines.log_sigma])
        elif "gain" in names:
            z = _on_ridge(parameters, lines)
        else:
            w = 1.0 - lines.slope
            z_w = np.where((w > 0.0) & (w < 1.0), np.log(w / lines.slope), np.inf)
            z = np.column_stack([z_w, lines.intercept / w[:, None], lines.log_sigma])
        inside = np.abs(z - parameters.mean) < INSIDE * reach_of(model, Unknowns.of(model))
        settled = lines.found & inside.all(axis=1)
    settled &= data.n_trials > len(names)
    turn = _turn(parameters, z, lines.intercept.shape[1], issubclass(model, LinearObserver))
    precision = turn.transpose(0, 2, 1) @ lines.curvature @ turn
    covariance = np.full_like(precision, np.nan)
    if "gain" in names:  # all that is known for itself is sigma
        covariance[:, -1, -1] = inverted(lines.curvature)[:, -1, -1]
    else:
        covariance = inverted(precision)
    found = Optimum(
        z=np.where(settled[:, None], z, parameters.mean),
        value=np.where(settled, -lines.log_likelihood, 0.0),
        precision=np.where(settled[:, None, None], precision, np.diag(1.0 / parameters.sd**2)),
        covariance=covariance,
        promise=np.zeros(n),
    )
    status, message = statuses(parameters, "mle", found, data.n_trials)
    fit = PointFit(
        model=model.name,
        method="mle",
        subjects=data.subjects,
        parameters=parameters,
        z=z,
        covariance=covariance,
        log_likelihood=lines.log_likelihood,
        log_posterior=lines.log_likelihood,
        status=status,
        message=message,
        agreement=np.ones(n),
        n_trials=data.n_trials,
    )
    rest = np.flatnonzero(~settled)
    if len(rest):
        reach = 0.9 * reach_of(model, Unknowns.of(model))
        near = np.clip(np.nan_to_num(z[rest]), parameters.mean - reach, parameters.mean + reach)
        points = np.stack([near, np.broadcast_to(parameters.mean, near.shape)])
        others = data.repeat(rest)
        searched = _search(model, others, _descent(model, others, points), workers)
        fit = _with_rows(fit, rest, searched)
    return _flat(fit) if "gain" in names else fit


def _flat(fit: PointFit) -> PointFit:
    """Say of every fit that is none of worse that its parameters cannot be told apart."""
    status, message = list(fit.status), list(fit.message)
    for i, own in enumerate(status):
        if own in ("ok", "flat"):
            status[i] = "flat"
            message[i] = f"no answers can tell {', '.join(fit.names[:-1])} apart"
    return replace(fit, status=tuple(status), message=tuple(message))


def _on_ridge(parameters: Parameters, lines: _Lines) -> Array:
    """Return the most probable of the equally likely parameters of an observer with a gain, [N, K].

    gain (1 - w) is the slope; at each w the gain follows, then the prior means and the offset, of
    which the sum of squares is least where the offset balances them.
    """
    mean, sd, names = parameters.mean, parameters.sd, parameters.names
    at = mean[0] + sd[0] * RIDGES
    w = 1.0 / (1.0 + np.exp(-at))
    slope = np.where(lines.slope > 0.0, lines.slope, np.nan)[:, None]
    gain = slope / (1.0 - w)  # [N, G]
    factor, intercept = (gain * w)[..., None], lines.intercept[:, None, :]
    means = slice(1, 1 + lines.intercept.shape[1])
    offset = np.zeros_like(gain)
    if "offset" in names:
        place = names.index("offset")
        weight = 1.0 / (factor * sd[means]) ** 2
        pulled = (weight * (intercept - factor * mean[means])).sum(axis=-1)
        prior = 1.0 / sd[place] ** 2
        offset = (pulled + prior * mean[place]) / (weight.sum(axis=-1) + prior)
    mu = (intercept - offset[..., None]) / factor
    log_sigma = np.broadcast_to(lines.log_sigma[:, None], gain.shape)
    columns = [np.broadcast_to(at, gain.shape), *np.moveaxis(mu, -1, 0), np.log(gain)]
    columns += [offset] if "offset" in names else []
    ridge = np.stack([*columns, log_sigma], axis=-1)
    off = (((ridge - mean) / sd) ** 2).sum(axis=-1)
    chosen = np.where(np.isfinite(off), off, np.inf).argmin(axis=1)
    z: Array = ridge[np.arange(len(ridge)), chosen]
    return z


def _turn(parameters: Parameters, z: Array, means: int, linear: bool) -> Array:
    """Derivative of slope, intercepts and log sigma in z, [N, means + 2, K]."""
    n, k = z.shape
    turn = np.zeros((n, means + 2, k))
    turn[:, -1, -1] = 1.0
    if linear:
        turn[:, np.arange(k), np.arange(k)] = 1.0
        return turn
    with np.errstate(all="ignore"):
        theta = parameters.constrain(z)
        names, w = parameters.names, theta[:, 0]
        gain = theta[:, names.index("gain")] if "gain" in names else np.ones(n)
        mu, bend = theta[:, 1 : 1 + means], w * (1.0 - w)
        turn[:, 0, 0] = -gain * bend
        turn[:, 1:-1, 0] = (gain * bend)[:, None] * mu
        inner = np.arange(means)
        turn[:, 1 + inner, 1 + inner] = (gain * w)[:, None]
        if "gain" in names:
            place = names.index("gain")
            turn[:, 0, place] = gain * (1.0 - w)
            turn[:, 1:-1, place] = (gain * w)[:, None] * mu
        if "offset" in names:
            turn[:, 1:-1, names.index("offset")] = 1.0
    return turn


# ---- Kalman observers


@compiled()
def _sums(begin, window, fresh, x, y, q, p0):  # type: ignore[no-untyped-def]
    """Sums of squares and products by which least squares is solved, [N, G, 5, 6].

    At given q and P0 the estimate is a + b mu, b what is left of the belief at the beginning. Rows
    and columns: a, b in each window, 1; the answers as the last column.
    """
    n_subjects = len(begin) - 1
    sums = np.zeros((n_subjects, len(q), 5, 6))
    for s in range(n_subjects):
        for g in range(len(q)):
            a, b, p = 0.0, 1.0, p0[g]
            of = sums[s, g]
            for t in range(begin[s], begin[s + 1]):
                if fresh[t]:
                    a, b, p = 0.0, 1.0, p0[g]
                p += q[g]
                rest = 1.0 / (p + 1.0)
                p *= rest
                a += p * (x[t] - a)
                b *= rest
                k = 1 + window[t]
                of[0, 0] += a * a
                of[0, k] += a * b
                of[0, 4] += a
                of[0, 5] += a * y[t]
                of[k, k] += b * b
                of[k, 4] += b
                of[k, 5] += b * y[t]
                of[4, 4] += 1.0
                of[4, 5] += y[t]
            for j in range(5):
                for k in range(j):
                    of[j, k] = of[k, j]
    return sums


@compiled()
def _kalman_terms(at, first, last, columns, means, slope, gradient, matrix):  # type: ignore[no-untyped-def]
    """Return the log-likelihood at z; fill in its gradient and its expected information."""
    window, fresh, x, y, end, constant = columns
    top = len(at) - 1
    more = top - means - 2
    q, p0, sigma = exp(at[0]), exp(at[1]), exp(at[top])
    gain = exp(at[2 + means]) if more > 0 else 1.0
    offset = at[3 + means] if more > 1 else 0.0
    total, each = 0.0, -HALF_LOG_2_PI - at[top]
    gradient[:] = 0.0
    matrix[:] = 0.0
    m, m_q, m_0, m_mu, p, p_q, p_0, k = 0.0, 0.0, 0.0, 1.0, p0, 0.0, 1.0, 2
    for t in range(first, last):
        if fresh[t]:
            k = 2 + min(window[t], means - 1)
            m, m_q, m_0, m_mu, p, p_q, p_0 = at[k], 0.0, 0.0, 1.0, p0, 0.0, 1.0
            for j in range(means):
                slope[2 + j] = 0.0
        before = p + q
        rest = 1.0 / (before + 1.0)
        error = x[t] - m
        p = before * rest
        p_q = (p_q + 1.0) * rest * rest
        p_0 = p_0 * rest * rest
        m += p * error
        m_q = rest * m_q + p_q * error
        m_0 = rest * m_0 + p_0 * error
        m_mu *= rest
        # Slopes of the mean in units of sigma.
        sharp = 1.0 / sigma
        steep = gain * sharp
        slope[0], slope[1], slope[k] = m_q * q * steep, m_0 * p0 * steep, m_mu * steep
        if more > 0:
            slope[2 + means] = m * steep
        if more > 1:
            slope[3 + means] = sharp
        off = (y[t] - gain * m - offset) * sharp
        if end[t] == 0.0:
            total += each - 0.5 * off * off + constant[t]
            push, bend = off, 1.0
            gradient[top] += off * off - 1.0
            matrix[top, top] += 2.0
        else:
            z = -end[t] * off
            log_share, rate = _tail(z)
            total += log_share
            push, bend = rate * end[t], max(rate * (z + rate), 0.0)
            gradient[top] -= rate * z
            matrix[top, top] += bend * z * z
            for i in range(top):
                matrix[top, i] -= bend * end[t] * z * slope[i]
        for i in range(top):
            gradient[i] += push * slope[i]
            weighted = bend * slope[i]
            for j in range(i + 1):
                matrix[i, j] += weighted * slope[j]
    return total


@compiled()
def _damped_step(point, gradient, matrix, damping, bounds, free, root, step):  # type: ignore[no-untyped-def]
    """Fill in the damped step of what is free to move; return what it promises.

    What presses against the bounds stays there, and what the step would press against them.
    """
    centre, scale, reach = bounds
    d = len(point)
    for i in range(d):
        held = abs(point[i] - centre[i]) >= reach[i] * (1.0 - 1e-12)
        free[i] = not (held and gradient[i] * (point[i] - centre[i]) > 0.0)
    promise, solved = 0.0, False
    while not solved:
        promise = 0.0
        for j in range(d):
            for i in range(j + 1):
                entry = matrix[j, i] if free[i] and free[j] else 0.0
                if i == j:
                    floor = 1e-6 / (scale[j] * scale[j])
                    entry = entry * (1.0 + damping) + floor if free[j] else 1.0
                for n in range(i):
                    entry -= root[j, n] * root[i, n]
                root[j, i] = sqrt(max(entry, 1e-12)) if i == j else entry / root[i, i]
            entry = gradient[j] if free[j] else 0.0
            for n in range(j):
                entry -= root[j, n] * step[n]
            step[j] = entry / root[j, j]
            promise += step[j] * step[j]
        for j in range(d - 1, -1, -1):
            entry = step[j]
            for n in range(j + 1, d):
                entry -= root[n, j] * step[n]
            step[j] = entry / root[j, j]
        solved = True
        for i in range(d):
            outside = (point[i] - centre[i]) * step[i] > 0.0
            held = abs(point[i] - centre[i]) >= reach[i] * (1.0 - 1e-12)
            if free[i] and held and outside:
                free[i], solved = False, False
    return promise


@compiled()
def _climb(begin, columns, means, starts, bounds):  # type: ignore[no-untyped-def]
    """Climb to the most likely parameters of each subject, from starts[S, N, K].

    Fisher scoring with Levenberg and Marquardt's damping, on the unconstrained scale: log q/r, log
    P0/r, means, log gain and offset (if any), log sigma; within centre +- reach. Returns the best
    z [N, K], its log-likelihood [N], and the values in which the starts ended [S, N].
    """
    centre, scale, reach = bounds
    n_starts, n_subjects, d = starts.shape
    best, found = np.empty((n_subjects, d)), np.full(n_subjects, -np.inf)
    ended = np.full((n_starts, n_subjects), -np.inf)
    point, trial, step, slope = np.empty(d), np.empty(d), np.empty(d), np.empty(d)
    gradient, own_gradient, free = np.empty(d), np.empty(d), np.empty(d, dtype=np.bool_)
    matrix, own_matrix, root = np.empty((d, d)), np.empty((d, d)), np.empty((d, d))
    for s in range(n_subjects):
        for start in range(n_starts):
            _copy(trial, starts[start, s])
            value, damping, cut = -np.inf, 1e-3, True
            for _ in range(MOST_CLIMBS):
                total = _kalman_terms(
                    trial, begin[s], begin[s + 1], columns, means, slope, own_gradient, own_matrix
                )
                if total >= value:
                    gained = total - value
                    value = total
                    damping = max(0.2 * damping, 1e-9)
                    _copy(point, trial)
                    _copy(gradient, own_gradient)
                    for i in range(d):
                        _copy(matrix[i], own_matrix[i])
                    if gained < CLIMBED and damping < 1e-3 and not cut:
                        break
                elif not total < value:  # not a number
                    damping *= 10.0
                else:
                    damping *= 5.0
                if damping > 1e7:
                    break
                promise = _damped_step(point, gradient, matrix, damping, bounds, free, root, step)
                if promise < CLIMBED and damping < 1e-3:
                    break
                # As far as the first bound, and no further than three prior sds.
                share, first = 1.0, -1
                for i in range(d):
                    share = min(share, 3.0 * scale[i] / max(abs(step[i]), TINY))
                for i in range(d):
                    side = 1.0 if step[i] > 0.0 else -1.0
                    room = centre[i] + side * reach[i] - point[i]
                    if free[i] and share * abs(step[i]) > abs(room):
                        share, first = abs(room) / abs(step[i]), i
                for i in range(d):
                    trial[i] = point[i] + share * step[i]
                if first >= 0:
                    trial[first] = centre[first] + (
                        reach[first] if step[first] > 0.0 else -reach[first]
                    )
                cut = share < 1.0
            ended[start, s] = value
            if value > found[s]:
                found[s] = value
                _copy(best[s], point)
    return best, found, ended


def _kalman(
    models: Sequence[type[Agent]], data: ModelData, workers: int | None
) -> dict[str, PointFit]:
    sequences = data.sequences
    number, _, index = sequences.in_order()
    subject = sequences.subject[number]
    response, window, value, unit, ceiling = (column[index] for column in _columns(data))
    given = response >= 0.0
    order = np.flatnonzero(given)
    order = order[np.argsort(subject[order], kind="stable")]
    subject, number = subject[order], number[order]
    begin = np.searchsorted(subject, np.arange(len(data) + 1))
    fresh = np.diff(number, prepend=-1) != 0
    place = np.clip(window[order], 0, 2).astype(np.int64)
    x, y = value[order] / unit[order], response[order] / unit[order]
    end = np.where(y <= 0.0, -1.0, np.where(response[order] >= ceiling[order], 1.0, 0.0))
    q, p0 = np.exp(np.array(GRID)).T
    merged: dict[bool, tuple[Array, ...]] = {}
    fits: dict[str, PointFit] = {}
    for model in models:
        assert issubclass(model, KalmanObserver)
        scale = model.log_scale
        if scale not in merged:
            own_x = np.log(np.maximum(x, 0.0) + EPSILON) if scale else x
            own_y = np.log(y + EPSILON) if scale else y
            constant = -np.log(unit[order]) - (own_y if scale else 0.0)
            squares = np.bincount(subject, own_y**2, minlength=len(data)).astype(float)
            sums = _sums(begin, place, fresh, own_x, own_y, q, p0)
            merged[scale] = sums, squares, own_x, own_y, constant
        sums, squares, own_x, own_y, constant = merged[scale]
        columns = (place, fresh, own_x, own_y, end, constant)
        points = _starts(model.parameters, sums, squares)
        parameters, means = model.parameters, _means(model)
        bounds = (parameters.mean, parameters.sd, reach_of(model, Unknowns.of(model)))

        def climb(batch: Integers, points=points, columns=columns, means=means, bounds=bounds):  # type: ignore[no-untyped-def]
            rows, some = begin[batch[0] : batch[-1] + 2], np.ascontiguousarray(points[:, batch])
            z, best, ended = _climb(rows, columns, means, some, bounds)
            return z, (ended >= best - SAME_END).mean(axis=0)

        fits[model.name] = _search(model, data.read_by(model), climb, workers)
    return fits


def _means(model: type[Agent]) -> int:
    return sum(name.startswith("mu_") for name in model.parameters.names) or 1


def _starts(parameters: Parameters, sums: Array, squares: Array) -> Array:
    """Return where least squares is best on the grid, best for another q, and the prior mean."""
    names, n = parameters.names, len(sums)
    if "mu_prior" in names:  # one belief to begin with: add up the windows
        joined = np.zeros((5, 3))
        joined[0, 0] = joined[1:4, 1] = joined[4, 2] = 1.0
        left = joined.T @ sums[..., :5] @ joined
        right = (joined.T @ sums[..., 5:])[..., 0]
        means = 1
    else:
        left, right, means = sums[..., :5], sums[..., 5], 3
    free = slice(0 if "gain" in names else 1, 1 + means + ("offset" in names))
    count = np.maximum(left[..., -1, -1], 1.0)
    matrix, target = left[..., free, free], right[..., free]
    total = np.broadcast_to(squares[:, None], right.shape[:2])
    if "gain" not in names:  # what remains is y - a
        target = target - left[..., 0, free]
        total = total - 2.0 * right[..., 0] + left[..., 0, 0]
    size = matrix.shape[-1]
    ridge = 1e-9 * np.trace(matrix, axis1=-2, axis2=-1)[..., None, None] / size + 1e-12
    solved = np.linalg.solve(matrix + ridge * np.eye(size), target[..., None])[..., 0]
    rest = total - (solved * target).sum(axis=-1)
    rest = np.maximum(rest, 1e-12 * count)
    gain = solved[..., 0] if "gain" in names else np.ones(rest.shape)
    gain = np.clip(gain, 0.05, 20.0)
    first = 1 if "gain" in names else 0
    mu = solved[..., first : first + means] / gain[..., None]
    log_q, log_p0 = (np.broadcast_to(column, rest.shape) for column in np.array(GRID).T)
    columns = [log_q, log_p0, *np.moveaxis(mu, -1, 0)]
    columns += [np.log(gain)] if "gain" in names else []
    columns += [solved[..., -1]] if "offset" in names else []
    z = np.stack([*columns, 0.5 * np.log(rest / count)], axis=-1)
    best = rest.argmin(axis=1)
    others = np.abs(log_q - log_q[np.arange(n), best][:, None]) > 2.0
    second = np.where(others, rest, np.inf).argmin(axis=1)
    reach = 5.0 * parameters.sd
    middle = np.broadcast_to(parameters.mean, (n, len(names)))
    points = np.stack([z[np.arange(n), best], z[np.arange(n), second], middle])
    low, high = parameters.mean - reach, parameters.mean + reach
    near: Array = np.clip(np.nan_to_num(points), low, high)
    return near


# ---- the search by gradients


def _search(model: type[Agent], data: ModelData, find: Find, workers: int | None) -> PointFit:
    """Find the maxima of all subjects in batches, and judge them."""

    def search(batch: Integers) -> PointFit:
        own = data.repeat(batch)
        z, agreement = find(batch)
        objective = NegativeLogPosterior(own, Unknowns.of(model), False, 1)
        return judged(objective, own, z, agreement)

    return joined(in_batches(search, len(data), SUBJECTS_PER_BATCH, workers))


def _descent(model: type[Agent], data: ModelData, points: Array) -> Find:
    """Search from points[S, N, K] by exact gradients."""
    parameters, (starts, _, k) = model.parameters, points.shape

    def find(batch: Integers) -> tuple[Array, Array]:
        n = len(batch)
        ends = minimise(
            NegativeLogPosterior(data.repeat(batch), Unknowns.of(model), False, starts),
            points[:, batch].reshape(starts * n, k),
            parameters.sd,
            centre=parameters.mean,
            reach=reach_of(model, Unknowns.of(model)),
            tolerance=TOLERANCE,
        )
        value = np.where(np.isfinite(ends.value), ends.value, np.inf).reshape(starts, n)
        z = ends.z.reshape(starts, n, k)[value.argmin(axis=0), np.arange(n)]
        return z, (value <= value.min(axis=0) + SAME_END).mean(axis=0)

    return find


def _with_rows(fit: PointFit, rows: Integers, other: PointFit) -> PointFit:
    """Put the fits of some subjects in place of what was there."""
    changed = {}
    for name in ("z", "covariance", "log_likelihood", "log_posterior", "agreement"):
        values = getattr(fit, name).copy()
        values[rows] = getattr(other, name)
        changed[name] = values
    for name in ("status", "message"):
        told = np.array(getattr(fit, name), dtype=object)
        told[rows] = getattr(other, name)
        changed[name] = tuple(told.tolist())
    return replace(fit, **changed)
