"""Anthropic's models, through the official package."""

from __future__ import annotations

import base64
import re
from typing import Any

from knownminds.environments import Prompt
from knownminds.llm_adapters.adapter import (
    AdapterError,
    Capabilities,
    NotCapable,
    Reply,
    Sampling,
    Usage,
    check_capable,
)

from .endpoint import MOST_BYTES, Caller, Endpoint, count, parsed

try:
    import anthropic

    from .transport import client
except ImportError:
    raise ImportError(
        'Anthropic models need the anthropic package: pip install "knownminds[anthropic]"'
    ) from None

# The later version, 2026-10-21, takes no temperature from any model.
_VERSION = "2023-06-01"
_ARGUMENTS = ("model", "messages", "system", "max_tokens")  # of the package's method
_REASONS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
}
# The last models that can be told how to sample; what follows refuses temperature and top_p.
_SAMPLED = re.compile(r"claude-(?:[123][-.]|instant|\w+-(?:4-[0156]|4-\d{8}|4$|3-))")
# Models whose reasoning goes by effort, and how it is switched off; None if it cannot be.
_EFFORTS: tuple[tuple[re.Pattern[str], dict[str, str] | None], ...] = (
    (re.compile(r"claude-(?:opus|sonnet)-4-6"), {}),  # off unless asked for
    (re.compile(r"claude-opus-4-[78]"), {}),
    (re.compile(r"claude-sonnet-5-5"), {"type": "between_tools"}),  # no tools, so none
    (
        re.compile(r"claude-(?:haiku-5|sonnet-5(?!-\d(?!\d))|opus-5(?!-\d(?!\d)))"),
        {"type": "disabled"},
    ),
    (re.compile(r"claude-"), None),
)


class Anthropic(Caller):
    """A model behind Anthropic's messages interface.

    Calls are made once: the package's own retries are off, since they buy an answer twice
    without telling. Proxies of the shell's environment and redirects are not followed. The
    interface is asked for in its version 2023-06-01, and wants `max_tokens` with every call.

    Parameters
    ----------
    model
        The model's name.
    base_url
        Where the server is.
    key_variable
        Name of the environment variable that holds the key; None for servers that need none.
    timeout
        Seconds until a call is given up.
    capabilities
        What the model can do; None for what `capabilities_of` knows.

    Raises
    ------
    ValueError
        If the address or the timeout is none.
    NoKey
        If the variable is empty.
    """

    provider = "anthropic"
    failures = (anthropic.APIStatusError, anthropic.APIConnectionError)

    def __init__(
        self,
        model: str,
        *,
        base_url: str = "https://api.anthropic.com",
        key_variable: str | None = "ANTHROPIC_API_KEY",
        timeout: float = 120.0,
        capabilities: Capabilities | None = None,
    ):
        endpoint = Endpoint(model, base_url, key_variable, timeout)
        super().__init__(endpoint, capabilities or capabilities_of(model))
        self._client = self.client(timeout)

    async def complete(self, prompt: Prompt, *, settings: Sampling) -> Reply:
        """Ask once."""
        images = bool(prompt.images)
        check_capable(self, settings, images=images)
        body = self.body(prompt, settings, cached=True)
        return await self.guarded(lambda: self._ask(body), settings, images=images)

    async def close(self) -> None:
        """Give back the connections."""
        await self._client.close()

    def client(self, timeout: float, most: int = MOST_BYTES) -> anthropic.AsyncAnthropic:
        """Return the package's client, which reads bodies of at most `most` bytes."""
        return anthropic.AsyncAnthropic(
            api_key="none",  # the client below writes it when sending
            base_url=self.base_url,
            max_retries=0,
            timeout=anthropic.Timeout(timeout, connect=min(timeout / 2, 10.0)),
            default_headers={"anthropic-version": _VERSION},
            # Not the package's own client, which takes the environment's proxies nevertheless.
            # Where both headers are sent, this one counts, in all versions of the interface.
            http_client=client(self._endpoint.sign("x-api-key"), most),
        )

    def body(self, prompt: Prompt, settings: Sampling, *, cached: bool = False) -> dict[str, Any]:
        """Return what is sent for a prompt; if `cached`, with marks on what later ones repeat."""
        system, messages = _messages(prompt)
        if cached:
            _mark(system, messages)
        shown = {"system": system} if system else {}
        return {"model": self.model, "messages": messages, **shown, **self._options(settings)}

    async def _ask(self, body: dict[str, Any]) -> Reply:
        own = {name: body[name] for name in _ARGUMENTS if name in body}
        # Not all others are arguments in all versions of the package.
        extra = {name: value for name, value in body.items() if name not in own}
        response = await self._client.messages.with_raw_response.create(**own, extra_body=extra)
        http = response.http_response
        return self.read(http.text, http.headers.get("request-id", ""))

    def meant(self, error: Exception, settings: Sampling, images: bool) -> AdapterError:
        """Return what an error of the package means."""
        if isinstance(error, anthropic.APIStatusError):
            http = error.response
            return self._endpoint.failed(
                http.status_code, http.headers, http.text, settings, images=images
            )
        return self._endpoint.unreachable(error.__cause__ or error)

    def _options(self, settings: Sampling) -> dict[str, Any]:
        if settings.temperature is not None and settings.temperature > 1:
            raise NotCapable(
                f"The temperature of {self.model} goes from 0 to 1; got {settings.temperature!r}."
            )
        if settings.temperature is not None and settings.top_p is not None:
            raise NotCapable(
                f"{self.model} takes either temperature or top_p; got both. Leave one out."
            )
        asked = {
            "max_tokens": settings.max_tokens,
            "temperature": settings.temperature,
            "top_p": settings.top_p,
        }
        options: dict[str, Any] = {name: v for name, v in asked.items() if v is not None}
        if settings.reasoning == "none":
            thinking = _off(self.model)
            if thinking is None:
                raise NotCapable(
                    f"{self.model} cannot be kept from reasoning; got reasoning='none'. "
                    "Ask for 'low', or choose another model."
                )
            if thinking:
                options["thinking"] = thinking
        elif settings.reasoning is not None:
            options["thinking"] = {"type": "adaptive"}
            options["output_config"] = {"effort": settings.reasoning}
        return options

    def read(self, body: str, request_id: str) -> Reply:
        """Read the body of an answer."""
        endpoint = self._endpoint
        raw = endpoint.masked(body)
        try:
            content = parsed(raw)
            text = "".join(part["text"] for part in content["content"] if part["type"] == "text")
            usage = content.get("usage") or {}
            received = usage.get("output_tokens_details") or {}
            reason = str(content.get("stop_reason") or "")
            cached = count(usage.get("cache_read_input_tokens"))
            written = count(usage.get("cache_creation_input_tokens"))
            sent = count(usage.get("input_tokens"))
            if sent is not None:  # what goes to and comes from the cache is counted apart
                sent += (cached or 0) + (written or 0)
            return Reply(
                text=text,
                finish_reason=_REASONS.get(reason, reason),
                usage=Usage(
                    sent,
                    count(usage.get("output_tokens")),
                    count(received.get("thinking_tokens")),
                    cached,
                    written,
                ),
                model_served=str(content.get("model") or ""),
                raw=raw,
                request_id=endpoint.masked(request_id),
            )
        except (ValueError, LookupError, TypeError, AttributeError):
            failure = endpoint.unreadable("A reply holds a list called content", raw)
        raise failure


