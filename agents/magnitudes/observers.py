"""Observers of magnitudes: linear, static Bayesian, noisy and Kalman, on two scales."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
from scipy.special import log_ndtr, ndtri

from knownminds.agents.compiler.definition import HALF_LOG_2_PI, SMALLEST, Law, positive, real, unit
from knownminds.agents.model import Model
from knownminds.agents.parameters import Array
from knownminds.environments.turn import Choice, Observation

__all__ = [
    "LinearObserver",
    "LinearObserverLog",
    "StaticBayesObserver",
    "StaticBayesObserverLog",
    "StaticBayesObserverGain",
    "StaticBayesObserverGainLog",
    "StaticBayesObserverAffine",
    "StaticBayesObserverAffineLog",
    "StaticBayesObserverShared",
    "StaticBayesObserverSharedLog",
    "NoisyBayesObserver",
]

EPSILON = 1e-3  # of the unit; it is added before a logarithm is taken
WINDOWS = ("short", "medium", "long")  # as the environments number them
MIDDLES = (0.3, 0.5, 0.7)  # middles of the windows, in fractions of the unit
STEVENS = "Stevens 1957"
REVIEW = "Petzschner, Glasauer and Stephan 2015"


@dataclass(frozen=True)
class CensoredEstimate(Law):
    """A magnitude with a normal error; a number beyond 0 or the ceiling becomes that end.

    So an answer at an end has a probability, that of all numbers beyond it (a Tobit model, Tobin
    1958). Other answers have a density per unit of the task. A lapse gives any number, and so never
    an end.
    """

    mean: Any
    sd: Any
    unit: Any
    ceiling: Any
    span: ClassVar[None] = None

    @staticmethod
    def scaled(share: Any) -> Any:
        """Return a fraction of the unit on the observer's scale."""
        return share

    @staticmethod
    def unscaled(x: Any) -> Any:
        """Return the fraction of the unit at a point of the observer's scale."""
        return x

    @staticmethod
    def log_slope(x: Any) -> Any:
        """Return the logarithm of the slope of a fraction of the unit on the observer's scale."""
        return 0.0

    def log_density(self, y: Any) -> Any:
        high = y >= self.ceiling
        x = self.scaled(np.maximum(y, 0.0) / self.unit)
        off = (x - self.mean) / self.sd
        slope = np.log(self.sd) + np.log(self.unit) + self.log_slope(x)
        inside = -0.5 * off**2 - HALF_LOG_2_PI - slope
        return np.where((y <= 0.0) | high, log_ndtr(np.where(high, -off, off)), inside)

    def at(self, normal: Any) -> Any:
        x = self.unscaled(self.mean + self.sd * normal)
        return np.clip(x * self.unit, 0.0, self.ceiling)

    def lapse_density(self, y: Any) -> Any:
        return np.where((y > 0.0) & (y < self.ceiling), 1.0 / self.ceiling, 0.0)

    def lapse_at(self, u: Any) -> Any:
        return u * self.ceiling


@dataclass(frozen=True)
class LogEstimate(CensoredEstimate):
    """A magnitude whose logarithm has a normal error; it is log(fraction of the unit + 0.001)."""

    @staticmethod
    def scaled(share: Any) -> Any:
        """Return a fraction of the unit on the observer's scale."""
        return np.log(np.maximum(share, 0.0) + EPSILON)

    @staticmethod
    def unscaled(x: Any) -> Any:
        """Return the fraction of the unit at a point of the observer's scale."""
        return np.exp(np.minimum(x, 700.0)) - EPSILON

    @staticmethod
    def log_slope(x: Any) -> Any:
        """Return the logarithm of the slope of a fraction of the unit on the observer's scale."""
        return x


