"""People's reproductions of durations, in ranges of their own that are shorter than ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from .account import DERIVED, TOLD, Table, Tally
from .formats import Family, Format
from .tables import answers, identified, stimuli

SCALE = 20.0  # `duration` takes 5 s and more; the shortest of theirs is .3 s
_RANGES = {"short": (6.0, 16.22), "medium": (26.66, 72.04), "long": (118.42, 320.0)}
_MIXED = {"short": (6.0, 320.0), "medium": (321.0, 322.0), "long": (323.0, 324.0)}


def _reproductions(table: Table, tally: Tally, given: Mapping[str, Any]) -> pd.DataFrame:
    """Read stimulus and reproduction in seconds; both are multiplied by `SCALE`."""
    kinds = sorted({str(kind).rpartition("/")[2] for kind in table.cells["exp"].dropna()})
    if len(kinds) > 1:
        raise ValueError(
            f"Settings belong to one experiment; {table.file} has {' and '.join(kinds)}, of other "
            "ranges each. Import one at a time: --where exp=Aud/Block."
        )
    table, shown = stimuli(
        identified(identified(table, "sub", tally), "exp", tally),
        tally,
        block={"allowed": (1, 2, 3)},
        duration={"least": 0.25, "most": 30.0},
    )
    response, outcome, raw = answers(table, "reproduction", tally, least=0.0, most=30.0)
    subject = table.cells["sub"].astype("str")
    mixed = kinds == ["Mix"]
    window = np.zeros(len(table)) if mixed else shown["block"] - 1
    tally.add(TOLD, f"seconds are multiplied by {SCALE:g}, in `value` and `response` alike")
    frame = pd.DataFrame({"subject": subject, "window": window.astype(np.int64)})
    turn = frame.groupby("subject", sort=False)["window"].diff().fillna(0) != 0
    stretch = turn.groupby(subject, sort=False).cumsum().astype(np.int64)
    tally.mark(DERIVED, "stretches of one range numbered, since ranges come back", table, turn)
    return frame.assign(
        trial=subject.groupby(subject, sort=False).cumcount(),
        value=SCALE * shown["duration"], response=SCALE * response, outcome=outcome, raw_text=raw,
        modality=0, blur=0.0, stretch=stretch, exp=table.cells["exp"],
        item=frame.groupby(["subject", "window"], sort=False).cumcount(), times=SCALE,
    )  # fmt: skip


def _ranges(frame: pd.DataFrame, tables: Sequence[Table]) -> dict[str, Any]:
    mixed = frame["exp"].str.endswith("/Mix").all()
    told = _MIXED if mixed else _RANGES
    return {
        "ranges": {name: list(ends) for name, ends in told.items()},
        "windows": ["short"] if mixed else ["short", "medium", "long"],
        "n_values": 9 if mixed else 3,
        "repeats": 30,
    }


DURATIONS = Family(
    "durations",
    (
        Format(
            "durations",
            "duration",
            frozenset({"block", "duration", "reproduction", "exp", "sub"}),
            _reproductions,
            settings=_ranges,
            help="people's reproductions in seconds; one experiment with --where",
        ),
    ),
)
