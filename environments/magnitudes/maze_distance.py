"""Maze distance: how far apart the ends of a winding path are, in a straight line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from PIL.Image import Image

from knownminds.environments.fields import Field, Fields
from knownminds.environments.turn import Observation

from . import drawing, maze
from .decoupling import mirrored
from .magnitude import Magnitude

_NUMBERS = 2**31  # paths are drawn from one of so many streams


class MazeDistance(Magnitude):
    """How far apart, in a straight line, the two ends of a winding path are, in cells.

    The path goes through a grid of 20 x 20 cells and never crosses itself. Its length is drawn
    evenly from 1.2 to 2.5 times the distance, so that the length is no substitute for the distance,
    as far as whole steps allow: a diagonal path takes at least 1.41 times its distance. In words it
    is a list of moves. In a picture it is a black line with a dot on every cell, from a blue disc
    to a red one. Values are the distances between cells that come nearest to equal steps.
    `Magnitude` says how a session is made.

    The length of a published path gives much of the distance away. Decoupled paths of a window all
    have lengths from the same range: as many steps as the farthest distance needs, to 2.4 times as
    many. They are drawn so that they do not correlate with the distances in any window of any
    session.
    """

    name = "maze_distance"
    summary = "how far apart the ends of a winding path are, in moves, in a picture, or both"
    source = "BayesBench (Ma, Wang and Fountas 2025, arXiv 2512.02719)"
    shipped = Path(__file__).with_suffix(".toml")
    fields = Fields(
        *Magnitude.fields,
        Field("path", (0, np.inf), "number from which the path is drawn", "wording"),
    )
    n_wording = 1
    decoupled: ClassVar = (
        Fields(Field("steps", (0, np.inf), "how many steps the path has, to one", "wording")),
        1,
    )
    default_ranges: ClassVar = {"short": (3.0, 9.0), "medium": (6.0, 12.0), "long": (9.0, 15.0)}
    limits = (1.0, maze.MOST)
    ceiling = 60.0
    thought = "I add up the moves across and the moves up, and take the distance they make."

    def _make(
        self, targets: NDArray[np.float64], uniforms: NDArray[np.float64]
    ) -> dict[str, NDArray[Any]]:
        known = maze.distances()
        above = np.searchsorted(known, targets).clip(1, len(known) - 1)
        nearer = targets - known[above - 1] < known[above] - targets
        made = {
            "value": known[above - nearer],
            "path": (uniforms[:, :, 0] * _NUMBERS).astype(np.int64),
        }
        if self.stimuli == "decoupled":
            ends = [maze.lengths(self.ranges[window][1]) for window in self.windows]
            low, high = np.array(ends).T[:, :, None]
            steps = low + (high - low) * mirrored(targets, uniforms[:, :, 1])
            made["steps"] = np.round(steps).astype(np.int64)
        return made

    def _cells(self, observation: Observation) -> Sequence[maze.Cell]:
        value, number = float(observation["value"]), int(observation["path"])
        return maze.path(value, number, observation.get("steps"))

    def _text(self, observation: Observation) -> list[str]:
        return [maze.moves_of(self._cells(observation))]

    def _value_in(self, lines: Sequence[str]) -> float:
        return maze.distance_of("".join(lines))

    def shortcuts(self, observation: Observation) -> dict[str, float]:
        """Return steps and moves of the path, and the diagonal of the box around it."""
        cells = self._cells(observation)
        across, up = (max(line) - min(line) for line in zip(*cells, strict=True))
        return {
            "steps of the path": len(cells) - 1,
            "moves of the path": maze.moves_of(cells).count(",") + 1,
            "diagonal of the box around the path": float(np.hypot(across, up)),
        }

    def _drawn(self, observation: Observation) -> Image:
        return drawing.maze(self._cells(observation), float(observation["blur"]))
