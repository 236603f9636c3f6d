"""What every adapter promises, against a server that fails on demand."""

import asyncio
import json
import logging
import time
import traceback
from dataclasses import replace

import httpx2
import pytest
from fault_server import FAULTS, FaultServer, echo

from knownminds.environments import Message, Prompt
from knownminds.llm_adapters import (
    ADAPTERS,
    HOSTS,
    Failed,
    InProcess,
    Sampling,
    Synthetic,
    Usage,
    check_heeds,
    load,
)

KEY = "sk-canary-0123456789abcdef"
HELLO = Prompt((Message("user", "E or N?"),))
TALK = Prompt(
    (
        Message("system", "Play. Antworte kurz."),
        Message("user", "Casino 4: E or N?"),
        Message("assistant", "E"),
        Message("user", "1 point. ‘Größer’ 漢字 🎰 \u2028 \x07 <b>&amp;</b> \\n E or N?"),
    )
)
PICTURE = b"\x89PNG\r\n\x1a\n\xff\xfe\x00 picture"
MODELS = {"openai": "gpt-4o", "anthropic": "claude-haiku-4-5", "google": "gemini-2.0-flash"}
# What an adapter makes of each fault: what follows, its kind, whether charged, seconds to wait.
FAILURES = {
    "flood": ("skip", "unreadable", None, None),  # 64 MB, of which 8 are read
    "400": ("skip", "prompt 400", False, None),
    "400_seed": ("stop", "setting", False, None),
    "403_flagged": ("skip", "refused", False, None),
    "401": ("stop", "key", False, None),
    "403": ("stop", "key", False, None),
    "404": ("stop", "model", False, None),
    "413": ("skip", "prompt 413", False, None),
    "429": ("retry", "often", False, None),
    "429_seconds": ("retry", "often", False, 30.0),
    "429_date": ("retry", "often", False, "up to 30"),
    "no_credit": ("stop", "credit", False, None),
    "529": ("retry", "server 529", False, None),
    "408": ("retry", "server 408", None, None),
    "500": ("retry", "server 500", None, None),
    "500_charged": ("retry", "server 500", None, None),
    "502": ("retry", "server 502", None, None),
    "502_bytes": ("retry", "server 502", None, None),
    "503": ("retry", "server 503", None, None),
    "302": ("stop", "redirect", False, None),
    "hang": ("retry", "late", None, None),
    "hang_before": ("retry", "late", None, None),
    "drop_before": ("retry", "connection", None, None),
    "drop_after": ("retry", "connection", None, None),
    "cut_body": ("retry", "connection", None, None),
    "drip": ("retry", "late", None, None),
    "cut": ("skip", "unreadable", None, None),
    "html": ("skip", "unreadable", None, None),
    "blank": ("skip", "unreadable", None, None),
    "list": ("skip", "unreadable", None, None),
    "error_200": ("retry", "server 502", None, None),
}
REPLIES = {
    "ok": ("E or N?", "stop"),
    "empty": ("", "stop"),
    "refusal": ("I will not.", "refusal"),
    "length": ("E o", "length"),
    "garbage": ("Well, both machines have their merits, E as well as N.", "stop"),
    "model_changed": ("E or N?", "stop"),
    "no_model": ("E or N?", "stop"),
    "no_usage": ("E or N?", "stop"),
    "no_log_probabilities": ("E or N?", "stop"),  # which nobody asked for
    "no_finish": ("E or N?", ""),
    "echo_key": ("Your key is [key].", "stop"),
}


@pytest.fixture(params=sorted(MODELS))
def name(request, monkeypatch):
    monkeypatch.setenv("SOME_KEY", KEY)
    return request.param


def adapter_for(name, server, heeds=(), **options):
    options = {"model": MODELS[name], "key_variable": "SOME_KEY", **options}
    if isinstance(server, FaultServer):
        options.setdefault("base_url", server.address[name])
    adapter = load(name)(**options)
    adapter.heeds |= set(heeds)
    return adapter


def ask(name, server, prompt=HELLO, settings=None, **options):
    """Ask once, with a limit of tokens, which one provider wants."""
    settings = replace(settings or Sampling(), max_tokens=(settings or Sampling()).max_tokens or 50)

    async def once():
        adapter = adapter_for(name, server, **options)
        try:
            return await adapter.complete(prompt, settings=settings)
        finally:
            await adapter.close()

    return asyncio.run(once())


