"""What only the OpenAI adapter does; what all adapters promise is in test_adapter.py."""

import asyncio
import json
from types import SimpleNamespace

import pytest

pytest.importorskip("openai")
from fault_server import FaultServer

from knownminds.environments import Message, Prompt
from knownminds.llm_adapters import (
    Capabilities,
    NotCapable,
    RateLimited,
    Sampling,
    UnreadableReply,
    check_capable,
)
from knownminds.llm_adapters.providers.openai import OpenAI, capabilities_of

KEY = "sk-canary-0123456789abcdef"
HELLO = Prompt((Message("user", "E or N?"),))
ALL = Capabilities(reasoning=True, images=True, answer_log_probabilities=True)


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
