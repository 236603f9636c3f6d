"""Attacks on a run's money and on a study's data, each as it was made."""

import asyncio
import json
import re
import shutil
import sqlite3
from contextlib import closing

import pytest

pytest.importorskip("openai")

from fault_server import FaultServer
from scripted import Scripted

from knownminds.environments import Collider, InstrumentalLearning
from knownminds.llm_adapters import Rejected, Reply, UnreadableReply, Usage
from knownminds.llm_adapters.runs.admission import Caps
from knownminds.llm_adapters.runs.ledger import FILE, Ledger, LedgerFailed, Request, Spent
from knownminds.llm_adapters.runs.prices import parse_price, price_of
from knownminds.llm_adapters.runs.runner import TRIALS, Retries, read_run, run_sessions_in

ENVIRONMENT = InstrumentalLearning(n_visits=2)  # eight trials
N_TRIALS = ENVIRONMENT.n_trials
PRICE = price_of("a:b", overrides={"a:b": {"input": 1, "output": 4}})
QUICK = Retries(pause=0.0, attempts=2)


class Numbered:
    """Fails as told, and never twice with the same words."""

    model, provider, base_url = "scripted", "test", ""
    capabilities = Scripted.capabilities

    def __init__(self, failure, rest=None):
        self.failure, self.rest, self.calls = failure, rest, 0

    async def complete(self, prompt, *, settings):
        self.calls += 1
        error = self.failure(self.calls)
        if error is None:
            return Reply(self.rest, usage=Usage(7, 2), model_served="m")
        raise error

    async def close(self):
        pass


def go(folder, adapter, n=3, environment=ENVIRONMENT, **options):
    options = {"price": PRICE, "retries": QUICK, **options}
    return asyncio.run(run_sessions_in(folder, adapter, environment, n, 9, **options))


def with_status(error, status):
    error.status = status
    return error


# Breaker and --retry-errors -----------------------------------------------------------------------

