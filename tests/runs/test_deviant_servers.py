"""Servers whose counts and ends deviate, on each wire: the account is never below the bill."""

import asyncio
import json
import re
from decimal import Decimal

import httpx2
import pytest

from knownminds.calling import Caps
from knownminds.environments import InstrumentalLearning, Message, Prompt
from knownminds.llm_adapters import Failed, Sampling, Usage, load
from knownminds.llm_adapters.runs.prices import price_of
from knownminds.llm_adapters.runs.runner import Retries, RunOptions, run_sessions_in

PLACE = InstrumentalLearning(n_visits=2)  # eight trials
PRICE = price_of("a:b", overrides={"a:b": {"input": 1, "output": 2}})
MOST = 16  # tokens of an answer
WIRES = ("openai", "ollama", "anthropic", "google")
WHOLE = {"anthropic": "end_turn", "google": "STOP"}
on_each_wire = pytest.mark.parametrize("wire", WIRES)


def reply_in(wire, text, why=None, *, sent=9, received=1, thought=None, total=None):
    """Return the body of an answer as a wire has it, with these counts; without those of None."""
    why = None if why == "null" else why or WHOLE.get(wire, "stop")
    if wire == "anthropic":
        counts = {"input_tokens": sent, "output_tokens": received}
        counts["output_tokens_details"] = {"thinking_tokens": thought}
        return {"content": [{"type": "text", "text": text}], "stop_reason": why, "usage": counts}
    if wire == "google":
        counts = {"promptTokenCount": sent, "candidatesTokenCount": received}
        counts |= {"thoughtsTokenCount": thought, "totalTokenCount": total}
        return {
            "candidates": [{"content": {"parts": [{"text": text}]}, "finishReason": why}],
            "usageMetadata": counts,
        }
    counts = {"prompt_tokens": sent, "completion_tokens": received, "total_tokens": total}
    counts["completion_tokens_details"] = {"reasoning_tokens": thought}
    return {"choices": [{"message": {"content": text}, "finish_reason": why}], "usage": counts}


def adapter_of(wire, answer):
    """Return an adapter whose calls are answered with what a function makes of each request."""
    carrier = httpx2.MockTransport(lambda request: httpx2.Response(200, content=answer(request)))
    return load(wire)("m", key_variable=None, transport=carrier)


def play(wire, answer, *, place=PLACE, limit=MOST, **options):
    """Let it play a session; `answer` makes the arguments of `reply_in` of what was sent."""

    def content(request):
        said = {"text": "E", "sent": words_of(request), **answer(request)}
        return json.dumps(reply_in(wire, **said)).encode()

    return play_of(adapter_of(wire, content), place, limit, **options)


def play_of(adapter, place=PLACE, limit=MOST, folder=None, **options):
    """Let an adapter play a session."""
    how = {"settings": Sampling(max_tokens=limit), "retries": Retries(pause=0.0), "price": PRICE}
    return asyncio.run(
        run_sessions_in(folder, adapter, place, 1, 9, how=RunOptions(**how, **options))
    )


def words_of(request):
    """Count the words that were sent."""
    return len(request.content.split())


# What is counted ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wire", "counts", "usage"),
    [
        # Reasoning that stands in the total alone, then in its own count, then in both.
        ("openai", {"received": 2, "total": 911}, Usage(9, 902)),
        ("openai", {"received": 2, "thought": 900}, Usage(9, 902, 900)),
        ("ollama", {"received": 2, "thought": 900, "total": 911}, Usage(9, 902, 900)),
        ("anthropic", {"received": 2, "thought": 900}, Usage(9, 902, 900)),
        ("google", {"received": 2, "thought": 0, "total": 911}, Usage(9, 902, 0, 0)),
        ("google", {"received": 2, "thought": 900, "total": 911}, Usage(9, 902, 900, 0)),
        # A total that is too small, and one that cannot be.
        ("openai", {"received": 20, "total": 11}, Usage(9, 20)),
        ("google", {"received": 20, "total": 10**12}, Usage(9, 20, 0, 0)),
        # What one of the parts does not say, the total does.
        ("openai", {"received": None, "total": 20}, Usage(9, 11)),
        ("openai", {"sent": None, "received": 4, "total": 20}, Usage(None, 20)),
        ("google", {"received": None, "total": 20}, Usage(9, 11, 0, 0)),
        # Where what was sent is not said, all of the total counts as received.
        ("openai", {"sent": None, "received": None, "total": 911}, Usage(None, 911)),
        # Numbers as texts; a part that is no number is not 0.
        ("openai", {"sent": "9", "received": 2.0, "thought": "900"}, Usage(9, 902, 900)),
        ("anthropic", {"sent": 9.0, "received": "2", "thought": 900.0}, Usage(9, 902, 900)),
        ("google", {"received": 2, "thought": "900"}, Usage(9, 902, 900, 0)),
        ("google", {"received": 2, "thought": [900]}, Usage(9, None, None, 0)),
        ("google", {"received": 2, "thought": [900], "total": 911}, Usage(9, 902, None, 0)),
    ],
)
def test_where_parts_and_total_disagree_the_dearer_counts(wire, counts, usage):
    body = json.dumps(reply_in(wire, "E", **counts)).encode()
    assert adapter_of(wire, None).read(body, Sampling()).usage == usage


