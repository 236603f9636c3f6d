"""Functions compiled once: by a single process, and until the text of their files changes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock
from numba import njit
from numba.core.caching import FunctionCache
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher
from numpy.typing import NDArray


def compiled(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Decorate a function as `numba.njit` does, and keep the compiled code on disk.

    The code on disk stays valid as long as the text of the function's file does not change, nor
    that of the files of compiled functions that it calls; a fresh checkout compiles nothing anew.
    If several processes need the same function, one compiles it, and the others wait and read it.

    Parameters
    ----------
    options : Options of `numba.njit`; `nogil` is True, and `error_model` is "numpy" unless named.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        dispatcher = njit(nogil=True, **{"error_model": "numpy", **options})(function)
        dispatcher._cache = _ByContent(function)
        compile_here = dispatcher.compile

        def compile_once(signature: Any) -> Any:
            if dispatcher.overloads.get(signature) is not None:
                return compile_here(signature)
            # All threads take the lock of all compilation first, or two could wait for each other.
            with global_compiler_lock, FileLock(dispatcher._cache.lock_file):
                return compile_here(signature)

        dispatcher.compile = compile_once
        return dispatcher

    return decorate


class _ByContent(FunctionCache):  # type: ignore[misc]
    """The compiled code of one function, valid for a text and not for the time of a file."""

    def __init__(self, function: Callable[..., Any]):
        super().__init__(function)
        _hashes.pop(function.__code__.co_filename, None)  # read anew: it may be loaded once more
        self._cache_file._source_stamp = stamp_of(function)
        name = f"{self._impl.filename_base}.lock"
        self.lock_file = str(Path(self.cache_path) / name)


def stamp_of(function: Callable[..., Any]) -> str:
    """Return a hash of the files that hold a function and the compiled functions it can call."""
    files, functions = {__file__}, [function]
    while functions:
        caller = functions.pop()
        if caller.__code__.co_filename in files:
            continue
        files.add(caller.__code__.co_filename)
        called = caller.__globals__.values()
        functions += [f.py_func for f in called if isinstance(f, Dispatcher)]
    return hashlib.sha256("".join(sorted(map(_hash_of, files))).encode()).hexdigest()


_hashes: dict[str, str] = {}  # of files, as they were when Python read them


def _hash_of(file: str) -> str:
    if file not in _hashes:
        _hashes[file] = hashlib.sha256(Path(file).read_bytes()).hexdigest()
    return _hashes[file]


def read_only(values: Any, dtype: Any = np.float64) -> NDArray[Any]:
    """Return an array in the form that all kernels take: contiguous, of one type, and read-only.

    A kernel is compiled anew for each kind of array, so there should be only one kind.
    """
    view = np.ascontiguousarray(values, dtype=dtype).view()
    view.flags.writeable = False
    return view
