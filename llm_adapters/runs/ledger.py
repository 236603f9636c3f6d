"""What was asked, what came back and what it cost: one SQLite file that outlives its process.

A row of `attempt` is a request that was sent. It is committed before the request leaves; the bytes
that came are committed before anything is made of them. What SQLite has committed to its
write-ahead log outlives the process, so a kill loses nothing that was written; `durable` waits for
the disk as well, against a power cut. Money is reckoned from the tokens when it is read.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from platform import python_version
from typing import Any

from knownminds.environments import Message, Prompt
from knownminds.llm_adapters.adapter import (
    Failed,
    Reply,
    Sampling,
    Usage,
    given,
    read_reply,
    write_reply,
)
from knownminds.llm_adapters.masking import masked

from .prices import Price, Spent, in_batches, most_spent, read_price, used_spent, write_price

FORMAT = 4
FILE = "ledger.sqlite"
LOCK = "ledger.lock"
_LEFT = ("trials.parquet", "report.html")  # what a run leaves beside its ledger
_PUT_BACK = f"Put {FILE} back as it was, with {FILE}-wal if that was there, or name another folder."

_SCHEMA = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE start (
    number INTEGER PRIMARY KEY, began REAL NOT NULL, ended REAL, versions TEXT NOT NULL,
    caps TEXT NOT NULL, reason TEXT, sessions TEXT);
CREATE TABLE image (hash TEXT PRIMARY KEY, png BLOB NOT NULL);
CREATE TABLE request (hash TEXT PRIMARY KEY, body TEXT NOT NULL);
CREATE TABLE attempt (
    session INTEGER NOT NULL, turn INTEGER NOT NULL, number INTEGER NOT NULL,
    slot INTEGER NOT NULL, request TEXT NOT NULL REFERENCES request(hash),
    state TEXT NOT NULL CHECK (
        state IN ('inflight', 'ok', 'error_unpaid', 'error_maybe_paid', 'unknown')),
    began REAL NOT NULL, ended REAL, most_sent INTEGER NOT NULL, most_received INTEGER NOT NULL,
    body BLOB, reply TEXT, served TEXT, input_tokens INTEGER, output_tokens INTEGER,
    reasoning_tokens INTEGER, cached_tokens INTEGER, written_tokens INTEGER,
    outcome TEXT, note TEXT, final INTEGER NOT NULL DEFAULT 0, batch TEXT REFERENCES batch(name),
    PRIMARY KEY (session, turn, number));
CREATE TABLE batch (
    name TEXT PRIMARY KEY, provider_id TEXT, state TEXT NOT NULL CHECK (
        state IN ('intended', 'submitted', 'read', 'void')),
    began REAL NOT NULL, tried REAL NOT NULL, note TEXT);
CREATE TABLE choice (
    session INTEGER NOT NULL, turn INTEGER NOT NULL, place INTEGER NOT NULL, information REAL,
    PRIMARY KEY (session, turn));
CREATE TABLE look (sessions INTEGER PRIMARY KEY, found TEXT NOT NULL);
"""
# Attempts that are with the provider whether or not a process waits for them.
_AWAITED = "batch IN (SELECT name FROM batch WHERE state IN ('intended', 'submitted'))"
_USAGE = "input_tokens, output_tokens, reasoning_tokens, cached_tokens, written_tokens"

Key = tuple[int, int, int]  # session, turn, and number of the attempt


class LedgerFailed(RuntimeError):  # noqa: N818 - as `Failed`
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
class Attempt:
    """One request that was sent for a question.

    Parameters
    ----------
    key : session, turn, and number of the attempt, from 0 on
    slot : how often the question was put again before, because an answer was malformed
    request : hash of what was asked
    state : "inflight", "ok", "error_unpaid", "error_maybe_paid", or "unknown" after a kill
    most_sent, most_received : the tokens that it can use at most
    body : what came; None if nothing did
    reply : what was read from it; None as long as it was not
    outcome, note : what became of the answer, or why there is none
    final : whether the question is not asked any more, without an answer
    batch : name of the batch that it is in; empty if in none
    """

    key: Key
    slot: int
    request: str
    state: str
    most_sent: int
    most_received: int
    body: bytes | None = None
    reply: Reply | None = None
    outcome: str = ""
    note: str = ""
    final: bool = False
    batch: str = ""

    @property
    def unread(self) -> bool:
        """Whether an answer came that nobody has read."""
        return self.state == "ok" and self.reply is None

    def used(self, price: Price | None) -> Spent:
        """Return what it has used at most; what the provider does not say counts in full."""
        price = in_batches(price) if self.batch and price else price
        if self.state == "error_unpaid":
            return Spent(1)
        if self.reply is None:
            return most_spent(price, self.most_sent, self.most_received)
        return used_spent(price, self.reply.usage, self.most_sent, self.most_received)


