"""Work on many subjects in batches and threads; kernels release the interpreter's lock."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Found = TypeVar("Found")


def in_batches(
    work: Callable[[NDArray[np.int64]], Found], count: int, size: int, workers: int | None
) -> list[Found]:
    """Return the results of `work` on the positions 0 to count - 1, at most `size` at a time.

    Parameters
    ----------
    workers : Threads; None for one per core.
    """
    edges = np.linspace(0, count, -(-count // size) + 1).astype(int)
    batches = [np.arange(a, b) for a, b in pairwise(edges)]
    threads = min(workers or os.cpu_count() or 1, len(batches))
    if threads > 1:
        with ThreadPoolExecutor(threads) as pool:
            return list(pool.map(work, batches))
    return [work(batch) for batch in batches]
