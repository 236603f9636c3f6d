"""A known mind behind an OpenAI-compatible endpoint, for anybody's evaluation pipeline."""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import hashlib
import hmac
import json
import signal
import socket
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from itertools import count
from math import inf
from typing import Any

from knownminds.agents import Agent, Contaminants
from knownminds.environments import Environment, Message, Prompt, unknown
from knownminds.environments.words.prompt import Role
from knownminds.llm_adapters.adapter import (
    NotCapable,
    Rejected,
    Reply,
    Sampling,
    TokenLogProbability,
)

from .synthetic import Synthetic

_MOST_HEAD = 2**16  # bytes of a request's headers
_MOST_BODY = 2**23  # bytes of a request's body
_MOST_CONNECTIONS = 512
_IN_TIME = 30.0  # seconds for a request to come whole
_IDLE = 75.0  # seconds that a connection is kept without one
_MOST_ALTERNATIVES = 20  # as OpenAI has it
_NO_CHANCE = -9999.0  # OpenAI's log-probability of what cannot be; JSON has no -infinity
_PATIENCE = 2.0  # seconds for the last bytes to leave when the server stops

_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
}
_HEEDED = (
    "model", "messages", "temperature", "top_p", "max_tokens", "max_completion_tokens", "seed",
    "reasoning_effort", "logprobs", "top_logprobs", "stop",
)  # fmt: skip
# Settings that would change an answer in ways a known mind has not: the values that change nothing.
_NEUTRAL: dict[str, tuple[Any, ...]] = {
    "n": (1,),
    "stream": (False,),
    "stream_options": (),
    "presence_penalty": (0,),
    "frequency_penalty": (0,),
    "logit_bias": ({},),
    "response_format": ({"type": "text"},),
    "modalities": (["text"],),
    "tools": ([],),
    "tool_choice": ("none", "auto"),
    "functions": ([],),
    "function_call": ("none", "auto"),
    "parallel_tool_calls": (True, False),
    "verbosity": ("medium",),
}
# Settings of the account and not of the answer.
_ASIDE = (
    "user", "metadata", "store", "service_tier", "safety_identifier", "prompt_cache_key",
    "prompt_cache_retention",
)  # fmt: skip


