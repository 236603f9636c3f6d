"""At which true values a parameter cannot be read in a design.

A study looks at twelve bands of each parameter's prior at once, so what one of them seems to show
is no finding. Two things have to hold, each over all that was looked at (Holm 1979): the bands of a
parameter differ (an F test with each band's error), and intervals in a band are clearly about
as wide as the prior's. Where all bands are alike, some are named in one study of twenty at most.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
import scipy
from numpy.typing import NDArray

from knownminds.agents import Parameter, Parameters
from knownminds.agents.parameters import Array
from knownminds.inference.diagnosis.monotone_choice import holm
from knownminds.validation.engine.scores import Clusters, mean, together
from knownminds.validation.engine.verdicts import LEAST_FITS, WEAK_WIDTH

BANDS = 12  # of the prior, each as probable
SCORE = ("value", "error")
LEVEL = 0.05  # chance of a false name among all bands of all parameters of a study


def unreadable(
    parameters: Parameters, widths: Mapping[str, tuple[Array, Array]], clusters: Clusters
) -> pd.DataFrame:
    """Return the stretches of true values at which parameters cannot be read.

    Either no band of a parameter is readable, or bands differ and some are not.

    Parameters
    ----------
    widths : By parameter, true values on the unconstrained scale and the widths of the 90%
        intervals there over that of the prior, [n] each.

    Returns
    -------
    parameter, low and high (natural scale, infinite or the support's end where it is open), and
    relative_width, a `Score`.
    """
    tested = [_tested(p, *widths[p.name], clusters) for p in parameters]
    differ = holm(np.array([bands.attrs["p_differ"] for bands in tested]))
    beyond = holm(np.concatenate([bands["p_beyond"] for bands in tested])).reshape(-1, BANDS)
    rows = []
    for parameter, bands, p, p_beyond in zip(parameters, tested, differ, beyond, strict=True):
        lost = p_beyond <= LEVEL
        if p <= LEVEL or lost.all():
            rows += _stretches(parameter, bands, lost)
    return pd.DataFrame(rows)


def _edges(parameter: Parameter) -> Array:
    """Inner edges of the bands on the unconstrained scale, [BANDS - 1]."""
    quantiles = scipy.stats.norm.ppf(np.arange(1, BANDS) / BANDS)
    return np.asarray(parameter.mean + parameter.sd * quantiles)


def _tested(parameter: Parameter, z_true: Array, width: Array, clusters: Clusters) -> pd.DataFrame:
    """Return mean relative width, size and p_beyond of each band of a parameter's prior.

    p_beyond: how probable so wide intervals are in a band if it is at the limit; NaN if few. Widths
    pile up at that of the prior, so a band may show no error at all: its error is the average
    band's where that is larger. The attribute p_differ: how probable bands are that differ so much,
    if all are alike.
    """
    band = np.searchsorted(_edges(parameter), z_true, side="right")
    members = [band == k for k in range(BANDS)]
    widths = [mean(width[here], None if clusters is None else clusters[here]) for here in members]
    value, error = (np.array([getattr(score, end) for score in widths]) for end in SCORE)
    size = np.array([int(here.sum()) for here in members])
    judged = size >= LEAST_FITS
    free = len(z_true) - judged.sum() if clusters is None else len(np.unique(clusters)) - 1
    judged &= np.isfinite(value) & np.isfinite(error)
    bands = pd.DataFrame({"width": widths, "n": size, "p_beyond": np.nan})
    bands.attrs["p_differ"] = np.nan
    if judged.sum() < 2 or free < 1:
        return bands
    value, error = value[judged], error[judged]
    average = (error**2).mean()
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = value.var(ddof=1) / average
        t = (value - WEAK_WIDTH) / np.maximum(np.sqrt(average), error)
    bands.attrs["p_differ"] = float(scipy.stats.f.sf(ratio, judged.sum() - 1, free))
    bands.loc[judged, "p_beyond"] = scipy.stats.t.sf(t, free)
    return bands


def _stretches(
    parameter: Parameter, bands: pd.DataFrame, lost: NDArray[np.bool_]
) -> list[dict[str, object]]:
    """Return the bands that are lost, neighbours as one row."""
    support = parameter.support
    ends = [support.lower, *support.constrain(_edges(parameter)), support.upper]
    rows = []
    runs = np.split(np.arange(BANDS), np.flatnonzero(np.diff(lost)) + 1)
    for run in (run for run in runs if lost[run[0]]):
        width = together(list(bands["width"].iloc[run]), bands["n"].iloc[run].tolist())
        row = {"parameter": parameter.name, "low": float(ends[run[0]])}
        rows.append({**row, "high": float(ends[run[-1] + 1]), "relative_width": width})
    return rows
