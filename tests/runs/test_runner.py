"""Runs that fail, are capped, interrupted and killed, held against bills that are not ours."""

import asyncio
import inspect
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import contextmanager, suppress
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("openai")

from fault_server import FaultServer, by_hash, read_bill
from scripted import Scripted

from knownminds.agents import Contaminants, RescorlaWagnerDual
from knownminds.environments import InstrumentalLearning, Message, Prompt, Rate, Trials
from knownminds.llm_adapters import (
    AdapterError,
    ModelChanged,
    NoKey,
    NotCapable,
    RateLimited,
    Rejected,
    Reply,
    Sampling,
    ServerFailed,
    Synthetic,
    UnreadableReply,
    Usage,
    run_sessions,
)
from knownminds.llm_adapters.known_minds.faulty import Faults, Faulty
from knownminds.llm_adapters.providers.openai import OpenAI
from knownminds.llm_adapters.runs.admission import Caps, Gate
from knownminds.llm_adapters.runs.ledger import FILE, Ledger, Spent
from knownminds.llm_adapters.runs.prices import price_of
from knownminds.llm_adapters.runs.runner import TRIALS, Retries, read_run, run_sessions_in

KEY = "sk-canary-0123456789abcdef"
ENVIRONMENT = InstrumentalLearning(n_visits=2)  # eight trials
N_TRIALS = ENVIRONMENT.n_trials
LEARNER = RescorlaWagnerDual(alpha_positive=0.4, alpha_negative=0.1, beta=3.0, kappa=0.1)
PRICE = price_of("a:b", overrides={"a:b": {"input": 1, "output": 4}})
QUICK = Retries(pause=0.0, attempts=50, rate_limited=50)


class Chair:
    """Passes everything on, and notes what was asked, answered and under way."""

    provider, base_url = "test", ""

    def __init__(self, adapter, seconds=0.0):
        self.adapter, self.seconds = adapter, seconds
        self.model, self.capabilities = adapter.model, adapter.capabilities
        self.asked, self.bill = [], []
        self.under_way = self.peak = 0
        self.times = []

    async def complete(self, prompt, *, settings):
        self.asked.append((prompt.hash, settings.seed))
        self.times.append(asyncio.get_running_loop().time())
        self.under_way += 1
        self.peak = max(self.peak, self.under_way)
        try:
            await asyncio.sleep(self.seconds)
            reply = await self.adapter.complete(prompt, settings=settings)
        finally:
            self.under_way -= 1
        self.bill.append((prompt.hash, settings.seed, reply.usage))
        return reply

    async def close(self):
        pass

    @property
    def dollars(self):
        return sum(PRICE.cost(usage.input_tokens, usage.output_tokens) for _, _, usage in self.bill)


def mind(**rates):
    return Synthetic(LEARNER, ENVIRONMENT, 9, contaminants=Contaminants(**rates))


def go(folder, adapter, n=3, environment=ENVIRONMENT, **options):
    options = {"price": PRICE, "retries": QUICK, **options}
    return asyncio.run(run_sessions_in(folder, adapter, environment, n, 9, **options))


def unbroken(n=3, **rates):
    return asyncio.run(run_sessions(mind(**rates), ENVIRONMENT, n, 9)).frame


def same(run, frame):
    pd.testing.assert_frame_equal(run.trials.frame.drop(columns=["money", "attempt"]), frame)


def columns_of(frame):
    return frame.drop(columns="attempt")


def attempts_in(folder):
    """How often each (prompt, session) was sent, by what became of it."""
    found = Counter()
    with Ledger.read(folder) as ledger:
        rows = ledger.rows(
            "SELECT c.session, r.body, a.state FROM attempt a JOIN call c ON c.id = a.call "
            "JOIN request r ON r.hash = c.request"
        )
    for session, body, state in rows:
        messages = tuple(Message(*message) for message in json.loads(body)["messages"])
        found[Prompt(messages).hash, session, state] += 1
    return found


# What a run is --------------------------------------------------------------------------------


def test_a_run_with_a_ledger_is_the_run_without_one_and_is_read_from_the_ledger_alone(tmp_path):
    rates = {"malformed": 0.1, "refusal": 0.1, "truncation": 0.1}
    run = go(tmp_path, mind(**rates), 5)
    assert run.complete
    assert run.stopped == ""
    pd.testing.assert_frame_equal(run.trials.frame.drop(columns="money"), unbroken(5, **rates))
    again = read_run(tmp_path)
    pd.testing.assert_frame_equal(again.trials.frame, run.trials.frame)
    pd.testing.assert_frame_equal(Trials.load(tmp_path / TRIALS).frame, run.trials.frame)
    assert json.loads(again.to_json()) == json.loads(run.to_json())
    assert str(again) == str(run)
    assert sum(rate.count for rate in run.outcomes) == 5 * N_TRIALS
    assert run.dollars == run.dollars_paid > 0
    assert run.trials.frame["money"].sum() == pytest.approx(float(run.dollars))


def test_a_run_that_is_done_calls_nothing_when_it_is_resumed(tmp_path):
    first = go(tmp_path, Chair(mind(malformed=0.2)))
    chair = Chair(mind(malformed=0.2))
    second = go(tmp_path, chair)
    assert chair.asked == []
    assert len(second.starts) == 2
    assert second.dollars == first.dollars
    pd.testing.assert_frame_equal(first.trials.frame, second.trials.frame)


