"""Measures of how cues are weighed that disagree by a known amount."""

from __future__ import annotations

import numpy as np

from knownminds.agents import Agent
from knownminds.agents.parameters import Array
from knownminds.environments import Trials
from knownminds.environments.later import pandas as pd
from knownminds.inference.measure import Dial, SubjectMeasure, Values, with_columns

LEAST = 6  # answers of a kind that a line with a spread needs
TEXT, IMAGE, BOTH = 0, 1, 2
_NEEDED = ("window", "modality", "value", "conflict", "response")
_FEW = f"fewer than {LEAST} answers to both cues, or without conflicts"
_FEW_SINGLE = f"fewer than {LEAST} answers to one of the cues alone"


class _ConflictMeasure(SubjectMeasure):
    """A measure of sessions in which words and pictures disagree."""

    source = "Ernst and Banks 2002"
    environments = ("cue_conflict",)
    violator = "cue_weigher"
    dial = Dial({"alpha": 1.0}, reach=6.0, steps=241)

    def values(self, trials: Trials) -> Values:
        """Read the measure off each subject's answers."""
        frame = with_columns(trials, self.name, _NEEDED)
        subject, names = pd.factorize(frame["subject"])
        columns = {name: frame[name].to_numpy(dtype=float) for name in _NEEDED}
        answered = np.isfinite(columns["response"])
        result = []
        for k in range(len(names)):
            own = (subject == k) & answered
            result.append(self._of({name: column[own] for name, column in columns.items()}))
        value = np.array([v for v, _ in result])
        return Values(value, tuple(why for _, why in result))

    def _of(self, own: dict[str, Array]) -> tuple[float, str]:
        """Return the measure of one subject, or NaN and the reason."""
        raise NotImplementedError


class ConflictWeight(_ConflictMeasure):
    """The weight of the text where text and picture disagree: 1/2 + b / s.

    By least squares over answers to both cues, y = a + s value + b conflict, with a of each
    window; the value lies in the middle of both cues, and the conflict is the text less the
    picture. An observer whose answers are s times too steep has the same weight. The test rejects
    equal weights.
    """

    name = "conflict_weight"
    summary = "weight of the text where it disagrees with the picture"
    null = 0.5
    rational = "cue_weigher_equal"

    def truth(self, model: type[Agent], theta: Array) -> Array:
        """Return the weight of cue weighers with parameters theta[n, P]."""
        return _weights(model, theta, self.name)[0]

    def _of(self, own: dict[str, Array]) -> tuple[float, str]:
        return _weight(own)


class ConflictWeightExcess(_ConflictMeasure):
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

    def truth(self, model: type[Agent], theta: Array) -> Array:
        """Return the excess of cue weighers with parameters theta[n, P]."""
        alpha, best = _weights(model, theta, self.name)
        excess: Array = alpha - best
        return excess

    def _of(self, own: dict[str, Array]) -> tuple[float, str]:
        weight, why = _weight(own)
        (text, n_text), (image, n_image) = (_spread(own, cue) for cue in (TEXT, IMAGE))
        if why or not text + image > 0.0:
            return np.nan, why or _FEW_SINGLE
        best = image / (text + image)
        best -= best * (1 - best) * (1 - 2 * best) * (1 / n_text + 1 / n_image)
        return weight - best, ""


def _weight(own: dict[str, Array]) -> tuple[float, str]:
    """Fit the weight of the text in answers to both cues."""
    rows = own["modality"] == BOTH
    if rows.sum() < LEAST or np.ptp(own["conflict"][rows]) == 0.0:
        return np.nan, _FEW
    window = own["window"][rows]
    (value, conflict, response), _ = _centred(
        window, own["value"][rows], own["conflict"][rows], own["response"][rows]
    )
    (slope, push), *_ = np.linalg.lstsq(np.column_stack([value, conflict]), response, rcond=None)
    return (0.5 + push / slope, "") if slope > 0.0 else (np.nan, "answers do not grow with values")


def _spread(own: dict[str, Array], cue: int) -> tuple[float, int]:
    """Return the variance of answers to one cue in units of the value, and its degrees of freedom.

    NaN where there are too few, or where answers do not grow with values.
    """
    rows = own["modality"] == cue
    if rows.sum() < LEAST:
        return np.nan, 1
    (value, response), windows = _centred(
        own["window"][rows], own["value"][rows], own["response"][rows]
    )
    slope = float(value @ response / (value @ value))
    free = len(value) - windows - 1
    rest = response - slope * value
    return (float(rest @ rest) / free / slope**2, free) if slope > 0.0 else (np.nan, free)


def _centred(window: Array, *columns: Array) -> tuple[list[Array], int]:
    """Return columns less their means by window, and how many windows there are."""
    codes, names = pd.factorize(window)
    n = np.bincount(codes)
    return [x - (np.bincount(codes, x) / n)[codes] for x in columns], len(names)


def _weights(model: type[Agent], theta: Array, measure: str) -> tuple[Array, Array]:
    """Return the weight of the text, and the one that its precision deserves, [n] each."""
    names = model.parameters.names
    if not model.name.startswith("cue_weigher"):
        raise ValueError(
            f"The true {measure} is known of cue weighers; got {model.name}. Choose one of them."
        )
    text, image = (theta[:, names.index(name)] ** 2 for name in ("sigma_text", "sigma_image"))
    best: Array = image / (text + image)
    held = {"cue_weigher_equal": 0.5, "cue_weigher_text": 1.0, "cue_weigher_image": 0.0}
    if "alpha" in names:
        return theta[:, names.index("alpha")], best
    return (np.full(len(theta), held[model.name]) if model.name in held else best), best
