"""Weighers of cues that may disagree: optimal, averaging, by one cue alone, or with any weight."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import log_ndtr

from knownminds.agents.compiler.definition import HALF_LOG_2_PI, Law, positive, real, unit
from knownminds.agents.model import Model
from knownminds.agents.variants import holding

__all__ = [
    "CueWeigher",
    "CueWeigherBlurred",
    "CueWeigherEqual",
    "CueWeigherImage",
    "CueWeigherOptimal",
    "CueWeigherText",
]

TEXT, IMAGE = 0, 1  # modalities; 2 means both
ERNST = "Ernst and Banks 2002"


@dataclass(frozen=True)
class Share(Law):
    """A share with a normal error; a number beyond 0 or 1 is given as that end."""

    mean: Any
    sd: Any

    def log_density(self, y: Any) -> Any:
        high = y >= 1.0
        off = (y - self.mean) / self.sd
        inside = -0.5 * off**2 - np.log(self.sd) - HALF_LOG_2_PI
        return np.where((y <= 0.0) | high, log_ndtr(np.where(high, -off, off)), inside)

    def at(self, normal: Any) -> Any:
        return np.clip(self.mean + self.sd * normal, 0.0, 1.0)


class CueWeigher(Model):
    """Answers to both cues with a weighted mean of what it takes from each.

    Text and image show the locations x_t and x_i. Answers to one cue are y_t ~ N(x_t + bias_text,
    sigma_text) and y_i ~ N(x_i + bias_image, sigma_image). Answers to both cues have the mean alpha
    (x_t + bias_text) + (1 - alpha) (x_i + bias_image) and the variance (alpha sigma_text)**2 + ((1
    - alpha) sigma_image)**2. All answers are kept on the line, from 0 to 1.
    """

    name = "cue_weigher"
    summary = "weighs cues that may disagree, whatever their precision"
    source = ERNST

    alpha = unit("weight of the text; that of the picture is 1 - alpha", mean=0.0, sd=1.0)
    sigma_text = positive("standard deviation of answers to text alone", mean=-3.2, sd=0.5)
    sigma_image = positive("standard deviation of answers to pictures alone", mean=-3.2, sd=0.5)
    bias_text = real("mean error of answers to text alone", mean=0.0, sd=0.03)
    bias_image = real("mean error of answers to pictures alone", mean=0.0, sd=0.03)

    def spreads(self, trial: Any) -> tuple[Any, Any]:
        """Return the standard deviations of text and picture."""
        return self.sigma_text, self.sigma_image

    def weight(self, text: Any, image: Any) -> Any:
        """Return the weight of the text, given the cues' standard deviations."""
        return self.alpha

    def respond(self, trial: Any) -> Any:
        text, image = self.spreads(trial)
        both = self.weight(text, image)
        share = np.where(trial.modality == TEXT, 1.0, np.where(trial.modality == IMAGE, 0.0, both))
        first = trial.value + 0.5 * trial.conflict + self.bias_text
        second = trial.value - 0.5 * trial.conflict + self.bias_image
        variance = (share * text) ** 2 + ((1.0 - share) * image) ** 2
        return Share(share * first + (1.0 - share) * second, np.sqrt(variance))


class CueWeigherOptimal(CueWeigher):
    """A cue weigher with the weights of least variance.

    alpha = sigma_image**2 / (sigma_text**2 + sigma_image**2), the maximum-likelihood weight if
    errors are normal and independent.
    """

    name = "cue_weigher_optimal"
    summary = "weighs cues that may disagree by their precision"
    nested_in = "cue_weigher"

    alpha = property(lambda self: self.weight(self.sigma_text, self.sigma_image))

    def weight(self, text: Any, image: Any) -> Any:
        return image**2 / (text**2 + image**2)


CueWeigherEqual = holding(
    CueWeigher, "cue_weigher_equal", "takes the mean of cues that may disagree", alpha=0.5
)
CueWeigherText = holding(
    CueWeigher,
    "cue_weigher_text",
    "goes by the text where a picture may disagree with it",
    alpha=1.0,
)
CueWeigherImage = holding(
    CueWeigher,
    "cue_weigher_image",
    "goes by the picture where a text may disagree with it",
    alpha=0.0,
)


class CueWeigherBlurred(CueWeigherOptimal):
    """An optimal cue weigher that learns less from a picture, the more it is blurred.

    The variance of answers to a picture is sigma_image**2 + (per_pixel blur)**2, and the weights in
    a trial follow from its blur.
    """

    name = "cue_weigher_blurred"
    summary = "weighs cues by their precision, which blur takes from pictures"
    contains: ClassVar = {"cue_weigher_optimal": {"per_pixel": 0.0}}

    per_pixel = positive("standard deviation that blur adds, per pixel", mean=-5.3, sd=0.5)

    def spreads(self, trial: Any) -> tuple[Any, Any]:
        """Return the standard deviations of text and of a picture with this blur."""
        added = (self.per_pixel * trial.blur) ** 2
        return self.sigma_text, np.sqrt(self.sigma_image**2 + added)
