"""Which ways a model's conditions went while it was run on numbers."""

from __future__ import annotations

import dis
import linecache
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from knownminds.agents import Model


class Branches:
    """The branches of a model's Python code: a context within which they are followed.

    A branch is each part of a condition: of `if`, `while`, `and`, `or`, a conditional expression
    or a comparison. Code that was never entered has none that are known.

    Parameters
    ----------
    model : All code in the files of its classes is followed, that of `Model` excepted.
    """

    def __init__(self, model: type[Model]) -> None:
        own = model.__mro__[: model.__mro__.index(Model)]
        functions = [getattr(f, "__func__", f) for cls in own for f in vars(cls).values()]
        codes = [
            f.__code__ for f in functions if isinstance(getattr(f, "__code__", None), CodeType)
        ]
        general = Model.__init__.__code__.co_filename
        self._files = {code.co_filename for code in codes} - {general}
        self._entered: set[CodeType] = set()
        self._known: set[CodeType] = set()  # all of whose conditions went both ways
        self._ways: dict[tuple[CodeType, int], set[int]] = {}

    def __enter__(self) -> Branches:
        self._before = sys.gettrace()
        sys.settrace(self._call)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(self._before)
        for code in self._entered - self._known:
            if all(len(self._ways.get((code, at), ())) > 1 for at in conditions(code)):
                self._known.add(code)

    @property
    def one_way(self) -> list[str]:
        """The conditions that went one way only, in the order of the code."""
        found = []
        for code in self._entered:
            for at, line in conditions(code).items():
                text = linecache.getline(code.co_filename, line).strip()
                if len(self._ways.get((code, at), ())) < 2 and not text.startswith("assert"):
                    found.append((code.co_filename, line, text))
        return [f"{Path(f).name}, line {line}: {text}" for f, line, text in sorted({*found})]

    def _call(self, frame: FrameType, event: str, arg: Any) -> Callable[..., Any] | None:
        code = frame.f_code
        if code.co_filename not in self._files or code in self._known or not conditions(code):
            return None
        self._entered.add(code)
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        last: int | None = None

        def follow(frame: FrameType, event: str, arg: Any) -> Callable[..., Any]:
            nonlocal last
            if event == "opcode":
                at = frame.f_lasti
                if last is not None:
                    self._ways.setdefault((code, last), set()).add(at)
                last = at if at in conditions(code) else None
            return follow

        return follow


@cache
def conditions(code: CodeType) -> dict[int, int]:
    """Return where a code jumps on a condition, and the line of each."""
    line, found = code.co_firstlineno, {}
    for one in dis.get_instructions(code):
        line = (one.positions.lineno if one.positions else None) or line
        if "JUMP" in one.opname and "_IF_" in one.opname:
            found[one.offset] = line
    return found
