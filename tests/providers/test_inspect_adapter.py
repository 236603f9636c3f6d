"""Inspect's providers as an adapter, against a server that fails on demand."""

import asyncio
import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("inspect_ai", reason="the extra inspect is not installed")
from fault_server import FaultServer, echo
from providers.test_adapter import FAILURES, HELLO, KEY, PICTURE, REPLIES, TALK

from knownminds.agents import RescorlaWagnerDual, play
from knownminds.environments import InstrumentalLearning, Prompt
from knownminds.llm_adapters import (
    AdapterError,
    Capabilities,
    NoKey,
    NotCapable,
    Rejected,
    Sampling,
    UnreadableReply,
    Usage,
    load,
    run_sessions,
)
from knownminds.llm_adapters.known_minds.serve import Served
from knownminds.llm_adapters.providers.inspect import _PROVIDERS, Inspect

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


@pytest.mark.parametrize(("name", "fault"), cases(REPLIES))
def test_what_comes_is_handed_on(name, fault):
    text, reason = REPLIES[fault]
    lacking = fault == "no_model" or (fault == "no_usage" and name == "anthropic")
    with FaultServer(echo, script=[fault], key=KEY) as server:
        if lacking:  # Inspect cannot do without
            with pytest.raises(UnreadableReply) as found:
                ask(name, server)
            assert text in found.value.raw
        else:
            reply = ask(name, server)
            assert (reply.text, reply.finish_reason) == (text, reason or "unknown")
            assert (reply.usage == Usage()) == (fault == "no_usage")
        assert len(server.calls) == 1


SHOWN = Prompt((*TALK.messages[:-1], replace(TALK.messages[-1], images=(PICTURE,))))


@pytest.mark.parametrize("name", MODELS)
def test_a_conversation_arrives_and_returns_as_it_is(name):
    with FaultServer(
        echo, key=KEY, serves="served-1", reasoning_tokens=3, cached_tokens=2
    ) as server:
        reply = ask(name, server, SHOWN, capabilities=CAN)
    [call] = server.calls
    assert call.messages == tuple((m.role, m.content) for m in TALK.messages)
    assert call.images == (PICTURE,)
    assert call.headers[MODELS[name][2]].endswith(KEY)
    assert reply.text == TALK.messages[-1].content
    assert reply.model_served == "served-1"
    assert reply.request_id.startswith("req-")
    said = json.loads(reply.raw)["usage"]
    # What Anthropic reads from its cache is apart in its usage, and is not in ours.
    sent = said["input_tokens"] + 2 if name == "anthropic" else said["prompt_tokens"]
    received = said["output_tokens"] if name == "anthropic" else said["completion_tokens"]
    assert reply.usage == Usage(sent, received, 3, 2)


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


@pytest.mark.parametrize(
    ("name", "settings", "complaint"),
    [
        ("openai", Sampling(reasoning="low"), "does not send reasoning='low'"),
        ("openai/o3", Sampling(temperature=0.5), "does not send temperature=0.5"),
        ("anthropic", Sampling(max_tokens=50, seed=3), "does not send seed=3"),
        (
            "anthropic",
            Sampling(max_tokens=50, top_log_probabilities=2),
            "does not send top_log_probabilities=2",
        ),
    ],
)
def test_a_setting_that_inspect_would_drop_stops_the_call_before_it_leaves(
    name, settings, complaint
):
    with FaultServer(echo) as server:
        with pytest.raises(NotCapable, match=complaint) as found:
            ask(name, server, settings=settings, capabilities=CAN)
        assert not server.calls
    assert found.value.charged is False


def test_log_probabilities_that_do_not_come_are_an_error():
    settings = Sampling(top_log_probabilities=1)
    complaint = "without the log-probabilities"
    with (
        FaultServer(echo, log_probabilities=False) as server,
        pytest.raises(NotCapable, match=complaint) as found,
    ):
        ask("openai-api", server, settings=settings)
    assert found.value.charged is True


