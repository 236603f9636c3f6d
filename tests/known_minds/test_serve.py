"""The endpoint on the loopback: asked by the official package, and by clients of no manners."""

import asyncio
import http.client
import importlib
import json
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from itertools import pairwise
from math import exp, log

import numpy as np
import pytest

from knownminds.agents import Contaminants, RescorlaWagnerDual, play
from knownminds.environments import InstrumentalLearning, Message, Prompt, Turn, session_stream
from knownminds.llm_adapters import (
    Capabilities,
    Rejected,
    Sampling,
    Synthetic,
    run_sessions,
)
from knownminds.llm_adapters.known_minds.serve import Served

KEY = "sk-canary-0123456789abcdef"
LEARNER = RescorlaWagnerDual(alpha_positive=0.6, alpha_negative=0.2, beta=5.0, kappa=0.1)
ENVIRONMENT = InstrumentalLearning(n_visits=2)
module = importlib.import_module("knownminds.llm_adapters.known_minds.serve")
PATH = "/v1/chat/completions"


def prompts_of(environment, seed, i):
    """Prompts of session i of a study, in which action 0 is always taken, and their labels."""
    environment = type(environment)(**environment.settings)
    observation, _ = environment.reset(
        options={"design": environment.draw(session_stream(seed, i))}
    )
    prompts, turns = [], []
    while observation is not None:
        labels = environment.design.labels["machines"][observation["context"]]
        prompts.append((environment.render(observation, turns), labels, observation))
        following, reward, *_ = environment.step(0)
        turns.append(Turn(observation, 0, reward, environment.say(0, observation)))
        observation = following
    return prompts


def request(prompt, seed=None, **changes):
    messages = [{"role": m.role, "content": m.content} for m in prompt.messages]
    body = {"model": "known-mind", "messages": messages, "seed": seed, **changes}
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


def text_of(answer):
    return answer["choices"][0]["message"]["content"]


@pytest.fixture(scope="module")
def served():
    with Served(ENVIRONMENT, LEARNER, seed=11) as server:
        yield server


@pytest.fixture(scope="module")
def send(served):
    with connected(served) as send:
        yield send


def works(served):
    """Say whether the server still answers, on a connection of its own."""
    with connected(served) as send:
        status, answer = send(request(PROMPT, 0))
    return status == 200 and text_of(answer) in LABELS


def through_the_package(environment, n, seed, capabilities=None, **options):
    pytest.importorskip("openai")
    from knownminds.llm_adapters.providers.openai import OpenAI

    async def run(url):
        adapter = OpenAI("known-mind", base_url=url, key_variable=None, capabilities=capabilities)
        try:
            return await run_sessions(adapter, environment, n, seed, pause=0.0, **options)
        finally:
            await adapter.close()

    with Served(environment, LEARNER, seed=11, address=(3,)) as served:
        trials = asyncio.run(run(served.base_url))
        assert served.calls == len(trials)
    return trials


# ---------------------------------------------------------------- the mind behind it


def test_a_prompt_of_another_session_is_not_taken_for_a_server_that_heeds_no_seed():
    pytest.importorskip("openai")
    from knownminds.llm_adapters.providers.openai import OpenAI

    prompt = next(
        prompt
        for seed in range(12, 40)
        for prompt, labels, _ in prompts_of(ENVIRONMENT, seed, 0)[1:]
        if not set(labels) & set(LABELS)
    )

    async def run(url):
        adapter = OpenAI("known-mind", base_url=url, key_variable=None)
        try:
            return await adapter.complete(prompt, settings=Sampling(seed=0))
        finally:
            await adapter.close()

    refused = pytest.raises(
        Rejected, match=r"does not take the prompt .400.: .* the seed, settings"
    )
    with Served(ENVIRONMENT, LEARNER, seed=11) as served, refused:
        asyncio.run(run(served.base_url))


