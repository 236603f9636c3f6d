"""Google's Gemini models, through the official package."""

from __future__ import annotations

import asyncio
import re
from typing import Any

from knownminds.environments import Prompt
from knownminds.llm_adapters.adapter import (
    AdapterError,
    Capabilities,
    NotCapable,
    Reply,
    Sampling,
    ServerFailed,
    TokenLogProbability,
    Usage,
    check_capable,
)

from .endpoint import Endpoint, count, log_probability, parsed

try:
    import httpx2
    from google import genai
    from google.genai import errors, types

    from .transport import client
except ImportError:
    raise ImportError(
        'Google models need the google-genai package: pip install "knownminds[google]"'
    ) from None

_REASONS = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    "SAFETY": "refusal",
    "BLOCKLIST": "refusal",
    "PROHIBITED_CONTENT": "refusal",
    "SPII": "refusal",
    "MODEL_ARMOR": "refusal",
}
# Tokens of reasoning that Google's own OpenAI-compatible interface takes the efforts for; models
# from Gemini 3 on know the efforts themselves.
_BUDGETS = {"none": 0, "low": 1024, "medium": 8192, "high": 24576}


class Google:
    """A model behind the Gemini interface (not Vertex AI).

    Calls are made once: the package neither retries nor continues an answer. Proxies of the
    shell's environment and redirects are not followed.

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

    provider = "google"

    def __init__(
        self,
        model: str,
        *,
        base_url: str = "https://generativelanguage.googleapis.com",
        key_variable: str | None = "GEMINI_API_KEY",
        timeout: float = 120.0,
        capabilities: Capabilities | None = None,
    ):
        self._endpoint = Endpoint(model, base_url, key_variable, timeout)
        self.model = model
        self.base_url = base_url
        self.key_variable = key_variable
        self.capabilities = capabilities or capabilities_of(model)
        # One of our own, for the package's follows redirects and proxies.
        self._http = client(self._endpoint.sign("x-goog-api-key"))
        self._client = genai.Client(
            vertexai=False,
            api_key="none",  # the client above writes it when sending
            http_options=types.HttpOptions(
                base_url=base_url,
                api_version="v1beta",
                timeout=round(1000 * timeout),  # milliseconds
                retry_options=types.HttpRetryOptions(attempts=1),
                httpx_async_client=self._http,
            ),
        )

    def __repr__(self) -> str:
        """Show where it asks, and never the key."""
        return f"Google({self.model!r}, base_url={self.base_url!r})"

    async def complete(self, prompt: Prompt, *, settings: Sampling) -> Reply:
        """Ask once."""
        check_capable(self, settings, images=bool(prompt.images))
        endpoint = self._endpoint
        system, contents = _contents(prompt)
        config = types.GenerateContentConfig(
            system_instruction=system,
            temperature=settings.temperature,
            top_p=settings.top_p,
            max_output_tokens=settings.max_tokens,
            seed=settings.seed,
            response_logprobs=None if settings.top_log_probabilities is None else True,
            logprobs=settings.top_log_probabilities or None,
            thinking_config=self._thinking(settings),
            automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
            should_return_http_response=True,  # the body as it came
        )
        endpoint.key()  # if it is gone, that is told before anything is sent
        failure: AdapterError
        try:
            async with asyncio.timeout(endpoint.timeout):
                response = await self._client.aio.models.generate_content(
                    model=self.model, contents=contents, config=config
                )
            http = response.sdk_http_response
            return self._read((http and http.body) or "", settings)
        except TimeoutError:
            failure = endpoint.late()
        except errors.APIError as error:
            failure = endpoint.failed(
                error.code,
                getattr(error.response, "headers", {}),
                getattr(error.response, "text", ""),
                settings,
                images=bool(prompt.images),
            )
        except UnicodeDecodeError:  # the package reads the bodies of errors only as UTF-8
            failure = ServerFailed(f"{endpoint} failed, and what it says is no text.")
        except httpx2.RequestError as error:
            failure = endpoint.unreachable(error)
        # Outside of the handlers, for the package's error holds the request and with it the key.
        raise failure

    async def close(self) -> None:
        """Give back the connections."""
        await self._http.aclose()
        await self._client.aio.aclose()
        self._client.close()

    def _thinking(self, settings: Sampling) -> types.ThinkingConfig | None:
        effort = settings.reasoning
        if effort is None:
            return None
        if _budgeted(self.model):
            if effort == "none" and "pro" in self.model:
                raise self._always_reasons()
            return types.ThinkingConfig(thinking_budget=_BUDGETS[effort])
        if effort == "none":
            raise self._always_reasons()
        return types.ThinkingConfig(thinking_level=types.ThinkingLevel(effort.upper()))

    def _always_reasons(self) -> NotCapable:
        return NotCapable(
            f"{self.model} cannot be kept from reasoning; got reasoning='none'. "
            "Ask for 'low', or choose another model."
        )

    def _read(self, body: str, settings: Sampling) -> Reply:
        endpoint = self._endpoint
        raw = endpoint.masked(body)
        try:
            content = parsed(raw)
            candidates = content.get("candidates") or []
            blocked = (content.get("promptFeedback") or {}).get("blockReason")
            if candidates:
                candidate = candidates[0]
                parts = (candidate.get("content") or {}).get("parts") or []
                text = "".join(p["text"] for p in parts if "text" in p and not p.get("thought"))
                word = str(candidate.get("finishReason") or "")
                reason = _REASONS.get(word, word.lower())
            elif blocked:
                candidate, text, reason = {}, "", "refusal"
            else:
                raise ValueError("no candidates")
            tokens = None
            if settings.top_log_probabilities is not None:
                tokens = _log_probabilities(candidate.get("logprobsResult") or {})
                alternatives = settings.top_log_probabilities == 0 or all(
                    token.alternatives for token in tokens
                )
                if text and not (tokens and alternatives):
                    raise endpoint.lacks_log_probabilities(raw)
            usage = content.get("usageMetadata") or {}
            answer, thoughts = (
                count(usage.get(name)) for name in ("candidatesTokenCount", "thoughtsTokenCount")
            )
            return Reply(
                text=text,
                finish_reason=reason,
                usage=Usage(
                    count(usage.get("promptTokenCount")),
                    # Reasoning is counted apart; a count that is 0 is left out.
                    (answer or 0) + (thoughts or 0) if usage else None,
                    (thoughts or 0) if usage else None,
                    (count(usage.get("cachedContentTokenCount")) or 0) if usage else None,
                ),
                model_served=str(content.get("modelVersion") or ""),
                raw=raw,
                request_id=str(content.get("responseId") or ""),
                log_probabilities=tokens,
            )
        except (ValueError, LookupError, TypeError, AttributeError):
            failure = endpoint.unreadable("A reply holds candidates with content", raw)
        raise failure


def capabilities_of(model: str) -> Capabilities:
    """Return what a model can do, as far as it is known by its name.

    As of November 2026, Gemini 2.0 tells log-probabilities, later models refuse to; Gemini before
    2.5 and models of other names do not reason by effort.
    """
    early = bool(re.match(r"gemini-(?:1\.|2\.0)", model))
    gemini = model.startswith("gemini-")
    return Capabilities(
        reasoning=gemini and not early,
        images=gemini,
        answer_log_probabilities=early,
    )


def _budgeted(model: str) -> bool:
    return model.startswith("gemini-2.5")


def _contents(prompt: Prompt) -> tuple[types.Content | None, list[Any]]:
    """Return the system's messages, which stand apart, and the others."""
    n = next((i for i, m in enumerate(prompt.messages) if m.role != "system"), 0)
    if any(m.role == "system" for m in prompt.messages[n:]):
        raise NotCapable("Google takes system messages at the beginning of a prompt only.")
    system = [types.Part(text=m.content) for m in prompt.messages[:n]]
    roles = {"user": "user", "assistant": "model"}
    contents = []
    for m in prompt.messages[n:]:
        shown = [types.Part.from_bytes(data=image, mime_type="image/png") for image in m.images]
        parts = [*shown, types.Part(text=m.content)]
        contents.append(types.Content(role=roles[m.role], parts=parts))
    return types.Content(parts=system) if system else None, contents


def _log_probabilities(result: dict[str, Any]) -> tuple[TokenLogProbability, ...]:
    chosen = result.get("chosenCandidates") or []
    ranked = result.get("topCandidates") or [{}] * len(chosen)
    return tuple(
        TokenLogProbability(
            entry["token"],
            log_probability(entry["logProbability"]),
            tuple(
                (other["token"], log_probability(other["logProbability"]))
                for other in others.get("candidates") or ()
            ),
        )
        for entry, others in zip(chosen, ranked, strict=True)
    )
