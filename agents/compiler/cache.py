"""Printed kernels as functions: each text has a file, beside which numba keeps compiled code."""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import os
import sys
import tempfile
import threading
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

from filelock import FileLock

from knownminds.agents.sequences import LANES

from .printing import tables
from .symbols import Expr

_LOADING = threading.RLock()  # Python lists a module before it is complete
HOME = Path.home() / ".cache" / "knownminds"  # for models that are in no file

HEAD = f"""\
from math import inf, log, nan, sqrt

import numpy as np

from knownminds.agents.compiled import compiled
from knownminds.agents.exponential import (
    exp_of, hazard_of, log_ndtr_of, log_of, ndtr_of, pick
)

LANES = {LANES}
"""


def module_text(about: str, roots: Iterable[Expr], lines: list[str]) -> str:
    """Return the text of a module with functions, and the tables that their expressions read."""
    return "\n".join([f'"""{about}"""', "", HEAD, *tables(roots), "", "", *lines, ""])


def folder_of(model: type[Any]) -> Path:
    """Return the folder for a model's texts: beside the model's file, if it is writable.

    The environment variable `KNOWNMINDS_CACHE` names another folder.
    """
    if os.environ.get("KNOWNMINDS_CACHE"):
        return Path(os.environ["KNOWNMINDS_CACHE"])
    if model.__module__ == "__main__":
        return HOME
    try:
        beside = Path(inspect.getfile(model)).parent / "__pycache__"
        beside.mkdir(exist_ok=True)
        with tempfile.TemporaryFile(dir=beside):
            return beside
    except (OSError, TypeError):
        return HOME


def loaded(text: str, name: str, folder: Path) -> ModuleType:
    """Import a text through a file that is named by its hash."""
    key = f"{name}_{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    file = folder / f"{key}.py"
    folder.mkdir(parents=True, exist_ok=True)
    with _LOADING, FileLock(file.with_suffix(".lock")):  # threads, processes
        if not file.exists():
            part = file.with_suffix(f".{os.getpid()}.part")
            part.write_text(text, encoding="utf-8")
            part.replace(file)
        module = sys.modules.get(key)
        if module is None or module.__file__ != str(file):
            module = _imported(file, key)
        return module


def _imported(file: Path, key: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(key, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[key] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[key]  # otherwise the next import gets an incomplete module
        raise
    return module