USAGE = {"anthropic": "usage", "google": "usageMetadata"}  # else "usage"


@on_each_wire
@pytest.mark.parametrize("usage", [[1], "none", 7, {"prompt_tokens_details": [1]}])
def test_usage_of_another_type_is_not_said_and_drops_no_answer(wire, usage):
    def answer(request):
        body = reply_in(wire, named(request)) | {USAGE.get(wire, "usage"): usage}
        return json.dumps(body).encode()

    run = play_of(adapter_of(wire, answer))
    assert set(run.trials.frame["outcome"]) == {"ok"}
    assert run.account.answers_without_tokens == PLACE.n_trials
    assert run.dollars_paid == 0
    assert run.dollars > PLACE.n_trials * 2 * MOST / 10**6


@on_each_wire
def test_counts_that_cannot_be_are_counted_at_their_most_and_named(wire):
    run = play(wire, lambda _: {"sent": 0, "received": 0, "total": 0})
    n = PLACE.n_trials
    assert run.account.impossible_counts == 2 * n
    assert run.account.answers_without_tokens == n
    assert run.dollars_paid == 0
    sent = []

    def answer(request):
        sent.append(words_of(request))
        return {"text": "E" * 300, "received": 2}

    run = play(wire, answer)
    assert run.account.impossible_counts == n  # two tokens have no 300 letters
    assert run.dollars == Decimal(sum(sent) + n * 2 * MOST) / 10**6
    nothing = {"sent": 0, "received": 0}
    capped = play(wire, lambda _: nothing, caps=Caps(tokens=2_000))
    assert "the cap of 2,000 tokens" in capped.stopped


@on_each_wire
def test_a_prompt_that_a_server_cuts_is_told_at_once_and_counted_at_its_most(wire):
    place = InstrumentalLearning(n_visits=6)
    told = []

    def cutting(most):
        return lambda request: {"sent": min(most, words_of(request))}

    assert play(wire, cutting(10**6), place=place, tell=told.append).account.cut_prompts == 0
    assert told == []
    bill = []
    run = play(
        wire,
        lambda request: cutting(80)(bill.append(words_of(request)) or request),
        place=place,
        tell=told.append,
    )
    over = sum(n > 80 for n in bill)
    assert over > 12
    # The first prompt that is cut may count more than the one before it.
    assert run.account.cut_prompts >= over - 1
    assert len(told) == 1
    assert "too few tokens for a prompt that has grown: 80" in told[0]
    assert run.dollars >= (sum(bill) + 2 * place.n_trials) / 10**6


@on_each_wire
def test_an_answer_above_the_limit_that_was_set_is_beyond_what_was_foreseen(wire):
    run = play(wire, lambda _: {"received": MOST + 1})
    assert run.account.answers_beyond_what_was_foreseen == PLACE.n_trials
    run = play(wire, lambda _: {"received": MOST})
    assert run.account.answers_beyond_what_was_foreseen == 0


@on_each_wire
def test_what_one_answer_had_beyond_its_limit_is_foreseen_of_the_next_and_of_a_new_start(
    wire, tmp_path
):
    def content(request):
        return json.dumps(reply_in(wire, "E", sent=words_of(request), received=3_000)).encode()

    def go(tokens):
        return play_of(adapter_of(wire, content), folder=tmp_path, caps=Caps(tokens=tokens))

    # By its limit a second call would fit; with 3,000 tokens, as the first one had, it does not.
    assert (go(4_500).calls, go(4_500).calls) == (1, 1)
    run = go(7_500)
    assert run.calls == 2
    assert 6_000 < run.tokens < 7_500
    assert run.account.answers_beyond_what_was_foreseen == 2


@pytest.mark.parametrize(
    ("address", "name"),
    [
        (None, "max_completion_tokens"),
        ("https://eu.api.openai.com/v1", "max_completion_tokens"),
        ("https://mine.openai.azure.com/openai/v1", "max_completion_tokens"),
        ("http://127.0.0.1:11434/v1", "max_tokens"),
        ("https://api.openai.com.elsewhere.example/v1", "max_tokens"),
    ],
)
def test_a_server_elsewhere_is_sent_the_limit_that_all_of_them_know(address, name):
    adapter = load("openai")("m", base_url=address, key_variable=None)
    sent = adapter.request(Prompt((Message("user", "E or N?"),)), Sampling(max_tokens=5))
    assert {key: value for key, value in sent.items() if "tokens" in key} == {name: 5}


