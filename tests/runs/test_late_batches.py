"""Batches whose results are late, cut, doubled or gone, at three providers: none is paid twice."""

import asyncio
import json
import re

import httpx2
import pytest

from knownminds.calling import Caps
from knownminds.environments import Collider
from knownminds.llm_adapters import Sampling, load
from knownminds.llm_adapters.batches import batches_of
from knownminds.llm_adapters.runs.admission import Batching
from knownminds.llm_adapters.runs.prices import price_of
from knownminds.llm_adapters.runs.runner import RunOptions, run_sessions_in

PLACE = Collider(domains=("economy",), senses=("ppp",))
N = PLACE.n_trials
PRICE = price_of("a:b", overrides={"a:b": {"input": 1, "output": 4}})
SENT, RECEIVED = 100, 2  # tokens of each request of a batch
WIRES = ("openai", "anthropic", "google")
WORDS = {"openai": ("in_progress", "completed"), "anthropic": ("in_progress", "ended")}
WORDS["google"] = ("JOB_STATE_RUNNING", "JOB_STATE_SUCCEEDED")
on_each_wire = pytest.mark.parametrize("wire", WIRES)


class Provider:
    """Takes batches; `fates` is what becomes of each look at one and of its file, in order.

    A look is "going", "over", "strange" or "gone", and its file then "whole", "unnamed", "cut",
    "gone" or "doubled"; the last one goes on for ever.
    """

    def __init__(self, wire, *fates, queue=None):
        self.wire, self.fates, self.queue = wire, list(fates), queue
        self.batches, self.open, self.uploaded = [], 0, None

    def __call__(self, request):
        path, body = request.url.path, request.content
        if request.method == "POST":
            content = self.post(path, body)
        elif re.search(r"/content$|/results$|:download$", path):
            content = self.lines() if self.file not in ("gone", "unnamed") else None
        elif re.search(r"/batches/b\d+$", path):
            if len(self.fates) > 1 and not getattr(self, "again", False):
                self.fates.pop(0)
            # Results are asked for behind a second look at the batch, but at Anthropic.
            self.again = self.look == "over" and not getattr(self, "again", False)
            self.again = self.again and self.wire != "anthropic"
            content = None if self.look == "gone" else self.about(int(path.rpartition("b")[2]))
        else:
            raise AssertionError(path)
        if content is None:
            return httpx2.Response(404, json={"error": {"message": "It is not there."}})
        head = {"x-goog-upload-url": "https://generativelanguage.googleapis.com/upload/here"}
        return httpx2.Response(200, content=content, headers=head)

    @property
    def look(self):
        return self.fates[0].partition(" ")[0]

    @property
    def file(self):
        return self.fates[0].partition(" ")[2]

    def post(self, path, body):
        if path.endswith("/messages/batches"):
            names = [one["custom_id"] for one in json.loads(body)["requests"]]
        elif path.endswith(("/files", "/here")):
            if found := re.findall(rb'"(?:custom_id|key)": "([^"]+)"', body):
                self.uploaded = [name.decode() for name in found]
            return json.dumps({"id": "f", "file": {"name": "files/f"}}).encode()
        else:
            names = self.uploaded
        self.batches.append(names)
        self.fates.insert(0, "begun")
        return self.about(len(self.batches) - 1)

    def about(self, number):
        over, n = self.look == "over", len(self.batches[number])
        word = WORDS[self.wire][over]
        word = "JOB_STATE_ODD" if self.look == "strange" else word
        named = over and self.file != "unnamed"
        if self.wire == "google":
            about = {"state": word}
            if named or not over:  # what is not named is not counted either
                about["batchStats"] = {"successfulRequestCount": str(over * n)}
                about["output"] = {"responsesFile": "files/out"}
            return json.dumps({"name": f"batches/b{number}", "metadata": about}).encode()
        counts = dict.fromkeys(("processing", "errored", "canceled", "expired", "failed"), 0)
        counts |= dict.fromkeys(("succeeded", "completed"), over * n)
        about = {"id": f"b{number}", "status": word, "processing_status": word}
        about |= {"request_counts": counts, "output_file_id": "out"}
        if self.wire == "openai" and over and not named:
            about |= {"request_counts": None, "output_file_id": None}
        if self.queue is not None and n > self.queue:
            errors = [{"code": "token_limit_exceeded", "message": "Token limit reached."}]
            about |= {"status": "failed", "errors": {"data": errors}}
        return json.dumps(about).encode()

    def lines(self):
        lines = []
        for name in self.batches[-1]:
            good, bad = line_of(self.wire, name)
            lines += [bad, good, bad] if self.file == "doubled" else [good]
        content = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
        return content[: len(content) // 2] if self.file == "cut" else content


def line_of(wire, name):
    """Return the line of an answer, and that of a request which failed."""
    if wire == "openai":
        usage = {"prompt_tokens": SENT, "completion_tokens": RECEIVED}
        body = {"choices": [{"message": {"content": "50"}, "finish_reason": "stop"}]}
        answers = ((200, {**body, "usage": usage}), (500, {"error": {"message": "x"}}))
        every = [{"status_code": status, "body": body} for status, body in answers]
        return [{"custom_id": name, "response": one} for one in every]
    if wire == "anthropic":
        usage = {"input_tokens": SENT, "output_tokens": RECEIVED}
        body = {"content": [{"type": "text", "text": "50"}], "stop_reason": "end_turn"}
        good = {"type": "succeeded", "message": {**body, "usage": usage}}
        bad = {"type": "errored", "error": {"error": {"type": "api_error"}}}
        return [{"custom_id": name, "result": one} for one in (good, bad)]
    usage = {"promptTokenCount": SENT, "candidatesTokenCount": RECEIVED}
    candidate = {"content": {"parts": [{"text": "50"}]}, "finishReason": "STOP"}
    good = {"candidates": [candidate], "usageMetadata": usage}
    return [{"key": name, "response": good}, {"key": name, "error": {"code": 13}}]


def go(folder, provider, patience=60.0, requests=None, **options):
    """Play a session in batches; nothing waits between looks."""
    carrier = httpx2.MockTransport(provider)
    adapter = load(provider.wire)("m", key_variable=None, transport=carrier)
    how = Batching(pause=0.0, longest_pause=0.01, patience=patience)
    settings = Sampling(max_tokens=16)
    return asyncio.run(
        run_sessions_in(
            folder,
            adapter,
            PLACE,
            1,
            9,
            how=RunOptions(
                settings=settings,
                batch=True,
                batching=how,
                batch_size=requests,
                price=PRICE,
                **options,
            ),
        )
    )


@on_each_wire
@pytest.mark.parametrize(
    "fates",
    [
        ("going", "over unnamed", "over unnamed", "over whole"),
        ("over gone", "over cut", "over whole"),
        ("strange", "strange", "over whole"),
        ("gone", "going", "over whole"),
        ("over doubled",),
    ],
    ids=lambda fates: fates[0],
)
def test_results_that_are_late_are_waited_for_and_bought_once(tmp_path, wire, fates):
    provider = Provider(wire, *fates)
    run = go(tmp_path, provider)
    assert run.account.calls == {"ok": N}
    assert [len(names) for names in provider.batches] == [N]
    assert 2 * run.account.paid == N * (SENT * 1 + RECEIVED * 4) * 1000
    go(tmp_path, provider, retry_errors=True)
    assert len(provider.batches) == 1


@on_each_wire
def test_what_does_not_come_counts_as_paid_for_and_lost_and_is_named(tmp_path, wire):
    run = go(tmp_path / "cut", Provider(wire, "over cut"), patience=0.0)
    lost = run.account.calls["error_maybe_paid"]
    assert run.account.calls == {"ok": N - lost, "error_maybe_paid": lost}
    assert N / 2 <= lost < N
    assert run.dollars * 2 * 10**6 > N * (SENT * 1 + RECEIVED * 4)
    provider = Provider(wire, "over gone")
    run = go(tmp_path / "gone", provider, patience=0.0)
    assert run.account.calls == {"error_maybe_paid": N}
    notes = run.trials.frame["note"].unique()
    assert len(notes) == 1
    file = {"openai": "/files/out", "anthropic": "/b0/results", "google": "/files/out"}[wire]
    assert re.search(rf"The batch (batches/)?b0 \(km-\w+\) has ended .*{file}", notes[0])
    go(tmp_path / "gone", provider)
    assert len(provider.batches) == 1  # a further start buys nothing
    provider.fates = ["over whole"]
    assert go(tmp_path / "gone", provider, retry_errors=True).account.calls["ok"] == N


@on_each_wire
def test_a_batch_that_is_gone_is_named_and_given_up_only_if_that_is_said(tmp_path, wire):
    provider = Provider(wire, "gone")
    run = go(tmp_path, provider, patience=0.0)
    assert re.search(r"batch (batches/)?b0 \(km-\w+\) is not there", run.stopped)
    assert "With --retry-errors" in run.stopped
    assert run.account.calls == {"inflight": N}
    provider.fates = ["gone", "gone", "over whole"]  # with the right key it is there
    assert go(tmp_path, provider).account.calls == {"ok": N}
    assert len(provider.batches) == 1
    provider = Provider(wire, "gone")
    go(tmp_path / "lost", provider, patience=0.0)
    provider.fates = ["gone", "gone"]

    def begun(standing):
        if len(provider.batches) == 2:
            provider.fates = ["over whole"]

    run = go(tmp_path / "lost", provider, patience=0.0, retry_errors=True, progress=begun)
    assert run.account.calls == {"error_maybe_paid": N, "ok": N}


def test_batches_of_a_size_go_one_after_another_where_a_server_limits_its_queue(tmp_path):
    run = go(tmp_path, Provider("openai", "over whole", queue=N // 2))
    assert "a batch was not taken: Token limit reached. Smaller ones go" in run.stopped
    assert run.dollars == 0
    provider = Provider("openai", "over whole", queue=N // 2)
    assert go(tmp_path, provider, requests=N // 2).account.calls["ok"] == N
    assert [len(names) for names in provider.batches] == [N // 2, N - N // 2]


@on_each_wire
def test_what_a_batch_had_beyond_its_limit_is_foreseen_of_the_next(tmp_path, wire, monkeypatch):
    monkeypatch.setitem(globals(), "RECEIVED", 900)
    provider = Provider(wire, "over whole")
    # All requests are let in for some 650 tokens each, and those of a batch have 1,000.
    run = go(tmp_path, provider, requests=N // 2, caps=Caps(tokens=18_000))
    assert run.stopped == "the cap of 18,000 tokens is reached"
    assert [len(names) for names in provider.batches] == [N // 2]
    assert run.tokens == N // 2 * (SENT + 900)


def test_numbers_of_a_batch_may_be_texts_or_nothing():
    about = {"status": "completed", "output_file_id": "out"}
    for counts, done in (
        ({"completed": "3", "failed": 1.0}, 4),
        ([1], 0),
        ({"completed": None}, 0),
    ):
        answer = httpx2.Response(200, json={**about, "request_counts": counts})
        adapter = load("openai")(
            "m", key_variable=None, transport=httpx2.MockTransport(lambda _, a=answer: a)
        )
        assert asyncio.run(batches_of(adapter).look("b")).done == done
