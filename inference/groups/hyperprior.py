"""Draws of a group from its hyperprior."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from knownminds.agents.parameters import Array, Parameters

from .deviations import Deviations
from .formulas import GroupDesign


class HyperpriorDraws(NamedTuple):
    """S possible groups before any data.

    Parameters
    ----------
    mean : group means on the unconstrained scale, [S, K]
    effect : regression weights, [S, E]
    expected : the group's expectation of each row of parameters, [S, M or 1, K]
    spread : spread of each deviation, [S, Q]
    turn : x of the partial correlation tanh(x) of each pair of deviations, [S, P]
    """

    mean: Array
    effect: Array
    expected: Array
    spread: Array
    turn: Array

    @classmethod
    def of(
        cls, parameters: Parameters, design: GroupDesign, size: int, rng: np.random.Generator
    ) -> HyperpriorDraws:
        """Draw `size` groups."""
        deviations, regressors = design.deviations, design.regressors
        scale = deviations.prior_scale(parameters)
        mean = rng.normal(parameters.mean, parameters.sd, (size, len(parameters)))
        spread = np.abs(rng.normal(0.0, scale, (size, len(scale))))
        expected, effect = mean[:, None], np.zeros((size, 0))
        if regressors.names:
            moved = regressors.parameter
            effect = rng.normal(0.0, regressors.prior_sd(parameters), (size, len(moved)))
            weighted = effect[:, None] * regressors.by_subject
            expected = expected + weighted @ np.eye(len(parameters))[moved]
        exponents = deviations.exponents
        partial = 2.0 * rng.beta(exponents, exponents, (size, len(deviations.pairs))) - 1.0
        return cls(mean, effect, expected, spread, np.arctanh(partial))

    def roots(self, deviations: Deviations) -> Array:
        """Return Cholesky roots of the deviations' covariance, [S, Q, Q]."""
        return np.asarray(self.spread[:, :, None] * deviations.roots(self.turn))
