"""CogBench's result files: seven tasks, one file per engine, one row per trial of theirs.

Layouts and traps are those of the files that the benchmark's authors published (Coda-Forno et al.,
2024). An answer that cannot have been given is malformed and keeps its text; nothing is clipped,
rescaled or taken from a neighbour.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from knownminds.environments import (
    better_machine,
    games_of_plays,
    pumps_of_balloons,
    stages_of_days,
)
from knownminds.inference.bandits.model_basedness import REWARD_ALONE

from .account import DERIVED, LEFT_OUT, TOLD, UNREADABLE, CellTable, Tally
from .formats import Format, Reader
from .mapped import agreed_in
from .shapes import whole_games
from .tables import (
    answers,
    check_known,
    mostly_twice,
    numbers,
    stimuli,
    truths,
    whole_numbers,
    within,
    without_copies,
)

_BLOCKS = (21, 20, 20, 19)  # trials of the restless bandit's blocks, in every file
_MAXIMA = (128, 32, 8)
_LONG = 6  # free plays of a long game
_LETTERS = ("X", "Y")
_ALIENS = (("D", "F"), ("J", "K"))
_STAGES = {"action1": "XY", "state": "XY", "action2": "DFJK"}  # letters of each column
_DAYS_BY = "--environment two_step --map subject=run --map '"
_WHOLE: dict[str, Any] = {"least": 0, "most": 1e6, "whole": True}


def _engine(table: CellTable) -> str:
    later = table.version not in ("", "V1")
    return f"{table.name} {table.version}" if later else table.name


def _runs(table: CellTable, passes: pd.Series[Any] | int = 0) -> pd.DataFrame:
    """Return subject and session of each row: runs are sessions of an engine, or else people.

    Parameters
    ----------
    passes : Which pass of a run a row is of, from 0, where one id stands for several.
    """
    run = table.cells["run"].astype("str").reset_index(drop=True)
    again = pd.Series(passes, run.index)
    if table.name == "human":
        return pd.DataFrame({"subject": f"{_engine(table)}/" + run, "session": again.astype("str")})
    session = run.where(again == 0, run + "." + again.astype("str"))
    return pd.DataFrame({"subject": _engine(table), "session": session})


def _identified(table: CellTable, tally: Tally) -> CellTable:
    """Leave out rows without the number of a run."""
    run = whole_numbers(table.cells["run"])
    given = run.str.fullmatch(r"\d{1,9}")
    tally.mark(LEFT_OUT, "no usable 'run': a whole number", table, ~given)
    return replace(table, cells=table.cells.assign(run=run)).keep(given)


def _unpaid(
    table: CellTable, tally: Tally, points: NDArray[np.float64], answered: ArrayLike
) -> NDArray[np.bool_]:
    """Return which answers have no reward that can be: none at all, or none of the allowed."""
    lost: NDArray[np.bool_] = np.isnan(points) & np.asarray(answered, dtype=bool)
    empty = table.cells["reward"].isna().to_numpy()
    tally.mark(UNREADABLE, "'reward' of an answer is empty", table, lost & empty)
    tally.mark(UNREADABLE, "'reward' of an answer is none that can be", table, lost & ~empty)
    return lost


def _told(table: CellTable, frame: pd.DataFrame) -> pd.DataFrame:
    """Add what is known of all trials of a file."""
    synthetic = table.name == "human" and "informative_lh" in table.cells
    frame = frame.assign(model="synthetic" if synthetic else _engine(table))
    return frame.assign(version=table.version) if table.version else frame


def _urns(table: CellTable, tally: Tally, given: Mapping[str, Any]) -> pd.DataFrame:
    """Read probabilistic reasoning: a prior, a likelihood, a ball, and the stated probability."""
    table = truths(_identified(table, tally), "red_observation", tally)
    # One of a run's two problems has a prior that tells something.
    telling_prior = ~np.isin(np.round(10 * numbers(table, "prior", Tally())[0]), (4, 5, 6))
    kind = table.cells["run"] + np.where(telling_prior, "/prior", "/likelihood")
    first = pd.Series(np.unique(kind, return_index=True)[1][pd.factorize(kind, sort=True)[0]])
    table = without_copies(table, table.cells["run"], first, tally, begun_anew=True)
    tenths = {"least": 0.0, "most": 1.0}
    table, shown = stimuli(table, tally, prior=tenths, lh=tenths)
    rounded = {name: np.round(values, 1) for name, values in shown.items()}
    exact = np.ones(len(table), dtype=bool)
    for name, values in shown.items():
        exact &= np.abs(values - rounded[name]) < 1e-9
    tally.mark(LEFT_OUT, "'prior' or 'lh' is no tenth", table, ~exact)
    ball = pd.Series(within(table, "red_observation", tally, allowed=(0, 1)))
    tally.mark(LEFT_OUT, "'red_observation' is not True or False", table, exact & ball.isna())
    informative, flat = ((1, 2, 3, 7, 8, 9), (4, 5, 6))
    tenth = {name: np.round(10 * values) for name, values in rounded.items()}
    telling = {name: np.isin(values, informative) for name, values in tenth.items()}
    plain = {name: np.isin(values, flat) for name, values in tenth.items()}
    pair = (telling["prior"] & plain["lh"]) | (telling["lh"] & plain["prior"])
    known = exact & ball.notna().to_numpy()
    what = "not one of 'prior' and 'lh' tells something and the other nothing"
    tally.mark(LEFT_OUT, what, table, known & ~pair)
    kept = known & pair
    table = table.keep(kept)
    response, outcome, raw = answers(table, "left_pred", tally, least=0.0, most=1.0)
    if table.name == "human":
        tally.add(TOLD, f"{table.file} was generated by a formula; these are no people")
    number = table.cells.groupby("run", sort=False).cumcount()
    again = number // 2
    tally.mark(DERIVED, "runs under one id separated by their order", table, again > 0)
    run = table.cells["run"].astype("str")
    return _told(table, pd.DataFrame({
        "subject": _engine(table),
        "session": run.where(again == 0, run + "." + again.astype("str")),
        "trial": number % 2,
        "prior": rounded["prior"][kept],
        "likelihood": rounded["lh"][kept],
        "ball": ball[kept].to_numpy(dtype=np.int64),
        "response": response,
        "outcome": outcome,
        "raw_text": raw,
    }))  # fmt: skip


def _games(table: CellTable, tally: Tally, given: Mapping[str, Any]) -> pd.DataFrame:
    """Read the horizon task: games of 5 or 10 plays, the first four forced."""
    table = _identified(table, tally)
    table = without_copies(table, table.cells["run"], table.cells["trial"], tally)
    cells = table.cells
    rules: dict[str, dict[str, Any]] = {
        "trial": {"least": 0, "most": 9, "whole": True},
        "choice": {"allowed": (0, 1), "coded": "answer"},
        "reward": {"least": -1000, "most": 1000},
        **{
            name: {"least": -1000, "most": 1000}
            for name in ("mean0", "mean1", "reward0", "reward1")
        },
    }
    column = {name: within(table, name, tally, **how) for name, how in rules.items()}  # fmt: skip
    paid = np.where(column["choice"] == 1, column["reward1"], column["reward0"])
    right = np.all([np.isfinite(values) for values in column.values()], axis=0)
    right &= paid == column["reward"]
    frame = pd.DataFrame({
        "subject": _engine(table), "game": pd.factorize(cells["run"])[0],
        "play": np.where(right, column["trial"], np.nan),
        "action": np.nan_to_num(column["choice"]).astype(np.int64),
        "reward": column["reward"], "true_mean_0": column["mean0"], "true_mean_1": column["mean1"],
    })  # fmt: skip
    size = frame.groupby("game", sort=False)["play"].transform("size")
    frame["plays"] = size.where(size.isin((5, 10)))
    if table.cut:  # a long game that ends after five plays looks like a short one
        frame.loc[frame["game"] == frame["game"].iloc[-1], "plays"] = np.nan
    kept = whole_games(table, frame, tally, strict=False)
    if not kept.any():
        return frame.iloc[:0]
    games = frame[kept].drop(columns="plays").astype({"play": np.int64})
    return _told(table, games_of_plays(games.reset_index(drop=True)))


def _games_apart(table: CellTable, tally: Tally, given: Mapping[str, Any]) -> pd.DataFrame:
    """Read the horizon task of a study before CogBench, Binz and Schulz (2023): a file is a game.

    The reward of the chosen machine stands in the column of that machine; the folder is the engine.
    """
    chosen = table.cells["choice"].map({"0": "reward0", "1": "reward1", "0.0": "reward0",
                                        "1.0": "reward1"})  # fmt: skip
    paid = table.cells["reward0"].where(chosen != "reward1", table.cells["reward1"])
    tally.mark(DERIVED, "the reward, from the column of the chosen machine", table, chosen.notna())
    named = table.named({"task": "run"})
    whole = replace(named, cells=named.cells.assign(reward=paid), name=table.folder)
    frame = _games(whole, tally, given)
    if not len(frame):
        return frame
    number = pd.Series(whole_numbers(whole.cells["run"]).unique()).astype(np.int64)
    game = frame["game"].map(number)
    return frame.assign(game=game, trial=_LONG * game + frame["play"])


def _restless(table: CellTable, tally: Tally, given: Mapping[str, Any]) -> pd.DataFrame:
    """Read the restless bandit: a machine and a confidence."""
    table = _identified(table, tally)
    table = without_copies(table, table.cells["run"], table.cells["trial"], tally)
    table, shown = stimuli(table, tally, trial=_WHOLE, block={"least": 0, "most": 3, "whole": True})
    choice, fate, raw = answers(table, "choice", tally, allowed=(0, 1))
    sure, doubt, text = answers(table, "confidence", tally, least=0.0, most=1.0)
    points = within(table, "reward", tally, least=-1000, most=1000)
    lost = _unpaid(table, tally, points, ~np.isnan(choice) & ~np.isnan(sure))
    outcome = np.where(fate != "ok", fate, np.where(doubt != "ok", "malformed", "ok"))
    outcome = np.where(lost, "malformed", outcome)
    ok = outcome == "ok"
    tally.mark(TOLD, "a confidence of exactly 0, which may be a fallback", table, ok & (sure == 0))
    better = _better(table, tally, choice, shown)
    high, low = _means(given, table.version)
    return _told(table, pd.DataFrame({
        **_runs(table),
        "trial": shown["trial"].astype(np.int64), "block": shown["block"].astype(np.int64),
        "mean_0": np.select([better == 0, better == 1], [high, low], np.nan),
        "mean_1": np.select([better == 1, better == 0], [high, low], np.nan),
        "action": np.where(ok, choice, np.nan), "response": np.where(ok, sure, np.nan),
        "reward": np.where(ok, points, np.nan), "outcome": outcome,
        "raw_text": raw.where(raw.notna(), text), "choice_alone": np.where(ok, np.nan, choice),
    }))  # fmt: skip


def _means(given: Mapping[str, Any], version: str) -> tuple[float, float]:
    high, low = (10.0, -10.0) if version == "V2" else (60.0, 40.0)
    return float(given.get("high", high)), float(given.get("low", low))


def _better(
    table: CellTable, tally: Tally, choice: NDArray[np.float64], shown: Mapping[str, Any]
) -> NDArray[np.float64]:
    """Return the better machine of each block, from accuracy; NaN where rows disagree.

    Accuracy is taken after the machines have changed places, so that of a block's last trial is
    the other way round.
    """
    accurate = within(table, "accurate", tally, allowed=(0, 1))
    number = within(table, "block_trial", tally, **_WHOLE)
    last = number == np.array(_BLOCKS)[shown["block"].astype(np.int64)] - 1
    known = ~np.isnan(choice) & ~np.isnan(accurate) & ~np.isnan(number)
    better = better_machine(choice, accurate, last)
    keys = [table.cells["run"], pd.Series(shown["block"])]
    values: NDArray[np.float64] = agreed_in(
        pd.Series(better).where(known), keys, table, tally
    ).to_numpy(dtype=float)
    return values


def _casinos(table: CellTable, tally: Tally, given: Mapping[str, Any]) -> pd.DataFrame:
    """Read instrumental learning: a casino, a machine, and whether it paid."""
    table = _identified(table, tally)
    # In runs of copies each copy has the next trial's casino.
    run, number = table.cells["run"], whole_numbers(table.cells["trial"])
    doubled = mostly_twice(run, number)
    copy = table.cells.duplicated() & ~doubled
    tally.mark(LEFT_OUT, "an exact copy of a row before it", table, copy)
    table, run, number, doubled = (table.keep(~copy), *(x[~copy] for x in (run, number, doubled)))
    again = pd.DataFrame({"run": run, "trial": number}).reset_index(drop=True)
    doubled = doubled.reset_index(drop=True)
    unlike = again.duplicated(keep=False) & ~doubled
    tally.mark(LEFT_OUT, "a trial that stands twice in its run with other cells", table, unlike)
    twice = again.duplicated() & doubled
    tally.mark(LEFT_OUT, "a trial that stands twice in its run", table, twice)
    # Where one of two is missing, which of the casinos is the trial's is unknown.
    alone = doubled & ~again.duplicated(keep=False)
    tally.mark(LEFT_OUT, "a trial whose copy is missing in a run of copies", table, alone)
    table = table.keep(~(unlike | twice | alone))
    first = 0 if table.name == "meta-RL" else 1  # their casinos are numbered from 1, but there
    tasks = {"least": first, "most": first + 3, "whole": True}
    known = {str(first + k): float(first + k) for k in range(4)}
    strange = table.cells["task"].notna() & ~whole_numbers(table.cells["task"]).isin([*known])
    check_known(table, "task", strange, known, map_by="--map 'task")
    table, shown = stimuli(table, tally, trial=_WHOLE, task=tasks)
    tally.mark(
        DERIVED,
        f"casinos numbered from 0 ('task' less {first})",
        table,
        np.full(len(table), bool(first)),
    )
    action, outcome, raw = answers(table, "choice", tally, allowed=(0, 1))
    points = within(table, "reward", tally, allowed=(0, 1), coded="reward")
    lost = _unpaid(table, tally, points, outcome == "ok")
    if "reward1" in table.cells:
        rule: dict[str, Any] = {"allowed": (0, 1), "coded": "reward"}
        pays = [within(table, name, tally, **rule) for name in ("reward0", "reward1")]
        paid = np.where(action == 1, pays[1], pays[0])
        other = (points != paid) & np.isfinite(paid) & (outcome == "ok") & ~lost
        tally.mark(UNREADABLE, "'reward' of a choice is not what its machine paid", table, other)
        lost |= other
    outcome = np.where(lost, "malformed", outcome)
    ok = outcome == "ok"
    return _told(table, pd.DataFrame({
        **_runs(table), "trial": shown["trial"].astype(np.int64),
        "context": shown["task"].astype(np.int64) - first, "action": np.where(ok, action, np.nan),
        "reward": np.where(ok, points, np.nan), "outcome": outcome, "raw_text": raw,
    }))  # fmt: skip


def _days(table: CellTable, tally: Tally, given: Mapping[str, Any]) -> pd.DataFrame:
    """Read the two-step task: both stages of a day in one row."""
    table = _identified(table, tally)
    table = without_copies(table, table.cells["run"], table.cells["trial"], tally, begun_anew=True)
    table, shown = stimuli(table, tally, trial=_WHOLE)
    cells = table.cells
    for column, letters in _STAGES.items():
        known = {letter: float(k % 2) for k, letter in enumerate(letters)}
        strange = cells[column].notna() & ~cells[column].isin(list(letters))
        check_known(table, column, strange, known, map_by=_DAYS_BY + column)
    flown = cells["action1"].isin(_LETTERS)
    tally.mark(UNREADABLE, "'action1' is no shuttle", table, ~flown)
    landed = cells["state"].isin(_LETTERS)
    tally.mark(LEFT_OUT, "a day that was flown and has no planet", table, flown & ~landed)
    kept = (~flown | landed).to_numpy()
    table, cells = table.keep(kept), cells[kept].reset_index(drop=True)
    flown = flown[kept].reset_index(drop=True)
    planet = pd.Index(_LETTERS).get_indexer(pd.Index(cells["state"]))
    offered = np.array([*_ALIENS, ("", "")], dtype=object)[planet]
    dealt = (cells["action2"].to_numpy(dtype=object)[:, None] == offered).any(axis=1)
    tally.mark(UNREADABLE, "'action2' is no alien of that planet", table, flown & ~dealt)
    paid = within(table, "reward", tally, allowed=(0, 1), coded="reward")
    lost = _unpaid(table, tally, paid, flown & dealt)
    again = pd.DataFrame({"run": cells["run"], "t": shown["trial"][kept]})
    nth = again.groupby(["run", "t"], sort=False).cumcount()
    tally.mark(DERIVED, "runs under one id separated by their order", table, nth > 0)
    frame = pd.DataFrame({
        **_runs(table, nth), "trial": again["t"].astype(np.int64),
        "action1": cells["action1"].where(flown), "state": cells["state"].where(flown),
        "action2": cells["action2"].where(flown & dealt & ~lost), "reward": paid,
    })  # fmt: skip
    alone = np.where(flown & ~dealt, paid, np.nan)
    if np.isfinite(alone).any():  # the released regression uses such days
        frame[REWARD_ALONE] = alone
    tally.mark(DERIVED, "two stages of each day", table, flown)
    return _told(table, stages_of_days(
        frame, shuttles=_LETTERS, planets=_LETTERS, aliens=_ALIENS,
        transition=float(given.get("transition", 0.7)),
    ))  # fmt: skip


def _balloons(table: CellTable, tally: Tally, given: Mapping[str, Any]) -> pd.DataFrame:
    """Read balloons: how often each was pumped, and whether it burst."""
    table = truths(_identified(table, tally), "exploded", tally)
    table = without_copies(table, table.cells["run"], table.cells["trial"], tally, begun_anew=True)
    most: dict[str, Any] = {"least": 0, "most": max(_MAXIMA), "whole": True}
    table, shown = stimuli(
        table, tally, trial=_WHOLE, pumps=most, max_pumps={"allowed": _MAXIMA}, reward=most
    )
    burst = within(table, "exploded", tally, allowed=(0, 1))
    pumps, maximum = shown["pumps"], shown["max_pumps"]
    right = ~np.isnan(burst) & (pumps <= maximum) & (shown["reward"] == np.where(burst, 0, pumps))
    right &= np.where(burst == 1, pumps > 0, pumps < maximum)
    tally.mark(LEFT_OUT, "pumps, reward and bursting of a balloon do not fit", table, ~right)
    table = table.keep(right)
    frame = pd.DataFrame({
        "run": table.cells["run"].to_numpy(), "balloon": shown["trial"][right].astype(np.int64),
        "pumps": pumps[right].astype(np.int64), "exploded": burst[right].astype(np.int64),
        "maximum": maximum[right].astype(np.int64),
    })  # fmt: skip
    # Runs of other lengths share an id in V2; they are separated where the number falls.
    falls = frame.groupby("run", sort=False)["balloon"].diff() <= 0
    nth = falls.groupby(frame["run"], sort=False).cumsum()
    tally.mark(
        DERIVED, "runs under one id separated where the balloon's number falls", table, nth > 0
    )
    tally.mark(DERIVED, "a row for each pump, and one for the stop", table, np.ones(len(table)))
    if not len(frame):
        return frame
    return _told(
        table,
        pumps_of_balloons(frame.drop(columns="run").assign(**_runs(table, nth)), maxima=_MAXIMA),
    )


def _scores(table: CellTable, tally: Tally, given: Mapping[str, Any]) -> pd.DataFrame:
    """Refuse a table of scores."""
    raise ValueError(
        f"Trials are answers to questions; {table.file} holds scores, and a score does not "
        "determine questions and answers. Use scores to compare measures with."
    )


def _levels(frame: pd.DataFrame, tables: Sequence[CellTable]) -> dict[str, Any]:
    versions = {table.version for table in tables}
    high, low = _means({}, "V2" if versions == {"V2"} else "")
    return {"n_blocks": 4, "high": high, "low": low}


def _format(environment: str, head: str, read: Reader, **more: Any) -> Format:
    return Format("cogbench", environment, frozenset(head.split()), read, **more)


FORMATS = (
    _format(
        "probabilistic_reasoning",
        "run prior lh left_pred red_observation",
        _urns,
        settings=lambda frame, tables: {"n_problems": 2},
        also=frozenset({"informative_lh"}),
    ),
    _format(
        "restless_bandit",
        "run trial choice reward block block_trial confidence accurate",
        _restless,
        settings=_levels,
    ),
    _format(
        "instrumental_learning",
        "run trial choice reward task",
        _casinos,
        also=frozenset({"reward0", "reward1"}),
    ),
    _format(
        "horizon",
        "run trial choice reward mean0 mean1 reward0 reward1",
        _games,
        without=frozenset({"task", "block"}),
        settings=lambda frame, tables: {"long_horizon": _LONG},
    ),
    _format(
        "horizon",
        "task trial mean0 mean1 reward0 reward1 choice",
        _games_apart,
        without=frozenset({"run", "reward", "block"}),
        settings=lambda frame, tables: {"long_horizon": _LONG},
    ),
    _format("two_step", "run trial action1 state action2 reward", _days),
    _format(
        "balloon_risk",
        "run trial pumps reward max_pumps exploded",
        _balloons,
        settings=lambda frame, tables: {"maxima": list(_MAXIMA)},
    ),
    Format("cogbench", "", frozenset({"score", "run", "present bias"}), _scores),
    Format("cogbench", "", frozenset({"engine", "performance_score1"}), _scores),
)
