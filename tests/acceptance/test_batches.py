"""Batches of three providers: every request is sent once, whatever fails and whenever it dies."""

import os
import signal
from collections import Counter

import pandas as pd
import pytest
from batch_server import BatchServer
from commands import commands, quick_time

if not hasattr(os, "fork"):
    pytest.skip("needs fork", allow_module_level=True)

PLACE = ("collider", "--set", 'domains=["economy"]', "--set", 'senses=["ppp"]')
TRIALS = 20
MODELS = {"openai": "gpt-4o-mini", "anthropic": "claude-3-5-haiku", "google": "gemini-2.0-flash"}
# What all wires share is shown by one; the others come with the long tests.
of_each_wire = pytest.mark.parametrize(
    "wire", ["openai", *(pytest.param(w, marks=pytest.mark.long) for w in ("anthropic", "google"))]
)


FATES = ["made_drop", "500"]
FATES += [pytest.param(fate, marks=pytest.mark.long) for fate in ("made_hang", "drop", "html")]


@pytest.fixture(scope="module")
def command():
    return commands()


def by_words(call):
    """Answer with a number that hangs on the words alone."""
    return str(int(call.prompt[:4], 16) % 101)


def serving(**options):
    return BatchServer(by_words, clock=quick_time, **options)


def words_of(wire, server, folder, sessions, *more, batch=True):
    return (
        "run", *PLACE, "--llm", f"{wire}:{MODELS[wire]}", "--base-url", server.address[wire],
        "--sessions", sessions, "--seed", 9, "--price", "1,4", "--max-tokens", 20, "--attempts", 2,
        "--out", folder, "--json", *(["--batch"] if batch else []), *more,
    )  # fmt: skip


def rows(folder):
    return pd.read_parquet(folder / "trials.parquet")


@of_each_wire
def test_a_run_in_batches_is_the_run_call_by_call_at_half_the_price(command, tmp_path, wire):
    with serving() as server:
        batched = command(*words_of(wire, server, tmp_path / "batch", 2))
        assert [len(batch.calls) for batch in server.ours] == [2 * TRIALS]
        counts = server.counts
    with serving() as server:
        plain = command(*words_of(wire, server, tmp_path / "plain", 2, batch=False))
        assert not server.ours
    assert batched.code == plain.code == 0, batched.err + plain.err
    assert counts == Counter(call.prompt for call in server.calls)
    halves = [ended.result["nano_dollars_paid"] for ended in (batched, plain)]
    assert 2 * halves[0] == halves[1] > 0
    frames = [rows(tmp_path / name).drop(columns="money") for name in ("batch", "plain")]
    pd.testing.assert_frame_equal(*frames)


@pytest.mark.parametrize(("wire", "kills"), [("openai", 2), ("anthropic", 1), ("google", 1)])
def test_a_killed_run_finds_its_batch_again_and_submits_it_once(command, tmp_path, wire, kills):
    killed = []

    def kill_while_it_is_under_way(batch):
        if len(killed) < kills:
            killed.append(batch.id)
            command.send(signal.SIGKILL)

    # The batch is made, but its answer fails; it is looked for, found, and then the run dies.
    with serving(submissions=["made_500"], others=(TRIALS, 1, 2), looks=kills + 1) as server:
        server.on_look = kill_while_it_is_under_way
        words = words_of(wire, server, tmp_path, 1)
        for _ in range(kills):
            assert command(*words).code == -signal.SIGKILL
        ended = command(*words)
        assert ended.code == 0, ended.err
        assert (server.tried, len(server.ours)) == (1, 1)
        assert command(*words).code == 0  # a run that is done submits nothing
        assert server.tried == 1
    assert killed == kills * [server.ours[0].id]
    assert sorted(server.counts.values()) == [1] * TRIALS
    assert ended.result["calls"] == {"ok": TRIALS}
    assert ended.result["batches"] == {"read": 1}
    assert (rows(tmp_path)["outcome"] == "ok").all()


@pytest.mark.parametrize("wire", ["openai", pytest.param("google", marks=pytest.mark.long)])
def test_a_batch_whose_seeds_are_refused_is_sent_again_without_them(command, tmp_path, wire):
    def no_seed(call):
        sent = {**call.body, **call.body.get("generationConfig", {})}
        return "400_seed" if "seed" in sent else "ok"

    with serving(script=no_seed) as server:
        ended = command(*words_of(wire, server, tmp_path, 1))
        assert ended.code == 0, ended.err
        assert [len(batch.calls) for batch in server.ours] == [TRIALS, TRIALS]
    assert ended.result["calls"] == {"anew": TRIALS, "ok": TRIALS}
    assert "'seed'" in ended.result["left_out"]
    assert (rows(tmp_path)["outcome"] == "ok").all()


