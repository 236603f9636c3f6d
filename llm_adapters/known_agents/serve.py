"""A known agent behind an OpenAI-compatible endpoint, for anybody's evaluation pipeline."""

from __future__ import annotations

import hashlib
import hmac
import json
import socket
import threading
import time
from collections.abc import Iterable, Sequence
from itertools import count
from typing import Any

from knownminds.agents import Contaminants, Model
from knownminds.environments import Environment

from .chat_completions import (
    CompletionRequest,
    Refusal,
    as_response,
    chunks,
    complete,
    events,
    read_request,
)
from .several import SeveralAgents
from .synthetic import Synthetic

try:
    from starlette.applications import Starlette
    from starlette.datastructures import Headers
    from starlette.exceptions import HTTPException
    from starlette.requests import ClientDisconnect, Request
    from starlette.responses import Response, StreamingResponse
    from starlette.routing import Route
    from starlette.types import Receive, Scope, Send
    from uvicorn import Config, Server
except ImportError:
    raise ImportError(
        'Serving a known agent needs Starlette and uvicorn: pip install "knownminds[serve]"'
    ) from None

_MOST_HEAD = 2**16  # bytes of a request's headers
_MOST_BODY = 2**23  # bytes of a request's body
_MOST_CONNECTIONS = 512
_PATIENCE = 2  # seconds for the last bytes to leave when the server stops


class Served:
    """A known agent behind an OpenAI-compatible address, in a thread of its own.

    It answers ``POST {base_url}/chat/completions`` and ``POST {base_url}/responses``, whole or as a
    stream of server-sent events. ``GET {base_url}/models`` lists the one model,
    ``GET {base_url}/models/NAME`` tells of it, and ``GET /health`` says how many requests were
    answered.

    It is stateless: the past is read out of the prompt, as a real model must. What is promised:

    - A `seed` in the request names the session. The answers are then draw for draw those of
      ``play(agent, environment, seed, *address, request's seed)``.
    - Without one, or if `seed_is_session` is False, the same agent answers with the same
      probabilities. The random number of an answer belongs to the prompt (and the seed). The same
      request is answered alike at any time; different prompts are independent.

    System messages before the prompt are passed over. Temperature, top_p, max tokens, stop and
    log-probabilities are heeded as `Synthetic` says. A setting that cannot be heeded is refused
    with status 400 and never dropped silently. The key is checked before a body is read. A head has
    at most 64 KiB, a body 8 MiB, and at most 512 connections are held. Slow clients are waited for:
    put a proxy before it unless it listens on the loopback.

    ::

        with Served(environment, agent, seed=11) as served:
            client = openai.OpenAI(base_url=served.base_url, api_key="none")

    Parameters
    ----------
    environment : The experiment, with the settings and wording of the prompts it will get.
    agent : Who answers; or known agents of several experiments, which then have all that
        `Synthetic` takes.
    seed, address : Of the study whose sessions are played.
    host, port : Where to listen; port 0 for a free one.
    contaminants : How often answers go wrong.
    model : The name that requests must have.
    api_key : A key that requests must bear; None for none.
    seed_is_session : False for clients that send a seed of their own with every request.

    Raises
    ------
    ValueError : If the port cannot be had.
    """

    def __init__(
        self,
        environment: Environment | None,
        agent: Model | SeveralAgents,
        *,
        seed: int = 0,
        address: Sequence[int] = (),
        host: str = "127.0.0.1",
        port: int = 0,
        contaminants: Contaminants | None = None,
        model: str = "known-agent",
        api_key: str | None = None,
        seed_is_session: bool = True,
    ):
        known_agent: Synthetic | SeveralAgents
        if isinstance(agent, SeveralAgents):
            known_agent = agent
        elif environment is None:
            raise ValueError("An agent plays an experiment; got none. Name one.")
        else:
            known_agent = Synthetic(
                agent,
                environment,
                seed,
                *address,
                contaminants=contaminants,
                seed_is_session=seed_is_session,
            )
        self.agent, self.model = agent, model
        self._endpoint = _Endpoint(known_agent, model, api_key)
        self._socket = _listening(host, port)
        self.host, self.port = host, int(self._socket.getsockname()[1])
        self._thread: threading.Thread | None = None
        self._server = Server(
            Config(
                self._endpoint,
                interface="asgi3",
                loop="asyncio",
                http="h11",
                ws="none",
                lifespan="off",
                log_config=None,
                log_level="error",
                access_log=False,
                proxy_headers=False,
                server_header=False,
                date_header=False,
                limit_concurrency=_MOST_CONNECTIONS,
                timeout_graceful_shutdown=_PATIENCE,
                h11_max_incomplete_event_size=_MOST_HEAD,
            )
        )

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
        """How many requests were answered with what the agent said."""
        return self._endpoint.calls

    def start(self) -> Served:
        """Begin to answer, in a thread."""
        if self._thread is not None:
            raise ValueError("A server starts once; this one has been. Make another.")
        self._thread = threading.Thread(target=self.run, daemon=True)
        self._thread.start()
        while not self._server.started and self._thread.is_alive():
            time.sleep(0.005)
        return self

    def close(self) -> None:
        """Answer what has come, close the connections, and stop."""
        self._server.should_exit = True
        if self._thread is not None:
            self._thread.join()
        self._socket.close()

    def run(self) -> None:
        """Answer in this thread until `close` is called or, in the main thread, a signal comes.

        An interrupt is handed on once what had come is answered.
        """
        self._server.run([self._socket])

    def __enter__(self) -> Served:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()