def test_a_run_may_be_resumed_with_more_sessions(tmp_path):
    go(tmp_path, Chair(mind()), 2)
    chair = Chair(mind())
    run = go(tmp_path, chair, 4)
    assert len(chair.asked) == 2 * N_TRIALS
    pd.testing.assert_frame_equal(run.trials.frame.drop(columns="money"), unbroken(4))


def test_a_run_is_read_within_a_loop_and_while_it_is_under_way(tmp_path):
    seen = []

    async def watched():
        def watch(progress):
            if progress.calls in (1, 9, 17):
                run = read_run(tmp_path)
                seen.append((progress.trials, 0 if run.trials is None else len(run.trials)))
                assert "under way" in run.stopped
                assert not run.complete

        await run_sessions_in(tmp_path, mind(), ENVIRONMENT, 3, 9, concurrency=1, progress=watch)
        return read_run(tmp_path)

    assert asyncio.run(watched()).complete
    assert seen == [(1, 1), (9, 9), (17, 17)]


def test_progress_is_told_after_every_call_and_adds_up(tmp_path):
    told = []
    adapter = Faulty(mind(malformed=0.2), Faults(failed=0.2), 1)
    run = go(tmp_path, adapter, progress=told.append)
    assert [p.calls for p in told] == sorted(p.calls for p in told)
    assert {p.calls for p in told} >= {run.calls, run.calls - 1}
    last = told[-1]
    assert (last.sessions, last.trials, last.under_way) == (3, 3 * N_TRIALS, 0)
    assert (last.dollars, last.reserved) == (run.dollars, 0)
    assert last.missing == run.trials.frame["action"].isna().sum()
    assert any(p.reserved > 0 for p in told)


def test_outcomes_have_wilson_intervals():
    # Wilson (1927) by hand: z = 1.959964; (p + z2/2n -+ z sqrt(pq/n + z2/4n2)) / (1 + z2/n)
    rate = Rate.count_of("ok", 5, 10)
    assert (rate.low, rate.high) == pytest.approx((0.236593, 0.763407), abs=1e-6)
    assert Rate.count_of("ok", 0, 10).low == 0.0
    assert np.isnan(Rate.count_of("ok", 0, 0).share)


# What fails and is tried again ----------------------------------------------------------------


def test_failures_that_pass_leave_no_trace_but_their_attempts_and_costs(tmp_path):
    faults = Faults(rate_limited=0.1, failed=0.1, timed_out=0.1, cut_off=0.1)
    chair = Chair(mind())
    run = go(tmp_path, Faulty(chair, faults, 3), 6)
    same(run, columns_of(unbroken(6)))
    counts = run.account.calls
    assert counts["error_unpaid"] > 0
    assert counts["error_maybe_paid"] > 0
    assert counts["ok"] == 6 * N_TRIALS
    assert run.trials.frame["attempt"].sum() == run.calls
    assert run.dollars_paid < chair.dollars < run.dollars  # lost answers were paid as well


def test_attempts_are_bounded_and_too_many_calls_are_bounded_apart(tmp_path):
    script = [ServerFailed("a"), RateLimited("b"), RateLimited("c"), RateLimited("d"), "x"]
    chair = Chair(Scripted(*script, *[ServerFailed("down")] * 2, *[RateLimited("often")] * 4, "x"))
    retries = Retries(pause=0.0, attempts=2, rate_limited=4)
    frame = go(tmp_path, chair, 1, retries=retries).trials.frame
    assert frame["attempt"].tolist()[:4] == [5, 2, 4, 1]
    assert frame["outcome"].tolist()[:4] == ["malformed", "error", "error", "malformed"]
    assert frame["note"].tolist()[1:3] == ["down", "often"]
    assert frame["action"].isna().all()


def test_pauses_double_and_are_spread_and_a_wish_to_wait_is_granted_by_all_sessions(tmp_path):
    chair = Chair(Scripted(*[ServerFailed("down")] * 3))
    go(tmp_path / "one", chair, 1, retries=Retries(pause=0.02))
    gaps = np.diff(chair.times)[:3] / 0.02 / [1, 2, 4]
    assert (gaps >= 0.5).all()
    assert np.ptp(np.round(gaps, 3)) > 0
    chair = Chair(Scripted("x", RateLimited("often", 0.5)))
    go(tmp_path / "all", chair, 4, concurrency=4)
    # Nobody asks while the provider wants it so; who was let through before has left by then.
    late = np.array(chair.times) - chair.times[1]
    assert not ((late > 0.25) & (late < 0.5)).any()
    assert (late > 0.5).sum() > N_TRIALS


def test_too_many_calls_halve_how_many_are_under_way_and_success_restores_them():
    async def run():
        gate = Gate(8, Caps(), {})
        for _ in range(8 - gate.allowed):
            gate.went_well()
        assert gate.allowed == 8
        gate.slow_down(gate.now(), 0.0)
        assert gate.allowed == 4
        gate.slow_down(gate.now() - 1.0, 0.0)  # sent before the halving: the same trouble
        assert gate.allowed == 4
        for _ in range(3):
            gate.slow_down(gate.now(), 0.0)
        assert gate.allowed == 1
        inside = asyncio.gather(*(gate.enter(0, Spent(1)) for _ in range(3)))
        await asyncio.sleep(0.01)
        assert gate.under_way == 1
        for _ in range(200):
            gate.went_well()
        assert gate.allowed == 8
        assert await inside == [Spent(1)] * 3

    asyncio.run(run())


def test_concurrency_bounds_what_is_under_way(tmp_path):
    for concurrency in (1, 3):
        chair = Chair(mind(), 0.01)
        go(tmp_path / str(concurrency), chair, 6, concurrency=concurrency)
        assert chair.peak == concurrency


