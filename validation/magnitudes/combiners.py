"""Which combiner foretells answers to words and pictures together: Bayes, a line, or a forest.

All three see the answers to words and to pictures alone. Each is fitted to nine tenths of the
stimuli and foretells the rest; a stimulus and its repetitions lie in one part, since a forest would
know the others of it. Differences of squared errors are of pairs, and the stimulus is the unit
(`docs/conclusions.py combiners` says what 99 items find).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import scipy

from knownminds.agents.parameters import Array
from knownminds.inference.magnitudes.cue_combination import CuePairs

BAYES, LINE, FOREST = "Bayes", "line", "forest"
PARTS = 10
LEAST = 20  # stimuli, below which nothing is foretold
TREES, LEAF = 100, 3
BETTER, UNTOLD = "foretells better", "no difference shown"
LEVEL = 0.05 / 3  # of each of the three differences
COLUMNS = [
    "one",
    "other",
    "error_one",
    "error_other",
    "difference",
    "low",
    "high",
    "p_value",
    "sees",
    "stimuli",
    "verdict",
]


def compare_combiners(pairs: CuePairs, seed: int = 0) -> pd.DataFrame:
    """Compare three combiners by what they foretell, two at a time.

    Bayes weighs by the inverse variances of the answers to each alone (Ernst and Banks 2002), the
    line by what fits best between 0 and 1, the forest as it learns (Breiman 2001).

    Returns
    -------
    DataFrame : One row for each two: one, other, error_one and error_other (root mean squared, in
        the units of the answers' scale), difference (below 0 the first foretells better), low and
        high (95%, by the delta method from paired differences of squared errors over stimuli),
        p_value, sees (a difference that is found in 80% at .05 / 3), stimuli, and verdict. No rows
        with fewer than 20 stimuli.

    Raises
    ------
    ImportError : Without scikit-learn.
    """
    from sklearn.model_selection import GroupKFold

    answers = pairs.combined
    stimulus = pd.factorize(pd.MultiIndex.from_arrays([answers.window, answers.value]))[0]
    n = int(stimulus.max()) + 1 if len(stimulus) else 0
    if n < LEAST:
        return pd.DataFrame(columns=COLUMNS)
    x = np.column_stack([pairs.text, pairs.image]) / answers.unit
    y = answers.response / answers.unit
    off = {name: np.full(len(y), np.nan) for name in (BAYES, LINE, FOREST)}
    parts = GroupKFold(PARTS, shuffle=True, random_state=seed)
    for known, left in parts.split(x, y, stimulus):
        for name, said in _foretold(x[known], y[known], x[left], seed):
            off[name][left] = (said - y[left]) ** 2
    count = np.bincount(stimulus)
    each = {name: np.bincount(stimulus, values) / count for name, values in off.items()}
    return pd.DataFrame([
        _row(one, other, each[one], each[other], n)
        for one, other in ((FOREST, BAYES), (FOREST, LINE), (LINE, BAYES))
    ])  # fmt: skip


def _foretold(x: Array, y: Array, left: Array, seed: int) -> Iterator[tuple[str, Array]]:
    """Yield what each combiner foretells of the stimuli that were left out."""
    from sklearn.ensemble import RandomForestRegressor

    spread = x.var(axis=0)
    bayes = spread[1] / spread.sum() if spread.sum() > 0 else 0.5
    gap = x[:, 0] - x[:, 1]
    fitted = float(gap @ (y - x[:, 1]) / (gap @ gap)) if (gap**2).sum() > 0 else 0.5
    for name, weight in ((BAYES, bayes), (LINE, min(max(fitted, 0.0), 1.0))):
        yield name, weight * left[:, 0] + (1.0 - weight) * left[:, 1]
    forest = RandomForestRegressor(TREES, min_samples_leaf=LEAF, random_state=seed, n_jobs=1)
    yield FOREST, forest.fit(x, y).predict(left)


def _row(one: str, other: str, first: Array, second: Array, n: int) -> dict[str, Any]:
    """Return the difference of two root mean squared errors with its test over stimuli."""
    roots = np.sqrt([first.mean(), second.mean()])
    gap, slope = first - second, 1.0 / max(roots.sum(), 1e-12)  # a^2 - b^2 = (a - b) (a + b)
    value, error = gap.mean() * slope, gap.std(ddof=1) / np.sqrt(n) * slope
    law = scipy.stats.t(n - 1)
    p_value = float(2 * law.sf(abs(value) / error)) if error > 0 else np.nan
    word = UNTOLD if not p_value < LEVEL else f"{one if value < 0 else other} {BETTER}"
    return {
        "one": one, "other": other, "error_one": float(roots[0]), "error_other": float(roots[1]),
        "difference": float(value),
        "low": float(value - law.ppf(0.975) * error), "high": float(value + law.ppf(0.975) * error),
        "p_value": p_value, "sees": float((law.ppf(1 - LEVEL / 2) + law.ppf(0.8)) * error),
        "stimuli": n, "verdict": word,
    }  # fmt: skip
