"""What calls cost: dated prices of language models, and tokens as a range known before spending.

Prices come from the table inside the package genai-prices, which is never updated over the
network, or from the user. Tokens are not counted with a tokenizer, which would have to be
downloaded for each provider, but bracketed from the exact number of bytes.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, time
from datetime import date as Date  # noqa: N812 - fields and arguments are called date
from decimal import ROUND_CEILING, Decimal
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from knownminds.environments import unknown
from knownminds.llm_adapters.adapter import Usage
from knownminds.llm_adapters.configuration import Participant

if TYPE_CHECKING:
    from genai_prices.data_snapshot import DataSnapshot
    from genai_prices.types import ModelInfo, ModelPrice

# Tokens per 100 UTF-8 bytes of prompts like ours, over the tokenizers in use. A text never has
# more tokens than bytes: tokenizers fall back to single bytes.
FEWEST_PER_100_BYTES, MOST_PER_100_BYTES = 32, 45
# Tokens that mark role, begin and end of a message in the usual chat formats.
FEWEST_PER_MESSAGE, MOST_PER_MESSAGE = 3, 8
# Tokens that end an answer and are charged by some providers; an assumption, not measured.
MOST_PER_ANSWER = 4

# What no image of current providers exceeds (2,833 and 5,667 for each of up to four tiles of a
# picture up to 1,024 x 1,024 with gpt-4o-mini), besides its bytes.
MOST_PER_IMAGE = 25_501

PER = 1_000_000  # prices are for a million tokens
NANO = 10**9  # nano-dollars in a dollar: sums of money are exact whole numbers
_MOST_RATE = 100_000  # dollars for a million tokens; the dearest of 2026 cost 600
REMEDY = 'Give a price, in dollars per million tokens: --price "{llm}=INPUT,OUTPUT".'
GIVEN = "given by the user"
HALVED = ", halved for batches"

_RATES = (
    "input_mtok",
    "output_mtok",
    "cache_read_mtok",
    "cache_write_mtok",
    "output_reasoning_mtok",
    "requests_kcount",
)
_WRITING = Decimal("1.25")  # times the price of input: what Anthropic takes to cache it 5 minutes

Rate = Annotated[Decimal, Field(ge=0, le=_MOST_RATE)]
Overrides = Mapping[str, Mapping[str, Any]]


class _GivenPrice(BaseModel):
    """A price of the user's, in dollars per million tokens."""

    model_config = ConfigDict(extra="forbid")

    input: Rate
    output: Rate
    cached_input: Rate | None = None
    date: Date | None = None


@dataclass(frozen=True)
class Range:
    """A whole number that is known up to its lowest and highest value."""

    low: int
    high: int

    def __str__(self) -> str:
        """One number if it is known exactly, otherwise both."""
        return f"{self.low:,}" if self.low == self.high else f"{self.low:,} to {self.high:,}"


@dataclass(frozen=True)
class Dollars:
    """A sum of money that is known up to its lowest and highest value."""

    low: Decimal
    high: Decimal

    def __str__(self) -> str:
        """In dollars, to the cent, or to two digits if it is less than a dime."""
        low, high = (
            f"{d:,.2f}" if d == 0 or d >= Decimal("0.095") else f"{Decimal(f'{d:.1e}'):f}"
            for d in (self.low, self.high)
        )
        return f"${low}" if low == high else f"${low} to ${high}"


