"""Evidence of single agents: by Laplace's approximation, and given some of their parameters."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import logsumexp

from knownminds.agents.parameters import Array
from knownminds.inference.fits.model_data import LikelihoodAtPoints, ModelData, Unknowns
from knownminds.inference.fits.point import PointFit

from .importance import Proposals, finite
from .posterior import Posterior

POINTS = 256  # proposals for a subject, a power of two


def laplace_evidence(fit: PointFit) -> Array:
    """Return the log evidence of each subject by Laplace's approximation, [N].

    It is log p(y, z) + K/2 log 2 pi + 1/2 log |covariance| at the mode z of the posterior (Tierney
    and Kadane 1986); NaN if the covariance is not positive definite.
    """
    sign, size = np.linalg.slogdet(fit.covariance)
    k = fit.z.shape[1]
    values: Array = fit.log_posterior + 0.5 * (
        k * np.log(2 * np.pi) + np.where(sign > 0, size, np.nan)
    )
    return values


def evidence_given(
    data: ModelData, unknowns: Unknowns, known: Sequence[int], z_known: Array, about: Posterior
) -> Array:
    """Integrate over all unknowns except some, whose values are known for each subject.

    Parameters
    ----------
    known : Positions of the known parameters among the unknowns, [H].
    z_known : Their values on the unconstrained scale, [N, H].
    about : The posterior of all unknowns; conditioned on the known ones, it gives the proposal.

    Returns
    -------
    log p(y | known), [N], in nats.
    """
    parameters, k = unknowns.parameters, len(unknowns.parameters)
    at = np.array(known, dtype=np.int64)
    free = np.setdiff1d(np.arange(k), at)
    if not len(free):
        z = np.empty((len(data), k))
        z[:, at] = z_known
        return unknowns.log_likelihood(data, parameters.constrain(z))[0]
    joint, variance = about.z_covariance, parameters.sd**2
    across = joint[:, free[:, None], at]
    inner = joint[:, at[:, None], at] + 1e-9 * np.diag(variance[at])
    pull = np.linalg.solve(inner, across.transpose(0, 2, 1)).transpose(0, 2, 1)
    centre = about.z_mean[:, free] + np.einsum("nfh,nh->nf", pull, z_known - about.z_mean[:, at])
    covariance = joint[:, free[:, None], free] - pull @ across.transpose(0, 2, 1)
    covariance = covariance + 1e-3 * np.diag(variance[free])
    z, log_density = Proposals.of(len(free), POINTS, 0).around(centre, covariance)
    full = np.empty((*z.shape[:2], k))
    full[:, :, free], full[:, :, at] = z, z_known
    standard = (z - parameters.mean[free]) / parameters.sd[free]
    constant = np.log(parameters.sd[free] * np.sqrt(2 * np.pi))
    log_joint = LikelihoodAtPoints(data, unknowns, POINTS)(full)
    log_joint -= (0.5 * standard**2 + constant).sum(axis=2)
    values: Array = logsumexp(finite(log_joint - log_density), axis=0) - np.log(POINTS)
    return values
