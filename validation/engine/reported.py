"""Results that have a page."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from knownminds.environments.record.result import Result

if TYPE_CHECKING:
    from knownminds.validation.pages.page import Page


class Reported(Result):
    """A result with a page of its own, which `knownminds report` writes."""

    def page(self) -> Page:
        """Return the page: what was asked, findings, tables and figures."""
        from knownminds.validation.report import page_of

        return page_of(self)

    def _repr_html_(self) -> str:
        """Show a notebook the page, in a frame of its own."""
        from knownminds.validation.report import render

        page = escape(render(self.page()), quote=True)
        return f'<iframe srcdoc="{page}" style="width: 100%; height: 40em; border: 0"></iframe>'
