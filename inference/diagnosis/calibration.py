"""How far stated beliefs are from the exact probability of the state."""

from __future__ import annotations

import numpy as np

from knownminds.environments.later import pandas as pd
from knownminds.inference.measure import t_tests

from .belief_decisions import ELICITATIONS, BeliefDecisions

BINS = 10  # bins of exact probability, of equal width


def calibration(data: BeliefDecisions) -> pd.DataFrame:
    """Return the error of stated beliefs against the exact posterior, one row per elicitation.

    The root mean square of p - p* is taken over contexts, which have equal weights, and within each
    over its repetitions. Its interval has the roots of the ends of Student's interval for the mean
    square over contexts, within 0 and 1. Repetitions of a context do not count as further contexts.

    Returns
    -------
    DataFrame : Columns elicitation, rmse, low, high, error (standard error), bias (mean of p - p*),
        bias_low, bias_high, contexts and answers. There is a row for each of `ELICITATIONS` that
        was asked for, NaN without an answer.
    """
    rows = []
    names = [name for name in ELICITATIONS if name in data.frame]
    for name in names:
        off = data.frame[name] - data.frame["posterior"]
        context = pd.Series(data.context, index=off.index)
        squares = (off**2).groupby(context).mean().to_numpy(dtype=float)
        means = off.groupby(context).mean().to_numpy(dtype=float)
        square = t_tests(squares[None], bounds=(0.0, 1.0)).first
        mean = t_tests(means[None], bounds=(-1.0, 1.0)).first
        rmse, low, high = np.sqrt([square[name] for name in ("mean", "low", "high")]).tolist()
        rows.append(
            {
                "elicitation": name,
                "rmse": rmse,
                "low": low,
                "high": high,
                "error": square["standard_error"] / (2 * rmse) if rmse else np.nan,
                "bias": mean["mean"],
                "bias_low": mean["low"],
                "bias_high": mean["high"],
                "contexts": int(np.isfinite(squares).sum()),
                "answers": int(off.notna().sum()),
            }
        )
    return pd.DataFrame(rows)


def reliability(data: BeliefDecisions, elicitation: str = "plain") -> pd.DataFrame:
    """Return mean stated beliefs by exact probability, one row per bin that has contexts.

    Returns
    -------
    DataFrame : Columns bin, exact (mean of p*), stated (mean over contexts of their mean p), low,
        high (Student's 95% interval over contexts, within 0 and 1) and contexts.
    """
    frame = data.frame[[elicitation, "posterior"]].assign(context=data.context)
    by = frame.dropna().groupby("context")[[elicitation, "posterior"]].mean()
    position = np.minimum((by["posterior"] * BINS).astype(int), BINS - 1)
    rows = []
    for k, group in by.groupby(position):
        tests = t_tests(group[elicitation].to_numpy(dtype=float)[None], bounds=(0.0, 1.0)).first
        rows.append(
            {
                "bin": int(str(k)),
                "exact": float(group["posterior"].mean()),
                "stated": tests["mean"],
                "low": tests["low"],
                "high": tests["high"],
                "contexts": len(group),
            }
        )
    columns = ["bin", "exact", "stated", "low", "high", "contexts"]
    return pd.DataFrame(rows, columns=columns)
