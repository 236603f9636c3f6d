from itertools import pairwise

import numpy as np

from knownminds.environments.magnitudes import maze

DISTANCES = maze.distances()


def paths(n=120):
    return [
        (d, maze.path(d, i))
        for i, d in zip(range(n), np.resize(DISTANCES, n).tolist(), strict=True)
    ]


def test_a_path_goes_from_cell_to_neighbouring_cell_and_never_crosses_itself():
    for distance, cells in paths():
        assert len(set(cells)) == len(cells)
        assert all(0 <= x < 20 and 0 <= y < 20 for x, y in cells)
        assert all(abs(a - c) + abs(b - d) == 1 for (a, b), (c, d) in pairwise(cells))
        (x, y), (end_x, end_y) = cells[0], cells[-1]
        assert np.sqrt(float((end_x - x) ** 2 + (end_y - y) ** 2)) == distance


def test_its_length_is_drawn_evenly_and_says_little_of_the_distance():
    ratios = np.array([(len(maze.path(15.0, n)) - 1) / 15 for n in range(400)])
    # 15 = (15, 0) or (12, 9), whose shortest way is 1.4 times as long: half of the paths cannot
    # be shorter. Lengths are odd, so that a ratio is within 1/15 of what was drawn.
    assert ratios.min() >= 1.2 - 1 / 15
    assert ratios.max() <= 2.5 + 1 / 15
    # Four standard errors of a share of 400 are at most .1.
    free = np.mean(np.random.default_rng(0).uniform(1.2, 2.5, 100_000) > 1.85)
    assert abs(np.mean(ratios > 1.85) - free) < 0.1
