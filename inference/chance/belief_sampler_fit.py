"""Belief samplers fitted to revealed beliefs: exact, sampled or known within bounds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from knownminds.agents import BeliefSampler
from knownminds.agents.parameters import Array, Parameters
from knownminds.environments.chance.outcome_grid import MARKS
from knownminds.environments.later import pandas as pd
from knownminds.environments.record.result import Result
from knownminds.inference.fits.nested_starts import REACH
from knownminds.inference.fits.point import Optimum, PointFit, inverted, statuses

from .open_beliefs import OpenBeliefs, Read
from .revealed_belief import Belief, Booleans, Integers, RevealedBeliefs, wilson

MOST_STEPS = 500
ARRIVED = 1e-13  # of the objective, which a step still promises
LONGEST_STEP = 1.0
MOST_HALVINGS = 40
BISECTIONS = 60

# What a sampler has besides its leak, which the rest does not hang on.
SAMPLER = Parameters(*list(BeliefSampler.parameters)[: 1 + len(MARKS)])


class BeliefTable(NamedTuple):
    """R outcomes in C contexts, and what an agent believes of them.

    Parameters
    ----------
    log_truth : Logarithms of the true probabilities, [R].
    marks : 0 or 1, [R, 6], as in `broken_off.MARKS`.
    edges : Where each context begins, and the end, [C + 1].
    weight : Counts, or probabilities before normalising, [R]; for top-k tables what is certain.
    high : The most that can lie on each outcome, [R].
    missing : What could not be placed, by context, [C].
    counted : Whether the weights of a context are counts, [C].
    """

    log_truth: Array
    marks: Array
    edges: Integers
    weight: Array
    high: Array
    missing: Array
    counted: Booleans

    def sums(self, values: Array) -> Array:
        """Return the sums of values [R, ...] within contexts, [C, ...]."""
        added: Array = np.add.reduceat(values, self.edges[:-1])
        return added

    def spread(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return a value of each context [C] for each of its outcomes, [R]."""
        return np.repeat(values, np.diff(self.edges))


@dataclass(frozen=True)
class BeliefSamplerFit(Result):
    """The belief sampler that is nearest to an agent's beliefs.

    Parameters
    ----------
    fit : Estimates of the agent, the only subject, with their covariance and status. The
        log-likelihood is that of the counts; of distributions it is minus the sum of divergences
        KL(belief | model), over contexts, so that 0 is a perfect fit.
    fixed : Parameters that no context could tell, with the value at which they stand.
    data : Contexts in the fit, and what was left out.
    least, most : The estimates' ends over all beliefs that top-k tables allow, [K]; the estimates
        themselves where nothing is open, infinite where the search met no end.
    """

    fit: PointFit
    fixed: Mapping[str, float]
    data: Usable
    least: Array
    most: Array

    def to_frame(self, mass: float = 0.9) -> pd.DataFrame:
        """One row: estimates, intervals, ends, elsewhere, what was left out."""
        data = self.data
        more = {name: getattr(data, name) for name in ("elsewhere", "elsewhere_low",
                                                       "elsewhere_high", "leak")}  # fmt: skip
        more |= {"contexts": len(data.table.edges) - 1, "flagged": data.flagged}
        for k, name in enumerate(self.fit.names):
            more |= {f"{name}_least": self.least[k], f"{name}_most": self.most[k]}
        return self.fit.to_frame(mass).drop(columns=["n_trials"]).assign(**more)