@pytest.mark.parametrize(
    "factors", [{}, {"history": "chat", "reasoning": "chain_of_thought"}, {"history": "chat"}]
)
def test_sessions_through_the_official_package_are_those_that_play_lives(factors):
    environment = InstrumentalLearning(n_visits=6, **factors)
    spoken = through_the_package(environment, 3, 11, address=(3,)).frame
    played = [play(LEARNER, environment, 11, 3, i).frame for i in range(3)]
    for column in ("subject", "trial", "context", "first", "action", "reward"):
        assert spoken[column].tolist() == [value for one in played for value in one[column]]
    assert set(spoken["outcome"]) == {"ok"}
    assert set(spoken["model_served"]) == {"known-mind"}
    assert (
        spoken["action"].tolist() != play(LEARNER, environment, 12, 3, 0).frame["action"].tolist()
    )


@pytest.mark.parametrize("history", ["prompt", "chat"])
def test_a_pipeline_without_seeds_meets_the_same_policy(history):
    environment = InstrumentalLearning(n_visits=6, history=history)
    # The study is one that the server does not know.
    frame = through_the_package(environment, 10, 99, Capabilities(seed=False)).frame
    deviation = variance = 0.0
    for _, session in frame.groupby("subject"):
        agent = RescorlaWagnerDual.from_theta(LEARNER.theta)
        for trial in session.to_dict("records"):
            p = agent.probabilities({"context": trial["context"]})[1]
            # Weighted by its log-odds: a mind that is more or less decided than this one differs.
            weight = log(p / (1 - p))
            deviation += weight * (trial["action"] - p)
            variance += weight**2 * p * (1 - p)
            agent.learn({"context": trial["context"]}, trial["action"], trial["reward"])
    assert abs(deviation) < 4 * np.sqrt(variance)
    assert frame["outcome"].eq("ok").all()


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


def test_seeds_of_a_client_can_be_taken_for_noise():
    prompt, labels, _ = prompts_of(ENVIRONMENT, 99, 5)[3]
    with (
        Served(ENVIRONMENT, LEARNER, seed=11, seed_is_session=False) as served,
        connected(served) as send,
    ):
        texts = [text_of(send(request(prompt, seed))[1]) for seed in range(40)]
        again = [text_of(send(request(prompt, seed))[1]) for seed in range(40)]
    assert texts == again
    assert set(texts) == set(labels)


@pytest.mark.parametrize(("reasoning", "wordy"), [("none", "repaired"), ("step_back", "ok")])
def test_dials_strike_at_their_rates(reasoning, wordy):
    environment = InstrumentalLearning(n_visits=1, reasoning=reasoning)
    rates = {"refusal": 0.05, "malformed": 0.1, "truncation": 0.1}
    dials = Contaminants(**rates, verbosity=0.3)
    n = 600
    seen = {"refused": 0, "malformed": 0, "truncated": 0, "wordy": 0, "plain": 0}
    with (
        Served(environment, LEARNER, seed=11, contaminants=dials) as served,
        connected(served) as send,
    ):
        for i in range(n):
            prompt, _, observation = prompts_of(environment, 11, i)[0]
            environment.reset(options={"design": environment.draw(session_stream(11, i))})
            choice = send(request(prompt, i))[1]["choices"][0]
            text = choice["message"]["content"]
            answer = environment.parse(text, observation)
            if choice["finish_reason"] == "length":
                seen["truncated"] += 1
            elif answer.action is None:
                seen[answer.outcome] += 1
            else:
                plain = text == environment.say(answer.action, observation)
                assert answer.outcome == ("ok" if plain else wordy)
                seen["plain" if plain else "wordy"] += 1
    shares = dict(zip(("refused", "malformed", "truncated"), rates.values(), strict=True))
    shares |= {"wordy": 0.75 * 0.3, "plain": 0.75 * 0.7}
    for name, share in shares.items():  # four standard errors of a share of n
        assert abs(seen[name] / n - share) < 4 * np.sqrt(share * (1 - share) / n), name


# ---------------------------------------------------------------- what a client may ask for


