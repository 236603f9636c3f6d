"""How studies are computed: parallel batches, each written when done, resumed exactly."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from time import perf_counter
from typing import TypeVar

import numpy as np
import pandas as pd
from joblib import Parallel, delayed, parallel_config

from knownminds.environments.record.folders import writable

from .members import Guests
from .question import Running, ShareDone
from .study import Batch, Rows, Study, claim, versions, write_part
from .workers import deaf_children, processes

SAME_FAILURE = 3  # so many batches failing alike at the start end the study
WORTH_PROCESSES = 8.0  # seconds of remaining work that pay for starting processes

# What can go wrong with the numbers of one replicate. Anything else is a bug and stops the study.
FAILURES = (ArithmeticError, ValueError, RuntimeError)

Work = Callable[[Study, Batch, int | None], pd.DataFrame]
Answer = TypeVar("Answer")


def run(study: Study, work: Work, say: Callable[[Rows], Answer], running: Running) -> Answer:
    """Do all the work that is not done yet; return what `say` makes of all rows.

    Parameters
    ----------
    work : A module-level function of (study, batch, threads) that returns a row for each unit, with
        at least `status` and `message`; it may use so many threads (None: all cores).
    running : Where and how.

    Raises
    ------
    ValueError : If the folder holds something else, cannot be written, or the first batches all
        fail for one reason.
    ShareDone : If only a share of the work was requested, and other shares are missing.
    """
    how, (number, of) = running.checked(), running.part_of
    if how.out is None:
        parts = dict(_computed(study, work, list(study.batches()), how, fresh=True))
        return say(Rows.of_parts(study, parts, (versions(),)))
    with writable(how.out) as folder:
        used = claim(study, folder)
    with writable(Path(how.out) / "parts") as folder:
        fresh = not any(folder.glob("*.parquet"))  # each is renamed when it is whole
    share = islice(study.batches(), number - 1, None, of)
    todo = [batch for batch in share if not (folder / study.part_name(batch)).is_file()]
    with closing(_computed(study, work, todo, how, fresh=fresh)) as computed:
        for batch, table in computed:
            with writable(folder):
                write_part(table, folder / study.part_name(batch))
    rows = replace(Rows.read(how.out), versions=used)
    if rows.missing:
        raise ShareDone(
            f"Share {number}/{of} is done: {len(rows.frame):,} of {study.n_units:,} units are in "
            f"{how.out}. The last share to end shows the result."
        )
    return say(rows)


Step = Callable[[Study, str], Rows | None]


def computed_steps(start: Study, work: Work, running: Running) -> Step:
    """Return what computes a step of a search by its study and name; a folder within keeps it.

    Parameters
    ----------
    start : The study that names the search, which its folder bears; of it nothing is computed.
    """
    if running.share is not None:
        raise ValueError("A search goes step by step and has no shares; use workers or dask.")
    if running.out is not None:
        with writable(running.out) as folder:
            claim(start, folder)

    def step(study: Study, name: str) -> Rows:
        out = None if running.out is None else Path(running.out) / name
        return run(study, work, lambda rows: rows, replace(running.running, out=out))

    return step


def stored_steps(folder: Path) -> Step:
    """Return what reads a finished step of a search from its folder; None where there is none."""

    def step(_: Study, name: str) -> Rows | None:
        if not (folder / name / "study.json").is_file():
            return None
        rows = Rows.read(folder / name)
        return None if rows.missing else rows

    return step


def _computed(
    study: Study, work: Work, todo: Sequence[Batch], how: Running, *, fresh: bool
) -> Generator[tuple[Batch, pd.DataFrame], None, None]:
    """Go through the rows of batches as they are done.

    Of a study without any part, those that fail are given once it is clear that it goes on.

    Raises
    ------
    ValueError : If the first batches all fail for the same reason.
    """
    waiting: list[_Finished] = []
    limit = min(SAME_FAILURE, len(todo)) if fresh else 0
    with closing(_finished(study, work, todo, how)) as finished:
        for done, one in enumerate(finished, start=1):
            if how.progress is not None:
                how.progress(done, len(todo))
            waiting.append(one)
            if one.reason is None or one.reason != waiting[0].reason:
                limit = 0  # the study works, or fails for more than one reason
            if limit and len(waiting) == limit:
                raise ValueError(
                    f"Every replicate so far failed alike, so the study stops: {one.reason}"
                )
            if not limit:
                yield from ((one.batch, one.table) for one in waiting)
                waiting.clear()
    yield from ((one.batch, one.table) for one in waiting)


def _finished(
    study: Study, work: Work, todo: Sequence[Batch], how: Running
) -> Generator[_Finished, None, None]:
    workers = how.workers
    if workers is None and how.backend != "dask" and todo:
        began = perf_counter()
        yield _finish(study, work, todo[0], None)
        todo = todo[1:]
        pays = (perf_counter() - began) * len(todo) > WORTH_PROCESSES
        workers = min(os.cpu_count() or 1, len(todo)) if pays else 1
    if (workers == 1 or len(todo) < 2) and how.backend != "dask":
        threads = 1 if how.workers == 1 else None
        yield from (_finish(study, work, batch, threads) for batch in todo)
        return
    guests = Guests.here()
    with _backend(how, workers):
        parallel = Parallel(return_as="generator_unordered", batch_size=1)
        tasks = (delayed(_finish_there)(guests, study, work, batch) for batch in todo)
        with deaf_children():
            batches: Generator[_Finished, None, None] = parallel(tasks)
        try:
            for one in batches:  # noqa: UP028 - `yield from` would close them, and warn
                yield one
        finally:
            with warnings.catch_warnings():
                # A study that stops early cancels batches, and joblib calls that a waste.
                warnings.simplefilter("ignore", UserWarning)
                batches.close()


@contextmanager
def _backend(how: Running, workers: int | None) -> Iterator[None]:
    """Choose where joblib computes."""
    if how.backend != "dask":
        threads = how.backend == "threads"
        with parallel_config("threading", n_jobs=workers) if threads else processes(workers):
            yield
        return
    try:
        from distributed import Client
    except ImportError:
        raise ValueError(
            'A dask cluster needs the extra: pip install "knownminds[dask]".'
        ) from None
    try:
        client = Client(how.scheduler, timeout=10, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise ValueError(f"No dask scheduler answers at {how.scheduler}: {error}") from None
    with client, parallel_config("dask", client=client):
        yield


@dataclass(frozen=True)
class _Finished:
    """A finished batch with its rows, and the reason if every unit in it failed."""

    batch: Batch
    table: pd.DataFrame
    reason: str | None = None


def _finish_there(guests: Guests, study: Study, work: Work, batch: Batch) -> _Finished:
    """Do a batch in another process, which knows what is shipped and no more."""
    guests.welcome()
    return _finish(study, work, batch, 1)


def _finish(study: Study, work: Work, batch: Batch, threads: int | None) -> _Finished:
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
    return _Finished(batch, table, reason)


def _addressed(study: Study, batch: Batch, table: pd.DataFrame) -> pd.DataFrame:
    """Say in the first columns which cell, replicate and subject each row is about."""
    if study.unit == "subject":
        replicate, subject = study.subjects_of(batch)
        address = {"cell": batch.cell, "replicate": replicate, "subject": subject}
    else:
        address = {"cell": batch.cell, "replicate": np.arange(batch.first, batch.last)}
    return pd.concat([pd.DataFrame(address), table.reset_index(drop=True)], axis=1)


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
