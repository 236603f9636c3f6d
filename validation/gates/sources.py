"""Which code a stored gate hangs on: what members do, not how it is laid out and worded."""

from __future__ import annotations

import ast
import hashlib
import inspect
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from knownminds.agents import AGENTS, Agent, Model
from knownminds.environments import ENVIRONMENTS, Environment
from knownminds.inference import MEASURES, Measure

# Methods of experiments that are about words and screens, which no agent of ours sees.
SPEAKING = ("has_words", "names_told", "parse", "read", "render", "say", "screen", "told_after")
# Parts of Python's syntax trees that decide nothing: types, comments, how a name is used.
IDLE = ("annotation", "ctx", "kind", "returns", "type_comment", "type_params")

Definition = tuple[str, str]  # module and name


def sources_of(kind: str, name: str, environment: str) -> dict[str, str]:
    """Hash the code that decides what a model or measure and an experiment do.

    Counted are their classes and what those extend and name within the rooms of their families.
    Not counted are comments, docstrings, types, layout, errors, texts of several words, what an
    experiment says and shows to others than agents, and what all members share: the bases have
    contract tests of their own, and the compiler holds each kernel against its definition.
    """
    experiment = _hash_of(ENVIRONMENTS[environment], Environment)
    if kind == "audit":
        return {"measure": _hash_of(type(MEASURES[name]), Measure), "experiment": experiment}
    return {"model": _hash_of(AGENTS[name], Agent, Model), "experiment": experiment}


@cache
def _hash_of(member: type, root: type, *bases: type) -> str:
    """Hash what a member's classes do, without the root and further bases."""
    own = [c for c in member.__mro__ if issubclass(c, root) and c not in (root, *bases)]
    open_ = [(c.__module__, c.__qualname__) for c in own]
    rooms = {_room(module) for module, _ in open_}
    known: dict[Definition, str] = {}
    while open_:
        definition = open_.pop()
        if definition in known:
            continue
        nodes = _definitions(definition[0]).get(definition[1], ())
        known[definition] = "".join(map(_said, nodes))
        open_ += [
            (module, name)
            for node in nodes
            for module, name in _named(*definition, node)
            if _room(module) in rooms and module in sys.modules
        ]
    digest = hashlib.sha256()
    for (module, name), text in sorted(known.items()):
        digest.update(f"{module.rpartition('.')[2]} {name} {text}\n".encode())
    return digest.hexdigest()[:12]


def _room(module: str) -> str:
    """Return the family's room on its floor; a module of somebody's own is a room by itself."""
    package, _, name = module.rpartition(".")
    return package if package.startswith("knownminds.") else name


@cache
def _definitions(module: str) -> dict[str, tuple[ast.stmt, ...]]:
    """Return the statements of a module that define each name; an import is one too."""
    file = Path(inspect.getfile(sys.modules[module]))
    found: dict[str, tuple[ast.stmt, ...]] = {}
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        for name in _names_of(node):
            found[name] = (*found.get(name, ()), node)
    return found


def _names_of(node: ast.stmt) -> Iterator[str]:
    """Go through the names that a statement of a module defines."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.Import | ast.ImportFrom):
        yield from (alias.asname or alias.name for alias in node.names)
    else:
        for part in ast.walk(node):
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                yield part.id


def _named(module: str, name: str, node: ast.stmt) -> Iterator[Definition]:
    """Go through the definitions that a name's statement names, where imports have them."""
    if isinstance(node, ast.ImportFrom):
        yield from (
            (_origin(module, node), alias.name)
            for alias in node.names
            if name == (alias.asname or alias.name)
        )
        return
    for part in _parts(node):
        if isinstance(part, ast.Name) and part.id in _definitions(module):
            yield module, part.id
        elif isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name):
            for statement in _definitions(module).get(part.value.id, ()):
                if isinstance(statement, ast.ImportFrom):  # what is taken from a module
                    for origin, member in _named(module, part.value.id, statement):
                        yield f"{origin}.{member}", part.attr


def _origin(module: str, node: ast.ImportFrom) -> str:
    """Return the module that something is imported from."""
    above = module.split(".")[: -node.level] if node.level else []
    return ".".join([*above, *([node.module] if node.module else [])])


def _parts(node: ast.AST) -> Iterator[ast.AST]:
    """Go through the parts of a statement that decide something, itself first."""
    yield node
    if isinstance(node, ast.Raise):
        return
    for child in _children(node):
        yield from _parts(child)


def _children(node: ast.AST) -> Iterator[ast.AST]:
    for _, value in _fields(node):
        for one in value if isinstance(value, list) else (value,):
            if isinstance(one, ast.AST):
                yield one


def _fields(node: ast.AST) -> Iterator[tuple[str, Any]]:
    """Go through the fields of a node that decide something."""
    for name, value in ast.iter_fields(node):
        if name == "body" and isinstance(value, list):
            yield name, [statement for statement in value if not _idle(statement)]
        elif name not in IDLE:
            yield name, value


def _idle(node: ast.stmt) -> bool:
    """Tell a docstring and what an experiment says."""
    text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return text or (isinstance(node, ast.FunctionDef) and node.name in SPEAKING)


def _said(node: object) -> str:
    """Return what a part of a syntax tree says, the same in all versions of Python."""
    if isinstance(node, ast.Raise | ast.Import | ast.ImportFrom):
        return type(node).__name__
    if isinstance(node, ast.Constant):
        words = isinstance(node.value, str) and " " in node.value
        return "words" if words else repr(node.value)
    if isinstance(node, ast.AST):
        inner = ",".join(f"{name}={_said(value)}" for name, value in _fields(node) if value)
        return f"{type(node).__name__}({inner})"
    if isinstance(node, list):
        return f"[{','.join(map(_said, node))}]"
    return repr(node)
