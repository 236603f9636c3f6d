"""What only the OpenAI adapter does; what all adapters promise is in test_adapter.py."""

import asyncio
import json
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("openai")
from fault_server import FaultServer

from knownminds.agents import Contaminants, RescorlaWagnerDual
from knownminds.environments import InstrumentalLearning, Message, Prompt
from knownminds.inference import maximum_a_posteriori
from knownminds.llm_adapters import (
    Capabilities,
    NotCapable,
    RateLimited,
    Sampling,
    Synthetic,
    UnreadableReply,
    Usage,
    check_capable,
    run_sessions,
)
from knownminds.llm_adapters.providers.openai import OpenAI, capabilities_of

KEY = "sk-canary-0123456789abcdef"
HELLO = Prompt((Message("user", "E or N?"),))
ALL = Capabilities(reasoning=True, images=True, answer_log_probabilities=True)


def through_words(theta, environment, seed, contaminants=None):
    speakers = {
        f"learner-{i}": Synthetic(
            RescorlaWagnerDual.from_theta(row), environment, seed, contaminants=contaminants
        )
        for i, row in enumerate(theta)
    }

    def answer(call):
        """Answer as the known mind whose name is the model asked for."""
        prompt = Prompt(tuple(Message(*message) for message in call.messages))
        settings = Sampling(seed=call.body["seed"])
        reply = asyncio.run(speakers[call.model].complete(prompt, settings=settings))
        return reply.text, reply.finish_reason

    async def run(server):
        url = server.address["openai"]
        adapters = [OpenAI(name, base_url=url, key_variable=None) for name in speakers]
        try:
            return await run_sessions(adapters, environment, len(adapters), seed, pause=0.0)
        finally:
            for adapter in adapters:
                await adapter.close()

    with FaultServer(answer) as server:
        return asyncio.run(run(server))


def test_missing_answers_are_counted_not_filled_in_and_the_estimates_use_the_rest():
    environment = InstrumentalLearning(n_visits=10, history="chat", reasoning="chain_of_thought")
    n = 8 * 40
    theta = RescorlaWagnerDual.parameters.draw(np.random.default_rng(6), 8)
    contaminants = Contaminants(refusal=0.05, malformed=0.05)
    trials = through_words(theta, environment, 11, contaminants)
    frame = trials.frame
    counts = frame["outcome"].value_counts()
    missing = int(counts["refused"] + counts["malformed"])
    assert counts.sum() == n
    assert counts["ok"] == n - missing
    for outcome in ("refused", "malformed"):
        assert abs(counts[outcome] - 0.05 * n) < 4 * np.sqrt(n * 0.05 * 0.95)
    gaps = ~frame["outcome"].isin(["ok"])
    assert frame["action"].isna().equals(gaps)
    assert frame["reward"].isna().equals(gaps)
    fit = maximum_a_posteriori(RescorlaWagnerDual, trials)
    assert fit.n_trials.tolist() == (~gaps).groupby(frame["subject"], sort=False).sum().tolist()
    # The estimates are those of the record without its gaps, up to the order of summation.
    rest = type(trials).from_frame(frame[~gaps], environment=environment)
    other = maximum_a_posteriori(RescorlaWagnerDual, rest)
    assert np.allclose(fit.estimate, other.estimate, rtol=1e-6, atol=1e-8)


def ask(server, settings=None, prompt=HELLO, **options):
    async def once():
        given = {"key_variable": None, "base_url": server.address["openai"], **options}
        adapter = OpenAI("m", **given)
        try:
            return await adapter.complete(prompt, settings=settings or Sampling())
        finally:
            await adapter.close()

    return asyncio.run(once())


def test_settings_are_sent_by_the_servers_names_and_no_others(monkeypatch):
    monkeypatch.setenv("SOME_KEY", KEY)
    everything = Sampling(0.5, 0.9, 9, 4, "low", 2)
    with FaultServer() as server:
        ask(server, everything, key_variable="SOME_KEY", capabilities=ALL)
        ask(server, Sampling(max_tokens=9), limit_name="max_tokens")
        ask(server, Sampling(top_log_probabilities=0))
    first, second, third = (dict(call.body) for call in server.calls)
    shared = {"model": "m", "messages": [{"role": "user", "content": "E or N?"}]}
    assert first == {
        **shared,
        "temperature": 0.5,
        "top_p": 0.9,
        "max_completion_tokens": 9,
        "seed": 4,
        "reasoning_effort": "low",
        "logprobs": True,
        "top_logprobs": 2,
    }
    assert second == {**shared, "max_tokens": 9}
    assert third == {**shared, "logprobs": True, "top_logprobs": 0}
    assert server.calls[0].headers["authorization"] == f"Bearer {KEY}"


