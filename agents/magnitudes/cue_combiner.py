"""Combiners of cues: an answer to text and picture from the answers to either alone.

Their kernels are written by hand: what they remember is as long as the list of items, while a
definition remembers a fixed number of numbers.
"""

from __future__ import annotations

from functools import partial
from math import hypot, log, pi, sqrt
from typing import ClassVar

import numpy as np
from numba import njit
from scipy.special import ndtri

from knownminds.agents.compiled import compiled
from knownminds.agents.exponential import log_share_below, mixed_with_lapse
from knownminds.agents.parameters import POSITIVE, UNIT, Array, Parameter, Parameters
from knownminds.agents.recommended_design import RecommendedDesign
from knownminds.agents.responder import LawResponder
from knownminds.environments.environment import Observation

from .observers import Estimate

__all__ = ["CueCombiner", "CueCombinerEqual", "CueCombinerOptimal"]

LANES = 32  # as in sequences.py
TINY = 1e-300  # whose logarithm and quantile are finite
HALF_LOG_2_PI = 0.5 * log(2.0 * pi)
TEXT, IMAGE, BOTH = 0, 1, 2
PER_PIXEL = 0.01  # of the unit, which `blurred` adds for each pixel of blur


@njit(forceinline=True, error_model="numpy", fastmath={"contract"})
def _combined(alpha, own_text, own_image, sigma, answers, x):  # type: ignore[no-untyped-def]
    """Return the mean of an answer to both, its variance, and the slope of the mean in alpha.

    And by 1 or 0 whether the answer to text and that to the picture are unknown: those are x, and
    the answer to both varies with them.
    """
    text, image = 0.0 if answers[0] >= 0.0 else 1.0, 0.0 if answers[1] >= 0.0 else 1.0
    first, second = x if text > 0.0 else answers[0], x if image > 0.0 else answers[1]
    variance = sigma * sigma
    variance += text * (alpha * own_text) ** 2
    variance += image * ((1.0 - alpha) * own_image) ** 2
    return alpha * first + (1.0 - alpha) * second, variance, first - second, text, image


@compiled(fastmath={"contract"})
def log_likelihood_of_four(  # type: ignore[no-untyped-def]
    wide, lapse, row, start, columns
):
    """Log-likelihood and gradient for wide [N, 4]: alpha, sigma_text, sigma_image, sigma.

    Answers to text or picture alone are remembered by item. One that is not there (not asked, or
    missing) is a number around the value that nobody has seen: the answer to both then varies with
    it.
    """
    response, modality, item, value, unit, ceiling = columns
    total = np.zeros(len(wide))
    gradient = np.zeros((len(wide), 4 if lapse is None else 5))
    items = 1
    for t in range(start[-1]):
        for i in range(LANES):
            items = max(items, int(item[t, i]) + 1)
    known = np.empty((2, items))
    for block in range(len(row)):
        for i in range(LANES):
            k = row[block, i]
            alpha, own_text, own_image, sigma = wide[k]
            known[:] = np.nan
            for t in range(start[block], start[block + 1]):
                answer, top = response[t, i], ceiling[t, i]
                if not answer >= 0.0:
                    continue
                x, y = value[t, i] / unit[t, i], answer / unit[t, i]
                what, which = int(modality[t, i]), max(int(item[t, i]), 0)
                # Derivatives of the mean in alpha, and of the variance in each parameter, halved.
                mean, mean_alpha, text, image = x, 0.0, 0.0, 0.0
                variance = sigma * sigma
                if what == TEXT:
                    variance = own_text * own_text
                    known[TEXT, which] = y
                elif what == IMAGE:
                    variance = own_image * own_image
                    known[IMAGE, which] = y
                else:
                    mean, variance, mean_alpha, text, image = _combined(
                        alpha, own_text, own_image, sigma, known[:, which], x
                    )
                sd = sqrt(variance)
                off = (y - mean) / sd
                inside = 0.0 < answer < top
                if inside:
                    log_density = -HALF_LOG_2_PI - log(sd) - 0.5 * off * off - log(unit[t, i])
                    push, curve = off / sd, (off * off - 1.0) / variance
                else:
                    side = -1.0 if answer <= 0.0 else 1.0
                    log_density, rate = log_share_below(-side * off)
                    push, curve = side * rate / sd, side * rate * off / variance
                if lapse is not None:
                    anywhere = 1.0 / top if inside else 0.0
                    log_density, weight, by = mixed_with_lapse(log_density, anywhere, lapse[k])
                    gradient[k, 4] += by
                    push *= weight
                    curve *= weight
                total[k] += log_density
                if what == TEXT:
                    gradient[k, 1] += curve * own_text
                elif what == IMAGE:
                    gradient[k, 2] += curve * own_image
                else:
                    rest = 1.0 - alpha
                    gradient[k, 0] += push * mean_alpha
                    gradient[k, 0] += curve * text * alpha * own_text**2
                    gradient[k, 0] -= curve * image * rest * own_image**2
                    gradient[k, 1] += curve * text * alpha**2 * own_text
                    gradient[k, 2] += curve * image * rest**2 * own_image
                    gradient[k, 3] += curve * sigma
    return total, gradient


