"""The trial record that all floors exchange: one row per trial, one published schema."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from knownminds.environments.later import pandas as pd
from knownminds.environments.words.answer import ANSWERED, Outcome

from .csv_cells import csv_text, unguarded
from .text_table import counted
from .texts import repeated

Kind = Literal["string", "int", "float"]
TrialRule = tuple[str, ArrayLike, Collection[str], str]  # the arguments of `Trials.require`


@dataclass(frozen=True)
class Column:
    """A column of the schema: its name, kind, whether it must be there, and what it means.

    Parameters
    ----------
    name, kind, required, description : as their names say
    unit : the unit of a number; "" if there is none
    least, most : lowest and highest value; None without a bound
    values : the texts that are allowed; empty if any text is
    """

    name: str
    kind: Kind
    required: bool
    description: str
    unit: str = ""
    least: float | None = None
    most: float | None = None
    values: tuple[str, ...] = ()


SCHEMA_VERSION = 1  # the version of COLUMNS; a Parquet file carries it under SCHEMA_KEY
SCHEMA_KEY = b"knownminds_trials_schema"
SETTINGS = "environment_settings"  # as JSON: a column of CSV files, metadata of Parquet files
SETTINGS_COLUMN = Column(
    SETTINGS, "string", False, "settings of the experiment, as JSON, in its first row"
)
_OUTCOMES = tuple(outcome.value for outcome in Outcome)
COLUMNS: tuple[Column, ...] = (
    Column("study", "string", False, "name of the study the trial belongs to"),
    Column("environment", "string", False, "name of the experiment"),
    Column("subject", "string", True, "the unit a parameter vector belongs to"),
    Column("session", "string", False, 'a subject\'s session; "0" where the column is absent'),
    Column("block", "int", False, "consecutive trials under one condition"),
    Column("trial", "int", True, "position in the session; orders the rows"),
    Column(
        "action", "int", False, "what was chosen, from 0; missing if nothing readable was", least=0
    ),
    Column("response", "float", False, "a judgement on a continuous scale", "as asked"),
    Column(
        "reward", "float", False, "what the action brought; missing where nothing did", "as paid"
    ),
    Column(
        "outcome",
        "string",
        False,
        "what became of the answer; see answer.Outcome",
        values=_OUTCOMES,
    ),
    Column("raw_text", "string", False, "a language model's answer, unaltered"),
    Column("labels", "string", False, "what the session called contexts and actions, as JSON"),
    Column("attempt", "int", False, "which asking of the question this answer came from", least=0),
    Column(
        "errors_before",
        "int",
        False,
        "earlier trials of the session that brought no text; absent where none did",
        "trials",
        0,
    ),
    Column("input_tokens", "int", False, "tokens sent", "tokens", 0),
    Column("output_tokens", "int", False, "tokens received", "tokens", 0),
    Column("money", "float", False, "price of the answer in US dollars", "US dollars", 0),
    Column("prompt_hash", "string", False, "SHA-256 of the prompt"),
)
_KINDS: dict[str, Kind] = {column.name: column.kind for column in COLUMNS}
FIRST = 5  # a notebook shows so many trials
_MOST_WHOLE = 2**53  # above this, whole numbers cannot all be told apart
_IDS = ("subject", "session")
_GAPS = ("", "NA", "NaN", "nan", "<NA>")  # R and Python write a missing value so
_NUMBER = r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?"  # a number as Python writes it


class RecordedExperiment(Protocol):
    """What a record asks of the experiment that its trials are of."""

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def recorded_settings(self) -> dict[str, Any]: ...  # noqa: D102
    def complete(self, trials: Trials) -> pd.DataFrame: ...  # noqa: D102
    def check(self, trials: Trials) -> None: ...  # noqa: D102


@dataclass(frozen=True, eq=False)
class Trials:
    """Trials of any number of subjects, checked against the schema `COLUMNS`.

    Rows stand in the order subject, session (both by first appearance), trial. Columns beyond the
    schema are stimuli or condition factors. They are kept, as numbers if every value is a number
    and as text otherwise ("007" is text). An empty text is a missing value, and so is "NA" except
    in `raw_text`. Make trials with `Trials.from_frame` or `Trials.load`.

    `settings` holds the settings of the experiments, by name, as far as they are known. A Parquet
    file has them in its metadata, a CSV file in the first row of each experiment, in the column
    `environment_settings`.
    """

    frame: pd.DataFrame

    @property
    def settings(self) -> dict[str, dict[str, Any]]:
        """Settings of the experiments, by name, as far as they are known."""
        settings: dict[str, dict[str, Any]] = self.frame.attrs.get(SETTINGS, {})
        return settings

    @classmethod
    def from_frame(
        cls,
        frame: pd.DataFrame,
        *,
        columns: Mapping[str, str] | None = None,
        environment: RecordedExperiment | str | None = None,
    ) -> Trials:
        """Check and order a table of trials.

        Parameters
        ----------
        columns : Our name -> the table's name, for tables that use other names.
        environment : The experiment or its name, which is recorded. With an experiment, columns
            that follow from others are added, and the trials are checked against it.

        Raises
        ------
        ValueError : If a column or row breaks a rule; the error names the first one. `subject`,
            `trial` and one of `action` and `response` must be there. Without `session`, each
            subject has one session. Without `outcome`, it is "ok" where there is an action or
            response. If the outcome is "ok" or "repaired", there must be a response; with any other
            outcome there must be none.
        """
        table = _rename(frame, columns or {})
        settings = _settings_of(table)
        attributes, table.attrs = table.attrs, {}  # pandas would copy them in depth at every step
        if SETTINGS in table:
            table = table.drop(columns=SETTINGS)
        missing = [c.name for c in COLUMNS if c.required and c.name not in table]
        if "action" not in table and "response" not in table:
            missing.append("action")
        if missing:
            raise ValueError(
                f"Trials need the columns subject, trial and action (or response); "
                f"{', '.join(map(repr, missing))} is missing among "
                f"{', '.join(map(str, frame.columns))}. "
                f"Name yours with columns={{'{missing[0]}': YOUR_NAME}} "
                f"(--columns {missing[0]}=YOUR_NAME), or read the file as it is with "
                "`knownminds import FILE`."
            )
        if len(table) == 0:
            raise ValueError("Trials need at least one row; got an empty table.")
        if "session" not in table:
            table["session"] = "0"
        made = {
            name: _convert(column, name, _KINDS[name]) if name in _KINDS else _factor(column)
            for name, column in table.items()
        }
        if environment is not None:
            name = environment if isinstance(environment, str) else environment.name
            made["environment"] = pd.Series(name, index=table.index, dtype="str")
        table = _ordered(pd.DataFrame(made))
        _complete_outcomes(table)
        trials = _checked(cls(_arranged(table)), environment, settings)
        trials.frame.attrs = {**attributes, **trials.frame.attrs}
        return trials

    @classmethod
    def from_sessions(
        cls,
        subject: NDArray[np.int64],
        names: Sequence[str],
        trial: NDArray[np.int64],
        columns: Mapping[str, NDArray[Any]],
        environment: RecordedExperiment,
    ) -> Trials:
        """Return the same as `from_frame` for one session of each of many subjects, but faster.

        Order, texts and outcomes follow from how the arrays are made, so only the experiment's own
        checks are run. The record may share memory with the arrays.

        Parameters
        ----------
        subject, trial : The number of each row's subject and trial, [rows].
        names : The names of the subjects.
        columns : Stimuli, answers and rewards as numbers, each [rows].
        """
        table = _table_of_sessions(subject, names, trial, columns, environment.name)
        if table is not None:
            made = cls(table)
            made.__dict__["session_codes"] = (np.cumsum(np.bincount(subject) > 0) - 1)[subject]
            return _checked(made, environment, {})
        plain = {
            "subject": pd.Index(names).take(subject),
            "session": "0",
            "trial": trial,
            **columns,
            "outcome": Outcome.OK.value,
        }
        return cls.from_frame(pd.DataFrame(plain), environment=environment)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        columns: Mapping[str, str] | None = None,
        environment: RecordedExperiment | str | None = None,
    ) -> Trials:
        """Read a .parquet or .csv file; see `from_frame` for the checks."""
        file = Path(path)
        _check_suffix(file)
        if not file.is_file():
            raise ValueError(f"Trials are read from a file; there is none at {file}.")
        from pyarrow import ArrowException

        try:
            if file.suffix == ".parquet":
                frame = pd.read_parquet(file.absolute())
                frame.attrs = {SETTINGS: _check_version(file)}
            else:
                frame = _read_csv(file, {theirs: ours for ours, theirs in (columns or {}).items()})
        except pd.errors.EmptyDataError:
            raise ValueError(f"Trials need at least one row; {file.name} is empty.") from None
        except (pd.errors.ParserError, UnicodeDecodeError, ArrowException, OSError) as error:
            raise ValueError(f"{file.name} cannot be read as {file.suffix[1:]}: {error}") from None
        return cls.from_frame(frame, columns=columns, environment=environment)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a .parquet or .csv file, whole or not at all; `load` gives the same trials back."""
        file = Path(path)
        _check_suffix(file)
        part = file.with_name(f".{file.name}.part")
        try:
            if file.suffix == ".parquet":
                _write_parquet(self, part)
            else:
                part.write_text(csv_text(_with_settings(self)), encoding="utf-8", newline="")
            part.replace(file)
        finally:
            part.unlink(missing_ok=True)

    @classmethod
    def concatenate(cls, parts: Sequence[Trials]) -> Trials:
        """Return one record with the trials of several records."""
        if not parts:
            raise ValueError("There must be at least one record to put together; got none.")
        whole = pd.concat([part.frame for part in parts], ignore_index=True)
        whole.attrs = {SETTINGS: _agreed([(part.frame, part.settings) for part in parts])}
        return cls.from_frame(whole)

    @property
    def subjects(self) -> tuple[str, ...]:
        """The subjects' names in order."""
        return tuple(self.frame["subject"].unique())

    @property
    def n_subjects(self) -> int:
        """How many subjects there are."""
        return len(self.subjects)

    @property
    def n_sessions(self) -> int:
        """How many sessions there are, over all subjects."""
        return len(self.frame[["subject", "session"]].drop_duplicates())

    def __len__(self) -> int:
        return len(self.frame)

    def row_name(self, row: int) -> str:
        """Return the name of a row for messages: its subject, session and trial."""
        at = self.frame.iloc[row]
        return f'row {row + 1} (subject "{at["subject"]}", trial {at["trial"]})'

    def numbers(self, column: str) -> NDArray[np.float64]:
        """Return a column as numbers, NaN where there is none."""
        values = self.frame[column]
        if isinstance(values.dtype, np.dtype) and values.dtype.kind in "iuf":
            return values.to_numpy().astype(float)
        return pd.to_numeric(values, errors="coerce").to_numpy(dtype=float, na_value=np.nan)

    def ends(self, column: str) -> tuple[float, float]:
        """Return lowest and highest number of a column; NaN if a row has no number."""
        values = self.frame[column]
        plain = isinstance(values.dtype, np.dtype) and values.dtype.kind in "iuf"
        whole = values.dtype == "Int64" and not values.hasnans
        if whole:
            numbers: NDArray[Any] = values.to_numpy(dtype=np.int64)
        else:
            numbers = values.to_numpy() if plain else self.numbers(column)
        return float(numbers.min()), float(numbers.max())

    @cached_property
    def session_codes(self) -> NDArray[np.int64]:
        """The number of each row's session, by first appearance, from 0."""
        groups = self.frame.groupby(["subject", "session"], sort=False)
        return groups.ngroup().to_numpy().astype(np.int64)

    def require(self, rule: str, kept: ArrayLike, columns: Collection[str], remedy: str) -> None:
        """Raise ValueError at the first row that breaks a rule, with the values of that row.

        Parameters
        ----------
        kept : Whether each row keeps the rule, [rows].
        columns : The columns whose values the error shows.
        """
        wrong = np.flatnonzero(~np.asarray(kept, dtype=bool))
        if not len(wrong):
            return
        row = int(wrong[0])
        values = {name: self.frame[name].iloc[row] for name in columns}
        got = [
            f"no {n}" if pd.isna(x) else f"{n} {x if isinstance(x, str) else format(x, '.10g')}"
            for n, x in values.items()
        ]
        raise ValueError(f"{rule}; {self.row_name(row)} has {', '.join(got)}. {remedy}")

    def one_of(self, column: str, *known: float) -> NDArray[np.bool_]:
        """Return in which rows a column is missing or has one of some values, [rows]."""
        values = self.numbers(column)
        return np.isnan(values) | np.isin(values, known)

    def paired(self, column: str) -> TrialRule:
        """Return the rule that a column has a value exactly where there is an action."""
        return (
            f"A {column} is there exactly where an action is",
            np.isnan(self.numbers(column)) == np.isnan(self.numbers("action")),
            ("action", column),
            "Fill it in, or drop the row.",
        )

    def to_frame(self) -> pd.DataFrame:
        """Return a copy of the table."""
        return self.frame.copy()

    def to_json(self) -> str:
        """Return the rows as JSON records."""
        text: str = self.frame.to_json(orient="records")
        return text

    def _repr_html_(self) -> str:
        """Return the count and the first trials as HTML, for a notebook."""
        first = self.frame.head(FIRST).to_html(border=0, index=False, na_rep="")
        return f"<p>{escape(str(self))}</p>{first}"

    def __str__(self) -> str:
        outcomes = self.frame["outcome"].value_counts()
        shares = ", ".join(f"{n} {name}" for name, n in outcomes.items())
        name = (
            ", ".join(self.frame["environment"].dropna().unique())
            if "environment" in self.frame
            else ""
        )
        return (
            f"{name or 'trials'}: {counted(self.n_subjects, 'subject')}, "
            f"{counted(self.n_sessions, 'session')}, {counted(len(self), 'trial')} ({shares})"
        )


