"""Exact probabilities of what may come of coins and the like."""

from __future__ import annotations

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


def binomial(n: int, share: Fraction) -> Chance:
    """Return the chances of k successes among n: C(n, k) p^k (1 - p)^(n - k)."""
    shares = (comb(n, k) * share**k * (1 - share) ** (n - k) for k in range(n + 1))
    return Chance(tuple(range(n + 1)), tuple(shares))


def share_of(weight: int) -> Fraction:
    """Return the probability of what comes `weight` times as often as it does not."""
    return Fraction(weight, weight + 1)
