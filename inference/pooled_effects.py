"""Effects of several studies or participants, pooled by the inverse of their variances."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy

from knownminds.agents.parameters import Array


class PooledEffects(NamedTuple):
    """Effects as a single one, and as several that differ, each with its standard error.

    `q` is Cochran's statistic (1954) of the hypothesis that there is one effect, `p_value` its
    probability under that.
    """

    one: float
    one_error: float
    several: float
    several_error: float
    q: float
    p_value: float


def pooled_effects(effects: Array, errors: Array) -> PooledEffects:
    """Pool effects [N] with known standard errors [N].

    As several, effects differ by a variance that is estimated from `q` and at least 0
    (DerSimonian and Laird 1986).
    """
    weight = errors**-2.0
    one = float(np.sum(weight * effects) / np.sum(weight))
    q, freedom = float(np.sum(weight * (effects - one) ** 2)), len(effects) - 1
    scale = np.sum(weight) - np.sum(weight**2) / np.sum(weight)
    variance = max(0.0, (q - freedom) / scale) if freedom else 0.0
    looser = 1.0 / (errors**2 + variance)
    return PooledEffects(
        one,
        float(np.sum(weight) ** -0.5),
        float(np.sum(looser * effects) / np.sum(looser)),
        float(np.sum(looser) ** -0.5),
        q,
        float(scipy.stats.chi2.sf(q, freedom)) if freedom else np.nan,
    )
