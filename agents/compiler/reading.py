"""A definition as it stands in its file: what no run on symbols could show, and what may differ."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

TRY = (
    "symbols raise no errors, so that what stands under `except` would never be done; write the "
    "case as `if` or np.where"
)
GLOBAL = "what is remembered are attributes of self alone; set it in begin() and change it there"
VIEW = (
    "in NumPy this row is part of its array and changes with it, on symbols it is a copy; read it "
    "again after the change"
)
SET = (
    "sets and dictionaries do not find what is only known in the trial; write a tuple after `in`, "
    "and index a NumPy array"
)
DRAWS = (
    "a definition that is run twice gives the same numbers twice; return utilities, Probabilities "
    "or a law, and leave drawing to them"
)
DEFAULT = "a default that is changed stays changed for all minds; set it in begin()"
TYPE = "types and texts of what is only known in the trial are those of symbols; compare numbers"
NEGATIVE = "an index below 0 counts from the end in NumPy alone; write one from 0 on"
ALIAS = "both names are one array in NumPy; give each its own"
WHOLE = "an array of whole numbers cuts off what is written into it; leave the dtype out"
RAISES = "symbols go through all courses, those that raise too; leave checks of data out"

TYPES = ("isinstance", "type", "str", "repr", "format", "hash", "id", "callable")


@dataclass(frozen=True)
class Found:
    """A line of a definition, and what is the matter with it."""

    file: str
    line: int
    text: str
    why: str

    @property
    def place(self) -> str:
        """Say where it stands."""
        return f"{self.file}, line {self.line}: `{self.text}`"


Place = tuple[str, int, str]
METHODS = ("begin", "respond", "report", "update")
_OURS = ("knownminds.agents.compiler.model", "knownminds.agents.agent", "abc", "builtins")


def refused_by_text(model: type) -> Found | None:
    """Return the first statement that cannot be traced although a run on symbols passes it."""
    found = ((place, _never(node)) for node, place in _nodes(model))
    return next((_at(place, why) for place, why in found if why is not None), None)


def suspect(model: type) -> Found | None:
    """Return the first line that may do something else on symbols than on numbers."""
    found = ((place, _why(node)) for node, place in _nodes(model))
    return next((_at(place, why) for place, why in found if why is not None), None)


def _at(place: Place, why: str) -> Found:
    return Found(*place, why)


def _nodes(model: type) -> Iterator[tuple[ast.AST, Place]]:
    """Go through what an author wrote in the methods that are traced, and those they call."""
    written: dict[str, list[tuple[ast.AST, str, list[str], int]]] = {}
    for base in model.__mro__:
        if base.__module__ in _OURS:
            continue
        try:
            lines, first = inspect.getsourcelines(base)
            file = inspect.getfile(base).replace("\\", "/").rpartition("/")[2]
            tree = ast.parse(textwrap.dedent("".join(lines)))
        except (OSError, TypeError, SyntaxError):  # written in no file
            continue
        for node in ast.iter_child_nodes(tree.body[0]):
            if isinstance(node, ast.FunctionDef):
                written.setdefault(node.name, []).append((node, file, lines, first))
    waiting, known = list(METHODS), set(METHODS)
    while waiting:
        for method, file, lines, first in written.get(waiting.pop(0), ()):
            for node in ast.walk(method):
                if isinstance(node, ast.Attribute) and node.attr not in known:
                    known.add(node.attr)
                    waiting.append(node.attr)
                at = getattr(node, "lineno", None)
                if at is not None:
                    yield node, (file, first + at - 1, lines[at - 1].strip())


def _never(node: ast.AST) -> str | None:
    """Say why a node cannot be traced; None if it can."""
    match node:
        case ast.Try() | ast.TryStar():
            return TRY
        case ast.Attribute(attr="suppress") | ast.Name(id="suppress"):
            return TRY
        case ast.Global() | ast.Nonlocal():
            return GLOBAL
    return None


def _why(node: ast.AST) -> str | None:
    """Say what a node may do otherwise; None if nothing."""
    match node:
        case ast.Compare(ops=[ast.In() | ast.NotIn()], comparators=[ast.Set() | ast.Dict()]):
            return SET
        case ast.Set() | ast.Dict() | ast.SetComp() | ast.DictComp():
            return SET
        case ast.Attribute(attr="random" | "default_rng"):
            return DRAWS
        case ast.FunctionDef(args=ast.arguments(defaults=[*_, ast.List() | ast.Dict()])):
            return DEFAULT
        case ast.Call(func=ast.Name(id=name)) if name in TYPES:
            return TYPE
        case ast.JoinedStr():
            return TYPE
        case ast.Assign(targets=[ast.Name()], value=ast.Subscript(value=ast.Attribute())):
            return VIEW
        case ast.Assign(targets=[_, _, *_], value=ast.Call()):
            return ALIAS
        case ast.Subscript(slice=ast.BinOp(op=ast.Sub()) | ast.UnaryOp(op=ast.USub())):
            return NEGATIVE
        case ast.keyword(arg="dtype", value=ast.Name(id="int")):
            return WHOLE
        case ast.Raise() | ast.Assert():
            return RAISES
    return None