def test_a_complaint_that_inspect_would_take_for_an_answer_is_none():
    # Inspect makes an answer of this 400: "input length" is how one server says it.
    complaint = "The input length is too much."
    with (
        FaultServer(echo, script=["400"], complaint=complaint) as server,
        pytest.raises(Rejected, match="input length"),
    ):
        ask("openai-api", server)


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


def test_the_key_is_read_when_sending_and_nowhere_kept(monkeypatch):
    async def sent(server):
        adapter = Inspect(
            "openai/gpt-4o", base_url=server.address["openai"], key_variable="SOME_KEY"
        )
        assert KEY not in repr(adapter) + repr(vars(adapter)) + repr(vars(adapter._api))
        monkeypatch.setenv("SOME_KEY", KEY + "-new")
        try:
            await adapter.complete(HELLO, settings=LIMITED)
            monkeypatch.delenv("SOME_KEY")
            with pytest.raises(NoKey, match="SOME_KEY"):
                await adapter.complete(HELLO, settings=LIMITED)
        finally:
            await adapter.close()

    with FaultServer(echo, key=KEY + "-new") as server:
        asyncio.run(sent(server))
        assert len(server.calls) == 1


def test_without_a_variable_the_providers_own_is_read(monkeypatch):
    monkeypatch.delenv("ANYWHERE_API_KEY", raising=False)
    with FaultServer(echo, key=KEY) as server:
        with pytest.raises(NoKey, match="ANYWHERE_API_KEY"):
            ask("openai-api", server, key_variable="")
        monkeypatch.setenv("ANYWHERE_API_KEY", KEY)
        assert ask("openai-api", server, key_variable="").text == "E or N?"
    with FaultServer(echo) as server:
        assert ask("openai-api", server, key_variable=None).text == "E or N?"


def test_the_key_of_another_company_is_not_taken(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", KEY)  # Inspect knows it for the same provider
    with pytest.raises(NoKey, match="OPENAI_API_KEY"):
        Inspect("openai/gpt-4o")


def test_where_the_provider_has_its_server_is_told(monkeypatch):
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    adapter = Inspect("openai/gpt-4o", key_variable="SOME_KEY")
    assert adapter.base_url == "https://api.openai.com/v1"
    assert repr(adapter) == "Inspect('openai/gpt-4o', base_url='https://api.openai.com/v1')"
    asyncio.run(adapter.close())


def test_what_is_known_of_a_model_by_its_name_counts_here_too():
    needs("anthropic")
    given = {"base_url": "http://127.0.0.1:9", "key_variable": "SOME_KEY"}
    assert Inspect("anthropic/claude-haiku-4-5", **given).capabilities.needs == ("max_tokens",)
    assert not Inspect("openai/o3", key_variable="SOME_KEY").capabilities.temperature
    assert Inspect("openrouter/a/b", **given).capabilities.answer_log_probabilities


@pytest.mark.parametrize("provider", sorted(set(_PROVIDERS) - {"openai", "openai-api"}))
def test_every_provider_listed_can_be_kept_to_one_call(provider):
    wire = "anthropic" if provider == "anthropic" else "openai"
    with FaultServer(echo, script=["503", "ok"]) as server:
        with pytest.raises(AdapterError, match="503"):
            ask(f"{provider}/a/b", server, base_url=server.address[wire])
        assert len(server.calls) == 1


@pytest.mark.parametrize(
    ("model", "kind", "complaint"),
    [
        ("gpt-4o", ValueError, "PROVIDER/MODEL"),
        ("bedrock/m", NotCapable, "one call"),
        ("openai/azure/m", NotCapable, "one call"),
        ("opnai/m", NotCapable, "openai"),
    ],
)
def test_a_provider_that_cannot_be_kept_to_one_call_is_refused(model, kind, complaint):
    with pytest.raises(kind, match=complaint):
        Inspect(model, key_variable=None)


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


@pytest.mark.parametrize("module", ["providers.inspect", "runs.inspect_tasks"])
def test_a_missing_package_is_answered_with_what_to_install(module):
    code = (
        "import sys; sys.modules['inspect_ai'] = None; import importlib; "
        f"importlib.import_module('knownminds.llm_adapters.{module}')"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert 'pip install "knownminds[inspect]"' in run.stderr.splitlines()[-1]
