"""Contrasts of a group on the natural scale: what a column does to a parameter, and how surely."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from knownminds.agents.parameters import Array, Parameters
from knownminds.environments.later import formulaic
from knownminds.environments.later import pandas as pd
from knownminds.inference.posteriors.apa import quoted, quoted_direction, rounded
from knownminds.inference.posteriors.sampling import stacked

from .formulas import GroupDesign, Term

if TYPE_CHECKING:
    from knownminds.inference.posteriors.group_model import HierarchicalFit

MASS = 0.9
NEGLIGIBLE = 0.1  # of the distance between a prior's 16% and 50% (or 50% and 84%) points
MOST_LEVELS = 4  # of a column whose levels are compared pair by pair; of more each with the first
QUARTILES = (0.25, 0.75)


@dataclass(frozen=True)
class Contrast:
    """A parameter of the group's typical member under two values of a column, one less the other.

    Typical is a member without separate deviations, so that with the links of bounded parameters
    it is the difference of medians. It is averaged over the subjects as they are in all other
    columns.

    Parameters
    ----------
    parameter, column
        What is moved, and by what.
    kind
        "within" subjects, whose own values changed, or "between" them.
    high, low
        The values that are compared: `high` less `low`.
    at
        The value at which another column is held, "group=patient", where the two act together; ""
        elsewhere.
    rope
        Half the width of the region of practical equivalence around 0.
    draws
        [chains, draws].
    """

    parameter: str
    column: str
    kind: Literal["within", "between"]
    high: str
    low: str
    at: str
    rope: float
    draws: Array = field(repr=False, compare=False)

    @property
    def name(self) -> str:
        """What is compared, "alpha: drug on - off"."""
        where = f" at {self.at}" if self.at else ""
        return f"{self.parameter}: {self.column} {self.high} - {self.low}{where}"

    @cached_property
    def row(self) -> dict[str, Any]:
        """What tables and files hold of it.

        With the posterior mean (estimate), the central 90% interval, the probability of direction,
        the share within the region of practical equivalence (inside), the verdict ("differs" if
        the interval lies outside of that region, "negligible" if inside, else "open"), and the
        sentence that a paper quotes, with no digit that the draws do not have.
        """
        low, high = map(float, np.quantile(self.draws, [0.5 - MASS / 2, 0.5 + MASS / 2]))
        positive = float((self.draws > 0).mean())
        inside = float((np.abs(self.draws) <= self.rope).mean())
        verdict = "open"
        if low > self.rope or high < -self.rope:
            verdict = "differs"
        elif -self.rope <= low and high <= self.rope:
            verdict = "negligible"
        mean, interval = quoted(self.draws)
        sentence = (
            f"{self.name} ({self.kind} subjects, natural scale): difference = {mean}, 90% CrI "
            f"{interval}, pd {quoted_direction(self.draws)}, {inside:.0%} within "
            f"{rounded(self.rope, 3)} of 0."
        )
        return {
            "name": self.name,
            "parameter": self.parameter,
            "column": self.column,
            "kind": self.kind,
            "high_value": self.high,
            "low_value": self.low,
            "at": self.at,
            "estimate": float(self.draws.mean()),
            "low": low,
            "high": high,
            "direction": max(positive, 1.0 - positive),
            "rope": self.rope,
            "inside": inside,
            "verdict": verdict,
            "quoted": sentence,
        }


def negligible(parameters: Parameters) -> dict[str, float]:
    """Return by parameter half the width of what counts as no difference, unless told otherwise.

    A tenth of half the distance between the 16% and 84% points of the model's prior, on the natural
    scale: of a normal prior a tenth of its standard deviation (Kruschke 2018).
    """
    ends = [parameters.constrain(parameters.mean + sign * parameters.sd) for sign in (-1.0, 1.0)]
    half = NEGLIGIBLE * (ends[1] - ends[0]) / 2
    return dict(zip(parameters.names, half.tolist(), strict=True))


def contrasts_of(
    fit: HierarchicalFit, rope: Mapping[str, float] | None = None
) -> tuple[Contrast, ...]:
    """Return the contrasts of all columns in the formulas of a fit; none without a formula.

    Categories (and numbers of two values) are compared pair by pair, of more than four levels each
    with the first; numbers at their upper and lower quartile. Where two columns of categories act
    together, also at each level of the other.

    Parameters
    ----------
    rope
        By parameter, on the natural scale: half the width of the region of practical equivalence;
        see `negligible` for what it is otherwise.

    Raises
    ------
    ValueError
        If a region is of no estimated parameter, or not above 0.
    """
    for name, half in (rope or {}).items():
        fit.parameters.index(name)
        if not half > 0:
            raise ValueError(
                f"A region of practical equivalence is wider than 0; got {name}={half}."
            )
    if not fit.effects:
        return ()
    halves = negligible(fit.parameters) | dict(rope or {})
    contrasts: list[Contrast] = []
    begin = 0
    for term in fit.design.terms:
        made = _TermDraws.of(fit, term, begin)
        begin += made.n_effects
        for column in made.columns:
            for low, high in made.compared(column):
                contrasts.append(made.contrast(column, low, high, {}, halves))
            for other in made.together(column):
                for low, high in made.compared(column):
                    for level in _levels(made.frame[other]):
                        contrasts.append(made.contrast(column, low, high, {other: level}, halves))
    return tuple(contrasts)


@dataclass(frozen=True)
class _TermDraws:
    """A formula with the draws of its weights, for other values of its columns."""

    fit: HierarchicalFit
    design: GroupDesign
    term: Term
    frame: pd.DataFrame
    spec: Any
    matrix: Array
    weights: Array
    expected: Array
    share: Array
    effects: tuple[str, ...]

    @classmethod
    def of(cls, fit: HierarchicalFit, term: Term, begin: int) -> _TermDraws:
        """Take the weights from position `begin` on."""
        from knownminds.inference.posteriors.group_model import expected_of

        design = fit.design
        made = formulaic.model_matrix(term.fixed, design.frame)
        columns = [str(name) for name in made.columns if name != "Intercept"]
        matrix = made[columns].to_numpy(dtype=float) if columns else np.zeros((len(made), 0))
        weights = stacked(fit.posterior, "effect", "term")[:, begin : begin + len(columns)]
        position = fit.parameters.index(term.parameter)
        expected = expected_of(fit.posterior, fit.parameters, fit.design.regressors)[..., position]
        per = 1.0 / np.bincount(design.deviations.subject)[design.deviations.subject]
        spec = made.model_spec
        return cls(
            fit, design, term, design.frame, spec, matrix, weights, expected, per / per.sum(),
            tuple(columns),
        )  # fmt: skip

    @property
    def n_effects(self) -> int:
        return len(self.effects)

    @property
    def columns(self) -> list[str]:
        return sorted(map(str, self.spec.required_variables)) if self.effects else []

    def compared(self, column: str) -> list[tuple[Any, Any]]:
        """Return the pairs of values that are compared, the lower first."""
        values = self.frame[column]
        if not self._is_category(column):
            low, high = np.quantile(values.astype(float), QUARTILES)
            return [(float(low), float(high))] if high > low else [(values.min(), values.max())]
        levels = _levels(values)
        if len(levels) > MOST_LEVELS:
            return [(levels[0], level) for level in levels[1:]]
        return list(combinations(levels, 2))

    def together(self, column: str) -> list[str]:
        """Return other columns of categories with which one acts together."""
        if not self._is_category(column):
            return []
        joint = [name for name in self.effects if ":" in name and column in name]
        return [
            other
            for other in self.columns
            if other != column and self._is_category(other) and any(other in one for one in joint)
        ]

    def contrast(
        self, column: str, low: Any, high: Any, held: Mapping[str, Any], halves: Mapping[str, float]
    ) -> Contrast:
        """Compare two values of a column, the others as they are or held at a value."""
        natural = self._natural({column: high, **held}) - self._natural({column: low, **held})
        chains = self.fit.posterior.sizes["chain"]
        return Contrast(
            self.term.parameter,
            column,
            "between" if self.design.between(column) else "within",
            _told(high),
            _told(low),
            ", ".join(f"{name}={_told(value)}" for name, value in held.items()),
            halves[self.term.parameter],
            natural.reshape(chains, -1),
        )

    def _natural(self, values: Mapping[str, Any]) -> Array:
        """Return the parameter on average over subjects, with some columns at a value, [draws]."""
        there = self.frame.assign(**dict(values))
        matrix = self.spec.get_model_matrix(there)[list(self.effects)].to_numpy(dtype=float)
        z = self.expected + self.weights @ (matrix - self.matrix).T
        support = self.fit.parameters[self.term.parameter].support
        mean: Array = support.constrain(z) @ self.share
        return mean

    def _is_category(self, column: str) -> bool:
        values = self.frame[column]
        number = pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values)
        return not number or values.nunique() == 2 or f"C({column}" in self.term.fixed


def _levels(values: pd.Series[Any]) -> list[Any]:
    return sorted(values.unique().tolist())


def _told(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
