"""Parameters of models: their names, their allowed values, and their priors."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Support:
    """The allowed values of a parameter and the map to the real line.

    `identity` leaves the value as it is, `log` serves (0, inf), and `logit` serves (lower, upper).
    People read the natural scale; optimisers and samplers use the unconstrained one.
    """

    kind: Literal["identity", "log", "logit"]
    lower: float = -np.inf
    upper: float = np.inf

    def constrain(self, z: Array) -> Array:
        """Map unconstrained values to the natural scale, any shape."""
        if self.kind == "identity":
            return z
        if self.kind == "log":
            return np.exp(np.minimum(z, 700.0))  # e**709 is the last finite double
        share: Array = np.asarray(expit(z))
        return self.lower + (self.upper - self.lower) * share

    def unconstrain(self, theta: Array) -> Array:
        """Map natural values to the real line; the ends of the support become infinite."""
        if self.kind == "identity":
            return theta
        with np.errstate(divide="ignore"):
            if self.kind == "log":
                return np.log(theta)
            return np.asarray(logit((theta - self.lower) / (self.upper - self.lower)))

    def slope(self, theta: Array) -> Array:
        """Return the derivative of the natural value with respect to the unconstrained one."""
        if self.kind == "identity":
            return np.ones_like(theta)
        if self.kind == "log":
            return theta
        return (theta - self.lower) * (self.upper - theta) / (self.upper - self.lower)

    def contains(self, theta: Array) -> NDArray[np.bool_]:
        """Say for each value whether it lies in the support; the finite ends count as inside."""
        return np.isfinite(theta) & (theta >= self.lower) & (theta <= self.upper)

    def __str__(self) -> str:
        return f"({self.lower:g}, {self.upper:g})"


IDENTITY = Support("identity")
POSITIVE = Support("log", lower=0.0)
UNIT = Support("logit", lower=0.0, upper=1.0)


def interval(lower: float, upper: float) -> Support:
    """Return the support (lower, upper)."""
    return Support("logit", lower=lower, upper=upper)


@dataclass(frozen=True)
class Parameter:
    """A named unknown with its support and its prior, Normal(mean, sd) on the real line.

    `group_sd` is the scale of the half-normal hyperprior of the spread between subjects.
    """

    name: str
    support: Support
    mean: float
    sd: float
    description: str
    source: str = ""
    group_sd: float = 0.5


class Parameters:
    """A model's parameters in their declared order.

    `theta` is a vector (or an array whose last axis is the parameter) on the natural
    scale, `z` the same on the unconstrained scale.
    """

    def __init__(self, *parameters: Parameter):
        self._parameters = parameters
        self.names = tuple(p.name for p in parameters)
        self.mean: Array = np.array([p.mean for p in parameters], dtype=float)
        self.sd: Array = np.array([p.sd for p in parameters], dtype=float)
        self._lower = np.array([p.support.lower for p in parameters])
        self._upper = np.array([p.support.upper for p in parameters])
        if len(set(self.names)) < len(self.names):
            raise ValueError(f"Parameter names must differ; got {', '.join(self.names)}.")

    def __len__(self) -> int:
        return len(self._parameters)

    def __iter__(self) -> Iterator[Parameter]:
        return iter(self._parameters)

    def __getitem__(self, name: str) -> Parameter:
        return self._parameters[self.index(name)]

    def index(self, name: str) -> int:
        """Return the position of a parameter; ValueError names the existing ones."""
        if name in self.names:
            return self.names.index(name)
        near = difflib.get_close_matches(name, self.names, n=2, cutoff=0.3)
        hint = f" Did you mean {' or '.join(near)}?" if near else ""
        known = ", ".join(self.names) or "none"
        raise ValueError(f"The parameters of this model are {known}; got {name!r}.{hint}")

    def constrain(self, z: ArrayLike) -> Array:
        """Map z[..., P] to theta[..., P]."""
        return self._by_column("constrain", z)

    def unconstrain(self, theta: ArrayLike) -> Array:
        """Map theta[..., P] to z[..., P]."""
        return self._by_column("unconstrain", theta)

    def slope(self, theta: ArrayLike) -> Array:
        """Return the derivative of theta with respect to z, elementwise, at theta[..., P]."""
        return self._by_column("slope", theta)

    def draw(self, rng: np.random.Generator, n: int) -> Array:
        """Draw theta[n, P] from the priors."""
        return self.constrain(rng.normal(self.mean, self.sd, size=(n, len(self))))

    def log_prior(self, z: ArrayLike) -> tuple[Array, Array]:
        """Return the log density of z[..., P] under the priors, and its gradient in z."""
        standard = (np.asarray(z, dtype=float) - self.mean) / self.sd
        constant = np.log(self.sd * np.sqrt(2 * np.pi))
        return -(0.5 * standard**2 + constant).sum(axis=-1), -standard / self.sd

    def vector(self, values: Mapping[str, float], owner: str) -> Array:
        """Return named values as theta[P], after checking names and supports."""
        for name in values:
            if name not in self.names:
                self.index(name)
        missing = [name for name in self.names if name not in values]
        if missing:
            raise ValueError(
                f"{owner} has parameters {', '.join(self.names)}; "
                f"got no value for {', '.join(missing)}."
            )
        theta = np.array([values[name] for name in self.names], dtype=float)
        self.check(theta)
        return theta

    def check(self, theta: ArrayLike) -> None:
        """Raise ValueError at the first value of theta[..., P] outside its support."""
        values = np.asarray(theta, dtype=float)
        if values.shape[-1:] != (len(self),):
            raise ValueError(
                f"theta needs {len(self)} columns ({', '.join(self.names)}); "
                f"got shape {values.shape}."
            )
        if (np.isfinite(values) & (values >= self._lower) & (values <= self._upper)).all():
            return
        for i, parameter in enumerate(self._parameters):
            column = values[..., i]
            inside = parameter.support.contains(column)
            if not np.all(inside):
                value = np.atleast_1d(column)[~np.atleast_1d(inside)][0]
                raise ValueError(
                    f"{parameter.name} lies in {parameter.support}; got {value:g}. "
                    "Choose a value inside its support."
                )

    def table(self) -> list[dict[str, Any]]:
        """Return the parameters as rows of a table, for printing."""
        return [
            {
                "parameter": p.name,
                "support": str(p.support),
                "scale": p.support.kind,
                "prior_mean": p.mean,
                "prior_sd": p.sd,
                "group_sd": p.group_sd,
                "description": p.description,
                "source": p.source,
            }
            for p in self
        ]

    def _by_column(self, method: str, values: ArrayLike) -> Array:
        values = np.asarray(values, dtype=float)
        columns = [getattr(p.support, method)(values[..., i]) for i, p in enumerate(self)]
        return np.stack(columns, axis=-1) if columns else values.copy()


# Any choice may be a lapse: a uniform pick among the actions. All agents have this parameter, so it
# is declared once, and appended to a model's parameters when they are fitted.
LAPSE = Parameter(
    "lapse",
    UNIT,
    mean=-4.0,
    sd=1.0,
    description="probability that a choice is a uniform pick",
    source="Wichmann and Hill 2001",
)
