"""Belief samplers fitted to revealed beliefs: exact, sampled or known within bounds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy.special import xlogy

from knownminds.agents import BeliefSampler
from knownminds.agents.compiled import compiled
from knownminds.agents.parameters import Array, Parameters
from knownminds.environments import unknown
from knownminds.environments.chance.outcome_grid import MARKS
from knownminds.environments.later import pandas as pd
from knownminds.environments.record.result import SubjectResult, records
from knownminds.inference.fits.batches import in_batches
from knownminds.inference.fits.nested_starts import REACH
from knownminds.inference.fits.point import Optimum, PointFit, inverted, statuses

from .open_beliefs import OpenBeliefs, Read, units_of_rows
from .revealed_belief import Booleans, Integers, RevealedBeliefs, wilson

SUBJECTS_PER_BATCH = 64
MOST_STEPS = 500
ARRIVED = 1e-13  # of the objective, which a step still promises
LONGEST_STEP = 1.0
BISECTIONS = 60

# What a sampler has besides its leak, which the rest does not hang on.
SAMPLER = Parameters(*list(BeliefSampler.parameters)[: 1 + len(MARKS)])


class BeliefTable(NamedTuple):
    """The same R outcomes in C contexts under N agents.

    Parameters
    ----------
    log_truth : Logarithms of the true probabilities, [R]; minus infinity where an outcome cannot
        come.
    marks : 0 or 1, [R, 6], as in `broken_off.MARKS`.
    edges : Where each context begins, and the end, [C + 1].
    weight : Counts, or probabilities before normalising, [N, R]; for top-k tables what is certain.
    high : The most that can lie on each outcome, [N, R].
    missing : What could not be placed, by context, [N, C].
    counted : Whether the weights of a context are counts, [N, C].
    """

    log_truth: Array
    marks: Array
    edges: Integers
    weight: Array
    high: Array
    missing: Array
    counted: Booleans


@dataclass(frozen=True)
class BeliefSamplerFits(SubjectResult):
    """Belief samplers fitted to N agents.

    Parameters
    ----------
    fit : Estimates with their covariance, status and so on. The log-likelihood is that of the
        counts; of distributions it is minus the sum of divergences KL(belief | model), over
        contexts, so that 0 is a perfect fit.
    held : Parameters that no context could tell, with the value at which they stand.
    elsewhere, elsewhere_low, elsewhere_high : Share of what is said that is no outcome, mean over
        contexts, [N]; for sampled beliefs of all draws together, with Wilson's interval; bounds
        where probability could not be placed.
    leak : Share of the retained mass on outcomes that cannot come, mean over the contexts that have
        any, [N]; these outcomes have no part in the other parameters.
    n_contexts, flagged : Contexts in the fit, and those that were left out since they are flagged,
        [N].
    least, most : The estimates' ends over all beliefs that top-k tables allow, [N, K]; the
        estimates themselves where nothing is open, infinite where the search met no end.
    """

    fit: PointFit
    held: Mapping[str, float]
    elsewhere: Array
    elsewhere_low: Array
    elsewhere_high: Array
    leak: Array
    n_contexts: Integers
    flagged: Integers
    least: Array
    most: Array

    def to_frame(self, mass: float = 0.9) -> pd.DataFrame:
        """One row per agent: estimates, intervals, ends, elsewhere, what was left out."""
        ends = {
            f"{name}_{which}": values[:, k]
            for k, name in enumerate(self.fit.names)
            for which, values in (("least", self.least), ("most", self.most))
        }
        more = {
            "elsewhere": self.elsewhere,
            "elsewhere_low": self.elsewhere_low,
            "elsewhere_high": self.elsewhere_high,
            "leak": self.leak,
            "contexts": self.n_contexts,
            "flagged": self.flagged,
            **ends,
        }
        return self.fit.to_frame(mass).drop(columns=["n_trials"]).assign(**more)

    def content(self, mass: float = 0.9) -> Any:
        """What `to_json` holds."""
        minds = records(self.to_frame(mass))
        return {"model": self.fit.model, "held": self.held, "minds": minds}

    def __str__(self) -> str:
        """The fits, and what they leave out."""
        lines = [str(self.fit)]
        if self.held:
            told = ", ".join(f"{name} = {value:g}" for name, value in self.held.items())
            lines.append(f"The contexts do not tell {told}.")
        medians = (
            f"{np.median(known):.3f}" if len(known := own[np.isfinite(own)]) else "unknown"
            for own in (self.elsewhere, self.leak)
        )
        lines.append(
            "medians: {} said elsewhere, leak {}; ".format(*medians)
            + f"{int(self.flagged.sum())} flagged contexts left out"
        )
        return "\n".join(lines)


def fit_belief_samplers(
    beliefs: RevealedBeliefs | Mapping[str, RevealedBeliefs],
    *,
    parameters: Sequence[str] | None = None,
    method: Literal["mle", "map"] = "mle",
    worth: float = 1.0,
    keep_flagged: bool = False,
    ends: bool = True,
    workers: int | None = None,
) -> BeliefSamplerFits:
    """Fit temperature and biases to the revealed beliefs of each agent.

    log q(o) = log p(o) / T + sum of the biases of what marks o - const. Exact distributions are
    fitted by cross-entropy, each context weighing the same; counts by their multinomial
    likelihood; top-k tables as interval-censored: the divergence from the model is that of the
    nearest belief within the bounds, whose missing mass lies as the model has it where it can.
    The objective is concave in 1/T and the biases, so there is one maximum, which Fisher scoring
    with exact derivatives finds.

    Parameters
    ----------
    beliefs
        By name of the agent; they need a truth.
    parameters
        Which are estimated, of `SAMPLER`; None for all that the contexts can tell.
    method
        "map" adds the priors of `SAMPLER`.
    worth
        How many draws a distribution counts for against the prior; of no account for "mle".
    keep_flagged
        Whether contexts flagged for their small mass take part.
    ends
        Whether `least` and `most` are searched for where tables leave something open, which takes
        some hundred fits per agent; else they are NaN there.

    Notes
    -----
    Where missing mass is large, several parameters fit top-k tables alike, and the estimate is the
    first of these that the search meets on its way from the truth (T = 1, no biases), so it may
    be too small. `least` and `most` are the ends of the estimate over all beliefs that the tables
    allow, whether a sampler has them or not. Covariances do not tell of what is open.

    Covariances of counts are the inverse information; of distributions, which have no sampling
    error, those of the scatter between contexts (White 1982): about 0 if the model holds exactly.
    """
    several = {"mind": beliefs} if isinstance(beliefs, RevealedBeliefs) else dict(beliefs)
    if not several:
        raise ValueError("At least one mind is fitted; got none.")
    if method not in ("mle", "map"):
        raise ValueError(f'method is "mle" or "map"; got {method!r}.')
    if not worth > 0:
        raise ValueError(f"worth is above 0; got {worth!r}.")
    used = {name: usable(name, own, keep_flagged) for name, own in several.items()}
    free = told_by(parameters, list(used.values()))
    groups: dict[tuple[object, ...], list[str]] = defaultdict(list)
    for name, own in used.items():
        design = (
            own.table.edges.tobytes(),
            own.table.log_truth.tobytes(),
            own.table.marks.tobytes(),
        )
        groups[design].append(name)
    found: dict[str, int] = {}
    fits = []
    for names in groups.values():
        first = used[names[0]].table
        table = first._replace(
            weight=np.concatenate([used[name].table.weight for name in names]),
            high=np.concatenate([used[name].table.high for name in names]),
            missing=np.concatenate([used[name].table.missing for name in names]),
            counted=np.concatenate([used[name].table.counted for name in names]),
        )
        for name in names:
            found[name] = len(found)
        fits.append(fit_table(table, free, method=method, worth=worth, workers=workers))
    order = np.array([found[name] for name in several])
    z, value, information, meat, promise = (
        np.concatenate(parts)[order] for parts in zip(*fits, strict=True)
    )
    found_ends = np.array(
        [
            _ends(own, free, line, search=ends)
            for own, line in zip(used.values(), z, strict=True)
        ]
    )  # fmt: skip
    return _assemble(several, used, free, method, z, value, information, meat, promise, found_ends)


def fit_table(
    table: BeliefTable,
    free: NDArray[np.int64],
    *,
    method: str = "mle",
    worth: float = 1.0,
    workers: int | None = None,
) -> tuple[Array, Array, Array, Array, Array]:
    """Fit all agents of a table; the estimates z[N, K] and more, for those who have arrays.

    Parameters
    ----------
    free
        Which parameters are estimated, as positions in `SAMPLER`.

    Returns
    -------
    z [N, K], the objective [N], information [N, K, K], the sum over contexts of squared scores
    [N, K, K], and what a further step promises [N].
    """
    n, k = len(table.weight), len(free)
    z, value, promise = np.zeros((n, k)), np.zeros(n), np.zeros(n)
    information, meat = np.zeros((n, k, k)), np.zeros((n, k, k))
    precision = (SAMPLER.sd**-2.0 if method == "map" else np.zeros(len(SAMPLER)))[free]
    reach = (REACH * SAMPLER.sd)[free]
    laid = _Layout.of(table, free, worth)

    def batch(rows: Integers) -> None:
        own = slice(rows[0], rows[-1] + 1)
        found = value[own], information[own], meat[own], promise[own]
        _fit(laid, int(rows[0]), precision, worth, reach, z[own], found)

    in_batches(batch, n, SUBJECTS_PER_BATCH, workers)
    return z, value - laid.constant, information, meat, promise


class _Layout(NamedTuple):
    """A table as the kernel wants it: outcomes that differ in nothing are one row.

    Where all weights are counts, contexts that differ in nothing are one as well. Of what is
    wholly known there are left how much it is, and its sums of each parameter's features: the
    samplers are an exponential family. Distributions are normalised; their negative entropies
    are part of `constant`, [N], which the kernel leaves out.
    """

    log_truth: Array  # above that of the most probable outcome of the context, each value once
    level: Integers  # which of these a row has, [R]
    many: Array  # how many outcomes a row stands for, [R]
    edges: Integers  # [C + 1]
    split: Integers  # [C], where the rows without any mark begin
    first: Integers  # [R + 1], where the marks of a row begin in the next
    mark: Integers  # positions among the free parameters
    start: Integers  # [C + 1], where the parameters that a context tells begin in the next
    told: Integers  # positions among the free parameters, from small to large
    scatter: bool  # whether squared scores are wanted
    bent: bool  # whether the temperature is free
    weighs: Array  # [N, C]
    sums: Array  # [N, C, K]
    weight: Array  # [N, R], if anything is missing
    high: Array
    missing: Array  # [N, C]
    constant: Array

    @classmethod
    def of(cls, table: BeliefTable, free: NDArray[np.int64], worth: float) -> _Layout:
        """Lay out a table for these parameters."""
        sizes = np.diff(table.edges)
        context = np.repeat(np.arange(len(sizes)), sizes)
        top = np.maximum.reduceat(table.log_truth, table.edges[:-1]) if len(sizes) else sizes
        log_truth = table.log_truth - top[context]
        scatter, bent = not table.counted.all(), bool((free == 0).any())
        missing, weight, constant = table.missing, table.weight, np.zeros(len(table.weight))
        if scatter:
            missing = np.where(table.counted, 0.0, missing)
            shared = ~(table.counted | (missing > 0))[:, context]
            total = _sums(np.where(shared, weight, 0.0), table.edges)[:, context]
            share = np.where(shared & (total > 0), weight, 0.0) / np.where(total > 0, total, 1.0)
            constant = worth * xlogy(share, share).sum(axis=1)
            weight = np.where(shared, worth * share, weight)
        # What was not placed is bounded outcome by outcome, which cannot be merged.
        whole: Booleans = np.asarray((missing <= 0).all(axis=0))
        alone = np.where(whole[context], 0, np.arange(len(context)))
        marked = table.marks[:, free[free > 0] - 1]
        plain = ~(marked > 0).any(axis=1)
        kinds, which, many = np.unique(
            np.column_stack([context, plain, alone, log_truth, marked]),
            axis=0,
            return_inverse=True,
            return_counts=True,
        )
        which = which.reshape(-1)
        own, features = kinds[:, 0].astype(np.int64), kinds[:, 3:]
        edges = np.searchsorted(own, np.arange(len(sizes) + 1))
        kept = same = np.arange(len(sizes))
        if not scatter:
            # The first context of each kind takes the counts of all.
            seen: dict[bytes, int] = {}
            rows = np.column_stack([many, features])
            ends = zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)
            same = np.array(
                [seen.setdefault(rows[a:b].tobytes(), k) for k, (a, b) in enumerate(ends)],
                dtype=np.int64,
            )
            kept, same = np.unique(same, return_inverse=True)
        row = np.isin(own, kept)
        flags = features[row, 1:] > 0
        edges = np.searchsorted(own[row], np.append(kept, len(sizes))).astype(np.int64)
        # A parameter is told of by contexts with an outcome that it bears on.
        borne = (features[row] != 0)[:, 0 if bent else 1 :]
        present = _sums(borne.T.astype(float), edges).T > 0
        position = np.flatnonzero(free > 0)
        # Sums over the outcomes of each context, of each feature and of 1.
        values = scipy.sparse.csr_array(np.column_stack([log_truth, marked])[:, 0 if bent else 1 :])
        ones = scipy.sparse.csr_array(np.ones((len(context), 1)))
        found = scipy.sparse.coo_array(scipy.sparse.hstack([values, ones]))
        width = len(free) + 1
        column = same[context[found.row]] * width + found.col
        summing = scipy.sparse.csr_array(
            (found.data, (column, found.row)), shape=(len(kept) * width, len(context))
        )
        found_sums: Array = np.asarray(summing @ weight.T)
        sums = found_sums.T.reshape(len(weight), len(kept), width)
        if not bent:
            constant = constant - weight @ log_truth
        # Row by row only where something is missing; then nothing was merged across contexts.
        apart = np.argsort(which, kind="stable")[: 0 if whole.all() else None]
        parts = np.zeros(1, dtype=np.int64)
        if len(apart):
            parts = np.searchsorted(which[apart], np.arange(len(kinds) + 1)).astype(np.int64)
        has_mark = np.concatenate([[0], np.cumsum(flags.any(axis=1))])
        levels, level = np.unique(features[row, 0], return_inverse=True)
        return cls(
            log_truth=levels,
            level=level.reshape(-1).astype(np.int64),
            many=many[row].astype(float),
            edges=edges,
            split=(edges[:-1] + has_mark[edges[1:]] - has_mark[edges[:-1]]).astype(np.int64),
            first=_starts(flags),
            mark=position[np.nonzero(flags)[1]],
            start=_starts(present),
            told=np.nonzero(present)[1],
            scatter=scatter,
            bent=bent,
            weighs=np.ascontiguousarray(sums[:, :, -1]),
            sums=np.ascontiguousarray(sums[:, :, :-1]),
            weight=_sums(weight[:, apart], parts),
            high=_sums(table.high[:, apart], parts),
            missing=missing[:, kept],
            constant=constant,
        )


def _starts(flags: Booleans) -> Integers:
    """Return where the positions of each row's flags begin in a list of all, and its end."""
    return np.concatenate([[0], np.cumsum(flags.sum(axis=1))]).astype(np.int64)


