"""Batches of three providers: every request sent once, whatever fails and whenever it dies."""

import asyncio

import pytest
from batch_server import BatchServer, Broken

from knownminds.environments import Collider
from knownminds.llm_adapters import Sampling, load
from knownminds.llm_adapters.runs.admission import Batching
from knownminds.llm_adapters.runs.prices import price_of
from knownminds.llm_adapters.runs.runner import Retries, RunOptions, run_sessions_in
from knownminds.validation.costs.asked_run import _standing

PLACE = Collider(domains=("economy",), senses=("ppp",))
N_TRIALS = PLACE.n_trials
PRICE = price_of("a:b", overrides={"a:b": {"input": 1, "output": 4}})
QUICK = Batching(pause=0.0, longest_pause=0.01, search=0.0)
MODELS = {"openai": "gpt-4o-mini", "anthropic": "claude-3-5-haiku", "google": "gemini-2.0-flash"}


def half(call):
    """Answer with a number that hangs on the words alone."""
    return str(int(call.prompt[:4], 16) % 101)


def go(
    folder, server, wire="openai", n=3, environment=PLACE, batching=QUICK, batch=True, **options
):
    async def run():
        adapter = load(wire)(MODELS[wire], base_url=server.address[wire], key_variable=None)
        try:
            return await run_sessions_in(
                folder,
                adapter,
                environment,
                n,
                9,
                how=RunOptions(
                    settings=Sampling(max_tokens=20),
                    batch=batch,
                    batching=batching,
                    price=PRICE,
                    attempts=2,
                    retries=Retries(pause=0.0),
                    **options,
                ),
            )
        finally:
            await adapter.close()

    return asyncio.run(run())


# What fails -----------------------------------------------------------------------------------


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
        assert sum(server.counts.values()) == N_TRIALS


@pytest.mark.long
def test_a_provider_that_fails_for_long_stops_the_run_and_loses_nothing(tmp_path):
    how = Batching(pause=0.0, longest_pause=0.01, search=0.0, failures=3)
    with BatchServer(half, submissions=["made_500"]) as server:
        server.on_look = _fail
        run = go(tmp_path, server, n=1, batching=how)
        assert "failed (500)" in run.stopped
        assert run.account.calls == {"inflight": N_TRIALS}
        server.on_look = None
        # An ordinary start reads what is under way, too, and then asks nothing more.
        run = go(tmp_path, server, n=1, batch=False)
        assert run.complete
        assert sum(server.counts.values()) == len(server.calls) == N_TRIALS


def _fail(batch):
    raise Broken


# Turn by turn ---------------------------------------------------------------------------------


# Money ----------------------------------------------------------------------------------------


def test_batches_hold_what_a_provider_takes(tmp_path):
    told = []
    with BatchServer(half, looks=2) as server:
        run = go(tmp_path, server, n=1, batch_size=5, progress=told.append)
        sizes = [len(batch.calls) for batch in server.ours]
    assert run.complete
    assert max(sizes) == 5
    assert sum(sizes) == N_TRIALS
    standing = [(now.submitted, now.done) for now in told]
    assert standing[-1] == (N_TRIALS, N_TRIALS)
    assert _standing(told[-1], 1).endswith(f", in batches {N_TRIALS}/{N_TRIALS}")
    assert (5, 0) in standing  # they go one after another
    assert (10, 0) not in standing
    assert all(done <= submitted for submitted, done in standing)


def test_a_price_that_comes_later_is_halved_too(tmp_path, monkeypatch):
    with BatchServer(half) as server:
        with monkeypatch.context() as patched:
            patched.setitem(globals(), "PRICE", None)
            go(tmp_path / "later", server, n=1)
        later = go(tmp_path / "later", server, n=1)
        assert later.dollars == go(tmp_path / "at once", server, n=1).dollars
