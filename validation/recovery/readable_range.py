"""Between which true values a parameter can be read in a design, and where it cannot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import scipy

from knownminds.agents import Support
from knownminds.agents.parameters import Array
from knownminds.validation.engine.monte_carlo import Agreement, Score
from knownminds.validation.engine.verdicts import judge_region

BANDS = 12  # of the prior, each as probable


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

    def __post_init__(self) -> None:
        """Begin with nothing in every band."""
        self._bands = [Agreement(self.clustered) for _ in range(BANDS)]

    @property
    def _edges(self) -> Array:
        inner = scipy.stats.norm.ppf(np.arange(1, BANDS) / BANDS)
        return np.asarray(self.mean + self.sd * inner)

    def add(self, z_true: Array, width: Array, cluster: Array) -> None:
        """Take in true values and relative widths, [n] each."""
        band = np.searchsorted(self._edges, z_true, side="right")
        for k, widths in enumerate(self._bands):
            here = band == k
            widths.add(np.zeros(here.sum()), width[here], cluster[here])

    def stretches(self) -> tuple[Stretch, ...]:
        """Return where the parameter cannot be read: bands clearly not identified, joined."""
        inner = self.support.constrain(self._edges).tolist()
        ends = [self.support.lower, *inner, self.support.upper]
        lost = []
        for widths in self._bands:
            width = widths.bias
            word = judge_region(width.value, n=widths.n, error=width.error).word
            lost.append(word == "not identified")
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
