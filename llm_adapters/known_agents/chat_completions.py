"""Chat completions and responses as OpenAI has them: requests that a known agent can answer.

Some settings would change an answer in ways that a known agent has not. They are taken with the
value that changes nothing, and refused with any other. What is no setting of OpenAI's is refused
too.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Sequence
from math import inf
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from knownminds.calling import Sampling
from knownminds.environments import Message, Prompt, unknown
from knownminds.environments.words.prompt import Role
from knownminds.llm_adapters.adapter import Failed, Reply, TokenLogProbability

from .several import SeveralAgents
from .synthetic import Synthetic

_NO_CHANCE = -9999.0  # OpenAI's log-probability of what cannot be; JSON has no -infinity
_PNG = "data:image/png;base64,"

Nothing = Annotated[list[Any], Field(max_length=0)]
Zero = Annotated[float, Field(ge=0, le=0)]
Stop = Annotated[str, Field(min_length=1)]


class Refusal(Exception):  # noqa: N818
    """A request that is not answered, in OpenAI's words for errors."""

    def __init__(
        self, status: int, message: str, param: str | None = None, code: str | None = None
    ):
        super().__init__(message)
        self.status = status
        kind = "invalid_request_error" if status < 500 else "server_error"
        self.body = {"error": {"message": message, "type": kind, "param": param, "code": code}}


class _Strict(BaseModel):
    """What holds nothing but its fields, of exactly their types."""

    model_config = ConfigDict(extra="forbid", strict=True)


class _Picture(_Strict):
    url: str
    detail: str | None = None


class _Part(_Strict):
    type: Literal["text", "image_url", "input_text", "output_text", "input_image"]
    text: str | None = None
    image_url: _Picture | str | None = None
    detail: str | None = None
    annotations: list[Any] | None = None
    logprobs: list[Any] | None = None

    def png(self) -> bytes:
        """Return the bytes of the picture; a known agent fetches nothing."""
        url = self.image_url.url if isinstance(self.image_url, _Picture) else self.image_url
        if url is None or not url.startswith(_PNG):
            message = f"A picture comes as a data URL of a PNG, {_PNG}...; got {str(url)[:60]!r}."
            raise Refusal(400, message, "messages")
        try:
            return base64.b64decode(url[len(_PNG) :], validate=True)
        except binascii.Error:
            raise Refusal(400, "A picture is in base 64; this one is not.", "messages") from None


class _Said(_Strict):
    role: Literal["system", "developer", "user", "assistant"]
    content: str | list[_Part] | None = None
    name: str | None = None
    refusal: str | None = None
    type: Literal["message"] | None = None
    id: str | None = None
    status: str | None = None

    def message(self) -> Message:
        """Return it as a message of ours."""
        role: Role = "system" if self.role == "developer" else self.role
        if isinstance(self.content, str):
            return Message(role, _in_lines(self.content))
        if self.content is None and role != "assistant":
            raise Refusal(400, "A message has a content; one has none.", "messages")
        parts = self.content or []
        shown = [part for part in parts if part.type in ("image_url", "input_image")]
        if shown and role != "user":
            message = f"Pictures are shown by the user; a message of the role {role} has one."
            raise Refusal(400, message, "messages")
        text = "".join(part.text or "" for part in parts)
        return Message(role, _in_lines(text), tuple(part.png() for part in shown))


def _in_lines(text: str) -> str:
    """Return a text with the line ends of ours, whatever a client ends lines and texts with."""
    return text.replace("\r\n", "\n").replace("\r", "\n").rstrip("\n")


class _Stream(_Strict):
    include_usage: bool = False
    include_obfuscation: Literal[False] | None = None


class _Reasoning(_Strict):
    effort: str | None = None
    summary: str | None = None


class _Format(_Strict):
    type: Literal["text"]


class _Text(_Strict):
    format: _Format | None = None
    verbosity: Literal["medium"] | None = None


