"""Results as one self-contained page, drawn from the folder that holds them alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from knownminds.environments import unknown
from knownminds.llm_adapters.runs.ledger import has_run
from knownminds.validation.engine.study import Rows, read_study
from knownminds.validation.pages.result_page import write_page

from .engine.question import StudyQuestion, load
from .studies import FOLDERS, RESULT, RUN, STUDIES, STUDY, files_in


def report(folder: str | Path) -> Path:
    """Draw the page of a folder again, from what it holds; return the page's path.

    Of a study that is not finished, the page shows what there is, and counts what is missing. A fit
    or a score was written whole, and keeps its page.

    Raises
    ------
    ValueError
        If the folder holds no result.
    """
    return drawn(folder)[0]


def drawn(folder: str | Path) -> tuple[Path, int]:
    """Draw the page as `report` does; return its path, and how many units are missing."""
    page = Path(folder) / "report.html"
    if not _held(page.parent) and (page.parent / RESULT).is_file() and page.is_file():
        return page, 0
    result = read_result(folder)
    return write_page(result, folder), result.missing


def read_result(folder: str | Path) -> Any:
    """Return the result a folder holds, whatever command made it; nothing is computed anew."""
    path, names = Path(folder), list(FOLDERS)
    held = _held(path)
    rule = f"A report is drawn from a folder with a {', a '.join(names[:-1])} or a {names[-1]}"
    if not held:
        raise ValueError(f"{rule}; {path} has none of them.")
    if len(held) > 1:
        raise ValueError(
            f"{rule}; {path} has {' and '.join(held)}. Each result needs a folder of its own."
        )
    if held[0] != STUDY:
        return load(*FOLDERS[held[0]][1].split(":"))(path)
    command = read_study(path)[0].command
    others = (one for one in StudyQuestion.__subclasses__() if hasattr(one, "command"))
    modules = {one.command: one.computed_in for one in others} | STUDIES
    if command not in modules:
        raise ValueError(unknown("kind of study", command, modules))
    module = load(modules[command])
    return module.read(path) if hasattr(module, "read") else module.say(Rows.read(path))


def _held(folder: Path) -> list[str]:
    """Return the files by which a folder is known; the ledger of a run may lie above it."""
    return files_in(folder) or ([RUN] if has_run(folder) else [])