def centre(window: str, log_scale: bool, what: str) -> Any:
    """Declare the centre of beliefs: in window "short", "medium" or "long", or "prior" for all.

    The standard deviation of its prior is a quarter of the range of all windows, .8 of the unit.
    """
    middle = MIDDLES[WINDOWS.index(window)] if window in WINDOWS else MIDDLES[1]
    mean = round(float(np.log(middle + EPSILON)), 2) if log_scale else middle
    scale = "log of the fraction of the unit" if log_scale else "fraction of the unit"
    sd = 0.4 if log_scale else 0.2
    where = f" in the {window} window" if window in WINDOWS else ""
    return real(f"{what}{where}, as a {scale}", mean, sd, group_sd=sd / 2)


def spread_of_answers(log_scale: bool) -> Any:
    """Declare sigma, the standard deviation of answers."""
    where = "log answer" if log_scale else "answer, as a fraction of the unit"
    return positive(f"standard deviation of the {where}", -2.0 if log_scale else -2.7, 0.7)


class MagnitudeObserver(Model):
    """Answers with a number around its belief, from 0 up to the ceiling.

    Values and answers are in fractions of the task's unit (1 for positions and ratios, 18 cells for
    distances, 80 s for durations), or in the logarithm of the fraction + 0.001.

    Attributes
    ----------
    log_scale : Whether values and answers are taken as logarithms.
    centres : What the centres of windows are called in the descriptions of parameters.
    """

    separate: ClassVar[tuple[str, ...]] = ()
    censored: ClassVar[bool] = True
    log_scale: ClassVar[bool] = False
    centres: ClassVar[str] = "mean of the prior"
    mu_short: Any
    mu_medium: Any
    mu_long: Any
    sigma: Any
    gain: Any = 1.0
    offset: Any = 0.0

    def scaled(self, trial: Any) -> Any:
        """Return the stimulus on the observer's scale."""
        law = LogEstimate if self.log_scale else CensoredEstimate
        return law.scaled(trial.value / trial.unit)

    def centre(self, trial: Any) -> Any:
        """Return the mean of the trial's window."""
        longer = np.where(trial.window == 1, self.mu_medium, self.mu_long)
        return np.where(trial.window == 0, self.mu_short, longer)

    def belief(self, trial: Any) -> Any:
        """Return the magnitude that the observer believes in, on its scale."""
        raise NotImplementedError

    def spread(self) -> Any:
        """Return the standard deviation of answers, on the observer's scale."""
        return self.sigma

    def respond(self, trial: Any) -> Any:
        law = LogEstimate if self.log_scale else CensoredEstimate
        mean = self.gain * self.belief(trial) + self.offset
        return law(mean, self.spread(), trial.unit, trial.ceiling)

    def expected(self, observation: Observation) -> tuple[float, float]:
        """Return mean and standard deviation of the answer, on the observer's scale.

        Both are those before the answer is brought into the range.
        """
        law: Any = self._law(observation, None)
        return float(law.mean), float(law.sd)


class LinearObserver(MagnitudeObserver):
    """Answers along a straight line: y ~ N(w x + b, sigma), in fractions of the unit.

    A pull towards a fixed value is a straight line too. So a static Bayesian observer with one
    prior mean has the same likelihood as long as w lies between 0 and 1: b = (1 - w) mu_prior.
    """

    name = "linear_observer"
    summary = "answers along a straight line, w x + b"
    source = "the null model of magnitude estimation"

    w = real("slope of answers on values; 1 for a perfect observer", 1.0, 0.5, group_sd=0.25)
    b = real("intercept, as a fraction of the unit", 0.0, 0.24, group_sd=0.12)
    sigma = spread_of_answers(log_scale=False)

    def belief(self, trial: Any) -> Any:
        return self.w * self.scaled(trial) + self.b


