"""The study runner: seeds by content, parallel batches, each written when done, resumed exactly."""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.resources
import json
import os
import platform
import tempfile
import warnings
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from knownminds.environments import Environment, make

SUBJECTS_PER_BATCH = 512  # some 70 ms of simulating and fitting
SAME_FAILURE = 3  # so many batches failing alike at the start end the study
WORTH_WORKERS = 8.0  # seconds of remaining work that pay for starting processes

# What can go wrong with the numbers of one replicate. Anything else is a bug and stops the study.
FAILURES = (ArithmeticError, ValueError, RuntimeError)

Work = Callable[["Study", "Batch", int | None], pd.DataFrame]
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Cell:
    """One combination of design, truth and method.

    Parameters
    ----------
    environment, settings
        Name and constructor arguments of the experiment.
    model
        Name of the model that generates the behaviour and is fitted.
    truth
        Parameters held at a value; the others are drawn from their priors.
    lapse
        Lapse rate of the simulated subjects.
    sessions
        Sessions each subject lives.
    method, options
        How it is fitted; these do not enter the data's seeds.
    """

    environment: str
    settings: Mapping[str, Any]
    model: str
    truth: Mapping[str, float] = field(default_factory=dict)
    lapse: float = 0.0
    sessions: int = 1
    method: str = "map"
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def data_key(self) -> int:
        """A number for everything that shapes the data: equal for all methods of a design.

        The number of sessions is left out, so that a longer study begins with the same sessions.
        """
        content = (self.environment, self.settings, self.model, self.truth, self.lapse)
        return int(_hash(content)[:15], 16)

    def make(self) -> Environment:
        """Build the environment."""
        return make(self.environment, **self.settings)


@dataclass(frozen=True)
class Batch:
    """A piece of work: subjects first to last - 1 of one replicate of one cell."""

    cell: int
    replicate: int
    first: int
    last: int


@dataclass(frozen=True)
class Study:
    """Cells x replicates x subjects, with the seed from which all of it follows.

    Session k of subject i in replicate j of a cell lives at the address
    (cell.data_key, j, k, i) of `environments.session_stream`.

    Parameters
    ----------
    command
        What is studied, "recover" for instance.
    batch
        Subjects per batch; no result depends on it. A hierarchical fit takes all of a replicate.
    """

    command: str
    cells: tuple[Cell, ...]
    subjects: int
    replicates: int = 1
    seed: int = 0
    batch: int = SUBJECTS_PER_BATCH

    def __post_init__(self) -> None:
        """Check the counts."""
        counts = {"subjects": self.subjects, "replicates": self.replicates, "batch": self.batch}
        counts |= {"sessions": min(cell.sessions for cell in self.cells)}
        for name, count in counts.items():
            if count < 1:
                raise ValueError(f"The number of {name} is at least 1; got {count}.")
        if self.seed < 0:
            raise ValueError(f"Seeds are whole numbers from 0 on; got {self.seed}.")

    def batches(self) -> Iterator[Batch]:
        """Go through all pieces of work."""
        for c, cell in enumerate(self.cells):
            size = self.subjects if cell.method == "hierarchical" else self.batch
            for replicate in range(self.replicates):
                for first in range(0, self.subjects, size):
                    yield Batch(c, replicate, first, min(first + size, self.subjects))

    def part_name(self, batch: Batch) -> str:
        """Name the file of a batch by all that determines its numbers."""
        content = (asdict(self.cells[batch.cell]), self.seed, self.subjects)
        return f"{_hash((*content, batch.replicate, batch.first, batch.last))[:24]}.parquet"

    def identity(self) -> dict[str, Any]:
        """Everything that determines the numbers, JSON-able."""
        return {
            "command": self.command,
            "cells": [asdict(cell) for cell in self.cells],
            "subjects": self.subjects,
            "replicates": self.replicates,
            "seed": self.seed,
            "source": source_hash(),
            "versions": versions(),
        }

    @classmethod
    def read(cls, folder: Path) -> tuple[Study, dict[str, Any]]:
        """Read the study of a folder, and its whole identity."""
        file = folder / "study.json"
        if not file.is_file():
            raise ValueError(f"A study folder holds a study.json; there is none in {folder}.")
        try:
            identity = json.loads(file.read_text(encoding="utf-8"))
            study = cls(
                identity["command"],
                tuple(Cell(**cell) for cell in identity["cells"]),
                identity["subjects"],
                identity["replicates"],
                identity["seed"],
            )
        except (ValueError, KeyError, TypeError, UnicodeDecodeError) as error:
            raise ValueError(
                f"{file} is damaged or was not written by a study ({error}). Use another folder."
            ) from None
        return study, identity


