"""Members from elsewhere: models, experiments and measures of a user.

They reach worker processes with each piece of work, and the report of a study by the list of files
in its folder. What a study computed is that of the code of its members: their files, and those of
the user's files that they import, have a digest each.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import inspect
import json
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from knownminds.agents import AGENTS, Model
from knownminds.environments import ENVIRONMENTS, Environment
from knownminds.inference import MEASURES, Measure
from knownminds.members import Members, listed

TABLES: dict[type, tuple[str, Members[Any]]] = {
    Model: ("a model", AGENTS),
    Environment: ("an environment", ENVIRONMENTS),
    Measure: ("a measure", MEASURES),
}

_files: list[Path] = []
_OF_FILES: list[Any] = []  # members that the files hold
_modules: dict[tuple[str, str], str] = {}  # in which a member is written, by its list and name
_as_loaded: dict[Path, str] = {}  # the digest of each file of the user's when it was first seen


@dataclass(frozen=True)
class Guests:
    """What a worker process has to know of: files to load, and members that lie in none.

    A member that was registered in a script or a notebook travels itself.
    """

    files: tuple[str, ...]
    members: tuple[Any, ...]
    digests: Mapping[Path, str]

    @classmethod
    def here(cls) -> Guests:
        """Collect what a process that knows what packages list lacks of the members of this one."""
        tables = [table for _, table in TABLES.values()]
        brought = [table[name] for table in tables for name in table if not table.is_listed(name)]
        known = {id(member) for member in _OF_FILES}
        others = tuple(member for member in brought if id(member) not in known)
        return cls(tuple(loaded_files()), others, dict(_as_loaded))

    def welcome(self) -> None:
        """Make them known to this process; ValueError if a file was edited since."""
        _as_loaded.update(self.digests)
        for file in self.files:
            load_file(file)
        for member in self.members:
            register(member)


def _class_of(member: Any) -> type:
    return member if isinstance(member, type) else type(member)


def register(member: Any, module: str = "") -> None:
    """Put a model or experiment (classes) or a measure (an instance) on its list.

    `module` is where it is written, if that is not the module of its class.

    Raises
    ------
    ValueError : If a member of another file has the name already.
    """
    kind = _class_of(member)
    what, table = next(kinds for base, kinds in TABLES.items() if issubclass(kind, base))
    name = member.name
    known = table.get(name)
    if known is not None and known is not member:
        there = _class_of(known)
        other = (there.__module__, there.__qualname__) != (kind.__module__, kind.__qualname__)
        if other or table.is_listed(name):
            raise ValueError(
                f"There is {what} {name!r} already, {there.__module__}.{there.__qualname__}. "
                "Give yours another name."
            )
    table[name] = member
    _modules[what, name] = module or kind.__module__


def load_file(file: str | Path) -> ModuleType:
    """Run a user's file, once, and register the members that are written in it or beside it.

    It finds the files beside it, as it does when Python runs it.

    Raises
    ------
    ValueError : If there is no such file, it fails, or a name is taken.
    """
    path = Path(file).resolve()
    if not path.is_file() or path.suffix != ".py":
        raise ValueError(f"A plugin is a Python file; there is no {file}.")
    module = sys.modules.get(path.stem)
    if module is None or Path(getattr(module, "__file__", None) or "").resolve() != path:
        module = _imported(path)
    for value in vars(module).values():
        _check_whole(value, module.__name__)
    for member in members_of(module):
        register(member, module.__name__)
        _OF_FILES.append(member)
    if path not in _files:
        _files.append(path)
    _digests_from(module.__name__)
    return module


def _check_whole(value: Any, module: str) -> None:
    """Raise ValueError at a named experiment or model of the file that lacks a method."""
    if (
        isinstance(value, type)
        and issubclass(value, Model | Environment)
        and value.__module__ == module
        and isinstance(vars(value).get("name"), str)
        and inspect.isabstract(value)
    ):
        missing = ", ".join(sorted(value.__abstractmethods__))
        raise ValueError(
            f"{value.__name__} is not whole: it has no {missing}. Write what is missing."
        )


def _imported(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    before = sys.modules.get(path.stem)
    sys.modules[path.stem] = module
    folder = str(path.parent)
    sys.path.insert(0, folder)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        if before is None:
            del sys.modules[path.stem]
        else:
            sys.modules[path.stem] = before
        if isinstance(error, ImportError) and "relative import" in str(error):
            raise ValueError(
                f"{path.name} is run as a file, not as part of a package, and finds what lies "
                "beside it by name; got a relative import. Write 'from helper import ...' for "
                "'from .helper import ...', or install the package."
            ) from error
        kind = (
            "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
        )  # ours say it all
        raise ValueError(f"{path.name} cannot be run: {kind}{str(error).rstrip('.')}.") from error
    finally:
        sys.path.remove(folder)
        if folder not in sys.path:  # for what is imported later; it hides nothing that is installed
            sys.path.append(folder)
    return module


def members_of(module: ModuleType) -> Iterator[Any]:
    """Go through the members that are written in a module, or that it takes from beside it."""
    folder = _folder_of(module.__name__)
    for value in vars(module).values():
        if (isinstance(value, Measure) and MEASURES.get(value.name) is not value) or (
            isinstance(value, type)
            and issubclass(value, Model | Environment)
            and _folder_of(value.__module__) == folder
            and not inspect.isabstract(value)
            and isinstance(getattr(value, "name", None), str)
        ):
            yield value


def _folder_of(module: str) -> Path | None:
    file = getattr(sys.modules.get(module), "__file__", None)
    return None if file is None else Path(file).resolve().parent


def loaded_files() -> list[str]:
    """Return the files of the user's that were loaded."""
    return list(map(str, _files))


