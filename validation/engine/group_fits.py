"""Hierarchical fits of the groups of a study, each with the random numbers of its address."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from knownminds.inference.fits.model_data import ModelData

if TYPE_CHECKING:
    from knownminds.inference import HierarchicalFit
    from knownminds.inference.groups.formulas import GroupDesign


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

    group = GroupModel.build(
        data, fixed=fixed, lapse=fit_lapse, correlated=correlated, design=design
    )
    entropy = np.random.SeedSequence(seed, spawn_key=address).generate_state(1)[0]
    seed_of_group = int(entropy) // 2  # samplers take 31 bits
    return group.sample(data, seed=seed_of_group, cores=threads, draws=draws)
