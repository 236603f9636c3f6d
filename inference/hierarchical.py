"""The group model: subjects' parameters and the law they come from, sampled together."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import nutpie
import numpy as np
import pandas as pd
import pymc as pm
import pytensor.tensor as pt
import xarray as xr
from numpy.typing import NDArray

from knownminds.agents import Agent
from knownminds.agents.parameters import Array, Parameters, Support
from knownminds.environments import Trials

from .convergence import Convergence, check_convergence
from .likelihood_op import LogLikelihood
from .model_data import ModelData, Unknowns
from .regressors import Regressors

Sampler = Literal["nutpie", "pymc"]


@dataclass(frozen=True)
class HierarchicalFit:
    """Posterior of a group of subjects, with the verdict on its sampling.

    Parameters
    ----------
    model
        Name of the model.
    subjects, parameters
        Names of the N subjects; the K estimated parameters.
    posterior
        Draws of group_mean, group_sd, effect (if there are regressors) and z, with the dimensions
        chain, draw, parameter, effect, subject; all on the unconstrained scale.
    effects
        Names of the regression weights, "parameter ~ regressor".
    convergence
        R-hat, effective sample sizes, divergences and the verdict.
    data, unknowns
        What was fitted, for whatever is computed from the draws.
    """

    model: str
    subjects: tuple[str, ...]
    parameters: Parameters
    posterior: xr.Dataset
    effects: tuple[str, ...]
    convergence: Convergence
    data: ModelData = field(repr=False)
    unknowns: Unknowns = field(repr=False)
    method: str = "hierarchical"

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the estimated parameters."""
        return self.parameters.names

    @cached_property
    def z_draws(self) -> Array:
        """Draws on the unconstrained scale, [draws, N, K]."""
        z = self.posterior["z"].transpose("chain", "draw", "subject", "parameter").to_numpy()
        draws: Array = z.reshape(-1, *z.shape[2:])
        return draws

    @cached_property
    def draws(self) -> Array:
        """Draws on the natural scale, [draws, N, K]."""
        return self.parameters.constrain(self.z_draws)

    @cached_property
    def estimate(self) -> Array:
        """Posterior means on the natural scale, [N, K]."""
        mean: Array = self.draws.mean(axis=0)
        return mean

    def interval(self, mass: float = 0.9) -> tuple[Array, Array]:
        """Central posterior intervals on the natural scale."""
        low, high = np.quantile(self.draws, [0.5 - mass / 2, 0.5 + mass / 2], axis=0)
        return low, high

    @property
    def divergences(self) -> int:
        """How many draws after tuning diverged."""
        return self.convergence.divergences

    @property
    def verdict(self) -> str:
        """ "converged" or "not converged"."""
        return self.convergence.verdict

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why the verdict is not "converged"; empty if it is."""
        return self.convergence.reasons

    @property
    def status(self) -> tuple[str, ...]:
        """Status of each subject: the group's verdict holds for all."""
        return ("ok" if self.verdict == "converged" else "failed",) * len(self.subjects)

    @cached_property
    def group(self) -> pd.DataFrame:
        """One row per group mean, spread and regression weight.

        Columns: mean, sd and 90% interval (low, high) on the unconstrained scale; for means the
        same mapped to the natural scale (natural, natural_low, natural_high); r_hat, ess_bulk,
        ess_tail.
        """
        rows = {}
        for term, draws, support in self._terms():
            low, high = np.quantile(draws, [0.05, 0.95])
            row = {"mean": draws.mean(), "sd": draws.std(ddof=1), "low": low, "high": high}
            if support is not None:
                natural = support.constrain(np.array([np.median(draws), low, high]))
                row |= dict(
                    zip(("natural", "natural_low", "natural_high"), natural, strict=True)
                )
            rows[term] = row
        frame = pd.DataFrame.from_dict(rows, orient="index")
        return frame.join(self.convergence.table)

    def _terms(self) -> list[tuple[str, Array, Support | None]]:
        terms: list[tuple[str, Array, Support | None]] = []
        for name in self.names:
            draws = self.posterior["group_mean"].sel(parameter=name).to_numpy().ravel()
            terms.append((name, draws, self.parameters[name].support))
        for name in self.names:
            draws = self.posterior["group_sd"].sel(parameter=name).to_numpy().ravel()
            terms.append((f"sd({name})", draws, None))
        for name in self.effects:
            draws = self.posterior["effect"].sel(effect=name).to_numpy().ravel()
            terms.append((name, draws, None))
        return terms

    def to_frame(self, mass: float = 0.9) -> pd.DataFrame:
        """One row per subject: posterior means and interval ends on the natural scale."""
        low, high = self.interval(mass)
        columns: dict[str, Any] = {"subject": self.subjects, "n_trials": self.data.n_trials}
        for k, name in enumerate(self.names):
            columns[name] = self.estimate[:, k]
            columns[f"{name}_low"] = low[:, k]
            columns[f"{name}_high"] = high[:, k]
        return pd.DataFrame(columns | {"status": self.status})

    def to_json(self, mass: float = 0.9) -> str:
        """Group and subjects as JSON."""
        return json.dumps(
            {
                "model": self.model,
                "method": self.method,
                "verdict": self.verdict,
                "reasons": self.reasons,
                "divergences": self.divergences,
                "group": json.loads(self.group.to_json(orient="index")),
                "subjects": json.loads(self.to_frame(mass).to_json(orient="records")),
            }
        )

    def __str__(self) -> str:
        """Return the group table and the verdict."""
        table = self.group.round(3).to_string(na_rep="")
        why = f": {'; '.join(self.reasons)}" if self.reasons else ""
        return f"{self.model}, hierarchical, {len(self.subjects)} subjects\n{table}\n{self.verdict}{why}"


