"""Trials of any table whose columns and values a mapping explains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from knownminds.environments import (
    ENVIRONMENTS,
    Environment,
    TemporalDiscounting,
    Trials,
    better_machine,
    blocks_of_means,
    games_of_plays,
    make,
    pumps_of_balloons,
    stages_of_days,
    trial_schema,
    unknown,
)

from .account import DERIVED, LEFT_OUT, TOLD, UNREADABLE, Account, Table, Tally, account_of
from .browser import opened, read_browser
from .discounting_answers import questions_of_answers
from .hbayesdm import grid_of
from .importing import chosen, sessions_apart
from .mapping import BY_ACTION, UNITS, ColumnMap
from .tables import named_after_file, numbers, read_table
from .told_texts import read_texts

TEXTS = ("subject", "session", "study", "raw_text", "labels", "outcome", "model")
ANSWERS = ("action", "response", "action1", "action2", "pumps")
# Shapes of others, by what they are known by: what a row of theirs is, and its columns.
DAYS = ("action1", "action2", "reward")
BALLOONS = ("pumps", "exploded")
ITEMS = ("item", "action")  # of a questionnaire, whose answers tell its sums
PLAYS = ("game", "play", "action", "reward")
_COUNTED = ("trial", "action", "response", "reward")
_BY_NAME = ("domain", "sense", "task", "queried", "present")  # may be given in words
_SHAPED = {
    "two_step": DAYS,
    "balloon_risk": BALLOONS,
    "horizon": PLAYS,
    "temporal_discounting": ITEMS,
}


def import_mapped(
    files: Sequence[Path],
    mapping: ColumnMap,
    *,
    environment: str | None = None,
    settings: Mapping[str, Any] | None = None,
    encoding: str | None = None,
    subject_from_file: bool = False,
) -> tuple[Trials, Account]:
    """Read tables as a mapping explains them, and say what was understood.

    Parameters
    ----------
    files
        Text tables, or the JSON of a browser experiment.
    mapping
        What columns and values are.
    environment, settings
        The experiment, where the mapping does not say.
    encoding
        See `tables.read_table`.
    subject_from_file
        Whether each file is of one subject, whose name is the file's.

    Raises
    ------
    ValueError
        If a column is not there, a value has no meaning, or trials break the experiment's rules.
    """
    name = environment or mapping.environment
    if name and name not in ENVIRONMENTS:
        raise ValueError(unknown("environment", name, ENVIRONMENTS))
    given = {**mapping.settings, **(settings or {})}
    place = make(name, **given) if name else None
    tally = Tally()
    tables, frames = [], []
    for file in files:
        if mapping.pattern:
            table = read_texts(file, mapping.pattern, mapping.names, tally)
        elif file.suffix in (".json", ".txt") and _is_json(file):
            table = read_browser(file, tally)
        else:
            table = read_table(file, tally, encoding=encoding)
        table = chosen(table, mapping.where, tally)
        if subject_from_file:
            table = named_after_file(table)
        tables.append(table)
        frames.append(_told(table, mapping, place, tally))
    whole = pd.concat(sessions_apart(frames, tables, tally), ignore_index=True)
    if not len(whole):
        raise ValueError(f"An import makes at least one trial; {tables[0].file} gave none.")
    _ask_for_units(whole, place, mapping)
    if place is not None and place.name == "temporal_discounting" and "design" not in given:
        place = make(name, **{**grid_of(whole, tables), **given})
    trials = Trials.from_frame(whole, environment=place)
    return trials, account_of("a mapping", name, tables, tally, trials.frame)


def _is_json(file: Path) -> bool:
    try:
        with file.open("rb") as stream:
            return stream.read(64).lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"[", b"{")
    except OSError as error:
        raise ValueError(f"{file} cannot be read: {error.strerror}.") from None


def _told(
    table: Table, mapping: ColumnMap, environment: Environment | None, tally: Tally
) -> pd.DataFrame:
    """Return the rows of a table in our columns."""
    cells = _columns(table, mapping, tally)
    own = replace(table, cells=cells)
    shape = _SHAPED.get(environment.name if environment else "", ())
    shaped = bool(shape) and set(shape) <= set(cells.columns)
    shaped &= not {"mean_0", "later_amount"} & set(cells.columns)
    if "subject" not in cells:
        raise ValueError(_lacking(table, ["subject"]))
    lost = cells["subject"].isna()
    tally.mark(LEFT_OUT, "no subject", own, lost)
    own = own.keep(~lost)
    frame = pd.DataFrame({"subject": own.cells["subject"].astype("str")})
    if "session" in own.cells:
        frame["session"] = own.cells["session"].fillna("0").astype("str")
    numeric = _numeric(environment) | {
        "trial",
        "action",
        "response",
        "reward",
        "block",
        *(shape or ()),
    }
    numeric |= (
        {"state", "maximum", "type", "balloon", "accurate"} if shaped or environment else set()
    )
    for name in own.cells.columns:
        if name in frame:
            continue
        said = mapping.named("values", name) or mapping.named("units", name)
        wanted = said or name in _COUNTED or (name in numeric and name not in _BY_NAME)
        frame[name] = _values(own, name, mapping, tally) if wanted else own.cells[name]
    for name, unit in mapping.units.items():
        if BY_ACTION.fullmatch(unit):
            frame[name] = _of_the_chosen(own, frame, name, unit, tally)
    keys = [key for key in ("subject", "session") if key in frame]
    if "trial" not in frame:
        tally.mark(DERIVED, "trials numbered by their order", own, np.ones(len(own)))
        frame["trial"] = frame.groupby(keys, sort=False).cumcount()
    else:
        lost = frame["trial"].isna()
        tally.mark(LEFT_OUT, "no trial number", own, lost)
        own, frame = own.keep(~lost), frame[~lost].reset_index(drop=True)
    if shaped and isinstance(environment, TemporalDiscounting):
        frame = _asked(own, frame, environment, tally)
    elif shaped and environment is not None:
        return _reshaped(own, frame, environment, tally)
    if (
        environment is not None
        and environment.name == "temporal_discounting"
        and "item" not in frame
    ):
        tally.mark(DERIVED, "item 0: sums that are received", own, np.ones(len(own)))
        frame["item"] = 0
    _require(table, frame, environment)
    if environment is not None and environment.name == "restless_bandit" and "accurate" in frame:
        frame = _means(own, frame, environment, tally)
    if environment is not None and environment.name == "restless_bandit" and "block" not in frame:
        frame = _blocks(own, frame, tally)
    return _answered(own, frame, environment, tally)


def _columns(table: Table, mapping: ColumnMap, tally: Tally) -> pd.DataFrame:
    """Return the cells under our names; a field within JSON text is taken out of it."""
    cells = table.cells
    added: dict[str, Any] = {}
    for ours, theirs in mapping.columns.items():
        if theirs in cells:
            continue
        found = opened(table, theirs, tally)
        if found is None:
            close = get_close_matches(theirs, list(map(str, cells.columns)), 3)
            near = f" Nearest: {', '.join(close)}." if close else ""
            raise ValueError(
                f"Every mapped column must exist; {ours}={theirs} names none of "
                f"{', '.join(map(str, cells.columns))}.{near}"
            )
        added[theirs] = found
    cells = cells.assign(**added)
    chosen_twice = [name for name in mapping.columns.values()
                    if list(mapping.columns.values()).count(name) > 1]  # fmt: skip
    if chosen_twice:
        raise ValueError(f"A column can serve once; {chosen_twice[0]!r} is mapped more than once.")
    names = {theirs: ours for ours, theirs in mapping.columns.items()}
    taken = [name for name in cells.columns if name in names.values() and name not in names]
    return cells.drop(columns=taken).rename(columns=names)


def _values(table: Table, name: str, mapping: ColumnMap, tally: Tally) -> NDArray[np.float64]:
    """Return a column as numbers of ours, NaN where nothing stands."""
    missing = mapping.missing if name in ANSWERS else ()
    cells = table.cells[name]
    silent = cells.isin(list(missing))
    tally.mark(UNREADABLE, f"{name!r} holds a code for no answer", table, silent)
    cells = cells.where(~silent)
    told: Mapping[str, float] | None = mapping.named("values", name)
    values: NDArray[np.float64]
    if told is not None:
        strange = np.flatnonzero((cells.notna() & ~cells.isin(list(told))).to_numpy())
        if len(strange):
            raise ValueError(
                f"Every value has a meaning; {table.place(int(strange[0]))} has "
                f"{cells.iloc[strange[0]]!r} as {name!r}, and the mapping knows "
                f"{', '.join(told)}. Add it, or name it with --missing."
            )
        values = np.asarray(cells.map(dict(told)).to_numpy(dtype=float, na_value=np.nan))
    else:
        shown = replace(table, cells=table.cells.assign(**{name: cells}))
        values, wrong = numbers(shown, name, tally)
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            raise ValueError(
                f"The column {name!r} holds numbers; {table.place(row)} has {cells.iloc[row]!r}. "
                f"Say what its texts mean: --map '{name}: {cells.iloc[row]}=0'; or name what "
                f"stands for no answer: --missing '{cells.iloc[row]}'."
            )
    unit = mapping.named("units", name)
    if unit is None:
        return values
    scale, what = UNITS[unit]
    if unit != "as is":
        tally.mark(DERIVED, f"{name!r}: {what}", table, ~np.isnan(values))
    return scale(values)


def _of_the_chosen(
    table: Table, frame: pd.DataFrame, name: str, unit: str, tally: Tally
) -> NDArray[np.float64]:
    """Return what the column of the chosen action holds, of a table with a column for each."""
    match = BY_ACTION.fullmatch(unit)
    assert match is not None
    columns = [column.strip() for column in match[1].split(",")]
    for column in columns:
        if column not in table.cells:
            raise ValueError(unknown(f"column of {table.file}", column, table.cells.columns))
    if "action" not in frame:
        raise ValueError(f"{name!r} goes by the action, which is not mapped. Add --map action=...")
    values = np.stack([numbers(table, column, tally)[0] for column in columns])
    action = frame["action"].to_numpy(dtype=float, na_value=np.nan)
    known = np.isin(action, range(len(columns)))
    tally.mark(DERIVED, f"{name!r}: the column of the chosen action", table, known)
    place = np.where(known, action, 0).astype(np.int64)
    return np.where(known, values[place, np.arange(len(action))], np.nan)


def _numeric(environment: Environment | None) -> set[str]:
    return set() if environment is None else {c.name for c in trial_schema(environment).columns
                                        if c.kind != "string"}  # fmt: skip


def _require(table: Table, frame: pd.DataFrame, environment: Environment | None) -> None:
    """Name every column that is missing, with the nearest names in the file."""
    if environment is None:
        lacking = [] if {"action", "response"} & set(frame) else ["action or response"]
    else:
        schema = trial_schema(environment)
        needed = [c.name for c in schema.columns if c.required]
        needed += ["reward"] if environment.feedback and environment.name != "iowa_gambling" else []
        # What the experiment adds by itself from the others is found out by asking it to.
        lacking = [name for name in dict.fromkeys(needed) if name not in frame]
        if lacking and {"subject", "trial"} <= set(frame):
            lacking = [name for name in lacking if name not in _added(environment, frame)]
    if lacking:
        raise ValueError(_lacking(table, lacking, environment))


def _added(environment: Environment, frame: pd.DataFrame) -> set[str]:
    """Return the columns that the experiment adds to such a table by itself."""
    probe = frame.assign(outcome="malformed").head(1)
    probe = probe.assign(**{name: np.nan for name in ("action", "response") if name in probe})
    try:
        return set(map(str, environment.complete(Trials.from_frame(probe)).columns))
    except ValueError:
        return set(map(str, frame.columns))  # its own sentence says what is wrong


def _lacking(table: Table, names: Sequence[str], environment: Environment | None = None) -> str:
    """Return the sentence that names all columns that are missing."""
    there = list(map(str, table.cells.columns))
    near = []
    for name in names:
        close = get_close_matches(name, there, 1, 0.5)
        near.append(f"{name} (nearest: {close[0]})" if close else name)
    of = environment.name if environment is not None else "trials"
    return (
        f"{of} needs the column{'s' if len(names) > 1 else ''} {', '.join(near)}; {table.file} has "
        f"{', '.join(there)}. Map them: --map {names[0].split()[0]}=YOUR_NAME."
    )


def _answered(
    table: Table, frame: pd.DataFrame, environment: Environment | None, tally: Tally
) -> pd.DataFrame:
    """Add what became of each answer; without one there is no reward."""
    wanted = [name for name in ("action", "response") if name in frame]
    if environment is not None and environment.given != "either":
        wanted = [name for name in wanted if environment.given in (name, "both")]
    given = frame[wanted].notna()
    answered = (
        given.any(axis=1)
        if environment is None or environment.given != "both"
        else given.all(axis=1)
    )
    if "outcome" not in frame:
        tally.mark(UNREADABLE, "no answer", table, ~answered)
        said = frame["raw_text"].notna() if "raw_text" in frame else False
        silent = np.where(said, "malformed", "empty")
        frame = frame.assign(outcome=np.where(answered, "ok", silent))
    half = ~answered & given.any(axis=1)
    tally.mark(UNREADABLE, "half an answer: action or response is missing", table, half)
    for name in (*wanted, "reward", "gain", "loss"):
        if name in frame:
            frame[name] = frame[name].where(answered)
    if environment is not None and environment.feedback and "reward" in frame:
        unpaid = answered & frame["reward"].isna()
        tally.mark(UNREADABLE, "an answer whose reward is missing", table, unpaid)
        for name in wanted:
            frame[name] = frame[name].where(~unpaid)
        frame["outcome"] = frame["outcome"].where(~unpaid, "malformed")
    return frame


def _means(
    table: Table, frame: pd.DataFrame, environment: Environment, tally: Tally
) -> pd.DataFrame:
    """Add the machines' means of each block, from whether choices were accurate."""
    high, low = environment.settings["high"], environment.settings["low"]
    known = frame["action"].notna() & frame["accurate"].notna()
    better = better_machine(
        frame["action"].to_numpy(float),
        frame["accurate"].to_numpy(float),
        np.zeros(len(frame), bool),
    )
    keys = [key for key in ("subject", "session", "block") if key in frame]
    told = pd.Series(better).where(known).groupby([frame[key] for key in keys], sort=False)
    agreed = told.transform("min") == told.transform("max")
    tally.mark(DERIVED, "the better machine of each block, from 'accurate'", table, agreed)
    tally.mark(TOLD, "'accurate' of a block disagrees, so its means are unknown", table, ~agreed)
    first = told.transform("min")
    return frame.assign(
        mean_0=np.where(agreed, np.where(first == 0, high, low), np.nan),
        mean_1=np.where(agreed, np.where(first == 1, high, low), np.nan),
    )


