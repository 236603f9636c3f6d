"""What experiments share that ask which of two stated offers is taken, each question alone."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from knownminds.environments.environment import Observation
from knownminds.environments.fields import Whole, setting

from .stated import LABELS, Places, StatedQuestions


class Offers(StatedQuestions):
    """Questions with two offers, a (action 0) and b (action 1), in mixed order; nothing is paid.

    Which offer of a problem is a, and which is named first, is drawn for each question. A
    subclass lays out its problems and puts an offer into words.

    Attributes
    ----------
    offered
        What an offer has: columns are a_NAME and b_NAME.
    """

    offered: ClassVar[tuple[str, ...]]

    repeats: int = setting(1, Whole(1), "How often each problem is posed.", size=True)

    @abstractmethod
    def _problems(self) -> dict[str, NDArray[np.float64]]:
        """Return the problems as columns of both offers, [problems]."""

    @abstractmethod
    def _sentence(self, offer: Mapping[str, float]) -> str:
        """Put an offer into words."""

    def prepare(self) -> None:
        self._columns = self._problems()
        super().prepare()

    @property
    def n_trials(self) -> int:
        return self.repeats * len(next(iter(self._columns.values())))

    @property
    def n_draws(self) -> int:
        """Three numbers per question: its position, which offer is a, and which is named first."""
        return 3 * self.n_trials

    def tables(self, uniforms: NDArray[np.float64]) -> dict[str, NDArray[Any]]:
        """Return the problems in mixed order, sides and order of mention at random."""
        position, side, first = np.moveaxis(uniforms.reshape(len(uniforms), 3, -1), 1, 0)
        order = np.argsort(position, axis=1) % len(next(iter(self._columns.values())))
        turned = side < 0.5
        tables: dict[str, NDArray[Any]] = {}
        for name in self.offered:
            a, b = (self._columns[f"{side}_{name}"][order] for side in "ab")
            tables[f"a_{name}"] = np.where(turned, b, a)
            tables[f"b_{name}"] = np.where(turned, a, b)
        return {**tables, "first": (first < 0.5).astype(np.int64)}

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
        for k in range(len(next(iter(self._columns.values())))):
            seen = {name: float(column[k]) for name, column in self._columns.items()}
            one, two = (self._offer(seen, side) for side in "ab")
            for a, b in ((one, two), (two, one)):
                shown = {f"a_{name}": value for name, value in a.items()}
                shown |= {f"b_{name}": value for name, value in b.items()}
                yield from ({**shown, "first": first} for first in (0, 1))

    @staticmethod
    def _offer(seen: Mapping[str, Any], side: str) -> dict[str, float]:
        return {
            name[2:]: float(value) for name, value in seen.items() if name.startswith(f"{side}_")
        }