class Served:
    """A known mind behind ``POST {base_url}/chat/completions``, in a thread of its own.

    It is stateless: the past is read out of the prompt, as a real model must. What is promised:

    - With a `seed` in the request, which names the session, the answers are draw for draw those
      of ``play(agent, environment, seed, *address, request's seed)``.
    - Without one, or if `seed_is_session` is False: the same agent with the same probabilities,
      each answer with a random number that belongs to the prompt (and the seed). The same request
      is answered alike at any time; different prompts are independent.

    System messages before the prompt are passed over. Temperature, top_p, max tokens, stop and
    log-probabilities are heeded as `Synthetic` says; a setting that cannot be heeded is refused
    with status 400 and never dropped silently. ``GET {base_url}/models`` lists the one model,
    ``GET /health`` tells how many calls were answered.

    ::

        with Served(environment, agent, seed=11) as served:
            client = openai.OpenAI(base_url=served.base_url, api_key="none")

    Parameters
    ----------
    environment
        The experiment, with the settings and wording of the prompts it will get.
    agent
        The mind.
    seed, address
        Of the study whose sessions are lived.
    host, port
        Where to listen; port 0 for a free one.
    contaminants
        How often answers go wrong.
    model
        The name that requests must ask for.
    api_key
        A key that requests must bear; None for none.
    seed_is_session
        False for clients that send a seed of their own with every request.

    Raises
    ------
    ValueError
        If the port cannot be had.
    """

    def __init__(
        self,
        environment: Environment,
        agent: Agent,
        *,
        seed: int,
        address: Sequence[int] = (),
        host: str = "127.0.0.1",
        port: int = 0,
        contaminants: Contaminants | None = None,
        model: str = "known-mind",
        api_key: str | None = None,
        seed_is_session: bool = True,
    ):
        mind = Synthetic(
            agent,
            environment,
            seed,
            *address,
            contaminants=contaminants,
            seed_is_session=seed_is_session,
        )
        self.model = model
        self._endpoint = _Endpoint(mind, model, api_key)
        self._socket = _listening(host, port)
        self.host, self.port = host, int(self._socket.getsockname()[1])
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None

    def __repr__(self) -> str:
        """Show where it is, and never the key."""
        return f"Served({self.model!r}, base_url={self.base_url!r})"

    @property
    def base_url(self) -> str:
        """What a client takes as its base URL."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}/v1"

    @property
    def calls(self) -> int:
        """How many chat completions were answered."""
        return self._endpoint.calls

    def start(self) -> Served:
        """Begin to answer, in a thread."""
        if self._thread is not None:
            raise ValueError("A server starts once; this one has been. Make another.")
        running = threading.Event()
        self._thread = threading.Thread(target=self.run, args=(running.set,), daemon=True)
        self._thread.start()
        running.wait()
        return self

    def close(self) -> None:
        """Answer what has come, close the connections, and stop."""
        if self._thread is not None and self._loop is not None and self._stop is not None:
            with contextlib.suppress(RuntimeError):  # it has stopped already
                self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join()
        self._socket.close()

    def run(self, running: Callable[[], object] = lambda: None) -> None:
        """Answer in this thread until `close` is called or, in the main thread, a signal comes."""
        asyncio.run(self._answer(running))

    def __enter__(self) -> Served:
        """Start."""
        return self.start()

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.close()

    async def _answer(self, running: Callable[[], object]) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                with contextlib.suppress(NotImplementedError):  # Windows: Ctrl-C interrupts
                    self._loop.add_signal_handler(number, self._stop.set)
        connections: set[_Connection] = set()
        server = await self._loop.create_server(
            lambda: _Connection(self._endpoint, connections), sock=self._socket, backlog=1024
        )
        running()
        try:
            await self._stop.wait()
        finally:
            server.close()
            for connection in list(connections):
                connection.transport.close()  # once what was written has left
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_PATIENCE):
                    while connections:
                        await asyncio.sleep(0.002)
            for connection in list(connections):
                connection.transport.abort()
            await asyncio.sleep(0)


def serve(
    environment: Environment,
    agent: Agent,
    *,
    seed: int,
    address: Sequence[int] = (),
    host: str = "127.0.0.1",
    port: int = 0,
    contaminants: Contaminants | None = None,
    model: str = "known-mind",
    api_key: str | None = None,
    seed_is_session: bool = True,
    ready: Callable[[Served], object] = lambda served: None,
) -> int:
    """Serve a known mind until the process is interrupted (SIGINT, SIGTERM); see `Served`.

    Parameters
    ----------
    ready
        Called once with the server when it listens, for instance to tell its `base_url`.

    Returns
    -------
    How many calls were answered.
    """
    served = Served(
        environment,
        agent,
        seed=seed,
        address=address,
        host=host,
        port=port,
        contaminants=contaminants,
        model=model,
        api_key=api_key,
        seed_is_session=seed_is_session,
    )
    try:
        served.run(lambda: ready(served))
    finally:
        served.close()
    return served.calls


def _listening(host: str, port: int) -> socket.socket:
    if not 0 <= port < 2**16:
        raise ValueError(f"Ports go from 0 to 65535; got {port}.")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=1024)
    except OSError as error:
        raise ValueError(
            f"A server listens where it may and nobody else does; {host} port {port} cannot be had "
            f"({error.strerror or error}). Choose another port, or 0 for a free one."
        ) from None


class _Refusal(Exception):  # noqa: N818
    """A request that is not answered, in OpenAI's words for errors."""

    def __init__(
        self, status: int, message: str, param: str | None = None, code: str | None = None
    ):
        super().__init__(message)
        self.status = status
        self.body = {
            "error": {
                "message": message,
                "type": "invalid_request_error" if status < 500 else "server_error",
                "param": param,
                "code": code,
            }
        }