def _sums(values: Array, edges: Integers) -> Array:
    """Return the sums [N, C] of values [N, R] between edges; none of the parts is empty."""
    if len(edges) < 2:
        return np.zeros((len(values), 0))
    found: Array = np.add.reduceat(values, edges[:-1], axis=1)
    return found


class Usable(NamedTuple):
    """An agent's contexts as they are fitted, without flagged ones and impossible outcomes.

    Parameters
    ----------
    table : of this agent alone
    allowed : the beliefs that the tables allow; counts are taken as they are
    kept : which contexts are in the table, by all contexts
    elsewhere, elsewhere_low, elsewhere_high, leak, flagged : see `BeliefSamplerFits`
    """

    table: BeliefTable
    allowed: OpenBeliefs
    kept: Booleans
    elsewhere: float
    elsewhere_low: float
    elsewhere_high: float
    leak: float
    flagged: int


def usable(name: str, beliefs: RevealedBeliefs, keep_flagged: bool) -> Usable:
    """Lay out an agent's contexts, without flagged ones and impossible outcomes."""
    if np.isnan(beliefs.truth).any():
        raise ValueError(
            f"A belief sampler starts from the true probabilities; {name!r} lacks some. Give "
            "truth when reading, or use with_truth."
        )
    retained, possible = beliefs.retained, beliefs.truth > 0
    kept = np.isfinite(retained) & (retained > 0)
    if not keep_flagged:
        kept &= ~beliefs.flagged
    counted = beliefs.draws > 0
    inside = np.where(possible, np.nan_to_num(beliefs.probability), 0.0)
    with np.errstate(invalid="ignore"):
        right = np.bincount(beliefs.context, inside, len(beliefs)) / retained
    elsewhere = 1.0 - retained[kept]
    low, high = 1.0 - beliefs.retained_high[kept], 1.0 - beliefs.retained_low[kept]
    ends = (float(low.mean()), float(high.mean())) if kept.any() else (np.nan, np.nan)
    share = float(elsewhere.mean()) if kept.any() else np.nan
    if kept.any() and counted[kept].all():
        draws = beliefs.draws[kept].astype(float)
        share = float((elsewhere * draws).sum() / draws.sum())
        said = wilson(np.array([share * draws.sum()]), np.array([draws.sum()]))
        ends = float(said[0][0]), float(said[1][0])
    row = kept[beliefs.context] & possible
    context = beliefs.context[row]
    order, sizes = np.unique(context, return_counts=True)
    weight = np.where(counted[context], beliefs.count[row].astype(float), beliefs.probability[row])
    missing = np.array([_missing(beliefs, k, possible) for k in order.tolist()])
    table = BeliefTable(
        log_truth=np.log(beliefs.truth[row]),
        marks=beliefs.marks[row].astype(float),
        edges=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        weight=weight[None],
        high=np.where(counted[context], weight, beliefs.high[row])[None],
        missing=missing.reshape(1, -1),
        counted=counted[order][None],
    )
    narrow = kept & (np.bincount(beliefs.context, ~possible, len(beliefs)) > 0)
    wrong = float((1.0 - right[narrow]).mean()) if narrow.any() else np.nan
    place = np.where(row, np.cumsum(row) - 1, -1)
    units = [unit for k in order.tolist() for unit in units_of_rows(beliefs.unplaced[k], place)]
    allowed = OpenBeliefs(weight, np.searchsorted(order, context), tuple(units))
    flagged = int(len(beliefs) - kept.sum())
    return Usable(table, allowed, kept, share, *ends, wrong, flagged)


