"""Estimates of magnitudes from words, pictures and both, after BayesBench."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from knownminds.agents import KalmanObserver
from knownminds.agents.parameters import Array
from knownminds.environments import CONDITIONS, MODALITIES, WINDOWS
from knownminds.inference.magnitudes.consistency_score import COMPARISONS, slopes
from knownminds.inference.magnitudes.cue_combination import MEANINGS, combine, cue_cells, pair
from knownminds.inference.magnitudes.factor_evidence import FACTORS
from knownminds.inference.magnitudes.magnitude_answers import (
    BASE,
    BOTH,
    IMAGE,
    MULTIMODAL,
    TASKS,
    TEXT,
    MagnitudeAnswers,
    TaskAnswers,
)
from knownminds.inference.magnitudes.magnitude_composite import BAYES, MASS
from knownminds.inference.resampling import percentile_interval
from knownminds.validation.magnitudes.combiners import compare_combiners
from knownminds.validation.pages.views import WHO, Cell, Curves, Dots, Grid, Rows, ends

from . import magnitude_frames as frames
from .features import features_part
from .magnitude_frames import whole_modality
from .paper import CELL, SEVERAL, About, Answers, Paper, Shown, counted_answers, joined, trials_of

STEERED = (BASE, "verbal", "numeric", "numeric_biased")
NOISY = (BASE, "constant_noise", "gradual_noise")
PARTS = {"S": "composite", "A": "accuracy", "E": "efficiency", "C": "consistency"}
STEPS = 4  # groups of trials whose blur grows
MOST_SHOWN = 6  # participants in pictures of single answers
SATURATED = "saturated, says nothing"
LACKS = 2  # missing things that are written for each part of the composite

PAPER = Paper("magnitudes", "Magnitudes: estimates from words, pictures and both", "BayesBench")


@PAPER.prepare
def prepare(trials: pd.DataFrame, about: About) -> pd.DataFrame:
    """Return the trials of magnitude estimation, with what was shown and in which condition."""
    answers = trials_of("magnitudes", trials, TASKS)
    answers[WHO] = answers[WHO].astype(str)
    answers = answers.dropna(axis="columns", how="all").reset_index(drop=True)
    if "response" not in answers:  # nobody answered
        answers = answers.assign(response=np.nan)
    return answers.assign(
        task=answers["environment"],
        answers_to=[MODALITIES[int(k)] for k in answers["modality"].astype(float)],
        played=[CONDITIONS[int(k)] for k in answers["condition"].astype(float)],
    )


Place = tuple[str, str, str, str]  # participant, task, condition, modality


def places(data: Answers) -> dict[Place, str]:
    """Return the cell in which each participant played each task, condition and modality."""
    names = [WHO, "task", "played", "answers_to"]
    first = data.trials.drop_duplicates(names)
    return dict(zip(map(tuple, first[names].to_numpy()), first[CELL].astype(str), strict=True))


def cells_of(data: Answers, who: str, *played: tuple[str, str, str]) -> str:
    """Name the cells in which somebody played these tasks, conditions and modalities."""
    names = (data.once(places).get((who, *key), "") for key in played)
    return SEVERAL.join(dict.fromkeys(name for name in names if name))


def scored(
    data: Answers, rows: pd.DataFrame, score: str, value: str, low: str, high: str
) -> pd.DataFrame:
    """Return rows of the base condition with a score; its error is half of the 68% interval."""
    named = (rows["task"] + ", " + rows["modality"]).str.replace("_", " ")
    cells = [
        cells_of(data, row[WHO], (row["task"], BASE, row["modality"]))
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
    cells: pd.DataFrame = data.once(frames.cells)
    return cells[cells["condition"] == BASE].reset_index(drop=True)


@PAPER.also
def claimed(data: Answers) -> pd.DataFrame:
    """Return error and evidence as means over tasks, the consistency score, and combiners."""
    parts = [data.once(frames.means)]
    means = data.once(frames.consistency).groupby([WHO, "task"], sort=False)["mean_score"]
    n = len(COMPARISONS) // len(MULTIMODAL)
    drawn = means.sum(min_count=n).rename("value").reset_index()
    task = drawn["task"].str.replace("_", " ")
    parts.append(drawn.assign(score="consistency score, mean of bootstraps: " + task))
    foretold, _ = data.once(combiner_rows)
    if len(foretold):
        two = foretold["one"] + " less " + foretold["other"] + ": "
        task = foretold["task"].str.replace("_", " ")
        parts.append(foretold.assign(score=two + task, value=foretold["difference"]))
    return joined(parts)


@PAPER.part("Questions and answers", compared=False)
def answers(data: Answers) -> Shown:
    """Four tasks, of which three are shown as text, as picture and as both. Answers that could not
    be read are left out and counted. A model that sees no pictures has only texts, and whatever
    needs pictures has no value. Intervals on this page are percentiles of bootstraps that keep the
    sessions; as published they hold the middle 68%.
    """
    return counted_answers(data.trials, "task", "played", "answers_to")


@PAPER.part("Regression to the mean")
def regression(data: Answers) -> Shown:
    """1 - slope of the answers on the stimuli within windows: 0 is none, 1 complete; below 0
    answers are spread too far. Lines go from the mean of the lowest and of the highest third of
    the stimuli of each window to the mean answer to them, which is a dot.
    """
    mass = data.about.option("mass", MASS)
    rows = []
    for who in data.once(frames.estimates).participants:
        for (_, task, condition, modality), cell in data.once(frames.estimates).of(who):
            if condition == BASE:
                values = 1.0 - slopes(cell)[0]
                low, high = percentile_interval(values, mass)
                row = {WHO: who, "task": task, "modality": modality}
                rows.append(row | {"value": float(values[0]), "low": low, "high": high})
    frame = pd.DataFrame(rows)
    if not len(frame):
        return (frame,)
    frame = scored(data, frame, "regression to the mean", "value", "low", "high")
    drawn = Dots(
        "Regression to the mean in the base condition, with all that a task shows: mean answers to "
        "the lowest and the highest third of the stimuli of each window, and lines from the mean "
        "of these stimuli.", "answer", "task", "window", value="answer", low="stimulus",
        high="answer", free=True, of=means_of_thirds(data.once(frames.estimates)),
    )  # fmt: skip
    return frame, Grid("Regression to the mean: {by}", "modality", by="task"), drawn


def means_of_thirds(answers: MagnitudeAnswers) -> pd.DataFrame:
    """Return the mean of low and of high stimuli of each window, and the mean answer to them.

    One row per participant, task, window and end: stimulus and answer.
    """
    rows = []
    for task in TASKS:
        for who in answers.participants:
            cell = answers.cells.get((who, task, BASE, whole_modality(task)))
            if cell is None:
                continue
            for window in np.unique(cell.window):
                mine = (cell.window == window) & np.isfinite(cell.response)
                x, y = cell.value[mine], cell.response[mine]
                if not len(x):
                    continue
                for end, third in (
                    ("low", x <= np.quantile(x, 1 / 3)),
                    ("high", x >= np.quantile(x, 2 / 3)),
                ):
                    means = {"stimulus": float(x[third].mean()), "answer": float(y[third].mean())}
                    row = {WHO: who, "task": task, "window": f"{WINDOWS[window]}, {end}"}
                    rows.append(row | means)
    return pd.DataFrame(rows)


@PAPER.part("Combining text and picture")
def cues(data: Answers) -> Shown:
    """The weight of the text in the answers to both (linear: fitted to them; by Bayes: what the
    spread of the answers, or of their errors, asks for). The efficiency RRE is the error of such a
    combination over that of the answers. Above 1 the answers are better.
    """
    rows = data.once(frames.cues)
    parts = [rows]
    linear = rows[rows["reference"] == "linear"]
    names = (linear["task"] + ", " + linear["condition"]).str.replace("_", " ")
    score = "weight of the text: " + names
    both = [_of_both(data, row) for row in linear.to_dict("records")]
    weights = ("text_weight", "weight_low", "weight_high")
    parts.append(_with_score(linear, score, both, *weights).assign(quantity="weight"))
    bayes = rows[(rows["condition"] == BASE) & rows["reference"].isin(BAYES)]
    score = "RRE, " + (bayes["reference"] + ": " + bayes["task"] + ", " + BASE)
    both = [_of_both(data, row) for row in bayes.to_dict("records")]
    names = score.str.replace("_", " ")
    parts.append(
        _with_score(bayes, names, both, "efficiency", "low", "high").assign(quantity="RRE")
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


def combiner_rows(data: Answers) -> tuple[pd.DataFrame, str]:
    """Return what tells combiners apart, a row for each task and two; or why there is none."""
    read = data.once(frames.estimates)
    parts = []
    for who in read.participants:
        for task in MULTIMODAL:
            cells = cue_cells(read, who, task, BASE)
            if cells is None:
                continue
            try:
                rows = compare_combiners(pair(*cells), data.about.seed)
            except ImportError:
                return pd.DataFrame(), "It needs scikit-learn (the extra learning)."
            parts.append(rows.assign(**{WHO: who, "task": task}))
    return joined(parts), ""


@PAPER.part("Which combiner foretells the answers to both", compared=False, optional=True)
def combiners(data: Answers) -> Shown:
    """Bayes (weights by inverse variances), a line and a random forest foretell the answers to both
    from the answers to each alone. Each is fitted to nine tenths of the stimuli and foretells the
    rest; repetitions of a stimulus stay together. Differences of root mean squared errors are in
    units of the scale, over stimuli; below 0 the first foretells better. The verdict is by a test
    at .05 over three; `sees` is the difference that is found in 80%. With 99 items no player who
    combines in a line was taken for a forest in 60 data sets. Who goes by words below the middle
    and by pictures above it was found in .52, and who takes the larger of both in .10 (python
    docs/conclusions.py combiners).
    """
    frame, missing = data.once(combiner_rows)
    if missing:
        return frame, missing
    columns: Mapping[str, Cell] = {
        "difference": ends("difference"), "p": "p_value", "sees": "sees", "stimuli": "stimuli",
        "verdict": "verdict",
    }  # fmt: skip
    return frame, Rows("Combiners, two at a time", columns, (WHO, "task", "one", "other"))


def _of_both(data: Answers, row: Mapping[Any, Any]) -> str:
    """Name the cells of words, pictures and both in a condition; the base words may serve."""
    task, condition = row["task"], row["condition"]
    words = (task, condition, TEXT)
    if (row[WHO], *words) not in data.once(places):
        words = (task, BASE, TEXT)
    return cells_of(data, row[WHO], words, (task, condition, IMAGE), (task, condition, BOTH))


@PAPER.part("Steering", compared=False)
def steering(data: Answers) -> Shown:
    """What steering does. Bias and variance are the parts of the squared NRMSE, separated where
    stimuli were shown several times. The evidence for a sequential observer is between 0 and 1.
    """
    cells = data.once(frames.cells)
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
    where texts were not requested again, those of the base condition serve.
    """
    weights = blur_weights(data.once(frames.estimates), MULTIMODAL)
    rows = data.once(frames.cues)
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


