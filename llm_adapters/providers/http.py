"""A model behind an address, over httpx2: one call for one request, and what a failure means."""

from __future__ import annotations

import asyncio
import base64
import json
import math
import os
import re
import ssl
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, ClassVar
from urllib.parse import SplitResult, urlsplit
from urllib.request import getproxies_environment, proxy_bypass

import httpx2

from knownminds.calling import MOST_TOKENS, Sampling
from knownminds.environments import Message, Prompt
from knownminds.llm_adapters.adapter import Failed, Reply, TokenLogProbability, Usage
from knownminds.llm_adapters.masking import masked, spellings_of

MOST_BYTES = 2**23  # of the body of an answer: 4,096 tokens with 20 alternatives each have half
_CONNECTIONS = 1_000
_LATE = 0.5  # seconds after its time at which a clock rings in a process that was stopped
_TO_READ = 5.0  # seconds in which such a process reads what has come
# No byte of the call has left when the HTTP client raises these.
_BEFORE_SENDING = (
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpx2.PoolTimeout,
    httpx2.ProxyError,
)
_NO_CREDIT = re.compile(
    rb"insufficient_quota|billing_error|billing_hard_limit|credit balance is too low", re.IGNORECASE
)
# What a server names as what it does not take, if that is the question and no setting.
_OF_THE_PROMPT = ("messages", "input", "prompt", "contents")
# A setting as servers name it in a sentence: in quotes, or beside a word for "not taken".
_NAMED = re.compile(
    r"['\"`](seed|temperature|top_p|max_tokens|max_completion_tokens|reasoning_effort|verbosity|"
    r"top_logprobs|logprobs|thinking)['\"`]"
    r"|(?:param\w*|arguments?|fields?|names?|keys?|options?|supplied|support\w*)\W{1,3}(seed)\b"
    r"|\b(seed)\b\W+(?:\w+\W+){0,2}?(?:not\b|un|invalid|extra\b|forbidden|cannot\b)",
    re.IGNORECASE,
)
_MODERATED = re.compile(
    r"\bflagged\b|requires moderation|content.?(?:filter|policy|management)|usage.?polic|"
    r"invalid_prompt|moderation_blocked|safety (?:reasons|system)",
    re.IGNORECASE,
)
_ELSEWHERE = re.compile(
    r"unsupported_country|(?:country|region|territory|location)\b.*\bnot (?:supported|available)",
    re.IGNORECASE,
)
_NO_ACCESS = re.compile(r"model_not_found|not have access to (?:the )?model", re.IGNORECASE)
_OF_A_DAY = re.compile(
    r"per.?day|\b[RT]PD\b|daily (?:limit|quota)|(?:limit|quota) (?:per|for the|of the) day",
    re.IGNORECASE,
)
# Words that stand for a status where a server answers 200 with an error inside.
_STATUS_OF = {
    "rate_limit": 429, "exhausted": 429, "too_many": 429, "quota": 402, "credit": 402,
    "billing": 402, "overload": 503,
    "unavailable": 503, "timeout": 408, "server_error": 500, "internal": 500, "api_error": 500,
    "auth": 401, "api_key": 401, "permission": 403, "moderation": 403, "content": 403,
    "not_found": 404, "invalid": 400,
}  # fmt: skip


