"""How well stated confidences tell right choices from wrong ones."""

from __future__ import annotations

import numpy as np

from knownminds.agents.parameters import Array
from knownminds.environments import Trials, correctness
from knownminds.inference.measure import Dial, sessions_of
from knownminds.inference.session_measure import DeclaredMeasure, trial_measure


def meta_cognition(released: bool = False) -> DeclaredMeasure:
    """Adjusted quadratic scoring rule: mean of 1 - (correct - scaled confidence)**2.

    A choice is correct if its machine had the higher mean at that time. Confidences are scaled by
    the lowest and the highest one of their session; if they are all the same, they are scored
    unscaled. The score lies between 0 and 1. It is about 2/3 if both choices and confidences are
    drawn evenly at random, and also grows with the share of correct choices.

    Parameters
    ----------
    released : As in CogBench's released code, where correctness is judged after the machines have
        changed places: on the last trial of a block, right choices count as wrong.
    """
    ending = ", judged after the machines changed places" if released else ""
    return trial_measure(
        name="meta_cognition" + ("_released" if released else ""),
        summary=f"adjusted quadratic score of the confidences{ending}",
        source="Carpenter et al. 2019; Coda-Forno, Binz, Wang and Schulz 2024",
        environments=("restless_bandit",),
        bounds=(0.0, 1.0),
        violator="change_point_observer",
        dial=Dial({"c_1": 1.0}, reach=0.6, steps=13),
        columns=("response",),
    )(lambda trials: scores(trials, correctness(trials, after=released)))


def scores(trials: Trials, correct: Array) -> Array:
    """Return 1 - (correct - scaled confidence)**2 for each trial, NaN without an answer, [rows]."""
    confidence, session = trials.numbers("response"), sessions_of(trials)
    held = np.isfinite(correct) & np.isfinite(confidence)
    n = int(session.max(initial=-1)) + 1
    low, high = np.full(n, np.inf), np.full(n, -np.inf)
    np.minimum.at(low, session[held], confidence[held])
    np.maximum.at(high, session[held], confidence[held])
    with np.errstate(invalid="ignore", divide="ignore"):
        scaled = (confidence - low[session]) / (high - low)[session]
    scaled = np.where(high[session] > low[session], scaled, confidence)
    return np.where(held, 1.0 - (correct - scaled) ** 2, np.nan)


META_COGNITION = tuple(map(meta_cognition, (False, True)))
