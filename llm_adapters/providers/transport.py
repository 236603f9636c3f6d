"""The HTTP client of the adapters: no proxies, no redirects, and no answer without bound."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import httpcore2
import httpx2

from knownminds.llm_adapters.wire import what_came

from .connections import Connections
from .endpoint import MOST_BYTES

# What is packed unpacks to a thousand times its bytes, so less of it is taken.
_PACKED = 128


class TooLong(httpx2.ReadError):
    """A server sends more than an answer can have."""


class _Bounded(httpx2.AsyncByteStream):
    def __init__(self, stream: Any, most: int):
        self._stream, self._left = stream, most

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._stream:
            self._left -= len(part)
            if self._left < 0:
                raise TooLong("more than an answer can have")
            yield part

    async def aclose(self) -> None:
        await self._stream.aclose()


class _Transport(httpx2.AsyncHTTPTransport):
    """Reads no more of a body than `most` bytes, whatever its server announces.

    What is read can be kept, and what was kept can be read, see `wire`.
    """

    def __init__(self, most: int, context: ssl.SSLContext, came: bytes | None = None):
        super().__init__(verify=context)
        self._most, self._context = most, context
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=context,
            max_connections=1000,
            max_keepalive_connections=100,
            keepalive_expiry=5.0,
            network_backend=(Connections() if came is None else httpcore2.AsyncMockBackend([came])),
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        request.headers["accept-encoding"] = "identity"
        came = what_came()
        if came is None:
            response = await super().handle_async_request(request)
        else:  # nothing is sent
            kept = _Transport(self._most, self._context, came)
            response = await httpx2.AsyncHTTPTransport.handle_async_request(kept, request)
        plain = response.headers.get("content-encoding", "identity") == "identity"
        response.stream = _Bounded(response.stream, self._most if plain else self._most // _PACKED)
        return response


def client(sign: Callable[[Any], Awaitable[None]], most: int = MOST_BYTES) -> httpx2.AsyncClient:
    """Return a client whose requests are signed as they leave; bodies have at most `most` bytes."""
    return httpx2.AsyncClient(
        transport=_Transport(most, httpx2.create_ssl_context(trust_env=False)),
        trust_env=False,
        follow_redirects=False,
        event_hooks={"request": [sign]},
    )
