"""What all observers of magnitudes share: units, scales, and answers held to their range."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from math import exp, inf, log, pi
from typing import ClassVar

import numpy as np
from scipy.special import log_ndtr, ndtri

from knownminds.agents.agent import Responder
from knownminds.agents.parameters import IDENTITY, POSITIVE, UNIT, Parameter
from knownminds.environments.environment import Observation

EPSILON = 1e-3  # of the unit; added before a logarithm is taken
TINY = 1e-300  # whose logarithm and quantile are finite
HALF_LOG_2_PI = 0.5 * log(2.0 * pi)
WINDOWS = ("short", "medium", "long")  # as the environments number them
MIDDLES = (0.3, 0.5, 0.7)  # of the windows, in fractions of the unit
# A quarter of what all windows cover, .8 of the unit; on the log scale the same around the middle.
PRIOR_SD, LOG_PRIOR_SD = 0.2, 0.4


class MagnitudeObserver(Responder):
    """Answers with a number around what it believes, held to what may be answered.

    Values and answers are taken in fractions of the task's unit (1 for positions and ratios, 18
    cells for distances, 80 s for durations), or as the logarithm of the fraction + 0.001. An
    answer that would lie outside what may be answered is given as the end. So the likelihood of
    answers at an end is a probability, that of answers beyond it (a Tobit model, Tobin 1958); that
    of all others is a density per unit of the task. A lapse gives any number, and so never an end.

    Attributes
    ----------
    log_scale
        Whether values and answers are taken as logarithms.
    """

    columns: ClassVar[tuple[str, ...]] = ("response", "window", "value", "unit", "ceiling")
    design: ClassVar[tuple[str, ...]] = ("window", "value", "unit", "ceiling")
    separate: ClassVar[tuple[str, ...]] = ()
    n_uniforms = 2
    censored = True
    log_scale: ClassVar[bool] = False

    @abstractmethod
    def expected(self, observation: Observation) -> tuple[float, float]:
        """Return mean and standard deviation of the answer before it is held to the range.

        Both on the observer's own scale.
        """

    def log_density(
        self, observation: Observation, response: float, action: int | None = None
    ) -> float:
        """Return the log density of an answer; at an end the log probability of giving the end."""
        mean, sd = self.expected(observation)
        unit, ceiling = float(observation["unit"]), float(observation["ceiling"])
        off = (self.scaled(response, unit) - mean) / sd
        if response <= 0.0 or response >= ceiling:
            beyond = off if response <= 0.0 else -off
            return float(log_ndtr(beyond))
        slope = log(unit) + (log(response / unit + EPSILON) if self.log_scale else 0.0)
        return -0.5 * off**2 - HALF_LOG_2_PI - log(sd) - slope

    def log_probability(
        self,
        observation: Observation,
        action: int | None,
        response: float | None,
        response_range: tuple[float, float] = (0.0, 1.0),
    ) -> float:
        """Return the log density of an answer, lapses included: those give no answer at an end."""
        if response is None or not response >= 0.0:
            return 0.0
        own = self.log_density(observation, response)
        if not self.lapse:
            return own
        ceiling = float(observation["ceiling"])
        anywhere = self.lapse / ceiling if 0.0 < response < ceiling else 0.0
        mixed = (1.0 - self.lapse) * exp(own) + anywhere
        return log(mixed) if mixed > 0.0 else -inf

    def choose(self, observation: Observation, rng: np.random.Generator) -> float:
        """Draw an answer with two uniform numbers: whether it is a lapse, and which it is."""
        lapses, u = rng.random(2).tolist()
        ceiling = float(observation["ceiling"])
        if lapses < self.lapse:
            return float(u * ceiling)
        return self.held(observation, float(ndtri(max(u, TINY))))

    def held(self, observation: Observation, noise: float) -> float:
        """Return the answer at this many standard deviations from the mean."""
        mean, sd = self.expected(observation)
        answer = mean + sd * noise
        if self.log_scale:
            answer = exp(min(answer, 700.0)) - EPSILON
        return min(max(answer * float(observation["unit"]), 0.0), float(observation["ceiling"]))

    @classmethod
    def scaled(cls, value: float, unit: float) -> float:
        """Bring a value to the observer's own scale."""
        return log(value / unit + EPSILON) if cls.log_scale else value / unit


def weight_of_prior() -> Parameter:
    """Return the parameter w_prior."""
    return Parameter(
        "w_prior",
        UNIT,
        mean=-1.0,
        sd=1.0,
        description="weight of the prior, tau_prior / (tau_prior + tau_measurement)",
        source="Petzschner, Glasauer and Stephan 2015",
    )


def centres(log_scale: bool, shared: bool, what: str) -> Sequence[Parameter]:
    """Return where beliefs are centred: mu_prior, or one for each window."""
    told = "log of the fraction of the unit" if log_scale else "fraction of the unit"
    sd = LOG_PRIOR_SD if log_scale else PRIOR_SD
    names = ("prior",) if shared else WINDOWS
    middles = (MIDDLES[1],) if shared else MIDDLES
    return [
        Parameter(
            f"mu_{name}",
            IDENTITY,
            mean=round(log(middle + EPSILON), 2) if log_scale else middle,
            sd=sd,
            description=f"{what}{'' if shared else f' in the {name} window'}, as a {told}",
            group_sd=sd / 2,
        )
        for name, middle in zip(names, middles, strict=True)
    ]


def outputs(log_scale: bool, output: str) -> Sequence[Parameter]:
    """Return the parameters of the output: none, a gain, or a gain and an offset."""
    gain = Parameter(
        "gain",
        POSITIVE,
        mean=0.0,
        sd=0.3,
        description="factor between belief and answer",
        group_sd=0.15,
    )
    sd = 0.2 if log_scale else 0.1
    offset = Parameter(
        "offset",
        IDENTITY,
        mean=0.0,
        sd=sd,
        description="what is added to the belief before answering",
        group_sd=sd / 2,
    )
    return {"none": [], "gain": [gain], "affine": [gain, offset]}[output]


def spread(log_scale: bool) -> Parameter:
    """Return the parameter sigma."""
    where = "log answer" if log_scale else "answer, as a fraction of the unit"
    return Parameter(
        "sigma",
        POSITIVE,
        mean=-2.0 if log_scale else -2.7,
        sd=0.7,
        description=f"standard deviation of the {where}",
    )
