"""Requests, answers and tokens of the runs of a folder: one SQLite file that outlives its process.

Several runs can share a file, and with it the caps. Each is a cell, named by its folder within that
of the file; the name of a single run is empty. A row of `attempt` is a request that was sent. It is
committed before the request leaves; the bytes that came are committed before anything is made of
them. What SQLite has committed to its write-ahead log outlives the process, so a kill loses nothing
that was written. `durable` waits for the disk as well, against a power cut. Money is reckoned from
the tokens when it is read. All else that is known of a run is a row of `fact`: a name and JSON.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from importlib.metadata import version
from itertools import takewhile
from pathlib import Path
from platform import python_version
from typing import Any

from filelock import FileLock, Timeout

from knownminds.calling import MOST_TOKENS, Sampling
from knownminds.environments import Message, Prompt
from knownminds.environments.record.folders import writable
from knownminds.llm_adapters.adapter import (
    Failed,
    Reply,
    Usage,
    given,
    read_reply,
    whole_characters,
    write_reply,
)
from knownminds.llm_adapters.masking import masked

from .admission import Spending
from .prices import Price, Spent, in_batches, most_spent, read_price, used_spent, write_price

FORMAT = 7
FILE = "ledger.sqlite"
LOCK = "ledger.lock"
OPEN = ("intended", "submitted")  # states of a batch whose results were not read
SENT_ANEW = "sent anew without the seed"  # begins the note of a call that was refused for its seed
_LEFT = ("trials.parquet", "report.html")  # what a run leaves beside its ledger
_PUT_BACK = f"Put {FILE} back as it was, with {FILE}-wal if that was there, or name another folder."

_SCHEMA = """
CREATE TABLE fact (
    cell TEXT, name TEXT, value TEXT NOT NULL, PRIMARY KEY (cell, name)) WITHOUT ROWID;
CREATE TABLE image (hash TEXT PRIMARY KEY, png BLOB NOT NULL);
CREATE TABLE request (hash TEXT PRIMARY KEY, body TEXT NOT NULL);
CREATE TABLE attempt (
    cell TEXT NOT NULL, session INTEGER NOT NULL, turn INTEGER NOT NULL, number INTEGER NOT NULL,
    slot INTEGER NOT NULL, request TEXT NOT NULL REFERENCES request(hash),
    state TEXT NOT NULL CHECK (
        state IN ('inflight', 'ok', 'error_unpaid', 'error_maybe_paid', 'refused', 'unknown')),
    began REAL NOT NULL, ended REAL, most_sent INTEGER NOT NULL, most_received INTEGER NOT NULL,
    body BLOB, reply TEXT, note TEXT, final INTEGER NOT NULL DEFAULT 0, batch TEXT,
    PRIMARY KEY (cell, session, turn, number))
"""
# Whoever sent these is dead: the lock is ours. A batch goes on without its process.
_LEFT_BEHIND = """
UPDATE attempt SET state = 'unknown' WHERE state = 'inflight' AND COALESCE(batch, '') NOT IN (
    SELECT json_extract(value, '$.name') FROM fact WHERE name GLOB 'batch/*'
    AND json_extract(value, '$.state') IN ('intended', 'submitted'))
