"""Whether the odds of the bolder of two actions rise with the stated belief."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from knownminds.agents.parameters import Array
from knownminds.environments.later import pandas as pd
from knownminds.environments.record.result import Result
from knownminds.inference.resampling import percentile_ends

from .belief_decisions import ACTIONS, BeliefDecisions

PAIRS = ((0, 2), (0, 1), (1, 2))  # Yes against No, Yes against Defer, Defer against No
BINS = 5
LEVEL = 0.05
ROUNDING = 1e-12


@dataclass(frozen=True)
class PairViolations:
    """The pairs of belief bins between which the share of the first action falls.

    Parameters
    ----------
    first, second : Names of the actions.
    share : Of the first among the two in each bin, [K]; NaN where neither was chosen.
    counts : How often the first and the second were chosen in each bin, [K, 2].
    low, high : The lower and the higher bin of each testable pair, [P].
    p_value : One-sided Fisher exact test of a fall from the lower to the higher bin, [P]; 1 where
        the share does not fall.
    holm : The same, corrected for all testable pairs (Holm 1979), [P].
    rise : Corrected p-values of a rise, [P].
    fraction_low, fraction_high : 95% interval of the fraction of violated pairs, contexts being
        resampled.
    holm_low, holm_high : Likewise of the fraction after correction.
    level : At which a pair counts as violated.
    """

    first: str
    second: str
    share: Array
    counts: NDArray[np.int64]
    low: NDArray[np.int64]
    high: NDArray[np.int64]
    p_value: Array
    holm: Array
    rise: Array
    fraction_low: float
    fraction_high: float
    holm_low: float
    holm_high: float
    level: float

    @property
    def testable(self) -> int:
        """Pairs of bins that both have one of the two actions."""
        return len(self.p_value)

    @property
    def violated(self) -> int:
        """Pairs with a fall that is significant by itself, as published."""
        return int((self.p_value <= self.level).sum())

    @property
    def violated_holm(self) -> int:
        """Pairs with a significant fall after correction for their number."""
        return int((self.holm <= self.level).sum())

    @property
    def turned(self) -> int:
        """Significant rises or falls after correction, whichever are fewer."""
        return min(self.violated_holm, int((self.rise <= self.level).sum()))

    @property
    def fraction(self) -> float:
        """Violated among testable pairs; NaN if none is testable."""
        return self.violated / self.testable if self.testable else float("nan")

    @property
    def p_falling(self) -> float:
        """p-value of the hypothesis that the share falls nowhere (Holm); NaN if untestable."""
        return float(self.holm.min()) if self.testable else float("nan")

    @property
    def p_turning(self) -> float:
        """p-value of the hypothesis that the share only rises or only falls.

        What rationality alone asks for: an expected-utility maximiser for whom waiting costs most
        where the condition is present defers less as belief grows. Both a fall and a rise must be
        significant, so it is the larger of the two p-values.
        """
        return max(self.p_falling, float(self.rise.min())) if self.testable else float("nan")


@dataclass(frozen=True)
class MonotoneChoiceTest(Result):
    """Violations of monotone pairwise choice for the three pairs of actions.

    Parameters
    ----------
    pairs
        Yes against No, Yes against Defer, Defer against No.
    edges
        Beliefs that part the bins, [K - 1]; the upper bin has the edge.
    centre
        Mean belief of each bin, [K].
    n
        Rows in each bin, [K].
    low, high, standard_error
        Of `fraction`, contexts being resampled.
    turned_low, turned_high, turned_error
        Of `turned`, likewise.
    excluded
        Rows left out, by reason.
    """

    pairs: tuple[PairViolations, ...]
    edges: Array
    centre: Array
    n: NDArray[np.int64]
    low: float
    high: float
    standard_error: float
    turned_low: float
    turned_high: float
    turned_error: float
    excluded: Mapping[str, int]

    @property
    def turned(self) -> float:
        """Share of testable pairs of bins that go against the direction of their actions.

        Of the significant rises and falls of a pair of actions (Holm) the rarer count: all who
        maximise expected utility with noise have only one kind.
        """
        testable = sum(pair.testable for pair in self.pairs)
        against = sum(pair.turned for pair in self.pairs)
        return against / testable if testable else float("nan")

    @property
    def fraction(self) -> float:
        """Violated among testable pairs of bins, over all pairs of actions."""
        testable = sum(pair.testable for pair in self.pairs)
        return sum(p.violated for p in self.pairs) / testable if testable else float("nan")

    @property
    def p_falling(self) -> float:
        """p-value of the hypothesis that no share falls anywhere: Holm over all that was tested."""
        return _family([pair.p_value for pair in self.pairs])

    @property
    def p_turning(self) -> float:
        """p-value of the hypothesis that each share is monotone (Bonferroni over the pairs)."""
        found = [pair.p_turning for pair in self.pairs if pair.testable]
        return min(1.0, len(found) * min(found)) if found else float("nan")

    def to_frame(self) -> pd.DataFrame:
        """One row per pair of actions."""
        return pd.DataFrame(
            {
                "first": pair.first,
                "second": pair.second,
                "testable": pair.testable,
                "violated": pair.violated,
                "fraction": pair.fraction,
                "low": pair.fraction_low,
                "high": pair.fraction_high,
                "violated_holm": pair.violated_holm,
                "p_falling": pair.p_falling,
                "p_turning": pair.p_turning,
            }
            for pair in self.pairs
        )

    def shares(self) -> pd.DataFrame:
        """One row per pair of actions and bin: what the picture of monotone odds shows."""
        return pd.DataFrame(
            {
                "first": pair.first,
                "second": pair.second,
                "bin": k,
                "belief": self.centre[k],
                "chose_first": pair.counts[k, 0],
                "chose_second": pair.counts[k, 1],
                "share": pair.share[k],
            }
            for pair in self.pairs
            for k in range(len(self.centre))
        )


def monotone_choice(
    data: BeliefDecisions,
    *,
    belief: str = "plain",
    bins: int = BINS,
    level: float = LEVEL,
    bootstraps: int = 500,
    seed: int = 0,
) -> MonotoneChoiceTest:
    """Look for falls of the share of the bolder action from lower to higher belief.

    If noise in choice is independent of belief, the odds of one action over another are monotone
    in it. Beliefs are cut at their quantiles; for each pair of actions and each pair of bins a
    one-sided Fisher exact test asks whether the share of the first fell. Pairs of bins of which
    one has neither action are not tested and not in the denominator.

    The test for single pairs of bins is the published one; with ten pairs it accuses more often
    than its level says, which is what the Holm correction is for.

    Parameters
    ----------
    belief
        The elicitation by which rows are binned.
    bins
        Quantile bins; where beliefs are tied at an edge there are fewer.
    level
        At which a pair of bins counts as violated.
    bootstraps, seed
        Of the intervals: contexts are drawn with replacement, the bins stay.

    Raises
    ------
    ValueError
        If no row has belief and action, or a setting is out of range.
    """
    if bins < 2 or not 0 < level < 1 or bootstraps < 0:
        raise ValueError(
            "There are 2 bins or more, the level is between 0 and 1, and bootstraps are 0 or "
            f"more; got bins={bins}, level={level}, bootstraps={bootstraps}."
        )
    held, excluded = data.complete("action", belief)
    p = held.frame[belief].to_numpy(dtype=float)
    action = held.frame["action"].to_numpy(dtype=np.int64)
    edges, place = _binned(p, bins)
    k = len(edges) + 1
    cell = place * len(ACTIONS) + action
    counts = np.bincount(cell, minlength=k * len(ACTIONS)).reshape(1, k, -1)
    if bootstraps:
        weight = held.resampled(bootstraps, seed).astype(float)  # whole numbers multiply slowly
        onehot = (cell[:, None] == np.arange(k * len(ACTIONS))).astype(float)
        drawn = (weight @ onehot).astype(np.int64)
        counts = np.concatenate([counts, drawn.reshape(bootstraps, k, -1)])
    shares = _shares(counts, level)
    fallen, turned = (percentile_ends(share[1:]) for share in shares[:2])
    n = np.bincount(place, minlength=k)
    return MonotoneChoiceTest(
        pairs=tuple(_violations(counts[:, :, list(pair)], pair, level) for pair in PAIRS),
        edges=edges,
        centre=np.bincount(place, p, k) / n,
        n=n,
        low=fallen.low,
        high=fallen.high,
        standard_error=fallen.error,
        turned_low=turned.low,
        turned_high=turned.high,
        turned_error=turned.error,
        excluded=excluded,
    )


def counts_by_bin(p: Array, action: NDArray[np.int64], bins: int = BINS) -> NDArray[np.int64]:
    """Return how often each action was taken in each quantile bin of belief, [K, 3]."""
    edges, place = _binned(p, bins)
    size = (len(edges) + 1) * len(ACTIONS)
    counts = np.bincount(place * len(ACTIONS) + action, minlength=size)
    return np.asarray(counts.reshape(-1, len(ACTIONS)), dtype=np.int64)


def turning(counts: NDArray[np.int64], level: float = LEVEL) -> tuple[float, float, float]:
    """Return `fraction`, `turned` and `p_turning` of a `MonotoneChoiceTest` with counts[K, 3]."""
    fallen, turned, p_value = _shares(counts[None], level)
    return float(fallen[0]), float(turned[0]), float(p_value[0])


def _binned(p: Array, bins: int) -> tuple[Array, NDArray[np.int64]]:
    """Return the edges between quantile bins, and the bin of each belief."""
    edges = np.unique(np.quantile(p, np.arange(1, bins) / bins))
    edges = edges[edges > p.min()]  # below the lowest there is nobody
    position = np.searchsorted(edges, p, side="right")
    held = np.unique(position)  # quantiles of few beliefs may leave a bin empty
    return edges[held[1:] - 1], np.searchsorted(held, position)


def _shares(counts: NDArray[np.int64], level: float) -> tuple[Array, Array, Array]:
    """Return the shares of falls and of turns, and the p-value of a turn, of counts[B, K, 3]."""
    low, high = np.triu_indices(counts.shape[1], k=1)
    n_rounds = len(counts)
    testable, fallen, turned = (np.zeros(n_rounds) for _ in range(3))
    p_values = np.full((n_rounds, len(PAIRS)), np.nan)
    for i, pair in enumerate(PAIRS):
        two = counts[:, :, list(pair)]
        total = two.sum(axis=2)
        mine = (total[:, low] > 0) & (total[:, high] > 0)
        falls, rises = _fisher(two[:, low], two[:, high]), _fisher(two[:, high], two[:, low])
        testable += mine.sum(axis=1)
        fallen += ((falls <= level) & mine).sum(axis=1)
        both = [_holm_rows(found, mine) for found in (falls, rises)]
        turned += np.minimum(*((found <= level).sum(axis=1) for found in both))
        least = np.maximum(*(found.min(axis=1, initial=1.0) for found in both))
        p_values[:, i] = np.where(mine.any(axis=1), least, np.nan)
    tests = np.isfinite(p_values).sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        least = np.where(np.isfinite(p_values), p_values, 2.0).min(axis=1)
        p_value = np.where(tests > 0, np.minimum(1.0, tests * least), np.nan)
        return fallen / testable, turned / testable, p_value


def _holm_rows(p_value: Array, testable: NDArray[np.bool_]) -> Array:
    """Return `holm` of the testable entries of each row of p_value[B, P]; 1 elsewhere."""
    p_value = np.where(testable, p_value, 2.0)  # in the end, behind all others
    order = np.argsort(p_value, axis=1, kind="stable")
    ranked = np.take_along_axis(p_value, order, axis=1)
    left = testable.sum(axis=1)[:, None] - np.arange(p_value.shape[1])
    stepped = np.maximum.accumulate(ranked * np.maximum(left, 0), axis=1)
    values = np.ones_like(p_value)
    np.put_along_axis(values, order, np.where(left > 0, np.minimum(stepped, 1.0), 1.0), axis=1)
    return values


def _violations(counts: NDArray[np.int64], pair: tuple[int, int], level: float) -> PairViolations:
    """Test all pairs of bins in counts[B, K, 2], of which row 0 is the data."""
    low, high = np.triu_indices(counts.shape[1], k=1)
    total = counts.sum(axis=2)
    testable = (total[:, low] > 0) & (total[:, high] > 0)
    falls = _fisher(counts[:, low], counts[:, high])
    with np.errstate(invalid="ignore"):
        fraction = ((falls <= level) & testable).sum(axis=1) / testable.sum(axis=1)
        share = counts[0, :, 0] / total[0]
        corrected = (_holm_rows(falls, testable) <= level).sum(axis=1) / testable.sum(axis=1)
    ends, holm_ends = (percentile_ends(share[1:]) for share in (fraction, corrected))
    mine = testable[0]
    rises = _fisher(counts[:1, high], counts[:1, low])[0]
    return PairViolations(
        first=ACTIONS[pair[0]],
        second=ACTIONS[pair[1]],
        share=share,
        counts=counts[0],
        low=low[mine],
        high=high[mine],
        p_value=falls[0, mine],
        holm=holm(falls[0, mine]),
        rise=holm(rises[mine]),
        fraction_low=ends.low,
        fraction_high=ends.high,
        holm_low=holm_ends.low,
        holm_high=holm_ends.high,
        level=level,
    )


def _fisher(one: NDArray[np.int64], other: NDArray[np.int64]) -> Array:
    """Return Fisher's one-sided p-values that the first share is larger in `one`, of [..., 2].

    1 where it is not.
    """
    n, m = one.sum(axis=-1), other.sum(axis=-1)
    first = one[..., 0] + other[..., 0]
    larger = one[..., 0] * m > other[..., 0] * n
    p_value = np.ones(larger.shape)
    tables = (one[..., 0], n + m, first, n)
    said, whole, of_first, drawn = (part[larger] for part in tables)
    tail = np.minimum(scipy.stats.hypergeom.sf(said - 1, whole, of_first, drawn), 1.0)
    # Of six choices, three of each, p may be 1/20: rounding is not to lift it above that level.
    p_value[larger] = tail * (1.0 - ROUNDING)
    return p_value


def holm(p_value: Array) -> Array:
    """Return p-values corrected for their number by Holm's step-down method (1979), [P].

    statsmodels collects garbage in each call, which takes longer than a whole battery of tests.
    """
    corrected: Array = _holm_rows(p_value[None], np.ones((1, len(p_value)), dtype=bool))[0]
    return corrected


def _family(p_values: list[Array]) -> float:
    together = np.concatenate(p_values)
    return float(holm(together).min()) if len(together) else float("nan")
