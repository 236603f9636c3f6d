"""Measures of how single participants weigh words against pictures."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np

from knownminds.agents import Agent
from knownminds.agents.parameters import Array
from knownminds.environments import Trials
from knownminds.environments.later import pandas as pd
from knownminds.inference.measure import Dial, SubjectMeasure, Values, with_columns

from .magnitude_answers import MULTIMODAL

LEAST = 3  # items that a weight needs
LEAST_ANSWERS = 6  # answers of a kind that a line with a spread needs
TEXT, IMAGE, BOTH = 0, 1, 2
FEW = f"fewer than {LEAST} items answered as text, as image and as both"
FEW_BOTH = f"fewer than {LEAST_ANSWERS} answers to both cues, or without conflicts"
FEW_SINGLE = f"fewer than {LEAST_ANSWERS} answers to one of the cues alone"
# The weight of the text in agents without such a parameter; in others it is by precision.
FIXED = {
    "cue_combiner_equal": 0.5,
    "cue_weigher_equal": 0.5,
    "cue_weigher_text": 1.0,
    "cue_weigher_image": 0.0,
}

Columns = Mapping[str, Array]


class WeightMeasure(SubjectMeasure):
    """A measure of how much the text counts in answers to text and image.

    Attributes
    ----------
    family
        How the names of the agents begin whose truth is known.
    columns
        What is read of the trials.
    """

    source = "Ernst and Banks 2002"
    dial = Dial({"alpha": 1.0}, reach=6.0, steps=241)
    family: str
    columns: tuple[str, ...]

    @abstractmethod
    def of(self, columns: Columns) -> tuple[float, str]:
        """Return the measure of one subject's trials, or NaN and the reason."""

    def values(self, trials: Trials) -> Values:
        """Read the measure off each subject's trials."""
        frame = with_columns(trials, self.name, self.columns)
        subject, names = pd.factorize(frame["subject"])
        if "item" in self.columns:  # items of different sessions and windows differ
            item = frame.groupby(["session", "window", "item"], sort=False).ngroup()
            frame = frame.assign(item=item, session=0)
        columns = {name: frame[name].to_numpy(dtype=float) for name in self.columns}
        with np.errstate(invalid="ignore", divide="ignore"):
            values = [
                self.of({name: column[subject == k] for name, column in columns.items()})
                for k in range(len(names))
            ]
        return Values(np.array([value for value, _ in values]), tuple(why for _, why in values))

    def truth(self, model: type[Agent], theta: Array) -> Array:
        """Return the measure of agents with parameters theta[n, P], [n]."""
        if not model.name.startswith(self.family):
            raise ValueError(
                f"The true {self.name} is known of {self.family.replace('_', ' ')}s; got "
                f"{model.name}. Choose one of them."
            )
        values = dict(zip(model.parameters.names, theta.T, strict=True))
        best = _by_precision(values["sigma_text"] ** 2, values["sigma_image"] ** 2)
        weight = np.full(len(theta), FIXED[model.name]) if model.name in FIXED else best
        return self.of_weights(values.get("alpha", weight), best, values)

    def of_weights(self, weight: Array, best: Array, values: Columns) -> Array:
        """Return the measure of a weight where precision deserves the best one, [n]."""
        return weight


class CueMeasure(WeightMeasure):
    """A measure of sessions that show each stimulus as text, as image and as both."""

    environments = MULTIMODAL
    settings: Mapping[str, Any] = {"modality": "all"}  # of the experiment, to be read off it
    family, violator = "cue_combiner", "cue_combiner"
    columns = ("session", "window", "item", "modality", "value", "response")

    @abstractmethod
    def of_items(self, text: Array, image: Array, both: Array, value: Array) -> float:
        """Return the measure of the items that were answered in all three modalities, [n] each."""

    def of(self, columns: Columns) -> tuple[float, str]:
        """Return the measure of one subject's trials, or NaN and the reason."""
        item = np.unique(columns["item"], return_inverse=True)[1]
        said, value = np.full((item.max() + 1, 3), np.nan), np.empty(item.max() + 1)
        said[item, columns["modality"].astype(np.int64)] = columns["response"]
        value[item] = columns["value"]
        whole = np.isfinite(said).all(axis=1)
        if whole.sum() < LEAST:
            return np.nan, FEW
        text, image, both = said[whole].T
        result = float(self.of_items(text, image, both, value[whole]))
        return (result, "") if np.isfinite(result) else (np.nan, "no weight")


class CueWeight(CueMeasure):
    """The weight of the text in answers to both, by least squares: alpha in [0, 1].

    y_both = alpha y_text + (1 - alpha) y_image. The test rejects equal weights.
    """

    name = "cue_weight"
    bounds = (0.0, 1.0)
    summary = "weight of the text in answers to text and image together"
    null = 0.5
    rational = "cue_combiner_equal"

    def of_items(self, text: Array, image: Array, both: Array, value: Array) -> float:
        """Return the weight of the text."""
        spread = text - image
        return float(np.clip((spread @ (both - image)) / (spread @ spread), 0.0, 1.0))


