"""Inspect's providers as an adapter, with every retry, cache and redirect of theirs off."""

from __future__ import annotations

import asyncio
import base64
import json
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any

from knownminds.environments import Prompt, unknown
from knownminds.llm_adapters.adapter import (
    AdapterError,
    Capabilities,
    NotCapable,
    Reply,
    Sampling,
    TokenLogProbability,
    Unusable,
    Usage,
    check_capable,
)

from .endpoint import Endpoint, log_probability

try:
    from inspect_ai.model import (
        ChatMessageAssistant,
        ChatMessageSystem,
        ChatMessageUser,
        ContentImage,
        ContentText,
        GenerateConfig,
        get_model,
    )
except ImportError:
    raise ImportError(
        'Inspect\'s models need the inspect-ai package: pip install "knownminds[inspect]"'
    ) from None

# Inspect's providers that take an HTTP client of ours and speak a chat interface: the package
# behind each, the header that bears its key, and what else keeps a question to one call.
_OPENAI = ("openai", "authorization", "Bearer {}")
_PROVIDERS: dict[str, tuple[str, str, str, dict[str, Any]]] = {
    "anthropic": ("anthropic", "x-api-key", "{}", {"streaming": False}),
    "deepseek": (*_OPENAI, {}),
    "moonshot": (*_OPENAI, {}),
    # Not the Responses interface, which takes no seed.
    "openai": (*_OPENAI, {"responses_api": False}),
    "openai-api": (*_OPENAI, {"responses_api": False}),
    "openrouter": (*_OPENAI, {}),
}
_ERRORS = {"anthropic": "AnthropicError", "openai": "OpenAIError"}
# Services behind these names sign their calls in ways of their own.
_SERVICES = ("azure", "bedrock", "vertex")

# How a setting is called in the bodies of requests.
_SENT = {
    "temperature": ("temperature",),
    "top_p": ("top_p",),
    "max_tokens": ("max_tokens", "max_completion_tokens"),
    "seed": ("seed",),
    "reasoning": ("reasoning_effort", "reasoning", "output_config", "thinking"),
    "top_log_probabilities": ("top_logprobs",),
}
_REASONS = {"max_tokens": "length", "model_length": "length", "content_filter": "refusal"}
_MESSAGES = {
    "system": ChatMessageSystem,
    "user": ChatMessageUser,
    "assistant": ChatMessageAssistant,
}
# What Inspect, or the package behind a provider, raises over a body that is not what it should be.
_UNREADABLE = (ValueError, LookupError, TypeError, AttributeError, AssertionError, RuntimeError)


@dataclass
class _Exchange:
    """What went over the wire for one question."""

    settings: Sampling
    sent: bool = False
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: str = ""


_exchange: ContextVar[_Exchange] = ContextVar("exchange")


