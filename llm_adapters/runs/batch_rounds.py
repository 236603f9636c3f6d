"""Questions of many sessions, gathered and answered in batches: another way to send."""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from knownminds.environments import Environment, Prompt
from knownminds.llm_adapters.adapter import Adapter, Failed, Sampling
from knownminds.llm_adapters.batches import Batches
from knownminds.llm_adapters.batches.contract import Came

from .admission import CAPPED, Gate
from .ledger import Attempt, Batch, Ledger, Request
from .prices import Spent

T = TypeVar("T")

_DIGITS = 16  # of the name of a batch


@dataclass(frozen=True)
class Batching:
    """How questions are sent in batches.

    Parameters
    ----------
    turns : whether sessions whose trials tell of earlier ones are asked too: a batch for each trial
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
        for name in ("pause", "longest_pause", "search"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} is a time from 0 s on; got {getattr(self, name)!r}.")
        for name in ("requests", "failures"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} is at least 1; got {value!r}.")


@dataclass
class Waiting:
    """A question that is to go into a batch, and who waits for it; nobody if asked beforehand."""

    attempt: Attempt
    request: Request
    prompt: Prompt
    settings: Sampling
    end: asyncio.Future[str] | None = None

    def over(self, reason: str) -> None:
        """Say that the round is over, and why it brought nothing if it did not."""
        if self.end is not None and not self.end.done():
            self.end.set_result(reason)


@dataclass
class Rounds:
    """Gathers questions until every session waits for an answer, and has them answered in batches.

    The name of a batch is in the ledger before it is submitted, so that it can be looked up.

    Parameters
    ----------
    batches : the provider's
    ledger, gate : of the run
    how : see `Batching`
    settle : given a request, what came of it, and its settings, writes that down and reads it
    fail : given what makes the run one in vain
    moved : called when something has moved
    sessions : how many sessions are being lived
    """

    batches: Batches
    adapter: Adapter
    ledger: Ledger
    gate: Gate
    how: Batching
    settle: Callable[[Attempt, bytes | Failed, Sampling], None]
    fail: Callable[[Failed], None]
    moved: Callable[[], None]
    sessions: int = 0
    settled: int = 0  # requests whose end is in the ledger
    waiting: list[Waiting] = field(default_factory=list)
    opened: asyncio.Event = field(default_factory=asyncio.Event)
    closed: bool = False

    def __post_init__(self) -> None:
        """Look up the batches that earlier starts have left."""
        self.open = self.ledger.open_batches()
        self.sent = sum(batch.requests for batch in self.open)
        self._requests: dict[str, dict[str, Attempt]] = {}  # by batch, then by name in it
        self._gathered = asyncio.Event()
        self._failures = 0
        for batch in self.open:  # it counts as spent already
            self._requests[batch.name] = _named(batch.name, self.ledger.in_batch(batch.name))
            for attempt in self._unsettled(batch).values():
                self.gate.reserved.add(attempt.used(self.ledger.price))

    @property
    def done(self) -> int:
        """How many requests have come to an end, as far as it is known."""
        return self.settled + sum(batch.done for batch in self.open)

    async def ask(self, one: Waiting) -> str:
        """Wait until a question has been answered; return why it was not, if it was not."""
        if self.closed:
            return self.gate.stopped
        one.end = asyncio.get_running_loop().create_future()
        self.waiting.append(one)
        self._gathered.set()
        return await one.end

    def leave(self) -> None:
        """Take note that a session is not lived any more."""
        self.sessions -= 1
        self._gathered.set()

    async def work(self, beforehand: Callable[[], Iterator[Waiting]]) -> None:
        """Read what earlier starts have submitted, ask what is known beforehand, then the rest.

        Parameters
        ----------
        beforehand
            Returns the questions that are known before any of them is answered.
        """
        try:
            await self._collect()
            left = list(beforehand()) if not self.gate.stopped else []
            while left and not self.gate.stopped:
                left = await self._round(left)
            self.opened.set()
            while self.sessions:
                if len(self.waiting) < self.sessions:
                    self._gathered.clear()
                    await self._gathered.wait()
                    continue
                gathered, self.waiting = self.waiting, []
                self.waiting = await self._round(gathered) + self.waiting
        finally:
            self.closed = True
            self.opened.set()
            for one in self.waiting:
                one.over(self.gate.stopped)

    # A round ------------------------------------------------------------------------------------

    async def _round(self, gathered: Sequence[Waiting]) -> list[Waiting]:
        """Have questions answered; return those for which there is no room as yet."""
        later: list[Waiting] = []
        taken: list[Waiting] = []
        reason = ""
        for one in gathered:
            most = self._most(one.attempt)
            over = self.gate.stopped or self.gate.reserve(one.attempt.key[0], most)
            if not over:
                taken.append(one)
            elif over.startswith(CAPPED[1]) or self.gate.stopped:
                one.over(over)
            else:
                later.append(one)
                reason = over
        if later and not taken:
            self.gate.stop(reason)
        try:
            for part in self._parts(taken):
                await self._send(part)
            await self._collect()
        finally:
            for one in (*taken, *(later if self.gate.stopped else ())):
                one.over(self.gate.stopped)
        return [] if self.gate.stopped else later

    def _parts(self, taken: Sequence[Waiting]) -> Iterator[list[Waiting]]:
        """Divide questions among batches that the provider takes."""
        limits = self.batches.limits
        most = min(limits.requests, self.how.requests or limits.requests)
        part: list[Waiting] = []
        room = limits.bytes
        for one in taken:
            request = self.adapter.request(one.prompt, one.settings)
            size = len(json.dumps(self.batches.item("-" * 64, request))) + 2
            if part and (len(part) == most or size > room):
                yield part
                part, room = [], limits.bytes
            part.append(one)
            room -= size
        if part:
            yield part

    async def _send(self, part: Sequence[Waiting]) -> None:
        """Submit a batch, if the run goes on: its name is in the ledger before."""
        if self.gate.stopped:
            for one in part:
                self.gate.settle(one.attempt.key[0], self._most(one.attempt), Spent())
            return
        name = f"km-{uuid.uuid4().hex[:_DIGITS]}"
        self.ledger.sent([(one.attempt, one.request) for one in part], name)
        now = time.time()
        batch = Batch(name, "", now, now, len(part))
        self._requests[name] = _named(name, [one.attempt for one in part])
        self.open.append(batch)
        self.sent += batch.requests
        await self._submit(batch, maybe=False)
        self.moved()

    async def _submit(self, batch: Batch, maybe: bool) -> None:
        """Submit a batch once; `maybe` says that it may have been submitted already."""
        items = []
        for name, attempt in self._requests[batch.name].items():
            prompt, settings = self.ledger.request(attempt.request)
            items.append(self.batches.item(name, self.adapter.request(prompt, settings)))
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
            self.ledger.batch_is(batch, "intended")
            try:
                batch.provider_id = await _whole(self.batches.submit(batch.name, items))
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
                self.ledger.batch_is(batch, "submitted")
            return

    async def _found(self, batch: Batch) -> bool:
        """Look for a batch that may have been submitted, until it would long be there."""
        between = (batch.began, batch.tried)
        while not self.gate.stopped:
            known = self.ledger.provider_ids()
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
                self.ledger.batch_is(batch, "submitted")
                return True
            if time.time() > batch.tried + self.how.search:
                return False
            await self.gate.pause(self.how.pause)
        return False

    async def _collect(self) -> None:
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

    async def _look(self, batch: Batch) -> None:
        """Look where a batch stands, and read it if it is over."""
        standing = await _whole(self.batches.look(batch.provider_id))
        batch.done = standing.done or 0
        if standing.trouble:
            self._void(batch, standing.trouble)
            self.gate.stop(f"a batch was not taken: {standing.trouble}")
        elif standing.over:
            self._read(batch, await _whole(self.batches.results(batch.provider_id)), standing.word)

    # What comes ---------------------------------------------------------------------------------

    def _read(self, batch: Batch, results: bytes, word: str) -> None:
        """Write all results of a batch down, and what had none."""
        awaited = self._unsettled(batch)
        batch.done = 0
        self.settled += batch.requests - len(awaited)  # read before a kill
        for name, came in self._lines(results):
            if name in awaited:
                self._settle(awaited.pop(name), came)
        message = f"The batch has ended ({word}), and tells nothing of this request."
        for attempt in awaited.values():
            self._settle(attempt, Failed(message, "skip", "batch"))
        self.ledger.batch_is(batch, "read", word)
        self.open.remove(batch)
        self.moved()

    def _lines(self, results: bytes) -> Iterator[Came]:
        """Read the lines of a file; what cannot be read says nothing."""
        for line in results.splitlines():
            try:
                yield self.batches.read(json.loads(line))
            except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
                continue

    def _settle(self, attempt: Attempt, came: bytes | Failed) -> None:
        """Write down what came of a request, and count what it has used."""
        most = self._most(attempt)
        _, settings = self.ledger.request(attempt.request)
        self.settle(attempt, came, settings)
        self.settled += 1
        self.gate.settle(attempt.key[0], most, attempt.used(self.ledger.price))

    def _void(self, batch: Batch, why: str) -> None:
        """Take a batch for one that never was."""
        for attempt in self._unsettled(batch).values():
            self.gate.settle(attempt.key[0], self._most(attempt), Spent(1))
            attempt.state = "error_unpaid"
        self.ledger.batch_is(batch, "void", why)
        self.open.remove(batch)
        self.sent -= batch.requests

    def _unsettled(self, batch: Batch) -> dict[str, Attempt]:
        """Return the requests of a batch that have no end as yet, by their names in it."""
        every = self._requests[batch.name].items()
        return {name: attempt for name, attempt in every if attempt.state == "inflight"}

    def _most(self, attempt: Attempt) -> Spent:
        """Return what is reserved for a request, at the price of batches."""
        whole = replace(attempt, state="inflight", reply=None, batch="in a batch")
        return whole.used(self.ledger.price)

    # What fails ---------------------------------------------------------------------------------

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


async def _whole(told: Awaitable[T]) -> T:
    """Wait for what a provider says of a batch; what lacks something it should have is `Failed`."""
    try:
        return await told
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        said = f"What is told of a batch cannot be read: {type(error).__name__}: {error}"[:200]
        raise Failed(said, "retry", "batch") from None


def _named(batch: str, attempts: Sequence[Attempt]) -> dict[str, Attempt]:
    """Return the requests of a batch by their names in it."""
    return {f"{batch}-{'-'.join(map(str, attempt.key))}": attempt for attempt in attempts}


def check_turns(environment: Environment, batching: Batching) -> None:
    """Raise ValueError if trials wait for earlier ones, and it is not said that they may."""
    if not (environment.replies.stand_alone or batching.turns):
        raise ValueError(
            f"Trials that stand alone are asked in one batch; those of {environment.name} with "
            "these settings wait for earlier ones. Say --batch-turns for a batch per trial, with a "
            "request of each session, or ask call by call."
        )