@compiled(fastmath={"contract"})
def log_likelihood(  # type: ignore[no-untyped-def]
    theta, lapse, n_actions, row, start, *columns
):
    """Combine with the weight alpha."""
    return log_likelihood_of_four(theta, lapse, row, start, columns)


@compiled(fastmath={"contract"})
def log_likelihood_equal(  # type: ignore[no-untyped-def]
    theta, lapse, n_actions, row, start, *columns
):
    """Combine with equal weights."""
    wide = np.full((len(theta), 4), 0.5)
    for k in range(len(theta)):  # an assignment of slices takes seconds to compile
        for j in range(3):
            wide[k, 1 + j] = theta[k, j]
    total, gradient = log_likelihood_of_four(wide, lapse, row, start, columns)
    return total, gradient[:, 1:].copy()


@compiled(fastmath={"contract"})
def log_likelihood_optimal(  # type: ignore[no-untyped-def]
    theta, lapse, n_actions, row, start, *columns
):
    """Combine with weights that are inverse to the variances."""
    wide = np.empty((len(theta), 4))
    for k in range(len(theta)):
        text, image = theta[k, 0] ** 2, theta[k, 1] ** 2
        wide[k, 0] = image / (text + image)
        for j in range(3):
            wide[k, 1 + j] = theta[k, j]
    total, gradient = log_likelihood_of_four(wide, lapse, row, start, columns)
    for k in range(len(theta)):
        alpha = wide[k, 0]
        gradient[k, 1] -= gradient[k, 0] * 2.0 * alpha * (1.0 - alpha) / theta[k, 0]
        gradient[k, 2] += gradient[k, 0] * 2.0 * alpha * (1.0 - alpha) / theta[k, 1]
    return total, gradient[:, 1:].copy()


@compiled(fastmath={"contract"})
def answers(wide, lapse, row, start, uniforms, noise, modality, item, value, unit, ceiling):  # type: ignore[no-untyped-def]
    """Answer for wide [N, 4]; the first uniform decides on a lapse, which gives the second."""
    response = np.empty((start[-1], LANES))
    items = 1
    for t in range(start[-1]):
        for i in range(LANES):
            items = max(items, int(item[t, i]) + 1)
    known = np.empty((2, items))
    for block in range(len(row)):
        for i in range(LANES):
            k = row[block, i]
            alpha, own_text, own_image, sigma = wide[k]
            known[:] = np.nan
            for t in range(start[block], start[block + 1]):
                mean = value[t, i] / unit[t, i]
                what, which = int(modality[t, i]), max(int(item[t, i]), 0)
                if what == TEXT:
                    sd = own_text
                elif what == IMAGE:
                    sd = own_image
                else:
                    mean, variance, _, _, _ = _combined(
                        alpha, own_text, own_image, sigma, known[:, which], mean
                    )
                    sd = sqrt(variance)
                y = min(max((mean + sd * noise[t, i]) * unit[t, i], 0.0), ceiling[t, i])
                if lapse is not None and uniforms[t, 0, i] < lapse[k]:
                    y = uniforms[t, 1, i] * ceiling[t, i]
                if what != BOTH:
                    known[what, which] = y / unit[t, i]
                response[t, i] = y
    return response


def _four(theta: Array, weights: str) -> Array:
    """Return alpha, sigma_text, sigma_image and sigma, [N, 4]."""
    if weights == "free":
        return np.ascontiguousarray(theta)
    text, image = theta[:, 0] ** 2, theta[:, 1] ** 2
    alpha = image / (text + image) if weights == "optimal" else np.full(len(theta), 0.5)
    return np.column_stack([alpha, theta])


def simulate(  # type: ignore[no-untyped-def]
    theta, lapse, n_actions, row, start, uniforms, modality, item, value, unit, ceiling, *, weights
):
    """Answer to text, to pictures, and to both."""
    noise = ndtri(np.maximum(uniforms[:, 1], TINY))
    wide = _four(theta, weights)
    return answers(wide, lapse, row, start, uniforms, noise, modality, item, value, unit, ceiling)


