"""What a person is shown for one answer, where a language model is sent a prompt."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Screen:
    """What a person is shown for one answer.

    Parameters
    ----------
    introduction : what the experiment is about; nearly the same throughout a session
    question : the question
    options : the names of the actions, in their order; empty if only a number is asked for
    images : PNG bytes, shown before the question
    asks : "action", "response" or "both"
    numbers : what each number stands for, if one answer holds several numbers that sum to 1
    """

    introduction: str
    question: str
    options: tuple[str, ...] = ()
    images: tuple[bytes, ...] = ()
    asks: str = "action"
    numbers: tuple[str, ...] = ()

    @property
    def order(self) -> tuple[int, ...]:
        """The actions in the order in which the question names them, or else in their own order."""
        places = [_place(option, self.question) for option in self.options]
        actions = range(len(places))
        if None in places or len(set(places)) < len(places):
            return tuple(actions)
        return tuple(sorted(actions, key=lambda action: places[action] or 0))


def _place(name: str, text: str) -> int | None:
    match = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text)
    return match.start() if match else None