def test_a_failure_that_repeats_identically_stops_the_run_and_is_asked_again(tmp_path):
    chair = Chair(Scripted("x", *[Rejected("too long")] * 9))
    run = go(tmp_path, chair, 1)
    assert len(chair.asked) == 4
    assert run.stopped == "3 questions in a row had no answer: too long"
    assert [s.trials for s in run.unfinished] == [3]
    assert run.trials.frame["outcome"].tolist() == ["malformed", "error", "error"]
    again = Chair(Scripted(*["y"] * 5))
    run = go(tmp_path, again, 1)
    assert not run.unfinished
    assert again.asked[0] == chair.asked[-1]
    assert run.trials.frame["outcome"].tolist() == ["malformed", "error", "error"] + 5 * [
        "malformed"
    ]
    # failures of different kinds, or with an answer between them, do not
    mixed = [Rejected("a"), UnreadableReply("b"), Rejected("a"), Rejected("b"), "x", Rejected("a")]
    assert not go(tmp_path / "mixed", Scripted(*mixed), 1).unfinished


def test_a_provider_that_asks_to_wait_for_too_long_stops_the_run(tmp_path):
    began = time.perf_counter()
    run = go(tmp_path, Scripted("x", RateLimited("often", 86_400.0)))
    assert time.perf_counter() - began < 5
    assert run.stopped == "the provider asks to wait for 86400 seconds"
    assert len(run.unfinished) == 3


@pytest.mark.parametrize("error", [NoKey("no key"), NotCapable("cannot")])
def test_a_run_in_vain_is_stopped_and_what_was_paid_for_stays(tmp_path, error):
    chair = Chair(Scripted(*["x"] * 5, error))
    with pytest.raises(type(error), match=str(error)):
        go(tmp_path, chair, 6, concurrency=3)
    assert len(chair.asked) <= 8
    run = read_run(tmp_path)
    assert run.stopped == str(error)
    assert run.account.calls["ok"] == len(chair.bill)
    assert len(run.trials) == len(chair.bill)
    rest = Chair(Scripted())
    assert not go(tmp_path, rest, 6).unfinished
    assert len(rest.asked) == 6 * N_TRIALS - len(chair.bill)


def test_a_model_that_changes_is_told_and_kept_out_now_and_when_resumed(tmp_path):
    chair = Chair(Scripted(*["x"] * 11, Reply("A", model_served="n")))
    with pytest.raises(ModelChanged, match="'m' and then as 'n'"):
        go(tmp_path, chair)
    again = Chair(Scripted())
    with pytest.raises(ModelChanged, match="'m' and then as 'n'"):
        go(tmp_path, again, concurrency=1)
    run = read_run(tmp_path)
    assert set(run.trials.frame["model_served"]) == {"m"}
    assert "These are two participants" in run.stopped
    assert run.account.calls["ok"] == len(chair.bill) + len(again.bill)


def test_a_mistake_in_an_adapter_is_not_hidden_and_others_come_to_their_end(tmp_path):
    chair = Chair(Scripted(*["x"] * 5, TypeError("a bug")))
    with pytest.raises(TypeError, match="a bug"):
        go(tmp_path, chair, 6, concurrency=3)
    run = read_run(tmp_path)
    assert run.account.calls["ok"] == len(chair.bill)
    assert run.account.calls["inflight"] == 1
    assert go(tmp_path, Scripted(), 6).account.calls["unknown"] == 1


# Asking again ---------------------------------------------------------------------------------


def test_malformed_answers_are_asked_again_only_on_demand_and_counted(tmp_path):
    script = ["hm", "hm", "K or so", "", "I can't help with that.", "hm", Rejected("no")]
    run = go(tmp_path / "off", Scripted(*script), 1, environment=InstrumentalLearning(1))
    assert run.account.re_asked == 0
    assert run.trials.frame["outcome"].tolist() == ["malformed"] * 3 + ["empty"]
    chair = Chair(Scripted(*script))
    run = go(tmp_path / "on", chair, 1, environment=InstrumentalLearning(1), re_ask=2)
    frame = run.trials.frame
    assert frame["outcome"].tolist() == ["malformed", "empty", "refused", "malformed"]
    assert frame["attempt"].tolist() == [3, 1, 1, 2]
    assert frame["raw_text"].tolist()[3] == "hm"  # kept, though asking again brought nothing
    assert run.account.re_asked == 3
    assert chair.asked[0] == chair.asked[1] == chair.asked[2]
    assert frame["money"].iloc[0] == pytest.approx(3 * 15e-6)  # all three were paid
    pd.testing.assert_frame_equal(read_run(tmp_path / "on").trials.frame, frame)
    idle = Chair(Scripted())
    again = go(tmp_path / "on", idle, 1, environment=InstrumentalLearning(1), re_ask=2)
    assert idle.asked == []
    pd.testing.assert_frame_equal(again.trials.frame, frame)


# Caps -----------------------------------------------------------------------------------------

TIGHT = [
    {"calls": 13},
    {"tokens": 9_000},
    {"dollars": "0.008"},
    {"session_calls": 5},
    {"session_tokens": 4_000},
    {"session_dollars": 0.004},
    {"dollars": 0.01, "session_calls": 7, "tokens": 11_000},
]


def use_of(folder):
    """What a run and its sessions have used: calls, tokens and dollars each."""
    with Ledger.read(folder) as ledger:
        spent = ledger.spent()
    total = Spent()
    for one in spent.values():
        total.add(one)
    return total, spent.values()


