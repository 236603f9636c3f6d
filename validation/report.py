"""Results as one self-contained page, drawn from the folder that holds them alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from knownminds.environments import unknown
from knownminds.validation.engine.study import Rows, read_study
from knownminds.validation.pages.result_page import write_page

from .studies import FILES, STUDIES, load


def report(folder: str | Path) -> Path:
    """Draw the page of a folder again, from what it holds; return the page's path.

    Of a study that is not finished, the page shows what there is, and counts what is missing.

    Raises
    ------
    ValueError
        If the folder holds no study, fit, budget, scores or run.
    """
    return write_page(read_result(folder), folder)


def read_result(folder: str | Path) -> Any:
    """Return the result a folder holds, whatever command made it; nothing is computed anew."""
    path = Path(folder)
    names = list(FILES)
    held = [name for name in names if (path / name).is_file()]
    rule = f"A report is drawn from a folder with a {', a '.join(names[:-1])} or a {names[-1]}"
    if not held:
        raise ValueError(f"{rule}; {path} has none of them.")
    if len(held) > 1:
        raise ValueError(
            f"{rule}; {path} has {' and '.join(held)}. Each result needs a folder of its own."
        )
    kept = FILES[held[0]]
    if kept.is_study:
        command = read_study(path)[0].command
        known = [name for name, one in STUDIES.items() if one.is_study]
        if command not in known:
            raise ValueError(unknown("kind of study", command, known))
        kept = STUDIES[command]
        if kept.say:
            return load(kept.say)(Rows.read(path))
    return load(kept.read)(path)
