"""Chat completions as OpenAI has them: requests that a known mind can answer, and its replies."""

from __future__ import annotations

import base64
import binascii
import contextlib
import json
from collections.abc import Iterator, Sequence
from math import inf
from typing import Any

from knownminds.environments import Message, Prompt, unknown
from knownminds.environments.words.prompt import Role
from knownminds.llm_adapters.adapter import (
    Failed,
    Reply,
    Sampling,
    TokenLogProbability,
)

from .synthetic import Synthetic, tokens_of

_MOST_ALTERNATIVES = 20  # as OpenAI has it
_NO_CHANCE = -9999.0  # OpenAI's log-probability of what cannot be; JSON has no -infinity

_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
}
_HEEDED = (
    "model", "messages", "temperature", "top_p", "max_tokens", "max_completion_tokens", "seed",
    "reasoning_effort", "logprobs", "top_logprobs", "stop", "stream", "stream_options",
)  # fmt: skip
# Settings that would change an answer in ways a known mind has not: the values that change nothing.
_NEUTRAL: dict[str, tuple[Any, ...]] = {
    "n": (1,),
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


class Refusal(Exception):  # noqa: N818
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


def check_model(name: str, model: str) -> None:
    """Raise a refusal if a request asks for another model than the one that is served."""
    if name != model:
        raise Refusal(404, unknown("model", name, [model]), "model", "model_not_found")


def complete(mind: Synthetic, model: str, body: dict[str, Any], number: str) -> dict[str, Any]:
    """Return the chat completion that a request is answered with.

    Parameters
    ----------
    model
        The name that requests must ask for.
    number
        Of the request, for the completion's id.

    Raises
    ------
    Refusal
        If it asks for what a known mind cannot heed, or is no prompt of its experiment.
    """
    name = body.get("model")
    if not isinstance(name, str):
        raise Refusal(400, f"A request names a model; got {name!r}.", "model")
    check_model(name, model)
    _check_settings(body)
    prompt = Prompt(_messages(body.get("messages")))
    settings = _settings(body)
    try:
        reply = mind.answer(prompt, settings)
    except Failed as error:
        if error.then == "skip":
            raise Refusal(400, str(error), "messages", "invalid_prompt") from None
        raise Refusal(400, str(error), code="unsupported_value") from None
    except ArithmeticError as error:
        raise Refusal(
            500,
            f"{mind.agent!r} could not work out its choice: {error}.",
            code="computation_failed",
        ) from error
    text, tokens = _stopped(reply, body.get("stop"))
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


def streams(body: dict[str, Any]) -> bool:
    """Say whether an answer is to come as a stream; a refusal if that cannot be told."""
    stream, options = body.get("stream"), body.get("stream_options")
    if not isinstance(stream, bool | None):
        raise Refusal(400, f"stream is true or false; got {str(stream)[:60]!r}.", "stream")
    known = ("include_usage", "include_obfuscation")
    if options is not None and not (
        stream
        and isinstance(options, dict)
        and all(name in known and isinstance(value, bool) for name, value in options.items())
        and not options.get("include_obfuscation")
    ):
        raise Refusal(
            400,
            "stream_options go with stream=true and hold include_usage, true or false; got "
            f"{json.dumps(options)[:60]}.",
            "stream_options",
        )
    return bool(stream)


def chunks(completion: dict[str, Any], *, usage: bool) -> Iterator[dict[str, Any]]:
    """Cut a chat completion into those of a stream, a token each.

    Parameters
    ----------
    usage
        Whether the numbers of tokens come with a last one.
    """
    (choice,) = completion["choices"]
    same = {name: completion[name] for name in ("id", "created", "model")}
    same |= {"object": "chat.completion.chunk"} | ({"usage": None} if usage else {})
    deltas: list[tuple[dict[str, Any], Any, str | None]] = [
        ({"role": "assistant", "content": "", "refusal": None}, None, None)
    ]
    for token, told in parts(choice):
        logprobs = None if told is None else {"content": told, "refusal": None}
        deltas.append(({"content": token}, logprobs, None))
    deltas.append(({}, None, choice["finish_reason"]))
    for delta, logprobs, end in deltas:
        one = {"index": 0, "delta": delta, "logprobs": logprobs, "finish_reason": end}
        yield {**same, "choices": [one]}
    if usage:
        yield {**same, "choices": [], "usage": completion["usage"]}


def parts(choice: dict[str, Any]) -> Iterator[tuple[str, list[dict[str, Any]] | None]]:
    """Yield the tokens of a choice in turn, each with what is told of it."""
    if choice["logprobs"] is None:
        yield from ((token, None) for token in tokens_of(choice["message"]["content"]))
    else:
        told = choice["logprobs"]["content"]
        yield from ((token["token"], [token]) for token in told)
        left = choice["message"]["content"][sum(len(token["token"]) for token in told) :]
        if left:  # of a token that a stop has cut in two
            yield left, []


def json_object(raw: bytes) -> dict[str, Any]:
    """Return the body of a request; a refusal if it is no JSON object."""
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise Refusal(
            400, f"A request's body is JSON; this one is not: {str(error)[:120]}.", None, "bad_json"
        ) from None
    if not isinstance(body, dict):
        raise Refusal(400, f"A request's body is a JSON object; got {str(body)[:60]}.")
    return body


def _check_settings(body: dict[str, Any]) -> None:
    for name, value in body.items():
        if value is None or name in _HEEDED or name in _ASIDE:
            continue
        if name not in _NEUTRAL:
            raise Refusal(
                400,
                f"Unrecognized request argument supplied: {name[:60]}. Leave it out.",
                name[:60],
                "unknown_parameter",
            )
        if value not in _NEUTRAL[name]:
            one = name == "n"
            what = "A request gets one answer here" if one else f"A known mind cannot heed {name}"
            raise Refusal(
                400,
                f"{what}; got {name}={json.dumps(value)[:60]}. Leave it out.",
                name,
                "unsupported_value",
            )


_PNG = "data:image/png;base64,"


def _messages(given: Any) -> tuple[Message, ...]:
    if not isinstance(given, list) or not given:
        raise Refusal(
            400, "A request holds a list of messages, at least one; got none.", "messages"
        )
    messages = []
    for i, message in enumerate(given):
        try:
            role, content = _ROLES[message["role"]], message.get("content")
        except (KeyError, TypeError):
            raise Refusal(
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
        raise Refusal(
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
            raise Refusal(
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
    raise Refusal(
        400,
        f"A picture comes as a data URL of a PNG, {_PNG}...; message {i} has {str(url)[:60]!r}.",
        f"messages[{i}].content",
    )


def _settings(body: dict[str, Any]) -> Sampling:
    limits = [body.get(name) for name in ("max_tokens", "max_completion_tokens")]
    asked, alternatives = body.get("logprobs") or False, body.get("top_logprobs")
    if not isinstance(asked, bool) or (alternatives is not None and not asked):
        raise Refusal(
            400,
            "logprobs is true or false, and must be true for top_logprobs; got "
            f"logprobs={str(asked)[:20]}.",
            "logprobs",
        )
    alternatives = _whole(alternatives, "top_logprobs") or 0
    if alternatives > _MOST_ALTERNATIVES:
        raise Refusal(
            400,
            f"top_logprobs goes from 0 to {_MOST_ALTERNATIVES}; got {alternatives}.",
            "top_logprobs",
        )
    temperature, top_p = (body.get(name) for name in ("temperature", "top_p"))
    for name, value in (("temperature", temperature), ("top_p", top_p)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise Refusal(400, f"{name} is a number; got {str(value)[:60]!r}.", name)
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
        raise Refusal(400, str(error), code="unsupported_value") from None


def _whole(value: Any, name: str) -> int | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    raise Refusal(400, f"{name} is a whole number; got {str(value)[:60]!r}.", name)


def _stopped(reply: Reply, stop: Any) -> tuple[str, Sequence[TokenLogProbability] | None]:
    """Return text and tokens up to the first of the client's stops."""
    stops = [stop] if isinstance(stop, str) else stop or []
    if not isinstance(stops, list) or not all(isinstance(s, str) and s for s in stops):
        raise Refusal(400, f"stop is a text or a list of texts; got {str(stop)[:60]!r}.", "stop")
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