def test_a_conversation_arrives_and_returns_as_it_is(name):
    with FaultServer(echo, key=KEY, serves="served-1") as server:
        reply = ask(name, server, TALK)
    (call,) = server.calls
    assert call.wire == name
    assert call.messages == tuple((m.role, m.content) for m in TALK.messages)
    assert call.prompt == TALK.hash
    assert (reply.text, reply.finish_reason) == (TALK.messages[-1].content, "stop")
    assert reply.model_served == "served-1"
    assert reply.log_probabilities is None
    sent, received = server.usage(call, reply.text)
    assert reply.usage == Usage(sent, received, 0, 0, None if name == "google" else 0)
    assert isinstance(json.loads(reply.raw), dict)


def with_images(prompt, images):
    """Show images with the last message."""
    *before, last = prompt.messages
    return Prompt((*before, replace(last, images=images)))


def test_images_are_shown_with_their_message(name):
    first, *others = TALK.messages
    shown = [replace(m, images=(b"early",)) if m.role == "user" else m for m in others]
    prompt = with_images(Prompt((first, *shown)), (PICTURE, b"second"))
    with FaultServer() as server:
        ask(name, server, prompt)
    (call,) = server.calls
    assert call.images == prompt.images
    assert call.prompt == prompt.hash


def test_every_fault_is_told_apart_asked_once_and_never_called_free_if_it_was_charged(name):
    async def meet(server, adapter):
        found, raw = {}, {}
        for fault in script:
            before = len(server.calls)
            try:
                reply = await adapter.complete(HELLO, settings=Sampling(max_tokens=50))
            except Failed as error:
                reply = error
            raw[fault] = reply.raw
            assert len(server.calls) == before + 1, fault
            if not isinstance(reply, Failed):
                found[fault] = (reply.text, reply.finish_reason)
                continue
            wait = reply.wait
            if fault == "429_date" and wait is not None and 28 < wait <= 30:
                wait = "up to 30"
            found[fault] = (reply.then, reply.kind, reply.charged, wait)
            assert reply.charged in (None, server.calls[-1].charged), fault
            assert MODELS[name] in str(reply) or reply.kind == "unreadable", fault
            assert reply.__cause__ is reply.__context__ is None, fault
        await adapter.close()
        return found, raw

    script = list(FAULTS)
    with FaultServer(echo, script=script, retry_after=30.0, hang=5.0) as server:
        found, raw = asyncio.run(meet(server, adapter_for(name, server, timeout=0.5)))
    assert found == FAILURES | REPLIES
    assert set(found) == set(FAULTS)
    # What came is kept, but for what is said of a key.
    assert raw["html"].startswith(b"<!DOCTYPE html>")
    assert len(raw["cut"]) > 50
    assert b"Something went wrong" in raw["503"]
    assert raw["401"] == raw["403"] == raw["blank"] == raw["hang"] == b""


def test_a_process_that_was_stopped_past_its_timeout_reads_what_has_come(name):
    async def stopped():
        adapter = adapter_for(name, server, timeout=0.4)
        try:
            # Nothing of this process runs while the answer comes, as behind Ctrl-Z.
            asyncio.get_running_loop().call_later(0.1, time.sleep, 1.2)
            return await adapter.complete(long, settings=Sampling(max_tokens=50))
        finally:
            await adapter.close()

    long = Prompt((Message("user", "E or N? " * 20_000),))  # so it comes in several parts
    with FaultServer(echo, delay=0.2) as server:
        assert asyncio.run(stopped()).text == long.messages[0].content
    assert len(server.calls) == 1


def test_a_server_that_is_down_has_not_charged(name):
    with FaultServer() as server:
        pass
    with pytest.raises(Failed, match="cannot be reached: ConnectError") as caught:
        ask(name, server)
    assert caught.value.charged is False


def test_a_wrong_key_and_an_unknown_model_stop_a_run(name):
    with FaultServer(key="another-key-0123456789", models=["known"]) as server:
        with pytest.raises(Failed, match="does not accept the key in SOME_KEY") as wrong:
            ask(name, server)
        server.key = KEY
        with pytest.raises(Failed, match="is not there") as strange:
            ask(name, server)
        assert ask(name, server, model="known").text
    assert (wrong.value.then, strange.value.then) == ("stop", "stop")


async def identified_by(adapter):
    """Return all that a call lets be seen, with the variables of a traceback."""
    try:
        thing = await adapter.complete(TALK, settings=Sampling(max_tokens=50))
    except Failed as error:
        thing = error
        shown = traceback.TracebackException.from_exception(error, capture_locals=True)
        trace = "".join(shown.format(chain=True))
    else:
        trace = ""
    return f"{thing!r} {thing} {vars(thing)!r} {trace}"


