"""When to stop asking: sequential designs that look at the data several times.

With alpha spending (Lan and DeMets 1983) the probability of a false alarm over all looks is at most
alpha. At look k the test rejects if its p-value is at most a level. The levels are those of a
normal test with independent increments; they come from integrating the law of the statistic from
look to look (Armitage, McPherson and Rowe 1969). They are compared with the p-value of the
measure's own test, as is usual for t tests (Jennison and Turnbull 2000). A rule by a Bayes factor
(Rouder et al. 2009) or by the width of an interval promises nothing about false alarms: `power
--stop` measures them.

An e-process promises alpha however often one looks, also after each unit. It is the likelihood
ratio of the t statistic under effect sizes from a normal law and under none, and rejects from 1 /
alpha on (Ville 1939; Wang and Ramdas 2025). That is a level of the p-value that falls as units
come. Where a rule promises something, its intervals have the mass 1 - level of their look, at least
.95, and hold the truth at all looks together in 1 - alpha (Robbins 1970; Jennison and Turnbull
1989).
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache
from itertools import pairwise
from math import e, exp, inf, log, sqrt
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from knownminds.agents.parameters import Array
from knownminds.environments import unknown
from knownminds.inference.measure import Tests

Kind = Literal["alpha_spending", "e_process", "bayes_factor", "interval_width"]
Spending = Literal["obrien_fleming", "pocock"]
KINDS: tuple[str, ...] = get_args(Kind)
SPENDINGS: tuple[str, ...] = get_args(Spending)
LEAST_UNITS = 2  # least number of units at a look
MANY = 8  # looks at equal distances that are said in short

Flags = NDArray[np.bool_]
_OF_KIND = {
    "alpha_spending": ("alpha", "spending"),
    "e_process": ("alpha", "scale"),
    "bayes_factor": ("evidence", "scale"),
    "interval_width": ("alpha", "width"),
}
_POINTS = 1201  # points of the law of the statistic between its boundaries
_NODES = 400  # nodes of the integral over effect sizes


@dataclass(frozen=True)
class StoppingRule:
    """When to stop: the numbers of units at which the rule looks, and what ends the questions.

    A unit is a session of one agent, or a subject.

    Parameters
    ----------
    kind : "alpha_spending", "e_process", "bayes_factor" or "interval_width".
    looks : Numbers of units at which the rule looks, rising; the last look ends in any case. In a
        file also { first = 5, last = 60 }, with `every` for looks that are further apart.
    measure : The measure whose null value is tested; "" if it is named elsewhere.
    alpha : Probability of a false alarm over all looks; for a width, the level of the test at the
        end.
    spending : How alpha is spent: "obrien_fleming" spends hardly any at first, "pocock" spends it
        about evenly.
    evidence : Bayes factor for a stop: an effect is found from it on, no effect from 1 over it
        downwards.
    scale : Scale of the effect size under the alternative, in standard deviations of a unit: that
        of a Cauchy law for a Bayes factor, the standard deviation of a normal one for an e-process.
    width : Largest width of the 95% interval for a stop.
    """

    kind: Kind
    looks: tuple[int, ...]
    measure: str = ""
    alpha: float = 0.05
    spending: Spending = "obrien_fleming"
    evidence: float = 10.0
    scale: float = sqrt(0.5)
    width: float = inf

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(unknown("kind of stopping rule", self.kind, KINDS))
        if self.spending not in SPENDINGS:
            raise ValueError(unknown("spending", self.spending, SPENDINGS))
        looks = self.looks
        rising = all(a < b for a, b in pairwise(looks))
        whole = all(isinstance(n, int) and not isinstance(n, bool) for n in looks)
        if not (looks and whole and rising and looks[0] >= LEAST_UNITS):
            raise ValueError(
                f"looks are whole numbers of units in rising order, from {LEAST_UNITS} on; got "
                f"{list(looks)}."
            )
        for name, low, high in (("alpha", 0.0, 0.5), ("evidence", 1.0, inf), ("scale", 0.0, inf)):
            if not low < getattr(self, name) < high:
                raise ValueError(
                    f"{name} lies between {low:g} and {high:g}; got {getattr(self, name)!r}."
                )
        if self.kind == "interval_width" and not 0 < self.width < inf:
            raise ValueError(f"width is a number above 0; got {self.width!r}. Say how narrow.")

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> StoppingRule:
        """Make a rule from names and values, as in `content` or in a file."""
        given = dict(content)
        known = [one.name for one in fields(cls)]
        for name in given:
            if name not in known:
                raise ValueError(unknown("entry of a stopping rule", name, known))
        for name in ("kind", "looks"):
            if name not in given:
                raise ValueError(f"A stopping rule says its {name}; got {', '.join(given)}.")
        kind = given["kind"]
        if kind not in KINDS:
            raise ValueError(unknown("kind of stopping rule", str(kind), KINDS))
        idle = [n for n in given if n not in ("kind", "looks", "measure", *_OF_KIND[kind])]
        if idle:
            raise ValueError(
                f"A rule of the kind {kind} goes by {', '.join(_OF_KIND[kind])}; got {idle[0]}. "
                "Leave it out, or name another kind."
            )
        for name in ("alpha", "evidence", "scale", "width"):
            value = given.get(name, 1.0)
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise ValueError(f"{name} is a number; got {value!r}.")
        looks = _looks(given["looks"])
        if isinstance(looks, str) or not isinstance(looks, Sequence):
            raise ValueError(f"looks are whole numbers of units in rising order; got {looks!r}.")
        return cls(**given | {"looks": tuple(looks)})

    @classmethod
    def read(cls, file: str | os.PathLike[str]) -> StoppingRule:
        """Read a rule from a TOML file: `kind`, `looks`, and the entries of its kind."""
        path = Path(file)
        try:
            content = tomllib.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise ValueError(f"A stopping rule is a TOML file; {path}: {error.strerror}.") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ValueError(f"A stopping rule is a TOML file; {path}: {error}.") from None
        try:
            return cls.of(content)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None

    def as_dict(self) -> dict[str, Any]:
        """Return everything that defines the rule, JSON-able."""
        names = ("kind", "looks", *(("measure",) if self.measure else ()), *_OF_KIND[self.kind])
        values = {name: getattr(self, name) for name in names}
        return values | {"looks": list(self.looks)}

    @property
    def nominal(self) -> float | None:
        """The probability of a false alarm that the rule promises; None if it promises none."""
        return self.alpha if self.kind in ("alpha_spending", "e_process") else None

    @cached_property
    def levels(self) -> tuple[float, ...]:
        """Level of the two-sided p-value at each look; of an e-process, that of one group."""
        if self.kind == "alpha_spending":
            return spent_levels(self.looks, self.alpha, self.spending)
        if self.kind == "e_process":
            n = np.array(self.looks, dtype=float)
            return tuple(e_process_levels(n, n - 1, self.alpha, self.scale).tolist())
        return (self.alpha,) * len(self.looks)

    def level(self, tests: Tests, look: int) -> Array:
        """Return the level of the p-value of each of R samples at a look, [R]."""
        if self.kind == "e_process":
            n = 1.0 / (1.0 / tests.of_groups).sum(axis=0)
            return e_process_levels(n, tests.freedom, self.alpha, self.scale)
        return np.full(len(tests.mean), self.levels[look])

    def judge(self, tests: Tests, look: int, null: float) -> tuple[Array, Flags, Flags, Flags]:
        """Return statistic [R], whether to stop, and what is found: an effect, or no effect.

        Parameters
        ----------
        tests : Tests of R samples, at this look.
        look : Position of the look, from 0.
        null : The measure's null value.
        """
        last = look == len(self.looks) - 1
        level = self.level(tests, look)
        if self.kind == "bayes_factor":
            with np.errstate(invalid="ignore", divide="ignore"):
                t = (tests.mean - null) / tests.standard_error
            statistic = np.array(
                [
                    bayes_factor(a, of_groups.tolist(), self.scale)
                    for a, of_groups in zip(t, tests.of_groups.T, strict=True)
                ]
            )
            effect = np.asarray(statistic >= self.evidence)
            none = np.asarray(statistic <= 1 / self.evidence)
            return statistic, effect | none | last, effect, none
        nothing = np.zeros(len(tests.mean), dtype=bool)
        if self.kind == "interval_width":
            statistic = tests.high - tests.low
            stop = (statistic <= self.width) | last
            return statistic, stop, stop & (tests.p_value <= level), nothing
        statistic = tests.p_value
        effect = np.asarray(statistic <= level)
        return np.asarray(statistic), effect | last, effect, nothing

    def __str__(self) -> str:
        about = {
            "alpha_spending": f"alpha {self.alpha:g} spent as {self.spending.replace('_', '-')}",
            "e_process": f"e-process from {1 / self.alpha:g} on, effects of {self.scale:.2g} sd",
            "bayes_factor": f"Bayes factor from {self.evidence:g} on or up to 1/{self.evidence:g}",
            "interval_width": f"95% interval at most {self.width:g} wide",
        }[self.kind]
        looks = self.looks
        if len(looks) > MANY and len({b - a for a, b in pairwise(looks)}) == 1:
            every = looks[1] - looks[0]
            return f"{about}, looks at {looks[0]}, {looks[1]}, ..., {looks[-1]} (every {every})"
        return f"{about}, looks at {', '.join(map(str, looks))}"


def _looks(given: Any) -> Any:
    """Return the looks that a table stands for; anything else as it is."""
    if not isinstance(given, Mapping):
        return given
    told = {"every": 1, **given}
    whole = all(isinstance(n, int) and not isinstance(n, bool) for n in told.values())
    if told.keys() != {"first", "last", "every"} or not whole or told["every"] < 1:
        raise ValueError(
            f"looks as a table are whole numbers {{ first, last, every }}; got {dict(given)}."
        )
    return [*range(told["first"], told["last"], told["every"]), told["last"]]


def e_process_levels(n: Array, freedom: Array, alpha: float, scale: float) -> Array:
    """Return the level of the two-sided p-value from which on an e-process rejects.

    With a = 1 / (1 + n scale^2) and f degrees of freedom the process is
    sqrt(a) ((1 + t^2 / f) / (1 + a t^2 / f))^((f + 1) / 2), and it rejects from 1 / alpha on. The
    level is the chance of such a |t| or a larger one; 0 where no t is large enough.

    Parameters
    ----------
    n : Units; of two groups n_a n_b / (n_a + n_b).
    freedom : Of the t statistic, as many.
    alpha, scale : Of the rule.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        a = 1.0 / (1.0 + n * scale**2)
        ratio = np.exp(-2.0 * np.log(alpha * np.sqrt(a)) / (freedom + 1.0))
        t = np.sqrt(freedom * (ratio - 1.0) / (1.0 - a * ratio))
    enough = a * ratio < 1.0
    return np.asarray(np.where(enough, 2.0 * scipy.stats.t.sf(t, freedom), 0.0))


