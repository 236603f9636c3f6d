"""Google's Gemini models, through the official package."""

from __future__ import annotations

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

from .endpoint import MOST_BYTES, Caller, Endpoint, count, log_probability, parsed

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
# Tokens of reasoning that Google's own OpenAI-compatible interface takes the efforts for, and the
# fewest that all models take for the least; models from Gemini 3 on know the efforts themselves.
_BUDGETS = {"none": 0, "minimal": 512, "low": 1024, "medium": 8192, "high": 24576}


class Google(Caller):
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
    # The package reads the bodies of errors only as UTF-8.
    failures = (errors.APIError, UnicodeDecodeError, httpx2.RequestError)

    def __init__(
        self,
        model: str,
        *,
        base_url: str = "https://generativelanguage.googleapis.com",
        key_variable: str | None = "GEMINI_API_KEY",
        timeout: float = 120.0,
        capabilities: Capabilities | None = None,
    ):
        endpoint = Endpoint(model, base_url, key_variable, timeout)
        super().__init__(endpoint, capabilities or capabilities_of(model))
        self._client, self._http = self.client(timeout)

    async def complete(self, prompt: Prompt, *, settings: Sampling) -> Reply:
        """Ask once."""
        images = bool(prompt.images)
        check_capable(self, settings, images=images)
        system, contents = _contents(prompt)
        config = self._config(settings)
        config.system_instruction = system
        config.automatic_function_calling = types.AutomaticFunctionCallingConfig(disable=True)
        config.should_return_http_response = True  # the body as it came
        return await self.guarded(
            lambda: self._ask(contents, config, settings), settings, images=images
        )

    async def close(self) -> None:
        """Give back the connections."""
        await self.give_back(self._client, self._http)

    def client(
        self, timeout: float, most: int = MOST_BYTES
    ) -> tuple[genai.Client, httpx2.AsyncClient]:
        """Return the package's client and its connections, which read at most `most` bytes."""
        # Connections of our own, for the package's follow redirects and proxies.
        http = client(self._endpoint.sign("x-goog-api-key"), most)
        options = types.HttpOptions(
            base_url=self.base_url,
            api_version="v1beta",
            timeout=round(1000 * timeout),  # milliseconds
            retry_options=types.HttpRetryOptions(attempts=1),
            httpx_async_client=http,
        )
        # The connections write the key when sending.
        return genai.Client(vertexai=False, api_key="none", http_options=options), http

    @staticmethod
    async def give_back(package: genai.Client, http: httpx2.AsyncClient) -> None:
        """Close a client and its connections."""
        await http.aclose()
        await package.aio.aclose()
        package.close()

    def body(self, prompt: Prompt, settings: Sampling) -> dict[str, Any]:
        """Return what is sent for a prompt, as JSON has it."""
        system, contents = _contents(prompt)
        shown = {"systemInstruction": _json(system)} if system else {}
        return {
            "contents": [_json(content) for content in contents],
            **shown,
            "generationConfig": _json(self._config(settings)),
        }

    def _config(self, settings: Sampling) -> types.GenerateContentConfig:
        return types.GenerateContentConfig(
            temperature=settings.temperature,
            top_p=settings.top_p,
            max_output_tokens=settings.max_tokens,
            seed=settings.seed,
            response_logprobs=None if settings.top_log_probabilities is None else True,
            logprobs=settings.top_log_probabilities or None,
            thinking_config=self._thinking(settings),
        )

    async def _ask(
        self, contents: list[Any], config: types.GenerateContentConfig, settings: Sampling
    ) -> Reply:
        response = await self._client.aio.models.generate_content(
            model=self.model, contents=contents, config=config
        )
        http = response.sdk_http_response
        return self.read((http and http.body) or "", settings)

    def meant(self, error: Exception, settings: Sampling, images: bool) -> AdapterError:
        """Return what an error of the package means."""
        if isinstance(error, errors.APIError):
            headers = getattr(error.response, "headers", {})
            text = getattr(error.response, "text", "")
            return self._endpoint.failed(error.code, headers, text, settings, images=images)
        if isinstance(error, UnicodeDecodeError):
            return ServerFailed(f"{self._endpoint} failed, and what it says is no text.")
        return self._endpoint.unreachable(error)

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

    def read(self, body: str, settings: Sampling) -> Reply:
        """Read the body of an answer."""
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
        efforts=("none", "minimal", "low", "medium", "high"),
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


def _json(part: types.Content | types.GenerateContentConfig) -> dict[str, Any]:
    return part.model_dump(mode="json", by_alias=True, exclude_none=True)


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