def test_log_probabilities_over_the_letters_sum_to_one(served):
    openai = pytest.importorskip("openai")
    mind = Synthetic(LEARNER, ENVIRONMENT, 11)
    with openai.OpenAI(base_url=served.base_url, api_key="none", max_retries=0) as client:
        for prompt, labels, _ in prompts_of(ENVIRONMENT, 11, 0):
            for seed in (0, openai.omit):
                answer = client.chat.completions.create(
                    model="known-mind",
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


def test_what_cannot_be_is_told_in_a_number_that_json_has(served):
    certain = RescorlaWagnerDual(alpha_positive=1.0, alpha_negative=1.0, beta=5000.0, kappa=0.0)
    with Served(ENVIRONMENT, certain, seed=11) as other, connected(other) as send:
        told = [
            send(request(prompt, 0, logprobs=True, top_logprobs=2))[1]["choices"][0]["logprobs"]
            for prompt, *_ in prompts_of(ENVIRONMENT, 11, 0)
        ]
    lowest = min(entry["logprob"] for one in told for entry in one["content"][0]["top_logprobs"])
    assert lowest == -9999.0


def test_usage_and_shape_are_those_of_a_chat_completion(send):
    status, answer = send(request(PROMPT, 0))
    assert status == 200
    assert answer["object"] == "chat.completion"
    assert answer["model"] == "known-mind"
    usage = answer["usage"]
    assert usage["completion_tokens"] == 1
    assert usage["prompt_tokens"] > 100
    assert usage["total_tokens"] == usage["prompt_tokens"] + 1
    (choice,) = answer["choices"]
    assert choice["finish_reason"] == "stop"
    assert choice["logprobs"] is None


def test_models_and_health_are_told(served, send):
    before = served.calls
    assert [model["id"] for model in send(b"", "GET", "/v1/models")[1]["data"]] == ["known-mind"]
    assert send(b"", "GET", "/v1/models/known-mind")[1]["object"] == "model"
    assert send(b"", "GET", "/v1/models/gpt")[0] == 404
    send(request(PROMPT, 0))
    send(request(PROMPT, 0, n=2))
    assert send(b"", "GET", "/health") == (200, {"status": "ok", "calls": before + 1})


def test_texts_in_parts_and_messages_of_a_system_are_read(send):
    plain = text_of(send(request(PROMPT, 0))[1])
    whole = PROMPT.messages[0].content
    parts = [{"type": "text", "text": whole[:40]}, {"type": "text", "text": whole[40:]}]
    for role in ("system", "developer"):
        messages = [{"role": role, "content": "Be brief."}, {"role": "user", "content": parts}]
        assert text_of(send(request(PROMPT, 0, messages=messages))[1]) == plain


def test_settings_that_change_nothing_are_taken(send):
    plain = text_of(send(request(PROMPT, 0))[1])
    changes = {
        "n": 1, "stream": False, "presence_penalty": 0.0, "logit_bias": {}, "tools": None,
        "response_format": {"type": "text"}, "user": "me", "temperature": 1, "top_p": 1,
        "max_completion_tokens": 10, "reasoning_effort": "none", "stop": None,
    }  # fmt: skip
    assert text_of(send(request(PROMPT, 0, **changes))[1]) == plain


def test_limits_and_stops_cut_text_and_tokens():
    environment = InstrumentalLearning(n_visits=1, reasoning="chain_of_thought")
    prompt, *_ = prompts_of(environment, 11, 0)[0]
    asked = {"logprobs": True, "top_logprobs": 0}
    with Served(environment, LEARNER, seed=11) as served, connected(served) as send:

        def choice(**changes):
            return send(request(prompt, 0, **asked, **changes))[1]["choices"][0]

        for name in ("max_tokens", "max_completion_tokens"):
            short = choice(**{name: 4})
            assert (short["message"]["content"], short["finish_reason"]) == (
                "I go by what",
                "length",
            )
            assert len(short["logprobs"]["content"]) == 4
        cut = choice(stop=["nothing of it", "two machines", "\n"])
        assert (cut["message"]["content"], cut["finish_reason"]) == ("I go by what these ", "stop")
        assert [t["token"] for t in cut["logprobs"]["content"]][-1] == " these"
        assert choice(stop="???") == choice()
        assert choice(temperature=0)["message"]["content"]


# ---------------------------------------------------------------- streams and responses


def as_input(prompt):
    return [{"role": m.role, "content": m.content} for m in prompt.messages]


@pytest.fixture(scope="module")
def client(served):
    openai = pytest.importorskip("openai")
    with openai.OpenAI(base_url=served.base_url, api_key="none", max_retries=0) as client:
        yield client


@pytest.mark.parametrize("changes", [{}, {"logprobs": True, "top_logprobs": 2}])
@pytest.mark.parametrize("usage", [True, False])
def test_a_stream_says_token_for_token_what_is_said_in_one_piece(served, client, usage, changes):
    asked = {"model": "known-mind", "messages": as_input(PROMPT), "seed": 0, **changes}
    whole = client.chat.completions.create(**asked)
    before = served.calls
    told = {"stream_options": {"include_usage": True}} if usage else {}
    chunks = list(client.chat.completions.create(**asked, stream=True, **told))
    assert served.calls == before + 1
    assert {chunk.object for chunk in chunks} == {"chat.completion.chunk"}
    assert len({chunk.id for chunk in chunks}) == 1
    if usage:
        last = chunks.pop()
        assert (last.choices, last.usage) == ([], whole.usage)
    choices = [chunk.choices[0] for chunk in chunks]
    assert choices[0].delta.role == "assistant"
    assert "".join(c.delta.content or "" for c in choices) == whole.choices[0].message.content
    ends = [c.finish_reason for c in choices]
    assert ends == [*[None] * (len(ends) - 1), "stop"]
    if changes:
        tokens = [token for c in choices for token in (c.logprobs.content if c.logprobs else [])]
        assert tokens == whole.choices[0].logprobs.content


def test_a_stream_that_is_left_in_the_middle_harms_nobody(served, client):
    asked = {"model": "known-mind", "messages": as_input(PROMPT), "seed": 0, "stream": True}
    stream = client.chat.completions.create(**asked)
    next(stream)
    stream.close()
    assert works(served)


LIKELIHOOD = {"include": ["message.output_text.logprobs"], "top_logprobs": 2}


def test_responses_say_what_chat_completions_say(served, client):
    for prompt, *_ in prompts_of(ENVIRONMENT, 11, 0)[:3]:
        chat = client.chat.completions.create(
            model="known-mind",
            messages=[{"role": "system", "content": "Be brief."}, *as_input(prompt)],
            logprobs=True,
            top_logprobs=2,
        )
        text = prompt.messages[0].content
        forms = [text, as_input(prompt), [{"role": "user", "content": [
            {"type": "input_text", "text": text[:9]}, {"type": "input_text", "text": text[9:]},
        ]}]]  # fmt: skip
        for form in forms:
            response = client.responses.create(
                model="known-mind", input=form, instructions="Be brief.", **LIKELIHOOD
            )
            assert response.output_text == chat.choices[0].message.content
            assert (response.status, response.model) == ("completed", "known-mind")
            assert response.usage.output_tokens == chat.usage.completion_tokens
            own = response.output[0].content[0].logprobs
            assert [(t.token, t.logprob) for t in own] == [
                (t.token, t.logprob) for t in chat.choices[0].logprobs.content
            ]
    # and of a session that is named, as its own
    seeded = client.responses.create(
        model="known-mind", input=as_input(PROMPT), extra_body={"seed": 0}, store=False
    )
    assert seeded.output_text == LABELS[play(LEARNER, ENVIRONMENT, 11, 0).frame["action"].iloc[0]]


def test_a_response_comes_as_a_stream_of_events(client):
    asked = {"model": "known-mind", "input": as_input(PROMPT), **LIKELIHOOD}
    whole = client.responses.create(**asked)
    with client.responses.stream(**asked) as stream:  # which holds the events' order to account
        events = list(stream)
        final = stream.get_final_response()
    assert [event.type for event in events if "delta" not in event.type] == [
        "response.created", "response.in_progress", "response.output_item.added",
        "response.content_part.added", "response.output_text.done", "response.content_part.done",
        "response.output_item.done", "response.completed",
    ]  # fmt: skip
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert final.output_text == whole.output_text
    deltas = [event for event in events if event.type == "response.output_text.delta"]
    assert "".join(event.delta for event in deltas) == whole.output_text
    told = [token.token for event in deltas for token in event.logprobs]
    assert told == [token.token for token in whole.output[0].content[0].logprobs]


def test_a_response_that_is_cut_off_is_incomplete():
    openai = pytest.importorskip("openai")
    environment = InstrumentalLearning(n_visits=1, reasoning="chain_of_thought")
    prompt, *_ = prompts_of(environment, 11, 0)[0]
    asked = {"model": "known-mind", "input": as_input(prompt), "max_output_tokens": 4}
    with (
        Served(environment, LEARNER, seed=11) as served,
        openai.OpenAI(base_url=served.base_url, api_key="none", max_retries=0) as client,
    ):
        response = client.responses.create(**asked, text={"format": {"type": "text"}})
        assert (response.status, response.output_text) == ("incomplete", "I go by what")
        assert response.incomplete_details.reason == "max_output_tokens"
        *_, last = client.responses.create(**asked, stream=True)
        assert last.type == "response.incomplete"
        *_, end = client.chat.completions.create(
            model="known-mind", messages=as_input(prompt), max_tokens=4, stream=True
        )
        assert end.choices[0].finish_reason == "length"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"previous_response_id": "resp_1"}, "cannot heed previous_response_id"),
        ({"background": True}, "cannot heed background"),
        ({"messages": []}, "cannot heed messages"),
        ({"tools": [{"type": "web_search"}]}, "cannot heed tools"),
        ({"text": {"format": {"type": "json_object"}}}, "cannot heed response_format"),
        ({"include": ["file_search_call.results"]}, "include is a list of"),
        ({"reasoning": {"effort": "high"}}, "does not reason"),
        ({"reasoning": "high"}, "reasoning holds effort and summary; got high"),
        ({"input": ...}, "a list of messages, at least one"),
        ({"input": [{"type": "function_call_output"}]}, "message 0 is"),
        ({"input": [{"role": "user", "content": [{"type": "input_file"}]}]}, "the type 'input_f"),
    ],
)
def test_a_response_that_cannot_be_given_is_refused(send, changes, words):
    body = {"model": "known-mind", "input": as_input(PROMPT), **changes}
    body = {name: value for name, value in body.items() if value is not ...}
    status, answer = send(body, path="/v1/responses")
    assert status == 400
    assert words in answer["error"]["message"]


