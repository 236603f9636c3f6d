"""HTML that needs nothing else: one frame for all pages, and figures set into it."""

from __future__ import annotations

import importlib.resources
import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from knownminds.validation.engine.verdicts import Verdict

# Ink of the figures that becomes that of the page, which may be light on dark.
_INK = re.compile(r"(?<=: )#(?:000000|222222)\b")
# How a cell begins that holds a number: its sign, what it is of, and a digit.
_NUMBER = re.compile(r"[-+\u2212<>$≥≤]*\s?\.?\d")
_IDS = re.compile(r'(\bid="|url\(#|href="#)')


def fill(template: str, **content: Any) -> str:
    """Return a template of this folder, filled in.

    Parameters
    ----------
    template : Name of the file, result.html for instance; it may extend frame.html. The filter
        `drawing` sets in a figure, `{{ svg | drawing(caption, name) }}`; `tone` names a verdict's
        colour.
    """
    return _PAPER.get_template(template).render(**content)


def drawing(svg: str, label_text: str, name: str) -> Markup:
    """Return a figure's SVG as an element of a page, in the page's ink.

    Parameters
    ----------
    label_text : What it shows, for those who do not see it.
    name : Tells its inner marks from those of other figures; once on a page.
    """
    inner = svg[svg.index("<svg") :]
    inner = re.sub(r"<metadata>.*?</metadata>|<style[^>]*>.*?</style>", "", inner, flags=re.S)
    inner = inner.replace('style="fill: #ffffff"', 'style="fill: none"')  # sheets behind it
    inner = _IDS.sub(rf"\g<1>{name}-", _INK.sub("currentColor", inner))
    label = escape(label_text, quote=True)
    return Markup(inner.replace("<svg", f'<svg class="drawing" role="img" aria-label="{label}"', 1))


def natural(svg: str) -> str:
    """Return the width of a figure on paper as a style: in px, of which one is .75 points."""
    wide = re.search(r'width="([0-9.]+)pt"', svg)
    return f"--natural: {float(wide[1]) / 0.75:.0f}px" if wide else ""


def option_texts(options: Mapping[str, Any]) -> dict[str, str]:
    """Return options as texts by name; those without a value are left out."""
    texts = {}
    for name, value in options.items():
        if value is None or value is False or value in ("", [], {}, ()):
            continue
        if isinstance(value, Mapping):
            text = ", ".join(f"{key}={one}" for key, one in value.items())
        else:
            text = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
        texts[name.replace("_", " ")] = text
    return texts


def kinds(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the class of each column of a table: "words" where most cells are no numbers."""
    return [
        "words" if k == 0 or _is_words(column) else ""
        for k, column in enumerate(zip(*rows, strict=True))
    ]


def _is_words(column: Sequence[str]) -> bool:
    filled = [cell for cell in column if cell.strip() not in ("", "-")]
    plain = [cell for cell in filled if _NUMBER.match(cell.strip())]
    return len(plain) < len(filled) / 2


def _attributes(given: Mapping[str, str]) -> Markup:
    """Return attributes of an element, those that are not empty."""
    return Markup("".join(f' {name}="{escape(value)}"' for name, value in given.items() if value))


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
_PAPER.filters |= {
    "options": option_texts,
    "attributes": _attributes,
    "drawing": drawing,
    "kinds": kinds,
    "natural": natural,
    "tone": lambda word: Verdict(str(word)).tone,
}
