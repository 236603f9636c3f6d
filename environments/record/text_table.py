"""Tables of plain text that fit a screen of 80 columns; names are never cut."""

from __future__ import annotations

from collections.abc import Sequence

WIDTH = 80  # columns of a screen
GAP = 2  # spaces between columns


def text_table(
    head: Sequence[object],
    rows: Sequence[Sequence[object]],
    *,
    words: bool = False,
    names: int = 1,
    width: int = WIDTH,
) -> list[str]:
    """Return the lines of a table; columns beyond its width follow below, with the names repeated.

    Parameters
    ----------
    head : The heading of each column.
    rows : A cell for each column; the first one is a name, flush left, and the others are flush
        right.
    words : Whether the last column is flush left as well.
    names : How many columns name the rows: these are repeated beside the columns that follow below.
    width : Columns of the screen.
    """
    cells = [[str(cell) for cell in row] for row in (head, *rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = []
    for block in _blocks(widths, names, width):
        for row in cells:
            parts = [row[0].ljust(widths[0])]
            for k in [*range(1, names), *block]:
                left = words and k == len(head) - 1
                parts.append(row[k].ljust(widths[k]) if left else row[k].rjust(widths[k]))
            lines.append((" " * GAP).join(parts).rstrip())
    return lines


def _blocks(widths: Sequence[int], names: int, most: int) -> list[list[int]]:
    """Divide the columns into blocks: besides the names as many as a screen holds, at least one."""
    blocks: list[list[int]] = [[]]
    beside = sum(widths[:names]) + GAP * (names - 1)
    used = beside
    for k, width in enumerate(widths[names:], start=names):
        if blocks[-1] and used + GAP + width > most:
            blocks.append([])
            used = beside
        blocks[-1].append(k)
        used += GAP + width
    return blocks


def counted(n: int, noun: str) -> str:
    """Return a number with its noun: "1 session", "2 sessions"."""
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"
