"""Floods and slow clients against a served mind: the key comes first, and nothing without bound."""

import json
import socket
import time
from contextlib import ExitStack, suppress

import pytest

from knownminds.agents import RescorlaWagnerDual
from knownminds.environments import InstrumentalLearning
from knownminds.llm_adapters.known_minds import serve
from knownminds.llm_adapters.known_minds.serve import Served

LEARNER = RescorlaWagnerDual(alpha_positive=0.4, alpha_negative=0.1, beta=3.0, kappa=0.1)
HEAD = "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n{}\r\n"
KEY = "authorization: Bearer a-key-of-its-own\r\n"
HEALTH = b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n"
IN_TIME = 0.4


@pytest.fixture
def served(monkeypatch):
    monkeypatch.setattr(serve, "_IN_TIME", IN_TIME)
    monkeypatch.setattr(serve, "_IDLE", 0.3)
    with Served(InstrumentalLearning(2), LEARNER, seed=11, api_key="a-key-of-its-own") as server:
        yield server


def dial(served):
    return socket.create_connection((served.host, served.port), timeout=5)


def head(*lines):
    return HEAD.format("".join(f"{line}\r\n" for line in lines)).encode()


def works(served):
    with dial(served) as line:
        line.sendall(HEALTH)
        return line.recv(99).startswith(b"HTTP/1.1 200")


def seconds_until_cut(line):
    """How long a connection lives on while a byte comes on it now and again."""
    began = time.monotonic()
    line.settimeout(0.05)
    while time.monotonic() - began < 5:
        try:
            line.sendall(b"x")
            if line.recv(4096) == b"":
                break
        except TimeoutError:
            continue
        except OSError:
            break
    return time.monotonic() - began


# Bodies -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["content-length: 5000000", "transfer-encoding: chunked"])
def test_without_the_key_no_byte_of_a_body_is_waited_for(served, how):
    for lines in ((how,), (how, "authorization: Bearer another")):
        with dial(served) as line:
            line.sendall(head(*lines))  # and the body never comes
            assert line.recv(99).startswith(b"HTTP/1.1 401")


def test_without_the_key_a_flood_is_not_taken_in(served):
    with dial(served) as line:
        line.sendall(head("content-length: 30000000"))
        sent = 0
        with suppress(OSError):
            while sent < 30_000_000:
                sent += line.send(b"x" * 2**16)
        assert sent < 2**23  # what fits into the buffers of two sockets
    assert works(served)


def test_a_body_beyond_the_limit_is_refused_by_its_announcement(served):
    with dial(served) as line:
        line.sendall(head("content-length: 30000000", KEY.strip()))
        assert line.recv(99).startswith(b"HTTP/1.1 413")


def test_a_body_beyond_the_limit_that_is_not_announced_is_cut(served, monkeypatch):
    monkeypatch.setattr(serve, "_MOST_BODY", 2**18)
    chunk = b"10000\r\n" + b"x" * 2**16 + b"\r\n"
    with dial(served) as line:
        line.sendall(head("transfer-encoding: chunked", KEY.strip()))
        sent = 0
        with suppress(OSError):
            while sent < 2**24:
                sent += line.send(chunk)
        assert sent < 2**23
        assert line.recv(99).startswith(b"HTTP/1.1 413")
    assert works(served)


@pytest.mark.parametrize("depth", [900, 990, 5_000, 100_000])
@pytest.mark.parametrize("where", ["messages", "n", "stop", "metadata", "model", "x"])
def test_lists_within_lists_are_refused(served, where, depth):
    body = b'{"model": "known-mind", "%s": %s}' % (where.encode(), b"[" * depth + b"]" * depth)
    with dial(served) as line:
        line.sendall(head(f"content-length: {len(body)}", KEY.strip(), "connection: close") + body)
        answer = b"".join(iter(lambda: line.recv(65536), b""))
    assert answer.startswith(b"HTTP/1.1 400")
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["message"]


