"""Floods and slow clients against a served mind: the key comes first, and nothing without bound."""

import socket
import time
from contextlib import suppress

import pytest

from knownminds.agents import RescorlaWagnerDual
from knownminds.environments import InstrumentalLearning
from knownminds.llm_adapters.known_minds import serve
from knownminds.llm_adapters.known_minds.serve import Served

LEARNER = RescorlaWagnerDual(alpha_positive=0.4, alpha_negative=0.1, beta=3.0, kappa=0.1)
HEAD = "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n{}\r\n"


@pytest.fixture
def served(monkeypatch):
    monkeypatch.setattr(serve, "_IN_TIME", 0.3)
    monkeypatch.setattr(serve, "_IDLE", 0.5)
    monkeypatch.setattr(serve, "_MOST_CONNECTIONS", 8)
    with Served(InstrumentalLearning(2), LEARNER, seed=11, api_key="a-key-of-its-own") as server:
        yield server


def dial(served):
    return socket.create_connection((served.host, served.port), timeout=5)


def test_without_the_key_no_byte_of_a_body_is_waited_for(served):
    with dial(served) as line:
        line.sendall(HEAD.format(5_000_000, "").encode())  # and the body never comes
        assert line.recv(99).startswith(b"HTTP/1.1 401")


def test_a_body_beyond_the_limit_is_refused_by_its_announcement(served):
    with dial(served) as line:
        key = "authorization: Bearer a-key-of-its-own\r\n"
        line.sendall(HEAD.format(30_000_000, key).encode())
        assert line.recv(99).startswith(b"HTTP/1.1 413")


def test_slow_connections_are_let_go_and_no_more_are_held_than_a_few(served):
    lines = [dial(served) for _ in range(8)]
    began = time.monotonic()
    for line in lines:
        line.sendall(b"POST /v1/chat")  # and then a byte now and again, or nothing
    time.sleep(0.05)
    with dial(served) as more:
        assert more.recv(99).startswith(b"HTTP/1.1 503")
    for line in lines:
        with suppress(ConnectionResetError):
            assert line.recv(1) == b""
        line.close()
    assert time.monotonic() - began < 3
    with dial(served) as line:  # and others are served again
        line.sendall(b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n")
        assert line.recv(99).startswith(b"HTTP/1.1 200")
