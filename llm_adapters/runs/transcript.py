"""What was said in the sessions of a run, read from its ledger: each question and its answers."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from knownminds.environments import Message, Prompt

from .ledger import Ledger


@dataclass(frozen=True)
class Exchange:
    """A question of a session and what came back.

    Parameters
    ----------
    session, turn
        Numbers of the session and of the question in it, from 0 on.
    prompt
        All that was shown.
    answers
        The texts that came, in order; several where it was asked again, none where none came.
    outcome, why
        What became of the last of them; why there is none.
    """

    session: int
    turn: int
    prompt: Prompt
    answers: tuple[str, ...]
    outcome: str
    why: str

    def new_since(self, before: Prompt | None) -> Sequence[Message]:
        """Return the messages that an earlier question of the session did not show.

        Where the answers to it are part of the conversation, these are new, too.
        """
        shown = self.prompt.messages
        same = 0
        if before is not None:
            for old, new in zip(before.messages, shown, strict=False):
                if old != new:
                    break
                same += 1
        return shown[same:] or shown[-1:]


def transcript(folder: str | os.PathLike[str], session: int) -> Iterator[Exchange]:
    """Go through the questions of a session of a run, in order; nothing is asked.

    Raises
    ------
    ValueError
        If the folder holds no ledger, or a damaged one.
    """
    with Ledger.read(folder) as ledger:
        yield from exchanges(ledger, session)


def exchanges(ledger: Ledger, session: int) -> Iterator[Exchange]:
    """Go through the questions of a session of an open ledger."""
    for turn, attempts in ledger.questions(session).items():
        last = attempts[-1]
        own = [attempt for attempt in attempts if attempt.request == last.request]
        said = tuple(attempt.reply.text for attempt in own if attempt.reply is not None)
        outcome = last.outcome if last.reply or last.final else ""
        why = last.note if last.final or last.reply else ""
        yield Exchange(session, turn, ledger.prompt(last.request), said, outcome, why)
