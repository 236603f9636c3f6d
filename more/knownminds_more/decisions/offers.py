"""The base of experiments that ask which of two stated offers is taken, each question alone."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from knownminds.environments.turn import Observation

from .stated import LABELS, ListedQuestions, Places


class Offers(ListedQuestions):
    """Questions with two offers, a (action 0) and b (action 1), in mixed order; nothing is paid.

    For each question it is drawn which offer of the problem is a, and which is named first. A
    subclass lists the problems and puts an offer into words.

    Attributes
    ----------
    offered : The numbers that describe an offer; their columns are a_NAME and b_NAME.
    """

    offered: ClassVar[tuple[str, ...]]
    n_numbers = 3  # the second number decides which offer is a

    @abstractmethod
    def _sentence(self, offer: Mapping[str, float]) -> str:
        """Return an offer in words."""

    def tables(self, uniforms: NDArray[np.float64]) -> dict[str, NDArray[Any]]:
        """Return the problems in mixed order, with sides and order of mention at random."""
        tables = super().tables(uniforms)
        turned = uniforms.reshape(len(uniforms), self.n_numbers, -1)[:, 1] < 0.5
        other = self._exchanged(tables)
        return tables | {name: np.where(turned, other[name], tables[name]) for name in other}

    def _exchanged(self, columns: Mapping[str, Any]) -> dict[str, Any]:
        """Return the columns of both offers, each under the name of the other."""
        sides = [(name, x, y) for name in self.offered for x, y in ("ab", "ba")]
        return {f"{x}_{name}": columns[f"{y}_{name}"] for name, x, y in sides}

    def _places(self, observation: Observation) -> Places:
        sentences = [self._sentence(self._offer(observation, side)) for side in "ab"]
        one, two = (0, 1) if observation["first"] == 0 else (1, 0)
        return {
            "one": sentences[one],
            "two": sentences[two],
            "label_one": LABELS[one],
            "label_two": LABELS[two],
        }

    def _labels(self, observation: Observation) -> Sequence[str]:
        return LABELS

    def _every(self) -> Iterator[dict[str, Any]]:
        for seen in super()._every():
            yield from (seen, {**seen, **self._exchanged(seen)})

    @staticmethod
    def _offer(seen: Mapping[str, Any], side: str) -> dict[str, float]:
        return {
            name[2:]: float(value) for name, value in seen.items() if name.startswith(f"{side}_")
        }
