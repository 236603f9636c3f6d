import asyncio
import json
import os
import sqlite3
from contextlib import closing
from datetime import date
from hashlib import sha256

import pytest

from knownminds.environments import Message, Prompt
from knownminds.llm_adapters import Reply, Sampling, ServerFailed, Usage
from knownminds.llm_adapters.adapter import TokenLogProbability
from knownminds.llm_adapters.runs.ledger import (
    FILE,
    Ledger,
    LedgerFailed,
    Spent,
    asked_of,
    known_keys,
    request_of,
)
from knownminds.llm_adapters.runs.prices import price_of

KEY = "sk-canary-0123456789abcdef"
RUN = {
    "environment": "e",
    "settings": {"n_visits": 2},
    "provider": "p",
    "model": "m",
    "base_url": "",
    "seed": 1,
}
ASKED = asked_of(RUN, Sampling(temperature=0.5, seed=3))
HELLO = Prompt((Message("user", "Hello?", (b"\x89PNG",)),))
PICTURE = sha256(b"\x89PNG").hexdigest()
PRICE = price_of("a:b", date(2026, 11, 1), {"a:b": {"input": "0.1", "output": 7}})


def opened(folder, n=2, price=None, keys=(), **changes):
    return Ledger.open(folder, {**RUN, **changes}, n, price=price, keys=keys)


def stored(folder, statement):
    with closing(sqlite3.connect(folder / FILE)) as connection:
        return connection.execute(statement).fetchall()


async def ask(ledger, reply, place=(0, 0, 0), prompt=HELLO, most=None, used=None):
    """Ask once; `reply` is a reply, an error, or None if the process dies meanwhile."""
    call, attempt = await ledger.begin(
        place, None, request_of(ASKED, prompt), most or Spent(1, 50, 400)
    )
    if isinstance(reply, Reply):
        await ledger.answered(call, attempt, reply, used or Spent(1, 5, 40))
    elif reply is not None:
        await ledger.failed(call, attempt, reply, used or Spent(1))
    return call


def test_a_request_is_on_disk_before_it_is_sent_and_an_answer_before_it_is_used(tmp_path):
    async def run(ledger):
        call, attempt = await ledger.begin(
            (4, 2, 0), None, request_of(ASKED, HELLO), Spent(1, 50, 400)
        )
        assert stored(tmp_path, "SELECT session, turn, slot, state FROM call") == [
            (4, 2, 0, "open")
        ]
        assert stored(tmp_path, "SELECT state, reserved_tokens, reserved, cost FROM attempt") == [
            ("inflight", 50, 400, None)
        ]
        ((body,),) = stored(tmp_path, "SELECT body FROM request")
        assert json.loads(body)["messages"] == [["user", "Hello?", PICTURE]]
        assert json.loads(body)["settings"] == {"temperature": 0.5, "seed": 3}
        assert stored(tmp_path, "SELECT png FROM image") == [(b"\x89PNG",)]

        reply = Reply("A", usage=Usage(3, 2), model_served="m-1", raw="{A}", request_id="r")
        await ledger.answered(call, attempt, reply, Spent(1, 5, 40))
        assert call.reply == reply
        assert stored(tmp_path, "SELECT state, raw, tokens, cost, request_id FROM attempt") == [
            ("ok", "{A}", 5, 40, "r")
        ]
        assert stored(tmp_path, "SELECT state FROM call") == [("done",)]

    with opened(tmp_path, price=PRICE) as ledger:
        asyncio.run(run(ledger))


def test_what_is_read_again_is_what_was_written(tmp_path):
    tokens = (TokenLogProbability("A", -0.25, (("B", -1.5), ("C", -7.0))),)
    replies = [
        Reply("A", "stop", Usage(3, 2, 1, 0), "m-1", '{"é": "\\u2028"}', "r", tokens),
        Reply("", "length", Usage(), "m-1", "", ""),
        Reply("zero \x00 and \N{GRINNING FACE}", raw="NA"),
    ]

    async def run(ledger):
        for turn, reply in enumerate(replies):
            await ask(ledger, reply, (0, turn, 0))
        call = await ask(ledger, ServerFailed("down"), (0, 3, 0))
        await ledger.give_up(call, "down")
        await ledger.end("", {})

    with opened(tmp_path) as ledger:
        asyncio.run(run(ledger))
    with opened(tmp_path) as again, Ledger.read(tmp_path) as reading:
        for ledger in (again, reading):
            calls = list(ledger.calls_of(0).values())
            assert [call.reply for call in calls] == [*replies, None]
            assert [call.state for call in calls] == ["done", "done", "done", "dead"]
            assert calls[3].note == "down"
            assert ledger.calls_of(1) == {}


