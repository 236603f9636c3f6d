"""Questions of many sessions, gathered and answered in batches."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from tempfile import TemporaryFile
from typing import BinaryIO

from knownminds.environments import Environment
from knownminds.llm_adapters.adapter import (
    AdapterError,
    NoReply,
    RateLimited,
    Reply,
    Sampling,
    TryAgain,
    Unusable,
)
from knownminds.llm_adapters.batches.contract import (
    Asked,
    Batches,
    Came,
    Undecided,
    size_of,
)
from knownminds.llm_adapters.providers.endpoint import MOST_BYTES

from .admission import CAPPED, Gate
from .batch_book import Batch, BatchBook, Question, Sent
from .ledger import Call, Ledger, Spent, used_spent
from .prices import in_batches

_AT_ONCE = 256  # results that are written down together


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
    """A question and who waits for it; nobody if it is asked beforehand."""

    question: Question
    asked: Asked  # under a name that is not yet its own
    end: asyncio.Future[tuple[Call | None, str]] | None = None
    call: Call | None = None

    def over(self, reason: str) -> None:
        """Tell what came of it, or why nothing did."""
        if self.end is not None and not self.end.done():
            answered = self.call is not None and self.call.state != "open"
            self.end.set_result((self.call, "") if answered else (None, reason))


@dataclass
class Desk:
    """Gathers questions until every session waits for an answer, and has them answered in batches.

    Parameters
    ----------
    batches : the provider's
    ledger, gate : of the run
    how : see `Batching`
    sampling : with which all is asked
    answer_tokens : most tokens of an answer
    fail : told of what makes the run one in vain
    tell : called when something has moved
    sessions : how many sessions are being lived
    """

    batches: Batches
    ledger: Ledger
    gate: Gate
    how: Batching
    sampling: Sampling
    answer_tokens: int
    fail: Callable[[Unusable], None]
    tell: Callable[[], None]
    sessions: int = 0
    settled: int = 0  # requests whose end is in the ledger
    waiting: list[Waiting] = field(default_factory=list)
    opened: asyncio.Event = field(default_factory=asyncio.Event)
    closed: bool = False

    def __post_init__(self) -> None:
        """Look up the batches that earlier starts have left."""
        self.book = BatchBook(self.ledger)
        price = self.ledger.price
        self.price = None if price is None else in_batches(price)
        self.open = self.book.awaited()
        self.sent = sum(batch.requests for batch in self.open)
        self._calls: dict[int, Call] = {}  # of this start, by their number
        self._moved = asyncio.Event()
        self._failures = 0
        for batch in self.open:  # it counts as spent already
            for one in self.book.sent(batch).values():
                self.gate.reserved.add(one.reserved)

    @property
    def done(self) -> int:
        """How many requests have come to an end, as far as it is known."""
        return self.settled + sum(batch.done for batch in self.open)

    async def ask(self, one: Waiting) -> tuple[Call | None, str]:
        """Wait for the answer to a question; without one, return why."""
        if self.closed:
            return None, self.gate.stopped
        one.end = asyncio.get_running_loop().create_future()
        self.waiting.append(one)
        self._moved.set()
        return await one.end

    def leave(self) -> None:
        """Take note that a session is not lived any more."""
        self.sessions -= 1
        self._moved.set()

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
                    self._moved.clear()
                    await self._moved.wait()
                    continue
                gathered, self.waiting = self.waiting, []
                self.waiting = await self._round(gathered) + self.waiting
        finally:
            self.closed = True
            self.opened.set()
            for one in self.waiting:
                one.over(self.gate.stopped)
            await self.batches.close()

    # A round ------------------------------------------------------------------------------------

    async def _round(self, gathered: Sequence[Waiting]) -> list[Waiting]:
        """Have questions answered; return those for which there is no room as yet."""
        later: list[Waiting] = []
        taken: list[Waiting] = []
        reason = ""
        for one in gathered:
            place, most = one.question.place, one.question.most
            due = self.gate.stopped or self.gate.reserve(place[0], most)
            if isinstance(due, Spent):
                one.question = Question(place, one.question.call, one.question.request, due)
                taken.append(one)
            elif due.startswith(CAPPED[1]) or self.gate.stopped:
                one.over(due)
            else:
                later.append(one)
                reason = due
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
            size = size_of(self.batches.item(one.asked))
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
                self.gate.settle(one.question.place[0], one.question.most, Spent())
            return
        batch, calls = await self.book.intend([one.question for one in part])
        for one, call in zip(part, calls, strict=True):
            one.call = self._calls[call.id] = call
        self.open.append(batch)
        self.sent += batch.requests
        await self._submit(batch, maybe=False)
        self.tell()

    async def _submit(self, batch: Batch, maybe: bool) -> None:
        """Submit a batch once; `maybe` says that it may have been submitted already."""
        items = [self.batches.item(one) for one in self.book.requests(batch)]
        while not self.gate.stopped:
            try:
                if maybe and await self._found(batch):
                    return
            except TryAgain as error:
                await self._wait_after(error)
                continue
            except AdapterError as error:
                self._give_up(error)
                return
            if self.gate.stopped:
                return
            await self.book.trying(batch)
            try:
                provider_id = await self.batches.submit(batch.name, items)
            except TryAgain as error:
                maybe = error.charged is not False
                await self._wait_after(error)
            except AdapterError as error:
                if error.charged is False:
                    await self._void(batch, str(error))
                self._give_up(error)
            else:
                self._failures = 0
                await self.book.submitted(batch, provider_id)
                return

    async def _found(self, batch: Batch) -> bool:
        """Look for a batch that may have been submitted, until it would long be there."""
        between = (batch.began, batch.tried)
        while not self.gate.stopped:
            try:
                found = await self.batches.find(
                    batch.name, batch.requests, between, self.book.known()
                )
            except Undecided:
                await self.gate.pause(self.how.longest_pause)
                continue
            if found is not None:
                await self.book.submitted(batch, found)
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
            self.tell()
            await self.gate.pause(pause)
            pause = min(1.5 * pause, self.how.longest_pause)
            for batch in list(self.open):
                if self.gate.stopped:
                    return
                try:
                    await self._look(batch)
                    self._failures = 0
                except TryAgain as error:
                    await self._wait_after(error)
                except AdapterError as error:
                    self._give_up(error)

    async def _look(self, batch: Batch) -> None:
        """Look where a batch stands, and read it if it is over."""
        standing = await self.batches.look(batch.provider_id)
        batch.done = standing.done or 0
        if standing.trouble:
            await self._void(batch, standing.trouble)
            self.gate.stop(f"a batch was not taken: {standing.trouble}")
        elif standing.over:
            with TemporaryFile() as file:
                await self.batches.fetch(batch.provider_id, file)
                file.seek(0)
                await self._read(batch, file, standing.word)

    # What comes ---------------------------------------------------------------------------------

    async def _read(self, batch: Batch, file: BinaryIO, word: str) -> None:
        """Write all results of a batch down, and what had none."""
        awaited = self.book.sent(batch)
        batch.done = 0
        self.settled += batch.requests - len(awaited)  # read before a kill
        for some in _groups(self._results(file)):
            found = [(awaited.pop(name), came) for name, came in some if name in awaited]
            await asyncio.gather(*(self._settle(sent, came) for sent, came in found))
            self.tell()
        missing = NoReply(f"The batch has ended ({word}), and tells nothing of this request.")
        for sent in awaited.values():
            await self._settle(sent, missing)
        await self.book.read(batch, word)
        self.open.remove(batch)

    def _results(self, file: BinaryIO) -> Iterator[Came]:
        """Read the lines of a file; what cannot be read says nothing."""
        while line := file.readline(MOST_BYTES):
            try:
                yield self.batches.read(json.loads(line), self.sampling)
            except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
                continue

    async def _settle(self, sent: Sent, came: Reply | AdapterError) -> None:
        """Write down what came of a request, and what it has used."""
        ledger = self.ledger
        call = self._calls.get(sent.call.id, sent.call)
        used = Spent(1)
        if isinstance(came, Reply):
            most_sent = max(sent.reserved.tokens - self.answer_tokens, 0)
            used = used_spent(self.price, came.usage, most_sent, self.answer_tokens)
            await ledger.answered(call, sent.attempt, came, used)
        else:
            if came.charged is not False:
                used = sent.reserved
            written = [ledger.failed(call, sent.attempt, came, used)]
            if isinstance(came, Unusable):
                self.fail(came)
            else:
                written.append(ledger.give_up(call, str(came)))
            await asyncio.gather(*written)  # in one commit
        self.settled += 1
        self.gate.settle(sent.session, sent.reserved, used)

    async def _void(self, batch: Batch, why: str) -> None:
        """Take a batch for one that never was."""
        for sent in self.book.sent(batch).values():
            self.gate.settle(sent.session, sent.reserved, Spent(1))
        await self.book.void(batch, why)
        self.open.remove(batch)
        self.sent -= batch.requests

    # What fails ---------------------------------------------------------------------------------

    async def _wait_after(self, error: TryAgain) -> None:
        """Wait after a failure that may pass, or stop the run after too many."""
        self._failures += 1
        wait = error.retry_after or 0.0
        if self._failures >= self.how.failures:
            self.gate.stop(str(error))
        elif isinstance(error, RateLimited) or wait:
            await self.gate.pause(max(wait, self.how.pause))
        else:
            await self.gate.pause(self.how.pause)

    def _give_up(self, error: AdapterError) -> None:
        if isinstance(error, Unusable):
            self.fail(error)
        self.gate.stop(str(error))


def check_turns(environment: Environment, batching: Batching) -> None:
    """Raise ValueError if trials wait for earlier ones, and it is not said that they may."""
    if not (environment.replies.stand_alone or batching.turns):
        raise ValueError(
            f"Trials that stand alone are asked in one batch; those of {environment.name} with "
            "these settings wait for earlier ones. Say --batch-turns for a batch per trial, with a "
            "request of each session, or ask call by call."
        )


def _groups(results: Iterable[Came]) -> Iterator[list[Came]]:
    some: list[Came] = []
    for one in results:
        some.append(one)
        if len(some) == _AT_ONCE:
            yield some
            some = []
    yield some
