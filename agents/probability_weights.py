"""Weights of probabilities in decisions, with one parameter."""

from __future__ import annotations

from typing import Any

import numpy as np


def prelec(p: Any, gamma: Any) -> Any:
    """Return the weight exp(-(-ln p)**gamma) of a probability, 0 and 1 at the ends."""
    inside = np.clip(p, 1e-15, 1.0 - 1e-15)
    curved = np.exp(-np.exp(gamma * np.log(-np.log(inside))))
    return np.where(p <= 0.0, 0.0, np.where(p >= 1.0, 1.0, curved))


def tversky_kahneman(p: Any, gamma: Any) -> Any:
    """Return p**gamma / (p**gamma + (1 - p)**gamma)**(1 / gamma), the weight of a probability."""
    inside = np.clip(p, 1e-15, 1.0 - 1e-15)
    power = np.exp(gamma * np.log(inside))
    both = power + np.exp(gamma * np.log(1.0 - inside))
    curved = power * np.exp(-np.log(both) / gamma)
    return np.where(p <= 0.0, 0.0, np.where(p >= 1.0, 1.0, curved))