def hierarchical(
    model: type[Agent],
    trials: Trials | ModelData,
    *,
    formula: str | Sequence[str] | None = None,
    fixed: Mapping[str, float] | None = None,
    lapse: bool = False,
    chains: int = 4,
    draws: int = 1000,
    tune: int = 1000,
    sampler: Sampler = "nutpie",
    target_accept: float = 0.8,
    seed: int = 0,
    cores: int | None = None,
) -> HierarchicalFit:
    """Sample the posterior of a group: each subject's parameters and the law they come from.

    On the unconstrained scale z_i = mean + X_i effect + sd * eta_i, eta ~ Normal(0, 1); mean has
    the model's prior, sd a half-normal one of scale `group_sd`, effects Normal(0, prior sd).

    Parameters
    ----------
    formula
        Regressors of the group means, "alpha_positive ~ condition" or several such; the columns
        must be constant within subjects.
    fixed, lapse
        As in `maximum_likelihood`.
    sampler
        "nutpie" runs the compiled model without Python in the loop; "pymc" is PyMC's own NUTS.
    target_accept
        Acceptance rate aimed at; .9 or more if there are divergences.
    cores
        Chains run side by side; None for one per core.
    """
    data = trials if isinstance(trials, ModelData) else ModelData.read(model, trials)
    regressors = None
    if formula is not None:
        if isinstance(trials, ModelData):
            raise ValueError("A formula needs the trials themselves, not ModelData.")
        unknowns = Unknowns.of(model, fixed, lapse)
        regressors = Regressors.of(formula, trials.subject_frame(), unknowns.parameters)
    compiled = GroupModel.build(data, regressors=regressors, fixed=fixed, lapse=lapse)
    return compiled.sample(
        data,
        chains=chains,
        draws=draws,
        tune=tune,
        sampler=sampler,
        target_accept=target_accept,
        seed=seed,
        cores=cores,
    )


