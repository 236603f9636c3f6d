"""The coordinates in which a group model samples its subjects."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from knownminds.agents.parameters import Array
from knownminds.inference.fits.model_data import ModelData, Unknowns
from knownminds.inference.fits.point import STARTS, fit_points

from .crossed_levels import Levels

MOST_INFORMATION = 1e8  # in units of the prior's: what is known better is taken as known this well


@dataclass(frozen=True)
class SubjectCoordinates:
    """What each subject's own trials say of its parameters, and the coordinates made of it.

    Near its mode a subject's likelihood is that of a normal estimate with the information L and
    the score h: log p(trials | z) = h'z - z'Lz / 2 + const. Given a group with the mean mu and
    the spreads s, D = diag(s), the subject's z is then normal, with

        z = mu + D w,   w = G^-T (G^-1 D (h - L mu) + u),   G G' = I + D L D,

    for a standard normal u. The group model samples u. Where trials say nothing (L = 0) that is
    z = mu + s u, a deviation from the group ("non-centred"); where they say all it is z = L^-1 h +
    L^-1/2 u, the subject's own posterior in coordinates in which it is round ("centred"); and
    in between it is the right mixture of both (Papaspiliopoulos, Roberts and Sköld 2007), the same
    for all of the group's means and spreads, of which u is nearly independent. The normal
    approximation chooses the coordinates only: the posterior is exact whatever it is.

    Parameters
    ----------
    information : [N, K, K], positive semi-definite
    score : [N, K]
    level, level_error : what units say of each contrast between crossed levels: its estimate and
        the variance of its error, [C, K]; None without crossed factors
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
        sound = np.isfinite(fit.z.sum(axis=1) + fit.covariance.sum(axis=(1, 2)))
        covariance = np.where(sound[:, None, None], fit.covariance, np.diag(sd**2))
        centre = np.where(sound[:, None], fit.z, mean)
        # In units of the prior, where its own information is the identity.
        whole = np.linalg.inv(covariance / (sd[:, None] * sd))
        share, axes = np.linalg.eigh(whole - np.eye(len(sd)))
        share = np.clip(share, 0.0, MOST_INFORMATION)
        scaled = np.einsum("nij,nj,nkj->nik", axes, share, axes)
        information = scaled / (sd[:, None] * sd)
        # At the mode of the posterior the likelihood's slope is the prior's, the other way.
        score = np.einsum("nij,nj->ni", information, centre) + (centre - mean) / sd**2
        score = np.where(sound[:, None], score, 0.0)
        if levels is None:
            return cls(information, score)
        _, level, error = levels.apart(centre)
        return cls(information, score, level, np.maximum(error, 1e-8 * sd**2))

    @property
    def inputs(self) -> dict[str, NDArray[np.float64]]:
        """Name the arrays that the sampled model reads."""
        arrays = {"information": self.information, "score": self.score}
        if self.level is not None and self.level_error is not None:
            arrays |= {"level_estimate": self.level, "level_error": self.level_error}
        return arrays

    def values(self, u: Array, mean: Array, sd: Array) -> Array:
        """Return z from coordinates [draws, N, K], group means [draws, 1 or N, K] and spreads."""
        k = u.shape[-1]
        z = np.empty_like(u)
        for n in range(u.shape[1]):
            mu = mean[:, min(n, mean.shape[1] - 1)]
            scaled = self.information[n] * sd[:, :, None] * sd[:, None, :]
            root = np.linalg.cholesky(np.eye(k) + scaled)
            pull = sd * (self.score[n] - mu @ self.information[n])
            q = np.linalg.solve(root, pull[..., None]) + u[:, n, :, None]
            w = np.linalg.solve(np.swapaxes(root, 1, 2), q)[..., 0]
            z[:, n] = mu + sd * w
        return z