def test_what_was_under_way_when_the_process_died_counts_in_full(tmp_path):
    async def run(ledger):
        await ask(ledger, None)
        await ask(ledger, Reply("A", usage=Usage(4, 1)), (0, 1, 0))
        await ask(ledger, ServerFailed("down", charged=False), (1, 0, 0))
        await ask(ledger, ServerFailed("down"), (1, 1, 0), used=Spent(1, 50, 400))

    with opened(tmp_path, price=PRICE) as ledger:
        asyncio.run(run(ledger))
        before = ledger.spent()
    assert before == {0: Spent(2, 55, 440), 1: Spent(2, 50, 400)}
    with Ledger.read(tmp_path) as ledger:
        assert ledger.spent() == before
        assert ledger.starts()[0].ended is None
    with opened(tmp_path, price=PRICE) as ledger:
        assert ledger.spent() == before
        account = ledger.account()
        assert dict(account.calls) == {
            "unknown": 1, "ok": 1, "error_unpaid": 1, "error_maybe_paid": 1,
        }  # fmt: skip
        assert (account.paid, account.reserved) == (40, 800)
        call = ledger.calls_of(0)[0, 0]
        assert (call.state, call.attempts, call.ended) == ("open", 1, 0)


def test_a_ledger_has_one_owner_and_any_number_of_readers(tmp_path):
    with opened(tmp_path) as ledger:
        with pytest.raises(ValueError, match="another one is at work in"):
            opened(tmp_path)
        asyncio.run(ask(ledger, Reply("A")))
        with Ledger.read(tmp_path) as one, Ledger.read(tmp_path) as other:
            assert one.calls_of(0) == other.calls_of(0) == ledger.calls_of(0)
    opened(tmp_path).close()


def test_keys_are_written_nowhere(tmp_path, monkeypatch):
    for name in list(os.environ):
        if name.upper().endswith(("_KEY", "_TOKEN", "_SECRET")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("OTHER_API_KEY", KEY)
    monkeypatch.setenv("ODDLY_NAMED", 'with"quotes"0123')
    monkeypatch.setenv("DUMMY_KEY", "x")  # short ones stand in any answer
    keys = known_keys("ODDLY_NAMED", None)
    assert set(keys) == {KEY, 'with"quotes"0123', 'with\\"quotes\\"0123'}

    async def run(ledger):
        said = f"x {KEY} y"
        tokens = (TokenLogProbability(said, -1.0, ((said, -1.0),)),)
        reply = Reply(said, said, Usage(), said, said, said, tokens)
        call = await ask(ledger, reply, prompt=Prompt((Message("user", said),)))
        assert call.reply.text == call.reply.raw == "x [key] y"
        await ask(ledger, Reply('with"quotes"0123', raw='with"quotes"0123'), (0, 1, 0))
        call = await ask(ledger, ServerFailed(said, raw=said), (0, 2, 0))
        ledger.judged(call, "ok", said)
        await ledger.give_up(call, said)
        await ledger.end(said, {0: said})

    with opened(tmp_path, keys=keys, base_url=f"http://{KEY}@x") as ledger:
        asyncio.run(run(ledger))
        assert ledger.calls_of(0)[0, 0].reply.text == "x [key] y"
        files = [file.read_bytes() for file in tmp_path.iterdir()]
    files += [file.read_bytes() for file in tmp_path.iterdir()]
    assert len(files) > 4
    for content in files:
        assert KEY.encode() not in content
        assert b"quotes" not in content
    # and the test can fail: without its keys the ledger does not know what to mask
    with opened(tmp_path / "open") as ledger:
        asyncio.run(ask(ledger, Reply(KEY)))
    assert KEY.encode() in (tmp_path / "open" / FILE).read_bytes()


def test_a_disk_that_is_full_stops_everything_and_loses_nothing_written(tmp_path):
    async def run(ledger):
        for turn in range(1000):
            await ask(ledger, Reply("A" * 500), (0, turn, 0))

    with opened(tmp_path) as ledger:
        asyncio.run(ask(ledger, Reply("A"), (1, 0, 0)))
        pages = ledger._connection.execute("PRAGMA page_count").fetchone()[0]
        ledger._connection.execute(f"PRAGMA max_page_count = {pages + 20}")
        with pytest.raises(LedgerFailed, match="full"):
            asyncio.run(run(ledger))
        with pytest.raises(LedgerFailed):  # and it stays so
            asyncio.run(ask(ledger, Reply("A"), (1, 1, 0)))
    with opened(tmp_path) as ledger:
        calls = ledger.calls_of(0)
        done = [call for call in calls.values() if call.state == "done"]
        assert len(done) >= len(calls) - 1 > 5
        assert ledger.calls_of(1)[0, 0].reply == Reply("A")
