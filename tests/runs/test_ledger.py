import os
import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import date
from functools import partial

import pytest
from scripted import rejected, server_failed

from knownminds.environments import Message, Prompt
from knownminds.llm_adapters import Failed, Reply, Sampling, TokenLogProbability, Usage
from knownminds.llm_adapters.adapter import write_reply
from knownminds.llm_adapters.masking import known_keys
from knownminds.llm_adapters.runs.ledger import FILE, Attempt, Ledger, asked_of, request_hash
from knownminds.llm_adapters.runs.prices import Spent, price_of

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
PRICE = price_of("a:b", date(2026, 11, 1), {"a:b": {"input": 1, "output": 8}})


def opened(folder, n=2, price=None, keys=(), **changes):
    return Ledger.open(folder, {**RUN, **changes}, n, price=price, keys=keys)


def stored(folder, statement):
    with closing(sqlite3.connect(folder / FILE)) as connection:
        return connection.execute(statement).fetchall()


def to_send(place, prompt, received):
    request = request_hash(ASKED, prompt.hash)
    return Attempt(place, 0, request, "inflight", 50, received, shown=(ASKED, prompt))


def ask(ledger, came, place=(0, 0, 0), prompt=HELLO):
    """Ask once; what came is a reply, an error, or None if the process dies meanwhile."""
    attempt = to_send(place, prompt, 50)
    ledger.sent([attempt])
    if isinstance(came, Reply):
        ledger.came(attempt, write_reply(came))
        ledger.was_read(attempt, came)
    elif came is not None:
        ledger.failed(attempt, came, final=came.then != "retry")
    return attempt


def test_a_request_is_on_disk_before_it_leaves_and_the_bytes_before_they_are_read(tmp_path):
    with opened(tmp_path) as ledger:
        attempt = to_send((4, 2, 0), HELLO, 400)
        ledger.sent([attempt])
        assert stored(tmp_path, "SELECT session, turn, number, state, most_sent FROM attempt") == [
            (4, 2, 0, "inflight", 50)
        ]
        assert ledger.request(attempt.request) == (HELLO, Sampling(temperature=0.5, seed=3))
        ledger.came(attempt, b"{A}")
        assert stored(tmp_path, "SELECT state, body, reply FROM attempt") == [("ok", b"{A}", None)]
        ledger.was_read(attempt, Reply("A", usage=Usage(3, 2), model_served="m-1"))
    with Ledger.read(tmp_path) as ledger:
        (found,) = ledger.attempts(4)
        assert found.reply == Reply("A", usage=Usage(3, 2), model_served="m-1", raw="{A}")
        assert ledger.model_served == "m-1"


def test_what_is_read_again_is_what_was_written(tmp_path):
    tokens = (TokenLogProbability("A", -0.25, (("B", -1.5), ("C", -7.0))),)
    replies = [
        Reply("A \u2028", "stop", Usage(3, 2, 1, 0), "m-1", log_probabilities=tokens),
        Reply("", "length", Usage(), "m-1"),
        Reply("zero \x00 and \N{GRINNING FACE}"),
    ]
    with opened(tmp_path) as ledger:
        for turn, reply in enumerate(replies):
            ask(ledger, reply, (0, turn, 0))
        ask(ledger, rejected("no"), (0, 3, 0))
        ledger.end("", {})
    with opened(tmp_path) as again, Ledger.read(tmp_path) as reading:
        for ledger in (again, reading):
            *found, last = ledger.attempts(0)
            assert [replace(one.reply, raw="") for one in found] == replies
            assert (last.reply, last.final, last.note) == (None, True, "no")
            assert ledger.questions(1) == {}


def test_what_was_under_way_when_the_process_died_counts_in_full(tmp_path):
    with opened(tmp_path, price=PRICE) as ledger:
        ask(ledger, None)
        ask(ledger, Reply("A", usage=Usage(4, 1)), (0, 1, 0))
        ask(ledger, rejected("no"), (1, 0, 0))
        ask(ledger, server_failed("down"), (1, 1, 0))
    most = 50 * 1000 + 50 * 8000
    for reading in (Ledger.read(tmp_path), opened(tmp_path, price=PRICE)):
        with reading as ledger:
            assert ledger.spent() == {
                0: Spent(2, 105, most + 4 * 1000 + 8000),
                1: Spent(2, 100, most),
            }
    with Ledger.read(tmp_path) as ledger:
        account = ledger.account()
        assert dict(account.calls) == {
            "unknown": 1, "ok": 1, "error_unpaid": 1, "error_maybe_paid": 1,
        }  # fmt: skip
        assert (account.paid, account.reserved) == (12_000, 2 * most)
        assert ledger.starts[0].ended is None