"""
_COLUMNS = "session, turn, number, slot, request, state, most_sent, most_received, note, final"

Key = tuple[int, int, int]  # session, turn, and number of the attempt
Statement = tuple[str, Sequence[Any]]


class NoRun(ValueError):  # noqa: N818 - as `Failed`
    """There is no run in a folder."""


@dataclass
class Attempt:
    """One request that was sent for a question.

    Parameters
    ----------
    key : session, turn, and number of the attempt, from 0 on
    slot : how often the question was put again before, because an answer was malformed
    request : hash of the request
    state : "inflight", "ok", "error_unpaid", "error_maybe_paid", "refused" (by moderation, not
        paid), or "unknown" after a kill
    most_sent, most_received : the tokens that it can use at most
    note : why there is no answer
    final : whether no further request is sent for the question, without an answer
    batch : name of the batch that it is in; empty if in none
    body : what came; None if nothing did
    reply : what was read from it; None as long as it was not
    shown : who answers with which settings, see `asked_of`, and the prompt; of one to be sent
    """

    key: Key
    slot: int
    request: str
    state: str
    most_sent: int
    most_received: int
    note: str = ""
    final: bool = False
    batch: str = ""
    body: bytes | None = None
    reply: Reply | None = None
    shown: tuple[str, Prompt] | None = field(default=None, repr=False)

    def foresee(self, more: int, longest: int) -> None:
        """Take for its most what other calls of its participant have had, see `Spending`."""
        self.most_sent += more
        self.most_received = max(self.most_received, longest)

    @property
    def counts(self) -> str:
        """As what it is counted: its state, or "anew" of one that was sent anew without a seed."""
        return "anew" if self.note.startswith(SENT_ANEW) else self.state

    def used(self, price: Price | None) -> Spent:
        """Return what it has used at most; what the provider does not say counts in full."""
        price = in_batches(price) if self.batch and price else price
        if self.state in ("error_unpaid", "refused"):
            return Spent(1)
        if self.reply is None:
            return most_spent(price, self.most_sent, self.most_received)
        return used_spent(price, self.reply.usage, self.most_sent, self.most_received)


@dataclass
class ProviderBatch:
    """A batch of requests; our name for it, and the provider's if that is known.

    `began` and `tried` are when it was first and last about to be submitted, seconds since 1970;
    `requests` is how many it has, `done` how many have come to an end as far as is known. `state`
    is "intended", "submitted", "read", or "void": not taken by the provider.
    """

    name: str
    requests: int
    provider_id: str = ""
    state: str = "intended"
    began: float = field(default_factory=time.time)
    tried: float = 0.0
    note: str = ""
    done: int = 0


@dataclass(frozen=True)
class RunCost:
    """What a run has cost, added up from the ledger.

    Parameters
    ----------
    calls : requests sent, by what they count as, see `Attempt`
    batches : batches of requests, by their state
    re_asked : how often a question was put again because its answer was malformed
    answers_without_tokens : that came without their number of tokens, which count 0 in the sums
        below, and at their most in `reserved` and under caps
    answers_beyond_what_was_foreseen : that used more tokens than could be foreseen, or brought
        more than the limit that was set
    impossible_counts : numbers of tokens that were said and cannot be, and are taken as not said
    cut_prompts : answers to prompts that the server has cut, or counts in part
    input_tokens, output_tokens, reasoning_tokens, cached_tokens, written_tokens : of all answers
    paid : nano-dollars of the answers whose tokens are known
    reserved : nano-dollars that all other calls may have cost at most
    """

    calls: Mapping[str, int]
    batches: Mapping[str, int]
    re_asked: int
    answers_without_tokens: int
    answers_beyond_what_was_foreseen: int
    impossible_counts: int
    cut_prompts: int
    input_tokens: int
    output_tokens: int
    reasoning_tokens: int
    cached_tokens: int
    written_tokens: int
    paid: int
    reserved: int


@dataclass
class Start:
    """One start of a run: when, how far it might go, and why it ended.

    Parameters
    ----------
    began, ended : seconds since 1970; `ended` is None if the process died
    caps : what was allowed
    reason : why it stopped; empty if it came to its end
    sessions : why single sessions stopped, by their number
    versions : of Python and the packages that count
    command : the command line that goes on with the run; empty if there is none
    """

    began: float
    caps: Mapping[str, Any]
    versions: Mapping[str, str]
    ended: float | None = None
    reason: str = ""
    sessions: Mapping[str, str] = field(default_factory=dict)
    command: str = ""


def asked_of(configuration: Mapping[str, Any], settings: Sampling) -> str:
    """Say who answers, and with which settings, as JSON."""
    who = {name: configuration[name] for name in ("provider", "model", "base_url")}
    return json.dumps({**who, "settings": given(settings)})


def request_hash(who: str, prompt_hash: str) -> str:
    """Name a request by who answers, with which settings, and the hash of all that is shown."""
    return sha256(f"{who}\n{prompt_hash}".encode()).hexdigest()


def _content_of(who: str, prompt: Prompt) -> tuple[str, dict[str, bytes]]:
    """Return a request as JSON, with images by their hash, and the images."""
    name = {image: sha256(image).hexdigest() for image in prompt.images}
    messages = [[m.role, m.content, *(name[image] for image in m.images)] for m in prompt.messages]
    body = json.dumps({**json.loads(who), "messages": messages}, ensure_ascii=False)
    return body, {sha: png for png, sha in name.items()}


class LedgerFile:
    """The ledger of a folder: the file of its runs, and what they have used together.

    Attributes
    ----------
    folder : Where it is; an empty path for a ledger in memory.
    spending : What its runs have used, of a file that is open to be written.
    """

    def __init__(self, folder: Path, connection: sqlite3.Connection, lock: FileLock | None = None):
        self.folder, self.spending = folder, Spending()
        self._connection, self._lock = connection, lock
        self._broken: Failed | None = None

    @classmethod
    def open(cls, folder: str | os.PathLike[str] | None, *, durable: bool = False) -> LedgerFile:
        """Begin a file in the folder, or go on with the one that is there; see `Ledger.open`."""
        if folder is None:
            file = cls(Path(), sqlite3.connect(":memory:", isolation_level=None))
        else:
            path = Path(folder)
            lock = _take(path)
            connection = sqlite3.connect(
                path / FILE, isolation_level=None, check_same_thread=False, timeout=60.0
            )
            file = cls(path, connection, lock)
        try:
            file._begin(durable)
        except sqlite3.Error as error:
            file.close()
            raise ValueError(f"The ledger in {folder} cannot be written: {error}.") from None
        except BaseException:
            file.close()
            raise
        return file

    @classmethod
    def read(cls, folder: Path) -> LedgerFile:
        """Look into the file of a folder; nothing is written, and runs may be under way."""
        path = folder / FILE
        where = f"{path.absolute().as_uri()}?mode=ro"
        if not os.access(folder, os.W_OK) and not path.with_name(FILE + "-wal").exists():
            where += "&immutable=1"  # SQLite could not make its files beside it
        file = cls(folder, sqlite3.connect(where, uri=True, isolation_level=None))
        try:
            if not file._check():
                raise NoRun(f"The ledger in {folder} holds no run yet: it is empty.")
        except ValueError:
            file.close()
            raise
        return file

    def __enter__(self) -> LedgerFile:
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file and let others write it."""
        self.close()

    def close(self) -> None:
        """Close the file and let others write it."""
        self._connection.close()
        if self._lock is not None:
            self._lock.release()

    @property
    def on_disk(self) -> bool:
        """Whether it outlives its process."""
        return self._lock is not None

    @property
    def cells(self) -> list[str]:
        """The names of its runs."""
        names = self.rows("SELECT cell FROM fact WHERE name = 'configuration' ORDER BY cell")
        return [name for (name,) in names]

    def rows(self, statement: str, *values: Any) -> Iterator[Any]:
        """Go through the rows of a query; ValueError if the file is damaged."""
        try:
            # As `map`, for a cursor that is left in the middle wants its file open when it ends.
            yield from map(tuple, self._connection.execute(statement, values))
        except sqlite3.DatabaseError as error:
            raise self.damaged(str(error)) from None

    def write(self, *statements: Statement) -> None:
        """Commit the statements; `Failed` if that fails, and ever after."""
        if self._broken is not None:
            raise self._broken
        try:
            with self._transaction():
                for statement, values in statements:
                    self._connection.execute(statement, values)
        except sqlite3.Error as error:
            message = (
                f"The ledger in {self.folder} cannot be written: {error}. No further request is "
                "sent; make room or mend it, and resume."
            )
            self._broken = Failed(message, "stop", "ledger")
            raise self._broken from None

    def damaged(self, what: str) -> ValueError:
        """Return the error of a file that cannot be read."""
        return ValueError(
            f"{self.folder / FILE} cannot be read as a ledger: {what}. Put a whole one there, or "
            "name another folder; this one is left as it is."
        )

    @contextmanager
    def reading(self, what: str) -> Iterator[None]:
        """Name what cannot be read as it was written: ValueError."""
        try:
            yield
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            raise self.damaged(f"{what}: {error!r}") from None

    def _begin(self, durable: bool) -> None:
        run = self._connection.execute
        fresh = not self._check()
        run("PRAGMA journal_mode = WAL")
        run(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
        with self._transaction():
            for statement in _SCHEMA.split(";") if fresh else ():
                run(statement)
            run(f"PRAGMA user_version = {FORMAT}")
            run(_LEFT_BEHIND)
        for cell in self.cells:
            self.spending.begin(cell, Ledger(self, cell).spent())

    def _check(self) -> bool:
        """Say whether there are tables in it; ValueError if they are not those of a ledger."""
        where = self.folder / FILE
        try:
            ((number,),) = self._connection.execute("PRAGMA user_version").fetchall()
            tables = self._connection.execute("SELECT name FROM sqlite_master").fetchall()
        except sqlite3.DatabaseError as error:
            raise ValueError(f"{where} cannot be read as a ledger: {error}.") from None
        if not tables:
            return False
        if not number:
            raise ValueError(f"{where} is a database of something else. Name another folder.")
        if number != FORMAT:
            raise ValueError(
                f"{where} is of format {number}; this knownminds reads format {FORMAT}. Use the "
                "knownminds that wrote it, or name another folder; the ledger is left as it is."
            )
        return True

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._connection.execute("COMMIT")
        finally:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")


class Ledger:
    """One run in the ledger of a folder, written by one process at a time and read by any number.

    Known keys are masked in everything that is written.

    Attributes
    ----------
    file, cell : Where it is written, and its name there.
    folder : Of the run; an empty path for a ledger in memory.
    price : What the model costs, as it was first known; None if it never was.
    model_served : The model that the provider said it served with the first answer; empty if it did
        not.
    """

    def __init__(self, file: LedgerFile, cell: str, keys: tuple[bytes, ...] = ()):
        self.file, self.cell, self.folder = file, cell, file.folder / cell
        self._keys, self._shared, self._who = keys, False, ""
        self._later: list[Statement] = []
        self._start = ""
        self.price = read_price(self._facts("price").get("", None))
        self.model_served = self._facts("model_served").get("", "")

    @classmethod
    def open(
        cls,
        folder: str | os.PathLike[str] | None,
        configuration: Mapping[str, Any],
        sessions: int,
        *,
        within: LedgerFile | str | os.PathLike[str] | None = None,
        price: Price | None = None,
        caps: Mapping[str, Any] | None = None,
        keys: tuple[bytes, ...] = (),
        durable: bool = False,
        command: str = "",
    ) -> Ledger:
        """Begin a run in a ledger, or go on with the one that is there.

        Parameters
        ----------
        folder : Of the run; None for a ledger in memory.
        configuration : All that makes the run what it is, JSON-able; resuming demands the same.
        sessions : How many sessions the run has; resuming may have more.
        within : The folder, or the open file in it, that has the ledger of several runs; None if
            the run has one for itself.
        price : Kept with the run once there is one; later ones are not looked at.
        caps, command : What this start is allowed, and the command line of it, for the record.
        keys : What is masked; see `known_keys`.
        durable : Whether each write waits for the disk, so that a power cut loses nothing either.

        Raises
        ------
        ValueError : If the folder cannot be written, another process is at work in it, or its
            ledger is of another design, of another format, or no ledger.
        """
        shared = isinstance(within, LedgerFile)
        if isinstance(within, LedgerFile):
            file = within
        else:
            file = LedgerFile.open(folder if within is None else within, durable=durable)
        try:
            cell = "" if within is None or folder is None else _cell(Path(folder), file.folder)
            ledger = cls(file, cell, keys)
            ledger._shared = shared
            ledger._begin(configuration, sessions, price, caps=caps or {}, command=command)
        except BaseException:
            if not shared:
                file.close()
            raise
        return ledger

    @classmethod
    def read(cls, folder: str | os.PathLike[str]) -> Ledger:
        """Look into a run; nothing is written, and it may be under way.

        Its ledger is in its folder, or in the next one above.

        Raises
        ------
        ValueError : If there is none, or it is of another format.
        """
        where = _above(folder)
        file = LedgerFile.read(where)
        try:
            ledger = cls(file, _cell(Path(folder), where))
            if not ledger.is_there:
                raise _no_run(folder, () if ledger.cell else file.cells)
        except ValueError:
            file.close()
            raise
        ledger.folder = Path(folder)
        return ledger

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        """Write what is left, and close the file unless it is shared."""
        self.close()

    def close(self) -> None:
        """Write what is left, and close the file unless it is shared."""
        try:
            if self._later:
                self._write()
        except Failed:  # what is lost is read again from the bytes
            pass
        finally:
            if not self._shared:
                self.file.close()

    # What is in it ---------------------------------------------------------------------------

    @property
    def is_there(self) -> bool:
        """Whether the file holds the run; ValueError if it holds no more than its requests."""
        if self.cell in self.file.cells:
            return True
        if list(self.file.rows("SELECT 1 FROM attempt WHERE cell = ? LIMIT 1", self.cell)):
            raise self.file.damaged("it has no configuration")
        return False

    @property
    def configuration(self) -> dict[str, Any]:
        """All that makes the run what it is."""
        content: dict[str, Any] = self._fact("configuration")
        return content

    @property
    def sessions(self) -> int:
        """How many sessions the run has."""
        return int(self._fact("sessions"))

    @property
    def starts(self) -> list[Start]:
        """All starts of the run, the last one last."""
        facts = self._facts("start/").values()
        with self.file.reading("a start"):
            return [Start(**content) for content in facts]

    @property
    def looks(self) -> dict[int, dict[str, Any]]:
        """What a stopping rule shows, by the number of sessions that it looked at."""
        return {int(name): content for name, content in self._facts("look/").items()}

    @property
    def left_out(self) -> str:
        """What a server said of the sampling seed, which is sent no more; empty if it is."""
        return str(self._facts("left_out").get("", ""))

    @property
    def batches(self) -> list[ProviderBatch]:
        """All batches, in the order in which they began."""
        facts = self._facts("batch/").values()
        with self.file.reading("a batch"):
            batches = [ProviderBatch(**content) for content in facts]
        return sorted(batches, key=lambda batch: batch.began)

    def choices_of(self, session: int) -> dict[int, tuple[int, float | None]]:
        """Return the questions that were chosen in a session, and what they promised, by turn."""
        choices = self._facts(f"choice/{session}/")
        return {int(turn): tuple(choice) for turn, choice in choices.items()}

    def attempts(self, session: int | None = None) -> Iterator[Attempt]:
        """Go through the requests of a session, or of all, by turn and number."""
        where, values = ("", ()) if session is None else ("AND session = ? ", (session,))
        for *row, batch, body, content in self.file.rows(
            f"SELECT {_COLUMNS}, batch, body, reply FROM attempt WHERE cell = ? {where}"
            "ORDER BY session, turn, number",
            self.cell,
            *values,
        ):
            attempt = _attempt(row, batch)
            attempt.body = body
            if attempt.state == "ok" and body is None:
                raise self.file.damaged(f"the answer to question {attempt.key} is not there")
            if content is not None:
                with self.file.reading(f"the answer to question {attempt.key}"):
                    attempt.reply = read_reply(content, body.decode(errors="replace"))
            yield attempt

    def counted(self) -> Iterator[Attempt]:
        """Go through all requests with their tokens, without the answers, which may be large."""
        usage = "json_extract(reply, '$.usage')"
        statement = f"SELECT {_COLUMNS}, batch, {usage} FROM attempt WHERE cell = ?"
        for *row, batch, content in self.file.rows(statement, self.cell):
            attempt = _attempt(row, batch)
            if content is not None:
                with self.file.reading(f"the tokens of question {attempt.key}"):
                    attempt.reply = Reply("", usage=Usage(**json.loads(content)))
            yield attempt

    def questions(self, session: int) -> dict[int, list[Attempt]]:
        """Return the requests of a session by the number of the question."""
        by_turn: dict[int, list[Attempt]] = {}
        for attempt in self.attempts(session):
            by_turn.setdefault(attempt.key[1], []).append(attempt)
        return by_turn

    def request(self, name: str) -> tuple[Prompt, Sampling]:
        """Return what a request showed, and with which settings."""
        found = list(self.file.rows("SELECT body FROM request WHERE hash = ?", name))
        with self.file.reading(f"the request {name}"):
            ((body,),) = found
            content = json.loads(body)
            messages = []
            for role, text, *images in content["messages"]:
                select = "SELECT png FROM image WHERE hash = ?"
                shown = (self.file.rows(select, image) for image in images)
                messages.append(Message(role, text, tuple(png for ((png,),) in shown)))
            return Prompt(tuple(messages)), Sampling(**content["settings"])

    def spent(self) -> dict[int, Spent]:
        """Return what each session has used; what is open or may have been paid counts in full."""
        by_session: dict[int, Spent] = {}
        for attempt in self.counted():
            if attempt.reply is not None:
                self._learn(attempt, attempt.reply.usage)
            session = attempt.key[0]
            by_session[session] = by_session.get(session, Spent()) + attempt.used(self.price)
        return by_session

    def account(self) -> RunCost:
        """Add up what the run has cost."""
        calls: Counter[str] = Counter()
        tokens: Counter[str] = Counter()
        re_asked = set()
        untold = unforeseen = paid = reserved = 0
        limit = self.configuration.get("sampling", {}).get("max_tokens", MOST_TOKENS)
        for attempt in self.counted():
            calls[attempt.counts] += 1
            used = attempt.used(self.price)
            usage = attempt.reply.usage if attempt.reply else Usage()
            known = usage.input_tokens is not None and usage.output_tokens is not None
            untold += attempt.reply is not None and not known
            more = (usage.output_tokens or 0) > min(limit, attempt.most_received)
            unforeseen += more or used.tokens > attempt.most_sent + attempt.most_received
            paid += used.money if known else 0
            reserved += 0 if known else used.money
            tokens.update({name: n or 0 for name, n in asdict(usage.bounded()).items()})
            if attempt.slot:
                re_asked.add((*attempt.key[:2], attempt.slot))
        return RunCost(
            dict(sorted(calls.items())),
            dict(sorted(Counter(batch.state for batch in self.batches).items())),
            len(re_asked),
            untold,
            unforeseen,
            **{name: tokens[name] for name in vars(Usage())},
            paid=paid,
            reserved=reserved,
        )

    # What is written while a run is under way --------------------------------------------------

    def sent(self, attempts: Iterable[Attempt], batch: ProviderBatch | None = None) -> None:
        """Write down requests that are about to leave, together if they are a batch.

        They may leave once this returns.
        """
        statements = [] if batch is None else [self._set(f"batch/{batch.name}", asdict(batch))]
        for attempt in attempts:
            assert attempt.shown is not None
            body, images = _content_of(*attempt.shown)
            attempt.batch = batch.name if batch else ""
            statements += [
                ("INSERT OR IGNORE INTO image VALUES (?, ?)", (name, png))
                for name, png in images.items()
            ]
            new = ("INSERT OR IGNORE INTO request VALUES (?, ?)", (attempt.request, body))
            most = attempt.most_sent, attempt.most_received
            values = (self.cell, *attempt.key, attempt.slot, attempt.request, "inflight", *most)
            statements += [
                new,
                (
                    "INSERT INTO attempt (cell, session, turn, number, slot, request, state, "
                    f"most_sent, most_received, batch, began) VALUES ({', '.join('?' * 11)})",
                    (*values, attempt.batch or None, time.time()),
                ),
            ]
        self._write(*statements)

    def came(self, attempt: Attempt, body: bytes) -> bytes:
        """Write down the bytes that came, before anything is made of them; return them masked."""
        attempt.state, attempt.body = "ok", masked(body, self._keys)
        self._write(self._update(attempt, state="ok", ended=time.time(), body=attempt.body))
        return attempt.body

    def was_read(self, attempt: Attempt, reply: Reply) -> None:
        """Write down what was read from an answer; with whatever is written next."""
        attempt.reply = reply
        self._learn(attempt, reply.usage)
        self._later.append(self._update(attempt, reply=write_reply(reply).decode()))
        if reply.model_served and not self.model_served:
            self.model_served = reply.model_served
            self._later.append(self._set("model_served", self.model_served))

    def failed(self, attempt: Attempt, error: Failed, *, final: bool) -> None:
        """Write down that a request brought no answer, and whether the question is given up."""
        unpaid = "refused" if error.kind == "refused" else "error_unpaid"
        attempt.state = unpaid if error.charged is False else "error_maybe_paid"
        attempt.note, attempt.final = self._clean(str(error)), final
        attempt.body = masked(error.raw, self._keys) or None
        self._learn(attempt, error.usage)
        attempt.most_sent = max(attempt.most_sent, error.usage.input_tokens or 0)
        attempt.most_received = max(attempt.most_received, error.usage.output_tokens or 0)
        names = ("state", "note", "final", "body", "most_sent", "most_received")
        written = {name: getattr(attempt, name) for name in names}
        self._write(self._update(attempt, ended=time.time(), **written))

    def chose(self, session: int, turn: int, position: int, information: float | None) -> None:
        """Note which question was chosen; written with the question itself, in one transaction."""
        self._later.append(self._set(f"choice/{session}/{turn}", (position, information)))

    def looked(self, sessions: int, result: Mapping[str, Any]) -> None:
        """Write down what a stopping rule shows after so many sessions."""
        self._write(self._set(f"look/{sessions:09}", result))

    def leave_out(self, why: str) -> None:
        """Write down that the sampling seed is sent no more, and why."""
        self._write(self._set("left_out", self._clean(why)))

    def end(self, reason: str, sessions: Mapping[int, str]) -> None:
        """Write down why this start has ended."""
        start = replace(self.starts[-1], ended=time.time(), reason=reason)
        start.sessions = {str(number): why for number, why in sessions.items()}
        self._write(self._set(self._start, asdict(start)))

    def note_batch(self, batch: ProviderBatch) -> None:
        """Write down where a batch stands.

        The requests of a batch that is void were not paid, and are sent anew.
        """
        statements = [self._set(f"batch/{batch.name}", asdict(batch))]
        if batch.state == "void":
            new = (
                "UPDATE attempt SET state = 'error_unpaid', ended = ?, note = ? "
                "WHERE state = 'inflight' AND batch = ?"
            )
            statements.append((new, (time.time(), batch.note, batch.name)))
        self._write(*statements)

    # Inside ----------------------------------------------------------------------------------

    @property
    def beyond(self) -> tuple[int, int]:
        """What answers of the participant have had beyond what was foreseen, see `Spending`."""
        if not self._who:
            kept, who = self.configuration, ("provider", "model", "base_url", "sampling")
            self._who = json.dumps([kept.get(name) for name in who])
        return self.file.spending.beyond.get(self._who, (0, 0))

    def _learn(self, attempt: Attempt, usage: Usage) -> None:
        """Foresee of the participant's next calls what one has had."""
        more, longest = self.beyond
        more = max(more, (usage.input_tokens or 0) - attempt.most_sent)
        self.file.spending.beyond[self._who] = more, max(longest, usage.output_tokens or 0)

    def _begin(
        self, configuration: Mapping[str, Any], sessions: int, price: Price | None, **about: Any
    ) -> None:
        wanted = json.loads(self._clean(json.dumps(configuration)))
        cells = self.file.cells
        if self.is_there:
            self._compare(wanted, sessions)
        elif self.file.on_disk:
            if not self.cell and cells:
                raise _no_run(self.folder, cells)
            _refuse_over_results(self.folder)
            self.folder.mkdir(parents=True, exist_ok=True)
        self.price = self.price or price
        versions = {name: version(name) for name in ("knownminds", "numpy", "pandas")}
        versions |= {"python": python_version()}
        start = Start(time.time(), versions=versions, **about)
        self._start = f"start/{len(self.starts):06}"
        self._write(
            self._set("configuration", wanted),
            self._set("sessions", sessions),
            self._set("price", write_price(self.price)),
            self._set(self._start, asdict(start)),
        )
        self.file.spending.begin(self.cell, self.spent())

    def _compare(self, wanted: Mapping[str, Any], sessions: int) -> None:
        kept, now = _flat(self.configuration), _flat(wanted)
        names = [name for name in {**kept, **now} if kept.get(name) != now.get(name)]
        if sessions < self.sessions:
            names.append("sessions")
            kept, now = {**kept, "sessions": self.sessions}, {**now, "sessions": sessions}
        if names:
            before, after = _differing(kept.get(names[0]), now.get(names[0]))
            more = f" (and {len(names) - 1} more)" if len(names) > 1 else ""
            raise ValueError(
                f"A run goes on as it began: {self.folder} holds one with {names[0]} {before}, got "
                f"{after}{more}. Ask for the same, or name another folder; what was paid for stays "
                "in this one."
            )

    def _fact(self, name: str) -> Any:
        """Return a fact; ValueError if there is none."""
        facts = self._facts(name)
        if "" not in facts:
            raise self.file.damaged(f"it has no {name}")
        return facts[""]

    def _facts(self, prefix: str) -> dict[str, Any]:
        """Return the facts whose names begin so, by the rest of their names."""
        select = "SELECT name, value FROM fact WHERE cell = ? AND name GLOB ? ORDER BY name"
        rows = list(self.file.rows(select, self.cell, f"{prefix}*"))
        with self.file.reading(f"a fact ({prefix})"):
            return {name.removeprefix(prefix): json.loads(value) for name, value in rows}

    def _set(self, name: str, value: Any) -> Statement:
        """Return the statement that writes a fact."""
        content = json.dumps(value, default=str)
        return "INSERT OR REPLACE INTO fact VALUES (?, ?, ?)", (self.cell, name, content)

    def _update(self, attempt: Attempt, **values: Any) -> Statement:
        """Return the statement that writes these columns of an attempt."""
        columns = ", ".join(f"{name} = ?" for name in values)
        where = "cell = ? AND session = ? AND turn = ? AND number = ?"
        address = self.cell, *attempt.key
        return f"UPDATE attempt SET {columns} WHERE {where}", (*values.values(), *address)

    def _write(self, *statements: Statement) -> None:
        """Commit the statements, after those that had time."""
        later, self._later = self._later, []
        every = (*later, *statements)
        self.file.write(*((text, [self._clean(v) for v in values]) for text, values in every))

    def _clean(self, value: Any) -> Any:
        """Mask keys in a text, and make it one that can be written at all."""
        if not isinstance(value, str):
            return value
        return masked(whole_characters(value).encode(), self._keys).decode()


def price_in(folder: str | os.PathLike[str] | None) -> Price | None:
    """Return the price that a folder's run is reckoned with; None if there is none as yet."""
    if folder is None:
        return None
    try:
        with Ledger.read(folder) as ledger:
            return ledger.price
    except ValueError:  # none there yet; or none that can be opened, which is said when it is
        return None


def _attempt(row: Sequence[Any], batch: str | None) -> Attempt:
    """Return an attempt from its `_COLUMNS`."""
    session, turn, number, slot, request, state, sent, received, note, final = row
    key, whole = (session, turn, number), bool(final)
    return Attempt(key, slot, request, state, sent, received, note or "", whole, batch or "")


def has_run(folder: str | os.PathLike[str]) -> bool:
    """Say whether a run is kept for a folder; ValueError if its ledger cannot be read."""
    try:
        Ledger.read(folder).close()
    except NoRun:
        return False
    return True


def stays_in(folder: str | os.PathLike[str]) -> str:
    """Say that what was paid for stays with the runs of a folder; "" if nothing was."""
    paid = "SELECT 1 FROM attempt WHERE state NOT IN ('error_unpaid', 'refused') LIMIT 1"
    try:
        with LedgerFile.read(_above(folder)) as file:
            return f" What was paid for stays in {folder}." if list(file.rows(paid)) else ""
    except ValueError:
        return ""


def _above(folder: str | os.PathLike[str]) -> Path:
    """Return the folder of a ledger: that of a run, or the next one above; `NoRun` if none is."""
    path = Path(folder).absolute()
    where = next((up for up in (path, *path.parents) if (up / FILE).is_file()), None)
    if where is None:
        raise _no_run(folder)
    return where


def _no_run(folder: str | os.PathLike[str], cells: Sequence[str] = ()) -> NoRun:
    """Return the error of a folder without a run, or with runs of other names."""
    if not cells:
        return NoRun(f"A run is kept in a file {FILE}; there is none in {folder}.")
    return NoRun(
        f"The ledger in {folder} has several runs: {', '.join(cells)}. Name the folder of one of "
        "them, or another folder."
    )


def _cell(folder: Path, above: Path) -> str:
    """Return the name of a run in the ledger of a folder above its."""
    name = folder.absolute().relative_to(above.absolute()).as_posix()
    return "" if name == "." else name


def _refuse_over_results(folder: Path) -> None:
    """Raise ValueError if a folder without a run in its ledger holds what a run has left."""
    left = [name for name in _LEFT if (folder / name).exists()]
    if left:
        raise ValueError(
            f"A run goes on from its ledger; {folder} holds {', '.join(left)} of a run, and no "
            f"ledger with its answers, which would all be asked and paid for again. {_PUT_BACK}"
        )


def _take(folder: Path) -> FileLock:
    """Lock the folder until the lock is released or the process dies.

    Raises
    ------
    ValueError : If the folder cannot be written, or another process is at work in it.
    """
    if not (folder / FILE).exists() or not (folder / FILE).stat().st_size:
        _refuse_over_results(folder)
    lock = FileLock(folder / LOCK, timeout=0, thread_local=False)
    with writable(folder):
        os.close(os.open(folder / FILE, os.O_RDWR | os.O_CREAT, 0o600))
        try:
            lock.acquire()
        except Timeout:
            raise ValueError(
                f"A run belongs to one process at a time; another one is at work in {folder}. "
                "Wait for it, or name another folder."
            ) from None
    return lock


def _flat(configuration: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return the entries of nested mappings by their names."""
    flat: dict[str, Any] = {}
    for name, value in configuration.items():
        key = prefix + name
        flat |= _flat(value, f"{key}.") if isinstance(value, Mapping) else {key: value}
    return flat


def _differing(*values: Any) -> list[str]:
    """Show values, long ones from a little before where they differ."""
    texts = [json.dumps(value) for value in values]
    alike = takewhile(lambda signs: len(set(signs)) == 1, zip(*texts, strict=False))
    begin = max(0, sum(1 for _ in alike) - 20)
    cut = [text[begin : begin + 54] if len(text) > 60 else text for text in texts]
    return [
        short if short == text else f"...{short}..." for short, text in zip(cut, texts, strict=True)
    ]
