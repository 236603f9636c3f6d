"""Anthropic's models: the messages interface."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from knownminds.calling import Sampling
from knownminds.environments import Message, Prompt
from knownminds.llm_adapters.adapter import Reply, Usage, refused

from .http import Http, added, in_parts, members_of, usage_of

# The later version, 2026-10-21, takes no temperature from any model.
_VERSION = "2023-06-01"


class Anthropic(Http):
    """A model behind Anthropic's messages interface, which wants `max_tokens` with every call."""

    provider = "anthropic"
    address, variable = "https://api.anthropic.com", "ANTHROPIC_API_KEY"
    path = "/v1/messages"
    heeds = frozenset({"temperature", "top_p", "max_tokens", "reasoning_effort", "images"})
    header, form = "x-api-key", "{}"
    headers: ClassVar = {"anthropic-version": _VERSION}
    rule = "A reply holds a list called content"
    reasons: ClassVar = {
        "end_turn": "stop",
        "stop_sequence": "stop",
        "max_tokens": "length",
        "model_context_window_exceeded": "length",
    }

    def request(self, prompt: Prompt, settings: Sampling) -> dict[str, Any]:
        """Return what is sent, as JSON has it, with marks on what later prompts repeat."""
        if settings.max_tokens is None:
            raise refused(f"{self.model} takes no call without max_tokens; got none. Set it.")
        first, others = split(prompt, "Anthropic")
        system: list[dict[str, Any]] = [{"type": "text", "text": m.content} for m in first]
        messages = [in_parts(m, _picture) for m in others]
        _mark(system, messages)
        options: dict[str, Any] = {"max_tokens": settings.max_tokens}
        for name in ("temperature", "top_p"):
            if getattr(settings, name) is not None:
                options[name] = getattr(settings, name)
        if settings.reasoning_effort == "none":
            options["thinking"] = {"type": "disabled"}
        elif settings.reasoning_effort is not None:
            options["thinking"] = {"type": "adaptive"}
            options["output_config"] = {"effort": settings.reasoning_effort}
        shown = {"system": system} if system else {}
        return {"model": self.model, "messages": messages, **shown, **options}

    def answer(self, content: dict[str, Any], body: bytes, likely: bool) -> Reply:
        """Return the reply in a body."""
        text = "".join(part["text"] for part in content["content"] if part["type"] == "text")
        reason, usage = content.get("stop_reason"), self.usage(content)
        return Reply(text, str(reason or ""), usage, str(content.get("model") or ""))

    def usage(self, content: dict[str, Any]) -> Usage:
        """Return the tokens that a body tells of."""
        return _usage(members_of(content.get("usage")))


def split(prompt: Prompt, provider: str) -> tuple[list[Message], list[Message]]:
    """Return the system's messages, which stand apart, and the others."""
    n = next((i for i, m in enumerate(prompt.messages) if m.role != "system"), 0)
    if any(m.role == "system" for m in prompt.messages[n:]):
        raise refused(
            f"{provider} takes system messages at the beginning of a prompt only; this one has "
            "others. Put them first."
        )
    return list(prompt.messages[:n]), list(prompt.messages[n:])


def _usage(usage: Mapping[str, Any]) -> Usage:
    sent, cached, written = map(
        usage.get, ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    )
    if sent is not None:  # what goes to and comes from the cache is counted apart
        sent = added(sent, cached, written)
    thought = members_of(usage.get("output_tokens_details")).get("thinking_tokens")
    return usage_of(sent, usage.get("output_tokens"), thought, cached, written)


def _mark(system: list[dict[str, Any]], messages: list[Any]) -> None:
    """Mark the beginning that other calls share, for Anthropic puts nothing else into its cache.

    It is what all prompts begin with, and a conversation so far: the next call repeats and
    prolongs it. What is shorter than a model's least (1,024 to 4,096 tokens) is passed over by the
    server, and costs nothing. A single message is not marked: nothing says that it comes again.
    """
    marked = [system[-1]] if system else []
    if any(message["role"] == "assistant" for message in messages):
        last = messages[-1]
        if isinstance(last["content"], str):
            last["content"] = [{"type": "text", "text": last["content"]}]
        marked.append(last["content"][-1])
    for part in marked:
        part["cache_control"] = {"type": "ephemeral"}


def _picture(data: str) -> dict[str, Any]:
    source = {"type": "base64", "media_type": "image/png", "data": data}
    return {"type": "image", "source": source}