def _checked(
    trials: Trials,
    environment: RecordedExperiment | str | None,
    settings: dict[str, dict[str, Any]],
) -> Trials:
    """Complete and check trials whose columns are arranged; `settings` are kept with them."""
    if environment is not None and not isinstance(environment, str):
        completed = environment.complete(trials)
        if completed is not trials.frame:
            trials = Trials(_arranged(completed))
        environment.check(trials)
        settings = {**settings, environment.name: environment.recorded_settings}
    trials.frame.attrs = {SETTINGS: settings}
    _check_ranges(trials)
    return trials


def _table_of_sessions(
    subject: NDArray[np.int64],
    names: Sequence[str],
    trial: NDArray[np.int64],
    columns: Mapping[str, NDArray[Any]],
    environment: str,
) -> pd.DataFrame | None:
    """Return the arranged table of whole sessions; None if its rows must be checked one by one."""
    n = len(subject)
    counts = np.bincount(subject, minlength=len(names)) if n else np.zeros(0, dtype=np.int64)
    goes_on = subject[1:] == subject[:-1]
    in_order = (goes_on & (trial[1:] > trial[:-1])) | (subject[1:] > subject[:-1])
    numbers = all(column.dtype.kind in "iufb" for column in columns.values())
    plain = len(set(names)) == len(names) and set(names).isdisjoint(_GAPS)
    answers = {"action", "response"} & columns.keys()
    if not (n and in_order.all() and numbers and plain and answers):
        return None
    made: dict[str, Any] = {}
    for name, column in columns.items():
        series = pd.Series(column, copy=False, name=name)
        made[name] = _convert(series, name, _KINDS[name]) if name in _KINDS else _factor(series)
    given = np.logical_or.reduce([made[name].notna().to_numpy() for name in answers])
    texts = {"environment": environment, "session": "0", "outcome": Outcome.OK.value}
    whole = {name: repeated([text], np.array([n])) for name, text in texts.items()}
    named = repeated(names, counts)
    if named is None or not given.all():
        return None
    numbered = _convert(pd.Series(trial, copy=False, name="trial"), "trial", "int")
    made |= {**whole, "subject": named, "trial": numbered}
    return pd.DataFrame({name: made[name] for name in _arrangement(made)}, copy=False)


