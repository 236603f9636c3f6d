"""What only the Anthropic adapter does; what all adapters promise is in test_adapter.py."""

import asyncio
import json
from types import SimpleNamespace

import pytest

pytest.importorskip("anthropic")
from fault_server import FaultServer

from knownminds.environments import Message, Prompt
from knownminds.llm_adapters import NotCapable, Sampling, Usage, check_capable
from knownminds.llm_adapters.providers.anthropic import Anthropic, capabilities_of

KEY = "sk-ant-canary-0123456789abcdef"
HELLO = Prompt((Message("system", "Play."), Message("user", "E or N?")))


def ask(server, settings, prompt=HELLO, model="claude-haiku-4-5", key_variable=None):
    async def once():
        url = server.address["anthropic"]
        adapter = Anthropic(model, base_url=url, key_variable=key_variable)
        try:
            return await adapter.complete(prompt, settings=settings)
        finally:
            await adapter.close()

    return asyncio.run(once())


def test_settings_are_sent_in_the_version_that_knows_them(monkeypatch):
    monkeypatch.setenv("SOME_KEY", KEY)
    with FaultServer() as server:
        ask(server, Sampling(max_tokens=9), key_variable="SOME_KEY")
        ask(server, Sampling(max_tokens=9, temperature=0.0))
        ask(server, Sampling(max_tokens=9, top_p=0.9))
    shared = {
        "model": "claude-haiku-4-5",
        "max_tokens": 9,
        "system": [{"type": "text", "text": "Play.", "cache_control": {"type": "ephemeral"}}],
        "messages": [{"role": "user", "content": "E or N?"}],
    }
    bodies = [call.body for call in server.calls]
    assert bodies == [shared, {**shared, "temperature": 0.0}, {**shared, "top_p": 0.9}]
    headers = server.calls[0].headers
    assert headers["anthropic-version"] == "2023-06-01"
    assert headers["x-api-key"] == KEY


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (Sampling(), "takes no call without max_tokens"),
        (Sampling(max_tokens=9, temperature=1.5), "from 0 to 1; got 1.5"),
        (Sampling(max_tokens=9, temperature=0.5, top_p=0.5), "either temperature or top_p"),
        (Sampling(max_tokens=9, seed=1), "asked for seed"),
        (Sampling(max_tokens=9, reasoning="low"), "asked for reasoning"),
    ],
)
def test_what_the_interface_does_not_take_is_told_before_anything_is_sent(settings, sentence):
    with FaultServer() as server:
        with pytest.raises(NotCapable, match=sentence):
            ask(server, settings)
        assert not server.calls


@pytest.mark.parametrize(
    ("model", "effort", "sent"),
    [
        ("claude-sonnet-4-6", "low", {"thinking": {"type": "adaptive"}}),
        ("claude-opus-5-5", "high", {"thinking": {"type": "adaptive"}}),
        ("claude-opus-4-8", "none", {}),
        ("claude-sonnet-4-6", "none", {}),
        ("claude-opus-5", "none", {"thinking": {"type": "disabled"}}),
        ("claude-opus-5-20260801", "none", {"thinking": {"type": "disabled"}}),
        ("claude-haiku-5-5", "none", {"thinking": {"type": "disabled"}}),
        ("claude-sonnet-5-5", "none", {"thinking": {"type": "between_tools"}}),
        ("claude-opus-5-5", "none", None),
        ("claude-fable-5-1", "none", None),
        ("claude-unheard-of", "none", None),
    ],
)
def test_reasoning_is_asked_for_as_each_model_takes_it(model, effort, sent):
    settings = Sampling(max_tokens=9, reasoning=effort)
    with FaultServer() as server:
        if sent is None:
            with pytest.raises(NotCapable, match="cannot be kept from reasoning"):
                ask(server, settings, model=model)
            assert not server.calls
            return
        ask(server, settings, model=model)
    body = server.calls[0].body
    expected = sent if effort == "none" else {**sent, "output_config": {"effort": effort}}
    assert {k: v for k, v in body.items() if k in ("thinking", "output_config")} == expected


def test_models_are_known_by_name():
    def can(model, **settings):
        adapter = SimpleNamespace(model=model, capabilities=capabilities_of(model))
        try:
            check_capable(adapter, Sampling(max_tokens=9, **settings))
        except NotCapable:
            return False
        return True

    for model in (
        *("claude-3-5-haiku-20241022", "claude-3-7-sonnet-latest", "claude-sonnet-4-20250514"),
        *("claude-opus-4-1-20250805", "claude-haiku-4-5-20251001", "claude-sonnet-4-5"),
        *("claude-opus-4-6", "claude-sonnet-4-6", "claude-opus-4-0"),
    ):
        assert can(model, temperature=0.0), model
    for model in ("claude-opus-4-7", "claude-opus-4-8", "claude-sonnet-5", "claude-haiku-5-5"):
        assert not can(model, temperature=0.0), model
        assert can(model, reasoning="low"), model
    assert can("claude-sonnet-4-6", reasoning="high")
    assert not can("claude-sonnet-4-6", reasoning="high", temperature=1.0)
    assert can("claude-sonnet-4-6", reasoning="none", temperature=1.0)
    assert not can("claude-sonnet-4-5", reasoning="high")
    assert capabilities_of("claude-haiku-4-5").images
    assert not capabilities_of("claude-2.1").images


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("refusal", "refusal"),
        ("pause_turn", "pause_turn"),
        (None, ""),
    ],
)
def test_why_an_answer_ended_is_told_in_one_language(monkeypatch, reason, expected):
    content = {"content": [{"type": "text", "text": "E"}], "stop_reason": reason}
    monkeypatch.setattr("fault_server._WRITE", {"anthropic": lambda *_: content})
    with FaultServer() as server:
        reply = ask(server, Sampling(max_tokens=9))
    assert (reply.text, reply.finish_reason) == ("E", expected)
    assert (reply.model_served, reply.usage) == ("", Usage())


def test_the_beginning_that_later_calls_share_is_marked_for_the_cache():
    system, turns = Message("system", "Be brief."), ("A", "B", "C")
    talk = [Message(("user", "assistant")[i % 2], text) for i, text in enumerate(turns)]
    mark = {"cache_control": {"type": "ephemeral"}}
    with FaultServer(cached_tokens=1, written_tokens=2) as server:
        alone = ask(server, Sampling(max_tokens=9), Prompt((talk[0],)))
        ask(server, Sampling(max_tokens=9), Prompt((system, *talk)))
        first, second = (call.body for call in server.calls)
        assert server.calls[1].prompt == Prompt((system, *talk)).hash  # the words are the same
    assert "cache_control" not in json.dumps(first)  # nothing says that it comes again
    assert second["system"] == [{"type": "text", "text": "Be brief.", **mark}]
    assert second["messages"][:2] == [
        {"role": "user", "content": "A"},
        {"role": "assistant", "content": "B"},
    ]
    assert second["messages"][2]["content"] == [{"type": "text", "text": "C", **mark}]
    assert (alone.usage.cached_tokens, alone.usage.written_tokens) == (1, 2)
    assert alone.usage.input_tokens == 1  # of which the words are one: the server counts them
