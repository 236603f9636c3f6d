"""What the columns and values of any table mean: said once, kept in a file, used again."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from knownminds.environments.bandits.temporal_discounting import DAYS
from knownminds.environments.record.folders import write_text
from knownminds.members import listed

UNITS: dict[str, tuple[Callable[[NDArray[np.float64]], NDArray[np.float64]], str]] = {
    "percent": (lambda x: x / 100, "hundredths become shares"),
    "share": (lambda x: x * 100, "shares become percent"),
    "seconds to ms": (lambda x: x * 1000, "seconds become milliseconds"),
    "ms to seconds": (lambda x: x / 1000, "milliseconds become seconds"),
    "days to months": (lambda x: x / DAYS, f"days become months of {DAYS}"),
    "from 1": (lambda x: x - 1, "counted from 0, not from 1"),
    "without sign": (np.abs, "without its sign"),
    "as is": (lambda x: x, "taken as it stands"),
}
BY_ACTION = re.compile(r"by action (.+,.+)")  # "by action r0, r1": the column of the chosen action
_GRAMMAR = (
    "--map takes ours=theirs,... for columns; 'COLUMN: text=number,...' for values; "
    f"'COLUMN: UNIT' with one of {', '.join(UNITS)}; 'reward: by action COLUMN_0,COLUMN_1' for "
    "what the chosen option paid; 'trial text: PATTERN' and "
    "'option names: PATTERN' for sessions as texts; a .toml file; or the name of a map that "
    "is shipped"
)
_OF_TEXTS = {"trial text": "pattern", "option names": "names"}


@dataclass(frozen=True)
class ColumnMap:
    """What the columns of a table are.

    Parameters
    ----------
    environment : The experiment; "" if it is named elsewhere.
    columns : Our names -> the table's names. A column that is not named keeps its name, as a
        condition.
    values : By column, under the table's name or ours: the texts in it -> our numbers. A text that
        is not named is an error, since the mapping is wrong then.
    units : By column, under the table's name or ours: one of `UNITS`. Or, for one of our columns,
        "by action A, B": what the column of the chosen action holds.
    missing : What stands for no answer, besides an empty cell and NA; in columns of answers alone.
    where : Which rows are trials: columns -> the value they have.
    settings : Settings of the experiment.
    constants : By column of ours: a number that holds for all rows.
    ranges : By column of ours: the least and the largest number of ours that it may hold.
    strict : Whether a cell that has no meaning ends the import. If not, it is counted: an answer is
        then malformed, and a row without a stimulus is left out.
    pattern, names : Of sessions as texts, see `told_texts.read_texts`; "" for tables.
    """

    environment: str = ""
    columns: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    where: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    constants: Mapping[str, float] = field(default_factory=dict)
    ranges: Mapping[str, Sequence[float]] = field(default_factory=dict)
    strict: bool = True
    pattern: str = ""
    names: str = ""

    def __post_init__(self) -> None:
        for column, ends in self.ranges.items():
            if len(ends) != 2:
                raise ValueError(f"A range has two ends; that of {column!r} is {list(ends)}.")
        for column, unit in self.units.items():
            if unit not in UNITS and not BY_ACTION.fullmatch(unit):
                raise ValueError(
                    f"A unit is one of {', '.join(UNITS)}; that of {column!r} is {unit!r}. "
                    f"{_GRAMMAR}."
                )

    def merged(self, other: ColumnMap) -> ColumnMap:
        """Return both; where both say something, the other's counts."""
        said: dict[str, Any] = {}
        for one in fields(self):
            mine, theirs = getattr(self, one.name), getattr(other, one.name)
            said[one.name] = {**mine, **theirs} if isinstance(mine, Mapping) else theirs or mine
        ours = {t: o for o, t in said["columns"].items() if t not in said["columns"]}
        for name in ("values", "units", "ranges"):  # by our name, so that the later one counts
            both = (getattr(self, name), getattr(other, name))
            said[name] = {ours.get(c, c): what for each in both for c, what in each.items()}
        said["missing"] = tuple(dict.fromkeys((*self.missing, *other.missing)))
        said["strict"] = self.strict and other.strict
        return ColumnMap(**said)

    def named(self, what: str, column: str) -> Any:
        """Return what is said of a column of ours, by our name or theirs; None if nothing."""
        entries: Mapping[str, Any] = getattr(self, what)
        return entries.get(column, entries.get(self.columns.get(column, column)))

    def silent(self, cells: pd.Series[Any]) -> pd.Series[bool]:
        """Return which cells stand for no answer; -1 and -1.0 are the same code."""
        codes = pd.to_numeric(pd.Series(self.missing, dtype=object), errors="coerce").dropna()
        return cells.isin(list(self.missing)) | pd.to_numeric(cells, errors="coerce").isin(codes)

    def to_toml(self) -> str:
        """Return the mapping as the text of a file; `read` understands it."""
        lines = []
        if self.environment:
            lines.append(f"environment = {_quoted(self.environment)}")
        for name in ("pattern", "names"):
            if getattr(self, name):
                lines.append(f"{name} = {_quoted(getattr(self, name))}")
        if self.missing:
            lines.append(f"missing = {_quoted(self.missing)}")
        if not self.strict:
            lines.append("strict = false")
        for name in ("columns", "units", "where", "constants", "ranges"):
            lines += _section(name, getattr(self, name))
        for column, values in self.values.items():
            lines += _section(f"values.{_quoted(column)}", values)
        lines += _section("settings", self.settings)
        return "\n".join(lines) + "\n"

    def save(self, file: str | Path) -> None:
        """Write the mapping into a .toml file."""
        write_text(Path(file), self.to_toml())

    @classmethod
    def read(cls, file: str | Path) -> ColumnMap:
        """Read a .toml file.

        Raises
        ------
        ValueError : If there is none, or it is no mapping.
        """
        path = Path(file)
        try:
            content = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise ValueError(f"{path} cannot be read as a mapping: {error}.") from None
        kinds = {one.name: str(one.type) for one in fields(cls)}
        for name, value in content.items():
            if name not in kinds:
                raise ValueError(f"A mapping has {', '.join(kinds)}; {path.name} has {name!r}.")
            if isinstance(value, dict) != kinds[name].startswith("Mapping"):
                raise ValueError(
                    f"{name!r} of a mapping is {'no ' if isinstance(value, dict) else 'a '}table; "
                    f"{path.name} has something else."
                )
        values = {
            column: {text: _number(f"{column}: {text}", number) for text, number in each.items()}
            for column, each in content.get("values", {}).items()
        }
        return cls(
            **{**content, "values": values, "missing": tuple(map(str, content.get("missing", ())))}
        )


