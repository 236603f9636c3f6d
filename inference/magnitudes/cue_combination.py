"""How answers to text and image together compare with combinations of the answers to each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from knownminds.agents.parameters import Array
from knownminds.environments.later import pandas as pd
from knownminds.environments.magnitudes.magnitude import BLUR

from .magnitude_answers import BASE, BOTH, IMAGE, TEXT, MagnitudeAnswers, TaskAnswers
from .normalised_error import relative_error

REFERENCES = ("equal", "linear", "bayes_responses", "bayes_residuals", "bayes_oracle")
MEANINGS = {
    "equal": "the mean of both answers",
    "linear": "the weight in [0, 1] that fits the combined answers best, by least squares",
    "bayes_responses": "weights by the inverse variances of the answers themselves, as published "
    "(non-oracle); most of that variance is the stimuli's, so that they are near one half",
    "bayes_residuals": "weights by the inverse variances of the answers' errors",
    "bayes_oracle": "the truth is regressed on the answers of each modality, and what that "
    "predicts is combined by generalised least squares; weights may be negative",
}


@dataclass(frozen=True)
class CuePairs:
    """Answers to the same stimuli as text, as image and as both; [n] each, all answered.

    Parameters
    ----------
    combined : The trials with both; `text` and `image` are the answers to each alone.
    matched : "items": the three answers are about the same stimulus; "values": about stimuli of the
        same value in the same window, in the order in which they came.
    left_out : How many items were not answered in all three, or not shown in all.
    """

    combined: TaskAnswers
    text: Array
    image: Array
    matched: str
    left_out: int

    def __len__(self) -> int:
        return len(self.text)

    def only(self, chosen: NDArray[Any]) -> CuePairs:
        """Return some of the items."""
        return CuePairs(
            self.combined.only(chosen), self.text[chosen], self.image[chosen], self.matched, 0
        )


@dataclass(frozen=True)
class CueCombination:
    """Combined answers compared with the five references, each [B]: the data, then bootstraps.

    Parameters
    ----------
    error : NRMSE of the combined answers.
    text_weight : Weight of the text's answer by reference; for the oracle, that of the
        calibrated answer.
    reference_error : NRMSE of each reference.
    efficiency : RRE = reference_error / error; above 1 the combined answers are better than the
        reference. NaN where the combined answers have no error. The oracle is fitted to each
        resample, and better there than in the data. So its resamples are mirrored around the data
        on the log scale, as the basic bootstrap does (Davison and Hinkley 1997).
    n, left_out, matched : See `CuePairs`.
    reason : Why there is no result; empty if there is one.
    """

    error: Array
    text_weight: Mapping[str, Array]
    reference_error: Mapping[str, Array]
    efficiency: Mapping[str, Array]
    n: int
    left_out: int
    matched: str
    reason: str = ""


def cue_combination(
    answers: MagnitudeAnswers, participant: str, task: str, condition: str = BASE
) -> CueCombination | None:
    """Compare a participant's combined answers with the references; None if none were played."""
    cells = cue_cells(answers, participant, task, condition)
    return None if cells is None else combine(pair(*cells))


def cue_cells(
    answers: MagnitudeAnswers, participant: str, task: str, condition: str
) -> tuple[TaskAnswers, TaskAnswers, TaskAnswers] | None:
    """Return the answers to text, to image and to both; None unless all were played.

    Noise blurs images and leaves texts unchanged. So if texts were not shown again under noise,
    those of the base condition are used.
    """
    text, image, both = (
        answers.cells.get((participant, task, condition, modality))
        for modality in (TEXT, IMAGE, BOTH)
    )
    if text is None and condition in BLUR:
        text = answers.cells.get((participant, task, BASE, TEXT))
    return None if text is None or image is None or both is None else (text, image, both)


def pair(text: TaskAnswers, image: TaskAnswers, both: TaskAnswers) -> CuePairs:
    """Find the answers to the same stimuli.

    In a session that was shown in all modalities, stimuli are the same if they have the same
    window, number and value. If the modalities were played apart, each with stimuli of its own, the
    k-th of each value in a window counts as the same.
    """
    cues = ("text", "image", "both")
    tables = [_shown(cue, answers) for cue, answers in zip(cues, (text, image, both), strict=True)]
    matched, shown = "items", _together(tables, ["block", "item", "value"])
    if shown[["text", "image"]].isna().any(axis=None) or shown["both"].count() < len(both):
        # `block` names windows of sessions, which modalities that were played apart do not share.
        by_value = _together(tables, ["window", "value", "turn"])
        if len(by_value.dropna()) > len(shown.dropna()):
            shown, matched = by_value, "values"
    at = shown.dropna().astype(np.int64)
    combined = both.only(at["both"].to_numpy())
    said_text, said_image = text.response[at["text"]], image.response[at["image"]]
    answered = np.isfinite(said_text) & np.isfinite(said_image) & np.isfinite(combined.response)
    return CuePairs(
        combined.only(answered),
        said_text[answered],
        said_image[answered],
        matched,
        len(shown) - int(answered.sum()),
    )


