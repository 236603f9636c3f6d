"""Posteriors as ArviZ objects, saved to netCDF, for other tools to read, plot and compare."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from knownminds.inference.fits.model_data import ModelData

from .arviz_groups import log_likelihood_group, predicted_group, prior_group
from .posterior import Posterior

if TYPE_CHECKING:
    from knownminds.inference.groups.group_model import HierarchicalFit

LIBRARIES = ("knownminds", "numpy", "numba", "pymc", "nutpie", "arviz", "xarray")


def arviz_object(fit: HierarchicalFit | Posterior) -> Any:
    """Return a posterior as ArviZ's own object: an InferenceData before ArviZ 1, else a DataTree.

    It has these groups. `posterior`: z [chain, draw, subject, parameter] on the unconstrained
    scale, theta on the natural scale and, for a group, group_mean, group_sd and the other group
    terms. `constant_data`: the number of trials of each subject and, for single subjects, how their
    draws were made and whether they can be trusted. For a group there are also `sample_stats`, the
    sampler's statistics of each draw, with ArviZ's names; `observed_data`, a row per trial;
    `log_likelihood`, for each `trial` and each `subject` (see `log_likelihood_group`); and `prior`.
    Attributes: model, method, seed, versions and the verdict. Draws of single subjects are
    independent and stand in one chain.
    """
    return _assembled(*_contents(fit, None, None))


def _contents(
    fit: HierarchicalFit | Posterior,
    data: ModelData | None,
    predicted: Mapping[str, NDArray[np.float32]] | None,
) -> tuple[dict[str, xr.Dataset], dict[str, Any]]:
    """Return the groups and attributes of `arviz_object`."""
    groups = _of_single(fit) if isinstance(fit, Posterior) else _of_group(fit)
    if not isinstance(fit, Posterior):
        data = fit.data
    if data is not None:
        groups["observed_data"] = _observed(data)
        if predicted:
            groups["posterior_predictive"] = predicted_group(
                data, dict(predicted), groups["observed_data"]
            )
    return groups, _attributes(fit)


def save_posterior(
    fit: HierarchicalFit | Posterior | Any,
    path: str | os.PathLike[str],
    data: ModelData | None = None,
    predicted: Mapping[str, NDArray[np.float32]] | None = None,
) -> None:
    """Write a posterior, or an ArviZ object, to a netCDF file, whole or not at all.

    `arviz.from_netcdf` and `read_posterior` read it back, with either generation of ArviZ.

    Parameters
    ----------
    data : The fitted data, for posteriors that do not keep them: their trials become
        `observed_data`.
    predicted : Simulated answers by name, [replicates, trials in order of time], for
        `posterior_predictive`; NaN where a replicate lacks the trial.

    Raises
    ------
    ImportError : If no package that writes netCDF is installed.
    """
    result: Any = fit
    if not hasattr(result, "to_netcdf"):
        result = _tree(*_contents(result, data, predicted))  # without the seconds to import ArviZ
    file = Path(path)
    part = file.with_name(f".{file.name}.part")
    try:
        result.to_netcdf(str(part), engine=_engine())
        part.replace(file)
    finally:
        part.unlink(missing_ok=True)


def read_posterior(path: str | os.PathLike[str]) -> Any:
    """Read a netCDF file into ArviZ's own object and close it.

    Raises
    ------
    ValueError : If there is no such file, or it is not netCDF.
    """
    file = Path(path)
    if not file.is_file():
        raise ValueError(f"Posteriors are read from a netCDF file; there is none at {file}.")
    try:
        with xr.open_datatree(file, engine=_engine()) as tree:
            groups = {name: node.to_dataset().load() for name, node in tree.children.items()}
            attributes = {str(k): _plain(v) for k, v in tree.attrs.items()}
    except (OSError, ValueError) as error:
        raise ValueError(f"{file.name} cannot be read as netCDF: {error}") from None
    return _assembled(groups, attributes)


def _assembled(groups: Mapping[str, xr.Dataset], attributes: Mapping[str, Any]) -> Any:
    import arviz as az

    if az.__version__.startswith("0."):
        return az.InferenceData(attrs=dict(attributes), **groups)
    return _tree(groups, attributes)


def _tree(groups: Mapping[str, xr.Dataset], attributes: Mapping[str, Any]) -> xr.DataTree:
    return xr.DataTree.from_dict({"/": xr.Dataset(attrs=dict(attributes)), **groups})


def _engine() -> Any:
    """Return the installed package that reads and writes netCDF."""
    from importlib.util import find_spec

    for name, module in (("h5netcdf", "h5netcdf"), ("netcdf4", "netCDF4")):
        if find_spec(module):
            return name
    raise ImportError("Posteriors are kept as netCDF, which needs h5netcdf: pip install h5netcdf")


def _of_group(fit: HierarchicalFit) -> dict[str, xr.Dataset]:
    posterior = fit.posterior.transpose("chain", "draw", ...)
    dims = ("chain", "draw", "subject", "parameter")
    theta = fit.parameters.constrain(posterior["z"].transpose(*dims).to_numpy())
    posterior = posterior.assign(theta=(dims, theta)).assign_coords(subject=list(fit.subjects))
    groups = {"posterior": posterior}
    # There is one flag per draw, if the fit keeps the sampler's statistics.
    statistics: xr.Dataset | None = getattr(fit, "sample_stats", None)
    if statistics is not None:
        groups["sample_stats"] = statistics
    trials = ("subject", np.asarray(fit.data.n_trials))
    groups["constant_data"] = xr.Dataset(
        {"n_trials": trials}, coords={"subject": list(fit.subjects)}
    )
    groups["log_likelihood"] = log_likelihood_group(fit)
    groups["prior"] = prior_group(fit)
    return groups


def _of_single(fit: Posterior) -> dict[str, xr.Dataset]:
    dims = ("chain", "draw", "subject", "parameter")
    n_draws = len(fit.z_draws)
    coordinates = {
        "chain": [0],
        "draw": np.arange(n_draws),
        "subject": list(fit.subjects),
        "parameter": list(fit.names),
    }
    values = {"z": (dims, fit.z_draws[None]), "theta": (dims, fit.draws[None])}
    about = {
        "n_trials": ("subject", np.asarray(fit.fit.n_trials)),
        "pareto_k": ("subject", np.asarray(fit.pareto_k, dtype=float)),
        "drawn_by": ("subject", np.array(fit.method, dtype=str)),
        "status": ("subject", np.array(fit.status, dtype=str)),
    }
    return {
        "posterior": xr.Dataset(values, coords=coordinates),
        "constant_data": xr.Dataset(about, coords={"subject": list(fit.subjects)}),
    }


def _observed(data: ModelData) -> xr.Dataset:
    """Return the data that the model read from each trial, in the order of its sequences."""
    sequence, _, position = data.sequences.in_order()
    subject = np.array(data.subjects, dtype=str)[data.sequences.subject[sequence]]
    gone = ~data.answered[position]
    columns = {}
    for name, column in zip(data.model.columns, data.flat, strict=True):
        values = np.asarray(column, dtype=float)[position]
        if name in ("action", "response"):  # the kernels have a sign for a missing value here
            values = np.where(gone | ~np.isfinite(values), np.nan, values)
        columns[name] = ("row", values)
    return xr.Dataset(columns, coords={"subject_of_row": ("row", subject)})


def _attributes(fit: HierarchicalFit | Posterior) -> dict[str, Any]:
    versions = {name: version(name) for name in LIBRARIES}
    attributes: dict[str, Any] = {
        "inference_library": "knownminds",
        "versions": json.dumps(versions),
    }
    attributes["inference_library_version"] = versions["knownminds"]
    attributes["parameters"] = json.dumps(list(fit.names))
    if isinstance(fit, Posterior):
        return attributes | {"model": fit.fit.model, "method": "posterior of each subject"}
    settings = asdict(fit.settings)
    return attributes | {
        "model": fit.model,
        "method": fit.method,
        "seed": settings["seed"],
        "settings": json.dumps(settings),
        "verdict": fit.verdict,
        "reasons": json.dumps(list(fit.reasons)),
        "divergences": fit.convergence.divergences,
    }


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
