"""A server on the loopback that speaks three providers' languages, and fails on demand.

Standard library only. It speaks OpenAI's chat completions, Anthropic's messages and Google's
generateContent, answers at once, and keeps what became of every call and whether it was charged:
the independent bill that a run is held against.

In a test::

    with FaultServer(script=["429", "ok"]) as server:
        OpenAI("m", base_url=server.address["openai"], key_variable=None)
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import socket
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field, replace
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

# What can become of a call, and whether it is charged.
FAULTS: dict[str, bool] = {
    "ok": True,
    # refused by the provider
    "400": False,
    "400_seed": False,  # for there is a seed
    "401": False,
    "403": False,
    "403_flagged": False,  # by moderation
    "404": False,
    "413": False,
    "429": False,
    "429_seconds": False,  # Retry-After in seconds
    "429_date": False,  # Retry-After as a date
    "no_credit": False,
    "529": False,
    # the provider's failures
    "408": False,
    "500": False,
    "500_charged": True,
    "502": False,
    "502_bytes": False,  # a body that is no text
    "503": False,
    "302": False,
    # no answer arrives
    "hang": True,
    "hang_before": False,
    "drop_before": False,
    "drop_after": True,
    "cut_body": True,  # the connection ends in the middle of the body
    "drip": True,  # byte by byte, without an end
    # an answer with status 200 arrives, and something is wrong with it
    "cut": True,  # half of the JSON, in a whole body
    "html": False,
    "blank": False,  # a body of no bytes
    "list": False,  # JSON, and no object
    "error_200": True,  # an error instead of an answer
    "empty": True,
    "refusal": True,
    "length": True,
    "garbage": True,  # words instead of an answer
    "model_changed": True,
    "no_model": True,
    "no_usage": True,
    "no_log_probabilities": True,
    "no_finish": True,
    "flood": True,  # 64 MB of answer
    "echo_key": True,  # the answer repeats the key that was sent
}

# What becomes of a request in a batch only, see batch_server.py.
IN_BATCHES = {
    "expired": False,
    "canceled": False,
    "missing": False,  # there is nothing of it in the results
}

# Answers with status 200 that are always the same.
FIXED: dict[str, Any] = {
    "html": b"<!DOCTYPE html><html><body><h1>Welcome</h1></body></html>",
    "blank": b"",
    "list": [],
    "error_200": {"error": {"code": 502, "message": "upstream broke"}},
}
SAID = {"empty": ("", "stop"), "refusal": ("I will not.", "refusal")}


@dataclass(frozen=True)
class Call:
    """One call as it arrived, whatever its language, and what became of it."""

    number: int
    wire: str
    model: str
    messages: tuple[tuple[str, str], ...]  # role and text
    placed: tuple[tuple[int, bytes], ...]  # images, each with the number of its message
    body: dict[str, Any]
    headers: dict[str, str] = field(repr=False)
    fault: str = "ok"
    charged: bool = False

    @property
    def images(self) -> tuple[bytes, ...]:
        """The images of all messages."""
        return tuple(image for _, image in self.placed)

    @property
    def prompt(self) -> str:
        """SHA-256 of what is shown, the same as `Prompt.hash` of the package."""
        pictures = [[i, hashlib.sha256(image).hexdigest()] for i, image in self.placed]
        shown = [[role, text] for role, text in self.messages]
        return hashlib.sha256(json.dumps([shown, pictures]).encode()).hexdigest()


def letters(call: Call) -> list[str]:
    """Return the single capital letters in the last line that has any: the options."""
    for line in reversed(call.messages[-1][1].splitlines()):
        letters_of_line = re.findall(r"\b[A-Z]\b", line)
        if letters_of_line:
            return letters_of_line
    return []


def last_letter(call: Call) -> str:
    """Answer with the last option."""
    return (letters(call) or ["OK"])[-1]


def by_hash(call: Call) -> str:
    """Answer with an option that depends on nothing but the prompt."""
    options = sorted(set(letters(call))) or ["OK"]
    return options[int(call.prompt, 16) % len(options)]


def echo(call: Call) -> str:
    """Answer with the last message."""
    return call.messages[-1][1]


@dataclass(eq=False)
class FaultServer:
    """A provider that fails on demand."""

    # What is said to a call; or that, and why it ended: "stop", "length" or "refusal".
    answer: Callable[[Call], str | tuple[str, str]] = last_letter
    _: KW_ONLY
    # What becomes of each call, in the order of arrival, "ok" when it is used up; or a function.
    script: Sequence[str] | Callable[[Call], str] = ()
    # Instead: the probability of each fault; that of the n-th call depends on seed and n alone.
    faults: Mapping[str, float] = field(default_factory=dict)
    seed: int = 0
    key: str | None = None  # that is accepted; None takes any
    models: Collection[str] | None = None  # that exist; None takes any
    serves: str | None = None  # what signs answers; None for the model that the call names
    delay: float = 0.0  # seconds until an answer
    hang: float = 30.0  # seconds until a call that hangs is dropped
    retry_after: float = 1.0  # seconds that a 429 asks for
    complaint: str = "This prompt is not taken."  # of a 400
    log_probabilities: bool = True  # False to ignore a call for them
    reasoning_tokens: int = 0
    cached_tokens: int = 0
    written_tokens: int = 0  # of which Google tells nothing
    port: int = 0

    def __post_init__(self) -> None:
        strange = set(self.faults) | (set() if callable(self.script) else set(self.script))
        assert strange <= set(FAULTS | IN_BATCHES), strange
        assert sum(self.faults.values()) <= 1
        self.calls: list[Call] = []
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._connections: set[socket.socket] = set()
        self._server = _Listener(("127.0.0.1", self.port), self.handler())
        self._server.provider = self
        self.port = self._server.server_port
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        )

    def handler(self) -> type[Handler]:
        """Return what takes the calls."""
        return Handler

    @property
    def url(self) -> str:
        """The root, without the path of a provider."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def address(self) -> dict[str, str]:
        """The base URL of each provider."""
        return {"openai": self.url + "/v1", "anthropic": self.url, "google": self.url}

    @property
    def charged(self) -> list[Call]:
        """The calls that were charged."""
        return [call for call in list(self.calls) if call.charged]

    def __enter__(self) -> FaultServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop at once: what hangs is dropped."""
        self._closing.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
        for connection in list(self._connections):
            _end(connection)

    def take(self, wire: str, model: str, body: dict[str, Any], headers: Any) -> Call:
        """Note a call, decide what becomes of it, and charge it."""
        turns = list(_turns(body))
        placed = tuple((i, image) for i, (_, _, images) in enumerate(turns) for image in images)
        messages = tuple((role, text) for role, text, _ in turns)
        sent = {name.lower(): value for name, value in headers.items()}
        with self._lock:
            call = Call(len(self.calls), wire, model, messages, placed, body, sent)
            fault = self._fate(call)
            call = replace(call, fault=fault, charged=(FAULTS | IN_BATCHES)[fault])
            self.calls.append(call)
        return call

    def said(self, call: Call) -> tuple[str, str]:
        """Return what is said to a call, and why it ended."""
        said = self.answer(call)
        return (said, "stop") if isinstance(said, str) else said

    def reply(self, call: Call) -> dict[str, Any]:
        """Return the body of an answer."""
        text, why = SAID.get(call.fault) or self.said(call)
        if call.fault == "garbage":
            text = "Well, both machines have their merits, E as well as N."
        elif call.fault == "length":
            text, why = text[: len(text) // 2], "length"
        elif call.fault == "echo_key":
            text = f"Your key is {_offered_key(call)}."
        return _WRITE[call.wire](self, call, text, why)

    def usage(self, call: Call, text: str) -> tuple[int, int]:
        """Count the words sent and received, with the reasoning among the latter."""
        sent = sum(len(said.split()) for _, said in call.messages) + 100 * len(call.images)
        return sent, len(text.split()) + self.reasoning_tokens

    def _fate(self, call: Call) -> str:
        offered = _offered_key(call)
        if self.key is not None and offered != self.key:
            return "401"
        if self.models is not None and call.model not in self.models:
            return "404"
        if callable(self.script):
            return self.script(call)
        if self.script:
            return self.script[call.number] if call.number < len(self.script) else "ok"
        draw = hashlib.sha256(f"{self.seed}/{call.number}".encode()).digest()
        level = int.from_bytes(draw[:8], "big") / 2**64
        for fault, probability in self.faults.items():
            level -= probability
            if level < 0:
                return fault
        return "ok"


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256
    provider: FaultServer

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of clients that went away."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # head and body leave together
    server: _Listener

    def setup(self) -> None:
        super().setup()
        self.server.provider._connections.add(self.connection)

    def finish(self) -> None:
        self.server.provider._connections.discard(self.connection)
        super().finish()

    def log_message(self, *_: object) -> None:
        pass

    def do_POST(self) -> None:
        self.posted(self.rfile.read(int(self.headers.get("content-length", 0))))

    def posted(self, raw: bytes) -> None:
        """Answer a call with this body."""
        call = _place(self.path, raw)
        if call is None:
            self._send(404, {"error": {"message": f"Invalid URL (POST {self.path})"}})
            return
        self._answer(*call)

    def do_GET(self) -> None:
        self._send(404, {"error": {"message": f"Invalid URL (GET {self.path})"}})

    def _answer(self, wire: str, model: str, body: dict[str, Any]) -> None:
        provider = self.server.provider
        call = provider.take(wire, model, body, self.headers)
        if provider.delay:
            provider._closing.wait(provider.delay)
        fault = call.fault
        if fault.startswith("hang"):
            provider._closing.wait(provider.hang)
            self._drop()
        elif fault.startswith("drop"):
            self._drop()
        elif fault == "drip":
            self._drip()
        elif fault == "flood":
            self._head(200, 2**26)
            with suppress(OSError):  # when the client has had enough
                for _ in range(2**10):
                    self.wfile.write(b" " * 2**16)
            self._drop()
        elif fault == "502_bytes":
            self._send(502, b'{"error": "\xff\xfe"}')
        elif not FAULTS[fault] and fault[:3].isdigit():
            self._fail(call, int(fault[:3]))
        elif fault == "500_charged":
            self._fail(call, 500)
        elif fault == "no_credit":
            self._fail(call, 429 if wire == "openai" else 400)
        elif fault in FIXED:
            self._send(200, FIXED[fault])
        else:
            self._reply(call)

    def _reply(self, call: Call) -> None:
        content = json.dumps(self.server.provider.reply(call)).encode()
        if call.fault == "cut":
            content = content[: len(content) // 2]
        if call.fault == "cut_body":
            self._head(200, len(content))
            self.wfile.write(content[: len(content) // 2])
            self.wfile.flush()
            self._drop()
        else:
            self._send(200, content)

    def _fail(self, call: Call, status: int) -> None:
        provider = self.server.provider
        said = {
            400: provider.complaint,
            401: f"Incorrect API key provided: {_offered_key(call)}.",
            403: f"The key {_offered_key(call)} may not do this.",
            404: f"The model {call.model} does not exist.",
            429: "Too many calls.",
        }.get(status, "Something went wrong.")
        kind = f"error_{status}"
        if call.fault == "no_credit":
            said, kind = "Your credit balance is too low.", "insufficient_quota"
        elif call.fault == "400_seed":
            said = "Unsupported parameter: 'seed' is not supported with this model."
        elif call.fault == "403_flagged":
            said = "Your input was flagged."
        extra = {"location": "/elsewhere"} if status == 302 else {}
        if call.fault == "429_seconds":
            extra["retry-after"] = f"{provider.retry_after:g}"
        if call.fault == "429_date":
            extra["retry-after"] = formatdate(time.time() + provider.retry_after, usegmt=True)
        error: dict[str, Any] = {"message": said, "type": kind, "code": kind}
        if call.wire == "google":
            if status == 401:
                status = 400
                error["details"] = [{"reason": "API_KEY_INVALID"}]
            error |= {"code": status, "status": kind.upper()}
        self._send(status, {"type": "error", "error": error}, extra)

    def _head(self, status: int, length: int, extra: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in ({"content-type": "application/json"} | dict(extra or {})).items():
            self.send_header(name, value)
        self.send_header("content-length", str(length))
        self.end_headers()

    def _send(self, status: int, content: Any, extra: Mapping[str, str] | None = None) -> None:
        if not isinstance(content, bytes):
            content = json.dumps(content).encode()
        self._head(status, len(content), extra)
        self.wfile.write(content)
        self.wfile.flush()

    def _drip(self) -> None:
        end = time.monotonic() + self.server.provider.hang
        self._head(200, 1_000_000)
        with suppress(OSError):  # when the client has had enough
            while time.monotonic() < end and not self.server.provider._closing.wait(0.05):
                self.wfile.write(b" ")
                self.wfile.flush()
        self._drop()

    def _drop(self) -> None:
        self.close_connection = True
        _end(self.connection)


def _end(connection: socket.socket) -> None:
    with suppress(OSError):  # if the other side was first
        connection.shutdown(socket.SHUT_RDWR)


def _offered_key(call: Call) -> str:
    bearer = call.headers.get("authorization", "").removeprefix("Bearer ")
    header = {"anthropic": "x-api-key", "google": "x-goog-api-key"}.get(call.wire, "")
    return call.headers.get(header, bearer)


def _place(path: str, raw: bytes) -> tuple[str, str, dict[str, Any]] | None:
    """Return the language of a call, the model it names and the body."""
    body = json.loads(raw)
    if path == "/v1/chat/completions":
        return "openai", body["model"], body
    if path == "/v1/messages":
        return "anthropic", body["model"], body
    match = re.fullmatch(r"/v1(?:beta)?/models/([^/:]+):generateContent", path)
    return ("google", match[1], body) if match else None


def _parts(content: Any) -> tuple[str, list[bytes]]:
    """Return the text and the images of a message, from all three languages."""
    if isinstance(content, str):
        return content, []
    texts, images = [], []
    for part in content:
        if "text" in part:
            texts.append(part["text"])
        elif "image_url" in part:
            images.append(base64.b64decode(part["image_url"]["url"].partition("base64,")[2]))
        elif "source" in part:
            images.append(base64.b64decode(part["source"]["data"]))
        elif "inlineData" in part:
            data = part["inlineData"]["data"]
            images.append(base64.b64decode(data.replace("-", "+").replace("_", "/")))
        else:
            raise ValueError(f"unknown part {part}")
    return "\n\n".join(texts), images


def _turns(body: dict[str, Any]) -> Iterator[tuple[str, str, list[bytes]]]:
    """Yield role, text and images of each message, in all three languages."""
    system = body.get("system") or body.get("systemInstruction", {}).get("parts")
    if system:
        yield "system", *_parts(system)
    for message in body.get("messages") or body["contents"]:
        role = {"model": "assistant"}.get(message["role"], message["role"])
        yield role, *_parts(message.get("content") or message["parts"])


def _tokens(text: str, k: int) -> list[tuple[str, float, list[tuple[str, float]]]]:
    """Return tokens of a text with log-probabilities, as a model might have had them."""
    tokens = re.findall(r"\s*\S+", text)
    levels = []
    for i, token in enumerate(tokens):
        level = hashlib.sha256(f"{i}{token}".encode()).digest()[0] / 512  # below one half
        others = [(f"{token}{j}", -1.0 - level - j) for j in range(1, k)]
        levels.append((token, -level, [(token, -level), *others][:k]))
    return levels


def _write_openai(provider: FaultServer, call: Call, text: str, why: str) -> dict[str, Any]:
    said: dict[str, Any] = {"role": "assistant", "content": text, "refusal": None}
    if why == "refusal":
        said |= {"content": None, "refusal": text}
    choice: dict[str, Any] = {"index": 0, "message": said, "logprobs": None}
    if call.fault != "no_finish":
        choice["finish_reason"] = "length" if why == "length" else "stop"
    if call.body.get("logprobs") and _likely(provider, call):
        choice["logprobs"] = {
            "content": [
                {
                    "token": token,
                    "logprob": value,
                    "bytes": list(token.encode()),
                    "top_logprobs": [{"token": t, "logprob": v} for t, v in others],
                }
                for token, value, others in _tokens(text, call.body.get("top_logprobs", 0))
            ]
        }
    sent, received = provider.usage(call, text)
    reply = {
        "id": f"chatcmpl-{call.number}",
        "object": "chat.completion",
        "created": 0,
        "choices": [choice],
        "usage": {
            "prompt_tokens": sent,
            "completion_tokens": received,
            "total_tokens": sent + received,
            "prompt_tokens_details": {
                "cached_tokens": provider.cached_tokens,
                "cache_write_tokens": provider.written_tokens,
            },
            "completion_tokens_details": {"reasoning_tokens": provider.reasoning_tokens},
        },
    }
    return _signed(provider, call, reply, "model", "usage")


def _write_anthropic(provider: FaultServer, call: Call, text: str, why: str) -> dict[str, Any]:
    sent, received = provider.usage(call, text)
    reply: dict[str, Any] = {
        "id": f"msg_{call.number}",
        "type": "message",
        "role": "assistant",
        "content": [{"type": "text", "text": text}] if text else [],
        "stop_sequence": None,
        "usage": {
            # what is read from the cache and put into it is apart
            "input_tokens": sent - provider.cached_tokens - provider.written_tokens,
            "output_tokens": received,
            "cache_creation_input_tokens": provider.written_tokens,
            "cache_read_input_tokens": provider.cached_tokens,
            "output_tokens_details": {"thinking_tokens": provider.reasoning_tokens},
        },
    }
    if provider.reasoning_tokens:
        reply["content"].insert(0, {"type": "thinking", "thinking": "Hm.", "signature": "s"})
    if call.fault != "no_finish":
        reply["stop_reason"] = {"stop": "end_turn", "length": "max_tokens"}.get(why, why)
    return _signed(provider, call, reply, "model", "usage")


def _write_google(provider: FaultServer, call: Call, text: str, why: str) -> dict[str, Any]:
    sent, received = provider.usage(call, text)
    parts: list[dict[str, Any]] = [{"text": text}] if text else []
    if provider.reasoning_tokens:
        parts.insert(0, {"text": "Hm.", "thought": True})
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": parts}, "index": 0}
    if call.fault != "no_finish":
        reasons = {"stop": "STOP", "length": "MAX_TOKENS", "refusal": "SAFETY"}
        candidate["finishReason"] = reasons[why]
    options = call.body.get("generationConfig", {})
    if options.get("responseLogprobs") and _likely(provider, call):
        tokens = _tokens(text, options.get("logprobs", 0))
        candidate["logprobsResult"] = {
            "chosenCandidates": [{"token": t, "logProbability": v} for t, v, _ in tokens],
            "topCandidates": [
                {"candidates": [{"token": t, "logProbability": v} for t, v in others]}
                for _, _, others in tokens
            ],
        }
    counts = {
        "promptTokenCount": sent,
        "candidatesTokenCount": received - provider.reasoning_tokens,
        "totalTokenCount": sent + received,
    }
    if provider.reasoning_tokens:
        counts["thoughtsTokenCount"] = provider.reasoning_tokens
    if provider.cached_tokens:
        counts["cachedContentTokenCount"] = provider.cached_tokens
    reply = {
        "candidates": [candidate],
        "usageMetadata": counts,
        "responseId": f"req-{call.number + 1}",
    }
    return _signed(provider, call, reply, "modelVersion", "usageMetadata")


def _likely(provider: FaultServer, call: Call) -> bool:
    return provider.log_probabilities and call.fault != "no_log_probabilities"


def _signed(
    provider: FaultServer, call: Call, reply: dict[str, Any], model: str, usage: str
) -> dict[str, Any]:
    served = "another-model" if call.fault == "model_changed" else provider.serves or call.model
    if call.fault != "no_model":
        reply[model] = served
    if call.fault == "no_usage":
        del reply[usage]
    return reply


_WRITE = {"openai": _write_openai, "anthropic": _write_anthropic, "google": _write_google}
