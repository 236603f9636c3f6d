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
    """

    centred: Array
    centre: Array
    root: Array

    @classmethod
    def of(cls, data: ModelData, unknowns: Unknowns) -> Centring:
        """Choose by how much the subjects' own trials leave open, from their MAP fits."""
        fit = maximum_a_posteriori(
            data.model, data, fixed=unknowns.held(data.model), lapse=unknowns.lapse, workers=1
        )
        prior = unknowns.parameters.sd
        sound = np.isfinite(fit.z.sum(axis=1) + fit.covariance.sum(axis=(1, 2)))
        covariance = np.where(sound[:, None, None], fit.covariance, np.diag(prior**2))
        centre = np.where(sound[:, None], fit.z, unknowns.parameters.mean)
        own = np.diagonal(covariance, axis1=1, axis2=2)
        between = centre.var(axis=0) + own.mean(axis=0)
        unresolved = own / between
        centred: NDArray[np.bool_] = np.zeros(own.shape, dtype=bool)
        if unresolved.mean() < ALL:
            known = unresolved.mean(axis=1, keepdims=True) < ALL
            together = np.logical_and(known, unresolved.mean(axis=0) < TOGETHER)
            np.logical_or(unresolved < ALONE, together, out=centred)
        both = centred[:, :, None] & centred[:, None, :]
        root = np.linalg.cholesky(np.where(both, covariance, np.eye(len(prior))))
        root = np.where(both, root, 0.0)
        return cls(centred.astype(float), np.where(centred, centre, 0.0), root)

    @property
    def inputs(self) -> dict[str, NDArray[np.float64]]:
        """Name the arrays that the sampled model reads."""
        return {"centred": self.centred, "centre": self.centre, "root": self.root}

    def values(self, coordinates: Array, mean: Array, sd: Array) -> Array:
        """Return z from coordinates [draws, N, K], group means [draws, 1 or N, K] and spreads."""
        own = self.centre + np.einsum("nkj,dnj->dnk", self.root, coordinates)
        return np.where(self.centred > 0, own, mean + sd[:, None] * coordinates)
