"""OpenAI's chat completions, and every server that speaks them."""

from __future__ import annotations

import base64
from typing import Any, NamedTuple

from knownminds.environments import Message, Prompt
from knownminds.llm_adapters.adapter import (
    Failed,
    Reply,
    Sampling,
    TokenLogProbability,
    Usage,
    given,
)

from .http import Http, count, json_object, log_probability

_NAMES = {"reasoning": "reasoning_effort", "top_log_probabilities": "top_logprobs"}
_REASONS = {"content_filter": "refusal"}
_RULE = "A reply holds choices with a message"
# Settings that no server passes over unseen; images and reasoning are to be declared elsewhere.
_COMMON = frozenset({"temperature", "top_p", "max_tokens", "seed", "top_log_probabilities"})
_ALL = _COMMON | {"reasoning", "verbosity", "images"}


class Host(NamedTuple):
    """A server that speaks the language: its address, its key, its name of the limit on tokens."""

    base_url: str
    key_variable: str | None
    limit: str = "max_tokens"
    heeds: frozenset[str] = _COMMON


# One line for each; the name is the provider's in `ADAPTERS`.
HOSTS = {
    "openai": Host("https://api.openai.com/v1", "OPENAI_API_KEY", "max_completion_tokens", _ALL),
    "openrouter": Host(
        "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY", heeds=_COMMON | {"reasoning"}
    ),
    "deepseek": Host("https://api.deepseek.com", "DEEPSEEK_API_KEY"),
    "moonshot": Host("https://api.moonshot.ai/v1", "MOONSHOT_API_KEY"),
    "groq": Host("https://api.groq.com/openai/v1", "GROQ_API_KEY"),
    "together": Host("https://api.together.xyz/v1", "TOGETHER_API_KEY"),
    "ollama": Host("http://127.0.0.1:11434/v1", None),
    "vllm": Host("http://127.0.0.1:8000/v1", None),
}


class OpenAI(Http):
    """A model behind OpenAI's chat interface, wherever it runs.

    Parameters
    ----------
    provider
        Which of `HOSTS` it is.
    limit_name
        What the server calls the limit on tokens; as the host does if None.
    base_url, options
        See `Http`.
    """

    path = "/chat/completions"

    def __init__(
        self,
        model: str,
        *,
        provider: str = "openai",
        limit_name: str | None = None,
        base_url: str | None = None,
        **options: Any,
    ):
        host = HOSTS[provider]
        self.provider, self.address, self.variable = provider, host.base_url, host.key_variable
        self.limit_name = limit_name or host.limit
        self.heeds = host.heeds if base_url in (None, host.base_url) else _COMMON
        super().__init__(model, base_url=base_url, **options)

    def request(self, prompt: Prompt, settings: Sampling) -> dict[str, Any]:
        """Return what is sent, as JSON has it."""
        names = {**_NAMES, "max_tokens": self.limit_name}
        options = {names.get(name, name): value for name, value in given(settings).items()}
        if "top_logprobs" in options:
            options["logprobs"] = True
        return {"model": self.model, "messages": [_message(m) for m in prompt.messages], **options}

    def read(self, body: bytes, settings: Sampling) -> Reply:
        """Read a body, now or long after it came; `Failed` if it holds no reply."""
        try:
            content = json_object(body)
            error = content.get("error")
            if error and not content.get("choices"):  # OpenRouter's way to pass on a failure
                raise self._passed_on(error, body)
            choice = content["choices"][0]
            message = choice["message"]
            refusal, text = message.get("refusal"), _text(message.get("content"))
            reason = str(choice.get("finish_reason") or "")
            tokens = None
            if (most := settings.top_log_probabilities) is not None:
                tokens = _log_probabilities(choice.get("logprobs") or {})
                whole = tokens and (most == 0 or all(token.alternatives for token in tokens))
                if text and not refusal and not whole:
                    raise self.lacks_log_probabilities(body)
            return Reply(
                str(refusal or text),
                "refusal" if refusal else _REASONS.get(reason, reason),
                _usage(content.get("usage") or {}),
                str(content.get("model") or ""),
                body.decode(errors="replace"),
                tokens,
            )
        except (ValueError, LookupError, TypeError, AttributeError):
            failure = self.unreadable(_RULE, body)
        raise failure

    def _passed_on(self, error: Any, body: bytes) -> Failed:
        status = error.get("code") if isinstance(error, dict) else None
        if type(status) is not int or not 400 <= status < 600:
            return self.unreadable(_RULE, body)
        failure = self.failed(status, body)
        failure.charged = None  # the failure came behind an answer that had begun
        return failure


def _message(message: Message) -> dict[str, Any]:
    shown = [
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{in_base64(image)}"}}
        for image in message.images
    ]
    text = {"type": "text", "text": message.content}
    return {"role": message.role, "content": [*shown, text] if shown else message.content}


def in_base64(image: bytes) -> str:
    """Return the bytes of an image as text."""
    return base64.b64encode(image).decode("ascii")


def _usage(usage: dict[str, Any]) -> Usage:
    sent = usage.get("prompt_tokens_details") or {}
    received = usage.get("completion_tokens_details") or {}
    return Usage(
        count(usage.get("prompt_tokens")),
        count(usage.get("completion_tokens")),
        count(received.get("reasoning_tokens")),
        count(sent.get("cached_tokens")),
        count(sent.get("cache_write_tokens")),
    )


def _text(content: Any) -> str:
    """Return the text of an answer, which some servers send in parts."""
    if isinstance(content, list):
        return "".join(part["text"] for part in content if part.get("type") == "text")
    if content is not None and not isinstance(content, str):
        raise TypeError("An answer is a text.")
    return content or ""


def _log_probabilities(logprobs: dict[str, Any]) -> tuple[TokenLogProbability, ...]:
    return tuple(
        TokenLogProbability(
            entry["token"],
            log_probability(entry["logprob"]),
            tuple(
                (other["token"], log_probability(other["logprob"]))
                for other in entry.get("top_logprobs") or ()
            ),
        )
        for entry in logprobs.get("content") or ()
    )