def _write_parquet(trials: Trials, file: Path) -> None:
    """Write a table whose metadata hold the version of the schema and the settings."""
    from pyarrow import Table, parquet

    frame = trials.frame.copy(deep=False)
    frame.attrs = {}
    table = Table.from_pandas(frame, preserve_index=False)
    metadata = {**(table.schema.metadata or {}), SCHEMA_KEY: str(SCHEMA_VERSION).encode()}
    metadata[SETTINGS.encode()] = json.dumps(trials.settings).encode()
    parquet.write_table(table.replace_schema_metadata(metadata), file.absolute())


def _check_version(file: Path) -> dict[str, dict[str, Any]]:
    """Return the settings in a file's metadata; ValueError if its version cannot be read."""
    from pyarrow import parquet

    metadata = parquet.read_schema(file.absolute()).metadata or {}
    number = metadata.get(SCHEMA_KEY, b"0").decode()
    if not number.isdecimal() or int(number) > SCHEMA_VERSION:
        raise ValueError(
            f"Trials are read by version {SCHEMA_VERSION} of their schema or an earlier one; "
            f"{file.name} has version {number}. Install a newer knownminds."
        )
    settings: dict[str, dict[str, Any]] = json.loads(metadata.get(SETTINGS.encode(), b"{}"))
    return settings