def run(
    study: Study,
    work: Work,
    *,
    folder: str | os.PathLike[str] | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> pd.DataFrame:
    """Do all the work that is not done yet; return the rows of the whole study in order.

    Parameters
    ----------
    work
        A module-level function of (study, batch, threads) giving one row per subject with at
        least `subject`, `status` and `message`.
    folder
        Where finished batches are kept. A folder of the same study is resumed; None computes in
        a temporary folder.
    workers
        Processes; 1 stays in this one; None decides once the first batch has been timed.
    progress
        Called with (batches done, batches in all).

    Raises
    ------
    ValueError
        If the folder holds something else, cannot be written, or the first batches all fail for
        one reason.
    """
    if workers is not None and workers < 1:
        raise ValueError(f"The number of workers is at least 1; got {workers}.")
    if folder is None:
        with tempfile.TemporaryDirectory(prefix="knownminds-") as temporary:
            return _run(study, work, Path(temporary), workers, progress)
    with writable(folder) as path:
        _claim(study, path)
        return _run(study, work, path, workers, progress)


def collect(study: Study, folder: Path) -> pd.DataFrame:
    """Read the rows of all batches, in the order of the study; ValueError if one is missing."""
    tables = []
    for batch in study.batches():
        table = _read_part(folder / "parts" / study.part_name(batch), batch)
        if table is None:
            raise ValueError(
                f"The study in {folder} is not finished: batch {batch} is missing or damaged. "
                "Run the same command again; it goes on from here."
            )
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


def source_hash() -> str:
    """Hash the code that the numbers depend on: ours, below this floor and of the studies."""
    digest = hashlib.sha256()
    for package in ("environments", "agents", "inference", "validation"):
        root = importlib.resources.files(f"knownminds.{package}")
        for file in sorted(root.iterdir(), key=lambda f: f.name):
            shown_only = package == "validation" and file.name in _SHOWS
            if file.name.endswith((".py", ".toml")) and not shown_only:
                digest.update(f"{package}/{file.name}\n".encode() + file.read_bytes())
    return digest.hexdigest()


_SHOWS = ("cli.py", "figures.py", "fit.py", "report.py", "simulated_data.py")


def versions() -> dict[str, str]:
    """Versions of what the numbers depend on."""
    names = ("knownminds", "numpy", "scipy", "numba", "pymc", "nutpie")
    found = {name: importlib.metadata.version(name) for name in names}
    return {"python": platform.python_version(), **found}


@contextmanager
def writable(folder: str | os.PathLike[str]) -> Iterator[Path]:
    """Make the folder if needed; answer what the file system refuses with one sentence."""
    path = Path(folder)
    try:
        path.mkdir(parents=True, exist_ok=True)
        yield path
    except OSError as error:
        reason = error.strerror or str(error)
        raise ValueError(
            f"Results cannot be written to {path}: {reason}. Name another folder with --out."
        ) from error


def check_writable(place: Path) -> None:
    """Raise ValueError, before any work, if a file or folder cannot be made there."""
    existing = next((p for p in (place, *place.absolute().parents) if p.exists()), Path("/"))
    whole = existing == place or existing.is_dir()
    if not (whole and os.access(existing, os.W_OK)):
        raise ValueError(
            f"Results cannot be written to {place}: {existing} does not allow it. "
            "Name another place with --out."
        )


def write_text(file: Path, text: str) -> None:
    """Write a file whole or not at all."""
    part = file.with_name(f".{file.name}.{os.getpid()}")
    part.write_text(text, encoding="utf-8")
    part.replace(file)


def _hash(content: Any) -> str:
    text = json.dumps(content, sort_keys=True, default=dict)
    return hashlib.sha256(text.encode()).hexdigest()


def _claim(study: Study, folder: Path) -> None:
    """Take a new folder, or make sure that it holds this very study."""
    mine = json.loads(json.dumps(study.identity()))
    if not (folder / "study.json").exists():
        strangers = [f.name for f in folder.iterdir() if not f.name.startswith(".")]
        if strangers:
            raise ValueError(
                f"A study needs a folder of its own; {folder} holds {strangers[0]!r}. "
                "Name another one."
            )
        write_text(folder / "study.json", json.dumps(mine, indent=2))
        return
    _, found = Study.read(folder)
    for key in mine:
        if found.get(key) != mine[key]:
            raise ValueError(
                f"The folder {folder} holds {_difference(key, found.get(key), mine[key])}. "
                "Name another folder, or repeat the command that made it."
            )


def _difference(key: str, theirs: Any, mine: Any) -> str:
    if key == "source":
        return "a study made with another state of knownminds' code"
    if key == "versions" and isinstance(theirs, dict):
        changed = [k for k in mine if theirs.get(k) != mine[k]]
        told = ", ".join(f"{k} {theirs.get(k)} instead of {mine[k]}" for k in changed)
        return f"a study made with {told}"
    if key == "cells" and isinstance(theirs, list) and len(theirs) == len(mine):
        a, b = next((a, b) for a, b in zip(theirs, mine, strict=True) if a != b)
        part = next(k for k in b if a.get(k) != b[k])
        return f"a study of another design ({part} is {a.get(part)!r}, here {b[part]!r})"
    if key == "cells":
        return "a study of another design"
    return f"a study of another design ({key} is {theirs!r}, here {mine!r})"


def _read_part(file: Path, batch: Batch) -> pd.DataFrame | None:
    """Read a finished batch; None if it is not there or not whole."""
    try:
        table = pd.read_parquet(file)
    except (OSError, pa.ArrowException):
        return None
    return table if len(table) == batch.last - batch.first else None


def _run(
    study: Study, work: Work, folder: Path, workers: int | None, progress: Progress | None
) -> pd.DataFrame:
    parts = folder / "parts"
    parts.mkdir(exist_ok=True)
    batches = list(study.batches())
    todo = [b for b in batches if _read_part(parts / study.part_name(b), b) is None]
    done = len(batches) - len(todo)
    failures = _SameFailure(study, parts, min(SAME_FAILURE, len(todo)))

    def note(outcome: _Outcome) -> None:
        nonlocal done
        done += 1
        failures.see(outcome)
        if progress is not None:
            progress(done, len(batches))

    if progress is not None:
        progress(done, len(batches))
    if todo and workers is None:
        began = perf_counter()
        note(_finish(study, work, todo[0], parts, None))
        todo = todo[1:]
        seconds = (perf_counter() - began) * len(todo)
        workers = min(os.cpu_count() or 1, len(todo)) if seconds > WORTH_WORKERS else 1
    if workers is None or workers == 1:
        for batch in todo:
            note(_finish(study, work, batch, parts, None))
    elif todo:
        outcomes = _in_processes(study, work, todo, parts, workers)
        try:
            for outcome in outcomes:
                note(outcome)
        finally:
            with warnings.catch_warnings():
                # A study that stops early cancels batches, and joblib calls that a waste.
                warnings.simplefilter("ignore", UserWarning)
                outcomes.close()
    return collect(study, folder)


def _in_processes(
    study: Study, work: Work, todo: Sequence[Batch], parts: Path, workers: int
) -> Generator[_Outcome, None, None]:
    from joblib import Parallel, delayed, parallel_config

    # One thread per process: the processes already fill the cores.
    with parallel_config("loky", n_jobs=workers, inner_max_num_threads=1):
        parallel = Parallel(return_as="generator_unordered", batch_size=1)
    tasks = (delayed(_finish)(study, work, batch, parts, 1) for batch in todo)
    outcomes: Generator[_Outcome, None, None] = parallel(tasks)
    return outcomes


@dataclass(frozen=True)
class _Outcome:
    """A finished batch; its table, unwritten, and the reason if every replicate in it failed."""

    batch: Batch
    failed: pd.DataFrame | None = None
    reason: str = ""


def _finish(study: Study, work: Work, batch: Batch, parts: Path, threads: int | None) -> _Outcome:
    """Do a batch and write its part, unless nothing came of it."""
    began = perf_counter()
    reason = None
    try:
        table = work(study, batch, threads)
    except FAILURES as error:
        table, reason = _one_by_one(study, work, batch, threads, str(error))
    table = table.assign(cell=batch.cell, replicate=batch.replicate)
    table["seconds"] = (perf_counter() - began) / len(table)
    if reason is not None:
        return _Outcome(batch, table, reason)
    _write_part(table, parts / study.part_name(batch))
    return _Outcome(batch)


def _write_part(table: pd.DataFrame, file: Path) -> None:
    part = file.with_name(f".{file.stem}.{os.getpid()}")
    table.to_parquet(part, index=False)
    part.replace(file)


def _one_by_one(
    study: Study, work: Work, batch: Batch, threads: int | None, reason: str
) -> tuple[pd.DataFrame, str | None]:
    """Find the subjects to blame where subjects are fitted apart; the others keep their rows."""
    subjects = range(batch.first, batch.last)
    together = study.cells[batch.cell].method == "hierarchical"
    if together or len(subjects) == 1:
        rows = {"subject": list(subjects), "status": "failed", "message": reason}
        return pd.DataFrame(rows), reason
    tables, reasons = [], []
    for i in subjects:
        alone = Batch(batch.cell, batch.replicate, i, i + 1)
        try:
            tables.append(work(study, alone, threads))
        except FAILURES as error:
            rows = {"subject": [i], "status": "failed", "message": str(error)}
            tables.append(pd.DataFrame(rows))
            reasons.append(str(error))
    return pd.concat(tables, ignore_index=True), reason if len(reasons) == len(tables) else None


class _SameFailure:
    """Ends a study whose first batches all fail for the same reason, leaving none of them behind.

    Failed batches are written once it is clear that the study goes on.
    """

    def __init__(self, study: Study, parts: Path, limit: int):
        self.study, self.parts, self.limit = study, parts, limit
        self.held: list[_Outcome] = []

    def see(self, outcome: _Outcome) -> None:
        """Take note of a finished batch; ValueError if it is one failure too many."""
        if outcome.failed is not None:
            self.held.append(outcome)
        alike = {held.reason for held in self.held} == {outcome.reason}
        if outcome.failed is None or not alike:
            self.limit = 0  # the study works, or fails for more than one reason
        if self.limit and len(self.held) == self.limit:
            raise ValueError(
                f"Every replicate so far failed alike, so the study stops: {outcome.reason}"
            )
        if not self.limit:
            for held in self.held:
                if held.failed is not None:
                    _write_part(held.failed, self.parts / self.study.part_name(held.batch))
            self.held.clear()


def finite(value: Any) -> Any:
    """Make a value fit for JSON: NaN and infinity become None."""
    if isinstance(value, dict):
        return {str(k): finite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [finite(v) for v in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value