# What ended -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wire", "word", "kept"),
    [
        ("openai", "model_length", "cut off"),
        ("openai", "insufficient_system_resource", "insufficient_system_resource"),
        ("ollama", "tool_calls", "tool_calls"),
        ("anthropic", "pause_turn", "pause_turn"),
        ("anthropic", "tool_use", "tool_use"),
        ("google", "RECITATION", "recitation"),
        ("google", "OTHER", "other"),
    ],
)
def test_an_answer_that_is_not_whole_is_no_answer_and_the_word_is_kept(wire, word, kept):
    frame = play(wire, lambda request: {"text": named(request), "why": word}).trials.frame
    assert set(frame["outcome"]) == {"truncated"}
    assert frame["action"].isna().all()
    assert frame["note"].str.contains(kept).all()
    frame = play(wire, lambda request: {"text": named(request)}).trials.frame
    assert set(frame["outcome"]) == {"ok"}  # which it would have been


def named(request):
    """Return an option that the last message names."""
    return re.findall(r"\b[A-Z]\b", request.content.decode())[-1]


@on_each_wire
@pytest.mark.parametrize(
    ("text", "received", "outcome"), [("E", 2, "ok"), ("E", 5, "truncated"), ("E", None, "ok")]
)
def test_an_answer_without_a_word_for_its_end_is_cut_off_if_it_fills_the_limit(
    wire, text, received, outcome
):
    frame = play(
        wire, lambda r: {"text": named(r), "why": "null", "received": received}, limit=5
    ).trials.frame
    assert set(frame["outcome"]) == {outcome}


@pytest.mark.parametrize("word", ["eos", "stop_sequence", "end_turn", None])
def test_words_of_compatible_servers_for_a_whole_answer_are_known(word):
    body = reply_in("ollama", "E")
    body["choices"][0]["finish_reason"] = word
    reply = adapter_of("ollama", None).read(json.dumps(body).encode(), Sampling())
    assert reply.finish_reason == ("" if word is None else "stop")


@pytest.mark.parametrize(
    ("change", "then"),
    [({"error": {"code": 502, "message": "broke"}}, "retry"), ({"finish_reason": "error"}, "skip")],
)
def test_a_choice_that_broke_off_is_no_answer_and_may_have_been_paid(change, then):
    body = reply_in("openrouter", "8")
    body["choices"][0] |= change
    with pytest.raises(Failed, match=r"502|error") as caught:
        adapter_of("ollama", None).read(json.dumps(body).encode(), Sampling())
    assert (caught.value.then, caught.value.charged) == (then, None)
    run = play_of(adapter_of("ollama", lambda _: json.dumps(body).encode()))
    # Three questions in a row end the run; each answer that broke off may have been paid.
    assert run.calls == 3 * (2 if then == "retry" else 1)


def test_an_error_beside_a_choice_is_one_wherever_it_stands():
    body = reply_in("openrouter", "8") | {"error": {"code": 502, "message": "broke"}}
    with pytest.raises(Failed, match="502") as caught:
        adapter_of("ollama", None).read(json.dumps(body).encode(), Sampling())
    assert (caught.value.kind, caught.value.charged) == ("broken", None)


@on_each_wire
def test_what_brought_no_answer_counts_at_what_it_tells_that_it_used(wire):
    body = reply_in(wire, "E", sent=9, received=900)
    body |= dict.fromkeys(("choices", "content", "candidates"))
    run = play_of(adapter_of(wire, lambda _: json.dumps(body).encode()))
    assert set(run.trials.frame["outcome"]) == {"error"}
    assert run.account.reserved >= run.calls * (9 + 900 * 2) * 1_000  # nano-dollars
    # Above a first call nothing passes a cap: 909 tokens are foreseen of each further one.
    run = play_of(adapter_of(wire, lambda _: json.dumps(body).encode()), caps=Caps(tokens=1_000))
    assert run.calls == 1


def test_a_refusal_that_tells_what_it_used_was_paid():
    def refuse(request):
        body = reply_in("ollama", "", sent=words_of(request), received=900)
        body["choices"][0]["error"] = {"code": 403, "message": "Your input was flagged."}
        return json.dumps(body).encode()

    run = play_of(adapter_of("ollama", refuse))
    assert set(run.trials.frame["outcome"]) == {"refused"}
    assert run.account.output_tokens == 900 * PLACE.n_trials
    assert run.account.paid > 900 * 2 * 1_000 * PLACE.n_trials  # nano-dollars


@on_each_wire
def test_half_an_emoji_is_replaced_and_ends_no_run(wire):
    frame = play(wire, lambda _: {"text": "E \ud83d"}).trials.frame
    assert frame["raw_text"].tolist() == ["E \ufffd"] * PLACE.n_trials
