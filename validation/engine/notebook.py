"""Progress where a notebook shows it: a bar that becomes a line when the work is done."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape
from time import monotonic
from typing import Any

LEAST = 0.2  # seconds between two drawings of a bar
Callback = Callable[[int, int], None]


def in_notebook() -> bool:
    """Tell whether a notebook's kernel runs this; a terminal, with IPython or without, is none."""
    if "ipykernel" not in sys.modules:
        return False
    from IPython import get_ipython

    return hasattr(get_ipython(), "kernel")


@contextmanager
def notebook_bar(title: str) -> Iterator[Callback | None]:
    """Give a progress callback that draws in the cell that runs; None outside of notebooks.

    What takes less than a moment draws nothing.
    """
    if not in_notebook():
        yield None
        return
    bar = _Bar(title)
    yield bar
    bar.end()


class _Bar:
    """A bar in a notebook's cell; called with what is done, and of how much."""

    def __init__(self, title: str) -> None:
        self.title, self.began, self.drawn, self.done, self.of = title, monotonic(), 0.0, 0, 0
        self.handle: Any = None

    def __call__(self, done: int, total: int) -> None:
        self.done, self.of, now = done, total, monotonic()
        if now - max(self.drawn, self.began) < LEAST:
            return
        self.drawn, took = now, now - self.began
        left = f", about {took * (total - done) / done:,.0f} s left" if done else ""
        text = f"{escape(self.title)}: {done:,} of {total:,}{left}"
        self.show(f'<label>{text} <progress value="{done}" max="{total}"></progress></label>')

    def end(self) -> None:
        """Leave a line instead of a bar that was drawn."""
        if self.handle is not None:
            took = monotonic() - self.began
            self.show(f"{escape(self.title)}: {self.done:,} of {self.of:,} in {took:,.1f} s")

    def show(self, html: str) -> None:
        """Draw, instead of what was drawn before."""
        from IPython.display import HTML, display

        if self.handle is None:
            self.handle = display(HTML(html), display_id=True)
        else:
            self.handle.update(HTML(html))
