"""OpenAI, and every server that speaks its language, through the official package."""

from __future__ import annotations

import json
import os
from typing import Any, Literal

from knownminds.environments import Prompt

from .adapter import (
    AdapterError,
    Capabilities,
    NoKey,
    NotCapable,
    RateLimited,
    Rejected,
    Reply,
    Sampling,
    ServerFailed,
    UnknownModel,
    Unreachable,
    UnreadableReply,
    Usage,
)

try:
    import openai
except ImportError:
    raise ImportError(
        'OpenAI models need the openai package: pip install "knownminds[openai]"'
    ) from None


class OpenAI:
    """A model behind OpenAI's chat interface, wherever it runs.

    Calls are made once: the package's own retries are off, since they buy an answer twice
    without telling. Proxies of the shell's environment and redirects are not followed.

    Parameters
    ----------
    model
        The model's name, as the server knows it.
    base_url
        Where the server is.
    key_variable
        Name of the environment variable that holds the key; None for servers that need none.
    timeout
        Seconds until a call is given up.
    limit_name
        What the server calls the limit on tokens; older ones know "max_tokens" only.
    capabilities
        What the model can do; reasoning models, for example, take no temperature.

    Raises
    ------
    NoKey
        If the variable is empty.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str = "https://api.openai.com/v1",
        key_variable: str | None = "OPENAI_API_KEY",
        timeout: float = 120.0,
        limit_name: Literal["max_completion_tokens", "max_tokens"] = "max_completion_tokens",
        capabilities: Capabilities | None = None,
    ):
        self.model = model
        self.base_url = base_url
        self.key_variable = key_variable
        self.limit_name = limit_name
        self.capabilities = capabilities or Capabilities()
        key = os.environ.get(key_variable, "") if key_variable else "none"
        if not key:
            raise NoKey(
                f"The key is read from the variable {key_variable}, which is empty. Set it."
            )
        self._client = openai.AsyncOpenAI(
            api_key=key,
            base_url=base_url,
            max_retries=0,
            timeout=timeout,
            http_client=openai.DefaultAsyncHttpxClient(trust_env=False, follow_redirects=False),
        )

    def __repr__(self) -> str:
        """Show where it asks, and never the key."""
        return f"OpenAI({self.model!r}, base_url={self.base_url!r})"

    async def complete(self, prompt: Prompt, *, settings: Sampling) -> Reply:
        """Ask once."""
        if prompt.images:
            raise NotCapable("This adapter sends no images yet; the prompt has some.")
        asked = {
            "temperature": settings.temperature,
            "top_p": settings.top_p,
            "seed": settings.seed,
            self.limit_name: settings.max_tokens,
        }
        options: dict[str, Any] = {name: v for name, v in asked.items() if v is not None}
        messages: list[Any] = [{"role": m.role, "content": m.content} for m in prompt.messages]
        try:
            response = await self._client.chat.completions.with_raw_response.create(
                model=self.model, messages=messages, **options
            )
        except openai.OpenAIError as error:
            raise self._translated(error) from None
        http = response.http_response
        return _read(http.text, http.headers.get("x-request-id", ""))

    async def close(self) -> None:
        """Give back the connections."""
        await self._client.close()

    def _translated(self, error: openai.OpenAIError) -> AdapterError:
        where = f"{self.model} at {self.base_url}"
        if isinstance(error, openai.APIStatusError):
            status = error.status_code
            if status in (401, 403):  # what the server says about a key is not repeated
                return NoKey(f"{where} does not accept the key in {self.key_variable} ({status}).")
            if status == 404:
                return UnknownModel(f"{where} is not there (404). Check the model and base_url.")
            if status == 429:
                return RateLimited(f"{where} is called too often (429).", _seconds(error))
            if status in (408, 409) or status >= 500:
                return ServerFailed(f"{where} failed ({status}).")
            return Rejected(f"{where} does not take the prompt ({status}): {error.message[:200]}")
        if isinstance(error, openai.APIConnectionError):  # a timeout is one of them
            return Unreachable(f"{where} cannot be reached: {type(error).__name__}.")
        return UnreadableReply(f"{where} sent what cannot be read: {type(error).__name__}.")


def _seconds(error: openai.APIStatusError) -> float | None:
    try:
        return float(error.response.headers.get("retry-after", ""))
    except ValueError:
        return None


def _read(body: str, request_id: str) -> Reply:
    try:
        content = json.loads(body)
        choice = content["choices"][0]
        message = choice["message"]
        refusal, text = message.get("refusal"), message.get("content")
        usage = content.get("usage") or {}
        return Reply(
            text=str(refusal or text or ""),
            finish_reason="refusal" if refusal else str(choice.get("finish_reason") or "stop"),
            usage=Usage(usage.get("prompt_tokens"), usage.get("completion_tokens")),
            model_served=str(content.get("model") or ""),
            raw=body,
            request_id=request_id,
        )
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise UnreadableReply(
            f"A reply holds choices with a message; got {body[:80]!r} ({type(error).__name__}).",
            body,
        ) from None
