"""How studies are computed: parallel batches, each written when done, resumed exactly."""

from __future__ import annotations

import json
import os
import tempfile
import warnings
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from time import perf_counter
from typing import Any, TypedDict, TypeVar

import numpy as np
import pandas as pd

from knownminds.agents import AGENTS
from knownminds.environments import ENVIRONMENTS, unknown
from knownminds.environments.record.folders import writable, write_text

from .members import Guests, write_list
from .source import members_of, source_hash
from .study import Batch, Rows, Study, difference, finished_parts, note_digest, versions
from .workers import in_worker

SAME_FAILURE = 3  # so many batches failing alike at the start end the study
WORTH_PROCESSES = 8.0  # seconds of remaining work that pay for starting processes
WORTH_THREADS = 0.05  # and for starting threads
ANSWERS_WITHIN = 10.0  # seconds for a dask scheduler

# What can go wrong with the numbers of one replicate. Anything else is a bug and stops the study.
FAILURES = (ArithmeticError, ValueError, RuntimeError)

Work = Callable[[Study, Batch, int | None], pd.DataFrame]
Progress = Callable[[int, int], None]
BACKENDS = ("processes", "threads", "dask")
Result = TypeVar("Result")


class Running(TypedDict, total=False):
    """How a study is computed and where it is kept; no number depends on it.

    Keys
    ----
    out
        Folder in which finished batches are kept. A folder of the same study is resumed; None
        computes in a temporary folder.
    workers
        Processes or threads, each on one core; 1 stays in this one; None decides once the first
        batch has been timed.
    backend
        "processes", "threads", or "dask" with a `scheduler`; None decides.
    scheduler
        Address of a running dask scheduler, tcp://host:port.
    share
        "2/3": do only the second third of the batches, on this machine, into `out`; the folders
        are joined by `merge`.
    progress
        Called with (batches done, batches in all).
    """

    out: str | os.PathLike[str] | None
    workers: int | None
    backend: str | None
    scheduler: str | None
    share: str | None
    progress: Progress | None


class ShareDone(Exception):  # noqa: N818 - it is no error
    """One share of a study is computed; there is a result once the folders are merged."""


def run(
    study: Study,
    work: Work,
    summarise: Callable[[Rows], Result],
    *,
    out: str | os.PathLike[str] | None = None,
    workers: int | None = None,
    backend: str | None = None,
    scheduler: str | None = None,
    share: str | None = None,
    progress: Progress | None = None,
) -> Result:
    """Do all the work that is not done yet; return what `summarise` makes of all rows.

    Parameters
    ----------
    work
        A module-level function of (study, batch, threads) giving one row per unit with at least
        `status` and `message`; it may use so many threads (None: all cores).
    out, workers, backend, scheduler, share, progress
        See `Running`.

    Raises
    ------
    ValueError
        If the folder holds something else, cannot be written, or the first batches all fail for
        one reason.
    ShareDone
        If a share was asked for and others are missing.
    """
    how = _checked(out, workers, backend, scheduler, share, progress)
    if out is None:
        with tempfile.TemporaryDirectory(prefix="knownminds-") as temporary:
            _run(study, work, Path(temporary), how)
            return summarise(Rows(study, Path(temporary), versions()))
    if how.scheduler is not None and not (Path(out) / "study.json").exists():
        _check_reachable(how.scheduler)  # a wrong address leaves no folder behind
    with writable(out) as path:
        claim(study, path)
    _run(study, work, path, how)
    if share is not None:
        done = len(finished_parts(path / "parts") & {study.part_name(b) for b in study.batches()})
        if done < study.n_batches:
            raise ShareDone(
                f"Share {share} is done: {done} of {study.n_batches} batches are in {path}. "
                "When all shares are: knownminds merge FOLDER FOLDER ... --out NEW."
            )
    return summarise(Rows(study, path, versions()))


def read(
    folder: str | os.PathLike[str], command: str, summarise: Callable[[Rows], Result]
) -> Result:
    """Summarise the study in a folder again; nothing is computed anew."""
    study, identity = Study.read(folder)
    if study.command != command:
        raise ValueError(
            f"A study of {command} is asked for; {folder} holds one of {study.command}."
        )
    for cell in study.cells:
        for kind, name, known in (
            ("model", cell.model, list(AGENTS)),
            ("environment", cell.environment, list(ENVIRONMENTS)),
        ):
            if name not in known:
                told = unknown(kind, name, known)
                raise ValueError(f"{folder} was made by another version: {told}")
    return summarise(Rows(study, Path(folder), identity["versions"]))


@dataclass(frozen=True)
class _How:
    workers: int | None
    backend: str | None
    scheduler: str | None
    share: tuple[int, int]
    progress: Progress | None


