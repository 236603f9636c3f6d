"""What a reveal says of evidence that should not matter, and of wordings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from knownminds.validation.pages.page import counted

if TYPE_CHECKING:
    from .revealed import Revealed

EXACT = 1e-6  # below which a difference is rounding
LIKELIEST = "likeliest outcome"
EVIDENCE = {"earlier outcome": "earlier outcomes", "idle fact": "idle facts"}


def idle_sentences(revealed: Revealed, named: Mapping[str, str]) -> list[str]:
    """Say by which evidence that should not matter each model is moved, beyond the interval."""
    told = []
    for model, own in revealed.shifts.groupby("model", sort=False):
        known = own[np.isfinite(own["low"])]
        if not len(known):
            continue
        apart = (known["low"] > 0) | (known["high"] < 0)
        moved = known[apart & (known["value"].abs() > EXACT)]
        name, total = named[str(model)], counted(len(known), "kind")
        if not len(moved):
            told.append(
                f"{name} is not moved beyond the 95% interval by any of {total} of evidence that "
                "should not matter."
            )
            continue
        what = ", ".join(
            f"{EVIDENCE[row['evidence']]} in {row['scenario']} ({row['value']:+.3f})"
            for row in moved.to_dict("records")
        )
        told.append(
            f"{name} is moved beyond the 95% interval by {len(moved)} of {total} of evidence that "
            f"should not matter: {what}."
        )
    return told


def idle_lines(revealed: Revealed) -> list[str]:
    """Say of each kind of evidence that should not matter how far it moves each model."""
    return [
        f"{row['model']}: once {EVIDENCE[row['evidence']]} in {row['scenario']} name an outcome, "
        f"it is believed in {row['value']:+.3f} more ({row['low']:+.3f} to {row['high']:+.3f}, "
        f"{counted(row['contexts'], 'context')})"
        for row in revealed.shifts.to_dict("records")
    ]


def wording_sentences(revealed: Revealed, named: Mapping[str, str]) -> list[str]:
    """Say of each model that was asked in several wordings what these move."""
    told = []
    for model, beliefs in revealed.reworded.items():
        name = named[model]
        if set(beliefs.sources) == {"top-k"}:
            told.append(
                f"{name}: what wordings move is not split for top-k tables, since what they leave "
                "open is no sampling error."
            )
            continue
        own = whole_of(revealed.wording_parts, model, LIKELIEST)
        if not len(own):
            told.append(
                f"{name}: fewer than two contexts have a belief in every wording, so that nothing "
                "is split."
            )
            continue
        parts = own.set_index("part")
        size = (
            f"{counted(int(own['contexts'].iloc[0]), 'context')} in "
            f"{counted(int(own['wordings'].iloc[0]), 'wording')}"
        )
        if not np.isfinite(parts["share"]).all():
            told.append(
                f"{name}: the belief in the likeliest outcome is off by as much in every context "
                f"and wording ({size})."
            )
            continue
        share = {part: f"{value:.1%}" for part, value in parts["share"].items()}
        told.append(
            f"{name}: of the variance of the belief in the likeliest outcome, "
            f"{share['contexts']} is between contexts, {share['wordings']} between wordings in all "
            f"contexts alike, {share['wordings by context']} what a wording does in one context "
            f"and not in another, and {share['sampling']} sampling ({size})."
        )
    return told


def whole_of(rows: pd.DataFrame, model: str, value: str) -> pd.DataFrame:
    """Return the rows of a model and value over all scenarios that it was asked."""
    if not len(rows):
        return rows
    own = rows[(rows["model"] == model) & (rows["value"] == value)]
    return own[own["scenario"] == own["scenario"].iloc[-1]] if len(own) else own
