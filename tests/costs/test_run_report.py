"""What is said of runs that went badly: nothing that is not so."""

import asyncio
from decimal import Decimal

import pandas as pd
import pytest
from scripted import Scripted, rejected, server_failed, unreachable

from knownminds.calling import Caps
from knownminds.environments import InstrumentalLearning
from knownminds.llm_adapters import Reply, Sampling, Usage
from knownminds.llm_adapters.runs.prices import price_of
from knownminds.llm_adapters.runs.runner import Retries, RunOptions, read_run, run_sessions_in
from knownminds.validation.costs.run_page import say

PLACE = InstrumentalLearning(n_visits=2)  # eight trials
PRICE = price_of("a:b", overrides={"a:b": {"input": 1, "output": 4, "cached_input": 0.1}})
QUICK = Retries(pause=0.0, identical=99, unanswered=99)
SILENT = Reply("?", usage=Usage(), model_served="m")


def go(folder, adapter, n=2, **options):
    options = {"price": PRICE, "retries": QUICK, "concurrency": 1, **options}
    return asyncio.run(run_sessions_in(folder, adapter, PLACE, n, 9, how=RunOptions(**options)))


def test_the_sessions_dollars_are_what_the_provider_was_paid(tmp_path):
    run = go(tmp_path, Scripted(*["?"] * 5, server_failed("down"), rest="?"), re_ask=1)
    nano = run.account.paid
    assert nano == 32 * (7 * 1000 + 2 * 4000)  # each malformed answer was asked for again
    dollars = say(run)["Sessions"]["dollars_for_answers"].sum()
    assert dollars == pytest.approx(nano / 1e9)
    assert run.dollars_paid == Decimal(nano) / 10**9


def test_a_price_that_comes_later_is_taken_and_counts_as_if_it_had_always_been_known(tmp_path):
    script = [
        "?",
        server_failed("lost"),
        SILENT,
        Reply("?", usage=Usage(1000, 50, 30, 400), model_served="m"),
        unreachable("not there", charged=False),
        rejected("no"),
        Reply("?", usage=Usage(None, 50), model_served="m"),
    ]
    runs = []
    for name, first in (("known", PRICE), ("later", None)):
        options = {"settings": Sampling(max_tokens=9), "re_ask": 1}
        before = go(tmp_path / name, Scripted(*script), caps=Caps(calls=9), price=first, **options)
        assert (before.dollars is None) is (first is None)
        runs.append(go(tmp_path / name, Scripted(), caps=Caps(dollars=5), **options))
    known, later = runs
    assert known.account == later.account
    assert known.account.paid > 0 < known.account.reserved
    columns = [c for c in known.trials.frame if c != "labels"]
    pd.testing.assert_frame_equal(known.trials.frame[columns], later.trials.frame[columns])
    assert read_run(tmp_path / "later").account == later.account
    # a price that is there stays
    other = price_of("a:b", overrides={"a:b": {"input": 9, "output": 9}})
    assert go(tmp_path / "later", Scripted(), price=other, **options).account == later.account


def test_more_cached_or_reasoned_than_there_was_lowers_no_sum(tmp_path):
    forged = Reply("?", usage=Usage(10, 5, 900, 1000), model_served="m")
    run = go(tmp_path, Scripted(rest=forged))
    assert run.dollars == 16 * (10 * Decimal("0.1") + 5 * 4) / 10**6  # all ten cached, not more
    assert (run.account.reasoning_tokens, run.account.cached_tokens) == (16 * 5, 16 * 10)