class Inspect:
    """A model of one of Inspect's providers.

    Inspect asks again without end and its providers' packages do so twice; both are off, as are
    its cache, the proxies of the shell's environment, and redirects. A question is one call: a
    second one is stopped before it leaves, and so is one that lacks a setting that was asked for.
    Reasoning that Inspect finds within an answer (``<think>``) is not part of its text; `raw` has
    all that came.

    Providers whose HTTP client cannot be handed in are refused. With those, as with all of
    Inspect's, an environment can be evaluated as a task; see `inspect_tasks`.

    Parameters
    ----------
    model
        PROVIDER/MODEL, as Inspect names it; "openai-api/SERVICE/MODEL" for any server that speaks
        OpenAI's language.
    base_url
        Where the server is; empty for where Inspect's provider has it.
    key_variable
        Name of the environment variable that holds the key; None for servers that need none,
        empty for the variable that Inspect's provider names.
    timeout
        Seconds until a call is given up.
    capabilities
        What the model can do; None for what is known of it by its name. Of models that are
        neither OpenAI's nor Anthropic's, images and reasoning are to be declared.

    Raises
    ------
    ValueError
        If the model, the address or the timeout is none.
    NotCapable
        If the provider cannot be kept to one call for a question.
    NoKey
        If the variable is empty.
    """

    provider = "inspect"

    def __init__(
        self,
        model: str,
        *,
        base_url: str = "",
        key_variable: str | None = "",
        timeout: float = 120.0,
        capabilities: Capabilities | None = None,
    ):
        provider, _, name = model.partition("/")
        if not (provider and name):
            raise ValueError(f"Inspect's models are named PROVIDER/MODEL; got {model!r}.")
        if provider not in _PROVIDERS or name.partition("/")[0] in _SERVICES:
            raise NotCapable(
                f"Inspect's provider of {model} cannot be kept to one call for a question. "
                f"{unknown('provider', provider, _PROVIDERS)} Or evaluate the environment as a "
                "task of Inspect's."
            )
        package, self._header, self._form, options = _PROVIDERS[provider]
        sdk = _package(package, model)
        self._trouble: type[Exception] = getattr(sdk, _ERRORS[package])
        self._config = GenerateConfig(max_retries=0, cache=False, cache_prompt=False)
        timeouts = sdk.Timeout(timeout, connect=min(timeout / 2, 10.0))
        client = _http_client(timeouts, self._leaves, self._arrives)
        self._api = _api_of(model, base_url, self._config, client, options)
        if self._api.client.max_retries != 0 or self._api.client._client is not client:
            raise NotCapable(
                f"This version of inspect-ai does not let {model} be kept to one call for a "
                "question. Install the one that this version of knownminds was tested with."
            )
        if key_variable == "":
            # The others, if there are any, hold the keys of other companies' servers.
            key_variable = str(self._api.api_key_vars[0])
        self.model = model
        self.base_url = base_url or str(self._api.client.base_url).rstrip("/")
        self.key_variable = key_variable
        self._endpoint = Endpoint(model, self.base_url, key_variable, timeout)
        self._sign = self._endpoint.sign(self._header, self._form)
        self.capabilities = capabilities or _capabilities_of(provider, name, self.base_url)

    def __repr__(self) -> str:
        """Show where it asks, and never the key."""
        return f"Inspect({self.model!r}, base_url={self.base_url!r})"

    async def complete(self, prompt: Prompt, *, settings: Sampling) -> Reply:
        """Ask once."""
        check_capable(self, settings, images=bool(prompt.images))
        endpoint = self._endpoint
        endpoint.key()  # if it is gone, that is told before anything is sent
        exchange = _Exchange(settings)
        token = _exchange.set(exchange)
        config = self._config.merge(_config(settings))
        cause: BaseException | None = None
        output: Any = None
        try:
            async with asyncio.timeout(endpoint.timeout):
                # Below `Model.generate`, which adds retries, a cache and a queue of its own.
                came = await self._api.generate(chat_messages(prompt), [], "none", config)
            output = came[0] if isinstance(came, tuple) else came
        except (AdapterError, self._trouble, *_UNREADABLE) as error:
            cause = error
        except TimeoutError:
            exchange.status = 0  # whatever has come so far is no answer
            cause = endpoint.late()
        finally:
            _exchange.reset(token)
        # Outside of the handlers, for a package's error holds the request and with it the key.
        if isinstance(output, Exception):
            cause = output
        failure = self._failure(exchange, cause, settings, images=bool(prompt.images))
        if failure is not None:
            raise failure
        return self._read(output, exchange, settings)

    async def close(self) -> None:
        """Give back the connections."""
        await self._api.aclose()

    async def _leaves(self, request: Any) -> None:
        """Check a call that is about to leave, and write the key into it."""
        exchange = _exchange.get()
        if exchange.sent:
            raise Unusable(
                f"Inspect calls {self._endpoint} a second time for one question, which was "
                "stopped. Use another version of inspect-ai."
            )
        body = json.loads(request.content)
        for name, names in _SENT.items():
            asked = getattr(exchange.settings, name)
            sent = [body[key] for key in names if body.get(key) is not None]
            if asked is not None and not (sent if name == "reasoning" else asked in sent):
                raise NotCapable(
                    f"Inspect does not send {name}={asked!r} to {self._endpoint}. Leave {name} "
                    "out, or choose another model."
                )
        await self._sign(request)
        exchange.sent = True

    async def _arrives(self, response: Any) -> None:
        """Keep what comes, before anyone reads it."""
        exchange = _exchange.get()
        await response.aread()
        exchange.headers = {name.lower(): value for name, value in response.headers.items()}
        exchange.body = response.text
        exchange.status = response.status_code

    def _failure(
        self,
        exchange: _Exchange,
        cause: BaseException | None,
        settings: Sampling,
        *,
        images: bool,
    ) -> AdapterError | None:
        """Return what it means that there is no answer; None if there is one."""
        endpoint = self._endpoint
        if exchange.status >= 300:
            # Inspect makes answers of some refusals: those that name a filter, or a long prompt.
            return endpoint.failed(
                exchange.status, exchange.headers, exchange.body, settings, images=images
            )
        if cause is None:
            return None
        if isinstance(cause, AdapterError):
            return cause
        if isinstance(cause.__cause__, AdapterError):
            return cause.__cause__
        if exchange.status:
            return endpoint.unreadable(
                "A reply holds choices with a message", endpoint.masked(exchange.body)
            )
        if not isinstance(cause, self._trouble):
            raise cause  # nothing has come that it could be about
        return endpoint.unreachable(cause.__cause__ or cause)

    def _read(self, output: Any, exchange: _Exchange, settings: Sampling) -> Reply:
        endpoint = self._endpoint
        raw = endpoint.masked(exchange.body)
        try:
            reply = reply_of(output)
            tokens = None
            if settings.top_log_probabilities is not None:
                tokens = _log_probabilities(output.choices[0].logprobs)
                alternatives = settings.top_log_probabilities == 0 or all(
                    token.alternatives for token in tokens
                )
                said = reply.text and reply.finish_reason != "refusal"
                if said and not (tokens and alternatives):
                    raise endpoint.lacks_log_probabilities(raw)
            ids = (exchange.headers.get(name) for name in ("x-request-id", "request-id"))
            return replace(
                reply,
                text=endpoint.masked(reply.text),
                raw=raw,
                request_id=endpoint.masked(next(filter(None, ids), "")),
                log_probabilities=tokens,
            )
        except (ValueError, LookupError, TypeError, AttributeError):
            failure = endpoint.unreadable("A reply holds choices with a message", raw)
        raise failure


