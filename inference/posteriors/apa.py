"""Posterior quantities as a paper quotes them: no more digits than the draws have."""

from __future__ import annotations

from math import floor, log10

import numpy as np

from knownminds.agents.parameters import Array

from .arviz_scores import error_of_mean, error_of_quantile

MOST_DIGITS = 3
MASS = 0.9


def digits_of(error: float) -> int:
    """Return how many decimal places a number with this Monte-Carlo error has, 0 to 3.

    The last one is worth at least twice the error.
    """
    if not np.isfinite(error):
        return 0
    return int(np.clip(floor(-log10(max(2.0 * error, 1e-9))), 0, MOST_DIGITS))


def apa_sentence(name: str, draws: Array) -> str:
    """Quote a contrast in the style of the APA.

    Its posterior mean, 90% credible interval and probability of direction.

    Parameters
    ----------
    draws
        Of the contrast, [chains, draws].
    """
    mean, interval = quoted(draws)
    direction = quoted_direction(draws)
    return f"{name} (unconstrained scale): b = {mean}, 90% CrI {interval}, pd {direction}."


def quoted(draws: Array) -> tuple[str, str]:
    """Return the posterior mean and the 90% credible interval of draws [chains, draws]."""
    ends = (0.5 - MASS / 2, 0.5 + MASS / 2)
    errors = [float(error_of_mean(draws)), *(float(error_of_quantile(draws, end)) for end in ends)]
    digits = digits_of(max(errors))
    low, high = (rounded(float(end), digits) for end in np.quantile(draws, ends))
    return rounded(float(draws.mean()), digits), f"[{low}, {high}]"


def quoted_direction(draws: Array) -> str:
    """Return the probability of direction of draws [chains, draws]: "= .97" or "> .999".

    Its error is that of a share of as many independent draws as there are effective ones.
    """
    positive = float((draws > 0).mean())
    direction = max(positive, 1 - positive)
    known = 0.0 < positive < 1.0
    error = float(error_of_mean((draws > 0).astype(float))) if known else 1.0 / draws.size
    digits = max(digits_of(error), 1)
    most = 1.0 - 10.0**-digits
    if direction > most:
        return f"> {most:.{digits}f}".replace("0.", ".", 1)
    return f"= {direction:.{digits}f}".replace("0.", ".", 1)


def rounded(value: float, digits: int) -> str:
    """Write a number with so many decimal places; what rounds to nothing has no sign."""
    text = f"{value:.{digits}f}"
    return text.removeprefix("-") if float(text) == 0 else text