# ---------------------------------------------------------------- what it refuses


STRANGE = [{"role": "user", "content": "What is the capital of France?"}]
PICTURE = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]
SOUND = [{"role": "user", "content": [{"type": "input_audio"}]}]


@pytest.mark.parametrize(
    ("changes", "status", "code", "words"),
    [
        ({"model": "gpt-5"}, 404, "model_not_found", "no model named 'gpt-5'. There are: known"),
        ({"model": ...}, 400, None, "names a model; got None"),
        ({"model": ["known-mind"]}, 400, None, "names a model"),
        ({"stream": "yes"}, 400, None, "stream is true or false; got 'yes'"),
        ({"stream_options": {"include_usage": True}}, 400, None, "go with stream=true"),
        ({"stream": True, "stream_options": {"x": 1}}, 400, None, "hold include_usage, true or"),
        ({"n": 2}, 400, "unsupported_value", "one answer here; got n=2"),
        ({"tools": [{"type": "function"}]}, 400, "unsupported_value", "cannot heed tools"),
        ({"presence_penalty": 0.5}, 400, "unsupported_value", "cannot heed presence_penalty"),
        ({"top_k": 3}, 400, "unknown_parameter", "Unrecognized request argument supplied: top_k"),
        ({"reasoning_effort": "high"}, 400, "unsupported_value", "does not reason"),
        ({"reasoning_effort": "huge"}, 400, "unsupported_value", "no reasoning effort named"),
        ({"temperature": 3}, 400, "unsupported_value", "temperature goes from 0 to 2; got 3"),
        ({"temperature": "hot"}, 400, None, "temperature is a number; got 'hot'"),
        ({"temperature": float("nan")}, 400, "unsupported_value", "temperature goes from 0"),
        ({"max_tokens": 0}, 400, "unsupported_value", "max_tokens goes from 1 to 100000000; got 0"),
        ({"max_tokens": 1.5}, 400, None, "max_tokens is a whole number; got '1.5'"),
        ({"seed": "one"}, 400, None, "seed is a whole number; got 'one'"),
        ({"seed": -1}, 400, "unsupported_value", "seed goes from 0; got -1"),
        ({"seed": True}, 400, None, "seed is a whole number"),
        ({"seed": 1}, 400, "invalid_prompt", "Use the seed, settings and templates"),
        ({"top_logprobs": 3}, 400, None, "must be true for top_logprobs"),
        ({"logprobs": True, "top_logprobs": 21}, 400, None, "goes from 0 to 20; got 21"),
        ({"logprobs": 3}, 400, None, "logprobs is true or false"),
        ({"stop": [1]}, 400, None, "stop is a text or a list of texts"),
        ({"messages": ...}, 400, None, "a list of messages, at least one"),
        ({"messages": []}, 400, None, "a list of messages, at least one"),
        ({"messages": ["hello"]}, 400, None, "message 0 is 'hello'"),
        ({"messages": [{"role": "tool", "content": "x"}]}, 400, None, "has a role (system,"),
        ({"messages": [{"role": "user"}]}, 400, None, "message 0 has 'None'"),
        ({"messages": PICTURE}, 400, None, "comes as a data URL of a PNG"),
        ({"messages": SOUND}, 400, None, "and pictures of the user; message 0 holds a part of"),
        ({"messages": STRANGE}, 400, "invalid_prompt", "is not one of instrumental_learning"),
        ({"messages": STRANGE * 2}, 400, "invalid_prompt", "has one message; got 2"),
        ({"messages": STRANGE, "seed": None}, 400, "invalid_prompt", "is not one of"),
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
    ("content", "words"),
    [
        (b"", "is JSON; this one is not"),
        (b'{"model": "known-mi', "is JSON; this one is not"),
        (b"\xff\xfe{}", "is JSON; this one is not"),
        (b"[" * 100_000, "is JSON; this one is not"),
        (b"[1, 2]", "is a JSON object; got [1, 2]"),
    ],
)
def test_a_body_that_is_no_object_is_refused(send, content, words):
    status, answer = send(content)
    assert status == 400
    assert words in answer["error"]["message"]
    assert send(request(PROMPT, 0))[0] == 200


class Overflowing(RescorlaWagnerDual):
    """Cannot compute its choice on the second trial."""

    def action_probabilities(self, observation):
        if observation["trial"] == 1:
            raise OverflowError("math range error")
        return super().action_probabilities(observation)


def test_a_mind_that_fails_is_told_and_the_server_goes_on():
    first, second, third = (prompt for prompt, *_ in prompts_of(ENVIRONMENT, 11, 0)[:3])
    agent = Overflowing.from_theta(LEARNER.theta)
    with Served(ENVIRONMENT, agent, seed=11) as served, connected(served) as send:
        assert send(request(first, 0))[0] == 200
        status, answer = send(request(second, 0))
        assert (status, answer["error"]["type"]) == (500, "server_error")
        assert "could not work out its choice: math range error" in answer["error"]["message"]
        told = send(request(third, 0, logprobs=True, top_logprobs=2))
    with Served(ENVIRONMENT, LEARNER, seed=11) as served, connected(served) as send:
        assert told == send(request(third, 0, logprobs=True, top_logprobs=2))


def test_other_paths_and_methods_are_refused(send):
    assert send({}, path="/v1/completions")[0] == 404
    assert send(b"", "GET")[0] == 405
    assert send({}, path="/v1/models")[0] == 405
    assert send(request(PROMPT, 0), path="/chat/completions?x=1")[0] == 200


def raw(served, content, wait=True):
    """Send bytes and return all that comes until the server closes the connection."""
    with socket.create_connection(("127.0.0.1", served.port), timeout=10) as wire:
        wire.sendall(content)
        came = b""
        while wait and (part := wire.recv(65536)):
            came += part
    return came


BODY = json.dumps(request(PROMPT, 0)).encode()
HEAD = b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n"


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (b"hello\r\n\r\n", 400),
        (b"GET /health HTTP/2\r\nhost: x\r\n\r\n", 400),
        (b"GET /health HTTP/1.1\r\n\r\n", 400),
        (HEAD + b"no colon\r\n\r\n", 400),
        (HEAD + b"content-length: many\r\n\r\n", 400),
        (HEAD + b"content-length: -3\r\n\r\n", 400),
        (HEAD + b"content-length: 3\r\ncontent-length: 4\r\n\r\n", 400),
        (HEAD + b"content-length: 99999999999\r\n\r\n", 413),
        (HEAD + b"transfer-encoding: chunked\r\n\r\nzz\r\n", 400),
        (HEAD + b"x: " + b"y" * 70_000, 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 70_000, 400),
    ],
)
def test_what_is_not_a_request_is_refused_and_the_connection_closed(served, content, status, capfd):
    came = raw(served, content)
    assert came.startswith(b"HTTP/1.1 %d " % status)
    assert b"connection: close" in came.lower()
    assert came.partition(b"\r\n\r\n")[2]
    assert works(served)
    assert capfd.readouterr().err == ""


