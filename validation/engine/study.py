"""What a study is: cells x replicates from one seed, a folder that says so, and its rows."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from knownminds.environments import Environment, make

from .members import load_list
from .question import command_line
from .source import source_hash

Unit = Literal["subject", "replicate"]

DIGESTS = "parts.sha256"  # of the parts as they were written, as sha256sum writes them


class NotFinished(ValueError):  # noqa: N818 - one says it so
    """A part of a study is asked for that is not computed yet."""


# Settings that experiments got later: without a value they leave the streams of draws as they were.
LATER = ("thought_words", "stimuli")


@dataclass(frozen=True)
class Cell:
    """One combination of design, truth and method.

    Parameters
    ----------
    environment, settings
        Name and constructor arguments of the experiment.
    model
        Name of the model that generates the behaviour.
    truth
        Parameters held at a value; the others are drawn.
    lapse
        Lapse rate of the simulated subjects.
    law
        How parameters are drawn where it is not each subject from the model's priors.
    sessions, subjects
        Sessions each subject lives; subjects in a replicate.
    method, options
        How it is analysed; these do not enter the data's seeds.
    batch
        Units per batch; no result depends on it.
    """

    environment: str
    settings: Mapping[str, Any]
    model: str
    truth: Mapping[str, float] = field(default_factory=dict)
    lapse: float = 0.0
    law: Mapping[str, Any] = field(default_factory=dict)
    sessions: int = 1
    subjects: int = 1
    method: str = "map"
    options: Mapping[str, Any] = field(default_factory=dict)
    batch: int = 512

    @cached_property
    def data_key(self) -> int:
        """A number for everything that shapes the data: equal for all methods of a design.

        Numbers of sessions and subjects are left out, so that a larger study begins with the
        same sessions. Designs whose law names a number in "common" share their random numbers.
        """
        if "common" in self.law:
            return int(self.law["common"])
        settings = {
            name: value
            for name, value in self.settings.items()
            if value is not None or name not in LATER
        }
        content = [self.environment, settings, self.model, self.truth, self.lapse]
        return int(_hash([*content, self.law] if self.law else content)[:15], 16)

    @cached_property
    def content_key(self) -> str:
        """A hash of everything that determines the numbers, given the seed."""
        return _hash({k: v for k, v in self.content().items() if k != "batch"})

    def content(self) -> dict[str, Any]:
        """The fields, JSON-able."""
        return asdict(self)

    def make(self) -> Environment:
        """Build the environment."""
        return make(self.environment, **self.settings)


@dataclass(frozen=True)
class Batch:
    """A piece of work: units first to last - 1 of a cell."""

    cell: int
    first: int
    last: int

    def __len__(self) -> int:
        """Count the units."""
        return self.last - self.first


@dataclass(frozen=True)
class Study:
    """Cells x replicates, with the seed from which all of it follows.

    Session k of subject i in replicate j of a cell lives at the address
    (cell.data_key, j, k, i) of `environments.session_stream`.

    Parameters
    ----------
    command
        What is studied, "recover" for instance.
    question
        What was asked, by the names of the command's options; None and empty values were not.
    unit
        What a row of the results is about: every subject of every replicate, or every replicate.
    remarks
        What was known about each cell before anything was computed, sentences.
    """

    command: str
    cells: tuple[Cell, ...]
    replicates: int = 1
    seed: int = 0
    unit: Unit = "subject"
    question: Mapping[str, Any] = field(default_factory=dict)
    remarks: tuple[tuple[str, ...], ...] = ()

    def __post_init__(self) -> None:
        """Check the counts."""
        counts = {"replicates": self.replicates}
        for name in ("subjects", "sessions", "batch"):
            counts[name] = min(getattr(cell, name) for cell in self.cells)
        for name, count in counts.items():
            if count < 1:
                raise ValueError(f"The number of {name} is at least 1; got {count}.")
        if self.seed < 0:
            raise ValueError(f"Seeds are whole numbers from 0 on; got {self.seed}.")

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

    @cached_property
    def n_batches(self) -> int:
        """Count the pieces of work."""
        return sum(-(-self.units(c) // cell.batch) for c, cell in enumerate(self.cells))

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
        return f"{_hash(content)[:24]}.parquet"

    def identity(self) -> dict[str, Any]:
        """Everything that determines the numbers, JSON-able."""
        return {
            "command": self.command,
            "cells": [cell.content() for cell in self.cells],
            "replicates": self.replicates,
            "seed": self.seed,
            "unit": self.unit,
            "question": dict(self.question),
            "remarks": [list(sentences) for sentences in self.remarks],
            "source": source_hash(self),
            "versions": versions(),
        }

    @classmethod
    def read(cls, folder: str | os.PathLike[str]) -> tuple[Study, dict[str, Any]]:
        """Read the study of a folder, and its whole identity."""
        file = Path(folder) / "study.json"
        if not file.is_file():
            raise ValueError(f"A study folder holds a study.json; there is none in {folder}.")
        load_list(Path(folder))
        try:
            identity = json.loads(file.read_text(encoding="utf-8"))
            study = cls(
                identity["command"],
                tuple(Cell(**cell) for cell in identity["cells"]),
                identity["replicates"],
                identity["seed"],
                identity["unit"],
                identity["question"],
                tuple(tuple(sentences) for sentences in identity["remarks"]),
            )
            dict(identity["versions"])
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ValueError(
                f"{file} is damaged or was not written by a study ({error}). Use another folder."
            ) from None
        return study, identity

    def command_line(self) -> str:
        """Return the command line that computes the study again."""
        asked = dict(self.question)
        return command_line(self.command, asked.pop("subject_matter", ""), **asked)


@dataclass(frozen=True)
class Rows:
    """The results of a finished study, read part by part, so that memory stays small.

    Parameters
    ----------
    study, folder
        What was studied, and where its parts are.
    versions
        Of the code that computed it.
    """

    study: Study
    folder: Path
    versions: Mapping[str, str]

    def tables(
        self, columns: Sequence[str] | None = None, cell: int | None = None
    ) -> Iterator[pd.DataFrame]:
        """Go through the parts in the order of the study, `columns` of them (those they have)."""
        for batch in self.study.batches():
            if cell is None or batch.cell == cell:
                yield self.part(batch, columns)

    def frame(
        self,
        columns: Sequence[str] | None = None,
        cell: int | None = None,
        most: int | None = None,
    ) -> pd.DataFrame:
        """Return all rows, or every k-th so that there are at most `most`."""
        cells = range(len(self.study.cells)) if cell is None else [cell]
        total = sum(self.study.units(c) for c in cells)
        kept = Thinned(total, total if most is None else most)
        for table in self.tables(columns, cell):
            kept.add(table)
        return kept.frame

    @cached_property
    def _digests(self) -> Mapping[str, str]:
        return digests_of(self.folder)

    def part(self, batch: Batch, columns: Sequence[str] | None = None) -> pd.DataFrame:
        """Return the rows of a batch; ValueError if they are missing or damaged."""
        file = self.folder / "parts" / self.study.part_name(batch)
        try:
            _check_digest(file, self._digests)
            with pq.ParquetFile(file.absolute(), page_checksum_verification=True) as part:
                names = part.schema_arrow.names
                some = None if columns is None else [c for c in columns if c in names]
                table = part.read(columns=some)
            if table.num_rows != len(batch):
                raise pa.ArrowInvalid(f"{table.num_rows} rows instead of {len(batch)}")
        except FileNotFoundError:
            raise NotFinished(
                f"The study in {self.folder} is not finished: part {file.name} is missing. "
                "Run the same command again; it goes on from here."
            ) from None
        except (OSError, pa.ArrowException) as error:
            told = " ".join(str(error).split())
            raise ValueError(
                f"A part of the study is damaged: {file} ({told}). "
                "Delete it and run the same command again; only this part is computed anew."
            ) from None
        frame: pd.DataFrame = table.to_pandas(ignore_metadata=True)
        return frame


class Thinned:
    """Every k-th of so many rows that come in pieces, so that there are at most `most`."""

    def __init__(self, total: int, most: int):
        self.step = max(1, -(-total // most))
        self._seen = 0
        self._kept: list[pd.DataFrame] = []

    def add(self, table: pd.DataFrame) -> None:
        """Take in the next rows."""
        kept = table.iloc[(-self._seen) % self.step :: self.step]
        if len(kept):
            self._kept.append(kept)
        self._seen += len(table)

    @property
    def frame(self) -> pd.DataFrame:
        """The rows that are kept."""
        return pd.concat(self._kept, ignore_index=True)


def versions() -> dict[str, str]:
    """Versions of what the numbers depend on."""
    names = ("knownminds", "numpy", "scipy", "numba", "pymc", "nutpie")
    found = {name: importlib.metadata.version(name) for name in names}
    return {"python": platform.python_version(), **found}


def digests_of(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of each part as it was written; empty for a folder of earlier versions."""
    try:
        lines = (folder / DIGESTS).read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return {}
    pairs = [line.split("  ", 1) for line in lines]
    # Of a part that was written twice, the last.
    return {pair[1]: pair[0] for pair in pairs if len(pair) == 2}


