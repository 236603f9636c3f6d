"""How well stated confidences tell right choices from wrong ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from knownminds.agents.parameters import Array
from knownminds.environments import RestlessBandit, Trials, correctness
from knownminds.environments.later import pandas as pd
from knownminds.inference.measure import Dial, Values, with_columns
from knownminds.inference.session_measure import SimulatedMeasure


class MetaCognition(SimulatedMeasure):
    """Adjusted quadratic scoring rule: mean of 1 - (correct - scaled confidence)**2.

    A choice is correct if it was that of the machine with the higher mean in force. Confidences
    are scaled by the lowest and the highest one of their session; if they are all the same, they
    are scored as they are. The score lies between 0 and 1; it is about 2/3 if both choices and
    confidences are drawn evenly by lot, and grows with the share of correct choices too.

    Parameters
    ----------
    released
        As in CogBench's released code, where correctness is judged after the machines have changed
        places: on the last trial of a block, right is taken for wrong.
    """

    source = "Carpenter et al. 2019; Coda-Forno, Binz, Wang and Schulz 2024"
    environments = ("restless_bandit",)
    null = float("nan")
    bounds = (0.0, 1.0)
    rational = ""
    violator = "change_point_observer"
    dial = Dial({"c_1": 1.0}, reach=0.6, steps=13)

    def __init__(self, released: bool = False):
        self.released = released
        self.name = "meta_cognition" + ("_released" if released else "")
        ending = ", judged after the machines changed places" if released else ""
        self.summary = f"adjusted quadratic score of the confidences{ending}"
        self.environment = RestlessBandit()

    def values(self, trials: Trials) -> Values:
        """Return each subject's mean score over all answered trials."""
        frame = with_columns(trials, self.name, ("response",))
        correct = correctness(trials, after=self.released)
        confidence = frame["response"].to_numpy(dtype=float, na_value=np.nan)
        session = frame.groupby(["subject", "session"], sort=False).ngroup().to_numpy()
        subject, names = pd.factorize(frame["subject"])
        score = scores(correct, confidence, session)
        return Values.means(subject, score, len(names), "no answer")


def scores(correct: Array, confidence: Array, session: NDArray[np.integer[Any]]) -> Array:
    """Return 1 - (correct - scaled confidence)**2 of each trial, [trials].

    Parameters
    ----------
    correct, confidence
        [trials]; NaN where there was no answer.
    session
        Number of the session, whose lowest and highest confidence are scaled to 0 and 1.
    """
    held = np.isfinite(correct) & np.isfinite(confidence)
    n = int(session.max(initial=-1)) + 1
    low, high = np.full(n, np.inf), np.full(n, -np.inf)
    np.minimum.at(low, session[held], confidence[held])
    np.maximum.at(high, session[held], confidence[held])
    with np.errstate(invalid="ignore", divide="ignore"):
        scaled = (confidence - low[session]) / (high - low)[session]
    scaled = np.where(high[session] > low[session], scaled, confidence)
    return np.where(held, 1.0 - (correct - scaled) ** 2, np.nan)
