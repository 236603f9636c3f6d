"""How far revealed beliefs are from the truth, with intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from knownminds.agents.parameters import Array
from knownminds.environments import session_stream
from knownminds.environments.later import pandas as pd
from knownminds.environments.record.result import Result

from .open_beliefs import OpenBeliefs, Read
from .revealed_belief import RevealedBeliefs, Unplaced, wilson

FLOOR = 1e-6  # added to each probability where logarithms are taken
REPLICATES = 2000
CLIMBS = 5  # corners from which a search for the largest value starts
MET = 1e-9  # a sum of deviations that counts as none
MEASURES_OF_DISTANCE = (
    "chebyshev",
    "manhattan",
    "kl_truth_belief",
    "kl_belief_truth",
    "kl_sum",
    "entropy",
)


def chebyshev(truth: Array, belief: Array) -> Array:
    """Return max |p - q| over the last axis."""
    values: Array = np.abs(truth - belief).max(axis=-1)
    return values


def manhattan(truth: Array, belief: Array) -> Array:
    """Return sum |p - q| over the last axis."""
    values: Array = np.abs(truth - belief).sum(axis=-1)
    return values


def floored(probabilities: Array, floor: float = FLOOR) -> Array:
    """Add the floor to each probability and divide by their sum, over the last axis."""
    values: Array = (probabilities + floor) / (1.0 + floor * probabilities.shape[-1])
    return values


def kullback_leibler(one: Array, other: Array, floor: float = FLOOR) -> Array:
    """Return sum p log(p / q) over the last axis, in nats, of floored distributions.

    (Kullback and Leibler 1951.) The floor is added to all probabilities of both, which are
    normalised again: the divergence stays finite where a probability is 0, and at least 0.
    """
    p, q = floored(one, floor), floored(other, floor)
    values: Array = np.maximum((p * np.log(p / q)).sum(axis=-1), 0.0)
    return values


def entropy(belief: Array) -> Array:
    """Return - sum q log q over the last axis, in nats (Shannon 1948)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(belief > 0, belief * np.log(belief), np.where(belief == 0, 0.0, np.nan))
    values: Array = -terms.sum(axis=-1)
    return values


def distances_of(truth: Array, belief: Array, floor: float = FLOOR) -> dict[str, Array]:
    """Return all distances of normalised distributions over the last axis, by name."""
    forth, back = kullback_leibler(truth, belief, floor), kullback_leibler(belief, truth, floor)
    return {
        "chebyshev": chebyshev(truth, belief),
        "manhattan": manhattan(truth, belief),
        "kl_truth_belief": forth,
        "kl_belief_truth": back,
        "kl_sum": forth + back,
        "entropy": entropy(belief),
    }


@dataclass(frozen=True)
class DistributionDistances(Result):
    """Distances between belief and truth in C contexts, by name of the measure.

    Beliefs are normalised over the outcomes, and the mass that this hides stands beside them.

    Parameters
    ----------
    beliefs : Of which they are.
    value, low, high : [C] by measure; NaN where the context is flagged, or its truth is not known
        (entropy needs none). The interval is a single point for exact beliefs; all that is possible
        for top-k tables; and that of the bootstrap for sampled ones.
    noise : What the measure would show on average if the belief were the truth, [C] by measure: 0
        but for sampled beliefs, whose distances are too large by chance.
    floor, mass : Added to probabilities in logarithms; of the intervals of sampled beliefs.
    """

    beliefs: RevealedBeliefs
    value: Mapping[str, Array]
    low: Mapping[str, Array]
    high: Mapping[str, Array]
    noise: Mapping[str, Array]
    floor: float
    mass: float

    def to_frame(self) -> pd.DataFrame:
        """One row per context and measure; the retained mass is one of the measures."""
        b = self.beliefs
        parts = []
        for name in (*self.value, "retained"):
            total = name == "retained"
            parts.append(
                pd.DataFrame(
                    {
                        "scenario": b.scenarios,
                        "context": b.contexts,
                        "source": b.sources,
                        "measure": name,
                        "value": b.retained if total else self.value[name],
                        "low": b.retained_low if total else self.low[name],
                        "high": b.retained_high if total else self.high[name],
                        "noise": np.nan if total else self.noise[name],
                        "flag": b.flags,
                    }
                )
            )
        return pd.concat(parts, ignore_index=True)


