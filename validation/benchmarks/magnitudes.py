"""Estimates of magnitudes from words, pictures and both, after BayesBench."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from knownminds.environments import CONDITIONS, MODALITIES
from knownminds.inference.magnitudes.consistency_score import MOST, REPLICATES, slopes
from knownminds.inference.magnitudes.cue_combination import MEANINGS
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
from knownminds.inference.resampling import percentile_interval
from knownminds.validation.magnitudes.magnitude_frames import (
    MagnitudeFrames,
    magnitude_frames,
    whole_modality,
)

from . import magnitude_figures as pictures
from .features import features_part
from .paper import CELL, SEVERAL, About, Answers, Paper, Shown, counted_answers, joined
from .views import WHO, Cell, Curves, Dots, Draw, Grid, Rows, ends

STEERED = (BASE, "verbal", "numeric", "numeric_biased")
NOISY = (BASE, "constant_noise", "gradual_noise")
PARTS = {"S": "composite", "A": "accuracy", "E": "efficiency", "C": "consistency"}
LACKS = 2  # missing things that are written for each part of the composite

PAPER = Paper("magnitudes", "Magnitudes: estimates from words, pictures and both", "BayesBench")


@PAPER.prepare
def prepare(trials: pd.DataFrame, about: About) -> pd.DataFrame:
    """Return the trials of magnitude estimation, with what was shown and in which condition."""
    place = trials["environment"] if "environment" in trials else trials["experiment"]
    own = trials[place.isin(TASKS)].copy()
    if not len(own):
        raise ValueError(
            f"The page of magnitudes reads trials of {', '.join(TASKS)}; there are none."
        )
    own["environment"] = place[own.index]
    own[WHO] = own[WHO].astype(str)
    own = own.dropna(axis="columns", how="all").reset_index(drop=True)
    if "response" not in own:  # nobody answered
        own = own.assign(response=np.nan)
    return own.assign(
        task=own["environment"],
        answers_to=[MODALITIES[int(k)] for k in own["modality"].astype(float)],
        played=[CONDITIONS[int(k)] for k in own["condition"].astype(float)],
    )


Place = tuple[str, str, str, str]  # participant, task, condition, modality


class Found(NamedTuple):
    """All that is computed once: answers with bootstraps, frames, and the cell of each place."""

    answers: MagnitudeAnswers
    frames: MagnitudeFrames
    cells: Mapping[Place, str]

    def cell(self, who: str, *places: tuple[str, str, str]) -> str:
        """Name the cells in which somebody played these tasks, conditions and modalities."""
        names = (self.cells.get((who, *place), "") for place in places)
        return SEVERAL.join(dict.fromkeys(name for name in names if name))


def found(data: Answers) -> Found:
    """Return what all parts are made of."""
    about, trials = data.about, data.trials
    trials = trials.drop(columns=["task", "answers_to", "played"])
    rounds = int(about.option("bootstraps", ROUNDS))
    answers = MagnitudeAnswers.read(trials, WHO, rounds=rounds, seed=about.seed)
    frames = magnitude_frames(
        answers,
        mass=about.option("mass", MASS),
        replicates=about.option("replicates", REPLICATES),
        lines=about.option("lines", 0),
        seed=about.seed,
    )
    names = [WHO, "task", "played", "answers_to"]
    first = data.trials.drop_duplicates(names)
    cells = dict(zip(map(tuple, first[names].to_numpy()), first[CELL].astype(str), strict=True))
    return Found(answers, frames, cells)


def scored(
    data: Answers, rows: pd.DataFrame, score: str, value: str, low: str, high: str
) -> pd.DataFrame:
    """Return rows of the base condition with a score; its error is half of the 68% interval."""
    everything: Found = data.once(found)
    named = (rows["task"] + ", " + rows["modality"]).str.replace("_", " ")
    cells = [
        everything.cell(row[WHO], (row["task"], BASE, row["modality"]))
        for row in rows.to_dict("records")
    ]
    return _with_score(rows, f"{score}: " + named, cells, value, low, high)


def _with_score(
    rows: pd.DataFrame, score: Any, cells: Any, value: str, low: str, high: str
) -> pd.DataFrame:
    ends_ = {"value": rows[value], "low": rows[low], "high": rows[high]}
    error = (ends_["high"] - ends_["low"]) / 2.0
    return rows.assign(score=score, **{CELL: cells}, **ends_, standard_error=error, freedom=np.nan)


def base_rows(data: Answers) -> pd.DataFrame:
    """Return the cells of the base condition."""
    cells: pd.DataFrame = data.once(found).frames.cells
    return cells[cells["condition"] == BASE].reset_index(drop=True)


@PAPER.part("What was asked, and what came back", compared=False)
def answers(data: Answers) -> Shown:
    """Four tasks, of which three are shown as text, as picture and as both. Answers that could not
    be read are left out and counted; a model that sees no pictures has only texts, and whatever
    needs pictures has no value. Intervals on this page are percentiles of bootstraps that keep the
    sessions; as published they hold the middle 68%.
    """
    return counted_answers(data.trials, "task", "played", "answers_to")


@PAPER.part("Regression to the mean")
def regression(data: Answers) -> Shown:
    """1 - slope of the answers on the stimuli within windows: 0 is none, 1 complete; below 0
    answers are spread too far. The arrows go from the mean of the lowest and of the highest third
    of the stimuli of each window to the mean answer to them.
    """
    everything: Found = data.once(found)
    mass = data.about.option("mass", MASS)
    rows = []
    for who in everything.answers.participants:
        for (_, task, condition, modality), cell in everything.answers.of(who):
            if condition == BASE:
                values = 1.0 - slopes(cell)[0]
                low, high = percentile_interval(values, mass)
                row = {WHO: who, "task": task, "modality": modality}
                rows.append(row | {"value": float(values[0]), "low": low, "high": high})
    frame = pd.DataFrame(rows)
    if not len(frame):
        return (frame,)
    frame = scored(data, frame, "regression to the mean", "value", "low", "high")
    arrows = Draw(
        "Regression to the mean in the base condition, with all that a task shows: from the mean "
        "of low and of high stimuli to the mean answer, a colour per window.",
        pictures.draw_arrows,
        of=pictures.arrows(everything.answers),
    )
    return frame, Grid("Regression to the mean: {by}", "modality", by="task"), arrows


@PAPER.part("Combining text and picture")
def cues(data: Answers) -> Shown:
    """The weight of the text in the answers to both (linear: fitted to them; by Bayes: what the
    spread of the answers, or of their errors, asks for), and the efficiency RRE: error of such a
    combination over that of the answers; above 1 the answers are better.
    """
    everything: Found = data.once(found)
    rows = everything.frames.cues
    parts = [rows]
    linear = rows[rows["reference"] == "linear"]
    names = (linear["task"] + ", " + linear["condition"]).str.replace("_", " ")
    score = "weight of the text: " + names
    places = [_of_both(everything, row) for row in linear.to_dict("records")]
    weights = ("text_weight", "weight_low", "weight_high")
    parts.append(_with_score(linear, score, places, *weights).assign(quantity="weight"))
    bayes = rows[(rows["condition"] == BASE) & rows["reference"].isin(BAYES)]
    score = "RRE, " + (bayes["reference"] + ": " + bayes["task"] + ", " + BASE)
    places = [_of_both(everything, row) for row in bayes.to_dict("records")]
    names = score.str.replace("_", " ")
    parts.append(
        _with_score(bayes, names, places, "efficiency", "low", "high").assign(quantity="RRE")
    )
    base = {"condition": BASE}
    weight, efficiency = ends(*weights), ends("efficiency")
    lines = (WHO, "task")
    meanings = " ".join(f"{name.replace('_', ' ')}: {what}." for name, what in MEANINGS.items())
    return (
        joined(parts[1:]),
        meanings,
        Grid("Weight of the text", "reference", lines, weight, where=base, of=rows),
        Grid("RRE", "reference", lines, efficiency, where=base, of=rows),
        Dots("Weight of the text in combined answers, by task: fitted, and as references have it.",
             "weight of the text", "task", "reference", WHO, *weights, where=base, of=rows),
        Dots("Efficiency RRE by task and reference; above the line the answers are better.",
             "RRE", "task", "reference", value="efficiency", null=1.0, where=base, of=rows),
    )  # fmt: skip


def _of_both(everything: Found, row: Mapping[Any, Any]) -> str:
    """Name the cells of words, pictures and both in a condition; the base words may serve."""
    task, condition = row["task"], row["condition"]
    words = (task, condition, TEXT)
    if (row[WHO], *words) not in everything.cells:
        words = (task, BASE, TEXT)
    return everything.cell(row[WHO], words, (task, condition, IMAGE), (task, condition, BOTH))


@PAPER.part("Steering", compared=False)
def steering(data: Answers) -> Shown:
    """What steering does: bias and variance are the parts of the squared NRMSE, told apart where
    stimuli were shown several times; the evidence for a sequential observer is between 0 and 1.
    """
    cells = data.once(found).frames.cells
    keep = [WHO, "task", "condition", "modality", "bias", "variance", "error", "low", "high"]
    rows = cells[cells["condition"].isin(STEERED)][[*keep, *FACTORS]].reset_index(drop=True)
    if not (rows["condition"] != BASE).any():
        return rows, "No condition that steers was played."
    columns: Mapping[str, Cell] = {
        "bias²": "bias", "variance": "variance", "NRMSE": ends("error"),
        "sequential evidence": "sequential",
    }  # fmt: skip
    whole = rows[rows["modality"] == rows["task"].map(whole_modality)].assign(none=np.nan)
    captions = {
        "bias": "Bias (squared, a part of the squared NRMSE) under steering, by task.",
        "variance": "Variance (the other part) under steering, by task.",
        "sequential": "Evidence for a sequential observer under steering, by task.",
    }
    return (
        rows,
        Rows("Bias, variance and sequential evidence", columns, tuple(keep[:4])),
        *(
            Dots(caption, name, "task", "condition", WHO, name, "none", "none", of=whole)
            for name, caption in captions.items()
        ),
    )


@PAPER.part("Noise: what weight do blurred pictures have?", compared=False)
def noise(data: Answers) -> Shown:
    """The weight of the picture in answers to both, fitted to them. Noise blurs pictures alone:
    where texts were not asked for again, those of the base condition serve.
    """
    everything: Found = data.once(found)
    weights = pictures.blur_weights(everything.answers, MULTIMODAL)
    rows = everything.frames.cues
    linear = rows[(rows["reference"] == "linear") & rows["condition"].isin(NOISY)]
    linear = linear.assign(
        value=1.0 - linear["text_weight"],
        low=1.0 - linear["weight_high"],
        high=1.0 - linear["weight_low"],
    )
    views = [Grid("Weight of the picture", "condition", (WHO, "task"), of=linear)]
    if not len(weights) or not (weights["condition"] != BASE).any():
        return weights, *views
    curves = Curves(
        "Weight of the text against blur: {by}. Fitted (joined), and what the errors of the "
        "answers to each deserve by inverse variances (hollow).",
        ("blur (px)", "weight of the text"), "blur", "text_weight", (WHO,), ("condition",),
        hollow="deserved", by="task",
    )  # fmt: skip
    return weights, *views, curves


@PAPER.part("Errors, and evidence for kinds of observers")
def errors(data: Answers) -> Shown:
    """NRMSE: error in units of that of a constant answer at the middle of each window. Evidence for
    each factor of an observer, between 0 and 1, from the AICs of all variants. It is a share of
    likelihoods at their maxima, and a straight line shows some by noise alone.
    """
    rows = base_rows(data)
    caption = (
        "NRMSE in the base condition by task and modality, with bootstrap intervals; grey line: a "
        "constant answer at the middle of each window."
    )
    columns: Mapping[str, Cell] = {name: name for name in FACTORS}
    whole: Mapping[str, Cell] = {
        "answers": "n", "missing": "missing", "at an end": "at_an_end", "NRMSE": ends("error"),
        "bias²": "bias", "variance": "variance", **columns,
    }  # fmt: skip
    return (
        scored(data, rows, "NRMSE", "error", "low", "high"),
        Rows("Errors and observers, base condition", whole, (WHO, "task", "modality"), of=rows),
        Dots(caption, "NRMSE", "task", "modality", value="error", null=1.0, of=rows),
        Draw(
            "Error in the base condition against the evidence for a Bayesian observer, the "
            "efficiency of combining cues and the consistency score; means over tasks.",
            pictures.against_error, of=pictures.summary(data.once(found).frames),
        ),
    )  # fmt: skip


@PAPER.part("Prior weights")
def priors(data: Answers) -> Shown:
    """Weight of the prior of the static Bayesian observer fitted to the answers, by condition."""
    cells = data.once(found).frames.cells
    weight = ("prior_weight", "prior_low", "prior_high")
    return (
        scored(data, base_rows(data), "prior weight", *weight),
        Grid("Prior weight", "condition", (WHO, "task", "modality"), ends(*weight), of=cells),
        Dots(
            "Prior weight by condition: {by}.", "prior weight", "modality", "condition", WHO,
            *weight, of=cells, by="task",
        ),
    )  # fmt: skip


@PAPER.part("Every cell", compared=False)
def conditions(data: Answers) -> Shown:
    """Error and prior weight in every condition; the file has the evidence for each factor too."""
    columns: Mapping[str, Cell] = {
        "answers": "n", "missing": "missing", "NRMSE": ends("error"), "bias²": "bias",
        "variance": "variance", "prior weight": ends("prior_weight", "prior_low", "prior_high"),
    }  # fmt: skip
    rows = data.once(found).frames.cells
    return rows, Rows("Errors by condition", columns, (WHO, "task", "condition", "modality"))


@PAPER.part(
    "Evidence for a Bayesian observer, beside that of straight lines", compared=False, optional=True
)
def evidence(data: Answers) -> Shown:
    """Evidence in the base condition, and that of straight lines, each fitted to the participant
    and answering the same stimuli; p is the share of them, with the participant, that show as much
    or more. `score` simulates the lines; a benchmark of many participants leaves them out.
    """
    rows = data.once(found).frames.evidence
    columns: Mapping[str, Cell] = {
        "evidence": "evidence", "lines, 5%": "low", "lines, 95%": "high", "p": "p",
        "lines": "lines",
    }  # fmt: skip
    return rows, Rows("Evidence for a Bayesian observer", columns, (WHO, "task"))


@PAPER.part("Bayesian consistency score")
def consistency(data: Answers) -> Shown:
    """How often the prior weight grows where it should, less how often it does not: 5 comparisons a
    task, -15 to 15 in all. It cannot be read alone: an observer without any error earns the
    maximum, one that never adapts 0 on average with a wide spread, which is why known minds with
    the model's own noise stand beside it. A task that lacks a condition has no score. It counts
    signs, which turn easily where weights hardly differ, so that an interval of bootstraps need not
    hold the score.
    """
    everything: Found = data.once(found)
    rows, known = everything.frames.consistency, everything.frames.known
    by = rows.groupby([WHO, "task"], sort=False)["score"].sum(min_count=5).reset_index()
    total = rows.groupby(WHO, sort=False)["score"].sum(min_count=15).reset_index()
    totals = joined([by, total.assign(task="all")]).rename(columns={"score": "sum"})
    minds: Mapping[str, Cell] = {
        "score": ends("score"), "expected": "expected", "sd": "sd",
        "share scoring at least as much": "reaching",
    }  # fmt: skip
    shifts: Mapping[str, Cell] = {
        "base": "base", "ablation": "weight", "score": "score", "why none": lambda r: r["reason"],
    }  # fmt: skip
    compared = known.drop_duplicates(WHO)
    whole = SEVERAL.join(dict.fromkeys(everything.cells.values()))
    return (
        _with_score(compared, "consistency score", whole, "score", "low", "high"),
        Grid("Score by task", "task", cell="sum", of=totals),
        Rows("Known minds in the same design", minds, (WHO, "observer"), of=known),
        Rows("Prior weights and shifts", shifts, (WHO, "task", "ablation", "modality"), of=rows),
        Draw(
            "The score (black) among those of known minds with the model's own noise: mean and 2 "
            "standard deviations.",
            partial(pictures.draw_consistency, most=MOST), of=known,
        ),
    )  # fmt: skip


@PAPER.part("The composite")
def composite(data: Answers) -> Shown:
    """S is the mean of accuracy A (1 - NRMSE / 2 over tasks), efficiency E (mean of the two
    published references) and consistency C (the score, from 0 to 1). A part that lacks a task, a
    modality or a condition has no value, and so has S.
    """
    everything: Found = data.once(found)
    rows = everything.frames.composite
    order = rows["part"].map(lambda part: "SAEC".index(part))
    rows = rows.iloc[np.argsort(order, kind="stable")].reset_index(drop=True)
    rows = rows.assign(name=rows["part"] + " " + rows["part"].map(PARTS))
    whole = SEVERAL.join(dict.fromkeys(everything.cells.values()))
    score = "composite: " + rows["part"].map(PARTS)
    lacking = rows[(rows["missing"] != "") & (rows["part"] != "S")]
    return (
        _with_score(rows, score, whole, "value", "low", "high"),
        Grid("Composite and its parts", "name"),
        Rows("What parts lack", {"lacks": _lacking}, (WHO, "name"), of=lacking),
        Dots("The composite and its parts; what is missing is not drawn.", "value", "name"),
    )


def _lacking(row: Mapping[Any, Any]) -> str:
    """Return the first of the things that are missing, and how many there are more."""
    lacks = str(row["missing"]).split("; ")
    more = [f"and {len(lacks) - LACKS} more"] if len(lacks) > LACKS else []
    return "; ".join([*lacks[:LACKS], *more])


@PAPER.part("Variants of observers", compared=False)
def variants(data: Answers) -> Shown:
    """AIC of each variant of the observers in the base condition, less that of the best; the file
    has the parameters of each.
    """
    fits = data.once(found).frames.fits
    rows = fits[fits["condition"] == BASE].reset_index(drop=True)
    if not len(rows):
        return (rows,)
    best = rows.groupby([WHO, "task", "modality"], sort=False)["aic"].transform("min")
    rows["above_best"] = rows["aic"] - best

    def cell(row: Mapping[Any, Any]) -> Any:
        return row["above_best"] if np.isfinite(row["above_best"]) else row["status"]

    lines = ("task", "modality", "variant")
    return rows, Grid("AIC above the best variant", WHO, lines, cell)


@PAPER.part("Answers against stimuli", compared=False)
def pictured(data: Answers) -> Shown:
    """Single answers in the base condition (light), their means (dots), and static Bayesian
    observers fitted to them (lines), by window. Lines less steep than the dashed one, of perfect
    answers, are regression to the mean. Dotted: the linear observer, which has one line for all
    windows. Behind them the answers of the first session in the order of the trials (dots), the
    stimuli (grey) and the beliefs of the sequential observer fitted to all answers (lines), which
    begins anew in each window. Pictures are of the first participants.
    """
    everything: Found = data.once(found)
    rows = pictures.answers_and_observers(everything.answers, everything.frames.fits)
    return (
        rows,
        Draw("Answers against stimuli: {by}.", pictures.draw_responses, by="task"),
        Draw("Answers in the order of the trials: {by}.", pictures.draw_trajectories, by="task"),
    )


@PAPER.part("Which features of models go with the composite?", compared=False)
def features(data: Answers) -> Shown:
    """A regression of the composite on features of the models, with an intercept for each base
    model; both standardised. With few models it says little, however small p is.
    """
    rows = data.once(found).frames.composite
    scores = rows[(rows["part"] == "S") & rows["value"].notna()]
    scores = scores.rename(columns={"value": "score"}).assign(metric="composite")
    return features_part(scores[[WHO, "metric", "score"]], data.about)
