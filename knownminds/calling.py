"""How a language model is called: each option once, for commands, benchmarks and runs.

A question of the command line takes its fields from here, and so do `RunOptions` of a run and
`connect`. The first sentence about a field is the help of its option. Nothing here is slow to
import.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from decimal import Decimal, InvalidOperation
from numbers import Integral
from typing import Any, Literal, get_args

from .members import unknown

Amount = Decimal | float | str
Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
Verbosity = Literal["low", "medium", "high"]

MOST_TOKENS = 10**8  # of a call; what is said to be more, no model has read or written


def check_least(options: object, least: float, *names: str) -> None:
    """Raise ValueError if one of these options is set and below its least value, or NaN."""
    for name in names:
        value = getattr(options, name)
        if value is not None and not value >= least:
            raise ValueError(f"{name} is at least {least:g}; got {value!r}.")


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """How an answer is to be drawn; what is None is not sent.

    Parameters
    ----------
    temperature : 0 to 2, or that of a paper: cogbench, colliders, magnitudes. 0 is for the most
        probable answer, 1 for the probabilities of the model.
    top_p : 0 to 1. It is the share of the probability that is drawn from.
    max_tokens : Where an answer is cut off. Hidden reasoning counts.
    seed : A number that makes a provider's draws repeatable, as far as it can.
    reasoning_effort : none, minimal, low, medium, high, xhigh or max. A model takes some of them.
    top_log_probabilities : Alternatives kept with each token. 0 keeps that of the token alone.
    verbosity : low, medium or high.
    system : What a system message says before every prompt. Runs put it there.
    answer_prefix : What each answer of a local model begins with, "Machine " for instance. Runs put
        it there.
    """

    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    seed: int | None = None
    reasoning_effort: Effort | None = None
    top_log_probabilities: int | None = None
    verbosity: Verbosity | None = None
    system: str | None = None
    answer_prefix: str | None = None

    def __post_init__(self) -> None:
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
        for name, kind in (("reasoning_effort", Effort), ("verbosity", Verbosity)):
            value, known = getattr(self, name), get_args(kind)
            if value is not None and value not in known:
                raise ValueError(unknown(name.replace("_", " "), value, known))
        for name, words in (("system", "A system message"), ("answer_prefix", "An answer prefix")):
            value = getattr(self, name)
            if value is not None and not value.strip():
                raise ValueError(f"{words} says something; got an empty one. Leave it out.")


SETTINGS = tuple(one.name for one in fields(Sampling) if one.name != "seed")  # of a participant


@dataclass(frozen=True)
class Caps:
    """What a run may use at most; None for no bound.

    A call is made only if the most it can use fits under every cap; what may have been paid
    counts as paid.

    Parameters
    ----------
    calls, tokens, dollars : of the whole run, all its starts together
    session_calls, session_tokens, session_dollars : of each session
    answer_tokens : most tokens of one answer, hidden reasoning included; needed under caps on
        tokens or dollars if the settings have no `max_tokens`
    """

    calls: int | None = None
    tokens: int | None = None
    dollars: Amount | None = None
    session_calls: int | None = None
    session_tokens: int | None = None
    session_dollars: Amount | None = None
    answer_tokens: int | None = None

    def __post_init__(self) -> None:
        """Check the ranges; dollars become exact."""
        for name, value in vars(self).copy().items():
            if value is None:
                continue
            if name.endswith("dollars"):
                object.__setattr__(self, name, _exact(name, value))
                continue
            whole = isinstance(value, Integral) and not isinstance(value, bool)
            if not (whole and value >= 0):
                raise ValueError(f"A cap on {name} is a whole number from 0 on; got {value!r}.")
        if self.answer_tokens is not None and self.answer_tokens > MOST_TOKENS:
            raise ValueError(
                f"An answer has at most {MOST_TOKENS:,} tokens; got answer_tokens="
                f"{self.answer_tokens:,}."
            )

    @property
    def on_money(self) -> bool:
        """Whether money is bounded."""
        return self.dollars is not None or self.session_dollars is not None

    @property
    def on_use(self) -> bool:
        """Whether money or tokens are bounded, which depend on what comes back."""
        return self.on_money or self.tokens is not None or self.session_tokens is not None


def _exact(name: str, value: Amount) -> Decimal:
    try:
        exact = Decimal(str(value))
    except InvalidOperation:
        exact = Decimal("NaN")
    if not (exact.is_finite() and exact >= 0):
        raise ValueError(f"A cap on {name} is an amount from 0 on; got {value!r}.")
    return exact


@dataclass(frozen=True, kw_only=True)
class Reach:
    """Where a model is reached.

    Parameters
    ----------
    base_url : A server of your own. It is called without a key, unless `key_variable` names one.
    key_variable : The environment variable that holds the key.
    timeout : Seconds until a call is given up. The adapter's if none.
    """

    base_url: str | None = None
    key_variable: str | None = None
    timeout: float | None = None


@dataclass(frozen=True, kw_only=True)
class Calling:
    """How calls are made, and what they may use.

    Parameters
    ----------
    concurrency : Sessions of each model under way at a time. How many calls are, rises and falls
        with what the provider takes, see `Admission`.
    attempts : Calls per question, if the provider fails or cannot be reached.
    re_ask : How often to ask again if malformed.
    retry_errors : Ask trials again that had no answer in an earlier start. Where prompts tell of
        earlier trials, only those are asked that have no answer behind them in their session: an
        answer is never replaced.
    no_seed : Send no sampling seed, which some servers refuse. Otherwise it is the number of the
        session, where the adapter takes one.
    durable : Let each write wait for the disk, against a power cut. A killed process loses nothing
        in either case.
    caps : NAME=MOST of all runs together: calls, tokens, dollars, session_calls, ...,
        answer_tokens. They hold over all runs of a ledger and all their starts; a run that goes on
        may have other ones.
    tell : Called with a sentence when there is something to say.
    """

    concurrency: int = 8
    attempts: int = 5
    re_ask: int = 0
    retry_errors: bool = False
    no_seed: bool = False
    durable: bool = False
    caps: Caps = Caps()
    tell: Callable[[str], None] | None = None

    def __post_init__(self) -> None:
        """Check the ranges; caps may be a dictionary, or none."""
        if not isinstance(self.caps, Caps):
            object.__setattr__(self, "caps", Caps(**(self.caps or {})))
        check_least(self, 1, "concurrency", "attempts")
        check_least(self, 0, "re_ask")

    def say(self, sentence: str) -> None:
        """Tell something, if somebody listens."""
        if self.tell is not None:
            self.tell(sentence)


@dataclass(frozen=True, kw_only=True)
class InBatches:
    """Whether questions are sent in batches, at half the price and within a day.

    Parameters
    ----------
    batch : Ask in batches, at half the price and within a day. Where trials stand alone
        (`Replies.stand_alone`), all of all sessions are sent together.
    batch_turns : As --batch, where trials tell of earlier ones: a batch per trial.
    batch_size : As --batch, with so many requests at most, and one batch after another.
    """

    batch: bool = False
    batch_turns: bool = False
    batch_size: int | None = None

    def __post_init__(self) -> None:
        """Check the range."""
        check_least(self, 1, "batch_size")

    @property
    def batched(self) -> bool:
        """Whether they are."""
        return self.batch or self.batch_turns or self.batch_size is not None


def part_of(kind: type[Any], options: object) -> dict[str, Any]:
    """Return the fields of one of these kinds that a question has, by name."""
    return {one.name: getattr(options, one.name) for one in fields(kind)}
