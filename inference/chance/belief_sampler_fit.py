"""Belief samplers fitted to revealed beliefs: exact, sampled or known within bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import xlogy

from knownminds.agents import BeliefSampler
from knownminds.agents.parameters import Array, Parameters
from knownminds.environments.chance.context_grid import MARKS
from knownminds.environments.later import pandas as pd
from knownminds.environments.record.outcome_rates import wilson
from knownminds.environments.record.tabled_result import TabledResult
from knownminds.inference.fits.nested_starts import REACH
from knownminds.inference.fits.point import Optimum, PointFit, inverted, statuses

from .open_beliefs import OpenBeliefs
from .revealed_belief import Belief, Booleans, Integers, RevealedBeliefs

MOST_STEPS = 500
ARRIVED = 1e-13  # a search has arrived if a further step promises to gain less
LONGEST_STEP = 1.0
MOST_HALVINGS = 40
BISECTIONS = 60

# The parameters of a sampler besides its leak, which does not affect the others.
SAMPLER = Parameters(*list(BeliefSampler.parameters)[: 1 + len(MARKS)])


class TableFit(NamedTuple):
    """The sampler that is nearest to the beliefs of a table.

    Parameters
    ----------
    z : the free parameters on the unconstrained scale, [K]
    value : the value of the objective
    information, scatter : the information, and the sum over contexts of squared scores, [K, K]
    promise : by how much a further step would raise the objective
    """

    z: Array
    value: float
    information: Array
    scatter: Array
    promise: float


@dataclass(frozen=True, eq=False)
class BeliefTable:
    """R possible outcomes, in C contexts, and an agent's beliefs about them.

    Parameters
    ----------
    features : Logarithms of the true probabilities, and the marks of `broken_off.MARKS`, [R, 7].
    edges : Where each context begins, and the end, [C + 1].
    weight : Counts, or probabilities before normalising, [R]; for top-k tables the certain part.
    high : The largest probability that each outcome can have, [R].
    missing : The probability that could not be placed, by context, [C].
    counted : Whether the weights of a context are counts, [C].
    units : The unplaced probability in parts: mass, and the rows on which it may lie.
    """

    features: Array
    edges: Integers
    weight: Array
    high: Array
    missing: Array
    counted: Booleans
    units: tuple[tuple[float, tuple[int, ...]], ...] = ()

    @classmethod
    def of(cls, beliefs: Sequence[Belief]) -> BeliefTable:
        """Lay out beliefs without the impossible outcomes."""
        features, weight, high = [np.zeros((0, len(SAMPLER)))], [np.zeros(0)], [np.zeros(0)]
        units: list[tuple[float, tuple[int, ...]]] = []
        edges, missing = [0], []
        for belief in beliefs:
            possible = belief.truth > 0
            row = edges[-1] + np.cumsum(possible) - 1
            weights = belief.count.astype(float) if belief.draws else belief.probability
            logs = np.log(belief.truth[possible])
            features.append(np.column_stack([logs, belief.marks[possible]]))
            weight.append(weights[possible])
            high.append((weights if belief.draws else belief.ends[1])[possible])
            inside = [(mass, [i for i in rows if possible[i]]) for mass, rows in belief.unplaced]
            inside = [(mass, rows) for mass, rows in inside if rows and mass > 0]
            units += [(mass, tuple(row[rows].tolist())) for mass, rows in inside]
            missing.append(float(sum(mass for mass, _ in inside)))
            edges.append(int(row[-1]) + 1)
        return cls(
            np.concatenate(features),
            np.array(edges, dtype=np.int64),
            np.concatenate(weight),
            np.concatenate(high),
            np.array(missing),
            np.array([belief.draws > 0 for belief in beliefs], dtype=bool),
            tuple(units),
        )

    @cached_property
    def context(self) -> Integers:
        """Number of the context of each outcome, [R]."""
        return np.repeat(np.arange(len(self.edges) - 1), np.diff(self.edges))

    @cached_property
    def times(self) -> Array:
        """The weight of each outcome's context: the number of its draws, or 1, [R]."""
        return np.where(self.counted, self.sums(self.weight), 1.0)[self.context]

    @cached_property
    def gram(self) -> Array:
        """Sums of products of the features, less their means in each context, [7, 7]."""
        sizes = np.diff(self.edges)
        centred = self.features - (self.sums(self.features) / sizes[:, None])[self.context]
        products: Array = centred.T @ centred
        return products

    @cached_property
    def free(self) -> Integers:
        """Positions of the parameters that the contexts identify, [K].

        A feature that is the same for all outcomes of each context is not identified; nor is one
        that follows from the others.

        Raises
        ------
        ValueError : If no parameter is identified.
        """
        chosen: list[int] = []
        for k in range(len(SAMPLER)) if len(self.context) else ():
            several = [*chosen, k]
            part = self.gram[np.ix_(several, several)]
            if np.linalg.matrix_rank(part, tol=1e-8) == len(several):
                chosen = several
        if not chosen:
            raise ValueError(
                "A fit needs contexts with at least two outcomes that differ in their probability "
                "or in what marks them; got none. Look at the flags of the beliefs."
            )
        return np.array(chosen, dtype=np.int64)

    @property
    def spare(self) -> float:
        """C / (C - K) for C contexts and K parameters; NaN if there are too few contexts."""
        contexts, k = len(self.edges) - 1, len(self.free)
        return contexts / (contexts - k) if contexts > k else float("nan")

    @property
    def allowed(self) -> OpenBeliefs:
        """The beliefs that the table allows; counts are taken as they are."""
        return OpenBeliefs(self.weight, self.context, self.units)

    def sums(self, values: Array) -> Array:
        """Return the sums of values [R, ...] within contexts, [C, ...]."""
        added: Array = np.add.reduceat(values, self.edges[:-1])
        return added

    def sampler(self, z: Array) -> tuple[Array, Array]:
        """Return a sampler's shares [R], and the slopes of their logarithms in z, [R, K].

        Parameters that are not free have the temperature 1 and no bias.
        """
        full = np.zeros(len(SAMPLER))
        full[self.free] = z
        slopes = self.features.copy()
        slopes[:, 0] *= -np.exp(-full[0])
        height = slopes[:, 1:] @ full[1:] - slopes[:, 0]
        weight = np.exp(height - np.maximum.reduceat(height, self.edges[:-1])[self.context])
        shares = weight / self.sums(weight)[self.context]
        slopes = slopes[:, self.free]
        return shares, slopes - self.sums(shares[:, None] * slopes)[self.context]

    def nearest(self, shares: Array) -> Array:
        """Return the normalised beliefs within the bounds that are nearest to shares, by KL, [R].

        The missing mass raises the outcomes that lag behind the shares, all of a context to the
        same level of belief / share; any rest lies on no outcome. The level is the highest one at
        which no more is placed than is missing, and no outcome gets more than the nearest belief
        would give it.
        """
        shares = np.maximum(shares, 1e-300)
        is_open = ~self.counted & (self.missing > 0)
        most = self.sums(self.weight) + np.where(is_open, self.missing, 0.0)
        high = np.where(is_open[self.context], self.high, self.weight)
        level = top = np.maximum.reduceat(high / shares, self.edges[:-1])
        low = np.zeros_like(top)
        with np.errstate(divide="ignore", invalid="ignore"):
            for _ in range(BISECTIONS if is_open.any() else 1):
                belief = np.clip(level[self.context] * shares, self.weight, high)
                total = self.sums(belief)
                belief = belief / total[self.context]
                divergence = self.sums(xlogy(belief, belief / shares))
                over = (total > most) | ((total > 0.0) & (np.log(level / total) > divergence))
                low, top = np.where(over, low, level), np.where(over, level, top)
                level = 0.5 * (low + top)
            belief = np.clip(low[self.context] * shares, self.weight, high)
            total = self.sums(belief)[self.context]
            return np.where(total > 0.0, belief / total, 0.0)

    def fit(self, belief: Array | None = None) -> TableFit:
        """Fit the free parameters by Fisher scoring with halved steps.

        Parameters
        ----------
        belief : A normalised belief, [R]; if None, the nearest one that the table allows.
        """
        k = len(self.free)
        reach = (REACH * SAMPLER.sd)[self.free]
        fit = TableFit(np.zeros(k), -np.inf, np.zeros((k, k)), np.zeros((k, k)), 0.0)
        step, halvings = np.zeros(k), 0
        for _ in range(MOST_STEPS):
            z = np.clip(fit.z + step, -reach, reach)
            value, gradient, information, scatter = self._evaluate(z, belief)
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

    def _evaluate(self, z: Array, belief: Array | None) -> tuple[float, Array, Array, Array]:
        """Return the objective at z [K], its gradient, the information and the squared scores."""
        shares, slopes = self.sampler(z)
        target = self.nearest(shares) if belief is None else belief
        times = np.where(self.sums(target)[self.context] > 0.0, self.times, 0.0)
        entropy = np.where(self.counted[self.context], 0.0, xlogy(target, target))
        value = times @ (target * np.log(np.maximum(shares, 1e-300)) - entropy)
        scores = self.sums((times * (target - shares))[:, None] * slopes)
        information = (times * shares * slopes.T) @ slopes
        return float(value), scores.sum(axis=0), information, scores.T @ scores

    def fit_of(self, belief: Array, parameter: int) -> tuple[float, float, Array]:
        """Return a free parameter of the sampler nearest to a normalised belief.

        Returns
        -------
        The value on the unconstrained scale, its variance by the scatter between contexts (White
        1982), and its slopes in the belief, [R].
        """
        fit = self.fit(belief)
        inverse = np.linalg.pinv(fit.information, hermitian=True)
        slopes = inverse @ self.sampler(fit.z)[1].T * self.times
        variance = (inverse @ fit.scatter @ inverse)[parameter, parameter] * self.spare
        return float(fit.z[parameter]), max(float(variance), 0.0), slopes[parameter]

    def extreme(self, parameter: int, start: Array, sign: float) -> tuple[Array, float]:
        """Return the belief with the largest free parameter times the sign, [R], and its value."""

        def read(belief: Array) -> tuple[float, Array]:
            value, _, slopes = self.fit_of(belief, parameter)
            return value, slopes

        return self.allowed.extreme(read, start, sign)


