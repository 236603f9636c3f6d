"""The formats that are understood: by what their head is known, and what reads them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from knownminds.environments import unknown

from .account import Table, Tally

Reader = Callable[[Table, Tally, Mapping[str, Any]], pd.DataFrame]


@dataclass(frozen=True)
class Format:
    """One shape of table.

    Parameters
    ----------
    name
        Of the format, as typed after --from.
    environment
        The experiment that its trials are of; "" if they cannot be made into trials.
    head
        Columns by which it is known; all must be there.
    read
        Makes trials of a table; gets the settings that were given, and raises ValueError where no
        row can be used.
    not_head
        Columns that tell it from a format whose head is within its own.
    settings
        Settings of the experiment that follow from the trials.
    help
        What it is, for the documentation.
    also
        Columns that are read where they are there.
    """

    name: str
    environment: str
    head: frozenset[str]
    read: Reader
    not_head: frozenset[str] = frozenset()
    settings: Callable[[pd.DataFrame, Sequence[Table]], dict[str, Any]] = lambda frame, tables: {}
    help: str = ""
    also: frozenset[str] = frozenset()

    def fits(self, table: Table) -> bool:
        """Whether a table has its head."""
        names = set(map(str, table.cells.columns))
        return self.head <= names and not self.not_head & names

    def unread(self, table: Table, frame: pd.DataFrame) -> list[str]:
        """Return the columns of a table that are neither read nor kept."""
        names = list(map(str, table.cells.columns))
        return [n for n in names if n not in self.head | self.also and n not in frame]


@dataclass(frozen=True)
class Family:
    """Formats of one source, which are told apart by their heads.

    Parameters
    ----------
    name
        As typed after --from.
    formats
        Its formats.
    prepare
        Makes a table's head comparable, such as lower case.
    """

    name: str
    formats: tuple[Format, ...]
    prepare: Callable[[Table], Table] = field(default=lambda table: table)

    def of(self, table: Table, environment: str | None) -> tuple[Format, Table] | None:
        """Return the format that a table has, and the table as that reads it; None if none."""
        ready = self.prepare(table)
        fitting = [one for one in self.formats if one.fits(ready)]
        named = [one for one in fitting if one.environment == environment]
        fitting = named or fitting
        return (fitting[0], ready) if fitting else None


def families() -> dict[str, Family]:
    """Return every source whose tables are understood, by name."""
    from . import causalign, cogbench, durations, hbayesdm, horizon_of_people, hssm

    told = (
        cogbench.COGBENCH,
        causalign.CAUSALIGN,
        horizon_of_people.HORIZON,
        hbayesdm.HBAYESDM,
        durations.DURATIONS,
        hssm.HSSM,
    )
    return {family.name: family for family in told}


def format_of(
    table: Table, source: str | None, environment: str | None
) -> tuple[Format, Table] | None:
    """Return the format of a table, by its source if that is named and else by its head.

    None if no format has such a head; ValueError if several sources do.
    """
    known = families()
    if source is not None and source not in known:
        raise ValueError(unknown("format", source, known))
    found = {
        name: fitting
        for name, family in known.items()
        if source in (None, name) and (fitting := family.of(table, environment)) is not None
    }
    if len(found) == 1:
        return next(iter(found.values()))
    if found:
        raise ValueError(
            f"The head of {table.file} fits {' and '.join(found)}. Name one with --from."
        )
    return None