class Http:
    """A model behind an address.

    Calls are made once, and redirects are not followed. The key is read when a call leaves, and is
    in no object and in no frame of a traceback. Calls to https:// addresses go through the proxy in
    `HTTPS_PROXY` unless `NO_PROXY` names the host; it sees the host and no key. Others go through
    none, which would read the key. `SSL_CERT_FILE` names the authorities that are trusted.

    A subclass says what it is: `provider`, its `address` and the `variable` of its key, `path`,
    where questions go behind the address, the settings that it `heeds`, `header` and `form` of
    the key, and further `headers`; the `rule` that a reply keeps, and its words for `reasons` to
    end. And it has the methods `request`, `answer` and `usage`.

    Parameters
    ----------
    model : The model's name, as the server knows it.
    base_url : Where the server is, without a user, a password or a query, which would be shown;
        None for the provider's address.
    key_variable : Name of the environment variable that holds the key; None for servers that need
        none, "" for the provider's.
    timeout : Seconds until a call is given up.
    transport : What carries the calls instead of the network, for tests.

    Raises
    ------
    ValueError : If the address or the time is none.
    Failed : If the variable is empty.
    """

    provider: str
    address: str
    variable: str | None
    path: str
    heeds: frozenset[str]
    header: ClassVar[str] = "authorization"
    form: ClassVar[str] = "Bearer {}"
    headers: ClassVar[Mapping[str, str]] = {}
    rule: ClassVar[str] = "A reply holds a text"
    reasons: ClassVar[Mapping[str, str]] = {}

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        key_variable: str | None = "",
        timeout: float = 120.0,
        transport: httpx2.AsyncBaseTransport | None = None,
    ):
        base_url = (base_url or self.address).strip().rstrip("/")
        address = _parts_of(base_url)
        if address is None:
            raise ValueError(
                f"A base_url begins with http:// or https://, then a host and perhaps a port; got "
                f"{base_url!r}."
            )
        if address.username or address.password or address.query or address.fragment:
            raise ValueError(
                f"A base_url is shown and stored, so it holds no user, password or query; that of "
                f"{address.hostname} does. Name the key's variable instead."
            )
        if not timeout > 0:
            raise ValueError(f"A timeout is above 0 seconds; got {timeout!r}.")
        self.model = model
        self.base_url = base_url
        self.key_variable = self.variable if key_variable == "" else key_variable
        self.timeout = timeout
        self._host = str(address.hostname)
        proxy = None if transport else _proxy_for(address.scheme, self._host)
        self._through = " through the proxy of HTTPS_PROXY" if proxy else ""
        self._key()
        self._client = httpx2.AsyncClient(
            timeout=httpx2.Timeout(None, connect=min(timeout / 2, 10.0)),  # the rest: `_within`
            limits=httpx2.Limits(max_connections=_CONNECTIONS),
            headers=self.headers,
            trust_env=False,
            verify=True if transport else _trusted(),
            proxy=proxy,
            event_hooks={"request": [self._sign]},
            transport=transport,
        )

    def __repr__(self) -> str:
        """Show where it asks, and never the key."""
        return f"{type(self).__name__}({self.model!r}, base_url={self.base_url!r})"

    def __str__(self) -> str:
        return f"{self.model} at {self.base_url}"

    def request(self, prompt: Prompt, settings: Sampling) -> dict[str, Any]:
        """Return what is sent, without a key; `Failed` if the settings contradict each other."""
        raise NotImplementedError(f"{type(self).__name__} has no method request. Write it.")

    def answer(self, content: dict[str, Any], body: bytes, likely: bool) -> Reply:
        """Return the reply in a body that is a JSON object; any lookup may fail.

        Parameters
        ----------
        likely : Whether log-probabilities are wanted.
        """
        raise NotImplementedError(f"{type(self).__name__} has no method answer. Write it.")

    def usage(self, content: dict[str, Any]) -> Usage:
        """Return the tokens that a body tells of, whatever else it holds."""
        raise NotImplementedError(f"{type(self).__name__} has no method usage. Write it.")

    def read(self, body: bytes, settings: Sampling) -> Reply:
        """Read a body, now or long after it came; `Failed` if it holds no reply."""
        try:
            return self._read(body, settings)
        except Failed as failure:
            try:
                usage = self.usage(json_object(body))
            except ValueError:
                usage = Usage()
            if usage.output_tokens:  # it was paid, whatever it brought
                if failure.kind == "refused":
                    return Reply("", "refusal", usage, raw=body.decode(errors="replace"))
                failure.charged = failure.charged or None
            failure.usage = usage
            raise

    def _read(self, body: bytes, settings: Sampling) -> Reply:
        most = settings.top_log_probabilities
        try:
            content = json_object(body)
            error = content.get("error")
            if error:
                begun = any(content.get(name) for name in ("choices", "candidates", "content"))
                raise (self._broken_off if begun else self._passed_on)(error, body)
            reply = self.answer(content, body, most is not None)
        except (ValueError, LookupError, TypeError, AttributeError):
            failure = self.unreadable(self.rule, body)
        else:
            tokens = reply.log_probabilities
            whole = tokens and (most == 0 or all(token.alternatives for token in tokens))
            said = reply.text and reply.finish_reason != "refusal"
            if most is None or whole or not said:
                reason = self.reasons.get(reply.finish_reason, reply.finish_reason)
                if not reason and _fills(reply, settings.max_tokens):
                    reason = "length"
                raw = body.decode(errors="replace")
                return replace(reply, finish_reason=reason, raw=raw)
            failure = self._lacks_log_probabilities(body)
        raise failure

    async def send(self, request: dict[str, Any]) -> bytes:
        """Send a request once and return the body that came; `Failed` if none did."""
        return await self.call("POST", self.path, json=request)

    async def complete(self, prompt: Prompt, *, settings: Sampling) -> Reply:
        """Ask once; `Failed` if there is no reply."""
        return self.read(await self.send(self.request(prompt, settings)), settings)

    async def close(self) -> None:
        """Give back the connections."""
        await self._client.aclose()

    async def call(self, method: str, path: str, **sent: Any) -> bytes:
        """Call an address once and return the body; see `exchange`."""
        return (await self.exchange(method, path, **sent))[1]

    async def exchange(
        self,
        method: str,
        path: str,
        *,
        most: int = MOST_BYTES,
        timeout: float | None = None,
        **sent: Any,
    ) -> tuple[Mapping[str, str], bytes]:
        """Call an address once and return head and body, at most so many bytes; or `Failed`."""
        self._key()  # if it is gone, that is said before anything is sent
        seconds = timeout or self.timeout
        url = path if "://" in path else self.base_url + path
        try:
            async with _within(seconds), self._client.stream(method, url, **sent) as response:
                body = self._masked(await _bounded(response, most))
            if response.is_success:
                return response.headers, body
            failure = self.failed(response.status_code, body, response.headers)
        except TimeoutError:
            failure = Failed(f"{self} did not answer within {seconds:g} seconds.", "retry", "late")
        except _TooLong:
            failure = Failed(
                f"An answer has at most {most:,} bytes; {self} sent more.", "skip", "unreadable"
            )
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            failure = self._not_reached(error)
        # Outside of the handlers, for the client's error holds the request and with it the key.
        raise failure

    def failed(self, status: int, body: bytes, headers: Mapping[str, str] | None = None) -> Failed:
        """Return what an answer with this status means.

        Only what a server refuses is surely not charged. A 5xx may come from a gateway, after the
        model behind it has answered.
        """
        said, about, param = complaint(body)
        if status < 500 and status != 401 and (refusal := self._refusal(status, said, about, body)):
            return refusal
        if status in (401, 403) or (status == 400 and b"API_KEY_INVALID" in body):
            # What a server says about a key may hold parts of it, so the body is dropped.
            more = f" {self._without_key(said)}" if status == 403 else ""
            key = f"the key in {self.key_variable}" if self.key_variable else "calls without a key"
            message = f"{self} does not accept {key} ({status}).{more}"
            return Failed(message, "stop", "key", charged=False)
        if status == 402 or (400 <= status < 500 and _NO_CREDIT.search(body)):
            message = f"The account for {self} has no credit left ({status})."
            return Failed(message, "stop", "credit", charged=False, raw=body)
        if status in (404, 410):
            message = f"{self} is not there ({status}). Check the model and base_url."
            if not said.lstrip().startswith("<"):  # a page of some other server
                message = f"{message} {self._without_key(said)}".rstrip()
            return Failed(message, "stop", "model", charged=False, raw=body)
        wait = _wait(headers or {}, body)
        if status == 429 and _OF_A_DAY.search(f"{about} {body.decode(errors='replace')}"):
            message = (
                f"The quota of a day is used up at {self} (429): {said} Give the same command "
                "again tomorrow."
            )
            return Failed(message, "retry", "quota", charged=False, raw=body)
        if status == 429:
            message = f"{self} is called too often (429)."
            return Failed(message, "retry", "often", charged=False, wait=wait, raw=body)
        if status in (408, 409) or status >= 500:
            return Failed(
                f"{self} failed ({status}).",
                "retry",
                f"server {status}",
                charged=False if status == 529 else None,  # Anthropic's word for: not begun
                wait=wait,
                raw=body,
            )
        if status < 400:
            message = (
                f"{self} sends calls elsewhere ({status}), and redirects are not followed. "
                "Set base_url to where it leads."
            )
            return Failed(message, "stop", "redirect", charged=False, raw=body)
        if param and not param.startswith(_OF_THE_PROMPT):
            way = "Say --no-seed" if param == "seed" else f"Leave {param} out"
            message = (
                f"{self} does not heed {param} ({status}): {said} {way}, or choose another model."
            )
            return Failed(message, "stop", "setting", charged=False, raw=body, setting=param)
        message = f"{self} does not take the prompt ({status}): {said}"
        return Failed(message, "skip", f"prompt {status}", charged=False, raw=body)

    def _refusal(self, status: int, said: str, about: str, body: bytes) -> Failed | None:
        """Return what a refusal means whose reason is neither key nor setting; None of others."""
        told = f"{about} {said}"
        if _ELSEWHERE.search(told):
            message = (
                f"{self} does not serve the place that this call comes from ({status}): {said}"
            )
            return Failed(message, "stop", "region", charged=False, raw=body)
        if _MODERATED.search(told) or (status == 403 and b'"flagged_input"' in body):
            message = f"Moderation at {self} refuses the prompt ({status}): {said}"
            return Failed(message, "skip", "refused", charged=False, raw=body)
        if status == 403 and _NO_ACCESS.search(told):
            message = f"The key has no access to {self.model} ({status}): {said}"
            return Failed(message, "stop", "model", charged=False, raw=body)
        if status == 403 and body.lstrip()[:1] == b"<":
            message = (
                f"A wall before {self} turns programs away ({status}): it answers with a page. Ask "
                "from another network, or set base_url to the interface."
            )
            return Failed(message, "stop", "wall", charged=False, raw=body)
        return None

    def _without_key(self, said: str) -> str:
        """Return a server's words without the key and parts of it."""
        key = os.environ.get(self.key_variable, "").strip() if self.key_variable else ""
        parts = rf"{re.escape(key[:6])}\S*|" if key else ""
        return re.sub(rf"{parts}\S*\*\*\S*", "[key]", said)

    def _not_reached(self, error: Exception) -> Failed:
        """Return what it means that the HTTP client got no answer."""
        unpaid = False if isinstance(error, _BEFORE_SENDING) else None
        cause: BaseException | None = error
        while cause is not None:
            if isinstance(cause, ssl.SSLCertVerificationError):
                message = (
                    f"The certificate of {self._host} is not trusted ({cause.verify_message}). If "
                    "your network has an authority of its own, name its file in SSL_CERT_FILE."
                )
                return Failed(message, "stop", "certificate", charged=False)
            cause = cause.__cause__ or cause.__context__
        message = f"{self} cannot be reached{self._through}: {type(error).__name__}."
        return Failed(message, "retry", "connection", charged=unpaid)

    def _passed_on(self, error: Any, body: bytes) -> Failed:
        """Return what an error means that came with status 200, as OpenRouter passes them on."""
        told = {"error": error}
        words = " ".join(
            str(members_of(error).get(name) or "") for name in ("code", "type", "status")
        )
        number = re.search(r"\b[45]\d\d\b", words)
        status = int(number[0]) if number else 0
        for word, meant in _STATUS_OF.items():
            if not status and word in words.lower():
                status = meant
        if not status and complaint(json.dumps(told).encode())[2]:
            status = 400
        if not status:
            return self.unreadable(self.rule, body)
        failure = self.failed(status, body)
        if failure.kind not in ("refused", "setting"):
            failure.charged = None  # the failure came behind an answer that had begun
        return failure

    def _broken_off(self, error: Any, body: bytes) -> Failed:
        """Return what an error means that stands beside an answer, which had begun."""
        failure = self._passed_on(error, body)
        failure.kind = "broken" if failure.then == "retry" else failure.kind
        return failure

    def unreadable(self, rule: str, body: bytes) -> Failed:
        """Return what a body means that breaks a rule."""
        start = body[:80].decode(errors="replace")
        return Failed(f"{rule}; {self} sent {start!r}.", "skip", "unreadable", raw=body)

    def _lacks_log_probabilities(self, body: bytes) -> Failed:
        """Return the failure of an answer without the log-probabilities that were requested."""
        return Failed(
            f"{self} answers without the log-probabilities that it is asked for. Leave "
            "top_log_probabilities out, or choose another model.",
            "stop",
            "setting",
            charged=True,
            raw=body,
        )

    def _key(self) -> str:
        """Read the key, now."""
        if self.key_variable is None:
            return "none"
        key = os.environ.get(self.key_variable, "").strip()
        if not key:
            message = (
                f"The key is read from the variable {self.key_variable}, which is empty. Set it."
            )
            raise Failed(message, "stop", "key", charged=False)
        if not re.fullmatch(r"[!-~]+", key):  # an HTTP client's complaint would show it
            del key
            message = (
                f"A key is made of visible ASCII characters; that in {self.key_variable} is not. "
                "Copy it anew."
            )
            raise Failed(message, "stop", "key", charged=False)
        return key

    async def _sign(self, request: httpx2.Request) -> None:
        """Write the key into a request as it leaves, if it goes where the key belongs."""
        if request.url.host == self._host:
            request.headers[self.header] = self.form.format(self._key())

    def _masked(self, body: bytes) -> bytes:
        key = os.environ.get(self.key_variable, "").strip() if self.key_variable else ""
        return masked(body, spellings_of(key))


