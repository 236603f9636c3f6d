"""What a person is shown for one answer, where a language model is sent a prompt."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Screen:
    """What a person is shown for one answer.

    Parameters
    ----------
    introduction : what the experiment is about; the same in all of a session, or nearly so
    question : what is asked
    options : how the actions are called, in their order; empty where a number alone is asked for
    images : PNG bytes, shown before the question
    asks : "action", "response" or "both"
    numbers : where one answer holds the numbers of several trials, which sum to 1, what each is of
    """

    introduction: str
    question: str
    options: tuple[str, ...] = ()
    images: tuple[bytes, ...] = ()
    asks: str = "action"
    numbers: tuple[str, ...] = ()

    @property
    def order(self) -> tuple[int, ...]:
        """The actions in the order in which the question names them; as they are, where not."""
        places = [_place(option, self.question) for option in self.options]
        actions = range(len(places))
        if None in places or len(set(places)) < len(places):
            return tuple(actions)
        return tuple(sorted(actions, key=lambda action: places[action] or 0))


def _place(name: str, text: str) -> int | None:
    match = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text)
    return match.start() if match else None