def _missing(beliefs: RevealedBeliefs, context: int, possible: Booleans) -> float:
    """Return what could not be placed and may lie on an outcome that can come."""
    return float(
        sum(mass for mass, rows in beliefs.unplaced[context] if possible[list(rows)].any())
    )


def told_by(names: Sequence[str] | None, used: Sequence[Usable]) -> NDArray[np.int64]:
    """Return which parameters are estimated: those asked for, or all that can be told."""
    if names is not None:
        strange = [name for name in names if name not in SAMPLER.names]
        if strange:
            raise ValueError(unknown("parameter of a belief sampler", strange[0], SAMPLER.names))
        if len(set(names)) < len(names) or not len(names):
            raise ValueError(f"Parameters are named once each, at least one; got {list(names)}.")
        return np.sort(np.array([SAMPLER.index(name) for name in names], dtype=np.int64))
    # What is the same for all outcomes of each context cannot be told; nor what others make up.
    gram = np.sum([spread_of(own.table) for own in used], axis=0)
    chosen: list[int] = []
    for k in range(len(SAMPLER)):
        tried = [*chosen, k]
        if np.linalg.matrix_rank(gram[np.ix_(tried, tried)], tol=1e-8) == len(tried):
            chosen = tried
    if not chosen:
        raise ValueError(
            "A fit needs contexts with at least two outcomes that differ in their probability or "
            "in what marks them; got none. Look at the flags of the beliefs."
        )
    return np.array(chosen, dtype=np.int64)


