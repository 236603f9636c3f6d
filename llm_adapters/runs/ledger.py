"""What was asked, what came back and what it cost: one SQLite file that outlives its process."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from datetime import date as Date  # noqa: N812 - as in prices.py
from decimal import ROUND_CEILING, Decimal
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from platform import python_version
from typing import Any

from knownminds.environments import Prompt
from knownminds.llm_adapters.adapter import (
    AdapterError,
    Reply,
    Sampling,
    TokenLogProbability,
    Usage,
)
from knownminds.llm_adapters.masking import masked

from .prices import Price, Rates, in_batches, most_tokens_of

FORMAT = 1
WITH_BATCHES = 2  # the format of a ledger that holds batches, which earlier versions ask again
# The format of one that holds choices of questions or looks of a stopping rule, by which earlier
# versions would not go on.
WITH_CHOICES = 3
FILE = "ledger.sqlite"
LOCK = "ledger.lock"
TALLY = "ledger.tally"  # a sign for each request that was written down, another for each answer
SENT, _CAME = b"+", b"="
SPOOL = "ledger.spool"  # answers as they came in, for those that a kill keeps out of the ledger
_MOST_SPOOLED = 2**16  # bytes after which what is committed is taken out
_APPENDING = os.O_RDWR | os.O_CREAT | os.O_APPEND
_CAME_SO = re.compile(rb"(\d+) (\d+)")  # attempt and bytes of an answer in the spool, before it
NANO = 10**9  # nano-dollars in a dollar: sums of money are exact whole numbers
SHORTEST_KEY = 12  # characters; a shorter one also stands in answers by chance
SECRETS = ("_KEY", "_TOKEN", "_SECRET")  # how names of variables end that hold a key
_COMMITS_PER_CHECKPOINT = 1000
_LEFT = ("trials.parquet", "report.html")  # what a run leaves beside its ledger
_PUT_BACK = f"Put {FILE} back as it was, with {FILE}-wal if that was there, or name another folder."

_SCHEMA = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE start (
    number INTEGER PRIMARY KEY, began REAL NOT NULL, ended REAL, versions TEXT NOT NULL,
    caps TEXT NOT NULL, reason TEXT, sessions TEXT);
CREATE TABLE image (hash TEXT PRIMARY KEY, png BLOB NOT NULL);
CREATE TABLE request (hash TEXT PRIMARY KEY, body TEXT NOT NULL);
CREATE TABLE call (
    id INTEGER PRIMARY KEY,
    session INTEGER NOT NULL, turn INTEGER NOT NULL, slot INTEGER NOT NULL,
    request TEXT NOT NULL REFERENCES request(hash),
    state TEXT NOT NULL CHECK (state IN ('open', 'done', 'dead')),
    answer INTEGER REFERENCES attempt(id),
    outcome TEXT, note TEXT,
    UNIQUE (session, turn, slot));
CREATE TABLE attempt (
    id INTEGER PRIMARY KEY,
    call INTEGER NOT NULL REFERENCES call(id), number INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (
        state IN ('inflight', 'ok', 'error_unpaid', 'error_maybe_paid', 'unknown')),
    began REAL NOT NULL, ended REAL, status TEXT, message TEXT, request_id TEXT,
    reserved_tokens INTEGER NOT NULL, reserved INTEGER, tokens INTEGER, cost INTEGER,
    input_tokens INTEGER, output_tokens INTEGER, reasoning_tokens INTEGER, cached_tokens INTEGER,
    reply TEXT, raw TEXT, written_tokens INTEGER,
    UNIQUE (call, number));
"""
# Added when the first batch is prepared.
_BATCHES = """
CREATE TABLE IF NOT EXISTS batch (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, provider_id TEXT,
    state TEXT NOT NULL CHECK (state IN ('intended', 'submitted', 'read', 'void')),
    began REAL NOT NULL, tried REAL NOT NULL, ended REAL, note TEXT);
CREATE TABLE IF NOT EXISTS batched (
    attempt INTEGER PRIMARY KEY REFERENCES attempt(id),
    batch INTEGER NOT NULL REFERENCES batch(id));
"""
# Added to a run whose questions are chosen, or that a rule may stop.
_CHOICES = """
CREATE TABLE IF NOT EXISTS choice (
    session INTEGER NOT NULL, turn INTEGER NOT NULL, place INTEGER NOT NULL, information REAL,
    UNIQUE (session, turn));
CREATE TABLE IF NOT EXISTS look (sessions INTEGER PRIMARY KEY, found TEXT NOT NULL);
"""
CHOOSES = ("chosen", "stop")  # entries of a configuration by which a ledger holds them
# Attempts that are with the provider whether or not a process waits for them.
_AWAITED = (
    "SELECT attempt FROM batched JOIN batch ON batch.id = batched.batch "
    "WHERE batch.state IN ('intended', 'submitted')"
)

Statement = tuple[str, tuple[Any, ...]]


class LedgerFailed(RuntimeError):  # noqa: N818 - as the branches of AdapterError
    """The ledger cannot be written, so nothing more is asked."""


@dataclass(frozen=True)
class Request:
    """What is sent for one answer, whoever sends it.

    Parameters
    ----------
    hash : SHA-256 of who is asked, the settings and all that is shown
    body : the same in words, as JSON; images by their hash
    images : PNG bytes by their hash
    """

    hash: str
    body: str
    images: Mapping[str, bytes]


@dataclass
class Call:
    """One question of a session and what has become of it so far.

    Parameters
    ----------
    id : number in the ledger
    request : hash of what is asked
    state : "open", "done" with a reply, or "dead" without
    attempts : how often it was sent
    ended : attempts whose end is known; the others were under way when a process died
    reply : the answer
    cost : nano-dollars of the answer; None if no price is known
    outcome : what became of the answer; empty until it was judged
    note : why there is no answer
    again : whether it had none and is asked again
    """

    id: int
    request: str
    state: str = "open"
    attempts: int = 0
    ended: int = 0
    reply: Reply | None = None
    cost: int | None = None
    outcome: str = ""
    note: str = ""
    again: bool = False


