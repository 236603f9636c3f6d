"""Hierarchical fits of many data sets of one shape, compiled once in each process."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from knownminds.inference.fits.model_data import ModelData

if TYPE_CHECKING:
    from knownminds.inference import HierarchicalFit
    from knownminds.inference.groups.formulas import GroupDesign

_COMPILED: dict[str, Any] = {}


def sample_group(
    data: ModelData,
    fixed: Mapping[str, float],
    fit_lapse: bool,
    seed: int,
    *address: int,
    threads: int | None = None,
    draws: int = 1000,
    correlated: bool = False,
    design: GroupDesign | None = None,
) -> HierarchicalFit:
    """Sample the group's posterior with the random numbers of this address of the study."""
    from knownminds.inference import GroupModel  # PyMC: only where it is needed

    shape = [data.model.name, dict(fixed), fit_lapse, len(data), data.n_actions]
    shape += [correlated, [] if design is None else [term.text for term in design.terms]]
    key = json.dumps(shape, sort_keys=True)
    if key not in _COMPILED:
        _COMPILED.clear()
        _COMPILED[key] = GroupModel.build(
            data, fixed=fixed, lapse=fit_lapse, correlated=correlated, design=design
        )
    entropy = np.random.SeedSequence(seed, spawn_key=address).generate_state(1)[0]
    fit: HierarchicalFit = _COMPILED[key].sample(
        data,
        seed=int(entropy) // 2,  # samplers take 31 bits
        cores=threads,
        draws=draws,
    )
    return fit
