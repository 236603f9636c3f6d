"""Between which true values a parameter can be read in a design, and where it cannot.

A study looks at twelve bands of each parameter's prior at once, so what one of them seems to show
is no finding. Two things have to hold, each over all that was looked at (Holm 1979): the bands of a
parameter differ (an F test with each band's own error), and intervals in a band are clearly about
as wide as the prior's. Where all bands are alike, some are named in one study of twenty at most.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import scipy

from knownminds.agents import Support
from knownminds.agents.parameters import Array
from knownminds.validation.engine.monte_carlo import Agreement, Score
from knownminds.validation.engine.verdicts import LEAST_FITS, WEAK_WIDTH

BANDS = 12  # of the prior, each as probable
LEVEL = 0.05  # chance of a false name among all bands of all parameters of a study


@dataclass(frozen=True)
class Stretch:
    """True values at which intervals are clearly about as wide as the prior's.

    Parameters
    ----------
    low, high
        Its ends on the natural scale; those of the support where it has none.
    relative_width
        Mean width of the 90% intervals there over that of the prior's own, unconstrained scale.
    open_below, open_above
        Whether it reaches the end of the support.
    """

    low: float
    high: float
    relative_width: Score
    open_below: bool
    open_above: bool

    def __contains__(self, value: float) -> bool:
        """Say whether a value lies there."""
        return self.low <= value <= self.high

    def told(self, name: str) -> str:
        """Say which values of a parameter it holds."""
        if self.open_below and self.open_above:
            return f"{name} at any value"
        if self.open_above:
            return f"{name} above {self.low:.3g}"
        if self.open_below:
            return f"{name} below {self.high:.3g}"
        return f"{name} from {self.low:.3g} to {self.high:.3g}"


@dataclass
class ByTruth:
    """Widths of intervals by true value, gathered while the parts of a study go by."""

    support: Support
    mean: float  # of the prior, unconstrained scale
    sd: float
    clustered: bool = False
    _bands: list[Agreement] = field(default_factory=list)
    _clusters: int = 0

    def __post_init__(self) -> None:
        """Begin with nothing in every band."""
        self._bands = [Agreement(self.clustered) for _ in range(BANDS)]

    @property
    def _edges(self) -> Array:
        inner = scipy.stats.norm.ppf(np.arange(1, BANDS) / BANDS)
        return np.asarray(self.mean + self.sd * inner)

    def add(self, z_true: Array, width: Array, cluster: Array) -> None:
        """Take in true values and relative widths, [n] each."""
        self._clusters += len(np.unique(cluster))
        band = np.searchsorted(self._edges, z_true, side="right")
        for k, widths in enumerate(self._bands):
            here = band == k
            widths.add(np.zeros(here.sum()), width[here], cluster[here])

    @property
    def p_values(self) -> tuple[float, Array]:
        """How probable so wide intervals are where nothing is lost.

        Returns
        -------
        That bands differ so much if they are all alike; and that a band's mean width is so large if
        it is truly at the limit, [bands], NaN where there are fewer than 10 fits.

        Notes
        -----
        Widths pile up at the prior's own, so a band may show no error at all: its error is the
        average band's where that is larger.
        """
        scores = [one.bias for one in self._bands]
        judged = np.array([one.n >= LEAST_FITS for one in self._bands])
        width = np.array([score.value for score in scores])
        error = np.array([score.error for score in scores])
        judged &= np.isfinite(width) & np.isfinite(error)
        beyond = np.full(BANDS, np.nan)
        k = int(judged.sum())
        free = self._clusters - 1 if self.clustered else sum(one.n for one in self._bands) - k
        if k < 2 or free < 1:
            return np.nan, beyond
        width, error = width[judged], error[judged]
        average = float((error**2).mean())
        with np.errstate(divide="ignore", invalid="ignore"):  # all intervals as wide as the prior's
            t = (width - WEAK_WIDTH) / np.maximum(np.sqrt(average), error)
            ratio = width.var(ddof=1) / average
        beyond[judged] = scipy.stats.t.sf(t, free)
        return float(scipy.stats.f.sf(ratio, k - 1, free)), beyond

    def joined(self, lost: Sequence[bool]) -> tuple[Stretch, ...]:
        """Return the bands that are lost, neighbours as one stretch."""
        inner = self.support.constrain(self._edges).tolist()
        ends = [self.support.lower, *inner, self.support.upper]
        found, first = [], 0
        while first < BANDS:
            last = first
            while last < BANDS and lost[last]:
                last += 1
            if last > first:
                width = _together(self._bands[first:last])
                span = ends[first], ends[last]
                found.append(Stretch(*span, width, first == 0, last == BANDS))
            first = last + 1
        return tuple(found)


def unreadable(each: Sequence[ByTruth]) -> list[tuple[Stretch, ...]]:
    """Return where each parameter of a study cannot be read, as far as the study bears it out.

    Either no band of a parameter is readable, or bands differ and some are not.
    """
    found = [one.p_values for one in each]
    differ = _holm(np.array([p for p, _ in found]))
    beyond = _holm(np.concatenate([p for _, p in found]))
    lost = (beyond <= LEVEL).reshape(-1, BANDS)
    return [
        one.joined(bands.tolist()) if p <= LEVEL or bands.all() else ()
        for one, p, bands in zip(each, differ.tolist(), lost, strict=True)
    ]


def _holm(p_values: Array) -> Array:
    """Return Holm's (1979) adjusted p-values; 1 where there is none, which counts as no test."""
    known = np.flatnonzero(np.isfinite(p_values))
    adjusted = np.ones(len(p_values))
    order = known[np.argsort(p_values[known])]
    steps = p_values[order] * (len(order) - np.arange(len(order)))
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted


def about_stretch(name: str, stretch: Stretch) -> str:
    """Say that a parameter cannot be read there, and why."""
    return (
        f"{stretch.told(name)} cannot be read in this design: 90% intervals are "
        f"{stretch.relative_width.value:.0%} as wide there as the prior's."
    )


def _together(parts: Sequence[Agreement]) -> Score:
    """Return the mean over all pairs of several parts."""
    n = np.array([part.n for part in parts], dtype=float)
    scores = [part.bias for part in parts]
    mean = sum(k * score.value for k, score in zip(n, scores, strict=True)) / n.sum()
    square = sum((k * score.error) ** 2 for k, score in zip(n, scores, strict=True))
    return Score(float(mean), float(np.sqrt(square) / n.sum()))
