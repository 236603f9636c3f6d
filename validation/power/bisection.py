"""The smallest size at which shares reach a target, by stochastic bisection."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import scipy

from knownminds.agents.parameters import Array
from knownminds.environments import Environment
from knownminds.validation.engine.arguments import resolve_environment
from knownminds.validation.engine.engine import Step
from knownminds.validation.engine.scores import Score
from knownminds.validation.engine.study import Rows, Study

DATA_SETS = 100  # of a step: Monte-Carlo error of a share .05 at most, so steps stay cheap
STEPS = 30  # at most
FIRST = 8  # the first size that is tried
FASTEST = 4  # the next size is at most so many times the largest so far
LEAST_TARGET, MOST_TARGET = 0.06, 0.99
PRECISE = 0.1  # a search ends when the 90% interval is this narrow, relative to its middle
MASS = 0.9  # of the interval of the smallest size
ATTEMPTS = 3  # confirmations before the search gives up
ABOUT = (
    "In the search the share is taken to rise as Phi(a + b sqrt(size)). The answer is confirmed if "
    "the share in a fresh run, which does not enter the search, reaches the target within two of "
    f"its Monte-Carlo errors. low and high: {MASS:.0%} interval of the answer; a size above --most "
    "is not excluded where high is empty.",
)

# Of a size, a number of data sets and the name of the step: the share of each curve and its number
# of data sets; None if the step has not been computed yet.
Measure = Callable[[int, int, str], Sequence[tuple[Score, int]] | None]


def check_target(target: float) -> None:
    """Raise ValueError if no search can look for a share."""
    if not LEAST_TARGET <= target <= MOST_TARGET:
        raise ValueError(
            f"The target power lies in [{LEAST_TARGET}, {MOST_TARGET}]; got {target:g}."
        )


@dataclass
class Bisection:
    """A search for the smallest size at which every one of several shares reaches a target.

    Parameters
    ----------
    sizes : Those that are considered, ascending.
    target : The share to reach.
    replicates : Data sets of the fresh run that confirms.
    curves : What is known of each share.
    size : The answer; None before there is one.
    verdict : confirmed, not confirmed, not reached or not finished.
    tried : The sizes of all steps.
    """

    sizes: Sequence[int]
    target: float
    replicates: int
    curves: Sequence[Curve]
    size: int | None = None
    verdict: str = "not finished"
    tried: list[int] = field(default_factory=list)

    @property
    def interval(self) -> tuple[float, float, float]:
        """Ends and middle of the interval of the size: low, middle, high."""
        ends = [curve.interval for curve in self.curves]
        low, middle, high = (max(end) for end in zip(*ends, strict=True))
        return low, middle, high

    def follow(self, measure: Measure) -> Bisection:
        """Try sizes until the answer is confirmed, cannot be, or a step is missing."""
        most = self.sizes[-1]
        size, confirmations = self.at_least(FIRST), 0
        for step in range(STEPS):
            shares = measure(size, DATA_SETS, f"step-{step:02d}")
            if shares is None:
                return self
            self._add(size, shares)
            low, middle, high = self.interval
            if low > most and size == most:
                self.verdict = "not reached"
                return self
            last = step == STEPS - 1
            if high - low <= max(PRECISE * middle, self._spacing) or last:
                self.size = self.at_least(middle)
                fresh = measure(self.size, self.replicates, f"confirmation-{confirmations}")
                if fresh is None:
                    return self
                self.tried.append(self.size)
                confirmations += 1
                if all(share.value + 2 * share.error >= self.target for share, _ in fresh):
                    self.verdict = "confirmed"
                    return self
                if confirmations == ATTEMPTS or last:
                    self.verdict = "not confirmed"
                    return self
                self._add(self.size, fresh)
                _, middle, _ = self.interval
            size = self.at_least(min(middle, FASTEST * max(self.tried)))
        return self

    def _add(self, size: int, shares: Sequence[tuple[Score, int]]) -> None:
        self.tried.append(size)
        for curve, (share, n) in zip(self.curves, shares, strict=True):
            curve.add(size, share.value * n, n)

    @property
    def _spacing(self) -> float:
        return float(np.diff(self.sizes).min()) if len(self.sizes) > 1 else 1.0

    def at_least(self, size: float) -> int:
        """Return the smallest size that is considered and not below a number."""
        position = int(np.searchsorted(self.sizes, size - 1e-9))
        return self.sizes[min(position, len(self.sizes) - 1)]

    def answer(self, interval: tuple[float, float, float] | None = None) -> dict[str, int | None]:
        """Return the ends of an interval of the size as sizes; None above the largest."""
        low, _, high = self.interval if interval is None else interval
        ends = {"low": low, "high": high}
        return {k: self.at_least(v) if v <= self.sizes[-1] else None for k, v in ends.items()}


def sizes_to_try(environment: Environment, find: str, most: int, least: int = 1) -> list[int]:
    """Return the sizes that a search considers, ascending; numbers of trials that can be played."""

    def possible(size: int) -> bool:
        try:
            resolve_environment(environment, size if find == "trials" else None)
        except ValueError:
            return False
        return True

    sizes = list(filter(possible, range(least, most + 1)))
    if not sizes:
        raise ValueError(f"No number of {find} up to {most} can be tested.")
    return sizes


def followed(
    bisection: Bisection,
    study: Callable[[int, int, str], Study],
    rows_of: Step,
    shares: Callable[[Rows], Sequence[tuple[Score, int]]],
) -> list[tuple[str, int, Rows]]:
    """Go the way of a search; return part (search or fresh run), size and rows of each step.

    Parameters
    ----------
    study : Returns the study of a size, a number of data sets and the name of a step, to which its
        data sets belong alone.
    rows_of : Computes or reads it.
    shares : Returns what each curve counts in its rows.
    """
    steps: list[tuple[str, int, Rows]] = []

    def measure(size: int, data_sets: int, name: str) -> Sequence[tuple[Score, int]] | None:
        rows = rows_of(study(size, data_sets, name), name)
        if rows is None:
            return None
        part = "fresh run" if name.startswith("confirmation") else "search"
        steps.append((part, size, rows))
        return shares(rows)

    bisection.follow(measure)
    return steps


class Curve:
    """Posterior of the size at which a share reaches the target.

    share(n) = Phi(-c + (c + z) sqrt(n / size)), z the target's normal quantile; log size is
    uniform, and c Normal around the quantile of the share at size 0, cut where the share would
    fall with n.

    Parameters
    ----------
    sizes : Those that are considered, ascending.
    target : The share to reach.
    start, spread : Mean and standard deviation of c. 1.96 for a normal two-sided test at 5%.
    """

    def __init__(
        self, sizes: Sequence[int], target: float, start: float = 1.96, spread: float = 0.4
    ):
        self.size = np.geomspace(sizes[0] / 2, 16 * sizes[-1], 1500)[:, None]
        self.z = scipy.stats.norm.ppf(target)
        lowest = max(start - 2.9 * spread, -self.z + 0.05)
        self.c = np.linspace(lowest, start + 3.1 * spread, 25)[None, :]
        self.log_density: Array = scipy.stats.norm.logpdf(self.c, start, spread) + 0 * self.size

    def add(self, size: int, successes: float, n: int) -> None:
        """Take in that so many of n data sets of this size were successes."""
        eta = -self.c + (self.c + self.z) * np.sqrt(size / self.size)
        self.log_density = (
            self.log_density
            + successes * scipy.stats.norm.logcdf(eta)
            + (n - successes) * scipy.stats.norm.logsf(eta)
        )

    @property
    def interval(self) -> tuple[float, float, float]:
        """Ends and middle of the interval of the size: low, middle, high."""
        low, middle, high = self.quantiles((1 - MASS) / 2, 0.5, (1 + MASS) / 2)
        return low, middle, high

    def quantiles(self, *shares: float) -> tuple[float, ...]:
        """Return quantiles of the size."""
        density = np.exp(self.log_density - self.log_density.max()).sum(axis=1)
        cumulative = np.cumsum(density) / density.sum()
        log_size = np.log(self.size[:, 0])
        return tuple(float(np.exp(np.interp(share, cumulative, log_size))) for share in shares)
