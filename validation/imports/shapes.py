"""Tables in which a row is a day, a balloon or a play, made into trials."""

from __future__ import annotations

import numpy as np
import pandas as pd

from knownminds.environments import Environment, games_of_plays, pumps_of_balloons, stages_of_days
from knownminds.environments.formats.reshaped import FORCED

from .account import DERIVED, LEFT_OUT, UNREADABLE, CellTable, Tally

ENOUGH = 20  # days, after which chance alone leaves no planet without a visit

# By experiment, the columns by which a shape of others is known.
SHAPES = {
    "two_step": ("action1", "action2", "reward"),
    "balloon_risk": ("pumps", "exploded"),
    "temporal_discounting": ("item", "action"),  # a questionnaire, whose answers tell its sums
    "horizon": ("game", "play", "action", "reward"),
}


def reshaped(
    table: CellTable,
    frame: pd.DataFrame,
    environment: Environment,
    tally: Tally,
    strict: bool = True,
) -> pd.DataFrame:
    """Return trials of a table in which a row is a day, a balloon or a play.

    Parameters
    ----------
    strict : Whether a row that cannot be ends the import; else it is left out and counted.
    """
    if environment.name == "two_step":
        return _days(table, frame, environment, tally)
    if environment.name == "balloon_risk":
        return _balloons(table, frame, environment, tally, strict)
    columns = frame.drop(columns=[name for name in ("trial",) if name in frame])
    kept = whole_games(table, columns, tally, strict)
    if not kept.any():
        return columns.iloc[:0]
    whole = columns[kept].drop(columns=["plays"], errors="ignore").reset_index(drop=True)
    games = games_of_plays(whole)
    return games.assign(outcome=np.where(games["action"].isna(), "empty", "ok"))


def _days(
    table: CellTable, frame: pd.DataFrame, environment: Environment, tally: Tally
) -> pd.DataFrame:
    if "state" not in frame:
        what = "the planet, from the second choice (0, 1: the first; 2, 3: the second)"
        second = frame["action2"].dropna()
        if len(second) >= ENOUGH and second.max() < 2:
            raise ValueError(
                f"The second choice of a day is 1 to 4, of both planets; the {len(second)} days of "
                f"{table.file} have 1 and 2 alone. If they are aliens of any planet, map the "
                "planet too: --map state=COLUMN."
            )
        tally.mark(DERIVED, what, table, frame["action2"].notna())
        frame = frame.assign(state=frame["action2"] // 2, action2=frame["action2"] % 2)
    unknown_planet = frame["action1"].notna() & frame["state"].isna()
    tally.mark(LEFT_OUT, "a day that was flown and has no planet", table, unknown_planet)
    table, frame = table.keep(~unknown_planet), frame[~unknown_planet].reset_index(drop=True)
    unpaid = frame["action2"].notna() & frame["reward"].isna()
    tally.mark(UNREADABLE, "an answer whose reward is missing", table, unpaid)
    frame["action2"] = frame["action2"].where(~unpaid)
    tally.mark(DERIVED, "two stages of each day", table, frame["action1"].notna())
    return stages_of_days(frame, transition=float(environment.settings["transition"]))


def _balloons(
    table: CellTable, frame: pd.DataFrame, environment: Environment, tally: Tally, strict: bool
) -> pd.DataFrame:
    maxima = tuple(environment.settings["maxima"])
    keys = [key for key in ("subject", "session") if key in frame]
    if "maximum" not in frame:
        if "type" not in frame and len(maxima) > 1:
            raise ValueError(
                f"The maximum of balloons is in no column of {table.file}; give it, one number in "
                "brackets: --set maxima=[128]."
            )
        kinds = frame["type"] if "type" in frame else pd.Series(0.0, index=frame.index)
        frame = frame.assign(maximum=np.array(maxima)[kinds.to_numpy(dtype=np.int64)])
        tally.mark(DERIVED, "maxima of balloons, from the setting", table, np.ones(len(table)))
    right = frame[["pumps", "exploded", "maximum"]].notna().all(axis=1)
    tally.mark(LEFT_OUT, "a balloon without pumps or end", table, ~right)
    table, frame = table.keep(right), frame[right].reset_index(drop=True)
    if not strict:
        pumps, maximum = frame["pumps"], frame["maximum"]
        fits = pumps.between(0, maximum) & (pumps % 1 == 0)
        fits &= np.where(frame["exploded"] == 1, pumps > 0, pumps < maximum)
        tally.mark(LEFT_OUT, "pumps and end of a balloon do not fit", table, ~fits)
        table, frame = table.keep(fits), frame[fits].reset_index(drop=True)
    if "balloon" not in frame:
        frame["balloon"] = frame.groupby(keys, sort=False).cumcount()
    tally.mark(DERIVED, "a row for each pump, and one for the stop", table, np.ones(len(table)))
    columns = frame.drop(columns=["trial", *({"type"} & set(frame))])
    return pumps_of_balloons(columns, maxima=maxima)


def whole_games(
    table: CellTable, frame: pd.DataFrame, tally: Tally, strict: bool = True
) -> pd.Series[bool]:
    """Return which rows are plays of whole games; the others are left out and counted.

    A free play of which neither choice nor points are there was not made.

    Parameters
    ----------
    frame : Columns subject, game, play (from 0), action, reward; and if they are known plays (of
        the game in all), true_mean_0, true_mean_1.
    strict : Whether plays that are not numbered from 0 on are left to `games_of_plays` to refuse.
    """
    keys = [frame[key] for key in ("subject", "session", "game") if key in frame]
    made = frame[["action", "reward"]].notna().all(axis=1)
    unmade = frame[["action", "reward"]].isna().all(axis=1) & (frame["play"] >= FORCED)
    right = (made | unmade) & frame[["game", "play"]].notna().all(axis=1)
    plays = frame["play"].groupby(keys, sort=False, dropna=False)
    if not strict:
        right &= (frame["play"] == plays.cumcount()) & (plays.transform("size") > FORCED)
    if "plays" in frame:
        right &= plays.transform("size") == frame["plays"]
    moved = pd.Series(False, index=frame.index)
    for name in {"true_mean_0", "true_mean_1"} & set(frame):
        right &= strict | frame[name].notna()
        moved |= frame[name].groupby(keys, sort=False, dropna=False).transform("nunique") > 1
    tally.mark(LEFT_OUT, "a play of a game whose true means change", table, moved)
    whole = right.groupby(keys, sort=False, dropna=False).transform("all") & ~moved
    tally.mark(LEFT_OUT, "a play of a game that is not whole", table, ~whole & ~moved)
    tally.mark(UNREADABLE, "a play that was not made", table, whole & unmade)
    tally.mark(DERIVED, "running means and counts of both machines", table, whole)
    tally.mark(
        DERIVED, "forced plays, shown and no trials", table, whole & (frame["play"] < FORCED)
    )
    return whole