@pytest.mark.parametrize(("seed", "limits"), list(enumerate(TIGHT)))
def test_no_cap_is_passed_whatever_fails_and_however_often_it_is_resumed(tmp_path, seed, limits):
    faults = Faults(rate_limited=0.05, failed=0.1, timed_out=0.1, cut_off=0.1, unreadable=0.05)
    chair = Chair(mind(malformed=0.1))
    caps = Caps(answer_tokens=20, **limits)
    for _ in range(3):
        run = go(tmp_path, Faulty(chair, faults, seed), 4, caps=caps, concurrency=3)
        total, sessions = use_of(tmp_path)
        for bound, used in [(caps.of_run, [total]), (caps.of_session, sessions)]:
            for most, name in zip(bound, ("calls", "tokens", "money"), strict=True):
                assert most is None or all(getattr(one, name) <= most for one in used)
        assert chair.dollars <= run.dollars == Decimal(total.money) / 10**9
        assert run.unfinished
        assert all("cap of" in session.reason for session in run.unfinished)
    # What the caps kept from being asked is asked without them, and nothing twice.
    whole = go(tmp_path, chair, 4)
    assert whole.complete
    known = whole.trials.frame["outcome"] != "error"
    expected = unbroken(4, malformed=0.1)
    if known.all():
        same(whole, columns_of(expected))


def test_a_cap_is_used_up_to_what_one_more_call_could_cost(tmp_path):
    # Far more is reserved than is used (a token per byte), by eight calls at once.
    caps = Caps(dollars="0.006", answer_tokens=20)
    run = go(tmp_path, mind(), 8, caps=caps, concurrency=8)
    most = 3_000 * Decimal("1e-6")  # what the longest prompt can cost
    assert caps.dollars - most < run.dollars <= caps.dollars
    assert run.stopped == "the cap of $0.006 is reached"
    assert len(run.trials) == run.calls


def test_a_cap_on_sessions_leaves_the_run_going(tmp_path):
    run = go(tmp_path, mind(), 4, caps=Caps(session_calls=5), concurrency=2)
    assert run.stopped == ""
    assert [(s.session, s.trials) for s in run.unfinished] == [(i, 5) for i in range(4)]
    assert {s.reason for s in run.unfinished} == {"the session's cap of 5 calls is reached"}
    assert read_run(tmp_path).unfinished == run.unfinished
    assert go(tmp_path, mind(), 4).complete


def test_a_cap_of_nothing_asks_nothing(tmp_path):
    chair = Chair(mind())
    run = go(tmp_path, chair, caps=Caps(dollars=0, answer_tokens=9))
    assert chair.asked == []
    assert run.trials is None
    assert not (tmp_path / TRIALS).exists()
    assert [s.trials for s in run.unfinished] == [0, 0, 0]
    assert "0 of 3 sessions lived to their end" in str(run)
    assert json.loads(run.to_json())["outcomes"]["ok"]["share"] is None


def test_money_is_not_capped_without_a_price_nor_without_a_bound_on_answers(tmp_path):
    chair = Chair(mind())
    with pytest.raises(ValueError, match=r"none is known for test:rescorla.*--price"):
        go(tmp_path, chair, caps=Caps(dollars=1, answer_tokens=9), price=None)
    for name in ("dollars", "session_dollars", "tokens", "session_tokens"):
        with pytest.raises(ValueError, match="an answer must be bounded; got no max_tokens"):
            go(tmp_path, chair, caps=Caps(**{name: 1}))
    assert not (tmp_path / FILE).exists()
    capped = Caps(dollars=1)
    bounded = Sampling(max_tokens=9)
    assert not go(tmp_path, Scripted(), caps=capped, settings=bounded).unfinished
    go(tmp_path / "free", chair, price=None)
    assert read_run(tmp_path / "free").dollars is None
    with pytest.raises(ValueError, match="none is known"):  # until it is told
        go(tmp_path / "free", chair, caps=Caps(dollars=1, answer_tokens=9), price=None)


@pytest.mark.parametrize("honest", [0, 5])
def test_a_server_that_counts_more_than_could_be_foreseen_passes_a_cap_by_one_call_at_most(
    tmp_path, honest
):
    # 64 at once, and each answer costs what 40 of the longest could: after `honest` ones that do
    # not. The calls double in each round, so that few are under way when it begins.
    greedy = Reply("x", usage=Usage(10, 50_000), model_served="m")
    once = PRICE.cost(10, 50_000)
    chair = Chair(Scripted(*["x"] * honest, rest=greedy))
    caps = Caps(dollars="0.3", answer_tokens=50)
    run = go(tmp_path, chair, 64, caps=caps, concurrency=64)
    assert run.stopped == "the cap of $0.3 is reached"
    under_way = max(1, honest)
    assert run.dollars == chair.dollars <= Decimal("0.3") + once * under_way
    assert run.account.unforeseen == len(chair.bill) - honest >= 1
    assert "answers with more tokens than could be foreseen" in str(run)


def test_what_a_call_has_used_beyond_what_could_be_foreseen_is_reserved_for_the_others(tmp_path):
    # Several times what could be foreseen, each time: the first tells what to reserve for the
    # others; the run goes on, and keeps the cap.
    more = Reply("x", usage=Usage(10, 3_000), model_served="m")
    caps = Caps(dollars="0.2", answer_tokens=50)
    run = go(tmp_path, Chair(Scripted(rest=more)), 8, caps=caps, concurrency=8)
    assert run.account.unforeseen == 1
    assert Decimal("0.1") < run.dollars <= Decimal("0.2")
    gate = Gate(8, caps, {})
    asyncio.run(_over_report(gate))
    assert gate.allowed == 1
    assert gate.foreseen(Spent(1, 10, 10)) == Spent(1, 30, 30)


