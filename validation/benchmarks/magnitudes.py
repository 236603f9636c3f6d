"""The page of the magnitudes benchmark: estimates from words, pictures and both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from knownminds.environments import CONDITIONS, MODALITIES
from knownminds.inference.magnitudes.factor_evidence import FACTORS
from knownminds.inference.magnitudes.magnitude_answers import (
    BASE,
    BOTH,
    IMAGE,
    MULTIMODAL,
    TASKS,
    TEXT,
    MagnitudeAnswers,
)
from knownminds.inference.magnitudes.magnitude_composite import BAYES, MASS, ROUNDS
from knownminds.inference.magnitudes.window_slopes import window_slopes
from knownminds.inference.resampling import percentile_interval
from knownminds.validation.data.model_features import LEAST, feature_importance
from knownminds.validation.magnitudes.magnitude_page import against_error, composites, consistency
from knownminds.validation.magnitudes.magnitude_table import (
    MagnitudeTable,
    magnitude_table,
    shortened,
)
from knownminds.validation.magnitudes.magnitude_task_page import blur_weights, cue_weights
from knownminds.validation.pages.page import Column, Section, table

from . import magnitude_figures as pictures
from .comparison import SEVERAL
from .shown import WHO, beside, first_rows, interval, part, readable

if TYPE_CHECKING:
    from .registry import About

STEERED = (BASE, "verbal", "numeric", "numeric_biased")
NOISY = (BASE, "constant_noise", "gradual_noise")
LETTERS = {"S": "composite", "A": "accuracy", "E": "efficiency", "C": "consistency"}
OF_SIGNS = (
    "It counts signs, which turn easily where weights hardly differ, so that an interval of "
    "bootstraps need not hold the score."
)
NO_REPEATS = "Bias and variance are told apart where stimuli were shown several times; none were."
MOST_SHOWN = 12  # participants with a panel of their own
REPLICATES = 200  # of known minds in each participant's design
BOOTSTRAPS = (
    f"Intervals hold the middle {MASS:.0%} of {ROUNDS} bootstraps that keep the sessions, as "
    "published."
)


@dataclass(frozen=True)
class MagnitudeResult:
    """Everything that the page of magnitudes tells.

    Parameters
    ----------
    table
        See `MagnitudeTable`.
    answers
        By participant, task, condition and modality, with bootstraps.
    cells
        By participant, task, condition and modality, the cell of the plan.
    """

    table: MagnitudeTable
    answers: MagnitudeAnswers
    cells: Mapping[tuple[str, ...], str]


def sections(trials: pd.DataFrame, about: About) -> list[Section]:
    """Return the parts of the page, in the order of the paper.

    Parameters
    ----------
    trials
        Trials of the four tasks of magnitude estimation, with the columns participant, condition
        and modality.

    Raises
    ------
    ValueError
        If no trial is of magnitude estimation.
    """
    own = _own(trials)
    found = magnitude_result(own, about)
    features = None if about.features is None else Path(about.features)
    return [
        _answers_section(own),
        _regression_section(found),
        _cues_section(found),
        _steering_section(found),
        _noise_section(found),
        _errors_section(found),
        _consistency_section(found),
        _composite_section(found),
        _variants_section(found),
        _features_section(found, features, about.seed),
    ]


def _own(trials: pd.DataFrame) -> pd.DataFrame:
    place = trials["environment"] if "environment" in trials else trials["experiment"]
    own = trials[place.isin(TASKS)].copy()
    if not len(own):
        raise ValueError(
            f"The page of magnitudes reads trials of {', '.join(TASKS)}; there are none."
        )
    own["environment"] = place[own.index]
    own[WHO] = own[WHO].astype(str)
    return own.dropna(axis="columns", how="all").reset_index(drop=True)


def magnitude_result(own: pd.DataFrame, about: About) -> MagnitudeResult:
    """Compute everything that the page tells; who never answered has no row but the first."""
    if "response" not in own:  # nobody answered
        own = own.assign(response=np.nan)
    found = magnitude_table(own, by=WHO, seed=about.seed, replicates=REPLICATES, lines=0)
    answers = MagnitudeAnswers.read(own, WHO, rounds=ROUNDS, seed=about.seed)
    cells: dict[tuple[str, ...], str] = {}
    if "cell" in own:
        keys = [WHO, "environment", "condition", "modality"]
        for who, task, k, m, cell in own.drop_duplicates(keys)[[*keys, "cell"]].to_numpy().tolist():
            cells[who, task, CONDITIONS[int(k)], MODALITIES[int(m)]] = str(cell)
    return MagnitudeResult(found, answers, cells)


def scores(trials: pd.DataFrame, about: About) -> pd.DataFrame:
    """Return what participants are compared by; see `registry.Scores`."""
    return _scores(magnitude_result(_own(trials), about))


def _scores(found: MagnitudeResult) -> pd.DataFrame:
    """Return all by which models are compared, with the cells that each hangs on.

    Standard errors are half the widths of the bootstraps' intervals of 68%.
    """
    rows = pd.DataFrame(list(_every_score(found)))
    if rows.empty:
        return pd.DataFrame(columns=[WHO, "score", "cell", "value", "standard_error", "freedom"])
    width = rows.pop("high") - rows.pop("low")
    return rows.assign(standard_error=width / 2.0, freedom=np.nan)


def _every_score(found: MagnitudeResult) -> Iterator[dict[str, Any]]:
    """Yield participant, score, cell, value, low and high of each score."""
    table_, whole = found.table, SEVERAL.join(dict.fromkeys(found.cells.values()))
    row: Any
    for row in table_.cells[table_.cells["condition"] == BASE].to_dict("records"):
        where = f"{row['task']}, {row['modality']}".replace("_", " ")
        cell = _cells_of(found, row[WHO], (row["task"], BASE, row["modality"]))
        yield _score(row, f"NRMSE: {where}", cell, "error", "low", "high")
        yield _score(row, f"prior weight: {where}", cell, "prior_weight", "prior_low", "prior_high")
    for row in _slopes(found.answers):
        where = f"{row['task']}, {row['modality']}".replace("_", " ")
        cell = _cells_of(found, row[WHO], (row["task"], BASE, row["modality"]))
        yield _score(row, f"regression to the mean: {where}", cell, "value", "low", "high")
    for row in table_.cues.to_dict("records"):
        task, condition, reference = row["task"], row["condition"], row["reference"]
        words = (task, condition, TEXT)
        if (row[WHO], *words) not in found.cells:  # those of the base condition serve
            words = (task, BASE, TEXT)
        cell = _cells_of(found, row[WHO], words, (task, condition, IMAGE), (task, condition, BOTH))
        where = f"{task}, {condition}".replace("_", " ")
        if reference == "linear":
            ends = ("text_weight", "weight_low", "weight_high")
            yield _score(row, f"weight of the text: {where}", cell, *ends)
        if condition == BASE and reference in BAYES:
            name = reference.replace("_", " ")
            yield _score(row, f"RRE, {name}: {where}", cell, "efficiency", "low", "high")
    for row in table_.composite.to_dict("records"):
        yield _score(row, f"composite: {LETTERS[row['part']]}", whole, "value", "low", "high")
    for row in table_.known.drop_duplicates(WHO).to_dict("records"):
        yield _score(row, "consistency score", whole, "score", "low", "high")


def _cells_of(found: MagnitudeResult, who: str, *places: tuple[str, str, str]) -> str:
    """Name the cells in which somebody played these tasks, conditions and modalities."""
    names = (found.cells.get((who, *place), "") for place in places)
    return SEVERAL.join(dict.fromkeys(name for name in names if name))


def _score(
    row: Mapping[Any, Any], score: str, cell: str, value: str, low: str, high: str
) -> dict[str, Any]:
    ends = {"value": row[value], "low": row[low], "high": row[high]}
    return {WHO: row[WHO], "score": score, "cell": cell, **ends}


# What stands on the page, in the order of the paper.


def _answers_section(own: pd.DataFrame) -> Section:
    shown = [MODALITIES[int(k)] for k in own["modality"].astype(float)]
    condition = [CONDITIONS[int(k)].replace("_", " ") for k in own["condition"].astype(float)]
    held = own.assign(answers_to=shown, played=condition, read=readable(own).to_numpy())
    keys = [WHO, "environment", "answers_to", "played"]
    rows = held.groupby(keys, sort=False)["read"].agg(asked="size", read="sum").reset_index()
    rows["read"] = rows["read"].astype(int)
    by = [WHO, "environment", "answers_to"]
    whole = rows.groupby(by, sort=False)[["asked", "read"]].sum().reset_index()

    def cell(row: Mapping[Any, Any]) -> str:
        return f"{row['read']:,} of {row['asked']:,}" if row["read"] else "no readable answer"

    title = "Answers that could be read, of all questions: "
    whole["environment"] = whole["environment"].str.replace("_", " ")
    tables = [
        beside(title + str(task), some, "answers_to", cell)
        for task, some in whole.groupby("environment", sort=False)
    ]
    return part(
        "What was asked, and what came back",
        "Four tasks, of which three are shown as text, as picture and as both. Answers that could "
        "not be read are left out and counted; a model that sees no pictures has only texts, and "
        "whatever needs pictures has no value.",
        "answers",
        rows,
        tables,
    )


def _regression_section(found: MagnitudeResult) -> Section:
    rows = pd.DataFrame(list(_slopes(found.answers)))
    rows = rows if len(rows) else pd.DataFrame(columns=[WHO, "task", "modality", "value"])

    def cell(row: Mapping[Any, Any]) -> str:
        return interval(row["value"], row["low"], row["high"], 2)

    tables = [
        beside("Regression to the mean: " + str(task).replace("_", " "), own, "modality", cell)
        for task, own in rows.groupby("task", sort=False)
    ]
    return part(
        "Regression to the mean",
        "1 - slope of the answers on the stimuli within windows: 0 is none, 1 complete, below 0 "
        "answers are spread too far. The arrows go from the mean of the lowest and of the highest "
        "third of the stimuli of each window to the mean answer to them. " + BOOTSTRAPS,
        "regression",
        rows,
        tables,
        pictures.arrows(found.answers),
    )


def _slopes(answers: MagnitudeAnswers) -> Iterator[dict[str, Any]]:
    for who in answers.participants:
        for (_, task, condition, modality), cell in answers.of(who):
            if condition != BASE:
                continue
            values = 1.0 - window_slopes(cell)
            low, high = percentile_interval(values, MASS)
            told = {WHO: who, "task": task, "modality": modality}
            yield told | {"value": float(values[0]), "low": low, "high": high}


def _cues_section(found: MagnitudeResult) -> Section:
    cues = found.table.cues
    base = cues[cues["condition"] == BASE]

    def weight(row: Mapping[Any, Any]) -> str:
        return interval(row["text_weight"], row["weight_low"], row["weight_high"], 2)

    def efficiency(row: Mapping[Any, Any]) -> str:
        return interval(row["efficiency"], row["low"], row["high"], 2)

    named = base.assign(
        reference=base["reference"].str.replace("_", " "), task=base["task"].str.replace("_", " ")
    )
    return part(
        "Combining text and picture",
        "The weight of the text in the answers to both (linear: fitted to them; by Bayes: what "
        "the spread of the answers, or of their errors, asks for), and the efficiency RRE: error "
        "of such a combination over that of the answers; above 1 the answers are better. "
        + BOOTSTRAPS,
        "cues",
        cues,
        [
            beside("Weight of the text", named, "reference", weight, [WHO, "task"]),
            beside("RRE", named, "reference", efficiency, [WHO, "task"]),
        ]
        if len(base)
        else [],
        pictures.cue_figures(base),
    )


def _steering_section(found: MagnitudeResult) -> Section:
    cells = found.table.cells
    rows = cells[cells["condition"].isin(STEERED)]
    keep = [WHO, "task", "condition", "modality", "bias", "variance", "error", "low", "high"]
    rows = rows[[*keep, *FACTORS]].reset_index(drop=True)
    steered = rows[rows["condition"] != BASE]
    columns: list[Column] = [
        ("model", "{participant}"),
        ("task", lambda r: r["task"].replace("_", " ")),
        ("condition", lambda r: r["condition"].replace("_", " ")),
        ("answers to", "{modality}"),
        ("bias²", "{bias:.3f}"),
        ("variance", "{variance:.3f}"),
        ("NRMSE", lambda r: interval(r["error"], r["low"], r["high"])),
        ("sequential evidence", "{sequential:.2f}"),
    ]
    made = part(
        "Steering",
        "What steering does: bias and variance are the parts of the squared NRMSE; the evidence "
        "for a sequential observer is between 0 and 1. " + BOOTSTRAPS,
        "steering",
        rows,
        [first_rows("Bias, variance and sequential evidence", rows, *columns)]
        if len(steered)
        else [],
        pictures.steering_figures(rows) if len(steered) else [],
    )
    lacking = len(steered) > 0 and not rows["bias"].notna().any()
    return replace(made, sentences=(*made.sentences, NO_REPEATS)) if lacking else made


def _noise_section(found: MagnitudeResult) -> Section:
    cues = found.table.cues
    linear = cues[(cues["reference"] == "linear") & cues["condition"].isin(NOISY)]
    linear = linear.assign(image_weight=1.0 - linear["text_weight"])
    parts = []
    for task in MULTIMODAL:
        weights = blur_weights(found.answers, task, found.answers.participants)
        if len(weights):
            parts.append(weights.assign(task=task))
    rows = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()
    shown = list(found.answers.participants)[:MOST_SHOWN]
    figures = []
    if len(rows) and (rows["condition"] != BASE).any():
        for name, own in rows.groupby("task", sort=False):
            task = str(name)
            drawn = own[own["participant"].isin(shown)]
            figures.append(
                (
                    f"Weight of the text against blur, {str(task).replace('_', ' ')}: fitted "
                    "(joined) and deserved (hollow).",
                    cue_weights(drawn, shown),
                )
            )

    def cell(row: Mapping[Any, Any]) -> str:
        return interval(row["image_weight"], 1.0 - row["weight_high"], 1.0 - row["weight_low"], 2)

    named = linear.assign(
        condition=linear["condition"].str.replace("_", " "),
        task=linear["task"].str.replace("_", " "),
    )
    return part(
        "Noise: what weight do blurred pictures have?",
        "The weight of the picture in answers to both, fitted to them. Noise blurs pictures alone: "
        "where texts were not asked for again, those of the base condition serve. " + BOOTSTRAPS,
        "noise",
        rows,
        [beside("Weight of the picture", named, "condition", cell, [WHO, "task"])]
        if len(linear)
        else [],
        figures,
    )


def _errors_section(found: MagnitudeResult) -> Section:
    cells = found.table.cells
    base = cells[cells["condition"] == BASE]

    def error(row: Mapping[Any, Any]) -> str:
        return interval(row["error"], row["low"], row["high"])

    def evidence(row: Mapping[Any, Any]) -> str:
        return ", ".join(
            f"{row[factor]:.2f}" if np.isfinite(row[factor]) else "-" for factor in FACTORS
        )

    tables = []
    for task, own in base.groupby("task", sort=False):
        name = str(task).replace("_", " ")
        tables.append(beside(f"NRMSE: {name}", own, "modality", error))
        title = f"Evidence ({', '.join(FACTORS)}): {name}"
        tables.append(beside(title, own, "modality", evidence))
    return part(
        "Errors, and evidence for kinds of observers",
        "NRMSE: error in units of that of a constant answer at the middle of each window. Evidence "
        "for each factor of an observer, between 0 and 1, from the AICs of all variants. "
        + BOOTSTRAPS,
        "errors",
        cells,
        tables,
        [
            *pictures.error_figures(base),
            (
                "Error in the base condition against the evidence for a Bayesian observer, the "
                "efficiency of combining cues and the consistency score; means over tasks.",
                against_error(found.table.labelled()),
            ),
        ],
        _scores(found),
    )


def _consistency_section(found: MagnitudeResult) -> Section:
    rows = found.table.consistency
    known = found.table.known
    by = rows.groupby([WHO, "task"], sort=False)["score"].sum(min_count=5).reset_index()
    total = rows.groupby(WHO, sort=False)["score"].sum(min_count=15).reset_index()
    scores = pd.concat([by, total.assign(task="all")], ignore_index=True)
    scores["task"] = scores["task"].str.replace("_", " ")

    def cell(row: Mapping[Any, Any]) -> str:
        return f"{row['score']:+.0f}" if np.isfinite(row["score"]) else "-"

    minds: list[Column] = [
        ("model", "{participant}"),
        ("score", lambda r: interval(r["score"], r["low"], r["high"], 0)),
        ("mind", "{observer}"),
        ("expected", "{expected:+.2f}"),
        ("sd", "{sd:.2f}"),
        ("score at least the model's", "{reaching:.1%}"),
    ]
    drawn = known[known[WHO].isin(list(dict.fromkeys(known[WHO]))[:MOST_SHOWN])]
    return part(
        "Bayesian consistency score",
        "How often the prior weight grows where it should, less how often it does not: 5 "
        "comparisons a task, -15 to 15 in all. It cannot be read alone: an observer without any "
        "error earns the maximum, one that never adapts 0 on average with a wide spread, which is "
        "why known minds with the model's own noise stand beside it. A task that lacks a "
        "condition has no score. " + OF_SIGNS,
        "consistency",
        rows,
        [
            beside("Score by task", scores, "task", cell),
            table("Known minds in the same design", known, *minds),
        ],
        [
            (
                "The score (black) among those of known minds with the model's own noise: mean and "
                "2 standard deviations.",
                consistency(_with(found.table, known=drawn)),
            )
        ]
        if len(drawn)
        else [],
    )


def _composite_section(found: MagnitudeResult) -> Section:
    rows = found.table.composite

    def cell(row: Mapping[Any, Any]) -> str:
        return interval(row["value"], row["low"], row["high"])

    named = rows.assign(part=rows["part"] + " " + rows["part"].map(LETTERS))
    order = named["part"].map(lambda name: "SAEC".index(name[0]))
    named = named.iloc[np.argsort(order, kind="stable")]
    lacking = rows[(rows["missing"] != "") & (rows["part"] != "S")]
    return part(
        "The composite",
        "S is the mean of accuracy A (1 - NRMSE / 2 over tasks), efficiency E (mean of the two "
        "published references) and consistency C (the score, from 0 to 1). A part that lacks a "
        "task, a modality or a condition has no value, and so has S. " + BOOTSTRAPS,
        "composite",
        rows,
        [
            beside("Composite and its parts", named, "part", cell),
            first_rows(
                "What parts lack",
                lacking,
                ("model", "{participant}"),
                ("part", lambda r: LETTERS[r["part"]]),
                ("lacks", lambda r: shortened(r["missing"])),
            ),
        ],
        [
            (
                "The composite and its parts; what is missing is not drawn.",
                composites(found.table.labelled()),
            )
        ]
        if rows["value"].notna().any()
        else [],
    )


def _variants_section(found: MagnitudeResult) -> Section:
    fits = found.table.fits
    base = fits[fits["condition"] == BASE] if len(fits) else fits
    rows = base.copy()
    if len(rows):
        best = rows.groupby([WHO, "task", "modality"], sort=False)["aic"].transform("min")
        rows["above_best"] = rows["aic"] - best
        parameters = pd.DataFrame(rows.pop("parameters").to_list(), index=rows.index)
        rows = pd.concat([rows, parameters], axis=1)

    def cell(row: Mapping[Any, Any]) -> str:
        known = np.isfinite(row["above_best"])
        return f"{row['above_best']:.1f}" if known else str(row["status"])

    tables = []
    for (task, modality), own in (
        rows.groupby(["task", "modality"], sort=False) if len(rows) else ()
    ):
        title = "AIC above the best variant: " + f"{task}, {modality}".replace("_", " ")
        own = own.assign(variant=own["variant"].str.replace("_", " "))
        tables.append(beside(title, own, WHO, cell, ["variant"]))
    return part(
        "Variants of observers",
        "AIC of each variant of the observers in the base condition, less that of the best; the "
        "file has the parameters of each.",
        "variants",
        rows,
        tables,
    )


def _features_section(found: MagnitudeResult, features: Path | None, seed: int) -> Section:
    heading = "Which features of models go with the composite?"
    whole = found.table.composite
    whole = whole[(whole["part"] == "S") & whole["value"].notna()]
    score = whole.set_index(WHO)["value"].astype(float)
    if features is None:
        return part(
            heading,
            "No features of models were given: give a table with the column participant and a "
            "column per feature, and what they tell of the composite stands here.",
            "features",
            pd.DataFrame(columns=["feature", "importance", "low", "high"]),
        )
    known = pd.read_csv(features)
    if "release_date" in known:  # in years, which have an order
        date = pd.to_datetime(known["release_date"], errors="coerce")
        known["release_date"] = date.dt.year + date.dt.dayofyear / 366.0
    rows = feature_importance(known, score, key=WHO, seed=seed)
    if not len(rows):
        return part(
            heading,
            f"Importances take {LEAST} models at least with features and a composite; there are "
            f"{len(set(known[WHO].astype(str)) & set(score.index))}.",
            "features",
            rows,
        )
    return part(
        heading,
        "How much larger the squared error of a random forest is, as a share of the variance of "
        "the composite, when a feature of a model that it has not seen is exchanged for another "
        "model's; with Student's 95% intervals over models. So few models tell little.",
        "features",
        rows,
        [
            table(
                "Importance of features",
                rows,
                ("feature", "{feature}"),
                ("importance", lambda r: interval(r["importance"], r["low"], r["high"])),
                ("rank correlation", "{rho:.2f}"),
                ("models", "{models}"),
            )
        ],
    )


def _with(table_: MagnitudeTable, **frames: Any) -> MagnitudeTable:
    return replace(table_, **frames)
