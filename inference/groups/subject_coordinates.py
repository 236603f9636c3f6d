"""The coordinates in which a group model samples its subjects."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from knownminds.agents.parameters import Array
from knownminds.inference.fits.model_data import ModelData, Unknowns
from knownminds.inference.fits.point import STARTS, fit_points

from .crossed_levels import Levels

MOST_INFORMATION = 1e8  # in units of the prior's information


@dataclass(frozen=True)
class SubjectCoordinates:
    """What each subject's trials say about each of its parameters.

    Near its mode, the likelihood of a parameter, with the others averaged out, is that of a normal
    estimate with the information L and the score h. Given a group with the mean mu and the spread
    s, the parameter is then normal, with

    z = mu + s w,   w = (s (h - L mu) / g + u) / g,   g = sqrt(1 + L s^2),

    for a standard normal u. The group model samples u. If trials say nothing (L = 0), this is
    z = mu + s u, a deviation from the group ("non-centred"). If they say everything, it is the
    subject's own estimate and its error ("centred"). In between it is the right mixture of both
    (Papaspiliopoulos, Roberts and Sköld 2007). It is the same for all of the group's means and
    spreads, of which u is nearly independent. The normal approximation only chooses the
    coordinates: the posterior is exact however good it is.

    Parameters
    ----------
    information, score : Information (0 or more) and score of each parameter, [N, K]
    level, level_error : what units say about each contrast between crossed levels: its estimate
        and the variance of its error, [C, K]; None without crossed factors
    """

    information: Array
    score: Array
    level: Array | None = None
    level_error: Array | None = None

    @classmethod
    def of(
        cls, data: ModelData, unknowns: Unknowns, levels: Levels | None = None
    ) -> SubjectCoordinates:
        """Expand each subject's likelihood at its MAP estimate under the priors of `unknowns`."""
        fit = fit_points(data, unknowns, "map", STARTS, workers=1)
        mean, sd = unknowns.parameters.mean, unknowns.parameters.sd
        variance = np.diagonal(fit.covariance, axis1=1, axis2=2)
        sound = np.isfinite(fit.z + variance).all(axis=1, keepdims=True)
        centre = np.where(sound, fit.z, mean)
        with np.errstate(divide="ignore", invalid="ignore"):
            whole = np.where(sound, sd**2 / variance, 1.0)
        information = np.clip(whole - 1.0, 0.0, MOST_INFORMATION) / sd**2
        # At the mode of the posterior, the likelihood's slope is minus the prior's.
        score = np.where(sound, information * centre + (centre - mean) / sd**2, 0.0)
        if levels is None:
            return cls(information, score)
        _, level, error = levels.apart(centre)
        return cls(information, score, level, np.maximum(error, 1e-8 * sd**2))

    def estimate(self, mean: Array, sd: Array) -> Array:
        """Return each subject's estimate under a normal prior, [N, K], by the approximation."""
        estimate: Array = (self.score + mean / sd**2) / (self.information + sd**-2.0)
        return estimate