def _with_settings(trials: Trials) -> pd.DataFrame:
    """Return the table with the settings of each experiment in its first row."""
    frame = trials.frame
    if not trials.settings:
        return frame
    named = frame["environment"]
    first = named.notna() & ~named.duplicated()
    texts = {name: json.dumps(settings) for name, settings in trials.settings.items()}
    return frame.assign(**{SETTINGS: named.where(first).map(texts)})


def _settings_of(table: pd.DataFrame) -> dict[str, dict[str, Any]]:
    """Return the settings that a table holds, in its attributes or in a column of its own."""
    if SETTINGS not in table or "environment" not in table:
        return dict(table.attrs.get(SETTINGS, {}))
    rows = table[table[SETTINGS].fillna("").astype(str) != ""]
    try:
        every = [
            (rows.iloc[k : k + 1], {str(name): json.loads(text)})
            for k, (name, text) in enumerate(zip(rows["environment"], rows[SETTINGS], strict=True))
        ]  # fmt: skip
    except (ValueError, TypeError):
        row = int(rows.index[0])
        raise ValueError(
            f"The column {SETTINGS!r} holds settings as JSON; row {row + 1} has "
            f"{rows[SETTINGS].iloc[0]!r}. Leave the column out, and they follow from the trials."
        ) from None
    return _agreed(every)


