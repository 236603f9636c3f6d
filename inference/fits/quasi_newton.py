"""Minimise many small smooth functions at once, each with its BFGS."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from knownminds.agents.compiled import compiled
from knownminds.agents.parameters import Array

# (z[M, K], rows[M]) -> values[M], gradients[M, K]; `rows` says which problems are requested.
Objective = Callable[[Array, NDArray[np.int64]], tuple[Array, Array]]

SUFFICIENT = 1e-4  # Armijo's share of the decrease that the slope promises
LONGEST_STEP = 2.0  # in units of `scale`, per coordinate and iteration
MOST_HALVINGS = 30
MOST_ROUNDS = 200
ARRIVED = 1e-10  # a search ends if it promises to decrease its value by less


@compiled()
def _advance(rows, trial, value, gradient, scale, box, tolerance, state, done):  # type: ignore[no-untyped-def]
    """Judge each trial point and propose the next; writes `trial` and `done` in place.

    state holds per problem: point, value, gradient, inverse Hessian, direction, step, halvings.
    """
    point, best, slope, inverse, direction, step, halvings = state
    k = point.shape[1]
    move, turn, product = np.empty(k), np.empty(k), np.empty(k)
    for m in range(len(rows)):
        q = rows[m]
        first = halvings[q] < 0
        if not first:
            promised = 0.0
            for i in range(k):
                promised += slope[q, i] * (trial[m, i] - point[q, i])
            # A gain below rounding error counts as reached, or the search would never end.
            limit = best[q] + SUFFICIENT * promised + 1e-13 * abs(best[q])
            if not value[m] <= limit:
                halvings[q] += 1
                if halvings[q] > MOST_HALVINGS:
                    done[m] = 2
                    continue
                step[q] *= 0.5 if halvings[q] < 4 else 0.1
                for i in range(k):
                    low, high = box[0, i] - box[1, i], box[0, i] + box[1, i]
                    shifted = point[q, i] + step[q] * direction[q, i]
                    trial[m, i] = min(max(shifted, low), high)
                continue
            curvature, size = 0.0, 0.0
            for i in range(k):
                move[i] = trial[m, i] - point[q, i]
                turn[i] = gradient[m, i] - slope[q, i]
                curvature += move[i] * turn[i]
            for i in range(k):
                product[i] = 0.0
                for j in range(k):
                    product[i] += inverse[q, i, j] * turn[j]
                size += turn[i] * product[i]
            if curvature > 1e-12:
                for i in range(k):
                    for j in range(k):
                        inverse[q, i, j] += (1.0 + size / curvature) * move[i] * move[
                            j
                        ] / curvature - (product[i] * move[j] + move[i] * product[j]) / curvature
        for i in range(k):
            point[q, i] = trial[m, i]
            slope[q, i] = gradient[m, i]
        best[q] = value[m]
        halvings[q] = 0
        if not np.isfinite(value[m]):
            done[m] = 2
            continue

        # This is the next direction; a coordinate that presses against the box stays where it is.
        decrease, largest, steepest = 0.0, 0.0, 0.0
        for i in range(k):
            held = abs(point[q, i] - box[0, i]) >= box[1, i] and (
                slope[q, i] * (point[q, i] - box[0, i]) < 0.0
            )
            direction[q, i] = 0.0
            if not held:
                for j in range(k):
                    direction[q, i] -= inverse[q, i, j] * slope[q, j]
                steepest = max(steepest, abs(slope[q, i]) * scale[i])
            decrease -= direction[q, i] * slope[q, i]
        if decrease <= 0.0:
            decrease = 0.0
            for i in range(k):
                for j in range(k):
                    inverse[q, i, j] = scale[i] * scale[i] if i == j else 0.0
                held = abs(point[q, i] - box[0, i]) >= box[1, i] and (
                    slope[q, i] * (point[q, i] - box[0, i]) < 0.0
                )
                direction[q, i] = 0.0 if held else -scale[i] * scale[i] * slope[q, i]
                decrease -= direction[q, i] * slope[q, i]
        for i in range(k):
            largest = max(largest, abs(direction[q, i]) / scale[i])
        if decrease <= tolerance and steepest <= np.sqrt(tolerance) * 10.0:
            done[m] = 1
            continue
        step[q] = min(1.0, LONGEST_STEP / largest)
        for i in range(k):
            shift = step[q] * direction[q, i]
            low, high = box[0, i] - box[1, i], box[0, i] + box[1, i]
            trial[m, i] = min(max(point[q, i] + shift, low), high)


def minimise(
    objective: Objective, starts: Array, scale: Array, *, centre: Array, reach: Array
) -> tuple[Array, Array]:
    """Minimise from starts[M, K], all problems in step, and drop problems that have arrived.

    Parameters
    ----------
    objective : Values and gradients of the requested problems; called with shrinking sets of rows.
    scale : Natural length of each coordinate; its square starts the inverse Hessian.
    centre, reach : The search stays within centre +- reach, coordinate by coordinate.

    Returns
    -------
    The end of each problem's search, z [M, K], and its value there, [M].

    Notes
    -----
    The method is BFGS with a backtracking (Armijo) line search: Nocedal and Wright (2006), chapters
    3 and 6.
    """
    m, k = starts.shape
    trial = starts.copy()
    state = (
        starts.copy(),
        np.full(m, np.inf),
        np.zeros((m, k)),
        np.tile(np.diag(scale**2), (m, 1, 1)),
        np.zeros((m, k)),
        np.ones(m),
        np.full(m, -1),
    )
    rows = np.arange(m)
    box = np.stack([centre, reach])
    for _ in range(MOST_ROUNDS):
        if not len(rows):
            break
        value, gradient = objective(trial, rows)
        done = np.zeros(len(rows), dtype=np.int64)
        _advance(rows, trial, value, gradient, scale, box, ARRIVED, state, done)
        if done.any():
            rows, trial = rows[done == 0], trial[done == 0]
    return state[0], state[1]
