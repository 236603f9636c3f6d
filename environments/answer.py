"""What became of an answer in words: the response it holds, or the reason it holds none."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum


class Outcome(str, Enum):
    """What became of an answer; only `ok` and `repaired` carry a response."""

    OK = "ok"
    REPAIRED = "repaired"
    MALFORMED = "malformed"
    REFUSED = "refused"
    EMPTY = "empty"
    TRUNCATED = "truncated"
    ERROR = "error"


@dataclass(frozen=True)
class Answer:
    """A parsed answer.

    Parameters
    ----------
    outcome : what became of it
    action : the chosen action, or None
    response : the stated number, or None
    text : the answer as it came
    note : which repair was made, or why nothing could be read
    """

    outcome: Outcome
    action: int | None = None
    response: float | None = None
    text: str = ""
    note: str = ""
