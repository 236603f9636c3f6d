"""One observer of all magnitudes: noise of each cue, a learned prior, instructions, and cues."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from knownminds.agents.compiler.definition import positive, unit
from knownminds.agents.model import Model
from knownminds.agents.variants import holding
from knownminds.environments import CONDITIONS, Environment

from .observers import REVIEW, CensoredEstimate

__all__ = [
    "BayesianObserver",
    "BayesianObserverEqual",
    "BayesianObserverFlat",
    "BayesianObserverPower",
    "BayesianObserverStatic",
    "BayesianObserverUnsteered",
]

TEXT, IMAGE = 0, 1  # modalities; 2 means both
VERBAL, NUMERIC, BIASED = map(CONDITIONS.index, ("verbal", "numeric", "numeric_biased"))
# Unit of the task, by the distance between the middles of neighbouring windows in such units. The
# ranges are the shipped ones; those of positions and ratios are the same.
STEPS = {1.0: 0.2, 18.0: 1 / 6, 80.0: 0.1875}
BIAS = 0.5  # steps by which the middle of the biased range lies below that of the window
ERNST = "Ernst and Banks 2002"
PETZSCHNER = "Petzschner and Glasauer 2011"


class BayesianObserver(Model):
    """Weighs noise, prior, instructions and cues alike in all tasks, conditions and modalities.

    All is in fractions of the task's unit. A measurement of the stimulus x has the variance v:
    noise_text**2 of words, and noise_image**2 + (blur_slope blur)**2 of a picture. Of both it is
    a**2 v_text + (1 - a)**2 v_image. The weight of words, a, lies between 1/2 and the optimal one:
    cue_optimality v_image / (v_text + v_image) + (1 - cue_optimality) / 2.

    The prior has the precision p = prior_precision, times steering_gain where the prompt says that
    the material is noisy (conditions verbal, numeric, numeric_biased). Its mean m begins in the
    middle of the window, and follows the observer's own answers: m <- m + adaptation (y - m). Where
    a range was told, the mean is told_weight times the middle of that range, and the rest is m.

    So the weight of the prior is w = v p / (1 + v p), and y ~ N((1 - w) x + w mean, sqrt((1 - w)**2
    v + report_noise**2)). Answers are kept from 0 to the ceiling. Nothing is carried over from one
    window, modality, condition or session to another.

    In a single cell only the slope, the spread and the pull of the past are seen, which several
    combinations of parameters give. Noise and prior separate over cells of different noise.

    Windows, and the biased range, are the shipped ones. Trials of a task with other ranges have the
    likelihood NaN, and their fit fails.
    """

    name = "bayesian_observer"
    summary = "one observer of all magnitudes: noise, learned prior, instructions and cues"
    source = f"{ERNST}; {PETZSCHNER}; {REVIEW}"
    separate = ("window", "modality", "condition", "unit")
    censored: ClassVar[bool] = True

    noise_text = positive(
        "standard deviation of measurements of words, as a fraction of the unit", -3.5, 0.8
    )
    noise_image = positive(
        "standard deviation of measurements of sharp pictures, as a fraction of the unit", -3.0, 0.8
    )
    blur_slope = positive(
        "standard deviation that a pixel of blur adds, as a fraction of the unit", -5.0, 0.8
    )
    prior_precision = positive(
        "precision of the prior, 1 / variance in squared units", 4.0, 1.0, source=REVIEW
    )
    adaptation = unit(
        "step of the prior's mean towards each answer; 0 if the past does not count",
        -1.5,
        1.0,
        source=PETZSCHNER,
    )
    steering_gain = positive(
        "factor of the prior's precision where the prompt speaks of noise; 1 without effect",
        0.0,
        0.7,
    )
    told_weight = unit("weight of the middle of a told range in the prior's mean", 0.0, 1.5)
    cue_optimality = unit(
        "0 if words and picture have equal weights, 1 if weights are optimal", 0.0, 1.5,
        source=ERNST,
    )  # fmt: skip
    report_noise = positive(
        "standard deviation of answers around the belief, rounding included", -4.0, 0.7
    )
    exponent: Any = 1.0

    @classmethod
    def check_plays(cls, environment: Environment) -> None:
        """Raise ValueError if this is no task with the shipped ranges."""
        super().check_plays(environment)
        told = environment.settings
        shipped = type(environment)().settings
        for name in ("ranges", "biased_range"):
            if told.get(name) != shipped.get(name):
                raise ValueError(
                    f"{cls.name} knows the shipped {name} of {environment.name}; got "
                    f"{told[name]}. Leave the setting out, or choose static_bayes_observer."
                )

    def begin(self, trial: Any) -> None:  # type: ignore[override]
        steps: Any = np.nan
        for task_unit, step in STEPS.items():
            steps = np.where(np.abs(trial.unit - task_unit) < 1e-6, step, steps)
        self.mean = 0.5 + (trial.window - 1.0) * steps
        biased = trial.condition == BIASED
        self.told = self.mean - np.where(biased, BIAS * steps, 0.0)
        ranged = biased | (trial.condition == NUMERIC)
        self.told_share = np.where(ranged, self.told_weight, 0.0)
        steered = ranged | (trial.condition == VERBAL)
        self.precision = self.prior_precision * np.where(steered, self.steering_gain, 1.0)

    def variance(self, trial: Any) -> Any:
        """Return the variance of the measurement."""
        text = self.noise_text**2
        image = self.noise_image**2 + (self.blur_slope * trial.blur) ** 2
        # This is a**2 text + (1 - a)**2 image, in fewer steps.
        optimality = self.cue_optimality * (self.cue_optimality - 2.0)
        whole = text + image
        both = 0.25 * (whole + optimality * (image - text) ** 2 / whole)
        return np.where(
            trial.modality == TEXT, text, np.where(trial.modality == IMAGE, image, both)
        )

    def respond(self, trial: Any) -> Any:
        variance = self.variance(trial)
        kept = 1.0 / (1.0 + variance * self.precision)
        x = (trial.value / trial.unit) ** self.exponent
        prior = self.mean + self.told_share * (self.told - self.mean)
        sd = np.sqrt(kept**2 * variance + self.report_noise**2)
        return CensoredEstimate(prior + kept * (x - prior), sd, trial.unit, trial.ceiling)

    def update(self, trial: Any) -> None:
        self.mean = self.mean + self.adaptation * (trial.response / trial.unit - self.mean)


class BayesianObserverPower(BayesianObserver):
    """A Bayesian observer to whom the stimulus x appears as x**exponent (Stevens 1957)."""

    name = "bayesian_observer_power"
    summary = "one observer of all magnitudes, which appear to it by a power law"
    contains: ClassVar = {"bayesian_observer": {"exponent": 1.0}}

    exponent = positive("exponent of the power law; 1 without one", 0.0, 0.3)


BayesianObserverStatic = holding(
    BayesianObserver,
    "bayesian_observer_static",
    "one observer of all magnitudes, whose prior does not follow its answers",
    adaptation=0.0,
)
BayesianObserverEqual = holding(
    BayesianObserver,
    "bayesian_observer_equal",
    "one observer of all magnitudes, to whom words and picture count alike",
    cue_optimality=0.0,
)
BayesianObserverUnsteered = holding(
    BayesianObserver,
    "bayesian_observer_unsteered",
    "one observer of all magnitudes, whom instructions do not change",
    steering_gain=1.0,
    told_weight=0.0,
)
BayesianObserverFlat = holding(
    BayesianObserver,
    "bayesian_observer_flat",
    "one observer of all magnitudes, without a prior",
    prior_precision=0.0,
    adaptation=0.0,
    steering_gain=1.0,
    told_weight=0.0,
)
