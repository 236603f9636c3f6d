"""Runs that fail, are capped, interrupted and killed, held against bills that are not ours."""

import asyncio
import json
from collections import Counter
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from faulty import FAULTS, Faulty
from scripted import Scripted, often, server_failed

from knownminds.agents import Contaminants, RescorlaWagnerDual
from knownminds.calling import Caps
from knownminds.environments import InstrumentalLearning, Trials
from knownminds.llm_adapters import Failed, InProcess, Reply, Synthetic, Usage
from knownminds.llm_adapters.runs.admission import Admission, Spending
from knownminds.llm_adapters.runs.ledger import Ledger
from knownminds.llm_adapters.runs.prices import Spent, price_of
from knownminds.llm_adapters.runs.runner import (
    TRIALS,
    Retries,
    RunOptions,
    read_run,
    run_sessions_in,
)
from knownminds.validation.costs.run_page import say

ENVIRONMENT = InstrumentalLearning(n_visits=2)  # eight trials
N_TRIALS = ENVIRONMENT.n_trials
LEARNER = RescorlaWagnerDual(alpha_positive=0.4, alpha_negative=0.1, beta=3.0, kappa=0.1)
PRICE = price_of("a:b", overrides={"a:b": {"input": 1, "output": 4}})
QUICK = Retries(pause=0.0, rate_limited=50)


class Chair(InProcess):
    """Passes everything on, and notes what was asked, answered and under way."""

    provider = "test"

    def __init__(self, adapter, seconds=0.0):
        self.adapter, self.seconds = adapter, seconds
        self.model, self.heeds = adapter.model, adapter.heeds
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

    @property
    def dollars(self):
        return sum(PRICE.cost(usage.input_tokens, usage.output_tokens) for _, _, usage in self.bill)


def mind(**rates):
    return Synthetic(LEARNER, ENVIRONMENT, 9, contaminants=Contaminants(**rates))


def go(folder, adapter, n=3, environment=ENVIRONMENT, **options):
    how = RunOptions(**{"price": PRICE, "attempts": 50, "retries": QUICK, **options})
    return asyncio.run(run_sessions_in(folder, adapter, environment, n, 9, how=how))


def unbroken(n=3, **rates):
    return asyncio.run(run_sessions_in(None, mind(**rates), ENVIRONMENT, n, 9)).trials.frame


def same(run, frame):
    pd.testing.assert_frame_equal(run.trials.frame.drop(columns=["money", "attempt"]), frame)


def columns_of(frame):
    return frame.drop(columns="attempt")


def attempts_in(folder):
    """How often each (prompt, session) was sent, by what became of it."""
    found = Counter()
    with Ledger.read(folder) as ledger:
        for attempt in ledger.attempts():
            found[ledger.request(attempt.request)[0].hash, attempt.key[0], attempt.state] += 1
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
    assert str(say(again)) == str(say(run))
    assert sum(rate.count for rate in run.outcomes) == 5 * N_TRIALS
    assert run.dollars == run.dollars_paid > 0
    assert run.trials.frame["money"].sum() == pytest.approx(float(run.dollars))


# What fails and is tried again ----------------------------------------------------------------


def test_attempts_are_bounded_and_too_many_calls_are_bounded_apart(tmp_path):
    script = [server_failed("a"), often("b"), often("c"), often("d"), "x"]
    chair = Chair(Scripted(*script, *[server_failed("down")] * 2, *[often("often")] * 4, "x"))
    retries = Retries(pause=0.0, rate_limited=4)
    frame = go(tmp_path, chair, 1, attempts=2, retries=retries).trials.frame
    assert frame["attempt"].tolist()[:4] == [5, 2, 4, 1]
    assert frame["outcome"].tolist()[:4] == ["malformed", "error", "error", "malformed"]
    assert frame["note"].tolist()[1:3] == ["down", "often"]
    assert frame["action"].isna().all()


def test_questions_here_and_there_without_an_answer_do_not_stop_a_run(tmp_path):
    script = [server_failed("down"), "A"] * 6
    retries = Retries(pause=0.0, identical=3, unanswered=3)
    run = go(tmp_path, Scripted(*script, rest="A"), 2, concurrency=1, attempts=1, retries=retries)
    assert (run.stopped, run.unfinished) == ("", ())
    assert Counter(run.trials.frame["outcome"])["error"] == 6


