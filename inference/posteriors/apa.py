"""Posterior quantities as a paper quotes them: no more digits than the draws have."""

from __future__ import annotations

from math import floor, log10

import numpy as np

from knownminds.agents.parameters import Array

from .chain_diagnostics import error_of_mean, error_of_quantile

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
    ends = (0.5 - MASS / 2, 0.5 + MASS / 2)
    errors = [float(error_of_mean(draws)), *(error_of_quantile(draws, end) for end in ends)]
    digits = digits_of(max(errors))
    mean = float(draws.mean())
    low, high = np.quantile(draws, ends)
    positive = float((draws > 0).mean())
    direction = max(positive, 1 - positive)
    share = "> .999" if direction > 0.999 else f"= {direction:.3f}".replace("0.", ".", 1)
    interval = f"[{low:.{digits}f}, {high:.{digits}f}]"
    return f"{name} (unconstrained scale): b = {mean:.{digits}f}, 90% CrI {interval}, pd {share}."
