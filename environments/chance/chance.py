"""Exact probabilities of what may come of dice, coins and the like."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import comb

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Chance:
    """The exact probability of each whole number that may come.

    Parameters
    ----------
    outcomes : what may come, from small to large
    shares : the probability of each outcome
    """

    outcomes: tuple[int, ...]
    shares: tuple[Fraction, ...]

    def __post_init__(self) -> None:
        """Check that these are outcomes and their probabilities."""
        if list(self.outcomes) != sorted(set(self.outcomes)):
            raise ValueError(f"Outcomes differ and go up; got {self.outcomes}.")
        if len(self.shares) != len(self.outcomes) or min(self.shares, default=-1) < 0:
            raise ValueError(f"Each outcome has a probability from 0 on; got {self.shares}.")
        if sum(self.shares) != 1:
            raise ValueError(f"Probabilities sum to 1; got a sum of {sum(self.shares)}.")

    @property
    def probabilities(self) -> NDArray[np.float64]:
        """The probabilities, each as the nearest number of double precision, [outcomes]."""
        return np.array([float(share) for share in self.shares])

    def shifted(self, by: int) -> Chance:
        """Return the chances of the outcome and a known number together."""
        return Chance(tuple(outcome + by for outcome in self.outcomes), self.shares)

    @property
    def middle(self) -> int:
        """The whole number halfway between the lowest and the highest outcome, or just below."""
        return (self.outcomes[0] + self.outcomes[-1]) // 2

    def given(self, holds: Callable[[int], bool]) -> Chance:
        """Return the chances once it is known that something holds of the outcome.

        Outcomes of which it does not hold stay, with the probability 0.

        Raises
        ------
        ValueError
            If it holds of none that can come.
        """
        pairs = zip(self.outcomes, self.shares, strict=True)
        left = [share if holds(outcome) else Fraction(0) for outcome, share in pairs]
        total = sum(left, Fraction(0))
        if not total:
            raise ValueError(
                f"What is observed can happen; of {self.outcomes} it holds of none that can come."
            )
        return Chance(self.outcomes, tuple(share / total for share in left))


def binomial(n: int, share: Fraction) -> Chance:
    """Return the chances of k successes among n: C(n, k) p^k (1 - p)^(n - k)."""
    shares = (comb(n, k) * share**k * (1 - share) ** (n - k) for k in range(n + 1))
    return Chance(tuple(range(n + 1)), tuple(shares))


def uniform(n: int) -> Chance:
    """Return the chances of 0 to n - 1, all alike."""
    return Chance(tuple(range(n)), (Fraction(1, n),) * n)


def uniform_sum(n: int, faces: int) -> Chance:
    """Return the chances of the sum of n dice whose faces, 1 to `faces`, come up alike."""
    ways = [1]  # of a sum that is so much above its least
    for _ in range(n):
        ways = [
            sum(ways[max(above - faces + 1, 0) : above + 1])
            for above in range(len(ways) + faces - 1)
        ]
    return Chance(tuple(range(n, n * faces + 1)), tuple(Fraction(w, faces**n) for w in ways))


def share_of(weight: int) -> Fraction:
    """Return the probability of what comes `weight` times as often as it does not."""
    return Fraction(weight, weight + 1)
