"""What a design can tell about a model's parameters, before anyone has played it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from knownminds.agents import LAPSE, Agent
from knownminds.agents.parameters import Array, Parameter, Parameters
from knownminds.agents.play import simulate_sessions
from knownminds.environments import Environment, session_stream
from knownminds.environments.later import pandas as pd
from knownminds.environments.record.result import Result
from knownminds.environments.words.names import unknown

from .model_data import ModelData, Unknowns
from .point import FLAT_POSTERIOR

# A direction is null if its information is below this share of the larger of two: that of the
# prior (1 in units of prior sds) and that of the best-known direction. It is the square of a
# score of 1e-6, far above the rounding of exact gradients (about 1e-13).
NULL = 1e-12
TOUCHED = 1e-5  # a null direction has a component along a parameter, or a contrast, above this
EQUAL = 1e-3  # weights that agree to this relative precision are read as equal


@dataclass(frozen=True, eq=False)
class Identifiability(Result):
    """The expected Fisher information of one session, and what it cannot tell.

    In the arrays below the estimated parameters z are measured in prior sds (u = z / sd), which
    makes directions comparable between parameters.

    Parameters
    ----------
    model, environment
        Their names.
    parameters
        The estimated parameters, [K]; the lapse rate last if it is estimated.
    theta
        Where the information was taken, natural scale, [M, K].
    n_trials, n_sessions
        Trials of a session; sessions simulated at each theta.
    failed
        Sessions without a finite gradient, left out of the means.
    information
        Expected information of one session at each theta, [M, K, K]; NaN where all failed.
    eigenvalues
        Of the mean information, ascending, [K]; the prior's are 1.
    null
        Orthonormal directions along which no score of any session at any theta has a component,
        [K, D].
    null_at
        Projection onto what is null at each theta, [M, K, K].
    """

    model: str
    environment: str
    parameters: Parameters
    theta: Array
    n_trials: int
    n_sessions: int
    failed: int
    information: Array
    eigenvalues: Array
    null: Array
    null_at: Array

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the estimated parameters."""
        return self.parameters.names

    @cached_property
    def standard_error(self) -> Array:
        """Standard error on the z scale from one session without a prior, [K]."""
        return np.array([self._error(w) for w in np.diag(self.parameters.sd)])

    @cached_property
    def posterior_share(self) -> Array:
        """Posterior over prior sd after one session, mean over theta, [K]: 1 if nothing is learned.

        The posterior precision is taken as information + prior precision.
        """
        if not len(self.names):
            return np.empty(0)
        variance = np.diagonal(self._posterior, axis1=1, axis2=2)
        mean: Array = np.sqrt(variance).mean(axis=0)
        return mean

    @property
    def null_directions(self) -> Array:
        """Directions in z along which the data say nothing, [D, K], with as many zeros as fit."""
        return _echelon((self.parameters.sd[:, None] * self.null).T)

    @cached_property
    def sentences(self) -> tuple[str, ...]:
        """What cannot be told, and what hardly can, in words; empty if there is nothing."""
        if not len(self.names):
            return ()
        return (*self._lost(), *self._turning(), *self._weak())

    def estimable(self, weights: Mapping[str, float]) -> bool:
        """Say whether sessions tell a contrast of the parameters.

        It is told if at one theta at least it has no component along a direction that is null
        there. The prior plays no part: a contrast that only the prior can settle is not told.

        Parameters
        ----------
        weights
            Derivative of the contrast in each z (0 where not named). The derivative in theta
            times `parameters.slope(theta)` at the group mean.
        """
        return not self._is_lost(self._in_prior_sds(weights))

    def to_frame(self) -> pd.DataFrame:
        """One row per parameter: expected standard errors in z, and what is left of the prior."""
        with_prior = np.sqrt(np.diagonal(self._posterior.mean(axis=0))) if len(self.names) else []
        return pd.DataFrame(
            {
                "parameter": self.names,
                "standard_error": self.standard_error,
                "prior_sd": self.parameters.sd,
                "posterior_sd": np.asarray(with_prior) * self.parameters.sd,
                "posterior_share": self.posterior_share,
            }
        )

    def __str__(self) -> str:
        """Return the table, and in sentences what the sessions cannot tell."""
        return "\n".join([super().__str__(), *self.sentences])

    @cached_property
    def _usable(self) -> NDArray[np.bool_]:
        return np.asarray(np.isfinite(self.information).all(axis=(1, 2)))

    @cached_property
    def _posterior(self) -> Array:
        """Posterior covariance at each usable theta, in prior sds, [M, K, K]."""
        precision = self.information[self._usable] + np.eye(len(self.names))
        return np.asarray(np.linalg.inv(precision))

    def _in_prior_sds(self, weights: Mapping[str, float]) -> Array:
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
        return w * self.parameters.sd

    def _is_lost(self, w: Array) -> bool:
        along = np.linalg.norm(self.null_at[self._usable] @ w, axis=1)
        return bool(np.all(along > TOUCHED * np.linalg.norm(w)))

    def _error(self, w: Array) -> float:
        if self._is_lost(w):
            return np.inf
        told = _complement(self.null)
        mean = self.information[self._usable].mean(axis=0)
        part = told.T @ w
        return float(np.sqrt(part @ np.linalg.solve(told.T @ mean @ told, part)))

    def _lost(self) -> Iterator[str]:
        """Say what is null at every theta alike, one sentence for parameters that belong together.

        The projection onto the null directions falls into blocks. Within a block what the data
        do tell is orthogonal to them: u-weights f, hence z-weights f / sd.
        """
        projection = self.null @ self.null.T
        for block in _blocks(np.abs(projection) > TOUCHED):
            values, vectors = np.linalg.eigh(projection[np.ix_(block, block)])
            told = vectors[:, values < 0.5] / self.parameters.sd[block, None]
            yield _only_through([self.parameters[self.names[k]] for k in block], told.T)

    def _turning(self) -> Iterator[str]:
        """Say how many directions are null at each theta, or at some, that differ between theta."""
        missing = self._missing
        each, more = int(missing.min()) - self.null.shape[1], int((missing > missing.min()).sum())
        if each > 0:
            yield f"a session says nothing along {each} more, which differ between theta"
        if more:
            yield f"at {more} of {len(missing)} theta a session says nothing along further ones"

    @cached_property
    def _missing(self) -> NDArray[np.int64]:
        """How many directions are null at each usable theta."""
        trace = np.trace(self.null_at[self._usable], axis1=1, axis2=2)
        return np.asarray(np.round(trace), dtype=np.int64)

    def _weak(self) -> Iterator[str]:
        """Say of which parameters nearly all of the prior sd is left."""
        lost = np.linalg.norm(self.null, axis=1) > TOUCHED
        weak = (self.posterior_share > FLAT_POSTERIOR) & ~lost
        for i in np.flatnonzero(weak):
            # Rounded down, since only the null leaves all.
            left = np.floor(1000.0 * self.posterior_share[i]) / 10.0
            yield f"{self.names[i]}: hardly at all; a session leaves {left:.1f}% of its prior sd"


