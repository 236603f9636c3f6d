"""Trials of any table whose columns and values a mapping explains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from knownminds.environments import (
    Environment,
    TemporalDiscounting,
    Trials,
    better_machine,
    blocks_of_means,
    make,
    trial_schema,
    unknown,
)

from .account import DERIVED, LEFT_OUT, TOLD, UNREADABLE, CellTable, Tally
from .browser import opened
from .discounting_answers import questions_of_answers
from .mapping import BY_ACTION, UNITS, ColumnMap
from .shapes import SHAPES, reshaped
from .tables import check_known, identified, numbers, whole_numbers, without_copies

ANSWERS = ("action", "response", "action1", "action2", "pumps")
PAID = ("reward", "gain", "loss")
_COUNTED = ("trial", "action", "response", "reward")
_BY_NAME = ("domain", "sense", "task", "queried", "present")  # may be given in words


def mapped_rows(
    table: CellTable, tally: Tally, given: Mapping[str, Any], *, mapping: ColumnMap, name: str
) -> pd.DataFrame:
    """Return the rows of a table as trials in our columns.

    Parameters
    ----------
    table, tally : The cells, and what counts what is done to them.
    given : Settings of the experiment beyond the mapping's.
    mapping : What columns and values are.
    name : Of the experiment; "" if none is named.

    Raises
    ------
    ValueError : If a column is not there, or a cell of a strict mapping has no meaning.
    """
    environment = make(name, **{**mapping.settings, **given}) if name else None
    cells = _columns(table, mapping, tally)
    if "subject" not in cells:
        raise ValueError(_lacking(table, ["subject"]))
    with_constants = replace(
        table, cells=cells.assign(**{n: str(v) for n, v in mapping.constants.items()})
    )
    if mapping.strict:
        lost = with_constants.cells["subject"].isna()
        tally.mark(LEFT_OUT, "no subject", with_constants, lost)
        with_constants = with_constants.keep(~lost)
    else:
        with_constants = identified(with_constants, "subject", tally)
    with_constants = _without_copies(with_constants, tally)
    shape = _shape(environment, with_constants.cells)
    rows = _Rows(with_constants, mapping, environment, shape, tally)
    with_constants, frame = rows.numbered()
    if environment is not None and shape and environment.name != "temporal_discounting":
        return reshaped(with_constants, frame, environment, tally, mapping.strict)
    if isinstance(environment, TemporalDiscounting):
        with_constants, frame = _questions(with_constants, frame, environment, tally, bool(shape))
    _require(table, frame, environment)
    with_constants, frame = rows.shown(with_constants, frame)
    if environment is not None and environment.name == "restless_bandit":
        if "accurate" in frame:
            frame = _means(with_constants, frame, environment, tally)
        if "block" not in frame:
            frame = _blocks(with_constants, frame, tally)
    return _answered(with_constants, frame, environment, tally)


def _without_copies(table: CellTable, tally: Tally) -> CellTable:
    """Leave out exact copies of rows in a table that numbers its trials."""
    cells = table.cells
    places = [name for name in ("trial", "play", "balloon") if name in cells]
    if not places:
        return table
    units = [name for name in ("subject", "session", "block", "game") if name in cells]
    unit = cells[units].fillna("").astype("str").agg("/".join, axis=1)
    return without_copies(table, unit, cells[places[0]], tally)


def _shape(environment: Environment | None, cells: pd.DataFrame) -> tuple[str, ...]:
    """Return the columns of the shape of others that a table has; () if a row is a trial."""
    shape = SHAPES.get(environment.name if environment else "", ())
    ours = {"mean_0", "later_amount"} & set(cells.columns)
    return shape if set(shape) <= set(cells.columns) and not ours else ()


MOST_TEXTS = 6  # of a column that are named in a sentence


def _columns(table: CellTable, mapping: ColumnMap, tally: Tally) -> pd.DataFrame:
    """Return the cells under our names; a field within JSON text is taken out of it."""
    cells = table.cells
    added: dict[str, Any] = {}
    alike = {name.lower().replace("_", ""): name for name in map(str, cells.columns)}
    spoken = {*cells.columns, *mapping.columns, *mapping.columns.values()}
    for name in ("session", "trial"):  # these need no mapping, in capitals either
        theirs = alike.get(name, name)
        if name not in spoken and theirs in cells and theirs not in mapping.columns.values():
            cells = cells.rename(columns={theirs: name})
            tally.add(TOLD, f"the column {theirs!r} is {name!r}")
    for ours, theirs in mapping.columns.items():
        if theirs in cells:
            continue
        if (other := alike.get(theirs.lower().replace("_", ""))) is not None:
            cells = cells.rename(columns={other: theirs})
            tally.add(TOLD, f"the column {other!r} is the {theirs!r} of the mapping")
            continue
        opened_table = opened(table, theirs, tally)
        if opened_table is None:
            close = get_close_matches(theirs, list(map(str, cells.columns)), 3)
            near = f" Nearest: {', '.join(close)}." if close else ""
            raise ValueError(
                f"Every mapped column must exist; {ours}={theirs} names none of "
                f"{', '.join(map(str, cells.columns))}.{near}"
            )
        added[theirs] = opened_table
    cells = cells.assign(**added)
    named = list(mapping.columns.values())
    twice = [name for name in named if named.count(name) > 1]
    if twice:
        raise ValueError(f"A column can serve once; {twice[0]!r} is mapped more than once.")
    names = {theirs: ours for ours, theirs in mapping.columns.items()}
    taken = [name for name in cells.columns if name in names.values() and name not in names]
    return cells.drop(columns=taken).rename(columns=names)


@dataclass
class _Rows:
    """The rows of a table while they become trials."""

    table: CellTable
    mapping: ColumnMap
    environment: Environment | None
    shape: tuple[str, ...]
    tally: Tally

    def numbered(self) -> tuple[CellTable, pd.DataFrame]:
        """Return all columns, numbers as such, with the number of each trial."""
        table, tally = self.table, self.tally
        frame = pd.DataFrame({"subject": whole_numbers(table.cells["subject"])})
        if "session" in table.cells:
            frame["session"] = whole_numbers(table.cells["session"].fillna("0"))
        numeric = self._numeric()
        for name in table.cells.columns:
            if name in frame:
                continue
            said = (self.mapping.named(what, name) for what in ("values", "units", "ranges"))
            if any(said) or name in numeric:
                frame[name], wrong = self._values(name)
                if name in ("action", "response") and wrong.any():
                    text = frame.get("raw_text", pd.Series(pd.NA, frame.index, dtype="object"))
                    frame["raw_text"] = text.where(~wrong, table.cells[name])
            else:
                frame[name] = table.cells[name]
        for name, unit in self.mapping.units.items():
            if BY_ACTION.fullmatch(unit):
                frame[name] = _of_the_chosen(table, frame, name, unit, tally)
        if "trial" not in frame:
            keys = [key for key in ("subject", "session") if key in frame]
            tally.mark(DERIVED, "trials numbered by their order", table, np.ones(len(table)))
            return table, frame.assign(trial=frame.groupby(keys, sort=False).cumcount())
        lost = frame["trial"].isna()
        tally.mark(LEFT_OUT, "no trial number", table, lost)
        return table.keep(~lost), frame[~lost].reset_index(drop=True)

    def _numeric(self) -> set[str]:
        """Return the columns that hold numbers."""
        names = {*_COUNTED, "block", *self.shape}
        if self.environment is not None:
            columns = trial_schema(self.environment).columns
            names |= {column.name for column in columns if column.kind != "string"}
            names |= {"state", "maximum", "type", "balloon", "accurate"}
        return (names - set(_BY_NAME)) | set(_COUNTED)

    def _values(self, name: str) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Return a column as numbers of ours, NaN where none stands, and which cells are wrong."""
        table, mapping, tally = self.table, self.mapping, self.tally
        cells = table.cells[name]
        silent = mapping.silent(cells) if name in ANSWERS else cells.isin([])
        tally.mark(UNREADABLE, f"{name!r} holds a code for no answer", table, silent)
        cells = cells.where(~silent)
        codes: Mapping[str, float] | None = mapping.named("values", name)
        values: NDArray[np.float64]
        if codes is not None:
            plain = whole_numbers(cells).where(cells.notna())
            wrong = (plain.notna() & ~plain.isin(list(codes))).to_numpy(dtype=bool)
            values = np.asarray(plain.map(dict(codes)).to_numpy(dtype=float, na_value=np.nan))
            remedy = f"the mapping knows {', '.join(codes)}. Add it, or name it with --missing."
        else:
            shown = replace(table, cells=table.cells.assign(**{name: cells}))
            values, wrong = numbers(shown, name, tally)
            theirs = mapping.columns.get(name, name)
            texts = [str(text) for text in cells[wrong].dropna().unique()[:MOST_TEXTS].tolist()]
            meant = ",".join(f"{text}={k}" for k, text in enumerate(sorted(texts))) or "TEXT=0"
            remedy = (
                "the column holds numbers. Say what its texts mean, perhaps --map "
                f"'{theirs}: {meant}'; or name what stands for no answer: --missing TEXT."
            )
        unit = mapping.named("units", name)
        if unit in UNITS:
            scale, what = UNITS[unit]
            if unit != "as is":
                tally.mark(DERIVED, f"{name!r}: {what}", table, ~np.isnan(values))
            values = scale(values)
        if (ends := mapping.named("ranges", name)) is not None:
            outside = ~np.isnan(values) & ~((values >= ends[0]) & (values <= ends[1]))
            wrong, values = wrong | outside, np.where(outside, np.nan, values)
            remedy = f"it goes from {ends[0]:g} to {ends[1]:g} here."
        if wrong.any() and not mapping.strict and codes is not None:
            theirs = mapping.columns.get(name, name)
            coded = replace(table, cells=pd.DataFrame({theirs: cells}))
            check_known(
                coded, theirs, wrong, codes, map_by=f"--map '{theirs}",
                answers=name in ANSWERS, continued=True,
            )  # fmt: skip
        if wrong.any() and mapping.strict:
            row = int(np.flatnonzero(wrong)[0])
            raise ValueError(
                f"Every value has a meaning; {table.row_name(row)} has {cells.iloc[row]!r} as "
                f"{name!r}, and {remedy}"
            )
        tally.mark(UNREADABLE, f"{name!r} has no meaning", table, wrong)
        return values, wrong

    def shown(self, table: CellTable, frame: pd.DataFrame) -> tuple[CellTable, pd.DataFrame]:
        """Leave out rows without a stimulus, where the mapping lets an import go on."""
        if self.mapping.strict or self.environment is None:
            return table, frame
        answers = {*ANSWERS, *PAID, "trial"}
        columns = trial_schema(self.environment).columns
        needed = [c.name for c in columns if c.required and c.name not in answers]
        lost = frame[[name for name in needed if name in frame]].isna().any(axis=1)
        self.tally.mark(LEFT_OUT, "a stimulus is missing", table, lost)
        return table.keep(~lost), frame[~lost].reset_index(drop=True)


