"""Which calls may be made, and when: caps on what is spent, pauses, and how many at a time."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

import numpy as np

from knownminds.llm_adapters.adapter import MOST_TOKENS

from .ledger import spent_in
from .prices import NANO, Spent

# How reasons begin why no further request is sent, if it is for a cap.
CAPPED = ("the cap of", "the session's cap of")
FIRST = 2  # calls under way at the beginning; one under caps on what comes back
SILENT = "questions in a row had no answer"  # stands in the reason if it is for that

Amount = Decimal | float | str


def check_least(options: object, least: float, *names: str) -> None:
    """Raise ValueError if one of these options is set and below its least value, or NaN."""
    for name in names:
        value = getattr(options, name)
        if value is not None and not value >= least:
            raise ValueError(f"{name} is at least {least:g}; got {value!r}.")


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

    def __post_init__(self) -> None:
        """Check the ranges; dollars become exact."""
        for name, value in vars(self).copy().items():
            if value is None:
                continue
            if name.endswith("dollars"):
                object.__setattr__(self, name, _exact(name, value))
                continue
            whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
            if not (whole and value >= 0):
                raise ValueError(f"A cap on {name} is a whole number from 0 on; got {value!r}.")
        if self.answer_tokens is not None and self.answer_tokens > MOST_TOKENS:
            raise ValueError(
                f"An answer has at most {MOST_TOKENS:,} tokens; got answer_tokens="
                f"{self.answer_tokens:,}."
            )

    @property
    def on_money(self) -> bool:
        """Whether money is bounded."""
        return self.dollars is not None or self.session_dollars is not None

    @property
    def on_use(self) -> bool:
        """Whether money or tokens are bounded, which depend on what comes back."""
        return self.on_money or self.tokens is not None or self.session_tokens is not None

    def over(self, due: Spent, prefix: str = "") -> str:
        """Return the bound that is passed by an amount, in words; empty if none.

        Parameters
        ----------
        prefix
            "session_" for the bounds of a session.
        """
        calls, tokens, dollars = (
            getattr(self, prefix + name) for name in ("calls", "tokens", "dollars")
        )
        if calls is not None and due.calls > calls:
            return f"{calls:,} calls"
        if tokens is not None and due.tokens > tokens:
            return f"{tokens:,} tokens"
        if dollars is not None and due.money > int(dollars * NANO):
            return f"${Decimal(int(dollars * NANO)) / NANO:f}"
        return ""


def _exact(name: str, value: Amount) -> Decimal:
    try:
        exact = Decimal(str(value))
    except InvalidOperation:
        exact = Decimal("NaN")
    if not (exact.is_finite() and exact >= 0):
        raise ValueError(f"A cap on {name} is an amount from 0 on; got {value!r}.")
    return exact


class Budget:
    """What the runs of some folders may use together, in one event loop, and what they have used.

    Parameters
    ----------
    caps
        Those on runs hold for all of them together.
    folders
        Of the runs that may have used something before; others are counted as they begin.

    Attributes
    ----------
    spent
        By folder and session.
    total
        Of all of them.
    """

    def __init__(self, caps: Caps, folders: Iterable[str | os.PathLike[str]] = ()):
        self.caps = caps
        self.spent: dict[tuple[str, int], Spent] = {}
        self.total = Spent()
        self.under_way = 0
        self._moved: asyncio.Future[None] | None = None
        for folder in folders:
            self.begin(str(folder), spent_in(folder))

    def begin(self, folder: str, spent: Mapping[int, Spent]) -> None:
        """Count what the sessions of a run have used before."""
        for session, used in spent.items():
            self.settle(folder, session, self.spent.get((folder, session), Spent()), used)

    def reserve(self, folder: str, session: int, most: Spent) -> str:
        """Reserve what a request uses at most, without waiting; return why it may not be sent."""
        of_session = self.spent.get((folder, session), Spent())
        if over := self.caps.over(of_session + most, "session_"):
            return f"{CAPPED[1]} {over} is reached"
        if over := self.caps.over(self.total + most):
            return f"{CAPPED[0]} {over} is reached"
        self.settle(folder, session, Spent(), most)
        return ""

    def settle(self, folder: str, session: int, most: Spent, used: Spent) -> None:
        """Count what a call has used instead of what was reserved for it."""
        of_session = self.spent.get((folder, session), Spent())
        self.spent[folder, session] = of_session + used - most
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


class Gate:
    """Lets the calls of a run through: so many at a time, within the caps, and none once it stops.

    Parameters
    ----------
    concurrency
        How many calls may be under way at most. There are a few at first, and twice as many in each
        round as long as answers come. There are half as many after the provider has said that it is
        called too often or has too much to do. From then on there is one more for every so many
        that go well. Under caps on tokens or money one at first; and one for good after a call has
        used more than could be foreseen. None for no bound.
    budget
        What may be used.
    spent
        What every session has used already.
    folder
        Of the run, by which the budget knows it.
    """

    def __init__(
        self,
        concurrency: int | None,
        budget: Budget,
        spent: Mapping[int, Spent],
        folder: str = "",
    ):
        self.budget, self.concurrency, self.folder = budget, concurrency, folder
        # What a server counts is not known yet under caps on use: one call first.
        first = 1 if budget.caps.on_use else FIRST
        self.allowed = MOST_TOKENS if concurrency is None else min(first, concurrency)
        self.under_way = 0
        self.stopped = ""
        self.total, self.reserved = Spent(), Spent()  # reserved: by the calls under way
        for used in spent.values():
            self.total += used
        budget.begin(folder, spent)
        self._well = 0  # calls since the last change of what is allowed
        self._starting = True
        self._slowed = self._opens = 0.0

    def now(self) -> float:
        """Return seconds on the loop's clock."""
        return asyncio.get_running_loop().time()

    def used(self, session: int) -> Spent:
        """Return what a session has used."""
        return self.budget.spent.get((self.folder, session), Spent())

    async def enter(self, session: int, most: Spent) -> str:
        """Wait until a call may be made that uses `most`; if it may not, return why."""
        while not self.stopped:
            if (wait := self._opens - self.now()) > 0:
                await self.budget.moves(wait)
            elif self.under_way >= self.allowed:
                await self.budget.moves()
            elif not (over := self.budget.reserve(self.folder, session, most)):
                self.under_way += 1
                self.budget.under_way += 1
                self.total, self.reserved = self.total + most, self.reserved + most
                return ""
            elif over.startswith(CAPPED[1]):
                return over
            # What is under way may turn out to use less than is reserved for it.
            elif self.budget.under_way:
                await self.budget.moves()
            else:
                self.stop(over)
        return self.stopped

    def leave(self, session: int, most: Spent, used: Spent) -> None:
        """Settle a call that was let through."""
        self.under_way -= 1
        self.budget.under_way -= 1
        self.reserved -= most
        self.settle(session, most, used)

    def settle(self, session: int, most: Spent, used: Spent) -> None:
        """Count what a call has used instead of what it was counted for."""
        self.total += used - most
        self.budget.settle(self.folder, session, most, used)
        more = used.tokens > most.tokens or used.money > most.money
        if self.concurrency is not None and self.budget.caps.on_use and more:
            self.allowed = self.concurrency = 1

    def stop(self, reason: str) -> None:
        """Let nothing through any more."""
        self.stopped = self.stopped or reason or "stopped"
        self.budget.moved()

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
            self.budget.moved()

    async def pause(self, seconds: float) -> None:
        """Wait, but not any longer once the run stops."""
        until = self.now() + seconds
        while not self.stopped and (left := until - self.now()) > 0:
            await self.budget.moves(left)
