"""Single-agent posteriors by NUTS, for the subjects that importance sampling cannot serve."""

from __future__ import annotations

import numpy as np
import pymc as pm

from knownminds.agents.parameters import Array

from .likelihood_op import LogLikelihood
from .model_data import ModelData, Unknowns
from .sampling import (
    Settings,
    compile_for_nutpie,
    dataset_of,
    kernel_inputs,
    run_nutpie,
)


def sample_separately(data: ModelData, unknowns: Unknowns, draws: int, seed: int) -> Array:
    """Sample z [draws, N, K] of subjects who share nothing but the model's priors.

    One model holds all N subjects; with independent priors the joint posterior is the product
    of theirs. Four chains; draws beyond the asked-for number are dropped.
    """
    parameters = unknowns.parameters
    with pm.Model(coords={"parameter": parameters.names}) as model:
        standard = pm.Normal("standard", 0.0, 1.0, shape=(len(data), len(parameters)))
        z = parameters.mean + parameters.sd * standard
        inputs = [pm.Data(name, value) for name, value in kernel_inputs(data).items()]
        op = LogLikelihood(data.model, data.n_actions, unknowns)
        pm.Potential("log_likelihood", op(z, *inputs)[0].sum())
    settings = Settings(draws=max(500, -(-draws // 4)), target_accept=0.9, seed=seed)
    trace = run_nutpie(compile_for_nutpie(model), settings)
    chains = dataset_of(trace, "posterior")["standard"].to_numpy()
    # Chain after chain would favour the first: interleave them before cutting.
    sampled: Array = np.moveaxis(chains, 0, 1).reshape(-1, *chains.shape[2:])[:draws]
    return parameters.mean + parameters.sd * sampled