def capabilities_of(model: str) -> Capabilities:
    """Return what a model can do, as far as it is known by its name.

    As of November 2026, no model takes a seed or tells log-probabilities, models after Claude 4.6
    take neither temperature nor top_p, and models before it reason by a budget of tokens, which
    no effort stands for. A name that is not known is taken for that of a new model.
    """
    sampled = bool(_SAMPLED.match(model))
    return Capabilities(
        temperature=sampled,
        top_p=sampled,
        seed=False,
        reasoning=not sampled or bool(re.match(r"claude-(?:opus|sonnet)-4-6", model)),
        images=not re.match(r"claude-(?:[12][-.]|instant)", model),
        needs=("max_tokens",),
        without_reasoning=("temperature", "top_p") if sampled else (),
        efforts=("none", "low", "medium", "high", "xhigh", "max"),
    )


def _off(model: str) -> dict[str, str] | None:
    """Return how a model is kept from reasoning: nothing to send, or None if it cannot be."""
    return next((off for pattern, off in _EFFORTS if pattern.match(model)), None)


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


def _messages(prompt: Prompt) -> tuple[list[dict[str, Any]], list[Any]]:
    """Return the system's messages, which stand apart, and the others."""
    n = next((i for i, m in enumerate(prompt.messages) if m.role != "system"), 0)
    if any(m.role == "system" for m in prompt.messages[n:]):
        raise NotCapable("Anthropic takes system messages at the beginning of a prompt only.")
    system: list[dict[str, Any]] = [
        {"type": "text", "text": m.content} for m in prompt.messages[:n]
    ]
    messages: list[Any] = []
    for message in prompt.messages[n:]:
        shown = [
            {
                "type": "image",
                "source": {
                    "type": "base64",
                    "media_type": "image/png",
                    "data": base64.b64encode(image).decode("ascii"),
                },
            }
            for image in message.images
        ]
        text = {"type": "text", "text": message.content}
        content = [*shown, text] if shown else message.content
        messages.append({"role": message.role, "content": content})
    return system, messages
