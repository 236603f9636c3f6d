"""Google's Gemini models: the generateContent interface (not Vertex AI)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from knownminds.calling import Sampling
from knownminds.environments import Message, Prompt
from knownminds.llm_adapters.adapter import Reply, Usage

from .anthropic import split
from .http import Http, added, in_base64, likely_tokens, members_of, usage_of

_REASONS = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    "SAFETY": "refusal",
    "BLOCKLIST": "refusal",
    "PROHIBITED_CONTENT": "refusal",
    "SPII": "refusal",
    "MODEL_ARMOR": "refusal",
}
_NAMES = {
    "temperature": "temperature",
    "top_p": "topP",
    "max_tokens": "maxOutputTokens",
    "seed": "seed",
}
# Tokens of reasoning that Google's OpenAI-compatible interface takes the efforts for; models
# from Gemini 3 on know the efforts themselves.
_BUDGETS = {"none": 0, "minimal": 512, "low": 1024, "medium": 8192, "high": 24576}


class Google(Http):
    """A model behind the Gemini interface (not Vertex AI)."""

    provider = "google"
    address, variable = "https://generativelanguage.googleapis.com", "GEMINI_API_KEY"
    heeds = frozenset(_NAMES) | {"reasoning_effort", "top_log_probabilities", "images"}
    header, form = "x-goog-api-key", "{}"
    rule = "A reply holds candidates with content"

    @property
    def path(self) -> str:  # type: ignore[override]  # it has the model in it
        """Where questions go, behind `base_url`."""
        return f"/v1beta/models/{quote(self.model, safe='')}:generateContent"

    def request(self, prompt: Prompt, settings: Sampling) -> dict[str, Any]:
        """Return what is sent, as JSON has it."""
        system, others = split(prompt, "Google")
        options: dict[str, Any] = {
            theirs: getattr(settings, ours)
            for ours, theirs in _NAMES.items()
            if getattr(settings, ours) is not None
        }
        if settings.top_log_probabilities is not None:
            options["responseLogprobs"] = True
        if settings.top_log_probabilities:
            options["logprobs"] = settings.top_log_probabilities
        if settings.reasoning_effort is not None:
            budget = _BUDGETS.get(settings.reasoning_effort)
            if self.model.startswith("gemini-2.5") and budget is not None:
                options["thinkingConfig"] = {"thinkingBudget": budget}
            else:
                options["thinkingConfig"] = {"thinkingLevel": settings.reasoning_effort.upper()}
        shown = {"systemInstruction": {"parts": [{"text": m.content} for m in system]}}
        return {
            "contents": [_content(m) for m in others],
            **(shown if system else {}),
            "generationConfig": options,
        }

    def answer(self, content: dict[str, Any], body: bytes, likely: bool) -> Reply:
        """Return the reply in a body."""
        candidate, text, reason = _candidate(content)
        result = members_of(candidate.get("logprobsResult")) if likely else {}
        chosen = result.get("chosenCandidates") or []
        ranked = result.get("topCandidates") or [{}] * len(chosen)
        rows = (
            (*_pair(one), map(_pair, others.get("candidates") or ()))
            for one, others in zip(chosen, ranked, strict=True)
        )
        return Reply(
            text,
            reason,
            self.usage(content),
            str(content.get("modelVersion") or ""),
            log_probabilities=likely_tokens(rows) if likely else None,
        )

    def usage(self, content: dict[str, Any]) -> Usage:
        """Return the tokens that a body tells of."""
        return _usage(members_of(content.get("usageMetadata")))


def _candidate(content: dict[str, Any]) -> tuple[dict[str, Any], str, str]:
    """Return the first candidate, its text without the reasoning, and why it ended."""
    candidates = content.get("candidates") or []
    if candidates:
        candidate = candidates[0]
        parts = (candidate.get("content") or {}).get("parts") or []
        text = "".join(p["text"] for p in parts if "text" in p and not p.get("thought"))
        word = str(candidate.get("finishReason") or "")
        return candidate, text, _REASONS.get(word, word.lower())
    if members_of(content.get("promptFeedback")).get("blockReason"):
        return {}, "", "refusal"
    raise ValueError("A reply without candidates names what has blocked the prompt.")


def _usage(usage: Mapping[str, Any]) -> Usage:
    if not usage:
        return Usage()
    # Reasoning is counted apart; a count that is 0 is left out.
    answer, thoughts, cached = (
        usage.get(name) or 0
        for name in ("candidatesTokenCount", "thoughtsTokenCount", "cachedContentTokenCount")
    )
    sent, total = usage.get("promptTokenCount"), usage.get("totalTokenCount")
    return usage_of(sent, added(answer, thoughts), thoughts, cached, total=total)


def _content(message: Message) -> dict[str, Any]:
    shown = [
        {"inlineData": {"mimeType": "image/png", "data": in_base64(image)}}
        for image in message.images
    ]
    role = "model" if message.role == "assistant" else "user"
    return {"role": role, "parts": [*shown, {"text": message.content}]}


def _pair(one: dict[str, Any]) -> tuple[str, Any]:
    return one["token"], one["logProbability"]