async def _over_report(gate):
    assert await gate.enter(0, Spent(1, 10, 10)) == Spent(1, 10, 10)
    gate.leave(0, Spent(1, 10, 10), Spent(1, 30, 20))


def test_what_a_provider_does_not_say_counts_at_its_most(tmp_path):
    silent = Reply("x", usage=Usage(), model_served="m")
    caps = Caps(dollars=5, answer_tokens=50)
    run = go(tmp_path, Scripted(*[silent] * N_TRIALS), 1, caps=caps)
    prompts = read_run(tmp_path).trials.frame
    assert prompts["input_tokens"].isna().all()
    assert run.dollars >= N_TRIALS * PRICE.cost(500, 50)
    assert run.dollars_paid == 0  # nobody knows what of it
    assert run.account.untold == N_TRIALS


@pytest.mark.parametrize(
    ("rates", "cost"),
    [
        ({}, 1000 * 1 + 50 * 4),  # the price of cached input is not known: it counts in full
        ({"cached_input": 0.25}, 600 * 1 + 400 * Decimal("0.25") + 50 * 4),
        ({"cached_input": 0.25, "llm": "anthropic:b"}, 300 + 300 * 1.25 + 100 + 50 * 4),
        ({"llm": "anthropic:b"}, 700 + 300 * 1.25 + 50 * 4),
    ],
)
def test_an_answer_costs_what_its_tokens_cost(tmp_path, rates, cost):
    llm = rates.pop("llm", "a:b")  # of those that charge for writing, what is known of them counts
    price = price_of(llm, overrides={llm: {"input": 1, "output": 4, **rates}})
    usage = Usage(1000, 50, reasoning_tokens=30, cached_tokens=400, written_tokens=300)
    reply = Reply("x", usage=usage)
    run = go(tmp_path, Scripted(*[reply] * N_TRIALS), 1, price=price)
    assert run.dollars == N_TRIALS * Decimal(cost) / Decimal(10**6)
    assert run.account.written_tokens == 300 * N_TRIALS
    assert (run.account.cached_tokens, run.account.reasoning_tokens) == (
        400 * N_TRIALS,
        30 * N_TRIALS,
    )


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"calls": -1}, "A cap on calls is a whole number from 0 on; got -1"),
        ({"tokens": 1.5}, "whole number"),
        ({"dollars": "much"}, "A cap on dollars is an amount from 0 on; got 'much'"),
        ({"session_dollars": float("nan")}, "amount from 0 on"),
    ],
)
def test_caps_out_of_range_are_told(given, said):
    with pytest.raises(ValueError, match=said):
        Caps(**given)


def test_misuse_is_told(tmp_path):
    with pytest.raises(ValueError, match="at least 1, re_ask at least 0; got 0, 8 and 0"):
        go(tmp_path, mind(), 0)
    with pytest.raises(ValueError, match="attempts is at least 1; got 0"):
        Retries(attempts=0)
    with pytest.raises(ValueError, match="last part of its address; got seed=3"):
        go(tmp_path, mind(), settings=Sampling(seed=3))
    with pytest.raises(ValueError, match="there is none in"):
        read_run(tmp_path)
    assert list(tmp_path.iterdir()) == []


# Interruptions --------------------------------------------------------------------------------


class Crash(BaseException):
    """Stands for the end of the process: nobody catches it."""


@pytest.mark.parametrize("seed", range(6))
def test_whatever_fails_and_wherever_it_dies_the_transcript_is_that_of_an_unbroken_run(
    tmp_path, seed
):
    rng = np.random.default_rng(seed)
    shares = 0.4 * rng.dirichlet(np.ones(6)) * rng.integers(0, 2, 6)
    names = ("rate_limited", "told_to_wait", "failed", "timed_out", "cut_off")
    faults = Faults(**dict(zip(names, shares, strict=False)))
    concurrency, n = int(rng.integers(1, 5)), 8
    chair = Chair(mind(malformed=0.1, refusal=0.05))
    faulty = Faulty(chair, faults, seed, retry_after=0.001)
    crashes = 0
    while True:
        done = {key for key in attempts_in(tmp_path) if key[2] == "ok"} if crashes else set()
        before = Counter((prompt, session) for prompt, session, _ in chair.bill)
        left = [int(rng.integers(1, 11))] if crashes < 4 else [0]
        paid = rng.random() < 0.5  # whether the last answer was made, and lost

        class Dying:
            model, provider, base_url = faulty.model, faulty.provider, faulty.base_url
            capabilities = faulty.capabilities

            async def complete(self, prompt, *, settings, left=left, paid=paid):
                left[0] -= 1
                dies = left[0] == 0
                if dies and not paid:
                    raise Crash
                try:
                    reply = await faulty.complete(prompt, settings=settings)
                except AdapterError:
                    if not dies:
                        raise
                if dies:
                    raise Crash
                return reply

        try:
            run = go(tmp_path, Dying(), n, concurrency=concurrency)
        except Crash:
            crashes += 1
        else:
            break
        finally:
            after = Counter((prompt, session) for prompt, session, _ in chair.bill)
            assert all(after[key[:2]] == before[key[:2]] for key in done)
    assert crashes == 4
    same(run, columns_of(unbroken(n, malformed=0.1, refusal=0.05)))
    assert chair.dollars <= run.dollars
    assert run.account.calls["ok"] == n * N_TRIALS
    assert run.account.calls.get("unknown", 0) <= crashes * concurrency
    states = attempts_in(tmp_path)
    for (prompt, session), billed in after.items():
        kinds = ("ok", "error_maybe_paid", "unknown")
        assert billed <= sum(states[prompt, session, kind] for kind in kinds)


