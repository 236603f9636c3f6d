"""What a refusal means, in the words that servers use, on every wire; proxies and certificates."""

import asyncio
import ssl
import threading
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, HTTPServer

import httpx2
import pytest

from knownminds.environments import Message, Prompt
from knownminds.llm_adapters import Failed, Sampling, load

WIRES = ("openai", "anthropic", "google")
HELLO = Prompt((Message("user", "E or N?"),))
KEY = "sk-canary-0123456789abcdef"


def said(message, **more):
    return {"error": {"message": message, **more}}


def fields(*names):
    wrong = "Extra inputs are not permitted"
    return [{"type": "extra_forbidden", "loc": ["body", name], "msg": wrong} for name in names]


# Status, body as a server sends it; then what follows, the kind, and the setting that it names.
REFUSALS = [
    (400, said("Unsupported parameter: 'seed' is not supported.", param="seed"), "setting", "seed"),
    (400, [said('Invalid JSON payload received. Unknown name "seed": Cannot find field.')],
     "setting", "seed"),
    (422, {"message": {"detail": fields("seed")}}, "setting", "seed"),
    (422, {"detail": fields("seed", "top_p")}, "setting", "top_p"),
    (400, said("litellm.UnsupportedParamsError: anthropic does not support parameters: ['seed']"),
     "setting", "seed"),
    (400, said("Provider returned error", metadata={"raw": "unknown field `seed`"}),
     "setting", "seed"),
    (400, {"error": "seed is not supported"}, "setting", "seed"),
    (422, "The parameter seed is not permitted.", "setting", "seed"),
    (422, ["seed: extra fields not permitted"], "setting", "seed"),
    (400, {"detail": ["Unrecognized request argument supplied: seed"]}, "setting", "seed"),
    (422, {"error": ["does not support seed"]}, "setting", "seed"),
    (200, {"error": "Unsupported parameter: seed"}, "setting", "seed"),
    (400, said("A seed of doubt in your prompt is too long."), "prompt 400", ""),
    (403, said("Your input was flagged for violence.", metadata={"reasons": ["violence"]}),
     "refused", ""),
    (400, said("The response was filtered.", code="content_filter"), "refused", ""),
    (400, said("Output blocked by content filtering policy"), "refused", ""),
    (403, said("Not supported.", code="unsupported_country_region_territory"), "region", ""),
    (400, said("User location is not supported for the API use."), "region", ""),
    (403, said("Project p does not have access to model m", code="model_not_found"), "model", ""),
    (403, "<!DOCTYPE html><title>Just a moment...</title>", "wall", ""),
    (403, said("You may not do this."), "key", ""),
    (429, [said("Too many.", details=[{"violations": [{"quotaId": "RequestsPerDayPerProject"}]}])],
     "quota", ""),
    (429, said("Rate limit reached on requests per day (RPD): Limit 200."), "quota", ""),
    (429, said("Rate limit reached on requests per min (RPM)."), "often", ""),
    (200, said("Slow down.", code="rate_limit_exceeded"), "often", ""),
    (200, said("Slow down.", code="429"), "often", ""),
    (200, said("Over capacity.", type="overloaded_error"), "server 503", ""),
    (200, said("What is this?"), "unreadable", ""),
]  # fmt: skip
THEN = {"setting": "stop", "region": "stop", "model": "stop", "wall": "stop", "key": "stop",
        "refused": "skip", "prompt 400": "skip", "unreadable": "skip"}  # fmt: skip


def failure_of(wire, answer, **options):
    adapter = load(wire)("m", transport=httpx2.MockTransport(lambda _: answer), **options)
    with pytest.raises(Failed) as failed:
        asyncio.run(adapter.complete(HELLO, settings=Sampling(max_tokens=9)))
    return failed.value


@pytest.mark.parametrize("wire", WIRES)
def test_a_refusal_is_told_by_the_words_of_the_server(wire):
    for status, body, kind, setting in REFUSALS:
        how = {"text": body} if isinstance(body, str) else {"json": body}
        failure = failure_of(wire, httpx2.Response(status, **how), key_variable=None)
        assert (failure.kind, failure.setting) == (kind, setting), body
        assert failure.then == THEN.get(kind, "retry"), body


