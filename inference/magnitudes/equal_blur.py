"""The blur at which pictures tell a participant as much as words do."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from knownminds.agents.parameters import Array
from knownminds.environments import Trials
from knownminds.environments.magnitudes.magnitude import MOST_BLUR
from knownminds.environments.record.tabled_result import TabledResult
from knownminds.inference.measure import with_columns

TEXT, IMAGE = 0, 1  # modalities
LEAST = 10  # least number of answers to either
ROUNDS = 1000
_STEPS = 25  # steps of scoring
_NEEDED = ("window", "modality", "value", "blur", "response")


@dataclass(frozen=True)
class EqualBlur(TabledResult):
    """The blur at which answers to pictures vary as much as those to words, px.

    Parameters
    ----------
    blur, low, high : The blur and its 95% interval; NaN if there is none, and 0 or 20 px for an
        end beyond the possible blurs.
    sigma_text, sigma_image, per_pixel : Standard deviations of answers to words and to sharp
        pictures, and the addition per pixel of blur, in units of the value.
    n_text, n_image : Number of answers to words and to pictures.
    reason : Why there is no such blur; empty if there is.
    """

    blur: float
    low: float
    high: float
    sigma_text: float
    sigma_image: float
    per_pixel: float
    n_text: int
    n_image: int
    reason: str = ""

    def __str__(self) -> str:
        """Return blur and spreads in words, and how to run an experiment with this blur."""
        spreads = (
            f"answers vary by {self.sigma_text:.4f} with words, by {self.sigma_image:.4f} with "
            f"sharp pictures, and {self.per_pixel:.5f} more per px "
            f"({self.n_text} answers to words, {self.n_image} to pictures)"
        )
        if self.reason:
            return f"no blur makes pictures as reliable as words: {self.reason}\n{spreads}"
        return (
            f"pictures are as reliable as words with a blur of {self.blur:.2f} px "
            f"(95% {self.low:.2f} to {self.high:.2f})\n{spreads}\n"
            f"run with --set condition=constant_noise --set blur={self.blur:.2f}"
        )


def equal_blur(trials: Trials, *, seed: int = 0) -> EqualBlur:
    """Find the blur at which one agent's answers to pictures vary as much as those to words.

    Answers to words alone vary around their line over the value with standard deviation sigma_text.
    Answers to pictures alone have the variance sigma_image**2 + (per_pixel blur)**2, by maximum
    likelihood (Fisher scoring on squared residuals). Both are in units of the value, divided by the
    slopes. The blur is sqrt(sigma_text**2 - sigma_image**2) / per_pixel. Its interval has
    percentiles of 1,000 sets of answers, drawn anew with replacement.

    Parameters
    ----------
    trials : Trials of one agent, with words and pictures alone and several blurs: `cue_conflict`
        with the condition "gradual_noise".
    seed : Seed of the bootstrap.

    Raises
    ------
    ValueError : If there are fewer than 10 answers to either, or all pictures have the same blur.
    """
    frame = with_columns(trials, "The blur of equal reliability", _NEEDED)
    columns = {name: frame[name].to_numpy(dtype=float) for name in _NEEDED}
    answered = np.isfinite(columns["response"])
    cues = []
    for cue, name in ((TEXT, "words"), (IMAGE, "pictures")):
        by_cue = {k: c[answered & (columns["modality"] == cue)] for k, c in columns.items()}
        if len(by_cue["value"]) < LEAST:
            raise ValueError(
                f"The blur of equal reliability takes {LEAST} answers to {name} alone; got "
                f"{len(by_cue['value'])}. Run cue_conflict with modality=all."
            )
        cues.append(by_cue)
    text, image = cues
    if np.ptp(image["blur"]) == 0.0:
        raise ValueError(
            "The blur of equal reliability takes pictures of several blurs; all have "
            f"{image['blur'][0]:g} px. Run cue_conflict with condition=gradual_noise."
        )
    result, why = _found(text, image)
    rng = np.random.default_rng(seed)
    drawn = np.array([_found(_again(text, rng), _again(image, rng))[0][0] for _ in range(ROUNDS)])
    low, high = np.quantile(drawn, [0.025, 0.975], method="nearest")
    if why:
        result[0], low, high = np.nan, np.nan, np.nan
    blur, words, sharp, grows = result
    n_text, n_image = (len(by_cue["value"]) for by_cue in cues)
    return EqualBlur(blur, float(low), float(high), words, sharp, grows, n_text, n_image, why)


def _found(text: dict[str, Array], image: dict[str, Array]) -> tuple[list[float], str]:
    """Return the blur, held to 0 and 20 px, the three spreads, and why there is no such blur."""
    words = float(np.mean(_squares(text)))
    squares, by_blur = _squares(image), image["blur"] ** 2
    sharp, grows = _two_variances(squares, by_blur)
    spreads = [sqrt(words), sqrt(sharp), sqrt(grows)]
    if words <= sharp:
        return [0.0, *spreads], "sharp pictures are no more reliable than they"
    if words > sharp + grows * MOST_BLUR**2:
        return [MOST_BLUR, *spreads], f"with {MOST_BLUR:g} px, the most, they are more reliable"
    return [sqrt((words - sharp) / grows), *spreads], ""


def _squares(columns: dict[str, Array]) -> Array:
    """Return squared residuals of answers around their line by window, in units of the value.

    Their mean is unbiased, since they are divided by the remaining share of degrees of freedom.
    """
    windows = np.unique(columns["window"])
    lines = [columns["value"], *((columns["window"] == window).astype(float) for window in windows)]
    design = np.column_stack(lines)
    result, *_ = np.linalg.lstsq(design, columns["response"], rcond=None)
    rest = (columns["response"] - design @ result) / result[0]
    squares: Array = rest**2 * len(rest) / max(len(rest) - len(result), 1)
    return squares


def _two_variances(squares: Array, by: Array) -> tuple[float, float]:
    """Fit the mean a + b by of squared normal numbers, a and b >= 0, by maximum likelihood."""
    mean = float(squares.mean())
    tiny = 1e-6 * mean
    a, b = mean / 2, mean / 2 / max(float(by.mean()), 1e-12)
    for _ in range(_STEPS):
        weight = (a + b * by + tiny) ** -2.0
        one, x, xx = (float((weight * by**power).sum()) for power in range(3))
        y, xy = float(weight @ squares), float(weight @ (by * squares))
        whole = one * xx - x * x
        a, b = (xx * y - x * xy) / whole, (one * xy - x * y) / whole
        if a < 0.0:
            a, b = 0.0, xy / xx
        elif b < 0.0:
            a, b = y / one, 0.0
    return float(a), float(b)


def _again(columns: dict[str, Array], rng: np.random.Generator) -> dict[str, Array]:
    """Draw as many answers as there are, with replacement."""
    n = len(columns["value"])
    at: NDArray[np.int64] = rng.integers(n, size=n)
    return {name: column[at] for name, column in columns.items()}