def test_a_ledger_has_one_owner_and_any_number_of_readers(tmp_path):
    with opened(tmp_path) as ledger:
        with pytest.raises(ValueError, match="another one is at work in"):
            opened(tmp_path)
        ask(ledger, Reply("A"))
        with Ledger.read(tmp_path) as one, Ledger.read(tmp_path) as other:
            assert one.questions(0) == other.questions(0)
            assert len(one.questions(0)) == 1
    opened(tmp_path).close()


def test_keys_are_written_nowhere(tmp_path, monkeypatch):
    for name in list(os.environ):
        if name.upper().endswith(("_KEY", "_TOKEN", "_SECRET")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("OTHER_API_KEY", KEY)
    monkeypatch.setenv("ODDLY_NAMED", 'with"quotes"/0123')
    monkeypatch.setenv("DUMMY_KEY", "x")  # short ones stand in any answer
    keys = known_keys("ODDLY_NAMED", None)
    assert set(keys) == {
        KEY.encode(), b'with"quotes"/0123', b'with\\"quotes\\"/0123', b'with\\"quotes\\"\\/0123',
        b"with%22quotes%22%2F0123",
    }  # fmt: skip

    def run(ledger):
        said = f"x {KEY} y"
        tokens = (TokenLogProbability(said, -1.0, ((said, -1.0),)),)
        reply = Reply(said, said, Usage(), said, log_probabilities=tokens)
        ask(ledger, reply, prompt=Prompt((Message("user", said),)))
        ask(ledger, Reply('with"quotes"/0123'), (0, 1, 0))
        error = Failed(said, "skip", raw=b"with%22quotes%22%2F0123")
        ask(ledger, error, (0, 2, 0))
        ledger.end(said, {0: said})

    with opened(tmp_path, keys=keys, base_url=f"http://{KEY}@x") as ledger:
        run(ledger)
        assert next(ledger.attempts(0)).reply.text == "x [key] y"
        files = [file.read_bytes() for file in tmp_path.iterdir()]
    files += [file.read_bytes() for file in tmp_path.iterdir()]
    assert len(files) > 4
    for content in files:
        assert KEY.encode() not in content
        assert b"quotes" not in content
    # and the test can fail: without its keys the ledger does not know what to mask
    with opened(tmp_path / "open") as ledger:
        ask(ledger, Reply(KEY))
    assert KEY.encode() in (tmp_path / "open" / FILE).read_bytes()


def test_a_disk_that_is_full_stops_everything_and_loses_nothing_written(tmp_path):
    with opened(tmp_path) as ledger:
        ask(ledger, Reply("A"), (1, 0, 0))
        pages = ledger.file._connection.execute("PRAGMA page_count").fetchone()[0]
        ledger.file._connection.execute(f"PRAGMA max_page_count = {pages + 20}")
        many = ((0, turn, 0) for turn in range(1000))
        with pytest.raises(Failed, match="full"):
            list(map(partial(ask, ledger, Reply("A" * 500)), many))
        with pytest.raises(Failed):  # and it stays so
            ask(ledger, Reply("A"), (1, 1, 0))
    with opened(tmp_path) as ledger:
        found = list(ledger.attempts(0))
        came = [one for one in found if one.state == "ok"]
        assert len(came) >= len(found) - 1 > 5
        assert next(ledger.attempts(1)).reply.text == "A"


def test_a_ledger_of_another_format_is_left_as_it_is(tmp_path):
    opened(tmp_path).close()
    with closing(sqlite3.connect(tmp_path / FILE)) as connection, connection:
        connection.execute("PRAGMA user_version = 1")
    before = (tmp_path / FILE).read_bytes()
    for opening in (opened, Ledger.read):
        with pytest.raises(ValueError, match="is of format 1; this knownminds reads format"):
            opening(tmp_path)
    assert (tmp_path / FILE).read_bytes() == before
