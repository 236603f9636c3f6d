"""How stable scores are: what wording moves, beside the choice of the model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from knownminds.environments import Environment, Trials
from knownminds.inference.differences import difference
from knownminds.inference.groups.crossed_levels import units_of
from knownminds.inference.stability import VarianceSplit, split_scores, split_variance
from knownminds.validation.costs.wordings import SHIPPED
from knownminds.validation.engine.parts import Part
from knownminds.validation.pages.views import WHO, Cell, Rows, ends

from .comparison import side_of
from .paper import CELL, SCORES, About, Paper, Shown, own_columns, part_of

TITLE = "How stable are the scores?"
WORDING = "template"  # the column that names the wording of a trial


TEXT = (
    "Shares of the variance of a score: between models, between wordings for all models alike, "
    "what a wording does to one model and not another, and the error of the score, which is that "
    "of its sessions and trials. Of the performance in a trial sessions and trials are separated. "
    "Test-retest is the correlation over models of two measurements in the same wording, reworded "
    "that of two in different ones, with 95% intervals. The last column says what moves a score "
    "more, wording (the second and third share together) or the model; it is certain where it is "
    "beyond the interval."
)
CONTRASTS = "What do other words change?"
CONTRASTED = (
    "Each score of each model in other words less in the shipped ones. Sessions differ in words "
    "alone, and so differences are of pairs, with correlation r and Student's 95% intervals, each "
    "by itself."
)
NOTHING = (
    "No cell was played in several wordings, so nothing can be said of how much wording moves: "
    "--paraphrases 3 asks with three."
)


def stability(trials: pd.DataFrame, about: About, paper: Paper) -> list[Part]:
    """Return the parts that split the variance of each score, and of each trial's performance.

    Scores are computed in each wording by itself, and split into model, wording, their interaction
    and what is left (see `split_scores`). Where trials have a performance, its variance is split
    into what is a session's and what a trial's, too (see `split_variance`).
    """
    answers = trials[trials[WHO].isin(about.models)]
    if answers[WORDING].nunique() < 2:
        return [Part("stability", TITLE, NOTHING)]
    of_trials, lacking = _split_trials(answers, about)
    by_wording = _by_wording(answers, about, paper)
    of_scores = _split_scores(by_wording, about.seed)
    table = Rows("What moves each score", COLUMNS, ("score",))
    of_trial = Rows("What moves the performance of a trial", COLUMNS, ("cell",))
    return [
        part_of("stability", TITLE, TEXT, (of_scores, table)),
        part_of(
            "stability_of_trials",
            "How stable is the performance of a trial?",
            " ".join(lacking),
            (of_trials, of_trial),
        ),
        part_of("wordings", CONTRASTS, CONTRASTED, contrasts_of_words(by_wording)),
    ]


def contrasts_of_words(scores: pd.DataFrame) -> Shown:
    """Return each score in other words less in the shipped ones, of pairs, and the table of it."""
    rows: list[dict[str, Any]] = []
    for (who, score), some in scores.groupby([WHO, "score"], sort=False):
        held = {
            str(name): side_of(*row)
            for name, *row in some[[WORDING, *SCORES[3:]]].itertuples(index=False)
        }
        if SHIPPED not in held:
            continue
        plain = held.pop(SHIPPED)
        for name, side in held.items():
            rows.append({WHO: who, "score": score, "words": name, **vars(difference(side, plain))})
    frame = pd.DataFrame(rows)
    columns: Mapping[str, Cell] = {
        "difference": ends(), "p": "p_value", "pairs": "shared", "r": "correlation",
    }  # fmt: skip
    return frame, Rows("Other words less the shipped ones", columns, ("score", "words", WHO))


def _by_wording(trials: pd.DataFrame, about: About, paper: Paper) -> pd.DataFrame:
    """Return the scores of all models in each wording by itself."""
    alone = replace(about, participants=about.models, known=(), truth={})
    parts = [
        paper.scores(part.reset_index(drop=True), alone).assign(**{WORDING: str(name)})
        for name, part in trials.groupby(WORDING, sort=False)
    ]
    return pd.concat(parts, ignore_index=True)


def _split_scores(scores: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Return a row for each score that two models or more have in all wordings."""
    rows = []
    for (score, cell), part in scores.groupby(["score", "cell"], sort=False):
        try:
            split = split_scores(
                part, "value", "standard_error", model=WHO, template=WORDING,
                freedom="freedom", seed=seed,
            )  # fmt: skip
        except ValueError:  # too few have a value
            continue
        if split.templates > 1:
            rows.append({"score": str(score)} | _row(str(cell), split))
    return pd.DataFrame(rows, columns=["score", *_FIELDS])


def _split_trials(trials: pd.DataFrame, about: About) -> tuple[pd.DataFrame, list[str]]:
    """Return a row for each cell whose trials have a performance, and why others have none."""
    rows: list[dict[str, Any]] = []
    lacking: list[str] = []
    for cell, part in trials.groupby(CELL, sort=False):
        environment = about.environments[str(cell)]
        if environment.performance_bounds is None or part[WORDING].nunique() < 2:
            continue
        try:
            split = split_variance(
                _scored(part, environment), "performance", model=WHO, seed=about.seed
            )
        except ValueError as error:
            lacking.append(f"{cell}: none, {error}")
            continue
        rows.append(_row(str(cell), split))
    return pd.DataFrame(rows, columns=_FIELDS), lacking


def _scored(part: pd.DataFrame, environment: Environment) -> pd.DataFrame:
    """Return the performance of each trial with its session and wording."""
    kept = own_columns(part, environment)
    record = Trials.from_frame(kept.assign(row=np.arange(len(kept))), environment=environment)
    score = np.full(len(kept), np.nan)
    score[record.frame["row"].to_numpy(dtype=int)] = environment.performance(record)
    return pd.DataFrame(
        {
            "performance": score,
            WHO: part[WHO].to_numpy(),
            "template": part[WORDING].to_numpy(),
            "session": units_of(Trials(part), ("subject", "session")).to_numpy(),
        }
    )


SHARES = ("model", "paraphrase", "interaction", "session", "residual")
_PARTS = ("retest", "reworded", "wording", "excess")
_FIELDS = [
    "cell", "models", "wordings", *SHARES,
    *(f"{name}{end}" for name in _PARTS for end in ("", "_low", "_high")), "moved_more_by",
]  # fmt: skip


def _row(cell: str, split: VarianceSplit) -> dict[str, Any]:
    row: dict[str, Any] = {"cell": cell, "models": split.models, "wordings": split.templates}
    row |= dict(split.shares.items())
    for name in _PARTS:
        part = split.parts[name]
        row |= {name: part.value, f"{name}_low": part.low, f"{name}_high": part.high}
    return row | {"moved_more_by": split.moved_more_by}


def _moved(row: Mapping[Any, Any]) -> str:
    """Say what moves a score more, and whether that is beyond the interval."""
    if row["moved_more_by"] != "open":
        return str(row["moved_more_by"])
    if not np.isfinite(row["excess"]):
        return "-"
    return f"{'wording' if row['excess'] > 0 else 'model'}, not for certain"


COLUMNS: Mapping[str, Cell] = {
    "models": "models",
    "wordings": "wordings",
    "model": "model",
    "wording": "paraphrase",
    "wording by model": "interaction",
    "session": "session",
    "rest": "residual",
    "test-retest": ends("retest", "retest_low", "retest_high"),
    "reworded": ends("reworded", "reworded_low", "reworded_high"),
    "moved more by": _moved,
}
