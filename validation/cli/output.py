"""How commands print: tables and sentences, JSON, progress."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from knownminds.validation.studies import STUDIES

if TYPE_CHECKING:
    from knownminds.validation.engine.engine import Progress as Callback

# Words as they are: "openai:m:" is no emoji and "[m]" no colour.
screen = Console(highlight=False, emoji=False, markup=False)
notes = Console(stderr=True, highlight=False, emoji=False, markup=False)


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


def print_json(content: Any) -> None:
    """Print one JSON object."""
    print(json.dumps(content, allow_nan=False))


@contextmanager
def progress_bar(title: str) -> Iterator[Callback | None]:
    """Give a progress callback that draws on a terminal; None where stderr is not one."""
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

    columns = (
        TextColumn(title),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=notes, transient=True) as bar:
        task = bar.add_task(title, rate="")

        def show(done: int, total: int) -> None:
            speed = bar.tasks[0].speed
            rate = "" if speed is None else f"{speed:.1f} batches/s"
            bar.update(task, completed=done, total=total, rate=rate)

        yield show


def check_own_folder(kind: str, out: Path) -> None:
    """Raise ValueError, before any work, if the folder cannot be written or holds another kind."""
    from knownminds.environments.record.folders import check_writable

    check_writable(out)
    for other, kept in STUDIES.items():
        if other != kind and (out / kept.file).exists():
            held = "study" if kept.is_study else other
            raise ValueError(f"A {kind} needs a folder of its own; {out} holds a {held}.")