def _blocks(table: Table, frame: pd.DataFrame, tally: Tally) -> pd.DataFrame:
    """Add the blocks, which end where the better machine changes, if the means are known."""
    known = {"mean_0", "mean_1"} <= set(frame)
    if not known or frame[["mean_0", "mean_1"]].isna().any().any():
        return frame
    keys = [key for key in ("subject", "session") if key in frame]
    session = frame.groupby(keys, sort=False).ngroup().to_numpy()
    order = np.lexsort((frame["trial"], session))
    block = np.empty(len(frame), dtype=np.int64)
    first, other = (frame[name].to_numpy()[order] for name in ("mean_0", "mean_1"))
    block[order] = blocks_of_means(first, other, session[order])
    tally.mark(DERIVED, "blocks, from where the means change places", table, np.ones(len(table)))
    return frame.assign(block=block)


def _asked(
    table: Table, frame: pd.DataFrame, environment: TemporalDiscounting, tally: Tally
) -> pd.DataFrame:
    """Return the questions of a questionnaire of which items and answers are known."""
    lost = frame["item"].isna()
    tally.mark(LEFT_OUT, "no number of the item", table, lost)
    frame = frame[~lost].reset_index(drop=True)
    told = questions_of_answers(frame.drop(columns="trial"), environment)
    tally.mark(DERIVED, "sums and delays, from the answers before", table, ~lost)
    return told


