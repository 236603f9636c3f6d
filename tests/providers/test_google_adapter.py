"""What only the Google adapter does; what all adapters promise is in test_adapter.py."""

import asyncio
import json
from types import SimpleNamespace

import pytest

pytest.importorskip("google.genai")
from fault_server import FaultServer

from knownminds.environments import Message, Prompt
from knownminds.llm_adapters import (
    NotCapable,
    RateLimited,
    Sampling,
    Usage,
    check_capable,
)
from knownminds.llm_adapters.providers.google import Google, capabilities_of

KEY = "AIza-canary-0123456789abcdef"
HELLO = Prompt((Message("system", "Play."), Message("user", "E or N?")))


def ask(server, settings=None, prompt=HELLO, model="gemini-2.0-flash", key_variable=None):
    async def once():
        adapter = Google(model, base_url=server.address["google"], key_variable=key_variable)
        try:
            return await adapter.complete(prompt, settings=settings or Sampling())
        finally:
            await adapter.close()

    return asyncio.run(once())


def answering(monkeypatch, content):
    """Let the server send this body."""
    monkeypatch.setattr("fault_server._WRITE", {"google": lambda *_: content})


def test_settings_are_sent_by_the_interfaces_names_and_no_others(monkeypatch):
    monkeypatch.setenv("SOME_KEY", KEY)
    with FaultServer() as server:
        ask(server, Sampling(0.5, 0.9, 9, 4, None, 2), key_variable="SOME_KEY")
        ask(server)
    first, second = (call.body for call in server.calls)
    assert first.pop("generationConfig") == {
        "temperature": 0.5,
        "topP": 0.9,
        "maxOutputTokens": 9,
        "seed": 4,
        "responseLogprobs": True,
        "logprobs": 2,
    }
    assert second.pop("generationConfig", {}) == {}
    assert first == second
    assert first["contents"] == [{"parts": [{"text": "E or N?"}], "role": "user"}]
    assert first["systemInstruction"]["parts"] == [{"text": "Play."}]
    assert set(first) == {"contents", "systemInstruction"}
    assert server.calls[0].headers["x-goog-api-key"] == KEY
    assert server.calls[0].model == "gemini-2.0-flash"


@pytest.mark.parametrize(
    ("model", "effort", "sent"),
    [
        ("gemini-2.5-flash", "none", {"thinkingbudget": 0}),
        ("gemini-2.5-flash", "low", {"thinkingbudget": 1024}),
        ("gemini-2.5-pro", "high", {"thinkingbudget": 24576}),
        ("gemini-3-flash-preview", "medium", {"thinkinglevel": "MEDIUM"}),
        ("gemini-3.5-flash", "high", {"thinkinglevel": "HIGH"}),
        ("gemini-2.5-pro", "none", None),
        ("gemini-3-pro-preview", "none", None),
    ],
)
def test_reasoning_is_asked_for_as_each_model_takes_it(model, effort, sent):
    with FaultServer() as server:
        if sent is None:
            with pytest.raises(NotCapable, match="cannot be kept from reasoning"):
                ask(server, Sampling(reasoning=effort), model=model)
            assert not server.calls
            return
        ask(server, Sampling(reasoning=effort), model=model)
    asked = server.calls[0].body["generationConfig"]["thinkingConfig"]
    # The interface takes thinking_budget and thinkingBudget alike.
    assert {name.replace("_", "").lower(): value for name, value in asked.items()} == sent


def test_models_are_known_by_name():
    def can(model, images=False, **settings):
        adapter = SimpleNamespace(model=model, capabilities=capabilities_of(model))
        try:
            check_capable(adapter, Sampling(**settings), images=images)
        except NotCapable:
            return False
        return True

    assert can("gemini-2.0-flash", top_log_probabilities=5, temperature=2.0, seed=1)
    assert not can("gemini-2.0-flash", reasoning="low")
    assert can("gemini-2.5-flash", reasoning="low", images=True)
    assert not can("gemini-2.5-flash", top_log_probabilities=5)
    assert not can("gemma-3-27b-it", reasoning="low")
    assert not can("gemma-3-27b-it", images=True)
    assert capabilities_of("gemini-4-unheard-of").reasoning


def test_a_prompt_that_is_blocked_is_a_refusal(monkeypatch):
    content = {
        "promptFeedback": {"blockReason": "PROHIBITED_CONTENT"},
        "usageMetadata": {"promptTokenCount": 7},
        "modelVersion": "m-1",
    }
    answering(monkeypatch, content)
    with FaultServer() as server:
        reply = ask(server)
        assert ask(server, Sampling(top_log_probabilities=2)).log_probabilities == ()
    assert (reply.text, reply.finish_reason) == ("", "refusal")
    assert reply.usage == Usage(7, 0, 0, 0)
    assert json.loads(reply.raw) == content


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("STOP", "stop"),
        ("MAX_TOKENS", "length"),
        ("SAFETY", "refusal"),
        ("SPII", "refusal"),
        ("RECITATION", "recitation"),
        ("CONTINUATION", "continuation"),
        (None, ""),
    ],
)
def test_why_an_answer_ended_is_told_in_one_language(monkeypatch, reason, expected):
    candidate = {"content": {"parts": [{"text": "E"}]}, "finishReason": reason}
    # The package would ask again for the rest of an answer that is to be continued.
    answering(monkeypatch, {"candidates": [{**candidate, "continuationToken": "dG9rZW4="}]})
    with FaultServer() as server:
        reply = ask(server)
    assert (reply.text, reply.finish_reason) == ("E", expected)
    assert reply.usage == Usage()
    assert len(server.calls) == 1


def test_the_wait_is_read_from_the_body_if_no_header_tells_it(monkeypatch):
    detail = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "37.5s"}
    with FaultServer(script=["429"]) as server:
        monkeypatch.setattr(
            "fault_server.Handler._fail",
            lambda handler, *_: handler._send(429, {"error": {"details": [detail]}}),
        )
        with pytest.raises(RateLimited) as caught:
            ask(server)
    assert caught.value.retry_after == 37.5