class CompletionRequest(_Strict):
    """A request for a chat completion, or for a response: the same question in another shape."""

    model: str
    messages: Annotated[list[_Said], Field(min_length=1)] | None = None
    input: str | Annotated[list[_Said], Field(min_length=1)] | None = None
    instructions: str | None = None
    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    max_output_tokens: int | None = None
    reasoning_effort: str | None = None
    reasoning: _Reasoning | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    include: list[Literal["message.output_text.logprobs", "reasoning.encrypted_content"]] = []
    stop: str | list[Stop] | None = None
    stream: bool | None = None
    stream_options: _Stream | None = None
    # Settings with the only value that a known agent can heed.
    n: Literal[1] | None = None
    presence_penalty: Zero | None = None
    frequency_penalty: Zero | None = None
    logit_bias: Annotated[dict[str, Any], Field(max_length=0)] | None = None
    response_format: _Format | None = None
    text: _Text | None = None
    modalities: list[Literal["text"]] | None = None
    verbosity: Literal["medium"] | None = None
    functions: Nothing | None = None
    function_call: Literal["none", "auto"] | None = None
    tools: Nothing | None = None
    tool_choice: Literal["none", "auto"] | None = None
    parallel_tool_calls: bool | None = None
    background: Literal[False] | None = None
    truncation: Literal["auto", "disabled"] | None = None  # nothing is ever cut out of an input
    # Settings of the account and not of the answer.
    user: str | None = None
    metadata: dict[str, Any] | None = None
    store: bool | None = None
    service_tier: str | None = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None
    prompt_cache_retention: str | None = None

    def prompt(self) -> Prompt:
        """Return what is shown."""
        said = self.messages if self.messages is not None else self.input
        if said is None:
            message = "A request has messages or, for a response, input; this one has none."
            raise Refusal(400, message, "messages", "unsupported_value")
        shown = [_Said(role="user", content=said)] if isinstance(said, str) else list(said)
        if self.instructions is not None:
            shown.insert(0, _Said(role="system", content=self.instructions))
        return Prompt(tuple(one.message() for one in shown))

    def sampling(self) -> Sampling:
        """Return its settings as ours; a refusal if they contradict each other."""
        as_response = "message.output_text.logprobs" in self.include or self.messages is None
        if self.top_logprobs is not None and not (self.logprobs or as_response):
            raise Refusal(400, "logprobs must be true for top_logprobs; it is not.", "logprobs")
        limits = (self.max_tokens, self.max_completion_tokens, self.max_output_tokens)
        effort: Any = self.reasoning.effort if self.reasoning else self.reasoning_effort
        likely = self.logprobs or self.include or self.top_logprobs is not None
        try:
            return Sampling(
                temperature=self.temperature,
                top_p=self.top_p,
                max_tokens=next((most for most in limits if most is not None), None),
                seed=self.seed,
                reasoning_effort=effort,
                top_log_probabilities=(self.top_logprobs or 0) if likely else None,
            )
        except (ValueError, TypeError) as error:
            raise Refusal(400, str(error), code="unsupported_value") from None


def read_request(raw: bytes) -> CompletionRequest:
    """Read the body of a request; a refusal if it is none."""
    try:
        request = CompletionRequest.model_validate_json(raw)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "the body"
        got = f"; got {str(first['input'])[:60]!r}" if first["type"] != "missing" else ""
        code = "unknown_parameter" if first["type"] == "extra_forbidden" else "unsupported_value"
        message = f"A known agent cannot take {where[:60]}: {first['msg'][:120]}{got}."
        raise Refusal(400, message, where[:60], code) from None
    if request.stream_options is not None and not request.stream:
        message = "stream_options go with stream=true; it is not."
        raise Refusal(400, message, "stream_options", "unsupported_value")
    return request


def complete(
    agent: Synthetic | SeveralAgents, model: str, question: CompletionRequest, number: str
) -> dict[str, Any]:
    """Return the chat completion that a request is answered with.

    Parameters
    ----------
    model : The name that requests must have.
    number : Of the request, for the completion's id.

    Raises
    ------
    Refusal : If it wants what a known agent cannot heed, or is no prompt of its experiment.
    """
    if question.model != model:
        message = unknown("model", question.model, [model])
        raise Refusal(404, message, "model", "model_not_found")
    try:
        reply = agent.answer(question.prompt(), question.sampling())
    except Failed as error:
        if error.then == "skip":
            raise Refusal(400, str(error), "messages", "unknown_prompt") from None
        raise Refusal(400, str(error), code="unsupported_value") from None
    except ArithmeticError as error:
        message = f"{agent.agent!r} could not work out its choice: {error}."
        raise Refusal(500, message, code="computation_failed") from error
    text, tokens = _stopped(reply, question.stop)
    likely = None if tokens is None else {"content": [_likely(t) for t in tokens], "refusal": None}
    sent, received = reply.usage.input_tokens or 0, reply.usage.output_tokens or 0
    choice: dict[str, Any] = {
        "index": 0,
        "message": {"role": "assistant", "content": text, "refusal": None},
        "logprobs": likely,
        "finish_reason": "stop" if text != reply.text else reply.finish_reason,
    }
    return {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": 0,  # the same request has the same reply, at any time
        "model": model,
        "choices": [choice],
        "usage": {
            "prompt_tokens": sent,
            "completion_tokens": received,
            "total_tokens": sent + received,
        },
    }


