"""OpenAI, and every server that speaks its language, through the official package."""

from __future__ import annotations

import base64
import re
from typing import Any, Literal
from urllib.parse import urlsplit

from knownminds.environments import Prompt
from knownminds.llm_adapters.adapter import (
    EFFORTS,
    AdapterError,
    Capabilities,
    Effort,
    Reply,
    Sampling,
    TokenLogProbability,
    Usage,
    check_capable,
)

from .endpoint import MOST_BYTES, Caller, Endpoint, count, log_probability, parsed

try:
    import openai

    from .transport import client
except ImportError:
    raise ImportError(
        'OpenAI models need the openai package: pip install "knownminds[openai]"'
    ) from None

_REASONS = {"content_filter": "refusal"}
_SAMPLING_AND_LIKELIHOOD = ("temperature", "top_p", "answer_log_probabilities")


class OpenAI(Caller):
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
        What the model can do; None for what `capabilities_of` knows.

    Raises
    ------
    ValueError
        If the address or the timeout is none.
    NoKey
        If the variable is empty.
    """

    provider = "openai"
    failures = (openai.APIStatusError, openai.APIConnectionError)

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
        endpoint = Endpoint(model, base_url, key_variable, timeout)
        super().__init__(endpoint, capabilities or capabilities_of(model, base_url))
        self.limit_name = limit_name
        self._client = self.client(timeout)

    async def complete(self, prompt: Prompt, *, settings: Sampling) -> Reply:
        """Ask once."""
        images = bool(prompt.images)
        check_capable(self, settings, images=images)
        body = self.body(prompt, settings)
        return await self.guarded(lambda: self._ask(body, settings), settings, images=images)

    async def close(self) -> None:
        """Give back the connections."""
        await self._client.close()

    def client(self, timeout: float, most: int = MOST_BYTES) -> openai.AsyncOpenAI:
        """Return the package's client, which reads bodies of at most `most` bytes."""
        return openai.AsyncOpenAI(
            api_key="none",  # the client below writes it when sending
            base_url=self.base_url,
            max_retries=0,
            timeout=openai.Timeout(timeout, connect=min(timeout / 2, 10.0)),
            http_client=client(self._endpoint.sign("authorization", "Bearer {}"), most),
        )

    def body(self, prompt: Prompt, settings: Sampling) -> dict[str, Any]:
        """Return what is sent for a prompt."""
        asked = {
            "temperature": settings.temperature,
            "top_p": settings.top_p,
            "seed": settings.seed,
            self.limit_name: settings.max_tokens,
            "reasoning_effort": settings.reasoning,
            "verbosity": settings.verbosity,
            "top_logprobs": settings.top_log_probabilities,
            "logprobs": None if settings.top_log_probabilities is None else True,
        }
        given = {name: value for name, value in asked.items() if value is not None}
        return {"model": self.model, "messages": _messages(prompt), **given}

    async def _ask(self, body: dict[str, Any], settings: Sampling) -> Reply:
        response = await self._client.chat.completions.with_raw_response.create(**body)
        http = response.http_response
        return self.read(http.text, http.headers.get("x-request-id", ""), settings)

    def meant(self, error: Exception, settings: Sampling, images: bool) -> AdapterError:
        """Return what an error of the package means."""
        if isinstance(error, openai.APIStatusError):
            http = error.response
            return self._endpoint.failed(
                http.status_code, http.headers, http.text, settings, images=images
            )
        return self._endpoint.unreachable(error.__cause__ or error)

    def read(self, body: str, request_id: str, settings: Sampling) -> Reply:
        """Read the body of an answer."""
        endpoint = self._endpoint
        raw = endpoint.masked(body)
        try:
            content = parsed(raw)
            error = content.get("error")
            if error and not content.get("choices"):  # OpenRouter's way to pass on a failure
                raise self._passed_on(error, raw, settings)
            choice = content["choices"][0]
            message = choice["message"]
            refusal, text = message.get("refusal"), _text(message.get("content"))
            usage = content.get("usage") or {}
            received = usage.get("completion_tokens_details") or {}
            sent = usage.get("prompt_tokens_details") or {}
            reason = str(choice.get("finish_reason") or "")
            tokens = None
            if settings.top_log_probabilities is not None:
                tokens = _log_probabilities(choice.get("logprobs") or {})
                alternatives = settings.top_log_probabilities == 0 or all(
                    token.alternatives for token in tokens
                )
                if text and not refusal and not (tokens and alternatives):
                    raise endpoint.lacks_log_probabilities(raw)
            return Reply(
                text=str(refusal or text),
                finish_reason="refusal" if refusal else _REASONS.get(reason, reason),
                usage=Usage(
                    count(usage.get("prompt_tokens")),
                    count(usage.get("completion_tokens")),
                    count(received.get("reasoning_tokens")),
                    count(sent.get("cached_tokens")),
                    count(sent.get("cache_write_tokens")),
                ),
                model_served=str(content.get("model") or ""),
                raw=raw,
                request_id=endpoint.masked(request_id),
                log_probabilities=tokens,
            )
        except (ValueError, LookupError, TypeError, AttributeError):
            failure = endpoint.unreadable("A reply holds choices with a message", raw)
        raise failure

    def _passed_on(self, error: Any, raw: str, settings: Sampling) -> AdapterError:
        status = error.get("code") if isinstance(error, dict) else None
        if type(status) is not int or not 400 <= status < 600:
            return self._endpoint.unreadable("A reply holds choices with a message", raw)
        failure = self._endpoint.failed(status, {}, raw, settings)
        failure.charged = None  # the failure came behind an answer that had begun
        return failure


