"""Single-agent posteriors by NUTS, for the subjects that importance sampling cannot serve."""

from __future__ import annotations

from typing import Any

import numpy as np
import pymc as pm

from knownminds.agents.parameters import Array
from knownminds.inference.fits.model_data import ModelData, Unknowns
from knownminds.inference.groups.sampling import (
    Settings,
    compile_for_nutpie,
    dataset_of,
    kernel_inputs,
    run_nutpie,
)

from .likelihood_op import LogLikelihood

_COMPILED: dict[Any, Any] = {}  # the one that was used last


def sample_separately(data: ModelData, unknowns: Unknowns, draws: int, seed: int) -> Array:
    """Sample z [draws, N, K] of subjects who share nothing but the model's priors.

    Each subject has four chains of its own and the same seed, so that no result depends on which
    other subjects are sampled. Draws beyond the requested number are dropped. A process compiles a
    model once.
    """
    parameters = unknowns.parameters
    first = data.repeat([0])
    numbers = unknowns.full, parameters.mean, parameters.sd
    # By the class: another one may bear the same name, as after an edit in a notebook.
    key = data.model, data.n_actions, unknowns.lapse, *(values.tobytes() for values in numbers)
    if key not in _COMPILED:
        _COMPILED.clear()
        _COMPILED[key] = compile_for_nutpie(_single(first, unknowns))
    settings = Settings(draws=max(500, -(-draws // 4)), target_accept=0.9, seed=seed)
    sampled = np.empty((draws, len(data), len(parameters)))
    for i in range(len(data)):
        inputs = kernel_inputs(data.repeat([i]), unknowns.lapse)
        compiled = _COMPILED[key].with_data(**inputs)
        chains = dataset_of(run_nutpie(compiled, settings), "posterior")["standard"].to_numpy()
        # Chain after chain would favour the first one, so chains are interleaved before cutting.
        sampled[:, i] = np.moveaxis(chains, 0, 1).reshape(-1, len(parameters))[:draws]
    return np.asarray(parameters.mean + parameters.sd * sampled)


def _single(data: ModelData, unknowns: Unknowns) -> pm.Model:
    """Return the PyMC model of one subject."""
    parameters = unknowns.parameters
    with pm.Model(coords={"parameter": parameters.names}) as model:
        standard = pm.Normal("standard", 0.0, 1.0, shape=(1, len(parameters)))
        z = parameters.mean + parameters.sd * standard
        arrays = kernel_inputs(data, unknowns.lapse)
        inputs = [pm.Data(name, value) for name, value in arrays.items()]
        op = LogLikelihood(data.model, data.n_actions, unknowns)
        pm.Potential("log_likelihood", op(z, *inputs)[0].sum())
    return model
