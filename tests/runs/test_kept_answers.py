"""Answers that had come when a run was killed: they are read from the ledger."""

import asyncio
import shutil

import pandas as pd
import pytest
from fault_server import FaultServer

from knownminds.environments import InstrumentalLearning
from knownminds.llm_adapters import Sampling, load
from knownminds.llm_adapters.runs.ledger import Ledger
from knownminds.llm_adapters.runs.prices import price_of
from knownminds.llm_adapters.runs.runner import RunOptions, read_run, run_sessions_in

ENVIRONMENT = InstrumentalLearning(n_visits=2)  # eight trials
PRICE = price_of("a:b", overrides={"a:b": {"input": 1, "output": 4}})
KEY = "sk-canary/0123+456=89abcdef"


class Killed(BaseException):
    """The process is dead; what it has not written is not there."""


def adapter_of(name, server):
    return load(name)("m", base_url=server.address[name], key_variable="CANARY")


def killed(name, server, folder, after):
    """What a run leaves whose process is killed before it reads an answer that has come."""
    left, adapter, calls = folder.with_name("killed"), adapter_of(name, server), []
    read = adapter.read

    def dying(*given):
        calls.append(1)
        if len(calls) == after:
            shutil.copytree(folder, left)
            raise Killed
        return read(*given)

    adapter.read = dying
    with pytest.raises(Killed):
        go(folder, adapter)
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
                how=RunOptions(price=PRICE, settings=Sampling(max_tokens=9)),
            )
        finally:
            await adapter.close()

    return asyncio.run(run())


@pytest.mark.parametrize("name", ["openai", "anthropic", "google"])
def test_what_came_before_a_kill_is_answer_enough(name, tmp_path, monkeypatch):
    monkeypatch.setenv("CANARY", KEY)
    with FaultServer(key=KEY) as server:
        whole = go(tmp_path / "whole", adapter_of(name, server))
        asked = len(server.calls)
        left = killed(name, server, tmp_path / "run", 5)
        with Ledger.read(left) as ledger:
            assert ledger.account().calls == {"ok": 5}
        assert len(read_run(left).trials) == 4  # what nobody has read is no trial as yet
        run = go(left, adapter_of(name, server))
        assert len(server.calls) == 2 * asked  # the fifth is not asked for again
    assert run.account.calls == {"ok": 8}
    pd.testing.assert_frame_equal(run.trials.frame, whole.trials.frame)
    assert run.dollars == whole.dollars
    pd.testing.assert_frame_equal(read_run(left).trials.frame, whole.trials.frame)


def test_an_answer_that_came_and_cannot_be_read_stays_without_one(tmp_path, monkeypatch):
    monkeypatch.setenv("CANARY", KEY)
    with FaultServer(script=["ok", "cut"]) as server:
        left = killed("openai", server, tmp_path / "run", 2)
        run = go(left, adapter_of("openai", server))
        assert len(server.calls) == 8
    assert run.account.calls == {"error_maybe_paid": 1, "ok": 7}
    assert run.trials.frame["outcome"][1] == "error"