@dataclass
class GroupModel:
    """The PyMC model of a group, compiled once and sampled for any data of the same shape.

    Compiling takes much longer than sampling: a recovery or calibration study builds one
    `GroupModel` and calls `sample` for each replicate.
    """

    model: type[Agent]
    unknowns: Unknowns
    n_subjects: int
    effects: tuple[str, ...]
    pymc_model: pm.Model
    regressors: Regressors | None
    _compiled: Any = None

    @classmethod
    def build(
        cls,
        data: ModelData,
        *,
        regressors: Regressors | None = None,
        fixed: Mapping[str, float] | None = None,
        lapse: bool = False,
    ) -> GroupModel:
        """Write the model down; compilation waits for the first `sample`."""
        unknowns = Unknowns.of(data.model, fixed, lapse)
        parameters = unknowns.parameters
        if len(parameters) == 0:
            raise ValueError(
                f"A hierarchical fit needs a free parameter; {data.model.name} has none left. "
                "Compare its log-likelihood instead (method map)."
            )
        effects = regressors.names if regressors else ()
        coords = {"parameter": parameters.names, "subject": list(range(len(data)))}
        if effects:
            coords["effect"] = effects
        group_scale = [p.group_sd for p in parameters]
        with pm.Model(coords=coords) as pymc_model:
            mean = pm.Normal("group_mean", parameters.mean, parameters.sd, dims="parameter")
            sd = pm.HalfNormal("group_sd", group_scale, dims="parameter")
            eta = pm.Normal("eta", 0.0, 1.0, dims=("subject", "parameter"))
            z = mean + sd * eta
            if regressors is not None:
                spread = parameters.sd[regressors.parameter]
                effect = pm.Normal("effect", 0.0, spread, dims="effect")
                design = pm.Data("design", regressors.by_subject)
                onto = np.eye(len(parameters))[regressors.parameter]
                z = z + pt.dot(design * effect, onto)
            theta = _theta(z, unknowns)
            op = LogLikelihood(data.model, data.n_actions, lapse)
            inputs = [pm.Data(name, value) for name, value in _inputs(data).items()]
            log_likelihood, _ = op(theta, *inputs)
            pm.Potential("log_likelihood_of_all", log_likelihood.sum())
        return cls(data.model, unknowns, len(data), effects, pymc_model, regressors)

    def sample(
        self,
        data: ModelData,
        *,
        chains: int = 4,
        draws: int = 1000,
        tune: int = 1000,
        sampler: Sampler = "nutpie",
        target_accept: float = 0.8,
        seed: int = 0,
        cores: int | None = None,
    ) -> HierarchicalFit:
        """Sample the posterior for these data; the shape must be that of the model."""
        if len(data) != self.n_subjects or data.model is not self.model:
            raise ValueError(
                f"The model was built for {self.n_subjects} subjects of {self.model.name}; got "
                f"{len(data)} of {data.model.name}. Build another GroupModel."
            )
        for value, what in ((chains, "chains"), (draws, "draws"), (tune, "tune")):
            if value < 1:
                raise ValueError(f"Sampling needs {what} of at least 1; got {value}.")
        side_by_side = min(chains, cores or os.cpu_count() or 1)
        if sampler == "nutpie":
            trace = self.compile(data).sample_with(
                chains, draws, tune, target_accept, seed, side_by_side
            )
        elif sampler == "pymc":
            trace = self._sample_pymc(
                data, chains, draws, tune, target_accept, seed, side_by_side
            )
        else:
            raise ValueError(f"Samplers are nutpie and pymc; got {sampler!r}.")
        return self._finish(data, trace)

    def compile(self, data: ModelData) -> _Compiled:
        """Return the compiled model holding these data, compiling only the first time."""
        if self._compiled is None:
            with warnings.catch_warnings():
                # Numba tells that it cannot cache nutpie's wrapper; nothing is lost by it.
                warnings.simplefilter("ignore")
                self._compiled = nutpie.compile_pymc_model(self.pymc_model, backend="numba")
        return _Compiled(self._compiled.with_data(**_inputs(data)))

    def _sample_pymc(
        self,
        data: ModelData,
        chains: int,
        draws: int,
        tune: int,
        target_accept: float,
        seed: int,
        cores: int,
    ) -> Any:
        with self.pymc_model, warnings.catch_warnings():
            warnings.filterwarnings("ignore", category=UserWarning)  # the verdict says it
            warnings.filterwarnings("ignore", category=FutureWarning)
            pm.set_data(_inputs(data))
            return pm.sample(
                draws=draws,
                tune=tune,
                chains=chains,
                cores=cores,
                target_accept=target_accept,
                random_seed=seed,
                progressbar=False,
                nuts_sampler="pymc",
                compute_convergence_checks=False,
                quiet=True,
            )

    def _finish(self, data: ModelData, trace: Any) -> HierarchicalFit:
        posterior = _dataset(trace, "posterior")
        z = posterior["group_mean"] + posterior["group_sd"] * posterior["eta"]
        if self.regressors is not None:
            parameters = self.unknowns.parameters
            onto = np.eye(len(parameters))[self.regressors.parameter]
            design = xr.DataArray(
                self.regressors.by_subject[:, :, None] * onto,
                dims=("subject", "effect", "parameter"),
                coords={"parameter": list(parameters.names), "effect": list(self.effects)},
            )
            z = z + xr.dot(posterior["effect"], design, dim="effect")
        kept = posterior.drop_vars("eta").assign(z=z)
        kept = kept.assign_coords(subject=list(data.subjects))
        divergences = int(_dataset(trace, "sample_stats")["diverging"].sum())
        return HierarchicalFit(
            model=self.model.name,
            subjects=data.subjects,
            parameters=self.unknowns.parameters,
            posterior=kept,
            effects=self.effects,
            convergence=check_convergence(kept, self.effects, divergences),
            data=data,
            unknowns=self.unknowns,
        )


