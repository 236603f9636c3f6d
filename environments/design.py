"""A session's counterfactual table: every random outcome drawn before anyone chooses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Design:
    """Everything random about one session, so that it becomes a function of the actions.

    Parameters
    ----------
    table
        Arrays whose first axis is the trial: stimuli, and what each action would bring.
    labels
        What the session calls its contexts and actions, JSON-able; () where nothing is named.
    """

    table: Mapping[str, NDArray[Any]]
    labels: Any = ()


@dataclass(frozen=True)
class Recorded:
    """Rows of N sessions, each at its place in time: what `Environment.again` makes designs of.

    Parameters
    ----------
    columns
        Each [N, T]. Where no row is stands the value of some other row, which means nothing.
    there
        Where a row is, [N, T].
    answered
        Where a row with an answer is, [N, T].
    lost
        Where trial numbers tell of a trial that took place and has no row, [N, T].
    """

    columns: Mapping[str, NDArray[Any]]
    there: NDArray[np.bool_]
    answered: NDArray[np.bool_]
    lost: NDArray[np.bool_]

    def of(self, sessions: NDArray[np.int64]) -> Recorded:
        """Return these sessions, of which one may be named several times."""
        columns = {name: column[sessions] for name, column in self.columns.items()}
        return Recorded(columns, self.there[sessions], self.answered[sessions], self.lost[sessions])


def slots_by_number(
    frame: pd.DataFrame, session: NDArray[np.int64], most: int, rank: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the places of rows by their trial numbers, counted from 0 or from 1.

    Where a session has numbers beyond `most` they may number something else: there it is `rank`.
    """
    number = frame["trial"].to_numpy(dtype=np.int64)
    place = number - min(int(number.min()), 1)
    return place if len(place) and place.min() >= 0 and place.max() < most else rank


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


def session_stream(seed: int, *address: int) -> np.random.Generator:
    """Return the random numbers of the session at this address of a study.

    The design is drawn first, then the choices, one number per trial. A session can be redrawn
    alone: subject 17 of the study with seed 11 is `session_stream(11, 17)`.

    Raises
    ------
    ValueError
        If the seed or a part of the address is negative.
    """
    if seed < 0 or any(part < 0 for part in address):
        raise ValueError(
            f"Seeds and addresses are whole numbers from 0 on; got {(seed, *address)}."
        )
    return np.random.Generator(
        np.random.PCG64(np.random.SeedSequence(entropy=seed, spawn_key=address))
    )
