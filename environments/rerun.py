"""Recorded rows lived once more: what was shown is shown again, luck is drawn anew."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

    from .environment import Environment


@dataclass(frozen=True)
class Recorded:
    """Rows of N sessions, each at its place in time: what `Rerun.tables` makes designs of.

    Parameters
    ----------
    columns
        Each [N, T]. Where no row is stands the value of some other row, which means nothing.
    there
        Where a row is, [N, T].
    answered
        Where a row with an answer is, [N, T].
    lost
        Where trial numbers tell of a trial that happened and has no row, [N, T].
    """

    columns: Mapping[str, NDArray[Any]]
    there: NDArray[np.bool_]
    answered: NDArray[np.bool_]
    lost: NDArray[np.bool_]

    def of(self, sessions: NDArray[np.int64]) -> Recorded:
        """Return these sessions, of which one may be named several times."""
        columns = {name: column[sessions] for name, column in self.columns.items()}
        return Recorded(columns, self.there[sessions], self.answered[sessions], self.lost[sessions])


class Rerun:
    """How the recorded rows of an experiment are played once more; see `Environment.rerun`.

    By default rows stand one after the other and their stimuli are the whole design.
    """

    def __init__(self, environment: Environment):
        self.environment = environment

    def slots(self, frame: pd.DataFrame, session: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the place of each row in its session, from 0.

        `session` numbers the sessions. Places that stay free between rows are trials that were
        lost, such as rows that were left out of a file.
        """
        rank: NDArray[Any] = frame.groupby(session, sort=False).cumcount().to_numpy()
        return rank.astype(np.int64)

    def tables(
        self, recorded: Recorded, sessions: NDArray[np.int64], rng: np.random.Generator
    ) -> dict[str, NDArray[Any]]:
        """Make tables [N, T, ...] for sessions[N] of the recorded ones: the same rows once more.

        What was shown is shown again; what actions bring is drawn anew. "present" says which
        trials happen, those without an answer not among them, since they teach nothing, and
        "kept" of which an answered row is there.
        """
        played = recorded.of(sessions)
        shown = {name: played.columns[name] for name in self.environment.fields.stimulus}
        return {**shown, "present": played.answered, "kept": played.answered}

    def rule(self, columns: Collection[str]) -> str:
        """Say in a sentence by what rule luck is drawn, given the columns that trials have.

        "" where the rows determine all.
        """
        return ""


class ByNumber(Rerun):
    """Rows stand where their trial numbers say."""

    def slots(self, frame: pd.DataFrame, session: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the places of rows by their trial numbers, counted from 0 or from 1.

        Where a session has numbers beyond those of the experiment they may number something else:
        there rows stand one after the other.
        """
        number = frame["trial"].to_numpy(dtype=np.int64)
        slot = number - min(int(number.min()), 1)
        if len(slot) and slot.min() >= 0 and slot.max() < self.environment.n_trials:
            return slot
        return super().slots(frame, session)


def labels_of_the_lost(
    labels: NDArray[np.int64],
    there: NDArray[np.bool_],
    lost: NDArray[np.bool_],
    each: int,
    total: int,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Draw labels for lost trials, where every label of a session is met equally often.

    Parameters
    ----------
    labels, there, lost
        Labels of the recorded trials, where these are, and where lost ones are, [N, T].
    each, total
        How often a session meets each label, and how many labels there are.

    Returns
    -------
    [N, T]: the recorded labels, for lost trials one of those not met often enough, and -1 for a
    label that no recorded trial has and where nothing is left.
    """
    seen = np.unique(labels[there])
    filled = np.where(there, labels, -1)
    for session in np.flatnonzero(lost.any(axis=1)):
        met = np.array([(filled[session] == label).sum() for label in seen])
        left = np.repeat(seen, np.maximum(each - met, 0))
        left = np.append(left, np.full(max(total - len(seen), 0) * each, -1))
        places = np.flatnonzero(lost[session])[: len(left)]
        filled[session, places] = rng.permutation(left)[: len(places)]
    return filled