def spread_of(table: BeliefTable) -> Array:
    """Return the sums of products of log truth and marks within contexts, [7, 7]."""
    features = np.column_stack([table.log_truth, table.marks])
    sizes = np.diff(table.edges)
    means = _sums(features.T, table.edges).T / sizes[:, None]
    centred = features - np.repeat(means, sizes, axis=0)
    products: Array = centred.T @ centred
    return products


class SamplerAt(NamedTuple):
    """A belief sampler in the contexts of a table.

    Parameters
    ----------
    shares : of each outcome, [R]
    slopes : derivatives of the logarithms of these shares, but for the constant of each
        context, by the free parameters on the line, [R, K]
    """

    shares: Array
    slopes: Array

    @classmethod
    def of(cls, table: BeliefTable, free: NDArray[np.int64], z: Array) -> SamplerAt:
        """Compute them at z[K]; what is not free stands at the temperature 1, without bias."""
        full = np.zeros(len(SAMPLER))
        full[free] = z
        height = table.log_truth * np.exp(-full[0]) + table.marks @ full[1:]
        sizes = np.diff(table.edges)
        weight = np.exp(height - np.repeat(np.maximum.reduceat(height, table.edges[:-1]), sizes))
        shares = weight / np.repeat(np.add.reduceat(weight, table.edges[:-1]), sizes)
        slopes = np.column_stack([-table.log_truth * np.exp(-full[0]), table.marks])
        return cls(shares, slopes[:, free])

    def centred(self, table: BeliefTable) -> Array:
        """Return the slopes less their means under the sampler in each context, [R, K]."""
        means = np.add.reduceat(self.shares[:, None] * self.slopes, table.edges[:-1])
        centred: Array = self.slopes - np.repeat(means, np.diff(table.edges), axis=0)
        return centred


