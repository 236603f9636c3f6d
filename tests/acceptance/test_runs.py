"""Runs of a language model against a local provider that fails: nothing is paid for twice.

Everything is seen from outside: by what the provider has taken and charged, and by what the
command prints and writes.
"""

import json
import os
import signal
from collections import Counter
from dataclasses import replace

import pandas as pd
import pytest
from commands import commands
from fault_server import FaultServer, by_hash

from knownminds.environments import InstrumentalLearning

if not hasattr(os, "fork"):
    pytest.skip("needs fork", allow_module_level=True)

SESSIONS, TRIALS = 4, 8
PRICE = (1, 4)  # dollars per million tokens sent and received
KEY = "sk-canary-0123456789abcdef"


@pytest.fixture(scope="module")
def command():
    return commands()


def words_of(server, folder, sessions, *more):
    return (
        "run", "instrumental_learning", "--trials", TRIALS, "--llm", "openai:m",
        "--base-url", server.address["openai"], "--sessions", sessions, "--seed", 9,
        "--price", "1,4", "--max-tokens", 20, "--out", folder, "--json", *more,
    )  # fmt: skip


def rows(folder):
    return pd.read_parquet(folder / "trials.parquet")


def same_trials(one, other):
    """Whether two runs hold the same trials, whatever calls they took."""
    of_calls = ["attempt", "money"]
    given = [rows(folder).drop(columns=of_calls, errors="ignore") for folder in (one, other)]
    pd.testing.assert_frame_equal(*given)


def nano_dollars(server, calls):
    """What a provider takes for calls, by its own count of tokens."""
    return 1000 * sum(
        PRICE[0] * sent + PRICE[1] * received for sent, received in used(server, calls)
    )


def used(server, calls):
    """The tokens sent and received of each call, as its answer says or would have said."""
    replies = [server.reply(replace(call, fault=call.fault.replace("no_usage", "ok")))
               for call in calls]  # fmt: skip
    return [(one["usage"]["prompt_tokens"], one["usage"]["completion_tokens"]) for one in replies]


def asked(server):
    return Counter(call.prompt for call in server.calls)


@pytest.fixture(scope="module")
def unbroken(command, tmp_path_factory):
    """A run of some sessions in which nothing fails: its folder and what it printed."""
    folder = tmp_path_factory.mktemp("unbroken")
    with FaultServer(by_hash) as server:
        ended = command(*words_of(server, folder, SESSIONS))
        assert ended.code == 0, ended.err
        # A call for each trial, and no prompt twice: so a repeated prompt is a repeated question.
        assert sorted(asked(server).values()) == [1] * SESSIONS * TRIALS
        assert ended.result["nano_dollars_paid"] == nano_dollars(server, server.calls)
    return folder, ended.result


# What is asked again ----------------------------------------------------------------------------


@pytest.mark.parametrize("concurrency", [1, 8])
def test_a_killed_run_goes_on_and_asks_nothing_again_that_was_answered(
    command, unbroken, tmp_path, concurrency
):
    def kill_at_a_call(call):
        if call.number == 14:
            command.send(signal.SIGKILL)
        return "ok"

    with FaultServer(by_hash, script=kill_at_a_call) as server:
        words = words_of(server, tmp_path, SESSIONS, "--concurrency", concurrency)
        assert command(*words).code == -signal.SIGKILL
        ended = command(*words)
        assert ended.code == 0, ended.err
        repeated = {prompt for prompt, times in asked(server).items() if times > 1}
        calls = len(server.calls)
        assert command(*words).code == 0  # a run that is done asks nothing
        assert len(server.calls) == calls
    same_trials(tmp_path, unbroken[0])
    assert len(asked(server)) == SESSIONS * TRIALS
    # At most `concurrency` calls are under way at the kill, and only they are asked again.
    assert 1 <= len(repeated) <= concurrency
    if concurrency == 1:
        assert repeated == {server.calls[14].prompt}
    told = ended.result
    assert told["calls"] == {"ok": SESSIONS * TRIALS, "unknown": told["calls"]["unknown"]}
    assert len(repeated) <= told["calls"]["unknown"] <= concurrency
    assert told["starts"] == 2
    # What was under way at the kill may have been paid, and counts in full.
    assert told["nano_dollars_at_most"] >= nano_dollars(server, server.calls)
    assert told["nano_dollars_paid"] == unbroken[1]["nano_dollars_paid"]


