"""Requests of many sessions, gathered and answered in batches: another way to send."""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from knownminds.llm_adapters.adapter import Adapter, Failed, Sampling
from knownminds.llm_adapters.batches import batches_of

from .admission import Gate, check_least
from .ledger import OPEN, Attempt, Batch, Ledger
from .prices import Spent

T = TypeVar("T")

NOT_SENT = "not sent"  # the batch of an attempt that waits for one
_GATHERING = 0.01  # seconds in which requests of other sessions may join a batch
_DIGITS = 16  # of the name of a batch
_AROUND = 256  # most bytes around a request in a batch


@dataclass(frozen=True)
class Batching:
    """How questions are sent in batches.

    Parameters
    ----------
    turns : whether sessions whose trials tell of earlier ones use batches too: one for each trial
    pause : seconds before it is looked for the first time whether a batch is over; grows by half
    longest_pause : seconds that this growth ends at
    search : seconds for which a batch that may have been submitted is looked for at the provider
        before it is submitted again
    requests : most requests of a batch, below what the provider takes; None for that
    failures : how often in a row the provider may fail before the run stops
    """

    turns: bool = False
    pause: float = 5.0
    longest_pause: float = 60.0
    search: float = 60.0
    requests: int | None = None
    failures: int = 20

    def __post_init__(self) -> None:
        """Check the ranges."""
        check_least(self, 0, "pause", "longest_pause", "search")
        check_least(self, 1, "requests", "failures")


class _Waiting(NamedTuple):
    """A request that is to go into a batch, its body, and what is done when the round is over."""

    attempt: Attempt
    body: dict[str, Any]
    over: asyncio.Future[None]


