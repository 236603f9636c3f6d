"""Agents with kernels of their own whose answers scatter by a law."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from scipy.special import ndtri

from knownminds.environments.environment import Observation

from .agent import Responder
from .compiler.definition import SMALLEST, Law, log_mixed


class LawResponder(Responder):
    """An agent that gives numbers, each by a law; it needs `law` besides its two kernels."""

    n_uniforms = 2

    @abstractmethod
    def law(self, observation: Observation) -> Law:
        """Return the law of the answer."""

    def log_density(
        self, observation: Observation, response: float, action: int | None = None
    ) -> float:
        return float(self.law(observation).log_density(response))

    def log_probability(
        self,
        observation: Observation,
        action: int | None,
        response: float | None,
        response_range: tuple[float, float] = (0.0, 1.0),
    ) -> float:
        if response is None or not response >= 0.0:
            return 0.0
        law = self.law(observation)
        log_density = float(law.log_density(response))
        anywhere = float(law.lapse_density(response))
        return log_mixed(log_density, anywhere, self.lapse) if self.lapse else log_density

    def choose(self, observation: Observation, rng: np.random.Generator) -> float:
        lapses, u = rng.random(2).tolist()
        law = self.law(observation)
        return float(law.lapse_at(u) if lapses < self.lapse else law.at(ndtri(max(u, SMALLEST))))
