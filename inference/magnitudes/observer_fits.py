"""All observers of magnitudes fitted to the same participants, and compared by AIC."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from knownminds.agents import AGENTS
from knownminds.agents.parameters import Array
from knownminds.environments import Trials, unknown
from knownminds.environments.later import pandas as pd
from knownminds.environments.record.result import Result
from knownminds.inference.fits.model_data import ModelData
from knownminds.inference.fits.point import PointFit, maximum_likelihood

OBSERVERS = tuple(
    f"{family}{output}{scale}"
    for family, several in (
        ("linear_observer", ("",)),
        ("static_bayes_observer", ("", "_gain", "_affine")),
        ("kalman_observer", ("", "_gain", "_affine")),
    )
    for output in several
    for scale in ("", "_log")
)
STARTS = 2  # besides those that the models name


@dataclass(frozen=True)
class ObserverFits(Result, Mapping[str, PointFit]):
    """The most likely parameters of several observers for the same N participants, by model.

    Parameters
    ----------
    fits
        By model. "flat" and "boundary" mean that the answers cannot tell the parameters (gain and
        offset of the static observers never); their log-likelihood and AIC are what they are.
    """

    fits: Mapping[str, PointFit]

    def __getitem__(self, name: str) -> PointFit:
        """Return the fit of a model."""
        if name not in self.fits:
            raise ValueError(unknown("fitted observer", name, tuple(self.fits)))
        return self.fits[name]

    def __iter__(self) -> Iterator[str]:
        """Go through the names of the models."""
        return iter(self.fits)

    def __len__(self) -> int:
        """Count the models."""
        return len(self.fits)

    @property
    def subjects(self) -> tuple[str, ...]:
        """Names of the participants."""
        return next(iter(self.fits.values())).subjects

    @cached_property
    def aic(self) -> Array:
        """Akaike's criterion, [N, M]; NaN where a fit failed.

        Densities are per unit of the task in all models, so that those on a log scale (whose
        Jacobian is counted) stand beside the others.
        """
        return np.column_stack(
            [
                np.where([s == "failed" for s in fit.status], np.nan, fit.aic)
                for fit in self.fits.values()
            ]
        )

    @cached_property
    def best(self) -> tuple[str, ...]:
        """Name of the model with the smallest AIC, [N]; empty where all fits failed."""
        names, table = tuple(self.fits), np.where(np.isnan(self.aic), np.inf, self.aic)
        first = table.argmin(axis=1)
        found = np.isfinite(table.min(axis=1))
        return tuple(names[k] if f else "" for k, f in zip(first, found, strict=True))

    def to_frame(self) -> pd.DataFrame:
        """One row per participant and model."""
        least = np.nanmin(np.where(np.isnan(self.aic), np.inf, self.aic), axis=1)
        parts = []
        for k, (name, fit) in enumerate(self.fits.items()):
            values = [
                dict(zip(fit.names, row, strict=True)) for row in fit.estimate.round(12).tolist()
            ]
            parts.append(
                pd.DataFrame(
                    {
                        "subject": fit.subjects,
                        "model": name,
                        "log_likelihood": fit.log_likelihood,
                        "n_parameters": len(fit.names),
                        "aic": self.aic[:, k],
                        "delta_aic": self.aic[:, k] - least,
                        "bic": fit.bic,
                        "n_trials": fit.n_trials,
                        "status": fit.status,
                        "message": fit.message,
                        "parameters": values,
                    }
                )
            )
        return pd.concat(parts, ignore_index=True)


def fit_observers(
    trials: Trials, models: Sequence[str] = OBSERVERS, *, workers: int | None = None
) -> ObserverFits:
    """Fit observers of magnitudes by `maximum_likelihood`, each to each subject.

    Parameters
    ----------
    models
        Names of linear, static Bayesian and Kalman observers.
    workers
        Threads; None for one per core.

    Raises
    ------
    ValueError
        If a model is unknown or another kind of model, or the trials lack a column.
    """
    if not models:
        raise ValueError("A comparison needs at least one observer; got none.")
    for name in models:
        if name not in OBSERVERS:
            raise ValueError(unknown("observer of magnitudes", name, OBSERVERS))
    read: dict[tuple[tuple[str, ...], tuple[str, ...]], ModelData] = {}
    fits: dict[str, PointFit] = {}
    for name in models:
        model = AGENTS[name]
        key = tuple(model.separate), tuple(model.columns)
        data = read[key].read_by(model) if key in read else ModelData.read(model, trials)
        read.setdefault(key, data)
        fits[name] = maximum_likelihood(model, data, starts=STARTS, workers=workers, inner=fits)
    return ObserverFits(fits)
