"""Which code the numbers of a study hang on, as one hash.

A study runs through the core of each floor, the rooms of the families of its members, and the room
of its command; what asks language models, draws pages or serves other commands does not count. A
member from elsewhere counts with the files of its class and of that class's bases.
"""

from __future__ import annotations

import hashlib
import importlib.resources
import inspect
import sys
from collections.abc import Iterator, Mapping
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from knownminds.agents import AGENTS
from knownminds.environments import ENVIRONMENTS
from knownminds.inference import MEASURES
from knownminds.validation.studies import AUDITS, STUDIES

if TYPE_CHECKING:
    from .study import Study

CORE: Mapping[str, tuple[str, ...]] = {
    "environments": ("", "record", "words"),
    # At the estimates of baselines fits of other models begin.
    "agents": ("", "baselines", "compiler"),
    "inference": ("", "fits", "groups", "posteriors", "questions"),
    "validation": ("engine",),
}
FAMILIES = ("environments", "agents", "inference")  # floors on which each family has a room
# Rooms that a room computes with: designs by power, and power of a choice of models by recovery.
WITH = {"design": ("power", "recovery"), "power": ("recovery",)}
COMMANDS = {name: kept.room for name, kept in STUDIES.items() if kept.is_study}
# What says how a study is asked for, kept and shown: what it computes stands in its cells.
SAYS = (
    "question.py",
    "questions.py",
    "candidates.py",
    "reported.py",
    "studies.py",
    "options.py",
    "reading.py",
    "completion.py",
    "pilot.py",
    "observed.py",
)
# Of the other floor, only what puts a known mind into words; no study asks anybody.
SPEAKS = (("", "adapter.py"), ("runs", "participant.py"), ("known_minds", "synthetic.py"))


def source_hash(study: Study | None = None) -> str:
    """Hash the code that the numbers of a study hang on; that of all studies if none is given."""
    digest = hashlib.sha256()
    for name, file in sorted(_files(study)):
        digest.update(f"{name}\n".encode() + file.read_bytes())
    return digest.hexdigest()


def _files(study: Study | None) -> set[tuple[str, Traversable]]:
    rooms = {(floor, room) for floor, kept in CORE.items() for room in kept}
    files: set[tuple[str, Traversable]] = set()
    commands = COMMANDS if study is None else (study.command,)
    rooms |= {("validation", COMMANDS[command]) for command in commands if command in COMMANDS}
    audits = AUDITS if study is None else AUDITS.keys() & {study.question.get("subject_matter")}
    rooms |= {("validation", AUDITS[name].partition(".")[0]) for name in audits}
    rooms |= {("validation", other) for _, room in [*rooms] for other in WITH.get(room, ())}
    members = _registered() if study is None else members_of(study)
    for member in members:
        kind = member if isinstance(member, type) else type(member)
        for base in kind.__mro__[:-1]:
            package, _, place = base.__module__.partition(".")
            if package != "knownminds":
                files |= set() if package in sys.stdlib_module_names else _file_of(base)
            elif place.count(".") == 2:  # floor, room, module
                rooms |= {(floor, place.split(".")[1]) for floor in FAMILIES}
    for floor, room in rooms:
        files |= set(_room(floor, room))
    if study is None or study.command == "channel":
        root = importlib.resources.files("knownminds.llm_adapters")
        files |= {(f"llm_adapters/{room}/{name}", root / room / name) for room, name in SPEAKS}
    return files


def _room(floor: str, room: str) -> Iterator[tuple[str, Traversable]]:
    """Go through the files of a room that numbers hang on; a family may lack it on a floor."""
    folder = importlib.resources.files(f"knownminds.{floor}") / room
    for file in folder.iterdir() if folder.is_dir() else ():
        if file.name in SAYS or file.name.endswith("_page.py"):
            continue
        if file.name.endswith((".py", ".toml")):
            yield f"{floor}/{room}/{file.name}", file


def _registered() -> list[Any]:
    return [*ENVIRONMENTS.values(), *AGENTS.values(), *MEASURES.values()]


def members_of(study: Study) -> list[Any]:
    """Return the environments, agents and measures that a study names anywhere."""
    named = set(_texts([[cell.content() for cell in study.cells], study.question]))
    registries: tuple[Mapping[str, Any], ...] = (ENVIRONMENTS, AGENTS, MEASURES)
    return [table[name] for table in registries for name in named & set(table)]


def _texts(content: Any) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    elif isinstance(content, Mapping):
        for key, value in content.items():
            yield from _texts(key)
            yield from _texts(value)
    elif isinstance(content, list | tuple):
        for value in content:
            yield from _texts(value)


def _file_of(kind: type) -> set[tuple[str, Traversable]]:
    """Return the file of a class from elsewhere; empty where it has none, as in a notebook."""
    try:
        file = Path(inspect.getfile(kind))
    except (OSError, TypeError):
        return set()
    return {(f"{kind.__module__}.py", file)} if file.is_file() else set()
