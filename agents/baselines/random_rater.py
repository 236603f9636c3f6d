"""A rater whose numbers tell nothing: every response is equally likely."""

from __future__ import annotations

from math import log

import numpy as np

from knownminds.agents.agent import Responder
from knownminds.agents.compiled import compiled
from knownminds.agents.parameters import Parameters
from knownminds.environments.environment import Observation

LANES = 32  # as in sequences.py
LOG_100 = log(100.0)


@compiled()
def log_likelihood(theta, lapse, n_actions, row, start, response):  # type: ignore[no-untyped-def]
    """Return zeros: on a range of length 1 the density is 1, lapse or not."""
    return np.zeros(len(theta)), np.zeros((len(theta), 0 if lapse is None else 1))


@compiled()
def simulate(theta, lapse, n_actions, row, start, uniforms):  # type: ignore[no-untyped-def]
    """Give the uniforms themselves."""
    return uniforms.copy()


class RandomRater(Responder):
    """Every response from 0 to 1 has the density 1, whatever is shown."""

    name = "random_rater"
    summary = "states any number from 0 to 1, evenly; no parameters"
    source = "the null model of every experiment that asks for a number"
    parameters = Parameters()
    columns = ("response",)
    design = ()
    separate = ()
    span = (0.0, 1.0)
    log_likelihood = staticmethod(log_likelihood)
    simulate = staticmethod(simulate)

    def log_density(
        self, observation: Observation, response: float, action: int | None = None
    ) -> float:
        """Return 0, the logarithm of 1."""
        return 0.0

    def choose(self, observation: Observation, rng: np.random.Generator) -> float:
        """Draw a number."""
        return float(rng.random())


@compiled()
def log_likelihood_of_judge(theta, lapse, n_actions, row, start, response):  # type: ignore[no-untyped-def]
    """Count the responses; on a range of length 100 the density is 1/100, lapse or not."""
    total = np.zeros(len(theta))
    for block in range(len(row)):
        for t in range(start[block], start[block + 1]):
            for i in range(LANES):
                if response[t, i] >= 0.0:
                    total[row[block, i]] -= LOG_100
    return total, np.zeros((len(theta), 0 if lapse is None else 1))


def simulate_judge(theta, lapse, n_actions, row, start, uniforms):  # type: ignore[no-untyped-def]
    """Give the uniforms, from 0 to 100."""
    return 100.0 * uniforms


class RandomJudge(RandomRater):
    """Every response from 0 to 100 has the density 1/100, whatever is shown."""

    name = "random_judge"
    summary = "states any number from 0 to 100, evenly; no parameters"
    source = "the null model of every experiment that asks for a number up to 100"
    span = (0.0, 100.0)
    log_likelihood = staticmethod(log_likelihood_of_judge)
    simulate = staticmethod(simulate_judge)

    def log_density(
        self, observation: Observation, response: float, action: int | None = None
    ) -> float:
        """Return the logarithm of 1/100."""
        return -LOG_100

    def choose(self, observation: Observation, rng: np.random.Generator) -> float:
        """Draw a number."""
        return 100.0 * super().choose(observation, rng)
