"""Inspect's providers as an adapter, against a server that fails on demand."""

import asyncio
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("inspect_ai", reason="the extra inspect is not installed")
from fault_server import FaultServer, echo
from providers.test_adapter import FAILURES, HELLO, KEY

from knownminds.agents import RescorlaWagnerDual, play
from knownminds.environments import InstrumentalLearning
from knownminds.llm_adapters import (
    AdapterError,
    Capabilities,
    Sampling,
    load,
    run_sessions,
)
from knownminds.llm_adapters.known_minds.serve import Served
from knownminds.llm_adapters.providers.inspect import Inspect

# Where a call ends up, for each provider, and the header that bears the key.
MODELS = {
    "openai": ("openai/gpt-4o", "openai", "authorization"),
    "openai-api": ("openai-api/anywhere/m", "openai", "authorization"),
    "anthropic": ("anthropic/claude-haiku-4-5", "anthropic", "x-api-key"),
}
SOME = ("400", "401", "429_seconds", "503", "302", "hang", "drop_after", "cut", "html", "list")
SOME += ("ok", "empty", "refusal", "no_model", "no_usage", "no_finish", "echo_key")


def cases(faults):
    """All for one provider, some for the others."""
    return [(name, f) for name in MODELS for f in faults if name == "openai-api" or f in SOME]


CAN = Capabilities(reasoning=True, images=True, answer_log_probabilities=True)
LIMITED = Sampling(max_tokens=50)


@pytest.fixture(autouse=True)
def some_key(monkeypatch):
    monkeypatch.setenv("SOME_KEY", KEY)


def needs(name):
    pytest.importorskip("anthropic" if name.startswith("anthropic") else "openai")


def ask(name, server, prompt=HELLO, settings=LIMITED, **options):
    needs(name)
    model, wire, _ = MODELS.get(name, (name, "openai", ""))

    async def once():
        given = {"base_url": server.address[wire], "key_variable": "SOME_KEY", **options}
        adapter = Inspect(model, **given)
        try:
            return await adapter.complete(prompt, settings=settings)
        finally:
            await adapter.close()

    return asyncio.run(once())


@pytest.mark.parametrize(("name", "fault"), cases(FAILURES))
def test_a_failed_call_is_made_once_and_means_what_it_means_everywhere(name, fault):
    timeout = 0.6 if fault.startswith(("hang", "drip")) else 30.0
    with FaultServer(echo, script=[fault], key=KEY, hang=5.0, retry_after=30.0) as server:
        with pytest.raises(AdapterError) as found:
            ask(name, server, timeout=timeout)
        assert len(server.calls) == 1
    kind, charged, wait = FAILURES[fault]
    error = found.value
    assert (type(error).__name__, error.charged) == (kind, charged)
    if wait == "up to 30":
        assert 20 < error.retry_after <= 30
    elif wait is not None:
        assert error.retry_after == wait
    assert KEY not in str(error) + error.raw
    assert error.__cause__ is None  # which would hold the request and with it the key


@pytest.mark.parametrize("name", MODELS)
def test_settings_are_sent_and_no_others(name):
    full = Sampling(0.5, 0.9, 5000, 3, "low", 2)
    plain = Sampling(max_tokens=50)
    if name == "openai":
        full = replace(full, reasoning=None)  # Inspect sends none to GPT-4
    if name == "anthropic":
        full = Sampling(max_tokens=5000, reasoning="low")
    with FaultServer(echo, key=KEY) as server:
        reply = ask(name, server, settings=full, capabilities=CAN)
        ask(name, server, settings=plain, capabilities=CAN)
    body, bare = (call.body for call in server.calls)
    if name == "anthropic":
        assert body["thinking"]["type"] == "enabled"
        assert set(bare) <= {"model", "messages", "max_tokens", "stream", "tools"}
        assert (bare["stream"], bare["tools"]) == (False, [])
        return
    sent = {"temperature": 0.5, "top_p": 0.9, "max_tokens": 5000, "seed": 3}
    sent |= {"logprobs": True, "top_logprobs": 2}
    sent |= {"reasoning_effort": "low"} if name == "openai-api" else {}
    assert {k: v for k, v in body.items() if k not in ("model", "messages")} == sent
    assert set(bare) == {"model", "messages", "max_tokens"}
    assert [token.token for token in reply.log_probabilities] == ["E", " or", " N?"]
    assert all(len(token.alternatives) == 2 for token in reply.log_probabilities)


def test_a_second_call_for_one_question_is_stopped():
    async def twice(server):
        adapter = Inspect(
            "openai-api/anywhere/m", base_url=server.address["openai"], key_variable="SOME_KEY"
        )
        adapter._api.client.max_retries = 2  # as if a version of Inspect did not heed it
        try:
            return await adapter.complete(HELLO, settings=LIMITED)
        finally:
            await adapter.close()

    with FaultServer(echo, script=["503", "ok"]) as server:
        with pytest.raises(AdapterError, match="503"):
            asyncio.run(twice(server))
        assert len(server.calls) == 1


def test_a_known_mind_behind_inspect_lives_the_sessions_of_the_direct_path():
    environment = InstrumentalLearning(n_visits=4)
    [theta] = RescorlaWagnerDual.parameters.draw(np.random.default_rng(5), 1)
    mind = RescorlaWagnerDual.from_theta(theta)

    async def spoken(served):
        adapter = load("inspect")(
            "openai-api/ours/known-mind", base_url=served.base_url, key_variable=None
        )
        try:
            return await run_sessions(adapter, environment, 3, 11)
        finally:
            await adapter.close()

    with Served(environment, mind, seed=11) as served:
        trials = asyncio.run(spoken(served))
        assert served.calls == 3 * environment.n_trials
    for i, (_, session) in enumerate(trials.frame.groupby("subject", sort=False)):
        direct = play(mind, environment, 11, i).frame
        for column in ("context", "first", "action", "reward", "outcome"):
            assert session[column].tolist() == direct[column].tolist()