def identifiability(
    model: type[Agent],
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
    """Take the expected Fisher information of a session, and name what it cannot tell.

    At each of M values of theta sessions are simulated. The score s is the exact gradient of a
    session's log-likelihood in z at the values it was simulated with, where its mean is 0; the
    information is the mean of s s' (Fisher 1925). A direction counts as null only if no score
    has a component along it: at one theta (the data there cannot tell) or at all theta.

    Parameters
    ----------
    theta
        Values of all of the model's parameters, [M, P], natural scale; None draws them from the
        priors. A fixed parameter has its fixed value in every row.
    subjects
        M where theta is drawn.
    sessions
        Sessions at each theta, more than there are estimated parameters.
    fixed
        Parameters held at known values.
    lapse
        True lapse rate, one number or [M]; None for none, or for draws from its prior where it
        is estimated.
    fit_lapse
        Whether the lapse rate is estimated; otherwise it is known.
    all_trials
        Whether all trials are fitted by a model that has a `selection`.

    Raises
    ------
    ValueError
        If theta contradicts `fixed` or lies at an end of the support, where z is infinite; if
        there are too few sessions; if no gradient is finite.
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
        natural = natural[:, [*unknowns.columns, *([values.shape[1]] if fit_lapse else [])]]
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
        basis = _null(scores[i] / np.sqrt(count[i]))[1]
        null_at[i] = basis @ basis.T
    # Every theta has the same weight, however many of its sessions failed.
    weighted = scores[usable] / np.sqrt(count[usable] * usable.sum())[:, None, None]
    eigenvalues, null = _null(np.concatenate(weighted))
    return Identifiability(
        model=model.name,
        environment=environment.name,
        parameters=parameters,
        theta=estimated,
        n_trials=environment.n_trials,
        n_sessions=sessions,
        failed=int((~finite).sum()),
        information=information,
        eigenvalues=eigenvalues,
        null=null,
        null_at=null_at,
    )


def _values(
    model: type[Agent],
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
    model: type[Agent],
    environment: Environment,
    values: Array,
    rates: Array | None,
    sessions: int,
    seed: int,
    all_trials: bool,
) -> Array:
    """Gradients on the natural scale of M x sessions sessions at their true values, lapse last."""
    truth = np.repeat(values, sessions, axis=0)
    lapse = None if rates is None else np.repeat(rates, sessions)
    # theta number i is drawn at (seed, i); session number n is simulated at (seed, 0, n).
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


def _null(scores: Array) -> tuple[Array, Array]:
    """Eigenvalues [K] of scores' scores, ascending, and a basis [K, D] of its null directions.

    From the singular values of the scores themselves: squaring first would lose half the digits.
    """
    if not scores.shape[1]:
        return np.empty(0), np.empty((0, 0))
    _, singular, directions = np.linalg.svd(scores, full_matrices=False)
    values = singular**2
    return values[::-1], directions[values <= NULL * max(1.0, values[0])].T


def _complement(basis: Array) -> Array:
    """Orthonormal basis of what is orthogonal to the orthonormal columns of `basis`, [K, K - D]."""
    values, vectors = np.linalg.eigh(basis @ basis.T)
    return np.asarray(vectors[:, values < 0.5])


def _blocks(linked: NDArray[np.bool_]) -> Iterator[NDArray[np.int64]]:
    """Yield the positions of each group of linked parameters, in order."""
    touched = np.diagonal(linked)
    count, label = scipy.sparse.csgraph.connected_components(linked, directed=False)
    for group in range(count):
        block = np.flatnonzero((label == group) & touched)
        if len(block):
            yield block


def _echelon(rows: Array) -> Array:
    """Bring linearly independent rows to reduced echelon form, leading entries 1."""
    rows = rows.copy()
    done = 0
    for column in range(rows.shape[1] if len(rows) else 0):
        best = done + int(np.abs(rows[done:, column]).argmax())
        if abs(rows[best, column]) < TOUCHED * np.abs(rows).max():
            continue
        rows[[done, best]] = rows[[best, done]]
        rows[done] /= rows[done, column]
        others = np.arange(len(rows)) != done
        rows[others] -= rows[others, column, None] * rows[done]
        done += 1
        if done == len(rows):
            break
    return np.where(np.abs(rows) < TOUCHED * np.abs(rows).max(initial=0.0), 0.0, rows)


def _only_through(parameters: Sequence[Parameter], told: Array) -> str:
    """Say through which combinations `told` [C, K] of their z the data know some parameters."""
    names = _listed([p.name for p in parameters])
    if not len(told):
        return f"{names}: not at all"
    return f"{names} only through {_combinations(parameters, told)}"


def _combinations(parameters: Sequence[Parameter], values: Array) -> str:
    """Name combinations [C, K] of the z of some parameters; in a word where there is one."""
    if len(values) > 1:
        each = [_expression(parameters, weights) for weights in _echelon(values)]
        return f"{len(values)} combinations: {_listed(each)}"
    weights = values[0]
    kinds = {p.support.kind for p in parameters}
    if _is_plain(weights) and kinds in ({"log"}, {"identity"}):
        multiplied = kinds == {"log"}
        if (np.sign(weights) == np.sign(weights[0])).all():
            return f"their {'product' if multiplied else 'sum'}"
        if len(parameters) == 2:
            return f"their {'ratio' if multiplied else 'difference'}"
    return _expression(parameters, weights)


def _expression(parameters: Sequence[Parameter], weights: Array) -> str:
    """Write a combination of z, such as logit(alpha) - 0.5 log(beta); a product where it is one."""
    present = [(p, w) for p, w in zip(parameters, weights.tolist(), strict=True) if w]
    if len(present) == 1:
        return present[0][0].name
    scaled = np.array([w for _, w in present])
    scaled /= np.abs(scaled).max() * np.sign(scaled[0])
    if _is_plain(scaled) and all(p.support.kind == "log" for p, _ in present):
        above = [p.name for (p, _), w in zip(present, scaled, strict=True) if w > 0]
        below = [p.name for (p, _), w in zip(present, scaled, strict=True) if w < 0]
        return " / ".join([" * ".join(above), *below])
    text = ""
    for (p, _), w in zip(present, scaled.tolist(), strict=True):
        size = f"{abs(w):.2g} ".removeprefix("1 ")
        joint = "" if not text else (" + " if w > 0 else " - ")
        text += f"{joint}{size}{_unconstrained(p)}"
    return text


def _is_plain(weights: Array) -> bool:
    """Whether all weights have the same size."""
    size = np.abs(weights)
    return bool((np.abs(size - size.max()) < EQUAL * size.max()).all())


def _unconstrained(parameter: Parameter) -> str:
    """Write the unconstrained value of a parameter."""
    support, name = parameter.support, parameter.name
    if support.kind == "identity":
        return name
    if support.kind == "log":
        return f"log({name})"
    if (support.lower, support.upper) == (0.0, 1.0):
        return f"logit({name})"
    place = f"({name} - {support.lower:g})" if support.lower else name
    return f"logit({place} / {support.upper - support.lower:g})"


def _listed(names: Sequence[str]) -> str:
    """Join names with commas and a last 'and'."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