def file_versions() -> dict[str, str]:
    """Return the digest of each file that was loaded, by its name."""
    return {file.name: _digest(file.read_bytes()) for file in _files}


def load_listed(names: Sequence[str], folder: str | os.PathLike[str]) -> None:
    """Load the files that the members of a study in a folder came from.

    Raises
    ------
    ValueError : If one is not there any more, and was not given again from another folder.
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


def code_of(content: Any) -> dict[str, str]:
    """Return the digests of the code of all members from elsewhere that a content names, by module.

    That are the files of a member's class and its bases, and what they import of the user's. A
    class of a notebook has a digest of its own, by its name. Data that a file reads have none.

    Raises
    ------
    ValueError : If a file was edited since it was loaded.
    """
    words = set(re.findall(r"\w+", json.dumps(content, default=str)))
    digests: dict[str, str] = {}
    for what, table in TABLES.values():
        for name in words & set(table):
            kinds = _class_of(table[name]).__mro__[:-1]
            place = listed(table.kind).get(name)
            written = _modules.get((what, name)) or (place.module if place else "")
            for module in {written, *(kind.__module__ for kind in kinds)}:
                digests |= _digests_from(module)
            for kind in kinds if "__main__" not in digests else ():
                if kind.__module__ == "__main__":  # of a notebook, which is no file
                    digests[kind.__qualname__] = _digest("\n".join(_told(kind)).encode())
    return dict(sorted(digests.items()))


def _digest(content: bytes) -> str:
    """Return the beginning of the SHA-256."""
    return hashlib.sha256(content).hexdigest()[:12]


def _digests_from(module: str) -> dict[str, str]:
    """Return the digests of a module and of all modules of the user's that it imports, by name."""
    digests, names = {}, [module]
    while names:
        name = names.pop()
        file = _file_of(name, within=module)
        if file is None or name in digests:
            continue
        content = file.read_bytes()
        digests[name] = _digest(content)
        if _as_loaded.setdefault(file, digests[name]) != digests[name]:
            raise ValueError(f"{file} was edited since it was loaded. Repeat the command.")
        if file.suffix == ".py":
            names += _imported_by(content, getattr(sys.modules.get(name), "__package__", "") or "")
    return digests


def _file_of(module: str, within: str) -> Path | None:
    """Return the file of a module of the user's; None of others, and where there is none.

    Of what is installed, only the package of the module `within` is the user's.
    """
    first = module.partition(".")[0]
    if first == "knownminds" or first in sys.stdlib_module_names - {"__main__"}:
        return None
    file = getattr(sys.modules.get(module), "__file__", None)
    if file is None and module not in sys.modules:
        try:
            found = importlib.util.find_spec(module)
        except (ImportError, AttributeError, ValueError):
            return None
        file = found.origin if found is not None and found.has_location else None
    elsewhere = first != within.partition(".")[0]
    if file is None or (elsewhere and "site-packages" in Path(file).parts):
        return None
    return Path(file).resolve()


def _imported_by(source: bytes, package: str) -> Iterator[str]:
    """Go through the names of modules that a source imports, and of what it takes from them."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            whole = "." * node.level + (node.module or "")
            base = importlib.util.resolve_name(whole, package) if node.level else whole
            yield from (base, *(f"{base}.{alias.name}" for alias in node.names))


def _told(value: Any) -> Iterator[str]:
    """Go through what a class that lies in no file says: values, and the code of methods."""
    function = getattr(value, "__func__", getattr(value, "fget", value))
    code = getattr(function, "__code__", function)
    if isinstance(code, CodeType):
        yield from (code.co_code.hex(), repr(code.co_names))
        for constant in code.co_consts:
            yield from _told(constant)
    elif isinstance(value, type):
        for name, one in sorted(vars(value).items()):
            if not name.startswith("_") or hasattr(one, "__code__"):  # no caches
                yield name
                yield from _told(one)
    else:
        yield re.sub(r" at 0x[0-9a-f]+", "", repr(value))
