"""Whether a posterior was sampled well enough to be used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr

from knownminds.agents.parameters import Array
from knownminds.environments.later import pandas as pd

from .arviz_scores import ess, r_hat

# Vehtari, Gelman, Simpson, Carpenter and Buerkner (2021) ask for R-hat below 1.01 and for 100
# effective draws per chain; four chains are the default.
LARGEST_R_HAT = 1.01
LEAST_ESS = 400.0
# Variables of the group, the names of their values, and how the terms are written.
GROUP_TERMS = (
    ("group_mean", "parameter", "{}"),
    ("group_sd", "parameter", "sd({})"),
    ("slope_sd", "slope", "sd({})"),
    ("effect", "term", "{}"),
    ("correlation", "pair", "cor({})"),
)


@dataclass(frozen=True)
class Convergence:
    """R-hat, bulk and tail effective sample sizes of the group terms, and the verdict.

    Parameters
    ----------
    table : Indexed by term, with the columns r_hat, ess_bulk, ess_tail.
    divergences : Draws after tuning that diverged.
    worst_subject_r_hat, least_subject_ess : The worst over all subjects' parameters.
    short : Whether there are too few draws (or chains that differ), which more draws can mend.
    slow : Whether those of the group are worth too few independent ones.
    reasons : The problems of the posterior; the verdict is "converged" only if there are none.
    """

    table: pd.DataFrame
    divergences: int
    worst_subject_r_hat: float
    least_subject_ess: float
    short: bool
    slow: bool
    reasons: tuple[str, ...]

    @property
    def verdict(self) -> str:
        """ "converged", or "not converged" at the first reason against it."""
        return "not converged" if self.reasons else "converged"


def group_terms(posterior: xr.Dataset, effects: Sequence[str]) -> dict[str, Array]:
    """Return the draws [chains, draws] of the terms that describe a group, by name.

    Means have the names of the parameters; spreads are "sd(NAME)" and, over crossed levels,
    "sd(NAME | FACTOR)"; regression weights "NAME ~ REGRESSOR"; correlations "cor(NAME, NAME)".
    """
    terms: dict[str, Array] = {}
    for variable, dimension, pattern in GROUP_TERMS:
        if variable not in posterior or (variable == "effect" and not effects):
            continue
        for name in map(str, posterior[dimension].to_numpy()):
            term = posterior[variable].sel({dimension: name})
            terms[pattern.format(name)] = term.transpose("chain", "draw").to_numpy()
    if "level_sd" in posterior:
        for factor in map(str, posterior["factor"].to_numpy()):
            for name in map(str, posterior["parameter"].to_numpy()):
                term = posterior["level_sd"].sel(factor=factor, parameter=name)
                terms[f"sd({name} | {factor})"] = term.transpose("chain", "draw").to_numpy()
    return terms


def check_convergence(
    posterior: xr.Dataset, effects: Sequence[str], divergences: int, *, group_alone: bool = False
) -> Convergence:
    """Judge the draws of group_mean, group_sd, effect, correlation, level_sd and z.

    A number that cannot be computed counts as a failure. With `group_alone`, z plays no part.
    """
    terms = group_terms(posterior, effects)
    draws = np.stack(list(terms.values()), axis=2)
    scores = {"r_hat": r_hat(draws), "ess_bulk": ess(draws), "ess_tail": ess(draws, "tail")}
    table = pd.DataFrame(scores, index=pd.Index(list(terms)))
    subjects = posterior["z"].transpose("chain", "draw", ...).to_numpy()
    subject_r_hat, subject_ess = float(np.max(r_hat(subjects))), float(np.min(ess(subjects)))

    reasons = []
    worst = table["r_hat"]
    if worst.isna().any():  # for a single chain, or draws that are all equal
        reasons.append(f"R-hat of {worst.isna().idxmax()} cannot be computed")
    elif worst.max() > LARGEST_R_HAT:
        reasons.append(f"R-hat of {worst.idxmax()} is {worst.max():.3f}, above {LARGEST_R_HAT}")
    if group_alone:
        pass
    elif np.isnan(subject_r_hat):
        reasons.append("R-hat of a subject's parameter cannot be computed")
    elif subject_r_hat > LARGEST_R_HAT + 0.01:
        # Of hundreds of R-hats, some exceed 1.01 by chance; 1.02 leaves room for that.
        reasons.append(f"R-hat of a subject's parameter is {subject_r_hat:.3f}, above 1.02")
    least = table[["ess_bulk", "ess_tail"]].min(axis=1, skipna=False)
    if least.isna().any():
        reasons.append(f"effective sample size of {least.isna().idxmax()} cannot be computed")
    elif least.min() < LEAST_ESS:
        reasons.append(
            f"effective sample size of {least.idxmin()} is {least.min():.0f}, below {LEAST_ESS:.0f}"
        )
    short = bool(reasons)
    if divergences:
        reasons.append(f"{divergences} divergent draw{'s' * (divergences != 1)}")
    slow = not least.min() >= LEAST_ESS
    worst_of_subjects = subject_r_hat, subject_ess
    return Convergence(table, divergences, *worst_of_subjects, short, slow, tuple(reasons))
