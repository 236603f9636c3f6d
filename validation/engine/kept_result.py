"""A result in one file, from which its text, page and figures are made again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd

from knownminds.environments.record.folders import writable, write_text

from .result import Drawing, Part, Result, records
from .scores import Score
from .verdicts import More, Verdict

R = TypeVar("R", bound=Result)
RESULT = "result.json"
ERROR = "_error"


def keep(result: Result, file: Path) -> None:
    """Write all of a result as JSON; its figures as their frames and what draws them."""
    figures = {
        caption: {
            "draw": f"{drawing.draw.__module__}:{drawing.draw.__qualname__}",
            "data": records(drawing.data),
        }
        for caption, drawing in result.figures.items()
    }
    content = {**result.to_dict(), "figures": figures}
    with writable(file.parent):
        write_text(file, json.dumps(content, indent=1, allow_nan=False))


def read_kept(kind: type[R], file: Path) -> R:
    """Read what `keep` wrote; ValueError if it is missing, damaged or something else."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        content |= {
            "verdicts": {name: _verdict(one) for name, one in content["verdicts"].items()},
            "tables": {title: _table(rows) for title, rows in content["tables"].items()},
            "figures": {title: _drawing(one) for title, one in content.get("figures", {}).items()},
            "parts": [
                Part(name, name, rows=pd.DataFrame(rows))
                for name, rows in content.get("parts", {}).items()
            ],
        }
        known = {one.name for one in fields(kind)}
        return kind(**{name: value for name, value in content.items() if name in known})
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{file} is damaged or not of knownminds ({error}).") from None


def read_result(folder: Path) -> Result:
    """Read the result of a command that leaves its page alone: numbers, without figures."""
    return read_kept(Result, folder / RESULT)


def _verdict(content: Mapping[str, Any]) -> Verdict:
    more = content["more"]
    return Verdict(content["verdict"], tuple(content["reasons"]), more and More(**more))


def _table(rows: list[dict[str, Any]]) -> pd.DataFrame:
    table = pd.DataFrame(rows)
    for name in [name for name in table if f"{name}{ERROR}" in table]:
        pairs = zip(table[name], table.pop(f"{name}{ERROR}"), strict=True)
        scores: Any = [Score(float(value), float(error)) for value, error in pairs]
        table[name] = scores
    return table


def _drawing(content: Mapping[str, Any]) -> Drawing:
    module, _, name = content["draw"].partition(":")
    return Drawing(pd.DataFrame(content["data"]), getattr(import_module(module), name))
