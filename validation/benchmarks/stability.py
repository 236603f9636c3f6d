"""How stable scores are: what wording moves, beside the choice of the model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from knownminds.environments import Environment, Trials
from knownminds.inference.stability import Part, VarianceSplit, split_variance
from knownminds.validation.pages.page import Section, number, table

from .registry import CELL, PARTICIPANT, About

TITLE = "How stable are the scores?"


def stability(trials: pd.DataFrame, about: About) -> Section:
    """Return the section that splits the variance of the performance in each cell.

    Into model, wording, their interaction, session and what is left (see `split_variance`), of
    cells that models played in several wordings.
    """
    rows: list[dict[str, Any]] = []
    lacking: list[str] = []
    own = trials[trials[PARTICIPANT].isin(about.models)]
    for cell, part in own.groupby(CELL, sort=False):
        place = about.places[str(cell)]
        if place.performance_bounds is None or part["template_hash"].nunique() < 2:
            continue
        try:
            found = split_variance(
                _scored(part, place), "performance", model=PARTICIPANT, seed=about.seed
            )
        except ValueError as error:
            lacking.append(f"{cell}: none, {error}")
            continue
        rows.append(_row(str(cell), found))
    if not rows:
        return Section("stability", TITLE, [NOTHING, *lacking])
    told = pd.DataFrame(rows)
    moved = told[told["moved_more_by"] == "wording"]["cell"]
    sentences = [HOW, *lacking]
    sentences += [
        f"The performance in {cell} is moved more by the wording than by the choice of the model."
        for cell in moved
    ]
    return Section(
        "stability",
        TITLE,
        sentences,
        [
            table(
                "What moves the performance of a trial",
                told,
                ("cell", "{cell}"),
                ("models", "{models}"),
                ("wordings", "{wordings}"),
                *((name, f"{{{name}:.1%}}") for name in SHARES),
                ("test-retest", lambda row: _told(row, "retest")),
                ("reworded", lambda row: _told(row, "reworded")),
                ("moved more by", "{moved_more_by}"),
            )
        ],
        frames={"stability": told},
    )


SHARES = ("model", "paraphrase", "interaction", "session", "residual")
NOTHING = (
    "No cell was played in several wordings, so nothing can be said of how much wording moves: "
    "--paraphrases 3 asks with three."
)
HOW = (
    "Shares of the variance of the performance in a trial: between models, between wordings for "
    "all models alike, what a wording does to one model and not another, between sessions, and the "
    "rest. Test-retest is the correlation over models of two sessions in the same wording, "
    "reworded that of two in different ones, with 95% intervals."
)


def _scored(part: pd.DataFrame, place: Environment) -> pd.DataFrame:
    """Return the performance of each trial with its session and wording."""
    columns = ["environment", "subject", "session", "trial", "action", "response", "reward"]
    columns += ["outcome", *(field.name for field in place.fields)]
    kept = part[[n for n in dict.fromkeys(columns) if n in part]].reset_index(drop=True)
    record = Trials.from_frame(kept.assign(row=np.arange(len(kept))), environment=place)
    score = np.full(len(kept), np.nan)
    score[record.frame["row"].to_numpy(dtype=int)] = place.performance(record)
    return pd.DataFrame(
        {
            "performance": score,
            PARTICIPANT: part[PARTICIPANT].to_numpy(),
            "template": part["template_hash"].to_numpy(),
            "session": part["subject"].astype(str).to_numpy(),
        }
    )


def _row(cell: str, found: VarianceSplit) -> dict[str, Any]:
    row: dict[str, Any] = {"cell": cell, "models": found.models, "wordings": found.templates}
    row |= found.shares
    for name in ("retest", "reworded", "wording", "excess"):
        part: Part = getattr(found, name)
        row |= {name: part.value, f"{name}_low": part.low, f"{name}_high": part.high}
    return row | {"moved_more_by": found.moved_more_by}


def _told(row: Any, name: str) -> str:
    if not np.isfinite(row[name]):
        return "-"
    return f"{number(row[name], 2)} ({number(row[f'{name}_low'], 2)} to " + (
        f"{number(row[f'{name}_high'], 2)})"
    )