class _TooLong(Exception):  # noqa: N818 - as `Failed`
    """A body has more bytes than are read."""


@asynccontextmanager
async def _within(seconds: float) -> AsyncIterator[None]:
    """Raise TimeoutError after so many seconds, but not before what has come is read.

    A process that was stopped (Ctrl-Z, a machine that sleeps) past its timeout has an answer in
    its socket, which is paid for. The clock that rings late tells that it was stopped.
    """
    loop = asyncio.get_running_loop()

    def ring(due: float) -> None:
        now = loop.time()
        if now > due + _LATE:
            set_bell(now + min(seconds, _TO_READ))
        else:
            clock.reschedule(now)

    def set_bell(due: float) -> None:
        bells.append(loop.call_at(due, ring, due))

    bells: list[asyncio.TimerHandle] = []
    async with asyncio.timeout(None) as clock:
        set_bell(loop.time() + seconds)
        try:
            yield
        finally:
            bells[-1].cancel()


async def _bounded(response: httpx2.Response, most: int) -> bytes:
    body = bytearray()
    async for part in response.aiter_bytes():
        body += part
        if len(body) > most:
            raise _TooLong
    return bytes(body)


def json_object(body: bytes) -> dict[str, Any]:
    """Return a JSON object; ValueError if a body holds anything else.

    Lines that begin with a colon, which proxies send while they wait, may stand before it.
    """
    try:
        content = json.loads(re.sub(rb"\A(?:\s*:.*\n)+", b"", body))
    except RecursionError:
        raise ValueError("A body is nested as deeply as an answer is.") from None
    if not isinstance(content, dict):
        raise ValueError("A body is a JSON object.")
    return content


