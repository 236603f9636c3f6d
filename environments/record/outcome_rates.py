"""How often each outcome of an answer occurs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from knownminds.environments.words.answer import ANSWERED, Outcome

from .trials import Trials

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Rate:
    """How often an outcome occurred, with the 95% interval of Wilson (1927).

    Parameters
    ----------
    outcome : the outcome
    count, of : the number of trials with this outcome, and of all trials
    share, low, high : the rate and its interval; NaN without trials
    """

    outcome: str
    count: int
    of: int
    share: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.share:.1%}, 95% interval {self.low:.1%} to {self.high:.1%}"

    @classmethod
    def count_of(cls, outcome: str, count: int, of: int) -> Rate:
        """Compute the rate and its interval."""
        if of == 0:
            return cls(outcome, 0, 0, np.nan, np.nan, np.nan)
        low, high = wilson(count, of)
        return cls(outcome, count, of, count / of, float(low), float(high))


def wilson(count: ArrayLike, of: ArrayLike, mass: float = CONFIDENCE) -> tuple[Any, Any]:
    """Return the interval of a share (Wilson 1927), elementwise; 0 to 1 without draws.

    It needs no package that takes a second to import, and ends at 0 and at 1 without rounding
    errors where none or all count.
    """
    count, of = np.asarray(count, dtype=float), np.asarray(of, dtype=float)
    square, n = ndtri(0.5 + mass / 2) ** 2, np.maximum(of, 1.0)
    middle = (count + square / 2) / (n + square)
    half = np.sqrt(square * (count * (n - count) / n + square / 4)) / (n + square)
    return np.where(count <= 0, 0.0, middle - half), np.where(count >= of, 1.0, middle + half)


def outcome_rates(trials: Trials | Mapping[str, int]) -> tuple[Rate, ...]:
    """Return the rates of all outcomes, in the order of `Outcome`.

    The intervals treat trials as independent. That is right for faults that strike trial by trial,
    and too narrow for a participant who refuses whole sessions.

    Parameters
    ----------
    trials : Trials, or the number of trials with each outcome.
    """
    if isinstance(trials, Trials):
        frequencies = trials.frame["outcome"].value_counts()
        counts = {str(name): int(n) for name, n in frequencies.items()}
    else:
        counts = dict(trials)
    of = sum(counts.values())
    return tuple(Rate.count_of(o.value, counts.get(o.value, 0), of) for o in Outcome)


def unread_rate(rates: Sequence[Rate]) -> Rate:
    """Return the rate of answers that could not be read, given the rates of all outcomes."""
    count = sum(rate.count for rate in rates if rate.outcome not in ANSWERED)
    return Rate.count_of("unread", count, rates[0].of)
