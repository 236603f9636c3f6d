"""Our ledger as a model provider of Inspect's: caps, resume, and no answer that is paid for twice.

``inspect eval TASK --model knownminds/openai/gpt-4o -M ledger=FOLDER -M dollars=1`` asks through
the adapter of that name. The same command goes on where it stopped, also after ``kill -9``.
"""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

from knownminds.calling import Caps, Sampling
from knownminds.environments import Message, Prompt
from knownminds.llm_adapters import load
from knownminds.llm_adapters.adapter import Failed, Reply

from .ledger import price_in
from .prices import price_of
from .runner import SingleQuestions

try:
    from inspect_ai.model import (
        ChatCompletionChoice,
        ChatMessageAssistant,
        GenerateConfig,
        Logprob,
        Logprobs,
        ModelAPI,
        ModelOutput,
        ModelUsage,
        TopLogprob,
        modelapi,
    )
except ImportError:
    raise ImportError(
        'Inspect\'s models need the inspect-ai package: pip install "knownminds[inspect]"'
    ) from None

_REASONS: dict[str, Any] = {
    "stop": "stop",
    "": "stop",
    "length": "max_tokens",
    "refusal": "content_filter",
}
_PNG = "data:image/png;base64,"
# Settings that change an answer and that are not passed on.
_REFUSED = (
    "stop_seqs", "best_of", "frequency_penalty", "presence_penalty", "logit_bias", "top_k",
    "num_choices", "response_schema", "reasoning_tokens", "extra_body",
)  # fmt: skip


class LedgeredModel(ModelAPI):  # type: ignore[misc]  # Inspect may not be there
    """Any adapter behind Inspect's contract, with a ledger in the folder `ledger`.

    Parameters
    ----------
    ledger : Folder of the ledger.
    dollars, calls, tokens : Caps over all starts; None for no bound.
    key_variable, base_url : Of the adapter; its if not given.
    """

    def __init__(
        self,
        model_name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        config: Any = None,
        ledger: str | Path = "ledger",
        dollars: float | None = None,
        calls: int | None = None,
        tokens: int | None = None,
        key_variable: str | None = None,
    ):
        super().__init__(model_name, base_url, api_key, [], config or GenerateConfig())
        provider, _, model = model_name.partition("/")
        address: dict[str, Any] = {}
        if base_url is not None:
            address = {"base_url": base_url, "key_variable": key_variable}
        elif key_variable is not None:
            address = {"key_variable": key_variable}
        self.adapter = load(provider)(model, **address)
        self.folder = Path(ledger)
        self.caps = Caps(calls=calls, tokens=tokens, dollars=dollars)
        self.questions: SingleQuestions | None = None

    async def generate(self, input: Any, tools: Any, tool_choice: Any, config: Any) -> Any:
        """Return the output of a question, from now or from an earlier start."""
        if tools:
            raise Failed("A participant has no tools; got some. Leave them out.", "stop", "setting")
        settings = _settings(config)
        if self.questions is None:
            self.questions = SingleQuestions(self.folder, self.adapter, self.caps, self._price())
        reply = await self.questions.ask(Prompt(tuple(map(_message, input))), settings)
        return _output(reply, self.model_name)

    async def aclose(self) -> None:
        """Give back connections and ledger."""
        if self.questions is not None:
            questions, self.questions = self.questions, None
            await questions.close()

    def should_retry(self, ex: BaseException) -> bool:
        """Say no: what may pass was tried again already."""
        return False

    def _price(self) -> Any:
        """Return what the model costs; None if that is not known and no cap needs it."""
        try:
            return price_in(self.folder) or price_of(
                f"{self.adapter.provider}:{self.adapter.model}"
            )
        except ValueError:
            if self.caps.on_money:
                raise
            return None


def _settings(config: Any) -> Sampling:
    for name in _REFUSED:
        if getattr(config, name, None) not in (None, 1):
            raise Failed(f"{name} is not passed on; got one. Leave it out.", "stop", "setting")
    return Sampling(
        temperature=config.temperature,
        top_p=config.top_p,
        max_tokens=config.max_tokens,
        seed=config.seed,
        reasoning_effort=config.reasoning_effort,
        verbosity=config.verbosity,
        top_log_probabilities=(config.top_logprobs or 0) if config.logprobs else None,
    )


def _message(message: Any) -> Message:
    if message.role == "tool":
        raise Failed("A participant has no tools; got a reply of one.", "stop", "setting")
    images = []
    for part in [] if isinstance(message.content, str) else message.content:
        if part.type == "image":
            if not part.image.startswith(_PNG):
                raise Failed(f"A picture comes as {_PNG}...; got another.", "stop", "setting")
            images.append(base64.b64decode(part.image[len(_PNG) :]))
    return Message(message.role, message.text, tuple(images))


def _output(reply: Reply, model: str) -> Any:
    tokens = None
    if reply.log_probabilities is not None:
        tokens = Logprobs(
            content=[
                Logprob(
                    token=token.token,
                    logprob=token.log_probability,
                    top_logprobs=[TopLogprob(token=t, logprob=v) for t, v in token.alternatives],
                )
                for token in reply.log_probabilities
            ]
        )
    choice = ChatCompletionChoice(
        message=ChatMessageAssistant(content=reply.text, source="generate", model=model),
        stop_reason=_REASONS.get(reply.finish_reason, "unknown"),
        logprobs=tokens,
    )
    usage, used = reply.usage, None
    if usage.input_tokens is not None and usage.output_tokens is not None:
        cached, written = usage.cached_tokens, usage.written_tokens
        used = ModelUsage(
            input_tokens=usage.input_tokens - (cached or 0) - (written or 0),
            output_tokens=usage.output_tokens,
            total_tokens=usage.input_tokens + usage.output_tokens,
            input_tokens_cache_read=cached,
            input_tokens_cache_write=written,
            reasoning_tokens=usage.reasoning_tokens,
        )
    return ModelOutput(model=reply.model_served or model, choices=[choice], usage=used)


@modelapi(name="knownminds")  # type: ignore[untyped-decorator]
def knownminds() -> type[ModelAPI]:
    """Return the provider."""
    return LedgeredModel
