"""How far an agent's judgements rise and fall with reference judgements of the same questions."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy

from knownminds.agents.parameters import Array
from knownminds.environments import Trials, session_stream
from knownminds.environments.later import pandas as pd
from knownminds.inference.resampling import percentile_ends

from .causal_answers import CELL, CELL_OF_ANSWERS, DIGITS, answers_by, causal_answers

POOLED = "all domains"
RESAMPLES = 2000
FEWEST = 3  # items; with fewer, a rank correlation says nothing


def alignment(
    trials: Trials | pd.DataFrame,
    reference: Trials | pd.DataFrame,
    agent: str = "subject",
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
    released: bool = False,
) -> pd.DataFrame:
    """Correlate each agent's answers with reference means of the same cell (Spearman 1904).

    An item is a question: a task in a domain, sense and direction. Repeated answers to it are
    averaged before they are ranked, so that repeats do not count as items. Means that differ by
    rounding alone share a rank. Items are resampled with replacement, and the interval goes from
    the 2.5th to the 97.5th percentile (Efron 1979).

    Parameters
    ----------
    trials : Collider trials, or what `causal_answers` makes of them.
    reference : Trials of the reference, averaged by item; or a table of their means, see
        `reference_means`.
    agent : The column that tells agents apart.
    resamples, seed : How many bootstrap samples, and their seed; each agent and domain has a stream
        of its own.
    released : As in Dettki (2025): every answer is an item, repeated ones too. It is compared with
        the reference mean of its letter cell (domain, sense and task, both directions together).

    Returns
    -------
    pandas.DataFrame
        One row per agent and domain (and `POOLED`): agent, domain, rho, low, high (95%, percentile
        bootstrap over items), items, unmatched (items without an answer or without a reference),
        without_rho (resamples in which one side was constant) and status.

    Raises
    ------
    ValueError : If there is no such column, or no item has both an answer and a reference.
    """
    answers = answers_by(trials, agent)
    if resamples < 1:
        raise ValueError(f"An interval needs at least 1 resample; got {resamples}.")
    wanted = reference_means(reference, released=released)
    if released:
        mine = answers[[agent, *CELL_OF_ANSWERS]].assign(mine=answers["answer"])
        both = mine.merge(wanted, on=list(CELL_OF_ANSWERS), how="left")
    else:
        means = answers.groupby([agent, *CELL], sort=False)["answer"].mean().rename("mine")
        both = means.reset_index().merge(wanted, on=list(CELL), how="left")
    both["held"] = both["mine"].notna() & both["reference"].notna()
    if not both["held"].any():
        raise ValueError(
            "Alignment compares answers to the same question (domain, sense, direction, task); the "
            "reference has none of those in the trials. Check that both name them alike."
        )
    rows = []
    domains = sorted(answers["domain"].unique())
    for i, (name, group) in enumerate(both.groupby(agent, sort=False)):
        parts = [(k + 1, d, group[group["domain"] == d]) for k, d in enumerate(domains)]
        for k, domain, part in [(0, POOLED, group), *(parts if len(domains) > 1 else [])]:
            if len(part) == 0:
                continue
            held = part[part["held"]]
            pair = held["mine"].to_numpy(), held["reference"].to_numpy()
            row = {"agent": str(name), "domain": str(domain), "items": len(held)}
            row |= {"unmatched": len(part) - len(held)}
            rows.append(row | _correlated(*pair, resamples, session_stream(seed, i, k)))
    order = ["agent", "domain", "rho", "low", "high", "items", "unmatched", "without_rho", "status"]
    return pd.DataFrame(rows)[order]


def reference_means(reference: Trials | pd.DataFrame, *, released: bool = False) -> pd.DataFrame:
    """Return the mean of each item of a reference, on a scale from 0 to 1.

    Parameters
    ----------
    reference : Collider trials; or a table that `causal_answers` reads, with a column "mean" (0 to
        100) instead of "response" if it holds means.
    released : Whether both directions of a task are taken together, as in Dettki (2025).

    Returns
    -------
    DataFrame : Columns domain, sense, direction (not if released), task and reference.
    """
    if isinstance(reference, pd.DataFrame) and "mean" in reference and "response" not in reference:
        reference = reference.rename(columns={"mean": "response"})
    means = (
        causal_answers(reference)
        .groupby(list(CELL_OF_ANSWERS if released else CELL), sort=False)["answer"]
        .mean()
        .rename("reference")
    )
    return means.reset_index()


def spearman(first: Array, second: Array) -> Array:
    """Return rank correlations of two arrays [..., n]; NaN if one side is constant."""
    a, b = (scipy.stats.rankdata(values, axis=-1) for values in (first, second))
    a, b = (ranks - (ranks.shape[-1] + 1) / 2 for ranks in (a, b))
    with np.errstate(invalid="ignore", divide="ignore"):
        scale = np.sqrt((a * a).sum(axis=-1) * (b * b).sum(axis=-1))
        return np.asarray((a * b).sum(axis=-1) / scale)


def _correlated(
    mine: Array, theirs: Array, resamples: int, rng: np.random.Generator
) -> dict[str, Any]:
    """Return rho with its interval; NaN, with the reason as a status, if it has none."""
    nothing = {"rho": np.nan, "low": np.nan, "high": np.nan, "without_rho": 0}
    n = len(mine)
    mine, theirs = (np.round(side, DIGITS) for side in (mine, theirs))
    if n < FEWEST:
        return nothing | {"status": f"fewer than {FEWEST} items with both answers"}
    rho = float(spearman(mine, theirs))
    if not np.isfinite(rho):
        return nothing | {"status": "all answers are the same"}
    chosen = rng.integers(0, n, (resamples, n))
    drawn = spearman(mine[chosen], theirs[chosen])
    low, high, _ = percentile_ends(drawn)
    missing = int((~np.isfinite(drawn)).sum())
    return {"rho": rho, "low": low, "high": high, "without_rho": missing, "status": "ok"}
