"""How far balloons are inflated, whether they burst or not."""

from __future__ import annotations

import numpy as np

from knownminds.environments import BalloonRisk, Trials
from knownminds.environments.later import pandas as pd
from knownminds.inference.measure import Dial, Values
from knownminds.inference.session_measure import SimulatedMeasure


class Risk(SimulatedMeasure):
    """Mean pumps attempted over all balloons, burst ones included.

    Not the adjusted mean of Lejuez et al. (2002), which leaves burst balloons out and with them
    whoever always inflates. A balloon that was taken away after an unreadable answer has no
    number of attempts and is left out, as is one at which the data break off. There is no
    difference between the paper's definition and the released one.
    """

    name = "risk"
    summary = "mean pumps attempted over all balloons"
    source = "Lejuez et al. 2002; Coda-Forno, Binz, Wang and Schulz 2024"
    environments = ("balloon_risk",)
    null = float("nan")
    rational = ""
    violator = "balloon_pumper"
    dial = Dial({"gamma": 1.0}, reach=4.0, steps=17)

    def __init__(self) -> None:
        self.environment = BalloonRisk()
        self.bounds = (0.0, float(max(self.environment.maxima)))

    def values(self, trials: Trials) -> Values:
        """Return each subject's mean pumps over the balloons that ended by a stop or a burst."""
        frame = trials.frame
        subject, names = pd.factorize(frame["subject"])
        action = frame["action"].to_numpy(dtype=float, na_value=np.nan)
        reward = frame["reward"].to_numpy(dtype=float, na_value=np.nan)
        pump = frame["pump"].to_numpy(dtype=float)
        stopped, burst = action == 0, (action == 1) & (reward < 1.0)
        attempts = np.where(stopped, pump - 1.0, np.where(burst, pump, np.nan))
        return Values.means(subject, attempts, len(names), "no balloon ended")
