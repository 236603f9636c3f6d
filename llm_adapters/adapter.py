"""A language model behind one contract: a request, the bytes that answer it, and the reply in them.

`request` and `read` are pure, `send` is called once for each request. So whoever asks can write
down the request before it leaves and the bytes before anything is made of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, runtime_checkable

from knownminds.calling import MOST_TOKENS, Sampling
from knownminds.environments import Message, Prompt

if TYPE_CHECKING:
    from knownminds.llm_adapters.continuations.continuation_probabilities import (
        ContinuationProbabilities,
    )

_LONGEST_TOKEN = 128  # bytes; the longest of the tokenizers in use are 128 spaces


@dataclass(frozen=True)
class Usage:
    """Tokens sent and received, counted alike for all providers; None where one does not say.

    A number that cannot be is none: it is not known then. No number is negative or above
    `MOST_TOKENS`, and no prompt has 0 tokens.

    Parameters
    ----------
    input_tokens : all that was sent, `cached_tokens` among them
    output_tokens : all that came, `reasoning_tokens` among them
    reasoning_tokens : hidden reasoning
    cached_tokens : what the provider had in its cache
    written_tokens : what the provider has put into it, for which some charge
    impossible_counts : how many of these numbers were said, and cannot be
    cut_prompts : 1 if the number sent shows that the server has not read the whole prompt
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    cached_tokens: int | None = None
    written_tokens: int | None = None
    impossible_counts: int = 0
    cut_prompts: int = 0

    def __post_init__(self) -> None:
        """Take what cannot be a number of tokens for none."""
        for field in fields(self):
            n, least = getattr(self, field.name), int(field.name == "input_tokens")
            if n is not None and not least <= n <= MOST_TOKENS:
                object.__setattr__(self, field.name, None)
                object.__setattr__(self, "impossible_counts", self.impossible_counts + 1)

    def bounded(self) -> Usage:
        """Return it with parts that are no more than the whole, where that is known."""
        sent, received = self.input_tokens, self.output_tokens
        least = {name: n for name, n in vars(self).items() if n is not None}
        for name, whole in (
            ("cached_tokens", sent),
            ("written_tokens", sent),
            ("reasoning_tokens", received),
        ):
            if whole is not None and name in least:
                least[name] = min(least[name], whole)
        return Usage(**least)


class TokenLogProbability(NamedTuple):
    """A token of an answer, its natural log-probability, and what could have stood there.

    The alternatives are pairs of a token and its log-probability, as the provider ranks them.
    """

    token: str
    log_probability: float
    alternatives: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True)
class Reply:
    """What came back for one prompt.

    Half a character in a text is replaced by U+FFFD. A number of output tokens that is
    too small for the text is not known.

    Parameters
    ----------
    text : the answer
    finish_reason : "stop" if it is whole, or "length" if it was cut off, or "refusal", or the
        provider's word for another end; empty if it gives none
    usage : what it cost in tokens
    model_served : the model that the provider says it used
    raw : the whole body as it came
    log_probabilities : one entry for each token of the answer; None if not wanted
    """

    text: str
    finish_reason: str = "stop"
    usage: Usage = Usage()
    model_served: str = ""
    raw: str = ""
    log_probabilities: tuple[TokenLogProbability, ...] | None = None

    def __post_init__(self) -> None:
        """Replace what is no text, and a number of tokens that cannot be."""
        for name in ("text", "finish_reason", "model_served"):
            object.__setattr__(self, name, whole_characters(getattr(self, name)))
        n = self.usage.output_tokens
        if n is not None and n * _LONGEST_TOKEN < len(self.text.encode()):
            # A negative number is none, and is counted as one that cannot be.
            object.__setattr__(self, "usage", replace(self.usage, output_tokens=-1))


def whole_characters(text: str) -> str:
    """Return a text that can be written: half a character, as of an emoji, becomes U+FFFD."""
    return re.sub("[\ud800-\udfff]", "\ufffd", text)


class Failed(Exception):  # noqa: N818 - it says what has happened to a call
    """There is no reply; `then` says what a caller can do about it.

    Parameters
    ----------
    then : "retry" if the same call may succeed later, "skip" if this call never will but others
        may, "stop" if no call will.
    kind : What failures of the same sort have in common: "server 503", "prompt 400", "connection",
        "unreadable", "key", "credit", "model", "setting", "region", "quota" (of a day), "refused"
        (by moderation). "often" is of calls that come too often, "broken" of an answer that breaks
        off with an error.
    charged : Whether the call was paid for: False if surely not, None if it may have been.
    wait : Seconds that the provider asks to wait; None if it does not.
    raw : What came, if anything did, without any key.
    setting : The setting that a server does not take, as it names it; "" if it names none.
    usage : What the call has cost in tokens, if what came tells it.
    """

    def __init__(
        self,
        message: str,
        then: Literal["retry", "skip", "stop"] = "skip",
        kind: str = "",
        *,
        charged: bool | None = None,
        wait: float | None = None,
        raw: bytes = b"",
        setting: str = "",
    ) -> None:
        super().__init__(whole_characters(message))
        self.then = then
        self.kind = kind or then
        self.charged = charged
        self.wait = wait
        self.raw = raw
        self.setting = setting
        self.usage = Usage()


