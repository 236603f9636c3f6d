"""Answers as they come from the network, for who keeps them, and as they are read from there.

An answer may have been paid for as soon as it is on its way. Whoever asks can have its bytes as
they come, before anything is made of them, and can have bytes that were kept read as if they
came now. Both concern the calls of the task that asks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Keep = Callable[[bytes], None]

_KEEP: ContextVar[Keep | None] = ContextVar("keep", default=None)
_CAME: ContextVar[bytes | None] = ContextVar("came", default=None)


@contextmanager
def kept_by(keep: Keep) -> Iterator[None]:
    """Give every whole answer (status 2xx, head and body) to `keep` in the moment it is read.

    Adapters that open no connection of their own give nothing.
    """
    token = _KEEP.set(keep)
    try:
        yield
    finally:
        _KEEP.reset(token)


@contextmanager
def as_if_it_came(answer: bytes) -> Iterator[None]:
    """Let what is asked be answered by bytes that were kept; nothing is sent."""
    token = _CAME.set(answer)
    try:
        yield
    finally:
        _CAME.reset(token)


def keeper() -> Keep | None:
    """Return who keeps answers here; None if nobody does."""
    return _KEEP.get()


def what_came() -> bytes | None:
    """Return the kept answer that is to be read here; None if one is to be asked for."""
    return _CAME.get()
