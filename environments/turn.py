"""What passes between an experiment and its player: observations, choices and past trials."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

Observation = Mapping[str, int | float]
# A player gives an action, a number, both, or nothing that could be read.
Choice = int | float | tuple[int, float] | None
# One reply holds a choice, or the numbers of all trials that the reply answers.
Said = Choice | tuple[float, ...]
Given = Literal["action", "response", "both", "either"]


class Turn(NamedTuple):
    """One past trial as its player knows it.

    Action, response and reward are None if nothing was given; the reward is also None where nothing
    is paid. `brought` has the feedback fields by name, if an answer was given.
    """

    observation: Observation
    action: int | None
    reward: float | None
    text: str = ""
    response: float | None = None
    brought: Mapping[str, float] = MappingProxyType({})

    def __hash__(self) -> int:
        given = self.action, self.response, self.reward
        return hash((*self.observation.values(), *given, *self.brought.values()))

    @property
    def known(self) -> Observation:
        """The observation and what the answer brought."""
        return {**self.observation, **self.brought} if self.brought else self.observation


class Turns(list[Turn]):
    """The turns of a session so far, and the words of those that were told.

    Attributes
    ----------
    told : The words of turns, by who told them.
    """

    def __init__(self) -> None:
        super().__init__()
        self.told: dict[Any, Any] = {}
