"""Any adapter on a bad day: failures and spoilt answers, by chance or by script."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Literal, get_args

from knownminds.environments import Prompt, session_stream, unknown
from knownminds.llm_adapters.adapter import (
    Adapter,
    Capabilities,
    RateLimited,
    Reply,
    Sampling,
    ServerFailed,
    Unreachable,
    UnreadableReply,
    key_variable_of,
)

Fault = Literal[
    "rate_limited",
    "told_to_wait",
    "failed",
    "timed_out",
    "cut_off",
    "unreadable",
    "garbage",
    "empty",
    "truncated",
]

_GARBAGE = "}] 0xE2 </div> and then"
_HEX_DIGITS = 8  # of a prompt's hash that are part of an address


@dataclass(frozen=True)
class Faults:
    """How often calls go wrong, as probabilities; a call is hit by one fault at most.

    Parameters
    ----------
    rate_limited : 429, without a word on how long to wait
    told_to_wait : 429 with Retry-After
    failed : 5xx
    timed_out : no answer in time, and none was made
    cut_off : the connection breaks while the answer is on its way, which was made and is paid
    unreadable : an answer that breaks off within its JSON; it is paid
    garbage : a text without sense
    empty : no text
    truncated : half of the text, cut at the limit of tokens
    """

    rate_limited: float = 0.0
    told_to_wait: float = 0.0
    failed: float = 0.0
    timed_out: float = 0.0
    cut_off: float = 0.0
    unreadable: float = 0.0
    garbage: float = 0.0
    empty: float = 0.0
    truncated: float = 0.0

    def __post_init__(self) -> None:
        """Check that these are probabilities and leave room for real answers."""
        rates = [getattr(self, field.name) for field in fields(self)]
        if min(rates) < 0 or sum(rates) > 1:
            raise ValueError(
                "Faults exclude each other, so their probabilities are from 0 on and sum to at "
                f"most 1; got {self}."
            )

    def strike(self, u: float) -> Fault | None:
        """Return the fault that a uniform number brings, if any."""
        for fault in get_args(Fault):
            u -= getattr(self, fault)
            if u < 0:
                name: Fault = fault
                return name
        return None


class Faulty:
    """An adapter whose calls go wrong.

    What becomes of a call depends on its prompt, its sampling seed, and how often it was made
    before: not on the order in which sessions are served.

    Parameters
    ----------
    adapter
        Who answers otherwise.
    faults
        How often calls go wrong.
    seed
        Of the chances.
    script
        Instead of chance: the fault of each call in the order of the calls, None for none; after
        its end nothing goes wrong.
    retry_after
        Seconds that a provider asks to wait, where it does.
    """

    def __init__(
        self,
        adapter: Adapter,
        faults: Faults | None = None,
        seed: int = 0,
        *,
        script: Iterable[Fault | None] | None = None,
        retry_after: float = 1.0,
    ):
        self.adapter = adapter
        self.faults = faults or Faults()
        self.seed = seed
        self.retry_after = retry_after
        self.model = adapter.model
        self.provider = adapter.provider
        self.base_url = adapter.base_url
        self.key_variable = key_variable_of(adapter)
        self._script = None if script is None else list(script)
        for fault in self._script or ():
            if fault is not None and fault not in get_args(Fault):
                raise ValueError(unknown("fault", fault, get_args(Fault)))
        self._asked: dict[tuple[str, int], int] = {}
        self._calls = 0

    @property
    def capabilities(self) -> Capabilities:
        """Those of the adapter."""
        return self.adapter.capabilities

    async def complete(self, prompt: Prompt, *, settings: Sampling) -> Reply:
        """Ask once, if nothing goes wrong."""
        fault = self._fault(prompt, settings)
        if fault == "rate_limited":
            raise RateLimited("called too often (429)")
        if fault == "told_to_wait":
            raise RateLimited("called too often (429)", self.retry_after)
        if fault == "failed":
            raise ServerFailed("the server failed (500)", charged=None)
        if fault == "timed_out":
            raise Unreachable("no answer in time", charged=None)
        reply = await self.adapter.complete(prompt, settings=settings)
        if fault == "cut_off":
            raise Unreachable("the connection broke", charged=None)
        if fault == "unreadable":
            raw = json.dumps({"text": reply.text})[:-2]
            raise UnreadableReply("an answer is JSON; it breaks off", raw, charged=True)
        if fault == "garbage":
            return replace(reply, text=_GARBAGE, raw=_GARBAGE)
        if fault == "empty":
            return replace(reply, text="", raw="")
        if fault == "truncated":
            half = reply.text[: len(reply.text) // 2]
            return replace(reply, text=half, raw=half, finish_reason="length")
        return reply

    async def close(self) -> None:
        """Close the adapter."""
        await self.adapter.close()

    def _fault(self, prompt: Prompt, settings: Sampling) -> Fault | None:
        self._calls += 1
        if self._script is not None:
            return self._script[self._calls - 1] if self._calls <= len(self._script) else None
        call = (prompt.hash, settings.seed or 0)
        before = self._asked.get(call, 0)
        self._asked[call] = before + 1
        part = int(prompt.hash[:_HEX_DIGITS], 16)
        return self.faults.strike(session_stream(self.seed, part, call[1], before).random())
