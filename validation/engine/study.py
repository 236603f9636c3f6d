"""What a study is: cells x replicates from one seed, a folder that says so, and its rows."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from knownminds.agents import AGENTS
from knownminds.environments import ENVIRONMENTS, make, unknown
from knownminds.environments.record.folders import one_at_a_time, write_text

from .arguments import check_seed
from .cells import Cell, hash_of
from .members import code_of, file_versions, load_listed, loaded_files
from .question import ExperimentQuestion, command_line
from .result import Result

Unit = Literal["subject", "replicate"]
Q = TypeVar("Q", bound=ExperimentQuestion[Any])


_DIGEST = b"digest"
MOST = 10_000_000  # subjects, sessions or replicates


@dataclass(frozen=True)
class Batch:
    """A piece of work: units first to last - 1 of a cell."""

    cell: int
    first: int
    last: int

    def __len__(self) -> int:
        return self.last - self.first


@dataclass(frozen=True)
class Study:
    """Cells x replicates, with the seed from which all of it follows.

    Session k of subject i in replicate j of a cell lives at the address
    (cell.data_key, j, k, i) of `environments.session_stream`.

    Parameters
    ----------
    command : What is studied, "recover" for instance.
    question : The command's options by name; None and empty values were not.
    unit : What a row of the results is about: every subject of every replicate, or every replicate.
    remarks : What was known about each cell before anything was computed, sentences.
    """

    command: str
    cells: tuple[Cell, ...]
    replicates: int = 1
    seed: int = 0
    unit: Unit = "subject"
    question: Mapping[str, Any] = field(default_factory=dict)
    remarks: tuple[tuple[str, ...], ...] = ()

    def __post_init__(self) -> None:
        counts = {"replicates": self.replicates}
        for name in ("subjects", "sessions", "batch"):
            counts[name] = min(getattr(cell, name) for cell in self.cells)
        for name, count in counts.items():
            if not 1 <= count <= MOST:
                raise ValueError(f"The number of {name} is from 1 to {MOST:,}; got {count:,}.")
        check_seed(self.seed)

    def units(self, cell: int) -> int:
        """Count the rows of a cell."""
        each = self.cells[cell].subjects if self.unit == "subject" else 1
        return self.replicates * each

    def batches(self) -> Iterator[Batch]:
        """Go through all pieces of work."""
        for c, cell in enumerate(self.cells):
            units = self.units(c)
            for first in range(0, units, cell.batch):
                yield Batch(c, first, min(first + cell.batch, units))

    @property
    def n_units(self) -> int:
        """Count the rows of all cells."""
        return sum(map(self.units, range(len(self.cells))))

    def subjects_of(self, batch: Batch) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return replicate and subject number of every subject the batch is about."""
        each = self.cells[batch.cell].subjects
        span = (batch.first, batch.last)
        if self.unit == "replicate":
            span = (batch.first * each, batch.last * each)
        replicate, subject = np.divmod(np.arange(*span), each)
        return replicate, subject

    def part_name(self, batch: Batch) -> str:
        """Name the file of a batch by all that determines its numbers."""
        key = self.cells[batch.cell].content_key
        content = (self.command, self.unit, key, self.seed, batch.first, batch.last)
        return f"{hash_of(content)[:24]}.parquet"

    def identity(self) -> dict[str, Any]:
        """Everything that determines the numbers, JSON-able."""
        whole = {name: value for name, value in vars(self).items() if name != "cells"}
        whole["cells"] = [cell.content() for cell in self.cells]
        identity: dict[str, Any] = json.loads(json.dumps(whole, default=dict))
        return identity

    @classmethod
    def of(cls, identity: Mapping[str, Any]) -> Study:
        """Return the study of an identity."""
        cells = tuple(Cell.of(cell) for cell in identity["cells"])
        remarks = tuple(map(tuple, identity["remarks"]))
        return cls(**{**identity, "cells": cells, "remarks": remarks})

    @property
    def options(self) -> dict[str, Any]:
        """The options by name, the experiment first."""
        options = dict(self.question)
        return {"experiment": options.pop("subject_matter", ""), **options}

    def result(self, title: str, steps: Sequence[Rows], **parts: Any) -> Result:
        """Return a result of the steps of a search that is named by this study."""
        frames = [step.frame for step in steps]
        given: dict[str, Any] = {
            "attempted": sum(map(len, frames)),
            "failed": sum(int((frame["status"] == "failed").sum()) for frame in frames),
            "options": self.options,
            "command": self.command_line(),
            "seconds": float(sum(frame["seconds"].sum() for frame in frames)),
            "versions": versions(),
        }
        return Result(title, **given | parts)

    def command_line(self) -> str:
        """Return the command line that computes the study again."""
        options = dict(self.question)
        return command_line(self.command, options.pop("subject_matter", ""), **options)


