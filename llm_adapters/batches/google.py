"""Batches of Google: a file of requests, and a file of results."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any
from urllib.parse import quote

from knownminds.llm_adapters.providers.http import count, members_of

from .contract import (
    TIMEOUT,
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

_GOING = ("UNSPECIFIED", "PENDING", "QUEUED", "RUNNING", "CANCELLING", "PAUSED", "UPDATING")
_OVER = ("SUCCEEDED", "PARTIALLY_SUCCEEDED", "FAILED", "CANCELLED", "EXPIRED")
# The status that a code of gRPC has with a single call.
_STATUS = {3: 400, 5: 404, 7: 403, 8: 429, 9: 400, 14: 503, 16: 401}


class GoogleBatches(Batches):
    """Batches of a Gemini model; the name of each is its display name.

    Requests go in a file, with a key each. Answers to requests within the call itself have come
    back in another order and without their keys (googleapis/python-genai, issue 1909).
    """

    most_requests, most_bytes = 50_000, 10**9  # 2 GB are taken; no number of requests is shown

    async def submit(self, name: str, requests: Requests) -> str:
        """Submit a batch once; return its id."""
        items = ({"key": key, "request": body} for key, body in requests.items())
        lines = "".join(f"{json.dumps(item)}\n" for item in items).encode()
        file = await self._upload(name, lines)
        batch = {"displayName": name, "inputConfig": {"fileName": file}}
        model = quote(self.adapter.model, safe="")
        path = f"/v1beta/models/{model}:batchGenerateContent"
        return str((await self.ask("POST", path, json={"batch": batch}))["name"])

    async def _upload(self, name: str, lines: bytes) -> str:
        """Upload a file and return its name: the server says where it goes, then it is sent."""
        begin = {
            "x-goog-upload-protocol": "resumable",
            "x-goog-upload-command": "start",
            "x-goog-upload-header-content-length": str(len(lines)),
            "x-goog-upload-header-content-type": "jsonl",
        }
        about = {"file": {"displayName": name, "mimeType": "jsonl"}}
        head, _ = await self.adapter.exchange(
            "POST", "/upload/v1beta/files", json=about, headers=begin, timeout=TIMEOUT
        )
        whole = {"x-goog-upload-offset": "0", "x-goog-upload-command": "upload, finalize"}
        file = await self.ask("POST", head["x-goog-upload-url"], content=lines, headers=whole)
        return str(file["file"]["name"])

    async def find(
        self, name: str, n: int, between: tuple[float, float], known: Collection[str]
    ) -> str | None:
        """Return the id of the batch with this name, None if there is none."""
        params: dict[str, Any] = {"pageSize": 100}
        while True:
            page = await self.ask("GET", "/v1beta/batches", params=params)
            for job in page.get("operations") or ():
                if job["metadata"].get("displayName") == name:
                    return str(job["name"])
            if not page.get("nextPageToken"):
                return None
            params["pageToken"] = page["nextPageToken"]

    async def look(self, id: str) -> BatchStatus:
        """Say where a batch stands."""
        about = (await self.ask("GET", f"/v1beta/{id}"))["metadata"]
        word = about["state"].removeprefix("BATCH_STATE_").removeprefix("JOB_STATE_")
        trouble = "no reason is given" if word == "FAILED" else ""
        names = ("successfulRequestCount", "failedRequestCount")
        done = counted_in(about.get("batchStats"), names)
        return BatchStatus(word in _OVER, word.lower(), done, trouble, word in _GOING + _OVER)

    async def results(self, id: str) -> Results:
        """Return the results of a batch; one that has expired or was cancelled may have none."""
        batch = await self.ask("GET", f"/v1beta/{id}")
        output = batch["metadata"].get("output") or batch.get("response") or {}
        if not (file := output.get("responsesFile")):
            succeeded = batch["metadata"]["state"].endswith("SUCCEEDED")
            return Results(b"", UNNAMED if succeeded else "")
        return await self.file(f"/v1beta/{file}:download", params={"alt": "media"})

    def read(self, line: dict[str, Any]) -> Came:
        """Read a line of the results."""
        name, error = str(line["key"]), line.get("error")
        if "response" in line:
            return name, answer(line["response"])
        if not error:
            return not_answered(name, "no response", line)
        code = count(members_of(error).get("code"))
        status = _STATUS.get(code or 0, code if code and 400 <= code < 600 else 500)
        return self.refused(name, status, {"error": error})
