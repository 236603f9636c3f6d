"""Batches of Anthropic: requests in one body, and a file of results."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from tempfile import TemporaryFile
from typing import Any, BinaryIO

from knownminds.llm_adapters.adapter import Sampling
from knownminds.llm_adapters.providers.anthropic import Anthropic

from .calling import call
from .contract import (
    CLOCKS,
    MOST_BYTES,
    TIMEOUT,
    Asked,
    Came,
    Item,
    Limits,
    Standing,
    Undecided,
    not_answered,
    read_result,
)

# The status that an error has with a single call.
_STATUS = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "timeout_error": 504,
    "overloaded_error": 529,
}


class AnthropicBatches:
    """Batches of an Anthropic model.

    They bear no name: one is known by the names of its requests, which are only told with the
    results. So a batch of the right time and size is waited for before it can be said whose it is.
    """

    limits = Limits(100_000, 250 * 10**6)

    def __init__(self, adapter: Anthropic):
        self._adapter = adapter
        self._client = adapter.client(TIMEOUT, MOST_BYTES)

    def item(self, asked: Asked) -> Item:
        """Return a request as it stands in a batch."""
        return {
            "custom_id": asked.name,
            "params": self._adapter.body(asked.prompt, asked.settings),
        }

    async def submit(self, name: str, items: Sequence[Item]) -> str:
        """Submit a batch once; return its id."""
        requests: Any = items

        async def ask() -> str:
            return (await self._client.messages.batches.create(requests=requests)).id

        return await call(self._adapter, ask)

    async def find(
        self, name: str, n: int, between: tuple[float, float], known: Collection[str]
    ) -> str | None:
        """Return the id of the batch whose requests bear this name, None if there is none."""
        first, last = between[0] - CLOCKS, between[1] + TIMEOUT + CLOCKS

        async def ask() -> list[tuple[str, bool]]:
            found = []
            async for batch in self._client.messages.batches.list(limit=100):  # the latest first
                began = batch.created_at.timestamp()
                if began < first:
                    break
                told = batch.request_counts
                size = told.processing + told.succeeded + told.errored + told.canceled
                size += told.expired
                if began <= last and size == n and batch.id not in known:
                    found.append((batch.id, batch.processing_status == "ended"))
            return found

        candidates = await call(self._adapter, ask)
        for id, over in candidates:
            if over and await self._bears(id, name):
                return id
        if any(not over for _, over in candidates):
            raise Undecided("A batch of the same size is under way, which may be this one.")
        return None

    async def _bears(self, id: str, name: str) -> bool:
        with TemporaryFile() as file:
            await self.fetch(id, file)
            file.seek(0)
            try:
                line = json.loads(file.readline())
                return str(line["custom_id"]).startswith(name)
            except (ValueError, LookupError, TypeError):
                return False

    async def look(self, id: str) -> Standing:
        """Tell where a batch stands."""

        async def ask() -> Standing:
            batch = await self._client.messages.batches.retrieve(id)
            counts = batch.request_counts
            ended = counts.succeeded + counts.errored + counts.canceled + counts.expired
            return Standing(batch.processing_status == "ended", ended, word=batch.processing_status)

        return await call(self._adapter, ask)

    async def fetch(self, id: str, into: BinaryIO) -> None:
        """Write the results of a batch."""

        async def ask() -> None:
            results = self._client.messages.batches.with_streaming_response.results(id)
            async with results as response:
                async for part in response.iter_bytes():
                    into.write(part)

        await call(self._adapter, ask)

    def read(self, line: dict[str, Any], settings: Sampling) -> Came:
        """Read a line of the results."""
        name, result = str(line["custom_id"]), line["result"]
        if result["type"] == "succeeded":
            body = json.dumps(result["message"], ensure_ascii=False)
            return read_result(name, self._adapter.read, body, "")
        raw = json.dumps(result, ensure_ascii=False)
        if result["type"] != "errored":
            return name, not_answered(str(result["type"]), raw)
        error = result["error"]
        kind = str(error.get("error", error).get("type"))
        failure = self._adapter.failed(_STATUS.get(kind, 500), json.dumps(error), settings)
        failure.charged = False
        return name, failure

    async def close(self) -> None:
        """Give back the connections."""
        await self._client.close()