def _agreed(
    parts: Sequence[tuple[pd.DataFrame, Mapping[str, dict[str, Any]]]],
) -> dict[str, dict[str, Any]]:
    """Return the settings on which all parts with trials of an experiment agree."""
    by_name: dict[str, list[Any]] = {}
    for frame, settings in parts:
        for name in frame["environment"].dropna().unique() if "environment" in frame else ():
            by_name.setdefault(str(name), []).append(settings.get(str(name)))
    return {
        name: each[0]
        for name, each in by_name.items()
        if each[0] is not None and all(other == each[0] for other in each)
    }


def _check_ranges(trials: Trials) -> None:
    for column in COLUMNS:
        if column.least is None or column.name not in trials.frame:
            continue
        if trials.ends(column.name)[0] >= column.least:
            continue  # this is usual, unless a row has no value
        trials.require(
            f"The column {column.name!r} holds numbers from {column.least:g} on",
            ~(trials.numbers(column.name) < column.least),
            (column.name,),
            "Correct it, or leave it empty if nothing was given.",
        )


def _check_suffix(file: Path) -> None:
    if file.suffix not in (".parquet", ".csv"):
        raise ValueError(f"Trials are kept as .parquet or .csv; got {file.name!r}.")


def _rename(frame: pd.DataFrame, columns: Mapping[str, str]) -> pd.DataFrame:
    names = list(map(str, frame.columns))
    for ours, theirs in columns.items():
        if theirs not in names:
            raise ValueError(
                f"Every mapped column must exist; {ours}={theirs} names none of {', '.join(names)}."
            )
    chosen = list(columns.values())
    twice = sorted({name for name in chosen if chosen.count(name) > 1})
    if twice:
        raise ValueError(f"A column can serve once; {twice[0]!r} is mapped more than once.")
    named = {theirs: ours for ours, theirs in columns.items()}
    names = [named.get(name, name) for name in names]
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled:
        raise ValueError(
            f"Column names must differ; {doubled[0]!r} appears more than once (after mapping). "
            "Drop or rename one."
        )
    return frame.set_axis(names, axis=1).reset_index(drop=True)


