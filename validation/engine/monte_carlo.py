"""How well estimates follow the truth, each score with its Monte-Carlo error, in one pass.

Monte-Carlo standard errors are closed: the standard deviation of the statistic's influence
function over the square root of n (delta method), Agresti and Coull's (1998) for shares. Where
subjects are fitted together they do not err independently, and influences are summed within
replicates first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from knownminds.agents.parameters import Array


@dataclass(frozen=True)
class Score:
    """A number and its Monte-Carlo standard error."""

    value: float
    error: float

    def __str__(self) -> str:
        """Value and error."""
        return f"{self.value:.3f} ({self.error:.3f})"


NOTHING = Score(np.nan, np.nan)

# The square of a runaway may be no double: its scores are NaN then, which needs no warning.
_runaways = np.errstate(over="ignore", invalid="ignore")


def share(successes: float, n: int) -> Score:
    """Return a share of n independent trials; 0 and 1 have an error too."""
    if n == 0:
        return NOTHING
    shrunk = (successes + 2) / (n + 4)
    return Score(successes / n, float(np.sqrt(shrunk * (1 - shrunk) / (n + 4))))


@dataclass
class Tally:
    """Running mean of F features, and the covariance of that mean.

    Rows come in pieces, and the rows of a cluster always in the same piece. Sums are kept about
    the first piece's mean, so that little is lost to rounding.

    Parameters
    ----------
    clustered
        Whether rows of a cluster depend on each other.
    """

    clustered: bool = False
    n: int = 0
    _pivot: Array = field(default_factory=lambda: np.zeros(0))
    _sum: Array = field(default_factory=lambda: np.zeros(0))
    _squares: Array = field(default_factory=lambda: np.zeros((0, 0)))
    _sizes: Array = field(default_factory=lambda: np.zeros(0))  # sum over clusters: size x sum
    _groups: int = 0
    _sizes_squared: float = 0.0

    @_runaways
    def add(self, features: Array, clusters: NDArray[np.int64] | None = None) -> None:
        """Take in rows [n, F] and, if clustered, the cluster of each."""
        if len(features) == 0:
            return
        if self.n == 0:
            width = features.shape[1]
            self._pivot = features.mean(axis=0)
            self._sum, self._sizes = np.zeros(width), np.zeros(width)
            self._squares = np.zeros((width, width))
        self.n += len(features)
        centred = features - self._pivot
        self._sum += centred.sum(axis=0)
        if self.clustered and clusters is not None:
            _, position = np.unique(clusters, return_inverse=True)
            size = np.bincount(position).astype(float)
            centred = np.stack([np.bincount(position, column) for column in centred.T], axis=1)
            self._groups += len(size)
            self._sizes += size @ centred
            self._sizes_squared += float(size @ size)
        self._squares += centred.T @ centred

    @property
    def mean(self) -> Array:
        """Means of the features, [F]."""
        return self._pivot + self._sum / self.n

    @property
    def covariance(self) -> Array:
        """Covariance of the means, [F, F]; NaN where there is too little to tell."""
        n, groups = self.n, self._groups
        off = self._sum / n
        if not self.clustered:
            if n < 2:
                return np.full_like(self._squares, np.nan)
            return (self._squares / n - np.outer(off, off)) / (n - 1)
        if groups < 2:
            return np.full_like(self._squares, np.nan)
        cross = np.outer(self._sizes, off)
        spread = self._squares - cross - cross.T + self._sizes_squared * np.outer(off, off)
        return spread * groups / (groups - 1) / n**2

    @_runaways
    def error(self, weights: Array) -> float:
        """Standard error of a statistic whose influence is these weights of the features."""
        variance = float(weights @ self.covariance @ weights)
        return float(np.sqrt(max(variance, 0.0))) if np.isfinite(variance) else np.nan


@dataclass
class Agreement:
    """How far one column (estimates y) agrees with another (truths x), gathered in pieces."""

    clustered: bool = False
    _tally: Tally = field(default_factory=Tally)
    _origin: tuple[float, float] = (0.0, 0.0)
    _finite: bool = True
    _ranges: Array = field(default_factory=lambda: np.array([[np.inf, -np.inf], [np.inf, -np.inf]]))

    def __post_init__(self) -> None:
        """Hand on whether rows are clustered."""
        self._tally.clustered = self.clustered

    @_runaways
    def add(self, x: Array, y: Array, clusters: NDArray[np.int64] | None = None) -> None:
        """Take in pairs, [n] each."""
        if len(x) == 0:
            return
        if self._tally.n == 0:
            self._origin = float(x.mean()), float(y.mean())
        for k, values in enumerate((x, y)):
            low, high = self._ranges[k]
            self._ranges[k] = min(low, values.min()), max(high, values.max())
        dx, dy, e = x - self._origin[0], y - self._origin[1], y - x
        features = np.column_stack([dx, dy, dx * dx, dy * dy, dx * dy, e, e * e])
        self._finite &= bool(np.isfinite(features).all())
        self._tally.add(features, clusters)

    @property
    def n(self) -> int:
        """Count the pairs."""
        return self._tally.n

    @property
    def truth_varies(self) -> bool:
        """Whether x differs between rows."""
        return self.n > 1 and bool(self._ranges[0][1] > self._ranges[0][0])

    @property
    def finite(self) -> bool:
        """Whether squares of all values are finite; without that there is no correlation."""
        return self._finite

    @property
    def bias(self) -> Score:
        """Mean of y - x."""
        if self.n == 0 or not self._finite:
            return NOTHING
        return Score(float(self._tally.mean[5]), self._tally.error(_unit(5)))

    @property
    def root_mean_square(self) -> Score:
        """Root mean square of y - x."""
        if self.n == 0 or not self._finite:
            return NOTHING
        root = float(np.sqrt(self._tally.mean[6]))
        return Score(root, self._tally.error(_unit(6)) / (2 * root) if root > 0 else 0.0)

    @property
    def correlation(self) -> Score:
        """Pearson's r."""
        if not self._varies:
            return NOTHING
        _, vx, vy, cxy = self._moments
        scale = np.sqrt(vx) * np.sqrt(vy)
        r = cxy / scale
        turn = self._product / scale
        stretch = self._square(0) / vx + self._square(1) / vy
        return Score(float(r), self._tally.error(turn - r * stretch / 2))

    @property
    def concordance(self) -> Score:
        """Lin's (1989) concordance correlation, which counts bias as well."""
        if not self._varies:
            return NOTHING
        apart, vx, vy, cxy = self._moments
        below = vx + vy + apart**2
        c = 2 * cxy / below
        difference = _unit(0) - _unit(1)  # x - y, but for a constant
        stretch = self._square(0) + self._square(1) + 2 * apart * difference
        return Score(float(c), self._tally.error((2 * self._product - c * stretch) / below))

    @property
    def shrinkage(self) -> Score:
        """1 - slope of y on x: 0 none, 1 complete."""
        if not self._varies:
            return NOTHING
        _, vx, _, cxy = self._moments
        slope = cxy / vx
        influence = (self._product - slope * self._square(0)) / vx
        return Score(float(1 - slope), self._tally.error(influence))

    @property
    def _varies(self) -> bool:
        return self.n > 2 and self._finite and bool((self._ranges[:, 1] > self._ranges[:, 0]).all())

    @property
    def _moments(self) -> tuple[float, float, float, float]:
        """Difference of the means x - y, both variances, and the covariance."""
        a, b, xx, yy, xy = self._tally.mean[:5]
        apart = self._origin[0] + a - self._origin[1] - b
        return apart, xx - a * a, yy - b * b, xy - a * b

    def _square(self, k: int) -> Array:
        """Weights that turn the features into the squared deviation of x (0) or y (1)."""
        return np.asarray(_unit(2 + k) - 2 * self._tally.mean[k] * _unit(k))

    @property
    def _product(self) -> Array:
        """Weights that turn the features into the product of both deviations."""
        a, b = self._tally.mean[:2]
        return np.asarray(_unit(4) - b * _unit(0) - a * _unit(1))


