"""Requests of many sessions, gathered and answered in batches: another way to send."""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import Awaitable, Coroutine, Iterator, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from knownminds.calling import Sampling
from knownminds.environments.words.prompt import Prompt
from knownminds.llm_adapters.adapter import Adapter, Failed
from knownminds.llm_adapters.batches import batches_of
from knownminds.llm_adapters.batches.contract import BatchStatus, Results

from .admission import CAPPED, NOT_SENT, Admission, Batching, bound_passed
from .ledger import OPEN, Attempt, Ledger, ProviderBatch
from .prices import Spent

T = TypeVar("T")

_GATHERING = 0.01  # seconds in which requests of other sessions may join a batch
_DIGITS = 16  # of the name of a batch
_AROUND = 256  # most bytes around a request in a batch
_LONGEST = 2 * 86_400.0  # seconds that a batch may be in a state that is not known


class _Waiting(NamedTuple):
    """A request that is to go into a batch, its body, and what is done when the round is over."""

    attempt: Attempt
    body: dict[str, Any]
    over: asyncio.Future[None]


class Sender(Protocol):
    """What the queue needs of the run whose requests it sends."""

    adapter: Adapter | None
    ledger: Ledger
    gate: Admission

    def body_of(self, prompt: Prompt, settings: Sampling) -> dict[str, Any]:
        """Return what is sent."""

    def settle(
        self, attempt: Attempt, came: bytes | Failed, prompt: Prompt, settings: Sampling
    ) -> None:
        """Write down what came of a request."""

    def fail(self, error: Failed) -> None:
        """Stop the run, which is in vain."""

    def tell(self) -> None:
        """Show whoever watches where the run stands."""