def _of_the_chosen(
    table: CellTable, frame: pd.DataFrame, name: str, unit: str, tally: Tally
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
    index = np.where(known, action, 0).astype(np.int64)
    return np.where(known, values[index, np.arange(len(action))], np.nan)


def _require(table: CellTable, frame: pd.DataFrame, environment: Environment | None) -> None:
    """Name every column that is missing, with the nearest names in the file."""
    if environment is None:
        lacking = [] if {"action", "response"} & set(frame) else ["action or response"]
    else:
        schema = trial_schema(environment)
        needed = [c.name for c in schema.columns if c.required]
        needed += ["reward"] if environment.feedback and environment.name != "iowa_gambling" else []
        # What the experiment adds by itself from the others is read off the experiment.
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
        return set(map(str, frame.columns))  # its sentence says what is wrong


def _lacking(table: CellTable, names: Sequence[str], environment: Environment | None = None) -> str:
    """Return the sentence that names all columns that are missing."""
    there = list(map(str, table.cells.columns))
    near = []
    for name in names:
        close = get_close_matches(name, there, 1, 0.5)
        near.append(f"{name} (nearest: {close[0]})" if close else name)
    of = environment.name if environment is not None else "trials"
    return (
        f"{of} needs the column{'s' if len(names) > 1 else ''} {', '.join(near)}; {table.file} has "
        f"{', '.join(there)}. Map them: --map {names[0].split()[0]}=YOUR_NAME. "
        "What is one number in all rows stands under [constants] in a map, --map FILE.toml."
    )


def _answered(
    table: CellTable, frame: pd.DataFrame, environment: Environment | None, tally: Tally
) -> pd.DataFrame:
    """Add what became of each answer; without one there is no reward."""
    kind = environment.given if environment is not None else "either"
    wanted = [name for name in ("action", "response") if name in frame]
    wanted = [name for name in wanted if kind in ("either", "both", name)]
    given = frame[wanted].notna()
    answered = given.all(axis=1) if kind == "both" else given.any(axis=1)
    half = ~answered & given.any(axis=1)
    tally.mark(UNREADABLE, "half an answer: action or response is missing", table, half)
    paid = [name for name in PAID if name in frame]
    due = frame["stage"] == 1 if "stage" in frame else answered  # a day pays at its end
    unpaid = answered & due & frame[paid].isna().any(axis=1)
    if environment is None or not environment.feedback:
        unpaid = unpaid & False
    tally.mark(UNREADABLE, "an answer whose reward is missing", table, unpaid)
    if "outcome" not in frame:
        said = frame["raw_text"].notna() if "raw_text" in frame else ~answered & False
        tally.mark(UNREADABLE, "no answer", table, ~answered & ~said)
        silent = np.where(said, "malformed", "empty")
        frame = frame.assign(outcome=np.where(answered, "ok", silent))
    frame["outcome"] = frame["outcome"].where(~unpaid, "malformed")
    for name in (*wanted, *paid):
        frame[name] = frame[name].where(answered & ~unpaid)
    return frame


def _means(
    table: CellTable, frame: pd.DataFrame, environment: Environment, tally: Tally
) -> pd.DataFrame:
    """Add the machines' means of each block, from whether choices were accurate."""
    high, low = environment.settings["high"], environment.settings["low"]
    known = frame["action"].notna() & frame["accurate"].notna()
    better = better_machine(
        frame["action"].to_numpy(float),
        frame["accurate"].to_numpy(float),
        np.zeros(len(frame), bool),
    )
    keys = [frame[key] for key in ("subject", "session", "block") if key in frame]
    first = agreed_in(pd.Series(better).where(known), keys, table, tally)
    return frame.assign(
        mean_0=first.map({0: high, 1: low}), mean_1=first.map({1: high, 0: low})
    )  # fmt: skip


def agreed_in(
    better: pd.Series[Any], keys: Sequence[pd.Series[Any]], table: CellTable, tally: Tally
) -> pd.Series[Any]:
    """Return the better machine of each block, from accuracy; NaN where rows disagree."""
    blocks = better.groupby(list(keys), sort=False)
    low, high = blocks.transform("min"), blocks.transform("max")
    agreed = low == high
    tally.mark(DERIVED, "the better machine of each block, from 'accurate'", table, agreed)
    tally.mark(TOLD, "'accurate' of a block disagrees, so its means are unknown", table, ~agreed)
    return low.where(agreed)


def _blocks(table: CellTable, frame: pd.DataFrame, tally: Tally) -> pd.DataFrame:
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


def _questions(
    table: CellTable,
    frame: pd.DataFrame,
    environment: TemporalDiscounting,
    tally: Tally,
    items: bool,
) -> tuple[CellTable, pd.DataFrame]:
    """Add the questions of a questionnaire of which items and answers are known."""
    if not items and "item" not in frame:
        paid = frame["later_amount"] < 0 if "later_amount" in frame else np.zeros(len(table), bool)
        tally.mark(DERIVED, "item 0: sums that are received", table, ~paid)
        tally.mark(DERIVED, "item 2: sums that are paid", table, paid)
        return table, frame.assign(item=np.where(paid, 2, 0))
    if not items:
        return table, frame
    lost = frame["item"].isna()
    tally.mark(LEFT_OUT, "no number of the item", table, lost)
    tally.mark(DERIVED, "sums and delays, from the answers before", table, ~lost)
    answered = frame[~lost].reset_index(drop=True)
    return table.keep(~lost), questions_of_answers(answered.drop(columns="trial"), environment)
