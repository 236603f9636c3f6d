"""How commands print: tables and sentences, JSON, progress."""

from __future__ import annotations

import json
import re
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from knownminds.validation.studies import STUDIES

if TYPE_CHECKING:
    from knownminds.validation.engine.engine import Progress as Callback

# Words as they are: "openai:m:" is no emoji and "[m]" no colour.
screen = Console(highlight=False, emoji=False, markup=False)
notes = Console(stderr=True, highlight=False, emoji=False, markup=False)


# Verdicts by colour; words that hold others come before them.
RED = (
    "not identified|not confirmed|too many false alarms|over-confident|biased high|biased low"
    "|miscalibrated"
)
GREEN = "recoverable|calibrated|size holds|confirmed"
YELLOW = "weak|not judged|too few false alarms|under-confident"
WORDS = f"{RED}|{GREEN}|{YELLOW}"
VERDICTS = re.compile(
    rf"\b(?:(?P<yellow>between (?:{WORDS}) and (?:{WORDS})|{YELLOW})|(?P<red>{RED})"
    rf"|(?P<green>{GREEN}))\b"
)
GAP = 2  # spaces between columns of a table
LEAST_BESIDE = 28  # columns of the screen that a text takes beside others
LEAST_CELL = 8


def tell_trials(
    trials: Any, out: Path, as_json: bool, more: Mapping[str, Any] | None = None
) -> None:
    """Say what was written; as JSON with more."""
    if as_json:
        counts = trials.frame["outcome"].value_counts().to_dict()
        told = {"subjects": trials.n_subjects, "sessions": trials.n_sessions}
        print_json(
            {"out": str(out), **told, "trials": len(trials), "outcomes": counts, **(more or {})}
        )
    else:
        print(f"{trials}, written to {out}")


def tell_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table that fits the screen and cuts no name: the first column is never wrapped.

    What the last column says stands below each row if it would be squeezed beside it.
    """
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    beside = screen.width - sum(widths[:-1]) - GAP * (len(head) - 1) >= LEAST_BESIDE
    shown = len(head) if beside else len(head) - 1
    free = screen.width - widths[0] - GAP * (shown - 1)
    if beside:
        widths[-1] = min(widths[-1], free - sum(widths[1:-1]))
    elif (wanted := sum(widths[1:shown])) > free:
        widths[1:shown] = [max(LEAST_CELL, free * width // wanted) for width in widths[1:shown]]

    def lines(cells: Sequence[str]) -> Iterator[str]:
        parts = [
            [cell] if not k else textwrap.wrap(cell, widths[k]) for k, cell in enumerate(cells)
        ]
        for row in zip_longest(*parts[:shown], fillvalue=""):
            padded = (cell.ljust(width) for cell, width in zip(row, widths, strict=False))
            yield (" " * GAP).join(padded).rstrip()
        if not beside and cells is not head:
            indent = " " * 2 * GAP
            yield from textwrap.wrap(
                cells[-1], screen.width, initial_indent=indent, subsequent_indent=indent
            )

    for line in lines(head):
        screen.print(line, style="bold", soft_wrap=True)
    for row in rows:
        for line in lines(row):
            screen.print(line, soft_wrap=True)


def tell(result: Any) -> None:
    """Print a result as text; on a terminal its verdicts have colours."""
    if not screen.is_terminal:
        print(result)
        return
    from rich.text import Text

    text = Text(str(result))
    for found in VERDICTS.finditer(text.plain):
        text.stylize(str(found.lastgroup), *found.span())
    screen.print(text, soft_wrap=True)


def print_json(content: Any) -> None:
    """Print one JSON object."""
    print(json.dumps(content, allow_nan=False))


@contextmanager
def drawn_bar(title: str) -> Iterator[Callable[[int, int | None, str], None] | None]:
    """Give what draws a bar on a terminal; None where stderr is not one.

    It is called with how much is done, of how much, and what else there is to say. Title, numbers
    and the time that is left keep their width; the bar takes what 80 columns leave it.
    """
    if not notes.is_terminal:
        yield None
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )
    from rich.table import Column

    def whole() -> Column:
        return Column(no_wrap=True, overflow="fold")

    columns = (
        TextColumn(title, table_column=whole()),
        BarColumn(bar_width=None, table_column=Column(ratio=1)),
        MofNCompleteColumn(table_column=whole()),
        TextColumn("{task.fields[told]}"),
        TimeRemainingColumn(table_column=whole()),
    )
    with Progress(*columns, console=notes, transient=True, expand=True) as bar:
        task = bar.add_task(title, total=None, told="")

        def show(done: int, total: int | None, told: str) -> None:
            bar.update(task, completed=done, total=total, told=told)

        yield show


@contextmanager
def progress_bar(title: str) -> Iterator[Callback | None]:
    """Give a progress callback that draws on a terminal; None where stderr is not one."""
    with drawn_bar(title) as draw:
        if draw is None:
            yield None
            return
        begun = time.monotonic()

        def show(done: int, total: int) -> None:
            passed = time.monotonic() - begun
            draw(done, total, f"{done / passed:.1f} batches/s" if done and passed else "")

        yield show


def check_own_folder(kind: str, out: Path) -> None:
    """Raise ValueError, before any work, if the folder cannot be written or holds another kind."""
    from knownminds.environments.record.folders import check_writable

    check_writable(out)
    for other, kept in STUDIES.items():
        if other != kind and (out / kept.file).exists():
            held = "study" if kept.is_study else other
            raise ValueError(f"A {kind} needs a folder of its own; {out} holds a {held}.")
