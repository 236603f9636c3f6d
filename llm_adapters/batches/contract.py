"""Batches behind one contract: what is submitted, how it is recognised, what comes of it."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping
from typing import Any, ClassVar, NamedTuple

from knownminds.llm_adapters.adapter import Failed
from knownminds.llm_adapters.providers.http import Http, added, json_object, members_of

TIMEOUT = 600.0  # seconds for what is as large as a batch
MOST_BYTES = 2**31  # of the results of a batch
CLOCKS = 600.0  # seconds that a provider's clock may differ from ours
UNNAMED = "No file of results is named."

Requests = Mapping[str, dict[str, Any]]  # by name: letters, digits, - and _, at most 64
Came = tuple[str, bytes | Failed]  # the name of a request, and what came of it


class Results(NamedTuple):
    """Results of a batch, a line of JSON for each, in any order; and what of them is not there.

    `lack` says in words which file is missing; empty if none is.
    """

    lines: bytes
    lack: str = ""


class BatchStatus(NamedTuple):
    """Where a batch stands.

    Parameters
    ----------
    over : whether nothing more comes
    word : the provider's word for where it stands
    done : requests that have come to an end, as far as the provider says
    trouble : why it was not taken as a whole, so that no request was answered; else empty
    known : whether the word is one that the provider documents; if not, it is not known to be over
    """

    over: bool
    word: str
    done: int = 0
    trouble: str = ""
    known: bool = True


class Batches(ABC):
    """What a provider does with batches; every method that calls it may raise `Failed`.

    `most_requests` and `most_bytes` are how many requests and bytes (JSON) a batch holds at most.
    """

    most_requests: ClassVar[int]
    most_bytes: ClassVar[int]

    def __init__(self, adapter: Http):
        self.adapter = adapter

    @abstractmethod
    async def submit(self, name: str, requests: Requests) -> str:
        """Submit a batch once, in a way that `find` finds it again; return the provider's id."""

    @abstractmethod
    async def find(
        self, name: str, n: int, between: tuple[float, float], known: Collection[str]
    ) -> str | None:
        """Return the id of a batch that was submitted under a name, None if there is none.

        Parameters
        ----------
        n : How many requests it has.
        between : Seconds since 1970: when it was submitted first and last.
        known : Ids of batches that are others.

        Raises
        ------
        Failed : Also of the kind "undecided", if whether it is there will be known later.
        """

    @abstractmethod
    async def look(self, id: str) -> BatchStatus:
        """Say where a batch stands."""

    @abstractmethod
    async def results(self, id: str) -> Results:
        """Return the results of a batch that is over, and what of them is not there."""

    @abstractmethod
    def read(self, line: dict[str, Any]) -> Came:
        """Read a line of the results."""

    async def call(self, method: str, path: str, **sent: Any) -> bytes:
        """Call the provider once, for what is as large as a batch.

        What is looked for and not there may only be late: `Failed` of the kind "gone".
        """
        try:
            return await self.adapter.call(method, path, most=MOST_BYTES, timeout=TIMEOUT, **sent)
        except Failed as error:
            if method != "GET" or error.kind != "model":
                raise
            message, raw = f"{self.adapter} has no {path} (404).", error.raw
        raise Failed(message, "retry", "gone", raw=raw)

    async def ask(self, method: str, path: str, **sent: Any) -> dict[str, Any]:
        """Call the provider once and return the JSON object that it sends."""
        body = await self.call(method, path, **sent)
        try:
            return json_object(body)
        except ValueError:
            start = body[:80].decode(errors="replace")
            message = f"What is said of a batch is a JSON object; {self.adapter} sent {start!r}."
            raise Failed(message, "retry", "batch", raw=body) from None

    async def file(self, path: str, **sent: Any) -> Results:
        """Return the lines of a file of results, or that it is not there."""
        try:
            return Results(await self.call("GET", path, **sent))
        except Failed as error:
            if error.kind != "gone":
                raise
            return Results(b"", str(error))

    def refused(self, name: str, status: int, error: Any) -> Came:
        """Return what it means that a request of a batch was refused with this status."""
        failure = self.adapter.failed(status, json.dumps(error).encode())
        failure.charged = False
        return name, failure


def not_answered(name: str, word: str, line: Any) -> Came:
    """Return what it means that a batch has ended before one of its requests was answered.

    A word for another end than being too late or called off does not say that it was not paid.
    """
    message = f"The batch ended before this request was answered ({word})."
    raw = json.dumps(line).encode()
    unpaid = False if re.search("expired|cancel", word) else None
    return name, Failed(message, "skip", "batch", charged=unpaid, raw=raw)


def counted_in(counts: object, names: Iterable[str]) -> int:
    """Add up the named counts of a batch, which may be texts; 0 if they are not said."""
    return added(*map(members_of(counts).get, names)) or 0


def answer(body: Any) -> bytes:
    """Return the body of an answer as a single call would have brought it."""
    return json.dumps(body).encode()
