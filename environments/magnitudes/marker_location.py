"""Marker location: where on a line a marker sits, as a share of the line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from knownminds.environments.environment import Observation

from . import drawing
from .magnitude import Magnitude

if TYPE_CHECKING:
    from PIL.Image import Image

_DASHES = 100  # of a line, beside the marker
_MARKER = "0"


class MarkerLocation(Magnitude):
    """Where on a line a marker sits: 0 at its left end, 1 at its right end.

    In words the line is 100 dashes with a 0 among them, and the location the share of dashes to
    the left of it; in a picture it is a black line of 400 px with a red marker. Locations are
    multiples of .01, those of the windows as they are of .02 (11 values in steps of .04).
    What a session is made of: see `Magnitude`.
    """

    name = "marker_location"
    summary = "where on a line a marker sits, told in dashes, shown in a picture, or both"
    source = "BayesBench (anonymous authors 2025)"
    shipped = Path(__file__).with_suffix(".toml")
    default_ranges: ClassVar = {"short": (0.1, 0.5), "medium": (0.3, 0.7), "long": (0.5, 0.9)}
    limits = (0.0, 1.0)
    ceiling = 1.0
    thought = "I compare the part of the line before the marker with the whole line."

    def _make(
        self, targets: NDArray[np.float64], uniforms: NDArray[np.float64]
    ) -> dict[str, NDArray[Any]]:
        return {"value": np.round(targets * _DASHES) / _DASHES}

    @property
    def _separator(self) -> str:
        return " / "  # between lines, of which there is one

    def _text(self, observation: Observation) -> list[str]:
        before = round(float(observation["value"]) * _DASHES)
        return ["-" * before + _MARKER + "-" * (_DASHES - before)]

    def _value_told(self, lines: Sequence[str]) -> float:
        before, marker, after = "".join(lines).partition(_MARKER)
        if not marker or set(before + after) != {"-"}:
            raise ValueError(f"A line is dashes with one {_MARKER} among them; got {lines!r}.")
        return len(before) / (len(before) + len(after))

    def _drawn(self, observation: Observation) -> Image:
        return drawing.marker(float(observation["value"]), float(observation["blur"]))

    def _value_shown(self, png: bytes) -> float:
        return round(drawing.marker_in(png) * _DASHES) / _DASHES
