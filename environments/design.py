"""A session's counterfactual table: all that is random, drawn before anyone chooses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Design:
    """Everything random about one session; given this, a session is a function of the actions.

    Parameters
    ----------
    table : Arrays whose first axis is the trial: stimuli, and what each action would bring.
    labels : The session's names for contexts and actions, JSON-able; () where nothing is named.
    """

    table: Mapping[str, NDArray[Any]]
    labels: Any = ()

    def at(self, trial: int, names: Sequence[str]) -> dict[str, int | float]:
        """Return the numbers that the table holds for one trial, by name."""
        return {name: self.table[name][trial].item() for name in names}


def session_stream(seed: int, *address: int) -> np.random.Generator:
    """Return the random numbers of the session at this address of a study.

    The design is drawn first, then the choices, one number per trial. A session can be redrawn
    alone: subject 17 of the study with seed 11 is `session_stream(11, 17)`.

    Raises
    ------
    ValueError : If the seed or a part of the address is negative.
    """
    if seed < 0 or any(part < 0 for part in address):
        raise ValueError(
            f"Seeds and addresses are whole numbers from 0 on; got {(seed, *address)}."
        )
    return np.random.Generator(
        np.random.PCG64(np.random.SeedSequence(entropy=seed, spawn_key=address))
    )
