"""Marker location: where on a line a marker sits, as a share of the line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from PIL.Image import Image

from knownminds.environments.turn import Observation

from . import drawing
from .decoupling import HUNDREDTHS, dashes
from .decoupling import length as length_of
from .magnitude import Magnitude
from .placing import LONGEST, MOST, PLACED, SHORTEST, indent, lie, placed

_DASHES = 100  # dashes of a line, besides the marker
_MARKER = "0"
FEWEST = 8  # least number of dashes of a decoupled line


class MarkerLocation(Magnitude):
    """Where on a line a marker sits: 0 at its left end, 1 at its right end.

    In words the line is 100 dashes with a 0 among them, and the location is the share of dashes to
    the left of it. In a picture it is a black line of 400 px with a red marker. Locations are
    multiples of .01; in the usual windows they are multiples of .02 (11 values in steps of .04).

    Decoupled lines have 8 to 200 dashes, after up to 40 spaces, or 30 to 440 px; in a picture they
    lie anywhere and are turned by up to 40 degrees. None of these reveals the location, though each
    tells something about it: the dashes or px before the marker, those after it, those of the line,
    and the position of the marker in the picture.

    `Magnitude` says how a session is made.
    """

    name = "marker_location"
    summary = "where on a line a marker sits, in dashes, in a picture, or both"
    source = "BayesBench (Ma, Wang and Fountas 2025, arXiv 2512.02719)"
    shipped = Path(__file__).with_suffix(".toml")
    default_ranges: ClassVar = {"short": (0.1, 0.5), "medium": (0.3, 0.7), "long": (0.5, 0.9)}
    limits = (0.0, 1.0)
    ceiling = 1.0
    decoupled: ClassVar = (PLACED, 2)
    thought = "I compare the part of the line before the marker with the whole line."

    def _make(
        self, targets: NDArray[np.float64], uniforms: NDArray[np.float64]
    ) -> dict[str, NDArray[Any]]:
        value = np.round(targets * HUNDREDTHS) / HUNDREDTHS
        if self.stimuli == "published":
            return {"value": value}
        return {"value": value, **placed(uniforms[:, :, 0], uniforms[:, :, 1])}

    def _text(self, observation: Observation) -> list[str]:
        value = float(observation["value"])
        if self.stimuli == "published":
            before, whole, spaces = round(value * _DASHES), _DASHES, 0
        else:
            before, whole = dashes(value, _long(value, observation, FEWEST, MOST), MOST)
            spaces = indent(observation, 0)
        return [" " * spaces + "-" * before + _MARKER + "-" * (whole - before)]

    def _value_in(self, lines: Sequence[str]) -> float:
        line = "".join(lines)
        if self.stimuli == "decoupled":
            line = line.strip(" ")
        before, marker, after = line.partition(_MARKER)
        if not marker or set(before + after) != {"-"}:
            raise ValueError(f"A line is dashes with one {_MARKER} among them; got {lines!r}.")
        return round(len(before) / (len(before) + len(after)) * HUNDREDTHS) / HUNDREDTHS

    def shortcuts(self, observation: Observation) -> dict[str, float]:
        """Return dashes before and after the marker and of both, and its position in a picture."""
        (line,) = self._text(observation)
        before, _, after = line.strip(" ").partition(_MARKER)
        counts = {
            "dashes before the marker": len(before),
            "dashes behind the marker": len(after),
            "dashes of the line": len(before) + len(after),
        }
        x = drawing.LEFT + drawing.LINE * float(observation["value"])
        if self.stimuli == "decoupled":
            value = float(observation["value"])
            length = _long(value, observation, SHORTEST, LONGEST)
            turn, ((middle, _),) = lie(observation, [length])
            x = middle + (value - 0.5) * length * np.cos(turn)
        return {**counts, "px of a picture to the left of the marker": x}

    def _drawn(self, observation: Observation) -> Image:
        value, blur = float(observation["value"]), float(observation["blur"])
        if self.stimuli == "published":
            return drawing.marker(value, blur)
        length = _long(value, observation, SHORTEST, LONGEST)
        turn, (centre,) = lie(observation, [length])
        return drawing.turned_marker(value, length, turn, centre, blur)


def _long(value: float, seen: Observation, least: float, most: float) -> float:
    """Return the length of the line: the nearer the marker to an end, the longer the line.

    The expected logarithm of the length falls by half of what the logarithm of the product of both
    shares rises, so that neither part reveals more of the location than the other.
    """
    shares = max(4 * value * (1 - value), 1e-3)
    return length_of(least / shares, most, float(seen["size"]))