@dataclass
class _Endpoint:
    """Requests in, replies out; nothing is kept but the count of calls."""

    mind: Synthetic
    model: str
    api_key: str | None
    calls: int = 0

    def respond(
        self, method: str, target: str, headers: dict[str, str], body: bytes
    ) -> tuple[int, Any]:
        """Return status and content."""
        path = target.partition("?")[0].rstrip("/").removeprefix("/v1")
        if path == "/health":
            return 200, {"status": "ok", "calls": self.calls}
        try:
            self.check_key(headers.get("authorization", ""))
            known = "POST" if path == "/chat/completions" else "GET"
            if path not in ("/chat/completions", "/models") and not path.startswith("/models/"):
                raise _Refusal(
                    404,
                    "There are POST /v1/chat/completions and GET /v1/models; got "
                    f"{method} {target[:60]}.",
                )
            if method != known:
                raise _Refusal(405, f"{path} takes {known}; got {method[:20]}.")
            if known == "POST":
                return 200, self._complete(body)
            listed = {
                "id": self.model,
                "object": "model",
                "created": 0,
                "owned_by": "knownminds",
            }
            if path == "/models":
                return 200, {"object": "list", "data": [listed]}
            self._check_model(path.removeprefix("/models/"))
            return 200, listed
        except _Refusal as refusal:
            return refusal.status, refusal.body

    def check_key(self, authorization: str) -> None:
        """Raise a refusal if there is a key and a request does not bear it."""
        if self.api_key is None:
            return
        due = f"Bearer {self.api_key}".encode()
        if not hmac.compare_digest(authorization.encode(), due):
            raise _Refusal(
                401,
                "The key that this server was started with must be sent as a bearer token; it "
                "was not.",
                code="invalid_api_key",
            )

    def _check_model(self, name: str) -> None:
        if name != self.model:
            raise _Refusal(404, unknown("model", name, [self.model]), "model", "model_not_found")

    def _complete(self, raw: bytes) -> dict[str, Any]:
        body = _object(raw)
        name = body.get("model")
        if not isinstance(name, str):
            raise _Refusal(400, f"A request names a model; got {name!r}.", "model")
        self._check_model(name)
        _check_settings(body)
        prompt = Prompt(_messages(body.get("messages")))
        settings = _settings(body)
        try:
            reply = self.mind.answer(prompt, settings)
        except Rejected as error:
            raise _Refusal(400, str(error), "messages", "invalid_prompt") from None
        except NotCapable as error:
            raise _Refusal(400, str(error), code="unsupported_value") from None
        except ArithmeticError as error:
            raise _Refusal(
                500,
                f"{self.mind.agent!r} could not work out its choice: {error}.",
                code="computation_failed",
            ) from error
        text, tokens = _stopped(reply, body.get("stop"))
        self.calls += 1
        sent, received = reply.usage.input_tokens or 0, reply.usage.output_tokens or 0
        choice: dict[str, Any] = {
            "index": 0,
            "message": {"role": "assistant", "content": text, "refusal": None},
            "logprobs": None,
            "finish_reason": "stop" if text != reply.text else reply.finish_reason,
        }
        if tokens is not None:
            choice["logprobs"] = {"content": [_told(token) for token in tokens], "refusal": None}
        return {
            "id": f"chatcmpl-{hashlib.sha256(raw).hexdigest()[:24]}",
            "object": "chat.completion",
            "created": 0,  # the same request has the same reply, at any time
            "model": self.model,
            "choices": [choice],
            "usage": {
                "prompt_tokens": sent,
                "completion_tokens": received,
                "total_tokens": sent + received,
            },
        }


def _object(raw: bytes) -> dict[str, Any]:
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise _Refusal(
            400, f"A request's body is JSON; this one is not: {str(error)[:120]}.", None, "bad_json"
        ) from None
    if not isinstance(body, dict):
        raise _Refusal(400, f"A request's body is a JSON object; got {str(body)[:60]}.")
    return body


def _check_settings(body: dict[str, Any]) -> None:
    for name, value in body.items():
        if value is None or name in _HEEDED or name in _ASIDE:
            continue
        if name not in _NEUTRAL:
            raise _Refusal(
                400,
                f"Unrecognized request argument supplied: {name[:60]}. Leave it out.",
                name[:60],
                "unknown_parameter",
            )
        if value not in _NEUTRAL[name]:
            what = {
                "stream": "Answers come whole here, streaming is off",
                "n": "A request gets one answer here",
            }.get(name, f"A known mind cannot heed {name}")
            raise _Refusal(
                400,
                f"{what}; got {name}={json.dumps(value)[:60]}. Leave it out.",
                name,
                "unsupported_value",
            )


_PNG = "data:image/png;base64,"


def _messages(given: Any) -> tuple[Message, ...]:
    if not isinstance(given, list) or not given:
        raise _Refusal(
            400, "A request holds a list of messages, at least one; got none.", "messages"
        )
    messages = []
    for i, message in enumerate(given):
        try:
            role, content = _ROLES[message["role"]], message.get("content")
        except (KeyError, TypeError):
            raise _Refusal(
                400,
                f"A message has a role ({', '.join(_ROLES)}) and a content; message {i} is "
                f"{str(message)[:60]!r}.",
                f"messages[{i}].role",
            ) from None
        images: tuple[bytes, ...] = ()
        if not isinstance(content, str):
            content, images = _joined(content, role, i)
        messages.append(Message(role, content, images))
    return tuple(messages)


