"""Turns tables in the shapes of other projects into one row per trial of ours.

A day of the two-step task, a balloon, a play of a game, or a block known by its accuracy is one row
(or several) elsewhere and something else here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from knownminds.environments.later import pandas as pd

NOWHERE = -1  # the state at the first stage of a day
FORCED = 4  # plays of a game of `horizon` that are forced


def stages_of_days(
    days: pd.DataFrame,
    *,
    shuttles: Sequence[Any] = (0, 1),
    planets: Sequence[Any] = (0, 1),
    aliens: Sequence[Sequence[Any]] = ((0, 1), (0, 1)),
    transition: float = 0.7,
) -> pd.DataFrame:
    """Return a table of days, one row each, as the trials of `two_step`, one row per stage.

    Parameters
    ----------
    days : Columns subject, trial (number of the day, from 0), action1, state, action2, reward, and
        session if there are several. If action1 or action2 is blank, nothing was chosen; without
        action1, the rest of the row is ignored. Other columns are kept.
    shuttles, planets : Names in the columns action1 and state; shuttle k commonly leads to planet
        k.
    aliens : Names in the column action2 on each planet.
    transition : Probability of a common transition.

    Raises
    ------
    ValueError : If a column is missing, or a row holds a name that is not on offer.
    """
    _need(days, "days", ("subject", "trial", "action1", "state", "action2", "reward"))
    flight = _codes(days["action1"], shuttles, "action1")
    flown = ~np.isnan(flight)
    planet = _codes(days["state"].where(flown), planets, "state")
    lost = np.flatnonzero(flown & np.isnan(planet))
    if len(lost):
        raise ValueError(
            f"A day with action1 has a state; row {lost[0] + 1} has none. "
            "Fill it in, or leave action1 blank."
        )
    deal = np.full(len(days), np.nan)
    for number, names in enumerate(aliens):
        here = planet == number
        deal[here] = _codes(days["action2"].where(here), names, "action2")[here]
    paid = pd.to_numeric(days["reward"], errors="coerce").to_numpy(dtype=float)
    common = days.drop(columns=["trial", "action1", "state", "action2", "reward"])
    common = common.assign(transition=transition)
    at = 2 * days["trial"].to_numpy(dtype=np.int64)
    first = common.assign(trial=at, stage=0, state=NOWHERE, action=flight, reward=np.nan)
    second = common.assign(
        trial=at + 1,
        stage=1,
        state=planet,
        action=deal,
        reward=np.where(np.isnan(deal), np.nan, paid),
    )[flown]
    both = pd.concat([first, second.astype({"state": np.int64})])
    frame = both.sort_index(kind="stable").reset_index(drop=True)
    return frame.assign(outcome=np.where(frame["action"].isna(), "malformed", "ok"))


def pumps_of_balloons(balloons: pd.DataFrame, *, maxima: Sequence[int]) -> pd.DataFrame:
    """Return a table of balloons, one row each, as the trials of `balloon_risk`, one per decision.

    A balloon that was kept becomes its pumps and a stop. A balloon that burst becomes its pumps,
    and the last one takes back what the others brought.

    Parameters
    ----------
    balloons : Columns subject, balloon (from 0, in the order of the session), pumps (the bursting
        one included), exploded (0 or 1), maximum, and session if there are several. Others are
        kept.
    maxima : Maximum of each type, in the order of the types.

    Raises
    ------
    ValueError : If a column is missing, or a balloon has more pumps than it takes, burst without a
        pump, or stayed whole at its maximum.
    """
    _need(balloons, "balloons", ("subject", "balloon", "pumps", "exploded", "maximum"))
    pumps, maximum = (balloons[name].to_numpy(dtype=np.int64) for name in ("pumps", "maximum"))
    burst = balloons["exploded"].to_numpy(dtype=bool)
    kind = _codes(balloons["maximum"], list(maxima), "maximum")
    for wrong, rule in (
        ((pumps < 0) | (pumps > maximum), "A balloon takes at most as many pumps as its maximum"),
        (burst & (pumps == 0), "A balloon bursts at a pump"),
        (~burst & (pumps == maximum), "A balloon that is pumped to its maximum bursts"),
    ):
        if wrong.any():
            first = int(np.flatnonzero(wrong)[0])
            state = "burst" if burst[first] else "stayed whole"
            raise ValueError(
                f"{rule}; row {first + 1} {state} after {pumps[first]} pumps of {maximum[first]}. "
                "Correct the row, or leave it out."
            )
    decisions = pumps + ~burst
    row = np.repeat(np.arange(len(balloons)), decisions)
    start = np.repeat(np.cumsum(decisions) - decisions, decisions)
    pump = np.arange(len(start)) - start + 1
    last = pump == decisions[row]
    frame = balloons.drop(columns=["pumps", "exploded", "maximum"]).iloc[row]
    frame = frame.reset_index(drop=True).assign(
        type=kind[row].astype(np.int64),
        pump=pump,
        action=np.where(last & ~burst[row], 0, 1),
        reward=np.where(last, np.where(burst[row], 1 - pump, 0), 1),
    )
    keys = [name for name in ("subject", "session") if name in frame]
    number = frame.groupby(keys, sort=False).cumcount()
    numbered: pd.DataFrame = frame.assign(trial=number)
    return numbered


def games_of_plays(plays: pd.DataFrame) -> pd.DataFrame:
    """Return a table of plays, forced ones included, as the trials of `horizon`, one per free play.

    What a free play shows follows from the earlier plays of the game: how often each machine was
    played, and its mean points.

    Parameters
    ----------
    plays : Columns subject, game (from 0), play (from 0, the first four forced), action, reward,
        and session if there are several; true_mean_0 and true_mean_1 if they are known. Others are
        kept.

    Raises
    ------
    ValueError : If a column is missing, or a game does not have its forced plays and at least one
        free play, numbered from 0 on.
    """
    _need(plays, "plays", ("subject", "game", "play", "action", "reward"))
    keys = [name for name in ("subject", "session", "game") if name in plays]
    game = plays.groupby(keys, sort=False).ngroup().to_numpy()
    order = np.lexsort((plays["play"], game))
    table, game = plays.iloc[order].reset_index(drop=True), game[order]
    games = table.groupby(game, sort=False)
    size = games["play"].transform("size")
    wrong = np.flatnonzero((table["play"] != games.cumcount()) | (size <= FORCED))
    if len(wrong):
        at = table.iloc[wrong[0]]
        raise ValueError(
            f"A game has {FORCED} forced plays and free ones, numbered from 0 on; game "
            f"{at['game']:g} of subject {at['subject']!r} has another number at play "
            f"{at['play']:g}. Leave the game out."
        )
    shown = {}
    for arm in (0, 1):
        here = (table["action"] == arm).astype(float)
        points = table["reward"].astype(float).where(here > 0, 0.0)
        count = here.groupby(game, sort=False).cumsum() - here
        total = points.groupby(game, sort=False).cumsum() - points
        shown[f"count_{arm}"] = count
        shown[f"mean_{arm}"] = total / count.where(count > 0)
    for play in range(FORCED):
        forced = table["play"] == play
        for name, column in (("forced", "action"), ("forced_points", "reward")):
            grouped = table[column].where(forced).groupby(game, sort=False)
            shown[f"{name}_{play + 1}"] = grouped.transform("max")
    free, horizon = table["play"] - FORCED, size - FORCED
    frame = table.assign(**shown, horizon=horizon, play=free)
    longest = int(horizon.max())
    frame = frame.assign(trial=frame["game"] * longest + free)
    whole = ["count_0", "count_1", *(f"forced_{k + 1}" for k in range(FORCED))]
    frame = frame[free >= 0].reset_index(drop=True)
    return frame.astype({name: np.int64 for name in whole})


def better_machine(
    action: NDArray[Any], accurate: NDArray[Any], last: NDArray[np.bool_]
) -> NDArray[Any]:
    """Return which of two machines was better on each trial, from whether the choice was accurate.

    Parameters
    ----------
    action, accurate : 0 or 1, [trials].
    last : Whether accuracy was judged after the machines had changed places, [trials].
    """
    right = np.where(last, 1 - accurate, accurate)
    return np.where(right == 1, action, 1 - action)


def blocks_of_means(
    mean_0: NDArray[Any], mean_1: NDArray[Any], session: NDArray[Any]
) -> NDArray[np.int64]:
    """Return the block of each trial; a block ends where the better of two machines changes.

    Parameters
    ----------
    mean_0, mean_1 : True means of that trial, [trials].
    session : The session of each trial, [trials]; trials of a session follow one another.
    """
    better = np.asarray(mean_1, dtype=float) > np.asarray(mean_0, dtype=float)
    begins = np.append(True, np.asarray(session)[1:] != np.asarray(session)[:-1])
    turns = np.append(False, better[1:] != better[:-1]) & ~begins
    counted = np.cumsum(turns)
    first = np.maximum.accumulate(np.where(begins, np.arange(len(begins)), 0))
    blocks: NDArray[np.int64] = counted - counted[first]
    return blocks


def _need(table: pd.DataFrame, what: str, wanted: Sequence[str]) -> None:
    missing = [name for name in wanted if name not in table]
    if missing:
        raise ValueError(
            f"A table of {what} has the columns {', '.join(wanted)}; "
            f"{', '.join(map(repr, missing))} is missing among "
            f"{', '.join(map(str, table.columns))}. Rename yours."
        )


def _codes(column: pd.Series[Any], names: Sequence[Any], title: str) -> NDArray[np.float64]:
    """Return the position of each value among its names, NaN where it is blank."""
    blank = column.isna() | (column.astype("str") == "")
    codes = pd.Index(list(names)).get_indexer(pd.Index(column.where(~blank)))
    wrong = np.flatnonzero((codes < 0) & ~blank.to_numpy())
    if len(wrong):
        raise ValueError(
            f"The column {title!r} holds {', '.join(map(str, names))} here; row {wrong[0] + 1} has "
            f"{column.iloc[wrong[0]]!r}. Say what is on offer with shuttles=, planets= and aliens=."
        )
    return np.where(codes < 0, np.nan, codes).astype(float)