@dataclass(frozen=True)
class Price:
    """What a language model costs, on which day, and who says so.

    Parameters
    ----------
    llm : "provider:model" as the user wrote it
    provider, model : what it was matched to in the source
    rates : dollars per million tokens, as genai-prices has them
    source : the package and its version, or the user's file
    date : the day for which the price was looked up
    since : the day from which it holds, where the source says so
    """

    llm: str
    provider: str
    model: str
    rates: ModelPrice = field(hash=False)
    source: str
    date: Date
    since: Date | None = None

    def rate(self, name: str, input_tokens: int = 0) -> Decimal | None:
        """Return one of the rates in calls with so many input tokens; None if unknown."""
        rate = vars(self.rates).get(name)
        if rate is None or isinstance(rate, Decimal):
            return rate
        reached = [tier.price for tier in rate.tiers if input_tokens > tier.start or not tier.start]
        return Decimal((reached or [rate.base])[-1])

    @property
    def input(self) -> Decimal:
        """Dollars per million input tokens, in short prompts."""
        return self.rate("input_mtok") or Decimal(0)

    @property
    def output(self) -> Decimal:
        """Dollars per million output tokens, after short prompts."""
        return self.rate("output_mtok") or Decimal(0)

    @property
    def cached_input(self) -> Decimal | None:
        """Dollars per million input tokens read from the cache; None if unknown."""
        return self.rate("cache_read_mtok")

    def cost(
        self,
        input_tokens: int,
        output_tokens: int,
        *,
        reasoning_tokens: int = 0,
        cached_tokens: int | None = None,
        written_tokens: int | None = None,
    ) -> Decimal:
        """Return the exact dollars of one call.

        Parameters
        ----------
        output_tokens : Tokens of the answer, without those of the hidden reasoning.
        cached_tokens : How many of the input tokens are read from the cache; None for a call that
            does without a cache.
        written_tokens : How many of the others are then put into it; None for all of them.

        Raises
        ------
        ValueError : If the call reads from a cache and the price of that is not known.
        """
        names = ("input", "output", "cache_read", "cache_write", "output_reasoning")
        rates = [self.rate(f"{name}_mtok", input_tokens) for name in names]
        fresh_rate, said_rate, cached_rate, write_rate, thought_rate = rates
        fresh, dollars = input_tokens, Decimal(0)
        if cached_tokens is not None:
            if cached_rate is None and cached_tokens:
                raise ValueError(
                    f"{self.source} has no price of cached input for {self.llm}. "
                    "Leave the cache out, or give its price as the third number."
                )
            others = input_tokens - cached_tokens
            written = others if written_tokens is None else written_tokens
            dollars += cached_tokens * (cached_rate or 0)
            dollars += written * ((fresh_rate if write_rate is None else write_rate) or 0)
            fresh = others - written
        dollars += fresh * (fresh_rate or 0) + output_tokens * (said_rate or 0)
        dollars += reasoning_tokens * ((said_rate if thought_rate is None else thought_rate) or 0)
        return dollars / PER + self.per_call

    @property
    def per_call(self) -> Decimal:
        """Dollars for each call besides its tokens."""
        return (self.rate("requests_kcount") or Decimal(0)) / 1000

    def __str__(self) -> str:
        cached = "unknown" if self.cached_input is None else f"${_plain(self.cached_input)}"
        starts = {tier.start for tier in getattr(vars(self.rates)["input_mtok"], "tiers", ())}
        steps = "".join(
            f"; above {start:,} input tokens ${_plain(self.rate('input_mtok', start + 1))} and "
            f"${_plain(self.rate('output_mtok', start + 1))}"
            for start in sorted(starts)
        )
        call = f"; ${_plain(self.per_call)} per call" if self.per_call else ""
        since = f", since {self.since}" if self.since else ""
        return (
            f"{self.llm}: ${_plain(self.input)} input, ${_plain(self.output)} output, {cached} "
            f"cached input per million tokens{steps}{call} ({self.provider}:{self.model}, "
            f"{self.source}, for {self.date}{since})"
        )


def price_of(llm: str, date: Date | None = None, overrides: Overrides | None = None) -> Price:
    """Look up what a language model costs; the user's prices go before the table's.

    Nothing is assumed: a local model without cost needs a price of 0 as well. Where a price
    depends on the time of day, the dearest of the day is taken.

    Parameters
    ----------
    llm : "provider:model", or a `Participant` as it is typed, whose price goes before the table's.
    date : The day for which the price is looked up; None for today (UTC).
    overrides : Prices of the user's by language model: input, output, cached_input, date.

    Raises
    ------
    ValueError : If neither the user nor the table has a price for it, with the nearest names.
    """
    who = Participant.read(llm)
    name, (provider, colon, model) = str(who), who.llm.partition(":")
    if not (provider and colon and model):
        raise ValueError(
            f"A language model is written provider:model, for example openai:gpt-4o; got {llm!r}."
        )
    # Not a moment but a day, even if a datetime was given.
    day = Date(date.year, date.month, date.day) if date else datetime.now(UTC).date()
    given = dict(overrides or {})
    if who.price:
        given.setdefault(name, parse_price(f"{name}={who.price}")[1])
    for key in (llm, name, who.llm):
        if key in given:
            return _given(name, given[key], day)
    # By its exact name: the table's looser match takes "my-openai-server" for OpenAI.
    sellers = [seller for seller in _table().providers if seller.id == provider.lower()]
    try:
        _, row = _table().find_provider_model(model, sellers[0], None, None)
    except (IndexError, LookupError):
        raise ValueError(_no_such(llm, given)) from None
    return _listed(name, sellers[0].id, row, day)


