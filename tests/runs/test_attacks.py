"""Attacks on a run's money and on a study's data, each as it was made."""

import asyncio
import sqlite3
from contextlib import closing

import pytest
from scripted import Scripted

from knownminds.environments import InstrumentalLearning
from knownminds.llm_adapters import Reply, Usage
from knownminds.llm_adapters.runs.ledger import FILE
from knownminds.llm_adapters.runs.prices import price_of
from knownminds.llm_adapters.runs.runner import TRIALS, Retries, RunOptions, run_sessions_in

ENVIRONMENT = InstrumentalLearning(n_visits=2)  # eight trials
N_TRIALS = ENVIRONMENT.n_trials
PRICE = price_of("a:b", overrides={"a:b": {"input": 1, "output": 4}})
QUICK = Retries(pause=0.0)


class Numbered(Scripted):
    """Fails as told, and never twice with the same words."""

    def __init__(self, failure, rest=None):
        self.failure, self.rest, self.calls = failure, rest, 0

    async def complete(self, prompt, *, settings):
        self.calls += 1
        error = self.failure(self.calls)
        if error is None:
            return Reply(self.rest, usage=Usage(7, 2), model_served="m")
        raise error


def go(folder, adapter, n=3, environment=ENVIRONMENT, **options):
    how = RunOptions(**{"price": PRICE, "attempts": 2, "retries": QUICK, **options})
    return asyncio.run(run_sessions_in(folder, adapter, environment, n, 9, how=how))


# Breaker and --retry-errors -----------------------------------------------------------------------


# Numbers that cannot be ---------------------------------------------------------------------------


@pytest.mark.parametrize("n", [2**63, 2**200, 10**9, -1])
def test_a_number_of_tokens_that_cannot_be_is_not_known_and_no_answer_is_lost(tmp_path, n):
    strange = Reply("A", usage=Usage(n, 2, reasoning_tokens=n), model_served="m")
    run = go(tmp_path, Scripted("A", strange), 2, concurrency=2)
    assert run.account.calls == {"ok": 2 * N_TRIALS}
    assert run.account.answers_without_tokens == 1


# A ledger that is gone ----------------------------------------------------------------------------


def _empty(file):
    file.write_bytes(b"")


def _no_tables(file):
    file.unlink()
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")


@pytest.mark.parametrize("harm", [_empty, lambda file: file.unlink(), _no_tables])
def test_a_ledger_that_is_gone_beside_its_results_is_not_taken_for_a_new_one(tmp_path, harm):
    run = go(tmp_path, Scripted(rest="A"))
    before = (tmp_path / TRIALS).read_bytes()
    ledger = (tmp_path / FILE).read_bytes()
    harm(tmp_path / FILE)
    adapter = Numbered(lambda i: None, "A")
    with pytest.raises(ValueError, match=f"Put {FILE} back as it was"):
        go(tmp_path, adapter)
    assert adapter.calls == 0
    assert (tmp_path / TRIALS).read_bytes() == before
    (tmp_path / FILE).write_bytes(ledger)
    assert go(tmp_path, adapter).trials.frame.equals(run.trials.frame)
    assert adapter.calls == 0