def distribution_distances(
    beliefs: RevealedBeliefs,
    *,
    floor: float = FLOOR,
    mass: float = 0.95,
    replicates: int = REPLICATES,
    seed: int = 0,
    keep_flagged: bool = False,
) -> DistributionDistances:
    """Compute all distances between revealed beliefs and the truth, with intervals.

    Top-k tables: the least and the largest value over all ways in which the missing probability
    can lie on the outcomes or on something else. The distances are convex in the normalised
    belief, and what can be believed is a convex set; so the largest value is at one of its
    corners, of which those are tried that lie farthest out for each outcome and for sets of them,
    and the least is that of a convex program (for entropy the other way round). The least is
    never too large.

    Sampled counts: distances grow by sampling error alone, and 2 v - v* at the quantiles of the
    multinomial bootstrap takes that away again (Davison and Hinkley 1997, section 5.2), but knows
    nothing of outcomes that never came; so the interval reaches from the lower of its end and that
    of the Dirichlet posterior with the prior 1 / k (Perks 1947) to the higher one. It begins at 0
    where a belief that is the truth would show as much in 5% of samples (1 - `mass`).

    Parameters
    ----------
    floor
        Added to each probability in Kullback-Leibler divergences.
    mass
        Of the intervals of sampled beliefs.
    replicates
        Bootstrap samples per context.
    keep_flagged
        Whether contexts that are flagged for their small mass are computed nevertheless.
    """
    if not floor > 0:
        raise ValueError(f"floor is above 0, or some divergences are infinite; got {floor!r}.")
    if not 0 < mass < 1:
        raise ValueError(f"mass is between 0 and 1; got {mass!r}.")
    c = len(beliefs)
    names = MEASURES_OF_DISTANCE
    value, low, high, noise = ({name: np.full(c, np.nan) for name in names} for _ in range(4))
    for k in range(c):
        own = beliefs.rows(k)
        q = beliefs.probability[own]
        if np.isnan(q).any() or q.sum() <= 0 or (beliefs.flagged[k] and not keep_flagged):
            continue
        p = beliefs.truth[own]
        found = distances_of(p, q / q.sum(), floor)
        lows, highs = found, found
        quiet = {name: np.zeros(()) for name in names}
        if beliefs.draws[k]:
            lows, highs, quiet = _sampled(
                beliefs.count[own], int(beliefs.draws[k]), p, floor, mass, replicates,
                session_stream(seed, 21, k),
            )  # fmt: skip
        elif beliefs.unplaced[k]:
            lows, highs = _bounds(q, beliefs.unplaced[k], own.start, p, floor)
        for name in names:
            if name == "entropy" or not np.isnan(p).any():
                value[name][k] = found[name]
                low[name][k], high[name][k] = lows[name], highs[name]
                noise[name][k] = quiet[name]
    return DistributionDistances(beliefs, value, low, high, noise, floor, mass)


def _sampled(
    counts: Array | np.ndarray,
    draws: int,
    truth: Array,
    floor: float,
    mass: float,
    replicates: int,
    rng: np.random.Generator,
) -> tuple[dict[str, Array], dict[str, Array], dict[str, Array]]:
    n = int(np.sum(counts))
    if n == 0:
        nothing = {name: np.array(np.nan) for name in MEASURES_OF_DISTANCE}
        return nothing, nothing, nothing
    belief = counts / n
    found = distances_of(truth, belief, floor)
    # How many draws are outcomes at all says nothing of how they are spread: n is held.
    again = distances_of(truth, rng.multinomial(n, belief, size=replicates) / n, floor)
    # One draw's worth of prior in all (Perks 1947), so that what never came is not impossible.
    after = rng.dirichlet(counts + 1.0 / len(belief), size=replicates)
    may_be = distances_of(truth, after, floor)
    quiet = {name: np.array(np.nan) for name in MEASURES_OF_DISTANCE}
    most = _largest(truth, floor)
    lows, highs = {}, {}
    for name, values in again.items():
        ends = [0.5 - mass / 2, 0.5 + mass / 2]
        (lower, upper), (least, largest) = (
            np.quantile(values, ends),
            np.quantile(may_be[name], ends),
        )
        lows[name] = np.clip(np.minimum(least, 2 * found[name] - upper), 0.0, most[name])
        highs[name] = np.clip(np.maximum(largest, 2 * found[name] - lower), 0.0, most[name])
    if not np.isnan(truth).any():
        chance = rng.multinomial(n, truth / truth.sum(), size=replicates) / n
        shown = distances_of(truth, chance, floor)
        quiet = {name: np.asarray(values.mean()) for name, values in shown.items()}
        quiet["entropy"] = quiet["entropy"] - entropy(truth)
        for name in MEASURES_OF_DISTANCE[:-1]:
            if found[name] <= np.quantile(shown[name], mass):
                lows[name] = np.array(0.0)
    return lows, highs, quiet


def _largest(truth: Array, floor: float) -> dict[str, float]:
    """Return the largest value that each measure can take: at a belief in one outcome alone."""
    corners = np.eye(len(truth))
    found = distances_of(truth, corners, floor)
    most = {name: float(np.max(values)) for name, values in found.items()}
    return most | {"entropy": float(np.log(len(truth)))}


