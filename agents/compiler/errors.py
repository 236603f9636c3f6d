"""What goes wrong in a definition, as a sentence with its line and what to write instead."""

from __future__ import annotations

import inspect
import linecache
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .symbols import Expr, UntraceableError

_WHOLE = (
    "{} of what is known only in the trial is not among the operations of definitions; let the "
    "experiment show the whole number as a column, or count in what is remembered"
)


@contextmanager
def explained(model: type[Any], world: type[Any] | None = None) -> Iterator[None]:
    """Turn what goes wrong in a definition into a ValueError that names its line."""
    try:
        yield
    except (RecursionError, MemoryError):
        raise
    except Exception as error:  # an author's code may raise anything
        bases = (*model.__mro__, *(world.__mro__ if world is not None else ()))
        files = {inspect.getfile(base) for base in bases if _written_by_an_author(base)}
        where = ""
        for frame, line in traceback.walk_tb(error.__traceback__):
            file = frame.f_code.co_filename
            if file in files:
                text = linecache.getline(file, line).strip()
                name = file.replace("\\", "/").rpartition("/")[2]
                where = f" ({name}, line {line}: `{text}`)" if text else f" (line {line})"
        raise ValueError(
            f"{model.__name__} cannot be turned into a kernel{where}: {_reason(error).rstrip('.')}."
        ) from error


def _written_by_an_author(base: type) -> bool:
    if base.__module__ in ("builtins", "knownminds.agents.model"):
        return False
    try:
        return "/agents/compiler/" not in inspect.getfile(base).replace("\\", "/")
    except (OSError, TypeError):
        return False


def _reason(error: Exception) -> str:
    text = str(error)
    if isinstance(error, UntraceableError):
        return text
    if isinstance(error, KeyError) and error.args and isinstance(error.args[0], Expr):
        return (
            "a dictionary is indexed by something that is known only in the trial; "
            "use a NumPy array and index it"
        )
    if isinstance(error, IndexError) and "arrays used as indices" in text:
        return "an array is indexed by conditions; write np.where(condition, new, old)"
    if isinstance(error, IndexError) and "only integers" in text:
        return (
            "an array of constants is indexed by something that is known only in the trial; "
            "write Table(values)[index], and fill np.zeros_like(self.values)"
        )
    if isinstance(error, AssertionError):
        return "symbols go through all paths, those that fail too; leave checks of data out"
    if not isinstance(error, TypeError):
        return f"{type(error).__name__}: {error}"
    for name, sign in (
        ("//", "unsupported operand type(s) for //"),
        ("%", "unsupported operand type(s) for %"),
        ("round()", "__round__"),
    ):
        if sign in text:
            return _WHOLE.format(name)
    if "ufunc" in text:
        return (
            "a function of NumPy or SciPy does not know symbols; write it with the functions of "
            "definitions (np.exp, np.log, np.where, ...), and arrays of constants as Table(values)"
        )
    if "not callable" in text:
        return f"{error}; a trial's columns are attributes, such as trial.reward"
    return f"TypeError: {error}"