def test_ctrl_c_lets_what_is_under_way_end_and_nothing_is_asked_again(command, unbroken, tmp_path):
    def interrupt_at_a_call(call):
        if call.number == 12:
            command.send(signal.SIGINT)
        return "ok"

    with FaultServer(by_hash, script=interrupt_at_a_call, delay=0.02) as server:
        words = words_of(server, tmp_path, SESSIONS)
        stopped = command(*words)
        assert stopped.code == 130
        assert stopped.err.endswith(" is kept in " + f"{tmp_path}; the same command goes on.\n")
        before = len(server.calls)
        assert TRIALS < before < SESSIONS * TRIALS
        assert len(rows(tmp_path)) == before
        ended = command(*words)
    assert ended.code == 0, ended.err
    assert set(asked(server).values()) == {1}
    assert ended.result["calls"] == {"ok": SESSIONS * TRIALS}
    same_trials(tmp_path, unbroken[0])


def test_a_run_goes_on_with_more_sessions(command, unbroken, tmp_path):
    with FaultServer(by_hash) as server:
        for sessions in (2, SESSIONS):
            assert command(*words_of(server, tmp_path, sessions)).code == 0
    assert len(server.calls) == SESSIONS * TRIALS
    same_trials(tmp_path, unbroken[0])


def test_a_run_of_another_design_is_refused_and_asks_nothing(command, tmp_path):
    with FaultServer(by_hash) as server:
        assert command(*words_of(server, tmp_path, 1)).code == 0
        before = rows(tmp_path)
        for change in (("--seed", 8), ("--trials", 12), ("--temperature", 0.5)):
            ended = command(*words_of(server, tmp_path, 1, *change))
            assert ended.code == 2
            assert "Traceback" not in ended.err
    assert len(server.calls) == TRIALS
    pd.testing.assert_frame_equal(rows(tmp_path), before)


# What fails -------------------------------------------------------------------------------------


def test_failures_that_pass_are_tried_again_and_counted_and_leave_no_other_trace(
    command, unbroken, tmp_path
):
    unpaid, paid = ("429", "429_seconds", "503", "drop_before"), ("500_charged", "drop_after")
    script = [fault for fault in (*unpaid, *paid) for fault in ("ok", fault, fault)]
    with FaultServer(by_hash, script=script, retry_after=0.5) as server:
        ended = command(*words_of(server, tmp_path, SESSIONS))
        assert ended.code == 0, ended.err
        assert Counter(script) == Counter(call.fault for call in server.calls[: len(script)])
        told = ended.result
        # Every call that the provider has seen is one of the account, and the other way round.
        assert sum(told["calls"].values()) == len(server.calls) == SESSIONS * TRIALS + 12
        assert told["calls"]["ok"] == SESSIONS * TRIALS
        assert told["calls"]["error_unpaid"] >= 4  # at least those refused with a status of 429
        assert told["nano_dollars_at_most"] >= nano_dollars(server, server.charged)
    assert told["nano_dollars_paid"] == unbroken[1]["nano_dollars_paid"]
    assert rows(tmp_path)["attempt"].sum() == len(server.calls)
    same_trials(tmp_path, unbroken[0])


# What becomes of a call, and the outcome of its trial.
UNREADABLE = {
    "garbage": "malformed",
    "empty": "empty",
    "refusal": "refused",
    "length": "truncated",
    "cut": "error",
    "html": "error",
    "blank": "error",
    "list": "error",
    "error_200": "error",
    "400": "error",
}