def _shown(cue: str, answers: TaskAnswers) -> pd.DataFrame:
    """Return what was shown in a modality, in order, with its position under the cue's name.

    The turn says how often the value was shown before in its window.
    """
    names = ("block", "item", "window", "value", "trial")
    table = pd.DataFrame({name: getattr(answers, name) for name in names})
    table = table.assign(**{cue: np.arange(len(answers))}).sort_values(["block", "trial"])
    return table.assign(turn=table.groupby(["window", "value"]).cumcount())


def _together(tables: Sequence[pd.DataFrame], keys: list[str]) -> pd.DataFrame:
    """Return the positions of each stimulus in the three modalities; missing if it was not shown.

    Stimuli are the same if they have the same keys; a modality's first one counts. They stand in
    the order in which they were shown as text.
    """
    first = [table.drop_duplicates(keys).set_index(keys) for table in tables]
    order = pd.concat([table.index.to_frame(index=False) for table in first]).drop_duplicates()
    index = pd.MultiIndex.from_frame(order)
    cues = ("text", "image", "both")
    return pd.DataFrame(
        {cue: table[cue].reindex(index).to_numpy() for cue, table in zip(cues, first, strict=True)}
    )


def combine(pairs: CuePairs) -> CueCombination:
    """Compare combined answers with the five references."""
    answers, weight, value = pairs.combined, pairs.combined.weight, pairs.combined.value
    about = len(pairs), pairs.left_out, pairs.matched
    if len(pairs) < 3:
        nothing = {name: np.full(len(weight), np.nan) for name in REFERENCES}
        why = "fewer than 3 items answered as text, as image and as both"
        return CueCombination(nothing["equal"], nothing, nothing, nothing, *about, why)
    text, image = pairs.text[None, :], pairs.image[None, :]
    calibrated = [_calibrated(said, value, weight) for said in (text, image)]
    with np.errstate(invalid="ignore", divide="ignore"):
        spread = pairs.text - pairs.image
        linear = (weight @ (spread * (answers.response - pairs.image))) / (weight @ spread**2)
    text_weight = {
        "equal": np.full(len(weight), 0.5),
        "linear": np.clip(np.where(np.isfinite(linear), linear, 0.5), 0.0, 1.0),
        "bayes_responses": _least_variance(text, image, weight),
        "bayes_residuals": _least_variance(text - value, image - value, weight),
        "bayes_oracle": _least_variance(
            calibrated[0] - value, calibrated[1] - value, weight, together=True
        ),
    }
    error = relative_error(answers, answers.response)
    reference_error, efficiency = {}, {}
    for name, share in text_weight.items():
        first, second = calibrated if name == "bayes_oracle" else (text, image)
        against = relative_error(answers, second + share[:, None] * (first - second))
        with np.errstate(invalid="ignore", divide="ignore"):
            efficiency[name] = np.where(error > 0, against / error, np.nan)
            if name == "bayes_oracle":  # resamples mirrored around the data, on the log scale
                efficiency[name][1:] = efficiency[name][0] ** 2 / efficiency[name][1:]
        reference_error[name] = against
    return CueCombination(error, text_weight, reference_error, efficiency, *about)


def _centred(values: Array, weight: Array) -> tuple[Array, Array]:
    """Return the weighted mean of values [B or 1, n], [B, 1], and their deviations from it."""
    with np.errstate(invalid="ignore", divide="ignore"):  # a bootstrap may hold no value
        mean = (weight * values).sum(axis=1, keepdims=True) / weight.sum(axis=1, keepdims=True)
    return mean, values - mean


def _calibrated(said: Array, value: Array, weight: Array) -> Array:
    """Regress the truth on the answers; return the prediction for each answer, [B, n]."""
    (_, deviation), (mean, away) = (_centred(each, weight) for each in (said, value[None, :]))
    with np.errstate(invalid="ignore", divide="ignore"):
        slope = (weight * deviation * away).sum(axis=1, keepdims=True) / (
            weight * deviation**2
        ).sum(axis=1, keepdims=True)
    # Answers that are always the same say nothing about the truth.
    predicted: Array = mean + np.where(np.isfinite(slope), slope, 0.0) * deviation
    return predicted


def _least_variance(first: Array, second: Array, weight: Array, *, together: bool = False) -> Array:
    """Return the weight of the first with which the weighted sum varies least, [B].

    If `together`, this is generalised least squares, 1' S^-1 / 1' S^-1 1. Otherwise the covariance
    counts as 0, and weights are by inverse variances.
    """
    (_, a), (_, b) = (_centred(said, weight) for said in (first, second))
    va, vb, shared = ((weight * x * y).sum(axis=1) for x, y in ((a, a), (b, b), (a, b)))
    shared = shared if together else np.zeros(len(weight))
    with np.errstate(invalid="ignore", divide="ignore"):
        result = (vb - shared) / (va + vb - 2 * shared)
    # If both vary alike in all trials, or not at all, every weight is as good; it is then one half.
    return np.where(np.isfinite(result), result, 0.5)
