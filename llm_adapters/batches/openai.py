"""Batches of OpenAI: a file of requests, and files of results and errors."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

from knownminds.llm_adapters.providers.http import count, members_of

from .contract import (
    CLOCKS,
    UNNAMED,
    Batches,
    BatchStatus,
    Came,
    Requests,
    Results,
    answer,
    counted_in,
    not_answered,
)

_KEY = "knownminds"  # in the metadata of a batch: the name it was submitted under
_PATH = "/v1/chat/completions"
_GOING = ("validating", "in_progress", "finalizing", "cancelling")
_OVER = ("completed", "failed", "expired", "cancelled")


class OpenAIBatches(Batches):
    """Batches of an OpenAI model; the name of each stands in its metadata."""

    most_requests, most_bytes = 50_000, 200 * 10**6

    async def submit(self, name: str, requests: Requests) -> str:
        """Submit a batch once; return its id."""
        call = {"method": "POST", "url": _PATH}
        items = ({"custom_id": key, **call, "body": body} for key, body in requests.items())
        lines = "".join(f"{json.dumps(item)}\n" for item in items).encode()
        file = await self.ask(
            "POST", "/files", data={"purpose": "batch"}, files={"file": (f"{name}.jsonl", lines)}
        )
        batch = {
            "input_file_id": file.get("id"),
            "endpoint": _PATH,
            "completion_window": "24h",
            "metadata": {_KEY: name},
        }
        return str((await self.ask("POST", "/batches", json=batch))["id"])

    async def find(
        self, name: str, n: int, between: tuple[float, float], known: Collection[str]
    ) -> str | None:
        """Return the id of the batch with this name, None if there is none."""
        params: dict[str, Any] = {"limit": 100}
        while True:
            page = await self.ask("GET", "/batches", params=params)  # the latest first
            for batch in page["data"]:
                if (batch.get("metadata") or {}).get(_KEY) == name:
                    return str(batch["id"])
                if batch["created_at"] < between[0] - CLOCKS:
                    return None
            if not (page.get("has_more") and page["data"]):
                return None
            params["after"] = page["data"][-1]["id"]

    async def look(self, id: str) -> BatchStatus:
        """Say where a batch stands."""
        batch = await self.ask("GET", f"/batches/{id}")
        done = counted_in(batch.get("request_counts"), ("completed", "failed"))
        trouble, word = "", batch["status"]
        if word == "failed":
            errors = members_of(batch.get("errors")).get("data") or [batch.get("errors")]
            told = (members_of(error) or {"message": error or ""} for error in errors)
            said = (str(error.get("message") or error.get("code") or "") for error in told)
            trouble = "; ".join(said) or "no reason is given"
        return BatchStatus(word in _OVER, word, done, trouble, word in _GOING + _OVER)

    async def results(self, id: str) -> Results:
        """Return the results of a batch, then its errors, and what of them is not there."""
        batch = await self.ask("GET", f"/batches/{id}")
        files = [batch[name] for name in ("output_file_id", "error_file_id") if batch.get(name)]
        if not files and batch["status"] == "completed":
            return Results(b"", UNNAMED)
        every = [await self.file(f"/files/{file}/content") for file in files]
        lack = " ".join(results.lack for results in every if results.lack)
        return Results(b"\n".join(results.lines for results in every), lack)

    def read(self, line: dict[str, Any]) -> Came:
        """Read a line of the results."""
        name, error, response = str(line["custom_id"]), line.get("error"), line.get("response")
        if not response:
            return not_answered(name, str(members_of(error).get("code") or error), line)
        status = count(response.get("status_code"))
        if status is not None and status >= 300:
            return self.refused(name, status, response["body"])
        return name, answer(response["body"])
