"""The base of experiments with two machines that keep their letters through a session."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from knownminds.environments.turn import Observation
from knownminds.environments.words.history import LETTERS, Retelling
from knownminds.environments.words.prompt import Message
from knownminds.environments.words.slots import Count, Option, Slot


class TwoMachines(Retelling):
    """Two machines with a letter each; the last uniform numbers of a session choose the letters."""

    slots: ClassVar = {
        "play": Count("trial"),
        "first": Option("first"),
        "second": Option("first", 1),
        "label": Option("action"),
        "reward": Slot("reward"),
    }

    def labels(self, uniforms: NDArray[np.float64]) -> dict[str, Any]:
        return {"machines": LETTERS[np.argsort(uniforms[-len(LETTERS) :])[:2]].tolist()}

    def labels_in(self, messages: Sequence[Message]) -> dict[str, Any]:
        """Return the letters in order: machine 0 is the one whose letter comes first."""
        filled = self._in_question(messages)
        return {"machines": sorted({filled["first"], filled["second"]})}

    def options(self, labels: Any, observation: Observation) -> list[str]:
        letters: list[str] = labels["machines"]
        return letters