def _bounds(
    certain: Array, unplaced: Sequence[Unplaced], begin: int, truth: Array, floor: float
) -> tuple[dict[str, Array], dict[str, Array]]:
    """Return the least and the largest value over all that can be believed."""
    units = [(mass, tuple(i - begin for i in rows)) for mass, rows in unplaced if mass > 0]
    allowed = OpenBeliefs(certain, np.zeros(len(certain), dtype=np.int64), tuple(units))
    shares = share_bounds(certain, units)
    even = np.full(len(certain), 1.0 / len(certain))
    known = not np.isnan(truth).any()
    lows, highs = ({name: np.array(np.nan) for name in MEASURES_OF_DISTANCE} for _ in range(2))
    corners = _corners(allowed, truth if known else even)
    tried = distances_of(truth, corners, floor)
    lows["entropy"] = np.array(-_most(allowed, _negative_entropy, corners, -tried["entropy"]))
    if _least_deviation(certain, units, even, largest=False) <= MET:
        highs["entropy"] = np.array(np.log(len(certain)))
    else:
        highs["entropy"] = np.array(-allowed.least(_negative_entropy))
    if not known:
        return lows, highs
    highs["manhattan"] = tried["manhattan"].max()
    # The largest deviation of a single outcome is known in closed form.
    highs["chebyshev"] = np.maximum(np.abs(shares[0] - truth), np.abs(shares[1] - truth)).max()
    for name, largest in (("chebyshev", True), ("manhattan", False)):
        lows[name] = np.array(_least_deviation(certain, units, truth, largest=largest))
    for name, weights in (
        ("kl_truth_belief", (1.0, 0.0)),
        ("kl_belief_truth", (0.0, 1.0)),
        ("kl_sum", (1.0, 1.0)),
    ):
        objective = _Divergence(floored(truth, floor), weights, floor)
        highs[name] = np.array(_most(allowed, objective, corners, tried[name]))
        if lows["manhattan"] <= MET:  # the truth itself can be believed
            lows[name] = np.array(0.0)
        else:
            lows[name] = np.array(max(allowed.least(objective), 0.0))
    return lows, highs


def _most(
    allowed: OpenBeliefs,
    convex: Callable[[Array], tuple[float, Array]],
    corners: Array,
    values: Array,
) -> float:
    """Return the largest value of a convex function to which a search climbs from corners."""

    def read(belief: Array) -> Read:
        return Read(*convex(belief))

    starts = corners[np.argsort(-values)[:CLIMBS]]
    return max(read(allowed.extreme(read, start, 1.0)).value for start in starts)


def _corners(allowed: OpenBeliefs, centre: Array) -> Array:
    """Return corners of what can be believed, [corners, outcomes], far from the centre in turn.

    For each outcome, and for all outcomes that are as far above the centre as one: those with the
    largest and the least share of it.
    """
    n = len(centre)
    order = np.argsort(allowed.certain - centre * max(allowed.certain.sum(), MET))
    groups = np.tril(np.ones((n, n)))[:, np.argsort(order)]
    directions = np.concatenate([np.eye(n), groups])
    directions = np.concatenate([directions, -directions])
    return np.unique([allowed.largest(slopes) for slopes in directions], axis=0)


def share_bounds(
    certain: Array, units: Sequence[tuple[float, Sequence[int]]]
) -> tuple[Array, Array]:
    """Return the least and the largest normalised probability of each outcome, exactly.

    Parameters
    ----------
    certain
        What certainly lies on each outcome, [outcomes].
    units
        Probability that was not placed: how much, and on which outcomes it can lie.
    """
    return set_bounds(certain, units, np.eye(len(certain)))