def test_the_key_is_nowhere_but_in_the_header_of_a_call(name, caplog):
    async def meet(server):
        adapter = adapter_for(name, server, timeout=1.0)
        told = [f"{adapter!r} {adapter} {vars(adapter)!r}"]
        told += [await identified_by(adapter) for _ in FAULTS]
        await adapter.close()
        return "".join(told)

    caplog.set_level(logging.DEBUG)
    with FaultServer(script=list(FAULTS), hang=3.0) as server:
        told = asyncio.run(meet(server))
    assert all(KEY in str(call.headers) for call in server.calls)  # and the test can fail
    assert all(KEY not in json.dumps(call.body) for call in server.calls)
    assert len(server.calls) == len(FAULTS)
    assert "Your key is [key]." in told
    assert "does not accept the key" in told
    assert KEY[:12] not in told
    assert KEY[:12] not in caplog.text


def test_the_key_is_read_when_sending(name, monkeypatch):
    async def meet(server):
        adapter = adapter_for(name, server)
        settings = Sampling(max_tokens=50)
        monkeypatch.setenv("SOME_KEY", f" {KEY}2\n")
        await adapter.complete(HELLO, settings=settings)
        for value, sentence in (("", "which is empty"), ("a b", "visible"), ("ключ", "visible")):
            monkeypatch.setenv("SOME_KEY", value)
            with pytest.raises(Failed, match=sentence):
                await adapter.complete(HELLO, settings=settings)
        await adapter.close()

    with FaultServer(key=KEY + "2") as server:
        asyncio.run(meet(server))
        assert len(server.calls) == 1
        with pytest.raises(Failed, match="that in SOME_KEY is not"):
            ask(name, server)
        server.key = "none"
        assert ask(name, server, key_variable=None).text


def test_the_shells_environment_does_not_turn_a_call_aside(name, monkeypatch):
    nowhere = "http://127.0.0.1:9"
    for variable in (
        *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "all_proxy"),
        *("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL"),
    ):
        monkeypatch.setenv(variable, nowhere)
    for variable in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(variable, raising=False)
    for variable in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.setenv(variable, "another-key-0123456789")
    for variable in ("OPENAI_CUSTOM_HEADERS", "ANTHROPIC_CUSTOM_HEADERS"):
        monkeypatch.setenv(variable, "Authorization: Bearer other\nX-Api-Key: other")
    monkeypatch.setenv("GOOGLE_GENAI_USE_VERTEXAI", "true")
    monkeypatch.setenv("GOOGLE_GENAI_API_VERSION", "v9")
    with FaultServer(key=KEY) as server:
        assert ask(name, server).text == "N"
    assert len(server.calls) == 1


def test_usage_means_the_same_for_all_providers(name):
    with FaultServer(echo, reasoning_tokens=40, cached_tokens=2) as server:
        reply = ask(name, server)
        assert reply.usage == Usage(3, 43, 40, 2, None if name == "google" else 0)
        assert reply.text == "E or N?"  # without the reasoning
        server.script = lambda call: "no_usage"
        assert ask(name, server).usage == Usage()


def test_log_probabilities_come_or_the_run_stops(name):
    settings = Sampling(top_log_probabilities=3)
    with FaultServer(echo) as server:
        if name == "anthropic":
            with pytest.raises(Failed, match="asked for top_log_probabilities"):
                check_heeds(adapter_for(name, server), replace(settings, max_tokens=5))
            return
        tokens = ask(name, server, settings=settings).log_probabilities
        assert "".join(token.token for token in tokens) == "E or N?"
        for token, value, alternatives in tokens:
            assert value <= 0
            assert len(alternatives) == 3
            assert alternatives[0] == (token, value)
        alone = ask(name, server, settings=Sampling(top_log_probabilities=0)).log_probabilities
        assert [t[:2] for t in alone] == [t[:2] for t in tokens]
        assert all(t.alternatives == () for t in alone)
        server.script = lambda call: "empty"
        assert ask(name, server, settings=settings).log_probabilities == ()
        server.script, server.log_probabilities = (), False
        with pytest.raises(Failed, match="without the log-probabilities") as caught:
            ask(name, server, settings=settings)
    assert caught.value.charged is True
    assert caught.value.then == "stop"
    assert b"E or N?" in caught.value.raw
    assert server.calls[-1].charged


