"""The group that single subjects' posteriors show: its means and spreads, without their errors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from knownminds.agents.parameters import Array, Parameters

from .posterior import Posterior

DRAWS = 400  # draws of each subject's posterior
ROUNDS = 500  # rounds of expectation and maximisation, at most
SETTLED = 1e-4  # rounds stop when means and spreads change by less, in prior sds


@dataclass(frozen=True)
class FittedPopulation:
    """A group in which z ~ Normal(mean, sd), independently for each parameter, unconstrained.

    Parameters
    ----------
    parameters : The estimated parameters.
    mean, sd : Means and spreads, [K].
    """

    parameters: Parameters
    mean: Array
    sd: Array

    def draw(self, rng: np.random.Generator, n: int) -> Array:
        """Draw theta [n, K] on the natural scale."""
        return self.parameters.constrain(rng.normal(self.mean, self.sd, size=(n, len(self.mean))))


def fitted_population(fit: Posterior) -> FittedPopulation:
    """Return the group of subjects whose posteriors under the model's prior are given.

    Maximum-likelihood estimates spread more than the truth, since errors add to it. Estimates with
    a prior spread less, since they are drawn towards it. So neither is used. A subject's draws,
    weighted by the density of a group over that of the prior, are draws under that group (Hogg,
    Myers and Bovy 2010). The group's means and spreads are estimated by expectation and
    maximisation over these draws. They have the hyperpriors of `hierarchical`: Normal(mean, prior
    sd) for means, and half-normal of scale `group_sd` for spreads. The latter is multiplied by the
    spread, which keeps the mode off 0 (Chung et al. 2013): few subjects cannot show that nobody
    differs.

    Parameters
    ----------
    fit : The subjects' posteriors; subjects whose fit failed are left out.

    Raises
    ------
    ValueError : If no subject is left.
    """
    parameters = fit.fit.parameters
    usable = np.array([status != "failed" for status in fit.status])
    usable &= np.isfinite(fit.z_draws).all(axis=(0, 2))
    n = int(usable.sum())
    if n == 0:
        raise ValueError("A group is estimated from usable fits; all have failed.")
    thin = max(len(fit.z_draws) // DRAWS, 1)
    # These are in units of the prior, in which it is standard normal.
    z = (fit.z_draws[::thin, usable].swapaxes(0, 1) - parameters.mean) / parameters.sd
    powers = np.concatenate([z, z**2], axis=2)
    scale = np.array([p.group_sd for p in parameters]) / parameters.sd
    mean, sd = np.zeros(len(parameters)), np.ones(len(parameters))
    for _ in range(ROUNDS):
        before = np.concatenate([mean, sd])
        slope = np.concatenate([mean / sd**2, 0.5 - 0.5 / sd**2])
        log_weight = powers @ slope
        weight = np.exp(log_weight - log_weight.max(axis=1, keepdims=True))
        weight /= weight.sum(axis=1, keepdims=True)
        expected = np.einsum("nd,ndk->k", weight, powers, optimize=True)
        first, second = np.split(expected, 2)
        mean = first / (n + sd**2)
        squares = second - 2 * mean * first + n * mean**2
        # This is the root of the derivative of -(n - 1) log s - squares / (2 s**2) - s**2 / (2
        # scale**2).
        half = scale**2 * (n - 1) / 2
        squares = np.maximum(squares, 1e-12)
        sd = np.sqrt(scale**2 * squares / (np.sqrt(half**2 + scale**2 * squares) + half))
        moved = np.abs(np.concatenate([mean, sd]) - before)
        if moved.max(initial=0.0) < SETTLED:
            break
    return FittedPopulation(parameters, parameters.mean + parameters.sd * mean, parameters.sd * sd)