@dataclass(frozen=True)
class Kept:
    """An answer that had come when a process was killed, and that nobody has read as yet.

    Parameters
    ----------
    attempt : to which it is the answer
    came : head and body, byte by byte
    reserved : what the attempt counts as long as it is not known what it has used
    """

    attempt: int
    came: bytes
    reserved: Spent


@dataclass
class Spent:
    """Calls, tokens and nano-dollars; what may have been paid counts as paid."""

    calls: int = 0
    tokens: int = 0
    money: int = 0

    def add(self, other: Spent) -> None:
        """Count something more."""
        self.calls += other.calls
        self.tokens += other.tokens
        self.money += other.money

    def settle(self, reserved: Spent, used: Spent) -> None:
        """Count what was used instead of what was reserved for it."""
        self.calls += used.calls - reserved.calls
        self.tokens += used.tokens - reserved.tokens
        self.money += used.money - reserved.money


@dataclass(frozen=True)
class Account:
    """What a run has cost, added up from the ledger.

    Parameters
    ----------
    calls : requests sent, by the state of the attempt
    batches : batches of requests, by their state
    re_asked : how often a question was put again because its answer was malformed
    untold : answers that came without their number of tokens, which count nothing in the next
    unforeseen : answers that used more tokens than could be foreseen
    input_tokens, output_tokens, reasoning_tokens, cached_tokens, written_tokens : of all answers
    paid : nano-dollars of the answers whose tokens are known
    reserved : nano-dollars that all other calls may have cost at most
    """

    calls: Mapping[str, int]
    batches: Mapping[str, int]
    re_asked: int
    untold: int
    unforeseen: int
    input_tokens: int
    output_tokens: int
    reasoning_tokens: int
    cached_tokens: int
    written_tokens: int
    paid: int
    reserved: int


@dataclass(frozen=True)
class Start:
    """One start of a run: when, how far it might go, and why it ended.

    Parameters
    ----------
    began, ended : seconds since 1970; `ended` is None if the process died
    caps : what was allowed
    reason : why it stopped; empty if it came to its end
    sessions : why single sessions stopped, by their number
    versions : of Python and the packages that count
    """

    began: float
    ended: float | None
    caps: Mapping[str, Any]
    reason: str
    sessions: Mapping[int, str]
    versions: Mapping[str, str]


def asked_of(configuration: Mapping[str, Any], settings: Sampling) -> str:
    """Say who is asked, and with which settings, as JSON."""
    who = {name: configuration[name] for name in ("provider", "model", "base_url")}
    given = {name: value for name, value in vars(settings).items() if value is not None}
    return json.dumps({**who, "settings": given})


def request_hash(asked: str, prompt: Prompt) -> str:
    """Name a request by who is asked, with which settings, and all that is shown."""
    return sha256(f"{asked}\n{prompt.hash}".encode()).hexdigest()


def request_of(asked: str, prompt: Prompt) -> Request:
    """Write a request down, images by their hash."""
    name = {image: sha256(image).hexdigest() for image in prompt.images}
    images = {sha: image for image, sha in name.items()}
    body = {
        **json.loads(asked),
        "messages": [
            [message.role, message.content, *(name[image] for image in message.images)]
            for message in prompt.messages
        ],
    }
    return Request(request_hash(asked, prompt), json.dumps(body, ensure_ascii=False), images)


def known_keys(*variables: str | None) -> tuple[str, ...]:
    """Return the values of these environment variables, and of all that are named like keys."""
    names = {name for name in os.environ if name.upper().endswith(SECRETS)}
    values = {os.environ.get(name, "").strip() for name in (*names, *filter(None, variables))}
    found = {value for value in values if len(value) >= SHORTEST_KEY}
    found |= {json.dumps(value)[1:-1] for value in found}  # as it stands within JSON
    # Longest first: one key may be the beginning of another.
    return tuple(sorted(found, key=lambda value: (-len(value), value)))


