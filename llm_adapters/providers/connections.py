"""Connections of the HTTP client, on asyncio's own, that give an answer away as it is read."""

from __future__ import annotations

import asyncio
import re
import select
import ssl
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, cast

import httpcore2

from knownminds.llm_adapters.wire import Keep, keeper

from .endpoint import MOST_BYTES

_MOST_HELD = 2**18  # bytes that wait to be read before the other side is made to wait
_MOST_KEPT = MOST_BYTES + 2**16  # with the head
_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*(\d+)", re.IGNORECASE)
_HEAD_ENDS, _LAST_CHUNK = b"\r\n\r\n", b"0\r\n\r\n"

Errors = dict[type[Exception], type[Exception]]
_CONNECTING: Errors = {TimeoutError: httpcore2.ConnectTimeout, OSError: httpcore2.ConnectError}
_READING: Errors = {TimeoutError: httpcore2.ReadTimeout, OSError: httpcore2.ReadError}
_WRITING: Errors = {TimeoutError: httpcore2.WriteTimeout, OSError: httpcore2.WriteError}


class _Answer:
    """An answer as it comes, given away once it is whole.

    Whether it is, is told by its length or its last chunk. Where that errs, what is given away
    cannot be read again, and more is given away when more has come.
    """

    def __init__(self, keep: Keep):
        self._keep = keep
        self.came = bytearray()
        self._due: int | None = None
        self._body = 0  # where it begins

    def add(self, data: bytes) -> None:
        self.came += data
        if self._is_whole() and self.came.startswith(b"HTTP/1.1 2"):
            self._keep(bytes(self.came))

    def _is_whole(self) -> bool:
        came = self.came
        if not self._body:
            end = came.find(_HEAD_ENDS)
            if end < 0 or len(came) > _MOST_KEPT:
                return False
            self._body = end + len(_HEAD_ENDS)
            found = _LENGTH.search(came, 0, end + 2)
            self._due = self._body + int(found[1]) if found else None
        if self._due is not None:
            return len(came) >= self._due
        return came.endswith(_LAST_CHUNK)


class _Held(asyncio.Protocol):
    """What has come through a connection and was not yet read."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport
        self.answer: _Answer | None = None
        self.held = bytearray()
        self.over = False
        self.broken: Exception | None = None
        self._paused = False
        self._moved: asyncio.Future[None] | None = None
        self._room = asyncio.Event()
        self._room.set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        # Before anything else, so that a kill does not take it away.
        if self.answer is not None:
            self.answer.add(data)
            if len(self.answer.came) > _MOST_KEPT:
                self.answer = None
        self.held += data
        if len(self.held) > _MOST_HELD and not self._paused:
            self._paused = True
            self.transport.pause_reading()
        self._move()

    def eof_received(self) -> None:
        self.over = True
        self._move()

    def connection_lost(self, error: Exception | None) -> None:
        self.over, self.broken = True, error
        self._room.set()
        self._move()

    def pause_writing(self) -> None:
        self._room.clear()

    def resume_writing(self) -> None:
        self._room.set()

    async def read(self, most: int) -> bytes:
        while not (self.held or self.over):
            self._moved = asyncio.get_running_loop().create_future()
            await self._moved
        if self.broken is not None and not self.held:
            raise self.broken
        data = bytes(self.held[:most])
        del self.held[:most]
        if self._paused and len(self.held) <= _MOST_HELD // 2:
            self._paused = False
            self.transport.resume_reading()
        return data

    async def write(self, data: bytes) -> None:
        if self.over:
            raise self.broken or ConnectionResetError("the connection was closed")
        self.transport.write(data)
        await self._room.wait()

    def _move(self) -> None:
        if self._moved is not None and not self._moved.done():
            self._moved.set_result(None)


class _Connection(httpcore2.AsyncNetworkStream):
    """A connection as the HTTP client wants it."""

    def __init__(self, held: _Held):
        self._held = held

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        with _told_as(_READING):
            async with asyncio.timeout(timeout):
                return await self._held.read(max_bytes)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        held = self._held
        keep = keeper()
        if keep is None:
            held.answer = None
        elif held.answer is None or held.answer.came:  # not for each part of a request
            held.answer = _Answer(keep)
        with _told_as(_WRITING):
            async with asyncio.timeout(timeout):
                await held.write(buffer)

    async def aclose(self) -> None:
        self._held.transport.abort()
        await asyncio.sleep(0)  # for the socket to be closed

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> _Connection:
        held = self._held
        loop = asyncio.get_running_loop()
        try:
            with _told_as(_CONNECTING):
                async with asyncio.timeout(timeout):
                    transport = await loop.start_tls(
                        held.transport, held, ssl_context, server_hostname=server_hostname
                    )
        except BaseException:
            await self.aclose()
            raise
        assert transport is not None
        held.transport = transport
        return self

    def get_extra_info(self, info: str) -> Any:
        transport = self._held.transport
        if info == "is_readable":
            return self._held.over or bool(self._held.held) or _readable(transport)
        names = {"client_addr": "sockname", "server_addr": "peername"}
        return transport.get_extra_info(names.get(info, info))


class Connections(httpcore2.AsyncNetworkBackend):
    """Opens connections over TCP."""

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> _Connection:
        """Open a connection; the first of a host's addresses that answers is taken."""
        loop = asyncio.get_running_loop()
        with _told_as(_CONNECTING):
            async with asyncio.timeout(timeout):
                _, held = await loop.create_connection(
                    _Held,
                    host,
                    port,
                    local_addr=(local_address, 0) if local_address else None,
                    happy_eyeballs_delay=0.25,
                )
        for option in socket_options or ():
            held.transport.get_extra_info("socket").setsockopt(*option)
        return _Connection(held)

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)


@contextmanager
def _told_as(errors: Errors) -> Iterator[None]:
    """Raise the HTTP client's own errors for those of the system."""
    try:
        yield
    except OSError as error:
        told = next(told for kind, told in errors.items() if isinstance(error, kind))
        raise told(error) from error


def _readable(transport: asyncio.Transport) -> bool:
    """Tell whether something waits in the socket: on an idle connection, its end."""
    socket = transport.get_extra_info("socket")
    if transport.is_closing() or socket is None:
        return True
    if not hasattr(select, "poll"):
        return bool(select.select([socket.fileno()], [], [], 0)[0])
    poll = select.poll()
    poll.register(socket.fileno(), select.POLLIN)
    return bool(poll.poll(0))
