"""Powers of amounts and delays, and weights of probabilities, in models of decisions."""

from __future__ import annotations

from typing import Any

import numpy as np

from .compiler.definition import SMALLEST


def power(x: Any, exponent: Any) -> Any:
    """Return x**exponent of numbers from 0 on; 0 at x = 0, whatever the exponent."""
    return np.where(x > 0, np.exp(exponent * np.log(np.maximum(x, SMALLEST))), 0.0)


def prelec(p: Any, gamma: Any) -> Any:
    """Return the weight exp(-(-ln p)**gamma) of a probability, 0 and 1 at the ends."""
    inside = np.clip(p, 1e-15, 1.0 - 1e-15)
    curved = np.exp(-power(-np.log(inside), gamma))
    return np.where(p <= 0.0, 0.0, np.where(p >= 1.0, 1.0, curved))


def tversky_kahneman(p: Any, gamma: Any) -> Any:
    """Return p**gamma / (p**gamma + (1 - p)**gamma)**(1 / gamma), the weight of a probability."""
    inside = np.clip(p, 1e-15, 1.0 - 1e-15)
    own, other = power(inside, gamma), power(1.0 - inside, gamma)
    curved = own * power(own + other, -1.0 / gamma)
    return np.where(p <= 0.0, 0.0, np.where(p >= 1.0, 1.0, curved))