def chunks(completion: dict[str, Any], *, usage: bool) -> Iterator[dict[str, Any]]:
    """Return a chat completion as those of a stream: the answer, and its end.

    Parameters
    ----------
    usage : Whether the numbers of tokens come with a last one.
    """
    (choice,) = completion["choices"]
    same = {name: completion[name] for name in ("id", "created", "model")}
    same |= {"object": "chat.completion.chunk"} | ({"usage": None} if usage else {})
    answer = {"delta": choice["message"], "logprobs": choice["logprobs"], "finish_reason": None}
    end = {"delta": {}, "logprobs": None, "finish_reason": choice["finish_reason"]}
    for part in (answer, end):
        yield {**same, "choices": [{"index": 0, **part}]}
    if usage:
        yield {**same, "choices": [], "usage": completion["usage"]}


def as_response(completion: dict[str, Any], question: CompletionRequest) -> dict[str, Any]:
    """Return the response that says what a chat completion says."""
    (choice,) = completion["choices"]
    number, usage = completion["id"].removeprefix("chatcmpl-"), completion["usage"]
    cut = choice["finish_reason"] == "length"
    status = "incomplete" if cut else "completed"
    tokens = choice["logprobs"]["content"] if choice["logprobs"] else []
    text = {"type": "output_text", "text": choice["message"]["content"], "annotations": []}
    item = {"id": f"msg_{number}", "type": "message", "status": status, "role": "assistant"}
    echoed = ("instructions", "max_output_tokens", "temperature", "top_logprobs", "top_p", "user")
    return {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": completion["created"],
        "status": status,
        "error": None,
        "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
        "metadata": question.metadata or {},
        "model": completion["model"],
        "output": [{**item, "content": [{**text, "logprobs": tokens}]}],
        "parallel_tool_calls": True,
        "previous_response_id": None,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": usage["prompt_tokens"],
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": usage["completion_tokens"],
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": usage["total_tokens"],
        },
        **{name: getattr(question, name) for name in echoed},
    }


def events(response: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the events of a stream that ends in this response."""
    (item,) = response["output"]
    (whole,) = item["content"]
    begun = {**response, "status": "in_progress", "output": [], "usage": None}
    at = {"item_id": item["id"], "output_index": 0, "content_index": 0}
    likely = {"logprobs": whole["logprobs"]}
    empty = {**item, "status": "in_progress", "content": []}
    parts: list[tuple[str, dict[str, Any]]] = [
        ("created", {"response": begun}),
        ("output_item.added", {"output_index": 0, "item": empty}),
        ("content_part.added", {**at, "part": {**whole, "text": "", "logprobs": []}}),
        ("output_text.delta", {**at, "delta": whole["text"], **likely}),
        ("output_text.done", {**at, "text": whole["text"], **likely}),
        ("content_part.done", {**at, "part": whole}),
        ("output_item.done", {"output_index": 0, "item": item}),
        (response["status"], {"response": response}),
    ]
    for number, (kind, content) in enumerate(parts):
        yield {"type": f"response.{kind}", "sequence_number": number, **content}


def _stopped(
    reply: Reply, stop: str | list[str] | None
) -> tuple[str, Sequence[TokenLogProbability] | None]:
    """Return text and tokens up to the first of the client's stops."""
    stops = [stop] if isinstance(stop, str) else stop or []
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


def _likely(token: TokenLogProbability) -> dict[str, Any]:
    def one(name: str, value: float) -> dict[str, Any]:
        finite = _NO_CHANCE if value == -inf else value
        return {"token": name, "logprob": finite, "bytes": list(name.encode())}

    alternatives = [one(*pair) for pair in token.alternatives]
    return {**one(token.token, token.log_probability), "top_logprobs": alternatives}
