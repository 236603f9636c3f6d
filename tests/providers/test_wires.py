"""What each wire sends and reads; what all adapters promise is in the acceptance tests."""

import asyncio
import json

import httpx2
import pytest

from knownminds.environments import Message, Prompt
from knownminds.llm_adapters import Failed, Sampling, Usage, load

HELLO = Prompt((Message("system", "Play."), Message("user", "E or N?")))
SYSTEM = {"type": "text", "text": "Play.", "cache_control": {"type": "ephemeral"}}
TALK = [{"role": "system", "content": "Play."}, {"role": "user", "content": "E or N?"}]
FOR_CLAUDE = {
    "model": "m",
    "max_tokens": 9,
    "system": [SYSTEM],
    "messages": [{"role": "user", "content": "E or N?"}],
}
FOR_GEMINI = {
    "contents": [{"role": "user", "parts": [{"text": "E or N?"}]}],
    "systemInstruction": {"parts": [{"text": "Play."}]},
}


def adapter_of(wire, answer=None, model="m", **options):
    """An adapter whose calls are answered with this content, and what it was asked."""
    asked = []

    def transport(request):
        asked.append(request)
        return httpx2.Response(*(answer if isinstance(answer, tuple) else (200,)), json=answer)

    options = {"transport": httpx2.MockTransport(transport), "key_variable": None, **options}
    return load(wire)(model, **options), asked


def ask(adapter, settings=None, prompt=HELLO):
    return asyncio.run(adapter.complete(prompt, settings=settings or Sampling(max_tokens=9)))


