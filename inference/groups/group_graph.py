"""A group as a PyMC model: to read, to extend, and to sample groups with further parts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from knownminds.agents.parameters import Array, Parameters
from knownminds.inference.fits.model_data import ModelData, Unknowns
from knownminds.inference.posteriors.likelihood_op import LogLikelihood

from .crossed_levels import Levels, in_units
from .deviations import Deviations
from .formulas import GroupDesign
from .sampling import kernel_inputs
from .subject_coordinates import SubjectCoordinates


def group_graph(
    data: ModelData,
    unknowns: Unknowns,
    coordinates: SubjectCoordinates,
    design: GroupDesign,
    levels: Levels | None,
) -> pm.Model:
    """Build a group as a PyMC model, with the density that `GroupDensity` samples.

    `group_mean`, `effect`, `signed_sd` (a spread of either sign: |sd| is half-normal, and
    there is no wall at zero) and `partial_correlation` have priors of PyMC. Each of a subject's
    deviations is sampled in a coordinate `eta`, see `SubjectCoordinates`. The deviations `own`, and
    `z`, the parameters of each unit on the unconstrained scale, follow from these.
    """
    parameters = unknowns.parameters
    deviations, regressors = design.deviations, design.regressors
    spread = deviations.prior_scale(parameters)
    gathered = deviations.gathered(coordinates.information, coordinates.score, spread)
    with pm.Model(coords=_coords(data, parameters, design, levels)) as model:
        if levels is None:
            expected = pm.Normal("group_mean", parameters.mean, parameters.sd, dims="parameter")
        else:
            expected = _with_levels(levels, parameters, coordinates)
        expected += np.zeros((len(data), len(parameters)))
        if regressors.names:
            prior = regressors.prior_sd(parameters)
            effect = pm.Normal("effect", 0.0, prior, dims="term")
            onto = np.eye(len(parameters))[regressors.parameter]
            expected += pt.dot(regressors.by_subject * effect, onto)
        sd = pm.Normal("signed_sd", 0.0, spread, dims="deviation")
        offsets = _deviations(deviations, gathered, expected, sd)
        entered = pt.dot(
            deviations.weight * offsets[deviations.subject],
            np.eye(len(parameters))[deviations.moved],
        )
        z = pm.Deterministic("z", expected + entered, dims=("unit", "parameter"))
        trials = [pm.Data(name, x) for name, x in kernel_inputs(data, unknowns.lapse).items()]
        log_likelihood, _ = LogLikelihood(data.model, data.n_actions, unknowns)(z, *trials)
        pm.Potential("log_likelihood", log_likelihood.sum())
    return model


def _coords(
    data: ModelData, parameters: Parameters, design: GroupDesign, levels: Levels | None
) -> dict[str, Any]:
    """Return the dimensions of the model, by name."""
    coords: dict[str, Any] = {
        "parameter": parameters.names,
        "deviation": design.deviations.names,
        "unit": list(range(len(data))),
        "owner": list(range(design.deviations.n_subjects)),
        "pair": design.deviations.pair_names,
        "term": design.regressors.names,
    }
    if levels is not None:
        contrasts = list(range(len(levels.of_contrast)))
        coords |= {"factor": levels.factors, "level": levels.names, "contrast": contrasts}
    return coords


def _deviations(
    deviations: Deviations, gathered: tuple[Array, Array, Array], expected: Any, sd: Any
) -> Any:
    """Add subjects' deviations [N, Q] to the present model, sampled in their coordinates.

    Given the deviations before it, a deviation has the mean m and the spread t.
    """
    information, score, onto = gathered
    u = pm.Flat("eta", dims=("owner", "deviation"))
    whose = np.eye(deviations.n_subjects)[:, deviations.subject]
    pull = score - pt.dot(whose, (onto * expected[:, None, :]).sum(axis=2))
    n_deviations = len(deviations.names)
    root = _correlations(deviations) if len(deviations.pairs) else np.eye(n_deviations)
    together = set(map(tuple, deviations.pairs.tolist()))
    standard: list[Any] = []
    offsets, density = [], 0.0
    for q in range(n_deviations):
        earlier = [root[q, j] * standard[j] for j in range(q) if (q, j) in together]
        m, t, known = sd[q] * sum(earlier), sd[q] * root[q, q], information[:, q]
        square = 1.0 + known * t**2
        v = t * (pull[:, q] - known * m) / square + u[:, q] / pt.sqrt(square)
        density += (pm.logp(pm.Normal.dist(), v) - 0.5 * pt.log(square)).sum()  # and d v / d u
        standard.append(v)
        offsets.append(m + t * v)
    pm.Potential("law_of_the_deviations", density)
    return pm.Deterministic("own", pt.stack(offsets, axis=1), dims=("owner", "deviation"))


def _correlations(deviations: Deviations) -> Any:
    """Add partial correlations to the present model; return the root of the correlations.

    After Lewandowski, Kurowicka and Joe (2009) each is 2 Beta - 1; see `Deviations`.
    """
    shape = deviations.exponents
    partial = 2.0 * pm.Beta("partial_correlation", shape, shape, dims="pair") - 1.0
    q = len(deviations.names)
    rest = [pt.ones(()) for _ in range(q)]
    root = pt.zeros((q, q))
    for p, (i, j) in enumerate(deviations.pairs):
        root = pt.set_subtensor(root[i, j], partial[p] * rest[i])
        rest[i] = rest[i] * pt.sqrt(1.0 - partial[p] ** 2)
    return pt.set_subtensor(root[np.arange(q), np.arange(q)], pt.stack(rest))


def _with_levels(levels: Levels, parameters: Parameters, coordinates: SubjectCoordinates) -> Any:
    """Add the levels' deviations to the present model; return the group's expectation of rows.

    The data cannot tell the group's mean from the mean deviation of a factor's levels. So their
    sum, which the rows determine, is sampled, and so are the contrasts between levels; the rest is
    drawn afterwards (`Levels.spread_out`). Let sd be the spread of a contrast w of levels, of which
    the rows give an estimate with an error. Given sd, w is nearly Normal(m, v), of a normal
    prior and a normal estimate. It is sampled as (w - m) / sqrt(v), which is round whatever the two
    are.
    """
    scale = np.tile([p.group_sd for p in parameters], (len(levels.factors), 1))
    sd = pm.Normal("signed_level_sd", 0.0, scale, dims=("factor", "parameter"))
    common = (sd**2 / levels.count[:, None]).sum(axis=0)
    centre = pm.Normal(
        "group_centre", parameters.mean, pt.sqrt(parameters.sd**2 + common), dims="parameter"
    )
    u = pm.Flat("level_eta", dims=("contrast", "parameter"))
    spread, error = sd[levels.of_contrast], coordinates.level_error
    standard = in_units(spread, u, coordinates.level, error)
    density = pm.logp(pm.Normal.dist(), standard) + 0.5 * pt.log(error / (spread**2 + error))
    pm.Potential("law_of_the_levels", density.sum())
    level = pt.dot(levels.contrasts, spread * standard)
    expected = centre + level[levels.of_subject[:, 0]]
    for column in levels.of_subject.T[1:]:
        expected = expected + level[column]
    return expected
