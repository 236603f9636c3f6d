"""Tables of a page as papers and notes have them: LaTeX with booktabs, and Markdown."""

from __future__ import annotations

from collections.abc import Sequence

_ESCAPED = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
}


def escaped(text: str) -> str:
    """Return a text for LaTeX, in which no character commands anything."""
    return "".join(_ESCAPED.get(letter, letter) for letter in " ".join(text.split()))


def latex(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table for LaTeX; it needs the package booktabs."""
    lines = [
        r"\begin{table}",
        rf"\caption{{{escaped(title)}}}",
        rf"\begin{{tabular}}{{l{'r' * (len(head) - 1)}}}",
        r"\toprule",
        " & ".join(map(escaped, head)) + r" \\",
        r"\midrule",
        *(" & ".join(map(escaped, row)) + r" \\" for row in rows),
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table for Markdown."""
    ruler = ["---", *("---:" for _ in head[1:])]
    return "".join(
        "| " + " | ".join(" ".join(cell.split()).replace("|", r"\|") for cell in row) + " |\n"
        for row in (head, ruler, *rows)
    )