def test_a_refused_key_is_told_in_words_without_it(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    words = f"The key {KEY} (sk-can***cdef, sk-canary-01...) may not write. Ask Ann."
    failure = failure_of("openai", httpx2.Response(403, json=said(words)))
    assert "may not write. Ask Ann." in str(failure)
    assert not any(part in str(failure) for part in ("sk-can", "cdef", "canary"))


def test_a_date_to_wait_for_is_by_the_clock_of_the_server():
    moment = 1_800_000_000  # not ours
    head = {"retry-after": formatdate(moment + 7, usegmt=True), "date": formatdate(moment)}
    failure = failure_of("openai", httpx2.Response(429, headers=head), key_variable=None)
    assert failure.wait == 7.0
    failure = failure_of("openai", httpx2.Response(429, headers={"retry-after": "2s"}),
                         key_variable=None)  # fmt: skip
    assert failure.wait == 2.0
    both = f"{formatdate(usegmt=True)}, {formatdate(moment, usegmt=True)}"  # a gateway's, and its
    head = {"retry-after": formatdate(moment + 7, usegmt=True), "date": both}
    failure = failure_of("openai", httpx2.Response(429, headers=head), key_variable=None)
    assert failure.wait == 7.0


@pytest.mark.parametrize("wire", WIRES)
def test_a_slash_behind_the_address_is_no_part_of_it(wire):
    asked = []

    def answer(request):
        asked.append(request.url.path)
        return httpx2.Response(500)

    for slash in ("", "/"):
        adapter = load(wire)("m", base_url=f"http://127.0.0.1:9/v1{slash}", key_variable=None,
                             transport=httpx2.MockTransport(answer))  # fmt: skip
        with pytest.raises(Failed):
            asyncio.run(adapter.complete(HELLO, settings=Sampling(max_tokens=9)))
    assert asked[0] == asked[1]
    assert "//" not in asked[1]


class Tunnel(BaseHTTPRequestHandler):
    """A proxy that notes which hosts are asked for, and lets nobody through."""

    asked: list = []  # noqa: RUF012 - of the only one

    def do_CONNECT(self):
        self.asked.append((self.path, dict(self.headers)))
        self.send_error(502)

    do_POST = do_CONNECT  # noqa: N815

    def log_message(self, *_):
        pass


def test_a_proxy_of_the_shell_carries_calls_to_https_and_sees_no_key(monkeypatch):
    server = HTTPServer(("127.0.0.1", 0), Tunnel)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    for name in ("HTTPS_PROXY", "HTTP_PROXY", "https_proxy", "http_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{server.server_port}")
    try:
        for url, bypass, kind in (
            ("https://models.invalid/v1", "", "connection"),
            ("https://models.invalid/v1", "models.invalid", "connection"),
            ("http://127.0.0.1:9/v1", "", "connection"),
        ):
            monkeypatch.setenv("NO_PROXY", bypass)
            monkeypatch.setenv("no_proxy", bypass)
            adapter = load("openai")("m", base_url=url)
            with pytest.raises(Failed) as failed:
                asyncio.run(adapter.complete(HELLO, settings=Sampling(max_tokens=9)))
            assert failed.value.kind == kind
            assert failed.value.charged is False
            assert ("proxy" in str(failed.value)) == (url.startswith("https") and not bypass)
    finally:
        server.shutdown()
        server.server_close()
    [(host, head)] = Tunnel.asked
    assert host == "models.invalid:443"
    assert KEY not in str(head)


def test_a_certificate_that_is_not_trusted_is_named_as_the_cause(monkeypatch, tmp_path):
    def answer(request):
        broken = ssl.SSLCertVerificationError(1, "failed")
        broken.verify_message = "self-signed certificate"
        raise httpx2.ConnectError("TLS") from broken

    adapter = load("openai")("m", transport=httpx2.MockTransport(answer), key_variable=None)
    with pytest.raises(
        Failed, match=r"not trusted \(self-signed certificate\).*SSL_CERT_FILE"
    ) as f:
        asyncio.run(adapter.complete(HELLO, settings=Sampling(max_tokens=9)))
    assert (f.value.then, f.value.kind, f.value.charged) == ("stop", "certificate", False)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "none.pem"))
    with pytest.raises(ValueError, match="SSL_CERT_FILE names a file"):
        load("openai")("m", key_variable=None)
