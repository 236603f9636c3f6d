"""Batches behind one contract: what is submitted, how it is found again, what comes of it."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, NamedTuple, Protocol

from knownminds.environments import Prompt
from knownminds.llm_adapters.adapter import AdapterError, Reply, Sampling, ServerFailed, TryAgain

TIMEOUT = 600.0  # seconds for what is as large as a batch
MOST_BYTES = 2**31  # of the results of a batch
CLOCKS = 600.0  # seconds that a provider's clock may differ from ours


class Asked(NamedTuple):
    """One request of a batch; its name is unique and has letters, digits, - and _, at most 64."""

    name: str
    prompt: Prompt
    settings: Sampling


Item = dict[str, Any]  # a request as a provider wants it
Came = tuple[str, Reply | AdapterError]  # the name of a request, and what came of it


@dataclass(frozen=True)
class Limits:
    """What a batch holds at most.

    Parameters
    ----------
    requests : how many requests
    bytes : all of them as JSON
    """

    requests: int
    bytes: int


@dataclass(frozen=True)
class Standing:
    """Where a batch stands.

    Parameters
    ----------
    over : whether nothing more comes
    done : requests that have come to an end, as far as the provider says; None if it does not
    trouble : why it was not taken as a whole, so that no request was answered; else empty
    word : the provider's word for where it stands
    """

    over: bool
    done: int | None = None
    trouble: str = ""
    word: str = ""


class Undecided(TryAgain):
    """Whether a batch is the one that is looked for will be known later."""


class Batches(Protocol):
    """What an adapter's provider does with batches.

    Every method may raise an `AdapterError`, as `Adapter.complete` does.
    """

    @property
    def limits(self) -> Limits:
        """What a batch holds at most."""

    def item(self, asked: Asked) -> Item:
        """Return a request as it stands in a batch."""

    async def submit(self, name: str, items: Sequence[Item]) -> str:
        """Submit a batch once, in a way that `find` finds it again; return the provider's id."""

    async def find(
        self, name: str, n: int, between: tuple[float, float], known: Collection[str]
    ) -> str | None:
        """Return the id of a batch that was submitted under a name, None if there is none.

        Parameters
        ----------
        n
            How many requests it has.
        between
            Seconds since 1970: when it was submitted first and last.
        known
            Ids of batches that are others.
        """

    async def look(self, id: str) -> Standing:
        """Tell where a batch stands."""

    async def fetch(self, id: str, into: BinaryIO) -> None:
        """Write the results of a batch that is over, a line of JSON for each, in any order."""

    def read(self, line: dict[str, Any], settings: Sampling) -> Came:
        """Read a line of the results."""

    async def close(self) -> None:
        """Give back the connections."""


def size_of(item: Item) -> int:
    """Return the bytes that a request has in a batch, at most."""
    return len(json.dumps(item)) + 2


def not_answered(word: str, raw: str = "") -> AdapterError:
    """Return what it means that a batch has ended before one of its requests was answered."""
    return ServerFailed(
        f"The batch ended before this request was answered ({word}).", charged=False, raw=raw
    )


def read_result(name: str, read: Any, *given: Any) -> Came:
    """Return what came of a request; what cannot be read is an error, as with a single call."""
    try:
        return name, read(*given)
    except AdapterError as error:
        return name, error