class FitOfBelief(NamedTuple):
    """The sampler that is nearest to one belief, and what it hangs on.

    Parameters
    ----------
    z : the free parameters on the line, [K]
    sampler : at these
    slopes : derivatives of each parameter by the normalised belief, [K, R]
    """

    z: Array
    sampler: SamplerAt
    slopes: Array


def fit_belief(table: BeliefTable, free: NDArray[np.int64], belief: Array) -> FitOfBelief:
    """Fit a sampler to one normalised belief, [R]; counts weigh as many as there are."""
    weighs = np.repeat(
        np.where(table.counted[0], np.add.reduceat(table.weight[0], table.edges[:-1]), 1.0),
        np.diff(table.edges),
    )
    known = table._replace(
        weight=(weighs * belief)[None],
        high=(weighs * belief)[None],
        missing=np.zeros_like(table.missing),
    )
    z, _, information, *_ = fit_table(known, free, workers=1)
    sampler = SamplerAt.of(table, free, z[0])
    inverse = np.linalg.pinv(information[0], hermitian=True)
    return FitOfBelief(z[0], sampler, inverse @ sampler.centred(table).T * weighs)


def nearest_belief(table: BeliefTable, free: NDArray[np.int64], z: Array) -> Array:
    """Return the normalised belief that is nearest to a sampler of those a table allows, [R]."""
    shares = SamplerAt.of(table, free, z).shares
    found: Array = table.weight[0].astype(float)
    for k, (a, b) in enumerate(zip(table.edges[:-1], table.edges[1:], strict=True)):
        if table.missing[0, k] > 0 and not table.counted[0, k]:
            model, low, high = (
                np.maximum(shares[a:b], 1e-300),
                found[a:b].copy(),
                table.high[0, a:b],
            )
            _nearest(model, low, high, table.missing[0, k], found[a:b])
        elif (total := found[a:b].sum()) > 0:
            found[a:b] /= total
    return found


