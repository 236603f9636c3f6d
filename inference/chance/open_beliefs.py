"""How much the open probability in tables of tokens can change what is read off beliefs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from knownminds.agents.parameters import Array

Integers = NDArray[np.int64]

ROUNDS = 20  # rounds of a search; each moves all open probability to where it counts most
LEVELS = 60  # levels of the share that an outcome must add to count
STILL = 1e-9  # a search ends after a round that gains less
MOST_STEPS = 500  # steps of a descent between corners
HALVINGS = 30


# A reading takes a belief [R], and returns a value and its slopes in the normalised shares, [R].
Reading = Callable[[Array], tuple[float, Array]]


@dataclass(frozen=True, eq=False)
class OpenBeliefs:
    """All normalised beliefs that tables allow, over R outcomes in C contexts.

    Parameters
    ----------
    certain : The certain probability of each outcome, before normalising, [R].
    context : Number of the context of each outcome, [R].
    units : The probability that could not be placed: how much, and the outcomes (as rows) on which
        it may lie, if any.
    """

    certain: Array
    context: Integers
    units: tuple[tuple[float, tuple[int, ...]], ...]

    def largest(self, slopes: Array) -> Array:
        """Return the belief with the largest slopes @ belief in each context, [R].

        A unit lies on its best outcome if that is above the mean that it would join; otherwise it
        lies on no outcome (Dinkelbach 1967).
        """
        n = int(self.context.max(initial=-1)) + 1
        best = np.array([rows[int(np.argmax(slopes[list(rows)]))] for _, rows in self.units])
        mass = np.array([mass for mass, _ in self.units])
        where = self.context[best]
        base = np.bincount(self.context, self.certain, n)
        worth = np.bincount(self.context, self.certain * slopes, n)
        level = np.full(n, -np.inf)
        for _ in range(LEVELS):
            on = slopes[best] > level[where]
            total = base + np.bincount(where, mass * on, n)
            sums = worth + np.bincount(where, mass * on * slopes[best], n)
            with np.errstate(invalid="ignore", divide="ignore"):
                new = np.where(total > 0, sums / total, -np.inf)
            if np.array_equal(new, level):
                break
            level = new
        placed = self.certain + np.bincount(best, mass * on, len(self.certain))
        with np.errstate(invalid="ignore", divide="ignore"):
            share = placed / np.bincount(self.context, placed, n)[self.context]
        return np.nan_to_num(share)

    def least(self, convex: Reading) -> float:
        """Return a lower bound of a convex function, within 1e-9 of its least value.

        The search takes pairwise steps of Frank and Wolfe (1956; Lacoste-Julien and Jaggi 2015)
        between corners. The bound is the value less the duality gap. So it is never larger than the
        least value, however well the search went.

        Parameters
        ----------
        convex : A function of a belief [R] that returns value and slopes.
        """
        corners = [self.largest(np.zeros(len(self.certain)))]
        share = np.ones(1)
        bound = -np.inf
        for _ in range(MOST_STEPS):
            belief = share @ np.array(corners)
            value, slopes = convex(belief)
            corner = self.largest(-slopes)
            gap = float(slopes @ (belief - corner))
            bound = max(bound, value - gap)
            if gap <= STILL:
                break
            match = [k for k, known in enumerate(corners) if np.array_equal(known, corner)]
            if not match:
                corners.append(corner)
                share = np.append(share, 0.0)
            to = match[0] if match else len(corners) - 1
            away = int(np.argmax(np.where(share > 0, np.array(corners) @ slopes, -np.inf)))
            step = _descent(convex, belief, corner - corners[away], share[away])
            share[to] += step
            share[away] -= step
        return bound

    def extreme(self, read: Reading, start: Array, sign: float) -> tuple[Array, float]:
        """Return a belief with the largest value times the sign, [R], and its value.

        The value is the largest one that a search finds. From `start`, a possible belief, all open
        probability moves to where the value rises most, again and again as long as there is a gain.
        """
        best, (value, slopes) = start, read(start)
        for _ in range(ROUNDS):
            belief = self.largest(sign * slopes)
            other, slopes = read(belief)
            if not sign * other > sign * value + STILL:
                break
            best, value = belief, other
        return best, value


def _descent(convex: Reading, belief: Array, move: Array, longest: float) -> float:
    """Return the step along `move`, at most the longest, at which a convex function is least."""
    if convex(belief + longest * move)[1] @ move <= 0:
        return longest
    low, high = 0.0, longest
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        if convex(belief + middle * move)[1] @ move > 0:
            high = middle
        else:
            low = middle
    return low


def set_bounds(
    certain: Array, units: Sequence[tuple[float, Sequence[int]]], sets: Array
) -> tuple[Array, Array]:
    """Return the least and the largest normalised probability of sets of outcomes, exactly.

    The share of a set is largest if all probability that can lie in the set does so, and no open
    probability lies on other outcomes. It is least in the opposite case.

    Parameters
    ----------
    sets : 1 for members, 0 for others, [sets, outcomes].
    """
    inside = sets @ certain
    outside = (1.0 - sets) @ certain
    into, away = np.zeros(len(sets)), np.zeros(len(sets))
    for mass, rows in units:
        inside_unit = sets[:, list(rows)]
        into += mass * (inside_unit.max(axis=1) > 0)
        away += mass * (inside_unit.min(axis=1) < 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        low = np.where(inside > 0, inside / (inside + outside + away), 0.0)
        high = np.where(inside + into > 0, (inside + into) / (inside + into + outside), 0.0)
    # If nothing is certain and nothing can lie elsewhere, all probability is in the set.
    low = np.where((inside <= 0) & (outside + away <= 0) & (into > 0), 1.0, low)
    return low, high