def blur_weights(answers: MagnitudeAnswers, tasks: Sequence[str]) -> pd.DataFrame:
    """Return the weight of the text by blur: fitted to the answers, and deserved.

    One row per participant, task, condition and group of trials with about the same blur. deserved
    is the weight by inverse variances of the errors of the answers to each.
    """
    rows: list[dict[str, Any]] = []
    for task in tasks:
        for who in answers.participants:
            for condition in (BASE, "constant_noise", "gradual_noise"):
                rows += [
                    {WHO: who, "task": task, "condition": condition} | row
                    for row in _blur_rows(answers, who, task, condition)
                ]
    return pd.DataFrame(rows)


def _blur_rows(
    answers: MagnitudeAnswers, who: str, task: str, condition: str
) -> list[dict[str, float]]:
    cells = cue_cells(answers, who, task, condition)
    if cells is None:
        return []
    pairs = pair(*cells)
    blur = pairs.combined.blur
    groups = 1 if len(np.unique(blur)) == 1 else STEPS
    rank = np.argsort(np.argsort(blur, kind="stable"), kind="stable")
    rows = []
    for k in range(groups):
        some = pairs.only(rank * groups // max(len(rank), 1) == k)
        combination = combine(some)
        if combination.reason:
            continue
        weight = combination.text_weight["linear"]
        ends = np.quantile(weight[1:], [0.16, 0.84]) if len(weight) > 1 else [np.nan] * 2
        rows.append(
            {
                "blur": float(some.combined.blur.mean()),
                "items": len(some),
                "text_weight": float(weight[0]),
                "low": float(ends[0]),
                "high": float(ends[1]),
                "deserved": float(combination.text_weight["bayes_residuals"][0]),
            }
        )
    return rows


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
        Curves(
            "Error in the base condition against the evidence for a Bayesian observer, the "
            "efficiency of combining cues and the consistency score; means over tasks.",
            ("NRMSE", "value"), "error", "value", ("of",), joined=False,
            of=beside_error(data),
        ),
    )  # fmt: skip