def _ends(used: Usable, free: NDArray[np.int64], z: Array, *, search: bool) -> tuple[Array, Array]:
    """Return the ends of each estimate over all beliefs that tables allow, on the line, [K]."""
    if not used.allowed.is_open:
        return z, z
    if not search:
        return np.full(len(z), np.nan), np.full(len(z), np.nan)
    start = nearest_belief(used.table, free, z)
    reach = (REACH * SAMPLER.sd)[free]
    least, most = z.copy(), z.copy()
    for k in range(len(free)):

        def read(belief: Array, k: int = k) -> Read:
            found = fit_belief(used.table, free, belief)
            return Read(float(found.z[k]), found.slopes[k])

        low, high = (read(belief).value for belief in used.allowed.extremes(read, start))
        least[k], most[k] = min(low, z[k]), max(high, z[k])
    return (
        np.where(least <= -reach, -np.inf, least),
        np.where(most >= reach, np.inf, most),
    )


def _assemble(
    several: Mapping[str, RevealedBeliefs],
    used: Mapping[str, Usable],
    free: NDArray[np.int64],
    method: str,
    z: Array,
    value: Array,
    information: Array,
    meat: Array,
    promise: Array,
    ends: Array,
) -> BeliefSamplerFits:
    estimated = Parameters(*(parameter for k, parameter in enumerate(SAMPLER) if k in free))
    tables = [used[name].table for name in several]
    counts = np.array([bool(table.counted.all()) for table in tables])
    n_contexts = np.array([len(table.edges) - 1 for table in tables], dtype=np.int64)
    with np.errstate(all="ignore"):
        covariance = inverted(information)
        k = len(free)
        spare = np.where(n_contexts > k, n_contexts / np.maximum(n_contexts - k, 1), np.nan)
        scatter = covariance @ meat @ covariance * spare[:, None, None]
        covariance = np.where(counts[:, None, None], covariance, scatter)
    z = np.where(n_contexts[:, None] > 0, z, np.nan)
    ends = np.where(n_contexts[:, None, None] > 0, ends, np.nan)
    # Flatness is judged by what the data would say as draws.
    found = Optimum(z, value, information, covariance, promise)
    status, message = statuses(estimated, "mle", found, n_contexts)
    prior = 0.0
    if method == "map":
        prior = -0.5 * (((z - estimated.mean) / estimated.sd) ** 2).sum(axis=1)
    fit = PointFit(
        model="belief_sampler",
        method=method,
        subjects=tuple(several),
        parameters=estimated,
        z=z,
        covariance=covariance,
        log_likelihood=value - prior,
        log_posterior=value,
        status=status,
        message=message,
        agreement=np.ones(len(z)),
        n_trials=n_contexts,
    )
    held = {
        name: float(SAMPLER.constrain(np.zeros(len(SAMPLER)))[k])
        for k, name in enumerate(SAMPLER.names)
        if k not in free
    }
    own = list(used.values())
    return BeliefSamplerFits(
        fit=fit,
        held=held,
        elsewhere=np.array([u.elsewhere for u in own]),
        elsewhere_low=np.array([u.elsewhere_low for u in own]),
        elsewhere_high=np.array([u.elsewhere_high for u in own]),
        leak=np.array([u.leak for u in own]),
        n_contexts=n_contexts,
        flagged=np.array([u.flagged for u in own], dtype=np.int64),
        least=estimated.constrain(ends[:, 0]),
        most=estimated.constrain(ends[:, 1]),
    )