@pytest.mark.parametrize("kind", ["often", "server 500"])
def test_a_provider_that_says_how_long_to_wait_is_not_asked_before(tmp_path, kind):
    told = Failed("later", "retry", kind, charged=False, wait=0.3)
    chair = Chair(Scripted("A", told, rest="A"))
    run = go(tmp_path, chair, 1)
    assert run.account.calls == {"ok": N_TRIALS, "error_unpaid": 1}
    assert chair.asked[1] == chair.asked[2]
    assert chair.times[2] - chair.times[1] >= 0.3


def test_who_asks_to_wait_for_longer_than_a_run_waits_stops_it(tmp_path):
    chair = Chair(Scripted("A", often("later", 601), rest="A"))
    run = go(tmp_path, chair, 1)
    assert run.stopped == "the provider asks to wait for 601 seconds"
    assert len(chair.asked) == 2


def test_too_many_calls_halve_how_many_are_under_way_and_success_restores_them():
    async def run():
        gate = Admission(8, Caps(), Spending())
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
        assert await inside == [""] * 3

    asyncio.run(run())


def test_a_mistake_in_an_adapter_is_not_hidden_and_others_come_to_their_end(tmp_path):
    chair = Chair(Scripted(*["x"] * 5, TypeError("a bug")))
    with pytest.raises(TypeError, match="a bug"):
        go(tmp_path, chair, 6, concurrency=3)
    run = read_run(tmp_path)
    assert run.account.calls["ok"] == len(chair.bill)
    assert run.account.calls["inflight"] == 1
    assert go(tmp_path, Scripted(), 6).account.calls["unknown"] == 1


# Caps -----------------------------------------------------------------------------------------


def test_a_cap_is_used_up_to_what_one_more_call_could_cost(tmp_path):
    # Far more is reserved than is used (a token per byte), by eight calls at once.
    caps = Caps(dollars="0.006", answer_tokens=20)
    run = go(tmp_path, mind(), 8, caps=caps, concurrency=8)
    most = 3_000 * Decimal("1e-6")  # what the longest prompt can cost
    assert caps.dollars - most < run.dollars <= caps.dollars
    assert run.stopped == "the cap of $0.006 is reached"
    assert len(run.trials) == run.calls


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
    assert run.account.answers_beyond_what_was_foreseen == len(chair.bill) - honest >= 1
    assert "answers with more tokens than could be foreseen" in str(say(run))


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


# Interruptions --------------------------------------------------------------------------------


class Crash(BaseException):
    """Stands for the end of the process: nobody catches it."""


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(k, marks=pytest.mark.long) for k in range(1, 6))]
)
def test_whatever_fails_and_wherever_it_dies_the_transcript_is_that_of_an_unbroken_run(
    tmp_path, seed
):
    rng = np.random.default_rng(seed)
    shares = 0.4 * rng.dirichlet(np.ones(6)) * rng.integers(0, 2, 6)
    faults = dict(zip(FAULTS, shares, strict=False))
    concurrency, n = int(rng.integers(1, 5)), 8
    chair = Chair(mind(malformed=0.1, refusal=0.05))
    faulty = Faulty(chair, faults, seed, wait=0.001)
    crashes = 0
    while True:
        done = {key for key in attempts_in(tmp_path) if key[2] == "ok"} if crashes else set()
        before = Counter((prompt, session) for prompt, session, _ in chair.bill)
        left = [int(rng.integers(1, 11))] if crashes < 4 else [0]
        paid = rng.random() < 0.5  # whether the last answer was made, and lost

        class Dying(InProcess):
            model, provider, heeds = faulty.model, faulty.provider, faulty.heeds

            async def complete(self, prompt, *, settings, left=left, paid=paid):
                left[0] -= 1
                dies = left[0] == 0
                if dies and not paid:
                    raise Crash
                try:
                    reply = await faulty.complete(prompt, settings=settings)
                except Failed:
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