@dataclass
class Batch:
    """A batch of requests; our name for it, and the provider's if that is known.

    `began` and `tried` are when it was first and last about to be submitted, seconds since 1970;
    `requests` is how many it has, `done` how many have come to an end as far as is known.
    """

    name: str
    provider_id: str
    began: float
    tried: float
    requests: int
    done: int = 0


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
    return json.dumps({**who, "settings": given(settings)})


def request_hash(who: str, prompt: Prompt) -> str:
    """Name a request by who is asked, with which settings, and all that is shown."""
    return sha256(f"{who}\n{prompt.hash}".encode()).hexdigest()


def request_of(who: str, prompt: Prompt) -> Request:
    """Write a request down, images by their hash."""
    name = {image: sha256(image).hexdigest() for image in prompt.images}
    images = {sha: image for image, sha in name.items()}
    body = {
        **json.loads(who),
        "messages": [
            [message.role, message.content, *(name[image] for image in message.images)]
            for message in prompt.messages
        ],
    }
    return Request(request_hash(who, prompt), json.dumps(body, ensure_ascii=False), images)


class Ledger:
    """The ledger of one run, owned by one process at a time and read by any number.

    Known keys are masked in everything that is written.

    Attributes
    ----------
    price
        What the model costs, as it was first known; None if it never was.
    priced_from
        The start of the run, from 1 on, with which the price came.
    model_served
        The model that the provider said it served with the first answer; empty if it did not.
    """

    def __init__(
        self, folder: Path | None, connection: sqlite3.Connection, keys: tuple[bytes, ...] = ()
    ):
        self.folder = folder or Path()
        self._connection = connection
        self._keys = keys
        self._lock: sqlite3.Connection | None = None
        self._later: list[tuple[str, Sequence[Any]]] = []
        self._broken: LedgerFailed | None = None
        self.price: Price | None = None
        self.priced_from = 1
        self.model_served = ""

    @classmethod
    def open(
        cls,
        folder: str | os.PathLike[str] | None,
        configuration: Mapping[str, Any],
        sessions: int,
        *,
        price: Price | None = None,
        caps: Mapping[str, Any] | None = None,
        keys: tuple[bytes, ...] = (),
        durable: bool = False,
    ) -> Ledger:
        """Begin a ledger in the folder, or go on with the one that is there.

        Parameters
        ----------
        folder
            None for a ledger in memory.
        configuration
            All that makes the run what it is, JSON-able; resuming demands the same.
        sessions
            How many sessions are asked for; resuming may ask for more.
        price
            Kept with the ledger once there is one; later ones are not looked at.
        caps
            What this start is allowed, for the record.
        keys
            What is masked; see `known_keys`.
        durable
            Whether each write waits for the disk, so that a power cut loses nothing either.

        Raises
        ------
        ValueError
            If the folder cannot be written, another process is at work in it, or its ledger is
            of another design, of another format, or no ledger.
        """
        if folder is None:
            ledger = cls(None, sqlite3.connect(":memory:", isolation_level=None), keys)
            ledger._begin(configuration, sessions, price, caps or {}, durable)
            return ledger
        path = Path(folder)
        if not (path / FILE).exists() or not (path / FILE).stat().st_size:
            _refuse_over_results(path)
        try:
            path.mkdir(parents=True, exist_ok=True)
            for name in (FILE, LOCK):
                os.close(os.open(path / name, os.O_RDWR | os.O_CREAT, 0o600))
        except OSError as error:
            raise ValueError(
                f"A run is kept in a folder that can be written; {path}: {error.strerror}. "
                "Name another folder."
            ) from None
        lock = _take(path)
        connection = sqlite3.connect(
            path / FILE, isolation_level=None, check_same_thread=False, timeout=60.0
        )
        ledger = cls(path, connection, keys)
        ledger._lock = lock
        try:
            ledger._begin(configuration, sessions, price, caps or {}, durable)
        except sqlite3.Error as error:
            ledger.close()
            raise ValueError(f"The ledger in {path} cannot be written: {error}.") from None
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
            If there is none, or it is of another format.
        """
        file = Path(folder) / FILE
        if not file.is_file():
            raise ValueError(f"A run is kept in a file {FILE}; there is none in {folder}.")
        where = f"{file.absolute().as_uri()}?mode=ro"
        if not os.access(file.parent, os.W_OK) and not file.with_name(FILE + "-wal").exists():
            where += "&immutable=1"  # SQLite could not make its files beside it
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
        try:
            if self._later and self._broken is None:
                self._write()
        except LedgerFailed:  # which whoever wrote has been told, or could live without
            pass
        finally:
            self._connection.close()
            if self._lock is not None:
                self._lock.close()

    # What is in it ---------------------------------------------------------------------------

    @property
    def configuration(self) -> dict[str, Any]:
        """All that makes the run what it is."""
        content: dict[str, Any] = json.loads(self._meta("configuration"))
        return content

    @property
    def sessions(self) -> int:
        """How many sessions were asked for."""
        return int(self._meta("sessions"))

    def attempts(self, session: int | None = None) -> Iterator[Attempt]:
        """Go through the requests of a session, or of all, by turn and number."""
        where = "" if session is None else "WHERE session = ? "
        rows = self._rows(
            "SELECT session, turn, number, slot, request, state, most_sent, most_received, body, "
            f"reply, outcome, note, final, batch FROM attempt {where}"
            "ORDER BY session, turn, number",
            *(() if session is None else (session,)),
        )
        for (
            session_,
            turn,
            number,
            slot,
            request,
            state,
            sent,
            received,
            body,
            reply,
            *rest,
        ) in rows:
            outcome, note, final, batch = rest
            try:
                answer = None if reply is None else read_reply(reply, _text(body))
            except (ValueError, LookupError, TypeError, RecursionError) as error:
                message = f"the answer to question {turn} of session {session_}: {error!r}"
                raise self._damaged(message) from None
            yield Attempt(
                (session_, turn, number),
                slot,
                request,
                state,
                sent,
                received,
                body,
                answer,
                outcome or "",
                note or "",
                bool(final),
                batch or "",
            )

    def questions(self, session: int) -> dict[int, list[Attempt]]:
        """Return the requests of a session by the number of the question."""
        by_turn: dict[int, list[Attempt]] = {}
        for attempt in self.attempts(session):
            by_turn.setdefault(attempt.key[1], []).append(attempt)
        return by_turn

    def asked_sessions(self) -> list[int]:
        """Return the numbers of the sessions in which something was asked."""
        return [n for (n,) in self._rows("SELECT DISTINCT session FROM attempt ORDER BY session")]

    def prompt(self, request: str) -> Prompt:
        """Return what a request showed."""
        return self.request(request)[0]

    def request(self, name: str) -> tuple[Prompt, Sampling]:
        """Return what a request showed, and with which settings."""
        ((body,),) = self._rows("SELECT body FROM request WHERE hash = ?", name)
        content = json.loads(body)
        messages = []
        for role, text, *images in content["messages"]:
            shown = (self._rows("SELECT png FROM image WHERE hash = ?", image) for image in images)
            messages.append(Message(role, text, tuple(png for ((png,),) in shown)))
        return Prompt(tuple(messages)), Sampling(**content["settings"])

    def choices_of(self, session: int) -> dict[int, tuple[int, float | None]]:
        """Return the questions that were chosen in a session, and what they promised, by turn."""
        rows = self._rows("SELECT turn, place, information FROM choice WHERE session = ?", session)
        return {turn: (position, information) for turn, position, information in rows}

    def looks(self) -> dict[int, dict[str, Any]]:
        """Return what a stopping rule found, by the number of sessions that it looked at."""
        rows = self._rows("SELECT sessions, found FROM look ORDER BY sessions")
        return {sessions: json.loads(content) for sessions, content in rows}

    def spent(self) -> dict[int, Spent]:
        """Return what each session has used; what is open or may have been paid counts in full."""
        by_session: dict[int, Spent] = {}
        for attempt in self.counted():
            by_session.setdefault(attempt.key[0], Spent()).add(attempt.used(self.price))
        return by_session

    def counted(self) -> Iterator[Attempt]:
        """Go through all requests with their tokens, without what was said."""
        rows = self._rows(
            f"SELECT session, turn, number, slot, state, most_sent, most_received, batch, served, "
            f"{_USAGE} FROM attempt"
        )
        for session, turn, number, slot, state, sent, received, batch, served, *usage in rows:
            key, reply = (session, turn, number), None
            if state == "ok" and served is not None:
                reply = Reply("", usage=Usage(*usage))
            yield Attempt(key, slot, "", state, sent, received, reply=reply, batch=batch or "")

    def account(self) -> Account:
        """Add up what the run has cost."""
        calls: Counter[str] = Counter()
        tokens: Counter[str] = Counter()
        re_asked = set()
        untold = unforeseen = paid = reserved = 0
        for attempt in self.counted():
            calls[attempt.state] += 1
            used = attempt.used(self.price)
            usage = attempt.reply.usage if attempt.reply else Usage()
            known = usage.input_tokens is not None and usage.output_tokens is not None
            untold += attempt.reply is not None and not known
            unforeseen += used.tokens > attempt.most_sent + attempt.most_received
            paid += used.money if known else 0
            reserved += 0 if known else used.money
            for name, n in asdict(usage).items():
                whole = usage.output_tokens if name == "reasoning_tokens" else usage.input_tokens
                bounded = n if name == "output_tokens" or whole is None else min(n or 0, whole)
                tokens[name] += bounded or 0
            if attempt.slot:
                re_asked.add((*attempt.key[:2], attempt.slot))
        states = self._rows("SELECT state, COUNT(*) FROM batch GROUP BY state ORDER BY state")
        return Account(
            dict(sorted(calls.items())),
            dict(states),
            len(re_asked),
            untold,
            unforeseen,
            **{name: tokens[name] for name in vars(Usage())},
            paid=paid,
            reserved=reserved,
        )

    def starts(self) -> list[Start]:
        """Return all starts of the run, the last one last."""
        rows = self._rows(
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

    def sent(self, attempts: Iterable[tuple[Attempt, Request]], batch: str = "") -> None:
        """Write down requests that are about to leave, together if they are a batch.

        They may leave once this returns.
        """
        now = time.time()
        statements: list[tuple[str, Sequence[Any]]] = []
        if batch:
            new = "INSERT INTO batch (name, state, began, tried) VALUES (?, 'intended', ?, ?)"
            statements.append((new, (batch, now, now)))
        for attempt, request in attempts:
            attempt.batch = batch
            statements += [
                ("INSERT OR IGNORE INTO image VALUES (?, ?)", (name, png))
                for name, png in request.images.items()
            ]
            statements += [
                ("INSERT OR IGNORE INTO request VALUES (?, ?)", (request.hash, request.body)),
                (
                    "INSERT INTO attempt (session, turn, number, slot, request, state, began, "
                    "most_sent, most_received, batch) VALUES (?, ?, ?, ?, ?, 'inflight', ?, ?, ?, "
                    "?)",
                    (
                        *attempt.key,
                        attempt.slot,
                        request.hash,
                        now,
                        attempt.most_sent,
                        attempt.most_received,
                        batch or None,
                    ),
                ),
            ]
        self._write(*statements)

    def came(self, attempt: Attempt, body: bytes) -> bytes:
        """Write down the bytes that came, before anything is made of them; return them masked."""
        body = masked(body, self._keys)
        attempt.state, attempt.body = "ok", body
        self._write(_update(attempt, state="ok", ended=time.time(), body=body))
        return body

    def was_read(self, attempt: Attempt, reply: Reply) -> None:
        """Write down what was read from an answer; with whatever is written next."""
        attempt.reply = reply
        served = reply.model_served
        self._later.append(
            _update(
                attempt,
                reply=write_reply(reply).decode(),
                served=served,
                **asdict(reply.usage),
            )
        )
        if served and not self.model_served:
            self.model_served = served
            self._later.append(("INSERT INTO meta VALUES ('model_served', ?)", (served,)))

    def judged(self, attempt: Attempt, outcome: str, note: str) -> None:
        """Write down what became of an answer; with whatever is written next."""
        attempt.outcome, attempt.note = outcome, note
        self._later.append(_update(attempt, outcome=outcome, note=note))

    def failed(self, attempt: Attempt, error: Failed, *, final: bool) -> None:
        """Write down that a request brought no answer, and whether the question is given up."""
        attempt.state = "error_unpaid" if error.charged is False else "error_maybe_paid"
        attempt.outcome, attempt.note, attempt.final = "error", self._clean(str(error)), final
        attempt.body = masked(error.raw, self._keys) or None
        self._write(
            _update(
                attempt,
                state=attempt.state,
                ended=time.time(),
                body=attempt.body,
                outcome="error",
                note=attempt.note,
                final=final,
            )
        )

    def chose(self, session: int, turn: int, position: int, information: float | None) -> None:
        """Note which question was chosen; written with the question itself, in one transaction."""
        new = "INSERT OR IGNORE INTO choice VALUES (?, ?, ?, ?)"
        self._later.append((new, (session, turn, position, information)))

    def looked(self, sessions: int, result: Mapping[str, Any]) -> None:
        """Write down what a stopping rule found in so many sessions."""
        self._write(("INSERT OR IGNORE INTO look VALUES (?, ?)", (sessions, json.dumps(result))))

    def end(self, reason: str, sessions: Mapping[int, str]) -> None:
        """Write down why this start has ended."""
        reasons = self._clean(json.dumps(sessions))
        self._write(
            (
                "UPDATE start SET ended = ?, reason = ?, sessions = ? "
                "WHERE number = (SELECT MAX(number) FROM start)",
                (time.time(), self._clean(reason), reasons),
            )
        )

    # Batches ---------------------------------------------------------------------------------

    def open_batches(self) -> list[Batch]:
        """Return the batches whose results were not read."""
        rows = self._rows(
            "SELECT name, COALESCE(provider_id, ''), began, tried, "
            "(SELECT COUNT(*) FROM attempt WHERE batch = name) "
            "FROM batch WHERE state IN ('intended', 'submitted') ORDER BY began, name"
        )
        return [Batch(*row) for row in rows]

    def provider_ids(self) -> set[str]:
        """Return the provider's ids of all batches."""
        ids = self._rows("SELECT provider_id FROM batch WHERE provider_id IS NOT NULL")
        return {id for (id,) in ids}

    def in_batch(self, name: str) -> list[Attempt]:
        """Return the requests of a batch."""
        return [attempt for attempt in self.attempts() if attempt.batch == name]

    def batch_is(self, batch: Batch, state: str, note: str = "") -> None:
        """Write down that a batch is "submitted", "read", or was "void", with the provider's id.

        The requests of a batch that was void were not paid, and their questions are asked anew.
        """
        statements: list[tuple[str, Sequence[Any]]] = [
            (
                "UPDATE batch SET state = ?, provider_id = ?, tried = ?, note = ? WHERE name = ?",
                (state, batch.provider_id or None, batch.tried, self._clean(note), batch.name),
            )
        ]
        if state == "void":
            statements.append(
                (
                    "UPDATE attempt SET state = 'error_unpaid', ended = ?, note = ? "
                    "WHERE state = 'inflight' AND batch = ?",
                    (time.time(), self._clean(note), batch.name),
                )
            )
        self._write(*statements)

    # Inside ----------------------------------------------------------------------------------

    def _begin(
        self,
        configuration: Mapping[str, Any],
        sessions: int,
        price: Price | None,
        caps: Mapping[str, Any],
        durable: bool,
    ) -> None:
        wanted = json.loads(self._clean(json.dumps(configuration)))
        run = self._connection.execute
        if self._check():
            self._compare(wanted, sessions)
        elif self._lock is not None:
            _refuse_over_results(self.folder)
        run("PRAGMA journal_mode = WAL")
        run(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
        with self._transaction():
            if not self._tables():
                for statement in _SCHEMA.split(";"):
                    run(statement)
                for name, value in (
                    ("format", str(FORMAT)),
                    ("configuration", json.dumps(wanted)),
                    ("price", json.dumps(None)),
                ):
                    run("INSERT INTO meta VALUES (?, ?)", (name, value))
            run("INSERT OR REPLACE INTO meta VALUES ('sessions', ?)", (str(sessions),))
            if price is not None and json.loads(self._meta("price")) is None:
                number = self._rows("SELECT COUNT(*) FROM start")[0][0] + 1
                for name, value in (
                    ("price", json.dumps(write_price(price))),
                    ("priced_from", str(number)),
                ):
                    run("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, value))
            # Whoever left these behind is dead: the lock is ours.
            run(
                "UPDATE attempt SET state = 'unknown' WHERE state = 'inflight' "
                f"AND (batch IS NULL OR NOT {_AWAITED})"
            )
            versions = {name: version(name) for name in ("knownminds", "numpy", "pandas")}
            software = json.dumps({"python": python_version(), **versions})
            run(
                "INSERT INTO start (began, versions, caps) VALUES (?, ?, ?)",
                (time.time(), software, json.dumps(caps, default=str)),
            )
        self._load()

    def _check(self) -> bool:
        """Tell whether there is a run in it; ValueError if it cannot be read."""
        where = self.folder / FILE
        try:
            tables = self._tables()
            if not tables:
                return False
            number = int(self._meta("format")) if "meta" in tables else 0
        except sqlite3.DatabaseError as error:
            raise ValueError(f"{where} cannot be read as a ledger: {error}.") from None
        if not number:
            raise ValueError(f"{where} is a database of something else. Name another folder.")
        if number != FORMAT:
            raise ValueError(
                f"{where} is of format {number}; this knownminds reads format {FORMAT}. Use the "
                "knownminds that wrote it, or name another folder; the ledger is left as it is."
            )
        return True

    def _load(self) -> None:
        self.price = read_price(json.loads(self._meta("price")))
        self.priced_from = int(self._meta("priced_from", "1"))
        self.model_served = self._meta("model_served", "")

    def _compare(self, wanted: Mapping[str, Any], sessions: int) -> None:
        kept = self.configuration
        differences = list(_differences(kept, wanted))
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

    def _tables(self) -> set[str]:
        return {name for (name,) in self._rows("SELECT name FROM sqlite_master")}

    def _meta(self, name: str, default: str | None = None) -> str:
        rows = self._rows("SELECT value FROM meta WHERE name = ?", name)
        if not rows and default is not None:
            return default
        if not rows:
            raise self._damaged(f"it has no {name}")
        value: str = rows[0][0]
        return value

    def _rows(self, statement: str, *values: Any) -> list[Any]:
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

    def _write(self, *statements: tuple[str, Sequence[Any]]) -> None:
        """Commit the statements, after those that had time; LedgerFailed if that fails."""
        if self._broken is not None:
            raise self._broken
        later, self._later = self._later, []
        try:
            with self._transaction():
                for statement, values in (*later, *statements):
                    self._connection.execute(statement, [self._clean(v) for v in values])
        except sqlite3.Error as error:
            self._broken = LedgerFailed(
                f"The ledger in {self.folder} cannot be written: {error}. Nothing more is "
                "asked; make room or mend it, and resume."
            )
            raise self._broken from None

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._connection.execute("COMMIT")
        finally:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")

    def _clean(self, value: Any) -> Any:
        """Mask keys in a text, and make it one that can be written at all."""
        if not isinstance(value, str):
            return value
        # Half a character, as a cut answer may hold, is no UTF-8.
        return masked(value.encode("utf-8", "replace"), self._keys).decode()


def spent_in(folder: str | os.PathLike[str]) -> Spent:
    """Return what a folder's run has used in all its starts; nothing if there is none.

    Raises
    ------
    ValueError
        If its ledger cannot be read.
    """
    file, total = Path(folder) / FILE, Spent()
    if file.is_file() and file.stat().st_size:
        with Ledger.read(folder) as ledger:
            for one in ledger.spent().values():
                total.add(one)
    return total


def _update(attempt: Attempt, **values: Any) -> tuple[str, Sequence[Any]]:
    """Return the statement that writes these columns of an attempt."""
    columns = ", ".join(f"{name} = ?" for name in values)
    where = "session = ? AND turn = ? AND number = ?"
    return f"UPDATE attempt SET {columns} WHERE {where}", (*values.values(), *attempt.key)


def _text(body: bytes | None) -> str:
    return "" if body is None else body.decode(errors="replace")


def _refuse_over_results(folder: Path) -> None:
    """Raise ValueError if a folder without a run in its ledger holds what a run has left."""
    left = [name for name in _LEFT if (folder / name).exists()]
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


def _differences(
    kept: Mapping[str, Any], wanted: Mapping[str, Any]
) -> Iterable[tuple[str, Any, Any]]:
    for name in [*kept, *(name for name in wanted if name not in kept)]:
        before, now = kept.get(name), wanted.get(name)
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
