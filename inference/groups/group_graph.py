"""A group's density as PyMC's graph: to be extended, and to hold the compiled one against."""

from __future__ import annotations

from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from knownminds.agents.parameters import Parameters
from knownminds.inference.fits.model_data import ModelData, Unknowns
from knownminds.inference.posteriors.crossed_levels import Levels, in_units
from knownminds.inference.posteriors.regressors import Regressors
from knownminds.inference.posteriors.sampling import kernel_inputs
from knownminds.inference.posteriors.subject_coordinates import SubjectCoordinates
from knownminds.inference.posteriors.subject_law import SubjectLaw

from .deviations import Deviations


def group_graph(
    data: ModelData,
    unknowns: Unknowns,
    coordinates: SubjectCoordinates,
    deviations: Deviations,
    regressors: Regressors | None,
    levels: Levels | None,
) -> pm.Model:
    """Write a group down as a PyMC model; trials and coordinates are its data."""
    parameters = unknowns.parameters
    coords: dict[str, Any] = {
        "parameter": parameters.names,
        "deviation": deviations.names,
        "subject": list(range(len(data))),
        "owner": list(range(deviations.n_subjects)),
    }
    if regressors is not None:
        coords["term"] = regressors.names
    if levels is not None:
        contrasts = list(range(len(levels.of_contrast)))
        coords |= {"factor": levels.factors, "level": levels.names, "contrast": contrasts}
    group_scale = np.array([p.group_sd for p in parameters])
    with pm.Model(coords=coords) as model:
        chosen = {name: pm.Data(name, value) for name, value in coordinates.inputs.items()}
        if levels is None:
            mean = pm.Normal("group_mean", parameters.mean, parameters.sd, dims="parameter")
        else:
            mean = _with_levels(levels, parameters, chosen["level_estimate"], chosen["level_error"])
        # A half-normal spread, written as a normal one of either sign: (sd, eta) and (-sd, -eta)
        # are the same group, so |sd| has the half-normal law, and there is no wall at zero for the
        # sampler to slow down at (1.4 to 1.6 times the effective sample size).
        sd = pm.Normal("signed_sd", 0.0, group_scale[deviations.moved], dims="deviation")
        expected = mean
        if regressors is not None:
            spread = parameters.sd[regressors.parameter]
            effect = pm.Normal("effect", 0.0, spread, dims="term")
            design = pm.Data("design", regressors.by_subject)
            onto = np.eye(len(parameters))[regressors.parameter]
            expected = expected + pt.dot(design * effect, onto)
        # One kernel for the subjects' law and their trials, in coordinates that are nearly
        # independent of the group's means and spreads: see `SubjectCoordinates`.
        eta = pm.Flat("eta", dims=("owner", "deviation"))
        op = SubjectLaw(data.model, data.n_actions, unknowns)
        arrays = kernel_inputs(data, unknowns.lapse)
        inputs = [pm.Data(name, value) for name, value in arrays.items()]
        expected = expected + pt.zeros_like(eta)
        law, *_ = op(eta, expected, sd, chosen["information"], chosen["score"], *inputs)
        pm.Potential("law_of_the_subjects", law.sum())
    return model


def _with_levels(levels: Levels, parameters: Parameters, estimate: Any, error: Any) -> Any:
    """Add the levels' deviations to the present PyMC model; return what is expected of units.

    Nothing tells the group's mean from the mean deviation of a factor's levels. What is sampled
    is their sum, to which the units speak, and the contrasts between levels; the rest is drawn
    afterwards (`Levels.spread_out`). A contrast w of levels with the spread sd, of which the units
    give an estimate with an error, has given sd nearly the law Normal(m, v) of a normal prior and
    a normal estimate; it is sampled as (w - m) / sqrt(v), which is round whatever the two are.
    """
    scale = np.tile([p.group_sd for p in parameters], (len(levels.factors), 1))
    sd = pm.Normal("signed_level_sd", 0.0, scale, dims=("factor", "parameter"))
    common = (sd**2 / levels.count[:, None]).sum(axis=0)
    centre = pm.Normal(
        "group_centre", parameters.mean, pt.sqrt(parameters.sd**2 + common), dims="parameter"
    )
    eta = pm.Flat("level_eta", dims=("contrast", "parameter"))
    own = sd[levels.of_contrast]
    deviation = in_units(own, eta, estimate, error)
    law = -0.5 * deviation**2 + 0.5 * pt.log(error / (own**2 + error))
    pm.Potential("law_of_the_levels", law.sum())
    level = pt.dot(levels.contrasts, own * deviation)
    expected = centre + level[levels.of_subject[:, 0]]
    for column in levels.of_subject.T[1:]:
        expected = expected + level[column]
    return expected