def refused(message: str) -> Failed:
    """Return what it means that an adapter refuses an option, before any call."""
    return Failed(message, "stop", "setting", charged=False)


class Adapter(Protocol):
    """A provider of answers.

    `provider` is its name in `ADAPTERS`, `model` the model that is wanted, `base_url` where it is,
    empty if it is nowhere. With the settings they say which participant has answered. `heeds` are
    the settings that are obeyed, "seed" and "images" among them. Those that send a key have a
    `key_variable`; what local models can do beyond it is `TellsContinuations`.
    """

    @property
    def provider(self) -> str:
        """The name in `ADAPTERS`."""

    @property
    def model(self) -> str:
        """The name of the model that is called."""

    @property
    def base_url(self) -> str:
        """Where the server is; empty if there is none."""

    @property
    def heeds(self) -> frozenset[str]:
        """The settings that are obeyed, and "images" if pictures are seen."""

    def request(self, prompt: Prompt, settings: Sampling) -> dict[str, Any]:
        """Return what is sent, without a key; `Failed` if the settings contradict each other."""

    async def send(self, request: dict[str, Any]) -> bytes:
        """Send a request once and return the body that came; `Failed` if none did."""

    def read(self, body: bytes, settings: Sampling) -> Reply:
        """Read a body, now or long after it came; `Failed` if it holds no reply."""

    async def close(self) -> None:
        """Give back the connections."""


class InProcess:
    """An adapter that answers in this process: `complete` is all that it has to write.

    ::

        class FirstNamed(InProcess):
            provider, model = "first_named", "rule"

            async def complete(self, prompt, *, settings):
                return Reply(...)
    """

    model: str
    base_url = ""
    heeds = frozenset({"seed", "max_tokens"})

    def __init__(self, model: str = "") -> None:
        if model:
            self.model = model

    async def complete(self, prompt: Prompt, *, settings: Sampling) -> Reply:
        """Answer once; `Failed` if there is no reply."""
        raise NotImplementedError(f"{type(self).__name__} has no method complete. Write it.")

    def request(self, prompt: Prompt, settings: Sampling) -> dict[str, Any]:
        """Return the prompt and the settings."""
        return {"prompt": prompt, "settings": settings}

    async def send(self, request: dict[str, Any]) -> bytes:
        """Answer, and write the reply as JSON."""
        return write_reply(await self.complete(request["prompt"], settings=request["settings"]))

    def read(self, body: bytes, settings: Sampling) -> Reply:
        """Read what `send` has written."""
        return read_reply(body)

    async def close(self) -> None:
        """Do nothing: there are no connections."""


@runtime_checkable
class TellsContinuations(Protocol):
    """An adapter of a local model, which knows the exact probability of continuations."""

    def log_probabilities(
        self,
        prompts: Sequence[str | Prompt],
        continuations: Sequence[Sequence[str]],
        *,
        progress: Callable[[int, int], None] | None = None,
    ) -> list[ContinuationProbabilities]:
        """Compute the probability of each continuation of each prompt, all in one pass."""

    def templated(self, prompt: str | Prompt) -> bool:
        """Tell whether a prompt goes through a chat template; else the model gets plain text."""


def given(settings: Sampling) -> dict[str, Any]:
    """Return the settings that are set, by name."""
    return {name: value for name, value in vars(settings).items() if value is not None}


def check_heeds(adapter: Adapter, settings: Sampling, *, images: bool = False) -> None:
    """Raise `Failed` if the adapter would pass over a setting or a picture.

    What a provider refuses by itself is left to it: a refusal is not charged and stops the run.
    """
    for name, way in (("system", "behind"), ("answer_prefix", "begun")):
        if getattr(settings, name) is not None:
            raise refused(
                f"{name} is part of what is shown; whoever asks puts it into the prompt (`{way}`). "
                "Runs do so by themselves."
            )
    if images and "images" not in adapter.heeds:
        raise refused(
            f"{adapter.model} is to be shown pictures, which its adapter cannot. Ask in words "
            "(modality=text), say with --images that the model sees them, or choose another."
        )
    for name in sorted(set(given(settings)) - adapter.heeds):
        raise refused(
            f"{adapter.model} is asked for {name}, which its adapter cannot heed. Leave {name} "
            "out, or choose another model."
        )
    adapter.request(Prompt((Message("user", "?"),)), settings)


def write_reply(reply: Reply) -> bytes:
    """Write a reply as JSON, as `read_reply` reads it; what it came from is left out."""
    content = {name: value for name, value in vars(reply).items() if name != "raw"}
    content["usage"] = asdict(reply.usage)
    return whole_characters(json.dumps(content, ensure_ascii=False)).encode()


def read_reply(body: bytes, raw: str | None = None) -> Reply:
    """Read a reply that `write_reply` has written; `raw` is what it came from."""
    content = json.loads(body)
    tokens = content["log_probabilities"]
    if tokens is not None:
        tokens = tuple(
            TokenLogProbability(token, value, tuple((other, v) for other, v in alternatives))
            for token, value, alternatives in tokens
        )
    return Reply(
        content["text"],
        content["finish_reason"],
        Usage(**content["usage"]),
        content["model_served"],
        body.decode() if raw is None else raw,
        tokens,
    )
