"""OpenAI's chat completions, and every server that speaks them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, NamedTuple

from knownminds.calling import Sampling
from knownminds.environments import Prompt
from knownminds.llm_adapters.adapter import Reply, Usage, given

from .http import Http, in_parts, likely_tokens, members_of, usage_of

_NAMES = {"top_log_probabilities": "top_logprobs"}
# Ends of the names of hosts that take OpenAI's later name of the limit on tokens.
_AT_HOME = (".openai.com", ".openai.azure.com")
# Settings that no server passes over unseen.
_COMMON = frozenset({"temperature", "top_p", "max_tokens", "seed", "top_log_probabilities"})
_ALL = _COMMON | {"reasoning_effort", "verbosity", "images"}


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
        "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY", heeds=_COMMON | {"reasoning_effort"}
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
    provider : Which of `HOSTS` it is.
    limit_name : What the server calls the limit on tokens. If None, as the host does at its own
        address, and "max_tokens" elsewhere: servers there pass over OpenAI's later name.
    base_url, options : See `Http`.
    """

    path = "/chat/completions"
    rule = "A reply holds choices with a message"
    reasons: ClassVar = {
        "content_filter": "refusal",
        "model_length": "length",
        "max_tokens": "length",
        **dict.fromkeys(("eos", "eos_token", "end_turn", "stop_sequence", "STOP"), "stop"),
    }

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
        super().__init__(model, base_url=base_url, **options)
        its_limit = self._host.endswith(_AT_HOME)
        self.limit_name = limit_name or (host.limit if its_limit else "max_tokens")
        # What a server takes that the user names, the user knows; pictures are to be declared.
        self.heeds = host.heeds if self.base_url == host.base_url else _ALL - {"images"}

    def request(self, prompt: Prompt, settings: Sampling) -> dict[str, Any]:
        """Return what is sent, as JSON has it."""
        names = {**_NAMES, "max_tokens": self.limit_name}
        options = {names.get(name, name): value for name, value in given(settings).items()}
        if "top_logprobs" in options:
            options["logprobs"] = True
        return {
            "model": self.model,
            "messages": [in_parts(m, _picture) for m in prompt.messages],
            **options,
        }

    def answer(self, content: dict[str, Any], body: bytes, likely: bool) -> Reply:
        """Return the reply in a body."""
        choice = content["choices"][0]
        if choice.get("error"):
            raise self._broken_off(choice["error"], body)
        if choice.get("finish_reason") == "error":
            raise self.unreadable("An answer does not end with the word error", body)
        message = choice["message"]
        refusal, text = message.get("refusal"), _text(message.get("content"))
        tokens = (members_of(choice.get("logprobs")).get("content") or ()) if likely else ()
        rows = ((t["token"], t["logprob"], _pairs(t.get("top_logprobs") or ())) for t in tokens)
        return Reply(
            str(refusal or text),
            "refusal" if refusal else str(choice.get("finish_reason") or ""),
            self.usage(content),
            str(content.get("model") or ""),
            log_probabilities=likely_tokens(rows) if likely else None,
        )

    def usage(self, content: dict[str, Any]) -> Usage:
        """Return the tokens that a body tells of."""
        return _usage(members_of(content.get("usage")))


def _picture(data: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}


def _usage(usage: Mapping[str, Any]) -> Usage:
    sent = members_of(usage.get("prompt_tokens_details"))
    received = members_of(usage.get("completion_tokens_details"))
    return usage_of(
        usage.get("prompt_tokens"),
        usage.get("completion_tokens"),
        received.get("reasoning_tokens"),
        sent.get("cached_tokens"),
        sent.get("cache_write_tokens"),
        usage.get("total_tokens"),
    )


def _text(content: Any) -> str:
    """Return the text of an answer, which some servers send in parts."""
    if isinstance(content, list):
        return "".join(part["text"] for part in content if part.get("type") == "text")
    if content is not None and not isinstance(content, str):
        raise TypeError("An answer is a text.")
    return content or ""


def _pairs(others: Iterable[dict[str, Any]]) -> list[tuple[str, Any]]:
    return [(other["token"], other["logprob"]) for other in others]
