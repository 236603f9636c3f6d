"""What an interrupt (Ctrl-C) does: it ends the command with one line that says what is kept."""

from __future__ import annotations

import _thread
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from knownminds.validation.studies import RUN

CODE = 130  # the exit code
NOTHING_KEPT = "Nothing new is kept; the same command begins where this one did."
RESUMED = ("parts/*.parquet", RUN)  # files of what goes on where it stopped
SOON = 0.05  # seconds


class Stopped(Exception):  # noqa: N818 - it is no error
    """A command was interrupted; the text says what is kept."""


def is_interrupt(error: BaseException | None) -> bool:
    """Whether an error is an interrupt, or was raised of one, as compiled code does."""
    if error is None or isinstance(error, KeyboardInterrupt):
        return error is not None
    return is_interrupt(error.__cause__ or error.__context__)


def kept_in(folder: Path | None) -> str:
    """Say what is kept in a folder: parts of a study, or the ledger of a run."""
    if folder is None or not any(any(folder.rglob(files)) for files in RESUMED):
        return NOTHING_KEPT
    return f"What was finished is kept in {folder}; the same command goes on."


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
