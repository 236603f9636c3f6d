"""A rater whose numbers tell nothing: every response is equally likely."""

from __future__ import annotations

import numpy as np
from numba import njit

from knownminds.agents.agent import Responder
from knownminds.agents.parameters import Parameters
from knownminds.environments.environment import Observation

LANES = 32  # as in sequences.py


@njit(cache=True, nogil=True, error_model="numpy")
def log_likelihood(theta, lapse, n_actions, row, start, response):  # type: ignore[no-untyped-def]
    """Return zeros: on a range of length 1 the density is 1, lapse or not."""
    return np.zeros(len(theta)), np.zeros((len(theta), 0 if lapse is None else 1))


@njit(cache=True, nogil=True, error_model="numpy")
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
