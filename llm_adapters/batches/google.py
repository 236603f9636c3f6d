"""Batches of Google: a file of requests, and a file of results."""

from __future__ import annotations

import io
import json
from collections.abc import Collection, Sequence
from typing import Any, BinaryIO

from google.genai import types

from knownminds.llm_adapters.adapter import Sampling
from knownminds.llm_adapters.providers.google import Google

from .calling import call
from .contract import (
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

_OVER = ("SUCCEEDED", "PARTIALLY_SUCCEEDED", "FAILED", "CANCELLED", "EXPIRED")
# The status that a code of gRPC has with a single call.
_STATUS = {3: 400, 5: 404, 7: 403, 8: 429, 9: 400, 14: 503, 16: 401}


class GoogleBatches:
    """Batches of a Gemini model; the name of each is its display name.

    Requests go in a file, with a key each: answers to requests within the call itself have come
    back in another order and without what tells them apart (googleapis/python-genai, issue 1909).
    """

    limits = Limits(50_000, 10**9)  # 2 GB are taken; no number of requests is told

    def __init__(self, adapter: Google):
        self._adapter = adapter
        self._client, self._http = adapter.client(TIMEOUT, MOST_BYTES)

    def item(self, asked: Asked) -> Item:
        """Return a request as it stands in a batch."""
        return {"key": asked.name, "request": self._adapter.body(asked.prompt, asked.settings)}

    async def submit(self, name: str, items: Sequence[Item]) -> str:
        """Submit a batch once; return its id."""
        lines = io.BytesIO("".join(f"{json.dumps(item)}\n" for item in items).encode())

        async def ask() -> str:
            file = await self._client.aio.files.upload(
                file=lines, config=types.UploadFileConfig(display_name=name, mime_type="jsonl")
            )
            job = await self._client.aio.batches.create(
                model=self._adapter.model,
                src=file.name or "",
                config=types.CreateBatchJobConfig(display_name=name),
            )
            return job.name or ""

        return await call(self._adapter, ask)

    async def find(
        self, name: str, n: int, between: tuple[float, float], known: Collection[str]
    ) -> str | None:
        """Return the id of the batch with this name, None if there is none."""

        async def ask() -> str | None:
            config = types.ListBatchJobsConfig(page_size=100)
            async for job in await self._client.aio.batches.list(config=config):
                if job.display_name == name:
                    return job.name
            return None

        return await call(self._adapter, ask)

    async def look(self, id: str) -> Standing:
        """Tell where a batch stands."""
        word = (await self._job(id))[0]
        trouble = "no reason is told" if word == "FAILED" else ""
        return Standing(word in _OVER, trouble=trouble, word=word.lower())

    async def fetch(self, id: str, into: BinaryIO) -> None:
        """Write the results of a batch; one that has expired or was cancelled may have none."""
        file = (await self._job(id))[1]

        async def ask() -> None:
            into.write(await self._client.aio.files.download(file=file))

        if file:
            await call(self._adapter, ask)

    async def _job(self, id: str) -> tuple[str, str]:
        """Return the word for where a batch stands, and the file of its results."""

        async def ask() -> tuple[str, str]:
            job = await self._client.aio.batches.get(name=id)
            word = "" if job.state is None else str(job.state.value).removeprefix("JOB_STATE_")
            return word, (job.dest.file_name or "") if job.dest else ""

        return await call(self._adapter, ask)

    def read(self, line: dict[str, Any], settings: Sampling) -> Came:
        """Read a line of the results."""
        name, error = str(line["key"]), line.get("error")
        if "response" in line:
            body = json.dumps(line["response"], ensure_ascii=False)
            return read_result(name, self._adapter.read, body, settings)
        if not error:
            return name, not_answered("no response", json.dumps(line))
        code = error.get("code")
        status = _STATUS.get(code, code if type(code) is int and 400 <= code < 600 else 500)
        failure = self._adapter.failed(status, json.dumps({"error": error}), settings)
        failure.charged = False
        return name, failure

    async def close(self) -> None:
        """Give back the connections."""
        await self._adapter.give_back(self._client, self._http)
