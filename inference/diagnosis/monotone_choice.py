"""Whether the odds of the bolder of two actions rise with the stated belief."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from knownminds.agents.parameters import Array
from knownminds.environments.later import pandas as pd
from knownminds.inference.resampling import resampled

from .belief_decisions import ACTIONS, BeliefDecisions
from .coherence_test import NONE, CoherenceTest, reading

PAIRS = ((0, 2), (0, 1), (1, 2))  # Yes against No, Yes against Defer, Defer against No
BINS = 5
LEVEL = 0.05
ROUNDING = 1e-12
FALLS = " falls"  # ends the names of rows that test single pairs of actions


def monotone_choice(
    data: BeliefDecisions, *, belief: str = "plain", bootstraps: int = 500, seed: int = 0
) -> CoherenceTest:
    """Look for falls of the share of the bolder action from lower to higher belief.

    If noise in choice is independent of belief, the odds of one action over another are monotone in
    the belief. Beliefs are cut at their quantiles into five bins, or fewer if beliefs are tied at
    an edge. For each pair of actions and each pair of bins, a one-sided Fisher exact test asks
    whether the share of the first action fell. Pairs of bins of which one has neither action are
    not tested and are not in the denominator.

    The first row counts turns. Among the significant rises and falls of a pair of actions (Holm
    1979), it is the rarer count, since maximisers of expected utility with noise have only one
    kind. (If waiting costs most where the condition is present, such a maximiser defers less as
    belief grows.) Its p-value is for the hypothesis that each share only rises or only falls
    (Bonferroni over the pairs of actions). Published are falls that are significant by themselves;
    with ten pairs of bins they occur more often than their level says. A row per pair of actions
    has the share of pairs of bins with a significant fall after Holm's correction, the p-value for
    the hypothesis that its share never falls, and the published share.

    The frame "bins" has a row per pair of actions and pair of bins: first, second, low, high,
    p_value (1 where the share does not fall); "shares" a row per pair of actions and bin: first,
    second, bin, belief (mean), chose_first, chose_second, share (NaN where neither was chosen).

    Parameters
    ----------
    belief : The elicitation by whose belief rows are binned.
    bootstraps, seed : How many bootstraps make the intervals, and their seed. Contexts are drawn
        with replacement; the bins stay.

    Raises
    ------
    ValueError : If no row has belief and action.
    """
    complete, excluded = data.complete("action", belief)
    p, action = complete.numbers(belief), complete.numbers("action").astype(np.int64)
    edges, position = _binned(p)
    k = len(edges) + 1
    cell = position * len(ACTIONS) + action
    counts = np.bincount(cell, minlength=k * len(ACTIONS)).reshape(1, k, -1)
    if bootstraps:
        weight = complete.resampled(bootstraps, seed).astype(float)  # whole numbers multiply slowly
        onehot = (cell[:, None] == np.arange(k * len(ACTIONS))).astype(float)
        drawn = (weight @ onehot).astype(np.int64)
        counts = np.concatenate([counts, drawn.reshape(bootstraps, k, -1)])
    pairs = [_PairTests.of(counts[:, :, list(pair)]) for pair in PAIRS]
    fallen, turned, p_value = _shares(pairs)
    rows = [
        reading(
            "any pair turns",
            resampled(turned),
            null=0.0,
            p_value=float(p_value[0]),
            n=len(p),
            published=resampled(fallen),
            excluded=excluded,
        )
    ]
    centre = np.bincount(position, p, k) / np.bincount(position, minlength=k)
    frames: dict[str, list[pd.DataFrame]] = {"bins": [], "shares": []}
    for pair, tests in zip(PAIRS, pairs, strict=True):
        first, second = (ACTIONS[action] for action in pair)
        rows.append(tests.row(f"{first} over {second}{FALLS}"))
        names = {"first": first, "second": second}
        low, high = np.triu_indices(k, k=1)
        table = {"low": low, "high": high, "p_value": tests.falls[0]}
        frames["bins"].append(pd.DataFrame(names | table)[tests.testable[0]])
        chosen = counts[0][:, list(pair)]
        with np.errstate(invalid="ignore"):
            share = chosen[:, 0] / chosen.sum(axis=1)
        table = {"bin": np.arange(k), "belief": centre, "chose_first": chosen[:, 0]}
        table |= {"chose_second": chosen[:, 1], "share": share}
        frames["shares"].append(pd.DataFrame(names | table))
    together = {name: pd.concat(some, ignore_index=True) for name, some in frames.items()}
    return CoherenceTest.of(rows, int(complete.context.max()) + 1, **together)


def _binned(p: Array) -> tuple[Array, NDArray[np.int64]]:
    """Return the edges between quantile bins, and the bin of each belief."""
    edges = np.unique(np.quantile(p, np.arange(1, BINS) / BINS))
    edges = edges[edges > p.min()]  # nobody is below the lowest
    position = np.searchsorted(edges, p, side="right")
    held = np.unique(position)  # quantiles of few beliefs may leave a bin empty
    return edges[held[1:] - 1], np.searchsorted(held, position)


@dataclass(frozen=True)
class _PairTests:
    """Tests of two actions between P pairs of bins, in the data (round 0) and B bootstraps.

    Parameters
    ----------
    testable : whether both bins have one of the actions, [1 + B, P]
    falls, rises : p-values for a fall or a rise of the first action's share, [1 + B, P]
    holm_falls, holm_rises : the same, corrected for all testable pairs; 1 elsewhere
    """

    testable: NDArray[np.bool_]
    falls: Array
    rises: Array
    holm_falls: Array
    holm_rises: Array

    @classmethod
    def of(cls, counts: NDArray[np.int64]) -> _PairTests:
        """Test counts[1 + B, bins, 2] of the two actions."""
        low, high = np.triu_indices(counts.shape[1], k=1)
        total = counts.sum(axis=2)
        testable = (total[:, low] > 0) & (total[:, high] > 0)
        falls = _fisher(counts[:, low], counts[:, high])
        rises = _fisher(counts[:, high], counts[:, low])
        return cls(testable, falls, rises, *(_holm_rows(p, testable) for p in (falls, rises)))

    @property
    def fallen(self) -> NDArray[np.int64]:
        """Pairs of bins with a fall that is significant by itself, [1 + B]."""
        return np.asarray(((self.falls <= LEVEL) & self.testable).sum(axis=1))

    @property
    def p_turning(self) -> Array:
        """p-value for the hypothesis that the share only rises or only falls, [1 + B].

        Both a fall and a rise must be significant; NaN if nothing is testable.
        """
        least = [p.min(axis=1, initial=1.0) for p in (self.holm_falls, self.holm_rises)]
        return np.where(self.testable.any(axis=1), np.maximum(*least), np.nan)

    def row(self, of: str) -> dict[str, object]:
        """Return the reading of these two actions alone."""
        n = self.testable.sum(axis=1)
        if not n[0]:
            status = "no pair of bins with both actions"
            return reading(of, NONE, n=0, unit="pair of bins", status=status)
        with np.errstate(invalid="ignore"):
            corrected = (self.holm_falls <= LEVEL).sum(axis=1) / n
            published = self.fallen / n
        return reading(
            of,
            resampled(corrected),
            null=0.0,
            p_value=float(self.holm_falls[0].min()),
            n=int(n[0]),
            unit="pair of bins",
            published=resampled(published),
        )


def _shares(pairs: list[_PairTests]) -> tuple[Array, Array, Array]:
    """Return the shares of falls and of turns, and the p-value of a turn, each [1 + B]."""
    turned = [
        np.minimum(*((p <= LEVEL).sum(axis=1) for p in (pair.holm_falls, pair.holm_rises)))
        for pair in pairs
    ]
    p_values = np.stack([pair.p_turning for pair in pairs], axis=1)
    tests = np.isfinite(p_values).sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        testable = sum(pair.testable.sum(axis=1) for pair in pairs)
        least = np.where(np.isfinite(p_values), p_values, 2.0).min(axis=1)
        p_value = np.where(tests > 0, np.minimum(1.0, tests * least), np.nan)
        fallen = sum(pair.fallen for pair in pairs)
        return fallen / testable, sum(turned) / testable, p_value


def _holm_rows(p_value: Array, testable: NDArray[np.bool_]) -> Array:
    """Return `holm` of the testable entries of each row of p_value[B, P]; 1 elsewhere."""
    p_value = np.where(testable, p_value, 2.0)  # sorts after all others
    order = np.argsort(p_value, axis=1, kind="stable")
    ranked = np.take_along_axis(p_value, order, axis=1)
    left = testable.sum(axis=1)[:, None] - np.arange(p_value.shape[1])
    stepped = np.maximum.accumulate(ranked * np.maximum(left, 0), axis=1)
    values = np.ones_like(p_value)
    np.put_along_axis(values, order, np.where(left > 0, np.minimum(stepped, 1.0), 1.0), axis=1)
    return values


def _fisher(one: NDArray[np.int64], other: NDArray[np.int64]) -> Array:
    """Return Fisher's one-sided p-values that the first share is larger in `one`, of [..., 2].

    They are 1 where it is not larger.
    """
    n, m = one.sum(axis=-1), other.sum(axis=-1)
    first = one[..., 0] + other[..., 0]
    larger = one[..., 0] * m > other[..., 0] * n
    p_value = np.ones(larger.shape)
    tables = (one[..., 0], n + m, first, n)
    said, whole, of_first, drawn = (part[larger] for part in tables)
    tail = np.minimum(scipy.stats.hypergeom.sf(said - 1, whole, of_first, drawn), 1.0)
    # With six choices, three of each action, p may be 1/20; rounding must not lift it above that
    # level.
    p_value[larger] = tail * (1.0 - ROUNDING)
    return p_value


def holm(p_value: Array) -> Array:
    """Return p-values corrected for their number by Holm's step-down method (1979), [P].

    NaN stands for no test, and becomes 1. statsmodels collects garbage in each call, which takes
    longer than a whole battery of tests.
    """
    corrected: Array = _holm_rows(p_value[None], np.isfinite(p_value)[None])[0]
    return corrected
