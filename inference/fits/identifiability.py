"""What a design can tell about a model's parameters, before anyone has played it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from knownminds.agents import LAPSE, Model
from knownminds.agents.parameters import Array, Parameter, Parameters
from knownminds.agents.play import simulate_sessions
from knownminds.environments import Environment, session_stream
from knownminds.environments.later import pandas as pd
from knownminds.environments.record.tabled_result import TabledResult
from knownminds.members import unknown

from .model_data import ModelData, Unknowns
from .point import FLAT_POSTERIOR

# A direction is null if its information is below this share of the larger of two: that of the
# prior (1 in units of prior sds) and that of the best-known direction. It is the square of a
# score of 1e-6, far above the rounding of exact gradients (about 1e-13).
NULL = 1e-12
TOUCHED = 1e-5  # a null direction or a contrast involves a parameter if its component is above this


@dataclass(frozen=True, eq=False)
class Identifiability(TabledResult):
    """The expected Fisher information of one session, and what it cannot estimate.

    In the arrays below the estimated parameters z are measured in prior sds (u = z / sd), which
    makes directions comparable between parameters.

    Parameters
    ----------
    parameters : The estimated parameters, [K]; the lapse rate last if it is estimated.
    failed : Sessions without a finite gradient, left out of the means.
    information : Expected information of one session at each of M theta, [M, K, K]; NaN where all
        sessions failed.
    null : Orthonormal directions along which no score of any session at any theta has a component,
        [K, D].
    null_at : Projection onto the null directions at each theta, [M, K, K].
    """

    parameters: Parameters
    failed: int
    information: Array
    null: Array
    null_at: Array

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the estimated parameters."""
        return self.parameters.names

    @cached_property
    def standard_error(self) -> Array:
        """Standard error on the z scale from one session without a prior, [K]; infinite if null."""
        informed = _complement(self.null)
        mean = self.information[self._usable].mean(axis=0)
        part = informed.T * self.parameters.sd
        variance = (part * np.linalg.solve(informed.T @ mean @ informed, part)).sum(axis=0)
        lost = [self._is_lost(weights) for weights in np.diag(self.parameters.sd)]
        return np.where(lost, np.inf, np.sqrt(variance))

    @cached_property
    def posterior_share(self) -> Array:
        """Posterior over prior sd after one session, mean over theta, [K]: 1 if nothing is learned.

        The posterior precision is the information plus the prior precision.
        """
        precision = self.information[self._usable] + np.eye(len(self.names))
        variance = np.diagonal(np.linalg.inv(precision), axis1=1, axis2=2)
        mean: Array = np.sqrt(variance).mean(axis=0)
        return mean

    @cached_property
    def sentences(self) -> tuple[str, ...]:
        """What cannot be estimated, or only hardly, in sentences; empty if there is nothing."""
        said = list(self._lost())
        least = int(self._null_directions.min(initial=len(self.names)))
        more = least - self.null.shape[1]
        if more > 0:
            said.append(f"a session says nothing along {more} more, which differ between theta")
        lost = np.linalg.norm(self.null, axis=1) > TOUCHED
        for i in np.flatnonzero((self.posterior_share > FLAT_POSTERIOR) & ~lost):
            # This is rounded down, since only a null direction leaves all of the prior.
            left = np.floor(1000.0 * self.posterior_share[i]) / 10.0
            said.append(
                f"{self.names[i]}: hardly at all; a session leaves {left:.1f}% of its prior sd"
            )
        return tuple(said)

    def estimable(self, weights: Mapping[str, float]) -> bool:
        """Say whether sessions can estimate a contrast of the parameters.

        They can if, at one theta at least, it has no component along a direction that is null
        there. The prior plays no part: a contrast that only the prior can determine does not count.

        Parameters
        ----------
        weights : Derivative of the contrast in each z (0 where not named). The derivative in theta
            times `parameters.slope(theta)` at the group mean.
        """
        w = np.zeros(len(self.names))
        for name, value in weights.items():
            if name not in self.names:
                raise ValueError(unknown("estimated parameter", name, self.names))
            w[self.names.index(name)] = value
        if not np.isfinite(w).all() or not w.any():
            raise ValueError(
                "The weights of a contrast are finite and not all 0; got "
                f"{dict(weights)}. Name at least one parameter with its weight."
            )
        return not self._is_lost(w * self.parameters.sd)

    def to_frame(self) -> pd.DataFrame:
        """One row per parameter: expected standard errors in z, and posterior over prior sd."""
        return pd.DataFrame(
            {
                "parameter": self.names,
                "standard_error": self.standard_error,
                "prior_sd": self.parameters.sd,
                "posterior_share": self.posterior_share,
            }
        )

    @cached_property
    def _usable(self) -> NDArray[np.bool_]:
        return np.asarray(np.isfinite(self.information).all(axis=(1, 2)))

    @property
    def _null_directions(self) -> NDArray[np.int64]:
        """How many directions are null at each usable theta."""
        trace = np.trace(self.null_at[self._usable], axis1=1, axis2=2)
        return np.asarray(np.round(trace), dtype=np.int64)

    def _is_lost(self, w: Array) -> bool:
        along = np.linalg.norm(self.null_at[self._usable] @ w, axis=1)
        return bool(np.all(along > TOUCHED * np.linalg.norm(w)))

    def _lost(self) -> Iterator[str]:
        """Yield a sentence for each group of parameters that is null at every theta alike.

        The projection onto the null directions falls into blocks. Within a block the data can
        estimate what is orthogonal to them: u-weights f, hence z-weights f / sd.
        """
        projection = self.null @ self.null.T
        linked = np.abs(projection) > TOUCHED
        count, label = scipy.sparse.csgraph.connected_components(linked, directed=False)
        for group in range(count):
            block = np.flatnonzero((label == group) & np.diagonal(linked))
            if not len(block):
                continue
            values, vectors = np.linalg.eigh(projection[np.ix_(block, block)])
            informed = vectors[:, values < 0.5] / self.parameters.sd[block, None]
            parameters = [self.parameters[self.names[k]] for k in block]
            names = " and ".join(p.name for p in parameters)
            if not informed.shape[1]:
                yield f"{names}: not at all"
            elif informed.shape[1] > 1:
                yield f"{names} only through {informed.shape[1]} combinations"
            else:
                yield f"{names} only through {_expression(parameters, informed[:, 0])}"


