"""How far revealed beliefs are from the truth, with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from knownminds.agents.parameters import Array
from knownminds.environments import session_stream
from knownminds.environments.later import pandas as pd
from knownminds.environments.record.outcome_rates import CONFIDENCE

from .open_beliefs import OpenBeliefs, Reading, set_bounds
from .revealed_belief import RevealedBeliefs, Unplaced

FLOOR = 1e-6  # added to each probability before taking logarithms
REPLICATES = 2000
CLIMBS = 5  # a search for the largest value starts from so many corners
MET = 1e-9  # a smaller sum of deviations counts as none
MEASURES_OF_DISTANCE = (
    "chebyshev",
    "manhattan",
    "kl_truth_belief",
    "kl_belief_truth",
    "kl_sum",
    "entropy",
)


def manhattan(truth: Array, belief: Array) -> Array:
    """Return sum |p - q| over the last axis."""
    values: Array = np.abs(truth - belief).sum(axis=-1)
    return values


def floored(probabilities: Array) -> Array:
    """Add the floor to each probability and divide by their sum, over the last axis."""
    values: Array = (probabilities + FLOOR) / (1.0 + FLOOR * probabilities.shape[-1])
    return values


def kullback_leibler(one: Array, other: Array) -> Array:
    """Return sum p log(p / q) over the last axis, in nats, of floored distributions.

    See Kullback and Leibler 1951. The floor is added to all probabilities of both, which are
    normalised again. So the divergence stays finite where a probability is 0, and it is never below
    0.
    """
    p, q = floored(one), floored(other)
    values: Array = np.maximum((p * np.log(p / q)).sum(axis=-1), 0.0)
    return values


def entropy(belief: Array) -> Array:
    """Return - sum q log q over the last axis, in nats (Shannon 1948)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(belief > 0, belief * np.log(belief), np.where(belief == 0, 0.0, np.nan))
    values: Array = -terms.sum(axis=-1)
    return values


def distances_of(truth: Array, belief: Array) -> dict[str, Array]:
    """Return all distances of normalised distributions over the last axis, by name."""
    forth, back = kullback_leibler(truth, belief), kullback_leibler(belief, truth)
    return {
        "chebyshev": np.abs(truth - belief).max(axis=-1),
        "manhattan": manhattan(truth, belief),
        "kl_truth_belief": forth,
        "kl_belief_truth": back,
        "kl_sum": forth + back,
        "entropy": entropy(belief),
    }


def distribution_distances(
    beliefs: RevealedBeliefs, *, replicates: int = REPLICATES, seed: int = 0
) -> pd.DataFrame:
    """Compute all distances between revealed beliefs and the truth, with intervals.

    Beliefs are normalised over the outcomes; the mass that this hides is returned besides.

    Top-k tables have the least and the largest value over all ways in which the missing probability
    can lie on the outcomes or on something else. The possible normalised beliefs are a convex set,
    and the distances are convex. So the largest value is at a corner of the set. The corners that
    are tried lie farthest out for each outcome, and for sets of outcomes. The least value comes
    from a convex program, and is never too large. (For entropy the two are exchanged.)

    Sampling error alone makes distances of sampled counts larger. The interval therefore has the
    ends 2 v - v* at the quantiles of the multinomial bootstrap (Davison and Hinkley 1997, section
    5.2). The bootstrap does not include outcomes that never came, so the interval also covers that
    of the Dirichlet posterior with the prior 1 / k (Perks 1947). It begins at 0 if a belief equal
    to the truth would show such a value in 5% of samples.

    Parameters
    ----------
    replicates : Bootstrap samples per context.

    Returns
    -------
    pandas.DataFrame
        One row per context and measure; the retained mass is one of the measures. The columns are
        scenario, context, source, measure; value with low and high (95%; NaN if the context is
        flagged, or if its truth is unknown, except for entropy); noise, the mean of the measure if
        the belief were the truth (0 except for sampled beliefs, whose distances are too large by
        chance); and flag. The interval is a single point for exact beliefs, the range of all
        possible values for top-k tables, and that of the bootstrap for sampled beliefs.
    """
    names = (*MEASURES_OF_DISTANCE, "retained")
    numbers = np.full((len(beliefs), len(names), 4), np.nan)  # value, low, high and noise
    for k, belief in enumerate(beliefs):
        numbers[k, -1, :3] = belief.retained, *belief.retained_ends
        if belief.flag:
            continue
        q, p = belief.probability, belief.truth
        value = _stacked(p, q / q.sum())
        low, high, noise = value, value, np.zeros(len(value))
        if belief.draws:
            low, high, noise = _sampled(belief.count, p, replicates, session_stream(seed, 21, k))
        elif belief.unplaced:
            ends = _bounds(q, belief.unplaced, p)
            low, high = (np.array([end[name] for name in MEASURES_OF_DISTANCE]) for end in ends)
        numbers[k, :-1] = np.stack([value, low, high, noise], axis=1)
        if np.isnan(p).any():
            numbers[k, : names.index("entropy")] = np.nan
    known = {
        "scenario": [belief.scenario for belief in beliefs],
        "context": [belief.name for belief in beliefs],
        "source": [belief.source for belief in beliefs],
    }
    parts = []
    for m, name in enumerate(names):
        columns = dict(zip(("value", "low", "high", "noise"), numbers[:, m].T, strict=True))
        parts.append(pd.DataFrame({**known, "measure": name, **columns}))
    flags = [belief.flag for belief in beliefs]
    return pd.concat([part.assign(flag=flags) for part in parts], ignore_index=True)


