"""Evidence for what a family of models has in common, whatever else its members differ in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logsumexp

from knownminds.agents.parameters import Array
from knownminds.environments import unknown
from knownminds.environments.later import pandas as pd
from knownminds.environments.record.result import Result

# What each variant of an observer is; `output` is what is done to its estimate.
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
# The factors, and what is held when the best variants with and without one are set against each
# other. Only Bayesian variants can be sequential or have an output of their own, so that neither
# is held for the first.
NUISANCE: dict[str, tuple[str, ...]] = {
    "bayesian": ("weber",),
    "weber": ("bayesian", "sequential", "output"),
    "sequential": ("bayesian", "weber", "output"),
}
FACTORS = tuple(NUISANCE)


@dataclass(frozen=True)
class FactorEvidence(Result):
    """The probability that each factor is there, head to head, for each of N fits.

    Parameters
    ----------
    subjects : Names of what was fitted, N.
    evidence : By factor, [N], from 0 (not there) to 1; NaN where no cell has both levels.
    cells : By factor, [N]: how many cells have both levels.
    missing : Variants without a finite AIC, for each of the N.
    """

    subjects: tuple[str, ...]
    evidence: Mapping[str, Array]
    cells: Mapping[str, Array]
    missing: tuple[tuple[str, ...], ...]

    def to_frame(self) -> pd.DataFrame:
        """One row per fit and factor."""
        return pd.DataFrame(
            [
                {
                    "subject": subject,
                    "factor": factor,
                    "evidence": self.evidence[factor][i],
                    "cells": int(self.cells[factor][i]),
                    "missing": ", ".join(self.missing[i]),
                }
                for i, subject in enumerate(self.subjects)
                for factor in self.evidence
            ]
        )


def factor_evidence(
    aic: Mapping[str, Array | Sequence[float] | float],
    subjects: Sequence[str] | None = None,
    *,
    variants: Mapping[str, Mapping[str, bool | str]] = VARIANTS,
    nuisance: Mapping[str, Sequence[str]] = NUISANCE,
) -> FactorEvidence:
    """Turn the AICs of model variants into evidence for each factor.

    Each variant weighs exp(-dAIC / 2). In each cell of the nuisance factors, the best variant with
    the factor stands against the best without it; the mean of each over the cells that have both,
    and the share of the first in their sum. A family gains nothing by having many members.

    Parameters
    ----------
    aic
        By variant, one number or [N]; NaN where a fit failed. Variants that are not given are
        missing.
    subjects
        Names of the N.
    variants
        What each variant is, by factor.
    nuisance
        By factor of interest, the factors that define its cells.

    Raises
    ------
    ValueError
        If a variant is unknown, or no AIC is given.
    """
    if not aic:
        raise ValueError("Evidence for a factor needs the AIC of several variants; got none.")
    for name in aic:
        if name not in variants:
            raise ValueError(unknown("variant of an observer", name, variants))
    table = np.array([np.atleast_1d(np.asarray(v, dtype=float)) for v in aic.values()])
    given = dict(zip(aic, table, strict=True))
    n = table.shape[1]
    names = tuple(subjects) if subjects is not None else tuple(map(str, range(n)))
    if len(names) != n:
        raise ValueError(f"Each of the {n} fits has a name; got {len(names)} names.")
    log_weight = {
        name: np.where(np.isfinite(row), -0.5 * row, -np.inf) for name, row in given.items()
    }
    evidence, cells = {}, {}
    for factor, held in nuisance.items():
        best: dict[tuple[bool | str, ...], dict[bool, Array]] = {}
        for name, weight in log_weight.items():
            what = variants[name]
            cell = best.setdefault(tuple(what[k] for k in held), {})
            level = bool(what[factor])
            cell[level] = np.maximum(cell.get(level, np.full(n, -np.inf)), weight)
        pairs = [(cell[True], cell[False]) for cell in best.values() if len(cell) == 2]
        evidence[factor], cells[factor] = _share(pairs, n)
    lost = [
        tuple(name for name in variants if not np.isfinite(given.get(name, np.full(n, np.nan))[i]))
        for i in range(n)
    ]
    return FactorEvidence(names, evidence, cells, tuple(lost))


def _share(pairs: list[tuple[Array, Array]], n: int) -> tuple[Array, Array]:
    """Return the share of the first of each pair in the cells that have both, and their number."""
    if not pairs:
        return np.full(n, np.nan), np.zeros(n)
    there, absent = (np.array(side) for side in zip(*pairs, strict=True))
    both = np.isfinite(there) & np.isfinite(absent)
    with np.errstate(invalid="ignore", divide="ignore"):
        for_it = logsumexp(np.where(both, there, -np.inf), axis=0)
        against = logsumexp(np.where(both, absent, -np.inf), axis=0)
        share: Array = np.asarray(expit(for_it - against))
    count = both.sum(axis=0)
    return np.where(count > 0, share, np.nan), count.astype(float)