@pytest.mark.parametrize("name", ["\\ud800", "\\u0000", "x" * 4000])
def test_texts_that_cannot_be_written_are_refused(served, name):
    body = ('{"model": "known-mind", "%s": 1, "messages": "%s"}' % (name, name)).encode()  # noqa: UP031
    with dial(served) as line:
        line.sendall(head(f"content-length: {len(body)}", KEY.strip()) + body)
        assert line.recv(99).startswith(b"HTTP/1.1 400")


# Time ---------------------------------------------------------------------------------------------

BEGINNINGS = {
    "nothing": b"",
    "a head": b"POST /v1/chat",
    "a head after an answer": HEALTH + b"POST /v1/chat",
    "a body": head("content-length: 100000", KEY.strip()) + b"{",
    "a body in chunks": head("transfer-encoding: chunked", KEY.strip()) + b"ffff\r\n{",
}


@pytest.mark.parametrize("beginning", BEGINNINGS)
def test_what_comes_byte_for_byte_is_cut_off_in_time(served, beginning, capfd):
    with dial(served) as line:
        line.sendall(BEGINNINGS[beginning])
        assert seconds_until_cut(line) < IN_TIME + 1
    assert works(served)
    assert capfd.readouterr().err == ""


def test_three_hundred_slow_connections_are_let_go_and_keep_nobody_out(served):
    began = time.monotonic()
    with ExitStack() as stack:
        lines = [stack.enter_context(dial(served)) for _ in range(300)]
        for line in lines:
            line.sendall(b"POST /v1/chat")
        assert works(served)
        for line in lines:
            with suppress(ConnectionResetError):
                assert line.recv(1) == b""
    assert time.monotonic() - began < IN_TIME + 3
    assert works(served)


def test_no_more_connections_are_held_than_a_few(served, monkeypatch):
    monkeypatch.setattr(serve, "_MOST_CONNECTIONS", 8)
    with ExitStack() as stack:
        for _ in range(8):
            stack.enter_context(dial(served)).sendall(b"POST")
        time.sleep(0.05)
        assert stack.enter_context(dial(served)).recv(99).startswith(b"HTTP/1.1 503")
    time.sleep(0.05)
    assert works(served)


def test_who_asks_and_never_reads_is_cut_off(served):
    path = b"/v1/models/" + b"x" * 60_000  # which the answer repeats
    ask = HEALTH.replace(b"/health", path).replace(b"host", KEY.encode() + b"host")
    with dial(served) as line:
        line.settimeout(0.1)
        asked = 0
        with suppress(OSError):
            while asked < 2**25:
                asked += line.send(ask)
        assert asked < 2**25  # answers fill the way back, and no more is read
        assert works(served)
        time.sleep(IN_TIME + 0.1)
        line.settimeout(5)
        with suppress(ConnectionResetError):  # the answers that were on their way
            while line.recv(2**20):
                pass
    assert works(served)


def test_requests_without_waiting_for_answers_are_answered_in_order(served):
    found = HEALTH.replace(b"/health", b"/v1/models").replace(b"host", KEY.encode() + b"host")
    last = HEALTH.replace(b"/health", b"/v1/models")  # without the key; nothing behind it is read
    with dial(served) as line:
        line.sendall((HEALTH + found) * 150 + last + HEALTH)
        came = b"".join(iter(lambda: line.recv(65536), b""))
    answers = came.split(b"HTTP/1.1 ")[1:]
    assert [answer[:3] for answer in answers] == [b"200"] * 300 + [b"401"]
    assert [b"calls" in answer for answer in answers] == [True, False] * 150 + [False]


def test_a_server_that_is_closed_waits_for_no_slow_client(served):
    with ExitStack() as stack:
        for beginning in BEGINNINGS.values():
            stack.enter_context(dial(served)).sendall(beginning)
        time.sleep(0.05)
        began = time.monotonic()
        served.close()
        assert time.monotonic() - began < 1.5