def test_what_cannot_be_read_is_an_outcome_and_no_action(command, tmp_path):
    script = [fault for name in UNREADABLE for fault in (name, "ok")]
    with FaultServer(by_hash, script=script) as server:
        ended = command(*words_of(server, tmp_path, 3, "--concurrency", 1, "--attempts", 1))
    assert ended.code == 0, ended.err
    frame = rows(tmp_path)
    assert len(frame) == 3 * TRIALS == len(server.calls)
    for fault, (_, row) in zip(script, frame.iterrows(), strict=False):
        assert row["outcome"] == UNREADABLE.get(fault, "ok"), fault
    read = frame["outcome"] == "ok"
    assert frame.loc[read, "action"].notna().all()
    assert frame.loc[~read, ["action", "reward"]].isna().all(axis=None)
    told = {name: rate["count"] for name, rate in ended.result["outcomes"].items()}
    counts = Counter(frame["outcome"])
    assert told == {name: counts[name] for name in told}
    assert sum(told.values()) == 3 * TRIALS
    assert ended.result["readable"] == read.sum()


def test_trials_without_an_answer_are_asked_again_on_demand_and_answers_never(command, tmp_path):
    words = (
        "run", "collider", "--set", 'domains=["economy"]', "--set", 'senses=["ppp"]', "--llm",
        "openai:m", "--seed", 9, "--out", tmp_path, "--json",
    )  # fmt: skip
    with FaultServer(lambda call: "50", script=["ok", "400", "ok", "400"]) as server:
        words += ("--base-url", server.address["openai"], "--concurrency", 1)
        first = command(*words)
        n = len(server.calls)
        assert first.result["outcomes"]["error"]["count"] == 2
        again = command(*words, "--retry-errors")
    assert again.result["outcomes"]["ok"]["count"] == n
    assert len(server.calls) == n + 2
    twice = {call.prompt for call in server.calls if call.fault == "400"}
    assert {prompt for prompt, times in asked(server).items() if times > 1} == twice


def test_a_provider_that_refuses_everything_is_asked_a_few_times_and_no_more(command, tmp_path):
    with FaultServer(by_hash, faults={"400": 1.0}) as server:
        ended = command(*words_of(server, tmp_path, SESSIONS))
        calls = len(server.calls)
    assert ended.code == 3
    assert calls <= 10 + 8  # 8 are under way at a time; 32 would be asked in all
    assert ended.result["calls"] == {"error_unpaid": calls}
    assert ended.result["nano_dollars_at_most"] == 0
    assert len(ended.result["unfinished"]) == SESSIONS
    with FaultServer(by_hash, port=server.port) as mended:
        ended = command(*words_of(mended, tmp_path, SESSIONS, "--retry-errors"))
    assert ended.code == 0, ended.err
    assert ended.result["outcomes"]["ok"]["count"] == SESSIONS * TRIALS


@pytest.mark.parametrize("fault", ["401", "404", "no_credit"])
def test_a_run_in_vain_ends_at_once_and_leaves_no_trial(command, tmp_path, fault):
    with FaultServer(by_hash, faults={fault: 1.0}) as server:
        ended = command(*words_of(server, tmp_path, SESSIONS, "--concurrency", 2))
    assert ended.code == 2
    assert len(server.calls) <= 2
    assert "Traceback" not in ended.err
    assert "paid for" not in ended.err  # nothing was
    assert not (tmp_path / "trials.parquet").exists()


def test_another_model_that_answers_is_not_mixed_with_the_first(command, tmp_path):
    with FaultServer(by_hash, script=["ok"] * 5 + ["model_changed"]) as server:
        ended = command(*words_of(server, tmp_path, 3, "--concurrency", 1))
    assert ended.code == 2
    assert "another-model" in ended.err
    assert f"What was paid for stays in {tmp_path}." in ended.err
    assert len(server.calls) == 6
    assert len(rows(tmp_path)) == 5
    assert set(rows(tmp_path)["model_served"]) == {"m"}