@cache
def in_batches(price: Price) -> Price:
    """Return the price of requests that are sent in batches: half of that of tokens.

    So it is at OpenAI, Anthropic and Google, for what is written to and read from a cache too.
    """
    from genai_prices.types import ModelPrice, Tier, TieredPrices

    def half(rate: Any) -> Any:
        if isinstance(rate, TieredPrices):
            return TieredPrices(half(rate.base), [Tier(t.start, half(t.price)) for t in rate.tiers])
        return rate / 2

    rates = vars(price.rates).items()
    halved = {name: half(rate) if name.endswith("_mtok") else rate for name, rate in rates}
    return replace(price, rates=ModelPrice(**halved), source=price.source + HALVED)


@dataclass(frozen=True)
class Spent:
    """Calls, tokens and nano-dollars; what may have been paid counts as paid."""

    calls: int = 0
    tokens: int = 0
    money: int = 0

    def __add__(self, other: Spent) -> Spent:
        return Spent(self.calls + other.calls, self.tokens + other.tokens, self.money + other.money)

    def __sub__(self, other: Spent) -> Spent:
        return self + Spent(-other.calls, -other.tokens, -other.money)


def most_spent(price: Price | None, sent: int, received: int) -> Spent:
    """Return the most that a call of so many tokens can use."""
    if price is None:
        return Spent(1, sent + received)
    dearest = max(
        price.cost(sent, said, reasoning_tokens=received - said, cached_tokens=cached)
        for said in (0, received)
        for cached in (None, 0)  # to put all into a cache may cost more
    )
    return Spent(1, sent + received, nano_dollars(dearest))


def used_spent(price: Price | None, usage: Usage, most_sent: int, most_received: int) -> Spent:
    """Return what an answer has used; what the provider does not say counts at its most."""
    sent = most_sent if usage.input_tokens is None else usage.input_tokens
    received = most_received if usage.output_tokens is None else usage.output_tokens
    if price is None:
        return Spent(1, sent + received)
    bounded = replace(usage, input_tokens=sent, output_tokens=received).bounded()
    reasoning, cached = bounded.reasoning_tokens or 0, bounded.cached_tokens or 0
    written = min(usage.written_tokens or 0, sent - cached)
    if price.cached_input is None:
        cached = 0  # at the full price
    cost = price.cost(
        sent,
        received - reasoning,
        reasoning_tokens=reasoning,
        cached_tokens=cached if cached or written else None,
        written_tokens=written,
    )
    return Spent(1, sent + received, nano_dollars(cost))


def nano_dollars(dollars: Decimal) -> int:
    """Return a price in whole nano-dollars, rounded up."""
    return int((dollars * NANO).to_integral_value(ROUND_CEILING))


def write_price(price: Price | None) -> dict[str, Any] | None:
    """Return a price fit for JSON, as `read_price` reads it."""
    if price is None:
        return None
    rates = {
        name: str(rate) if isinstance(rate, Decimal) else asdict(rate)
        for name, rate in vars(price.rates).items()
    }
    content: dict[str, Any] = json.loads(json.dumps({**vars(price), "rates": rates}, default=str))
    return content


def read_price(content: Mapping[str, Any] | None) -> Price | None:
    """Return the price that `write_price` has written."""
    from genai_prices.types import ModelPrice, Tier, TieredPrices

    if content is None:
        return None

    def exact(rate: Any) -> Any:
        if isinstance(rate, str):
            return Decimal(rate)
        tiers = [Tier(tier["start"], Decimal(tier["price"])) for tier in rate["tiers"]]
        return TieredPrices(Decimal(rate["base"]), tiers)

    rates = ModelPrice(**{name: exact(rate) for name, rate in content["rates"].items()})
    days = {name: content[name] and Date.fromisoformat(content[name]) for name in ("date", "since")}
    return Price(**{**content, **days, "rates": rates})


def parse_price(text: str) -> tuple[str, dict[str, Any]]:
    """Read "provider:model=INPUT,OUTPUT" or "...=INPUT,OUTPUT,CACHED_INPUT", as overrides hold it.

    Raises
    ------
    ValueError : If the text has another form, or a price is not a number from 0 on.
    """
    llm, _, numbers = text.rpartition("=")
    parts = [part.strip() for part in numbers.split(",")]
    if ":" not in llm or len(parts) not in (2, 3):
        raise ValueError(
            "A price is written provider:model=INPUT,OUTPUT or provider:model=INPUT,OUTPUT,CACHED,"
            f" in dollars per million tokens; got {text!r}."
        )
    names = ("input", "output", "cached_input")
    price = dict(zip(names, parts, strict=False))
    _given(llm.strip(), price, datetime.now(UTC).date())
    return llm.strip(), price


