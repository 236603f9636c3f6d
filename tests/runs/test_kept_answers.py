"""Answers that had come when a run was killed: kept as they came, and read as they were kept."""

import asyncio
import shutil
from itertools import pairwise

import pandas as pd
import pytest

pytest.importorskip("openai")
pytest.importorskip("anthropic")
pytest.importorskip("google.genai")

from fault_server import FaultServer
from hypothesis import given, settings
from hypothesis import strategies as st

from knownminds.environments import InstrumentalLearning
from knownminds.llm_adapters import Sampling
from knownminds.llm_adapters.providers.anthropic import Anthropic
from knownminds.llm_adapters.providers.connections import _Answer
from knownminds.llm_adapters.providers.google import Google
from knownminds.llm_adapters.providers.openai import OpenAI
from knownminds.llm_adapters.runs.ledger import SPOOL, Ledger
from knownminds.llm_adapters.runs.prices import price_of
from knownminds.llm_adapters.runs.runner import read_run, run_sessions_in

ENVIRONMENT = InstrumentalLearning(n_visits=2)  # eight trials
PRICE = price_of("a:b", overrides={"a:b": {"input": 1, "output": 4}})
ADAPTERS = {"openai": OpenAI, "anthropic": Anthropic, "google": Google}
KEY = "sk-canary/0123+456=89abcdef"


class Killed(BaseException):
    """The process is dead; what it has not written is not there."""


def adapter_of(name, server):
    model = {"anthropic": "claude-3-5-haiku"}.get(name, "m")
    return ADAPTERS[name](model, base_url=server.address[name], key_variable="CANARY")


def killed(name, server, folder, after):
    """What a run leaves whose process is killed when it has read so many answers."""
    left, calls = folder.with_name("killed"), []

    class Dying(ADAPTERS[name]):
        def read(self, *given):  # the first that is done with a body
            calls.append(1)
            if len(calls) == after:
                shutil.copytree(folder, left)
                raise Killed
            return super().read(*given)

    model = adapter_of(name, server).model
    with pytest.raises(Killed):
        go(folder, Dying(model, base_url=server.address[name], key_variable="CANARY"))
    return left


def go(folder, adapter):
    async def run():
        try:
            return await run_sessions_in(
                folder,
                adapter,
                ENVIRONMENT,
                1,
                9,
                price=PRICE,
                settings=Sampling(max_tokens=9),
            )
        finally:
            await adapter.close()

    return asyncio.run(run())


@pytest.mark.parametrize(
    "name", ["openai", *(pytest.param(n, marks=pytest.mark.long) for n in ("anthropic", "google"))]
)
def test_what_was_read_before_a_kill_is_answer_enough(name, tmp_path, monkeypatch):
    monkeypatch.setenv("CANARY", KEY)
    with FaultServer(key=KEY) as server:
        whole = go(tmp_path / "whole", adapter_of(name, server))
        asked = len(server.calls)
        left = killed(name, server, tmp_path / "run", 5)
        assert KEY.encode() not in (left / SPOOL).read_bytes()
        with Ledger.read(left) as ledger:
            assert ledger.account().calls == {"ok": 4, "inflight": 1}
        run = go(left, adapter_of(name, server))
        assert len(server.calls) == 2 * asked  # the fifth is not asked for again
    assert run.account.calls == {"ok": 8}
    pd.testing.assert_frame_equal(run.trials.frame, whole.trials.frame)
    assert run.dollars == whole.dollars
    pd.testing.assert_frame_equal(read_run(left).trials.frame, whole.trials.frame)


def test_an_answer_that_repeats_the_key_is_asked_for_again_rather_than_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("CANARY", KEY)
    with FaultServer(script=["ok", "echo_key"]) as server:
        left = killed("openai", server, tmp_path / "run", 2)
        for file in left.iterdir():
            assert KEY.encode() not in file.read_bytes()
        run = go(left, adapter_of("openai", server))
    assert run.account.calls == {"ok": 8, "unknown": 1}


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
WHOLE = {
    "length": HEAD + b'Content-Length: 15\r\n\r\n{"a": "0\\r\\n"}\n',
    "chunks": HEAD + b"Transfer-Encoding: chunked\r\n\r\n6\r\nabcdef\r\n3\r\ngh0\r\n0\r\n\r\n",
}


@settings(max_examples=50)
@given(st.sampled_from(sorted(WHOLE)), st.lists(st.integers(1, 120), max_size=6))
def test_an_answer_is_given_away_once_it_is_whole_however_it_comes(kind, cuts):
    kept = []
    answer = _Answer(kept.append)
    places = [0, *sorted(cut for cut in cuts if cut < len(WHOLE[kind])), len(WHOLE[kind])]
    for begin, end in pairwise(places):
        assert not kept
        if part := WHOLE[kind][begin:end]:
            answer.add(part)
    assert kept == [WHOLE[kind]]
