"""A recorded participant: an adapter that answers from a ledger, and calls nobody."""

from __future__ import annotations

import os
from dataclasses import fields, replace

from knownminds.environments import Prompt
from knownminds.llm_adapters.adapter import Capabilities, NotCapable, Rejected, Reply, Sampling
from knownminds.llm_adapters.runs.ledger import Call, Ledger, asked_of, request_hash


class Replay:
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
        If the folder holds no ledger, or one of a newer format.
    """

    provider = "replay"
    base_url = ""
    capabilities = Capabilities(
        reasoning=True,
        images=True,
        answer_log_probabilities=True,
        next_token_log_probabilities=False,
    )

    def __init__(self, folder: str | os.PathLike[str]):
        self._ledger = Ledger.read(folder)
        self._kept = self._ledger.configuration
        self.model: str = self._kept["model"]
        self.settings = Sampling(**self._kept["sampling"])
        self._sessions: dict[int, dict[str, list[Call]]] = {}
        self._given: dict[tuple[int, str], int] = {}

    async def complete(self, prompt: Prompt, *, settings: Sampling) -> Reply:
        """Answer as recorded; Rejected if this was not asked in the session, or not answered."""
        if settings.seed is None:
            raise NotCapable(
                "A recorded participant knows its session by the sampling seed; got none. Send "
                "the number of the session as the seed."
            )
        for name in (field.name for field in fields(settings) if field.name != "seed"):
            asked, kept = getattr(settings, name), getattr(self.settings, name)
            if asked is not None and asked != kept:
                raise NotCapable(
                    f"A recorded participant has answered with {name}={kept!r}; got {asked!r}. "
                    "Leave it out."
                )
        session = settings.seed
        seed = session if self._kept["session_seed"] else None
        name = request_hash(asked_of(self._kept, replace(self.settings, seed=seed)), prompt)
        calls = self._of(session).get(name, [])
        if not calls:
            raise Rejected("This prompt was not asked in the recorded session.")
        turn = self._given.get((session, name), 0)
        self._given[session, name] = turn + 1
        reply = calls[turn % len(calls)].reply
        if reply is None:
            raise Rejected("This prompt had no answer in the recorded session.")
        return reply

    async def close(self) -> None:
        """Close the ledger."""
        self._ledger.close()

    def _of(self, session: int) -> dict[str, list[Call]]:
        """Return the calls of a session that came to an end, by the hash of what was asked."""
        if session not in self._sessions:
            found: dict[str, list[Call]] = {}
            for call in self._ledger.calls_of(session).values():
                if call.state != "open":
                    found.setdefault(call.request, []).append(call)
            self._sessions[session] = found
        return self._sessions[session]