@compiled()
def _raise(level, model, low, high, belief):  # type: ignore[no-untyped-def]
    """Put level x model, within its bounds, in place of each belief; return the sum."""
    total = 0.0
    for i in range(len(low)):
        belief[i] = min(max(level * model[i], low[i]), high[i])
        total += belief[i]
    return total


@compiled()
def _overshoots(level, total, model, belief):  # type: ignore[no-untyped-def]
    """Tell whether outcomes at this level have more than the nearest belief would give them."""
    divergence = 0.0
    for i in range(len(belief)):
        if belief[i] > 0.0:
            q = belief[i] / total
            divergence += q * np.log(q / model[i])
    return np.log(level / total) > divergence


@compiled()
def _nearest(model, low, high, missing, belief):  # type: ignore[no-untyped-def]
    """Write the normalised belief within the bounds that is nearest to the model, by KL.

    What is missing raises the outcomes that lag behind the model, all to the same level of
    q / model; the rest of it, if any, lies on no outcome.
    """
    n = len(low)
    least, above = 0.0, 0.0
    for i in range(n):
        least += low[i]
        if high[i] > 0.0:
            above = max(above, high[i] / model[i])
    bottom, top = 0.0, above
    if _raise(top, model, low, high, belief) > least + missing:
        for _ in range(BISECTIONS):
            middle = 0.5 * (bottom + top)
            if _raise(middle, model, low, high, belief) > least + missing:
                top = middle
            else:
                bottom = middle
        top = bottom
    total = _raise(top, model, low, high, belief)
    if total > 0.0 and _overshoots(top, total, model, belief):
        bottom = 0.0
        for _ in range(BISECTIONS):
            middle = 0.5 * (bottom + top)
            total = _raise(middle, model, low, high, belief)
            if total <= 0.0 or not _overshoots(middle, total, model, belief):
                bottom = middle
            else:
                top = middle
        total = _raise(top, model, low, high, belief)
    for i in range(n):
        belief[i] = belief[i] / total if total > 0.0 else model[i]


@compiled(fastmath={"contract", "reassoc"})
def _evaluate(z, laid, s, worth, gradient, information, meat, rooms):  # type: ignore[no-untyped-def]
    """Return the objective of agent s at z[K]; write gradient and upper halves of two matrices."""
    (
        log_truth, level, many, edges, split, first, mark, start, told, scatter, bent,
        all_weighs, all_sums, all_weight, all_high, all_missing, _,
    ) = laid  # fmt: skip
    weighs, sums, missing = all_weighs[s], all_sums[s], all_missing[s]
    model, belief, mean, second, height, factor = rooms
    gradient[:] = 0.0
    information[:] = 0.0
    meat[:] = 0.0
    objective = 0.0
    sharpness = np.exp(-z[0]) if bent else 1.0
    # The most probable outcome of a context has the weight of its biases alone, which are within
    # reach: no weight overflows, nor do all vanish.
    for u in range(len(log_truth)):
        height[u] = np.exp(log_truth[u] * sharpness)
    for j in range(len(z)):
        factor[j] = np.exp(z[j])
    for c in range(len(edges) - 1):
        begin, middle, end = edges[c], split[c], edges[c + 1]
        for a in range(start[c], start[c + 1]):
            j = told[a]
            mean[j] = 0.0
            for b in range(a, start[c + 1]):
                second[j, told[b]] = 0.0
        total, raised, squared = 0.0, 0.0, 0.0
        for r in range(middle, end):
            t = log_truth[level[r]]
            p = many[r] * height[level[r]]
            total += p
            raised += p * t
            squared += p * t * t
        for r in range(begin, middle):
            t = log_truth[level[r]]
            p = many[r] * height[level[r]]
            for m in range(first[r], first[r + 1]):
                p *= factor[mark[m]]
            total += p
            raised += p * t
            squared += p * t * t
            for m in range(first[r], first[r + 1]):
                j = mark[m]
                mean[j] += p
                if bent:
                    second[0, j] += p * t
                for h in range(m, first[r + 1]):
                    second[j, mark[h]] += p
        if bent:
            mean[0], second[0, 0] = raised, squared
        known = weighs[c]
        if missing[c] > 0.0:
            n = end - begin
            for i in range(n):
                p = height[level[begin + i]]
                for m in range(first[begin + i], first[begin + i + 1]):
                    p *= factor[mark[m]]
                model[i] = max(p / total, 1e-300)
            weight, high = all_weight[s, begin:end], all_high[s, begin:end]
            _nearest(model[:n], weight, high, missing[c], belief[:n])
            known = worth
            for a in range(start[c], start[c + 1]):
                sums[c, told[a]] = 0.0
            for i in range(n):
                if belief[i] <= 0.0:
                    continue
                own = worth * belief[i]
                objective -= own * np.log(belief[i] / model[i])
                if bent:
                    sums[c, 0] += own * log_truth[level[begin + i]]
                for m in range(first[begin + i], first[begin + i + 1]):
                    sums[c, mark[m]] += own
        elif known > 0.0:
            objective -= known * np.log(total)
            for a in range(start[c], start[c + 1]):
                j = told[a]
                objective += sums[c, j] * (sharpness if bent and j == 0 else z[j])
        else:
            continue
        for a in range(start[c], start[c + 1]):
            mean[told[a]] /= total
        for a in range(start[c], start[c + 1]):
            j = told[a]
            score = sums[c, j] - known * mean[j]
            gradient[j] += score
            for b in range(a, start[c + 1]):
                h = told[b]
                information[j, h] += known * (second[j, h] / total - mean[j] * mean[h])
                if scatter:
                    meat[j, h] += score * (sums[c, h] - known * mean[h])
    if bent:  # from the derivative by 1/T to that by log T
        gradient[0] *= -sharpness
        for h in range(len(z)):
            information[0, h] *= -sharpness
            meat[0, h] *= -sharpness
        information[0, 0] *= -sharpness
        meat[0, 0] *= -sharpness
    return objective