class Ledger:
    """The ledger of one run, owned by one process at a time.

    A request and the most it can cost are on disk before it is sent, an answer before it is used.
    An answer is appended to a file beside the ledger before anything else happens in the process,
    so that a kill does not lose it: as bytes in the moment in which they are read, if the adapter
    gives them (`keeping`), else as soon as it is there. Writes that wait at the same time share a
    commit and the wait for the disk, which is spent in a thread. Another file counts what was
    written, so that an older or emptied ledger is not taken for a new one. Strings of known keys
    are masked in everything that is written.

    Attributes
    ----------
    price
        What the model costs, as it was first known; None if it never was.
    priced_from
        The start of the run, from 1 on, with which the price came; earlier ones are reckoned
        with it from what was kept of them.
    model_served
        The model that the provider said it served with the first answer; empty if it did not.
    kept
        Answers of an earlier start that are yet to be read, by the number of their call.
    """

    def __init__(self, folder: Path, connection: sqlite3.Connection, keys: tuple[str, ...] = ()):
        self.folder = folder
        self._connection = connection
        self._keys = keys
        self._lock: sqlite3.Connection | None = None
        self._thread: ThreadPoolExecutor | None = None
        self._waiting: list[tuple[tuple[Statement, ...], asyncio.Future[None]]] = []
        self._later: list[Statement] = []
        self._committed: list[asyncio.Future[None]] = []  # and not yet on the disk
        self._disk: asyncio.Task[None] | None = None
        self._log = self._tally = self._spool = -1  # file descriptors
        self._spooled = 0  # bytes
        self._came: dict[int, bytes] = {}  # lines of the spool that are not committed
        self._settling: list[int] = []  # attempts that the next commit settles
        self._untallied, self._untidy = b"", 0
        self._beside: sqlite3.Connection  # for the thread
        self._broken: LedgerFailed | None = None
        self.price: Price | None = None
        self.priced_from = 1
        self.model_served = ""
        self.kept: dict[int, Kept] = {}
        self._start = self._calls = self._attempts = 0  # the last numbers in use

    @classmethod
    def open(
        cls,
        folder: str | os.PathLike[str],
        configuration: Mapping[str, Any],
        sessions: int,
        *,
        price: Price | None = None,
        caps: Mapping[str, Any] | None = None,
        keys: tuple[str, ...] = (),
    ) -> Ledger:
        """Begin a ledger in the folder, or go on with the one that is there.

        Parameters
        ----------
        configuration
            All that makes the run what it is, JSON-able; resuming demands the same.
        sessions
            How many sessions are asked for; resuming may ask for more.
        price
            Kept with the ledger once there is one; later ones are not looked at. What was asked
            before is reckoned with it.
        caps
            What this start is allowed, for the record.
        keys
            Strings that are masked; see `known_keys`.

        Raises
        ------
        ValueError
            If the folder cannot be written, another process is at work in it, or its ledger is
            of another design, of a newer format, or no ledger.
        """
        place = Path(folder)
        file = place / FILE
        if not file.exists() or not file.stat().st_size:
            _refuse_over_results(place)
        try:
            place.mkdir(parents=True, exist_ok=True)
            for name in (FILE, LOCK):
                os.close(os.open(place / name, os.O_RDWR | os.O_CREAT, 0o600))
        except OSError as error:
            raise ValueError(
                f"A run is kept in a folder that can be written; {place}: {error.strerror}. "
                "Name another folder."
            ) from None
        lock = _take(place)
        connection = _connect(file)
        ledger = cls(place, connection, keys)
        ledger._lock = lock
        try:
            ledger._begin(configuration, sessions, price, caps or {})
        except sqlite3.Error as error:
            ledger.close()
            raise ValueError(f"The ledger in {place} cannot be written: {error}.") from None
        except BaseException:
            ledger.close()
            raise
        return ledger

    @classmethod
    def read(cls, folder: str | os.PathLike[str]) -> Ledger:
        """Look into the ledger of a folder; nothing is written, and a run may be under way.

        Raises
        ------
        ValueError
            If there is none, or it is of a newer format.
        """
        file = Path(folder) / FILE
        if not file.is_file():
            raise ValueError(f"A run is kept in a file {FILE}; there is none in {folder}.")
        where = f"{file.absolute().as_uri()}?mode=ro"
        if not os.access(file.parent, os.W_OK) and not file.with_name(FILE + "-wal").exists():
            where += "&immutable=1"  # SQLite could not make its own files beside it
        ledger = cls(Path(folder), sqlite3.connect(where, uri=True, isolation_level=None))
        try:
            if not ledger._check():
                raise ValueError(f"The ledger in {folder} holds no run yet: it is empty.")
            ledger._load()
        except ValueError:
            ledger.close()
            raise
        return ledger

    def __enter__(self) -> Ledger:
        """Give itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file and let others own it."""
        self.close()

    def close(self) -> None:
        """Close the file and let others own it."""
        self._waiting.clear()  # of tasks that were cancelled
        if self._thread is not None:
            self._thread.submit(self._beside.close)
            self._thread.shutdown(wait=True)
        for descriptor in (self._log, self._tally, self._spool):
            if descriptor >= 0:
                os.close(descriptor)
        self._spool = -1  # for what may yet come
        self._connection.close()
        if self._lock is not None:
            self._lock.close()

    # What is in it ---------------------------------------------------------------------------

    @property
    def configuration(self) -> dict[str, Any]:
        """All that makes the run what it is."""
        found: dict[str, Any] = json.loads(self._meta("configuration"))
        return found

    @property
    def sessions(self) -> int:
        """How many sessions were asked for."""
        return int(self._meta("sessions"))

    def calls_of(self, session: int) -> dict[tuple[int, int], Call]:
        """Return the questions of a session by (turn, slot), in their order."""
        rows = self.rows(
            "SELECT c.turn, c.slot, c.id, c.request, c.state, c.outcome, c.note, a.reply, a.raw, "
            "a.request_id, a.input_tokens, a.output_tokens, a.reasoning_tokens, a.cached_tokens, "
            f"{self._written('a.')}, a.cost, (SELECT COUNT(*) FROM attempt WHERE call = c.id), "
            "(SELECT COUNT(*) FROM attempt WHERE call = c.id "
            "AND state NOT IN ('inflight', 'unknown')) "
            "FROM call c LEFT JOIN attempt a ON a.id = c.answer "
            "WHERE c.session = ? AND c.slot >= 0 ORDER BY c.turn, c.slot",
            session,
        )
        calls = {}
        for turn, slot, id_, request, state, outcome, note, *answer in rows:
            reply, raw, request_id, *usage, cost, attempts, ended = answer
            try:
                found = None if reply is None else _read_reply(reply, raw, request_id, usage)
            except (ValueError, LookupError, TypeError, RecursionError) as error:
                raise self._damaged(f"the answer to call {id_}: {error!r}") from None
            if found is None and state == "done":
                raise self._damaged(f"call {id_} has an answer that is not there")
            why = note if state == "dead" else ""
            calls[turn, slot] = Call(
                id_, request, state, attempts, ended, found, cost, outcome or "", why
            )
        return calls

    def choices_of(self, session: int) -> dict[int, tuple[int, float | None]]:
        """Return the questions that were chosen in a session, and what they promised, by turn."""
        if not self.holds_choices:
            return {}
        rows = self.rows("SELECT turn, place, information FROM choice WHERE session = ?", session)
        return {turn: (place, information) for turn, place, information in rows}

    def chose(self, session: int, turn: int, place: int, information: float | None) -> None:
        """Note which question was chosen; written with the question itself, in one transaction."""
        self._later.append(
            (
                "INSERT OR IGNORE INTO choice VALUES (?, ?, ?, ?)",
                (session, turn, place, information),
            )
        )

    def looks(self) -> dict[int, dict[str, Any]]:
        """Return what a stopping rule found, by the number of sessions that it looked at."""
        if not self.holds_choices:
            return {}
        rows = self.rows("SELECT sessions, found FROM look ORDER BY sessions")
        return {sessions: json.loads(found) for sessions, found in rows}

    async def looked(self, sessions: int, found: Mapping[str, Any]) -> None:
        """Write down what a stopping rule found in so many sessions."""
        told = json.dumps(found)
        await self.write(("INSERT OR IGNORE INTO look VALUES (?, ?)", (sessions, told)))

    def spent(self) -> dict[int, Spent]:
        """Return what each session has cost; what is open or may have been paid counts in full."""
        rows = self.rows(
            "SELECT c.session, COUNT(*), SUM(COALESCE(a.tokens, a.reserved_tokens)), "
            "SUM(COALESCE(a.cost, a.reserved, 0)) "
            "FROM attempt a JOIN call c ON c.id = a.call GROUP BY c.session"
        )
        return {session: Spent(calls, tokens, money) for session, calls, tokens, money in rows}

    def account(self) -> Account:
        """Add up what the run has cost."""
        states = self.rows(
            "SELECT state, COUNT(*), SUM(COALESCE(cost, reserved, 0)) FROM attempt GROUP BY state"
        )
        untold, estimated = self.rows(
            "SELECT COUNT(*), COALESCE(SUM(cost), 0) FROM attempt "
            "WHERE state = 'ok' AND (input_tokens IS NULL OR output_tokens IS NULL)"
        )[0]
        ((unforeseen,),) = self.rows("SELECT COUNT(*) FROM attempt WHERE tokens > reserved_tokens")
        cost = {state: money for state, _, money in states}
        paid = cost.get("ok", 0) - estimated
        tokens = self.rows(
            "SELECT SUM(input_tokens), SUM(output_tokens), "
            "SUM(MIN(reasoning_tokens, output_tokens)), SUM(MIN(cached_tokens, input_tokens)), "
            f"SUM(MIN({self._written()}, input_tokens)) FROM attempt"
        )[0]
        re_asked = self.rows("SELECT COUNT(*) FROM call WHERE slot > 0")[0][0]
        sent, received, reasoning, cached, written = (n or 0 for n in tokens)
        return Account(
            {state: count for state, count, _ in states},
            self._batches(),
            re_asked,
            untold,
            unforeseen,
            sent,
            received,
            reasoning,
            cached,
            written,
            paid,
            sum(cost.values()) - paid,
        )

    def _batches(self) -> dict[str, int]:
        if not self.holds_batches:
            return {}
        return dict(self.rows("SELECT state, COUNT(*) FROM batch GROUP BY state ORDER BY state"))

    def starts(self) -> list[Start]:
        """Return all starts of the run, the last one last."""
        rows = self.rows(
            "SELECT began, ended, caps, reason, sessions, versions FROM start ORDER BY number"
        )
        return [
            Start(
                began,
                ended,
                json.loads(caps),
                reason or "",
                {int(i): why for i, why in json.loads(sessions or "{}").items()},
                json.loads(versions),
            )
            for began, ended, caps, reason, sessions, versions in rows
        ]

    # What is written while a run is under way --------------------------------------------------

    async def begin(
        self,
        place: tuple[int, int, int],
        call: Call | None,
        request: Request,
        most: Spent,
    ) -> tuple[Call, int]:
        """Write down that a request is about to be sent and what it can cost at most.

        `place` is (session, turn, slot); `call` is None for a question that was not asked before.
        Returns the call and the number of the attempt, once both are on disk.
        """
        call, attempt, statements = self.opening(place, call, request, most)
        await self.write(*statements, sign=SENT)
        return call, attempt

    def opening(
        self,
        place: tuple[int, int, int],
        call: Call | None,
        request: Request,
        most: Spent,
    ) -> tuple[Call, int, list[Statement]]:
        """Return what `begin` does, and the statements that are to be written for it."""
        statements: list[Statement] = []
        if call is None:
            self._calls += 1
            call = Call(self._calls, request.hash)
            statements += [
                ("INSERT OR IGNORE INTO image VALUES (?, ?)", (name, png))
                for name, png in request.images.items()
            ]
            statements += [
                ("INSERT OR IGNORE INTO request VALUES (?, ?)", (request.hash, request.body)),
                (
                    "INSERT INTO call (id, session, turn, slot, request, state) "
                    "VALUES (?, ?, ?, ?, ?, 'open')",
                    (call.id, *place, request.hash),
                ),
            ]
        elif call.again:
            call.again = False
            statements.append(
                (
                    "UPDATE call SET state = 'open', outcome = NULL, note = NULL WHERE id = ?",
                    (call.id,),
                )
            )
        self._attempts += 1
        call.attempts += 1
        attempt = self._attempts
        statements.append(
            (
                "INSERT INTO attempt (id, call, number, state, began, reserved_tokens, reserved) "
                "VALUES (?, ?, ?, 'inflight', ?, ?, ?)",
                (
                    attempt,
                    call.id,
                    call.attempts,
                    time.time(),
                    most.tokens,
                    self._money(most),
                ),
            )
        )
        return call, attempt, statements

    def keeping(self, attempt: int) -> Callable[[bytes], None]:
        """Return what writes an answer to an attempt down as it comes.

        One that repeats a key is not written: without it, it could not be read again.
        """

        def keep(came: bytes) -> None:
            text = came.decode("latin-1")
            if all(masked(text, key) == text for key in self._keys):
                line = b"%d %d\n%b\n" % (attempt, len(came), came)
                if self._append(line):
                    self._came[attempt] = line

        return keep

    async def answered(self, call: Call, attempt: int, reply: Reply, used: Spent) -> None:
        """Write down an answer; `call.reply` is it as it was written, once it is on disk."""
        reply, cost = self._masked(reply), self._money(used)
        usage = reply.usage
        statements: list[Statement] = [
            (
                "UPDATE attempt SET state = 'ok', ended = ?, request_id = ?, tokens = ?, cost = ?, "
                "input_tokens = ?, output_tokens = ?, reasoning_tokens = ?, cached_tokens = ?, "
                "written_tokens = ?, reply = ?, raw = ? WHERE id = ?",
                (
                    time.time(),
                    reply.request_id,
                    used.tokens,
                    cost,
                    usage.input_tokens,
                    usage.output_tokens,
                    usage.reasoning_tokens,
                    usage.cached_tokens,
                    usage.written_tokens,
                    _write_reply(reply),
                    reply.raw,
                    attempt,
                ),
            ),
            ("UPDATE call SET state = 'done', answer = ? WHERE id = ?", (attempt, call.id)),
        ]
        if reply.model_served and not self.model_served:
            self.model_served = reply.model_served
            statements.append(
                ("INSERT OR IGNORE INTO meta VALUES ('model_served', ?)", (reply.model_served,))
            )
        if attempt not in self._came:
            self._keep(attempt, statements)
        self._settling.append(attempt)
        await self.write(*statements, sign=_CAME)
        call.ended += 1
        call.state, call.reply, call.cost = "done", reply, cost

    async def failed(self, call: Call, attempt: int, error: AdapterError, used: Spent) -> None:
        """Write down that an attempt brought no answer, and what it may have cost."""
        state = "error_unpaid" if error.charged is False else "error_maybe_paid"
        self._settling.append(attempt)
        await self.write(
            (
                "UPDATE attempt SET state = ?, ended = ?, status = ?, message = ?, tokens = ?, "
                "cost = ?, raw = ? WHERE id = ?",
                (
                    state,
                    time.time(),
                    type(error).__name__,
                    str(error),
                    used.tokens,
                    self._money(used),
                    error.raw or None,
                    attempt,
                ),
            )
        )
        call.ended += 1

    async def give_up(self, call: Call, note: str) -> None:
        """Write down that a question stays without an answer."""
        note = self._clean(note)
        await self.write(
            (
                "UPDATE call SET state = 'dead', outcome = 'error', note = ? WHERE id = ?",
                (note, call.id),
            )
        )
        call.state, call.outcome, call.note = "dead", "error", note

    def judged(self, call: Call, outcome: str, note: str) -> None:
        """Note what became of an answer; written with whatever is written next."""
        call.outcome = outcome
        self._later.append(
            ("UPDATE call SET outcome = ?, note = ? WHERE id = ?", (outcome, note, call.id))
        )

    def set_aside(self, call: Call) -> None:
        """Keep a question that had no answer as one that is not asked any more.

        It leaves its slot, for slots below 0, to another question in its place.
        """
        self._later.append(
            (
                "UPDATE call SET slot = (SELECT MIN(MIN(slot), 0) - 1 FROM call AS other WHERE "
                "other.session = call.session AND other.turn = call.turn) WHERE id = ?",
                (call.id,),
            )
        )

    async def end(self, reason: str, sessions: Mapping[int, str]) -> None:
        """Write down why this start has ended."""
        await self.write(
            (
                "UPDATE start SET ended = ?, reason = ?, sessions = ? WHERE number = ?",
                (time.time(), reason, json.dumps(sessions), self._start),
            )
        )

    # Inside ----------------------------------------------------------------------------------

    def _begin(
        self,
        configuration: Mapping[str, Any],
        sessions: int,
        price: Price | None,
        caps: Mapping[str, Any],
    ) -> None:
        asked = json.loads(self._clean(json.dumps(configuration)))
        run = self._connection.execute
        if self._check():
            self._compare(asked, sessions)
            self._check_tally()
        else:
            _refuse_over_results(self.folder)
        run("PRAGMA journal_mode = WAL")
        run("PRAGMA synchronous = NORMAL")  # what is committed is brought to the disk by `_sync`
        run("PRAGMA wal_autocheckpoint = 0")  # by the thread, see `_sync`
        run("BEGIN IMMEDIATE")
        if not self._tables():
            for statement in _SCHEMA.split(";"):
                run(statement)
            for name, value in (
                ("format", WITH_CHOICES if set(CHOOSES) & set(asked) else FORMAT),
                ("configuration", json.dumps(asked)),
                ("price", json.dumps(_write_price(price))),
                ("sessions", sessions),
            ):
                run("INSERT INTO meta VALUES (?, ?)", (name, str(value)))
            if set(CHOOSES) & set(asked):
                for statement in _CHOICES.split(";"):
                    run(statement)
        if self._written() == "NULL":  # a ledger of an earlier version
            run("ALTER TABLE attempt ADD COLUMN written_tokens INTEGER")
        run("UPDATE meta SET value = ? WHERE name = 'sessions'", (str(sessions),))
        if price is not None and json.loads(self._meta("price")) is None:
            self._adopt(price)
        self._take_in_spool()
        # Whoever left these behind is dead: the lock is ours.
        awaited = f" AND id NOT IN ({_AWAITED})" if self.holds_batches else ""
        run(
            "UPDATE attempt SET state = 'unknown', tokens = reserved_tokens, cost = reserved "
            "WHERE state = 'inflight'" + awaited
        )
        self.kept = self._unread()
        versions = {name: version(name) for name in ("knownminds", "numpy", "pandas")}
        run(
            "INSERT INTO start (began, versions, caps) VALUES (?, ?, ?)",
            (
                time.time(),
                json.dumps({"python": python_version(), **versions}),
                json.dumps(caps, default=str),
            ),
        )
        run("COMMIT")
        self._start = self.rows("SELECT MAX(number) FROM start")[0][0]
        self._calls = self.rows("SELECT COALESCE(MAX(id), 0) FROM call")[0][0]
        self._attempts = self.rows("SELECT COALESCE(MAX(id), 0) FROM attempt")[0][0]
        self._load()
        self._log = os.open(self.folder / (FILE + "-wal"), os.O_RDWR)
        os.fsync(self._log)
        self._tally = os.open(self.folder / TALLY, _APPENDING, 0o600)
        self._spool = os.open(self.folder / SPOOL, _APPENDING, 0o600)
        os.ftruncate(self._spool, 0)
        sent, came = self._tallied()
        os.write(self._tally, SENT * (self._counted()[0] - sent))
        os.write(self._tally, _CAME * (self._counted()[1] - came))
        self._beside = _connect(self.folder / FILE)
        self._thread = ThreadPoolExecutor(1, "ledger")

    def _keep(self, attempt: int, statements: Sequence[Statement]) -> None:
        """Put an answer where a kill does not reach it: in a file that is never waited for."""
        clean = [[text, [self._clean(value) for value in values]] for text, values in statements]
        self._append(json.dumps([attempt, clean]).encode() + b"\n")

    def _append(self, line: bytes) -> bool:
        """Write something to the spool; tell whether it is there."""
        try:
            written = os.write(self._spool, line)
        except OSError:  # a full disk: the ledger itself will say so
            return False
        self._spooled += written
        return written == len(line)

    def _tidy_spool(self) -> None:
        """Take out of the spool what is committed."""
        left = b"".join(self._came.values())
        if self._spooled < 2 * len(left):
            return
        if left:  # at no moment is it in neither file
            new = self.folder / (SPOOL + "-new")
            spool = os.open(new, _APPENDING | os.O_TRUNC, 0o600)
            os.write(spool, left)
            new.replace(self.folder / SPOOL)
            os.close(self._spool)
            self._spool = spool
        else:
            os.ftruncate(self._spool, 0)
        self._spooled = len(left)

    def _take_in_spool(self) -> None:
        """Write down answers that had come when the process was killed, and were not committed."""
        try:
            spool = (self.folder / SPOOL).read_bytes()
        except FileNotFoundError:
            return
        lost = {n for (n,) in self.rows("SELECT id FROM attempt WHERE state = 'inflight'")}
        run = self._connection.execute
        for attempt, found in _in_spool(spool):
            if attempt not in lost:
                continue
            if isinstance(found, bytes):
                run("UPDATE attempt SET raw = ? WHERE id = ?", (found, attempt))
            else:
                for statement, values in found:
                    run(statement, values)

    def _unread(self) -> dict[int, Kept]:
        """Return the answers of earlier starts that are yet to be read."""
        rows = self.rows(
            "SELECT call, id, raw, reserved_tokens, COALESCE(reserved, 0) FROM attempt "
            "WHERE state = 'unknown' AND TYPEOF(raw) = 'blob' ORDER BY id"
        )
        return {
            call: Kept(attempt, came, Spent(1, tokens, money))
            for call, attempt, came, tokens, money in rows
        }

    def _counted(self) -> tuple[int, int]:
        """Return how many requests and answers are in the ledger."""
        found: list[tuple[int, int]] = self.rows(
            "SELECT COUNT(*), COALESCE(SUM(state = 'ok'), 0) FROM attempt"
        )
        return found[0]

    def _tallied(self) -> tuple[int, int]:
        """Return how many requests and answers were written down, as counted beside the ledger."""
        try:
            signs = (self.folder / TALLY).read_bytes()
        except FileNotFoundError:  # a ledger of an earlier version
            return 0, 0
        return signs.count(SENT), signs.count(_CAME)

    def _check_tally(self) -> None:
        """Raise ValueError if something that was written down is not in the ledger any more."""
        there, due = self._counted(), self._tallied()
        for found, written, what in zip(there, due, ("requests", "answers"), strict=True):
            if found < written:
                raise ValueError(
                    f"A run goes on from all that it has paid for; the ledger in {self.folder} "
                    f"holds {found:,} of the {written:,} {what} that were written down. {_PUT_BACK}"
                )

    def _adopt(self, price: Price) -> None:
        """Take a price that was not known before, and reckon what was asked already with it."""
        run = self._connection.execute
        number = self.rows("SELECT COUNT(*) FROM start")[0][0] + 1
        run("UPDATE meta SET value = ? WHERE name = 'price'", (json.dumps(_write_price(price)),))
        run("INSERT INTO meta VALUES ('priced_from', ?)", (str(number),))
        sizes = dict(self.rows("SELECT hash, LENGTH(png) FROM image"))
        attempts = self.rows(
            "SELECT a.id, a.state, a.reserved_tokens, r.body, a.input_tokens, a.output_tokens, "
            "a.reasoning_tokens, a.cached_tokens, a.written_tokens "
            "FROM attempt a JOIN call c ON c.id = a.call JOIN request r ON r.hash = c.request"
        )
        cheaper = self.rows("SELECT attempt FROM batched") if self.holds_batches else []
        halved, half = {attempt for (attempt,) in cheaper}, in_batches(price)
        for attempt, state, tokens, body, *usage in attempts:
            rates = half if attempt in halved else price
            shown = json.loads(body)["messages"]
            images = [sizes[name] for message in shown for name in message[2:]]
            sent = min(tokens, most_tokens_of([message[1] for message in shown], images))
            reserved = most_spent(rates, sent, tokens - sent).money
            cost = {"ok": used_spent(rates, Usage(*usage), sent, tokens - sent).money}
            cost["error_unpaid"] = 0
            run(
                "UPDATE attempt SET reserved = ?, cost = ? WHERE id = ?",
                (reserved, None if state == "inflight" else cost.get(state, reserved), attempt),
            )

    def _written(self, table: str = "") -> str:
        """Return what a query calls the tokens that were put into a cache."""
        found = self.rows("SELECT 1 FROM pragma_table_info('attempt') WHERE name='written_tokens'")
        return f"{table}written_tokens" if found else "NULL"

    @property
    def holds_choices(self) -> bool:
        """Whether questions were chosen, or a rule may have stopped the run."""
        return "choice" in self._tables()

    @property
    def holds_batches(self) -> bool:
        """Whether requests were sent in batches."""
        return "batch" in self._tables()

    def make_room_for_batches(self) -> None:
        """Add what batches need, and the format that keeps earlier versions from it."""
        run = self._connection.execute
        run("BEGIN IMMEDIATE")
        for statement in _BATCHES.split(";"):
            run(statement)
        run(
            "UPDATE meta SET value = MAX(CAST(value AS INTEGER), ?) WHERE name = 'format'",
            (WITH_BATCHES,),
        )
        run("COMMIT")

    def _tables(self) -> set[str]:
        return {name for (name,) in self.rows("SELECT name FROM sqlite_master")}

    def _check(self) -> bool:
        """Tell whether there is a run in it; ValueError if it cannot be read."""
        where = self.folder / FILE
        try:
            tables = self._tables()
            if not tables:
                return False
            found = int(self._meta("format")) if "meta" in tables else 0
        except sqlite3.DatabaseError as error:
            raise ValueError(f"{where} cannot be read as a ledger: {error}.") from None
        if found > WITH_CHOICES:
            raise ValueError(
                f"{where} is of format {found}, written by a newer knownminds; this one reads "
                f"format {WITH_CHOICES}. Update knownminds; the ledger was left as it is."
            )
        if found < FORMAT:
            raise ValueError(f"{where} is a database of something else. Name another folder.")
        return True

    def _load(self) -> None:
        self.price = _read_price(json.loads(self._meta("price")))
        self.priced_from = int(self._meta("priced_from", "1"))
        self.model_served = self._meta("model_served", "")

    def _money(self, amount: Spent) -> int | None:
        return None if self.price is None else amount.money

    def _compare(self, asked: Mapping[str, Any], sessions: int) -> None:
        kept = self.configuration
        differences = list(_differences(kept, asked))
        if sessions < self.sessions:
            differences.append(("sessions", self.sessions, sessions))
        if differences:
            name, before, now = differences[0]
            more = f" (and {len(differences) - 1} more)" if len(differences) > 1 else ""
            raise ValueError(
                f"A run goes on as it began: {self.folder} holds one with {name} "
                f"{_short(before, now)}, asked is {_short(now, before)}{more}. Ask for the same, "
                "or name another folder; what was paid for stays in this one."
            )

    def _meta(self, name: str, default: str | None = None) -> str:
        rows = self.rows("SELECT value FROM meta WHERE name = ?", name)
        if not rows and default is not None:
            return default
        if not rows:
            raise self._damaged(f"it has no {name}")
        found: str = rows[0][0]
        return found

    def rows(self, statement: str, *values: Any) -> list[Any]:
        """Return what a query finds; ValueError if the file is damaged."""
        try:
            return self._connection.execute(statement, values).fetchall()
        except sqlite3.DatabaseError as error:
            raise self._damaged(str(error)) from None

    def _damaged(self, what: str) -> ValueError:
        return ValueError(
            f"{self.folder / FILE} cannot be read as a ledger: {what}. Put a whole one in its "
            "place, or name another folder; this one is left as it is."
        )

    async def write(self, *statements: Statement, sign: bytes = b"") -> None:
        """Return once the statements are on disk, with all that other tasks want written.

        Those of one turn of the loop share a commit. `sign` is for the tally.
        """
        if self._broken is not None:
            raise self._broken
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()
        self._waiting.append((statements, done))
        self._untallied += sign
        if len(self._waiting) == 1:
            loop.call_soon(self._commit)
        await done

    def _commit(self) -> None:
        """Commit what is waiting; the wait for the disk comes after."""
        batch, self._waiting = self._waiting, []
        if not batch:
            return
        later, self._later = self._later, []
        signs, self._untallied = self._untallied, b""
        settled, self._settling = self._settling, []
        run, done = self._connection.execute, [future for _, future in batch]
        try:
            run("BEGIN IMMEDIATE")
            for statements in (later, *(statements for statements, _ in batch)):
                for statement, values in statements:
                    run(statement, [self._clean(v) for v in values])
            run("COMMIT")
            os.write(self._tally, signs)
            for attempt in settled:
                self._came.pop(attempt, None)
            if self._spooled > _MOST_SPOOLED:
                self._tidy_spool()
        except BaseException as error:  # whatever it is, nobody is left waiting
            self._break(error, done)
            if not isinstance(error, Exception):
                raise
            return
        self._committed += done
        if self._disk is None:
            self._disk = asyncio.get_running_loop().create_task(self._reach_the_disk())

    async def _reach_the_disk(self) -> None:
        """Wait for the disk in the thread; what is committed meanwhile is the next wait's."""
        loop = asyncio.get_running_loop()
        batch: list[asyncio.Future[None]] = []
        try:
            while self._committed:
                batch, self._committed = self._committed, []
                self._untidy += len(batch)
                tidy = self._untidy >= _COMMITS_PER_CHECKPOINT
                if tidy:
                    self._untidy = 0
                await loop.run_in_executor(self._thread, self._sync, tidy)
                for done in batch:
                    if not done.done():  # its task may have been cancelled
                        done.set_result(None)
        except BaseException as error:
            self._break(error, batch)
            if not isinstance(error, Exception):
                raise
        finally:
            self._disk = None

    def _sync(self, tidy: bool) -> None:
        """Bring to the disk what is committed; from time to time, move it into the main file."""
        os.fsync(self._log)
        if tidy:
            self._beside.execute("PRAGMA wal_checkpoint(PASSIVE)")

    def _break(self, error: BaseException, waiting: Iterable[asyncio.Future[None]]) -> None:
        """Let nothing more be written, and tell whoever waits."""
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")
        self._broken = LedgerFailed(
            f"The ledger in {self.folder} cannot be written: {error}. Nothing more is "
            "asked; make room or mend it, and resume."
        )
        for done in (*waiting, *self._committed, *(future for _, future in self._waiting)):
            if not done.done():
                done.set_exception(self._broken)
        self._committed, self._waiting = [], []

    def _clean(self, value: Any) -> Any:
        """Mask keys, and make a text one that can be written at all."""
        if not isinstance(value, str):
            return value
        for key in self._keys:
            value = masked(value, key)
        if not value.isascii():
            # Half a character, as a cut answer may hold, is no UTF-8.
            value = value.encode("utf-8", "replace").decode()
        return value

    def _masked(self, reply: Reply) -> Reply:
        clean = self._clean
        tokens = reply.log_probabilities
        if tokens is not None:
            tokens = tuple(
                TokenLogProbability(
                    clean(token), value, tuple((clean(other), v) for other, v in alternatives)
                )
                for token, value, alternatives in tokens
            )
        return Reply(
            clean(reply.text),
            clean(reply.finish_reason),
            reply.usage,
            clean(reply.model_served),
            clean(reply.raw),
            clean(reply.request_id),
            tokens,
        )


