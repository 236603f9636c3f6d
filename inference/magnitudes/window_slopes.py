"""Slopes of answers on stimuli within windows, with those of bootstraps."""

from __future__ import annotations

import numpy as np

from knownminds.agents.parameters import Array

from .magnitude_answers import Answers


def window_slopes(answers: Answers) -> Array:
    """Return the least-squares slope of answers on stimuli, each less its window's mean, [B].

    Row 0 are the data, the others bootstraps; NaN where stimuli do not vary or nothing was
    answered. 1 minus the slope is regression to the mean (Hollingworth 1910).
    """
    held = np.isfinite(answers.response)
    x, y, window = (values[held] for values in (answers.value, answers.response, answers.window))
    weight = answers.weight[:, held].astype(float)
    top = np.zeros(len(weight))
    below = np.zeros(len(weight))
    for k in np.unique(window):
        own = window == k
        w = weight[:, own]
        total = w.sum(axis=1, keepdims=True)
        with np.errstate(invalid="ignore", divide="ignore"):
            dx, dy = (z[own] - (w * z[own]).sum(axis=1, keepdims=True) / total for z in (x, y))
        top += np.nan_to_num((w * dx * dy).sum(axis=1))
        below += np.nan_to_num((w * dx * dx).sum(axis=1))
    with np.errstate(invalid="ignore", divide="ignore"):
        slope: Array = np.where(below > 0, top / below, np.nan)
    return slope
