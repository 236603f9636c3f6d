"""What every experiment provides: designs of sessions, records and words."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from .configured import OfClass
from .design import Design, session_stream
from .later import pandas as pd
from .record.recording import Recording
from .turn import Observation
from .words.prompt import Message
from .words.wording import Wording
from .world import Payoffs, World

MOST_NUMBERED = 10_000  # trials may number so many games, balloons and the like in a session


def world_of(kind: type[Environment]) -> type[World]:
    """Return the world in which actions pay what a table holds, or nothing without feedback."""
    return Payoffs if kind.feedback else World


class Environment(Recording, Wording, ABC):
    """An experiment for one participant, a deterministic function of (design, actions).

    It holds no state of a session; a `Session` goes through the experiment trial by trial. An
    observation is a mapping with "trial" (from 0) and the stimulus fields. What is recorded of
    trials is that of a `Recording`, what is said and shown that of a `Wording`.

    Settings are class attributes that `setting` makes; `prepare` then makes everything else.

    Attributes
    ----------
    sequence : Fields within whose values trials follow each other; () if a session is one sequence.
    ends_early : Whether actions can make later trials fall away.
    world : What happens between trials: the values of dependent fields, which trials fall away,
        what an action pays. By default an action pays what the table "payoffs" holds, or nothing
        without feedback.
    depletes : Whether the payoff of an action depends on earlier actions in a way that no field
        shows, as with cards that are taken from a deck.
    changed_by : The control that changes it, see `controls`; "" if none does.
    usual_model : The name of the model that is taken where none is named; "" for one that plays it.
    searched : What a search for a design tries for settings: a `Span`, some `Among`, what is
        `Searched` in parts, or None for all that the rule of the setting allows.
    published : The paper's values of settings of which others are shipped.
    """

    summary: ClassVar[str]
    source: ClassVar[str]
    sequence: ClassVar[tuple[str, ...]] = ()
    ends_early: bool = False
    depletes: bool = False
    world: type[World] = OfClass(world_of)  # type: ignore[assignment]
    changed_by: ClassVar[str] = ""
    usual_model: ClassVar[str] = ""
    searched: ClassVar[Mapping[str, Any]] = {}
    published: ClassVar[Mapping[str, Any]] = {}

    @classmethod
    def as_played(cls, frame: pd.DataFrame) -> Self:
        """Return the experiment with the settings that the trials show; all others are as shipped.

        By default only the size is set, see `long_enough`.

        Raises
        ------
        ValueError : If a column has a value that no setting allows.
        """
        return cls().long_enough(frame)

    def long_enough(self, frame: pd.DataFrame) -> Self:
        """Return the experiment with a larger size if a field of the trials is numbered higher."""
        for field in self.fields:
            sized = self.size in (field.setting, field.range) and field.name in frame
            if isinstance(field.range, str) and self.size and sized:
                count, size = getattr(self, field.range), self.settings[self.size]
                most = pd.to_numeric(frame[field.name], errors="coerce").max()
                if count <= most < MOST_NUMBERED:
                    larger = -(-size * (int(most) + 1) // count)
                    return type(self)(**{**self.settings, self.size: larger})
        return self

    @property
    def n_trials(self) -> int:
        """How many trials a session has at most; by default the number that is its size.

        Some may fall away: those that the design leaves out (a table "present" says which), and
        those that earlier actions make pointless. The others keep their numbers.

        Raises
        ------
        TypeError : If no setting is the size.
        """
        if self.size is None:
            raise TypeError(
                f"{type(self).__name__} does not say how many trials a session has. Write "
                "n_trials, or mark the setting that is this number with size=True."
            )
        return int(self._settings[self.size])

    @property
    @abstractmethod
    def n_draws(self) -> int:
        """How many uniform numbers make a session."""

    @abstractmethod
    def tables(self, uniforms: NDArray[np.float64]) -> Mapping[str, NDArray[Any]]:
        """Make the tables of N sessions from uniforms[N, n_draws], each [N, n_trials, ...].

        All randomness of a session comes from its row. Permutations are the row's argsort, normal
        numbers its quantiles (`scipy.special.ndtri`).
        """

    @cached_property
    def drawn(self) -> dict[str, tuple[int, ...]]:
        """The design's tables: the shape of an entry for one trial, () for a single number."""
        tables = self.tables(np.full((1, self.n_draws), 0.5))
        return {name: table.shape[2:] for name, table in tables.items()}

    def draw(self, rng: np.random.Generator) -> Design:
        """Draw all that is random about a session."""
        uniforms = rng.random(self.n_draws)
        tables = self.tables(uniforms[None])
        return Design({name: table[0] for name, table in tables.items()}, self.labels(uniforms))

    def truth(self, observation: Observation) -> NDArray[np.float64] | None:
        """Return the true probability of what each action says, [n_actions]; None if unknown."""
        return None

    def labels_in(self, messages: Sequence[Message]) -> Any:
        """Return the labels by which `read` understands a prompt from an unknown session.

        Raises
        ------
        NotImplementedError : If the names of this experiment cannot be read from its prompts.
        ValueError : If no session has the names that the prompt shows.
        """
        labels = self.draw(session_stream(0)).labels
        if labels:
            raise NotImplementedError(
                f"The names that a session of {self.name} uses cannot be read from its prompts."
            )
        return labels
