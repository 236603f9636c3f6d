"""Results on paper: one page, and every table and figure as files beside it."""

from __future__ import annotations

import io
import os
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any, Protocol

import matplotlib as mpl
import pandas as pd
from matplotlib.figure import Figure

from knownminds.environments.record.csv_cells import csv_text
from knownminds.environments.record.folders import replaced, writable, write_bytes, write_text
from knownminds.validation.engine.parts import Drawing, Part, flat
from knownminds.validation.engine.screen import Said, headed, shown
from knownminds.validation.studies import POSTERIOR, RESULT

from . import figures as draw
from .html import fill

PAGE = "report.html"

MOST_ROWS = 1000  # of a table on the page, in LaTeX and Markdown; its CSV has all
DOTS = 200  # per inch, of what is drawn as dots
# The same study gives the same files: no dates, and letters that stay letters.
METADATA: Mapping[str, Mapping[str, Any]] = {
    "svg": {"Date": None, "Creator": None},
    "png": {"Software": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}
_LETTERS: Any = {"svg.hashsalt": "knownminds", "svg.fonttype": "none", "pdf.fonttype": 42}


class Written(Said, Protocol):
    """What a page has of a result."""

    @property
    def tables(self) -> Mapping[str, pd.DataFrame]: ...  # noqa: D102
    @property
    def figures(self) -> Mapping[str, Drawing]: ...  # noqa: D102
    @property
    def every_figure(self) -> Sequence[tuple[str, Drawing]]: ...  # noqa: D102
    @property
    def parts(self) -> Sequence[Part]: ...  # noqa: D102
    def to_json(self) -> str: ...  # noqa: D102


def page_text(result: Written) -> str:
    """Return a result as an HTML page that needs nothing else."""
    return _filled(result, [picture(one.figure(), "svg") for _, one in result.every_figure])


def _for_phones(drawing: Drawing, svg: bytes) -> str:
    """Return a figure laid out for a narrow window; "" if it fits one as it is, or never does."""
    if _wide(svg) <= draw.PHONE_WIDTH:
        return ""
    with draw.on_phones(), warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)  # of a layout that finds no room
        try:
            narrow = picture(drawing.figure(), "svg")
        except UserWarning:
            return ""
    return narrow.decode() if _wide(narrow) <= draw.PHONE_WIDTH else ""


def _wide(svg: bytes) -> float:
    """Return the width of a figure in inches, to a hundredth."""
    found = re.search(rb'width="([0-9.]+)pt"', svg)
    return round(float(found[1]) / 72, 2) if found else 0.0


def _filled(result: Written, pictures: Sequence[bytes]) -> str:
    """Fill in the template; `pictures` are the SVGs of all figures in their order."""
    every = [one for _, one in result.every_figure]
    narrow = [_for_phones(one, svg) for one, svg in zip(every, pictures, strict=True)]
    drawn = iter(enumerate(zip(pictures, narrow, strict=True), start=1))
    number = count(1)

    def views(held: Written | Part) -> dict[str, Any]:
        figures = [
            (position, caption, svg.decode(), small)
            for caption, (position, (svg, small)) in zip(held.figures, drawn, strict=False)
        ]
        tables = [(next(number), *_readable(title, table)) for title, table in held.tables.items()]
        return {"figures": figures, "tables": tables}

    top = views(result)
    parts = [(part, views(part)) for part in result.parts]
    return fill("result.html", result=result, top=top, parts=parts)


def _readable(title: str, table: pd.DataFrame) -> tuple[str, list[str], list[list[str]]]:
    """Return title, head and cells of a table; of a very long one its beginning, and say so."""
    title = headed(title, table)
    if len(table) > MOST_ROWS:
        title = f"{title} (the first {MOST_ROWS:,} of {len(table):,} rows; all are in its CSV)"
    return title, *shown(table.head(MOST_ROWS))


def write_page(
    result: Written,
    folder: str | os.PathLike[str],
    write_more: Callable[[Path], object] = lambda folder: None,
) -> Path:
    """Write report.html, result.json, and the folders tables and figures; return the page's path.

    Each table is there as CSV, LaTeX and Markdown, the rows of each part as NAME.csv; each figure
    as SVG, PDF, PNG and, the frame that it shows, as CSV. Those of an earlier result are replaced
    when all are written.

    Parameters
    ----------
    write_more : Writes `POSTERIOR` into the folder that it is called with; nothing of other
        results.
    """
    drawn = [(caption, one.data, one.figure()) for caption, one in result.every_figure]
    pictures = [picture(figure, "svg") for _, _, figure in drawn]
    text = _filled(result, pictures)
    with (
        writable(folder) as path,
        replaced(path, ("tables", "figures", POSTERIOR, PAGE, RESULT)) as new,
    ):
        tables, figures = new / "tables", new / "figures"
        for number, (title, table) in enumerate(result.every_table, start=1):
            tables.mkdir(exist_ok=True)
            name = file_name(number, title)
            heading, head, rows = _readable(title, table)
            write_text(tables / f"{name}.csv", csv_text(flat(table), float_format="%.10g"))
            write_text(tables / f"{name}.md", markdown(head, rows))
            write_text(tables / f"{name}.tex", latex(heading, head, rows))
        for part in result.parts:
            tables.mkdir(exist_ok=True)
            write_text(tables / f"{part.name}.csv", csv_text(flat(part.rows), float_format="%.10g"))
        for number, ((caption, data, figure), svg) in enumerate(
            zip(drawn, pictures, strict=True), start=1
        ):
            figures.mkdir(exist_ok=True)
            name = file_name(number, caption)
            figure.set_layout_engine(None)  # all is laid out; the others need not look for it
            write_bytes(figures / f"{name}.svg", svg)
            for kind in ("png", "pdf"):
                write_bytes(figures / f"{name}.{kind}", picture(figure, kind))
            write_text(figures / f"{name}.csv", csv_text(flat(data), float_format="%.10g"))
        write_more(new)
        write_text(new / RESULT, result.to_json())
        write_text(new / PAGE, text)
    return Path(folder) / PAGE


def latex(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table for LaTeX, in which no character commands anything; it needs booktabs."""
    table = pd.DataFrame(rows, columns=pd.Index(head))
    caption = re.sub(r"([&%$#_{}])", r"\\\1", title)
    layout = "l" + "r" * (len(head) - 1)
    return table.to_latex(index=False, escape=True, caption=caption, column_format=layout)


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table for Markdown."""
    ruler = ["---", *("---:" for _ in head[1:])]
    return "".join(
        "| " + " | ".join(" ".join(cell.split()).replace("|", r"\|") for cell in row) + " |\n"
        for row in (head, ruler, *rows)
    )


def picture(figure: Figure, kind: str) -> bytes:
    """Return a figure as "svg", "png" or "pdf"."""
    stream = io.BytesIO()
    more: Any = {"pil_kwargs": {"compress_level": 3}} if kind == "png" else {}  # others take longer
    with mpl.rc_context(_LETTERS):
        figure.savefig(stream, format=kind, dpi=DOTS, metadata=dict(METADATA[kind]), **more)
    return stream.getvalue()


def file_name(number: int, title: str) -> str:
    """Name a file by its number and the first words of its title."""
    words = re.findall(r"[a-z0-9]+", re.split(r"[.,;:(]", title.lower().replace("'", ""))[0])
    return "-".join([str(number), *words[:6]])