@pytest.mark.parametrize(
    ("wire", "settings", "sent"),
    [
        (
            "openai",
            Sampling(
                temperature=0.5, top_p=0.9, max_tokens=9, seed=4, reasoning_effort="low",
                top_log_probabilities=2, verbosity="high",
            ),
            {
                "temperature": 0.5, "top_p": 0.9, "max_completion_tokens": 9, "seed": 4,
                "reasoning_effort": "low", "logprobs": True, "top_logprobs": 2,
                "verbosity": "high",
            },
        ),
        ("openai", Sampling(top_log_probabilities=0), {"logprobs": True, "top_logprobs": 0}),
        ("groq", Sampling(max_tokens=9), {"max_tokens": 9}),
        (
            "anthropic",
            Sampling(temperature=0.0, top_p=0.9, max_tokens=9),
            {"temperature": 0.0, "top_p": 0.9},
        ),
        (
            "anthropic",
            Sampling(max_tokens=9, reasoning_effort="low"),
            {"thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}},
        ),
        (
            "anthropic",
            Sampling(max_tokens=9, reasoning_effort="none"),
            {"thinking": {"type": "disabled"}},
        ),
        (
            "google",
            Sampling(
                temperature=0.5, top_p=0.9, max_tokens=9, seed=4, top_log_probabilities=2
            ),
            {
                "temperature": 0.5, "topP": 0.9, "maxOutputTokens": 9, "seed": 4,
                "responseLogprobs": True, "logprobs": 2,
            },
        ),
        (
            "google",
            Sampling(reasoning_effort="high"),
            {"thinkingConfig": {"thinkingLevel": "HIGH"}},
        ),
        ("google", Sampling(), {}),
    ],
)  # fmt: skip
def test_settings_are_sent_by_the_servers_names_and_no_others(wire, settings, sent):
    adapter, _ = adapter_of(wire)
    expected = {
        "anthropic": {**FOR_CLAUDE, **sent},
        "google": {**FOR_GEMINI, "generationConfig": sent},
    }.get(wire, {"model": "m", "messages": TALK, **sent})
    assert adapter.request(HELLO, settings) == expected


@pytest.mark.parametrize(("effort", "budget"), [("none", 0), ("low", 1024), ("high", 24576)])
def test_gemini_2_5_reasons_by_a_budget_of_tokens(effort, budget):
    adapter, _ = adapter_of("google", model="gemini-2.5-flash")
    sent = adapter.request(HELLO, Sampling(reasoning_effort=effort))["generationConfig"]
    assert sent == {"thinkingConfig": {"thinkingBudget": budget}}


def test_each_wire_goes_where_it_should_with_its_headers(monkeypatch):
    key = "sk-canary-0123456789abcdef"
    monkeypatch.setenv("SOME_KEY", key)
    for wire, url, headers in (
        (
            "openai",
            "https://api.openai.com/v1/chat/completions",
            {"authorization": f"Bearer {key}"},
        ),
        (
            "anthropic",
            "https://api.anthropic.com/v1/messages",
            {"x-api-key": key, "anthropic-version": "2023-06-01"},
        ),
        (
            "google",
            "https://generativelanguage.googleapis.com/v1beta/models/m:generateContent",
            {"x-goog-api-key": key},
        ),
    ):
        adapter, asked = adapter_of(wire, {}, key_variable="SOME_KEY")
        with pytest.raises(Failed):
            ask(adapter)
        assert str(asked[0].url) == url
        assert {name: asked[0].headers[name] for name in headers} == headers


def test_a_key_does_not_go_to_another_host(monkeypatch):
    monkeypatch.setenv("SOME_KEY", "sk-canary-0123456789abcdef")
    adapter, asked = adapter_of("google", {}, key_variable="SOME_KEY")
    asyncio.run(adapter.call("POST", "https://elsewhere.example/upload", content=b""))
    assert "x-goog-api-key" not in asked[0].headers


CHAT = {"choices": [{"message": {"content": "E"}, "finish_reason": None}]}
CLAUDE = {"content": [{"type": "text", "text": "E"}]}
GEMINI = {"candidates": [{"content": {"parts": [{"text": "E"}]}}]}


@pytest.mark.parametrize(
    ("wire", "content", "reasons"),
    [
        ("anthropic", lambda reason: {**CLAUDE, "stop_reason": reason},
         {"end_turn": "stop", "stop_sequence": "stop", "max_tokens": "length",
          "model_context_window_exceeded": "length", "refusal": "refusal",
          "pause_turn": "pause_turn", None: ""}),
        ("google", lambda reason: {"candidates": [{**GEMINI["candidates"][0],
                                                   "finishReason": reason}]},
         {"STOP": "stop", "MAX_TOKENS": "length", "SAFETY": "refusal", "SPII": "refusal",
          "RECITATION": "recitation", None: ""}),
        ("openai", lambda reason: {"choices": [{**CHAT["choices"][0], "finish_reason": reason}]},
         {"stop": "stop", "length": "length", "content_filter": "refusal", None: ""}),
    ],
)  # fmt: skip
def test_why_an_answer_ended_is_told_in_one_language(wire, content, reasons):
    for reason, expected in reasons.items():
        adapter, _ = adapter_of(wire, content(reason))
        reply = ask(adapter)
        assert (reply.text, reply.finish_reason) == ("E", expected)
        assert (reply.model_served, reply.usage) == ("", Usage())


def test_lines_that_a_proxy_sends_while_it_waits_are_no_part_of_an_answer():
    adapter, _ = adapter_of("openrouter")
    body = b": OPENROUTER PROCESSING\n\n: OPENROUTER PROCESSING\n\n" + json.dumps(CHAT).encode()
    assert adapter.read(body, Sampling()).text == "E"


def test_a_prompt_that_google_blocks_is_a_refusal():
    content = {
        "promptFeedback": {"blockReason": "PROHIBITED_CONTENT"},
        "usageMetadata": {"promptTokenCount": 7},
        "modelVersion": "m-1",
    }
    adapter, _ = adapter_of("google", content)
    reply = ask(adapter)
    assert ask(adapter, Sampling(top_log_probabilities=2)).log_probabilities == ()
    assert (reply.text, reply.finish_reason) == ("", "refusal")
    assert reply.usage == Usage(7, 0, 0, 0)
    assert json.loads(reply.raw) == content


@pytest.mark.parametrize("value", ["NaN", "0.5", '"-1"', "null", "true"])
def test_log_probabilities_that_are_none_make_a_reply_unreadable(value):
    adapter, _ = adapter_of("openai")
    entry = {"token": "E", "logprob": json.loads(value), "top_logprobs": []}
    choice = {"message": {"content": "E"}, "logprobs": {"content": [entry]}}
    body = json.dumps({"choices": [choice]}).encode()
    with pytest.raises(Failed) as caught:
        adapter.read(body, Sampling(top_log_probabilities=0))
    assert caught.value.kind == "unreadable"
    assert adapter.read(body, Sampling()).log_probabilities is None  # nobody asked
    entry["logprob"] = float("-inf")
    body = json.dumps({"choices": [choice]}).encode()
    reply = adapter.read(body, Sampling(top_log_probabilities=0))
    assert reply.log_probabilities[0].log_probability == float("-inf")
    with pytest.raises(Failed, match="without the log-probabilities"):
        adapter.read(body, Sampling(top_log_probabilities=2))  # no alternatives


def test_a_failure_that_is_passed_on_with_status_200_is_one_and_may_be_charged():
    adapter, _ = adapter_of("openrouter", {"error": {"code": 429, "message": "often"}})
    with pytest.raises(Failed) as caught:
        ask(adapter)
    assert (caught.value.kind, caught.value.charged) == ("often", None)
    adapter, _ = adapter_of("openrouter", {"error": {"code": "odd", "message": "?"}})
    with pytest.raises(Failed) as caught:
        ask(adapter)
    assert caught.value.kind == "unreadable"


def test_the_wait_is_read_from_the_body_if_no_header_tells_it():
    adapter, _ = adapter_of("google")
    detail = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "37.5s"}
    body = json.dumps({"error": {"details": [detail]}}).encode()
    assert adapter.failed(429, body).wait == 37.5
    assert adapter.failed(429, body, {"retry-after": "2"}).wait == 2.0


def test_the_beginning_that_later_calls_share_is_marked_for_anthropics_cache():
    adapter, _ = adapter_of("anthropic")
    talk = [Message(("user", "assistant")[i % 2], text) for i, text in enumerate("ABC")]
    alone = adapter.request(Prompt((talk[0],)), Sampling(max_tokens=9))
    whole = adapter.request(Prompt((Message("system", "Play."), *talk)), Sampling(max_tokens=9))
    assert "cache_control" not in json.dumps(alone)  # nothing says that it comes again
    assert whole["system"] == [SYSTEM]
    assert whole["messages"][:2] == [
        {"role": "user", "content": "A"},
        {"role": "assistant", "content": "B"},
    ]
    assert whole["messages"][2]["content"] == [{**SYSTEM, "text": "C"}]
    body = json.dumps({
        **CLAUDE,
        "usage": {"input_tokens": 5, "output_tokens": 2, "cache_read_input_tokens": 3,
                  "cache_creation_input_tokens": 4},
    }).encode()  # fmt: skip
    assert adapter.read(body, Sampling()).usage == Usage(12, 2, None, 3, 4)