class CueWeightExcess(CueWeight):
    """The weight of the text less the one with which the combination would vary least.

    That is by the inverse variances of the errors of answers to text and to image; the test
    rejects such weights. Above 0, the text is trusted too much.
    """

    name = "cue_weight_excess"
    bounds = (-1.0, 1.0)
    summary = "weight of the text less the weight that its precision deserves"
    null = 0.0
    rational = "cue_combiner_optimal"

    def of_weights(self, weight: Array, best: Array, values: Columns) -> Array:
        """Return the excess."""
        return weight - best

    def of_items(self, text: Array, image: Array, both: Array, value: Array) -> float:
        """Return the weight less that by the inverse variances of both errors."""
        best = _by_precision(np.var(text - value), np.var(image - value))
        return super().of_items(text, image, both, value) - float(best)


class CueEfficiency(CueMeasure):
    """Error of the best combination of the answers to single cues over that of the answers to both
    (RRE).

    The best combination weighs by the inverse variances of the errors. 1 is as good as it, more is
    better.
    """

    name = "cue_efficiency"
    bounds = (0.0, np.inf)
    summary = "error of a combination by precision over that of the answers to both"
    source = "Ernst and Banks 2002; BayesBench"
    null = float("nan")
    rational = ""
    dial = Dial({"sigma": -1.0}, reach=6.0, steps=241)

    def of_weights(self, weight: Array, best: Array, values: Columns) -> Array:
        """Return the efficiency on an unbounded scale."""
        text, image = values["sigma_text"] ** 2, values["sigma_image"] ** 2
        error = weight**2 * text + (1.0 - weight) ** 2 * image + values["sigma"] ** 2
        return np.sqrt(best * text / error)

    def of_items(self, text: Array, image: Array, both: Array, value: Array) -> float:
        """Return the ratio of root mean squared errors."""
        weight = _by_precision(np.var(text - value), np.var(image - value))
        best = weight * text + (1.0 - weight) * image
        return float(np.sqrt(np.sum((best - value) ** 2) / np.sum((both - value) ** 2)))


class ConflictWeight(WeightMeasure):
    """The weight of the text where text and picture disagree: 1/2 + b / s.

    By least squares over answers to both cues, y = a + s value + b conflict, with a of each
    window; the value lies in the middle of both cues, and the conflict is the text less the
    picture. An observer whose answers are s times too steep has the same weight. The test rejects
    equal weights.
    """

    name = "conflict_weight"
    summary = "weight of the text where it disagrees with the picture"
    environments = ("cue_conflict",)
    null = 0.5
    rational = "cue_weigher_equal"
    family, violator = "cue_weigher", "cue_weigher"
    columns = ("window", "modality", "value", "conflict", "response")

    def of(self, columns: Columns) -> tuple[float, str]:
        """Return the weight of the text in answers to both cues, or NaN and the reason."""
        (value, conflict, response), _ = _centred(columns, BOTH, "value", "conflict", "response")
        shown = columns["conflict"][columns["modality"] == BOTH]
        if len(value) < LEAST_ANSWERS or np.ptp(shown) == 0.0:
            return np.nan, FEW_BOTH
        regressors = np.column_stack([value, conflict])
        (slope, push), *_ = np.linalg.lstsq(regressors, response, rcond=None)
        if not slope > 0.0:
            return np.nan, "answers do not grow with values"
        return float(0.5 + push / slope), ""


class ConflictWeightExcess(ConflictWeight):
    """The weight of the text where cues disagree, less the weight that its precision deserves.

    The latter is v_i / (v_t + v_i), where v_t and v_i are the variances of answers to text and to
    pictures alone around their lines over the value, in units of the value (divided by the square
    of the slope); less its bias, w (1 - w) (1 - 2 w) (1 / n_t + 1 / n_i) with n degrees of
    freedom. The test rejects weights by precision. Above 0, the text is trusted too much.
    """

    name = "conflict_weight_excess"
    summary = "weight of the text where cues disagree, less what its precision deserves"
    null = 0.0
    rational = "cue_weigher_optimal"

    def of_weights(self, weight: Array, best: Array, values: Columns) -> Array:
        """Return the excess."""
        return weight - best

    def of(self, columns: Columns) -> tuple[float, str]:
        """Return the excess, or NaN and the reason."""
        weight, why = super().of(columns)
        (text, n_text), (image, n_image) = (_spread(columns, cue) for cue in (TEXT, IMAGE))
        if why or not text + image > 0.0:
            return np.nan, why or FEW_SINGLE
        best = image / (text + image)
        best -= best * (1 - best) * (1 - 2 * best) * (1 / n_text + 1 / n_image)
        return weight - best, ""


def _by_precision(text: Any, image: Any) -> Any:
    """Return the weight of the text by the inverse of both variances."""
    return image / (text + image)


def _spread(columns: Columns, cue: int) -> tuple[float, int]:
    """Return the variance of answers to one cue in units of the value, and its degrees of freedom.

    NaN where there are too few, or where answers do not grow with values.
    """
    (value, response), windows = _centred(columns, cue, "value", "response")
    free = len(value) - windows - 1
    slope = float(value @ response / (value @ value)) if len(value) >= LEAST_ANSWERS else np.nan
    if not slope > 0.0:
        return np.nan, 1
    rest = response - slope * value
    return float(rest @ rest) / free / slope**2, free


def _centred(columns: Columns, cue: int, *names: str) -> tuple[list[Array], int]:
    """Return columns of the answers to a cue less means by window, and the number of windows."""
    rows = (columns["modality"] == cue) & np.isfinite(columns["response"])
    window, windows = pd.factorize(columns["window"][rows])
    n = np.bincount(window)
    several = (columns[name][rows] for name in names)
    return [x - (np.bincount(window, x) / n)[window] for x in several], len(windows)
