"""The positions and turns of decoupled lines."""

from __future__ import annotations

from collections.abc import Sequence
from math import cos, pi, sin
from typing import Any

import numpy as np
from numpy.typing import NDArray

from knownminds.environments.design import session_stream
from knownminds.environments.fields import Field, Fields
from knownminds.environments.turn import Observation

from . import drawing

MOST = 200  # dashes of a line, at most
SHORTEST, LONGEST = 30.0, 440.0  # px of a line
PLACED = Fields(
    Field("size", (0.0, 1.0), "how long lines are: 0 as short as the value allows", "wording"),
    Field("place", (0, np.inf), "number from which place and turn are drawn", "wording"),
)

_NUMBERS = 2**31  # positions are drawn from one of so many streams
_SPACES = 40  # spaces before dashes, at most
_TURN = 40 * pi / 180  # largest turn, to either side
_REACH = drawing.SIDE / 2 - 12  # px, from the middle of a picture to where lines must end
_APART = (50.0, 100.0)  # px, distance of each of two lines from the middle


def placed(size: NDArray[np.float64], where: NDArray[np.float64]) -> dict[str, NDArray[Any]]:
    """Return the columns of `PLACED` from uniform numbers."""
    return {"size": size, "place": (where * _NUMBERS).astype(np.int64)}


def indent(seen: Observation, row: int) -> int:
    """Return how many spaces stand before the dashes of a row, from 0 to 40."""
    return int(session_stream(int(seen["place"]), row).integers(_SPACES + 1))


def lie(seen: Observation, lengths: Sequence[float]) -> tuple[float, list[drawing.Place]]:
    """Return the turn of lines, in radians, and the positions of their middles, in px.

    The picture is turned about its middle. A single line lies at any height; of two lines the first
    one lies in the upper half. Each is shifted along itself as far as its length allows.
    """
    rng = session_stream(int(seen["place"]), len(lengths), 2)
    turn = rng.uniform(-_TURN, _TURN)
    heights = rng.uniform(*_APART, 2) * (1, -1) if len(lengths) == 2 else rng.uniform(-100, 100, 1)
    middle = drawing.SIDE / 2
    centres = []
    shifts = rng.uniform(-1, 1, len(lengths))
    for height, length, shift in zip(heights, lengths, shifts, strict=True):
        free = max(float(np.sqrt(_REACH**2 - height**2)) - length / 2, 0.0)
        along = shift * free
        centres.append(
            (
                middle + along * cos(turn) - height * sin(turn),
                middle - along * sin(turn) - height * cos(turn),
            )
        )
    return turn, centres
