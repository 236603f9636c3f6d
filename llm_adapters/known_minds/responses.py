"""OpenAI's Responses in the terms of chat completions: the same answers, in the other shape."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .chat_completions import Refusal, parts

_SAME = (
    "model", "temperature", "top_p", "seed", "top_logprobs", "stream", "stream_options",
    "tools", "tool_choice", "parallel_tool_calls", "user", "metadata", "store", "service_tier",
    "safety_identifier", "prompt_cache_key", "prompt_cache_retention",
)  # fmt: skip
# What has another name or form there, and what changes nothing.
_OTHER = ("input", "instructions", "max_output_tokens", "reasoning", "text", "include")
_NEUTRAL: dict[str, tuple[Any, ...]] = {
    "background": (False,),
    "truncation": ("auto", "disabled"),  # nothing is ever cut out of an input
}
_LIKELIHOOD = "message.output_text.logprobs"
_INCLUDED = (_LIKELIHOOD, "reasoning.encrypted_content")  # a known mind has none of the latter
_TEXTS = ("input_text", "output_text", "text")


def as_chat(body: dict[str, Any]) -> dict[str, Any]:
    """Return the request for a chat completion that asks for the same.

    Raises
    ------
    Refusal
        If there is none.
    """
    for name, value in body.items():
        known = name in _SAME or name in _OTHER or value in _NEUTRAL.get(name, ())
        if value is not None and not known:
            raise Refusal(
                400,
                f"A known mind answers each request for itself and cannot heed {name[:60]}. Leave "
                "it out.",
                name[:60],
                "unsupported_value" if name in _NEUTRAL else "unknown_parameter",
            )
    chat = {name: body[name] for name in _SAME if name in body}
    chat["messages"] = _messages(body)
    chat["max_completion_tokens"] = body.get("max_output_tokens")
    reasoning = _only(body, "reasoning", ("effort", "summary"))
    chat["reasoning_effort"] = reasoning.get("effort")
    text = _only(body, "text", ("format", "verbosity"))
    chat |= {"response_format": text.get("format"), "verbosity": text.get("verbosity")}
    include = body.get("include") or []
    if not isinstance(include, list) or any(what not in _INCLUDED for what in include):
        raise Refusal(
            400, f"include is a list of {' and '.join(_INCLUDED)}; got {str(include)[:60]}."
        )
    if _LIKELIHOOD in include or body.get("top_logprobs") is not None:
        chat["logprobs"] = True
    return chat


def _only(body: dict[str, Any], name: str, known: tuple[str, ...]) -> dict[str, Any]:
    given = body.get(name) or {}
    if not isinstance(given, dict) or set(given) - set(known):
        raise Refusal(
            400,
            f"{name} holds {' and '.join(known)}; got {str(given)[:60]}.",
            name,
            "unsupported_value",
        )
    return given


def _messages(body: dict[str, Any]) -> list[Any]:
    given, instructions = body.get("input"), body.get("instructions")
    if isinstance(given, str):
        given = [{"role": "user", "content": given}]
    messages = [_message(item) for item in given] if isinstance(given, list) else []
    if instructions is not None and messages:
        return [{"role": "system", "content": instructions}, *messages]
    return messages


def _message(item: Any) -> Any:
    """Return an item of the input as a message; what is none is left for others to refuse."""
    if not isinstance(item, dict) or not isinstance(item.get("content"), list):
        return item
    content = []
    for part in item["content"]:
        kind = part.get("type") if isinstance(part, dict) else None
        if kind in _TEXTS:
            part = {"type": "text", "text": part.get("text")}
        elif kind == "input_image":
            part = {"type": "image_url", "image_url": {"url": part.get("image_url")}}
        content.append(part)
    return {**item, "content": content}


def as_response(completion: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
    """Return the response that says what a chat completion says."""
    (choice,) = completion["choices"]
    number = completion["id"].removeprefix("chatcmpl-")
    whole = choice["finish_reason"] != "length"
    usage = completion["usage"]
    return {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": completion["created"],
        "status": "completed" if whole else "incomplete",
        "background": False,
        "error": None,
        "incomplete_details": None if whole else {"reason": "max_output_tokens"},
        "instructions": body.get("instructions"),
        "max_output_tokens": body.get("max_output_tokens"),
        "metadata": body.get("metadata") or {},
        "model": completion["model"],
        "output": [_item(f"msg_{number}", choice)],
        "parallel_tool_calls": True,
        "previous_response_id": None,
        "reasoning": {"effort": None, "summary": None},
        "store": False,
        "temperature": body.get("temperature"),
        "text": {"format": {"type": "text"}},
        "tool_choice": "auto",
        "tools": [],
        "top_logprobs": body.get("top_logprobs"),
        "top_p": body.get("top_p"),
        "truncation": "disabled",
        "usage": {
            "input_tokens": usage["prompt_tokens"],
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": usage["completion_tokens"],
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": usage["total_tokens"],
        },
        "user": body.get("user"),
    }


def _item(name: str, choice: dict[str, Any]) -> dict[str, Any]:
    told = [token for _, tokens in parts(choice) for token in tokens or ()]
    return {
        "id": name,
        "type": "message",
        "status": "completed" if choice["finish_reason"] != "length" else "incomplete",
        "role": "assistant",
        "content": [_content(choice["message"]["content"], told)],
    }


def _content(text: str, told: list[dict[str, Any]]) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": told}


def events(response: dict[str, Any], completion: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the events of a stream that ends in this response, one for each token among them."""
    (item,), (choice,) = response["output"], completion["choices"]
    begun = {**response, "status": "in_progress", "output": [], "usage": None}
    begun["incomplete_details"] = None
    where = {"item_id": item["id"], "output_index": 0, "content_index": 0}
    whole = item["content"][0]

    def told() -> Iterator[tuple[str, dict[str, Any]]]:
        yield "created", {"response": begun}
        yield "in_progress", {"response": begun}
        empty = {**item, "status": "in_progress", "content": []}
        yield "output_item.added", {"output_index": 0, "item": empty}
        yield "content_part.added", {**where, "part": _content("", [])}
        for token, tokens in parts(choice):
            yield "output_text.delta", {**where, "delta": token, "logprobs": tokens or []}
        yield "output_text.done", {**where, "text": whole["text"], "logprobs": whole["logprobs"]}
        yield "content_part.done", {**where, "part": whole}
        yield "output_item.done", {"output_index": 0, "item": item}
        yield response["status"], {"response": response}

    for number, (kind, content) in enumerate(told()):
        yield {"type": f"response.{kind}", "sequence_number": number, **content}