class LinearObserverLog(LinearObserver):
    """Answers along a straight line of logarithms, log y ~ N(w log x + b, sigma): a power law.

    The logarithm is that of the fraction of the unit + 0.001 (Stevens 1957 for w; Fechner's
    logarithmic scale for both sides).
    """

    name = "linear_observer_log"
    summary = "answers along a power law, w log x + b"
    source = STEVENS
    log_scale = True

    w = real("exponent; 1 for a perfect observer", 1.0, 0.5, group_sd=0.25)
    b = real("intercept, on the log scale", 0.0, 0.48, group_sd=0.24)
    sigma = spread_of_answers(log_scale=True)


class StaticBayesObserver(MagnitudeObserver):
    """Answers with the mean of measurement and prior, weighted by their precisions.

    y ~ N((1 - w_prior) x + w_prior mu, sigma), in fractions of the unit. Here w_prior = tau_prior /
    (tau_prior + tau_measurement) is the same in all windows, and mu is the mean of the window's
    prior. Answers depend only on the ratio of the precisions; noise of the measurement is part of
    sigma. With a gain g and an offset d the mean is g (...) + d; neither can be told apart from
    w_prior and the means. With one prior for all windows the likelihood is that of `LinearObserver`
    with w = 1 - w_prior and b = w_prior mu_prior.
    """

    name = "static_bayes_observer"
    nested_in = "static_bayes_observer_gain"
    summary = "draws its answers towards the mean of a fixed prior in each window"
    source = REVIEW

    w_prior = unit(
        "weight of the prior, tau_prior / (tau_prior + tau_measurement)", -1.0, 1.0, source=REVIEW
    )
    mu_short = centre("short", False, "mean of the prior")
    mu_medium = centre("medium", False, "mean of the prior")
    mu_long = centre("long", False, "mean of the prior")
    sigma = spread_of_answers(log_scale=False)

    def belief(self, trial: Any) -> Any:
        return (1.0 - self.w_prior) * self.scaled(trial) + self.w_prior * self.centre(trial)


class NoisyBayesObserver(MagnitudeObserver):
    """Measures with noise and answers with the posterior mean of its prior, plus noise.

    m ~ N(x, sigma_measure); y ~ N((1 - w) m + w mu, sigma), where w = sigma_measure**2 /
    (sigma_measure**2 + sigma_prior**2) follows from the two. The static observer is the same with
    the measurement's noise counted into its sigma: y ~ N((1 - w) x + w mu, sqrt(sigma**2 + (1 -
    w)**2 sigma_measure**2)). So answers depend on the three spreads through only two numbers.
    """

    name = "noisy_bayes_observer"
    summary = "measures with noise and weights its prior by that noise"
    source = "Jazayeri and Shadlen 2010; " + REVIEW
    n_uniforms = 3
    design = ("window", "value", "unit", "ceiling")

    sigma_measure = positive(
        "standard deviation of measurements, as a fraction of the unit", -2.7, 0.7
    )
    sigma_prior = positive("standard deviation of the prior, as a fraction of the unit", -2.2, 0.5)
    mu_short = centre("short", False, "mean of the prior")
    mu_medium = centre("medium", False, "mean of the prior")
    mu_long = centre("long", False, "mean of the prior")
    sigma = positive("standard deviation of the answer around the belief", -3.2, 0.7)

    def weight(self) -> Any:
        return self.sigma_measure**2 / (self.sigma_measure**2 + self.sigma_prior**2)

    def belief(self, trial: Any) -> Any:
        return (1.0 - self.weight()) * self.scaled(trial) + self.weight() * self.centre(trial)

    def spread(self) -> Any:
        return np.sqrt(self.sigma**2 + ((1.0 - self.weight()) * self.sigma_measure) ** 2)

    def answer(self, trial: Any, u: Any, v: Any) -> Any:
        """Return the answer at uniform numbers for its noise and for the measurement's."""
        answer_noise, measured = (ndtri(np.maximum(uniform, SMALLEST)) for uniform in (u, v))
        belief = self.belief(trial) + (1.0 - self.weight()) * self.sigma_measure * measured
        return CensoredEstimate(belief, self.sigma, trial.unit, trial.ceiling).at(answer_noise)

    def choose(self, observation: Observation, rng: np.random.Generator) -> Choice:
        lapses, *uniforms = rng.random(self.n_uniforms).tolist()
        if lapses < self.lapse:
            return float(uniforms[0] * observation["ceiling"])
        values = dict(zip(self.parameters.names, self.theta.tolist(), strict=True))
        return float(self.with_values(values, 0).answer(SimpleNamespace(**observation), *uniforms))

    @classmethod
    def simulate(
        cls,
        theta: Array,
        lapse: Array | None,
        n_actions: int,
        row: Any,
        start: Any,
        uniforms: Array,
        *design: Array,
    ) -> Array:
        """Return answers, with three uniform numbers per trial: lapse, answer, measurement."""
        lane = np.repeat(row, np.diff(start), axis=0)
        observer = cls.with_values(
            dict(zip(cls.parameters.names, theta.T[:, lane], strict=True)), 0
        )
        trial = SimpleNamespace(**dict(zip(cls.design, design, strict=True)))
        lapses, u, v = uniforms.transpose(1, 0, 2)
        answer: Array = observer.answer(trial, u, v)
        return (
            answer if lapse is None else np.where(lapses < lapse[lane], u * trial.ceiling, answer)
        )