@dataclass(frozen=True)
class BeliefSamplerFit(TabledResult):
    """The belief sampler that is nearest to an agent's beliefs.

    Parameters
    ----------
    fit : Estimates of the agent, the only subject, with their covariance and status. The
        log-likelihood is that of the counts; for distributions it is minus the sum of divergences
        KL(belief | model) over contexts, so that 0 is a perfect fit.
    fixed : Parameters that no context identifies, with their fixed values.
    least, most : The estimates' ends over all beliefs that top-k tables allow, [K]; the estimates
        themselves if nothing is open, infinite if the search met no end.
    more : elsewhere, the mean share over contexts of answers that are no outcome; for sampled
        beliefs the share over all draws, with Wilson's interval (elsewhere_low, elsewhere_high);
        bounds where probability could not be placed; leak, the mean share of the retained mass on
        impossible outcomes, over the contexts that have any (these outcomes do not affect the
        parameters); contexts; and flagged, how many contexts were left out.
    """

    fit: PointFit
    fixed: Mapping[str, float]
    least: Array
    most: Array
    more: Mapping[str, float]

    def to_frame(self, mass: float = 0.9) -> pd.DataFrame:
        """One row: estimates, intervals, ends, elsewhere, what was left out."""
        more = dict(self.more)
        for k, name in enumerate(self.fit.names):
            more |= {f"{name}_least": self.least[k], f"{name}_most": self.most[k]}
        return self.fit.to_frame(mass).drop(columns=["n_trials"]).assign(**more)