def _whole_mean(values: pd.Series[float]) -> float:
    """Return the mean of values, NaN if one lacks."""
    return float(values.mean(skipna=False))


def beside_error(data: Answers) -> pd.DataFrame:
    """Return each participant's evidence for a Bayesian observer, efficiency and score, one a row.

    Error and evidence are means over tasks in the base condition with all that a task shows; who
    lacks a task has none.
    """
    cells = data.once(frames.cells)
    whole = cells["modality"] == cells["task"].map(whole_modality)
    base = cells[whole & (cells["condition"] == BASE)].groupby(WHO, sort=False)
    table = base[["error", "bayesian"]].agg(_whole_mean)
    efficiency = data.once(frames.composite).query("part == 'E'").set_index(WHO)["value"]
    scores = data.once(frames.consistency).groupby(WHO, sort=False)["score"]
    table = table.assign(efficiency=efficiency, score=scores.sum(min_count=len(COMPARISONS)))
    names = {"bayesian": "evidence: Bayesian", "score": "consistency score"}
    rows = table.reset_index().rename(columns=names).melt([WHO, "error"], var_name="of")
    return rows.dropna().reset_index(drop=True)


@PAPER.part("Prior weights")
def priors(data: Answers) -> Shown:
    """Weight of the prior of the static Bayesian observer fitted to the answers, by condition."""
    cells = data.once(frames.cells)
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
    rows = data.once(frames.cells)
    return rows, Rows("Errors by condition", columns, (WHO, "task", "condition", "modality"))