def capabilities_of(model: str, base_url: str = "https://api.openai.com/v1") -> Capabilities:
    """Return what a model can do, as far as it is known by its name.

    At OpenAI (as of November 2026), reasoning models take neither temperature nor top_p and tell
    no log-probabilities; gpt-5.1, 5.2 and 5.4 do if their reasoning is off. gpt-5 reasons from
    minimal effort on, its successors may leave it, earlier models begin with low; all of that
    family are told how much to say. A name that is not known is taken for that of a new reasoning
    model. Of other servers nothing is assumed that
    they could pass over unseen: images and reasoning are to be declared.
    """
    host = urlsplit(base_url).hostname or ""
    if not (host == "openai.com" or host.endswith(".openai.com")):
        return Capabilities(answer_log_probabilities=True)
    if re.match(r"gpt-5[.\d]*-chat", model):
        return Capabilities(images=True)
    if re.match(r"(?:ft:)?(?:gpt-3|gpt-4|chatgpt-4)", model):
        images = not re.match(r"(?:ft:)?gpt-(?:3|4$|4-(?:0\d\d\d|32k|1106|turbo-preview))", model)
        return Capabilities(images=images, answer_log_probabilities=True)
    if re.match(r"gpt-5\.[124](?!\d)(?!-pro|-codex)", model):
        return Capabilities(
            reasoning=True,
            images=True,
            answer_log_probabilities=True,
            without_reasoning=_SAMPLING_AND_LIKELIHOOD,
            verbosity=True,
            efforts=_efforts(model),
        )
    images = not re.match(r"o1-mini|o1-preview|o3-mini", model)
    return Capabilities(
        temperature=False,
        top_p=False,
        reasoning=True,
        images=images,
        verbosity=model.startswith("gpt-5"),
        efforts=_efforts(model),
    )


def _efforts(model: str) -> tuple[Effort, ...]:
    """Return the efforts of reasoning that a model takes, where it is known."""
    if re.match(r"o\d", model):
        return "low", "medium", "high"
    if re.match(r"gpt-5(?!\.|\w)(?!-pro)", model):
        return "minimal", "low", "medium", "high"
    if re.match(r"gpt-5\.1(?!\d)(?!-pro|-codex)", model):
        return "none", "low", "medium", "high"
    return tuple(effort for effort in EFFORTS if effort != "max")


def _messages(prompt: Prompt) -> list[Any]:
    messages: list[Any] = []
    for message in prompt.messages:
        shown = [
            {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{_base64(image)}"}}
            for image in message.images
        ]
        text = {"type": "text", "text": message.content}
        content = [*shown, text] if shown else message.content
        messages.append({"role": message.role, "content": content})
    return messages


def _base64(image: bytes) -> str:
    return base64.b64encode(image).decode("ascii")


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