def test_what_a_server_refuses_is_free_and_repeated_in_its_words(name):
    with FaultServer(script=lambda call: "400") as server:
        server.complaint = "`topP` is deprecated for this model."
        with pytest.raises(Failed, match=r"does not take the prompt \(400\): `topP` is") as caught:
            ask(name, server, settings=Sampling(top_p=0.5))
    assert (caught.value.then, caught.value.charged) == ("skip", False)


def test_a_setting_that_a_server_names_as_refused_stops_the_run():
    for param, then in (("temperature", "stop"), ("messages[0].content", "skip"), (None, "skip")):
        error = {"message": "Unsupported value.", "param": param}
        answer = httpx2.Response(400, json={"error": error})
        carrier = httpx2.MockTransport(lambda _, answer=answer: answer)
        adapter = load("openai")("m", key_variable=None, transport=carrier)
        with pytest.raises(Failed) as caught:
            asyncio.run(adapter.complete(HELLO, settings=Sampling()))
        assert (caught.value.then, caught.value.charged) == (then, False)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            {"base_url": "localhost:8000"},
            "begins with http:// or https://, .* got 'localhost:8000'",
        ),
        ({"base_url": "http://127.0.0.1:99999/v1"}, "begins with http.*99999"),
        ({"base_url": "http://[::1/v1"}, "begins with http"),
        (
            {"base_url": "https://me:secret@host/v1"},
            "holds no user, password or query; that of host",
        ),
        ({"base_url": "https://host/v1?key=secret"}, "holds no user"),
        ({"timeout": 0}, "A timeout is above 0 seconds; got 0"),
    ],
)
def test_an_address_that_is_none_is_told(name, options, sentence):
    with pytest.raises(ValueError, match=sentence) as caught:
        adapter_for(name, None, **options)
    assert "secret" not in str(caught.value)


def test_what_an_adapter_cannot_heed_is_told_before_the_run():
    class Plain(InProcess):
        model, heeds = "m", frozenset({"max_tokens", "seed"})

    check_heeds(Plain(), Sampling(max_tokens=5, seed=1))
    for asked in ({"temperature": 0.0}, {"reasoning_effort": "none"}, {"top_log_probabilities": 0}):
        with pytest.raises(Failed, match=f"m is asked for {next(iter(asked))}") as caught:
            check_heeds(Plain(), Sampling(**asked))
        assert caught.value.then == "stop"
    with pytest.raises(Failed, match="m is to be shown pictures"):
        check_heeds(Plain(), Sampling(), images=True)
    strict = load("anthropic")("m", key_variable=None)
    with pytest.raises(Failed, match="m takes no call without max_tokens"):
        check_heeds(strict, Sampling())


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ({"temperature": -1}, "temperature goes from 0 to 2; got -1"),
        ({"top_p": 1.5}, "top_p goes from 0 to 1; got 1.5"),
        ({"max_tokens": 0}, "max_tokens goes from 1 to 100000000; got 0"),
        ({"seed": -1}, "seed goes from 0; got -1"),
        ({"top_log_probabilities": -1}, "top_log_probabilities goes from 0; got -1"),
        ({"reasoning_effort": "hihg"}, "Nearest: high"),
    ],
)
def test_settings_out_of_range_are_told(setting, sentence):
    with pytest.raises(ValueError, match=sentence):
        Sampling(**setting)


def test_adapters_are_loaded_by_name():
    assert load("synthetic") is Synthetic
    assert {"openai", "synthetic"} <= set(ADAPTERS)
    with pytest.raises(ValueError, match="Nearest: openai"):
        load("opnai")


@pytest.mark.parametrize("host", sorted(HOSTS))
def test_a_compatible_host_is_a_line_in_a_table(host, monkeypatch):
    def answer(request):
        asked.append(request)
        message = {"role": "assistant", "content": "E"}
        return httpx2.Response(200, json={"choices": [{"message": message}]})

    asked = []
    there = HOSTS[host]
    if there.key_variable:
        monkeypatch.setenv(there.key_variable, KEY)
    adapter = load(host)("m", transport=httpx2.MockTransport(answer))
    assert adapter.provider == host
    assert asyncio.run(adapter.complete(HELLO, settings=Sampling(max_tokens=5))).text == "E"
    (request,) = asked
    assert str(request.url) == f"{there.base_url}/chat/completions"
    assert json.loads(request.content)[there.limit] == 5
    assert request.headers["authorization"] == f"Bearer {KEY if there.key_variable else 'none'}"