def _runs(column: pd.Series[Any]) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Return the runs of equal texts in a column: the length of each run, and its text.

    Rows of a session share most of their texts. To look at each run once takes a third of the time
    of looking at each row.
    """
    if column.dtype != "str":
        return np.ones(len(column), dtype=np.int64), column.to_numpy()
    import pyarrow as pa
    from pyarrow.compute import run_end_encode

    texts = pa.array(column.array)
    if isinstance(texts, pa.ChunkedArray):  # records that were put together have these
        texts = texts.combine_chunks()
    runs = run_end_encode(texts)
    ends = runs.run_ends.to_numpy()
    return np.diff(ends, prepend=0).astype(np.int64), runs.values.to_numpy(zero_copy_only=False)


def _codes(column: pd.Series[Any]) -> NDArray[np.int64]:
    """Return the number of each row's value, by first appearance, from 0; -1 if there is none."""
    lengths, values = _runs(column)
    return np.repeat(pd.factorize(values)[0].astype(np.int64), lengths)


def _as_it_stands(column: pd.Series[Any], name: str, kind: Kind) -> pd.Series[Any] | None:
    """Return a column that pandas has read with the right kind and that keeps all rules; else None.

    `_convert` gives the same result, but takes ten times as long.
    """
    if kind == "string":
        gaps = ("",) if name == "raw_text" else _GAPS
        if column.dtype != "str" or column.hasnans:
            return None
        texts = set(_runs(column)[1])
        trimmed = name not in _IDS or all(text == text.strip() for text in texts)
        return column if trimmed and texts.isdisjoint(gaps) else None
    if not isinstance(column.dtype, np.dtype) or column.dtype.kind not in "iuf":
        return None
    numbers = column.to_numpy()
    if kind == "float":
        return None if np.isinf(numbers).any() else column.astype("float64")
    gone = np.isnan(numbers) if column.dtype.kind == "f" else np.zeros(len(column), dtype=bool)
    there = np.where(gone, 0, numbers) if gone.any() else numbers
    if max(there.max(initial=0), -float(there.min(initial=0))) >= _MOST_WHOLE:
        return None
    if column.dtype.kind == "f" and (np.rint(there) != there).any():
        return None
    whole = pd.arrays.IntegerArray(there.astype(np.int64, copy=False), gone)
    return pd.Series(whole, index=column.index, name=column.name)