def question_of(study: Study, kind: type[Q], **arguments: Any) -> Q:
    """Return the question of a study, of a kind, from its options; `arguments` replace them."""
    cell, options = study.cells[0], study.question
    names = {field.name for field in fields(kind)}
    given = {
        name: options[option.name]
        for name, option in kind.options().items()
        if name in names and options.get(option.name) is not None
    }
    given["environment"] = make(cell.environment, **cell.settings)
    given["truth"] = {k: v for k, v in options["set"].items() if k not in cell.settings}
    return kind(**{**given, **arguments})


@dataclass(frozen=True)
class Rows:
    """The rows of a study that are there, one for each unit, with `cell`, `status`, `message`.

    Parameters
    ----------
    study : What was studied.
    frame : All rows, in the order of the study.
    versions : Of the packages that computed them; several where a study was resumed with others.
    """

    study: Study
    frame: pd.DataFrame
    versions: tuple[Mapping[str, str], ...]

    @classmethod
    def read(cls, folder: str | os.PathLike[str]) -> Rows:
        """Read what there is of the study in a folder; nothing is computed.

        Raises
        ------
        ValueError : If the folder holds no study, or one of its files is damaged.
        """
        study, used = read_study(folder)
        files = {
            batch: Path(folder) / "parts" / study.part_name(batch) for batch in study.batches()
        }
        parts = {b: read_part(file, len(b)) for b, file in files.items() if file.is_file()}
        return cls.of_parts(study, parts, used)

    @classmethod
    def of_parts(
        cls,
        study: Study,
        parts: Mapping[Batch, pd.DataFrame],
        versions: tuple[Mapping[str, str], ...],
    ) -> Rows:
        """Return the rows of the batches that are there."""
        frames = [parts[batch] for batch in study.batches() if batch in parts]
        empty = pd.DataFrame(columns=["cell", "replicate", "status", "message", "seconds"])
        whole = pd.concat(frames, ignore_index=True) if frames else empty
        return cls(study, whole, versions)

    def of(self, cell: int) -> pd.DataFrame:
        """Return the rows of a cell."""
        return self.frame[self.frame["cell"] == cell]

    @property
    def missing(self) -> int:
        """How many units are not there."""
        return self.study.n_units - len(self.frame)

    def result(self, title: str, of: str = "fits", **parts: Any) -> Result:
        """Return a result of these rows: counts of what they are `of`, and options, are filled in.

        The last tables are those of statuses and messages.
        """
        frame = self.frame
        notes = list(parts.pop("notes", ()))
        names = dict.fromkeys(name for used in self.versions for name in used)
        differ = [name for name in names if len({used.get(name) for used in self.versions}) > 1]
        if differ:
            several = "Parts were computed with different versions of"
            notes.append(f"{several} {', '.join(differ)}; see study.json.")
        given: dict[str, Any] = {
            "counts": {of: {str(k): int(n) for k, n in frame["status"].value_counts().items()}},
            "attempted": len(frame),
            "failed": int((frame["status"] == "failed").sum()),
            "missing": self.missing,
            "rows": frame,
            "options": self.study.options,
            "command": self.study.command_line(),
            "seconds": float(frame["seconds"].sum()),
            "versions": self.versions[-1],
        }
        parts["tables"] = {**parts.get("tables", {}), **self._statuses(of)}
        return Result(title, notes=notes, **given | parts)

    def _statuses(self, of: str) -> dict[str, pd.DataFrame]:
        """Return tables that count the statuses and the messages of all units."""
        frame = self.frame
        counts = frame["status"].value_counts()
        statuses = pd.DataFrame({of: counts, "share": counts / max(len(frame), 1)})
        spoken = frame.loc[frame["message"].fillna("") != "", "message"].value_counts()
        messages = pd.DataFrame({of: spoken.rename_axis("message")})
        return {f"Status of the {of}": statuses, "Messages": messages}


def read_study(folder: str | os.PathLike[str]) -> tuple[Study, tuple[Mapping[str, str], ...]]:
    """Read the study of a folder, and the versions of packages that it was computed with."""
    file = Path(folder) / "study.json"
    if not file.is_file():
        raise ValueError(f"A study folder holds a study.json; there is none in {folder}.")
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        plugins = list(content.pop("plugins"))
        used = tuple(dict(each) for each in content.pop("versions"))
        code = dict(content.pop("code"))
        study = Study.of(content)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(
            f"{file} is damaged or was not written by a study ({error}). Use another folder."
        ) from None
    load_listed(plugins, folder)
    for cell in study.cells:
        for kind, name, registry in (
            ("model", cell.model, AGENTS),
            ("environment", cell.environment, ENVIRONMENTS),
        ):
            if name not in registry:
                raise ValueError(f"{file}: {unknown(kind, name, registry)}")
    check_code(content, code, folder)
    return study, used


