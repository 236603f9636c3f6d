"""How much parameters and measures change when the same agents are asked in other conditions."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np

from knownminds.environments.later import pandas as pd
from knownminds.inference.measure import t_tests

from .domain_differences import adjust


def robustness(
    table: pd.DataFrame, quantities: Sequence[str], factors: Sequence[str], agent: str = "agent"
) -> pd.DataFrame:
    """Compare quantities between the levels of factors, everything else being equal.

    For each pair of levels of a factor, an agent's difference is the mean over the units that are
    alike in all other factors. Agents without a unit at either level are counted, not filled in. To
    compare quantities with each other, the size of a difference is given in standard deviations of
    the quantity over all units.

    Parameters
    ----------
    table : One row per unit (an agent in a condition), with a column for each quantity.
    quantities : Columns that are compared, such as measures and parameters.
    factors : Columns that name conditions, such as content and prompt.
    agent : Column that names agents.

    Returns
    -------
    pandas.DataFrame
        One row per factor, pair of its levels and quantity: mean difference second - first over
        agents, sd, low, high (95%, t interval), p_value, p_adjusted (Benjamini and Hochberg 1995,
        over all rows), n (agents with both), missing (agents without one of them), size (mean
        absolute difference in units of the quantity's spread), most and least (the agents that
        change most and least).

    Raises
    ------
    ValueError : If a column is missing, a unit stands twice, or no factor has two levels.
    """
    names = [agent, *factors, *quantities]
    for name in names:
        if name not in table:
            raise ValueError(
                f"Robustness reads the columns {', '.join(names)}; there is no {name!r} among "
                f"{', '.join(map(str, table.columns))}."
            )
    twice = table.duplicated([agent, *factors])
    if twice.any():
        row = table[twice].iloc[0]
        text = ", ".join(f"{name} {row[name]!r}" for name in (agent, *factors))
        raise ValueError(
            f"An agent has one value in each condition; got two of {text}. Name the column that "
            "tells them apart as a factor, or average them."
        )
    varied = [name for name in factors if table[name].nunique() > 1]
    if not varied:
        raise ValueError(
            f"Conditions differ in {' or '.join(map(repr, factors)) or 'a factor'}; got a single "
            "one. Name a column with several values."
        )
    with np.errstate(invalid="ignore"):
        spread = {q: float(table[q].std(ddof=1)) for q in quantities}
    rows: list[dict[str, Any]] = []
    for factor in varied:
        others = [name for name in factors if name != factor]
        for first, second in combinations(dict.fromkeys(table[factor]), 2):
            for quantity in quantities:
                column = _differences(table, quantity, factor, (first, second), agent, others)
                pair = {"factor": factor, "first": str(first), "second": str(second)}
                known = column.dropna()
                size = known.abs() / spread[quantity] if spread[quantity] > 0 else known * 0.0
                rows.append(pair | {"quantity": quantity} | _summary(column, size))
    adjust(rows)
    return pd.DataFrame(rows)


def _differences(
    table: pd.DataFrame,
    quantity: str,
    factor: str,
    levels: tuple[Any, Any],
    agent: str,
    others: Sequence[str],
) -> pd.Series[float]:
    """Return each agent's mean difference between two levels; NaN where there is no pair."""
    part = table[table[factor].isin(levels)]
    wide = part.set_index([agent, *others, factor])[quantity].unstack(factor)
    for level in levels:
        if level not in wide:
            wide[level] = np.nan
    difference = wide[levels[1]] - wide[levels[0]]
    column: pd.Series[float] = difference.groupby(level=0, sort=False).mean()
    return column


def _summary(column: pd.Series[float], size: pd.Series[float]) -> dict[str, Any]:
    """Test the differences of agents, and name who changes most and least."""
    test = t_tests(np.array([column.to_list()], dtype=float)).first
    result = size.dropna()
    return {
        "mean": test["mean"],
        "sd": float(test["standard_error"] * np.sqrt(test["n"])),
        "low": test["low"],
        "high": test["high"],
        "p_value": test["p_value"],
        "p_adjusted": np.nan,
        "n": test["n"],
        "missing": int(column.isna().sum()),
        "size": float(result.mean()) if len(result) else np.nan,
        "most": str(result.idxmax()) if len(result) else "",
        "least": str(result.idxmin()) if len(result) else "",
    }
