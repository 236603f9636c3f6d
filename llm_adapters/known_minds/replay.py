"""A recorded participant: an adapter that answers from a ledger, and calls nobody."""

from __future__ import annotations

import os

from knownminds.environments import Prompt
from knownminds.llm_adapters.adapter import Failed, InProcess, Reply, Sampling, given, refused
from knownminds.llm_adapters.runs.ledger import Ledger, asked_of, request_hash
from knownminds.llm_adapters.runs.participant import settings_of


class Replay(InProcess):
    """The answers of a run, given again to the same questions.

    The sampling seed is the number of the session, as for every run; the settings are those that
    the answers were drawn with. A question that stood several times in a session gets its
    answers in their order, and then from the first again.

    Parameters
    ----------
    folder
        Where the ledger is.

    Raises
    ------
    ValueError
        If the folder holds no ledger, or one of another format.
    """

    provider = "replay"
    heeds = frozenset(vars(Sampling())) - {"system"} | {"images"}

    def __init__(self, folder: str | os.PathLike[str]):
        self._ledger = Ledger.read(folder)
        self._kept = self._ledger.configuration
        self.model: str = self._kept["model"]
        self.settings = Sampling(**self._kept["sampling"])
        self._sessions: dict[int, dict[str, list[Reply | None]]] = {}
        self._given: dict[tuple[int, str], int] = {}

    async def complete(self, prompt: Prompt, *, settings: Sampling) -> Reply:
        """Answer as recorded; `Failed` if the session has not this prompt, or no answer to it."""
        if settings.seed is None:
            raise refused(
                "A recorded participant knows its session by the sampling seed; got none. Send "
                "the number of the session as the seed."
            )
        for name, value in given(settings).items():
            kept = getattr(self.settings, name)
            if name != "seed" and value != kept:
                raise refused(
                    f"A recorded participant has answered with {name}={kept!r}; got {value!r}. "
                    "Leave it out."
                )
        session = settings.seed
        name = request_hash(asked_of(self._kept, settings_of(self._kept, session)), prompt.hash)
        replies = self._of(session).get(name, [])
        if not replies:
            message = "This prompt was not asked in the recorded session."
            raise Failed(message, "skip", "prompt", charged=False)
        turn = self._given.get((session, name), 0)
        self._given[session, name] = turn + 1
        reply = replies[turn % len(replies)]
        if reply is None:
            message = "This prompt had no answer in the recorded session."
            raise Failed(message, "skip", "prompt", charged=False)
        return reply

    async def close(self) -> None:
        """Close the ledger."""
        self._ledger.close()

    def _of(self, session: int) -> dict[str, list[Reply | None]]:
        """Return what came of the questions of a session, by the hash of the request."""
        if session not in self._sessions:
            replies: dict[str, list[Reply | None]] = {}
            for attempts in self._ledger.questions(session).values():
                ended = {(a.slot, a.request): a for a in attempts if a.reply or a.final}
                for (_, request), attempt in ended.items():
                    replies.setdefault(request, []).append(attempt.reply)
            self._sessions[session] = replies
        return self._sessions[session]