def tokens_of(n_bytes: int, messages: int) -> Range:
    """Bracket the input tokens of one prompt: 0.32 to 0.45 for a byte, 3 to 8 for a message.

    The reply that is opened behind the prompt counts as one message more.
    """
    text, marks = tokens_of_text(n_bytes), messages + 1
    return Range(text.low + FEWEST_PER_MESSAGE * marks, text.high + MOST_PER_MESSAGE * marks)


def tokens_of_text(n_bytes: int) -> Range:
    """Bracket the tokens of a text alone, such as an answer: 0.32 to 0.45 for a byte."""
    return Range(-(-FEWEST_PER_100_BYTES * n_bytes // 100), -(-MOST_PER_100_BYTES * n_bytes // 100))


def tokens_of_answer(n_bytes: int) -> Range:
    """Bracket the output tokens of one answer: its text, and up to 4 for the marks that end it."""
    text = tokens_of_text(n_bytes)
    return Range(text.low, text.high + MOST_PER_ANSWER)


def most_tokens_of(texts: Sequence[str], images: Sequence[int] = ()) -> int:
    """Return the input tokens that a prompt cannot exceed: one for each byte, and the marks.

    Parameters
    ----------
    texts : of its messages
    images : bytes of each of its images
    """
    n_bytes = sum(len(text.encode(errors="replace")) for text in texts)
    seen = sum(MOST_PER_IMAGE + size for size in images)
    return n_bytes + MOST_PER_MESSAGE * (len(texts) + 1) + seen


@cache
def _table() -> DataSnapshot:
    """Return the table as shipped; one that other code has fetched is not looked at."""
    from genai_prices.data import providers
    from genai_prices.data_snapshot import DataSnapshot

    return DataSnapshot(providers=providers, from_auto_update=False)


def _listed(llm: str, provider: str, row: ModelInfo, day: Date) -> Price:
    source = f"genai-prices {version('genai-prices')}"
    prices, since = _row_of_day(row, day)
    if prices.input_mtok is None or prices.output_mtok is None:
        raise ValueError(
            f"{source} has no price per token of text for {llm} (matched to {row.id!r}). "
            + REMEDY.format(llm=llm)
        )
    known = {name: rate for name in _RATES if (rate := getattr(prices, name)) is not None}
    return Price(llm, provider, row.id, type(prices)(**known), source, day, since)


def _row_of_day(row: ModelInfo, day: Date) -> tuple[ModelPrice, Date | None]:
    """Return the dearest prices of the day, and since when the table has them."""
    from genai_prices.types import StartDateConstraint

    dated = row.prices if isinstance(row.prices, list) else []
    prices = max(
        (row.get_prices(datetime.combine(day, time(hour, tzinfo=UTC))) for hour in range(24)),
        key=lambda candidate: tuple(
            getattr(rate, "base", rate) or Decimal(0)
            for rate in (candidate.input_mtok, candidate.output_mtok)
        ),
    )
    for entry in dated:
        if entry.prices is prices and isinstance(entry.constraint, StartDateConstraint):
            return prices, entry.constraint.start_date
    return prices, None


def _given(llm: str, price: object, day: Date) -> Price:
    """Return a price of the user's; ValueError if it is none."""
    from genai_prices.types import ModelPrice

    try:
        given = _GivenPrice.model_validate(price)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "the price"
        raise ValueError(
            f"The price of {llm} holds {', '.join(_GivenPrice.model_fields)}: dollars per million "
            f"tokens, from 0 to {_MOST_RATE:,}, and a day such as 2026-01-31; {where} is "
            f" {str(first['input'])[:40]!r}: {first['msg']}."
        ) from None
    provider, _, model = llm.partition(":")
    rates = {"input_mtok": given.input, "output_mtok": given.output}
    if given.cached_input is not None:
        rates["cache_read_mtok"] = given.cached_input
    if provider == "anthropic":
        rates["cache_write_mtok"] = given.input * _WRITING
    return Price(llm, provider, model, ModelPrice(**rates), GIVEN, day, given.date)


def _no_such(llm: str, given: Mapping[str, Any]) -> str:
    providers = _table().providers
    names = {f"{provider.id}:{row.id}" for provider in providers for row in provider.models}
    near = difflib.get_close_matches(llm, sorted(names | set(given)), n=3, cutoff=0.4)
    remedy = REMEDY.format(llm=llm)
    where = f" with a known price (genai-prices {version('genai-prices')}, or yours)"
    if near:
        return f"{unknown('language model', llm, near, where)} {remedy}"
    ids = [provider.id for provider in providers]
    return f"{unknown('provider', llm.partition(':')[0], ids, where)} {remedy}"


def _plain(rate: Decimal | None) -> str:
    return f"{(rate or Decimal(0)).normalize():f}"
