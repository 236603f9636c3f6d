"""Worker processes do not outlive the process they work for, and interrupts are its affair."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from joblib import parallel_config

LOOK_EVERY = 1.0  # seconds


@contextmanager
def processes(workers: int | None) -> Iterator[None]:
    """Let joblib compute in so many processes of one thread each, which end with this process."""
    first = {"initializer": _begin, "initargs": (os.getpid(),)}
    with parallel_config("loky", n_jobs=workers, inner_max_num_threads=1, **first):
        yield


def _begin(parent: int) -> None:
    """Begin as a worker: look for the parent, for one that is killed cannot tell its workers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(LOOK_EVERY)
    os._exit(1)  # nobody waits for results


@contextmanager
def deaf_children() -> Iterator[None]:
    """Let processes that begin here get no interrupts, not even while they import."""
    if not hasattr(signal, "pthread_sigmask"):  # as on Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
