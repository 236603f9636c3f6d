"""What experiments share whose two machines keep their letters through a session."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from knownminds.environments.environment import Observation, Turn
from knownminds.environments.words.prompt import Message
from knownminds.environments.words.told_history import LETTERS, Found, Retelling, told_name


class TwoMachines(Retelling):
    """Two machines with a letter each; the last numbers of a session's row deal them out."""

    def labels(self, uniforms: NDArray[np.float64]) -> dict[str, Any]:
        return {"machines": LETTERS[np.argsort(uniforms[-len(LETTERS) :])[:2]].tolist()}

    def names_told(self, messages: Sequence[Message]) -> dict[str, Any]:
        """Return labels by which `read` understands a prompt of a session that is not known.

        Machine 0 is the one whose letter comes first in the alphabet.

        Raises
        ------
        ValueError
            If the messages are not a prompt of this environment with these settings.
        """
        found = self._in_question(messages)
        return {"machines": sorted({found["first"], found["second"]})}

    def _words(self, observation: Observation) -> dict[str, object]:
        words: dict[str, object] = {"play": int(observation["trial"]) + 1}
        if "first" in observation:
            labels, first = self._options(observation), int(observation["first"])
            words |= {"first": labels[first], "second": labels[1 - first]}
        return words

    def _seen(self, kind: str, found: Found, turns: Sequence[Turn]) -> Observation:
        seen: dict[str, int | float] = {"trial": len(turns)}
        if "first" in found:
            seen["first"] = told_name(found["first"], self._options(seen))
        return seen

    def _options(self, observation: Observation) -> list[str]:
        letters: list[str] = self.design.labels["machines"]
        return letters
