"""Worker processes that do not outlive the one they work for."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

Result = TypeVar("Result")

_EVERY = 1.0  # seconds between two looks
_WATCHED: set[int] = set()


def in_worker(parent: int, work: Callable[..., Result], *given: Any) -> Result:
    """Do some work in a process that ends when `parent`, which started it, does.

    A process that is killed cannot tell its workers, so each looks for itself whether it still has
    its parent.
    """
    if os.getpid() != parent and parent not in _WATCHED:
        _WATCHED.add(parent)
        threading.Thread(target=_watch, args=(os.getppid(),), daemon=True).start()
    return work(*given)


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_EVERY)
    os._exit(1)  # whoever waits for results is dead
