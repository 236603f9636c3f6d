"""One provider behind one method: what is sent, what returns, and what can go wrong."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from types import EllipsisType
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, get_args, runtime_checkable

from knownminds.environments import Prompt, unknown

if TYPE_CHECKING:
    from knownminds.llm_adapters.outcomes.outcome_probabilities import OutcomeProbabilities

Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
Verbosity = Literal["low", "medium", "high"]
EFFORTS: tuple[Effort, ...] = get_args(Effort)

MOST_TOKENS = 10**8  # of a call; what is said to be more, no model has read or written


@dataclass(frozen=True)
class Sampling:
    """How an answer is to be drawn; what is None is not sent.

    Parameters
    ----------
    temperature : 0 for the most probable answer, 1 for the model's own probabilities
    top_p : share of the probability that is drawn from
    max_tokens : where an answer is cut off; hidden reasoning counts
    seed : number that makes a provider's draws repeatable, as far as it can
    reasoning : how long a reasoning model thinks before it answers: none, minimal, low, medium,
        high, xhigh or max, of which a model takes some
    verbosity : how much a model says that can be told so: low, medium or high
    system : what a system message says before everything else; runs put it there
    top_log_probabilities : how many alternatives come with the log-probability of each token of
        the answer; 0 for that of the token alone
    """

    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    seed: int | None = None
    reasoning: Effort | None = None
    top_log_probabilities: int | None = None
    verbosity: Verbosity | None = None
    system: str | None = None

    def __post_init__(self) -> None:
        """Check the ranges."""
        for name, low, high in (
            ("temperature", 0.0, 2.0),
            ("top_p", 0.0, 1.0),
            ("max_tokens", 1, MOST_TOKENS),
            ("seed", 0, None),
            ("top_log_probabilities", 0, None),
        ):
            value = getattr(self, name)
            if value is not None and not (low <= value and (high is None or value <= high)):
                upper = "" if high is None else f" to {high:.9g}"
                raise ValueError(f"{name} goes from {low:g}{upper}; got {value!r}.")
        if self.reasoning is not None and self.reasoning not in EFFORTS:
            raise ValueError(unknown("reasoning effort", self.reasoning, EFFORTS))
        if self.verbosity is not None and self.verbosity not in get_args(Verbosity):
            raise ValueError(unknown("verbosity", self.verbosity, get_args(Verbosity)))
        if self.system is not None and not self.system.strip():
            raise ValueError("A system message says something; got an empty one. Leave it out.")


@dataclass(frozen=True)
class Capabilities:
    """What an adapter can do; asked before a run, so that nothing fails in its middle.

    Parameters
    ----------
    temperature, top_p, max_tokens, seed, reasoning, verbosity : whether the setting of that name
        is heeded
    efforts : the efforts of reasoning that are taken
    images : whether a prompt may hold images
    answer_log_probabilities : whether log-probabilities come with the tokens of an answer
    next_token_log_probabilities : whether the probabilities of all possible next tokens are known
    usage : whether the tokens of a call are reported
    needs : settings without which no call is taken
    without_reasoning : settings that are heeded only if `reasoning` is None or "none"
    """

    temperature: bool = True
    top_p: bool = True
    max_tokens: bool = True
    seed: bool = True
    reasoning: bool = False
    images: bool = False
    answer_log_probabilities: bool = False
    next_token_log_probabilities: bool = False
    usage: bool = True
    needs: tuple[str, ...] = ()
    without_reasoning: tuple[str, ...] = ()
    verbosity: bool = False
    efforts: tuple[Effort, ...] = EFFORTS


@dataclass(frozen=True)
class Usage:
    """Tokens sent and received, counted alike for all providers; None where one does not say.

    A number that cannot be (negative, or above `MOST_TOKENS`) is none: it is not known then.

    Parameters
    ----------
    input_tokens : all that was sent, `cached_tokens` among them
    output_tokens : all that came, `reasoning_tokens` among them
    reasoning_tokens : hidden reasoning
    cached_tokens : what the provider had in its cache
    written_tokens : what the provider has put into it, for which some charge
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    cached_tokens: int | None = None
    written_tokens: int | None = None

    def __post_init__(self) -> None:
        """Take what cannot be a number of tokens for none."""
        for field in fields(self):
            n = getattr(self, field.name)
            if n is not None and not 0 <= n <= MOST_TOKENS:
                object.__setattr__(self, field.name, None)


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

    Parameters
    ----------
    text : the answer
    finish_reason : "stop", or "length" if it was cut off, or "refusal", or the provider's own
        word; empty if it gives none
    usage : what it cost in tokens
    model_served : the model that the provider says it used
    raw : the whole body as it came
    request_id : the provider's name for the call
    log_probabilities : one entry for each token of the answer; None if not asked for
    """

    text: str
    finish_reason: str = "stop"
    usage: Usage = Usage()
    model_served: str = ""
    raw: str = ""
    request_id: str = ""
    log_probabilities: tuple[TokenLogProbability, ...] | None = None


@runtime_checkable
class Adapter(Protocol):
    """A provider of answers.

    `provider` is its name in `ADAPTERS`, `model` the model asked for, `base_url` where it is,
    empty if it is nowhere. With the settings they say which participant has answered. This is all
    that an adapter must have; what some can do beyond it is `Keyed` and `TellsOutcomes`.
    """

    @property
    def provider(self) -> str:
        """The name in `ADAPTERS`."""

    @property
    def model(self) -> str:
        """The model asked for."""

    @property
    def base_url(self) -> str:
        """Where the server is; empty if there is none."""

    @property
    def capabilities(self) -> Capabilities:
        """What it can do."""

    async def complete(self, prompt: Prompt, *, settings: Sampling) -> Reply:
        """Ask once, without asking again; raise an `AdapterError` if there is no reply."""

    async def close(self) -> None:
        """Give back the connections."""


@runtime_checkable
class Keyed(Protocol):
    """An adapter that sends a key: it says which environment variable holds it, None for none."""

    key_variable: str | None


@runtime_checkable
class TellsOutcomes(Protocol):
    """An adapter of a local model, which knows the exact probability of whole outcomes."""

    def log_probabilities_of_each(
        self,
        prompts: Sequence[str | Prompt],
        outcomes: Sequence[Sequence[str]],
        *,
        negligible: float = 0.0,
        signs: bool = True,
        progress: Callable[[int, int], None] | None = None,
    ) -> list[OutcomeProbabilities]:
        """Compute the probability of each outcome behind each prompt, all in one pass."""

    def templated(self, prompt: str | Prompt) -> bool:
        """Tell whether a prompt goes through a chat template; else the model gets plain text."""


def key_variable_of(adapter: Adapter) -> str | None:
    """Return the environment variable that holds an adapter's key; None if it sends none."""
    return adapter.key_variable if isinstance(adapter, Keyed) else None


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
        │   └── UnreadableReply    an answer came and cannot be read
        └── Unusable               no call will: stop the run
            ├── NoKey              no key, or one that is not accepted
            ├── NoCredit           the account has no money left
            ├── UnknownModel       the provider has no such model
            ├── NotCapable         something is asked for that the adapter cannot do
            └── ModelChanged       the provider now serves another model

    Parameters
    ----------
    charged
        Whether the call was paid for: False if surely not, None if it may have been. Left out, it
        is what the kind of error lets one be sure of.
    raw
        What came, if anything did, without any key.

    Attributes
    ----------
    status
        The HTTP status, if an answer with one came.
    """

    charged: bool | None = None
    status: int | None = None

    def __init__(
        self, message: str, *, charged: bool | EllipsisType | None = ..., raw: str = ""
    ) -> None:
        super().__init__(message)
        if not isinstance(charged, EllipsisType):
            self.charged = charged
        self.raw = raw

    @property
    def kind(self) -> tuple[str, ...]:
        """What sort of failure it is: class, status, the provider's word for it, and its shape.

        Messages do not count: the same failure bears another number with every call.
        """
        return type(self).__name__, str(self.status or ""), *_sort_of(self.raw)


class TryAgain(AdapterError):  # noqa: N818
    """The same call may succeed later."""

    retry_after: float | None = None


class RateLimited(TryAgain):
    """Too many calls."""

    charged = False

    def __init__(
        self,
        message: str,
        retry_after: float | None = None,
        *,
        charged: bool | EllipsisType | None = ...,
        raw: str = "",
    ) -> None:
        super().__init__(message, charged=charged, raw=raw)
        self.retry_after = retry_after


class ServerFailed(TryAgain):
    """The provider's own failure."""


