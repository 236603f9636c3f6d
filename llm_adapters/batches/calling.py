"""What can go wrong when a provider is asked about a batch."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import httpx2

from knownminds.llm_adapters.adapter import Sampling, ServerFailed, Unreachable
from knownminds.llm_adapters.providers.endpoint import Caller

from .contract import TIMEOUT

T = TypeVar("T")

_PLAIN = Sampling()  # no setting is to blame for what becomes of a whole batch


async def call(adapter: Caller, ask: Callable[[], Awaitable[T]]) -> T:
    """Wait for what a package is asked about a batch; all that fails is an `AdapterError`."""
    try:
        return await adapter.guarded(ask, _PLAIN, timeout=TIMEOUT)
    except httpx2.HTTPError as error:  # while a body is read bit by bit
        name = type(error).__name__
        raise Unreachable(f"What is told of a batch broke off: {name}.") from None
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        # An answer with status 200 that is no batch; the packages do not look.
        told = f"What is told of a batch cannot be read: {type(error).__name__}: {error}"[:200]
        raise ServerFailed(told) from None