@PAPER.part(
    "Evidence for a Bayesian observer, beside that of straight lines", compared=False, optional=True
)
def evidence(data: Answers) -> Shown:
    """Evidence in the base condition, and that of straight lines, each fitted to the participant
    and answering the same stimuli. p is the share of them, with the participant, that show as much
    or more. `score` simulates the lines; a benchmark of many participants leaves them out.
    """
    rows = data.once(frames.evidence)
    columns: Mapping[str, Cell] = {
        "evidence": "evidence", "lines, 5%": "low", "lines, 95%": "high", "p": "p",
        "lines": "lines",
    }  # fmt: skip
    return rows, Rows("Evidence for a Bayesian observer", columns, (WHO, "task"))


@PAPER.part("Bayesian consistency score")
def consistency(data: Answers) -> Shown:
    """How often the prior weight grows where it should, less how often it does not: 5 comparisons a
    task, -15 to 15 in all. It cannot be read alone. An observer without any error earns the
    maximum; one that never adapts earns 0 on average with a wide spread. So known agents with the
    model's noise stand beside it. A task that lacks a condition has no score. It counts signs,
    which turn easily where weights hardly differ, so that an interval of bootstraps need not hold
    the score. The score holds weights in [0, 1]; where both sides are held at one end it says
    nothing. Shifts are of slopes that are not held, with 95% intervals and p-values, each by
    itself, against agents that never adapt. The paper prints the mean over bootstraps, which is no
    whole number; it stands beside.
    """
    rows, known = data.once(frames.consistency), data.once(frames.known_observers)
    both = ["score", "mean_score"]
    by = rows.groupby([WHO, "task"], sort=False)[both].sum(min_count=5).reset_index()
    total = rows.groupby(WHO, sort=False)[both].sum(min_count=15).reset_index()
    totals = joined([by, total.assign(task="all")]).rename(columns={"score": "sum"})
    observers: Mapping[str, Cell] = {
        "score": ends("score"), "expected": "expected", "sd": "sd",
        "share scoring at least as much": "reaching",
    }  # fmt: skip
    compared_weights: Mapping[str, Cell] = {
        "weight in the base": "base", "weight there": "weight", "score": "score",
        "remark": lambda r: r["reason"] or SATURATED * r["saturated"],
    }  # fmt: skip
    shifts = data.once(frames.shifts)
    tested: Mapping[str, Cell] = {"shift": ends("shift"), "p": "p_value"}
    compared = known.drop_duplicates(WHO)
    whole = SEVERAL.join(dict.fromkeys(data.once(places).values()))
    return (
        _with_score(compared, "consistency score", whole, "score", "low", "high"),
        Grid("Score by task", "task", cell="sum", of=totals),
        Grid("Score by task, mean over bootstraps", "task", cell="mean_score", of=totals),
        Rows("Known agents in the same design", observers, (WHO, "observer"), of=known),
        Rows("Prior weights", compared_weights, (WHO, "task", "ablation", "modality"), of=rows),
        Rows("Shifts of the prior weight", tested, (WHO, "task", "ablation"), of=shifts),
        Dots(
            "The score (cross) among those of known agents with the model's noise: mean and 2 "
            "standard deviations.", "score", WHO, along="observer", value="expected", null="score",
            of=known.assign(low=known["expected"] - 2 * known["sd"],
                            high=known["expected"] + 2 * known["sd"]),
        ),
    )  # fmt: skip


