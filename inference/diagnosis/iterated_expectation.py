"""Whether beliefs about the parts of a partition average to the belief about the whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from knownminds.agents.parameters import Array
from knownminds.environments.later import pandas as pd
from knownminds.environments.record.result import Result
from knownminds.inference.measure import t_tests
from knownminds.inference.resampling import percentile_ends

from .belief_decisions import ELICITATIONS, PART_COLUMNS, BeliefDecisions
from .predictive_gain import features_of, scikit_learn, single

FOLDS = 5
TREES = 100  # of a forest
ROUNDED = 0.01  # to which beliefs are stated


@dataclass(frozen=True)
class MedianRatio:
    """Median of |p(x) - sum_j p(x, z_j) p(z_j | x)| / p(x), with its interval.

    Parameters
    ----------
    value, low, high : The median over rows and its 95% interval, contexts being resampled; NaN if
        there is none.
    error : Median of the error itself.
    rows, contexts : What it rests on.
    standard_error : Standard deviation over the resampled contexts.
    """

    value: float
    low: float
    high: float
    error: float
    rows: int
    contexts: int
    standard_error: float


@dataclass(frozen=True)
class SignedGap:
    """Mean over contexts of sum_j p(x, z_j) p(z_j | x) - p(x), with its t test.

    Parameters
    ----------
    value, standard_error, low, high : The mean, its standard error over contexts and its 95%
        interval.
    p_value : Of the hypothesis that it is 0.
    contexts : What it rests on.
    """

    value: float
    standard_error: float
    low: float
    high: float
    p_value: float
    contexts: int


@dataclass(frozen=True)
class IteratedExpectationTest(Result):
    """How far stated beliefs are from the law of iterated expectation.

    Parameters
    ----------
    stated
        Of the participant.
    rounding
        Of the exact beliefs, rounded as stated ones are: what a perfect agent would show. None
        where the trials do not hold them.
    baseline
        Of a random forest trained on the exact beliefs; None if not asked for.
    above_baseline, above_low, above_high
        Stated minus baseline, and its 95% interval, contexts being resampled; NaN without one.
    gap
        The difference with its sign, and the test. Noise and rounding lift the ratio, which is no
        test therefore, but leave the mean difference nearly where it is.
    mass
        Median of sum_j p(z_j | x), which is 1 in a coherent agent; of distributions by the reading
        of answers, but for rounding.
    parts
        How many parts there are.
    elicitation
        How p(z_j | x) was asked for: in one "distribution" or in "separate" questions.
    excluded
        Rows left out, by reason.
    """

    stated: MedianRatio
    rounding: MedianRatio | None
    baseline: MedianRatio | None
    above_baseline: float
    above_low: float
    above_high: float
    gap: SignedGap
    mass: float
    parts: int
    elicitation: str
    excluded: Mapping[str, int]


def iterated_expectation(
    data: BeliefDecisions,
    *,
    belief: str = ELICITATIONS[0],
    features: Sequence[str] = (),
    forest: bool = False,
    elicitation: str | None = None,
    bootstraps: int = 500,
    seed: int = 0,
) -> IteratedExpectationTest:
    """Compare the belief about x with the average of the beliefs about x and each part of z.

    Coherent beliefs stated exactly have a ratio of 0; rounding alone lifts it, most where p is
    small. The ratio is therefore set beside that of the exact beliefs rounded to .01 and, with
    `forest`, beside that of random forests (Breiman 2001) that have learnt p*(x) and p*(x, z_j)
    from the exact beliefs of other contexts and have never been told of the law; they weigh the
    parts by the exact p*(z_j | x). The paper sets the ratio beside such a forest's and calls none a
    violation.

    Published is p(z_j | x) as one distribution, which sums to 1. Questions about one part at a time
    are another elicitation: probabilities that sum to 1.3 are no error of reading there, and the
    violation is larger by what they sum to.

    Parameters
    ----------
    belief
        The elicitation of p(x).
    features
        Columns of evidence from which the forest learns.
    forest
        Whether to train it; needs scikit-learn.
    elicitation
        "distribution" or "separate": by which answers; None for the first that was asked.
    bootstraps, seed
        Of the intervals.

    Raises
    ------
    ValueError
        If no parts were asked for, no row has all answers, or the forest has nothing to learn
        from.
    """
    parts = data.parts
    if not parts:
        raise ValueError(
            "The law of iterated expectation needs p(z in B_j | x) and p(state | x, z in B_j) for "
            "every part j; the trials ask for none. Include the expectation questions."
        )
    how = elicitation or data.part_elicitations[0]
    if how not in data.part_elicitations:
        raise ValueError(
            f"Answers were asked for as {' and '.join(data.part_elicitations)}; got "
            f"{elicitation!r}. Choose one of these, or None."
        )
    asked = PART_COLUMNS[how]
    names = [f"{kind}_{j}" for j in parts for kind in (asked, "given")]
    held, excluded = data.complete(belief, *names)
    said = _Beliefs.of(held.frame, belief, asked, "given", parts)
    if zero := int((said.whole == 0).sum()):
        excluded["no ratio to a belief of 0"] = zero
    context, draws = held.context, held.resampled(bootstraps, seed)
    stated, rounds = _median(said, context, draws)
    exact = ["posterior", *(f"exact_{name}" for name in names)]
    known = set(exact) <= set(held.frame) and bool(held.frame[exact].notna().all().all())
    rounding = baseline = None
    above = (float("nan"),) * 3
    if known:
        truth = _Beliefs.of(held.frame, "posterior", f"exact_{asked}", "exact_given", parts)
        told = _Beliefs(*(np.round(x / ROUNDED) * ROUNDED for x in truth))
        rounding, _ = _median(told, context, draws)
    if forest:
        if not known:
            raise ValueError(
                "The forest learns from the exact beliefs; the trials lack some of them. Fill in "
                "the column 'posterior' of every question."
            )
        learnt = _forest(features_of(held.frame, features), truth, context, seed)
        baseline, others = _median(learnt, context, draws)
        above = (stated.value - baseline.value, *percentile_ends(rounds - others)[:2])
    return IteratedExpectationTest(
        stated=stated,
        rounding=rounding,
        baseline=baseline,
        above_baseline=above[0],
        above_low=above[1],
        above_high=above[2],
        gap=_tested(signed_gap(*said, context)),
        mass=float(np.median(said.weights.sum(axis=1))),
        parts=len(parts),
        elicitation=how,
        excluded=excluded,
    )


class _Beliefs(NamedTuple):
    """p(x), [n]; p(z_j | x) and p(x, z_j), [n, J]."""

    whole: Array
    weights: Array
    givens: Array

    @classmethod
    def of(
        cls, frame: pd.DataFrame, whole: str, weight: str, given: str, parts: Sequence[int]
    ) -> _Beliefs:
        """Take them from columns; those of the parts end with their numbers."""
        sides = (
            frame[[f"{kind}_{j}" for j in parts]].to_numpy(dtype=float) for kind in (weight, given)
        )
        return cls(frame[whole].to_numpy(dtype=float), *sides)


def signed_gap(whole: Array, weights: Array, givens: Array, context: NDArray[np.int64]) -> Array:
    """Return the mean of sum_j p(x, z_j) p(z_j | x) - p(x) in each context that has one, [C]."""
    gap = (weights * givens).sum(axis=1) - whole
    held = np.isfinite(gap)
    n = np.bincount(context[held])
    total = np.bincount(context[held], gap[held])
    values: Array = total[n > 0] / n[n > 0]
    return values


def _tested(gap: Array) -> SignedGap:
    tests = t_tests(gap[None, :])
    return SignedGap(
        value=float(tests.mean[0]),
        standard_error=float(tests.standard_error[0]),
        low=float(tests.low[0]),
        high=float(tests.high[0]),
        p_value=float(tests.p_value[0]),
        contexts=len(gap),
    )


def _median(
    beliefs: _Beliefs, context: NDArray[np.int64], draws: NDArray[np.int64]
) -> tuple[MedianRatio, Array]:
    """Return the median ratio and that of each bootstrap, [B]."""
    whole, weights, givens = beliefs
    error = np.abs(whole - (weights * givens).sum(axis=1))
    # Sums of numbers with two decimals are off by rounding.
    error = np.where(error < 1e-12, 0.0, error)
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = np.where(whole > 0, error / whole, np.nan)
    held = np.isfinite(ratio)
    if not held.any():
        return MedianRatio(*(float("nan"),) * 4, 0, 0, float("nan")), np.full(len(draws), np.nan)
    rounds = _weighted_medians(ratio[held], draws[:, held])
    ends = percentile_ends(rounds)
    return MedianRatio(
        value=float(np.median(ratio[held])),
        low=ends.low,
        high=ends.high,
        error=float(np.median(error[held])),
        rows=int(held.sum()),
        contexts=len(np.unique(context[held])),
        standard_error=ends.error,
    ), rounds


def _weighted_medians(values: Array, weight: NDArray[np.int64]) -> Array:
    """Return the median of values[n], each counted weight[B, n] times, [B]; NaN if none is."""
    order = np.argsort(values, kind="stable")
    ranked = values[order]
    before = np.cumsum(weight[:, order], axis=1)
    total = before[:, -1] if before.size else np.zeros(len(weight), dtype=np.int64)
    # The two middle ones, counted from 1; the same one where the number is odd.
    low = (before < ((total + 1) // 2)[:, None]).sum(axis=1)
    high = (before < (total // 2 + 1)[:, None]).sum(axis=1)
    if not len(weight):
        return np.empty(0)
    last = len(ranked) - 1
    middle = 0.5 * (ranked[np.minimum(low, last)] + ranked[np.minimum(high, last)])
    return np.where(total > 0, middle, np.nan)


def _forest(features: Array, truth: _Beliefs, context: NDArray[np.int64], seed: int) -> _Beliefs:
    """Return what forests trained on other contexts believe; the parts keep their weights."""
    whole, weights, givens = truth
    scikit_learn("The random-forest baseline")
    from .predictive_gain import folds_of

    parts = givens.shape[1]
    first = np.unique(context, return_index=True)[1]  # repetitions have the same exact beliefs
    x, p, g, own = features[first], whole[first], givens[first], context[first]
    part = np.eye(parts)
    fold = folds_of(own, FOLDS, seed)
    of_whole, of_given = np.empty(len(first)), np.empty((len(first), parts))
    for f in range(fold.max() + 1):
        learn, tell = fold != f, fold == f
        of_whole[tell] = _grown(x[learn], p[learn], x[tell], seed)
        learnt, told = (_crossed(some, part) for some in (x[learn], x[tell]))
        of_given[tell] = _grown(learnt, g[learn].ravel(), told, seed).reshape(-1, parts)
    return _Beliefs(of_whole[context], weights, of_given[context])


def _grown(x: Array, y: Array, values: Array, seed: int) -> Array:
    """Return what a random forest that learnt y[n] from x[n, F] predicts for told[m, F], [m].

    The trees of scikit-learn's RandomForestRegressor, number for number: growing them here leaves
    out that each is made by cloning, which takes as long as growing it.
    """
    from sklearn.tree import DecisionTreeRegressor

    x, values = single(x), single(values)
    stream = np.random.RandomState(seed)  # as scikit-learn has it
    total = np.zeros(len(values))
    for number in [stream.randint(np.iinfo(np.int32).max) for _ in range(TREES)]:
        drawn = np.random.RandomState(number).randint(0, len(x), len(x))
        weight = np.bincount(drawn, minlength=len(x))
        tree = DecisionTreeRegressor(random_state=number)
        tree.fit(x, y, sample_weight=weight, check_input=False)
        total += tree.predict(values, check_input=False)
    return total / TREES


def _crossed(x: Array, part: Array) -> Array:
    """Return every row of x with every part, [n J, F + J]."""
    return np.column_stack([np.repeat(x, len(part), axis=0), np.tile(part, (len(x), 1))])
