"""What a ledger knows of batches: which were to be submitted, which were, and what is in them."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from knownminds.environments import Message, Prompt
from knownminds.llm_adapters.adapter import Sampling
from knownminds.llm_adapters.batches.contract import Asked

from .ledger import SENT, Call, Ledger, Request, Spent, Statement

_DIGITS = 16  # of the name of a batch


@dataclass(frozen=True)
class Question:
    """A question as it goes into a batch.

    Parameters
    ----------
    place : session, turn and slot
    call : the question in the ledger; None if it was not asked before
    request : what is sent
    most : what it can use, which is reserved
    """

    place: tuple[int, int, int]
    call: Call | None
    request: Request
    most: Spent


@dataclass
class Batch:
    """A batch of requests.

    Parameters
    ----------
    id : number in the ledger
    name : ours, by which it is found again at the provider
    provider_id : the provider's; empty as long as it is not known
    began, tried : seconds since 1970 when it was first and last about to be submitted
    requests : how many it has
    done : how many of them have come to an end, as far as the provider says
    """

    id: int
    name: str
    provider_id: str
    began: float
    tried: float
    requests: int
    done: int = 0


@dataclass(frozen=True)
class Sent:
    """A request of a batch that has no answer as yet: its call, attempt, and what is reserved."""

    call: Call
    attempt: int
    session: int
    reserved: Spent


class BatchBook:
    """The batches of a ledger.

    That a batch is about to be submitted is on disk before it is, with a name by which the
    provider's batch is found again; the provider's id is on disk before anything is done with it.
    """

    def __init__(self, ledger: Ledger):
        self.ledger = ledger
        ledger.make_room_for_batches()
        self._last = ledger.rows("SELECT COALESCE(MAX(id), 0) FROM batch")[0][0]

    @staticmethod
    def left_open(ledger: Ledger) -> bool:
        """Whether an earlier start has left batches whose results were not read."""
        if not ledger.holds_batches:
            return False
        found = ledger.rows("SELECT 1 FROM batch WHERE state IN ('intended', 'submitted') LIMIT 1")
        return bool(found)

    def awaited(self) -> list[Batch]:
        """Return the batches of earlier starts whose results were not read."""
        rows = self.ledger.rows(
            "SELECT id, name, COALESCE(provider_id, ''), began, tried, "
            "(SELECT COUNT(*) FROM batched WHERE batch = batch.id) "
            "FROM batch WHERE state IN ('intended', 'submitted') ORDER BY id"
        )
        return [Batch(*row) for row in rows]

    def known(self) -> set[str]:
        """Return the provider's ids of all batches."""
        found = self.ledger.rows("SELECT provider_id FROM batch WHERE provider_id IS NOT NULL")
        return {id for (id,) in found}

    def requests(self, batch: Batch) -> list[Asked]:
        """Return what a batch asks, from what was written down."""
        rows = self.ledger.rows(
            "SELECT b.attempt, r.body FROM batched b JOIN attempt a ON a.id = b.attempt "
            "JOIN call c ON c.id = a.call JOIN request r ON r.hash = c.request "
            "WHERE b.batch = ? ORDER BY b.attempt",
            batch.id,
        )
        images = dict(self.ledger.rows("SELECT hash, png FROM image"))
        return [_asked(f"{batch.name}-{attempt}", body, images) for attempt, body in rows]

    def sent(self, batch: Batch) -> dict[str, Sent]:
        """Return the requests of a batch that have no answer as yet, by their names in it."""
        rows = self.ledger.rows(
            "SELECT a.id, a.reserved_tokens, COALESCE(a.reserved, 0), c.session, c.id, c.request, "
            "a.number FROM batched b JOIN attempt a ON a.id = b.attempt "
            "JOIN call c ON c.id = a.call WHERE b.batch = ? AND a.state = 'inflight'",
            batch.id,
        )
        return {
            f"{batch.name}-{attempt}": Sent(
                Call(call, request, attempts=number), attempt, session, Spent(1, tokens, money)
            )
            for attempt, tokens, money, session, call, request, number in rows
        }

    async def intend(self, questions: Sequence[Question]) -> tuple[Batch, list[Call]]:
        """Write down that these questions are about to be submitted together.

        Returns the batch and the questions' calls, once both are on disk.
        """
        self._last += 1
        now = time.time()
        name = f"km-{uuid.uuid4().hex[:_DIGITS]}"
        batch = Batch(self._last, name, "", now, now, len(questions))
        statements: list[Statement] = [
            (
                "INSERT INTO batch (id, name, state, began, tried) VALUES (?, ?, 'intended', ?, ?)",
                (batch.id, name, now, now),
            )
        ]
        calls = []
        for one in questions:
            call, attempt, opening = self.ledger.opening(one.place, one.call, one.request, one.most)
            calls.append(call)
            statements += opening
            statements.append(("INSERT INTO batched VALUES (?, ?)", (attempt, batch.id)))
        await self.ledger.write(*statements, sign=SENT * len(questions))
        return batch, calls

    async def trying(self, batch: Batch) -> None:
        """Write down that a batch is about to be submitted once more."""
        batch.tried = time.time()
        await self.ledger.write(
            ("UPDATE batch SET tried = ? WHERE id = ?", (batch.tried, batch.id))
        )

    async def submitted(self, batch: Batch, provider_id: str) -> None:
        """Write down the provider's id of a batch."""
        await self.ledger.write(
            (
                "UPDATE batch SET state = 'submitted', provider_id = ? WHERE id = ?",
                (provider_id, batch.id),
            )
        )
        batch.provider_id = provider_id

    async def read(self, batch: Batch, word: str) -> None:
        """Write down that all results of a batch are in the ledger."""
        await self.ledger.write(
            (
                "UPDATE batch SET state = 'read', ended = ?, note = ? WHERE id = ?",
                (time.time(), word, batch.id),
            )
        )

    async def void(self, batch: Batch, why: str) -> None:
        """Write down that a batch was not taken; its questions are asked anew."""
        now = time.time()
        cost = None if self.ledger.price is None else 0
        await self.ledger.write(
            (
                "UPDATE attempt SET state = 'error_unpaid', ended = ?, status = 'Batch', "
                "message = ?, tokens = 0, cost = ? WHERE state = 'inflight' AND id IN "
                "(SELECT attempt FROM batched WHERE batch = ?)",
                (now, why, cost, batch.id),
            ),
            (
                "UPDATE batch SET state = 'void', ended = ?, note = ? WHERE id = ?",
                (now, why, batch.id),
            ),
        )


def _asked(name: str, body: str, images: Mapping[str, bytes]) -> Asked:
    """Make a request again of what was written down of it."""
    told = json.loads(body)
    messages = tuple(
        Message(role, text, tuple(images[sha] for sha in shown))
        for role, text, *shown in told["messages"]
    )
    return Asked(name, Prompt(messages), Sampling(**told["settings"]))
