"""Which calls may be made, and when: caps on what is spent, pauses, and how many at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from typing import ClassVar

import numpy as np

from knownminds.llm_adapters.adapter import MOST_TOKENS

from .prices import NANO, Spent

# How reasons begin why nothing more is asked, if it is for a cap.
CAPPED = ("the cap of", "the session's cap of")
FIRST = 2  # calls under way at the beginning; one under caps on what comes back
SILENT = "questions in a row had no answer"  # stands in the reason if it is for that

_GLANCE = 0.2  # seconds after which a run looks again whether others have left money

Amount = Decimal | float | str
Bounds = tuple[int | None, int | None, int | None]


@dataclass(frozen=True)
class Caps:
    """What a run may use at most; None for no bound.

    A call is made only if the most it can use fits under every cap; what may have been paid
    counts as paid.

    Parameters
    ----------
    calls, tokens, dollars : of the whole run, all its starts together
    session_calls, session_tokens, session_dollars : of each session
    answer_tokens : most tokens of one answer, hidden reasoning included; needed under caps on
        tokens or dollars if the settings have no `max_tokens`
    """

    calls: int | None = None
    tokens: int | None = None
    dollars: Amount | None = None
    session_calls: int | None = None
    session_tokens: int | None = None
    session_dollars: Amount | None = None
    answer_tokens: int | None = None

    purse: ClassVar[Purse | None] = None  # see `sharing`
    own: ClassVar[str] = ""

    def __post_init__(self) -> None:
        """Check the ranges; dollars become exact."""
        for name in ("calls", "tokens", "session_calls", "session_tokens", "answer_tokens"):
            value = getattr(self, name)
            whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
            if value is not None and not (whole and value >= 0):
                raise ValueError(f"A cap on {name} is a whole number from 0 on; got {value!r}.")
        if self.answer_tokens is not None and self.answer_tokens > MOST_TOKENS:
            raise ValueError(
                f"An answer has at most {MOST_TOKENS:,} tokens; got answer_tokens="
                f"{self.answer_tokens:,}."
            )
        for name in ("dollars", "session_dollars"):
            value = getattr(self, name)
            if value is None:
                continue
            try:
                exact = Decimal(str(value))
            except InvalidOperation:
                exact = Decimal("NaN")
            if not (exact.is_finite() and exact >= 0):
                raise ValueError(f"A cap on {name} is an amount from 0 on; got {value!r}.")
            object.__setattr__(self, name, exact)

    @property
    def on_money(self) -> bool:
        """Whether money is bounded."""
        return self.dollars is not None or self.session_dollars is not None

    @property
    def on_use(self) -> bool:
        """Whether money or tokens are bounded, which depend on what comes back."""
        return self.on_money or self.tokens is not None or self.session_tokens is not None

    def sharing(self, purse: Purse, name: str) -> Caps:
        """Return caps of one of several runs that use a purse together, under its name."""
        shared = replace(self)
        object.__setattr__(shared, "purse", purse)
        object.__setattr__(shared, "own", name)
        return shared

    @property
    def of_run(self) -> Bounds:
        """Calls, tokens and nano-dollars of the run."""
        return self.calls, self.tokens, _nano(self.dollars)

    @property
    def of_session(self) -> Bounds:
        """Calls, tokens and nano-dollars of a session."""
        return self.session_calls, self.session_tokens, _nano(self.session_dollars)


class Purse:
    """What several runs may use together, in one event loop or one after the other.

    Parameters
    ----------
    caps
        Those on runs hold for all of them together.
    spent
        By name of the run, what each has used already.
    """

    def __init__(self, caps: Caps, spent: Mapping[str, Spent]):
        self.caps = caps
        self.spent = dict(spent)
        self.under_way = 0

    def over(self, due: Spent) -> str:
        """Return the bound that would be passed by something more, in words; empty if none."""
        total = Spent()
        for one in self.spent.values():
            total.add(one)
        return _over(total, due, self.caps.of_run)


class Gate:
    """Lets calls through: so many at a time, within the caps, and none once the run stops.

    Parameters
    ----------
    concurrency
        How many calls may be under way at most. A few at first, and twice as many in each round
        as long as answers come; half as many after the provider has said that it is called too
        often or has too much to do, and from then on one more for every so many that go well.
        Under caps on tokens or money one at first; and one for good after a call has used more
        than could be foreseen.
    caps
        What may be used.
    spent
        What every session has used already.
    """

    def __init__(self, concurrency: int, caps: Caps, spent: Mapping[int, Spent]):
        self.caps = caps
        self.concurrency = concurrency
        # What a server counts is not known yet under caps on use: one call first.
        self.allowed = 1 if caps.on_use else min(FIRST, concurrency)
        self.under_way = 0
        self.stopped = ""
        self.sessions = dict(spent)
        self.total, self.reserved = Spent(), Spent()  # reserved: by the calls under way
        for one in spent.values():
            self.total.add(one)
        self.purse = caps.purse
        if self.purse is not None:
            self.purse.spent[caps.own] = self.total
        self._well = 0  # calls since the last change of what is allowed
        self._starting = True
        self._slowed = self._opens = 0.0
        self._moved: asyncio.Future[None] | None = None

    def now(self) -> float:
        """Return seconds on the loop's clock."""
        return asyncio.get_running_loop().time()

    async def enter(self, session: int, most: Spent) -> str:
        """Wait until a call may be made that uses `most`; if it may not, return why."""
        while not self.stopped:
            if (wait := self._opens - self.now()) > 0:
                await self._moves(wait)
            elif self.under_way >= self.allowed:
                await self._moves()
            elif not (over := self.reserve(session, most)):
                self.under_way += 1
                if self.purse is not None:
                    self.purse.under_way += 1
                return ""
            elif over.startswith(CAPPED[1]):
                return over
            # What is under way may turn out to use less than is reserved for it.
            elif self.under_way:
                await self._moves()
            elif self.purse is not None and self.purse.under_way:
                await self._moves(_GLANCE)
            else:
                self.stop(over)
        return self.stopped

    def reserve(self, session: int, most: Spent) -> str:
        """Reserve what a request uses at most, without waiting; return why it may not be sent."""
        of_session = self.sessions.setdefault(session, Spent())
        if over := _over(of_session, most, self.caps.of_session):
            return f"the session's cap of {over} is reached"
        over = _over(self.total, most, self.caps.of_run)
        if over := over or ("" if self.purse is None else self.purse.over(most)):
            return f"the cap of {over} is reached"
        for count in (of_session, self.total, self.reserved):
            count.add(most)
        return ""

    def leave(self, session: int, most: Spent, used: Spent) -> None:
        """Settle a call that was let through."""
        self.under_way -= 1
        if self.purse is not None:
            self.purse.under_way -= 1
        self.settle(session, most, used)

    def settle(self, session: int, most: Spent, used: Spent) -> None:
        """Count what a call has used instead of what was reserved for it."""
        self.reserved.settle(most, Spent())
        for count in (self.sessions.setdefault(session, Spent()), self.total):
            count.settle(most, used)
        if self.caps.on_use and (used.tokens > most.tokens or used.money > most.money):
            self.allowed = self.concurrency = 1
        self._move()

    def stop(self, reason: str) -> None:
        """Let nothing through any more."""
        self.stopped = self.stopped or reason or "stopped"
        self._move()

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
        if self.allowed < self.concurrency and (self._starting or self._well >= self.allowed):
            self.allowed, self._well = self.allowed + 1, 0
            self._move()

    async def pause(self, seconds: float) -> None:
        """Wait, but not any longer once the run stops."""
        until = self.now() + seconds
        while not self.stopped and (left := until - self.now()) > 0:
            await self._moves(left)

    async def _moves(self, seconds: float | None = None) -> None:
        """Wait until something has changed, or for so many seconds."""
        if self._moved is None:
            self._moved = asyncio.get_running_loop().create_future()
        await asyncio.wait([self._moved], timeout=seconds)

    def _move(self) -> None:
        if self._moved is not None:
            self._moved.set_result(None)
            self._moved = None


def _over(spent: Spent, more: Spent, bounds: Bounds) -> str:
    """Return the bound that would be passed, in words; empty if none."""
    calls, tokens, money = bounds
    if calls is not None and spent.calls + more.calls > calls:
        return f"{calls:,} calls"
    if tokens is not None and spent.tokens + more.tokens > tokens:
        return f"{tokens:,} tokens"
    if money is not None and spent.money + more.money > money:
        return f"${Decimal(money) / NANO:f}"
    return ""


def _nano(amount: Amount | None) -> int | None:
    return None if amount is None else int(Decimal(amount) * NANO)