def _listening(host: str, port: int) -> socket.socket:
    if not 0 <= port < 2**16:
        raise ValueError(f"Ports go from 0 to 65535; got {port}.")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family, backlog=1024)
    except OSError as error:
        raise ValueError(
            f"A server listens where it may and nobody else does; {host} port {port} cannot be had "
            f"({error.strerror or error}). Choose another port, or 0 for a free one."
        ) from None
    # Heads and bodies leave in two pieces, and the second would wait for the first's receipt.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


class _Endpoint:
    """What is answered at each path; nothing is kept but the counts."""

    def __init__(self, agent: Synthetic | SeveralAgents, model: str, api_key: str | None):
        self.agent, self.model, self.api_key = agent, model, api_key
        self.calls = 0
        self.numbers = count(1)  # of replies
        self.application = Starlette(
            routes=[
                Route("/v1/chat/completions", self.chat, methods=["POST"]),
                Route("/v1/responses", self.responses, methods=["POST"]),
                Route("/v1/models", self.models),
                Route("/v1/models/{name:path}", self.one_model),
                Route("/health", self.health),
            ],
            exception_handlers=dict.fromkeys(
                (Refusal, RecursionError, HTTPException, ClientDisconnect), self.refuse
            ),
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; without the key that is due, nothing of its body is looked at."""
        key, due = Headers(scope=scope).get("authorization", ""), f"Bearer {self.api_key}"
        knows = self.api_key is None or hmac.compare_digest(key.encode(), due.encode())
        if knows or scope["path"] == "/health":
            await self.application(scope, receive, send)
            return
        message = (
            "The key that this server was started with must be sent as a bearer token; it was not."
        )
        refusal = Refusal(401, message, code="invalid_api_key")
        await self.reply(refusal.body, 401)(scope, receive, send)

    async def chat(self, request: Request) -> Response:
        """Answer with a chat completion."""
        completion, question = await self.completion(request)
        if not question.stream:
            return self.reply(completion)
        options = question.stream_options
        parts = chunks(completion, usage=options is not None and options.include_usage)
        return self.stream([*(f"data: {json.dumps(c)}\n\n" for c in parts), "data: [DONE]\n\n"])

    async def responses(self, request: Request) -> Response:
        """Answer with a response."""
        completion, question = await self.completion(request)
        response = as_response(completion, question)
        if not question.stream:
            return self.reply(response)
        parts = events(response)
        return self.stream([f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in parts])

    async def completion(self, request: Request) -> tuple[dict[str, Any], CompletionRequest]:
        """Return the completion, and count it."""
        raw = await _body(request)
        question, number = read_request(raw), hashlib.sha256(raw).hexdigest()[:24]
        completion = complete(self.agent, self.model, question, number)
        self.calls += 1
        return completion, question

    async def models(self, request: Request) -> Response:
        """List the one model."""
        return self.reply({"object": "list", "data": [self.about()]})

    async def one_model(self, request: Request) -> Response:
        """Tell of a model, which is there if it is the one."""
        name = str(request.path_params["name"])
        if name != self.model:
            message = f"The model is {self.model}; got {name[:60]!r}."
            raise Refusal(404, message, "model", "model_not_found")
        return self.reply(self.about())

    def about(self) -> dict[str, Any]:
        """Return the model as lists have it."""
        return {"id": self.model, "object": "model", "created": 0, "owned_by": "knownminds"}

    async def health(self, request: Request) -> Response:
        """Say how many requests were answered."""
        return self.reply({"status": "ok", "calls": self.calls})

    async def refuse(self, request: Request, error: Exception) -> Response:
        """Say in OpenAI's words for errors why a request is not answered."""
        if isinstance(error, HTTPException):
            message = (
                "There are POST /v1/chat/completions, POST /v1/responses, GET /v1/models "
                "and GET /v1/models/NAME; got "
                f"{request.method[:20]} {request.url.path[:60]}."
            )
            error = Refusal(error.status_code, message)
        elif not isinstance(error, Refusal):
            error = Refusal(400, "A request comes whole and holds few lists within lists.")
        return self.reply(error.body, error.status)

    def reply(self, content: Any, status: int = 200) -> Response:
        """Return a reply in JSON; after some refusals the connection is closed unread."""
        close = {"connection": "close"} if status in (401, 413) else {}
        return Response(json.dumps(content), status, self.headers() | close, "application/json")

    def stream(self, parts: Iterable[str]) -> Response:
        """Return a reply that comes in pieces."""
        return StreamingResponse(iter(parts), 200, self.headers(), "text/event-stream")

    def headers(self) -> dict[str, str]:
        """Number a reply."""
        return {"x-request-id": f"req-{next(self.numbers)}"}


async def _body(request: Request) -> bytes:
    """Return a request's body; a refusal as soon as it is known to be too long."""
    taken = bytearray()
    length = int(request.headers.get("content-length", 0))
    if length <= _MOST_BODY:
        async for part in request.stream():
            taken += part
            if len(taken) > _MOST_BODY:
                break
    if max(length, len(taken)) > _MOST_BODY:
        raise Refusal(413, f"A request has at most {_MOST_BODY} bytes; got more.")
    return bytes(taken)
