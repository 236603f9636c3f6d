"""Tables of hBayesDM: tab-separated, `subjID`, choices counted from 1, order in the file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from knownminds.environments import pumps_of_balloons, stages_of_days

from .account import DERIVED, LEFT_OUT, TOLD, UNREADABLE, Table, Tally
from .formats import Family, Format
from .tables import answers, identified, stimuli, within

_MOST = 1e6  # of a sum, a delay, a gain or a loss: beyond, a cell is damaged


def _lower(table: Table) -> Table:
    """Return the table with names as the package compares them: no case, no underscores."""
    names = {name: str(name).lower().replace("_", "") for name in table.cells.columns}
    twice = sorted({name for name in names.values() if list(names.values()).count(name) > 1})
    if twice:
        raise ValueError(
            "Columns differ by more than case and underscores; "
            f"{table.file} has {twice[0]!r} twice."
        )
    return table.named(names)


def _people(table: Table, tally: Tally) -> tuple[Table, pd.DataFrame]:
    table = identified(table, "subjid", tally)
    subject = table.cells["subjid"].astype("str")
    tally.mark(DERIVED, "trials numbered by their order in the file", table, np.ones(len(table)))
    return table, pd.DataFrame(
        {"subject": subject, "trial": subject.groupby(subject, sort=False).cumcount()}
    )


def _choices(table: Table, tally: Tally, most: int) -> dict[str, Any]:
    choice, outcome, raw = answers(table, "choice", tally, least=1, most=most, whole=True)
    tally.mark(DERIVED, "choices from 0 ('choice' less 1)", table, outcome == "ok")
    return {"action": choice - 1, "outcome": outcome, "raw_text": raw}


def _paid(
    table: Table, tally: Tally, told: dict[str, Any], column: str, values: Mapping[float, float]
) -> dict[str, Any]:
    """Add rewards; a choice whose outcome cannot be read is malformed."""
    got = within(table, column, tally, allowed=tuple(values))
    ok = told["outcome"] == "ok"
    rule = ", ".join(f"{value:g}" for value in values)
    tally.mark(UNREADABLE, f"{column!r} of a choice is none of {rule}", table, ok & np.isnan(got))
    ok &= ~np.isnan(got)
    paid = np.select([got == value for value in values], list(values.values()), np.nan)
    lost = (told["outcome"] == "ok") & ~ok
    return {
        "action": np.where(ok, told["action"], np.nan),
        "reward": np.where(ok, paid, np.nan),
        "outcome": np.where(lost, "malformed", told["outcome"]),
        "raw_text": told["raw_text"],
    }


def _bandit(table: Table, tally: Tally, given: Mapping[str, Any]) -> pd.DataFrame:
    """Read two machines: a gain is 1, no gain or a loss -1."""
    table, frame = _people(table, tally)
    told = _paid(table, tally, _choices(table, tally, 2), "outcome", {1: 1, -1: 0})
    tally.mark(DERIVED, "reward 0 where 'outcome' is -1", table, told["reward"] == 0)
    return frame.assign(context=0, **told)


def _reversals(table: Table, tally: Tally, given: Mapping[str, Any]) -> pd.DataFrame:
    """Read reversal learning, in which no column tells when the machines changed places."""
    table, frame = _people(table, tally)
    loss = float(given.get("loss", -1.0))
    told = _paid(table, tally, _choices(table, tally, 2), "outcome", {1: 1, -1: loss})
    tally.add(TOLD, "no column tells when the machines changed places")
    return frame.assign(**told)


def _days(table: Table, tally: Tally, given: Mapping[str, Any]) -> pd.DataFrame:
    """Read the two-step task: choices 1 and 2, then 1 to 4."""
    table, frame = _people(table, tally)
    first = within(table, "level1choice", tally, allowed=(1, 2))
    second = within(table, "level2choice", tally, allowed=(1, 2, 3, 4))
    paid = within(table, "reward", tally, allowed=(0, 1))
    tally.mark(UNREADABLE, "'level1_choice' is not 1 or 2", table, np.isnan(first))
    # The planet is in no column: it follows from the second choice.
    lost = ~np.isnan(first) & np.isnan(second)
    tally.mark(
        LEFT_OUT, "a day whose planet is unknown: 'level2_choice' is not 1 to 4", table, lost
    )
    kept = ~lost
    table, frame = table.keep(kept), frame[kept].reset_index(drop=True)
    first, second, paid = first[kept], second[kept], paid[kept]
    tally.mark(UNREADABLE, "'reward' of a second choice is not 0 or 1", table,
               ~np.isnan(first) & np.isnan(paid))  # fmt: skip
    second = np.where(np.isnan(paid), np.nan, second)
    state = np.where(np.isnan(second), np.nan, (second - 1) // 2)
    known = within(table, "level2choice", tally, allowed=(1, 2, 3, 4))
    state = np.where(np.isnan(known), np.nan, (known - 1) // 2)
    tally.mark(
        DERIVED,
        "the planet, from 'level2_choice' (1, 2: the first; 3, 4: the second)",
        table,
        ~np.isnan(state),
    )
    days = frame.assign(
        action1=first, state=np.where(np.isnan(first), np.nan, state), action2=second, reward=paid
    )
    return stages_of_days(
        days, shuttles=(1, 2), planets=(0, 1), aliens=((1, 2), (3, 4)),
        transition=float(given.get("transition", 0.7)),
    )  # fmt: skip


def _balloons(table: Table, tally: Tally, given: Mapping[str, Any]) -> pd.DataFrame:
    """Read balloons of one type, whose maximum is in no column."""
    maxima = given.get("maxima")
    if not maxima or len(maxima) != 1:
        raise ValueError(
            f"The maximum of balloons is in no column of {table.file}; give it, one number in "
            "brackets: --set maxima=[128]."
        )
    table, _ = _people(table, tally)
    most: dict[str, Any] = {"least": 0, "most": maxima[0], "whole": True}
    table, shown = stimuli(table, tally, pumps=most, explosion={"allowed": (0, 1)})
    burst, pumps = shown["explosion"], shown["pumps"]
    right = np.where(burst == 1, pumps > 0, pumps < maxima[0])
    tally.mark(LEFT_OUT, "pumps and explosion of a balloon do not fit", table, ~right)
    subject = table.keep(right).cells["subjid"].astype("str")
    tally.mark(DERIVED, "a row for each pump, and one for the stop", table, right)
    return pumps_of_balloons(
        pd.DataFrame({
            "subject": subject, "balloon": subject.groupby(subject, sort=False).cumcount(),
            "pumps": pumps[right].astype(np.int64), "exploded": burst[right].astype(np.int64),
            "maximum": int(maxima[0]),
        }), maxima=maxima,
    )  # fmt: skip


def _cards(table: Table, tally: Tally, given: Mapping[str, Any]) -> pd.DataFrame:
    """Read the Iowa gambling task: decks 1 to 4, what a card brought and what it cost."""
    table, frame = _people(table, tally)
    told = _choices(table, tally, 4)
    gain = within(table, "gain", tally, least=0, most=_MOST)
    loss = np.abs(within(table, "loss", tally, least=-_MOST, most=_MOST))
    ok = told["outcome"] == "ok"
    lost = ok & (np.isnan(gain) | np.isnan(loss))
    tally.mark(UNREADABLE, "'gain' or 'loss' of a card is no number", table, lost)
    ok &= ~lost
    tally.mark(DERIVED, "losses without their sign, and the reward: gain less loss", table, ok)
    return frame.assign(
        action=np.where(ok, told["action"], np.nan), gain=np.where(ok, gain, np.nan),
        loss=np.where(ok, loss, np.nan), reward=np.where(ok, gain - loss, np.nan),
        outcome=np.where(lost, "malformed", told["outcome"]), raw_text=told["raw_text"],
    )  # fmt: skip


def _discounting(table: Table, tally: Tally, given: Mapping[str, Any]) -> pd.DataFrame:
    """Read choices between sums, whose unit of delay is in no column."""
    table, frame = _people(table, tally)
    sums = {name: {"least": 0.0, "most": _MOST} for name in
            ("delaylater", "amountlater", "delaysooner", "amountsooner")}  # fmt: skip
    position = np.arange(len(table))
    numbered = replace(table, cells=table.cells.assign(position=position.astype(str)))
    table, shown = stimuli(numbered, tally, **sums)
    frame = frame.iloc[table.cells["position"].astype(int)].reset_index(drop=True)
    action, outcome, raw = answers(table, "choice", tally, allowed=(0, 1))
    tally.add(TOLD, "the unit of delays is in no column; months are meant by the experiment")
    return frame.assign(
        item=0, sooner_amount=shown["amountsooner"], sooner_delay=shown["delaysooner"],
        later_amount=shown["amountlater"], later_delay=shown["delaylater"],
        action=action, outcome=outcome, raw_text=raw,
    )  # fmt: skip


def _n_balloons(frame: pd.DataFrame, tables: Sequence[Table]) -> dict[str, Any]:
    return {"n_balloons": int(frame["balloon"].max()) + 1}


def _n_days(frame: pd.DataFrame, tables: Sequence[Table]) -> dict[str, Any]:
    return {"n_days": int(frame["trial"].max()) // 2 + 1}


def grid_of(frame: pd.DataFrame, tables: Sequence[Table]) -> dict[str, Any]:
    """Return the grid on which all questions lie, if there is one."""
    amounts = frame["later_amount"].unique()
    if len(amounts) != 1 or (frame["sooner_delay"] != 0).any():
        return {}
    shares = np.unique(frame["sooner_amount"] / amounts[0])
    delays = np.unique(frame["later_delay"])
    if not len(shares) or shares[0] <= 0 or shares[-1] >= 1 or (delays % 1 != 0).any():
        return {}
    return {"design": "grid", "amount": int(amounts[0]), "losses": False,
            "shares": shares.tolist(), "delays": delays.astype(int).tolist()}  # fmt: skip


_PERSON = frozenset({"subjid"})
HBAYESDM = Family(
    "hbayesdm",
    (
        Format("hbayesdm", "two_step", _PERSON | {"level1choice", "level2choice", "reward"}, _days,
               settings=_n_days, help="`ts`: choices 1 or 2, then 1 to 4"),
        Format("hbayesdm", "iowa_gambling", _PERSON | {"choice", "gain", "loss"}, _cards,
               help="`igt`: decks 1 to 4, gain and loss"),
        Format("hbayesdm", "balloon_risk", _PERSON | {"pumps", "explosion"}, _balloons,
               settings=_n_balloons, help="`bart`: pumps and explosion; needs --set maxima=[128]"),
        Format("hbayesdm", "temporal_discounting",
               _PERSON | {"delaylater", "amountlater", "delaysooner", "amountsooner", "choice"},
               _discounting, settings=grid_of, help="`dd`: two sums and their delays"),
        Format("hbayesdm", "instrumental_learning", _PERSON | {"choice", "outcome"}, _bandit,
               frozenset({"gain"}), help="`bandit2arm`: choices 1 or 2, outcomes 1 or -1"),
        Format("hbayesdm", "reversal_learning", _PERSON | {"choice", "outcome"}, _reversals,
               frozenset({"gain"}), help="`prl`: the same; named with --environment"),
    ),
    _lower,
)  # fmt: skip
