"""Whether decisions depend on the state beyond stated beliefs: I(action; state | belief)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, ndtri

from knownminds.agents.compiled import compiled, read_only
from knownminds.agents.parameters import Array
from knownminds.environments import session_stream
from knownminds.inference.resampling import Resampled, percentile_ends, times_drawn

from .belief_decisions import BeliefDecisions
from .coherence_test import CoherenceTest, reading

NEIGHBOURS = 3  # neighbours of the estimator, as published
CLOSE = 1e-9  # distances that differ by less count as equal: .31 - .30 is not .30 - .29 in floats
BLOCK = 5  # so many contexts exchange their states
HALVES = 200  # random halves of the contexts, for the standard error
WIDTH = 0.05  # largest difference of stated beliefs within a block

Integers = NDArray[np.int64]


def conditional_independence(
    data: BeliefDecisions,
    *,
    belief: str = "plain",
    k: int = NEIGHBOURS,
    calibrated: bool = False,
    replicates: int = 1000,
    bootstraps: int = 500,
    halves: int = HALVES,
    seed: int = 0,
) -> CoherenceTest:
    """Test whether action and state are independent given the stated belief.

    The estimator, in nats, is that of Mesner & Shalizi (2020). Distances are 0/1 between actions
    and between states, and |dp| between beliefs; all rows within the distance of the k-th neighbour
    are counted, ties too. Its standard error comes from random halves of the contexts. It is
    compared with the null, its mean under permutation, not with zero.

    The state is drawn once per context, so only contexts can be exchanged. The test permutes the
    states of contexts with nearly the same belief (mean over their repetitions). If a decider
    truthfully reports the belief on which it acts, its actions are independent of the state given
    that belief. The state's odds hardly change within a block, so its p-value is uniform. If the
    report is noisy, action and state share what the report lost, and the hypothesis is false
    although the decider is rational.

    With `calibrated`, beliefs are first replaced by the isotonic regression of the state on them.
    That makes wide ties in which action and state vary together, so the regression is fitted anew
    in each permutation.

    The published reading puts 1.96 standard errors of resampled rows around the estimate (Wald). As
    a test it is conservative: repetitions are each other's neighbours, which lowers the estimate.
    `percentile_low` and `percentile_high` are the percentiles of the same bootstraps. They are no
    test: a row that is drawn twice has itself as a neighbour, which adds some .01 to .03 to each
    bootstrap (`bootstrap_mean` is their mean), so that they lie above zero for many rational
    deciders.

    Parameters
    ----------
    belief : The elicitation whose belief is held constant.
    k : Neighbours; 1 or more.
    replicates, bootstraps : Permutations, and bootstraps of the published reading (0 for none).
    halves : Random halves of the contexts, for the standard error (0 for none).

    Raises
    ------
    ValueError : If no row has belief, action and state, or a setting is out of range.
    """
    if k < 1 or replicates < 1 or bootstraps < 0:
        raise ValueError(
            "k and replicates are 1 or more and bootstraps 0 or more; got "
            f"k={k}, replicates={replicates}, bootstraps={bootstraps}."
        )
    complete, excluded = data.complete("action", belief)
    p = complete.numbers(belief)
    action, state = (complete.numbers(name).astype(np.int64) for name in ("action", "state"))
    context = complete.context
    problem = _Problem(p, action, k, calibrated)
    estimate = float(problem.estimates(state[None, :])[0])
    rng = session_stream(seed, 31)
    null = problem.estimates(exchanged_states(p, state, context, replicates, rng))
    error = problem.standard_error(state, context, halves, session_stream(seed, 33))
    half = float(ndtri(0.975)) * error
    published = Resampled(estimate)
    more: dict[str, Any] = {}
    if bootstraps:
        rounds = problem.estimates(state[None, :], times_drawn(len(state), bootstraps, seed, 32))
        low, high, spread = percentile_ends(rounds)
        around = estimate - 1.96 * spread, estimate + 1.96 * spread
        published = Resampled(estimate, *around, spread)
        more = {"percentile_low": low, "percentile_high": high}
        more["bootstrap_mean"] = float(rounds.mean())
    row = reading(
        "calibrated" if calibrated else "",
        Resampled(estimate, estimate - half, estimate + half, error),
        null=float(null.mean()),
        # Values that differ only by the order of summation count as equal.
        p_value=(1 + int((null >= estimate - 1e-12).sum())) / (replicates + 1),
        n=len(p),
        published=published,
        excluded=excluded,
        **more,
    )
    return CoherenceTest.of([row], int(context.max()) + 1)


def exchanged_states(
    p: Array,
    state: Integers,
    context: Integers,
    replicates: int,
    rng: np.random.Generator,
    group: Integers | None = None,
) -> Integers:
    """Return R permutations of states[n] between contexts with nearly the same belief, [R, n].

    The belief is the mean of p[n] in a context. If group[n] is given, for instance folds, only
    contexts of the same group are exchanged; it must be constant within a context.
    """
    n = int(context.max()) + 1
    mean = np.bincount(context, p) / np.bincount(context)
    of_context, group_of = np.zeros((2, n), dtype=np.int64)
    of_context[context], group_of[context] = state, 0 if group is None else group
    blocks = np.zeros(n, dtype=np.int64)
    for number in range(int(group_of.max()) + 1):
        mine = group_of == number
        blocks[mine] = neighbourhoods(mean[mine]) + n * number
    blocks = np.unique(blocks, return_inverse=True)[1]
    return permuted(of_context, blocks, replicates, rng)[:, context]


def neighbourhoods(p: Array, block: int = BLOCK, width: float = WIDTH) -> Integers:
    """Return for each context the number of its block of neighbours in p, [C].

    Blocks are runs of contexts in the order of p. A block ends when it has `block` members, or when
    the next context would be more than `width` from its first. Equal p share a block. A short run
    joins the one before it if that does not make it wider than `width`.
    """
    order = np.argsort(p, kind="stable")
    ranked = p[order]
    starts, size = [0], 1
    for i in range(1, len(p)):
        same = ranked[i] - ranked[i - 1] < CLOSE
        far = ranked[i] - ranked[starts[-1]] > width + CLOSE
        if not same and (size >= block or far):
            starts.append(i)
            size = 0
        size += 1
    joined = [0]
    ends = [*starts[1:], len(p)]
    for start, end in zip(starts[1:], ends[1:], strict=True):
        short = end - start < block
        if not short or ranked[end - 1] - ranked[joined[-1]] > width + CLOSE:
            joined.append(start)
    blocks = np.zeros(len(p), dtype=np.int64)
    blocks[joined[1:]] = 1
    numbers = np.empty(len(p), dtype=np.int64)
    numbers[order] = np.cumsum(blocks)
    return numbers


def permuted(
    state: Integers, blocks: Integers, replicates: int, rng: np.random.Generator
) -> Integers:
    """Return R permutations of the states[C] of contexts within their blocks, [R, C]."""
    home = np.argsort(blocks, kind="stable")
    key = rng.random((replicates, len(state))) + blocks
    numbers = np.empty((replicates, len(state)), dtype=np.int64)
    numbers[:, home] = state[np.argsort(key, axis=1)]
    return numbers


class _Problem:
    """Beliefs and actions of n rows; their order in p serves all permutations."""

    def __init__(self, p: Array, action: Integers, k: int, calibrated: bool):
        values, position = np.unique(np.asarray(p, dtype=float), return_inverse=True)
        # Beliefs that differ by rounding count as equal.
        group = np.concatenate([[0], np.cumsum(np.diff(values) > CLOSE)])
        first = np.concatenate([[True], np.diff(group) > 0])
        self.values = values[first]
        self.cell = group[position].astype(np.int64)
        self.action = np.asarray(action, dtype=np.int64)
        self.n_actions = int(self.action.max()) + 1
        self.k, self.calibrated = k, calibrated

    def estimates(self, state: Integers, weight: Integers | None = None) -> Array:
        """Return the estimate for each row of states[R, n] or weights[R, n], [R].

        It is mean_i psi(k_i) - psi(n_ap,i) - psi(n_sp,i) + psi(n_p,i). The counts are those of
        other rows within the distance of row i's k-th neighbour. Mesner & Shalizi (2020) replace
        negative values by 0, which is not done here.
        """
        if weight is None:
            weight = np.ones((1, len(self.cell)), dtype=np.int64)
        n = int(weight.sum(axis=1).max())
        psi = np.zeros(n + 1)
        psi[1:] = digamma(np.arange(1, n + 1))
        values: Array = _estimates(
            self.values, self.cell, self.action, read_only(state, np.int64),
            read_only(weight, np.int64), self.n_actions, self.k, self.calibrated, psi,
        )  # fmt: skip
        return values

    def standard_error(
        self, state: Integers, context: Integers, rounds: int, rng: np.random.Generator
    ) -> float:
        """Return the standard error of the estimate, by random halves of the contexts.

        In a bootstrap of contexts, rows become neighbours of themselves. A jackknife that leaves
        out one context at a time overstates the spread by half, since neighbours change abruptly.
        Leaving out half of the contexts has neither problem (Shao & Wu 1989).
        """
        n = int(context.max()) + 1
        if n < 4 or not rounds:
            return float("nan")
        rank = np.argsort(np.argsort(rng.random((rounds, n)), axis=1), axis=1)
        weight = (rank < n // 2).astype(np.int64)[:, context]
        result = self.estimates(state[None, :], weight)
        kept = n // 2 / n
        return float(result.std() * np.sqrt(kept / (1 - kept)))


@compiled()
def _estimates(values, cell, action, state, weight, n_actions, k, calibrated, psi):  # type: ignore[no-untyped-def]
    """Return the estimate for each replicate; states or weights may be the same in all."""
    n, m = len(cell), len(values)
    replicates = max(len(state), len(weight))
    result = np.empty(replicates)
    cells = 2 * n_actions  # cell = 2 action + state
    count = np.zeros((cells, m), np.int64)
    # Rows with a value before v: those of the cell, of the action, of the state, and all.
    of_cell = np.zeros((cells, m + 1), np.int64)
    of_action = np.zeros((n_actions, m + 1), np.int64)
    of_state = np.zeros((2, m + 1), np.int64)
    of_all = np.zeros(m + 1, np.int64)
    occupied = np.empty(m, np.int64)
    level = np.arange(m)
    height = values.copy()
    size, ones = np.empty(m), np.empty(m)
    for r in range(replicates):
        theta = state[min(r, len(state) - 1)]
        times = weight[min(r, len(weight) - 1)]
        levels = m
        if calibrated:
            levels = _pool(cell, theta, times, m, size, ones, height, level)
        count[:] = 0
        total = 0
        for i in range(n):
            count[2 * action[i] + theta[i], level[cell[i]]] += times[i]
            total += times[i]
        for v in range(levels):
            of_all[v + 1] = of_all[v]
            for s in range(2):
                of_state[s, v + 1] = of_state[s, v]
            for a in range(n_actions):
                of_action[a, v + 1] = of_action[a, v]
                for s in range(2):
                    c = 2 * a + s
                    of_cell[c, v + 1] = of_cell[c, v] + count[c, v]
                    of_action[a, v + 1] += count[c, v]
                    of_state[s, v + 1] += count[c, v]
                    of_all[v + 1] += count[c, v]
        value = 0.0
        for c in range(cells):
            a, s = c // 2, c % 2
            filled = 0
            for v in range(levels):
                if count[c, v] > 0:
                    occupied[filled] = v
                    filled += 1
            if of_cell[c, levels] <= k:
                continue  # all rows are within the k-th neighbour's distance 1: psi cancel
            for q in range(filled):
                v = occupied[q]
                radius = _radius(height, occupied, filled, count[c], q, k)
                if radius > 1.0 - 1e-9:
                    continue
                low = np.searchsorted(height[:levels], height[v] - radius - 1e-9)
                high = np.searchsorted(height[:levels], height[v] + radius + 1e-9)
                value += count[c, v] * (
                    psi[of_cell[c, high] - of_cell[c, low] - 1]
                    - psi[of_action[a, high] - of_action[a, low] - 1]
                    - psi[of_state[s, high] - of_state[s, low] - 1]
                    + psi[of_all[high] - of_all[low] - 1]
                )
        result[r] = value / total
    return result


@compiled()
def _radius(height, occupied, filled, count, q, k):  # type: ignore[no-untyped-def]
    """Return the distance of the k-th neighbour within the cell of the q-th occupied value."""
    here = height[occupied[q]]
    have = count[occupied[q]] - 1
    left, right, radius = q - 1, q + 1, 0.0
    while have < k:
        below = here - height[occupied[left]] if left >= 0 else np.inf
        above = height[occupied[right]] - here if right < filled else np.inf
        if below <= above:
            radius = below
            have += count[occupied[left]]
            left -= 1
        else:
            radius = above
            have += count[occupied[right]]
            right += 1
    return radius


@compiled()
def _pool(cell, state, weight, m, size, ones, height, level):  # type: ignore[no-untyped-def]
    """Regress the state on the values isotonically: heights of levels, and each value's level.

    Adjacent violators are pooled (Ayer et al. 1955). Values without rows belong to the level before
    them.
    """
    for v in range(m):
        size[v] = 0.0
        ones[v] = 0.0
    for i in range(len(cell)):
        size[cell[i]] += weight[i]
        ones[cell[i]] += weight[i] * state[i]
    last = -1
    for v in range(m):
        if size[v] == 0.0:
            level[v] = max(last, 0)
            continue
        last += 1
        rows, positive = size[v], ones[v]
        # The arrays size and ones are overwritten from the front, always before position v.
        while last > 0 and ones[last - 1] * rows >= positive * size[last - 1]:
            rows += size[last - 1]
            positive += ones[last - 1]
            last -= 1
        size[last], ones[last] = rows, positive
        level[v] = last
    # A value that was pooled later has a level that was lowered since.
    least = last
    for v in range(m - 1, -1, -1):
        least = min(least, level[v])
        level[v] = least
    for b in range(last + 1):
        height[b] = ones[b] / size[b]
    return last + 1
