"""Measures of how single participants weigh words against pictures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from knownminds.agents import Model
from knownminds.agents.parameters import Array
from knownminds.environments import Trials
from knownminds.environments.later import pandas as pd
from knownminds.inference.magnitudes.magnitude_answers import MULTIMODAL
from knownminds.inference.measure import Dial, Values, with_columns
from knownminds.inference.session_measure import DeclaredMeasure

LEAST = 3  # a weight needs so many items
LEAST_ANSWERS = 6  # a line with a spread needs so many answers of a kind
TEXT, IMAGE, BOTH = 0, 1, 2
FEW = f"fewer than {LEAST} items answered as text, as image and as both"
FEW_BOTH = f"fewer than {LEAST_ANSWERS} answers to both cues, or without conflicts"
FEW_SINGLE = f"fewer than {LEAST_ANSWERS} answers to one of the cues alone"
# The weight of the text in agents without such a parameter; other agents weigh by precision.
FIXED = {
    "cue_combiner_equal": 0.5,
    "cue_weigher_equal": 0.5,
    "cue_weigher_text": 1.0,
    "cue_weigher_image": 0.0,
}

Columns = Mapping[str, Array]
Reading = tuple[float, str]  # a value, or NaN and the reason
# Takes the text's weight, the weight by precision, and all parameters; returns the measure, [n].
OfWeights = Callable[[Array, Array, Columns], Array]


def weight_measure(
    of: Callable[[Columns], Reading], columns: tuple[str, ...],
    of_weights: OfWeights = lambda weight, best, values: weight, **attributes: Any,
) -> DeclaredMeasure:  # fmt: skip
    """Return a measure of how much the text counts in answers to text and image.

    Parameters
    ----------
    of : A function that returns the measure, given the columns of one subject's trials.
    columns : The columns of the trials that it reads.
    of_weights : The measure of agents. The truth is known for agents whose names begin like the
        violator's.
    attributes : Those of `DeclaredMeasure`.
    """

    def read(measure: DeclaredMeasure, trials: Trials) -> Values:
        frame = with_columns(trials, measure.name, columns)
        subject, names = pd.factorize(frame["subject"])
        if "item" in columns:  # items of different sessions and windows differ
            item = frame.groupby(["session", "window", "item"], sort=False).ngroup()
            frame = frame.assign(item=item, session=0)
        numbers = {name: frame[name].to_numpy(dtype=float) for name in columns}
        with np.errstate(invalid="ignore", divide="ignore"):
            values = [
                of({name: column[subject == k] for name, column in numbers.items()})
                for k in range(len(names))
            ]
        return Values(np.array([value for value, _ in values]), tuple(why for _, why in values))

    def truth(measure: DeclaredMeasure, model: type[Model], theta: Array) -> Array:
        if not model.name.startswith(measure.violator):
            raise ValueError(
                f"The true {measure.name} is known of {measure.violator.replace('_', ' ')}s; got "
                f"{model.name}. Choose one of them."
            )
        values = dict(zip(model.parameters.names, theta.T, strict=True))
        best = _by_precision(values["sigma_text"] ** 2, values["sigma_image"] ** 2)
        weight = np.full(len(theta), FIXED[model.name]) if model.name in FIXED else best
        return of_weights(values.get("alpha", weight), best, values)

    usual: dict[str, Any] = {
        "source": "Ernst and Banks 2002",
        "dial": Dial({"alpha": 1.0}, reach=6.0, steps=241),
    }
    return DeclaredMeasure(read=read, of_parameters=truth, **usual | attributes)


# Sessions show each stimulus as text, as image and as both; or they show cues that disagree.
OF_CUES: dict[str, Any] = {
    "environments": MULTIMODAL,
    "settings": {"modality": "all"},
    "violator": "cue_combiner",
    "columns": ("session", "window", "item", "modality", "value", "response"),
}
OF_CONFLICTS: dict[str, Any] = {
    "environments": ("cue_conflict",),
    "violator": "cue_weigher",
    "columns": ("window", "modality", "value", "conflict", "response"),
}


def _excess(weight: Array, best: Array, values: Columns) -> Array:
    return weight - best


def of_items(read: Callable[[Array, Array, Array, Array], float]) -> Callable[[Columns], Reading]:
    """Return a function that reads a measure off the items answered in all three modalities.

    Parameters
    ----------
    read : A function of answers to text, to image and to both, and of values, [n] each.
    """

    def of(columns: Columns) -> Reading:
        item = np.unique(columns["item"], return_inverse=True)[1]
        said, value = np.full((item.max() + 1, 3), np.nan), np.empty(item.max() + 1)
        said[item, columns["modality"].astype(np.int64)] = columns["response"]
        value[item] = columns["value"]
        whole = np.isfinite(said).all(axis=1)
        if whole.sum() < LEAST:
            return np.nan, FEW
        text, image, both = said[whole].T
        result = float(read(text, image, both, value[whole]))
        return (result, "") if np.isfinite(result) else (np.nan, "no weight")

    return of


def text_weight(text: Array, image: Array, both: Array, value: Array) -> float:
    """Return the weight of the text in answers to both, by least squares: alpha in [0, 1].

    The line is y_both = alpha y_text + (1 - alpha) y_image.
    """
    spread = text - image
    return float(np.clip((spread @ (both - image)) / (spread @ spread), 0.0, 1.0))


def weight_excess(text: Array, image: Array, both: Array, value: Array) -> float:
    """Return the weight of the text less the weight at which the combination varies least.

    The latter goes by the inverse variances of the errors of answers to text and to image. Above 0,
    the text is trusted too much.
    """
    best = _by_precision(np.var(text - value), np.var(image - value))
    return text_weight(text, image, both, value) - float(best)


def efficiency(text: Array, image: Array, both: Array, value: Array) -> float:
    """Return the error of the best combination of single cues over that of both together (RRE).

    The best combination weighs by the inverse variances of the errors. 1 means as good as this
    combination; a larger number is better.
    """
    weight = _by_precision(np.var(text - value), np.var(image - value))
    best = weight * text + (1.0 - weight) * image
    return float(np.sqrt(np.sum((best - value) ** 2) / np.sum((both - value) ** 2)))


def _true_efficiency(weight: Array, best: Array, values: Columns) -> Array:
    """Return the efficiency on an unbounded scale."""
    text, image = values["sigma_text"] ** 2, values["sigma_image"] ** 2
    error = weight**2 * text + (1.0 - weight) ** 2 * image + values["sigma"] ** 2
    return np.sqrt(best * text / error)


def conflict_weight(columns: Columns) -> Reading:
    """Return the weight of the text where text and picture disagree: 1/2 + b / s.

    It comes from least squares over answers to both cues, y = a + s value + b conflict, with an a
    for each window. The value lies in the middle of both cues, and the conflict is the text less
    the picture. An observer whose answers are s times too steep has the same weight.
    """
    (value, conflict, response), _ = _centred(columns, BOTH, "value", "conflict", "response")
    shown = columns["conflict"][columns["modality"] == BOTH]
    if len(value) < LEAST_ANSWERS or np.ptp(shown) == 0.0:
        return np.nan, FEW_BOTH
    regressors = np.column_stack([value, conflict])
    (slope, push), *_ = np.linalg.lstsq(regressors, response, rcond=None)
    if not slope > 0.0:
        return np.nan, "answers do not grow with values"
    return float(0.5 + push / slope), ""


def conflict_excess(columns: Columns) -> Reading:
    """Return the weight of the text where cues disagree, less the weight that its precision
    deserves.

    The latter is v_i / (v_t + v_i). v_t and v_i are the variances of answers to text and to
    pictures alone around their lines over the value, in units of the value (divided by the square
    of the slope). Its bias is subtracted, w (1 - w) (1 - 2 w) (1 / n_t + 1 / n_i) with n degrees of
    freedom. Above 0, the text is trusted too much.
    """
    weight, why = conflict_weight(columns)
    (text, n_text), (image, n_image) = (_spread(columns, cue) for cue in (TEXT, IMAGE))
    if why or not text + image > 0.0:
        return np.nan, why or FEW_SINGLE
    best = image / (text + image)
    best -= best * (1 - best) * (1 - 2 * best) * (1 / n_text + 1 / n_image)
    return weight - best, ""


CUE_MEASURES = (
    weight_measure(
        of_items(text_weight),
        name="cue_weight",
        summary="weight of the text in answers to text and image together",
        null=0.5,
        bounds=(0.0, 1.0),
        rational="cue_combiner_equal",
        **OF_CUES,
    ),
    weight_measure(
        of_items(weight_excess),
        name="cue_weight_excess",
        summary="weight of the text less the weight that its precision deserves",
        bounds=(-1.0, 1.0),
        rational="cue_combiner_optimal",
        of_weights=_excess,
        **OF_CUES,
    ),
    weight_measure(
        of_items(efficiency),
        name="cue_efficiency",
        summary="error of a combination by precision over that of the answers to both",
        source="Ernst and Banks 2002; BayesBench",
        bounds=(0.0, np.inf),
        dial=Dial({"sigma": -1.0}, reach=6.0, steps=241),
        of_weights=_true_efficiency,
        **OF_CUES,
    ),
    weight_measure(
        conflict_weight,
        name="conflict_weight",
        summary="weight of the text where it disagrees with the picture",
        null=0.5,
        rational="cue_weigher_equal",
        **OF_CONFLICTS,
    ),
    weight_measure(
        conflict_excess,
        name="conflict_weight_excess",
        summary="weight of the text where cues disagree, less what its precision deserves",
        rational="cue_weigher_optimal",
        of_weights=_excess,
        **OF_CONFLICTS,
    ),
)


def _by_precision(text: Any, image: Any) -> Any:
    """Return the weight of the text by the inverse of both variances."""
    return image / (text + image)


def _spread(columns: Columns, cue: int) -> tuple[float, int]:
    """Return the variance of answers to one cue in units of the value, and its degrees of freedom.

    NaN if there are too few answers, or if answers do not grow with values.
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