def fit_belief_sampler(beliefs: RevealedBeliefs, subject: str = "") -> BeliefSamplerFit:
    """Fit temperature and biases to the revealed beliefs of an agent.

    log q(o) = log p(o) / T + sum of the biases of the marks of o - const. Exact distributions are
    fitted by cross-entropy, with the same weight for each context. Counts are fitted by their
    multinomial likelihood. Top-k tables are interval-censored: the divergence from the model is
    that of the nearest belief within the bounds, whose missing mass lies as in the model as far as
    it can. The objective is concave in 1/T and the biases, so there is one maximum; Fisher scoring
    with exact derivatives finds it. All identified parameters are estimated.

    Parameters
    ----------
    beliefs : Beliefs with a truth; flagged contexts are left out.
    subject : Name of the agent.

    Notes
    -----
    If much mass is missing, several parameters fit top-k tables equally well. The estimate is then
    the first of these on the way of the search from the truth (T = 1, no biases), so it may be too
    small. `least` and `most` are the ends of the estimate over all beliefs that the tables allow,
    whether a sampler can have them or not. Covariances do not include this uncertainty.

    Covariances of counts are the inverse information. Distributions have no sampling error; their
    covariances come from the scatter between contexts (White 1982): about 0 if the model holds
    exactly.
    """
    if any(np.isnan(belief.truth).any() for belief in beliefs):
        raise ValueError(
            f"A belief sampler starts from the true probabilities; {subject!r} lacks some. Give "
            "set_ups with a truth when reading the beliefs."
        )
    kept = [belief for belief in beliefs if not belief.flag]
    table = BeliefTable.of(kept)
    result = table.fit()
    estimated = Parameters(*(SAMPLER[SAMPLER.names[k]] for k in table.free))
    contexts = np.array([len(kept)], dtype=np.int64)
    z, value = result.z[None], np.array([result.value])
    covariance = inverted(result.information[None])
    if not table.counted.all():
        covariance = covariance @ (result.scatter * table.spare) @ covariance
    # Flatness is judged as if the weights were numbers of draws.
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
    default = dict(zip(SAMPLER.names, SAMPLER.constrain(np.zeros(len(SAMPLER))), strict=True))
    fixed = {name: float(at) for name, at in default.items() if name not in estimated.names}
    least, most = (estimated.constrain(end) for end in _ends(table, result.z))
    wrong = [
        1.0 - belief.probability[belief.truth > 0].sum() / belief.retained
        for belief in kept
        if not (belief.truth > 0).all()
    ]
    more = dict(
        zip(("elsewhere", "elsewhere_low", "elsewhere_high"), _elsewhere(kept), strict=True)
    )
    more |= {"leak": float(np.mean(wrong)) if wrong else np.nan}
    more |= {"contexts": len(kept), "flagged": len(beliefs) - len(kept)}
    return BeliefSamplerFit(point_fit, fixed, least, most, more)


def _elsewhere(kept: Sequence[Belief]) -> tuple[float, float, float]:
    """Return the share of answers that are no outcome, with its ends."""
    share = 1.0 - np.array([(b.retained, *b.retained_ends) for b in kept])
    draws = np.array([belief.draws for belief in kept], dtype=float)
    if not draws.all():
        mean, high, low = share.mean(axis=0).tolist()
        return mean, low, high
    n = draws.sum()
    mean = float((share[:, 0] * draws).sum() / n)
    (low,), (high,) = wilson(np.array([mean * n]), np.array([n]))
    return mean, float(low), float(high)


def _ends(table: BeliefTable, z: Array) -> tuple[Array, Array]:
    """Return the ends of each estimate over all beliefs that tables allow, in z, [K] each."""
    if not table.units:
        return z, z
    start = table.nearest(table.sampler(z)[0])
    reach = (REACH * SAMPLER.sd)[table.free]
    least, most = (
        np.array([table.extreme(k, start, sign)[1] for k in range(len(z))]) for sign in (-1.0, 1.0)
    )
    least, most = np.minimum(least, z), np.maximum(most, z)
    return np.where(least <= -reach, -np.inf, least), np.where(most >= reach, np.inf, most)
