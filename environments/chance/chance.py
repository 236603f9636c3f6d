"""Exact probabilities of the outcomes of dice, coins and the like."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from math import comb, factorial

import numpy as np
from numpy.typing import NDArray

DIGITS = 60  # digits kept of a number that is not a fraction


@dataclass(frozen=True)
class Chance:
    """The exact probabilities of outcomes, which are whole numbers.

    Parameters
    ----------
    outcomes : the possible outcomes, in rising order
    shares : the probability of each outcome
    """

    outcomes: tuple[int, ...]
    shares: tuple[Fraction, ...]

    def __post_init__(self) -> None:
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
        """Return the chances of the sum of the outcome and a known number."""
        return Chance(tuple(outcome + by for outcome in self.outcomes), self.shares)

    @property
    def middle(self) -> int:
        """The whole number halfway between the lowest and the highest outcome, or just below."""
        return (self.outcomes[0] + self.outcomes[-1]) // 2

    def given(self, holds: Callable[[int], bool]) -> Chance:
        """Return the chances after it is known that a condition holds for the outcome.

        Outcomes that do not meet the condition stay, with the probability 0.

        Raises
        ------
        ValueError : If no possible outcome meets the condition.
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
    """Return the chances of 0 to n - 1, all equally likely."""
    return Chance(tuple(range(n)), (Fraction(1, n),) * n)


def uniform_sum(n: int, faces: int) -> Chance:
    """Return the chances of the sum of n fair dice with the faces 1 to `faces`."""
    ways = [1]  # the number of ways to each sum, from the lowest on
    for _ in range(n):
        ways = [
            sum(ways[max(above - faces + 1, 0) : above + 1])
            for above in range(len(ways) + faces - 1)
        ]
    return Chance(tuple(range(n, n * faces + 1)), tuple(Fraction(w, faces**n) for w in ways))


def share_of(weight: int) -> Fraction:
    """Return the probability of an event that happens `weight` times as often as not."""
    return Fraction(weight, weight + 1)


def mixed(chances: Sequence[Chance], weights: Sequence[Fraction]) -> Chance:
    """Return the chances of an outcome under one of several laws, each probable by its weight.

    All laws have the same outcomes; weights need not sum to 1.
    """
    total = sum(weights, Fraction(0))
    rows = zip(*(each.shares for each in chances), strict=True)
    shares = (sum((w * p for w, p in zip(weights, row, strict=True)), Fraction(0)) for row in rows)
    return Chance(chances[0].outcomes, tuple(share / total for share in shares))


def poisson_up_to(mean: Fraction, most: int) -> Chance:
    """Return the chances of 0 to `most` under a Poisson law; the last one has the whole tail.

    The law is exp(-m) m^k / k!, with exp(-m) to 60 digits; the rest up to 1 is the tail.
    """
    with localcontext() as context:
        context.prec = DIGITS
        nothing = Fraction((-Decimal(mean.numerator) / Decimal(mean.denominator)).exp())
    return _with_tail([nothing * mean**k / factorial(k) for k in range(most)])


def geometric_up_to(mean: Fraction, most: int) -> Chance:
    """Return the chances of 0 to `most` misses before the first hit; the last has the whole tail.

    The law is p (1 - p)^k with p = 1 / (1 + m), whose mean is m.
    """
    hit = 1 / (1 + mean)
    return _with_tail([hit * (1 - hit) ** k for k in range(most)])


def _with_tail(shares: list[Fraction]) -> Chance:
    return Chance(tuple(range(len(shares) + 1)), (*shares, Fraction(1) - sum(shares)))


def chained(n: int, share: Fraction, correlation: Fraction, first: bool | None = None) -> Chance:
    """Return the chances of k successes in a chain of n, each tied to the one before it.

    Each toss has the probability p by itself and the correlation r with the one before it. After a
    success the probability is p + r (1 - p), after a failure p (1 - r). Tosses that are k positions
    apart have the correlation r^k. `first` says whether the first is a success, if that is known.

    Raises
    ------
    ValueError : If no chain can have this correlation.
    """
    least = -min(share / (1 - share), (1 - share) / share)
    if not least <= correlation <= 1:
        raise ValueError(
            f"Coins that come up with the probability {float(share):.3g} have correlations from "
            f"{float(least):.3g} to 1; got {float(correlation):g}. Take one of these, or coins "
            "that are nearer to fair."
        )
    after = {True: share + correlation * (1 - share), False: share * (1 - correlation)}
    # The probability of each number so far, by whether the last was a success.
    begin = share if first is None else Fraction(first)
    held = {(1, True): begin, (0, False): 1 - begin}
    for _ in range(n - 1):
        after_coin: dict[tuple[int, bool], Fraction] = defaultdict(Fraction)
        for (count, state), p in held.items():
            after_coin[count + 1, True] += p * after[state]
            after_coin[count, False] += p * (1 - after[state])
        held = after_coin
    none = Fraction(0)
    shares = (held.get((k, True), none) + held.get((k, False), none) for k in range(n + 1))
    return Chance(tuple(range(n + 1)), tuple(shares))
