"""Batches of OpenAI: a file of requests, and files of results and errors."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Any, BinaryIO, Final

from knownminds.llm_adapters.adapter import Sampling
from knownminds.llm_adapters.providers.openai import OpenAI

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
    not_answered,
    read_result,
)

_KEY = "knownminds"  # in the metadata of a batch: the name it was submitted under
_PATH: Final = "/v1/chat/completions"
_GOING = ("validating", "in_progress", "finalizing", "cancelling")


class OpenAIBatches:
    """Batches of an OpenAI model; the name of each stands in its metadata."""

    limits = Limits(50_000, 200 * 10**6)

    def __init__(self, adapter: OpenAI):
        self._adapter = adapter
        self._client = adapter.client(TIMEOUT, MOST_BYTES)

    def item(self, asked: Asked) -> Item:
        """Return a request as it stands in a batch."""
        body = self._adapter.body(asked.prompt, asked.settings)
        return {"custom_id": asked.name, "method": "POST", "url": _PATH, "body": body}

    async def submit(self, name: str, items: Sequence[Item]) -> str:
        """Submit a batch once; return its id."""
        lines = "".join(f"{json.dumps(item)}\n" for item in items).encode()

        async def ask() -> str:
            file = await self._client.files.create(file=(f"{name}.jsonl", lines), purpose="batch")
            batch = await self._client.batches.create(
                input_file_id=file.id,
                endpoint=_PATH,
                completion_window="24h",
                metadata={_KEY: name},
            )
            return batch.id

        return await call(self._adapter, ask)

    async def find(
        self, name: str, n: int, between: tuple[float, float], known: Collection[str]
    ) -> str | None:
        """Return the id of the batch with this name, None if there is none."""

        async def ask() -> str | None:
            async for batch in self._client.batches.list(limit=100):  # the latest first
                if (batch.metadata or {}).get(_KEY) == name:
                    return batch.id
                if batch.created_at < between[0] - CLOCKS:
                    break
            return None

        return await call(self._adapter, ask)

    async def look(self, id: str) -> Standing:
        """Tell where a batch stands."""

        async def ask() -> Standing:
            batch = await self._client.batches.retrieve(id)
            counts = batch.request_counts
            found = (batch.errors.data or []) if batch.errors else []
            told = "; ".join(error.message or error.code or "" for error in found)
            return Standing(
                batch.status not in _GOING,
                counts.completed + counts.failed if counts else None,
                (told or "no reason is told") if batch.status == "failed" else "",
                batch.status,
            )

        return await call(self._adapter, ask)

    async def fetch(self, id: str, into: BinaryIO) -> None:
        """Write the results of a batch, then its errors."""

        async def ask() -> None:
            batch = await self._client.batches.retrieve(id)
            for file in filter(None, (batch.output_file_id, batch.error_file_id)):
                content = self._client.files.with_streaming_response.content(file)
                async with content as response:
                    async for part in response.iter_bytes():
                        into.write(part)
                into.write(b"\n")

        await call(self._adapter, ask)

    def read(self, line: dict[str, Any], settings: Sampling) -> Came:
        """Read a line of the results."""
        name, error, response = str(line["custom_id"]), line.get("error"), line.get("response")
        if not response:
            return name, not_answered(str((error or {}).get("code")), json.dumps(line))
        body = json.dumps(response["body"], ensure_ascii=False)
        if response["status_code"] != 200:
            failure = self._adapter.failed(response["status_code"], body, settings)
            failure.charged = False
            return name, failure
        request_id = str(response.get("request_id") or "")
        return read_result(name, self._adapter.read, body, request_id, settings)

    async def close(self) -> None:
        """Give back the connections."""
        await self._client.close()
