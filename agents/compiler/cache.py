"""Printed kernels as functions: a file for each text, beside which numba keeps what it compiled."""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import os
import re
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

from filelock import FileLock

from knownminds.agents.exponential import (
    exp_of,
    exp_of_negative,
    log_ndtr_of,
    log_of,
    mills_of,
    ndtr_of,
    pick,
)
from knownminds.agents.sequences import LANES

from .expressions import SCALAR, Expr, within
from .likelihood import Likelihood
from .once import preparation
from .printing import table_name
from .program import Program
from .simulation import simulation
from .stepping import stepping

BROUGHT = (pick, exp_of_negative, exp_of, log_of, ndtr_of, log_ndtr_of, mills_of)
_LOADING = threading.RLock()  # a module is listed before it is whole
HOME = Path.home() / ".cache" / "knownminds"  # for models that lie in no file

IMPORTS = """\
from numba import njit

from knownminds.agents.compiled import compiled
"""
HEAD = f"""\
from math import erfc, exp, log, nan, sqrt

import numpy as np
{IMPORTS}
LANES = {LANES}
TINY = 1e-150  # a product of probabilities is rescaled below this, and each counts at least this
LOG_TINY = log(TINY)
"""


def source(program: Program) -> str:
    """Return the text of a module with the likelihood and the step agent of a program."""
    about = f"Kernels of {program.name} for {program.actions} actions, from its definition."
    made = Likelihood(program)
    parts = [made.lines(), stepping(program)] + ([preparation(made)] if made.once else [])
    return module_text(about, roots_of(program), *parts)


def simulation_source(program: Program) -> str:
    """Return the text of a module with the simulation of a program in its world."""
    about = f"Simulation of {program.name} for {program.actions} actions, in {program.world}."
    return module_text(about, roots_of(program), simulation(program))


def roots_of(program: Program) -> list[Expr]:
    """Return all expressions of a program, of fits and of sessions."""
    return [x for kind in program.kinds for live in (False, True) for x in kind.roots(live)]


def module_text(about: str, roots: Iterable[Expr], *parts: list[str]) -> str:
    """Return the text of a module made of functions, from the expressions of which they are."""
    body = "\n\n\n".join(map("\n".join, parts))
    # What a kernel calls stands in its own file: numba's cache sees no other.
    used = [f for f in BROUGHT if re.search(rf"\b{f.__name__}\(", body)]
    texts = [inspect.getsource(f.py_func) for f in dict.fromkeys([exp_of_negative, *used])]
    heads = [f'"""{about}"""', HEAD + imported_by(body), *tables_in(roots, body)]
    return "\n\n".join([*heads, *("\n" + text for text in texts), "\n" + body + "\n"])


def imported_by(body: str) -> str:
    """Return the import of what plain Python takes from SciPy."""
    names = [name for name in SCALAR if re.search(rf"\b{name}\(", body)]
    return f"\nfrom scipy.special import {', '.join(names)}  # noqa: E402\n" if names else ""


def tables_in(roots: Iterable[Expr], body: str) -> list[str]:
    """Return the statements that make the tables in which a text looks something up."""
    tables = dict.fromkeys(x.value for x in within(roots) if x.op == "lookup")
    named = {table_name(values): values for values in tables}
    return [f"{name} = np.array({list(v)!r})" for name, v in named.items() if name in body]


def folder_of(model: type[Any]) -> Path:
    """Return the folder for a model's texts: beside the file it is written in, if one can write.

    `KNOWNMINDS_CACHE` names another.
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


def loaded(text: str, name: str, folder: Path, check: Callable[[], None]) -> ModuleType:
    """Import a text by way of a file named by its hash; one that is new is checked before."""
    key = f"{name}_{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    file = folder / f"{key}.py"
    folder.mkdir(parents=True, exist_ok=True)
    with _LOADING, FileLock(file.with_suffix(".lock")):  # threads, then processes
        if not file.exists():
            check()
            part = file.with_suffix(f".{os.getpid()}.part")
            part.write_text(text, encoding="utf-8")
            part.replace(file)
        module = sys.modules.get(key)
        if module is None or module.__file__ != str(file):
            module = imported(file, key)
        return module


def imported(file: Path, key: str) -> ModuleType:
    """Import a file under a name."""
    spec = importlib.util.spec_from_file_location(key, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[key] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[key]  # or the next one who asks gets half of it
        raise
    return module