def test_a_cancelled_run_waits_for_what_is_under_way(tmp_path):
    chair = Chair(mind())
    slow = chair.complete

    async def complete(prompt, *, settings):
        await asyncio.sleep(0.05)
        return await slow(prompt, settings=settings)

    chair.complete = complete

    async def run():
        task = asyncio.create_task(run_sessions_in(tmp_path, chair, ENVIRONMENT, 6, 9))
        await asyncio.sleep(0.15)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())
    run = read_run(tmp_path)
    assert run.stopped == "interrupted"
    assert run.account.calls == {"ok": len(chair.bill)}
    assert len(Trials.load(tmp_path / TRIALS)) == len(chair.bill) > 0


def test_other_words_for_the_same_call_are_an_error_and_never_a_new_question(tmp_path):
    words = Path(inspect.getfile(InstrumentalLearning)).with_suffix(".toml")
    file = tmp_path / "words.toml"
    file.write_text(words.read_text(encoding="utf-8"), encoding="utf-8")
    environment = InstrumentalLearning(2, templates=str(file))
    go(tmp_path / "run", Scripted(*["x"] * 5), 1, environment, caps=Caps(calls=5))
    changed = words.read_text(encoding="utf-8").replace("Which of them", "Which one")
    assert changed != words.read_text(encoding="utf-8")
    file.write_text(changed, encoding="utf-8")
    chair = Chair(Scripted())
    for way in (lambda f: go(f, chair, 1, InstrumentalLearning(2, templates=str(file))), read_run):
        with pytest.raises(ValueError, match="the wording or the parsing has changed"):
            way(tmp_path / "run")
    assert chair.asked == []


def test_another_design_is_refused(tmp_path):
    go(tmp_path, mind())
    with pytest.raises(ValueError, match="n_visits 2, asked is 3"):
        go(tmp_path, mind(), environment=InstrumentalLearning(3))
    with pytest.raises(ValueError, match='provider "synthetic", asked is "test"'):
        go(tmp_path, Scripted())
    with pytest.raises(ValueError, match=r"temperature null, asked is 0\.5"):
        go(tmp_path, mind(), settings=Sampling(temperature=0.5))


# Against a server, with the official package ----------------------------------------------------


def through(server, folder, n, environment=ENVIRONMENT, timeout=5.0, **options):
    async def run():
        adapter = OpenAI(
            "m", base_url=server.address["openai"], key_variable="CANARY", timeout=timeout
        )
        try:
            return await run_sessions_in(folder, adapter, environment, n, 9, **options)
        finally:
            await adapter.close()

    return asyncio.run(run())


def cost_of(bill):
    return sum(PRICE.cost(*line["tokens"]) for line in bill)


def test_a_bad_day_is_survived_and_every_trial_accounted_for(tmp_path, monkeypatch):
    monkeypatch.setenv("CANARY", KEY)
    bill = tmp_path / "bill"
    kinds = ("429", "429_seconds", "500", "garbage", "refusal", "drop_after", "cut", "echo_key")
    with FaultServer(
        by_hash,
        faults={**dict.fromkeys(kinds, 0.05), "hang": 0.02},
        seed=4,
        bill=bill,
        key=KEY,
        hang=4.0,
        retry_after=0.01,
    ) as server:
        run = through(
            server,
            tmp_path / "run",
            10,
            timeout=1.5,  # also a busy machine answers in that time
            price=PRICE,
            caps=Caps(dollars="0.5", answer_tokens=20),
            retries=Retries(pause=0.001, attempts=20),
        )
        charged = Counter(call.fault for call in server.charged)
        seen = server.outcomes
    assert run.complete
    frame = run.trials.frame
    assert len(frame) == 10 * N_TRIALS
    outcomes = frame["outcome"].value_counts()
    assert outcomes["refused"] == charged["refusal"]
    assert outcomes["malformed"] == charged["garbage"] + charged["echo_key"]
    assert outcomes["error"] == charged["cut"]
    assert all(seen[kind] > 0 for kind in ("429", "500", "hang", "cut", "echo_key"))
    assert cost_of(read_bill(bill)) <= run.dollars <= Decimal("0.5")
    # Every call that the server has seen is an attempt, and the other way round.
    assert run.calls == sum(seen.values())
    for file in (tmp_path / "run").iterdir():
        assert KEY.encode() not in file.read_bytes()
    assert frame["raw_text"].fillna("").str.contains(r"\[key\]").sum() == charged["echo_key"]


