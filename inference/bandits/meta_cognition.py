"""How well stated confidences tell right choices from wrong ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from knownminds.agents import Agent
from knownminds.agents.parameters import Array
from knownminds.agents.play import simulate_sessions
from knownminds.environments import RestlessBandit, Trials, correctness
from knownminds.environments.bandits.restless_bandit import is_correct
from knownminds.environments.later import pandas as pd
from knownminds.inference.measure import Dial, SubjectMeasure, Values, with_columns

SESSIONS = 2**13  # that are played for a truth, over all agents together
FEWEST = 8  # of each agent


class MetaCognition(SubjectMeasure):
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
    n_blocks
        The design in which `truth` is meant: the scaling hangs on the length of a session.
    """

    source = "Carpenter et al. 2019; Coda-Forno, Binz, Wang and Schulz 2024"
    environments = ("restless_bandit",)
    null = float("nan")
    bounds = (0.0, 1.0)
    rational = ""
    violator = "change_point_observer"
    dial = Dial({"c_1": 1.0}, reach=0.6, steps=13)

    def __init__(self, released: bool = False, n_blocks: int = 4):
        self.released = released
        self.name = "meta_cognition" + ("_released" if released else "")
        ending = ", judged after the machines changed places" if released else ""
        self.summary = f"adjusted quadratic score of the confidences{ending}"
        self.environment = RestlessBandit(n_blocks=n_blocks)

    def values(self, trials: Trials) -> Values:
        """Return each subject's mean score over all answered trials."""
        frame = with_columns(trials, self.name, ("response",))
        correct = correctness(trials, after=self.released)
        confidence = frame["response"].to_numpy(dtype=float, na_value=np.nan)
        session = frame.groupby(["subject", "session"], sort=False).ngroup().to_numpy()
        subject, names = pd.factorize(frame["subject"])
        score = scores(correct, confidence, session)
        return Values.means(subject, score, len(names), "no answer")

    def truth(self, model: type[Agent], theta: Array) -> Array:
        """Return the expected score in sessions of this design, [n].

        It is the mean over sessions from a fixed seed, the same for all theta.
        """
        n = len(theta)
        repeats = max(FEWEST, -(-SESSIONS // n))
        simulated = simulate_sessions(model, np.repeat(theta, repeats, axis=0), self.environment, 0)
        action, mean_0, mean_1 = (simulated.columns[n] for n in ("action", "mean_0", "mean_1"))
        trial = np.tile(np.arange(self.environment.n_trials), len(theta) * repeats)
        correct = is_correct(action, mean_0, mean_1, simulated.subject, trial, after=self.released)
        score = scores(correct, simulated.columns["response"], simulated.subject)
        truth: Array = score.reshape(n, -1).mean(axis=1)
        return truth


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
