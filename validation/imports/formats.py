"""The formats that are known: by what their heads are recognised, and what reads them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

import pandas as pd

from knownminds.environments import TemporalDiscounting, unknown
from knownminds.members import listed

from .account import CellTable, Tally
from .mapped import mapped_rows
from .mapping import ColumnMap, shipped_maps

Reader = Callable[[CellTable, Tally, Mapping[str, Any]], pd.DataFrame]
Settings = Callable[[pd.DataFrame, Sequence[CellTable]], dict[str, Any]]


@dataclass(frozen=True)
class Format:
    """One shape of table.

    Parameters
    ----------
    source : Where such tables come from, as typed after --from.
    environment : The experiment that its trials are of; "" if the table or the user names it.
    head : Columns by which it is known; all must be there. Names are compared without case and _.
    read : Makes trials of a table; gets the settings that were given, and raises ValueError where
        no row can be used.
    without : Columns that tell it from a format whose head is part of it.
    settings : Settings of the experiment that follow from the trials.
    also : Columns that are read where they are there.
    mapping : The map that explains it, if one does.
    """

    source: str
    environment: str
    head: frozenset[str]
    read: Reader
    without: frozenset[str] = frozenset()
    settings: Settings | None = None
    also: frozenset[str] = frozenset()
    mapping: ColumnMap | None = None

    def fitted(self, table: CellTable) -> CellTable | None:
        """Return the table with columns spelt as the format has them; None if it is another."""
        names = list(map(str, table.cells.columns))
        spelt = {plain(name): name for name in self.head | self.also}
        renamed = {name: spelt[plain(name)] for name in names if plain(name) in spelt}
        if set(renamed) != set(renamed.values()):
            table, names = table.named(renamed), [renamed.get(name, name) for name in names]
        others = set(map(plain, self.without)) & set(map(plain, names))
        fits = self.head <= set(names) and not others
        return table if fits and len(set(names)) == len(names) else None

    def unread(self, table: CellTable, frame: pd.DataFrame) -> list[str]:
        """Return the columns of a table that are neither read nor kept."""
        names = list(map(str, table.cells.columns))
        return [n for n in names if n not in self.head | self.also and n not in frame]

    def settings_of(
        self, frame: pd.DataFrame, tables: Sequence[CellTable], given: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return settings of the experiment: those given, and those that follow from trials."""
        stated = {**(self.mapping.settings if self.mapping else {}), **given}
        follows = _MEASURED.get(self.environment) if "design" not in stated else None
        measured = follows(frame) if follows else {}
        return {**measured, **(self.settings(frame, tables) if self.settings else {}), **stated}


def format_of_map(mapping: ColumnMap, source: str, environment: str | None = None) -> Format:
    """Return a mapping as a format: it is known by the columns that it names."""
    name = environment or mapping.environment
    read = partial(mapped_rows, mapping=mapping, name=name)
    return Format(source, name, frozenset(mapping.columns.values()), read, mapping=mapping)


def formats() -> list[Format]:
    """Return every format that is known."""
    modules = [import_module(place.module) for place in listed("formats").values()]
    maps = shipped_maps().items()
    mapped = [format_of_map(each, name.partition("_")[0]) for name, each in maps]
    return [*(one for module in modules for one in module.FORMATS), *mapped]


def format_of(
    table: CellTable, source: str | None, environment: str | None
) -> tuple[Format, CellTable] | None:
    """Return the format of a table, by its source if that is named and else by its head.

    Of several of one source that of the experiment that is named counts, else that with the
    longest head. None if no format has such a head; ValueError if several sources do.
    """
    known = formats()
    sources = dict.fromkeys(one.source for one in known)
    if source is not None and source not in sources:
        raise ValueError(unknown("format", source, sources))
    pairs = [(one, one.fitted(table)) for one in known if source in (None, one.source)]
    fitting = [(one, ready) for one, ready in pairs if ready is not None]
    names = dict.fromkeys(one.source for one, _ in fitting)
    if len(names) > 1:
        raise ValueError(
            f"The head of {table.file} fits {' and '.join(names)}. Name one with --from."
        )
    fitting.sort(key=lambda pair: (pair[0].environment != environment, -len(pair[0].head)))
    return fitting[0] if fitting else None


def plain(name: str) -> str:
    """Return a column's name as names are compared, without case and _."""
    return name.lower().replace("_", "")


def _balloons(frame: pd.DataFrame) -> dict[str, Any]:
    keys = [key for key in ("subject", "session", "type") if key in frame]
    counts = frame.drop_duplicates([*keys, "balloon"]).groupby(keys).size()
    return {"n_balloons": int(counts.max())}


# Settings that follow from trials, by experiment.
_MEASURED: dict[str, Callable[[pd.DataFrame], dict[str, Any]]] = {
    "two_step": lambda frame: {"n_days": int(frame["trial"].max()) // 2 + 1},
    "balloon_risk": _balloons,
    "horizon": lambda frame: {"n_games": int(frame["game"].max()) + 1},
    "temporal_discounting": lambda frame: TemporalDiscounting.as_played(frame).settings,
}
