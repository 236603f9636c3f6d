"""A responder who keeps what has just paid and leaves what has not."""

from __future__ import annotations

from typing import Any

import numpy as np

from knownminds.agents.compiler.definition import Probabilities, unit
from knownminds.agents.model import Model

__all__ = ["WinStayLoseShift"]


class WinStayLoseShift(Model):
    """Repeats a choice after a win with probability p_stay, and leaves it otherwise with p_shift.

    A win is a reward above 0. An agent that leaves picks uniformly among the other actions; the
    first choice in each context is uniform.
    """

    summary = "repeats what has just paid and leaves what has not, each with a probability"
    source = "Worthy, Hawthorne and Otto 2013; the noisy rule of Wilson and Collins 2019"
    n_actions = None

    p_stay = unit("probability of repeating a choice that has just paid", mean=1.0, sd=1.0)
    p_shift = unit("probability of leaving a choice that has just paid nothing", mean=1.0, sd=1.0)

    def begin(self) -> None:
        self.last = np.zeros(self.actions)
        self.won: Any = 0
        self.chosen = 0

    def respond(self, trial: Any) -> Any:
        stay = self.p_stay if self.won > 0 else 1 - self.p_shift
        leave = (1 - stay) / (self.actions - 1)
        known = np.where(self.last > 0, stay, leave)
        return Probabilities(np.where(self.chosen > 0, known, 1 / self.actions))

    def update(self, trial: Any) -> None:
        self.last[:] = 0
        self.last[trial.action] = 1
        self.won = np.where(trial.reward > 0, 1, 0)
        self.chosen = 1