def test_a_client_that_leaves_in_the_middle_harms_nobody(served):
    raw(served, HEAD + b"content-length: 1000\r\n\r\n" + BODY[:100], wait=False)
    raw(served, HEAD[:20], wait=False)
    assert works(served)


def test_requests_in_a_row_or_in_small_pieces_are_answered_in_order(served):
    one = HEAD + b"content-length: %d\r\n\r\n" % len(BODY) + BODY
    last = one.replace(b"host: x", b"host: x\r\nConnection: close")
    health = b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n"
    came = raw(served, one + health + one + last)
    assert [part[:3] for part in came.split(b"HTTP/1.1 ")[1:]] == [b"200"] * 4
    assert came.count(b'"status": "ok"') == 1
    with socket.create_connection(("127.0.0.1", served.port), timeout=10) as wire:
        wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for begin, end in pairwise((0, 1, 30, len(last) - len(BODY) - 2, len(last) - 300, None)):
            wire.sendall(last[begin:end])
            time.sleep(0.02)  # so that the pieces come one by one
        assert wire.recv(65536).startswith(b"HTTP/1.1 200 OK")
    # HTTP/1.0 closes unless asked not to.
    assert raw(served, last.replace(b"HTTP/1.1", b"HTTP/1.0")).startswith(b"HTTP/1.1 200")


