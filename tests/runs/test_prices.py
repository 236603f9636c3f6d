from datetime import UTC, date, datetime
from decimal import Decimal

import genai_prices
import pytest
from genai_prices.types import Usage

from knownminds.llm_adapters.runs.prices import (
    Range,
    most_tokens_of,
    price_of,
    tokens_of,
    tokens_of_answer,
    tokens_of_text,
)

DAY = date(2026, 11, 1)
OWN = {"openai:gpt-4o": {"input": "1.1", "output": 7, "cached_input": 0.5, "date": "2026-10-02"}}


def theirs(provider, model, **usage):
    """What genai-prices itself reckons, at noon of the day."""
    return genai_prices.calc_price(
        Usage(**usage),
        model,
        provider_id=provider,
        genai_request_timestamp=datetime(DAY.year, DAY.month, DAY.day, 12, tzinfo=UTC),
    ).total_price


@pytest.mark.parametrize(
    ("provider", "model"),
    [
        ("openai", "gpt-4o"),
        ("openai", "gpt-4.1-mini"),
        ("anthropic", "claude-sonnet-4-5"),
        ("google", "gemini-2.5-pro"),
        ("perplexity", "sonar"),
        ("mistral", "mistral-large-latest"),
    ],
)
@pytest.mark.parametrize("sent", [0, 1, 1234, 199_999, 200_000, 200_001, 900_000])
def test_a_call_costs_what_the_table_itself_says(provider, model, sent):
    price = price_of(f"{provider}:{model}", DAY)
    assert price.cost(sent, 321) == theirs(provider, model, input_tokens=sent, output_tokens=321)


@pytest.mark.parametrize("model", ["claude-sonnet-4-5", "claude-3-5-haiku-latest"])
@pytest.mark.parametrize("sent", [5_000, 300_000])
def test_what_is_read_from_a_cache_and_what_is_put_into_it_cost_what_the_table_says(model, sent):
    kept = sent * 3 // 4
    price = price_of(f"anthropic:{model}", DAY)
    assert price.cost(sent, 9, cached_tokens=kept) == theirs(
        "anthropic",
        model,
        input_tokens=sent,
        cache_read_tokens=kept,
        cache_write_tokens=sent - kept,
        output_tokens=9,
    )
    assert price.cost(sent, 9, cached_tokens=kept) < price.cost(sent, 9)
    assert price.cost(sent, 9, cached_tokens=0) > price.cost(sent, 9)  # writing is charged


def test_the_day_chooses_among_dated_rows():
    from genai_prices.data import providers
    from genai_prices.types import StartDateConstraint

    checked = 0
    for provider in providers:
        for row in provider.models:
            dated = row.prices if isinstance(row.prices, list) else []
            starts = [e for e in dated if isinstance(e.constraint, StartDateConstraint)]
            if len(dated) != 2 or len(starts) != 1 or provider.find_model(row.id) is not row:
                continue
            before, after = dated[0].prices, starts[0].prices
            begins = starts[0].constraint.start_date
            amounts = [p.input_mtok for p in (before, after)] + [before.output_mtok]
            if not all(isinstance(a, Decimal) for a in amounts) or not after.output_mtok:
                continue
            if abs(amounts[0] - amounts[1]) < Decimal("0.001") or dated[0].constraint is not None:
                continue
            llm = f"{provider.id}:{row.id}"
            eve = date.fromordinal(begins.toordinal() - 1)
            assert price_of(llm, eve).input == pytest.approx(before.input_mtok)
            assert price_of(llm, eve).since is None
            assert price_of(llm, begins).input == pytest.approx(after.input_mtok)
            assert price_of(llm, begins).since == begins
            checked += 1
    assert checked > 5


def test_a_price_of_the_users_goes_before_the_tables():
    price = price_of("openai:gpt-4o", DAY, OWN)
    assert (price.input, price.output, price.cached_input) == (
        Decimal("1.1"),
        Decimal(7),
        Decimal("0.5"),
    )
    assert price.source == "given by the user"
    assert (price.date, price.since) == (DAY, date(2026, 10, 2))
    assert price.cost(1_000_000, 1_000_000) == Decimal("8.1")
    assert price_of("openai:gpt-4o-mini", DAY, OWN).source.startswith("genai-prices")


def test_tokens_are_bracketed_from_bytes_and_messages():
    assert tokens_of(1000, 1) == Range(320 + 2 * 3, 450 + 2 * 8)
    assert tokens_of(1001, 3) == Range(321 + 4 * 3, 451 + 4 * 8)  # begun tokens are whole ones
    assert tokens_of_text(0) == Range(0, 0)
    assert tokens_of_answer(1) == Range(1, 5)
    for n in range(200):
        assert tokens_of(n, 2).low <= tokens_of(n, 2).high <= most_tokens_of(["x" * n, ""])
        assert tokens_of_text(n).high <= n
