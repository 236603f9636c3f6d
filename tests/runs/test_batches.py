"""Batches of three providers: every request sent once, whatever fails and whenever it dies."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter

import pytest

pytest.importorskip("openai")
pytest.importorskip("anthropic")
pytest.importorskip("google.genai")

from batch_server import BatchServer, Broken
from fault_server import by_hash
from scripted import Scripted

from knownminds.environments import Collider, InstrumentalLearning
from knownminds.llm_adapters import NotCapable, Sampling, load
from knownminds.llm_adapters.runs.admission import Caps
from knownminds.llm_adapters.runs.desk import Batching
from knownminds.llm_adapters.runs.ledger import Ledger
from knownminds.llm_adapters.runs.prices import price_of
from knownminds.llm_adapters.runs.runner import TRIALS, Retries, read_run, run_sessions_in
from knownminds.validation.cli.models.run import _standing

PLACE = Collider()
N_TRIALS = PLACE.n_trials
PRICE = price_of("a:b", overrides={"a:b": {"input": 1, "output": 4}})
QUICK = Batching(pause=0.0, longest_pause=0.01, search=0.0)
MODELS = {"openai": "gpt-4o-mini", "anthropic": "claude-3-5-haiku", "google": "gemini-2.0-flash"}
OTHERS = [name for name in MODELS if name != "openai"]


def half(call):
    """Answer with a number that hangs on the words alone."""
    return str(int(call.prompt[:4], 16) % 101)


def go(folder, server, wire="openai", n=3, environment=PLACE, batching=QUICK, **options):
    async def run():
        adapter = load(wire)(MODELS[wire], base_url=server.address[wire], key_variable=None)
        try:
            return await run_sessions_in(
                folder,
                adapter,
                environment,
                n,
                9,
                settings=Sampling(max_tokens=20),
                batching=batching,
                price=PRICE,
                retries=Retries(pause=0.0, attempts=2),
                **options,
            )
        finally:
            await adapter.close()

    return asyncio.run(run())


@pytest.mark.parametrize("wire", MODELS)
def test_a_batch_run_is_the_run_call_by_call_at_half_the_price(tmp_path, wire):
    with BatchServer(half) as server:
        batched = go(tmp_path / "batch", server, wire)
        assert [len(batch.calls) for batch in server.ours] == [3 * N_TRIALS]
        asked = server.asked
    with BatchServer(half) as server:
        plain = go(tmp_path / "plain", server, wire, batching=None)
    assert asked == Counter(call.prompt for call in server.calls)
    frames = [run.trials.frame for run in (batched, plain)]
    assert frames[0].drop(columns="money").equals(frames[1].drop(columns="money"))
    assert batched.complete
    assert batched.dollars == plain.dollars / 2
    assert read_run(tmp_path / "batch").trials.frame.equals(frames[0])


# What fails -----------------------------------------------------------------------------------


@pytest.mark.parametrize("wire", MODELS)
def test_requests_without_an_answer_are_errors_that_are_counted_and_cost_nothing(tmp_path, wire):
    kinds = ["400", "500", "missing", "refusal", "length", "no_usage"]
    if wire != "google":  # which tells of whole batches only that they have expired
        kinds += ["expired", "canceled"]
    script = [*kinds, *["ok"] * 100]
    with BatchServer(half, script=script) as server:
        run = go(tmp_path, server, wire, 1)
        outcomes = run.trials.frame["outcome"].value_counts()
        lost = len(kinds) - 3
        assert outcomes["error"] == lost
        assert outcomes["refused"] == outcomes["truncated"] == 1
        assert run.account.calls == {
            "ok": N_TRIALS - lost,
            "error_unpaid": lost - 1,
            "error_maybe_paid": 1,  # of which nothing is told
        }
        assert run.account.untold == 1
        assert not run.unfinished
        assert (server.tried, sum(server.asked.values())) == (1, N_TRIALS)
        # asked again on demand only, and answers never
        assert go(tmp_path, server, wire, 1).errors == lost
        assert server.tried == 1
        again = go(tmp_path, server, wire, 1, retry_errors=True)
        assert not again.errors
        assert (server.tried, sum(server.asked.values())) == (2, N_TRIALS + lost)


@pytest.mark.parametrize("wire", MODELS)
def test_a_batch_that_expires_leaves_trials_without_an_answer(tmp_path, wire):
    with BatchServer(half, submissions=["expired"]) as server:
        run = go(tmp_path, server, wire, 2)
    lost = 2 * N_TRIALS if wire == "google" else N_TRIALS  # Google then keeps no results
    assert run.errors == lost
    assert not run.unfinished
    assert read_run(tmp_path).account.batches == {"read": 1}


BROKEN = ("made_500", "made_drop", "500", "drop", "429", "html")


@pytest.mark.parametrize("wire", MODELS)
def test_a_submission_without_an_answer_is_looked_for_before_it_is_made_again(tmp_path, wire):
    for fate in BROKEN if wire == "openai" else ("made_500", "drop"):
        # Somebody else's batches, one of the same size, and pages between them and ours.
        with BatchServer(half, submissions=[fate], others=(N_TRIALS, 1, 2)) as server:
            run = go(tmp_path / fate, server, wire, 1)
            assert run.complete
            assert run.account.calls == {"ok": N_TRIALS}
            assert sum(server.asked.values()) == N_TRIALS
            assert server.tried == (1 if fate.startswith("made") else 2)


@pytest.mark.parametrize("wire", ["openai", "google"])
def test_a_batch_that_is_not_taken_stops_the_run_and_is_asked_anew(tmp_path, wire):
    with BatchServer(half, submissions=["void", "400"]) as server:
        for said in ("a batch was not taken", "does not take the prompt"):
            run = go(tmp_path, server, wire, 1)
            assert said in run.stopped
            assert len(run.unfinished) == 1
            assert run.dollars == 0
        run = go(tmp_path, server, wire, 1)
        assert run.complete
        assert run.account.batches == {"read": 1, "void": 2}
        assert sum(server.asked.values()) == N_TRIALS


def test_a_provider_that_fails_for_long_stops_the_run_and_loses_nothing(tmp_path):
    how = Batching(pause=0.0, longest_pause=0.01, search=0.0, failures=3)
    with BatchServer(half, submissions=["made_500"]) as server:
        server.on_look = _fail
        run = go(tmp_path, server, n=1, batching=how)
        assert "failed (500)" in run.stopped
        assert run.account.calls == {"inflight": N_TRIALS}
        server.on_look = None
        # An ordinary start reads what is under way, too, and then asks nothing more.
        run = go(tmp_path, server, n=1, batching=None)
        assert run.complete
        assert sum(server.asked.values()) == len(server.calls) == N_TRIALS


def _fail(batch):
    raise Broken


# Turn by turn ---------------------------------------------------------------------------------


def test_trials_that_tell_of_earlier_ones_are_asked_turn_by_turn_when_that_is_said(tmp_path):
    place = InstrumentalLearning(n_visits=1)  # four trials
    with BatchServer(by_hash) as server:
        with pytest.raises(ValueError, match="Say --batch-turns for a batch per trial"):
            go(tmp_path / "refused", server, environment=place)
        assert not (tmp_path / "refused").exists()
        turns = Batching(True, pause=0.0, longest_pause=0.01, search=0.0)
        batched = go(tmp_path / "batch", server, environment=place, batching=turns)
        assert [len(batch.calls) for batch in server.ours] == [3] * place.n_trials
    with BatchServer(by_hash) as server:
        plain = go(tmp_path / "plain", server, environment=place, batching=None)
    frames = [run.trials.frame.drop(columns="money") for run in (batched, plain)]
    assert frames[0].equals(frames[1])


def test_malformed_answers_are_asked_again_in_a_batch_of_their_own(tmp_path):
    with BatchServer(half, script=["garbage", *["ok"] * 3, "garbage"]) as server:
        run = go(tmp_path, server, n=1, re_ask=1)
        assert [len(batch.calls) for batch in server.ours] == [N_TRIALS, 1, 1]
    assert run.account.re_asked == 2
    assert (run.trials.frame["outcome"] == "ok").all()


# Money ----------------------------------------------------------------------------------------


def test_no_cap_is_passed_and_what_fits_is_asked(tmp_path):
    with BatchServer(half) as server:
        free = go(tmp_path / "free", server, n=2)
        run = go(tmp_path / "calls", server, n=2, caps=Caps(calls=N_TRIALS + 3))
        assert (run.calls, run.stopped) == (
            N_TRIALS + 3,
            f"the cap of {N_TRIALS + 3} calls is reached",
        )
        few = go(tmp_path / "few", server, n=2, caps=Caps(session_calls=3))
        assert few.calls == 6
        # What is reserved is more than what is used: what is left is asked in further batches.
        dollars = free.dollars * 2
        before = server.tried
        run = go(tmp_path / "dollars", server, n=2, caps=Caps(dollars=dollars, answer_tokens=20))
        assert run.complete
        assert run.dollars == free.dollars
        assert server.tried - before > 1
        capped = go(
            tmp_path / "less", server, n=2, caps=Caps(dollars=free.dollars / 2, answer_tokens=20)
        )
        assert 0 < capped.dollars <= free.dollars / 2
        assert "the cap of" in capped.stopped
        # with a larger one it goes on, and asks nothing twice
        asked = sum(server.asked.values())
        whole = go(tmp_path / "less", server, n=2)
        assert whole.trials.frame.equals(free.trials.frame)
        assert sum(server.asked.values()) - asked == 2 * N_TRIALS - capped.calls


def test_batches_hold_what_a_provider_takes(tmp_path):
    how = Batching(pause=0.0, longest_pause=0.01, search=0.0, requests=5)
    told = []
    with BatchServer(half, looks=2) as server:
        run = go(tmp_path, server, n=1, batching=how, progress=told.append)
        sizes = [len(batch.calls) for batch in server.ours]
    assert run.complete
    assert max(sizes) == 5
    assert sum(sizes) == N_TRIALS
    standing = [(now.submitted, now.done) for now in told]
    assert standing[-1] == (N_TRIALS, N_TRIALS)
    assert _standing(told[-1], 1).endswith(f", in batches {N_TRIALS}/{N_TRIALS}")
    assert (N_TRIALS, 0) in standing
    assert all(done <= submitted for submitted, done in standing)


def test_a_price_that_comes_later_is_halved_too(tmp_path, monkeypatch):
    with BatchServer(half) as server:
        with monkeypatch.context() as patched:
            patched.setitem(globals(), "PRICE", None)
            go(tmp_path / "later", server, n=1)
        later = go(tmp_path / "later", server, n=1)
        assert later.priced_from == 2
        assert later.dollars == go(tmp_path / "at once", server, n=1).dollars


def test_an_adapter_without_batches_is_told(tmp_path):
    with pytest.raises(NotCapable, match="Batches are taken by anthropic, google, openai"):
        asyncio.run(run_sessions_in(tmp_path / "run", Scripted(), PLACE, 1, 9, batching=QUICK))
    assert not list(tmp_path.iterdir())
    with pytest.raises(ValueError, match="requests is at least 1; got 0"):
        Batching(requests=0)


# Kills ----------------------------------------------------------------------------------------

NURSERY = """
import asyncio, json, os, sys, time
from knownminds.environments import Collider
from knownminds.llm_adapters import Sampling, load
from knownminds.llm_adapters.runs import desk
from knownminds.llm_adapters.runs.ledger import Ledger
from knownminds.llm_adapters.runs.prices import price_of
from knownminds.llm_adapters.runs.runner import run_sessions_in