OUTPUTS = {"": "", "gain": "scales its answers", "affine": "scales and shifts its answers"}


def variants(family: type[MagnitudeObserver]) -> list[type[MagnitudeObserver]]:
    """Make an observer's variants: all combinations of options except the family's own.

    Between belief and answer there may be nothing, a gain, or a gain and an offset. Without a gain,
    all windows may share one mean, mu_prior. Values and answers may be logarithms.
    """
    options = [("", False), ("gain", False), ("affine", False), ("", True)]
    every = [(output, shared, log) for output, shared in options for log in (False, True)][1:]
    return [_variant(family, *each) for each in every]


def _variant(
    family: type[MagnitudeObserver], output: str, shared: bool, log: bool
) -> type[MagnitudeObserver]:
    """Make an observer with other options, and name it by them."""
    scale = ["log"] if log else []
    options = [option for option in (output, "shared" if shared else "", *scale) if option]
    wider = [] if shared else {"": ["gain"], "gain": ["affine"]}.get(output)
    sd = 0.2 if log else 0.1
    attributes: dict[str, Any] = {f"mu_{w}": centre(w, log, family.centres) for w in WINDOWS}
    if shared:
        attributes = dict.fromkeys(attributes, property(lambda self: self.mu_prior))
        attributes["mu_prior"] = centre("prior", log, family.centres)
    if output:
        attributes["gain"] = positive("factor between belief and answer", 0.0, 0.3, group_sd=0.15)
    if output == "affine":
        described = "what is added to the belief before answering"
        attributes["offset"] = real(described, 0.0, sd, group_sd=sd / 2)
    also = (OUTPUTS[output], "one mean in all windows" if shared else "", "on a log scale" * log)
    body: dict[str, Any] = {
        "__module__": family.__module__,
        "__doc__": f"A `{family.__name__}` with the options {', '.join(options)}.",
        "name": "_".join([family.name, *options]),
        "summary": ", ".join([family.summary, *filter(None, also)]),
        "nested_in": None if wider is None else "_".join([family.name, *wider, *scale]),
        "log_scale": log,
    }
    title = family.__name__ + "".join(option.capitalize() for option in options)
    return type(title, (family,), body | attributes | {"sigma": spread_of_answers(log)})


(
    StaticBayesObserverLog,
    StaticBayesObserverGain,
    StaticBayesObserverGainLog,
    StaticBayesObserverAffine,
    StaticBayesObserverAffineLog,
    StaticBayesObserverShared,
    StaticBayesObserverSharedLog,
) = variants(StaticBayesObserver)
