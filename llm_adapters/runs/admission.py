"""Which calls may be made, and when: caps on what is spent, pauses, and how many at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from knownminds.calling import MOST_TOKENS, Caps, check_least

from .prices import NANO, Spent

# How reasons begin why no further request is sent, if it is for a cap.
CAPPED = ("the cap of", "the session's cap of")
FIRST = 2  # calls under way at the beginning; one under caps on what comes back
SILENT = "questions in a row had no answer"  # stands in the reason if it is for that

NOT_SENT = "not sent"  # the batch of an attempt that waits for one


@dataclass(frozen=True)
class Batching:
    """How batches are waited for.

    Parameters
    ----------
    pause : seconds before it is looked for the first time whether a batch is over; grows by half
    longest_pause : seconds that this growth ends at
    search : seconds for which a batch that may have been submitted is looked for at the provider
        before it is submitted again
    patience : seconds for which it is looked again for results that should be there and are not,
        before they count as paid for and lost
    failures : how often in a row the provider may fail before the run stops
    """

    pause: float = 5.0
    longest_pause: float = 60.0
    search: float = 60.0
    patience: float = 1_800.0
    failures: int = 20

    def __post_init__(self) -> None:
        check_least(self, 0, "pause", "longest_pause", "search", "patience")
        check_least(self, 1, "failures")


def bound_passed(caps: Caps, due: Spent, prefix: str = "") -> str:
    """Return the bound that is passed by an amount, in words; empty if none.

    Parameters
    ----------
    prefix : "session_" for the bounds of a session.
    """
    calls, tokens, dollars = (
        getattr(caps, prefix + name) for name in ("calls", "tokens", "dollars")
    )
    if calls is not None and due.calls > calls:
        return f"{calls:,} call{'' if calls == 1 else 's'}"
    if tokens is not None and due.tokens > tokens:
        return f"{tokens:,} token{'' if tokens == 1 else 's'}"
    if dollars is not None and due.money > int(dollars * NANO):
        return f"${Decimal(int(dollars * NANO)) / NANO:f}"
    return ""


class Spending:
    """What the runs of a ledger have used together, in one event loop.

    Attributes
    ----------
    of : By run and session.
    total : Of all of them, with what is reserved.
    reserved, under_way : What is reserved for the calls under way, and how many these are.
    beyond : Of each participant: by how many tokens more was sent than could be foreseen, and how
        many its longest answer has.
    """

    def __init__(self) -> None:
        self.of: dict[tuple[str, int], Spent] = {}
        self.total = self.reserved = Spent()
        self.under_way = 0
        self.beyond: dict[str, tuple[int, int]] = {}
        self._moved: asyncio.Future[None] | None = None

    def begin(self, run: str, spent: Mapping[int, Spent]) -> None:
        """Count what the sessions of a run have used before."""
        for session, used in spent.items():
            self.settle(run, session, self.of.get((run, session), Spent()), used)

    def settle(self, run: str, session: int, most: Spent, used: Spent) -> None:
        """Count what a call has used instead of what was reserved for it."""
        self.of[run, session] = self.of.get((run, session), Spent()) + used - most
        self.total += used - most
        self.moved()

    async def moves(self, seconds: float | None = None) -> None:
        """Wait until something has changed, or for so many seconds."""
        if self._moved is None:
            self._moved = asyncio.get_running_loop().create_future()
        await asyncio.wait([self._moved], timeout=seconds)

    def moved(self) -> None:
        """Wake whoever waits."""
        moved, self._moved = self._moved, None
        if moved is not None and not moved.done():
            moved.set_result(None)


class Admission:
    """Lets the calls of a run through: so many at a time, within the caps, and none once it stops.

    Parameters
    ----------
    concurrency : How many calls may be under way at most. There are a few at first, and twice as
        many in each round as long as answers come. There are half as many after the provider has
        said that it is called too often or has too much to do. From then on there is one more for
        every so many that go well. Under caps on tokens or money one at first; and one for good
        after a call has used more than could be foreseen. None for no bound.
    caps : Those on runs hold for all runs of the ledger together.
    spending : Of the ledger.
    run : Its name there.
    """

    def __init__(self, concurrency: int | None, caps: Caps, spending: Spending, run: str = ""):
        self.caps, self.concurrency = caps, concurrency
        self.spending, self.run = spending, run
        # What a server counts is not known yet under caps on use: one call first.
        first = 1 if caps.on_use else FIRST
        self.allowed = MOST_TOKENS if concurrency is None else min(first, concurrency)
        self.under_way = 0
        self.stopped = ""
        self._well = 0  # calls since the last change of what is allowed
        self._starting = True
        self._slowed = self._opens = 0.0

    def now(self) -> float:
        """Return seconds on the loop's clock."""
        return asyncio.get_running_loop().time()

    def used(self, session: int) -> Spent:
        """Return what a session has used."""
        return self.spending.of.get((self.run, session), Spent())

    async def enter(self, session: int, most: Spent) -> str:
        """Wait until a call may be made that uses `most`; if it may not, return why."""
        while not self.stopped:
            if (wait := self._opens - self.now()) > 0:
                await self.spending.moves(wait)
            elif self.under_way >= self.allowed:
                await self.spending.moves()
            elif passed := bound_passed(self.caps, self.used(session) + most, "session_"):
                return f"{CAPPED[1]} {passed} is reached"
            elif not (passed := bound_passed(self.caps, self.spending.total + most)):
                self.under_way += 1
                self.spending.under_way += 1
                self.spending.reserved += most
                self.spending.settle(self.run, session, Spent(), most)
                return ""
            # What is under way may turn out to use less than is reserved for it.
            elif self.spending.under_way:
                await self.spending.moves()
            else:
                self.stop(f"{CAPPED[0]} {passed} is reached")
        return self.stopped

    def leave(self, session: int, most: Spent, used: Spent) -> None:
        """Settle a call that was let through."""
        self.under_way -= 1
        self.spending.under_way -= 1
        self.spending.reserved -= most
        self.settle(session, most, used)

    def settle(self, session: int, most: Spent, used: Spent) -> None:
        """Count what a call has used instead of what it was counted for."""
        self.spending.settle(self.run, session, most, used)
        more = used.tokens > most.tokens or used.money > most.money
        if self.concurrency is not None and self.caps.on_use and more:
            self.allowed = self.concurrency = 1

    def stop(self, reason: str) -> None:
        """Let nothing through any more."""
        self.stopped = self.stopped or reason or "stopped"
        self.spending.moved()

    def slow_down(self, entered: float, wait: float) -> None:
        """Halve how many calls may be under way, and let none through for `wait` seconds.

        `entered` is when the call was let through that was too much. Of several that were under
        way together only the first halves.
        """
        self._well, self._starting = 0, False
        if entered >= self._slowed:
            self.allowed, self._slowed = max(1, self.allowed // 2), self.now()
        self._opens = max(self._opens, self.now() + wait)

    def went_well(self) -> None:
        """Let one call more be under way after as many as are allowed have gone well.

        At the beginning, after every one: so the calls under way double in each round.
        """
        self._well += 1
        room = self.concurrency is not None and self.allowed < self.concurrency
        if room and (self._starting or self._well >= self.allowed):
            self.allowed, self._well = self.allowed + 1, 0
            self.spending.moved()

    async def pause(self, seconds: float) -> None:
        """Wait, but not any longer once the run stops."""
        until = self.now() + seconds
        while not self.stopped and (left := until - self.now()) > 0:
            await self.spending.moves(left)
