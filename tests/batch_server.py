"""The fault server with the batches of three providers: submitted, looked at, read, and broken.

It keeps what a batch asks as calls of the fault server, so that each request that is taken has a
line in the bill. What becomes of a submission and of each request goes by script.
"""

from __future__ import annotations

import json
import random
import re
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs, urlsplit

from fault_server import Call, FaultServer, Handler

# What becomes of a submission: whether a batch is made of it, and the status that is answered;
# none for a connection that is dropped.
SUBMISSIONS: dict[str, tuple[bool, int | None]] = {
    "ok": (True, 200),
    "made_500": (True, 500),
    "made_drop": (True, None),
    "made_hang": (True, None),  # nothing is answered for a long time
    "hang": (False, None),
    "400": (False, 400),
    "429": (False, 429),
    "500": (False, 500),
    "drop": (False, None),
    "html": (False, 200),
    "void": (True, 200),  # taken, and then refused as no batch
    "expired": (True, 200),  # ends with only half of its requests begun
}
_PAGE = 2  # batches on a page of a list


class Broken(Exception):  # noqa: N818
    """A look at a batch is answered with a 500."""


@dataclass
class Made:
    """A batch."""

    id: str
    name: str
    began: float
    calls: dict[str, Call]
    fate: str = "ok"
    looks: int = 0


