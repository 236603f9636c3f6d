"""All observers of magnitudes fitted to the same participants, and compared by AIC."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from knownminds.agents import AGENTS
from knownminds.agents.parameters import Array
from knownminds.environments import Trials, unknown
from knownminds.inference.fits.model_data import ModelData
from knownminds.inference.fits.point import PointFit, maximum_likelihood

from .factor_evidence import VARIANTS

OBSERVERS = tuple(VARIANTS)
STARTS = 2  # besides the starts that the models name


def fit_observers(
    trials: Trials, models: Sequence[str] = OBSERVERS, *, workers: int | None = None
) -> dict[str, PointFit]:
    """Fit observers of magnitudes by `maximum_likelihood`, each to each subject, by model.

    "flat" and "boundary" mean that the answers cannot identify the parameters (they never identify
    gain and offset of the static observers); log-likelihood and AIC are still valid. Densities are
    per unit of the task in all models, so that AICs of models on a log scale (whose Jacobian is
    counted) are comparable.

    Parameters
    ----------
    models : Names of linear, static Bayesian and Kalman observers.
    workers : Threads; None for one per core.

    Raises
    ------
    ValueError : If a model is unknown or not such an observer, or the trials lack a column.
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
    return fits


def aic_of(fits: Mapping[str, PointFit]) -> dict[str, Array]:
    """Return Akaike's criterion of each model, [N]; NaN where a fit failed."""
    return {
        name: np.where([status == "failed" for status in fit.status], np.nan, fit.aic)
        for name, fit in fits.items()
    }