@PAPER.part("The composite")
def composite(data: Answers) -> Shown:
    """S is the mean of three parts: accuracy A (1 - NRMSE / 2 over tasks), efficiency E (mean of
    the two published references), and consistency C (the score, from 0 to 1). A part that lacks a
    task, a modality or a condition has no value, and so has S.
    """
    rows = data.once(frames.composite)
    order = rows["part"].map(lambda part: "SAEC".index(part))
    rows = rows.iloc[np.argsort(order, kind="stable")].reset_index(drop=True)
    rows = rows.assign(name=rows["part"] + " " + rows["part"].map(PARTS))
    whole = SEVERAL.join(dict.fromkeys(data.once(places).values()))
    score = "composite: " + rows["part"].map(PARTS)
    lacking = rows[(rows["missing"] != "") & (rows["part"] != "S")]
    return (
        _with_score(rows, score, whole, "value", "low", "high"),
        Grid("Composite and its parts", "name"),
        Rows("What parts lack", {"lacks": _lacking}, (WHO, "name"), of=lacking),
        Dots("The composite and its parts; what is missing is not drawn.", "value", "name"),
    )


@PAPER.part("One observer for all cells", compared=False)
def observer(data: Answers) -> Shown:
    """The observer of all magnitudes has the same parameters in all tasks, conditions and
    modalities: noise of words and pictures and how it grows with blur, a prior that follows the
    answers, instructions that sharpen or move it, and weights of cues. Parameters are posterior
    means with 95% intervals, below the composite; flat: the answers say nothing of one of them.
    misfit: if its p is below .05, slopes and spreads of cells are not those of one such observer;
    then parameters describe nobody, and no test is made. The others say whether the observer could
    do without something: static, the past of a window; equal, weights by reliability; unsteered,
    instructions; flat, any prior. A noise that differs between tasks is a misfit, too.
    """
    rows, tests = data.once(frames.observer), data.once(frames.observer_tests)
    composite = data.once(frames.composite).query("part == 'S'")
    beside = composite.assign(parameter="composite S", over=frames.ALL)
    shown = joined([beside.reindex(columns=frames.OBSERVED), rows])
    noise = ["noise_text", "noise_image", "prior_precision", "report_noise"]
    by_task = rows[rows["parameter"].isin(noise) & (rows["over"] != frames.ALL)]
    shares = ["adaptation", "told_weight", "cue_optimality"]
    between_0_and_1 = rows[rows["parameter"].isin(shares) & (rows["over"] == frames.ALL)]
    remarks = rows.drop_duplicates([WHO, "over"])
    return (
        rows,
        Grid("Parameters of one observer over all cells", WHO, ("parameter",), ends(),
             where={"over": frames.ALL}, of=shown),
        Grid("p of misfit, and of what the observer could do without", WHO, ("without",), "p",
             of=tests),
        Grid("Noise and prior by task", WHO, ("parameter", "over"), ends(), of=by_task),
        Rows("Fits of the observer", {"trials": "trials", "status": "status"}, (WHO, "over"),
             of=remarks),
        Dots("Parameters between 0 and 1 of one observer over all cells, with 95% intervals.",
             "value", "parameter", of=between_0_and_1),
    )  # fmt: skip


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
    fits = data.once(frames.fits)
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
    """Single answers in the base condition (hollow), and static Bayesian observers fitted to them
    (lines), by window. Lines less steep than the dashed one, of perfect answers, are regression to
    the mean. Behind them is the first session in the order of the trials: stimuli, answers and the
    beliefs of the sequential observer. It is fitted to all answers and begins anew in each window.
    Pictures are of the first participants; the file has the linear observer's answers too.
    """
    rows = answers_and_observers(data.once(frames.estimates), data.once(frames.fits))
    if not len(rows):
        return (rows,)
    by_stimulus = rows.sort_values([WHO, "task", "modality", "window", "stimulus"], kind="stable")
    whole = rows[rows["modality"] == rows["task"].map(whole_modality)]
    keys = [WHO, "task", "window"]
    first = whole[whole["block"] == whole.groupby(keys)["block"].transform("min")]
    first = first.sort_values([WHO, "task", "block", "trial"], kind="stable")
    first = first.assign(position=first.groupby([WHO, "task"], sort=False).cumcount())
    over_trials = first.melt([*keys, "position"], ["stimulus", "answer", "belief"], "what")
    return (
        rows,
        Curves("Answers against stimuli: {by}.", ("stimulus", "answer"), "stimulus", "static",
               (WHO, "modality"), ("window",), diagonal=True, hollow="answer", by="task",
               of=by_stimulus.reset_index(drop=True)),
        Curves("Answers in the order of the trials: {by}.", ("trial", "answer"), "position",
               "value", (WHO,), ("what",), by="task", of=over_trials),
    )  # fmt: skip


