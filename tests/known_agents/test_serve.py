"""The endpoint on the loopback: asked by the official package, and by clients of no manners."""

import asyncio
import http.client
import importlib
import json
from contextlib import contextmanager
from math import exp

import pytest

from knownminds.agents import RescorlaWagnerDual, play
from knownminds.environments import InstrumentalLearning, Session, session_stream
from knownminds.llm_adapters import Sampling, Synthetic, load
from knownminds.llm_adapters.known_agents.serve import Served
from knownminds.llm_adapters.runs.runner import RunOptions, run_sessions_in

KEY = "sk-canary-0123456789abcdef"
LEARNER = RescorlaWagnerDual(alpha_positive=0.6, alpha_negative=0.2, beta=5.0, kappa=0.1)
ENVIRONMENT = InstrumentalLearning(n_visits=2)
module = importlib.import_module("knownminds.llm_adapters.known_agents.serve")
PATH = "/v1/chat/completions"


def prompts_of(environment, seed, i):
    """Prompts of session i of a study, in which action 0 is always taken, and their labels."""
    session = Session(environment, environment.draw(session_stream(seed, i)))
    prompts = []
    for seen in session:
        labels = session.design.labels["machines"][seen["context"]]
        prompts.append((session.render(), labels, seen))
        session.take(0, session.say(0))
    return prompts


def request(prompt, seed=None, **changes):
    messages = [{"role": m.role, "content": m.content} for m in prompt.messages]
    body = {"model": "known-agent", "messages": messages, "seed": seed, **changes}
    return {name: value for name, value in body.items() if value is not ...}


PROMPT, LABELS, _ = prompts_of(ENVIRONMENT, 11, 0)[0]


@contextmanager
def connected(served):
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=10)

    def send(body, method="POST", path=PATH, headers=None):
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        connection.request(method, path, content, headers or {})
        response = connection.getresponse()
        return response.status, json.loads(response.read())

    try:
        yield send
    finally:
        connection.close()


@pytest.fixture(scope="module")
def served():
    with Served(ENVIRONMENT, LEARNER, seed=11) as server:
        yield server


@pytest.fixture(scope="module")
def send(served):
    with connected(served) as send:
        yield send


def through_the_server(environment, n, seed, heeds=(), address=(), **options):
    async def run(url):
        adapter = load("openai")("known-agent", base_url=url, key_variable=None)
        adapter.heeds = (adapter.heeds | set(heeds)) if heeds != () else adapter.heeds
        try:
            how = RunOptions(**options)
            run = await run_sessions_in(
                None, adapter, environment, n, seed, address=address, how=how
            )
            return run.trials
        finally:
            await adapter.close()

    with Served(environment, LEARNER, seed=11, address=(3,)) as served:
        trials = asyncio.run(run(served.base_url))
        assert served.calls == len(trials)
    return trials


# ---------------------------------------------------------------- the agent behind it


@pytest.mark.parametrize(
    "factors", [{}, {"history": "chat", "reasoning": "chain_of_thought"}, {"history": "chat"}]
)
def test_sessions_through_the_official_package_are_those_that_play_lives(factors):
    environment = InstrumentalLearning(n_visits=6, **factors)
    spoken = through_the_server(environment, 3, 11, address=(3,)).frame
    played = [play(LEARNER, environment, 11, 3, i).frame for i in range(3)]
    assert spoken["session"].tolist() == [name for one in played for name in one["subject"]]
    for column in ("trial", "context", "first", "action", "reward"):
        assert spoken[column].tolist() == [value for one in played for value in one[column]]
    assert set(spoken["outcome"]) == {"ok"}
    assert set(spoken["model_served"]) == {"known-agent"}
    assert (
        spoken["action"].tolist() != play(LEARNER, environment, 12, 3, 0).frame["action"].tolist()
    )


@pytest.mark.parametrize("seed", [4, None])
def test_the_same_request_has_the_same_answer_at_any_time(seed):
    prompts = prompts_of(ENVIRONMENT, 11, 4)
    with Served(ENVIRONMENT, LEARNER, seed=11) as served, connected(served) as send:
        first = [send(request(prompt, seed)) for prompt, *_ in prompts]
        backward = [send(request(prompt, seed)) for prompt, *_ in reversed(prompts)]
    with Served(ENVIRONMENT, LEARNER, seed=11) as another, connected(another) as send:
        later = [send(request(prompt, seed)) for prompt, *_ in prompts]
    assert first == backward[::-1] == later
    assert {status for status, _ in first} == {200}