def test_malformed_answers_are_asked_again_only_when_that_is_said(command, tmp_path):
    for re_ask in (0, 1):
        with FaultServer(by_hash, script=["garbage", "garbage", "ok", "garbage"]) as server:
            words = words_of(server, tmp_path / str(re_ask), 1, "--re-ask", re_ask)
            told = command(*words).result
        assert told["re_asked"] == 2 * re_ask
        assert len(server.calls) == TRIALS + 2 * re_ask
        assert told["outcomes"]["malformed"]["count"] == (1 if re_ask else 3)
        assert told["nano_dollars_paid"] == nano_dollars(server, server.calls)


# Caps -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "caps",
    [
        {"calls": 13},
        {"tokens": 4_000},
        pytest.param({"dollars": 0.003}, marks=pytest.mark.long, id="dollars"),
        {"session_calls": 5},
        pytest.param({"session_tokens": 1_500}, marks=pytest.mark.long, id="session_tokens"),
        {"session_dollars": 0.0015},
    ],
    ids=lambda caps: next(iter(caps)),
)
def test_no_cap_is_passed_whatever_fails_and_however_often_it_is_resumed(
    command, unbroken, tmp_path, caps
):
    faults = dict.fromkeys(("429", "500_charged", "drop_after", "garbage"), 0.08)
    given = [word for name, most in caps.items() for word in ("--cap", f"{name}={most}")]
    ((name, most),) = caps.items()
    with FaultServer(by_hash, faults=faults, seed=3) as server:
        for _ in range(2):
            ended = command(*words_of(server, tmp_path, SESSIONS, *given))
            assert ended.code == 1, ended.err
            told = ended.result
            tokens = [sum(pair) for pair in used(server, server.charged)]
            if name == "calls":
                assert len(server.calls) <= most
            elif name == "tokens":
                assert sum(tokens) <= most
            elif name == "dollars":
                spent = nano_dollars(server, server.charged)
                assert spent <= told["nano_dollars_at_most"] <= most * 1e9
            else:
                held = rows(tmp_path).groupby("session")
                use = {
                    "session_calls": held["attempt"].sum(),
                    "session_tokens": held[["input_tokens", "output_tokens"]].sum().sum(axis=1),
                    "session_dollars": held["money"].sum(),
                }[name]
                assert (use <= most).all()
            assert told["unfinished"]
        # Without the cap the rest is asked, and what was answered is not asked again.
        before = {call.prompt for call in server.calls if call.fault in ("ok", "garbage")}
        at = len(server.calls)
        ended = command(*words_of(server, tmp_path, SESSIONS))
        assert ended.code == 0, ended.err
        assert not before & {call.prompt for call in server.calls[at:]}
    assert len(rows(tmp_path)) == SESSIONS * TRIALS


def test_answers_without_a_count_of_tokens_count_at_their_most(command, tmp_path):
    with FaultServer(by_hash, faults={"no_usage": 1.0}) as server:
        told = command(*words_of(server, tmp_path, 1)).result
        assert told["nano_dollars_at_most"] >= nano_dollars(server, server.calls)
    assert told["answers_without_tokens"] == TRIALS
    assert rows(tmp_path)["input_tokens"].isna().all()


def test_money_is_not_capped_without_a_price(command, tmp_path):
    folder = tmp_path / "run"
    with FaultServer(by_hash) as server:
        words = [str(word) for word in words_of(server, folder, 1, "--cap", "dollars=1")]
        at = words.index("--price")
        ended = command(*words[:at], *words[at + 2 :])
    assert ended.code == 2
    assert not server.calls
    assert not folder.exists()


# Keys, replay, bad input ------------------------------------------------------------------------


def test_a_key_is_written_nowhere(command, tmp_path):
    with FaultServer(by_hash, script=["ok", "echo_key", "ok", "403"], key=KEY) as server:
        words = words_of(server, tmp_path, 1, "--key-variable", "CANARY", "--concurrency", 1)
        ended = command(*words, variables={"CANARY": KEY})
    assert len(server.calls) == 4
    assert KEY not in ended.out + ended.err
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert len(files) > 2
    for file in files:
        assert KEY.encode() not in file.read_bytes()
    assert rows(tmp_path)["raw_text"].str.contains("[key]", regex=False).tolist()[:2] == [
        False,
        True,
    ]