def fit_belief_sampler(beliefs: RevealedBeliefs, subject: str = "") -> BeliefSamplerFit:
    """Fit temperature and biases to the revealed beliefs of an agent.

    log q(o) = log p(o) / T + sum of the biases of what marks o - const. Exact distributions are
    fitted by cross-entropy, each context weighing the same; counts by their multinomial
    likelihood; top-k tables as interval-censored: the divergence from the model is that of the
    nearest belief within the bounds, whose missing mass lies as the model has it where it can.
    The objective is concave in 1/T and the biases, so there is one maximum, which Fisher scoring
    with exact derivatives finds. All parameters are estimated that the contexts can tell.

    Parameters
    ----------
    beliefs
        They need a truth; flagged contexts are left out.
    subject
        Name of the agent.

    Notes
    -----
    Where missing mass is large, several parameters fit top-k tables alike, and the estimate is the
    first of these that the search meets on its way from the truth (T = 1, no biases), so it may
    be too small. `least` and `most` are the ends of the estimate over all beliefs that the tables
    allow, whether a sampler has them or not. Covariances do not tell of what is open.

    Covariances of counts are the inverse information; of distributions, which have no sampling
    error, those of the scatter between contexts (White 1982): about 0 if the model holds exactly.
    """
    data = usable(subject, beliefs)
    free = identified_by(data.table)
    result = fit_table(data.table, free)
    estimated = Parameters(*(parameter for k, parameter in enumerate(SAMPLER) if k in free))
    contexts = np.array([len(data.table.edges) - 1], dtype=np.int64)
    z, value = result.z[None], np.array([result.value])
    covariance = inverted(result.information[None])
    if not data.table.counted.all():
        scatter = result.scatter * _spare(data.table, free)
        covariance = covariance @ scatter @ covariance
    # Flatness is judged by what the data would say as draws.
    promise = np.array([result.promise])
    optimum = Optimum(z, value, result.information[None], covariance, promise)
    status, message = statuses(estimated, "mle", optimum, contexts)
    point_fit = PointFit(
        model="belief_sampler",
        method="mle",
        subjects=(subject,),
        parameters=estimated,
        z=z,
        covariance=covariance,
        log_likelihood=value,
        log_posterior=value,
        status=status,
        message=message,
        agreement=np.ones(1),
        n_trials=contexts,
    )
    default = SAMPLER.constrain(np.zeros(len(SAMPLER)))
    fixed = {name: float(default[k]) for k, name in enumerate(SAMPLER.names) if k not in free}
    ends = (estimated.constrain(end) for end in _ends(data, free, result.z))
    return BeliefSamplerFit(point_fit, fixed, data, *ends)


class TableFit(NamedTuple):
    """The sampler that is nearest to a table.

    Parameters
    ----------
    z : the free parameters on the unconstrained scale, [K]
    value : of the objective
    information, scatter : and the sum over contexts of squared scores, [K, K]
    promise : by how much a further step would raise the objective
    """

    z: Array
    value: float
    information: Array
    scatter: Array
    promise: float


def fit_table(table: BeliefTable, free: NDArray[np.int64]) -> TableFit:
    """Fit the free parameters [K], positions in `SAMPLER`, by Fisher scoring with halved steps."""
    k = len(free)
    reach = (REACH * SAMPLER.sd)[free]
    fit = TableFit(np.zeros(k), -np.inf, np.zeros((k, k)), np.zeros((k, k)), 0.0)
    if len(table.edges) < 2:
        return fit._replace(value=0.0)
    step = np.zeros(k)
    halvings = 0
    for _ in range(MOST_STEPS):
        z = np.clip(fit.z + step, -reach, reach)
        value, gradient, information, scatter = _evaluate(table, free, z)
        if not value >= fit.value - 1e-14 * abs(fit.value):
            if halvings == MOST_HALVINGS:
                break
            step, halvings = step / 2.0, halvings + 1
            continue
        ridge = 1e-12 * np.trace(information) + 1e-300
        step = np.linalg.solve(information + ridge * np.eye(k), gradient)
        step[(np.abs(z) >= reach) & (gradient * z > 0.0)] = 0.0
        fit = TableFit(z, value, information, scatter, abs(float(step @ gradient)))
        if not fit.promise > ARRIVED:
            break
        step *= min(1.0, LONGEST_STEP / np.abs(step).max())
        halvings = 0
    return fit


def _evaluate(
    table: BeliefTable, free: NDArray[np.int64], z: Array
) -> tuple[float, Array, Array, Array]:
    """Return the objective at z [K], its gradient, the information and the squared scores."""
    sampler = SamplerAt.of(table, free, z)
    belief = _nearest(table, sampler.shares)
    weigh = table.spread(np.where(table.counted, table.sums(table.weight), 1.0))
    weigh = np.where(table.spread(table.sums(belief)) > 0.0, weigh, 0.0)  # contexts without any
    logs = np.log(np.maximum(sampler.shares, 1e-300))
    value = weigh * (
        belief * logs - np.where(table.spread(table.counted), 0.0, xlogy(belief, belief))
    )
    centred = sampler.centred(table)
    scores = table.sums((weigh * (belief - sampler.shares))[:, None] * centred)
    information = (weigh * sampler.shares * centred.T) @ centred
    return float(value.sum()), scores.sum(axis=0), information, scores.T @ scores


