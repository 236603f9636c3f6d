"""Results that have a page."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from knownminds.environments.record.result import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from knownminds.validation.pages.page import Page


class Reported(Result):
    """A result with a page of its own, which `knownminds report` writes."""

    def page(self) -> Page:
        """Return the page: what was asked, findings, tables and figures."""
        from knownminds.validation.report import page_of

        return page_of(self)

    def plot(self, number: int = 1) -> Figure:
        """Return a figure of the page, counted from 1, as a Matplotlib figure.

        Raises
        ------
        ValueError
            If the page has no such figure.
        """
        from knownminds.environments.record.plots import showing

        page = self.page()
        figures = [svg.figure for _, svg in page.drawn if hasattr(svg, "figure")]
        if not 1 <= number <= len(figures):
            raise ValueError(f"The page has {len(figures)} figures; got number={number}.")
        return showing(figures[number - 1])

    def _repr_html_(self) -> str:
        """Show a notebook the page, in a frame of its own."""
        from knownminds.validation.report import render

        page = escape(render(self.page()), quote=True)
        return f'<iframe srcdoc="{page}" style="width: 100%; height: 40em; border: 0"></iframe>'