NURSERY = """
import asyncio, json, os, signal, sys
from knownminds.environments import InstrumentalLearning, Message, Prompt
from knownminds.llm_adapters import Sampling, Unreachable
from knownminds.llm_adapters.providers.openai import OpenAI
from knownminds.llm_adapters.runs.prices import price_of
from knownminds.llm_adapters.runs.runner import run_sessions_in

def tell(*said):
    os.write(1, (" ".join(map(str, said)) + "\\n").encode())

async def live(url, folder, n, visits, concurrency=8, interrupted_at=None):
    adapter = OpenAI("m", base_url=url, key_variable="CANARY")
    price = price_of("a:b", overrides={"a:b": {"input": 1, "output": 4}})
    told = []
    def watch(progress):
        if not told:
            tell("called")
        told.append(progress)
        if len(told) == interrupted_at:
            os.kill(os.getpid(), signal.SIGINT)
    environment = InstrumentalLearning(visits)
    await run_sessions_in(
        folder, adapter, environment, n, 9, price=price, progress=watch, concurrency=concurrency
    )

async def warm_up():  # the package loads much with its first call
    adapter = OpenAI("m", base_url="http://127.0.0.1:9/v1", key_variable="CANARY")
    try:
        await adapter.complete(Prompt((Message("user", "?"),)), settings=Sampling())
    except Unreachable:
        await adapter.close()

asyncio.run(warm_up())
# A shell that begins the tests in the background has interrupts ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
tell("ready")
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        try:
            asyncio.run(live(*json.loads(line)))
        except KeyboardInterrupt:
            os._exit(7)
        except BaseException as error:
            print(repr(error), file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    tell("child", child)
    tell("status", os.waitpid(child, 0)[1])
"""


class Nursery:
    """A process that has imported everything, and lives runs in children that can be killed."""

    def __init__(self):
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-c", NURSERY],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "CANARY": KEY},
        )
        assert self._line() == ["ready"]

    def _line(self):
        return self.process.stdout.readline().split()

    def live(self, *given, seconds=None, called=False, number=signal.SIGKILL, look=None):
        """Live a run; return its exit status.

        If `seconds` are given, they are what it has to live, from its beginning or, if `called`,
        from the first call that it has made. `look` is called once it stands still for ever.
        """
        self.process.stdin.write(json.dumps(given) + "\n")
        self.process.stdin.flush()
        child, left = None, seconds is not None
        while True:
            # The first two lines may come in either order, or one without the other.
            told = self._line()
            if told[0] == "status":
                return int(told[1])
            if told[0] == "child":
                child = int(told[1])
            else:
                called = False
            if left and child is not None and not called:
                time.sleep(seconds)
                left = False
                with suppress(ProcessLookupError):  # it has come to its end before
                    if look is not None:
                        stand_still(child)
                        look()
                    os.kill(child, number)


def stand_still(process):
    """Stop all threads of a process where they are, or find that it has ended."""
    os.kill(process, signal.SIGSTOP)
    while True:
        threads = Path(f"/proc/{process}/task").glob("*/stat")
        states = {file.read_text().rpartition(")")[2].split()[0] for file in threads}
        if states <= {"T", "Z"}:
            return
        time.sleep(0.001)


@pytest.fixture(scope="module")
def nursery():
    nursery = Nursery()
    yield nursery
    nursery.process.stdin.close()
    nursery.process.wait(10)
    nursery.process.stdout.close()


@contextmanager
def serving(folder, *options):
    """Serve in a process of its own; yields the base URL."""
    file = folder / "port"
    command = [sys.executable, "-P", str(Path(__file__).parents[1] / "fault_server.py")]
    command += ["--port-file", str(file), "--bill", str(folder / "bill"), *options]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)  # it tells of cut requests
    try:
        while not file.exists():
            assert process.poll() is None
            time.sleep(0.01)
        yield f"http://127.0.0.1:{file.read_text()}/v1"
    finally:
        process.terminate()
        process.wait(10)


def finished(folder):
    """The prompts that have their answer."""
    if not (folder / FILE).exists():
        return set()
    try:
        return {prompt for prompt, _, state in attempts_in(folder) if state == "ok"}
    except ValueError:  # killed before its first line
        return set()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_run_killed_at_twenty_moments_is_that_of_an_unbroken_one_and_pays_nothing_twice(
    tmp_path, nursery
):
    n, visits, concurrency = 24, 4, 8  # 384 calls; 8 is the default concurrency
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    for folder in (whole, broken):
        folder.mkdir()
    with serving(whole) as url:
        assert nursery.live(url, str(whole / "run"), n, visits) == 0
    rng = np.random.default_rng(5)
    marks = []
    with serving(broken, "--delay", "0.02") as url:  # lest a fast machine is done too early
        given = (url, str(broken / "run"), n, visits)
        for kill in range(20):
            # While it begins and reads what is stored, or while it asks.
            called = kill % 4 > 0
            seconds = rng.uniform(0.0, 0.06)
            assert nursery.live(*given, seconds=seconds, called=called) == signal.SIGKILL
            marks.append((finished(broken / "run"), Counter(bills_of(broken))))
        assert nursery.live(*given) == 0
        bill = Counter(bills_of(broken))
        assert nursery.live(*given) == 0  # resumed when it is done: nothing is called
        assert Counter(bills_of(broken)) == bill
    run, unbroken_run = read_run(broken / "run"), read_run(whole / "run")
    pd.testing.assert_frame_equal(run.trials.frame, unbroken_run.trials.frame)
    saved = [Trials.load(folder / "run" / TRIALS).frame for folder in (broken, whole)]
    pd.testing.assert_frame_equal(*saved)
    assert len(bill) == n * 4 * visits == len(Counter(bills_of(whole)))  # prompts are all different
    moments = {len(done) for done, _ in marks}
    assert len(moments) > 10
    assert max(moments) < len(bill)
    for done, before in marks:
        assert all(bill[prompt] == before[prompt] >= 1 for prompt in done)
    repeated = sum(bill.values()) - len(bill)
    assert repeated <= run.account.calls.get("unknown", 0) <= 20 * concurrency
    assert len(run.starts) >= 17  # some died before they had begun
    assert cost_of(read_bill(broken / "bill")) <= run.dollars
    assert cost_of(read_bill(whole / "bill")) == unbroken_run.dollars
    with Ledger.read(broken / "run") as ledger:
        counts = dict(ledger.rows("SELECT outcome, COUNT(*) FROM call GROUP BY outcome"))
    assert counts == run.trials.frame["outcome"].value_counts().to_dict()
    for file in (broken / "run").iterdir():
        assert KEY.encode() not in file.read_bytes()


