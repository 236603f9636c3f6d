"""Members from elsewhere: models, experiments and measures of a user.

They reach worker processes with each piece of work, and the report of a study by the list of files
in its folder.
"""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from knownminds.agents import AGENTS, Model
from knownminds.environments import ENVIRONMENTS, Environment
from knownminds.inference import MEASURES, Measure

TABLES: dict[type, tuple[str, dict[str, Any]]] = {
    Model: ("a model", AGENTS),
    Environment: ("an environment", ENVIRONMENTS),
    Measure: ("a measure", MEASURES),
}

_files: list[Path] = []
_SHIPPED = tuple(member for _, table in TABLES.values() for member in table.values())
_OF_FILES: list[Any] = []  # members that the files hold


@dataclass(frozen=True)
class Guests:
    """What a worker process has to know of: files to load, and members that lie in none.

    A member that was registered in a script or a notebook travels itself.
    """

    files: tuple[str, ...]
    members: tuple[Any, ...]

    @classmethod
    def here(cls) -> Guests:
        """Collect what a process that knows what is shipped lacks of the members of this one."""
        members = (member for _, table in TABLES.values() for member in table.values())
        known = {id(member) for member in (*_SHIPPED, *_OF_FILES)}
        return cls(tuple(loaded_files()), tuple(m for m in members if id(m) not in known))

    def welcome(self) -> None:
        """Make them known to this process."""
        for file in self.files:
            load_file(file)
        for member in self.members:
            register(member)


def _class_of(member: Any) -> type:
    return member if isinstance(member, type) else type(member)


def register(member: Any) -> None:
    """Put a model or experiment (classes) or a measure (an instance) on its list.

    Raises
    ------
    ValueError
        If a member of another file has the name already.
    """
    kind = _class_of(member)
    what, table = next(kinds for base, kinds in TABLES.items() if issubclass(kind, base))
    name = member.name
    known = table.get(name)
    if known is not None and known is not member:
        there = _class_of(known)
        other = (there.__module__, there.__qualname__) != (kind.__module__, kind.__qualname__)
        if other or known in _SHIPPED:
            raise ValueError(
                f"There is {what} {name!r} already, {there.__module__}.{there.__qualname__}. "
                "Give yours another name."
            )
    table[name] = member


def load_file(file: str | Path) -> ModuleType:
    """Run a user's file, once, and register the members that are written in it.

    Raises
    ------
    ValueError
        If there is no such file, it fails, or a name is taken.
    """
    path = Path(file).resolve()
    if not path.is_file() or path.suffix != ".py":
        raise ValueError(f"A plugin is a Python file; there is no {file}.")
    module = sys.modules.get(path.stem)
    if module is None or Path(getattr(module, "__file__", None) or "").resolve() != path:
        module = _imported(path)
    for member in members_of(module):
        register(member)
        _OF_FILES.append(member)
    if path not in _files:
        _files.append(path)
    return module


def _imported(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    before = sys.modules.get(path.stem)
    sys.modules[path.stem] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        if before is None:
            del sys.modules[path.stem]
        else:
            sys.modules[path.stem] = before
        kind = (
            "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
        )  # ours say it all
        raise ValueError(f"{path.name} cannot be run: {kind}{str(error).rstrip('.')}.") from error
    return module


def members_of(module: ModuleType) -> Iterator[Any]:
    """Go through the members that are written in a module."""
    for value in vars(module).values():
        if (isinstance(value, Measure) and value not in _SHIPPED) or (
            isinstance(value, type)
            and value.__module__ == module.__name__
            and issubclass(value, Model | Environment)
            and not inspect.isabstract(value)
            and isinstance(getattr(value, "name", None), str)
        ):
            yield value


def loaded_files() -> list[str]:
    """Return the files of the user's that were loaded."""
    return list(map(str, _files))


def file_versions() -> dict[str, str]:
    """Return the beginning of the SHA-256 of each file that was loaded, by its name."""
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest()[:12] for file in _files}


def load_listed(names: Sequence[str], folder: str | os.PathLike[str]) -> None:
    """Load the files that the members of a study in a folder came from.

    Raises
    ------
    ValueError
        If one is not there any more, and was not given again from another folder.
    """
    loaded = {path.name for path in _files}
    for file in map(Path, names):
        if file.name in loaded:
            continue
        if not file.is_file():
            raise ValueError(
                f"{folder} was made with --plugin {file}, which is not there any more. "
                "Say where it is: --plugin FILE."
            )
        load_file(file)