desk._AT_ONCE = 4

async def live(wire, model, url, folder):
    def watch(progress):
        os.write(1, f"paid {progress.dollars * 10**9:.0f}\\n".encode())
        time.sleep(0.01)

    adapter = load(wire)(model, base_url=url, key_variable=None)
    await run_sessions_in(
        folder, adapter, Collider(), 2, 9, progress=watch, settings=Sampling(max_tokens=20),
        batching=desk.Batching(pause=0.0, longest_pause=0.01, search=0.0),
        price=price_of("a:b", overrides={"a:b": {"input": 1, "output": 4}}),
    )
    await adapter.close()

for wire in ("openai", "anthropic", "google"):
    load(wire)
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        try:
            asyncio.run(live(*json.loads(line)))
        except BaseException as error:
            print(repr(error), file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    os.write(1, f"child {child}\\n".encode())
    os.write(1, f"ended {os.waitpid(child, 0)[1]}\\n".encode())
"""


class Nursery:
    """A process that has imported everything, and lives runs in children that can be killed."""

    def __init__(self):
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-c", NURSERY],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def live(self, *given, until=None):
        """Live a run; kill it once `until` is true of what it has paid, as far as it tells."""
        self.process.stdin.write(json.dumps(given) + "\n")
        self.process.stdin.flush()
        told = {}
        reader = threading.Thread(target=self._read, args=(told,))
        reader.start()
        while until is not None and "ended" not in told:
            if "child" in told and until(told.get("paid", 0)):
                os.kill(told["child"], signal.SIGKILL)
                break
            time.sleep(0.002)
        reader.join()
        return told["ended"]

    def _read(self, told):
        while "ended" not in told:
            word, number = self.process.stdout.readline().split()
            told[word] = int(number)


@pytest.fixture(scope="module")
def nursery():
    nursery = Nursery()
    yield nursery
    nursery.process.stdin.close()
    nursery.process.kill()
    nursery.process.wait()
    nursery.process.stdout.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize(
    "wire", ["openai", *(pytest.param(name, marks=pytest.mark.long) for name in OTHERS)]
)
def test_a_batch_run_killed_four_times_sends_every_request_once(tmp_path, nursery, wire):
    about = (wire, MODELS[wire])
    with BatchServer(half) as server:
        assert nursery.live(*about, server.address[wire], str(tmp_path / "whole")) == 0
        whole = server.asked
    with BatchServer(half, submissions=["hang", "made_hang"], looks=6) as server:
        given = (*about, server.address[wire], str(tmp_path / "run"))

        def killed(when):
            return nursery.live(*given, until=when) == signal.SIGKILL

        assert killed(lambda _: server.tried == 1)  # on its way, and nothing is made of it
        assert killed(lambda _: server.ours)  # made, and the answer does not come
        assert killed(lambda _: server.ours[0].looks >= 3)  # under way
        assert killed(lambda paid: paid > 0)  # half read
        with Ledger.read(tmp_path / "run") as ledger:
            read = ledger.account().calls
        assert 0 < read["ok"] < 2 * N_TRIALS
        assert nursery.live(*given) == 0
        assert (server.tried, len(server.ours)) == (2, 1)
        assert server.asked == whole
        assert nursery.live(*given) == 0  # resumed when it is done: nothing is submitted
        assert server.tried == 2
    first, last = (tmp_path / name / TRIALS for name in ("whole", "run"))
    assert first.read_bytes() == last.read_bytes()
    run = read_run(tmp_path / "run")
    assert run.account.calls == {"ok": 2 * N_TRIALS}
    assert run.dollars == read_run(tmp_path / "whole").dollars
    assert len(run.starts) == 6