def read_map(texts: Sequence[str]) -> ColumnMap:
    """Return what --map says, all of it together.

    Raises
    ------
    ValueError : If a text is none of the forms.
    """
    whole = ColumnMap()
    for text in texts:
        whole = whole.merged(_one(text.strip()))
    if whole.names and not whole.pattern:
        raise ValueError(
            "Names of options are read from texts; got 'option names' and no 'trial text'. Give "
            "the pattern of a trial too."
        )
    return whole


def shipped_maps() -> dict[str, ColumnMap]:
    """Return the maps that are shipped, by name: the package or paper, then the task."""
    return {name: ColumnMap.read(place.file) for name, place in sorted(listed("maps").items())}


def _one(text: str) -> ColumnMap:
    if text.endswith(".toml"):
        return ColumnMap.read(text)
    if (shipped := listed("maps").get(text)) is not None:
        return ColumnMap.read(shipped.file)
    column, colon, rest = text.partition(":")
    if column.strip() in _OF_TEXTS:
        entry: dict[str, Any] = {_OF_TEXTS[column.strip()]: rest.strip()}
        return ColumnMap(**entry)
    if colon and "=" not in column:
        column, rest = column.strip(), rest.strip()
        if rest in UNITS or BY_ACTION.fullmatch(rest):
            return ColumnMap(units={column: rest})
        if "=" not in rest:
            raise ValueError(f"{_GRAMMAR}; got {text!r}.")
        pairs = dict(_pairs(rest, text))
        return ColumnMap(
            values={column: {k: _number(f"{column}: {k}", v) for k, v in pairs.items()}}
        )
    return ColumnMap(columns=dict(_pairs(text, text)))


def _pairs(text: str, whole: str) -> list[tuple[str, str]]:
    pairs = []
    for pair in text.split(","):
        name, equals, value = pair.partition("=")
        if not (equals and name.strip() and value.strip()):
            raise ValueError(f"{_GRAMMAR}; got {whole!r}.")
        pairs.append((name.strip(), value.strip()))
    return pairs


def _number(text: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ValueError(
            f"Values are mapped to numbers; {text} has {value!r}. {_GRAMMAR}."
        ) from None


def _section(name: str, entries: Mapping[str, Any]) -> list[str]:
    if not entries:
        return []
    rows = [f"{_quoted(key)} = {_quoted(value)}" for key, value in entries.items()]
    return ["", f"[{name}]", *rows]


def _quoted(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_quoted, value))}]"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else repr(value)  # inf as TOML has it
    return json.dumps(value, ensure_ascii=False)