class Unreachable(TryAgain):
    """No connection, or none in time."""


class NoReply(AdapterError):  # noqa: N818
    """This call will never succeed; others may."""


class Rejected(NoReply):
    """The provider does not take this prompt."""

    charged = False


class UnreadableReply(NoReply):
    """An answer came and cannot be read; it may have been charged."""

    def __init__(
        self, message: str, raw: str = "", *, charged: bool | EllipsisType | None = ...
    ) -> None:
        super().__init__(message, charged=charged, raw=raw)


class Unusable(AdapterError):  # noqa: N818
    """No call will succeed: stop the run."""

    charged = False


class NoKey(Unusable):
    """No key, or one that is not accepted."""


class NoCredit(Unusable):
    """The account has no money left."""


class UnknownModel(Unusable):
    """The provider has no such model."""


class NotCapable(Unusable):
    """Something is asked for that the adapter cannot do."""


class ModelChanged(Unusable):
    """The provider now serves another model."""

    charged = True


def check_capable(adapter: Adapter, settings: Sampling, *, images: bool = False) -> None:
    """Raise NotCapable if the adapter cannot do what is asked of it."""
    if settings.system is not None:
        raise NotCapable(
            "A system message is part of what is shown; whoever asks puts it into the prompt "
            "(`behind`). Runs do so by themselves."
        )
    can = adapter.capabilities
    given = {field.name for field in fields(settings) if getattr(settings, field.name) is not None}
    asked = {_CAPABILITY.get(name, name) for name in given}
    if images:
        asked.add("images")
    for name in sorted(asked):
        if name == "images" and not can.images:
            raise NotCapable(
                f"{adapter.model} is to be shown pictures, which its adapter cannot. Ask in words "
                "(modality=text), say with --images that the model sees them, or choose another."
            )
        if not getattr(can, name):
            raise NotCapable(
                f"{adapter.model} is asked for {_SETTING.get(name, name)}, which its adapter "
                f"cannot heed. Leave {_SETTING.get(name, name)} out, or choose another model."
            )
        if name in can.without_reasoning and settings.reasoning not in (None, "none"):
            raise NotCapable(
                f"{adapter.model} heeds {_SETTING.get(name, name)} only without reasoning; got "
                f"reasoning={settings.reasoning!r}. Leave one of them out."
            )
    if settings.reasoning is not None and settings.reasoning not in can.efforts:
        raise NotCapable(
            f"{adapter.model} takes the efforts of reasoning {', '.join(can.efforts)}; got "
            f"{settings.reasoning!r}. Choose one of these."
        )
    for name in can.needs:
        if name not in given:
            raise NotCapable(f"{adapter.model} takes no call without {name}; got none. Set {name}.")


def _sort_of(raw: str) -> tuple[str, str]:
    """Return the word that the body of an error has for its sort, and what the body is."""
    try:
        content = json.loads(raw)
    except (ValueError, RecursionError):
        return "", "text" if raw else ""
    error = content.get("error", content) if isinstance(content, dict) else None
    words = (
        [error.get(name) for name in ("type", "code", "status")] if isinstance(error, dict) else []
    )
    # A word of letters: what holds digits may be the number of a call.
    plain = [w for w in words if isinstance(w, str) and re.fullmatch(r"[A-Za-z_-]{1,40}", w)]
    return plain[0] if plain else "", type(content).__name__


# Where a capability is not called as the setting that asks for it.
_CAPABILITY = {"top_log_probabilities": "answer_log_probabilities"}
_SETTING = {capability: setting for setting, capability in _CAPABILITY.items()}