KINDS = {
    "numbered rejections": lambda i: with_status(Rejected(f"no (request req_{i:x}a)"), 400),
    "empty 200s with an id": lambda i: UnreadableReply(
        f"A reply holds choices; sent '{{id: {i}}}'", json.dumps({"id": f"{i}", "choices": []})
    ),
    "another word each time": lambda i: Rejected(
        "no", raw=json.dumps({"error": {"type": "a" * (1 + i % 40)}})
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_failures_with_a_number_in_them_stop_a_run_that_would_burn(tmp_path, kind):
    adapter = Numbered(KINDS[kind])
    run = go(tmp_path, adapter, 48, concurrency=8)
    assert adapter.calls <= 10 + 8  # of 384
    assert run.gave_out
    assert "questions in a row had no answer" in run.stopped
    assert len(run.unfinished) == 48
    # and what was not answered can be asked again: then the run is as if nothing had been
    again = go(tmp_path, Scripted(rest="A"), 48, retry_errors=True)
    assert again.errors == 0
    assert not again.unfinished
    assert (
        go(tmp_path / "whole", Scripted(rest="A"), 48)
        .trials.frame.drop(columns="attempt")
        .equals(again.trials.frame.drop(columns="attempt"))
    )
    assert again.trials.frame["attempt"].sum() == 48 * N_TRIALS + run.account.calls[
        "error_unpaid" if "200" not in kind else "error_maybe_paid"
    ] - aside(tmp_path)


def aside(folder):
    """How many attempts belong to questions that were replaced by others."""
    with Ledger.read(folder) as ledger:
        return ledger.rows(
            "SELECT COUNT(*) FROM attempt a JOIN call c ON c.id = a.call WHERE c.slot < 0"
        )[0][0]


def test_errors_are_asked_again_on_demand_and_answers_never(tmp_path):
    script = ["A", Rejected("no"), "A", Rejected("no"), *["A"] * 3, Rejected("no")]
    first = go(tmp_path, Scripted(*script), 1)
    assert first.errors == 3
    assert first.trials.frame["errors_before"].tolist() == [0, 0, 1, 1, 2, 2, 2, 2]
    assert go(tmp_path, Numbered(lambda i: None, "A"), 1).errors == 3  # not without being told
    adapter = Numbered(lambda i: None, "A")
    again = go(tmp_path, adapter, 1, retry_errors=True)
    # Prompts tell of earlier trials, so only the last one has no answer that hangs on it.
    assert adapter.calls == 1
    frame = again.trials.frame
    assert frame["outcome"].eq("error").tolist() == [i in (1, 3) for i in range(N_TRIALS)]
    assert frame["attempt"].tolist() == [1] * 7 + [2]
    assert frame["errors_before"].tolist() == [0, 0, 1, 1, 2, 2, 2, 2]
    assert again.unanswered.endswith("are asked again: 2.")
    assert read_run(tmp_path).trials.frame.equals(frame)


class Chooser(Numbered):
    """Answers with the last letter that the prompt names, so that later prompts tell of it."""

    def __init__(self):
        super().__init__(lambda i: None)

    async def complete(self, prompt, *, settings):
        self.rest = re.findall(r"\b[A-Z]\b", prompt.messages[-1].content)[-1]
        return await super().complete(prompt, settings=settings)


def test_a_retry_that_is_broken_off_leaves_a_run_that_is_read_and_goes_on(tmp_path):
    first = go(tmp_path, Numbered(lambda i: Rejected("no")), 1, retries=Retries(identical=3))
    assert (first.errors, first.gave_out) == (2, True)  # the third is open, and tells of two errors
    # One answer, and the next two questions are not those that had none any more.
    caps = Caps(calls=first.calls + 1)
    half = go(tmp_path, Chooser(), 1, retry_errors=True, caps=caps)
    assert half.trials.frame["outcome"].tolist() == ["ok"]
    assert read_run(tmp_path).trials.frame.equals(half.trials.frame)
    whole = go(tmp_path, Chooser(), 1)
    assert (whole.complete, whole.errors) == (True, 0)
    alone = go(tmp_path / "alone", Chooser(), 1).trials.frame
    assert whole.trials.frame.drop(columns="attempt").equals(alone.drop(columns="attempt"))


def test_where_trials_stand_alone_every_error_is_asked_again(tmp_path):
    place = Collider()
    assert place.replies.stand_alone
    assert not ENVIRONMENT.replies.stand_alone
    turns = iter(range(1000))
    faulty = Numbered(lambda i: Rejected("no") if next(turns) % 3 == 0 else None, "50")
    first = go(tmp_path, faulty, 1, place)
    assert first.errors > 5
    adapter = Numbered(lambda i: None, "50")
    again = go(tmp_path, adapter, 1, place, retry_errors=True)
    assert adapter.calls == first.errors
    assert (again.errors, again.unanswered) == (0, "")
    assert again.account.calls["ok"] == place.replies.n_prompts


def test_the_breaker_ends_a_command_with_3(tmp_path, knownminds):
    command = ("run", "instrumental_learning", "--llm", "openai:m", "--trials", "8")
    command += ("--sessions", "6", "--out", str(tmp_path / "run"))
    with FaultServer(faults={"400": 1.0}) as server:
        broken = knownminds(*command, "--base-url", server.address["openai"])
        port = server.port
    assert broken[0] == 3
    assert "questions in a row had no answer" in broken[1]
    with FaultServer(port=port) as server:
        mended = knownminds(*command, "--base-url", server.address["openai"], "--retry-errors")
    assert mended[0] == 0, mended
    assert read_run(tmp_path / "run").errors == 0


# Numbers that cannot be ---------------------------------------------------------------------------


@pytest.mark.parametrize("n", [2**63, 2**200, 10**9, -1])
def test_a_number_of_tokens_that_cannot_be_is_not_known_and_no_answer_is_lost(tmp_path, n):
    strange = Reply("A", usage=Usage(n, 2, reasoning_tokens=n), model_served="m")
    run = go(tmp_path, Scripted("A", strange), 2, concurrency=2)
    assert run.account.calls == {"ok": 2 * N_TRIALS}
    assert run.account.untold == 1
    assert "answers without a number of tokens: 1" in str(run)


def test_a_price_that_cannot_be_is_refused():
    with pytest.raises(ValueError, match="at most 100,000"):
        parse_price("a:b=1e30,1")
    with pytest.raises(ValueError, match="at most 100,000"):
        price_of("a:b", overrides={"a:b": {"input": 10**40, "output": 1}})


def test_whatever_goes_wrong_in_the_ledger_nobody_is_left_waiting(tmp_path, monkeypatch):
    values, clean = iter(range(10**6)), Ledger._clean

    def strange(self, value):
        return 2**70 if next(values) > 300 else clean(self, value)

    async def run():
        async with asyncio.timeout(5):
            await run_sessions_in(tmp_path, Scripted(rest="A"), ENVIRONMENT, 8, 9)

    monkeypatch.setattr(Ledger, "_clean", strange)
    with pytest.raises(LedgerFailed, match="too large"):
        asyncio.run(run())


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


def test_a_removed_wal_is_noticed(tmp_path):
    class Stopped(BaseException):
        pass

    script = ["A"] * 9
    with pytest.raises(Stopped):
        go(tmp_path, Scripted(*script, Stopped()), 3, concurrency=1)
    whole = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    # as it is after kill -9: the last commits are in the -wal
    with Ledger.open(tmp_path, *_as_kept(tmp_path)) as ledger:
        asyncio.run(_one_more(ledger))
        assert (tmp_path / (FILE + "-wal")).stat().st_size > 0
        killed = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    assert set(whole) < set(killed)
    place = tmp_path / "killed"
    place.mkdir()
    for name, content in killed.items():
        if not name.endswith(("-wal", "-shm")):
            (place / name).write_bytes(content)
    adapter = Numbered(lambda i: None, "A")
    with pytest.raises(ValueError, match=r"holds 9 of the 10 answers|holds 10 of the 11 requests"):
        go(place, adapter)
    assert adapter.calls == 0
    (place / (FILE + "-wal")).write_bytes(killed[FILE + "-wal"])
    go(place, adapter)
    assert adapter.calls == 3 * N_TRIALS - 9


def _as_kept(folder):
    with Ledger.read(folder) as ledger:
        return ledger.configuration, ledger.sessions


async def _one_more(ledger):
    call, attempt = await ledger.begin((2, 99, 0), None, Request("h", "{}", {}), Spent(1, 9, 9))
    await ledger.answered(call, attempt, Reply("A", model_served="m"), Spent(1, 9, 9))


# One loop per command -----------------------------------------------------------------------------


def test_runs_that_share_an_adapter_on_living_connections_end(tmp_path):
    from knownminds.llm_adapters.providers.openai import OpenAI
    from knownminds.validation.costs.connect import run, wait_for

    with FaultServer() as server:
        adapter = OpenAI("m", base_url=server.address["openai"], key_variable=None)
        for k in range(3):
            lived = run(ENVIRONMENT, adapter, sessions=2, out=tmp_path / f"{k}")
            assert lived.complete or lived.n_trials == 2 * N_TRIALS
        wait_for(adapter.close())
    assert len(server.calls) == 3 * 2 * N_TRIALS


# Pictures -----------------------------------------------------------------------------------------


def test_pictures_are_shown_where_the_user_says_so_and_a_dry_run_tells_what_a_run_would(
    tmp_path, knownminds
):
    with FaultServer() as server:
        command = ("run", "marker_location", "--llm", "openai:m", "--trials", "33")
        command += ("--set", "modality=image", "--base-url", server.address["openai"])
        for dry in (("--dry-run",), ("--out", str(tmp_path / "run"))):
            code, _, told = knownminds(*command, *dry)
            assert code == 2
            assert "say with --images that the model sees them" in told
        assert not server.calls
        assert knownminds(*command, "--dry-run", "--images")[0] == 0
        knownminds(*command, "--images", "--out", str(tmp_path / "run"), "--cap", "calls=3")
        assert len(server.calls) == 3
        assert all(call.placed for call in server.calls)


def test_so_many_sessions_that_a_run_would_never_end_are_refused(knownminds):
    words = ("--llm", "synthetic:rescorla_wagner_dual", "--sessions", "1000000000")
    code, _, told = knownminds("run", "instrumental_learning", *words)
    assert code == 2
    assert "1000000" in told


# Killed between an answer and its commit ----------------------------------------------------------


def test_an_answer_that_a_kill_kept_out_of_the_ledger_is_there_when_it_goes_on(tmp_path):
    before, after = tmp_path / "before", tmp_path / "after"
    answer = Reply("A", usage=Usage(7, 2), model_served="m")

    async def killed(ledger):
        call, attempt = await ledger.begin((0, 0, 0), None, Request("h", "{}", {}), Spent(1, 9, 9))
        ledger._commit = lambda: None  # the kill comes before it
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await ledger.answered(call, attempt, answer, Spent(1, 9, 9))
        shutil.copytree(before, after)

    with Ledger.open(before, {"seed": 1}, 1) as ledger:
        asyncio.run(killed(ledger))
    with (after / "ledger.spool").open("ab") as spool:
        spool.write(b'[2, [["UPDATE att')  # and one more was cut off in its line
    with Ledger.open(after, {"seed": 1}, 1) as ledger:
        assert ledger.calls_of(0)[0, 0].reply == answer
        assert ledger.account().calls == {"ok": 1}
        assert ledger.model_served == "m"