def answering(monkeypatch, content):
    """Let the server send this body."""
    monkeypatch.setattr("fault_server._WRITE", {"openai": lambda *_: content})


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ({"message": {"content": "E"}}, ("E", "")),
        ({"message": {"content": None}, "finish_reason": "length"}, ("", "length")),
        ({"message": {}, "finish_reason": "stop"}, ("", "stop")),
        ({"message": {"content": ""}, "finish_reason": "content_filter"}, ("", "refusal")),
        ({"message": {"content": "E"}, "finish_reason": "eos"}, ("E", "eos")),
        (
            {"message": {"content": [{"type": "thinking"}, {"type": "text", "text": "E"}]}},
            ("E", ""),
        ),
    ],
)
def test_servers_that_lack_fields_are_understood_and_nothing_is_made_up(
    monkeypatch, choice, expected
):
    answering(monkeypatch, {"choices": [choice]})
    with FaultServer() as server:
        reply = ask(server)
    assert (reply.text, reply.finish_reason) == expected
    assert (reply.model_served, reply.usage) == ("", Usage())
    assert json.loads(reply.raw) == {"choices": [choice]}


@pytest.mark.parametrize(
    "content",
    [
        {},
        {"choices": []},
        {"choices": [{}]},
        {"choices": [{"message": None}]},
        {"choices": [{"message": {"content": 7}}]},
        {"choices": [{"message": {"content": "E"}}], "usage": 5},
    ],
)
def test_a_reply_that_cannot_be_read_is_kept_as_it_came(monkeypatch, content):
    answering(monkeypatch, content)
    with FaultServer() as server, pytest.raises(UnreadableReply) as caught:
        ask(server)
    assert json.loads(caught.value.raw) == content
    assert caught.value.charged is None


@pytest.mark.parametrize("value", ["NaN", "0.5", '"-1"', "null", "true"])
def test_log_probabilities_that_are_none_make_a_reply_unreadable(monkeypatch, value):
    entry = {"token": "E", "logprob": json.loads(value), "top_logprobs": []}
    choice = {"message": {"content": "E"}, "logprobs": {"content": [entry]}}
    answering(monkeypatch, {"choices": [choice]})
    with FaultServer() as server:
        with pytest.raises(UnreadableReply):
            ask(server, Sampling(top_log_probabilities=0))
        assert ask(server).log_probabilities is None  # nobody looks where nobody asked
        entry["logprob"] = float("-inf")
        reply = ask(server, Sampling(top_log_probabilities=0))
        assert reply.log_probabilities[0].log_probability == float("-inf")
        with pytest.raises(NotCapable, match="without the log-probabilities"):
            ask(server, Sampling(top_log_probabilities=2))  # no alternatives


def test_a_failure_that_is_passed_on_with_status_200_is_one_and_may_be_charged(monkeypatch):
    answering(monkeypatch, {"error": {"code": 429, "message": "often"}})
    with FaultServer() as server, pytest.raises(RateLimited) as caught:
        ask(server)
    assert caught.value.charged is None
    answering(monkeypatch, {"error": {"code": "odd", "message": "?"}})
    with FaultServer() as server, pytest.raises(UnreadableReply):
        ask(server)


def test_models_of_openai_are_known_by_name():
    def can(model, **settings):
        adapter = SimpleNamespace(model=model, capabilities=capabilities_of(model))
        try:
            check_capable(adapter, Sampling(**settings))
        except NotCapable:
            return False
        return True

    for model in ("gpt-4o", "gpt-4.1-mini-2025-04-14", "ft:gpt-4o:me::x", "gpt-3.5-turbo"):
        assert can(model, temperature=0.0, top_p=0.5, seed=1, top_log_probabilities=5)
        assert not can(model, reasoning="low")
    for model in ("o3", "gpt-5", "gpt-5-mini-2025-08-07", "gpt-5.5", "gpt-6.1-sol", "unheard-of"):
        assert can(model, reasoning="low", max_tokens=5)
        assert not can(model, temperature=0.0)
        assert not can(model, top_log_probabilities=5)
    for model in ("gpt-5.1", "gpt-5.2-2025-12-11", "gpt-5.4-mini"):
        assert can(model, temperature=0.0, top_log_probabilities=5, reasoning="none")
        assert not can(model, temperature=0.0, reasoning="low")
    assert not can("gpt-5.2-pro", temperature=0.0)
    images = {
        model: capabilities_of(model).images for model in ("gpt-4o", "gpt-4", "gpt-3.5-turbo")
    }
    assert images == {"gpt-4o": True, "gpt-4": False, "gpt-3.5-turbo": False}
    assert capabilities_of("gpt-4-turbo").images
    assert capabilities_of("gpt-4.1").images
    assert not capabilities_of("o3-mini").images