def _convert(column: pd.Series[Any], name: str, kind: Kind) -> pd.Series[Any]:
    unchanged = _as_it_stands(column, name, kind)
    if unchanged is not None:
        return unchanged
    if kind == "string":
        if pd.api.types.is_float_dtype(column) and column.notna().all() and (column % 1 == 0).all():
            column = column.astype("int64")
        if name in _IDS:  # a blank at the end makes no other subject
            column = column.astype("str").str.strip().where(column.notna())
        gaps = column.isna() | column.astype("str").isin(("",) if name == "raw_text" else _GAPS)
        if name in _IDS and gaps.any():
            row = int(np.flatnonzero(gaps)[0])
            raise ValueError(f"Every trial has a {name}; row {row + 1} has none. Fill it in.")
        text = column.astype("str")
        return text.where(~gaps) if gaps.any() else text
    numbers = pd.to_numeric(column, errors="coerce")
    bad = numbers.isna() & column.notna()
    if kind == "int":
        bad |= numbers.notna() & ((numbers % 1 != 0) | (numbers.abs() >= _MOST_WHOLE))
    bad |= np.isinf(numbers.astype(float))
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        what = "whole numbers" if kind == "int" else "numbers"
        value = column.iloc[row]
        value = value.item() if isinstance(value, np.generic) else value
        raise ValueError(
            f"The column {name!r} holds {what}; row {row + 1} has {value!r}. "
            "Correct it, or leave it empty if nothing was given."
        )
    return numbers.astype("Int64" if kind == "int" else "float64")


def _factor(column: pd.Series[Any]) -> pd.Series[Any]:
    """Return a column with the values that it would have after a CSV file was written and read."""
    if pd.api.types.is_bool_dtype(column) and not column.isna().any():
        return column.astype("bool")
    if pd.api.types.is_numeric_dtype(column):
        whole = pd.api.types.is_integer_dtype(column) and not column.isna().any()
        return column.astype("int64" if whole else "float64")
    text = column.astype("str")
    codes, levels = pd.factorize(text.where(column.notna() & ~text.isin(_GAPS)))
    gaps = codes < 0
    if gaps.all():
        return pd.Series(np.nan, index=column.index)
    values: pd.Index[Any] = pd.Index(levels, dtype="str")
    if values.isin(("True", "False")).all() and not gaps.any():
        values = pd.Index(values == "True")
    elif values.str.fullmatch(_NUMBER).all():
        numbers = values.to_numpy(dtype=object).astype(float)
        whole = not (gaps.any() or values.str.contains(r"[.e]").any())
        exact = bool((np.abs(numbers) < 2**53).all())
        values = pd.Index(numbers.astype("int64") if whole and exact else numbers)
    taken = pd.Series(values.take(codes), index=column.index)
    return taken.where(~gaps) if gaps.any() else taken


def _read_csv(file: Path, ours: Mapping[str, str]) -> pd.DataFrame:
    with file.open(encoding="utf-8-sig", newline="") as stream:
        header = next(csv.reader(stream), [])
    doubled = sorted({name for name in header if header.count(name) > 1})
    if doubled:
        raise ValueError(
            f"Column names must differ; {file.name} has {doubled[0]!r} "
            f"{header.count(doubled[0])} times. Rename one."
        )
    kinds = {name: _KINDS.get(ours.get(name, name), "string") for name in header}
    # Before version 3, pandas reads some numbers as their neighbours.
    old = pd.__version__.startswith("2.")
    exact: Any = {"float_precision": "round_trip"} if old else {}
    table = pd.read_csv(
        file,
        dtype={name: "str" for name, kind in kinds.items() if kind == "string"},
        # A language model may well answer "NA".
        na_values={name: [""] if ours.get(name, name) == "raw_text" else _GAPS for name in header},
        keep_default_na=False,
        encoding="utf-8-sig",
        **exact,
    )
    return unguarded(table)