@lru_cache(maxsize=64)
def spent_levels(looks: tuple[int, ...], alpha: float, spending: Spending) -> tuple[float, ...]:
    """Return the level of the two-sided p-value at each look.

    The spending functions are those of Lan and DeMets (1983), where t is the share of the units so
    far. One is 4 - 4 Phi(z / sqrt(t)), half of it on either side, with z the quantile of 1 - alpha
    / 4. The other is alpha log(1 + (e - 1) t).

    Parameters
    ----------
    looks : Numbers of units, rising.
    alpha : The total to be spent.
    spending : "obrien_fleming" or "pocock".
    """
    shares = np.array(looks) / looks[-1]
    if spending == "obrien_fleming":
        total = 4 * ndtr(float(ndtri(alpha / 4)) / np.sqrt(shares))
    else:
        total = alpha * np.log1p((e - 1) * shares)
    levels: list[float] = []
    grid, density = np.zeros(1), np.ones(1)  # of the sum of increments, before the first look
    before = spent = 0.0
    for share, until in zip(shares, total, strict=True):
        step = sqrt(share - before)

        bound = _boundary(grid, density, step, until - spent)
        levels.append(float(2 * ndtr(-bound / sqrt(share))))
        points = np.linspace(-bound, bound, _POINTS)
        kernel = np.exp(-0.5 * ((points[:, None] - grid[None, :]) / step) ** 2)
        width = points[1] - points[0]
        weights = np.full(_POINTS, width / 3 / (step * sqrt(2 * np.pi)))  # Simpson's
        weights[1:-1:2] *= 4
        weights[2:-1:2] *= 2
        grid, density = points, weights * (kernel @ density)
        before, spent = share, until
    return tuple(levels)


