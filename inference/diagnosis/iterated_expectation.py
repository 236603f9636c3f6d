"""Whether beliefs about the parts of a partition average to the belief about the whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from knownminds.agents.parameters import Array
from knownminds.inference.measure import t_tests
from knownminds.inference.resampling import Resampled, resampled

from .belief_decisions import ELICITATIONS, PART_COLUMNS, BeliefDecisions
from .coherence_test import CoherenceTest, reading
from .predictive_gain import features_of, folds_of, scikit_learn

FOLDS = 5
TREES = 100  # trees of a forest
ROUNDED = 0.01  # beliefs are stated to this precision
# The name of a row adds the elicitation of p(z | x), unless it is the published one.
SEPARATE = {"distribution": "", "separate": ", asked singly"}


def iterated_expectation(
    data: BeliefDecisions,
    *,
    belief: str = ELICITATIONS[0],
    features: Sequence[str] = (),
    forest: bool = False,
    elicitation: str | None = None,
    bootstraps: int = 500,
    seed: int = 0,
) -> CoherenceTest:
    """Compare the belief about x with the average of the beliefs about x and each part of z.

    The first row is the mean over contexts of sum_j p(x, z_j) p(z_j | x) - p(x), with its t test;
    noise and rounding hardly change it. Published is the median over rows of |p(x) - sum_j p(x,
    z_j) p(z_j | x)| / p(x). It is no test. Coherent beliefs have 0 if stated exactly, but rounding
    alone raises it, most where p is small. The row "ratio if exact" is that of the exact beliefs
    rounded to .01. With `forest`, "ratio of forests" is that of random forests (Breiman 2001) that
    learnt p*(x) and p*(x, z_j) from the exact beliefs of other contexts, without the law; they
    weigh the parts by the exact p*(z_j | x). "above forests" is the difference. The paper compares
    the ratio with such a forest's and does not call either a violation.

    The published form asks for p(z_j | x) as one distribution, which sums to 1. Questions about one
    part at a time are another elicitation. There probabilities may sum to 1.3 without any reading
    error, and the violation is larger by that excess. `mass` is the median of that sum.

    Parameters
    ----------
    belief : The elicitation of p(x).
    features : Columns of evidence from which the forest learns.
    forest : Whether to train it; needs scikit-learn.
    elicitation : "distribution" or "separate", the answers that are used; None for the first kind
        in the data.
    bootstraps, seed : How many bootstraps make the intervals, and their seed.

    Raises
    ------
    ValueError : If the trials have no parts, no row has all answers, or the forest has nothing to
        learn from.
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
            f"Answers were elicited as {' and '.join(data.part_elicitations)}; got "
            f"{elicitation!r}. Choose one of these, or None."
        )
    stem = PART_COLUMNS[how]
    names = [f"{kind}_{j}" for j in parts for kind in (stem, "given")]
    complete, excluded = data.complete(belief, *names)
    stated = _Beliefs.of(complete, belief, stem, "given")
    if zero := int((stated.whole == 0).sum()):
        excluded["no ratio to a belief of 0"] = zero
    context, draws = complete.context, complete.resampled(bootstraps, seed)
    rounds = _medians(stated, draws)
    gap = signed_gap(*stated, context)
    test, suffix = t_tests(gap[None, :]).first, SEPARATE[how]
    rows = [
        reading(
            f"parts over whole{suffix}",
            Resampled(test["mean"], test["low"], test["high"], test["standard_error"]),
            null=0.0,
            p_value=test["p_value"],
            n=len(gap),
            unit="context",
            published=resampled(rounds),
            excluded=excluded,
            mass=float(np.median(stated.weights.sum(axis=1))),
        )
    ]
    exact = ["posterior", *(f"exact_{name}" for name in names)]
    frame = complete.frame
    known = set(exact) <= set(frame) and bool(frame[exact].notna().all().all())
    if known:
        truth = _Beliefs.of(complete, "posterior", f"exact_{stem}", "exact_given")
        rounded = _Beliefs(*(np.round(x / ROUNDED) * ROUNDED for x in truth))
        ratio = resampled(_medians(rounded, draws))
        n = int((rounded.whole > 0).sum())
        rows.append(reading(f"ratio if exact{suffix}", ratio, n=n))
    if forest:
        if not known:
            raise ValueError(
                "The forest learns from the exact beliefs; the trials lack some of them. Fill in "
                "the column 'posterior' of every question."
            )
        others = _medians(_forest(features_of(frame, features), truth, context, seed), draws)
        for name, values in (("ratio of forests", others), ("above forests", rounds - others)):
            rows.append(reading(f"{name}{suffix}", resampled(values), n=len(frame)))
    return CoherenceTest.of(rows, int(context.max()) + 1)


