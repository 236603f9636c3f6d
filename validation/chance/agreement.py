"""How what is stated goes with what is revealed, over questions about the same outcomes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from knownminds.agents.parameters import Array
from knownminds.environments import session_stream
from knownminds.inference.resampling import percentile_ends

STREAM = 37
DIGITS = 12  # with which probabilities are ranked
REPLICATES = 999
NUMBERS = ("probabilities", "errors")


def agreement_of(answered: pd.DataFrame, *, seed: int = 0) -> dict[str, float]:
    """Return how stated and revealed probabilities agree, with 95% bootstrap intervals.

    Rank correlations (Spearman 1904) over questions of the two probabilities and of their absolute
    errors. What is resampled is contexts, with all questions about them (Efron 1979, percentiles);
    there are no intervals for fewer than three contexts, and no correlations where fewer than three
    questions or two values are.

    Parameters
    ----------
    answered : One row per question: context, truth, revealed, stated; none is NaN.

    Returns
    -------
    dict : "probabilities" and "errors", each with its ends NAME_low and NAME_high.
    """
    truth, revealed, stated = (
        answered[name].to_numpy(dtype=float) for name in ("truth", "revealed", "stated")
    )
    errors = np.abs(revealed - truth), np.abs(stated - truth)
    # Equal values may differ by rounding, which is no order.
    columns = [np.round(side, DIGITS) for side in (revealed, stated, *errors)]

    def numbers(rows: Any) -> list[float]:
        one, other, off, away = (column[rows] for column in columns)
        return [_rank_correlation(one, other), _rank_correlation(off, away)]

    whole = numbers(np.arange(len(answered)))
    codes = answered.groupby(["scenario", "context"], sort=False).ngroup().to_numpy()
    places = [np.flatnonzero(codes == code) for code in range(codes.max(initial=-1) + 1)]
    rounds = np.full((REPLICATES, len(NUMBERS)), np.nan)
    if len(places) > 2:
        drawn = session_stream(seed, STREAM, len(places)).integers(
            0, len(places), (REPLICATES, len(places))
        )
        for k, chosen in enumerate(drawn):
            rounds[k] = numbers(np.concatenate([places[index] for index in chosen]))
    values: dict[str, float] = {}
    for name, value, again in zip(NUMBERS, whole, rounds.T, strict=True):
        low, high, _ = percentile_ends(again)
        known = np.isfinite(value)
        values |= {name: value, f"{name}_low": low if known else np.nan}
        values |= {f"{name}_high": high if known else np.nan}
    return values


def _rank_correlation(one: Array, other: Array) -> float:
    if len(one) < 3:
        return float("nan")
    ranks = [rankdata(side) for side in (one, other)]
    if min(np.ptp(side) for side in ranks) == 0:
        return float("nan")
    return float(np.corrcoef(*ranks)[0, 1])
