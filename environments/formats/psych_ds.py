"""Trials as a Psych-DS data set: a folder of CSV files with a description in JSON-LD; and back."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from knownminds.environments.environment import Environment
from knownminds.environments.later import pandas as pd
from knownminds.environments.record.folders import write_text
from knownminds.environments.record.trial_schema import TrialSchema, trial_schema
from knownminds.environments.record.trials import (
    SCHEMA_VERSION,
    SETTINGS,
    SETTINGS_COLUMN,
    Column,
    Trials,
)

DESCRIPTION = "dataset_description.json"
FILE_NAME = re.compile(r"([a-z]+-[a-zA-Z0-9]+)(_[a-z]+-[a-zA-Z0-9]+)*_data\.csv")
_WRITTEN = {DESCRIPTION, "README.md", "CHANGES.md", "data"}


def write_psych_ds(
    trials: Trials,
    folder: str | os.PathLike[str],
    *,
    name: str,
    description: str = "",
    authors: Sequence[str] = (),
    licence: str = "",
    environment: Environment | None = None,
) -> None:
    """Write trials as a data set that follows Psych-DS.

    `data/` has one file per experiment, `study-NAME_task-EXPERIMENT_data.csv`, with the columns of
    the trial record; `dataset_description.json` describes each of them. What is not given is left
    out: no author and no licence is made up.

    Parameters
    ----------
    name : Name of the data set.
    description : What it is, in a sentence; None for a count of its contents.
    authors, licence : As they should be cited; the licence is best given as an address.
    environment : The experiment with its settings; None to read them from the trials.

    Raises
    ------
    ValueError : If the folder holds anything else.
    """
    path = Path(folder)
    if path.exists() and (not path.is_dir() or {p.name for p in path.iterdir()} - _WRITTEN):
        raise ValueError(
            f"A data set needs a folder of its own; {path} holds something else. Name a new folder."
        )
    if not name.strip():
        raise ValueError("A data set has a name; got an empty one.")
    parts = _parts(trials, environment)
    files: dict[str, pd.DataFrame] = {}
    columns: dict[str, Column] = {}
    for task, (frame, schema) in parts.items():
        words = [f"study-{_word(name)}", *([f"task-{_word(task)}"] if task else []), "data.csv"]
        files["_".join(words)] = frame
        columns |= {c.name: c for c in _described(frame, schema) if c.name not in columns}
        if Trials(frame).settings:
            columns[SETTINGS] = SETTINGS_COLUMN
    about: dict[str, Any] = {
        "@context": "https://schema.org/",
        "@type": "Dataset",
        "name": name,
        "description": description or f"Trials, one per row. {trials}.",
        "variableMeasured": [_variable(column) for column in columns.values()],
        "keywords": [*parts] if all(parts) else [],
    }
    about |= {"citation": sources} if (sources := _sources([*parts], environment)) else {}
    about |= {"author": [{"@type": "Person", "name": a} for a in authors]} if authors else {}
    about |= {"license": licence} if licence else {}
    data = path / "data"
    data.mkdir(parents=True, exist_ok=True)
    for stale in data.iterdir():
        if FILE_NAME.fullmatch(stale.name) and stale.name not in files:
            stale.unlink()
    for file, frame in files.items():
        Trials(frame).save(data / file)
    write_text(path / DESCRIPTION, json.dumps(about, indent=2, ensure_ascii=False) + "\n")
    write_text(path / "README.md", _readme(name, about["description"], files))
    write_text(
        path / "CHANGES.md", f"# Changes\n\nWritten by knownminds {version('knownminds')}.\n"
    )


def read_psych_ds(folder: str | os.PathLike[str]) -> Trials:
    """Read the trials of a Psych-DS folder that `write_psych_ds` wrote, or one with its columns."""
    path = Path(folder)
    if not (path / DESCRIPTION).is_file():
        raise ValueError(f"A Psych-DS data set has a {DESCRIPTION}; there is none in {path}.")
    files = sorted(f for f in (path / "data").rglob("*_data.csv") if FILE_NAME.fullmatch(f.name))
    if not files:
        raise ValueError(f"A Psych-DS data set has files data/*_data.csv; {path} has none.")
    return Trials.concatenate([Trials.load(file) for file in files])


def _parts(
    trials: Trials, environment: Environment | None
) -> dict[str, tuple[pd.DataFrame, TrialSchema]]:
    """Return the table of each experiment with its schema, by name; "" where none is named."""
    from knownminds.environments import ENVIRONMENTS, environment_of

    frame = trials.frame
    if environment is not None:
        return {environment.name: (frame, trial_schema(environment))}
    if "environment" not in frame:
        return {"": (frame, trial_schema())}
    names = frame["environment"].fillna("")
    parts = {}
    for name in names.unique():
        rows = frame[names == name]
        if len(rows) < len(frame):
            rows = rows.dropna(axis=1, how="all")
        known = ENVIRONMENTS.get(name)
        schema = trial_schema(environment_of(Trials(rows), name) if known else None)
        parts[str(name)] = (rows.reset_index(drop=True), schema)
    return parts


def _described(frame: pd.DataFrame, schema: TrialSchema) -> list[Column]:
    known = {column.name: column for column in schema.columns}
    return [
        known.get(name) or Column(name, "float" if _is_number(frame[name]) else "string", False,
                                  "condition of the trial, or a value set by whoever made the data")
        for name in map(str, frame.columns)
    ]  # fmt: skip


def _is_number(column: pd.Series[Any]) -> bool:
    return bool(pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column))


def _variable(column: Column) -> dict[str, Any]:
    values = f" One of {', '.join(column.values)}." if column.values else ""
    entry: dict[str, Any] = {
        "@type": "PropertyValue",
        "name": column.name,
        "description": f"{column.description}.{values}",
    }
    entry |= {"unitText": column.unit} if column.unit else {}
    entry |= {"minValue": column.least} if column.least is not None else {}
    return entry | ({"maxValue": column.most} if column.most is not None else {})


def _sources(names: Sequence[str], environment: Environment | None) -> list[str]:
    from knownminds.environments import ENVIRONMENTS

    known = {environment.name: type(environment)} if environment else ENVIRONMENTS
    return list(dict.fromkeys(known[name].source for name in names if name in known))


def _word(text: str) -> str:
    """Return a value in the form of a file name, which has letters and digits only."""
    parts = re.findall(r"[a-zA-Z0-9]+", text)
    if not parts:
        raise ValueError(f"A file is named by letters and digits; {text!r} has none.")
    return "".join([parts[0], *(part[:1].upper() + part[1:] for part in parts[1:])])


def _readme(name: str, description: str, files: dict[str, pd.DataFrame]) -> str:
    lines = [f"# {name}", "", description, ""]
    lines += [f"- `data/{file}`: {len(frame)} trials" for file, frame in files.items()]
    lines += [
        "",
        "Each row is a trial; subject, session and trial together name it within a file. A trial "
        "without a readable answer has an outcome that says why, and nothing is filled in. The "
        f"columns are described in `{DESCRIPTION}`; they follow version {SCHEMA_VERSION} of the "
        "trial schema of knownminds (`knownminds show --schema`).",
        "",
    ]
    return "\n".join(lines)