def _checked(
    out: Any,
    workers: int | None,
    backend: str | None,
    scheduler: str | None,
    share: str | None,
    progress: Progress | None,
) -> _How:
    if workers is not None and workers < 1:
        raise ValueError(f"The number of workers is at least 1; got {workers}.")
    if backend is not None and backend not in BACKENDS:
        raise ValueError(unknown("backend", backend, BACKENDS))
    if (backend == "dask") != (scheduler is not None):
        raise ValueError(
            "A dask cluster is named by both: --backend dask --scheduler tcp://host:port; "
            f"got backend {backend!r} and scheduler {scheduler!r}."
        )
    if share is None:
        return _How(workers, backend, scheduler, (1, 1), progress)
    first, slash, last = share.partition("/")
    if not (slash and first.isdecimal() and last.isdecimal() and 1 <= int(first) <= int(last)):
        raise ValueError(f"A share reads 2/3, the second of three; got {share!r}.")
    if out is None:
        raise ValueError("A share of a study is kept in a folder; name one with --out.")
    return _How(workers, backend, scheduler, (int(first), int(last)), progress)


def claim(study: Study, folder: Path) -> None:
    """Take a new folder, or make sure that it holds this very study."""
    mine = json.loads(json.dumps(study.identity()))
    if not (folder / "study.json").exists():
        strangers = [f.name for f in folder.iterdir() if not f.name.startswith(".")]
        if strangers:
            raise ValueError(
                f"A study needs a folder of its own; {folder} holds {strangers[0]!r}. "
                "Name another one."
            )
        write_list(folder)
        write_text(folder / "study.json", json.dumps(mine, indent=2))
        return
    _, found = Study.read(folder)
    for key in mine:
        if found.get(key) != mine[key]:
            raise ValueError(
                f"The folder {folder} holds {difference(key, found.get(key), mine[key])}. "
                "Name another folder, or repeat the command that made it."
            )


def _run(study: Study, work: Work, folder: Path, how: _How) -> None:
    with writable(folder / "parts") as parts:
        finished = finished_parts(parts)
    mine, of = how.share
    share = list(islice(study.batches(), mine - 1, None, of))
    todo = [batch for batch in share if study.part_name(batch) not in finished]
    done = len(share) - len(todo)
    # Parts are written of a study that works: its last batches may all fail.
    failures = _SameFailure(study, parts, 0 if done else min(SAME_FAILURE, study.n_batches))

    def note(outcome: _Outcome) -> None:
        nonlocal done
        done += 1
        failures.see(outcome)
        if how.progress is not None:
            how.progress(done, len(share))

    if how.progress is not None:
        how.progress(done, len(share))
    workers, backend = how.workers, how.backend
    if todo and workers is None and backend != "dask":
        began = perf_counter()
        note(_finish(study, work, todo[0], None))
        todo = todo[1:]
        seconds = (perf_counter() - began) * len(todo)
        workers = min(os.cpu_count() or 1, len(todo)) if seconds > WORTH_THREADS else 1
        if backend is None:
            backend = "processes" if seconds > WORTH_PROCESSES else "threads"
        if backend == "threads" and any(c.method == "hierarchical" for c in study.cells):
            workers = 1  # compiled models are swapped from data to data, one at a time
    if todo and backend == "dask":
        outcomes = _on_cluster(study, work, todo, how.scheduler or "")
    elif workers == 1 or len(todo) < 2:
        threads = 1 if how.workers == 1 else None
        outcomes = (_finish(study, work, batch, threads) for batch in todo)
    else:
        outcomes = _in_parallel(study, work, todo, workers or 1, backend or "processes")
    try:
        for outcome in outcomes:
            note(outcome)
        failures.write()
    finally:
        with warnings.catch_warnings():
            # A study that stops early cancels batches, and joblib calls that a waste.
            warnings.simplefilter("ignore", UserWarning)
            outcomes.close()


def _in_parallel(
    study: Study, work: Work, todo: Iterable[Batch], workers: int, backend: str
) -> Generator[_Outcome, None, None]:
    from joblib import Parallel, delayed, parallel_config

    # One thread per worker: the workers already fill the cores.
    if backend == "threads":
        parallel = Parallel(workers, backend="threading", return_as="generator_unordered")
    else:
        with parallel_config("loky", n_jobs=workers, inner_max_num_threads=1):
            parallel = Parallel(return_as="generator_unordered", batch_size=1)
    own, guests = os.getpid(), Guests.of(members_of(study))
    tasks = (delayed(in_worker)(own, _finish_there, guests, study, work, b) for b in todo)
    outcomes: Generator[_Outcome, None, None] = parallel(tasks)
    return outcomes


def _on_cluster(
    study: Study, work: Work, todo: Sequence[Batch], scheduler: str
) -> Generator[_Outcome, None, None]:
    """Compute on a dask cluster; its workers need the same code and versions."""
    from joblib import Parallel, delayed, parallel_config

    _check_reachable(scheduler)
    from distributed import Client

    with Client(scheduler, timeout=ANSWERS_WITHIN, set_as_default=False) as client:
        _check_cluster(client, scheduler)
        with parallel_config("dask", client=client):
            guests = Guests.of(members_of(study))
            tasks = (delayed(_finish_there)(guests, study, work, batch) for batch in todo)
            yield from Parallel(return_as="generator_unordered", batch_size=1)(tasks)


