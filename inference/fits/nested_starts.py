"""How far a search goes, and where else it starts, so that no model loses to one within it."""

from __future__ import annotations

from functools import cache

import numpy as np

from knownminds.agents import Model
from knownminds.agents.nesting import Nesting, nestings_of
from knownminds.agents.parameters import Array

from .model_data import Unknowns

REACH = 10.0  # a search stays within so many prior sds of the prior mean
DISTANT = 16.0  # the same if an inner model lies at infinity


@cache
def _own_reach(model: type[Model]) -> tuple[float, ...]:
    """Return how far from the prior mean each parameter is searched, in z."""
    parameters = model.parameters
    reach = REACH * parameters.sd
    for nesting in nestings_of(model):
        inner = nesting.inner.parameters
        far = np.array(_own_reach(nesting.inner))
        corners = inner.constrain(np.stack([inner.mean - far, inner.mean, inner.mean + far]))
        with np.errstate(all="ignore"):
            z = parameters.unconstrain(nesting.embed(corners))
        away = np.abs(z - parameters.mean)
        away = np.minimum(np.where(np.isfinite(away), away, np.inf), DISTANT * parameters.sd)
        reach = np.maximum(reach, away.max(axis=0))
    return tuple(reach.tolist())


def reach_of(model: type[Model], unknowns: Unknowns) -> Array:
    """Return how far from the prior mean each unknown is searched, in z, [K].

    The search must reach everything that a search of a model within this one can find.
    """
    reach = np.array(_own_reach(model))[unknowns.columns]
    if unknowns.lapse:
        reach = np.append(reach, REACH * unknowns.parameters.sd[-1])
    return reach


def embedded(nesting: Nesting, unknowns: Unknowns, theta: Array) -> Array:
    """Return where estimates of an inner model [N, P (+ 1)] lie in the unknowns, z [N, K]."""
    given, lapse = (theta[:, :-1], theta[:, -1:]) if unknowns.lapse else (theta, theta[:, :0])
    parameters = unknowns.parameters
    values = np.concatenate([nesting.embed(given)[:, unknowns.columns], lapse], axis=1)
    with np.errstate(all="ignore"):
        z = parameters.unconstrain(values)
    reach = reach_of(nesting.outer, unknowns)
    return np.clip(z, parameters.mean - reach, parameters.mean + reach)
