"""Where decoupled lines lie, how they are turned."""

from __future__ import annotations

from collections.abc import Sequence
from math import cos, pi, sin
from typing import Any

import numpy as np
from numpy.typing import NDArray

from knownminds.environments.design import session_stream
from knownminds.environments.environment import Observation
from knownminds.environments.fields import Field, Fields

from . import drawing

MOST = 200  # dashes of a line
SHORTEST, LONGEST = 30.0, 440.0  # px of a line
PLACED = Fields(
    Field("size", (0.0, 1.0), "how long lines are: 0 as short as the value allows", "wording"),
    Field("place", (0, np.inf), "number from which place and turn are drawn", "wording"),
)

_NUMBERS = 2**31  # of places
_SPACES = 40  # at most, before dashes
_TURN = 40 * pi / 180  # at most, either way
_REACH = drawing.SIDE / 2 - 12  # px, from the middle of a picture to where lines end
_APART = (50.0, 100.0)  # px, of two lines from the middle


def placed(size: NDArray[np.float64], where: NDArray[np.float64]) -> dict[str, NDArray[Any]]:
    """Return the columns of `PLACED` from uniform numbers."""
    return {"size": size, "place": (where * _NUMBERS).astype(np.int64)}


def indent(seen: Observation, row: int) -> int:
    """Return how many spaces stand before the dashes of a row, from 0 to 40."""
    return int(session_stream(int(seen["place"]), row).integers(_SPACES + 1))


def lie(seen: Observation, lengths: Sequence[float]) -> tuple[float, list[drawing.Place]]:
    """Return by how much lines are turned, radians, and where their middles are, px.

    The picture is turned about its middle. A line alone lies at any height, of two the first one
    in the upper half; each is shifted along as far as its length lets it.
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