def _joined(content: Any, role: Role, i: int) -> tuple[str, tuple[bytes, ...]]:
    """Return text and pictures of a content in parts, or of a reply that had none."""
    if content is None and role == "assistant":
        return "", ()
    if not isinstance(content, list):
        raise _Refusal(
            400,
            f"The content of a message is text or a list of texts; message {i} has "
            f"{str(content)[:60]!r}.",
            f"messages[{i}].content",
        )
    texts, images = [], []
    for part in content:
        kind = part.get("type") if isinstance(part, dict) else part
        text = part.get("text") if isinstance(part, dict) else None
        if kind == "image_url" and role == "user":
            images.append(_picture(part.get("image_url"), i))
        elif kind == "text" and isinstance(text, str):
            texts.append(text)
        else:
            raise _Refusal(
                400,
                f"A known mind reads words, and pictures of the user; message {i} holds a part of "
                f"the type {str(kind)[:60]!r}. Send parts of the types 'text' and 'image_url'.",
                f"messages[{i}].content",
            )
    return "".join(texts), tuple(images)


def _picture(given: Any, i: int) -> bytes:
    """Return the PNG bytes of a data URL; a known mind fetches nothing."""
    url = given.get("url") if isinstance(given, dict) else None
    if isinstance(url, str) and url.startswith(_PNG):
        with contextlib.suppress(binascii.Error):
            return base64.b64decode(url[len(_PNG) :], validate=True)
    raise _Refusal(
        400,
        f"A picture comes as a data URL of a PNG, {_PNG}...; message {i} has {str(url)[:60]!r}.",
        f"messages[{i}].content",
    )


