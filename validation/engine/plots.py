"""Figures in a notebook, and names of parameters as papers write them."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_NAMES = (
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho "
    "sigma tau upsilon phi chi psi omega"
)
GREEK = dict(zip(_NAMES.split(" "), "αβγδεζηθικλμνξοπρστυφχψω", strict=True))
DOTS = 120  # per inch, in a notebook


def symbol(name: str) -> str:
    """Return a parameter's name as papers write it: alpha_positive is "α positive"."""
    words = name.split("_")
    return " ".join(GREEK.get(word, word) for word in words)


def few_digits(name: str) -> str:
    """Return a name, of a known agent for instance, with 3 digits of each parameter."""
    return re.sub(r"(?<==)-?\d+\.\d{3,}(e-?\d+)?", lambda found: f"{float(found[0]):.3g}", name)


def showing(figure: Figure) -> Figure:
    """Return a figure that a notebook shows by itself, even without pyplot."""

    def png() -> bytes:
        stream = io.BytesIO()
        figure.savefig(stream, format="png", dpi=DOTS)
        return stream.getvalue()

    setattr(figure, "_repr_png_", png)  # noqa: B010 - IPython asks for it by name
    return figure
