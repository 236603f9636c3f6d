"""At which true values a parameter cannot be read in a design.

A study looks at twelve bands of each parameter's prior at once, so what one of them seems to show
is no finding. Two things have to hold, each over all that was looked at (Holm 1979): the bands of a
parameter differ (an F test with each band's own error), and intervals in a band are clearly about
as wide as the prior's. Where all bands are alike, some are named in one study of twenty at most.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
import scipy
from numpy.typing import NDArray

from knownminds.agents import Parameter, Parameters
from knownminds.agents.parameters import Array
from knownminds.inference.diagnosis.monotone_choice import holm
from knownminds.validation.engine.scores import Clusters, Score, mean, together
from knownminds.validation.engine.verdicts import LEAST_FITS, WEAK_WIDTH

BANDS = 12  # of the prior, each as probable
LEVEL = 0.05  # chance of a false name among all bands of all parameters of a study


def unreadable(
    parameters: Parameters, widths: Mapping[str, tuple[Array, Array]], clusters: Clusters
) -> pd.DataFrame:
    """Return the stretches of true values at which parameters cannot be read.

    Either no band of a parameter is readable, or bands differ and some are not.

    Parameters
    ----------
    widths
        By parameter, true values on the unconstrained scale and the widths of the 90% intervals
        there over that of the prior's own, [n] each.

    Returns
    -------
    parameter, low and high (natural scale, infinite or the support's end where it is open), and
    relative_width, a `Score`.
    """
    bands = [_Bands.of(p, *widths[p.name], clusters) for p in parameters]
    differ = _holm(np.array([one.p_differ for one in bands]))
    beyond = _holm(np.concatenate([one.p_beyond for one in bands])).reshape(-1, BANDS)
    rows = []
    for one, p, own in zip(bands, differ, beyond, strict=True):
        lost = own <= LEVEL
        if p <= LEVEL or lost.all():
            rows += one.stretches(lost)
    return pd.DataFrame(rows)


@dataclass(frozen=True)
class _Bands:
    """Mean relative widths in bands of a parameter's prior, [BANDS].

    Parameters
    ----------
    free
        Degrees of freedom of their errors.
    """

    parameter: Parameter
    widths: list[Score]
    sizes: list[int]
    free: int

    @classmethod
    def of(cls, parameter: Parameter, z_true: Array, width: Array, clusters: Clusters) -> _Bands:
        band = np.searchsorted(cls.edges(parameter), z_true, side="right")
        members = [band == k for k in range(BANDS)]
        widths = [
            mean(width[here], None if clusters is None else clusters[here]) for here in members
        ]
        sizes = [int(here.sum()) for here in members]
        judged = sum(size >= LEAST_FITS for size in sizes)
        independent = len(z_true) - judged if clusters is None else len(np.unique(clusters)) - 1
        return cls(parameter, widths, sizes, independent)

    @staticmethod
    def edges(parameter: Parameter) -> Array:
        """Inner edges of the bands on the unconstrained scale, [BANDS - 1]."""
        quantiles = scipy.stats.norm.ppf(np.arange(1, BANDS) / BANDS)
        return np.asarray(parameter.mean + parameter.sd * quantiles)

    @property
    def _judged(self) -> tuple[NDArray[np.bool_], Array, Array]:
        """Which bands are judged, their mean widths and their errors."""
        value = np.array([score.value for score in self.widths])
        error = np.array([score.error for score in self.widths])
        judged = np.array(self.sizes) >= LEAST_FITS
        judged &= np.isfinite(value) & np.isfinite(error)
        return judged, value[judged], error[judged]

    @property
    def p_differ(self) -> float:
        """How probable bands are that differ so much, if all are alike."""
        judged, value, error = self._judged
        if judged.sum() < 2 or self.free < 1:
            return np.nan
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = value.var(ddof=1) / (error**2).mean()
        return float(scipy.stats.f.sf(ratio, judged.sum() - 1, self.free))

    @property
    def p_beyond(self) -> Array:
        """How probable so wide intervals are in each band, if it is at the limit; NaN if few.

        Widths pile up at the prior's own, so a band may show no error at all: its error is the
        average band's where that is larger.
        """
        judged, value, error = self._judged
        p = np.full(BANDS, np.nan)
        if judged.sum() >= 2 and self.free >= 1:
            average = np.sqrt((error**2).mean())
            with np.errstate(divide="ignore", invalid="ignore"):
                t = (value - WEAK_WIDTH) / np.maximum(average, error)
            p[judged] = scipy.stats.t.sf(t, self.free)
        return p

    def stretches(self, lost: NDArray[np.bool_]) -> list[dict[str, object]]:
        """Return the bands that are lost, neighbours as one row."""
        support = self.parameter.support
        ends = [support.lower, *support.constrain(self.edges(self.parameter)), support.upper]
        rows = []
        runs = np.split(np.arange(BANDS), np.flatnonzero(np.diff(lost)) + 1)
        for run in (run for run in runs if lost[run[0]]):
            width = together([self.widths[k] for k in run], [self.sizes[k] for k in run])
            row = {"parameter": self.parameter.name, "low": float(ends[run[0]])}
            rows.append({**row, "high": float(ends[run[-1] + 1]), "relative_width": width})
        return rows


def _holm(p_values: Array) -> Array:
    """Return Holm's (1979) adjusted p-values; 1 where there is none, which counts as no test."""
    known = np.isfinite(p_values)
    adjusted = np.ones(len(p_values))
    if known.any():
        adjusted[known] = holm(p_values[known])
    return adjusted