def _stacked(truth: Array, belief: Array) -> Array:
    """Return all distances in the order of their names, [6, ...]."""
    return np.array(list(distances_of(truth, belief).values()))


def _sampled(
    counts: NDArray[np.int64], truth: Array, replicates: int, rng: np.random.Generator
) -> tuple[Array, Array, Array]:
    """Return the ends of the intervals and the noise of all distances, [6] each."""
    n, k = int(np.sum(counts)), len(counts)
    if n == 0:
        low, high, noise = np.full((3, len(MEASURES_OF_DISTANCE)), np.nan)
        return low, high, noise
    belief = counts / n
    value = _stacked(truth, belief)
    # The number of draws that are outcomes tells nothing about their spread, so n is fixed.
    again = _stacked(truth, rng.multinomial(n, belief, size=replicates) / n)
    # The prior weighs as much as one draw (Perks 1947), so that missing outcomes are not
    # impossible.
    after = _stacked(truth, rng.dirichlet(counts + 1.0 / k, size=replicates))
    # The largest value is that of a belief in one outcome alone; for entropy, of an even belief.
    most = _stacked(truth, np.eye(k)).max(axis=1)
    most[-1] = np.log(k)
    tails = [0.5 - CONFIDENCE / 2, 0.5 + CONFIDENCE / 2]
    (lower, upper), (least, largest) = (np.quantile(x, tails, axis=1) for x in (again, after))
    low = np.clip(np.minimum(least, 2 * value - upper), 0.0, most)
    high = np.clip(np.maximum(largest, 2 * value - lower), 0.0, most)
    if np.isnan(truth).any():
        return low, high, np.full(len(value), np.nan)
    shown = _stacked(truth, rng.multinomial(n, truth / truth.sum(), size=replicates) / n)
    noise = shown.mean(axis=1)
    noise[-1] -= entropy(truth)
    by_chance = value <= np.quantile(shown, CONFIDENCE, axis=1)
    by_chance[-1] = False
    return np.where(by_chance, 0.0, low), high, noise


def _bounds(
    certain: Array, unplaced: Sequence[Unplaced], truth: Array
) -> tuple[dict[str, float], dict[str, float]]:
    """Return the least and the largest value over all possible beliefs."""
    units = [(mass, rows) for mass, rows in unplaced if mass > 0]
    allowed = OpenBeliefs(certain, np.zeros(len(certain), dtype=np.int64), tuple(units))
    even = np.full(len(certain), 1.0 / len(certain))
    known = not np.isnan(truth).any()
    low, high = (dict.fromkeys(MEASURES_OF_DISTANCE, np.nan) for _ in range(2))
    corners = _corners(allowed, truth if known else even)
    tried = distances_of(truth, corners)
    low["entropy"] = -_most(allowed, _negative_entropy, corners, -tried["entropy"])
    high["entropy"] = float(np.log(len(certain)))
    if _least_deviation(certain, units, even, largest=False) > MET:
        high["entropy"] = -allowed.least(_negative_entropy)
    if not known:
        return low, high
    high["manhattan"] = float(tried["manhattan"].max())
    # The largest deviation of a single outcome has a closed form.
    shares = set_bounds(certain, units, np.eye(len(certain)))
    high["chebyshev"] = float(np.abs(np.array(shares) - truth).max())
    for name, largest in (("chebyshev", True), ("manhattan", False)):
        low[name] = _least_deviation(certain, units, truth, largest=largest)
    for name, weights in (
        ("kl_truth_belief", (1.0, 0.0)),
        ("kl_belief_truth", (0.0, 1.0)),
        ("kl_sum", (1.0, 1.0)),
    ):
        objective = _Divergence(floored(truth), weights)
        high[name] = _most(allowed, objective, corners, tried[name])
        # If the truth itself is a possible belief, the least distance is 0.
        met = low["manhattan"] <= MET
        low[name] = 0.0 if met else max(allowed.least(objective), 0.0)
    return low, high