class BatchQueue:
    """Gathers requests until every session waits for an answer, and sends them in batches.

    The name of a batch is in the ledger before it is submitted, so that it can be looked up.

    Parameters
    ----------
    runner : of the run
    how : how batches are waited for
    most : requests of a batch; None for what the provider takes
    retry_errors : whether the requests of a batch that is lost are asked again
    """

    def __init__(self, runner: Sender, how: Batching, most: int | None, retry_errors: bool):
        assert runner.adapter is not None
        self.runner, self.adapter, self.how = runner, runner.adapter, how
        self.most, self.retry_errors = most, retry_errors
        self.ledger, self.gate = runner.ledger, runner.gate
        self.batches = batches_of(runner.adapter)
        self.sessions = self.busy = 0  # sessions that are played, and requests that do not wait
        self.settled = 0  # requests whose end is in the ledger
        self.open = [batch for batch in self.ledger.batches if batch.state in OPEN]
        self.sent = sum(batch.requests for batch in self.open)
        self._requests: dict[str, dict[str, Attempt]] = {}  # by batch, then by name in it
        for attempt in self.ledger.attempts() if self.open else ():
            self._requests.setdefault(attempt.batch, {})[_name(attempt)] = attempt
        self._earlier = {batch.name for batch in self.open}
        self._waiting: list[_Waiting] = []
        self._ready = asyncio.Event()
        self._closed = False
        self._failures = 0
        self._missed: dict[str, float] = {}  # since when something of a batch is not there

    @property
    def done(self) -> int:
        """How many requests have come to an end, as far as it is known."""
        return self.settled + sum(batch.done for batch in self.open)

    async def ask(self, attempt: Attempt, body: dict[str, Any]) -> str:
        """Wait until a request has come to its end; return why it has not, if so."""
        session, most = attempt.key[0], attempt.used(self.ledger.price)
        self.count(-1)
        try:
            if reason := await self.gate.enter(session, most):
                return reason
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
        return self.gate.stopped

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
        """Bring all open batches to their end, and read them."""
        pause = self.how.pause
        while self.open and not self.gate.stopped:
            self.runner.tell()
            await self.gate.pause(pause)
            pause = min(1.5 * pause, self.how.longest_pause)
            for batch in list(self.open):
                await self._step(batch)

    # A round ------------------------------------------------------------------------------------

    async def _round(self, waiting: Sequence[_Waiting]) -> None:
        """Have requests answered, in as many batches as the provider's limits need."""
        try:
            for part in self._parts(waiting):
                self._foresee(part)
                if not self.gate.stopped:
                    await self._step(self._named(part))
                if self.most is not None:
                    await self.collect()
            await self.collect()
        finally:
            _end(waiting)

    def _foresee(self, part: Sequence[_Waiting]) -> None:
        """Stop if requests that were let in pass a cap by what batches before them have had."""
        more, due = Spent(), self.gate.spending.total
        for one in part:
            before = one.attempt.used(self.ledger.price)
            one.attempt.foresee(*self.ledger.beyond)
            more += one.attempt.used(self.ledger.price) - before
        if (more.tokens or more.money) and (passed := bound_passed(self.gate.caps, due + more)):
            self.gate.stop(f"{CAPPED[0]} {passed} is reached")

    def _parts(self, waiting: Sequence[_Waiting]) -> Iterator[list[_Waiting]]:
        """Divide requests among batches that the provider takes."""
        batches = self.batches
        most = min(batches.most_requests, self.most or batches.most_requests)
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

    def _named(self, part: Sequence[_Waiting]) -> ProviderBatch:
        """Make a batch, whose name is in the ledger before it is submitted."""
        batch = ProviderBatch(f"km-{uuid.uuid4().hex[:_DIGITS]}", len(part))
        self.ledger.sent([one.attempt for one in part], batch)
        self._requests[batch.name] = {_name(one.attempt): one.attempt for one in part}
        self.open.append(batch)
        self.sent += batch.requests
        return batch

    async def _step(self, batch: ProviderBatch) -> None:
        """Bring a batch further: find it or submit it, or look where it stands."""
        if self.gate.stopped:
            return
        try:
            if batch.provider_id:
                await self._look(batch)
            elif not batch.tried or await self._is_missing(batch):
                await self._submit(batch)
        except Failed as error:
            if error.kind == "gone" and batch.provider_id:
                self._gone(batch, error)
                return
            self._failures += 1
            if error.then != "retry":
                if error.then == "stop":
                    self.runner.fail(error)
                self.gate.stop(str(error))
            elif self._failures >= self.how.failures:
                self.gate.stop(str(error))
            else:
                await self.gate.pause(max(error.wait or 0.0, self.how.pause))

    async def _submit(self, batch: ProviderBatch) -> None:
        """Submit a batch once."""
        requests = {
            name: self.runner.body_of(*self.ledger.request(attempt.request))
            for name, attempt in self._requests[batch.name].items()
        }
        batch.tried = time.time()
        self.ledger.note_batch(batch)
        try:
            batch.provider_id = await _whole(self.batches.submit(batch.name, requests))
        except Failed as error:
            if error.charged is False and error.then == "retry":
                batch.tried = 0.0  # it is surely not there
            elif error.charged is False:
                self._void(batch, str(error))
            raise
        self._submitted(batch)

    async def _is_missing(self, batch: ProviderBatch) -> bool:
        """Look for a batch that may have been submitted; say whether it is surely not there."""
        known = {other.provider_id for other in self.ledger.batches} - {""}
        between = (batch.began, batch.tried)
        try:
            search = self.batches.find(batch.name, batch.requests, between, known)
            provider_id = await _whole(search)
        except Failed as error:
            if error.kind != "undecided":
                raise
            return False
        if provider_id is None:
            return time.time() > batch.tried + self.how.search
        batch.provider_id = provider_id
        self._submitted(batch)
        return False

    def _submitted(self, batch: ProviderBatch) -> None:
        self._failures = 0
        self._note(batch, "submitted")
        self.runner.tell()

    async def _look(self, batch: ProviderBatch) -> None:
        """Look where a batch stands, and read it if it is over."""
        standing = await _whole(self.batches.look(batch.provider_id))
        batch.done, self._failures = standing.done, 0
        if standing.trouble:
            self._void(batch, standing.trouble)
            smaller = " Smaller ones go one after another: --batch-size N."
            remedy = smaller if "limit" in standing.trouble.lower() else ""
            self.gate.stop(f"a batch was not taken: {standing.trouble}{remedy}")
        elif standing.over or (not standing.known and time.time() > batch.tried + _LONGEST):
            results = await _whole(self.batches.results(batch.provider_id))
            self._read(batch, results, standing)
        else:
            self._missed.pop(batch.name, None)  # it is there again

    def _read(self, batch: ProviderBatch, results: Results, standing: BatchStatus) -> None:
        """Write all results of a batch down, and what had none; not before they are all there.

        A provider may say that a batch is over before its file is there, or send half of a file.
        So it is looked again, as long as there are fewer results than the provider itself counts.
        """
        waiting = self._unsettled(batch)
        told: dict[str, bytes | Failed] = {}
        for line in results.lines.splitlines():
            try:
                name, came = self.batches.read(json.loads(line))
            except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
                continue  # what cannot be read says nothing
            # Of several results of one request an answer stands.
            if name in waiting and not isinstance(told.get(name), bytes):
                told[name] = came
        n = batch.requests - len(waiting) + len(told)  # some were read before a kill
        most, lack = min(standing.done, batch.requests), results.lack
        if n < most and not lack:
            lack = f"{n:,} of {most:,} results are there."
        if lack and n < batch.requests and self._waits(batch):
            return
        self.settled += batch.requests - len(waiting)
        for name, came in told.items():
            self._settle(waiting[name], came)
        why = f"has ended ({standing.word}), and says nothing of this request. {lack}"
        self._close(batch, f"{standing.word} {lack}".strip(), why.strip())

    def _gone(self, batch: ProviderBatch, error: Failed) -> None:
        """Look again for a batch that is not there; if it does not come, stop or give it up."""
        if self._waits(batch):
            return
        if not self.retry_errors:
            self.gate.stop(
                f"batch {batch.provider_id} ({batch.name}) is not there: {error} Look whether key "
                "and address are those it was submitted with. With --retry-errors its "
                f"{batch.requests:,} requests count as paid for and lost, and are asked again"
            )
            return
        self._close(batch, f"lost: {error}", f"is not there: {error}")

    def _waits(self, batch: ProviderBatch) -> bool:
        """Say whether what is not there may still come."""
        since = self._missed.setdefault(batch.name, time.monotonic())
        return time.monotonic() < since + self.how.patience

    def _close(self, batch: ProviderBatch, note: str, why: str) -> None:
        """Write down that nothing more comes of a batch; what has no answer may have been paid."""
        batch.done = 0
        message = f"The batch {batch.provider_id} ({batch.name}) {why}"
        for attempt in self._unsettled(batch).values():
            self._settle(attempt, Failed(message, "skip", "batch"))
        self._note(batch, "read", note)
        self.open.remove(batch)
        self.runner.tell()

    def _settle(self, attempt: Attempt, came: bytes | Failed) -> None:
        """Write down what came of a request, and count what it has used."""
        most = attempt.used(self.ledger.price)
        self.runner.settle(attempt, came, *self.ledger.request(attempt.request))
        self.settled += 1
        self._count(attempt, most, attempt.used(self.ledger.price))

    def _void(self, batch: ProviderBatch, why: str) -> None:
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

    def _note(self, batch: ProviderBatch, state: str, note: str = "") -> None:
        batch.state, batch.note = state, note
        self.ledger.note_batch(batch)

    def _unsettled(self, batch: ProviderBatch) -> dict[str, Attempt]:
        """Return the requests of a batch that have no end as yet, by their names in it."""
        every = self._requests[batch.name].items()
        return {name: attempt for name, attempt in every if attempt.state == "inflight"}


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
