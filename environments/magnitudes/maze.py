"""Paths through a square grid that wind and never cross themselves."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from knownminds.environments.design import session_stream

SIDE = 20  # cells
WINDING = (1.2, 2.5)  # shortest and longest path, relative to the distance of its ends
SPREAD = 2.4  # length of the longest decoupled path, relative to the shortest
MOST = 19.0  # the ends lie at most so far apart, so that they fit into the grid

Cell = tuple[int, int]
Moves = tuple[Cell, ...]

_NAMES = {(1, 0): "right", (-1, 0): "left", (0, 1): "up", (0, -1): "down"}
_STEPS = {name: step for step, name in _NAMES.items()}
_TRIES = 20_000  # local changes that are tried on one path


def distances() -> NDArray[np.float64]:
    """Return all distances between the centres of two cells, from 1 to `MOST`, in order."""
    across = np.arange(SIDE)
    squares = np.unique(across[:, None] ** 2 + across**2)
    return np.asarray(np.sqrt(squares[(squares >= 1) & (squares <= MOST**2)].astype(float)))


@lru_cache(maxsize=256)
def path(distance: float, number: int, length: float | None = None) -> tuple[Cell, ...]:
    """Return a path whose ends lie this distance apart, cell after cell; x to the right, y up.

    Place, direction and length are drawn from the number. Unless it is given, the length in steps
    is drawn evenly from `WINDING` times the distance. It is then rounded to the nearest possible
    length: an even or an odd number, as the ends require, and at least that of the shortest way.
    The path begins as one of the shortest ways. Local changes bring it to its length; they keep its
    ends and never let it cross itself (the moves of Berg and Foerster 1981). As many further
    changes stir it at that length.

    Parameters
    ----------
    distance : One of `distances()`.
    number : Whole number from 0 on; the same one gives the same path.
    length : How many steps the path has, within one step.
    """
    square = round(distance**2)
    if not 1 <= square <= MOST**2 or not _ways(square):
        raise ValueError(
            f"Cells of the grid lie 1 to {MOST:g} apart, at the distances that whole steps across "
            f"and up make; got {distance!r}."
        )
    rng = session_stream(number, square)
    ways = _ways(square)
    across, up = ways[rng.integers(len(ways))]
    steps = across + up
    wanted = rng.uniform(*WINDING) * float(np.sqrt(square)) if length is None else length
    n_steps = max(steps + 2 * round((wanted - steps) / 2), steps)
    start = (rng.integers(SIDE - across), rng.integers(SIDE - up))
    moves = rng.permutation([0] * across + [1] * up).tolist()
    cells = [(int(start[0]), int(start[1]))]
    for move in moves:
        x, y = cells[-1]
        cells.append((x, y + 1) if move else (x + 1, y))
    cells = _wound(cells, n_steps, rng)
    across_turned, up_turned, ends_turned = rng.random(3) < 0.5
    if across_turned:
        cells = [(SIDE - 1 - x, y) for x, y in cells]
    if up_turned:
        cells = [(x, SIDE - 1 - y) for x, y in cells]
    return tuple(cells[::-1] if ends_turned else cells)


def lengths(highest: float) -> tuple[float, float]:
    """Return lowest and highest length, in steps, of paths that do not reveal their distance.

    All distances up to `highest` have paths of every such length. The lowest length is that of the
    shortest diagonal way to the farthest end; the highest is 2.4 times as much.
    """
    low = float(np.ceil(np.sqrt(2.0) * highest)) + 1
    return low, SPREAD * low


def moves_of(cells: Sequence[Cell]) -> str:
    """Return the moves from the first cell to the last in words: "3 right, 1 up"."""
    runs: list[tuple[int, str]] = []
    for (x, y), (next_x, next_y) in pairwise(cells):
        name = _NAMES[next_x - x, next_y - y]
        if runs and runs[-1][1] == name:
            runs[-1] = (runs[-1][0] + 1, name)
        else:
            runs.append((1, name))
    return ", ".join(f"{n} {name}" for n, name in runs)


def distance_of(moves: str) -> float:
    """Return the distance between the ends of the listed moves; ValueError for other texts."""
    x = y = 0
    for run in moves.split(", "):
        n, _, name = run.partition(" ")
        if not n.isdecimal() or name not in _STEPS:
            raise ValueError(f'Moves are told like "3 right, 1 up"; got {moves[:60]!r}.')
        across, up = _STEPS[name]
        x, y = x + int(n) * across, y + int(n) * up
    return float(np.sqrt(float(x * x + y * y)))


def _ways(square: int) -> list[Cell]:
    """Return the steps across and up that lead this far; the distance is given squared."""
    return [
        (across, up)
        for across in range(SIDE)
        for up in range(SIDE)
        if across * across + up * up == square
    ]


def _wound(cells: list[Cell], length: int, rng: np.random.Generator) -> list[Cell]:
    """Lengthen a path step by step, and stir it, with its ends fixed."""
    taken = set(cells)
    stirring = 2 * length
    for _ in range(_TRIES // 250):
        for position, turn in zip(rng.random(250).tolist(), rng.random(250).tolist(), strict=True):
            short = len(cells) - 1 < length
            if not short and stirring <= 0:
                return cells
            i = int(position * (len(cells) - 1))
            (x, y), (next_x, next_y) = cells[i], cells[i + 1]
            # This shifts the step from cell i to cell i + 1 sideways by one.
            side = 1 if turn < 0.5 else -1
            by_x, by_y = -side * (next_y - y), side * (next_x - x)
            one, other = (x + by_x, y + by_y), (next_x + by_x, next_y + by_y)
            if not (min(*one, *other) >= 0 and max(*one, *other) < SIDE):
                continue
            follows = i + 2 < len(cells) and cells[i + 2] == other
            precedes = i > 0 and cells[i - 1] == one
            if short and not (one in taken or other in taken):
                cells[i + 1 : i + 1] = [one, other]  # the path is two steps longer
                taken |= {one, other}
            elif follows != precedes:  # a corner is turned inside out; the length stays
                if follows and one not in taken:
                    taken ^= {cells[i + 1], one}
                    cells[i + 1] = one
                elif precedes and other not in taken:
                    taken ^= {cells[i], other}
                    cells[i] = other
            stirring -= not short
    if len(cells) - 1 < length:
        raise RuntimeError(
            f"A path of {length} steps did not fit between {cells[0]} and {cells[-1]}."
        )
    return cells
