"""Choices between two machines, by what they paid and by how little is known of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from knownminds.agents.compiler.definition import positive, real
from knownminds.agents.model import Integers, Model, Prepared, Selection
from knownminds.agents.parameters import Array
from knownminds.agents.sequences import LANES

__all__ = ["HorizonExplorer", "HorizonBlind"]

UNIT_OF_POINTS = 10.0  # differences of points are counted in tens
WILSON = "Wilson et al. 2014"


def deal(
    subject: Integers, sequence: Integers, columns: Mapping[str, Array], lapse: bool
) -> Prepared:
    """Deal the answered trials of each subject into sequences of 32.

    Only the simulation needs to know the games, since all that a choice depends on stands in its
    columns. A sequence costs as much as ten trials, and a game has only one first free choice, so
    that games as sequences would be slow.
    """
    kept = np.flatnonzero(columns["action"] >= 0.0)
    kept = kept[np.argsort(subject[kept], kind="stable")]
    subjects = subject[kept]
    within = np.arange(len(subjects)) - np.searchsorted(subjects, subjects)
    return subjects, within // LANES, {n: column[kept] for n, column in columns.items()}


FIRST_FREE_CHOICES = Selection(
    "play",
    0.0,
    "first free choices",
    "Later choices of a game follow from earlier ones, and people mostly exploit there, which an "
    "information bonus fitted to all plays would take for a dislike of information.",
)


class HorizonExplorer(Model):
    """Prefers the machine that paid more, and also the one that is known less.

    P(machine 1) = logistic((dR + A_h dI + B) / s_h). dR is how much more machine 1 has paid per
    play so far, in tens of points. dI is 1 where machine 1 was played less often than machine 0, -1
    where it was played more often, else 0. A and s depend on whether the game has one free play
    (A_1, s_1) or several (A_6, s_6). Directed exploration is A_6 - A_1; random exploration is s_6 -
    s_1.

    As in the source, a fit uses the first free choice of each game, which depends on the forced
    plays alone. `all_trials` fits all plays.
    """

    summary = "explores for information and at random, more or less where plays are left"
    source = "Wilson, Geana, White, Ludvig and Cohen 2014"
    separate = ("game",)
    selection = FIRST_FREE_CHOICES
    prepare = staticmethod(deal)

    A_1 = real(
        "information bonus in games with one free play, in tens of points",
        mean=0.0,
        sd=0.7,
        source=WILSON,
    )
    A_6 = real(
        "information bonus in longer games, in tens of points", mean=0.5, sd=0.7, source=WILSON
    )
    B = real("liking of machine 1, in tens of points", mean=0.0, sd=0.5, source=WILSON)
    s_1 = positive(
        "decision noise in games with one free play, in tens of points",
        mean=-0.5,
        sd=0.5,
        source=WILSON,
    )
    s_6 = positive(
        "decision noise in longer games, in tens of points", mean=-0.2, sd=0.5, source=WILSON
    )

    def respond(self, trial: Any) -> Any:
        bonus, noise = (self.A_6, self.s_6) if trial.horizon > 1 else (self.A_1, self.s_1)
        gain = (trial.mean_1 - trial.mean_0) / UNIT_OF_POINTS
        information = np.sign(trial.count_0 - trial.count_1)
        return (gain + bonus * information + self.B) / noise


class HorizonBlind(HorizonExplorer):
    """Explores as `HorizonExplorer` does, but equally in short and long games.

    P(machine 1) = logistic((dR + A dI + B) / s). Directed and random exploration, which are
    differences between long and short games, are 0.
    """

    summary = "explores for information and at random, however many plays are left"
    nested_in = "horizon_explorer"
    source = "Wilson, Geana, White, Ludvig and Cohen 2014, without the effect of the horizon"
    contains: ClassVar = {"random_responder": {"A": 0.0, "B": 0.0, "s": float("inf")}}

    A = real("information bonus, in tens of points", mean=0.25, sd=0.7, source=WILSON)
    B = HorizonExplorer.B
    s = positive("decision noise, in tens of points", mean=-0.35, sd=0.5, source=WILSON)
    A_1 = A_6 = property(lambda self: self.A)
    s_1 = s_6 = property(lambda self: self.s)