def identifiability(
    model: type[Model],
    environment: Environment,
    *,
    theta: ArrayLike | None = None,
    subjects: int = 32,
    sessions: int = 64,
    fixed: Mapping[str, float] | None = None,
    lapse: ArrayLike | None = None,
    fit_lapse: bool = False,
    all_trials: bool = False,
    seed: int = 0,
) -> Identifiability:
    """Compute the expected Fisher information of a session, and name what it cannot estimate.

    At each of M values of theta sessions are simulated. The score s is the exact gradient of a
    session's log-likelihood in z at the values it was simulated with, where its mean is 0; the
    information is the mean of s s' (Fisher 1925). A direction counts as null only if no score
    has a component along it: at one theta (the data there cannot tell) or at all theta.

    Parameters
    ----------
    theta : Values of all of the model's parameters, [M, P], natural scale; None draws them from the
        priors. A fixed parameter has its fixed value in every row.
    subjects : M, if theta is drawn.
    sessions : Sessions at each theta; there must be more of them than estimated parameters.
    fixed : Parameters with known values, which are not estimated.
    lapse : True lapse rate, one number or [M]. None means no lapses, or draws from the prior if the
        lapse rate is estimated.
    fit_lapse : Whether the lapse rate is estimated; otherwise it is known.
    all_trials : Whether all trials are fitted by a model that has a `selection`.

    Raises
    ------
    ValueError : If theta contradicts `fixed` or lies at an end of the support, where z is infinite;
        if there are too few sessions; if no gradient is finite.
    """
    model.check_plays(environment)
    unknowns = Unknowns.of(model, fixed, fit_lapse)
    parameters, k = unknowns.parameters, len(unknowns.parameters)
    values, rates = _values(model, unknowns, theta, subjects, lapse, seed)
    estimated = values[:, unknowns.columns]
    if fit_lapse and rates is not None:
        estimated = np.hstack([estimated, rates[:, None]])
    _check_inside(parameters, estimated)
    if sessions <= k:
        raise ValueError(
            f"Information on {k} parameters needs more than {k} sessions at each theta; got "
            f"{sessions}. Ask for 64."
        )
    m = len(values)
    scores = np.empty((m, sessions, 0))
    if k:
        natural = _gradients(model, environment, values, rates, sessions, seed, all_trials)
        natural = natural[:, unknowns.places]
        slope = parameters.slope(estimated) * parameters.sd
        scores = natural.reshape(m, sessions, k) * slope[:, None]
    finite: NDArray[np.bool_] = np.asarray(np.isfinite(scores).all(axis=2))
    if not np.any(finite):
        raise ValueError(
            "Information needs finite gradients; no simulated session has one. Choose theta "
            "nearer to the prior mean, or check the model's kernel."
        )
    scores = np.where(finite[:, :, None], scores, 0.0)
    count = finite.sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        information = scores.transpose(0, 2, 1) @ scores / count[:, None, None]
    usable = count > 0

    null_at = np.full((m, k, k), np.nan)
    for i in np.flatnonzero(usable):
        basis = _null(scores[i] / np.sqrt(count[i]))
        null_at[i] = basis @ basis.T
    # Every theta has the same weight, however many of its sessions failed.
    weighted = scores[usable] / np.sqrt(count[usable] * usable.sum())[:, None, None]
    null = _null(np.concatenate(weighted))
    return Identifiability(parameters, int((~finite).sum()), information, null, null_at)


