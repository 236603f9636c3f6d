"""Where the calls of an adapter go: the address, the key that opens it, what its failures mean."""

from __future__ import annotations

import asyncio
import json
import math
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, ClassVar, TypeVar
from urllib.parse import urlsplit

from knownminds.llm_adapters.adapter import (
    AdapterError,
    Capabilities,
    NoCredit,
    NoKey,
    NotCapable,
    RateLimited,
    Rejected,
    Sampling,
    ServerFailed,
    UnknownModel,
    Unreachable,
    UnreadableReply,
    Unusable,
)
from knownminds.llm_adapters.masking import masked

T = TypeVar("T")

MOST_BYTES = 2**23  # of the body of an answer: 4,096 tokens with 20 alternatives each have half

# Shorter ones are dummies such as "none", which would be found in ordinary answers.
_SHORTEST_SECRET = 12
# No byte of the call has left when the HTTP client raises these.
_BEFORE_SENDING = ("ConnectError", "ConnectTimeout", "PoolTimeout")
_NO_CREDIT = re.compile(
    r"insufficient_quota|billing_error|billing_hard_limit|credit balance is too low", re.IGNORECASE
)
# How providers call a setting when they complain of it.
_COMPLAINT = {
    "temperature": r"temperature",
    "top_p": r"top_?p",
    "seed": r"seed",
    "reasoning": r"reasoning|thinking|effort",
    "verbosity": r"verbosity",
    "top_log_probabilities": r"(?:top_?|response_?)?logprobs?",
    "images": r"images?|image_url|vision|multimodal",
}


class Endpoint:
    """A model behind an address.

    Parameters
    ----------
    model
        The model's name, as the server knows it.
    base_url
        Where the server is, without a user, a password or a query, which would be shown.
    key_variable
        Name of the environment variable that holds the key; None for servers that need none.
    timeout
        Seconds until a call is given up.

    Raises
    ------
    ValueError
        If the address or the time is none.
    NoKey
        If the variable is empty.
    """

    def __init__(self, model: str, base_url: str, key_variable: str | None, timeout: float):
        address = urlsplit(base_url)
        if address.scheme not in ("http", "https") or not address.hostname:
            raise ValueError(f"A base_url begins with http:// or https://; got {base_url!r}.")
        if address.username or address.password or address.query or address.fragment:
            raise ValueError(
                f"A base_url is shown and stored, so it holds no user, password or query; that of "
                f"{address.hostname} does. Name the key's variable instead."
            )
        if not timeout > 0:
            raise ValueError(f"A timeout is above 0 seconds; got {timeout!r}.")
        self.model = model
        self.base_url = base_url
        self.key_variable = key_variable
        self.timeout = timeout
        self.key()

    def __str__(self) -> str:
        """Return the model and where it is."""
        return f"{self.model} at {self.base_url}"

    def key(self) -> str:
        """Read the key, now."""
        if self.key_variable is None:
            return "none"
        key = os.environ.get(self.key_variable, "").strip()
        if not key:
            raise NoKey(
                f"The key is read from the variable {self.key_variable}, which is empty. Set it."
            )
        if not re.fullmatch(r"[!-~]+", key):  # an HTTP client's complaint would show it
            raise NoKey(
                f"A key is made of visible ASCII characters; that in {self.key_variable} is not. "
                "Copy it anew."
            )
        return key

    def sign(self, header: str, form: str = "{}") -> Callable[[Any], Awaitable[None]]:
        """Return a hook for an HTTP client that writes the key into a request as it leaves.

        So neither the provider's package nor any frame of a traceback holds it.
        """

        async def signed(request: Any) -> None:
            request.headers[header] = form.format(self.key())

        return signed

    def masked(self, text: str) -> str:
        """Return a text that came without the key, if it repeats it."""
        key = os.environ.get(self.key_variable, "").strip() if self.key_variable else ""
        return masked(text, key) if len(key) >= _SHORTEST_SECRET else text

    def failed(
        self,
        status: int,
        headers: Mapping[str, str],
        body: str,
        settings: Sampling,
        *,
        images: bool = False,
    ) -> AdapterError:
        """Return what an answer with this status means.

        Only what a server refuses is surely not charged. A 5xx may come from a gateway, after the
        model behind it has answered.
        """
        failure = self._failed(status, headers, self.masked(body), settings, images)
        failure.status = status
        return failure

    def _failed(
        self, status: int, headers: Mapping[str, str], raw: str, settings: Sampling, images: bool
    ) -> AdapterError:
        said = _message(raw)
        if status in (401, 403) or (status == 400 and "API_KEY_INVALID" in raw):
            # What a server says about a key may hold parts of it, so it is dropped.
            return NoKey(f"{self} does not accept the key in {self.key_variable} ({status}).")
        if status == 402 or (400 <= status < 500 and _NO_CREDIT.search(raw)):
            return NoCredit(f"The account for {self} has no credit left ({status}).", raw=raw)
        if status in (404, 410):
            return UnknownModel(
                f"{self} is not there ({status}). Check the model and base_url.", raw=raw
            )
        if status == 429:
            return RateLimited(f"{self} is called too often (429).", _wait(headers, raw), raw=raw)
        if status in (408, 409) or status >= 500:
            # 529: Anthropic's word for a call that was not begun.
            failure = ServerFailed(
                f"{self} failed ({status}).", charged=False if status == 529 else None, raw=raw
            )
            failure.retry_after = _wait(headers, raw)
            return failure
        if status < 400:
            return Unusable(
                f"{self} sends calls elsewhere ({status}), and redirects are not followed. "
                "Set base_url to where it leads.",
                raw=raw,
            )
        for name, words in _COMPLAINT.items():
            if name == "images":
                asked = images
            else:  # what a server says of the messages is not about a setting that they mention
                asked = getattr(settings, name) is not None and not _of_messages(raw)
            if asked and re.search(rf"(?<![a-z])(?:{words})(?![a-z])", said, re.IGNORECASE):
                return NotCapable(
                    f"{self} does not heed {name} ({status}): {said} Leave {name} out, or choose "
                    "another model.",
                    raw=raw,
                )
        return Rejected(f"{self} does not take the prompt ({status}): {said}", raw=raw)

    def unreachable(self, cause: BaseException) -> Unreachable | UnreadableReply:
        """Return what a broken connection means; `cause` is the HTTP client's error."""
        name = type(cause).__name__
        if name == "TooLong":  # of transport.py, which needs the client's package
            return UnreadableReply(f"An answer has at most {MOST_BYTES:,} bytes; {self} sent more.")
        return Unreachable(
            f"{self} cannot be reached: {name}.",
            charged=False if name in _BEFORE_SENDING else None,
        )

    def late(self) -> Unreachable:
        """Return what it means that no answer came in time."""
        return Unreachable(f"{self} did not answer within {self.timeout:g} seconds.")

    def unreadable(self, rule: str, raw: str, *, charged: bool | None = None) -> UnreadableReply:
        """Return what a body means that breaks a rule."""
        return UnreadableReply(f"{rule}; {self} sent {raw[:80]!r}.", raw, charged=charged)

    def lacks_log_probabilities(self, raw: str) -> NotCapable:
        """Return what it means that an answer came without the log-probabilities asked for."""
        return NotCapable(
            f"{self} answers without the log-probabilities that it is asked for. Leave "
            "top_log_probabilities out, or choose another model.",
            charged=True,
            raw=raw,
        )