def in_base64(image: bytes) -> str:
    """Return the bytes of an image as text."""
    return base64.b64encode(image).decode("ascii")


def in_parts(message: Message, picture: Callable[[str], dict[str, Any]]) -> dict[str, Any]:
    """Return a message as role and content, with its pictures before its words."""
    shown = [picture(in_base64(image)) for image in message.images]
    text = {"type": "text", "text": message.content}
    return {"role": message.role, "content": [*shown, text] if shown else message.content}


def members_of(value: object) -> Mapping[str, Any]:
    """Return an object of JSON; one of another type says nothing, and drops no answer."""
    return value if isinstance(value, dict) else {}


def count(value: object) -> int | None:
    """Return a number of tokens, or None if a server sends anything else; see `Usage`."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,9}", value):
        return int(value)
    return value if type(value) is int else None


def added(*parts: object) -> int | None:
    """Return the sum of counts, of which one that is left out is 0; None if one is no count."""
    numbers = [count(0 if part is None else part) for part in parts]
    known = [n for n in numbers if n is not None and n >= 0]
    return sum(known) if len(known) == len(parts) else None


def _fills(reply: Reply, limit: int | None) -> bool:
    """Say whether an answer without a word for its end may have been cut off at the limit.

    Where its tokens are not said, it has one for each byte at most.
    """
    n = reply.usage.output_tokens
    return limit is not None and (len(reply.text.encode()) if n is None else n) >= limit


def usage_of(
    sent: object,
    received: object,
    reasoning: object = None,
    cached: object = None,
    written: object = None,
    total: object = None,
) -> Usage:
    """Return tokens as a server counts them; where its parts and its total disagree, the more.

    Some servers count the reasoning beside what was received, or only in the total, and what is
    in the cache beside what was sent.
    """
    numbers = map(count, (sent, received, reasoning, cached, written, total))
    n_sent, n_received, thought, read, put, n_all = numbers
    if n_received is not None and MOST_TOKENS >= (thought or 0) > n_received:
        n_received += thought or 0
    if n_sent and MOST_TOKENS >= (read or 0) + (put or 0) > n_sent:
        n_sent += (read or 0) + (put or 0)
    if n_all is not None and n_all <= MOST_TOKENS:
        if n_sent:
            n_received = max(n_received or 0, n_all - n_sent)
        elif n_all:  # nobody knows the parts, so all of it has the dearer price
            n_received = max(n_received or 0, n_all)
    return Usage(n_sent, n_received, thought, read, put)


def log_probability(value: object) -> float:
    """Return a log-probability, which may be rounded to just above 0; ValueError if it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not value <= 1e-3:
        raise ValueError(f"A log-probability is at most 0; got {value!r}.")
    return float(value)


