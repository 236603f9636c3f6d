"""How far balloons are inflated, whether they burst or not."""

from __future__ import annotations

import numpy as np

from knownminds.agents.parameters import Array
from knownminds.environments import BalloonRisk, Trials
from knownminds.inference.measure import Dial
from knownminds.inference.session_measure import trial_measure


@trial_measure(
    name="risk",
    summary="mean pumps attempted over all balloons",
    source="Lejuez et al. 2002; Coda-Forno, Binz, Wang and Schulz 2024",
    environments=("balloon_risk",),
    bounds=(0.0, float(max(BalloonRisk().maxima))),
    violator="balloon_pumper",
    dial=Dial({"gamma": 1.0}, reach=4.0, steps=17),
    columns=("action", "reward", "pump"),
    reason="no balloon ended",
)
def risk(trials: Trials) -> Array:
    """Mean pumps attempted over all balloons that ended by a stop or a burst, burst ones included.

    This is not the adjusted mean of Lejuez et al. (2002), which leaves burst balloons out, and with
    them players who always inflate. A balloon that was taken away after an unreadable answer has no
    number of attempts and is left out; so is a balloon at which the data break off. The paper's
    definition and the released one are the same.
    """
    action, reward, pump = (trials.numbers(name) for name in ("action", "reward", "pump"))
    burst = (action == 1) & (reward < 1.0)
    return np.where(action == 0, pump - 1.0, np.where(burst, pump, np.nan))