def note_digest(folder: Path, name: str, content: bytes) -> None:
    """Write down the SHA-256 of a part that is about to be put in its place."""
    line = f"{hashlib.sha256(content).hexdigest()}  {name}\n"
    with (folder / DIGESTS).open("a", encoding="utf-8") as file:
        file.write(line)


def _check_digest(file: Path, digests: Mapping[str, str]) -> None:
    """Raise ArrowInvalid if a part is not as it was written; earlier versions did not note it."""
    known = digests.get(file.name)
    if known is not None and hashlib.sha256(file.read_bytes()).hexdigest() != known:
        raise pa.ArrowInvalid("its numbers are not those that the study has written")


def finished_parts(parts: Path) -> set[str]:
    """Names of the parts that are there and end as Parquet files do."""
    if not parts.is_dir():
        return set()
    return {file.name for file in parts.iterdir() if _whole(file)}


def _whole(file: Path) -> bool:
    if file.suffix != ".parquet" or file.stat().st_size < 8:
        return False
    with file.open("rb") as stream:
        stream.seek(-4, os.SEEK_END)
        return stream.read() == b"PAR1"


def difference(key: str, theirs: Any, mine: Any, here: str = "here") -> str:
    """Say in which point two identities, their entry `key`, differ."""
    if key == "source":
        return "a study made with another state of the code, knownminds' or your own"
    if key == "versions" and isinstance(theirs, dict):
        names = [k for k in {**mine, **theirs} if theirs.get(k) != mine.get(k)]
        told = ", ".join(f"{k} {theirs.get(k)} instead of {mine.get(k)}" for k in names)
        return f"a study made with {told}"
    kind = "another study" if key == "question" else "a study of another design"
    point, a, b = _point(key, theirs, mine)
    return f"{kind} ({point} is {a!r}, {here} {b!r})"


def _point(name: str, theirs: Any, mine: Any) -> tuple[str, Any, Any]:
    """Find the innermost entry in which they differ."""
    if isinstance(theirs, dict) and isinstance(mine, dict):
        inner = next(k for k in {**mine, **theirs} if theirs.get(k) != mine.get(k))
        return _point(inner, theirs.get(inner), mine.get(inner))
    if name == "cells" and isinstance(theirs, list):
        if len(theirs) != len(mine):
            return "number of cells", len(theirs), len(mine)
        return _point(name, *next((a, b) for a, b in zip(theirs, mine, strict=True) if a != b))
    return name, theirs, mine


def _hash(content: Any) -> str:
    text = json.dumps(content, sort_keys=True, default=dict)
    return hashlib.sha256(text.encode()).hexdigest()