def _check_reachable(scheduler: str) -> None:
    """Shake hands: at a port that is not a scheduler's, a Client would wait for ever."""
    try:
        from distributed import comm, utils
    except ImportError:
        raise ValueError(
            'A dask cluster needs the extra: pip install "knownminds[dask]".'
        ) from None

    async def greet() -> None:
        line = await comm.connect(scheduler, timeout=ANSWERS_WITHIN)
        line.abort()

    runner = utils.LoopRunner()
    runner.start()
    try:
        utils.sync(runner.loop, greet, callback_timeout=ANSWERS_WITHIN)
    except (OSError, ValueError) as error:
        told = str(error) or f"no answer in {ANSWERS_WITHIN:g} s"
        raise ValueError(f"No dask scheduler answers at {scheduler}: {told}") from None
    finally:
        runner.stop()


def _check_cluster(client: Any, scheduler: str) -> None:
    found = client.run(_state_of_code, on_error="return")  # errors: code that is not there
    if not found:
        raise ValueError(f"The dask cluster at {scheduler} has no workers; start some.")
    for worker, state in found.items():
        if state != _state_of_code():
            raise ValueError(
                f"All workers run the same code and versions; worker {worker} of {scheduler} has "
                "others than this process. Install the same there."
            )


def _state_of_code() -> tuple[str, dict[str, str]]:
    return source_hash(), versions()


@dataclass(frozen=True)
class _Outcome:
    """A finished batch with its rows, and the reason if every unit in it failed."""

    batch: Batch
    table: pd.DataFrame
    reason: str | None = None


def _finish_there(guests: Guests, study: Study, work: Work, batch: Batch) -> _Outcome:
    """Do a batch in another process, which knows what is shipped and no more."""
    guests.welcome()
    return _finish(study, work, batch, 1)


def _finish(study: Study, work: Work, batch: Batch, threads: int | None) -> _Outcome:
    """Do a batch."""
    began = perf_counter()
    reason = None
    try:
        table = work(study, batch, threads)
        assert len(table) == len(batch), "one row per unit"
    except FAILURES as error:
        table, reason = _one_by_one(study, work, batch, threads, str(error))
    table = _addressed(study, batch, table)
    table["seconds"] = (perf_counter() - began) / len(table)
    return _Outcome(batch, table, reason)


def _addressed(study: Study, batch: Batch, table: pd.DataFrame) -> pd.DataFrame:
    """Say in the first columns which cell, replicate and subject each row is about."""
    if study.unit == "subject":
        replicate, subject = study.subjects_of(batch)
        address = {"cell": batch.cell, "replicate": replicate, "subject": subject}
    else:
        address = {"cell": batch.cell, "replicate": np.arange(batch.first, batch.last)}
    return pd.concat([pd.DataFrame(address), table.reset_index(drop=True)], axis=1)


def _write_part(table: pd.DataFrame, file: Path) -> None:
    part = file.with_name(f".{file.stem}.{os.getpid()}")
    table.to_parquet(part.absolute(), index=False, write_page_checksum=True)
    note_digest(file.parent.parent, file.name, part.read_bytes())
    part.replace(file)


def _one_by_one(
    study: Study, work: Work, batch: Batch, threads: int | None, reason: str
) -> tuple[pd.DataFrame, str | None]:
    """Find the units to blame where they are computed apart; the others keep their rows."""
    together = study.unit == "subject" and study.cells[batch.cell].method == "hierarchical"
    if together or len(batch) == 1:
        return pd.DataFrame({"status": ["failed"] * len(batch), "message": reason}), reason
    tables, reasons = [], []
    for i in range(batch.first, batch.last):
        try:
            tables.append(work(study, Batch(batch.cell, i, i + 1), threads))
        except FAILURES as error:
            tables.append(pd.DataFrame({"status": ["failed"], "message": str(error)}))
            reasons.append(str(error))
    return pd.concat(tables, ignore_index=True), reason if len(reasons) == len(tables) else None


class _SameFailure:
    """Writes the parts; ends a study whose first batches all fail for the same reason.

    Failed batches are written once it is clear that the study goes on, so that a study that
    stops leaves none of them behind.
    """

    def __init__(self, study: Study, parts: Path, limit: int):
        self.study, self.parts, self.limit = study, parts, limit
        self.held: list[_Outcome] = []

    def see(self, outcome: _Outcome) -> None:
        """Keep a finished batch; ValueError if it is one failure too many."""
        self.held.append(outcome)
        if {held.reason for held in self.held} != {outcome.reason} or outcome.reason is None:
            self.limit = 0  # the study works, or fails for more than one reason
        if self.limit and len(self.held) == self.limit:
            raise ValueError(
                f"Every replicate so far failed alike, so the study stops: {outcome.reason}"
            )
        if not self.limit:
            self.write()

    def write(self) -> None:
        """Write what is held, also of a share too small to tell that all fails alike."""
        with writable(self.parts):
            for held in self.held:
                _write_part(held.table, self.parts / self.study.part_name(held.batch))
        self.held.clear()