def blurred(sigma_image: float, blur: float) -> float:
    """Return the spread of answers to a picture that is blurred, where it is sigma_image sharp.

    sqrt(sigma_image**2 + (0.01 blur)**2): our setting for studies, in which blur (pixels) adds a
    hundredth of the unit per pixel, independent of what else makes answers vary.
    """
    return hypot(sigma_image, PER_PIXEL * blur)


def _spread(name: str, mean: float, description: str) -> Parameter:
    return Parameter(name, POSITIVE, mean=mean, sd=0.7, description=description)


_SPREADS = (
    _spread("sigma_text", -2.7, "standard deviation of answers to text alone"),
    _spread("sigma_image", -2.7, "standard deviation of answers to pictures alone"),
    _spread("sigma", -3.2, "standard deviation of answers to both around the combination"),
)


class CueCombiner(LawResponder):
    """Answers to text and picture with a weighted mean of its answers to either alone.

    y_text ~ N(x, sigma_text), y_image ~ N(x, sigma_image), y ~ N(alpha y_text + (1 - alpha)
    y_image, sigma), in fractions of the unit; both answers are those to the same item. Where one
    of them was not asked for, or is missing, the observer has an impression that it does not tell:
    its mean is x, and the answer to both varies with it. Such an answer counts as a trial like
    others, and says little of alpha.
    """

    name = "cue_combiner"
    summary = "answers to both cues with a weighted mean of its answers to either"
    source = "Ernst and Banks 2002"
    recommended = RecommendedDesign("marker_location", settings={"modality": "all"})
    separate = ("window",)
    remembers = True
    columns = ("response", "modality", "item", "value", "unit", "ceiling")
    design = ("modality", "item", "value", "unit", "ceiling")
    parameters = Parameters(
        Parameter(
            "alpha",
            UNIT,
            mean=0.0,
            sd=1.5,
            description="weight of the text; that of the picture is 1 - alpha",
            source="Ernst and Banks 2002",
        ),
        *_SPREADS,
    )
    weights: ClassVar[str] = "free"
    censored: ClassVar[bool] = True
    log_likelihood = staticmethod(log_likelihood)
    simulate = staticmethod(partial(simulate, weights="free"))

    def reset(self) -> None:
        self.answers: dict[tuple[float, float, int], float] = {}

    def learn(self, observation: Observation, action: int, reward: float) -> None:
        response = observation.get("response")
        if response is not None and response >= 0.0:
            self._remember(observation, float(response))

    def choose(self, observation: Observation, rng: np.random.Generator) -> float:
        answer = super().choose(observation, rng)
        self._remember(observation, answer)
        return answer

    def law(self, observation: Observation) -> Estimate:
        unit, ceiling = float(observation["unit"]), float(observation["ceiling"])
        mean, sd = self.expected(observation)
        return Estimate(mean, sd, unit, ceiling)

    def expected(self, observation: Observation) -> tuple[float, float]:
        alpha, text, image, sigma = _four(self.theta[None], self.weights)[0].tolist()
        x = float(observation["value"]) / float(observation["unit"])
        what = int(observation["modality"])
        if what != BOTH:
            return x, text if what == TEXT else image
        mean, variance = 0.0, sigma**2
        for cue, weight, sd in ((TEXT, alpha, text), (IMAGE, 1.0 - alpha, image)):
            answer = self.answers.get((*_place(observation), cue))
            mean += weight * (x if answer is None else answer)
            variance += 0.0 if answer is not None else (weight * sd) ** 2
        return mean, sqrt(variance)

    def _remember(self, observation: Observation, answer: float) -> None:
        key = (*_place(observation), int(observation["modality"]))
        self.answers[key] = answer / float(observation["unit"])


def _place(observation: Observation) -> tuple[float, float]:
    return observation.get("window", 0), observation["item"]


class CueCombinerEqual(CueCombiner):
    """Is a cue combiner with equal weights, alpha = 1/2."""

    name = "cue_combiner_equal"
    summary = "answers to both cues with the mean of its answers to either"
    parameters = Parameters(*_SPREADS)
    weights = "equal"
    log_likelihood = staticmethod(log_likelihood_equal)
    simulate = staticmethod(partial(simulate, weights="equal"))


class CueCombinerOptimal(CueCombiner):
    """Is a cue combiner with the weights of least variance, alpha = sigma_image**2 / (sum of both).

    The precisions are those of the answers to either cue.
    """

    name = "cue_combiner_optimal"
    summary = "weights its answers to either cue by their precisions"
    parameters = Parameters(*_SPREADS)
    weights = "optimal"
    log_likelihood = staticmethod(log_likelihood_optimal)
    simulate = staticmethod(partial(simulate, weights="optimal"))