def _nearest(table: BeliefTable, shares: Array) -> Array:
    """Return the normalised beliefs [R] within the bounds that are nearest to a model, by KL.

    What is missing raises the outcomes that lag behind the model, all of a context to the same
    level of belief / model; the rest of it, if any, lies on no outcome.
    """
    model = np.maximum(shares, 1e-300)
    most = table.sums(table.weight) + np.where(table.counted, 0.0, table.missing)
    high = np.where(table.spread(table.counted | (table.missing <= 0)), table.weight, table.high)

    def raised(level: Array) -> Array:
        belief: Array = np.clip(table.spread(level) * model, table.weight, high)
        return belief

    def too_much(level: Array) -> Booleans:
        return np.asarray(table.sums(raised(level)) > most)

    def overshoots(level: Array) -> Booleans:
        """Say where outcomes at this level have more than the nearest belief would give them."""
        belief = raised(level)
        total = table.sums(belief)
        with np.errstate(divide="ignore", invalid="ignore"):
            belief = belief / table.spread(total)
            divergence = table.sums(xlogy(belief, belief / model))
            return np.asarray((total > 0.0) & (np.log(level / total) > divergence))

    with np.errstate(divide="ignore", invalid="ignore"):
        level = np.maximum.reduceat(high / model, table.edges[:-1])
        if (table.missing > 0.0).any():
            level = _lowered(too_much, level)
            level = _lowered(overshoots, level)
        belief = raised(level)
        total = table.spread(table.sums(belief))
        return np.where(total > 0.0, belief / total, 0.0)


def _lowered(too_high: Callable[[Array], Booleans], level: Array) -> Array:
    """Return the highest levels [C], up to these, that are not too high."""
    low, high = np.zeros_like(level), level
    above = too_high(level)
    if not above.any():
        return level
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        over = too_high(middle)
        low, high = np.where(over, low, middle), np.where(over, middle, high)
    return np.where(above, low, level)


class Usable(NamedTuple):
    """An agent's contexts as they are fitted, without flagged ones and impossible outcomes.

    Parameters
    ----------
    table : of this agent alone
    allowed : the beliefs that the tables allow; counts are taken as they are
    elsewhere, elsewhere_low, elsewhere_high : share of what is said that is no outcome, mean over
        contexts; for sampled beliefs of all draws together, with Wilson's interval; bounds where
        probability could not be placed
    leak : share of the retained mass on outcomes that cannot come, mean over the contexts that have
        any; these outcomes have no part in the other parameters
    flagged : contexts that were left out since they are flagged
    """

    table: BeliefTable
    allowed: OpenBeliefs
    elsewhere: float
    elsewhere_low: float
    elsewhere_high: float
    leak: float
    flagged: int


def usable(name: str, beliefs: RevealedBeliefs) -> Usable:
    """Lay out an agent's contexts, without flagged ones and impossible outcomes."""
    if any(np.isnan(belief.truth).any() for belief in beliefs):
        raise ValueError(
            f"A belief sampler starts from the true probabilities; {name!r} lacks some. Give "
            "set_ups with a truth when reading the beliefs."
        )
    kept = [belief for belief in beliefs if not belief.flag]
    counted = np.array([belief.draws > 0 for belief in kept], dtype=bool)
    log_truth, marks, weight, high, missing, wrong = [], [], [], [], [], []
    units: list[tuple[float, tuple[int, ...]]] = []
    edges = [0]
    for belief in kept:
        possible = belief.truth > 0
        position = edges[-1] + np.cumsum(possible) - 1
        weights = belief.count.astype(float) if belief.draws else belief.probability
        log_truth.append(np.log(belief.truth[possible]))
        marks.append(belief.marks[possible].astype(float))
        weight.append(weights[possible])
        high.append((weights if belief.draws else belief.ends[1])[possible])
        inside = [(mass, [i for i in rows if possible[i]]) for mass, rows in belief.unplaced]
        inside = [(mass, rows) for mass, rows in inside if rows and mass > 0]
        units += [(mass, tuple(position[rows].tolist())) for mass, rows in inside]
        missing.append(float(sum(mass for mass, _ in inside)))
        if not possible.all():
            wrong.append(1.0 - belief.probability[possible].sum() / belief.retained)
        edges.append(int(position[-1]) + 1)
    table = BeliefTable(
        log_truth=np.concatenate([np.zeros(0), *log_truth]),
        marks=np.concatenate([np.zeros((0, len(MARKS))), *marks]),
        edges=np.array(edges, dtype=np.int64),
        weight=np.concatenate([np.zeros(0), *weight]),
        high=np.concatenate([np.zeros(0), *high]),
        missing=np.array(missing),
        counted=counted,
    )
    allowed = OpenBeliefs(table.weight, table.spread(np.arange(len(kept))), tuple(units))
    elsewhere = _elsewhere(kept, counted)
    leak = float(np.mean(wrong)) if wrong else np.nan
    return Usable(table, allowed, *elsewhere, leak, len(beliefs) - len(kept))