def answers_and_observers(answers: MagnitudeAnswers, fits: pd.DataFrame) -> pd.DataFrame:
    """Return the answers of the first participants in the base condition, and fitted observers'.

    One row per trial: participant, task, modality, window, block (which session and window), trial,
    stimulus, answer, static and linear (mean answers of the fitted observers), and belief (of the
    sequential one).
    """
    parts = []
    for task in TASKS:
        there = [
            who for who in answers.participants if any(k[:2] == (who, task) for k in answers.cells)
        ]
        for who in there[:MOST_SHOWN]:
            for modality in MODALITIES if task in MULTIMODAL else MODALITIES[:1]:
                cell = answers.cells.get((who, task, BASE, modality))
                if cell is None:
                    continue
                chosen = (fits[WHO] == who) & (fits["task"] == task) & (fits["condition"] == BASE)
                chosen_fits = fits[
                    chosen & (fits["modality"] == modality) & (fits["status"] != "failed")
                ]
                parts.append(
                    _observed(cell, chosen_fits.set_index("variant"), modality).assign(
                        **{WHO: who, "task": task, "modality": modality}
                    )
                )
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def _observed(cell: TaskAnswers, fits: pd.DataFrame, modality: str) -> pd.DataFrame:
    names = np.array(WINDOWS)[cell.window]
    frame = pd.DataFrame(
        {
            "window": names, "block": cell.block, "trial": cell.trial, "stimulus": cell.value,
            "answer": cell.response, "static": np.nan, "linear": np.nan,
            "belief": _beliefs(cell, fits, modality),
        }
    )  # fmt: skip
    if "static_bayes_observer" in fits.index:
        static: Any = fits.loc["static_bayes_observer"]
        prior = np.array([static[f"mu_{name}"] for name in names], dtype=float) * cell.unit
        weight = float(static["w_prior"])
        mean = (1 - weight) * cell.value + weight * prior
        frame["static"] = np.clip(mean, 0, cell.ceiling)
    if "linear_observer" in fits.index:
        linear: Any = fits.loc["linear_observer"]
        frame["linear"] = float(linear["w"]) * cell.value + float(linear["b"]) * cell.unit
    return frame


def _beliefs(cell: TaskAnswers, fits: pd.DataFrame, modality: str) -> Array:
    """Return what the fitted sequential observer would answer on average, [n]."""
    belief = np.full(len(cell), np.nan)
    if "kalman_observer" not in fits.index:
        return belief
    names = KalmanObserver.parameters.names
    theta = fits.loc["kalman_observer", list(names)].to_numpy(dtype=float)
    for position in np.unique(cell.block):
        observer = KalmanObserver.from_theta(theta)
        assert isinstance(observer, KalmanObserver)
        observer.reset()
        rows = np.flatnonzero(cell.block == position)
        for row in rows[np.argsort(cell.trial[rows], kind="stable")]:
            seen: dict[str, int | float] = {
                "trial": int(cell.trial[row]),
                "window": int(cell.window[row]),
                "value": float(cell.value[row]),
                "modality": MODALITIES.index(modality),
                "unit": cell.unit,
                "ceiling": cell.ceiling,
            }
            belief[row] = observer.expected(seen)[0] * cell.unit
            if np.isfinite(cell.response[row]):  # of other trials the observer knows nothing
                observer.learn(seen, 0, 0.0)
    return belief


@PAPER.part("Which features of models go with the composite?", compared=False)
def features(data: Answers) -> Shown:
    """A regression of the composite on features of the models, with an intercept for each base
    model; both standardised. With few models it says little, however small p is.
    """
    rows = data.once(frames.composite)
    models = rows[WHO].isin(data.about.models)
    scores = rows[models & (rows["part"] == "S") & rows["value"].notna()]
    scores = scores.rename(columns={"value": "score"}).assign(metric="composite")
    return features_part(scores[[WHO, "metric", "score"]], data.about)
