"""A recorded participant: an adapter that answers from a ledger, and calls nobody."""

from __future__ import annotations

import os
from dataclasses import replace
from itertools import cycle

from knownminds.calling import Sampling
from knownminds.environments import Prompt
from knownminds.llm_adapters.adapter import Failed, InProcess, Reply, refused
from knownminds.llm_adapters.runs.ledger import Ledger, asked_of, request_hash


class Replay(InProcess):
    """The answers of a run, given again to the same questions under the same settings.

    The sampling seed is the number of the session, as for every run. A question that stood several
    times in a session gets its answers in their order, and then from the first again.

    Parameters
    ----------
    folder : Of the run.

    Raises
    ------
    ValueError : If the folder holds no ledger, or one of another format.
    """

    provider = "replay"
    heeds = frozenset(vars(Sampling())) - {"system"} | {"images"}

    def __init__(self, folder: str | os.PathLike[str]):
        replies: dict[tuple[int, str], dict[tuple[int, int], Reply | None]] = {}
        with Ledger.read(folder) as ledger:
            self._kept = ledger.configuration
            for attempt in ledger.attempts():
                if attempt.reply or attempt.final:
                    (session, turn, _), question = attempt.key, attempt.request
                    replies.setdefault((session, question), {})[turn, attempt.slot] = attempt.reply
        self._replies = {question: cycle(every.values()) for question, every in replies.items()}
        self.model = str(self._kept.get("participant") or self._kept["model"])

    async def complete(self, prompt: Prompt, *, settings: Sampling) -> Reply:
        """Answer as recorded; `Failed` if the session has not this question, or no answer to it."""
        session = settings.seed
        if session is None:
            raise refused(
                "A recorded participant knows its session by the sampling seed; got none. Send "
                "the number of the session as the seed."
            )
        settings = settings if self._kept["session_seed"] else replace(settings, seed=None)
        question = request_hash(asked_of(self._kept, settings), prompt.hash)
        replies = self._replies.get((session, question))
        reply = next(replies) if replies else None
        if reply is None:
            why = "had no answer to this question" if replies else "was not asked this"
            message = f"Session {session} of the recorded run {why}, with these settings."
            raise Failed(message, "skip", "prompt", charged=False)
        return reply