@compiled()
def _solve(matrix, vector, work, solution):  # type: ignore[no-untyped-def]
    """Solve a positive semidefinite system by elimination, with a ridge of 1e-12 of its trace."""
    k = len(vector)
    ridge = 1e-300
    for i in range(k):
        ridge += 1e-12 * matrix[i, i]
    for i in range(k):
        for j in range(k):
            work[i, j] = matrix[i, j]
        work[i, i] += ridge
        work[i, k] = vector[i]
    for i in range(k):
        for h in range(i + 1, k):
            share = work[h, i] / work[i, i]
            for j in range(i, k + 1):
                work[h, j] -= share * work[i, j]
    for i in range(k - 1, -1, -1):
        rest = work[i, k]
        for j in range(i + 1, k):
            rest -= work[i, j] * solution[j]
        solution[i] = rest / work[i, i]


@compiled()
def _fit(laid, begin, precision, worth, reach, z, found):  # type: ignore[no-untyped-def]
    """Fit agents from number `begin` on by Fisher scoring with halved steps; fill in the rest."""
    edges, (value, informations, meats, promise) = laid.edges, found
    k, widest = z.shape[1], 0
    for c in range(len(edges) - 1):
        widest = max(widest, edges[c + 1] - edges[c])
    model, belief = np.empty(widest), np.empty(widest)
    gradient, information, meat = np.empty(k), np.empty((k, k)), np.empty((k, k))
    trial, step, work = np.empty(k), np.empty(k), np.empty((k, k + 1))
    mean, second = np.empty(k), np.empty((k, k))
    height, factor = np.empty(len(laid.log_truth)), np.empty(k)
    rooms = (model, belief, mean, second, height, factor)
    for s in range(len(z)):
        here = z[s]
        best = -np.inf
        step[:] = 0.0
        scale, halvings = 1.0, 0
        for _ in range(MOST_STEPS):
            for j in range(k):
                trial[j] = min(max(here[j] + scale * step[j], -reach[j]), reach[j])
            total = _evaluate(trial, laid, begin + s, worth, gradient, information, meat, rooms)
            for j in range(k):
                for h in range(j):
                    information[j, h], meat[j, h] = information[h, j], meat[h, j]
            for j in range(k):
                total -= 0.5 * precision[j] * trial[j] * trial[j]
                gradient[j] -= precision[j] * trial[j]
                information[j, j] += precision[j]
            if not total >= best - 1e-14 * abs(best) and halvings < 40:
                scale *= 0.5
                halvings += 1
                continue
            if halvings >= 40:
                break
            best = total
            for j in range(k):
                here[j] = trial[j]
            value[s] = total
            informations[s] = information
            meats[s] = meat
            _solve(information, gradient, work, step)
            longest, expected = 0.0, 0.0
            for j in range(k):
                held = abs(here[j]) >= reach[j] and gradient[j] * here[j] > 0.0
                if held:
                    step[j] = 0.0
                longest = max(longest, abs(step[j]))
                expected += step[j] * gradient[j]
            promise[s] = abs(expected)
            if not abs(expected) > ARRIVED:
                break
            scale, halvings = min(1.0, LONGEST_STEP / longest), 0