def test_a_replayed_run_is_the_run_and_asks_nobody(command, unbroken, tmp_path):
    ended = command(
        "run", "instrumental_learning", "--trials", TRIALS, "--llm", f"replay:{unbroken[0]}",
        "--sessions", SESSIONS, "--seed", 9, "--max-tokens", 20, "--out", tmp_path, "--json",
    )  # fmt: skip
    assert ended.code == 0, ended.err
    same_trials(tmp_path, unbroken[0])


def test_the_report_is_drawn_again_from_the_folder_alone(command, unbroken):
    page = unbroken[0] / "report.html"
    before = page.read_text()
    page.unlink()
    assert command("report", unbroken[0]).code == 0
    assert page.read_text() == before


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["--llm", "opnai:x"], "opnai"),
        (["--llm", "openai:gpt-4o-mini"], "OPENAI_API_KEY"),
        (["--llm", "openai:x", "--base-url", "nowhere"], "base_url"),
        (["--llm", "synthetic:rescorla"], "rescorla"),
        (["--llm", "synthetic:rescorla_wagner_dual", "--contaminate", "refsal=0.1"], "refsal"),
        (["--llm", "synthetic:rescorla_wagner_dual", "--cap", "dollar=1"], "dollar"),
        (["--llm", "synthetic:rescorla_wagner_dual", "--temperature", "9"], "temperature"),
        (["--llm", "synthetic:rescorla_wagner_dual", "--sessions", "0"], "sessions"),
        (["--llm", "synthetic:rescorla_wagner_dual", "--sessions", "1000000000"], "1000000"),
        (["--llm", "synthetic:rescorla_wagner_dual", "--set", "alpha=1"], "alpha"),
        (["--llm", "replay:nowhere"], "nowhere"),
    ],
)
def test_bad_input_ends_with_two_and_leaves_nothing(knownminds, tmp_path, monkeypatch, words, name):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    code, out, err = knownminds("run", "instrumental_learning", *words, "--out", "r")
    assert code == 2
    assert name in err
    assert "Traceback" not in err
    assert out == ""
    assert not list(tmp_path.iterdir())