def likely_tokens(
    rows: Iterable[tuple[str, object, Iterable[tuple[str, object]]]],
) -> tuple[TokenLogProbability, ...]:
    """Return tokens with their log-probabilities and alternatives; ValueError for what is none."""
    return tuple(
        TokenLogProbability(
            token, log_probability(value), tuple((t, log_probability(v)) for t, v in others)
        )
        for token, value, others in rows
    )


def _trusted() -> ssl.SSLContext:
    """Return whose certificates are trusted: those that SSL_CERT_FILE names, or the system's."""
    try:
        return httpx2.create_ssl_context()
    except (OSError, ssl.SSLError) as error:
        raise ValueError(
            f"SSL_CERT_FILE names a file of certificates in PEM; got "
            f"{os.environ.get('SSL_CERT_FILE')!r}: {error}."
        ) from None


def _proxy_for(scheme: str, host: str) -> str | None:
    """Return the proxy of the shell's environment for an address; None for none."""
    if scheme != "https" or proxy_bypass(host):
        return None
    proxies = getproxies_environment()
    proxy = proxies.get("https") or proxies.get("all")
    if proxy and not _parts_of(proxy):
        raise ValueError("HTTPS_PROXY is an address with http:// or https://; got another one.")
    return proxy


def _parts_of(address: str) -> SplitResult | None:
    """Take an address apart; None if no call can go there."""
    try:
        parts = urlsplit(address)
        there = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:  # of a port, or of brackets
        return None
    return parts if there and not re.search(r"\s", address) else None