def _boundary(grid: Array, density: Array, step: float, share: float) -> float:
    """Return the bound that the next sum crosses with this probability, on both sides together."""

    def beyond(bound: float) -> float:
        away = ndtr(-(bound - grid) / step) + ndtr(-(bound + grid) / step)
        return float(density @ away) - share

    return float(scipy.optimize.brentq(beyond, 0.0, 40.0))


def bayes_factor(t: float, of_groups: Sequence[int], scale: float = sqrt(0.5)) -> float:
    """Return the Bayes factor of an effect over none, from a t statistic.

    The effect size has a Cauchy prior of this scale under the alternative (Rouder, Speckman, Sun,
    Morey and Iverson 2009). The factor is the integral over g of a normal prior with variance
    g scale^2, by the midpoint rule on log g. The statistic of one group has n - 1 degrees of
    freedom. That of a difference between two groups has n_a + n_b - 2, with n_a n_b / (n_a + n_b)
    in place of n. NaN without a t statistic.
    """
    freedom = float(sum(of_groups) - len(of_groups))
    if not np.isfinite(t) or freedom < 1 or min(of_groups) < 1:
        return float("nan")
    n = 1.0 / sum(1.0 / count for count in of_groups)
    at = (np.arange(_NODES) + 0.5) / _NODES * 40.0 - 15.0  # log g
    g = np.exp(at)
    spread = 1.0 + n * g * scale**2
    log_likelihood = -0.5 * np.log(spread) - (freedom + 1) / 2 * np.log1p(t**2 / spread / freedom)
    log_prior = -0.5 * log(2 * np.pi) - 1.5 * at - 0.5 / g  # inverse gamma (1/2, 1/2)
    log_terms = log_likelihood + log_prior + at
    most = log_terms.max()
    alternative = most + log(np.exp(log_terms - most).sum() * 40.0 / _NODES)
    null = -(freedom + 1) / 2 * np.log1p(t**2 / freedom)
    return float(exp(min(alternative - null, 700.0)))
