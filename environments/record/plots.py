"""How tables of results are drawn: estimates with their intervals, by names that papers use."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np

from knownminds.environments.later import pandas as pd

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_NAMES = (
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho "
    "sigma tau upsilon phi chi psi omega"
)
GREEK = dict(zip(_NAMES.split(" "), "αβγδεζηθικλμνξοπρστυφχψω", strict=True))
DOTS = 120  # per inch, in a notebook
MOST = 60  # rows that have a name of their own


def symbol(name: str) -> str:
    """Return a parameter's name as papers write it: alpha_positive is "α positive"."""
    words = name.split("_")
    return " ".join(GREEK.get(word, word) for word in words)


def showing(figure: Figure) -> Figure:
    """Return a figure that a notebook shows by itself, also where pyplot is not at hand."""

    def png() -> bytes:
        stream = io.BytesIO()
        figure.savefig(stream, format="png", dpi=DOTS)
        return stream.getvalue()

    setattr(figure, "_repr_png_", png)  # noqa: B010 - IPython asks for it by name
    return figure


def intervals_of(frame: pd.DataFrame) -> list[tuple[str, str, str]]:
    """Name the columns of a table that are an estimate, and the ends of its interval."""
    found = [
        (str(name), f"{name}_low", f"{name}_high")
        for name in frame
        if {f"{name}_low", f"{name}_high"} <= set(frame)
    ]
    if not found and {"low", "high"} <= set(frame):
        first = next((n for n in ("value", "mean", "estimate") if n in frame), None)
        found = [(first, "low", "high")] if first else []
    return found


def forest(frame: pd.DataFrame) -> Figure:
    """Draw the estimates of a table, a row each, with their intervals if it has them.

    Raises
    ------
    ValueError
        If it has no numbers.
    """
    from matplotlib.figure import Figure

    shown = intervals_of(frame)
    if not shown:
        numbers = frame.select_dtypes("number")
        shown = [(str(name), "", "") for name in numbers.columns[:4]]
    if not shown or frame.empty:
        raise ValueError("What is drawn are numbers; this result has none.")
    texts = [c for c in frame if not pd.api.types.is_numeric_dtype(frame[c])]
    names = frame[texts[0]].astype(str) if texts else frame.index.astype(str)
    place: Any = np.arange(len(frame))[::-1]
    tall = float(np.clip(0.18 * len(frame) + 0.9, 1.8, 10))
    figure = Figure(figsize=(max(2.6 * len(shown), 4), tall), layout="constrained")
    for k, (name, low, high) in enumerate(shown, start=1):
        axis = figure.add_subplot(1, len(shown), k)
        axis.spines[["top", "right"]].set_visible(False)
        if low:
            axis.hlines(place, frame[low], frame[high], color="#0072B2", alpha=0.5, linewidth=1.2)
        axis.plot(frame[name], place, "o", color="#0072B2", markersize=3)
        axis.set_xlabel(symbol(name))
        named = k == 1 and len(frame) <= MOST
        axis.set_yticks(place if named else [], list(names) if named else [])
    return figure
