"""A group's density as PyMC's graph: to be extended, and to hold the compiled one against."""

from __future__ import annotations

from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.tensor.linalg import cholesky, solve_triangular

from knownminds.agents.parameters import Parameters
from knownminds.inference.fits.model_data import ModelData, Unknowns
from knownminds.inference.posteriors.crossed_levels import Levels, in_units
from knownminds.inference.posteriors.likelihood_op import LogLikelihood
from knownminds.inference.posteriors.sampling import kernel_inputs
from knownminds.inference.posteriors.subject_coordinates import SubjectCoordinates
from knownminds.inference.posteriors.subject_law import SubjectLaw

from .deviations import Deviations
from .formulas import Regressors


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
        "pair": deviations.pair_names,
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
        expected = expected + pt.zeros((len(data), len(parameters)))
        if len(deviations.pairs) or not deviations.simple:
            root = sd[:, None] * _correlations(deviations) if len(deviations.pairs) else pt.diag(sd)
            kernel = LogLikelihood(data.model, data.n_actions, unknowns)
            law = _several_rows(kernel, eta, expected, root, chosen, inputs, deviations)
        else:
            law, *_ = op(eta, expected, sd, chosen["information"], chosen["score"], *inputs)
        pm.Potential("law_of_the_subjects", law.sum())
    return model


def _correlations(deviations: Deviations) -> Any:
    """Add partial correlations to the present model; return the root of the correlations."""
    turn = pm.Flat("turn", dims="pair")
    q = len(deviations.names)
    rest = [pt.ones(()) for _ in range(q)]
    root = pt.zeros((q, q))
    for p, (i, j) in enumerate(deviations.pairs):
        root = pt.set_subtensor(root[i, j], pt.tanh(turn[p]) * rest[i])
        rest[i] = rest[i] / pt.cosh(turn[p])
    law = -2.0 * (deviations.exponents * pt.log(pt.cosh(turn))).sum()
    pm.Potential("law_of_the_correlations", law)
    return pt.set_subtensor(root[np.arange(q), np.arange(q)], pt.stack(rest))


def _several_rows(
    op: LogLikelihood,
    eta: Any,
    expected: Any,
    root: Any,
    chosen: Any,
    inputs: list[Any],
    deviations: Deviations,
) -> Any:
    """Return the law of subjects whose deviations have the covariance root root', [N].

    As in `SubjectLaw`, with the root in the place of the spreads, and what a subject's rows of
    parameters [M, K] say of it gathered to what they say of its deviations: b [N, Q] enters them as
    z = expected + (weight * b) onto, where `onto` names the parameter that each deviation moves.
    """
    information, score = chosen["information"], chosen["score"]
    weight, moved = deviations.weight, deviations.moved
    whose = np.zeros((deviations.n_subjects, len(weight)))
    whose[deviations.subject, np.arange(len(weight))] = 1.0
    pulled = weight[:, :, None] * information[:, moved]
    each = pulled[:, :, moved] * weight[:, None, :]
    gathered = pt.tensordot(whose, each, axes=1)
    away = weight * score[:, moved] - (pulled * expected[:, None, :]).sum(axis=2)
    pull = pt.dot(whose, away)
    whole = pt.eye(root.shape[0]) + root.T @ gathered @ root
    factor = cholesky(whole)
    t = solve_triangular(factor, (pull @ root)[..., None], lower=True)
    turned = factor.transpose((0, 2, 1))
    w = solve_triangular(turned, t + eta[..., None], lower=False)[..., 0]
    size = pt.log(pt.diagonal(factor, axis1=1, axis2=2)).sum(axis=1)
    onto = np.eye(int(moved.max()) + 1)[moved]  # the first deviations move all parameters
    own = pt.dot(weight * (w @ root.T)[deviations.subject], onto)
    trials, _ = op(expected + own, *inputs)
    return pt.dot(whose, trials) - 0.5 * (w**2).sum(axis=1) - size


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