class Rounds:
    """Gathers requests until every session waits for an answer, and sends them in batches.

    The name of a batch is in the ledger before it is submitted, so that it can be looked up.

    Parameters
    ----------
    adapter, ledger, gate
        Of the run.
    how
        See `Batching`.
    settle
        Given a request, what came of it, and its settings, writes that down and reads it.
    fail
        Given what makes the run one in vain.
    moved
        Called when something has moved.
    """

    def __init__(
        self,
        adapter: Adapter,
        ledger: Ledger,
        gate: Gate,
        how: Batching,
        settle: Callable[[Attempt, bytes | Failed, Sampling], None],
        fail: Callable[[Failed], None],
        moved: Callable[[], None],
    ):
        self.adapter, self.ledger, self.gate, self.how = adapter, ledger, gate, how
        self.settle, self.fail, self.moved = settle, fail, moved
        self.batches = batches_of(adapter)
        self.sessions = self.busy = 0  # sessions that are played, and requests that do not wait
        self.settled = 0  # requests whose end is in the ledger
        self.open = [batch for batch in ledger.batches if batch.state in OPEN]
        self.sent = sum(batch.requests for batch in self.open)
        self._requests: dict[str, dict[str, Attempt]] = {}  # by batch, then by name in it
        for attempt in ledger.attempts() if self.open else ():
            self._requests.setdefault(attempt.batch, {})[_name(attempt)] = attempt
        self._earlier = {batch.name for batch in self.open}
        self._waiting: list[_Waiting] = []
        self._ready = asyncio.Event()
        self._closed = False
        self._failures = 0

    @property
    def done(self) -> int:
        """How many requests have come to an end, as far as it is known."""
        return self.settled + sum(batch.done for batch in self.open)

    async def ask(self, attempt: Attempt, body: dict[str, Any]) -> tuple[Attempt, str]:
        """Wait until a request has come to its end; return it, and why it has not, if so."""
        session, most = attempt.key[0], attempt.used(self.ledger.price)
        self.count(-1)
        try:
            if reason := await self.gate.enter(session, most):
                return attempt, reason
            over = asyncio.get_running_loop().create_future()
            try:
                if not self._closed:
                    self._waiting.append(_Waiting(attempt, body, over))
                    self.count(0)
                    await over
            finally:
                sent = attempt.batch != NOT_SENT
                used = attempt.used(self.ledger.price) if sent else Spent()
                self.gate.leave(session, most, used)
        finally:
            self.count(1)
        return attempt, self.gate.stopped

    def count(self, more: int) -> None:
        """Count requests that go on, or no longer; if none does, a round begins."""
        self.busy += more
        if not self.busy:
            self._ready.set()

    def counted(self, work: Coroutine[Any, Any, None]) -> Coroutine[Any, Any, None]:
        """Return what plays sessions, counted as long as it does."""
        self.sessions += 1
        self.busy += 1

        async def play() -> None:
            try:
                await work
            finally:
                self.sessions -= 1
                self.count(-1)

        return play()

    async def work(self) -> None:
        """Answer round after round, until no session is played any more."""
        try:
            while self.sessions:
                await self._ready.wait()
                self._ready.clear()
                await asyncio.sleep(_GATHERING)
                if not self.busy and self._waiting:
                    waiting, self._waiting = self._waiting, []
                    await self._round(sorted(waiting, key=lambda one: one.attempt.key))
        finally:
            self._closed = True
            _end(self._waiting)

    async def collect(self) -> None:
        """Wait for all batches that are open, and read them as they come to their end."""
        for batch in list(self.open):
            if not batch.provider_id:
                await self._submit(batch, maybe=True)
        pause = self.how.pause
        while self.open and not self.gate.stopped:
            self.moved()
            await self.gate.pause(pause)
            pause = min(1.5 * pause, self.how.longest_pause)
            for batch in list(self.open):
                if self.gate.stopped:
                    return
                try:
                    await self._look(batch)
                    self._failures = 0
                except Failed as error:
                    await self._wait_after(error)

    # A round ------------------------------------------------------------------------------------

    async def _round(self, waiting: Sequence[_Waiting]) -> None:
        """Have requests answered, in as many batches as the provider's limits need."""
        try:
            for part in self._parts(waiting):
                if not self.gate.stopped:
                    await self._send(part)
            await self.collect()
        finally:
            _end(waiting)

    def _parts(self, waiting: Sequence[_Waiting]) -> Iterator[list[_Waiting]]:
        """Divide requests among batches that the provider takes."""
        batches = self.batches
        most = min(batches.most_requests, self.how.requests or batches.most_requests)
        part: list[_Waiting] = []
        room = batches.most_bytes
        for one in waiting:
            size = len(json.dumps(one.body)) + _AROUND
            if part and (len(part) == most or size > room):
                yield part
                part, room = [], batches.most_bytes
            part.append(one)
            room -= size
        if part:
            yield part

    async def _send(self, part: Sequence[_Waiting]) -> None:
        """Submit a batch: its name is in the ledger before."""
        batch = Batch(f"km-{uuid.uuid4().hex[:_DIGITS]}", len(part))
        self.ledger.sent([one.attempt for one in part], batch)
        self._requests[batch.name] = {_name(one.attempt): one.attempt for one in part}
        self.open.append(batch)
        self.sent += batch.requests
        await self._submit(batch, maybe=False)
        self.moved()

    async def _submit(self, batch: Batch, maybe: bool) -> None:
        """Submit a batch once; `maybe` says that it may have been submitted already."""
        requests = {
            name: self.adapter.request(*self.ledger.request(attempt.request))
            for name, attempt in self._requests[batch.name].items()
        }
        while not self.gate.stopped:
            try:
                if maybe and await self._found(batch):
                    return
            except Failed as error:
                await self._wait_after(error)
                continue
            if self.gate.stopped:
                return
            batch.tried = time.time()
            self.ledger.note_batch(batch)
            try:
                batch.provider_id = await _whole(self.batches.submit(batch.name, requests))
            except Failed as error:
                if error.then == "retry":
                    maybe = error.charged is not False
                    await self._wait_after(error)
                    continue
                if error.charged is False:
                    self._void(batch, str(error))
                self._give_up(error)
            else:
                self._failures = 0
                self._note(batch, "submitted")
            return

    async def _found(self, batch: Batch) -> bool:
        """Look for a batch that may have been submitted, until it would surely be there."""
        between = (batch.began, batch.tried)
        while not self.gate.stopped:
            known = {other.provider_id for other in self.ledger.batches} - {""}
            search = self.batches.find(batch.name, batch.requests, between, known)
            try:
                provider_id = await _whole(search)
            except Failed as error:
                if error.kind != "undecided":
                    raise
                await self.gate.pause(self.how.longest_pause)
                continue
            if provider_id is not None:
                batch.provider_id = provider_id
                self._note(batch, "submitted")
                return True
            if time.time() > batch.tried + self.how.search:
                return False
            await self.gate.pause(self.how.pause)
        return False

    async def _look(self, batch: Batch) -> None:
        """Look where a batch stands, and read it if it is over."""
        standing = await _whole(self.batches.look(batch.provider_id))
        batch.done = standing.done
        if standing.trouble:
            self._void(batch, standing.trouble)
            self.gate.stop(f"a batch was not taken: {standing.trouble}")
        elif standing.over:
            self._read(batch, await _whole(self.batches.results(batch.provider_id)), standing.word)

    def _read(self, batch: Batch, results: bytes, word: str) -> None:
        """Write all results of a batch down, and what had none."""
        waiting = self._unsettled(batch)
        batch.done = 0
        self.settled += batch.requests - len(waiting)  # read before a kill
        for line in results.splitlines():
            try:
                name, came = self.batches.read(json.loads(line))
            except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
                continue  # what cannot be read says nothing
            if name in waiting:
                self._settle(waiting.pop(name), came)
        message = f"The batch has ended ({word}), and says nothing of this request."
        for attempt in waiting.values():
            self._settle(attempt, Failed(message, "skip", "batch"))
        self._note(batch, "read", word)
        self.open.remove(batch)
        self.moved()

    def _settle(self, attempt: Attempt, came: bytes | Failed) -> None:
        """Write down what came of a request, and count what it has used."""
        most = attempt.used(self.ledger.price)
        self.settle(attempt, came, self.ledger.request(attempt.request)[1])
        self.settled += 1
        self._count(attempt, most, attempt.used(self.ledger.price))

    def _void(self, batch: Batch, why: str) -> None:
        """Take a batch for one that never was."""
        for attempt in self._unsettled(batch).values():
            most = attempt.used(self.ledger.price)
            attempt.state = "error_unpaid"
            self._count(attempt, most, Spent(1))
        self._note(batch, "void", why)
        self.open.remove(batch)
        self.sent -= batch.requests

    def _count(self, attempt: Attempt, most: Spent, used: Spent) -> None:
        """Count what a request of an earlier start has used; `ask` counts those of this one."""
        if attempt.batch in self._earlier:
            self.gate.settle(attempt.key[0], most, used)

    def _note(self, batch: Batch, state: str, note: str = "") -> None:
        batch.state, batch.note = state, note
        self.ledger.note_batch(batch)

    def _unsettled(self, batch: Batch) -> dict[str, Attempt]:
        """Return the requests of a batch that have no end as yet, by their names in it."""
        every = self._requests[batch.name].items()
        return {name: attempt for name, attempt in every if attempt.state == "inflight"}

    async def _wait_after(self, error: Failed) -> None:
        """Wait after a failure that may pass; stop the run after one that will not, or too many."""
        self._failures += 1
        if error.then != "retry":
            self._give_up(error)
        elif self._failures >= self.how.failures:
            self.gate.stop(str(error))
        else:
            await self.gate.pause(max(error.wait or 0.0, self.how.pause))

    def _give_up(self, error: Failed) -> None:
        if error.then == "stop":
            self.fail(error)
        self.gate.stop(str(error))


async def _whole(said: Awaitable[T]) -> T:
    """Wait for what a provider says of a batch; what lacks something it should have is `Failed`."""
    try:
        return await said
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        message = f"What is said of a batch cannot be read: {type(error).__name__}: {error}"[:200]
        raise Failed(message, "retry", "batch") from None


def _end(waiting: Sequence[_Waiting]) -> None:
    """Say that a round is over."""
    for one in waiting:
        if not one.over.done():
            one.over.set_result(None)


def _name(attempt: Attempt) -> str:
    """Return the name of a request in its batch."""
    return f"{attempt.batch}-{'-'.join(map(str, attempt.key))}"