def test_a_client_that_waits_to_be_told_to_continue_is_told(served):
    with socket.create_connection(("127.0.0.1", served.port), timeout=10) as wire:
        wire.sendall(HEAD + b"Expect: 100-continue\r\ncontent-length: %d\r\n\r\n" % len(BODY))
        assert wire.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        wire.sendall(BODY)
        assert wire.recv(65536).startswith(b"HTTP/1.1 200 OK")


def test_a_key_is_asked_for_and_never_shown():
    with (
        Served(ENVIRONMENT, LEARNER, seed=11, api_key=KEY) as served,
        connected(served) as send,
    ):
        assert KEY not in repr(served)
        for headers in ({}, {"authorization": "Bearer wrong"}, {"authorization": f"Bearer {KEY}x"}):
            for method, path in (("POST", PATH), ("GET", "/v1/models"), ("GET", "/v1/x")):
                status, answer = send(request(PROMPT, 0), method, path, headers)
                assert (status, answer["error"]["code"]) == (401, "invalid_api_key")
                assert KEY not in json.dumps(answer)
        assert send(request(PROMPT, 0), headers={"authorization": f"Bearer {KEY}"})[0] == 200


def test_the_official_package_and_our_adapter_tell_the_errors_apart(monkeypatch):
    openai = pytest.importorskip("openai")
    from knownminds.llm_adapters import NoKey, UnknownModel
    from knownminds.llm_adapters.providers.openai import OpenAI

    monkeypatch.setenv("SOME_KEY", KEY + "x")
    strange = Prompt((Message("user", "What is the capital of France?"),))

    def ask(url, model):
        async def once():
            adapter = OpenAI(model, base_url=url, key_variable="SOME_KEY")
            try:
                await adapter.complete(strange, settings=Sampling(seed=1))
            finally:
                await adapter.close()

        asyncio.run(once())

    with Served(ENVIRONMENT, LEARNER, seed=11, api_key=KEY) as served:
        with pytest.raises(NoKey):
            ask(served.base_url, "known-mind")
        monkeypatch.setenv("SOME_KEY", KEY)
        with pytest.raises(UnknownModel):
            ask(served.base_url, "gpt-5")
        with pytest.raises(Rejected):
            ask(served.base_url, "known-mind")
        with openai.OpenAI(base_url=served.base_url, api_key=KEY, max_retries=0) as client:
            assert [model.id for model in client.models.list()] == ["known-mind"]
            for stream in (True, False):
                with pytest.raises(openai.BadRequestError, match="is not one of"):
                    client.chat.completions.create(
                        model="known-mind", messages=STRANGE, stream=stream
                    )
                with pytest.raises(openai.BadRequestError, match="is not one of"):
                    client.responses.create(
                        model="known-mind", input=STRANGE[0]["content"], stream=stream
                    )


