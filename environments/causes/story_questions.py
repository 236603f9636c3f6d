"""Likelihood questions about stories of variables, or about variables whose names mean nothing."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from knownminds.environments.design import session_stream
from knownminds.environments.turn import Observation

from .likelihoods import LikelihoodQuestions, check_words_differ
from .random_names import LENGTH, random_name

Context = tuple[int, ...]  # query, what is told of each variable, the story, the round
Names = Sequence[Sequence[str]]  # names of the variables of each domain, if they mean nothing


class StoryQuestions(LikelihoodQuestions):
    """Asks every question about every story, once per round, in mixed order.

    `prepare` sets `_contexts` (the questions), `_constants` (the columns that are the same in all
    trials) and `_named` (how many domains, and how many variables of each, have names).
    """

    content: Any
    _contexts: list[Context]
    _constants: dict[str, Any]
    _named: tuple[int, int]

    @abstractmethod
    def _in_words(self, context: Context, names: Names) -> str:
        """Return a question in words, in a session with these names of variables."""

    def _load_words(self) -> None:
        super()._load_words()
        labels = self.draw(session_stream(0)).labels
        names = labels["names"] if labels else ()
        check_words_differ({c: self._in_words(c, names) for c in self._contexts}, self._columns)

    @property
    def _columns(self) -> tuple[str, ...]:
        """The columns that describe a question."""
        return tuple(name for name in self.fields.shown if name not in self._constants)

    @property
    def n_trials(self) -> int:
        return len(self._contexts)

    @property
    def n_draws(self) -> int:
        """One number per trial, to put them in order, and two per character of a name."""
        domains, variables = self._named if self.content != "meaningful" else (0, 0)
        return self.n_trials + 2 * LENGTH * domains * variables

    def tables(self, uniforms: NDArray[np.float64]) -> dict[str, NDArray[Any]]:
        """Return the questions in mixed order, round by round."""
        columns = np.array(self._contexts, dtype=np.int64).T
        order = np.argsort(uniforms[:, : self.n_trials] + columns[-1], axis=1)
        tables = {name: np.full(order.shape, value) for name, value in self._constants.items()}
        return tables | {n: c[order] for n, c in zip(self._columns, columns, strict=True)}

    def labels(self, uniforms: NDArray[np.float64]) -> Any:
        if self.content == "meaningful":
            return ()
        drawn = uniforms[self.n_trials :].reshape(*self._named, 2, LENGTH)
        return {"names": [[random_name(u, self.content) for u in domain] for domain in drawn]}

    def _text(self, labels: Any, observation: Observation) -> str:
        context = tuple(int(observation[name]) for name in self._columns)
        constants = {name: observation[name] for name in self._constants}
        if context not in self._contexts or constants != self._constants:
            raise ValueError(f"{dict(observation)} is no question of {self!r}.")
        return self._in_words(context, labels["names"] if labels else ())