# ---------------------------------------------------------------- what a client may ask for


def test_log_probabilities_over_the_letters_sum_to_one(served):
    openai = pytest.importorskip("openai")
    mind = Synthetic(LEARNER, ENVIRONMENT, 11)
    with openai.OpenAI(base_url=served.base_url, api_key="none", max_retries=0) as client:
        for prompt, labels, _ in prompts_of(ENVIRONMENT, 11, 0):
            for seed in (0, openai.omit):
                answer = client.chat.completions.create(
                    model="known-agent",
                    messages=[{"role": m.role, "content": m.content} for m in prompt.messages],
                    seed=seed,
                    logprobs=True,
                    top_logprobs=20,
                )
                (token,) = answer.choices[0].logprobs.content
                told = {entry.token: entry.logprob for entry in token.top_logprobs}
                assert set(told) == set(labels)
                assert sum(map(exp, told.values())) == pytest.approx(1.0, abs=1e-9)
                assert token.token == answer.choices[0].message.content
                assert token.logprob == told[token.token]
                assert bytes(token.bytes).decode() == token.token
                own = mind.answer(prompt, Sampling(seed=0, top_log_probabilities=2))
                own = dict(own.log_probabilities[0].alternatives)
                assert told == pytest.approx(own, abs=1e-12)


def test_a_prompt_is_known_whatever_a_client_ends_its_lines_with(send):
    expected = send(request(PROMPT, 0))[1]["choices"][0]["message"]
    for before, after in (("\n", "\r\n"), ("\n", "\r"), ("", "")):
        body = request(PROMPT, 0)
        for said in body["messages"]:
            said["content"] = said["content"].replace(before, after) + "\n"
        status, answer = send(body)
        assert (status, answer["choices"][0]["message"]) == (200, expected)


def test_a_client_may_ask_for_one_model(send):
    status, model = send(b"", "GET", "/v1/models/known-agent")
    assert (status, model) == (200, send(b"", "GET", "/v1/models")[1]["data"][0])
    status, refusal = send(b"", "GET", "/v1/models/other/mind")
    assert (status, refusal["error"]["code"]) == (404, "model_not_found")


def test_usage_and_shape_are_those_of_a_chat_completion(send):
    status, answer = send(request(PROMPT, 0))
    assert status == 200
    assert answer["object"] == "chat.completion"
    assert answer["model"] == "known-agent"
    usage = answer["usage"]
    assert usage["completion_tokens"] == 1
    assert usage["prompt_tokens"] > 100
    assert usage["total_tokens"] == usage["prompt_tokens"] + 1
    (choice,) = answer["choices"]
    assert choice["finish_reason"] == "stop"
    assert choice["logprobs"] is None


# ---------------------------------------------------------------- streams and responses


@pytest.fixture(scope="module")
def client(served):
    openai = pytest.importorskip("openai")
    with openai.OpenAI(base_url=served.base_url, api_key="none", max_retries=0) as client:
        yield client


# ---------------------------------------------------------------- what it refuses


STRANGE = [{"role": "user", "content": "What is the capital of France?"}]
PICTURE = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]
SOUND = [{"role": "user", "content": [{"type": "input_audio"}]}]
VALUE, NAME, WORDS = "unsupported_value", "unknown_parameter", "unknown_prompt"