@dataclass(frozen=True)
class _Compiled:
    """A compiled nutpie model with its data."""

    model: Any

    def sample_with(
        self,
        chains: int,
        draws: int,
        tune: int,
        target_accept: float,
        seed: int,
        cores: int,
    ) -> Any:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", category=UserWarning)
            warnings.filterwarnings("ignore", category=FutureWarning)
            return nutpie.sample(
                self.model,
                draws=draws,
                tune=tune,
                chains=chains,
                cores=cores,
                target_accept=target_accept,
                seed=seed,
                progress_bar=False,
                save_warmup=False,
            )


def _inputs(data: ModelData) -> dict[str, NDArray[Any]]:
    columns = {f"column_{name}": c for name, c in zip(data.model.columns, data.packed, strict=True)}
    return {"row": data.sequences.row, "start": data.sequences.start, **columns}


def _theta(z: Any, unknowns: Unknowns) -> Any:
    """Map z[N, K] to all parameters on the natural scale, fixed ones included."""
    own: list[Any] = [pt.full_like(z[:, 0], value) for value in unknowns.full]
    free = list(unknowns.parameters)
    for k, position in enumerate(unknowns.columns):
        own[position] = _constrain(z[:, k], free[k].support)
    if unknowns.lapse:
        own.append(_constrain(z[:, -1], free[-1].support))
    return pt.stack(own, axis=1)


def _constrain(z: Any, support: Support) -> Any:
    """Apply `Support.constrain` to a PyTensor variable."""
    if support.kind == "identity":
        return z
    if support.kind == "log":
        return pt.exp(z)
    return support.lower + (support.upper - support.lower) * pt.sigmoid(z)


def _dataset(trace: Any, name: str) -> xr.Dataset:
    """Return a group of an InferenceData (ArviZ 0) or a DataTree (ArviZ 1) as a Dataset."""
    found = trace[name]
    dataset: xr.Dataset = found.to_dataset() if hasattr(found, "to_dataset") else found
    return dataset