def chat_messages(prompt: Prompt) -> list[Any]:
    """Return a prompt as messages of Inspect's."""
    messages: list[Any] = []
    for m in prompt.messages:
        shown = [
            ContentImage(image=f"data:image/png;base64,{base64.b64encode(image).decode('ascii')}")
            for image in m.images
        ]
        content = [*shown, ContentText(text=m.content)] if shown else m.content
        messages.append(_MESSAGES[m.role](content=content))
    return messages


def reply_of(output: Any) -> Reply:
    """Return an output of Inspect's as a reply; LookupError if it holds no choice."""
    choice = output.choices[0]
    text, refused = _said(choice.message.content)
    reason = _REASONS.get(choice.stop_reason, choice.stop_reason)
    return Reply(
        text=text,
        finish_reason="refusal" if refused else reason,
        usage=_usage(output.usage),
        model_served=output.model or "",
    )


def _package(name: str, model: str) -> Any:
    """Return the package behind a provider, which inspect-ai does not bring with it."""
    try:
        return import_module(name)
    except ImportError:
        raise ImportError(
            f"Inspect needs the {name} package for {model}: "
            f'pip install "knownminds[inspect,{name}]"'
        ) from None


def _api_of(model: str, base_url: str, config: Any, client: Any, options: dict[str, Any]) -> Any:
    """Return Inspect's face of a model, which calls through this HTTP client."""
    loaded = get_model(
        model,
        config=config,
        base_url=base_url or None,
        api_key="none",  # the client writes it when sending
        memoize=False,
        max_retries=0,
        http_client=client,
        **options,
    )
    return loaded.api


def _http_client(timeout: Any, leaves: Any, arrives: Any) -> Any:
    httpx2 = import_module("httpx2")  # which both packages bring with them
    return httpx2.AsyncClient(
        trust_env=False,
        follow_redirects=False,
        timeout=timeout,
        limits=httpx2.Limits(max_connections=1000, max_keepalive_connections=100),
        event_hooks={"request": [leaves], "response": [arrives]},
    )


def _capabilities_of(provider: str, name: str, base_url: str) -> Capabilities:
    if provider == "anthropic":
        from .anthropic import capabilities_of as of_anthropic

        return of_anthropic(name)
    if provider == "openai":
        from .openai import capabilities_of as of_openai

        return of_openai(name, base_url)
    return Capabilities(answer_log_probabilities=True)


def _config(settings: Sampling) -> Any:
    k = settings.top_log_probabilities
    return GenerateConfig(
        temperature=settings.temperature,
        top_p=settings.top_p,
        max_tokens=settings.max_tokens,
        seed=settings.seed,
        reasoning_effort=settings.reasoning,
        logprobs=None if k is None else True,
        top_logprobs=k,
    )


def _said(content: Any) -> tuple[str, bool]:
    """Return the text of an answer, and whether the provider says that it is a refusal."""
    if isinstance(content, str):
        return content, False
    parts = [part for part in content if part.type == "text"]
    return "".join(part.text for part in parts), any(part.refusal for part in parts)


def _usage(usage: Any) -> Usage:
    if usage is None:
        return Usage()
    cached = usage.input_tokens_cache_read
    # Inspect counts apart what was read from a cache and what was written into it.
    sent = usage.input_tokens + (cached or 0) + (usage.input_tokens_cache_write or 0)
    return Usage(sent, usage.output_tokens, usage.reasoning_tokens, cached)


def _log_probabilities(logprobs: Any) -> tuple[TokenLogProbability, ...]:
    return tuple(
        TokenLogProbability(
            entry.token,
            log_probability(entry.logprob),
            tuple((o.token, log_probability(o.logprob)) for o in entry.top_logprobs or ()),
        )
        for entry in (logprobs.content if logprobs else ())
    )
