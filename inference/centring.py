"""Which parameters a group model samples as deviations from the group, and which as they are.

Where a subject's own trials say little, deviations in units of the group's spread ("non-centred",
Papaspiliopoulos, Roberts and Sköld 2007) are nearly independent of that spread. Where they say
much, the subject's value is nearly independent of the group, and deviations are not: then it is
sampled as it is, in coordinates in which its own posterior is round.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from knownminds.agents.parameters import Array

from .levels import Levels
from .model_data import ModelData, Unknowns
from .point import maximum_a_posteriori

# Share of a parameter's variance between subjects that a subject's trials leave open. Below the
# first it is centred; below the second on average, it is so with the subject's others, on which
# it depends, if they are below the third. Nothing is centred where the mean of all is above that.
ALONE, TOGETHER, ALL = 0.25, 0.4, 0.3


@dataclass(frozen=True)
class Centring:
    """Coordinates of the subjects' parameters: where `centred`, z = centre + root @ coordinate.

    Parameters
    ----------
    centred : 1 for values sampled as they are, 0 for deviations, [N, K]
    centre, root : location [N, K] and scale [N, K, K] of each subject's own posterior
    level, level_error : what units say of each contrast between crossed levels: its estimate and
        the variance of its error, [C, K]; None without crossed factors
    """

    centred: Array
    centre: Array
    root: Array
    level: Array | None = None
    level_error: Array | None = None

    @classmethod
    def of(cls, data: ModelData, unknowns: Unknowns, levels: Levels | None = None) -> Centring:
        """Choose by how much the subjects' own trials leave open, from their MAP fits."""
        fit = maximum_a_posteriori(
            data.model, data, fixed=unknowns.held(data.model), lapse=unknowns.lapse, workers=1
        )
        prior = unknowns.parameters.sd
        sound = np.isfinite(fit.z.sum(axis=1) + fit.covariance.sum(axis=(1, 2)))
        covariance = np.where(sound[:, None, None], fit.covariance, np.diag(prior**2))
        centre = np.where(sound[:, None], fit.z, unknowns.parameters.mean)
        own = np.diagonal(covariance, axis1=1, axis2=2)
        variance, level, level_error = centre.var(axis=0), None, None
        if levels is not None:
            variance, level, level_error = levels.apart(centre)
            level_error = np.maximum(level_error, 1e-8 * prior**2)
        between = variance + own.mean(axis=0)
        unresolved = own / between
        centred: NDArray[np.bool_] = np.zeros(own.shape, dtype=bool)
        if unresolved.mean() < ALL:
            known = unresolved.mean(axis=1, keepdims=True) < ALL
            together = np.logical_and(known, unresolved.mean(axis=0) < TOGETHER)
            np.logical_or(unresolved < ALONE, together, out=centred)
        both = centred[:, :, None] & centred[:, None, :]
        root = np.linalg.cholesky(np.where(both, covariance, np.eye(len(prior))))
        root = np.where(both, root, 0.0)
        where = np.where(centred, centre, 0.0)
        return cls(centred.astype(float), where, root, level, level_error)

    @property
    def inputs(self) -> dict[str, NDArray[np.float64]]:
        """Name the arrays that the sampled model reads."""
        arrays = {"centred": self.centred, "centre": self.centre, "root": self.root}
        if self.level is not None and self.level_error is not None:
            arrays |= {"level": self.level, "level_error": self.level_error}
        return arrays

    def values(self, coordinates: Array, mean: Array, sd: Array) -> Array:
        """Return z from coordinates [draws, N, K], group means [draws, 1 or N, K] and spreads."""
        own = self.centre + np.einsum("nkj,dnj->dnk", self.root, coordinates)
        return np.where(self.centred > 0, own, mean + sd[:, None] * coordinates)
