"""Results as one self-contained page, drawn from the folder that holds them alone."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from knownminds.environments import unknown
from knownminds.llm_adapters.runs.ledger import has_run
from knownminds.validation.engine.study import Rows, read_study
from knownminds.validation.pages.result_page import write_page

from .engine.question import StudyQuestion, load, verb
from .questions import Report
from .studies import FOLDERS, RESULT, RUN, STUDIES, STUDY, files_in

report = verb(Report, __name__)


@dataclass(frozen=True)
class Drawn:
    """A page that was drawn.

    Parameters
    ----------
    answered : Its file.
    missing : Units of the study that are not there yet.
    """

    answered: Path
    missing: int = 0

    def __str__(self) -> str:
        unfinished = f"\nnot finished: {self.missing:,} units are missing" if self.missing else ""
        return f"{self.answered}{unfinished}"

    def to_dict(self) -> dict[str, Any]:
        """Return the file, and how many units are missing."""
        return {"report": str(self.answered), "missing": self.missing}


def compute(question: Report) -> Drawn:
    """Answer `report`."""
    page = Path(question.folder) / "report.html"
    if not _held(page.parent) and (page.parent / RESULT).is_file() and page.is_file():
        return Drawn(page)
    result = read_result(question.folder)
    return Drawn(write_page(result, question.folder), result.missing)


def read_result(folder: str | Path) -> Any:
    """Return the result a folder holds, whatever command made it; nothing is computed anew."""
    path, names = Path(folder), list(FOLDERS)
    if not path.is_dir():
        raise ValueError(f"A result is read from its folder; there is none at {path}.")
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
