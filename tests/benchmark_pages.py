"""What the tests of the benchmarks' pages share."""

from collections.abc import Callable, Iterable

import pandas as pd


def everyone_everywhere(
    answers: Callable[[str, str, int], pd.DataFrame],
    minds: Iterable[str],
    cells: Iterable[str],
    step: int,
) -> pd.DataFrame:
    """Join what each agent did in each cell, with seeds `step` apart from cell to cell."""
    who = tuple(minds)
    parts = [answers(one, cell, step * k + j) for k, cell in enumerate(cells)
             for j, one in enumerate(who)]  # fmt: skip
    return pd.concat(parts, ignore_index=True)
