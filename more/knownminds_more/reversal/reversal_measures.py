"""What people do after a reversal, and after wins and losses.

Plays after a reversal count until the next reversal or the end of the session. To leave out blocks
in which a player never changed would hide such players. Plays without an answer are ignored.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from knownminds.agents.parameters import Array
from knownminds.inference.measure import Dial
from knownminds.inference.session_measure import (
    DeclaredMeasure,
    SessionRows,
    mean_by,
    session_measure,
)

ON_END = 3  # so many choices of the better machine are the criterion
AFTER_REVERSALS: dict[str, Any] = {
    "environments": ("reversal_learning",),
    "violator": "rescorla_wagner",
    "columns": ("better", "action"),
    "reason": "no play after a reversal",
}


@dataclass(frozen=True)
class _Blocks:
    """Answered plays in the blocks between reversals.

    Parameters
    ----------
    block : number of the block of each answered play, ascending, [plays]
    right : whether the better machine was chosen, [plays]
    start, count : first answered play of each block, and how many it has, [blocks]
    session : session of each block, [blocks]
    counted : blocks that follow a reversal and have an answered play, [blocks]
    """

    block: NDArray[np.int64]
    right: NDArray[np.bool_]
    start: NDArray[np.int64]
    count: NDArray[np.int64]
    session: NDArray[np.int64]
    counted: NDArray[np.bool_]

    @classmethod
    def of(cls, rows: SessionRows) -> _Blocks:
        """Find the blocks; plays whose better machine is unknown belong to no block."""
        known = np.isfinite(rows["better"])
        session, better, action = rows.session[known], rows["better"][known], rows["action"][known]
        first = np.diff(session, prepend=-1) != 0
        begins = first | (np.diff(better, prepend=-1.0) != 0)
        block = np.cumsum(begins) - 1
        n = int(begins.sum())
        answered = np.isfinite(action)
        count = np.bincount(block[answered], minlength=n)
        return cls(
            block=block[answered],
            right=(action == better)[answered],
            start=np.cumsum(count) - count,
            count=count,
            session=session[begins],
            counted=~first[begins] & (count > 0),
        )

    def mean(self, number: Array, n_sessions: int) -> Array:
        """Return the mean of a number [blocks] over the counted blocks, [sessions]."""
        return mean_by(self.session[self.counted], number[self.counted], n_sessions)


@session_measure(
    name="perseverative_errors",
    summary="choices of the formerly better machine on end, after a reversal",
    source="Cools, Clark, Owen and Robbins 2002; den Ouden et al. 2013",
    bounds=(0.0, np.inf),
    dial=Dial({"kappa": 1.0}, reach=2.0, steps=9),
    **AFTER_REVERSALS,
)
def perseverative_errors(rows: SessionRows) -> Array:
    """Mean number of choices in a row, after a reversal, of the formerly better machine.

    Errors count until the better machine is chosen for the first time; later returns do not count.
    Random choices make 1, as half of the runs end at once; a player who always knows makes none.
    """
    blocks = _Blocks.of(rows)
    before = np.concatenate([[0], np.cumsum(blocks.right)])
    never = before[1:] == before[blocks.start][blocks.block]
    errors = np.bincount(blocks.block, never, len(blocks.count)).astype(float)
    return blocks.mean(errors, rows.n)


@session_measure(
    name="trials_to_criterion",
    summary="plays after a reversal until the better machine was chosen three times on end",
    source="Cools, Clark, Owen and Robbins 2002",
    bounds=(1.0, np.inf),  # below the criterion if a session ends
    dial=Dial({"alpha": -1.0}, reach=2.0, steps=9),
    **AFTER_REVERSALS,
)
def trials_to_criterion(rows: SessionRows) -> Array:
    """Mean plays after a reversal until the better machine was chosen three times in a row.

    The plays of the criterion count too. If it is not met before the next reversal, or before the
    end of the session, all plays of the block count, so that long blocks have higher values. In
    blocks of 10 to 15 plays, random choices need 8.6, and a player who always knows needs 3. Cools
    et al. (2002) and others required 8 and more in a row, which is impossible if blocks reverse
    after that many plays.
    """
    blocks = _Blocks.of(rows)
    play = np.arange(len(blocks.block)) - blocks.start[blocks.block] + 1
    since = np.maximum.accumulate(np.where(blocks.right, 0, np.arange(len(play)) + 1))
    met = np.minimum(np.arange(len(play)) + 1 - since, play) >= ON_END
    plays = blocks.count.copy()
    np.minimum.at(plays, blocks.block[met], play[met])
    return blocks.mean(plays.astype(float), rows.n)


def stay_or_shift(after: Literal["win", "loss"]) -> DeclaredMeasure:
    """How often a choice is repeated after a win, or left after a loss.

    It counts answered plays whose next play is answered, too. A win is a reward above 0; a loss is
    any other. Random choices do either in half of the cases, within some thousandths: in short
    sessions, streaks go on a little less often than they end (Miller and Sanjurjo 2018). To do
    either always is not right, as wins and losses mislead.

    Parameters
    ----------
    after : "win" for the share of wins after which the choice is repeated, "loss" for the share of
        losses after which it is left.
    """
    win = after == "win"

    def share(rows: SessionRows) -> Array:
        action, reward = rows["action"], rows["reward"]
        counts = rows.followed() & np.isfinite(action[:-1] + action[1:] + reward[:-1])
        counts &= (reward[:-1] > 0) == win
        done = (action[1:] == action[:-1]) == win
        return mean_by(rows.session[:-1][counts], done[counts].astype(float), rows.n)

    what = "wins after which a choice is repeated" if win else "losses after which it is left"
    return session_measure(
        name="win_stay" if win else "lose_shift",
        summary=f"share of {what}",
        source="Worthy, Hawthorne and Otto 2013; den Ouden et al. 2013",
        environments=("reversal_learning",),
        bounds=(0.0, 1.0),
        violator="win_stay_lose_shift",
        dial=Dial({"p_stay" if win else "p_shift": 1.0}, reach=2.0, steps=9),
        columns=("action", "reward"),
        reason=f"no {after} before a play",
    )(share)


STAY_AND_SHIFT = (stay_or_shift("win"), stay_or_shift("loss"))