def _reshaped(
    table: Table, frame: pd.DataFrame, environment: Environment, tally: Tally
) -> pd.DataFrame:
    """Return trials of a table in which a row is a day, a balloon or a play."""
    if environment.name == "two_step":
        if "state" not in frame:
            what = "the planet, from the second choice (0, 1: the first; 2, 3: the second)"
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
    keys = [key for key in ("subject", "session") if key in frame]
    if environment.name == "balloon_risk":
        maxima = tuple(environment.settings["maxima"])
        if "maximum" not in frame:
            kinds = frame["type"] if "type" in frame else pd.Series(0.0, index=frame.index)
            frame = frame.assign(maximum=np.array(maxima)[kinds.to_numpy(dtype=np.int64)])
            tally.mark(DERIVED, "maxima of balloons, from the setting", table, np.ones(len(table)))
        if "balloon" not in frame:
            frame["balloon"] = frame.groupby(keys, sort=False).cumcount()
        right = frame[["pumps", "exploded", "maximum"]].notna().all(axis=1)
        tally.mark(LEFT_OUT, "a balloon without pumps or end", table, ~right)
        tally.mark(DERIVED, "a row for each pump, and one for the stop", table, right)
        own = frame[right].drop(columns=["trial", *({"type"} & set(frame))])
        return pumps_of_balloons(own.reset_index(drop=True), maxima=maxima)
    whole = frame[list(PLAYS)].notna().all(axis=1)
    games = [frame[key] for key in (*keys, "game")]
    kept = whole.groupby(games, sort=False).transform("all")
    tally.mark(LEFT_OUT, "a play of a game that is not whole", table, ~kept)
    tally.mark(DERIVED, "running means and counts of both machines", table, kept)
    return games_of_plays(frame[kept].drop(columns="trial").reset_index(drop=True))


def _ask_for_units(
    frame: pd.DataFrame, environment: Environment | None, mapping: ColumnMap
) -> None:
    """Ask about answers that lie on another scale than the experiment's."""
    if environment is None or "response" not in frame or environment.given == "action":
        return
    low, high = environment.response_range
    values = frame["response"].dropna()
    if not len(values) or mapping.named("units", "response"):
        return
    if high == 100 and values.max() <= 1 and (values % 1 != 0).any():
        raise ValueError(
            f"Responses of {environment.name} go from {low:g} to {high:g}; all of these are at "
            "most 1. Say what they are: --map 'response: share', or 'response: as is'."
        )
    if high == 1 and values.max() > 1 and (values > 1).mean() > 0.2:
        raise ValueError(
            f"Responses of {environment.name} go from {low:g} to {high:g}; these go to "
            f"{values.max():g}. Say what they are: --map 'response: percent'; a few "
            "answers out of range are corrected or left empty in the file."
        )
