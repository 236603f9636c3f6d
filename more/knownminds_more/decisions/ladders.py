"""Indifference points of ladders of adjusted amounts, and the area under their curve."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from knownminds.agents.parameters import Array
from knownminds.environments import Trials
from knownminds.environments.later import pandas as pd
from knownminds.inference.measure import Dial, sessions_of, with_columns
from knownminds.inference.session_measure import SessionRows, session_measure

from .adjusting_amount import LATER

COLUMNS = ("sooner_amount", "later_amount", "later_delay", "ladder", "action")


def indifference_points(trials: Trials) -> pd.DataFrame:
    """Return, for each ladder, the sum now that is worth as much as the later sum.

    Parameters
    ----------
    trials : Trials of `adjusting_amount`.

    Returns
    -------
    pandas.DataFrame
        A row per ladder: subject, session, ladder, amount (the later sum, negative for a loss),
        delay (months), point (the sum that would be offered next), and low and high, the bounds
        that the answers set to the point. Sums have the sign of the later one, and low <= point <=
        high in size. They are NaN without an answer.

    Raises
    ------
    ValueError : If a column is missing.
    """
    frame = with_columns(trials, "indifference_points", COLUMNS)
    columns = {name: trials.numbers(name) for name in COLUMNS}
    points = _points(sessions_of(trials), columns)
    named = frame[["subject", "session"]].iloc[points.pop("row").astype(int)].reset_index(drop=True)
    sign = np.sign(points["amount"])
    return named.assign(
        ladder=points["ladder"].astype(int),
        amount=points["amount"],
        delay=points["delay"],
        **{name: sign * points[name] for name in ("point", "low", "high")},
    )


def area_under_curve(points: pd.DataFrame) -> pd.DataFrame:
    """Return the area under the curve of indifference points over delay, by session and amount.

    Points are shares of the later sum, and delays are shares of the longest one. The curve begins
    at 1 without delay, and is straight between delays (Myerson, Green and Warusawitharana 2001). An
    area of 1 means no discounting. If ladders were climbed several times, the mean point at each
    delay is taken.

    Parameters
    ----------
    points : The table from `indifference_points`.

    Returns
    -------
    pandas.DataFrame
        A row per subject, session and amount: area, and low and high, the areas under the lower and
        the upper ends of the points' intervals.
    """
    by = ["subject", "session", "amount"]
    shares = points.assign(**{n: points[n] / points["amount"] for n in ("point", "low", "high")})
    rows = []
    for key, group in shares.groupby(by, sort=False):
        at = group.groupby("delay")[["point", "low", "high"]].mean()
        delay = np.concatenate([[0.0], at.index.to_numpy(dtype=float)])
        areas = {
            name: float(np.trapezoid(np.concatenate([[1.0], at[name]]), delay / delay[-1]))
            for name in ("point", "low", "high")
        }
        rows.append((*key, *areas.values()))
    return pd.DataFrame(rows, columns=[*by, "area", "low", "high"])


def _points(session: NDArray[np.int64], columns: Mapping[str, Array]) -> dict[str, Array]:
    """Return the points of all ladders, in size, with a row of each; each [ladders]."""
    key = np.column_stack([session, columns["ladder"]])
    _, row, code = np.unique(key, axis=0, return_index=True, return_inverse=True)
    code, n = code.ravel(), len(row)
    amount = columns["later_amount"][row]
    size, action = np.abs(columns["sooner_amount"]), columns["action"]
    answered = np.isfinite(action)
    above = answered & ((action == LATER) == (columns["later_amount"] > 0))
    low, high = np.zeros(n), np.abs(amount)
    np.maximum.at(low, code[above], size[above])
    np.minimum.at(high, code[answered & ~above], size[answered & ~above])
    low[np.bincount(code, answered, n) == 0] = np.nan
    high = np.where(np.isnan(low), np.nan, high)
    return {
        "row": row,
        "session": session[row].astype(float),
        "ladder": columns["ladder"][row],
        "amount": amount,
        "delay": columns["later_delay"][row],
        "point": (low + high) / 2,
        "low": low,
        "high": high,
    }


@session_measure(
    name="area_under_curve",
    summary="area under the discounting curve of gains, read off ladders",
    source="Myerson, Green and Warusawitharana 2001",
    environments=("adjusting_amount",),
    columns=COLUMNS,
    reason="a ladder of gains has no answer",
    bounds=(0.0, 1.0),
    violator="hyperbolic_discounter",
    dial=Dial({"k": -1.0}, reach=2.0, steps=9),
)
def area_of_gains(rows: SessionRows) -> Array:
    """Area under the curve of indifference points of gains, read off ladders.

    It is 1 if later sums are worth as much as sums now, and near 0 if they are worth nothing. No
    form of discounting is assumed. Several later sums are averaged. `area_under_curve` also has the
    areas of losses, and bounds that follow from the steps of ladders.
    """
    points = pd.DataFrame(_points(rows.session, rows.columns))
    gains = points[points["amount"] > 0].assign(share=points["point"] / points["amount"])
    curves = gains.groupby(["session", "amount", "delay"])["share"].mean(skipna=False)
    table = curves.unstack("delay")
    delays = np.array([0.0, *table.columns])
    shares = np.column_stack([np.ones(len(table)), table.to_numpy()])
    areas = pd.Series(np.trapezoid(shares, delays / delays[-1], axis=1), table.index)
    return areas.groupby("session").mean().reindex(range(rows.n)).to_numpy(dtype=float)