@pytest.mark.parametrize(
    ("changes", "status", "code", "words"),
    [
        ({"model": "gpt-5"}, 404, "model_not_found", "no model named 'gpt-5'. There are: known"),
        ({"model": ...}, 400, VALUE, "model"),
        ({"stream": "yes"}, 400, VALUE, "stream"),
        ({"stream_options": {"include_usage": True}}, 400, VALUE, "go with stream=true"),
        ({"stream": True, "stream_options": {"x": 1}}, 400, NAME, "stream_options.x"),
        ({"n": 2}, 400, VALUE, "cannot take n:"),
        ({"tools": [{"type": "function"}]}, 400, VALUE, "cannot take tools"),
        ({"top_k": 3}, 400, NAME, "cannot take top_k"),
        ({"reasoning_effort": "high"}, 400, VALUE, "does not reason"),
        ({"reasoning_effort": "huge"}, 400, VALUE, "no reasoning effort named"),
        ({"temperature": 3}, 400, VALUE, "temperature goes from 0 to 2; got 3"),
        ({"temperature": float("nan")}, 400, VALUE, "temperature goes from 0"),
        ({"max_tokens": 0}, 400, VALUE, "max_tokens goes from 1 to 100000000; got 0"),
        ({"seed": -1}, 400, VALUE, "seed goes from 0; got -1"),
        ({"seed": True}, 400, VALUE, "seed"),
        ({"seed": 1}, 400, WORDS, "Use the seed, settings and templates"),
        ({"top_logprobs": 3}, 400, None, "must be true for top_logprobs"),
        ({"logprobs": True, "top_logprobs": 21}, 400, VALUE, "less than or equal to 20; got '21'"),
        ({"messages": ...}, 400, VALUE, "messages"),
        ({"messages": []}, 400, VALUE, "at least 1 item"),
        ({"messages": [{"role": "tool", "content": "x"}]}, 400, VALUE, "messages.0.role"),
        ({"messages": [{"role": "user"}]}, 400, None, "A message has a content"),
        ({"messages": PICTURE}, 400, None, "comes as a data URL of a PNG"),
        ({"messages": SOUND}, 400, VALUE, "messages.0.content"),
        ({"messages": STRANGE}, 400, WORDS, "is not one of instrumental_learning"),
        ({"messages": STRANGE * 2}, 400, WORDS, "has one message; got 2"),
        ({"messages": STRANGE, "seed": None}, 400, WORDS, "is not one of"),
    ],
)
def test_a_bad_request_gets_the_status_and_one_clear_sentence(
    served, send, changes, status, code, words
):
    before = served.calls
    got, answer = send(request(PROMPT, **{"seed": 0, **changes}))
    error = answer["error"]
    assert got == status
    assert error["code"] == code
    assert error["type"] == "invalid_request_error"
    assert words in error["message"]
    assert len(error["message"]) < 400
    assert served.calls == before
    assert send(request(PROMPT, 0))[0] == 200  # on the same connection


@pytest.mark.parametrize(
    "body", [b"{", b"[]", b"[" * 100_000, b'{"model": "known-agent", "input": []}']
)
def test_what_is_no_request_is_refused(send, body):
    for path in (PATH, "/v1/responses"):
        status, answer = send(body, path=path)
        assert status == 400
        assert len(answer["error"]["message"]) < 400


def test_a_response_says_what_a_chat_completion_says_whole_and_in_a_stream(served, send, client):
    said = send(request(PROMPT, 0))[1]["choices"][0]["message"]["content"]
    words = [{"role": m.role, "content": m.content} for m in PROMPT.messages]
    asked = {"model": "known-agent", "input": words, "extra_body": {"seed": 0}}
    whole = client.responses.create(**asked, include=["message.output_text.logprobs"])
    assert whole.output_text == said
    assert whole.output[0].content[0].logprobs[0].token == said
    *_, last = client.responses.create(**asked, stream=True)
    assert last.response.output_text == said
    chat = client.chat.completions.create(
        model="known-agent", messages=words, seed=0, stream=True,
        stream_options={"include_usage": True},
    )  # fmt: skip
    *parts, end = chat
    assert "".join(part.choices[0].delta.content or "" for part in parts) == said
    assert end.usage.completion_tokens == 1


def test_a_key_is_asked_for_and_never_shown():
    with Served(ENVIRONMENT, LEARNER, seed=11, api_key=KEY) as served, connected(served) as send:
        assert KEY not in repr(served)
        for headers in ({}, {"authorization": "Bearer wrong"}, {"authorization": f"Bearer {KEY}x"}):
            for method, path in (("POST", PATH), ("GET", "/v1/models"), ("GET", "/v1/x")):
                status, answer = send(request(PROMPT, 0), method, path, headers)
                assert (status, answer["error"]["code"]) == (401, "invalid_api_key")
                assert KEY not in json.dumps(answer)
        assert send(request(PROMPT, 0), headers={"authorization": f"Bearer {KEY}"})[0] == 200
