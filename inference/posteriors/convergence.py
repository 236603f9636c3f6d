"""Whether a posterior was sampled well enough to be read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import arviz as az
import numpy as np
import pandas as pd
import xarray as xr

# Vehtari, Gelman, Simpson, Carpenter and Buerkner (2021) ask for R-hat below 1.01 and for 100
# effective draws per chain; four chains are the default.
LARGEST_R_HAT = 1.01
LEAST_ESS = 400.0


@dataclass(frozen=True)
class Convergence:
    """R-hat, bulk and tail effective sample sizes of the group terms, and the verdict.

    Parameters
    ----------
    table : Indexed by term, with the columns r_hat, ess_bulk, ess_tail.
    divergences : Draws after tuning that diverged.
    worst_subject_r_hat, least_subject_ess : The worst over all subjects' parameters.
    short : Whether there are too few draws (or chains that differ), which more of them mend.
    reasons : What speaks against the posterior; the verdict is "converged" only if nothing does.
    """

    table: pd.DataFrame
    divergences: int
    worst_subject_r_hat: float
    least_subject_ess: float
    short: bool
    reasons: tuple[str, ...]

    @property
    def verdict(self) -> str:
        """ "converged", or "not converged" at the first reason against it."""
        return "not converged" if self.reasons else "converged"


def check_convergence(
    posterior: xr.Dataset, effects: Sequence[str], divergences: int
) -> Convergence:
    """Judge the draws of group_mean, group_sd, effect, correlation, level_sd and z.

    What cannot be computed fails.
    """
    names = [str(name) for name in posterior["parameter"].to_numpy()]
    scores = {"r_hat": az.rhat(posterior), "ess_bulk": az.ess(posterior, method="bulk")}
    scores["ess_tail"] = az.ess(posterior, method="tail")
    rows = {}
    for variable, pattern in (("group_mean", "{}"), ("group_sd", "sd({})")):
        for name in names:
            rows[pattern.format(name)] = {
                score: float(values[variable].sel(parameter=name))
                for score, values in scores.items()
            }
    slopes = posterior["slope"].to_numpy() if "slope_sd" in posterior else ()
    for name in map(str, slopes):
        rows[f"sd({name})"] = {s: float(v["slope_sd"].sel(slope=name)) for s, v in scores.items()}
    for name in effects:
        rows[name] = {s: float(v["effect"].sel(term=name)) for s, v in scores.items()}
    pairs = posterior["pair"].to_numpy() if "correlation" in posterior else ()
    for pair in map(str, pairs):
        rows[f"cor({pair})"] = {
            s: float(v["correlation"].sel(pair=pair)) for s, v in scores.items()
        }
    factors = posterior["factor"].to_numpy() if "level_sd" in posterior else ()
    for factor in map(str, factors):
        for name in names:
            rows[f"sd({name} | {factor})"] = {
                s: float(v["level_sd"].sel(factor=factor, parameter=name))
                for s, v in scores.items()
            }
    table = pd.DataFrame.from_dict(rows, orient="index")
    subject_r_hat = float(np.max(scores["r_hat"]["z"].to_numpy()))
    subject_ess = float(np.min(scores["ess_bulk"]["z"].to_numpy()))

    reasons = []
    worst = table["r_hat"].max(skipna=False)
    if not worst <= LARGEST_R_HAT:
        reasons.append(f"R-hat of {table['r_hat'].idxmax()} is {worst:.3f}, above {LARGEST_R_HAT}")
    if not subject_r_hat <= LARGEST_R_HAT + 0.01:
        # Some of hundreds of R-hats exceed 1.01 by chance; 1.02 leaves room for that.
        reasons.append(f"R-hat of a subject's parameter is {subject_r_hat:.3f}, above 1.02")
    least = table[["ess_bulk", "ess_tail"]].min(axis=1, skipna=False)
    if not least.min(skipna=False) >= LEAST_ESS:
        reasons.append(
            f"effective sample size of {least.idxmin()} is {least.min():.0f}, below {LEAST_ESS:.0f}"
        )
    short = bool(reasons)
    if divergences:
        reasons.append(f"{divergences} divergent draws")
    return Convergence(table, divergences, subject_r_hat, subject_ess, short, tuple(reasons))
