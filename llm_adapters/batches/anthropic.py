"""Batches of Anthropic: requests in one body, and a file of results."""

from __future__ import annotations

import json
from collections.abc import Collection
from datetime import datetime
from typing import Any

from knownminds.llm_adapters.adapter import Failed
from knownminds.llm_adapters.providers.http import members_of

from .contract import (
    CLOCKS,
    TIMEOUT,
    Batches,
    BatchStatus,
    Came,
    Requests,
    Results,
    answer,
    counted_in,
    not_answered,
)

_PATH = "/v1/messages/batches"
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
_GOING, _OVER = ("in_progress", "canceling"), "ended"
_ENDS = ("succeeded", "errored", "canceled", "expired")


class AnthropicBatches(Batches):
    """Batches of an Anthropic model.

    They bear no name: one is known by the names of its requests, which are only said with the
    results. So a batch of the right time and size is waited for before it can be said whose it is.
    """

    most_requests, most_bytes = 100_000, 250 * 10**6

    async def submit(self, name: str, requests: Requests) -> str:
        """Submit a batch once; return its id."""
        items = [{"custom_id": key, "params": body} for key, body in requests.items()]
        return str((await self.ask("POST", _PATH, json={"requests": items}))["id"])

    async def find(
        self, name: str, n: int, between: tuple[float, float], known: Collection[str]
    ) -> str | None:
        """Return the id of the batch whose requests bear this name, None if there is none."""
        first, last = between[0] - CLOCKS, between[1] + TIMEOUT + CLOCKS
        undecided = False
        for batch in await self._since(first):
            began, counts = _began(batch), batch["request_counts"]
            size = counts["processing"] + sum(counts[end] for end in _ENDS)
            if began > last or size != n or batch["id"] in known:
                continue
            if batch["processing_status"] != _OVER:
                undecided = True
            elif await self._bears(batch["id"], name):
                return str(batch["id"])
        if undecided:
            message = "A batch of the same size is under way, which may be this one."
            raise Failed(message, "retry", "undecided")
        return None

    async def _since(self, first: float) -> list[dict[str, Any]]:
        """Return the batches that began at this time or later."""
        batches: list[dict[str, Any]] = []
        params: dict[str, Any] = {"limit": 100}
        while True:
            page = await self.ask("GET", _PATH, params=params)  # the latest first
            batches += [batch for batch in page["data"] if _began(batch) >= first]
            if not (page.get("has_more") and page["data"]) or _began(page["data"][-1]) < first:
                return batches
            params["after_id"] = page["data"][-1]["id"]

    async def _bears(self, id: str, name: str) -> bool:
        line = (await self.results(id)).lines.partition(b"\n")[0]
        try:
            return str(json.loads(line)["custom_id"]).startswith(name)
        except (ValueError, LookupError, TypeError):
            message = f"The results of batch {id} are not there yet; it may be this one."
            raise Failed(message, "retry", "undecided") from None

    async def look(self, id: str) -> BatchStatus:
        """Say where a batch stands."""
        batch = await self.ask("GET", f"{_PATH}/{id}")
        done = counted_in(batch.get("request_counts"), _ENDS)
        word = batch["processing_status"]
        return BatchStatus(word == _OVER, word, done, known=word in (*_GOING, _OVER))

    async def results(self, id: str) -> Results:
        """Return the results of a batch, or that they are not there."""
        return await self.file(f"{_PATH}/{id}/results")

    def read(self, line: dict[str, Any]) -> Came:
        """Read a line of the results."""
        name, result = str(line["custom_id"]), line["result"]
        if result["type"] == "succeeded":
            return name, answer(result["message"])
        if result["type"] != "errored":
            return not_answered(name, str(result["type"]), result)
        error = result.get("error")
        told = members_of(error)
        kind = str((members_of(told.get("error")) or told).get("type"))
        return self.refused(name, _STATUS.get(kind, 500), error)


def _began(batch: dict[str, Any]) -> float:
    return datetime.fromisoformat(batch["created_at"]).timestamp()
