"""Results as one self-contained page, drawn from the folder that holds them alone."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pandas as pd

from knownminds.environments import unknown
from knownminds.environments.record.csv_cells import csv_text
from knownminds.environments.record.folders import writable, write_bytes, write_text
from knownminds.validation.engine.result import Result
from knownminds.validation.engine.study import Rows, read_study
from knownminds.validation.pages.figures import Picture
from knownminds.validation.pages.html import fill
from knownminds.validation.pages.page import Page
from knownminds.validation.pages.result_page import write_page
from knownminds.validation.pages.tables import latex, markdown

from .studies import FILES, STUDIES, kept_as, load


def report(folder: str | Path) -> Path:
    """Draw the page of a folder again, from what it holds; return the page's path.

    Of a study that is not finished, the page shows what there is, and counts what is missing.

    Raises
    ------
    ValueError
        If the folder holds no study, fit, budget, scores or run.
    """
    return write_report(read_result(folder), folder)


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


def page_of(result: Any) -> Page:
    """Return the page of a result."""
    page: Page = load(kept_as(result).pages[type(result).__name__])(result)
    return page


def write_report(result: Any, folder: str | Path) -> Path:
    """Write report.html into the folder, and all tables and figures; return its path.

    Each figure is in the folder's `figures` as SVG, PDF, PNG and, the numbers that it shows, as
    CSV. Each table of the page is in its `tables` as CSV, LaTeX and Markdown, as it is printed, and
    the numbers behind each section as CSV.
    """
    if isinstance(result, Result):
        return write_page(result, folder)
    page = page_of(result)
    text = render(page)
    with writable(folder) as place:
        _write_figures(page, place / "figures")
        _write_tables(page, place / "tables")
        write_text(place / "report.html", text)
    return Path(folder) / "report.html"


def render(page: Page) -> str:
    """Return a page as HTML that needs nothing else."""
    return fill("report.html", page=page)


def _write_figures(page: Page, folder: Path) -> None:
    for k, (caption, svg) in enumerate(page.drawn, start=1):
        if not isinstance(svg, Picture):
            continue
        folder.mkdir(exist_ok=True)
        name = f"{k}-{_slug(caption)}"
        write_text(folder / f"{name}.svg", svg)
        write_bytes(folder / f"{name}.png", svg.png())
        write_bytes(folder / f"{name}.pdf", svg.pdf())
        write_text(folder / f"{name}.csv", csv_text(svg.data(), float_format="%.10g"))


def _write_tables(page: Page, folder: Path) -> None:
    for k, (title, head, rows) in enumerate(page.listed, start=1):
        folder.mkdir(exist_ok=True)
        name = f"{k}-{_slug(title)}"
        write_text(folder / f"{name}.csv", csv_text(pd.DataFrame(rows, columns=list(head))))
        write_text(folder / f"{name}.md", markdown(head, rows))
        write_text(folder / f"{name}.tex", latex(title, head, rows))
    for name, frame in ((n, f) for part in page.sections for n, f in part.frames.items()):
        folder.mkdir(exist_ok=True)
        write_text(folder / f"{name}.csv", csv_text(frame, float_format="%.10g"))


def _slug(caption: str) -> str:
    """Name a figure by the beginning of its caption."""
    first = re.split(r"[.,;:(]", caption.lower().replace("'", ""), maxsplit=1)[0]
    words = re.findall(r"[a-z0-9]+", first)
    return "-".join(words[:6])