@dataclass(eq=False, kw_only=True)
class BatchServer(FaultServer):
    """Providers that take batches."""

    submissions: Sequence[str] = ()  # what becomes of each, in order; "ok" when it is used up
    looks: int = 1  # that see a batch under way before it is over
    others: Sequence[int] = ()  # requests of each batch of somebody else that is there already
    clock: Callable[[], float] = time.time

    def __post_init__(self) -> None:
        super().__post_init__()
        self.tried = self.fetched = 0  # submissions, and how often results were sent
        self.files: dict[str, bytes] = {}
        self.on_look: Callable[[Made], None] | None = None
        self.batches: list[Made] = []
        for n in self.others:
            keys: Any = dict.fromkeys(map(str, range(n)))
            self.batches.append(Made(f"other-{n}", "other", self.clock(), keys))

    def handler(self) -> type[Handler]:
        """Return what takes the calls."""
        return _BatchHandler

    @property
    def ours(self) -> list[Made]:
        """The batches that were submitted."""
        return [batch for batch in self.batches if batch.name != "other"]

    @property
    def counts(self) -> Counter[str]:
        """How often each prompt was taken."""
        return Counter(call.prompt for batch in self.ours for call in batch.calls.values())

    def submit(
        self,
        wire: str,
        name: str,
        requests: Sequence[tuple[str, str, dict[str, Any]]],
        headers: Any,
    ) -> tuple[Made | None, str]:
        """Make a batch, unless that fails."""
        fate = self.submissions[self.tried] if self.tried < len(self.submissions) else "ok"
        self.tried += 1
        assert len({key for key, _, _ in requests}) == len(requests)
        if not SUBMISSIONS[fate][0]:
            return None, fate
        calls = {
            key: self.take(wire, model, body, headers)
            for key, model, body in requests
            if fate != "void"
        }
        made = Made(f"batch-{len(self.batches)}", name, self.clock(), calls, fate)
        if fate == "expired":
            for key in list(calls)[len(calls) // 2 :]:
                calls[key] = replace(calls[key], fault="expired", charged=False)
        self.batches.append(made)
        return made, fate

    def look(self, batch: Made) -> bool:
        """Tell whether a batch is over; every look brings it nearer."""
        if self.on_look is not None:
            self.on_look(batch)
        batch.looks += 1
        return batch.looks > self.looks

    def lines(self, batch: Made) -> list[tuple[str, Call]]:
        """Return the results of a batch's requests, in another order."""
        calls = {} if batch.name == "other" else batch.calls
        lines = [(key, call) for key, call in calls.items() if call.fault != "missing"]
        random.Random(7).shuffle(lines)
        return lines

    def named(self, id: str) -> Made:
        """Return a batch."""
        return next(batch for batch in self.batches if batch.id == id)


def _error(call: Call) -> tuple[int, str]:
    status = int(call.fault[:3])
    return status, {400: "invalid_request_error", 429: "rate_limit_error"}.get(status, "api_error")


def _words(call: Call) -> str:
    return "Unsupported parameter: 'seed'." if call.fault == "400_seed" else "no"


class _BatchHandler(Handler):
    @property
    def _provider(self) -> BatchServer:
        provider: Any = self.server.provider
        return provider

    def posted(self, raw: bytes) -> None:
        path = urlsplit(self.path).path
        if path == "/v1/files":
            self._send(200, self._filed(_uploaded(raw)))
        elif path == "/v1/batches":
            body = json.loads(raw)
            lines = map(json.loads, self._provider.files[body["input_file_id"]].splitlines())
            requests = [(line["custom_id"], line["body"]["model"], line["body"]) for line in lines]
            self._take("openai", body["metadata"]["knownminds"], requests)
        elif path == "/v1/messages/batches":
            requests = [
                (one["custom_id"], one["params"]["model"], one["params"])
                for one in json.loads(raw)["requests"]
            ]
            self._take("anthropic", requests[0][0].rpartition("-")[0], requests)
        elif path == "/upload/v1beta/files":
            self._send(200, {}, {"x-goog-upload-url": f"{self._provider.url}/upload/here"})
        elif path == "/upload/here":
            name = f"files/{self._filed(raw)['id']}"
            self._send(200, {"file": {"name": name}}, {"x-goog-upload-status": "final"})
        elif match := re.fullmatch(r"/v1beta/models/([^/:]+):batchGenerateContent", path):
            batch = json.loads(raw)["batch"]
            file = batch["inputConfig"]["fileName"].removeprefix("files/")
            lines = map(json.loads, self._provider.files[file].splitlines())
            requests = [(line["key"], match[1], line["request"]) for line in lines]
            self._take("google", batch["displayName"], requests)
        else:
            super().posted(raw)

    def do_GET(self) -> None:  # noqa: N802 - as the library calls it
        provider, address = self._provider, urlsplit(self.path)
        path, query = (
            address.path,
            {name: value[0] for name, value in parse_qs(address.query).items()},
        )
        if path in ("/v1/batches", "/v1/messages/batches", "/v1beta/batches"):
            self._list(path, query)
        elif (match := re.fullmatch(r"/v1/files/([^/]+)/content", path)) or (
            match := re.fullmatch(r"/v1beta/files/([^/]+):download", path)
        ):
            provider.fetched += 1
            self._send(200, provider.files[match[1]])
        elif match := re.fullmatch(r"/v1/messages/batches/([^/]+)/results", path):
            provider.fetched += 1
            self._send(200, _anthropic_results(provider, provider.named(match[1])))
        elif match := re.fullmatch(r"/(v1|v1/messages|v1beta)/batches/([^/]+)", path):
            batch = provider.named(match[2])
            try:
                self._send(200, self._told(match[1], batch, provider.look(batch)))
            except Broken:
                self._send(500, {"error": {"message": "no"}})
        else:
            self._send(404, {"error": {"message": f"Invalid URL (GET {path})"}})

    def _filed(self, content: bytes) -> dict[str, Any]:
        id = f"file-{len(self._provider.files)}"
        self._provider.files[id] = content
        about = {"bytes": len(content), "created_at": 0, "filename": "f", "purpose": "batch"}
        return {"id": id, "object": "file", "status": "processed", **about}

    def _take(self, wire: str, name: str, requests: list[tuple[str, str, dict[str, Any]]]) -> None:
        provider = self._provider
        batch, fate = provider.submit(wire, name, requests, self.headers)
        status = SUBMISSIONS[fate][1]
        if fate.endswith("hang"):
            provider._closing.wait(provider.hang)
        if status is None:
            self._drop()
        elif fate == "html":
            self._send(200, b"<html></html>", {"content-type": "text/html"})
        elif status != 200:
            error = {"message": "no", "type": f"error_{status}", "code": status, "status": "X"}
            self._send(status, {"type": "error", "error": error})
        else:
            assert batch is not None
            base = {"openai": "v1", "anthropic": "v1/messages", "google": "v1beta"}[wire]
            self._send(200, self._told(base, batch, False))

    def _list(self, path: str, query: dict[str, str]) -> None:
        batches = self._provider.batches[::-1]  # the latest first
        after = query.get("after") or query.get("after_id") or query.get("pageToken")
        ids = [batch.id for batch in batches]
        first = ids.index(after) + 1 if after else 0
        page = batches[first : first + _PAGE]
        base = path.strip("/").removesuffix("/batches")
        for batch in page:
            batch.looks += 1
        data = [self._told(base, batch, batch.looks > self._provider.looks) for batch in page]
        more = first + _PAGE < len(batches)
        if base == "v1beta":
            token = {"nextPageToken": page[-1].id} if more else {}
            self._send(200, {"operations": data, **token})
        else:
            ends = {"first_id": page[0].id, "last_id": page[-1].id} if page else {}
            self._send(200, {"object": "list", "data": data, "has_more": more, **ends})

    def _told(self, base: str, batch: Made, over: bool) -> dict[str, Any]:
        return _TOLD[base](self._provider, batch, over)


def _uploaded(raw: bytes) -> bytes:
    """Return the file in a body of several parts."""
    boundary = raw.partition(b"\r\n")[0]
    for part in raw.split(boundary):
        head, _, content = part.partition(b"\r\n\r\n")
        if b"filename=" in head:
            return content.removesuffix(b"\r\n")
    raise ValueError("no file")


def _openai_batch(provider: BatchServer, batch: Made, over: bool) -> dict[str, Any]:
    content: dict[str, Any] = {
        "id": batch.id,
        "object": "batch",
        "endpoint": "/v1/chat/completions",
        "completion_window": "24h",
        "created_at": int(batch.began),
        "input_file_id": "file",
        "status": "in_progress",
        "metadata": {"knownminds": batch.name},
        "request_counts": {"completed": batch.looks, "failed": 0, "total": len(batch.calls)},
    }
    if not over:
        return content
    if batch.fate == "void":
        error = {"code": "token_limit_exceeded", "message": "Enqueued token limit reached."}
        return {**content, "status": "failed", "errors": {"object": "list", "data": [error]}}
    results, errors = [], []
    for key, call in provider.lines(batch):
        line: dict[str, Any] = {"id": f"r-{key}", "custom_id": key, "error": None}
        if call.fault in ("expired", "canceled"):
            error = {"code": f"batch_{call.fault}", "message": "This request was not executed."}
            errors.append({**line, "response": None, "error": error})
            continue
        status = 200
        if call.charged:
            body = provider.reply(call)
        else:
            status, kind = _error(call)
            body = {"error": {"message": _words(call), "type": kind}}
        answer = {"status_code": status, "request_id": f"q-{key}", "body": body}
        (results if status == 200 else errors).append({**line, "response": answer})
    content["status"] = "expired" if batch.fate == "expired" else "completed"
    for name, lines in (("output_file_id", results), ("error_file_id", errors)):
        if lines:
            provider.files[f"{batch.id}-{name}"] = _jsonl(lines)
            content[name] = f"{batch.id}-{name}"
    return content


def _anthropic_batch(provider: BatchServer, batch: Made, over: bool) -> dict[str, Any]:
    counts = dict.fromkeys(("processing", "succeeded", "errored", "canceled", "expired"), 0)
    told = [call for call in batch.calls.values() if not call or call.fault != "missing"]
    counts["succeeded" if over else "processing"] = len(told if over else batch.calls)
    moment = datetime.fromtimestamp(batch.began, UTC).isoformat()
    return {
        "id": batch.id,
        "type": "message_batch",
        "processing_status": "ended" if over else "in_progress",
        "request_counts": counts,
        "created_at": moment,
        "expires_at": moment,
        "results_url": f"{provider.url}/v1/messages/batches/{batch.id}/results" if over else None,
    }


def _anthropic_results(provider: BatchServer, batch: Made) -> bytes:
    lines = []
    if batch.name == "other":
        return _jsonl(
            [{"custom_id": f"o-{key}", "result": {"type": "expired"}} for key in batch.calls]
        )
    for key, call in provider.lines(batch):
        result: dict[str, Any] = {"type": call.fault}
        if call.charged:
            result = {"type": "succeeded", "message": provider.reply(call)}
        elif call.fault not in ("expired", "canceled"):
            error = {"type": _error(call)[1], "message": "no"}
            result = {"type": "errored", "error": {"type": "error", "error": error}}
        lines.append({"custom_id": key, "result": result})
    return _jsonl(lines)


def _google_batch(provider: BatchServer, batch: Made, over: bool) -> dict[str, Any]:
    about: dict[str, Any] = {
        "displayName": batch.name,
        "state": "BATCH_STATE_RUNNING",
        "createTime": datetime.fromtimestamp(batch.began, UTC).isoformat().replace("+00:00", "Z"),
    }
    if over and batch.fate in ("void", "expired"):
        about["state"] = {"void": "BATCH_STATE_FAILED", "expired": "BATCH_STATE_EXPIRED"}[
            batch.fate
        ]
    elif over:
        lines = []
        for key, call in provider.lines(batch):
            if call.charged:
                lines.append({"key": key, "response": provider.reply(call)})
            else:
                code = 3 if call.fault.startswith("400") else 13
                error = {"code": code, "message": _words(call)}
                lines.append({"key": key, "error": error})
        provider.files[f"{batch.id}-results"] = _jsonl(lines)
        about["state"] = "BATCH_STATE_SUCCEEDED"
        about["output"] = {"responsesFile": f"files/{batch.id}-results"}
    return {"name": f"batches/{batch.id}", "metadata": about}


def _jsonl(lines: Sequence[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


_TOLD = {"v1": _openai_batch, "v1/messages": _anthropic_batch, "v1beta": _google_batch}
