"""Estimates of many subjects as the table people read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from knownminds.agents.parameters import Array
from knownminds.environments.later import pandas as pd


def subject_table(
    subjects: Sequence[str],
    names: Sequence[str],
    estimate: Array,
    interval: tuple[Array, Array],
    more: Mapping[str, Any],
) -> pd.DataFrame:
    """Return one row per subject: for each parameter NAME, NAME_low and NAME_high, then `more`.

    estimate and both ends of the interval are [N, K] on the natural scale.
    """
    low, high = interval
    columns: dict[str, Any] = {"subject": subjects}
    for k, name in enumerate(names):
        columns[name] = estimate[:, k]
        columns[f"{name}_low"], columns[f"{name}_high"] = low[:, k], high[:, k]
    return pd.DataFrame(columns | dict(more))