def _elsewhere(kept: Sequence[Belief], counted: Booleans) -> tuple[float, float, float]:
    """Return the share of what is said that is no outcome, with its ends."""
    if not kept:
        return np.nan, np.nan, np.nan
    share = 1.0 - np.array([(b.retained, *b.retained_ends) for b in kept])
    if not counted.all():
        mean, high, low = share.mean(axis=0).tolist()
        return mean, low, high
    draws = np.array([belief.draws for belief in kept], dtype=float)
    n = draws.sum()
    mean = float((share[:, 0] * draws).sum() / n)
    (low,), (high,) = wilson(np.array([mean * n]), np.array([n]))
    return mean, float(low), float(high)


def identified_by(table: BeliefTable) -> NDArray[np.int64]:
    """Return the positions of the parameters that the contexts can tell.

    What is the same for all outcomes of each context cannot be told; nor what others make up.

    Raises
    ------
    ValueError
        If there are none.
    """
    gram = spread_of(table)
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
    if not len(sizes):
        return np.zeros((len(SAMPLER), len(SAMPLER)))
    means = table.sums(features) / sizes[:, None]
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
        weight = np.exp(height - table.spread(np.maximum.reduceat(height, table.edges[:-1])))
        shares = weight / table.spread(table.sums(weight))
        slopes = np.column_stack([-table.log_truth * np.exp(-full[0]), table.marks])
        return cls(shares, slopes[:, free])

    def centred(self, table: BeliefTable) -> Array:
        """Return the slopes less their means under the sampler in each context, [R, K]."""
        means = table.sums(self.shares[:, None] * self.slopes)
        centred: Array = self.slopes - np.repeat(means, np.diff(table.edges), axis=0)
        return centred


class FitOfBelief(NamedTuple):
    """The sampler that is nearest to one belief, and what it hangs on.

    Parameters
    ----------
    z : the free parameters on the unconstrained scale, [K]
    slopes : derivatives of each parameter by the normalised belief, [K, R]
    covariance : by the scatter between contexts (White 1982), [K, K]
    """

    z: Array
    slopes: Array
    covariance: Array


def fit_belief(table: BeliefTable, free: NDArray[np.int64], belief: Array) -> FitOfBelief:
    """Fit a sampler to one normalised belief, [R]; counts weigh as many as there are."""
    weigh = table.spread(np.where(table.counted, table.sums(table.weight), 1.0))
    own = table._replace(
        weight=weigh * belief, high=weigh * belief, missing=np.zeros_like(table.missing)
    )
    fit = fit_table(own, free)
    inverse = np.linalg.pinv(fit.information, hermitian=True)
    slopes = inverse @ SamplerAt.of(table, free, fit.z).centred(table).T * weigh
    return FitOfBelief(fit.z, slopes, inverse @ fit.scatter @ inverse * _spare(table, free))


def _spare(table: BeliefTable, free: NDArray[np.int64]) -> float:
    """Return C / (C - K) for C contexts and K parameters; NaN where there are too few."""
    contexts, k = len(table.edges) - 1, len(free)
    return contexts / (contexts - k) if contexts > k else float("nan")


def nearest_belief(table: BeliefTable, free: NDArray[np.int64], z: Array) -> Array:
    """Return the normalised belief that is nearest to a sampler of those a table allows, [R]."""
    return _nearest(table, SamplerAt.of(table, free, z).shares)


def extreme_beliefs(
    used: Usable, free: NDArray[np.int64], parameter: int, start: Array
) -> tuple[Array, Array]:
    """Return the beliefs with the least and the largest free parameter, by position, [R] each."""

    def read(belief: Array) -> Read:
        fit = fit_belief(used.table, free, belief)
        return Read(float(fit.z[parameter]), fit.slopes[parameter])

    return used.allowed.extremes(read, start)


def _ends(used: Usable, free: NDArray[np.int64], z: Array) -> tuple[Array, Array]:
    """Return the ends of each estimate over all beliefs that tables allow, in z, [K] each."""
    if not used.allowed.is_open:
        return z, z
    start = nearest_belief(used.table, free, z)
    reach = (REACH * SAMPLER.sd)[free]
    least, most = z.copy(), z.copy()
    for k in range(len(free)):
        beliefs = extreme_beliefs(used, free, k, start)
        low, high = (float(fit_belief(used.table, free, belief).z[k]) for belief in beliefs)
        least[k], most[k] = min(low, z[k]), max(high, z[k])
    return (
        np.where(least <= -reach, -np.inf, least),
        np.where(most >= reach, np.inf, most),
    )