class _Beliefs(NamedTuple):
    """p(x), [n]; p(z_j | x) and p(x, z_j), [n, J]."""

    whole: Array
    weights: Array
    givens: Array

    @classmethod
    def of(cls, data: BeliefDecisions, whole: str, weight: str, given: str) -> _Beliefs:
        """Take the beliefs from columns; the columns of the parts end with the parts' numbers."""
        return cls(data.numbers(whole), data.of_parts(weight), data.of_parts(given))


def signed_gap(whole: Array, weights: Array, givens: Array, context: NDArray[np.int64]) -> Array:
    """Return the mean of sum_j p(x, z_j) p(z_j | x) - p(x) in each context that has one, [C]."""
    gap = (weights * givens).sum(axis=1) - whole
    known = np.isfinite(gap)
    n = np.bincount(context[known])
    total = np.bincount(context[known], gap[known])
    values: Array = total[n > 0] / n[n > 0]
    return values


def ratios(whole: Array, weights: Array, givens: Array) -> Array:
    """Return |p(x) - sum_j p(x, z_j) p(z_j | x)| / p(x), [n]; NaN where p(x) is 0."""
    error = np.abs(whole - (weights * givens).sum(axis=1))
    # Sums of numbers with two decimals have rounding errors.
    error = np.where(error < 1e-12, 0.0, error)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(whole > 0, error / whole, np.nan)


def _medians(beliefs: _Beliefs, draws: NDArray[np.int64]) -> Array:
    """Return the median ratio of the data and of each bootstrap, [1 + B]; NaN if there is none."""
    values = ratios(*beliefs)
    known = np.isfinite(values)
    if not known.any():
        return np.full(1 + len(draws), np.nan)
    weight = np.concatenate([np.ones((1, len(values)), dtype=np.int64), draws])[:, known]
    order = np.argsort(values[known], kind="stable")
    ranked = values[known][order]
    before = np.cumsum(weight[:, order], axis=1)
    total = before[:, -1]
    # These are the two middle values, counted from 1; both are the same if the number is odd.
    low = (before < ((total + 1) // 2)[:, None]).sum(axis=1)
    high = (before < (total // 2 + 1)[:, None]).sum(axis=1)
    last = len(ranked) - 1
    middle = 0.5 * (ranked[np.minimum(low, last)] + ranked[np.minimum(high, last)])
    return np.where(total > 0, middle, np.nan)


def _forest(features: Array, truth: _Beliefs, context: NDArray[np.int64], seed: int) -> _Beliefs:
    """Return the beliefs of forests trained on other contexts; the parts keep their weights."""
    whole, weights, givens = truth
    scikit_learn("The random-forest baseline")
    parts = givens.shape[1]
    first = np.unique(context, return_index=True)[1]  # repetitions have the same exact beliefs
    x, p, g, context_of = features[first], whole[first], givens[first], context[first]
    part = np.eye(parts)
    fold = folds_of(context_of, FOLDS, seed)
    of_whole, of_given = np.empty(len(first)), np.empty((len(first), parts))
    for f in range(fold.max() + 1):
        learn, tell = fold != f, fold == f
        of_whole[tell] = _grown(x[learn], p[learn], x[tell], seed)
        learnt, test_part = (_crossed(some, part) for some in (x[learn], x[tell]))
        of_given[tell] = _grown(learnt, g[learn].ravel(), test_part, seed).reshape(-1, parts)
    return _Beliefs(of_whole[context], weights, of_given[context])


def _grown(x: Array, y: Array, values: Array, seed: int) -> Array:
    """Return predictions [m] for values[m, F], of a random forest trained on x[n, F] and y[n]."""
    from sklearn.ensemble import RandomForestRegressor

    forest = RandomForestRegressor(TREES, random_state=seed).fit(x, y)
    return np.asarray(forest.predict(values))


def _crossed(x: Array, part: Array) -> Array:
    """Return every row of x with every part, [n J, F + J]."""
    return np.column_stack([np.repeat(x, len(part), axis=0), np.tile(part, (len(x), 1))])