def set_bounds(
    certain: Array, units: Sequence[tuple[float, Sequence[int]]], sets: Array
) -> tuple[Array, Array]:
    """Return the least and the largest normalised probability of sets of outcomes, exactly.

    The share of a set S is largest where all that can lie in S does, and nothing else on another
    outcome; and least the other way round.

    Parameters
    ----------
    sets
        1 for members, 0 for others, [sets, outcomes].
    """
    inside = sets @ certain
    outside = (1.0 - sets) @ certain
    into, away = np.zeros(len(sets)), np.zeros(len(sets))
    for mass, rows in units:
        own = sets[:, list(rows)]
        into += mass * (own.max(axis=1) > 0)
        away += mass * (own.min(axis=1) < 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        low = np.where(inside > 0, inside / (inside + outside + away), 0.0)
        high = np.where(inside + into > 0, (inside + into) / (inside + into + outside), 0.0)
    # Where nothing is certain and nothing can lie elsewhere, all of it is in the set.
    low = np.where((inside <= 0) & (outside + away <= 0) & (into > 0), 1.0, low)
    return low, high


def _negative_entropy(q: Array) -> tuple[float, Array]:
    logs = np.log(np.maximum(q, 1e-300))
    return float((q * logs).sum()), logs + 1.0


@dataclass(frozen=True)
class _Divergence:
    """Weighted sum of both Kullback-Leibler divergences from a floored truth."""

    truth: Array
    weights: tuple[float, float]
    floor: float

    def __call__(self, q: Array) -> tuple[float, Array]:
        n = len(q)
        e = (q + self.floor) / (1.0 + self.floor * n)
        ratio = np.log(e / self.truth)
        forth, back = self.weights
        value = -forth * (self.truth * ratio).sum() + back * (e * ratio).sum()
        slope = -forth * self.truth / e + back * (ratio + 1.0)
        return float(value), slope / (1.0 + self.floor * n)


def _least_deviation(
    certain: Array, units: Sequence[tuple[float, Sequence[int]]], truth: Array, *, largest: bool
) -> float:
    """Return the least max |p - q| or the least sum |p - q|: a linear program.

    A belief before normalising is r = certain + sum_u mass_u x_u; x_u >= 0 spreads a unit over
    its outcomes and sums to 1 at most. With t = 1 / sum r and y = t x the normalised belief q = t r
    is linear in (t, y), under linear constraints (Charnes and Cooper 1962).
    """
    n, m = len(certain), 1 + sum(len(rows) for _, rows in units)
    belief = np.zeros((n, m))  # q = belief @ (t, y)
    limits = np.zeros((len(units), m))  # each unit's y sums to t at most
    belief[:, 0], limits[:, 0] = certain, -1.0
    column = 1
    for u, (mass, rows) in enumerate(units):
        for i in rows:
            belief[i, column], limits[u, column] = mass, 1.0
            column += 1
    extra = 1 if largest else n
    bound = np.ones((n, 1)) if largest else np.eye(n)
    solution = scipy.optimize.linprog(
        np.concatenate([np.zeros(m), np.ones(extra)]),
        A_ub=np.block(
            [[belief, -bound], [-belief, -bound], [limits, np.zeros((len(units), extra))]]
        ),
        b_ub=np.concatenate([truth, -truth, np.zeros(len(units))]),
        A_eq=np.concatenate([belief.sum(axis=0), np.zeros(extra)])[None],
        b_eq=[1.0],
        method="highs",
    )
    return max(float(solution.fun or 0.0), 0.0) if solution.success else float("nan")


@dataclass(frozen=True)
class StatedErrors(Result):
    """1 - P(correct letter) of each five-option question, [C], with its interval."""

    contexts: tuple[str, ...]
    value: Array
    low: Array
    high: Array

    def to_frame(self) -> pd.DataFrame:
        """One row per question."""
        return pd.DataFrame(
            {"context": self.contexts, "value": self.value, "low": self.low, "high": self.high}
        )


def stated_errors(beliefs: RevealedBeliefs, correct: Sequence[str]) -> StatedErrors:
    """Compute how improbable the correct letter is among those on offer.

    Parameters
    ----------
    beliefs
        Probabilities of the letters, by question.
    correct
        The correct letter of each question.

    Notes
    -----
    Letters are normalised; flagged questions have no value. Intervals: a point for exact ones, all
    that is possible for top-k tables, Wilson's for sampled ones.
    """
    if len(correct) != len(beliefs):
        raise ValueError(
            f"Each question has a correct letter; got {len(correct)} for {len(beliefs)}."
        )
    value, low, high = (np.full(len(beliefs), np.nan) for _ in range(3))
    for k, letter in enumerate(correct):
        letters = beliefs.outcomes_of(k)
        if letter not in letters:
            raise ValueError(
                f"The correct letter is one of those on offer, {', '.join(letters)}; got "
                f"{letter!r} in {beliefs.contexts[k]!r}."
            )
        if beliefs.flagged[k]:
            continue
        own = beliefs.rows(k)
        mine = np.array([[float(name == letter) for name in letters]])
        q = beliefs.probability[own]
        value[k] = 1.0 - float(mine[0] @ q) / float(q.sum())
        if beliefs.draws[k]:
            counts = beliefs.count[own].astype(float)
            ends = wilson(mine @ counts, counts.sum(keepdims=True))
        else:
            ends = set_bounds(q, units_of(beliefs, k), mine)
        low[k], high[k] = 1.0 - ends[1][0], 1.0 - ends[0][0]
    return StatedErrors(beliefs.contexts, value, low, high)


def units_of(beliefs: RevealedBeliefs, context: int) -> list[tuple[float, list[int]]]:
    """Return what could not be placed in a context, with positions of its outcomes."""
    begin = beliefs.rows(context).start
    return [(mass, [i - begin for i in rows]) for mass, rows in beliefs.unplaced[context]]