def complaint(body: bytes) -> tuple[str, str, str]:
    """Return what a server says about an error, how it calls it, and which setting it names.

    The words have 200 characters at most. Errors come as an object, in a list (Google), with a
    list of what is wrong with each field (422), or as nothing but words.
    """
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        content = body.decode(errors="replace")
    content = content[0] if isinstance(content, list) and content else content
    error = (content.get("error") or content) if isinstance(content, dict) else content
    error = error if isinstance(error, dict) else {"message": error}
    said = error.get("message") or error.get("detail") or body.decode(errors="replace")
    fields = said.get("detail", []) if isinstance(said, dict) else said
    param = str(error.get("param") or "")
    if isinstance(fields, list):
        known = [one for one in map(members_of, fields) if isinstance(one.get("loc"), list)]
        places = ["/".join(map(str, one["loc"])) for one in known]
        told = [f"{at}: {one.get('msg')}" for at, one in zip(places, known, strict=True)]
        said = "; ".join(told or map(str, fields))
        names = [place.removeprefix("body/") for place in places]
        # What cannot be left out is named before a seed, which can.
        param = param or next((name for name in names if name != "seed"), "".join(names[:1]))
    raw = members_of(error.get("metadata")).get("raw")
    said = f"{said} {raw}" if raw else str(said)
    if not param and (named := _NAMED.search(said)):
        param = next(filter(None, named.groups())).lower()
    about = " ".join(str(error.get(name) or "") for name in ("code", "type", "status"))
    sentence = " ".join(said.split())[:200]
    return sentence if sentence[-1:] in ".!?" else f"{sentence}.", about, param


def _wait(headers: Mapping[str, str], body: bytes) -> float | None:
    """Return the seconds that a server asks to wait, from its header or, as Google, its body."""
    delay = re.search(rb'"retryDelay"\s*:\s*"([0-9.]+)s"', body)
    after = headers.get("retry-after", "")
    for text, scale in (
        (headers.get("retry-after-ms"), 1e-3),
        (after.removesuffix("s"), 1.0),
        (delay[1].decode() if delay else None, 1.0),
    ):
        try:
            seconds = float(text or "") * scale
        except ValueError:
            continue
        if math.isfinite(seconds):
            return max(0.0, seconds)
    until, now = (_moment(text) for text in (after, headers.get("date", "")))
    if until is None:
        return None
    # By the server's clock, which may be another than ours.
    return max(0.0, (until - (now or datetime.now(UTC))).total_seconds())


def _moment(text: str) -> datetime | None:
    """Read the date of a header; None if it is none."""
    text = text.rpartition("GMT, ")[2]  # a gateway may have put its own before that of the server
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
