"""The parts of a definition besides its methods: parameters and laws of answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from knownminds.agents.parameters import IDENTITY, POSITIVE, UNIT, Parameter, Parameters, Support

SMALLEST = 1e-300  # its logarithm, and its quantile of the normal law, are finite
HALF_LOG_2_PI = 0.5 * float(np.log(2.0 * np.pi))


class Definable(Protocol):
    """What kernels are made of: the attributes and methods of a `Model` that are traced."""

    name: ClassVar[str]
    parameters: ClassVar[Parameters]
    given: ClassVar[Any]
    separate: ClassVar[tuple[str, ...]]
    n_actions: ClassVar[int | None]
    kinds: ClassVar[tuple[str, tuple[int, ...]] | None]
    mixes_lapses: ClassVar[bool]
    prepare: ClassVar[Any]
    _outline: ClassVar[dict[str, Any]]
    _order: ClassVar[tuple[str, ...]]

    @classmethod
    def with_values(cls, values: Mapping[str, Any], actions: int, trial: Any) -> Self: ...
    @classmethod
    def reports(cls) -> bool: ...
    def remembered(self) -> dict[str, Any]: ...
    def acts(self, trial: Any) -> Any: ...
    def update(self, trial: Any) -> None: ...


def declared(support: Support, description: str, mean: float, sd: float, **more: Any) -> Any:
    """Declare a parameter of a model; its name is that of the class attribute.

    Parameters
    ----------
    mean, sd : Prior on the unconstrained scale, Normal(mean, sd).
    more : `source`, and `group_sd`, the scale of the spread between subjects.
    """
    return Parameter("", support, mean=mean, sd=sd, description=description, **more)


def real(description: str, mean: float = 0.0, sd: float = 1.0, **more: Any) -> Any:
    """Declare a parameter on the real line; see `declared`."""
    return declared(IDENTITY, description, mean, sd, **more)


def positive(description: str, mean: float = 0.0, sd: float = 1.0, **more: Any) -> Any:
    """Declare a parameter in (0, inf), by its logarithm; see `declared`."""
    return declared(POSITIVE, description, mean, sd, **more)


def unit(description: str, mean: float = 0.0, sd: float = 1.0, **more: Any) -> Any:
    """Declare a parameter in (0, 1), by its log odds; see `declared`."""
    return declared(UNIT, description, mean, sd, **more)


class Law:
    """The distribution of an answer that is a number: a dataclass whose fields a definition fills.

    Its methods are plain NumPy (and `scipy.special.ndtr`, `log_ndtr`), as definitions are.

    Attributes
    ----------
    span : The range of responses, over which lapses are uniform; None if the law itself defines
        lapses.
    """

    span: ClassVar[tuple[float, float] | None] = (0.0, 1.0)

    def log_density(self, y: Any) -> Any:
        """Return the log density of a response, or its log probability if it has one."""
        raise NotImplementedError

    def at(self, normal: Any) -> Any:
        """Return the response at a quantile, given as a standard normal number."""
        raise NotImplementedError

    def lapse_density(self, y: Any) -> Any:
        """Return the density of a response in a lapse."""
        return 1.0

    def lapse_at(self, u: Any) -> Any:
        """Return the response of a lapse, given a uniform number."""
        return u


@dataclass(frozen=True)
class LogitNormal(Law):
    """A stated probability whose log odds are normal, held within `least` of 0 and 1."""

    mean: Any
    sd: Any
    least: ClassVar[float] = 1e-5

    def log_density(self, y: Any) -> Any:
        """Return the log density of y itself, not of its log odds."""
        y = np.clip(y, self.least, 1.0 - self.least)
        off = (np.log(y / (1.0 - y)) - self.mean) / self.sd
        return -0.5 * off**2 - np.log(self.sd) - HALF_LOG_2_PI - np.log(y * (1.0 - y))

    def at(self, normal: Any) -> Any:
        """Return the response at a quantile."""
        x = self.mean + self.sd * normal
        return np.clip(1.0 / (1.0 + np.exp(-x)), self.least, 1.0 - self.least)


@dataclass(frozen=True)
class Normal(Law):
    """A number with a normal error."""

    mean: Any
    sd: Any

    def log_density(self, y: Any) -> Any:
        """Return the log density."""
        off = (y - self.mean) / self.sd
        return -0.5 * off**2 - np.log(self.sd) - HALF_LOG_2_PI

    def at(self, normal: Any) -> Any:
        """Return the response at a quantile."""
        return self.mean + self.sd * normal


@dataclass(frozen=True)
class Probabilities:
    """The probability of each action, [n_actions]; they sum to 1."""

    values: Any


def probabilities(given: Any) -> list[float]:
    """Return the probability of each action, given what `respond` returned on numbers."""
    if isinstance(given, Probabilities):
        return [float(p) for p in given.values]
    flat = given if type(given) is np.ndarray and given.ndim == 1 else np.ravel(given)
    return shares(flat.tolist())


def shares(numbers: Sequence[float]) -> list[float]:
    """Return the probability of each action, given their utilities or the log odds of action 1."""
    if len(numbers) == 1:
        (x,) = numbers
        e = exp(-abs(x))
        both = (e, 1.0) if x > 0.0 else (1.0, e)  # 1 less the other would lose digits
        return [b / (1.0 + e) for b in both]
    top = max(numbers)
    if len(numbers) == 2:  # as below, and quicker
        a, b = exp(numbers[0] - top), exp(numbers[1] - top)
        return [a / (a + b), b / (a + b)]
    weights = [exp(u - top) for u in numbers]
    whole = sum(weights)
    return [w / whole for w in weights]


def log_mixed(log_density: float, each: float, lapse: float) -> float:
    """Return the log density of a mixture with lapses, whose density is `each`."""
    with np.errstate(divide="ignore"):
        return float(np.logaddexp(np.log1p(-lapse) + log_density, np.log(lapse * each)))
