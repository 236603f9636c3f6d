"""How commands print: tables and sentences, JSON, progress."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from textwrap import wrap
from typing import Any

from rich.console import Console

WIDTH = 80  # of an error on a terminal

# Words as they are: "openai:m:" is no emoji and "[m]" no colour.
notes = Console(stderr=True, highlight=False, emoji=False, markup=False)
steps = Console(stderr=True, highlight=False, emoji=False, markup=False, quiet=True)  # of -v


def speak(words: Sequence[str]) -> list[str]:
    """Take -q and -v out of a command's words: say only the answer, or also each step."""
    quiet, verbose = {"-q", "--quiet"} & {*words}, {"-v", "--verbose"} & {*words}
    if quiet and verbose:
        raise ValueError("-q says only the answer, -v each step; got both. Leave one out.")
    notes.quiet = bool(quiet)
    steps.quiet = not verbose
    if verbose:
        import logging

        logger = logging.getLogger("knownminds")
        logger.handlers, logger.propagate = [logging.StreamHandler()], False
        logger.setLevel(logging.INFO)
    return [word for word in words if word not in quiet | verbose]


def note(text: str) -> None:
    """Print a line on stderr, as it is."""
    notes.print(text, soft_wrap=True)


def note_step(text: str) -> None:
    """Print a line on stderr if -v was typed."""
    steps.print(text, soft_wrap=True)


def print_json(content: Any) -> None:
    """Print one JSON object."""
    print(json.dumps(content, allow_nan=False))


def complain(text: str) -> None:
    """Print a sentence on stderr; on a terminal it is wrapped at 80 columns between words."""
    lines = f"knownminds: {text}".splitlines()
    if sys.stderr.isatty():
        keep: dict[str, Any] = {"break_long_words": False, "break_on_hyphens": False}
        lines = [wrapped for line in lines for wrapped in wrap(line, WIDTH, **keep) or [""]]
    print("\n".join(lines), file=sys.stderr)


@contextmanager
def progress_bar(title: str) -> Iterator[Callable[..., None] | None]:
    """Give what draws a bar on a terminal, or with -v writes lines; None where there is neither.

    It is called with how much is done, of how much, and perhaps a text. Title, numbers and the
    time that is left keep their width; the bar takes what 80 columns leave it.
    """
    if not steps.quiet:
        yield lambda done, total, text="": note_step(f"{title}: {done} of {total} {text}".rstrip())
        return
    if notes.quiet or not notes.is_terminal:
        yield None
        return
    from rich import progress as rich
    from rich.table import Column

    def whole() -> Column:
        return Column(no_wrap=True, overflow="fold")

    columns = (
        rich.TextColumn(title, table_column=whole()),
        rich.BarColumn(bar_width=None, table_column=Column(ratio=1)),
        rich.MofNCompleteColumn(table_column=whole()),
        rich.TextColumn("{task.fields[text]}"),
        rich.TimeRemainingColumn(table_column=whole()),
    )
    with rich.Progress(*columns, console=notes, transient=True, expand=True) as bar:
        task = bar.add_task(title, total=None, text="")

        def show(done: int, total: int | None, text: str = "") -> None:
            bar.update(task, completed=done, total=total, text=text)

        yield show