def _settings(body: dict[str, Any]) -> Sampling:
    limits = [body.get(name) for name in ("max_tokens", "max_completion_tokens")]
    asked, alternatives = body.get("logprobs") or False, body.get("top_logprobs")
    if not isinstance(asked, bool) or (alternatives is not None and not asked):
        raise _Refusal(
            400,
            "logprobs is true or false, and must be true for top_logprobs; got "
            f"logprobs={str(asked)[:20]}.",
            "logprobs",
        )
    alternatives = _whole(alternatives, "top_logprobs") or 0
    if alternatives > _MOST_ALTERNATIVES:
        raise _Refusal(
            400,
            f"top_logprobs goes from 0 to {_MOST_ALTERNATIVES}; got {alternatives}.",
            "top_logprobs",
        )
    temperature, top_p = (body.get(name) for name in ("temperature", "top_p"))
    for name, value in (("temperature", temperature), ("top_p", top_p)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise _Refusal(400, f"{name} is a number; got {str(value)[:60]!r}.", name)
    try:
        return Sampling(
            temperature=temperature,
            top_p=top_p,
            max_tokens=_whole(next((v for v in limits if v is not None), None), "max_tokens"),
            seed=_whole(body.get("seed"), "seed"),
            reasoning=body.get("reasoning_effort"),
            top_log_probabilities=alternatives if asked else None,
        )
    except (ValueError, TypeError) as error:
        raise _Refusal(400, str(error), code="unsupported_value") from None


def _whole(value: Any, name: str) -> int | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    raise _Refusal(400, f"{name} is a whole number; got {str(value)[:60]!r}.", name)


def _stopped(reply: Reply, stop: Any) -> tuple[str, Sequence[TokenLogProbability] | None]:
    """Return text and tokens up to the first of the client's stops."""
    stops = [stop] if isinstance(stop, str) else stop or []
    if not isinstance(stops, list) or not all(isinstance(s, str) and s for s in stops):
        raise _Refusal(400, f"stop is a text or a list of texts; got {str(stop)[:60]!r}.", "stop")
    end = min((at for s in stops if (at := reply.text.find(s)) >= 0), default=len(reply.text))
    if reply.log_probabilities is None or end == len(reply.text):
        return reply.text[:end], reply.log_probabilities
    kept, length = [], 0
    for token in reply.log_probabilities:
        if length + len(token.token) > end:  # a token that a stop cuts in two is dropped
            break
        kept.append(token)
        length += len(token.token)
    return reply.text[:end], kept


def _told(token: TokenLogProbability) -> dict[str, Any]:
    def one(name: str, value: float) -> dict[str, Any]:
        finite = _NO_CHANCE if value == -inf else value
        return {"token": name, "logprob": finite, "bytes": list(name.encode())}

    alternatives = [one(*pair) for pair in token.alternatives]
    return {**one(token.token, token.log_probability), "top_logprobs": alternatives}


class _Connection(asyncio.Protocol):
    """HTTP/1.1 on one connection: requests with a declared length, one after the other.

    The standard library's server takes a thread for each connection and three times as long for
    each request, most of it spent on headers as if they were mail.
    """

    transport: asyncio.Transport
    _numbers = count(1)  # of requests

    def __init__(self, endpoint: _Endpoint, connections: set[_Connection]):
        self.endpoint = endpoint
        self.connections = connections
        self.received = bytearray()
        self.head: tuple[str, str, dict[str, str]] | None = None
        self.length = 0
        self.last = False
        self.deadline: asyncio.TimerHandle | None = None
        self.waiting = False  # for the rest of a request that has begun

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.connections.add(self)
        if len(self.connections) > _MOST_CONNECTIONS:
            self.last = True
            most = f"This server holds {_MOST_CONNECTIONS} connections; come back later."
            self._send(503, _Refusal(503, most).body)
        else:
            self._expect(_IDLE)

    def connection_lost(self, exc: Exception | None) -> None:
        self.connections.discard(self)
        if self.deadline is not None:
            self.deadline.cancel()

    def _expect(self, seconds: float) -> None:
        """Close the connection unless something has come whole within so many seconds."""
        if self.deadline is not None:
            self.deadline.cancel()
        loop = asyncio.get_running_loop()
        self.deadline = loop.call_later(seconds, self.transport.abort)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():  # nothing more is read on it
            return
        self.received += data
        if not self.waiting:
            self.waiting = True
            self._expect(_IN_TIME)
        try:
            while not self.transport.is_closing() and self._take():
                self.waiting = bool(self.received)
                self._expect(_IN_TIME if self.waiting else _IDLE)
        except _Refusal as refusal:  # where this request ends is not known: the connection, too
            self.last = True
            self._send(refusal.status, refusal.body)

    def _take(self) -> bool:
        """Answer one request if all of it is there."""
        if self.head is None:
            end = self.received.find(b"\r\n\r\n")
            if end < 0 and len(self.received) <= _MOST_HEAD:
                return False
            if not 0 <= end <= _MOST_HEAD:
                raise _Refusal(431, f"Headers have at most {_MOST_HEAD} bytes; got more.")
            self._begin(self.received[:end].decode("latin-1"))
            del self.received[: end + 4]
        if len(self.received) < self.length:
            return False
        assert self.head is not None
        body = bytes(self.received[: self.length])
        del self.received[: self.length]
        head, self.head = self.head, None
        self._send(*self.endpoint.respond(*head, body))
        return True

    def _begin(self, text: str) -> None:
        """Read the head of a request."""
        first, *lines = text.lstrip("\r\n").split("\r\n")
        words = first.split(" ")
        pairs = [line.partition(":") for line in lines]
        if len(words) != 3 or not words[2].startswith("HTTP/1.") or not all(p[1] for p in pairs):
            raise _Refusal(400, f"This server speaks HTTP/1.1; got {first[:60]!r}.")
        headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
        if "transfer-encoding" in headers:
            raise _Refusal(411, "A request says its Content-Length; this one comes in chunks.")
        length = headers.get("content-length", "0")
        if not (length.isascii() and length.isdigit()):
            raise _Refusal(400, f"Content-Length is a whole number; got {length[:20]!r}.")
        if len(length) > 12 or int(length) > _MOST_BODY:
            raise _Refusal(413, f"A request has at most {_MOST_BODY} bytes; got {length[:20]}.")
        if words[1].partition("?")[0].rstrip("/") != "/health":
            self.endpoint.check_key(headers.get("authorization", ""))  # before the body is taken
        wish = headers.get("connection", "").lower()
        self.last = "close" in wish or (words[2] == "HTTP/1.0" and "keep-alive" not in wish)
        self.length = int(length)
        if headers.get("expect", "").lower() == "100-continue":
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        self.head = (words[0], words[1], headers)

    def _send(self, status: int, content: Any) -> None:
        body = json.dumps(content).encode()
        self.transport.write(
            (
                f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n"
                "content-type: application/json\r\n"
                f"content-length: {len(body)}\r\n"
                f"x-request-id: req-{next(self._numbers)}\r\n"
                f"connection: {'close' if self.last else 'keep-alive'}\r\n\r\n"
            ).encode()
            + body
        )
        if self.last:
            self.transport.close()
