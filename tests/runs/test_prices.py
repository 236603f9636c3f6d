from datetime import UTC, date, datetime
from decimal import Decimal

import genai_prices
import pytest
from genai_prices.types import Usage

from knownminds.llm_adapters.runs import prices
from knownminds.llm_adapters.runs.prices import (
    Dollars,
    Range,
    most_tokens_of,
    parse_price,
    price_of,
    read_prices,
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


def test_long_prompts_of_some_models_cost_more_for_each_token():
    price = price_of("google:gemini-2.5-pro", DAY)
    assert price.cost(200_001, 0) > Decimal("1.5") * price.cost(200_000, 0)
    assert "above 200,000 input tokens" in str(price)


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


def test_hidden_reasoning_is_charged_as_output_or_at_its_own_rate():
    plain = price_of("openai:gpt-4o", DAY)
    assert plain.cost(0, 3, reasoning_tokens=50) == plain.cost(0, 53)
    own = price_of("perplexity:sonar-deep-research", DAY)
    assert own.cost(10, 3, reasoning_tokens=50) == theirs(
        "perplexity",
        "sonar-deep-research",
        input_tokens=10,
        output_tokens=53,
        output_reasoning_tokens=50,
    )


def test_a_price_bears_the_day_the_source_and_what_it_was_matched_to():
    price = price_of("openai:gpt-4o-2024-08-06", datetime(2026, 11, 1, 9, tzinfo=UTC))
    assert price.date == DAY
    assert type(price.date) is date
    assert price.source == f"genai-prices {genai_prices.__version__}"
    assert (price.provider, price.model, price.llm) == (
        "openai",
        "gpt-4o",
        "openai:gpt-4o-2024-08-06",
    )
    assert str(DAY) in str(price)
    assert price_of("openai:gpt-4o").date == datetime.now(UTC).date()


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


def test_a_price_that_depends_on_the_hour_is_the_dearest_of_the_day():
    hours = [
        genai_prices.calc_price(
            Usage(input_tokens=1_000_000),
            "deepseek-chat",
            provider_id="deepseek",
            genai_request_timestamp=datetime(2026, 11, 1, hour, 45, tzinfo=UTC),
        ).total_price
        for hour in range(24)
    ]
    assert min(hours) < max(hours) == price_of("deepseek:deepseek-chat", DAY).input


def test_a_table_that_other_code_has_fetched_is_not_looked_at():
    from genai_prices.data_snapshot import DataSnapshot, set_custom_snapshot

    before = price_of("openai:gpt-4o", DAY)
    prices._table.cache_clear()
    set_custom_snapshot(DataSnapshot(providers=[], from_auto_update=True))
    try:
        assert price_of("openai:gpt-4o", DAY) == before
    finally:
        set_custom_snapshot(None)


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


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("mine.toml", '["openai:gpt-4o"]\ninput = 0.1\noutput = 0.7\ndate = 2026-10-02\n'),
        ("mine.json", '{"openai:gpt-4o": {"input": 0.1, "output": 0.7, "date": "2026-10-02"}}'),
    ],
)
def test_a_file_of_prices_is_named_as_the_source(tmp_path, name, text):
    file = tmp_path / name
    file.write_text(text, encoding="utf-8")
    price = price_of("openai:gpt-4o", DAY, file)
    assert price.cost(1_000_000, 1_000_000) == Decimal("0.8")  # not 0.7999999999999999
    assert (price.source, price.since) == (name, date(2026, 10, 2))
    assert price.cached_input is None
    with pytest.raises(ValueError, match="no price of cached input"):
        price.cost(10, 1, cached_tokens=5)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("mine.yaml", "", "ends in .toml or .json"),
        ("mine.toml", "[", "readable TOML"),
        ("mine.json", "[1]", "a price for each provider:model"),
        ("mine.json", "{", "readable JSON"),
        ("mine.json", '{"a:b": 3}', "holds input and output"),
        ("mine.json", '{"a:b": {"input": 1}}', "has only input"),
        ("mine.json", '{"a:b": {"input": 1, "outptu": 2}}', "Nearest: output"),
        ("mine.json", '{"a:b": {"input": -1, "output": 2}}', "from 0 on"),
        ("mine.json", '{"a:b": {"input": true, "output": 2}}', "from 0 on"),
        ("mine.json", '{"a:b": {"input": NaN, "output": 2}}', "from 0 on"),
        ("mine.json", '{"a:b": {"input": 1, "output": 2, "date": "May"}}', "2026-01-31"),
    ],
)
def test_a_file_that_is_no_table_of_prices_is_refused(tmp_path, name, text, said):
    file = tmp_path / name
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=said):
        read_prices(file)


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(ValueError, match="readable TOML"):
        price_of("openai:gpt-4o", DAY, tmp_path / "none.toml")


def test_prices_can_be_written_in_one_word():
    llm, price = parse_price("local:llama3:8b=0,0")
    assert price_of(llm, DAY, {llm: price}).cost(10**6, 10**6) == 0
    llm, price = parse_price("openai:x=1.25,10,0.125")
    assert price_of(llm, DAY, {llm: price}).cached_input == Decimal("0.125")
    for wrong in ("openai:x", "openai:x=1", "x=1,2", "openai:x=1,2,3,4", "openai:x=a,2"):
        with pytest.raises(ValueError, match="dollars per million tokens"):
            parse_price(wrong)


@pytest.mark.parametrize(
    ("llm", "said"),
    [
        ("openai:gtp-4o", r"Nearest: .*openai:gpt-4o.* --price \"openai:gtp-4o=INPUT,OUTPUT\""),
        ("ollama:llama3:8b", r"Nearest: .*--price"),
        ("my-openai-server:gpt-4o", r"no language model named"),
        ("synthetic:rescorla_wagner", r"--price"),
        ("openai:text-embedding-3-small", r"no price per token of text"),
        ("q9:zzzzzzzzzzzzzzzzzzzzzzz", r"no provider named .* anthropic, "),
        ("gpt-4o", r"written provider:model"),
        (":gpt-4o", r"written provider:model"),
    ],
)
def test_no_price_is_assumed(llm, said):
    with pytest.raises(ValueError, match=said):
        price_of(llm, DAY)


def test_names_that_only_the_user_has_are_among_the_nearest():
    with pytest.raises(ValueError, match="Nearest: lab:our-finetune-7b"):
        price_of("lab:our-finetune-8b", DAY, {"lab:our-finetune-7b": {"input": 0, "output": 0}})


def test_tokens_are_bracketed_from_bytes_and_messages():
    assert tokens_of(1000, 1) == Range(320 + 2 * 3, 450 + 2 * 8)
    assert tokens_of(1001, 3) == Range(321 + 4 * 3, 451 + 4 * 8)  # begun tokens are whole ones
    assert tokens_of_text(0) == Range(0, 0)
    assert tokens_of_answer(1) == Range(1, 5)
    for n in range(200):
        assert tokens_of(n, 2).low <= tokens_of(n, 2).high <= most_tokens_of(["x" * n, ""])
        assert tokens_of_text(n).high <= n


def test_ranges_print_themselves():
    assert str(Range(1234, 5678)) == "1,234 to 5,678"
    assert str(Range(7, 7)) == "7"
    assert str(Dollars(Decimal("0.00123"), Decimal("1234.5"))) == "$0.0012 to $1,234.50"
    assert str(Dollars(Decimal(0), Decimal(0))) == "$0.00"