def most_spent(price: Price | None, sent: int, received: int) -> Spent:
    """Return the most that a call of so many tokens can use."""
    if price is None:
        return Spent(1, sent + received)
    dearest = max(
        price.cost(sent, said, reasoning_tokens=received - said, cached_tokens=cached)
        for said in (0, received)
        for cached in (None, 0)  # to put all into a cache may cost more
    )
    return Spent(1, sent + received, nano_dollars(dearest))


def used_spent(price: Price | None, usage: Usage, most_sent: int, most_received: int) -> Spent:
    """Return what an answer has used; what the provider does not say counts at its most."""
    sent = most_sent if usage.input_tokens is None else usage.input_tokens
    received = most_received if usage.output_tokens is None else usage.output_tokens
    if price is None:
        return Spent(1, sent + received)
    reasoning = min(usage.reasoning_tokens or 0, received)
    cached = min(usage.cached_tokens or 0, sent)
    written = min(usage.written_tokens or 0, sent - cached)
    if price.cached_input is None:
        cached = 0  # at the full price
    cost = price.cost(
        sent,
        received - reasoning,
        reasoning_tokens=reasoning,
        cached_tokens=cached if cached or written else None,
        written_tokens=written,
    )
    return Spent(1, sent + received, nano_dollars(cost))