def check_code(content: Any, code: Mapping[str, str], folder: str | os.PathLike[str]) -> None:
    """Raise ValueError if the code of members that a content names is not what a folder says."""
    now = code_of(content)
    for name in {**code, **now}:
        old, new = (digests.get(name, "none") for digests in (code, now))
        if old != new:
            raise ValueError(
                f"The numbers in {folder} were computed before {name} was edited (its code was "
                f"{old}, here {new}). Name another folder, or take the edit back."
            )


def claim(study: Study, folder: Path) -> tuple[Mapping[str, str], ...]:
    """Take a new folder, or make sure that it holds this very study.

    Returns
    -------
    The versions of packages that compute it, this process's last.

    Raises
    ------
    ValueError : If the folder holds anything else.
    """
    with one_at_a_time(folder):
        return _claimed(study, folder)


def _claimed(study: Study, folder: Path) -> tuple[Mapping[str, str], ...]:
    file, mine = folder / "study.json", study.identity()
    used: tuple[Mapping[str, str], ...] = ()
    if file.exists():
        there, used = read_study(folder)
        if (theirs := there.identity()) != mine:
            point, old, new = _first_difference("study", theirs, mine)
            raise ValueError(
                f"The folder {folder} holds another study ({point} is {old!r}, here {new!r}). "
                "Name another folder, or repeat the command that made it."
            )
    elif strangers := [f.name for f in folder.iterdir() if not f.name.startswith(".")]:
        raise ValueError(
            f"A study needs a separate folder; {folder} holds {strangers[0]!r}. Name another one."
        )
    now = versions()
    if now != (used or ({},))[-1]:
        used = (*(each for each in used if each != now), now)
        more = {"versions": used, "plugins": loaded_files(), "code": code_of(mine)}
        write_text(file, json.dumps({**mine, **more}, indent=2))
    return used


def _first_difference(name: str, theirs: Any, mine: Any) -> tuple[str, Any, Any]:
    """Find the innermost entry in which two contents differ."""
    if isinstance(theirs, dict) and isinstance(mine, dict):
        inner = next(k for k in {**mine, **theirs} if theirs.get(k) != mine.get(k))
        return _first_difference(inner, theirs.get(inner), mine.get(inner))
    if isinstance(theirs, list) and isinstance(mine, list) and len(theirs) == len(mine):
        pairs = zip(theirs, mine, strict=True)
        return _first_difference(name, *next((a, b) for a, b in pairs if a != b))
    return name, theirs, mine


def write_part(rows: pd.DataFrame, file: Path) -> None:
    """Write the rows of a batch with what tells whether they were edited since."""
    table = pa.Table.from_pandas(rows, preserve_index=False)
    table = table.replace_schema_metadata(
        {**(table.schema.metadata or {}), _DIGEST: _digest(table)}
    )
    part = file.with_name(f".{file.stem}.{os.getpid()}")
    pq.write_table(table, part.absolute(), write_page_checksum=True)
    part.replace(file)


def _digest(table: pa.Table) -> bytes:
    """Return a hash of the names and values of a table."""
    content = hashlib.sha256()
    for name, column in zip(table.column_names, table.columns, strict=True):
        values = column.to_numpy()
        texts = repr(column.to_pylist()).encode() if values.dtype == object else b""
        content.update(name.encode() + (texts or values.tobytes()))
    return content.hexdigest().encode()


def read_part(file: Path, units: int) -> pd.DataFrame:
    """Read the rows of a batch; ValueError if the file is damaged or was edited."""
    try:
        with pq.ParquetFile(file.absolute(), page_checksum_verification=True) as part:
            table = part.read()
        if table.num_rows != units:
            raise pa.ArrowInvalid(f"{table.num_rows} rows instead of {units}")
        if (table.schema.metadata or {}).get(_DIGEST) != _digest(table):
            raise pa.ArrowInvalid("its rows are not those that the study has written")
    except (OSError, pa.ArrowException) as error:
        why = " ".join(str(error).split())
        raise ValueError(
            f"A part of the study is damaged or was edited: {file} ({why}). "
            "Delete it and run the same command again; only this part is computed anew."
        ) from None
    frame: pd.DataFrame = table.to_pandas(ignore_metadata=True)
    return frame


def versions() -> dict[str, str]:
    """Return the versions of what the numbers depend on: packages, and files of the user's."""
    names = ("knownminds", "numpy", "scipy", "numba", "pymc", "nutpie")
    packages = {name: importlib.metadata.version(name) for name in names}
    return {"python": platform.python_version(), **packages, **file_versions()}
