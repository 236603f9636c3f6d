"""HTML that needs nothing else: one frame for all pages, and figures set into it."""

from __future__ import annotations

import importlib.resources
import re
from html import escape
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from .page import tone

# Ink of the figures that becomes that of the page, which may be light on dark.
_INK = re.compile(r"(?<=: )#(?:000000|222222)\b")
_IDS = re.compile(r'(\bid="|url\(#|href="#)')


def fill(template: str, **content: Any) -> str:
    """Return a template of this folder, filled in.

    Parameters
    ----------
    template
        Name of the file, report.html for instance; it may extend frame.html. The filter `drawing`
        sets in a figure, `{{ svg | drawing(caption, name) }}`, `tone` names a verdict's colour.
    """
    return _PAPER.get_template(template).render(**content)


def drawing(svg: str, told: str, name: str) -> Markup:
    """Return a figure's SVG as an element of a page, in the page's own ink.

    Parameters
    ----------
    told
        What it shows, for those who do not see it.
    name
        Tells its inner marks from those of other figures; once on a page.
    """
    inner = svg[svg.index("<svg") :]
    inner = re.sub(r"<metadata>.*?</metadata>|<style[^>]*>.*?</style>", "", inner, flags=re.S)
    inner = inner.replace('style="fill: #ffffff"', 'style="fill: none"')  # sheets behind it
    inner = _IDS.sub(rf"\g<1>{name}-", _INK.sub("currentColor", inner))
    label = escape(told, quote=True)
    return Markup(inner.replace("<svg", f'<svg class="drawing" role="img" aria-label="{label}"', 1))


def _source(name: str) -> str:
    file = importlib.resources.files("knownminds.validation.pages") / name
    return file.read_text(encoding="utf-8")


_PAPER = Environment(
    loader=FunctionLoader(_source),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_PAPER.filters |= {"drawing": drawing, "tone": tone}