def bills_of(folder):
    return [line["prompt"] for line in read_bill(folder / "bill")]


linux = pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="needs Linux's own files")


def unread(port):
    """The bytes that wait in the sockets of the clients of a server, by the clients' ports."""
    found = {}
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        _, here, there, _, queues, *_ = line.split()
        if int(there.rpartition(":")[2], 16) == port:
            found[int(here.rpartition(":")[2], 16)] = int(queues.partition(":")[2], 16)
    return found


class Killing:
    """A run that is killed again and again with 16 calls at once, and what became of its answers.

    Which answers a killed process had read, the system knows, whatever the process does: the
    server notes when all bytes of an answer are with the system, and those that a process that
    stands still has not taken wait in its socket.
    """

    def __init__(self, folder):
        self.folder = folder
        # requests, each with the length of the bill at the first kill that it had come before
        self.read, self.waited = {}, {}
        self.looked = 0  # answers that earlier kills have come after

    def live(self, nursery, kills, n, visits):
        """Live the run, killed so often, to its end."""
        rng = np.random.default_rng(7)
        with serving(self.folder, "--delay", "0.03", "--sent", str(self.folder / "sent")) as url:
            self.port = int(url.rpartition(":")[2].partition("/")[0])
            given = (url, str(self.folder / "run"), n, visits, 16)
            for _ in range(kills):
                seconds = rng.uniform(0.0, 0.25)
                status = nursery.live(*given, seconds=seconds, called=True, look=self.look)
                assert status in (signal.SIGKILL, 0)
            self.unknown = read_run(self.folder / "run").account.calls["unknown"]
            assert nursery.live(*given) == 0
        self.bill = [line["request"] for line in read_bill(self.folder / "bill")]
        return self

    def sent(self):
        """The requests that were answered, with the ports of their connections."""
        lines = (self.folder / "sent").read_text().splitlines()
        return [(request, int(port)) for request, port in map(str.split, lines)]

    def look(self):
        """Take down which answers the process has read, and which wait in its sockets."""
        before = {request for request, _ in self.sent()[self.looked :]}
        settled = 0
        while settled < 3:  # until the server has answered all that it was asked
            time.sleep(0.02)
            asked = len(read_bill(self.folder / "bill"))
            settled = settled + 1 if len(self.sent()) == asked else 0
        there = self.sent()[self.looked :]
        self.looked += len(there)
        last = {port: request for request, port in there}  # a connection has one call at a time
        waiting = {last[port] for port, size in unread(self.port).items() if size and port in last}
        for request, _ in there:
            if request not in waiting:
                self.read.setdefault(request, asked)
            elif request in before:
                self.waited.setdefault(request, asked)

    def again(self, answers):
        """Tell how many of these were asked for again after the kill."""
        return sum(request in self.bill[asked:] for request, asked in answers.items())


@linux
def test_an_answer_that_was_read_is_not_asked_for_again_after_a_kill(tmp_path, nursery):
    killing = Killing(tmp_path).live(nursery, 4, 32, 8)
    # Were answers not kept as they are read, some of up to 8 a kill would be lost each time. That a
    # kill falls between reading and writing remains possible (see the hundred kills): .012 are
    # expected of 4 kills, 1 or fewer with 99.99%.
    assert killing.again(killing.read) <= 1
    assert len(killing.read) > 16
    assert len(set(killing.bill)) == 32 * 32


@pytest.mark.long
@linux
def test_a_hundred_kills_lose_no_answer_that_was_read(tmp_path, nursery):
    killing = Killing(tmp_path).live(nursery, 100, 200, 8)
    again, waited = killing.again(killing.read), killing.again(killing.waited)
    print(f"{len(killing.bill)} calls of {200 * 32} questions, {killing.unknown} of unknown fate")
    print(f"{len(killing.read)} answers read before a kill, {again} of them asked for again")
    print(f"{len(killing.waited)} unread in a socket, {waited} of them asked for again")
    assert killing.unknown > 100  # it was killed while calls were under way
    # The aim is 0. From the system call that reads an answer to the one that writes it are 7 us,
    # and at most 450 answers come in a second: .3 are expected of 100 kills; 2 or fewer with 99.6%.
    assert again <= 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_control_c_lets_what_is_under_way_come_to_its_end(tmp_path, nursery):
    with serving(tmp_path, "--delay", "0.1") as url:
        given = (url, str(tmp_path / "run"), 12, 4)
        status = nursery.live(*given, 8, 5)  # by itself, at what it tells the fifth time
        assert os.waitstatus_to_exitcode(status) == 7
        run = read_run(tmp_path / "run")
        bill = Counter(bills_of(tmp_path))
        assert run.stopped == "interrupted"
        assert run.account.calls == {"ok": sum(bill.values())}
        assert 0 < len(run.trials) == len(bill) < 12 * 4 * 4
        assert nursery.live(*given) == 0
    assert set(Counter(bills_of(tmp_path)).values()) == {1}
    assert read_run(tmp_path / "run").complete