# ---------------------------------------------------------------- as a server


@pytest.mark.parametrize("seeded", [True, False])
def test_many_clients_at_once_get_the_answers_of_one(served, seeded):
    n = 64
    mind = Synthetic(LEARNER, ENVIRONMENT, 11)
    sessions = [prompts_of(ENVIRONMENT, 11, i) for i in range(n)]

    async def one(i, ready):
        reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
        await ready.wait()  # until all are connected
        texts = []
        for prompt, *_ in sessions[i]:
            body = json.dumps(request(prompt, i if seeded else None)).encode()
            writer.write(HEAD + b"content-length: %d\r\n\r\n" % len(body) + body)
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0])
            texts.append(text_of(json.loads(await reader.readexactly(length))))
        writer.close()
        await writer.wait_closed()
        return texts

    async def together():
        ready = asyncio.Barrier(n)
        return await asyncio.gather(*(one(i, ready) for i in range(n)))

    alone = [
        [mind.answer(prompt, Sampling(seed=i if seeded else None)).text for prompt, *_ in session]
        for i, session in enumerate(sessions)
    ]
    assert asyncio.run(together()) == alone


def test_a_closed_server_lets_go_of_its_connections_and_its_port(monkeypatch):
    monkeypatch.setattr(module, "_PATIENCE", 60.0)  # which it must not need
    begun = time.monotonic()
    served = Served(ENVIRONMENT, LEARNER, seed=11).start()
    port = served.port
    with socket.create_connection(("127.0.0.1", port), timeout=10) as idle:
        with connected(served) as send:
            assert send(request(PROMPT, 0))[0] == 200
        served.close()
        assert time.monotonic() - begun < 30.0
        assert idle.recv(10) == b""
    served.close()  # a second time changes nothing
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=10)
    with Served(ENVIRONMENT, LEARNER, seed=11, port=port) as again:
        assert again.port == port
        assert works(again)
        with pytest.raises(ValueError, match="starts once"):
            again.start()


