"""Evidence for a factor that some models of a family share, whatever else they differ in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logsumexp

from knownminds.agents.parameters import Array
from knownminds.environments import unknown
from knownminds.environments.later import pandas as pd

# These describe a variant of an observer; `output` is the change between estimate and answer.
OUTPUTS = ("none", "gain", "affine")
VARIANTS: dict[str, dict[str, bool | str]] = {
    f"{family}{'' if output == 'none' else f'_{output}'}{'_log' if weber else ''}": {
        "bayesian": family != "linear_observer",
        "sequential": family == "kalman_observer",
        "weber": weber,
        "output": output,
    }
    for family in ("linear_observer", "static_bayes_observer", "kalman_observer")
    for output in (OUTPUTS if family != "linear_observer" else OUTPUTS[:1])
    for weber in (False, True)
}
# The factors, and what is held fixed when the best variants with and without one of them are
# compared. Only Bayesian variants can be sequential or have an output map of their own, so that
# neither is held for the factor "bayesian".
NUISANCE: dict[str, tuple[str, ...]] = {
    "bayesian": ("weber",),
    "weber": ("bayesian", "sequential", "output"),
    "sequential": ("bayesian", "weber", "output"),
}
FACTORS = tuple(NUISANCE)


def factor_evidence(
    aic: Mapping[str, Array | Sequence[float] | float], subjects: Sequence[str] | None = None
) -> pd.DataFrame:
    """Turn the AICs of model variants into evidence for each factor.

    Each variant has the weight exp(-dAIC / 2). In each cell of the nuisance factors, the best
    variant with the factor is compared with the best one without it. Both are averaged over the
    cells that have both, and the evidence is the share of the first mean in their sum. So a family
    gains nothing by having many members.

    Parameters
    ----------
    aic : By variant, one number or [N]; NaN where a fit failed. Variants that are not given count
        as missing.
    subjects : Names of the N subjects.

    Returns
    -------
    pandas.DataFrame
        One row per fit: subject; for each factor its probability, from 0 to 1 (NaN if no cell has
        both levels), and FACTOR_cells, how many cells have both levels; missing, the variants
        without a finite AIC.

    Raises
    ------
    ValueError : If a variant is unknown, or no AIC is given.
    """
    if not aic:
        raise ValueError("Evidence for a factor needs the AIC of several variants; got none.")
    for name in aic:
        if name not in VARIANTS:
            raise ValueError(unknown("variant of an observer", name, VARIANTS))
    table = np.array([np.atleast_1d(np.asarray(v, dtype=float)) for v in aic.values()])
    given, n = dict(zip(aic, table, strict=True)), table.shape[1]
    names = list(subjects) if subjects is not None else list(map(str, range(n)))
    if len(names) != n:
        raise ValueError(f"Each of the {n} fits has a name; got {len(names)} names.")
    columns: dict[str, Any] = {"subject": names}
    for factor, nuisance in NUISANCE.items():
        best: dict[tuple[bool | str, ...], dict[bool, Array]] = {}
        for name, row in given.items():
            what = VARIANTS[name]
            cell = best.setdefault(tuple(what[k] for k in nuisance), {})
            level, weight = bool(what[factor]), np.where(np.isfinite(row), -0.5 * row, -np.inf)
            cell[level] = np.maximum(cell.get(level, np.full(n, -np.inf)), weight)
        pairs = [(cell[True], cell[False]) for cell in best.values() if len(cell) == 2]
        columns[factor], columns[f"{factor}_cells"] = _share(pairs, n)
    known = {name: np.isfinite(given.get(name, np.full(n, np.nan))) for name in VARIANTS}
    columns["missing"] = [
        ", ".join(name for name, finite in known.items() if not finite[i]) for i in range(n)
    ]
    return pd.DataFrame(columns)


def _share(pairs: list[tuple[Array, Array]], n: int) -> tuple[Array, NDArray[np.int64]]:
    """Return the share of the first of each pair in the cells that have both, and their number."""
    if not pairs:
        return np.full(n, np.nan), np.zeros(n, dtype=np.int64)
    there, absent = (np.array(side) for side in zip(*pairs, strict=True))
    both = np.isfinite(there) & np.isfinite(absent)
    with np.errstate(invalid="ignore", divide="ignore"):
        for_it = logsumexp(np.where(both, there, -np.inf), axis=0)
        against = logsumexp(np.where(both, absent, -np.inf), axis=0)
        share: Array = np.asarray(expit(for_it - against))
    count = both.sum(axis=0)
    return np.where(count > 0, share, np.nan), count