class Caller(ABC):
    """An adapter that calls a provider's package: where it asks, and what failures mean.

    Attributes
    ----------
    failures
        The errors that the package raises where a call fails.
    """

    failures: ClassVar[tuple[type[Exception], ...]]

    def __init__(self, endpoint: Endpoint, capabilities: Capabilities):
        self._endpoint = endpoint
        self.model = endpoint.model
        self.base_url = endpoint.base_url
        self.key_variable = endpoint.key_variable
        self.capabilities = capabilities

    def __repr__(self) -> str:
        """Show where it asks, and never the key."""
        return f"{type(self).__name__}({self.model!r}, base_url={self.base_url!r})"

    @abstractmethod
    def meant(self, error: Exception, settings: Sampling, images: bool) -> AdapterError:
        """Return what an error of the package means."""

    async def guarded(
        self,
        ask: Callable[[], Awaitable[T]],
        settings: Sampling,
        *,
        images: bool = False,
        timeout: float | None = None,
    ) -> T:
        """Wait for what the package is asked; its failures become an `AdapterError`."""
        endpoint = self._endpoint
        failure: AdapterError
        try:
            endpoint.key()  # if it is gone, that is told before anything is sent
            async with asyncio.timeout(timeout or endpoint.timeout):
                return await ask()
        except TimeoutError:
            failure = endpoint.late()
        except self.failures as error:
            failure = self.meant(error, settings, images)
        # Outside of the handlers, for the package's error holds the request and with it the key.
        raise failure

    def failed(self, status: int, body: str, settings: Sampling) -> AdapterError:
        """Return what a status and a body mean that stand for one of several requests."""
        return self._endpoint.failed(status, {}, body, settings)


def count(value: object) -> int | None:
    """Return a number of tokens, or None if a server sends anything else; see `Usage`."""
    return value if type(value) is int else None


def log_probability(value: object) -> float:
    """Return a log-probability, which may be rounded to just above 0; ValueError if it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not value <= 1e-3:
        raise ValueError(f"A log-probability is at most 0; got {value!r}.")
    return float(value)


def _message(body: str) -> str:
    """Return what a server says about an error, at most 200 characters of it."""
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        return body[:200]
    error = content.get("error", content) if isinstance(content, dict) else content
    said = error.get("message", error.get("detail")) if isinstance(error, dict) else error
    return str(said or body)[:200]


def _of_messages(body: str) -> bool:
    """Say whether an error's `param` names the messages as what is not taken."""
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        return False
    error = content.get("error") if isinstance(content, dict) else None
    return isinstance(error, dict) and str(error.get("param")).startswith("messages")


def _wait(headers: Mapping[str, str], body: str) -> float | None:
    """Return the seconds that a server asks to wait, from its header or, as Google, its body."""
    for text, scale in (
        (headers.get("retry-after-ms"), 1e-3),
        (headers.get("retry-after"), 1.0),
        (_retry_delay(body), 1.0),
    ):
        try:
            seconds = float(text or "") * scale
        except ValueError:
            continue
        if math.isfinite(seconds):
            return max(0.0, seconds)
    try:
        until = parsedate_to_datetime(headers.get("retry-after", ""))
    except ValueError:
        return None
    if until.tzinfo is None:
        until = until.replace(tzinfo=UTC)
    return max(0.0, (until - datetime.now(UTC)).total_seconds())


def _retry_delay(body: str) -> str | None:
    found = re.search(r'"retryDelay"\s*:\s*"([0-9.]+)s"', body)
    return found[1] if found else None


def parsed(body: str) -> dict[str, Any]:
    """Return a JSON object; ValueError if a body holds anything else."""
    try:
        content = json.loads(body)
    except RecursionError:
        raise ValueError("A body is nested as deeply as an answer is.") from None
    if not isinstance(content, dict):
        raise ValueError("A body is a JSON object.")
    return content