def test_a_port_that_cannot_be_had_is_told(served):
    with pytest.raises(ValueError, match=f"port {served.port} cannot be had"):
        Served(ENVIRONMENT, LEARNER, seed=11, port=served.port)
    with pytest.raises(ValueError, match="Ports go from 0 to 65535; got 70000"):
        Served(ENVIRONMENT, LEARNER, seed=11, port=70_000)
    with pytest.raises(ValueError, match="Seeds and addresses"):
        Served(ENVIRONMENT, LEARNER, seed=-1)


def test_addresses_are_those_a_client_can_use():
    with Served(ENVIRONMENT, LEARNER, seed=11, host="::1") as served:
        assert served.base_url == f"http://[::1]:{served.port}/v1"
    assert repr(served) == f"Served('known-mind', base_url='{served.base_url}')"


PROGRAM = """
from knownminds.agents import RescorlaWagnerDual
from knownminds.environments import InstrumentalLearning
from knownminds.llm_adapters.known_minds.serve import serve

agent = RescorlaWagnerDual(alpha_positive=0.6, alpha_negative=0.2, beta=5.0, kappa=0.1)
told = lambda served: print(served.port, flush=True)
print(serve(InstrumentalLearning(n_visits=2), agent, seed=11, ready=told), flush=True)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_blocking_form_answers_until_it_is_interrupted(number):
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            port = int(process.stdout.readline())
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
            connection.request("POST", PATH, BODY, {"authorization": f"Bearer {KEY}"})
            assert connection.getresponse().status == 200
            process.send_signal(number)  # while the connection is still open
            out, err = process.communicate(timeout=20)
            connection.close()
        finally:
            process.kill()
    assert (process.returncode, out, err) == (0, "1\n", "")
