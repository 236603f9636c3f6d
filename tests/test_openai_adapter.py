"""The OpenAI adapter against a small compatible server on the loopback, with known minds behind."""

import asyncio
import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

pytest.importorskip("openai")

from knownminds.agents import Contaminants, RescorlaWagnerDual, simulate
from knownminds.environments import InstrumentalLearning, Message, Prompt
from knownminds.inference import maximum_a_posteriori
from knownminds.llm_adapters import (
    NoKey,
    RateLimited,
    Rejected,
    Sampling,
    ServerFailed,
    Synthetic,
    UnknownModel,
    Unreachable,
    UnreadableReply,
    run_sessions,
)
from knownminds.llm_adapters.openai import OpenAI

KEY = "sk-canary-0123456789abcdef"
HELLO = Prompt((Message("user", "Hello?"),))


@contextmanager
def served(answer):
    """Serve `answer(path, headers, body) -> (status, headers, bytes)`; yields the base URL."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            status, headers, content = answer(self.path, self.headers, body)
            self.send_response(status)
            for name, value in {"content-type": "application/json", **headers}.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def completion(text, finish_reason="stop", model="m-1", usage=(3, 2), **message):
    choice = {"index": 0, "message": {"role": "assistant", "content": text, **message}}
    return {
        "id": "x",
        "object": "chat.completion",
        "created": 0,
        "model": model,
        "choices": [{**choice, "finish_reason": finish_reason}],
        "usage": {"prompt_tokens": usage[0], "completion_tokens": usage[1]},
    }


def minds(speakers):
    """Answer as the known mind whose name is the model asked for."""

    def answer(path, headers, body):
        prompt = Prompt(tuple(Message(m["role"], m["content"]) for m in body["messages"]))
        speaker = speakers[body["model"]]
        reply = asyncio.run(speaker.complete(prompt, settings=Sampling(seed=body["seed"])))
        usage = (reply.usage.input_tokens, reply.usage.output_tokens)
        content = completion(reply.text, reply.finish_reason, body["model"], usage)
        return 200, {}, json.dumps(content).encode()

    return answer


def through_words(theta, environment, seed, contaminants=None):
    speakers = {
        f"learner-{i}": Synthetic(
            RescorlaWagnerDual.from_theta(row), environment, seed, contaminants=contaminants
        )
        for i, row in enumerate(theta)
    }

    async def run(url):
        adapters = [OpenAI(name, base_url=url, key_variable=None) for name in speakers]
        try:
            return await run_sessions(adapters, environment, len(adapters), seed, pause=0.0)
        finally:
            for adapter in adapters:
                await adapter.close()

    with served(minds(speakers)) as url:
        return asyncio.run(run(url))


def test_learners_who_answer_in_words_are_estimated_as_on_the_direct_path():
    environment = InstrumentalLearning()
    theta = RescorlaWagnerDual.parameters.draw(np.random.default_rng(5), 8)
    direct = simulate(RescorlaWagnerDual, theta, environment, 11)
    spoken = through_words(theta, environment, 11)
    for column in ("subject", "trial", "context", "first", "action", "reward", "outcome"):
        assert spoken.frame[column].tolist() == direct.frame[column].tolist()
    one = maximum_a_posteriori(RescorlaWagnerDual, direct)
    other = maximum_a_posteriori(RescorlaWagnerDual, spoken)
    assert np.array_equal(one.estimate, other.estimate)
    assert np.array_equal(one.z, other.z)
    # and the test can fail: the same learners in other sessions are estimated differently
    elsewhere = maximum_a_posteriori(
        RescorlaWagnerDual, simulate(RescorlaWagnerDual, theta, environment, 12)
    )
    assert not np.array_equal(one.estimate, elsewhere.estimate)


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


def ask(url, settings=None, **options):
    async def once():
        adapter = OpenAI("m", base_url=url, **{"key_variable": None, **options})
        try:
            return await adapter.complete(HELLO, settings=settings or Sampling())
        finally:
            await adapter.close()

    return asyncio.run(once())


def test_settings_are_sent_and_the_reply_is_kept_whole(monkeypatch):
    seen = []

    def answer(path, headers, body):
        seen.append((path, headers["authorization"], body))
        content = json.dumps(completion("K", "length")).encode()
        return 200, {"x-request-id": "req-7"}, content

    monkeypatch.setenv("SOME_KEY", KEY)
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")  # not followed
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9")
    with served(answer) as url:
        settings = Sampling(temperature=0.5, max_tokens=9, seed=4)
        reply = ask(url, settings, key_variable="SOME_KEY")
        ask(url, Sampling(max_tokens=9), limit_name="max_tokens")
    assert (reply.text, reply.finish_reason) == ("K", "length")
    assert (reply.model_served, reply.request_id) == ("m-1", "req-7")
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (3, 2)
    assert json.loads(reply.raw) == completion("K", "length")
    path, authorization, body = seen[0]
    assert (path, authorization) == ("/v1/chat/completions", f"Bearer {KEY}")
    assert body == {
        "model": "m",
        "messages": [{"role": "user", "content": "Hello?"}],
        "temperature": 0.5,
        "max_completion_tokens": 9,
        "seed": 4,
    }
    assert seen[1][2]["max_tokens"] == 9
    assert "temperature" not in seen[1][2]


def test_a_refusal_is_marked_as_one():
    content = json.dumps(completion(None, refusal="I won't.")).encode()
    with served(lambda *_: (200, {}, content)) as url:
        reply = ask(url)
    assert (reply.text, reply.finish_reason) == ("I won't.", "refusal")


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, Rejected),
        (401, NoKey),
        (403, NoKey),
        (404, UnknownModel),
        (408, ServerFailed),
        (422, Rejected),
        (429, RateLimited),
        (500, ServerFailed),
        (503, ServerFailed),
        (302, Rejected),
    ],
)
def test_failures_are_told_apart_asked_once_and_never_tell_the_key(monkeypatch, status, kind):
    calls = []

    def answer(*_):
        calls.append(status)
        content = json.dumps({"error": {"message": f"trouble {KEY if status == 401 else ''}"}})
        return status, {"retry-after": "3", "location": "/v1/elsewhere"}, content.encode()

    monkeypatch.setenv("SOME_KEY", KEY)
    with served(answer) as url, pytest.raises(kind) as caught:
        ask(url, key_variable="SOME_KEY")
    assert type(caught.value) is kind
    assert len(calls) == 1
    assert KEY not in str(caught.value)
    assert str(status) in str(caught.value)
    if status == 429:
        assert caught.value.retry_after == 3.0


@pytest.mark.parametrize(
    "content",
    [b"", b"<html>", b"{}", b'{"choices": []}', b'{"choices": [{}]}', b"[1]", b'{"choices": [{"me'],
)
def test_a_reply_that_cannot_be_read_is_kept_as_it_came(content):
    with served(lambda *_: (200, {}, content)) as url, pytest.raises(UnreadableReply) as caught:
        ask(url)
    assert caught.value.raw == content.decode()


def test_no_server_and_a_slow_one_are_unreachable():
    with served(lambda *_: (200, {}, b"{}")) as url:
        pass
    with pytest.raises(Unreachable):
        ask(url)
    done = threading.Event()
    with served(lambda *_: (done.wait(5), (200, {}, b"{}"))[1]) as url:
        with pytest.raises(Unreachable):
            ask(url, timeout=0.1)
        done.set()


def test_the_key_is_read_from_its_variable_and_never_shown(monkeypatch):
    monkeypatch.delenv("SOME_KEY", raising=False)
    with pytest.raises(NoKey, match="variable SOME_KEY, which is empty"):
        OpenAI("m", key_variable="SOME_KEY")
    monkeypatch.setenv("SOME_KEY", KEY)
    adapter = OpenAI("m", key_variable="SOME_KEY")
    assert repr(adapter) == "OpenAI('m', base_url='https://api.openai.com/v1')"
    asyncio.run(adapter.close())
