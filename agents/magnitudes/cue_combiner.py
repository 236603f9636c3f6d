"""Combiners of cues: the answer to text and picture follows from the answers to each alone."""

from __future__ import annotations

from math import hypot
from typing import Any, ClassVar

import numpy as np

from knownminds.agents.compiler.definition import positive, unit
from knownminds.agents.model import Model

from .observers import CensoredEstimate

__all__ = ["CueCombiner", "CueCombinerEqual", "CueCombinerOptimal"]

TEXT, IMAGE = 0, 1  # modalities; any other number means both
NOTHING = -1.0  # stands for a missing answer
PER_PIXEL = 0.01  # share of the unit that `blurred` adds for each pixel of blur


def blurred(sigma_image: float, blur: float) -> float:
    """Return the spread of answers to a blurred picture, given the spread for a sharp one.

    The spread is sqrt(sigma_image**2 + (0.01 blur)**2). This is our setting for studies: each pixel
    of blur adds a hundredth of the unit, independent of everything else that makes answers vary.
    """
    return hypot(sigma_image, PER_PIXEL * blur)


class CueCombiner(Model):
    """Answers to text and picture with a weighted mean of its answers to either alone.

    y_text ~ N(x, sigma_text), y_image ~ N(x, sigma_image), and y ~ N(alpha y_text + (1 - alpha)
    y_image, sigma), in fractions of the unit. y_text and y_image are the answers to the same item.
    If one of them was not required, or is missing, the observer has an impression that it does not
    state. The mean of this impression is x, and the answer to both cues varies with it. Such an
    answer counts as a trial like others, but says little about alpha.
    """

    name = "cue_combiner"
    summary = "answers to both cues with a weighted mean of its answers to either"
    source = "Ernst and Banks 2002"
    separate = ("window", "item")
    censored: ClassVar[bool] = True

    alpha: Any = unit(
        "weight of the text; that of the picture is 1 - alpha",
        0.0,
        1.5,
        source="Ernst and Banks 2002",
    )
    sigma_text = positive("standard deviation of answers to text alone", -2.7, 0.7)
    sigma_image = positive("standard deviation of answers to pictures alone", -2.7, 0.7)
    sigma = positive("standard deviation of answers to both around the combination", -3.2, 0.7)

    def begin(self) -> None:
        self.text: Any = NOTHING
        self.image: Any = NOTHING

    def respond(self, trial: Any) -> Any:
        x, rest = trial.value / trial.unit, 1.0 - self.alpha
        no_text, no_image = self.text < 0.0, self.image < 0.0
        mean = self.alpha * np.where(no_text, x, self.text)
        mean = mean + rest * np.where(no_image, x, self.image)
        variance = self.sigma**2 + np.where(no_text, (self.alpha * self.sigma_text) ** 2, 0.0)
        variance = variance + np.where(no_image, (rest * self.sigma_image) ** 2, 0.0)
        of_text, of_image = trial.modality == TEXT, trial.modality == IMAGE
        sd = np.where(of_image, self.sigma_image, np.sqrt(variance))
        return CensoredEstimate(
            np.where(of_text | of_image, x, mean),
            np.where(of_text, self.sigma_text, sd),
            trial.unit,
            trial.ceiling,
        )

    def update(self, trial: Any) -> None:
        answer = trial.response / trial.unit
        self.text = np.where(trial.modality == TEXT, answer, self.text)
        self.image = np.where(trial.modality == IMAGE, answer, self.image)


class CueCombinerEqual(CueCombiner):
    """A cue combiner with equal weights, alpha = 1/2."""

    name = "cue_combiner_equal"
    nested_in = "cue_combiner"
    summary = "answers to both cues with the mean of its answers to either"
    alpha = 0.5


class CueCombinerOptimal(CueCombiner):
    """A cue combiner with the weights of least variance, alpha = sigma_image**2 / (sum of both).

    The precisions are those of the answers to each cue alone.
    """

    name = "cue_combiner_optimal"
    nested_in = "cue_combiner"
    summary = "weights its answers to either cue by their precisions"
    alpha = property(lambda self: self.sigma_image**2 / (self.sigma_text**2 + self.sigma_image**2))
