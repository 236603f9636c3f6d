"""Floods against a served agent: the key comes first, and nothing is taken without bound."""

import socket
from contextlib import suppress

import pytest

from knownminds.agents import RescorlaWagnerDual
from knownminds.environments import InstrumentalLearning
from knownminds.llm_adapters.known_agents import serve
from knownminds.llm_adapters.known_agents.serve import Served

LEARNER = RescorlaWagnerDual(alpha_positive=0.4, alpha_negative=0.1, beta=3.0, kappa=0.1)
HEAD = "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n{}\r\n"
KEY = "authorization: Bearer a-key-of-its-own\r\n"
HEALTH = b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n"


@pytest.fixture
def served():
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


# Bodies -------------------------------------------------------------------------------------------


def test_without_the_key_a_flood_is_not_taken_in(served):
    with dial(served) as line:
        line.sendall(head("content-length: 30000000"))
        sent = 0
        with suppress(OSError):
            while sent < 30_000_000:
                sent += line.send(b"x" * 2**16)
        assert sent < 2**23  # what fits into the buffers of two sockets
    assert works(served)


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
