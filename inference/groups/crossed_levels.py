"""Further levels of a group: factors whose levels several subjects share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from knownminds.agents.parameters import Array
from knownminds.environments import Trials
from knownminds.environments.later import pandas as pd

BETWEEN = " | "  # joins the values that name a unit


@dataclass(frozen=True)
class Levels:
    """Factors such as model and condition, and which level of each a subject has.

    Parameters
    ----------
    factors : names of the F factors
    names : names of all L levels, "factor=value", factor after factor
    factor : position of each level's factor, [L]
    of_subject : positions of each subject's levels, [N, F]
    """

    factors: tuple[str, ...]
    names: tuple[str, ...]
    factor: NDArray[np.int64]
    of_subject: NDArray[np.int64]

    @cached_property
    def count(self) -> NDArray[np.int64]:
        """How many levels each factor has, [F]."""
        return np.bincount(self.factor)

    @cached_property
    def contrasts(self) -> Array:
        """Orthonormal directions in which the levels of a factor differ, [L, L - F].

        Independent normal deviations consist of two parts. Their mean cannot be told apart from the
        group's mean. The other part is independent normal weights of these directions.
        """
        columns = np.zeros((len(self.names), len(self.names) - len(self.factors)))
        row = column = 0
        for n in self.count.tolist():
            # A QR of the identity less its mean has n - 1 columns that sum to 0.
            basis, _ = np.linalg.qr(np.eye(n)[:, : n - 1] - 1.0 / n)
            columns[row : row + n, column : column + n - 1] = basis
            row, column = row + n, column + n - 1
        return columns

    @cached_property
    def of_contrast(self) -> NDArray[np.int64]:
        """Position of each contrast's factor, [L - F]."""
        return np.repeat(np.arange(len(self.factors)), self.count - 1)

    def apart(self, values: Array) -> tuple[Array, Array, Array]:
        """Split values [N, K] by least squares into levels and rest.

        Returns the variance of the rest [K], the levels' contrasts [L - F, K], and the variance of
        each contrast's error, [L - F, K], which is that of the rest divided by the number of units
        of a level.
        """
        indicator = np.zeros((len(values), len(self.names)))
        for column in self.of_subject.T:
            indicator[np.arange(len(values)), column] = 1.0
        result, _, rank, _ = np.linalg.lstsq(indicator, values, rcond=None)
        rest = values - indicator @ result
        variance = (rest**2).sum(axis=0) / max(len(values) - rank, 1)
        per_unit = 1.0 / indicator.sum(axis=0)
        error = np.array([per_unit[self.factor == f].mean() for f in range(len(self.factors))])
        return variance, self.contrasts.T @ result, error[self.of_contrast][:, None] * variance

    def spread_out(
        self, centre: Array, sd: Array, contrast: Array, mean: Array, prior_sd: Array, seed: int
    ) -> tuple[Array, Array]:
        """Draw group means [S, K] and the deviations of all levels [S, L, K].

        The sampled `centre` [S, K] is the group's mean plus the mean deviation of each factor's
        levels. `contrast` [S, L - F, K] is the rest of the deviations. The remaining unknowns are
        normal given these, with the prior Normal(mean, prior_sd) and the spreads sd [S, F, K].
        """
        rng = np.random.default_rng(seed)
        share = sd**2 / self.count[:, None] + 1e-300
        whole = share.sum(axis=1)
        precision = 1.0 / prior_sd**2 + 1.0 / whole
        expected = (mean / prior_sd**2 + centre / whole) / precision
        group = expected + rng.standard_normal(centre.shape) / np.sqrt(precision)
        free = np.sqrt(share) * rng.standard_normal(share.shape)
        left = (centre - group) - free.sum(axis=1)
        common = free + share / whole[:, None] * left[:, None]
        apart = np.einsum("lc,sck->slk", self.contrasts, contrast)
        return group, apart + common[:, self.factor]

    @classmethod
    def of(cls, factors: Sequence[str], trials: Trials, subject: pd.Series) -> Levels:
        """Read the levels of `factors` from the trials; `subject` names each trial's subject.

        Raises
        ------
        ValueError : If a factor is not a column, varies within a subject, has a single level, or
            has as many levels as there are subjects, since it could then not be told apart from the
            subjects' deviations.
        """
        first = np.flatnonzero(~subject.duplicated().to_numpy())
        names: list[str] = []
        factor: list[int] = []
        columns = []
        for f, name in enumerate(factors):
            if name not in trials.frame:
                raise ValueError(
                    f"A crossed factor is a column of the trials; there is no {name!r} among "
                    f"{', '.join(trials.frame.columns)}."
                )
            column = trials.frame[name]
            within = column.groupby(subject.to_numpy(), sort=False).nunique(dropna=False)
            if (within > 1).any():
                raise ValueError(
                    f"A crossed factor has one level per unit; {name!r} has several for "
                    f'"{within.index[(within > 1).to_numpy()][0]}". Let it make the units as well: '
                    f"--unit subject,{name}."
                )
            codes, values = pd.factorize(column.iloc[first])
            if not 1 < len(values) < len(first) or codes.min() < 0:
                got = "none for some" if codes.min() < 0 else f"{len(values)} levels"
                raise ValueError(
                    "A crossed factor has at least two levels, and fewer than there are units; "
                    f"{name!r} has {got} for {len(first)} units. Leave it out."
                )
            columns.append(codes + len(names))
            names += [f"{name}={value}" for value in values]
            factor += [f] * len(values)
        return cls(tuple(factors), tuple(names), np.array(factor), np.column_stack(columns))


def in_units(sd: Any, eta: Any, estimate: Any, error: Any) -> Any:
    """Return contrasts between levels in units of their spread; arrays or PyTensor variables."""
    whole = sd**2 + error
    return estimate * sd / whole + (error / whole) ** 0.5 * eta


def units_of(trials: Trials, unit: Sequence[str]) -> pd.Series:
    """Return each trial's unit, which has one set of parameters: a model in a condition, say.

    Raises
    ------
    ValueError : If a column does not exist or is empty somewhere.
    """
    for name in unit:
        if name not in trials.frame:
            raise ValueError(
                f"Units are separated by columns of the trials; there is no {name!r} among "
                f"{', '.join(trials.frame.columns)}."
            )
        lost = np.flatnonzero(trials.frame[name].isna())
        if len(lost):
            raise ValueError(f"Every trial needs a {name!r}; {trials.row_name(lost[0])} has none.")
    code, values = pd.factorize(pd.MultiIndex.from_frame(trials.frame[list(unit)]))
    names = [BETWEEN.join(map(str, value)) for value in values]
    return pd.Series(np.array(names, dtype=object)[code], index=trials.frame.index)
