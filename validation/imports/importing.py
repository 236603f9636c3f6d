"""Files of others to trials, with an account of what was understood."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from knownminds.environments import ENVIRONMENTS, Environment, Trials, make, unknown
from knownminds.environments.conditions import SHARED_DESIGN, conditions_of
from knownminds.environments.record.text_table import counted
from knownminds.environments.record.trials import SETTINGS

from .account import ASKED, ASSUMED, DERIVED, LEFT_OUT, TOLD, Account, CellTable, Tally, account_of
from .browser import is_json, read_browser
from .formats import Format, format_of, format_of_map
from .mapping import UNITS, ColumnMap
from .tables import ending_of, named_after_file, read_table, whole_numbers
from .told_texts import read_texts

if TYPE_CHECKING:
    from knownminds.validation.data.questions import AskImport

# Columns of answers in formats of others; only these hold codes for no answer.
ANSWERED_BY = {"choice", "confidence", "left_pred", "action1", "action2", "pumps", "response", "y"}
JSON = (".json", ".jsonl", ".ndjson", ".txt")  # endings of files of browser experiments
WIDE = 5  # numbered columns of one name, from which on a table is taken for wide


@dataclass(frozen=True)
class Imported:
    """Trials of files, and what was understood of these.

    Parameters
    ----------
    trials : What was made.
    account : What became of every row; None of files in a form of ours.
    mapping : The mapping that explained them, if one did.
    """

    trials: Trials
    account: Account | None = None
    mapping: ColumnMap | None = None


def import_tables(
    files: Sequence[Path], question: AskImport, mapping: ColumnMap | None = None
) -> Imported:
    """Read tables as a mapping or a format that is known explains them.

    Parameters
    ----------
    files : Text tables, or with a mapping the JSON of a browser experiment; those of 0 bytes are
        passed over and counted.
    question : What is known of the files beyond what stands in them; its format is None for what
        the heads tell.
    mapping : What columns and values are; None for files in formats that are known.

    Raises
    ------
    ValueError : If a file is of no known format, no row can be used, files are of several
        experiments, or trials break the rules of their experiment.
    """
    name, settings = name_of(question.environment), question.settings or {}
    if name and name not in ENVIRONMENTS:
        raise ValueError(unknown("environment", name, ENVIRONMENTS))
    where = {**(mapping.where if mapping else {}), **(question.where or {})}
    tally = Tally()
    tables: list[CellTable] = []
    read: list[tuple[Format, CellTable, pd.DataFrame]] = []
    for file in files:
        if file.is_file() and not file.stat().st_size and len(files) > 1:
            tally.add(TOLD, f"{file.name} is empty and was passed over")
            continue
        table = chosen(_table(file, question, mapping, tally), where, tally)
        tables.append(table)
        known, ready = _format(table, question, mapping)
        _check_settings(known.environment, settings)
        frame = known.read(ready, tally, settings)
        if question.subject_from_file:
            frame = frame.assign(subject=table.name)
        if not len(frame):
            tally.add(TOLD, f"no row of {file.name} could be used")
            continue
        if unread := known.unread(ready, frame):
            tally.add(TOLD, f"columns that are not kept: {', '.join(unread)}")
        read.append((known, table, frame))
    if not read:
        raise ValueError(_nothing(tables, tally))
    known = read[0][0]
    names = sorted({each.environment for each, _, _ in read})
    if len(names) > 1:
        raise ValueError(
            f"Trials of one experiment go into one file; these are of {', '.join(names)}. "
            "Import them apart."
        )
    apart = sessions_apart([frame for *_, frame in read], [table for _, table, _ in read], tally)
    whole = pd.concat(apart, ignore_index=True)
    if "raw_text" in whole and whole["raw_text"].isna().all():
        whole = whole.drop(columns="raw_text")
    environment = _experiment(known, whole, tables, settings)
    if environment is None and names[0]:
        whole = whole.assign(environment=names[0])
    if mapping is not None and environment is not None:
        _check_scale(whole, environment, mapping)
    trials = Trials.from_frame(whole, environment=environment)
    if environment is not None:
        trials.frame.attrs[SETTINGS] = {environment.name: _that_hold(environment, trials)}
        told = dict(known.settings(whole, tables)) if known.settings else {}
        told |= {**settings, **(known.mapping or ColumnMap()).settings}
        for entry in assumed(environment, trials, told):
            tally.add(*entry)
    account = account_of(known.source, names[0], tables, tally, trials.frame)
    return Imported(trials, account, known.mapping)


def name_of(environment: Environment | str | None) -> str | None:
    """Return the name of an experiment."""
    return environment.name if isinstance(environment, Environment) else environment


def _table(file: Path, question: AskImport, mapping: ColumnMap | None, tally: Tally) -> CellTable:
    if mapping is not None and mapping.pattern:
        return read_texts(file, mapping.pattern, mapping.names, tally)
    if mapping is not None and ending_of(file) in JSON and is_json(file):
        return read_browser(file, tally)
    return read_table(file, tally, encoding=question.encoding)


def _format(
    table: CellTable, question: AskImport, mapping: ColumnMap | None
) -> tuple[Format, CellTable]:
    """Return what explains a table, and the table as that has its columns.

    A mapping that names no column changes codes of a format that is known.
    """
    name, source = name_of(question.environment), question.format
    codes_alone = mapping is None or not (mapping.columns or mapping.pattern)
    fitting = format_of(table, source, name) if codes_alone else None
    if mapping is not None and fitting is None:
        if question.subject_from_file:
            columns = {ours: t for ours, t in mapping.columns.items() if ours != "subject"}
            table, mapping = named_after_file(table), replace(mapping, columns=columns)
        return format_of_map(mapping, "a mapping", name), table
    if fitting is None:
        of = f"a table of {source}" if source else "of a format that is known"
        raise ValueError(
            f"{table.file} is not {of}: it has the columns "
            f"{', '.join(map(str, table.cells.columns))}. {_wide(table)}Say what they are with "
            f"--map{_perhaps(table)}."
        )
    known, ready = fitting
    if known.mapping is not None and not known.environment:
        name = name or _named_in(ready)
        if name is None:
            raise ValueError(
                f"No column of {table.file} names its experiment. Name it with --environment."
            )
        known = format_of_map(known.mapping, known.source, name)
    codes = (mapping or ColumnMap()).merged(ColumnMap(missing=tuple(question.missing)))
    if known.mapping is not None:
        return format_of_map(known.mapping.merged(codes), known.source, known.environment), ready
    return known, _recoded(ready, codes)


# Of what tables often have, by the words of a column's head without signs.
OFTEN: Mapping[str, tuple[str, ...]] = {
    "subject": ("id", "subj", "subid", "subjectid", "participant", "participantid", "ppt", "pid",
                "person", "respondent", "worker", "sub"),
    "session": ("sess", "sessionid", "run", "block", "visit"),
    "trial": ("trialno", "trialnr", "trialnumber", "trialindex", "trialid", "t", "round"),
    "action": ("choice", "chosen", "choose", "selected", "option", "decision", "key"),
    "response": ("rating", "estimate", "judgement", "judgment", "answer"),
    "reward": ("outcome", "payoff", "points", "feedback", "gain", "win", "won", "result"),
}  # fmt: skip


def _perhaps(table: CellTable) -> str:
    """Write the map that the heads of a table suggest; "" where they name no subject."""
    heads = {re.sub(r"[\W_]", "", name).lower(): name for name in map(str, table.cells.columns)}
    found = {
        ours: next((heads[word] for word in (ours, *words) if word in heads), None)
        for ours, words in OFTEN.items()
    }
    pairs = [f"{ours}={theirs}" for ours, theirs in found.items() if theirs is not None]
    guess = f", perhaps --map '{','.join(pairs)}'" if found["subject"] and len(pairs) > 1 else ""
    return f"{guess}, and name the experiment with --environment" if guess else ""


def _recoded(table: CellTable, codes: ColumnMap) -> CellTable:
    """Return a table of a known format whose cells are in the codes of that format."""
    added: dict[str, Any] = {}
    for column in dict.fromkeys((*codes.values, *codes.units)):
        if column not in table.cells:
            raise ValueError(unknown(f"column of {table.file}", column, table.cells.columns))
        plain = whole_numbers(table.cells[column]).where(table.cells[column].notna())
        meant = {text: f"{value:g}" for text, value in codes.values.get(column, {}).items()}
        if column in codes.units:
            scale = UNITS[codes.units[column]][0]
            values = pd.to_numeric(plain, errors="coerce").to_numpy(dtype=float)
            plain = pd.Series(scale(values)).astype("str").where(~np.isnan(values), plain)
        added[column] = plain.map(
            lambda text, meant=meant: meant.get(text, text), na_action="ignore"
        )
    for column in ANSWERED_BY & set(map(str, table.cells.columns)):
        cells = added.get(column, table.cells[column])
        added[column] = cells.where(~codes.silent(cells))
    return replace(table, cells=table.cells.assign(**added)) if added else table


def _named_in(table: CellTable) -> str | None:
    """Return the experiment that a column `environment` names, if it names one."""
    cells = table.cells
    names = set(cells["environment"].dropna()) if "environment" in cells else set()
    return next(iter(names)) if len(names) == 1 and names <= set(ENVIRONMENTS) else None


def sessions_apart(
    frames: Sequence[pd.DataFrame], tables: Sequence[CellTable], tally: Tally
) -> list[pd.DataFrame]:
    """Return the trials of several files, sessions that stand in several of them separated.

    A session that is the same in an earlier file, trial by trial, is left out. One with other
    answers is a further pass, and its name says which.
    """
    keys = ["subject", "session", "trial"]
    whole = [f if "session" in f else f.assign(session="0") for f in frames]
    if not pd.concat([frame[keys] for frame in whole]).duplicated().any():
        return list(frames)
    apart: list[pd.DataFrame] = []
    seen: dict[tuple[str, str], list[pd.DataFrame]] = {}
    for frame, table in zip(whole, tables, strict=True):
        for (subject, session), rows in frame.groupby(keys[:2], sort=False):
            earlier = seen.setdefault((str(subject), str(session)), [])
            trials = rows.sort_values("trial", ignore_index=True)
            where = f"session {session} in {table.file}"
            if any(trials.equals(other) for other in earlier):
                what = "a trial of a session that stands in an earlier file too"
                tally.add(LEFT_OUT, what, len(rows), where)
                continue
            if any(set(trials["trial"]) & set(other["trial"]) for other in earlier):
                what = "a further pass of a session that stands in an earlier file"
                tally.add(DERIVED, what, len(rows), where)
                rows = rows.assign(session=f"{session}, pass {len(earlier) + 1}")
            earlier.append(trials)
            apart.append(rows)
    return apart


def _wide(table: CellTable) -> str:
    """Return a sentence if a table has a column for each trial; else nothing."""
    numbered = Counter(
        match[1] for name in table.cells.columns if (match := re.fullmatch(r"(.*?)\d+", str(name)))
    )
    stem, n = max(numbered.items(), key=lambda item: item[1], default=("", 0))
    if n < WIDE:
        return ""
    return (
        f"It has {n} columns {stem}1, {stem}2, ...: a wide table, where an import takes a row for "
        "each trial. Make it long first (pandas.wide_to_long, or pivot_longer in R). "
    )


def chosen(table: CellTable, where: Mapping[str, str], tally: Tally) -> CellTable:
    """Return the rows whose columns have the values that are wanted; the others are counted."""
    for column, value in where.items():
        if column not in table.cells:
            raise ValueError(unknown(f"column of {table.file}", column, table.cells.columns))
        kept = (table.cells[column] == value).fillna(False)
        tally.mark(LEFT_OUT, f"{column} is not {value} (--where)", table, ~kept)
        if not kept.any():
            raise ValueError(
                f"--where keeps some rows; {column}={value} keeps none of {table.file}, which "
                f"has {', '.join(map(str, table.cells[column].dropna().unique()[:5]))}."
            )
        table = table.keep(kept)
    return table


def _experiment(
    known: Format, frame: pd.DataFrame, tables: Sequence[CellTable], given: Mapping[str, Any]
) -> Environment | None:
    if not known.environment:
        return None
    return make(known.environment, **known.settings_of(frame, tables, given))


def _check_settings(name: str, given: Mapping[str, Any]) -> None:
    """Raise ValueError at a setting that the experiment does not have."""
    shipped = make(name).settings if name else given
    for setting in given:
        if setting not in shipped:
            raise ValueError(unknown(f"setting of {name}", setting, shipped))


def _that_hold(environment: Environment, trials: Trials) -> dict[str, Any]:
    """Return the settings that go with trials: no condition that is another one in some rows."""
    told, frame = conditions_of(environment), trials.frame
    other = {n for n, value in told.items() if n in frame and not (frame[n] == value).all()}
    other |= {"control"} if "overload" in other else set()
    names = {"answer": "reasoning"}
    settings = trials.settings[environment.name]
    return {name: value for name, value in settings.items() if names.get(name, name) not in other}


def assumed(
    environment: Environment, trials: Trials, told: Collection[str]
) -> list[tuple[str, str]]:
    """Return what an import takes for granted, and what it asks for; kinds and sentences.

    Predictive checks, controls, measures and studies from a pilot play the experiment with these
    settings. The size is asked for where all sessions are shorter than it makes them. What columns
    record is told, and a list of all questions tells everything.
    """
    shipped, given = type(environment)().settings, environment.settings
    if given.get("design") == "pairs":
        return []
    recorded: Mapping[str, str] = getattr(environment, "recorded", {})
    words = SHARED_DESIGN | {"templates"}
    words |= {name for name, column in recorded.items() if column in trials.frame}
    taken = {
        name: value
        for name, value in given.items()
        if name not in told and name not in words and value is not None and value == shipped[name]
    }
    if not taken:
        return []
    said = ", ".join(f"{name}={json.dumps(value)}" for name, value in taken.items())
    found = [(ASSUMED, f"{said}: as shipped, since no column tells; --set NAME=VALUE, if not so")]
    size, lengths = environment.size, trials.frame.groupby(["subject", "session"]).size()
    planned, played = environment.n_trials, int(lengths.max())
    if size not in taken or (lengths != played).any() or played >= planned:
        return found
    fewer = [
        f"{seen} of {high + 1:g} values of {field.name} ({field.setting})"
        for field in environment.fields
        if field.setting in taken
        and field.name in trials.frame
        and (high := field.bounds(environment)[1])
        and (seen := trials.frame[field.name].nunique()) <= high
    ]  # fmt: skip
    smaller = taken[size] * played // planned
    if fewer:
        text = (
            f"sessions have {played} trials, not {planned}, and {' and '.join(fewer)}; if so "
            f"planned, give these settings and {size} with --set"
        )
        found.append((ASKED, text))
    elif smaller and make(environment.name, **{**given, size: smaller}).n_trials == played:
        text = (
            f"sessions have {played} trials, not {planned}: --set {size}={smaller}, if so planned"
        )
        found.append((ASKED, text))
    return found


def _check_scale(frame: pd.DataFrame, environment: Environment, mapping: ColumnMap) -> None:
    """Ask about answers that lie on another scale than the experiment's."""
    if "response" not in frame or environment.given == "action":
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


def _nothing(tables: Sequence[CellTable], tally: Tally) -> str:
    why = "; ".join(
        f"{entry.what} ({counted(entry.rows, 'row')})"
        for entry in tally.entries
        if entry.rows and entry.kind != DERIVED
    )
    names = ", ".join(table.file for table in tables[:3]) or "the files"
    return f"An import makes at least one trial; {names} gave none: {why or 'no rows'}."