def nano_dollars(dollars: Decimal) -> int:
    """Return a price in whole nano-dollars, rounded up."""
    return int((dollars * NANO).to_integral_value(ROUND_CEILING))


def _in_spool(spool: bytes) -> Iterator[tuple[int, bytes | list[Any]]]:
    """Return what a spool holds: attempts with their answers as they came, or with statements."""
    at = 0
    while (end := spool.find(b"\n", at)) >= 0:
        line, at = spool[at:end], end + 1
        if found := _CAME_SO.fullmatch(line):
            attempt, size = map(int, found.groups())
            came, at = spool[at : at + size], at + size + 1
            if len(came) == size:
                yield attempt, came
        else:
            try:
                attempt, statements = json.loads(line)
            except ValueError:  # killed while it was written
                continue
            yield attempt, statements


def _connect(file: Path) -> sqlite3.Connection:
    return sqlite3.connect(file, isolation_level=None, check_same_thread=False, timeout=60.0)


def _refuse_over_results(folder: Path) -> None:
    """Raise ValueError if a folder without a run in its ledger holds what a run has left."""
    left = [name for name in (TALLY, *_LEFT) if (folder / name).exists()]
    if left:
        raise ValueError(
            f"A run goes on from its ledger; {folder} holds {', '.join(left)} of a run, and no "
            f"ledger with its answers, which would all be asked and paid for again. {_PUT_BACK}"
        )


