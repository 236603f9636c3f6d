"""Measures of how single participants weigh words against pictures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from knownminds.agents import Agent
from knownminds.agents.parameters import Array
from knownminds.environments import Trials
from knownminds.environments.later import pandas as pd
from knownminds.inference.measure import Dial, SubjectMeasure, Values, with_columns

from .magnitude_answers import MULTIMODAL

LEAST = 3  # items that a weight needs
_NEEDED = ("session", "window", "item", "modality", "value", "response")


class _CueMeasure(SubjectMeasure):
    """A measure of sessions that show each stimulus as text, as image and as both."""

    source = "Ernst and Banks 2002"
    environments = MULTIMODAL
    settings: Mapping[str, Any] = {"modality": "all"}  # of the experiment, to be read off it
    violator = "cue_combiner"

    def _of(self, items: _Items) -> Array:
        """Return the measure of each subject."""
        raise NotImplementedError

    def values(self, trials: Trials) -> Values:
        """Read the measure off each subject's items that were answered in all three modalities."""
        items = _Items.read(trials, self.name)
        with np.errstate(invalid="ignore", divide="ignore"):
            value = self._of(items)
        few = items.sum(np.ones(len(items.subject))) < LEAST
        value = np.where(few | ~np.isfinite(value), np.nan, value)
        why = f"fewer than {LEAST} items answered as text, as image and as both"
        return Values(
            value,
            tuple(
                "" if np.isfinite(v) else why if f else "no weight"
                for v, f in zip(value, few, strict=True)
            ),
        )


class CueWeight(_CueMeasure):
    """The weight of the text in answers to both, by least squares: alpha in [0, 1].

    y_both = alpha y_text + (1 - alpha) y_image. The test rejects equal weights.
    """

    name = "cue_weight"
    bounds = (0.0, 1.0)
    summary = "weight of the text in answers to text and image together"
    null = 0.5
    rational = "cue_combiner_equal"
    dial = Dial({"alpha": 1.0}, reach=6.0, steps=241)

    def truth(self, model: type[Agent], theta: Array) -> Array:
        """Return the weight of combiners with parameters theta[n, P]."""
        return _four(model, theta, self.name)[0]

    def _of(self, items: _Items) -> Array:
        return items.linear_weight()


class CueWeightExcess(_CueMeasure):
    """The weight of the text less the one with which the combination would vary least.

    That is by the inverse variances of the errors of answers to text and to image; the test
    rejects such weights. Above 0, the text is trusted too much.
    """

    name = "cue_weight_excess"
    bounds = (-1.0, 1.0)
    summary = "weight of the text less the weight that its precision deserves"
    null = 0.0
    rational = "cue_combiner_optimal"
    dial = Dial({"alpha": 1.0}, reach=6.0, steps=241)

    def truth(self, model: type[Agent], theta: Array) -> Array:
        """Return the excess of combiners with parameters theta[n, P]."""
        alpha, text, image, _ = _four(model, theta, self.name)
        excess: Array = alpha - image**2 / (text**2 + image**2)
        return excess

    def _of(self, items: _Items) -> Array:
        return items.linear_weight() - items.precise_weight()


class CueEfficiency(_CueMeasure):
    """Error of the best combination of one's own answers over that of the answers to both (RRE).

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

    def truth(self, model: type[Agent], theta: Array) -> Array:
        """Return the efficiency of combiners with parameters theta[n, P], on an unbounded scale."""
        alpha, text, image, sigma = _four(model, theta, self.name)
        best = text**2 * image**2 / (text**2 + image**2)
        own = (alpha * text) ** 2 + ((1.0 - alpha) * image) ** 2 + sigma**2
        efficiency: Array = np.sqrt(best / own)
        return efficiency

    def _of(self, items: _Items) -> Array:
        weight = items.precise_weight()[items.subject]
        best = weight * items.text + (1.0 - weight) * items.image
        own = items.sum((items.both - items.value) ** 2)
        ratio: Array = np.sqrt(items.sum((best - items.value) ** 2) / own)
        return ratio


class _Items:
    """Items that were answered in all three modalities, of several subjects; [n] each."""

    def __init__(self, subject: NDArray[np.int64], n_subjects: int, columns: tuple[Array, ...]):
        self.subject, self.n_subjects = subject, n_subjects
        self.text, self.image, self.both, self.value = columns

    @classmethod
    def read(cls, trials: Trials, name: str) -> _Items:
        frame = with_columns(trials, name, _NEEDED)
        subject, names = pd.factorize(frame["subject"])
        keys = ["subject", "session", "window", "item"]
        item = frame.groupby(keys, sort=False).ngroup().to_numpy()
        modality = frame["modality"].to_numpy(dtype=np.int64)
        said = np.full((int(item.max()) + 1, 3), np.nan)
        said[item, modality] = frame["response"].to_numpy(dtype=float)
        value, owner = np.empty(len(said)), np.empty(len(said), dtype=np.int64)
        value[item], owner[item] = frame["value"].to_numpy(dtype=float), subject
        whole = np.isfinite(said).all(axis=1)
        text, image, both = said[whole].T
        return cls(owner[whole], len(names), (text, image, both, value[whole]))

    def sum(self, values: Array) -> Array:
        """Sum over the items of each subject."""
        return np.bincount(self.subject, values, self.n_subjects).astype(float)

    def linear_weight(self) -> Array:
        """Fit each subject's weight of the text in [0, 1]."""
        spread = self.text - self.image
        result = self.sum(spread * (self.both - self.image)) / self.sum(spread**2)
        return np.clip(result, 0.0, 1.0)

    def precise_weight(self) -> Array:
        """Return the weight of the text by the inverse variances of both errors."""
        text, image = (self._variance(said - self.value) for said in (self.text, self.image))
        weight: Array = image / (text + image)
        return weight

    def _variance(self, error: Array) -> Array:
        n = self.sum(np.ones(len(error)))
        mean = self.sum(error) / n
        variance: Array = self.sum((error - mean[self.subject]) ** 2) / n
        return variance


def _four(model: type[Agent], theta: Array, measure: str) -> tuple[Array, Array, Array, Array]:
    """Return weight of the text, and the spreads of text, image and combination, [n] each."""
    names = model.parameters.names
    if "sigma_text" not in names:
        raise ValueError(
            f"The true {measure} is known of cue combiners; got {model.name}. Choose one of them."
        )
    text, image, sigma = (
        theta[:, names.index(name)] for name in ("sigma_text", "sigma_image", "sigma")
    )
    if "alpha" in names:
        return theta[:, names.index("alpha")], text, image, sigma
    if model.name == "cue_combiner_equal":
        return np.full(len(theta), 0.5), text, image, sigma
    return image**2 / (text**2 + image**2), text, image, sigma