def _most(allowed: OpenBeliefs, convex: Reading, corners: Array, values: Array) -> float:
    """Return the largest value of a convex function that a search reaches from corners."""
    starts = corners[np.argsort(-values)[:CLIMBS]]
    return max(allowed.extreme(convex, start, 1.0)[1] for start in starts)


def _corners(allowed: OpenBeliefs, centre: Array) -> Array:
    """Return corners of the possible beliefs, [corners, outcomes], each far from the centre.

    The corners have the largest and the least share of an outcome, or of all outcomes that are at
    least as far above the centre as one of them.
    """
    n = len(centre)
    order = np.argsort(allowed.certain - centre * max(allowed.certain.sum(), MET))
    groups = np.tril(np.ones((n, n)))[:, np.argsort(order)]
    directions = np.concatenate([np.eye(n), groups])
    directions = np.concatenate([directions, -directions])
    return np.unique([allowed.largest(slopes) for slopes in directions], axis=0)


def _negative_entropy(q: Array) -> tuple[float, Array]:
    logs = np.log(np.maximum(q, 1e-300))
    return float((q * logs).sum()), logs + 1.0


@dataclass(frozen=True)
class _Divergence:
    """Weighted sum of both Kullback-Leibler divergences from a floored truth."""

    truth: Array
    weights: tuple[float, float]

    def __call__(self, q: Array) -> tuple[float, Array]:
        e = floored(q)
        ratio = np.log(e / self.truth)
        forth, back = self.weights
        value = -forth * (self.truth * ratio).sum() + back * (e * ratio).sum()
        slope = -forth * self.truth / e + back * (ratio + 1.0)
        return float(value), slope / (1.0 + FLOOR * len(q))


def _least_deviation(
    certain: Array, units: Sequence[tuple[float, Sequence[int]]], truth: Array, *, largest: bool
) -> float:
    """Return the least max |p - q| or the least sum |p - q|, by a linear program.

    A belief before normalising is r = certain + sum_u mass_u x_u, where x_u >= 0 spreads a unit
    over its outcomes and sums to at most 1. With t = 1 / sum r and y = t x, the normalised belief q
    = t r is linear in (t, y), under linear constraints (Charnes and Cooper 1962).
    """
    n, m = len(certain), 1 + sum(len(rows) for _, rows in units)
    belief = np.zeros((n, m))  # q = belief @ (t, y)
    limits = np.zeros((len(units), m))  # the y of each unit sum to at most t
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


def stated_errors(beliefs: RevealedBeliefs, correct: Sequence[str]) -> pd.DataFrame:
    """Compute how improbable the correct letter is among those on offer.

    Parameters
    ----------
    beliefs : Probabilities of the letters, by question.
    correct : The correct letter of each question.

    Returns
    -------
    pandas.DataFrame
        One row per question: context, value, low and high. Letters are normalised; flagged
        questions have no value. The interval is a point for exact probabilities, the range of
        possible values for top-k tables, and Wilson's for sampled ones.
    """
    if len(correct) != len(beliefs):
        raise ValueError(
            f"Each question has a correct letter; got {len(correct)} for {len(beliefs)}."
        )
    rows = []
    for belief, letter in zip(beliefs, correct, strict=True):
        if letter not in belief.outcomes:
            raise ValueError(
                f"The correct letter is one of those on offer, {', '.join(belief.outcomes)}; got "
                f"{letter!r} in {belief.name!r}."
            )
        letters = np.array([[float(name == letter) for name in belief.outcomes]])
        value, low, high = np.nan, np.nan, np.nan
        if not belief.flag:
            value = 1.0 - float(letters[0] @ belief.probability) / belief.retained
            (least,), (most,) = belief.interval(letters)
            low, high = 1.0 - most, 1.0 - least
        rows.append((belief.name, value, low, high))
    return pd.DataFrame(rows, columns=["context", "value", "low", "high"])
