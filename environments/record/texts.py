"""Columns of texts in which each text is repeated, made without looking at each row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from knownminds.environments.later import pandas as pd


def repeated(texts: Sequence[str], counts: NDArray[np.int64]) -> Any | None:
    """Return a column that repeats each text a given number of times, as pandas keeps texts.

    None if pandas keeps texts as Python objects, as it does before version 3.
    """
    kind: Any = pd.api.types.pandas_dtype("str")
    if getattr(kind, "storage", "") != "pyarrow":
        return None
    import pyarrow as pa
    from pyarrow.compute import run_end_decode

    values = pa.array(texts, pa.large_string())
    runs = pa.RunEndEncodedArray.from_arrays(pa.array(np.cumsum(counts)), values)
    return kind.__from_arrow__(run_end_decode(runs))
