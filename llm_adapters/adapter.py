"""One provider behind one method: what is sent, what returns, and what can go wrong."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Protocol

from knownminds.environments import Prompt


@dataclass(frozen=True)
class Sampling:
    """How an answer is to be drawn; what is None is not sent.

    Parameters
    ----------
    temperature : 0 for the most probable answer, 1 for the model's own probabilities
    top_p : share of the probability that is drawn from
    max_tokens : where an answer is cut off
    seed : number that makes a provider's draws repeatable, as far as it can
    """

    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    seed: int | None = None

    def __post_init__(self) -> None:
        """Check the ranges."""
        for name, low, high in (
            ("temperature", 0.0, 2.0),
            ("top_p", 0.0, 1.0),
            ("max_tokens", 1, None),
            ("seed", 0, None),
        ):
            value = getattr(self, name)
            if value is not None and not (low <= value and (high is None or value <= high)):
                upper = "" if high is None else f" to {high:g}"
                raise ValueError(f"{name} goes from {low:g}{upper}; got {value!r}.")


@dataclass(frozen=True)
class Capabilities:
    """What an adapter can do; asked before a run, so that nothing fails in its middle.

    Parameters
    ----------
    temperature, top_p, max_tokens, seed : whether the setting of that name is heeded
    images : whether a prompt may hold images
    """

    temperature: bool = True
    top_p: bool = True
    max_tokens: bool = True
    seed: bool = True
    images: bool = False


@dataclass(frozen=True)
class Usage:
    """Tokens sent and received; None where the provider does not say."""

    input_tokens: int | None = None
    output_tokens: int | None = None


@dataclass(frozen=True)
class Reply:
    """What came back for one prompt.

    Parameters
    ----------
    text : the answer
    finish_reason : "stop", or "length" if it was cut off, or "refusal", or the provider's own word
    usage : what it cost in tokens
    model_served : the model that the provider says it used
    raw : the whole body as it came
    request_id : the provider's name for the call
    """

    text: str
    finish_reason: str = "stop"
    usage: Usage = Usage()
    model_served: str = ""
    raw: str = ""
    request_id: str = ""


class Adapter(Protocol):
    """A provider of answers. `model` is the model asked for."""

    @property
    def model(self) -> str:
        """The model asked for."""

    @property
    def capabilities(self) -> Capabilities:
        """What it can do."""

    async def complete(self, prompt: Prompt, *, settings: Sampling) -> Reply:
        """Ask once, without asking again; raise an `AdapterError` if there is no reply."""

    async def close(self) -> None:
        """Give back the connections."""


class AdapterError(Exception):
    """There is no reply; the branches say what a caller can do about it.

    ::

        AdapterError
        ├── TryAgain               the same call may succeed later
        │   ├── RateLimited        too many calls; `retry_after` seconds if the provider says
        │   ├── ServerFailed       the provider's own failure
        │   └── Unreachable        no connection, or none in time
        ├── NoReply                this call never will; others may
        │   ├── Rejected           the provider does not take this prompt
        │   └── UnreadableReply    an answer came and cannot be read; it may have been charged
        └── Unusable               no call will: stop the run
            ├── NoKey              no key, or one that is not accepted
            ├── UnknownModel       the provider has no such model
            ├── NotCapable         a setting that the adapter cannot heed
            └── ModelChanged       the provider now serves another model
    """


class TryAgain(AdapterError):  # noqa: N818
    """The same call may succeed later."""

    retry_after: float | None = None


class RateLimited(TryAgain):
    """Too many calls."""

    def __init__(self, message: str, retry_after: float | None = None):
        super().__init__(message)
        self.retry_after = retry_after


class ServerFailed(TryAgain):
    """The provider's own failure."""


class Unreachable(TryAgain):
    """No connection, or none in time."""


class NoReply(AdapterError):  # noqa: N818
    """This call will never succeed; others may."""


class Rejected(NoReply):
    """The provider does not take this prompt."""


class UnreadableReply(NoReply):
    """An answer came and cannot be read; it may have been charged."""

    def __init__(self, message: str, raw: str = ""):
        super().__init__(message)
        self.raw = raw


class Unusable(AdapterError):  # noqa: N818
    """No call will succeed: stop the run."""


class NoKey(Unusable):
    """No key, or one that is not accepted."""


class UnknownModel(Unusable):
    """The provider has no such model."""


class NotCapable(Unusable):
    """A setting that the adapter cannot heed."""


class ModelChanged(Unusable):
    """The provider now serves another model."""


def check_capable(adapter: Adapter, settings: Sampling, *, images: bool = False) -> None:
    """Raise NotCapable if the adapter cannot do what is asked of it."""
    asked = {field.name for field in fields(settings) if getattr(settings, field.name) is not None}
    if images:
        asked.add("images")
    for name in sorted(asked):
        if not getattr(adapter.capabilities, name):
            raise NotCapable(
                f"{adapter.model} is asked for {name}, which its adapter cannot heed. "
                f"Leave {name} out, or choose another model."
            )
