"""Tables of HSSM: `participant_id`, `rt` in seconds, `response` -1 or 1, stimuli beside them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from .account import DERIVED, Table, Tally
from .formats import Family, Format
from .tables import answers, identified, numbers, within

_HEAD = frozenset({"participant_id", "rt", "response"})
_OWN = (*_HEAD, "environment", "environment_settings")
_SHOWN: dict[str, frozenset[str]] = {
    "instrumental_learning": frozenset({"context"}),
    "two_step": frozenset({"stage", "state", "transition"}),
    "horizon": frozenset({"game", "horizon", "play"}),
    "balloon_risk": frozenset({"balloon", "type", "pump"}),
    "temporal_discounting": frozenset({"sooner_amount", "later_amount"}),
    "reversal_learning": frozenset(),
}
_TOLD_APART = frozenset[str]().union(*_SHOWN.values())


def _choices(table: Table, tally: Tally, given: Mapping[str, Any]) -> pd.DataFrame:
    """Read choices between two with their reaction times; other columns are kept."""
    table = identified(table, "participant_id", tally)
    response, outcome, raw = answers(table, "response", tally, allowed=(-1, 1))
    tally.mark(DERIVED, "actions 0 and 1, from responses -1 and 1", table, outcome == "ok")
    frame = pd.DataFrame({
        "subject": table.cells["participant_id"].astype("str"),
        "action": (response + 1) / 2, "outcome": outcome, "raw_text": raw,
        "rt_s": within(table, "rt", tally, least=0.0),
    })  # fmt: skip
    for name in table.cells.columns:
        if name in _OWN:
            continue
        values, wrong = numbers(table, str(name), tally)
        text = wrong.any() or name in ("session", "study")
        frame[str(name)] = table.cells[name] if text else values
    if "trial" not in frame:
        tally.mark(DERIVED, "trials numbered by their order", table, np.ones(len(table)))
        frame["trial"] = frame.groupby("subject", sort=False).cumcount()
    if "reward" in frame:
        frame["reward"] = frame["reward"].where(frame["action"].notna())
    return frame


HSSM = Family(
    "hssm",
    tuple(
        Format(
            "hssm",
            name,
            _HEAD | shown,
            _choices,
            _TOLD_APART - shown,
            help="choices between two with reaction times, and the experiment's columns",
        )
        for name, shown in _SHOWN.items()
    ),
)
