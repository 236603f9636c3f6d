"""Recorded sessions laid out, so that agents can take the very trials again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from .environment import Environment


@dataclass(frozen=True)
class Recorded:
    """Rows of N sessions, each at its position in time.

    Parameters
    ----------
    columns
        Each [N, T]. A position without a row has the value of the last row before it, or else of
        the session's first row.
    there
        Where a row is, [N, T].
    answered
        Where a row with an answer is, [N, T].
    """

    columns: Mapping[str, NDArray[Any]]
    there: NDArray[np.bool_]
    answered: NDArray[np.bool_]

    def of(self, sessions: NDArray[np.int64]) -> Recorded:
        """Return these sessions, of which one may be named several times."""
        columns = {name: column[sessions] for name, column in self.columns.items()}
        return Recorded(columns, self.there[sessions], self.answered[sessions])

    def tables(
        self, environment: Environment, sessions: NDArray[np.int64], rng: np.random.Generator
    ) -> dict[str, NDArray[Any]]:
        """Return tables [N, T, ...] in which these sessions take place once more.

        What was shown is shown again; what actions bring is drawn anew. "present" says which
        trials happen, those without an answer not among them, since they teach nothing, and
        "kept" of which an answered row is there.
        """
        played = self.of(sessions)
        fields = environment.fields
        shown = [name for name in fields.stimulus if name not in fields.dependent]
        tables = {name: played.columns[name] for name in shown}
        tables |= {"present": played.answered, "kept": played.answered}
        return tables | dict(environment.redrawn(self, sessions, rng))


def fresh_tables(
    environment: Environment, n: int, n_trials: int, rng: np.random.Generator
) -> dict[str, NDArray[Any]]:
    """Return tables of n new sessions, the first n_trials of each, [n, n_trials, ...].

    An experiment with fewer trials is enlarged by its setting of size.
    """
    if environment.n_trials < n_trials:
        size = environment.settings[str(environment.size)]
        enlarged = {str(environment.size): -(-size * n_trials // environment.n_trials)}
        environment = type(environment)(**environment.settings | enlarged)
    tables = environment.tables(rng.random((n, environment.n_draws)))
    return {name: table[:, :n_trials] for name, table in tables.items()}