def _unit(k: int, width: int = 7) -> Array:
    weights = np.zeros(width)
    weights[k] = 1.0
    return weights


@dataclass
class Coverage:
    """Share of intervals that hold the truth, and their mean width, for several masses."""

    masses: Sequence[float]
    clustered: bool = False
    _held: Tally = field(default_factory=Tally)
    _widths: list[Tally] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Hand on whether rows are clustered."""
        self._held.clustered = self.clustered
        self._widths = [Tally(self.clustered) for _ in self.masses]

    def add(
        self, truth: Array, low: Array, high: Array, clusters: NDArray[np.int64] | None = None
    ) -> None:
        """Take in truths [n] and interval ends [n, masses]; a missing end holds nothing."""
        inside = (low <= truth[:, None]) & (truth[:, None] <= high)
        self._held.add(inside.astype(float), clusters)
        with np.errstate(invalid="ignore"):
            width = high - low
        for k, tally in enumerate(self._widths):
            finite = np.isfinite(width[:, k])
            tally.add(width[finite, k, None], None if clusters is None else clusters[finite])

    @property
    def shares(self) -> dict[str, Score]:
        """Coverage by mass in per cent."""
        return {f"{mass * 100:g}": self._share(k) for k, mass in enumerate(self.masses)}

    @property
    def widths(self) -> dict[str, Score]:
        """Mean width of the finite intervals by mass in per cent."""
        found = {}
        for mass, tally in zip(self.masses, self._widths, strict=True):
            one = np.ones(1)
            score = Score(float(tally.mean[0]), tally.error(one)) if tally.n else NOTHING
            found[f"{mass * 100:g}"] = score
        return found

    def _share(self, k: int) -> Score:
        n = self._held.n
        if n == 0:
            return NOTHING
        closed = share(float(self._held.mean[k]) * n, n)
        if not self.clustered:
            return closed
        error = self._held.error(_unit(k, len(self.masses)))
        return Score(closed.value, float(np.nanmax([closed.error, error])))
