"""Results on paper: one page, and every table and figure as files beside it."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from knownminds.environments.record.csv_cells import csv_text
from knownminds.environments.record.folders import writable, write_bytes, write_text
from knownminds.validation.engine.result import Result, flat, shown

from .html import fill
from .tables import latex, markdown

DOTS = 200  # per inch, of what is drawn as dots
# The same study gives the same files: no dates, and letters that stay letters.
METADATA: Mapping[str, Mapping[str, Any]] = {
    "svg": {"Date": None, "Creator": None},
    "png": {"Software": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}
_LETTERS: Any = {"svg.hashsalt": "knownminds", "svg.fonttype": "none", "pdf.fonttype": 42}


def page_text(result: Result) -> str:
    """Return a result as an HTML page that needs nothing else."""
    tables = [(title, *shown(table)) for title, table in result.tables.items()]
    figures = [
        (caption, picture(drawing.figure(), "svg").decode())
        for caption, drawing in result.figures.items()
    ]
    return fill("result.html", result=result, tables=tables, figures=figures)


def write_page(result: Result, folder: str | Path) -> Path:
    """Write report.html, result.json, and the folders tables and figures; return the page's path.

    Each table is there as CSV, LaTeX and Markdown; each figure as SVG, PDF, PNG and, the frame that
    it shows, as CSV.
    """
    text = page_text(result)
    with writable(folder) as path:
        tables, figures = path / "tables", path / "figures"
        for number, (title, table) in enumerate(result.tables.items(), start=1):
            tables.mkdir(exist_ok=True)
            name = file_name(number, title)
            head, rows = shown(table)
            write_text(tables / f"{name}.csv", csv_text(flat(table), float_format="%.10g"))
            write_text(tables / f"{name}.md", markdown(head, rows))
            write_text(tables / f"{name}.tex", latex(title, head, rows))
        for number, (caption, drawing) in enumerate(result.figures.items(), start=1):
            figures.mkdir(exist_ok=True)
            name, figure = file_name(number, caption), drawing.figure()
            for kind in METADATA:
                write_bytes(figures / f"{name}.{kind}", picture(figure, kind))
            write_text(figures / f"{name}.csv", csv_text(flat(drawing.data), float_format="%.10g"))
        write_text(path / "result.json", result.to_json())
        write_text(path / "report.html", text)
    return Path(folder) / "report.html"


def picture(figure: Figure, kind: str) -> bytes:
    """Return a figure as "svg", "png" or "pdf"."""
    stream = io.BytesIO()
    with mpl.rc_context(_LETTERS):
        figure.savefig(stream, format=kind, dpi=DOTS, metadata=dict(METADATA[kind]))
    return stream.getvalue()


def file_name(number: int, title: str) -> str:
    """Name a file by its number and the first words of its title."""
    words = re.findall(r"[a-z0-9]+", re.split(r"[.,;:(]", title.lower().replace("'", ""))[0])
    return "-".join([str(number), *words[:6]])