def _take(folder: Path) -> sqlite3.Connection:
    """Own the folder as long as the connection is open; the system lets go if we die."""
    lock = sqlite3.connect(
        folder / LOCK, isolation_level=None, check_same_thread=False, timeout=0.0
    )
    try:
        lock.execute("BEGIN EXCLUSIVE")
    except sqlite3.Error as error:
        lock.close()
        raise ValueError(
            f"A run belongs to one process at a time; another one is at work in {folder} "
            f"({error}). Wait for it, or name another folder."
        ) from None
    return lock


def _write_reply(reply: Reply) -> str:
    told: dict[str, Any] = {
        "text": reply.text,
        "finish_reason": reply.finish_reason,
        "model_served": reply.model_served,
    }
    if reply.log_probabilities is not None:
        told["log_probabilities"] = reply.log_probabilities
    return json.dumps(told, ensure_ascii=False)


def _read_reply(told: str, raw: str, request_id: str, usage: Iterable[int | None]) -> Reply:
    found = json.loads(told)
    tokens = found.get("log_probabilities")
    if tokens is not None:
        tokens = tuple(
            TokenLogProbability(token, value, tuple((other, v) for other, v in alternatives))
            for token, value, alternatives in tokens
        )
    return Reply(
        found["text"],
        found["finish_reason"],
        Usage(*usage),
        found["model_served"],
        raw,
        request_id,
        tokens,
    )


