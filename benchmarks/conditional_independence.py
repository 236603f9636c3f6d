"""The permutation test of conditional independence against a k-d tree per permutation.

    python benchmarks/conditional_independence.py

1,000 permutations on 1,000 rows (200 contexts x 5), k = 3. The loop in Python builds, for each
permutation, trees of (p, action, state), (p, action), (p, state) and p under the maximum norm,
asks them for neighbours, and takes digammas: the estimator of Mesner and Shalizi with SciPy.
Different categories are at least 1 apart, which is farther than any k-th neighbour here. Both give
the same estimates. Processor time of one process; the first call, which compiles, is not counted.
"""

from __future__ import annotations

from time import process_time

import numpy as np
from scipy.spatial import cKDTree
from scipy.special import digamma

from knownminds.inference.diagnosis.conditional_independence import (
    _Problem,
    neighbourhoods,
    permuted,
)

CONTEXTS, REPEATS, PERMUTATIONS, K = 200, 5, 1000, 3
LOOPED = 20  # permutations of the loop that are timed


def by_trees(p, action, state):
    """Return the estimate for one assignment of states, by k-d trees."""
    joint = np.column_stack([p, action, state])
    radius = cKDTree(joint).query(joint, K + 1, p=np.inf)[0][:, -1] + 1e-9
    total = 0.0
    for sign, columns in ((1, [0, 1, 2]), (-1, [0, 1]), (-1, [0, 2]), (1, [0])):
        some = joint[:, columns]
        count = cKDTree(some).query_ball_point(some, radius, p=np.inf, return_length=True) - 1
        total += sign * digamma(count)
    return float(total.mean())


def main():
    """Time both on the same permutations and print their ratio."""
    rng = np.random.default_rng(1)
    posterior = (np.arange(CONTEXTS) + rng.random(CONTEXTS)) / CONTEXTS
    of_context = (rng.random(CONTEXTS) < posterior).astype(np.int64)
    context = np.repeat(np.arange(CONTEXTS), REPEATS)
    p = np.round(np.clip(posterior[context] + 0.02 * rng.standard_normal(len(context)), 0, 1), 2)
    action = rng.integers(0, 3, len(p))
    mean = np.bincount(context, p) / REPEATS
    states = permuted(of_context, neighbourhoods(mean), PERMUTATIONS, rng)[:, context]
    _Problem(p, action, K, False).estimates(states[:2])
    seconds = []
    for _ in range(3):
        start = process_time()
        ours = _Problem(p, action, K, False).estimates(states)
        seconds.append(process_time() - start)
    start = process_time()
    theirs = [by_trees(p, action, state) for state in states[:LOOPED]]
    loop = (process_time() - start) / LOOPED * PERMUTATIONS
    assert np.allclose(ours[:LOOPED], theirs, atol=1e-12)
    best = min(seconds)
    print(f"knownminds     {best:8.3f} s for {PERMUTATIONS:,} permutations of {len(p):,} rows")
    print(f"k-d-tree loop  {loop:8.1f} s ({LOOPED} permutations timed)")
    print(f"ratio          {loop / best:8.0f}")
    assert loop / best >= 50


if __name__ == "__main__":
    main()
