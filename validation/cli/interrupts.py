"""What an interrupt (Ctrl-C) does: it ends the command with one line that says what is kept."""

from __future__ import annotations

import _thread
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CODE = 130  # the exit code
NOTHING_KEPT = "Nothing new is kept; the same command begins where this one did."
SOON = 0.05  # seconds


class Stopped(Exception):  # noqa: N818 - it is no error
    """A command was interrupted; the text says what is kept."""


@contextmanager
def kept_in(folder: str | os.PathLike[str] | None, files: str) -> Iterator[None]:
    """Let an interrupt say what is kept: files of this pattern in a folder, if one was named."""
    try:
        yield
    except KeyboardInterrupt:
        if folder is None:
            raise Stopped(f"{NOTHING_KEPT} With --out it would go on.") from None
        if not any(Path(folder).rglob(files)):
            raise
        raise Stopped(f"What was finished is kept in {folder}; the same command goes on.") from None


def _interrupt_main_thread() -> None:
    if hasattr(signal, "pthread_kill"):  # which also ends a wait
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    else:
        _thread.interrupt_main()


def come_again() -> None:
    """Let an interrupt that cannot be raised where it comes, as in a callback of LLVM, come again.

    Python would print it and go on.
    """
    told = sys.unraisablehook

    def hook(unraisable: Any) -> None:
        if issubclass(unraisable.exc_type, KeyboardInterrupt):
            threading.Timer(SOON, _interrupt_main_thread).start()
        else:
            told(unraisable)

    sys.unraisablehook = hook