def _values(
    model: type[Model],
    unknowns: Unknowns,
    theta: ArrayLike | None,
    subjects: int,
    lapse: ArrayLike | None,
    seed: int,
) -> tuple[Array, Array | None]:
    """Return all parameters [M, P] and lapse rates [M] (or None) of the simulated subjects."""
    held = ~np.isnan(unknowns.full)
    if theta is not None:
        values = np.atleast_2d(np.asarray(theta, dtype=float))
        model.parameters.check(values)
        wrong = np.flatnonzero(held & (values != unknowns.full).any(axis=0))
        if len(wrong):
            k = wrong[0]
            raise ValueError(
                f"A fixed parameter has its fixed value in theta; {model.parameters.names[k]} is "
                f"fixed at {unknowns.full[k]:g} and theta has {values[0, k]:g}. Make them equal."
            )
    elif subjects < 1:
        raise ValueError(f"Information is taken at 1 theta or more; got subjects={subjects}.")
    streams = [session_stream(seed, i) for i in range(subjects if theta is None else len(values))]
    if theta is None:
        values = np.concatenate([model.parameters.draw(rng, 1) for rng in streams])
        values[:, held] = unknowns.full[held]
    if lapse is None:
        if not unknowns.lapse:
            return values, None
        parameters = Parameters(LAPSE)
        return values, np.concatenate([parameters.draw(rng, 1)[0] for rng in streams])
    given = np.asarray(lapse, dtype=float)
    if given.shape not in ((), (len(values),)):
        raise ValueError(
            f"lapse is one number or one for each theta; got shape {given.shape} for "
            f"{len(values)} theta."
        )
    return values, np.broadcast_to(given, (len(values),)).copy()


def _check_inside(parameters: Parameters, estimated: Array) -> None:
    """Raise ValueError at the first value at an end of its support."""
    for parameter, column in zip(parameters, estimated.T, strict=True):
        inside = np.isfinite(parameter.support.unconstrain(column))
        if not inside.all():
            raise ValueError(
                f"{parameter.name} lies strictly inside {parameter.support} where information is "
                f"taken; got {column[~inside][0]:g}, where the unconstrained value is infinite. "
                "Choose a value inside."
            )


def _gradients(
    model: type[Model],
    environment: Environment,
    values: Array,
    rates: Array | None,
    sessions: int,
    seed: int,
    all_trials: bool,
) -> Array:
    """Return natural-scale gradients at true values for M x sessions sessions, lapse last."""
    truth = np.repeat(values, sessions, axis=0)
    lapse = None if rates is None else np.repeat(rates, sessions)
    # Theta number i is drawn at (seed, i); session number n is simulated at (seed, 0, n).
    simulated = simulate_sessions(model, truth, environment, seed, address=(0,), lapse=lapse)
    columns = simulated.columns
    separate = [columns[n].astype(np.int64) for n in model.separate if n in columns]
    fitted = None
    if model.selection is not None and not all_trials:
        fitted = model.selection.of(columns, model.name)
    data = ModelData.of_columns(
        model,
        [str(i) for i in range(len(truth))],
        simulated.subject,
        separate,
        columns,
        environment.n_actions,
        fitted,
    )
    return data.log_likelihood(truth, lapse)[1]


def _null(scores: Array) -> Array:
    """Return a basis [K, D] of the directions along which scores have no component.

    It comes from the singular values of the scores themselves: squaring first would lose half the
    digits.
    """
    if not scores.shape[1]:
        return np.empty((0, 0))
    _, singular, directions = np.linalg.svd(scores, full_matrices=False)
    values = singular**2
    basis: Array = directions[values <= NULL * max(1.0, values[0])].T
    return basis


def _complement(basis: Array) -> Array:
    """Return an orthonormal basis of the complement of the columns of `basis`, [K, K - D]."""
    values, vectors = np.linalg.eigh(basis @ basis.T)
    return np.asarray(vectors[:, values < 0.5])


def _expression(parameters: Sequence[Parameter], weights: Array) -> str:
    """Return a combination of z as text, such as logit(alpha) - 0.5 log(beta)."""
    scaled = weights / (np.abs(weights).max() * np.sign(weights[0]))
    text = ""
    for parameter, weight in zip(parameters, scaled.tolist(), strict=True):
        size = f"{abs(weight):.2g} ".removeprefix("1 ")
        joint = "" if not text else " + " if weight > 0 else " - "
        kind = parameter.support.kind
        text += (
            joint + size + (parameter.name if kind == "identity" else f"{kind}({parameter.name})")
        )
    return text
