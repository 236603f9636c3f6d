"""How far balloons are inflated, whether they burst or not."""

from __future__ import annotations

from math import exp, log1p

import numpy as np

from knownminds.agents import Agent, BalloonPumper
from knownminds.agents.bandits.balloon_pumper import RAREST
from knownminds.agents.compiled import compiled
from knownminds.agents.parameters import Array
from knownminds.agents.play import simulate_sessions
from knownminds.environments import BalloonRisk, Trials, session_stream
from knownminds.environments.later import pandas as pd
from knownminds.inference.measure import Dial, SubjectMeasure, Values

SESSIONS = 2**12  # that are followed for a truth, over all agents together
FEWEST = 4  # of each agent


class Risk(SubjectMeasure):
    """Mean pumps attempted over all balloons, burst ones included.

    Not the adjusted mean of Lejuez et al. (2002), which leaves burst balloons out and with them
    whoever always inflates. A balloon that was taken away after an unreadable answer has no
    number of attempts and is left out, as is one at which the data break off. There is no
    difference between the paper's definition and the released one.

    Parameters
    ----------
    n_balloons, maxima
        The design in which `truth` is meant: learners take other risks in longer sessions.
    """

    name = "risk"
    summary = "mean pumps attempted over all balloons"
    source = "Lejuez et al. 2002; Coda-Forno, Binz, Wang and Schulz 2024"
    environments = ("balloon_risk",)
    null = float("nan")
    rational = ""
    violator = "balloon_pumper"
    dial = Dial({"gamma": 1.0}, reach=4.0, steps=33)

    def __init__(self, n_balloons: int = 10, maxima: tuple[int, ...] = (128, 32, 8)):
        self.environment = BalloonRisk(n_balloons=n_balloons, maxima=maxima)
        self.bounds = (0.0, float(max(maxima)))

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

    def truth(self, model: type[Agent], theta: Array) -> Array:
        """Return the expected value in sessions of this design, [n].

        Of a balloon pumper the expectation is exact given what was learned before a balloon, and
        averaged over sessions from a fixed seed, the same for all theta; of other models it is
        the mean over such sessions.
        """
        n = len(theta)
        repeats = max(FEWEST, -(-SESSIONS // n))
        if model is not BalloonPumper:
            many = np.repeat(theta, repeats, axis=0)
            played = simulate_sessions(model, many, self.environment, 0)
            pumps = np.bincount(played.subject, played.columns["action"], n * repeats)
            return np.asarray(pumps.reshape(n, repeats).mean(axis=1) / self.environment.n_all)
        maxima, n_balloons = self.environment.maxima, self.environment.n_balloons
        uniforms = session_stream(0).random((n, repeats, len(maxima), n_balloons, 2))
        return np.asarray(_expected(np.asarray(theta, dtype=float), np.array(maxima), uniforms))


@compiled()
def _expected(theta, maxima, uniforms):  # type: ignore[no-untyped-def]
    """Follow balloon pumpers; the pump at which one would stop, and the burst, have uniforms.

    With P(pump l) the share of agents that would go on for k pumps is S(k), the product of P(1) to
    P(k); k pumps are attempted if k - 1 did not burst the balloon, so that the expected number of
    attempts is the sum over k of S(k) (M - k + 1) / M.
    """
    n, repeats, n_types, n_balloons, _ = uniforms.shape
    total = np.zeros(n)
    for i in range(n):
        phi, eta, gamma, tau = theta[i]
        for r in range(repeats):
            for c in range(n_types):
                most, pumps, bursts = maxima[c], 0, 0
                for b in range(n_balloons):
                    risk = (1.0 - phi + eta * bursts) / (1.0 + eta * pumps)
                    target = -gamma / log1p(-min(max(risk, RAREST), 1.0 - RAREST))
                    willing, share = 0, 1.0
                    for k in range(1, most + 1):
                        x = tau * (target - k)
                        if x < 36.0:  # beyond that, P(pump) is 1 as a double
                            e = exp(-abs(x))
                            share *= (1.0 if x > 0.0 else e) / (1.0 + e)
                        total[i] += share * (most - k + 1) / most
                        willing += uniforms[i, r, c, b, 0] < share
                        if share < 1e-9:
                            break
                    fatal = int(uniforms[i, r, c, b, 1] * most) + 1
                    pumps += min(willing, fatal)
                    bursts += willing >= fatal
    return total / (repeats * n_types * n_balloons)