def _ordered(table: pd.DataFrame) -> pd.DataFrame:
    gaps = table["trial"].isna()
    if gaps.any():
        row = int(np.flatnonzero(gaps)[0])
        raise ValueError(f"Every row has a trial number; row {row + 1} has none. Fill it in.")
    trial = table["trial"].to_numpy(dtype=np.int64)
    subject = _codes(table["subject"])
    # Sessions are numbered by first appearance within the subject, so an ordered table stays as it
    # is.
    name = _codes(table["session"])
    if "environment" in table:  # sessions of several experiments may have the same name
        name = (_codes(table["environment"]) + 1) * (name.max() + 1) + name
    if _stand_in_order(subject, name, trial):
        return table
    session = pd.factorize(subject * (name.max() + 1) + name)[0]
    order = np.lexsort((trial, session, subject))
    s, e, t = subject[order], session[order], trial[order]
    again = (s[1:] == s[:-1]) & (e[1:] == e[:-1]) & (t[1:] == t[:-1])
    if again.any():
        row = int(order[1:][again].min())
        at = table.iloc[row]
        raise ValueError(
            "A trial stands once: (subject, session, trial) must differ between rows; "
            f'row {row + 1} repeats subject "{at["subject"]}", session "{at["session"]}", '
            f"trial {at['trial']}. {_told_apart(table)}Map a session column, or drop the copy."
        )
    if (order[1:] < order[:-1]).any():
        table = table.iloc[order].reset_index(drop=True)
    return table


def _told_apart(table: pd.DataFrame) -> str:
    """Name the column of few values that tells trials of one number apart, if there is one."""
    keys = ["subject", "session", "trial"]
    others = [name for name in table if name not in (*keys, "action", "response", "reward")]
    few = [name for name in others if 1 < table[name].nunique() <= len(table) / 10]
    found = [str(name) for name in few if not table.duplicated([*keys, name]).any()]
    return f"{' or '.join(map(repr, found))} would tell them apart. " if found else ""


def _stand_in_order(
    subject: NDArray[np.int64], session: NDArray[np.int64], trial: NDArray[np.int64]
) -> bool:
    """Say whether each subject and session is one block of rows with rising trial numbers."""
    goes_on = (subject[1:] == subject[:-1]) & (session[1:] == session[:-1])
    begins = np.concatenate([[0], np.flatnonzero(~goes_on) + 1])
    pieces = subject[begins] * (session.max() + 1) + session[begins]
    rising = trial[1:] > trial[:-1]
    return bool(
        rising[goes_on].all()
        and (np.diff(subject[begins]) >= 0).all()
        and len(np.unique(pieces)) == len(pieces)
    )


def _arranged(table: pd.DataFrame) -> pd.DataFrame:
    """Put the columns in the order of the schema, with stimuli and factors after the trial."""
    arranged = _arrangement(list(map(str, table.columns)))
    return table if arranged == list(table.columns) else table[arranged]


def _arrangement(columns: Collection[str]) -> list[str]:
    names = [c.name for c in COLUMNS if c.name in columns]
    position = names.index("trial") + 1
    return [*names[:position], *(name for name in columns if name not in _KINDS), *names[position:]]


def _complete_outcomes(table: pd.DataFrame) -> None:
    given = np.zeros(len(table), dtype=bool)
    for name in ("action", "response"):
        if name in table:
            given |= table[name].notna().to_numpy()
    if "outcome" not in table:
        if not given.all():
            row = int(np.flatnonzero(~given)[0])
            raise ValueError(
                "A trial without a response needs an outcome that says why "
                f"({', '.join(_OUTCOMES[2:])}); row {row + 1} has neither. "
                "Add a column 'outcome', or let `knownminds import` write one."
            )
        table["outcome"] = Outcome.OK.value
        return
    if not set(_runs(table["outcome"])[1]) <= set(_OUTCOMES):
        row = int(np.flatnonzero(~table["outcome"].isin(_OUTCOMES))[0])
        raise ValueError(
            f"Outcomes are {', '.join(_OUTCOMES)}; row {row + 1} has "
            f"{table['outcome'].iloc[row]!r}."
        )
    clash = table["outcome"].isin(ANSWERED).to_numpy() != given
    if clash.any():
        row = int(np.flatnonzero(clash)[0])
        has = "has a response" if given[row] else "has no response"
        raise ValueError(
            "A response is there exactly where the outcome is ok or repaired; "
            f"row {row + 1} {has} and the outcome {table['outcome'].iloc[row]!r}."
        )


def schema() -> str:
    """Return the schema as JSON: a list of name, kind, required, description."""
    return json.dumps([column.__dict__ for column in COLUMNS], indent=2)