def _write_price(price: Price | None) -> dict[str, Any] | None:
    if price is None:
        return None
    told: dict[str, Any] = json.loads(json.dumps(asdict(price), default=str))
    return told


def _read_price(told: Mapping[str, Any] | None) -> Price | None:
    if told is None:
        return None

    def amount(text: str | None) -> Decimal | None:
        return None if text is None else Decimal(text)

    rates = tuple(
        Rates(above=entry["above"], **{k: amount(v) for k, v in entry.items() if k != "above"})  # type: ignore[arg-type]
        for entry in told["rates"]
    )
    return Price(
        told["llm"],
        told["provider"],
        told["model"],
        rates,
        told["source"],
        Date.fromisoformat(told["date"]),
        Date.fromisoformat(told["since"]) if told["since"] else None,
        Decimal(told["per_call"]),
    )


def _differences(
    kept: Mapping[str, Any], asked: Mapping[str, Any]
) -> Iterable[tuple[str, Any, Any]]:
    for name in [*kept, *(name for name in asked if name not in kept)]:
        before, now = kept.get(name), asked.get(name)
        if isinstance(before, dict) and isinstance(now, dict):
            yield from _differences(before, now)
        elif before != now:
            yield name, before, now


def _short(value: Any, other: Any) -> str:
    """Show a value, if it is long from a little before the place where it differs from another."""
    text = json.dumps(value)
    if len(text) <= 60:
        return text
    alike = next(
        (i for i, (a, b) in enumerate(zip(text, json.dumps(other), strict=False)) if a != b), 0
    )
    begin = max(0, alike - 20)
    return f"{'...' * (begin > 0)}{text[begin : begin + 54]}{'...' * (begin + 54 < len(text))}"