def test_a_dry_run_asks_nobody_and_leaves_nothing(knownminds, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with FaultServer(by_hash) as server:
        words = words_of(server, "r", 5, "--dry-run")
        code, said, err = knownminds(*words)
    assert code == 0
    calls = 5 * InstrumentalLearning(n_visits=2).n_trials
    assert f"{calls} calls" in said + err
    assert not server.calls
    assert not list(tmp_path.iterdir())


def test_the_first_prompts_are_shown_before_anything_is_paid(knownminds, tmp_path):
    place = (
        "run", "marker_location", "--llm", "openai:m?name=a&system=Be%20brief.", "--trials", 33,
        "--set", "modality=text+image", "--images", "--seed", 4, "--out", tmp_path,
    )  # fmt: skip
    with FaultServer(by_hash) as server:
        where = ("--base-url", server.address["openai"])
        code, said, err = knownminds(*place, *where, "--dry-run", "--show", 2)
        assert code == 0, err
        assert not server.calls
        files = {path.name for path in tmp_path.glob("prompt*")}
        assert files == {"prompt-1.txt", "prompt-1-1.png", "prompt-2.txt", "prompt-2-1.png",
                         "prompt-2-2.png"}  # fmt: skip
        code, _, err = knownminds(*place, *where, "--dry-run", "--show", 0)
        assert (code, "at least 1" in err) == (2, True)
        assert knownminds(*place, *where, "--show", 2)[0] == 2
        assert not server.calls
        knownminds(*place, *where, "--cap", "calls=1")
    [call] = server.calls
    assert (tmp_path / "prompt-1-1.png").read_bytes() == call.images[0]
    shown = (tmp_path / "prompt-1.txt").read_text(encoding="utf-8")
    assert shown in said
    assert all(f"{role}:" in shown and text in shown for role, text in call.messages)


def no_seed(call):
    return "400_seed" if "seed" in call.body else "ok"


def test_a_seed_that_nobody_asked_for_is_left_out_where_it_is_refused(knownminds, tmp_path):
    with FaultServer(by_hash, script=no_seed) as server:
        code, said, err = knownminds(*words_of(server, tmp_path / "r", SESSIONS))
        assert code == 0, err
        seeded = sum("seed" in call.body for call in server.calls)
        assert 1 <= seeded <= SESSIONS  # those that were under way, and none after them
        assert len(server.calls) == seeded + SESSIONS * TRIALS
        assert "'seed' is not supported" in json.loads(said)["left_out"]
        assert "--no-seed" not in json.loads(said)["left_out"]
        assert json.loads(said)["calls"] == {"anew": seeded, "ok": SESSIONS * TRIALS}
        assert set(rows(tmp_path / "r")["attempt"]) == {1}
        assert json.loads(said)["nano_dollars_at_most"] == nano_dollars(server, server.charged)
        # What is on record holds for what comes later.
        assert knownminds(*words_of(server, tmp_path / "r", SESSIONS + 1))[0] == 0
        assert sum("seed" in call.body for call in server.calls) == seeded
        before = len(server.calls)
        assert knownminds(*words_of(server, tmp_path / "s", 1, "--no-seed"))[0] == 0
        assert not any("seed" in call.body for call in server.calls[before:])


def test_a_prompt_that_moderation_refuses_is_one_refused_trial(knownminds, tmp_path):
    def every_fourth(call):
        return "403_flagged" if int(call.prompt, 16) % 4 == 0 else "ok"

    with FaultServer(by_hash, script=every_fourth) as server:
        words = words_of(server, tmp_path, SESSIONS, "--retry-errors")
        code, said, err = knownminds(*words)
        assert code == 0, err
        told, frame = json.loads(said), rows(tmp_path)
        refused = sum(call.fault != "ok" for call in server.calls)
        assert refused > 3  # in a row they would have stopped the run
        assert told["outcomes"]["refused"]["count"] == refused
        assert told["sessions_ended"] == SESSIONS
        assert told["nano_dollars_at_most"] == nano_dollars(server, server.charged)
        assert frame.loc[frame["outcome"] == "refused", "note"].str.contains("flagged").all()
        assert knownminds(*words)[0] == 0
        assert len(server.calls) == SESSIONS * TRIALS  # refused prompts are not asked again


def test_pictures_are_sent_where_the_model_is_said_to_see_them(knownminds, tmp_path):
    with FaultServer(by_hash) as server:
        words = (
            "run", "marker_location", "--llm", "openai:m", "--trials", 33, "--set",
            "modality=image", "--base-url", server.address["openai"], "--out", tmp_path / "run",
        )  # fmt: skip
        assert knownminds(*words)[0] == 2
        assert not server.calls
        knownminds(*words, "--images", "--cap", "calls=3")
    assert len(server.calls) == 3
    assert all(call.images for call in server.calls)


def test_a_run_with_a_synthetic_mind_prints_what_its_trials_say(knownminds, tmp_path):
    code, said, err = knownminds(
        "run", "instrumental_learning", "--trials", TRIALS, "--llm",
        "synthetic:rescorla_wagner_dual", "--sessions", 30, "--seed", 5, "--out", tmp_path,
        "--contaminate", "malformed=0.1", "--contaminate", "refusal=0.1", "--json",
    )  # fmt: skip
    assert code == 0, err
    told, frame = json.loads(said), rows(tmp_path)
    for name in ("malformed", "refused"):
        count = (frame["outcome"] == name).sum()
        assert told["outcomes"][name]["count"] == count
        # 240 trials at a rate of 10%: 24, with a standard error of 4.6; 3.5 of them are 16.
        assert 8 <= count <= 40
    assert frame.loc[frame["outcome"].isin(["malformed", "refused"]), "action"].isna().all()