@pytest.mark.parametrize("fate", FATES)
def test_a_submission_without_an_answer_is_made_again_only_if_there_is_no_batch(
    command, tmp_path, fate
):
    with serving(submissions=[fate], others=(TRIALS, 1, 2), hang=0.2) as server:
        ended = command(*words_of("openai", server, tmp_path, 1))
    assert ended.code == 0, ended.err
    assert server.tried == (1 if fate.startswith("made") else 2)
    assert sorted(server.counts.values()) == [1] * TRIALS
    assert ended.result["calls"] == {"ok": TRIALS}


@of_each_wire
def test_requests_without_an_answer_are_errors_that_are_counted_and_cost_nothing(
    command, tmp_path, wire
):
    kinds = ["400", "500", "missing", "refusal", "length", "no_usage"]
    if wire != "google":  # which tells of whole batches only that they have expired
        kinds += ["expired", "canceled"]
    lost = len(kinds) - 3
    with serving(script=kinds + ["ok"] * 100) as server:
        words = words_of(wire, server, tmp_path, 1)
        first = command(*words).result
        outcomes = {name: rate["count"] for name, rate in first["outcomes"].items()}
        assert outcomes["error"] == lost
        assert outcomes["refused"] == outcomes["truncated"] == 1
        assert sum(outcomes.values()) == len(rows(tmp_path)) == TRIALS
        # Of what is missing nothing is told, so that it may have been paid.
        assert first["calls"] == {
            "ok": TRIALS - lost, "error_unpaid": lost - 1, "error_maybe_paid": 1
        }  # fmt: skip
        assert first["answers_without_tokens"] == 1
        again = command(*words, "--retry-errors").result
    assert again["outcomes"]["error"]["count"] == 0
    assert (server.tried, sum(server.counts.values())) == (2, TRIALS + lost)


@of_each_wire
def test_a_batch_that_expires_leaves_trials_without_an_answer(command, tmp_path, wire):
    with serving(submissions=["expired"]) as server:
        told = command(*words_of(wire, server, tmp_path, 2)).result
    lost = 2 * TRIALS if wire == "google" else TRIALS  # Google then keeps no results
    assert told["outcomes"]["error"]["count"] == lost
    assert rows(tmp_path)["response"].isna().sum() == lost
    assert told["trials"] == 2 * TRIALS


def test_no_cap_is_passed_and_what_was_asked_is_not_asked_again(command, tmp_path):
    with serving() as server:
        for most in (TRIALS // 2, TRIALS):
            ended = command(*words_of("openai", server, tmp_path, 1, "--cap", f"calls={most}"))
            assert sum(server.counts.values()) == most
            assert sum(ended.result["calls"].values()) == most
        assert ended.code == 0
    assert set(server.counts.values()) == {1}


@pytest.mark.long
def test_what_a_batch_has_reserved_is_free_for_the_next_one(command, tmp_path):
    with serving() as server:
        free = command(*words_of("openai", server, tmp_path / "free", 2)).result
        paid = free["nano_dollars_paid"]
        before = server.tried
        # Far more is reserved than is used (a token per byte): so several batches are needed.
        cap = ("--cap", f"dollars={2 * paid / 1e9}")
        ended = command(*words_of("openai", server, tmp_path / "capped", 2, *cap))
        assert ended.code == 0, ended.err
        assert ended.result["nano_dollars_paid"] == ended.result["nano_dollars_at_most"] == paid
        assert server.tried - before > 1
        less = ("--cap", f"dollars={paid / 2e9}")
        ended = command(*words_of("openai", server, tmp_path / "less", 2, *less))
        assert ended.code == 1
        assert 0 < ended.result["nano_dollars_at_most"] <= paid / 2


def test_trials_that_tell_of_earlier_ones_are_asked_turn_by_turn_when_that_is_said(
    command, tmp_path
):
    with serving() as server:
        words = [
            "run", "instrumental_learning", "--trials", 4, "--llm", "openai:m", "--base-url",
            server.address["openai"], "--sessions", 3, "--json", "--max-tokens", 20,
        ]  # fmt: skip
        assert command(*words, "--out", tmp_path / "refused", "--batch").code == 2
        assert not (tmp_path / "refused").exists()
        assert not server.tried
        ended = command(*words, "--out", tmp_path / "turns", "--batch-turns", "--re-ask", 0)
        assert [len(batch.calls) for batch in server.ours] == [3] * 4
    assert ended.result["trials"] == 12


def test_an_adapter_without_batches_is_told_and_leaves_nothing(knownminds, tmp_path):
    folder = tmp_path / "run"
    words = ("run", *PLACE, "--llm", "synthetic:random_rater", "--batch", "--out", folder)
    code, _, err = knownminds(*words)
    assert code == 2
    assert "Traceback" not in err
    assert not folder.exists()
