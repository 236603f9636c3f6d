"""The horizon task of people in the layout of Wilson and others' published table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from knownminds.environments import games_of_plays

from .account import DERIVED, LEFT_OUT, UNREADABLE, Table, Tally
from .formats import Family, Format
from .tables import within

_UNEQUAL = {1: (3, 1), -1: (1, 3), 0: (2, 2)}  # Info -> forced plays of the left and right machine


def _people(table: Table, tally: Tally, given: Mapping[str, Any]) -> pd.DataFrame:
    """Read plays, forced ones included; `Block` is the game, and 1 stands for left."""
    subject = table.cells["Subject"]
    rules: dict[str, dict[str, Any]] = {
        "Block": {"least": 1, "most": 1e6, "whole": True},
        "Trial": {"least": 1, "most": 10, "whole": True},
        "Horizon": {"allowed": (5, 10)},
        "Info": {"allowed": (-1, 0, 1)},
        "Choice": {"allowed": (0, 1)},
        "Outcome": {"least": -1000, "most": 1000},
        "mu_L": {"least": -1000, "most": 1000},
        "mu_R": {"least": -1000, "most": 1000},
    }
    column = {name: within(table, name, tally, **how) for name, how in rules.items()}
    forced = column["Trial"] <= 4
    chosen = np.isfinite(column["Choice"]) & np.isfinite(column["Outcome"])
    # A play that was not made: nothing was chosen and no points were seen.
    empty = table.cells[["Choice", "Outcome"]].isna().all(axis=1).to_numpy() & ~forced
    shown = [values for name, values in column.items() if name not in ("Choice", "Outcome")]
    right = subject.notna().to_numpy() & np.isfinite(shown).all(axis=0) & (chosen | empty)
    key = pd.DataFrame({"subject": subject.fillna(""), "game": np.nan_to_num(column["Block"])})
    game = key.groupby(["subject", "game"], sort=False).ngroup().to_numpy()
    plays = pd.Series(column["Trial"]).groupby(game)
    right &= plays.transform("size").to_numpy() == column["Horizon"]
    right &= column["Trial"] - 1 == plays.cumcount().to_numpy()
    left = column["Choice"] == 1
    seen = pd.Series(left & forced).groupby(game).transform("sum").to_numpy()
    expected = np.select(
        [column["Info"] == info for info in _UNEQUAL], [n for n, _ in _UNEQUAL.values()]
    )
    right &= seen == expected
    for name in ("Horizon", "Info", "mu_L", "mu_R"):
        right &= pd.Series(column[name]).groupby(game).transform("nunique").to_numpy() == 1
    kept = pd.Series(right).groupby(game).transform("all").to_numpy()
    tally.mark(LEFT_OUT, "a play of a game that is not whole, or whose Info is not what was seen",
               table, ~kept)  # fmt: skip
    tally.mark(UNREADABLE, "a play that was not made", table, kept & empty)
    frame = pd.DataFrame({
        "subject": subject, "game": column["Block"] - 1, "play": column["Trial"] - 1,
        "action": np.where(chosen, 1 - column["Choice"], np.nan),
        "reward": np.where(chosen, column["Outcome"], np.nan),
        "outcome": np.where(chosen, "ok", "empty"),
        "true_mean_0": column["mu_L"], "true_mean_1": column["mu_R"], "info": column["Info"],
    })[kept].reset_index(drop=True)  # fmt: skip
    if "RT" in table.cells:
        frame["rt_s"] = within(table, "RT", tally, least=0)[kept]
    if not len(frame):
        return frame
    tally.mark(DERIVED, "left (Choice 1) is machine 0, right is machine 1", table, kept)
    tally.mark(DERIVED, "running means and counts of both machines", table, kept)
    tally.mark(DERIVED, "forced plays, shown and no trials", table, kept & forced)
    whole = ["game", "play", "info"]
    return games_of_plays(frame.astype(dict.fromkeys(whole, np.int64)))


def _n_games(frame: pd.DataFrame, tables: Sequence[Table]) -> dict[str, Any]:
    return {"n_games": int(frame["game"].max()) + 1, "long_horizon": 6}


HORIZON = Family(
    "horizon",
    (
        Format(
            "horizon",
            "horizon",
            frozenset(
                {
                    "Subject",
                    "Block",
                    "Trial",
                    "Horizon",
                    "Info",
                    "Choice",
                    "Outcome",
                    "mu_L",
                    "mu_R",
                }
            ),
            _people,
            settings=_n_games,
            help="people's games of 5 or 10 plays, four of them forced",
            also=frozenset({"RT"}),
        ),
    ),
)
