"""The form in which all tests of coherence report their findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from knownminds.environments.later import pandas as pd
from knownminds.environments.record.tabled_result import TabledResult
from knownminds.inference.resampling import Resampled

NONE = Resampled(np.nan)


@dataclass(frozen=True)
class CoherenceTest(TabledResult):
    """A test of one participant's answers, with the published variant beside each row.

    Parameters
    ----------
    table : One row per reading: of (its name), value, low, high (95%), standard_error, null (value
        under the hypothesis), p_value, n, unit, published, published_low, published_high,
        published_error, excluded (counts by reason), status ("ok", or why there is no value), and
        columns of the test's own. Intervals come from resampled contexts unless the test says
        otherwise.
    contexts : The number of contexts that the test uses.
    frames : Further tables, by name.
    """

    table: pd.DataFrame
    contexts: int
    frames: Mapping[str, pd.DataFrame] = field(default_factory=dict)

    @classmethod
    def of(cls, rows: Sequence[Mapping[str, Any]], contexts: int, **frames: Any) -> CoherenceTest:
        """Return a test with these readings as its table."""
        return cls(pd.DataFrame(list(rows)), contexts, frames)

    def __getitem__(self, name: str) -> Any:
        """Return an entry of the first reading."""
        return self.table[name].iloc[0]

    def reading(self, of: str) -> Any:
        """Return the row of a reading; its columns are attributes."""
        return self.table[self.table["of"] == of].iloc[0]

    def to_frame(self) -> pd.DataFrame:
        """One row per reading."""
        return self.table.copy()


def reading(
    of: str,
    value: Resampled,
    *,
    n: int,
    unit: str = "row",
    null: float = np.nan,
    p_value: float = np.nan,
    published: Resampled = NONE,
    **more: Any,
) -> dict[str, Any]:
    """Return a row of a `CoherenceTest`; `more` has further columns of its table."""
    row: dict[str, Any] = {"of": of, **value._asdict(), "null": null, "p_value": p_value}
    row |= {"n": n, "unit": unit, "published": published.value, "published_low": published.low}
    row |= {"published_high": published.high, "published_error": published.standard_error}
    return row | {"excluded": {}, "status": "ok"} | more
