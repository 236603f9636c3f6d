"""Trials in the columns of hBayesDM and HSSM."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from knownminds.environments import Environment, Trials, make
from knownminds.environments.record.csv_cells import csv_text
from knownminds.inference.groups.crossed_levels import units_of


def hbayesdm_table(trials: Trials, environment: Environment) -> pd.DataFrame:
    """Return trials in the columns of hBayesDM: `subjID`, choices from 1, a gap where none is.

    A day without a first choice, and a balloon without an answer, are left out, as it drops them.

    Raises
    ------
    ValueError : If the experiment is none of its tasks, or rewards are none that they have.
    """
    name = environment.name
    if name not in _TABLES:
        raise ValueError(
            f"hBayesDM has tables of {', '.join(_TABLES)} among these experiments; the trials are "
            f"of {name}. Export them as csv."
        )
    return _TABLES[name](trials.frame.reset_index(drop=True))


def hssm_table(trials: Trials, environment: Environment) -> pd.DataFrame:
    """Return trials in the columns of HSSM: `participant_id`, `rt` in seconds, `response` -1 or 1.

    Stimuli and conditions stand beside them; trials without an answer are left out.

    Raises
    ------
    ValueError : If there are no reaction times, `rt_s`, or there are not two actions.
    """
    frame = trials.frame
    if "rt_s" not in frame:
        raise ValueError(
            "HSSM fits reaction times; the trials have none. Name the column rt_s, in seconds."
        )
    if environment.given != "action" or environment.n_actions != 2:
        raise ValueError(f"HSSM fits choices between two; {environment.name} asks for others.")
    kept = frame[frame["action"].notna() & frame["rt_s"].notna()].reset_index(drop=True)
    known = {"subject", "action", "rt_s", "response", "outcome", "raw_text", "labels"}
    more = [column for column in kept.columns if column not in known]
    table = pd.DataFrame({
        "participant_id": kept["subject"], "rt": kept["rt_s"],
        "response": 2 * kept["action"].astype(int) - 1,
    })  # fmt: skip
    return table.assign(**{column: kept[column] for column in more})


def tab_separated(table: pd.DataFrame) -> str:
    """Return a table as text with tabs, NA where nothing stands."""
    return csv_text(table, na_rep="NA", sep="\t", lineterminator="\n")


def _bandit(frame: pd.DataFrame) -> pd.DataFrame:
    paid = frame["reward"]
    wrong = paid.notna() & ~paid.isin([0, 1, -1])
    if wrong.any():
        raise ValueError(
            f"Rewards of hBayesDM are 1 and -1; row {int(np.flatnonzero(wrong)[0]) + 1} has "
            f"{paid[wrong].iloc[0]:g}. Export the trials as csv."
        )
    return _choices(frame).assign(outcome=_whole(paid.where(paid != 0, -1)))


def _choices(frame: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame({"subjID": frame["subject"], "choice": frame["action"] + 1})


def _cards(frame: pd.DataFrame) -> pd.DataFrame:
    return _choices(frame).assign(gain=frame["gain"], loss=-frame["loss"].abs())


def _sums(frame: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame({
        "subjID": frame["subject"], "delay_later": frame["later_delay"],
        "amount_later": frame["later_amount"], "delay_sooner": frame["sooner_delay"],
        "amount_sooner": frame["sooner_amount"], "choice": frame["action"],
    })  # fmt: skip


def _days(frame: pd.DataFrame) -> pd.DataFrame:
    first = frame[frame["stage"] == 0].assign(day=lambda t: t["trial"] // 2)
    second = frame[frame["stage"] == 1].assign(day=lambda t: t["trial"] // 2)
    keys = ["subject", "session", "day"]
    both = first[[*keys, "action"]].merge(
        second[[*keys, "state", "action", "reward"]], on=keys, how="left", suffixes=("", "_2")
    )
    both = both[both["action"].notna() & both["state"].notna()]
    return pd.DataFrame({
        "subjID": both["subject"], "level1_choice": both["action"] + 1,
        "level2_choice": both["action_2"] + 1 + 2 * both["state"], "reward": _whole(both["reward"]),
    })  # fmt: skip


def _balloons(frame: pd.DataFrame) -> pd.DataFrame:
    if frame["type"].nunique() > 1:
        raise ValueError(
            "hBayesDM has balloons of one type; the trials have "
            f"{frame['type'].nunique()}. Export one at a time."
        )
    keys = ["subject", "session", "balloon"]
    groups = frame.groupby(keys, sort=False)
    balloons = groups.agg(
        pumps=("action", "sum"),
        last=("reward", "last"),
        answered=("action", lambda a: a.notna().all()),
    ).reset_index()
    stopped = groups["action"].last().to_numpy() == 0
    balloons = balloons.assign(explosion=(~stopped).astype(int))[balloons["answered"]]
    return balloons.rename(columns={"subject": "subjID"})[["subjID", "pumps", "explosion"]]


def _whole(values: pd.Series[Any]) -> pd.Series[Any]:
    return values.astype("Int64") if (values.dropna() % 1 == 0).all() else values


_TABLES = {
    "instrumental_learning": _bandit,
    "reversal_learning": _bandit,
    "two_step": _days,
    "balloon_risk": _balloons,
    "iowa_gambling": _cards,
    "temporal_discounting": _sums,
}

_LEARNT = ("instrumental_learning", "reversal_learning", "two_step", "iowa_gambling")


def begun_once(trials: Trials, environment: Environment) -> Trials:
    """Return trials in which nobody begins anew to learn.

    hBayesDM takes all rows of a subjID for one course of learning. Where a subject has several
    sessions or contexts, each becomes a subject of its own, "0 | 1" for instance.
    """
    frame = trials.frame
    keys = [
        key
        for key in ("session", "context")
        if key in frame and (frame.groupby("subject", sort=False)[key].nunique() > 1).any()
    ]
    if environment.name not in _LEARNT or not keys:
        return trials
    return Trials.from_frame(frame.assign(subject=units_of(trials, ("subject", *keys))))


def experiment_of(trials: Trials, environment: Environment | None) -> Environment:
    """Return the experiment that is given or that all trials name."""
    if environment is not None:
        return environment
    is_named = "environment" in trials.frame
    names: list[Any] = list(trials.frame["environment"].dropna().unique()) if is_named else []
    if len(names) != 1:
        raise ValueError("The trials do not name one experiment; name it with --environment.")
    return make(str(names[0]), **trials.settings.get(str(names[0]), {}))
