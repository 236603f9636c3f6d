"""Many sessions at once against one provider, with a ledger: nothing lost, nothing paid twice."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from decimal import Decimal
from typing import Any, Protocol, TypedDict, Unpack
from urllib.parse import urlsplit, urlunsplit

from knownminds.environments import (
    Answer,
    ChosenSession,
    Design,
    Environment,
    Outcome,
    Picked,
    Prompt,
    Session,
    Trials,
    make,
    session_stream,
)
from knownminds.environments.session import Pick
from knownminds.llm_adapters.adapter import (
    Adapter,
    Failed,
    Reply,
    Sampling,
    check_heeds,
    given,
    key_variable_of,
)
from knownminds.llm_adapters.batches import batches_of, check_takes_batches
from knownminds.llm_adapters.masking import known_keys

from .admission import SILENT, Caps, Gate
from .batch_rounds import Batching, Rounds, Waiting, check_turns
from .ledger import (
    Attempt,
    Ledger,
    LedgerFailed,
    Request,
    asked_of,
    request_hash,
    request_of,
)
from .participant import (
    Asked,
    Judge,
    LivedSession,
    check_served,
    live,
    record,
    session_settings,
)
from .prices import NANO, REMEDY, Price, Spent, most_tokens_of
from .run_result import ASSUMED_ANSWER, Run, Unfinished

TRIALS = "trials.parquet"
MOST_SESSIONS = 1_000_000

_OVERLOADED = ("often", "server 503", "server 529")  # kinds of a provider that has too much to do
_HEX_DIGITS = 15  # of a question's hash that are its number: 60 bits
_PAUSES = 2**32 - 2  # last part of the address of the stream that spreads the pauses


@dataclass(frozen=True)
class Retries:
    """How a call is tried again that fails in a way that may pass.

    Parameters
    ----------
    attempts : how often a call is made, at most, if the provider fails or cannot be reached
    rate_limited : how often, at most, a provider may answer that it is called too often (429)
    pause : seconds before the second attempt; doubled before each further one, and spread
        over 0.5 to 1.5 of that
    longest_pause : seconds that this doubling ends at
    longest_wait : seconds that a provider may ask to wait; if it asks for more, the run stops
    identical : how many questions in a row may remain without an answer for the same kind of
        reason (`Failed.kind`); the last of them stops the run and is asked again when it is
        resumed; where no connection can be made, the first does
    unanswered : how many may for whatever reasons
    """

    attempts: int = 5
    rate_limited: int = 20
    pause: float = 0.5
    longest_pause: float = 60.0
    longest_wait: float = 600.0
    identical: int = 3
    unanswered: int = 10

    def __post_init__(self) -> None:
        """Check the ranges."""
        for name in ("attempts", "rate_limited", "identical", "unanswered"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is at least 1; got {getattr(self, name)!r}.")
        for name in ("pause", "longest_pause", "longest_wait"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} is a time from 0 s on; got {getattr(self, name)!r}.")


@dataclass(frozen=True)
class Progress:
    """Where a run stands; given to whoever watches it, after every call.

    Parameters
    ----------
    sessions, n_sessions : sessions played to the end, of how many
    trials, n_trials : trials lived, of how many (at most, where some may fall away); those that
        one reply answers count once
    missing : trials among them without a readable answer
    calls : requests sent, in all starts of the run
    tokens : used, counting what may have been paid
    dollars : spent, counting what may have been paid; None if no price is known
    reserved : dollars that calls under way can cost at most
    under_way, allowed : calls under way, and how many may be
    submitted, done : requests sent in batches, and how many of them have come to an end as far as
        the provider says
    """

    sessions: int
    n_sessions: int
    trials: int
    n_trials: int
    missing: int
    calls: int
    tokens: int
    dollars: Decimal | None
    reserved: Decimal | None
    under_way: int
    allowed: int
    submitted: int = 0
    done: int = 0


class Chosen(Protocol):
    """What chooses the questions of sessions, see `knownminds.inference.ChosenQuestions`."""

    @property
    def questions(self) -> int:
        """How many are asked of a session."""

    def check(self, environment: Environment) -> None:
        """Raise ValueError if the questions of an experiment cannot be chosen."""

    def told(self) -> dict[str, Any]:
        """Return what makes the choice what it is, JSON-able."""

    def __call__(self, environment: Environment, design: Design) -> Pick:
        """Return what picks the questions of the session with this design."""


class Stops(Protocol):
    """What may stop a run after some of its sessions, see `StopBy` of `knownminds.inference`."""

    @property
    def looks(self) -> tuple[int, ...]:
        """After how many sessions it looks, rising; the last is how many there are at most."""

    def told(self) -> dict[str, Any]:
        """Return what makes the rule what it is, JSON-able."""

    def __call__(self, trials: Trials, look: int) -> Mapping[str, Any]:
        """Return what it finds in the trials of so many sessions; "stop" says whether to stop."""


class RunOptions(TypedDict, total=False):
    """How sessions are run; what is left out has the default that is named here.

    Attributes
    ----------
    settings
        Sampling settings but the seed, which is the number of the session; `Sampling()`.
    concurrency
        How many sessions are under way at a time, at most; how many calls are, rises and falls
        with what the provider takes, see `Gate`; 8.
    retries, caps
        `Retries()` and `Caps()`. Caps count all starts of a run together; a resumed run may have
        other ones.
    price
        What the model costs, if known; kept with the ledger once there is one, later ones are not
        looked at. What was asked before is reckoned with it.
    re_ask
        How often a question is put again whose answer was malformed; 0.
    retry_errors
        Whether trials are asked again that brought no text in an earlier start; where prompts
        tell of earlier trials, only those with no answer behind them in their session, since
        answers are never asked for again; no.
    batching
        How questions are sent in batches, at half the price and within a day; None to ask one by
        one. Where trials stand alone (`Replies.stand_alone`), all of all sessions are asked
        together; elsewhere a trial of each session, if `batching.turns`. Requests that fail, or
        that a batch leaves unanswered, are trials with the outcome "error". Batches that an
        earlier start has left are read in any case.
    chosen
        What chooses the questions of a session by the answers so far; None to ask all in order.
        Each choice is written down with its question, and a run that goes on asks what was chosen.
    stop
        What looks after some sessions and may stop the run there; sessions beyond a look begin
        when it has been written down, and a run that goes on looks no second time. The number of
        sessions is that of its last look.
    durable
        Whether each write to the ledger waits for the disk, against a power cut; no. A killed
        process loses nothing in either case.
    progress
        Called after every call.
    """

    settings: Sampling | None
    concurrency: int
    retries: Retries | None
    caps: Caps | None
    price: Price | None
    re_ask: int
    retry_errors: bool
    batching: Batching | None
    chosen: Chosen | None
    stop: Stops | None
    durable: bool
    progress: Callable[[Progress], None] | None


async def run_sessions_in(
    folder: str | os.PathLike[str] | None,
    adapter: Adapter,
    environment: Environment,
    n: int,
    seed: int,
    *,
    address: Sequence[int] = (),
    **options: Unpack[RunOptions],
) -> Run:
    """Let n sessions be lived by a language model, with a ledger in the folder.

    Session i has the address (*address, i). If the folder holds a ledger of the same run already,
    the run goes on: the environment lives again through the stored answers, nothing that is
    answered is asked again, and requests that were under way when the process died count as paid
    and are asked once more. The trials are left in the folder as trials.parquet, also if the run
    stops early. Without a folder nothing is left on disk.

    A cap, a failure that repeats, or an interruption (Ctrl-C, a cancelled task) stops the run:
    nothing new is asked, what is under way is waited for and kept. A second Ctrl-C does not wait.

    Parameters
    ----------
    options
        How it is run: settings, caps, batches, what chooses and what stops, see `RunOptions`.

    Raises
    ------
    ValueError
        If the settings contradict each other, or the folder holds another run, or is in use.
    Failed
        If the run is in vain: no key, no such model, a setting that is not heeded, or a model that
        changed on the way. What was paid for stays in the ledger.
    """
    chosen, stop, batching = options.get("chosen"), options.get("stop"), options.get("batching")
    sampling, caps = options.get("settings") or Sampling(), options.get("caps") or Caps()
    concurrency, re_ask = options.get("concurrency", 8), options.get("re_ask", 0)
    price = options.get("price")
    _check_sessions(n, concurrency, re_ask)
    check_heeds(adapter, session_settings(adapter, sampling, 0), images=environment.pictures)
    if batching is not None:
        check_takes_batches(adapter)
        check_turns(environment, batching)
    if chosen is not None:
        check_chosen(chosen, environment, batching)
    if stop is not None:
        check_looks(stop, n, batching)
    check_caps(caps, sampling, price_in(folder) or price, f"{adapter.provider}:{adapter.model}")
    configuration = _configuration(adapter, environment, sampling, seed, address, re_ask)
    configuration |= {"chosen": chosen.told()} if chosen is not None else {}
    configuration |= {"stop": stop.told()} if stop is not None else {}
    with Ledger.open(
        folder,
        configuration,
        n,
        price=price,
        caps={k: str(v) for k, v in asdict(caps).items() if v is not None},
        keys=known_keys(key_variable_of(adapter)),
        durable=options.get("durable", False),
    ) as ledger:
        study = replace(_Study.of(ledger, environment), chosen=chosen, stop=stop)
        retries, progress = options.get("retries") or Retries(), options.get("progress")
        runner = _Runner(study, ledger, adapter, retries, caps, concurrency, progress)
        runner.retry_errors = options.get("retry_errors", False)
        if batching is not None or ledger.open_batches():
            runner.in_rounds(batching)
        return await runner.run(folder is not None)


def _configuration(
    adapter: Adapter,
    environment: Environment,
    sampling: Sampling,
    seed: int,
    address: Sequence[int],
    re_ask: int,
) -> dict[str, Any]:
    """Return what makes a run what it is, JSON-able."""
    return {
        "environment": environment.name,
        "settings": environment.settings,
        "provider": adapter.provider,
        "model": adapter.model,
        "base_url": _public(adapter.base_url),
        "sampling": given(sampling),
        "session_seed": "seed" in adapter.heeds,
        "seed": seed,
        "address": list(address),
        "re_ask": re_ask,
    }


async def run_session(
    adapter: Adapter,
    environment: Environment,
    seed: int,
    *address: int,
    settings: Sampling | None = None,
    retries: Retries | None = None,
) -> Trials:
    """Let a language model live the session at this address of a study; nothing is left on disk.

    It is the session of `session_stream(seed, *address)`, as for simulated agents, and the subject
    is named by the address's last part, which is also sent as the sampling seed. A trial without
    a readable answer is used up and keeps its outcome; nothing is filled in. For models that cost
    something there is `run_sessions_in`.

    Raises
    ------
    ValueError
        If the address has no part, or the settings have a seed.
    Failed
        If the whole run is in vain: no key, no such model, a setting that is not heeded, or a
        model that changed on the way. Other failures are trials with the outcome "error".
    """
    if not address:
        raise ValueError("A session has an address of one part or more; got none. Give its number.")
    *before, number = address
    sampling = settings or Sampling()
    check_heeds(adapter, session_settings(adapter, sampling, number), images=environment.pictures)
    configuration = _configuration(adapter, environment, sampling, seed, before, 0)
    keys = known_keys(key_variable_of(adapter))
    with Ledger.open(None, configuration, number + 1, keys=keys) as ledger:
        study = _Study.of(ledger, environment)
        patient = retries or Retries(attempts=3, identical=10**9, unanswered=10**9)
        runner = _Runner(study, ledger, adapter, patient, Caps(), 1, None)
        session = await study.live(_PaidChair(runner, number))
    if runner.failure is not None:
        raise runner.failure
    return record(session.rows, environment, sampling)


def _check_sessions(n: int, concurrency: int, re_ask: int) -> None:
    """Check that there are sessions to run, and not more than one ledger takes."""
    if n < 1 or concurrency < 1 or re_ask < 0:
        raise ValueError(
            "Sessions and concurrency are at least 1, re_ask at least 0; "
            f"got {n}, {concurrency} and {re_ask}."
        )
    if n > MOST_SESSIONS:
        raise ValueError(
            f"A run has at most {MOST_SESSIONS:,} sessions; got {n:,}. Divide them among several."
        )


def read_run(folder: str | os.PathLike[str], environment: Environment | None = None) -> Run:
    """Read a run from its ledger alone: the trials, what became of them, and what they cost.

    Nothing is asked and nothing is written; the run may still be under way.

    Parameters
    ----------
    environment
        The experiment; needed only if it is none of the library's.

    Raises
    ------
    ValueError
        If the folder holds no ledger, or one of a newer format.
    """
    with Ledger.read(folder) as ledger:
        kept = ledger.configuration
        study = _Study.of(ledger, environment or make(kept["environment"], **kept["settings"]))
        chairs = [_Chair(study, ledger, i) for i in range(asked_for(study.n, ledger))]
        sessions = [without_waiting(study.live(chair)) for chair in chairs]
        return _summary(study, ledger, sessions)


@dataclass(frozen=True)
class _Study:
    """What is played, and who is asked: all that a ledger knows about its run."""

    environment: Environment
    n: int
    seed: int
    address: tuple[int, ...]
    provider: str
    model: str
    base_url: str
    sampling: Sampling
    session_seed: bool
    re_ask: int
    kept: Mapping[str, Any]
    chosen: Chosen | None = None
    stop: Stops | None = None

    @classmethod
    def of(cls, ledger: Ledger, environment: Environment) -> _Study:
        kept = ledger.configuration
        return cls(
            environment,
            ledger.sessions,
            kept["seed"],
            tuple(kept["address"]),
            kept["provider"],
            kept["model"],
            kept["base_url"],
            Sampling(**kept["sampling"]),
            kept["session_seed"],
            kept["re_ask"],
            kept,
        )

    def settings(self, session: int) -> Sampling:
        sampling = replace(self.sampling, system=None)  # which stands in the prompt
        return replace(sampling, seed=session) if self.session_seed else sampling

    @property
    def questions(self) -> int | None:
        """How many questions are chosen in a session; None where all are asked in order."""
        return self.kept["chosen"]["questions"] if "chosen" in self.kept else None

    @property
    def n_prompts(self) -> int:
        """How many questions a session asks at most."""
        return self.questions or self.environment.replies.n_prompts

    def live(self, chair: _Chair) -> Coroutine[Any, Any, LivedSession]:
        address, system = (*self.address, chair.session), self.sampling.system
        ask, opened = chair.ask, chair.opened
        return live(self.environment, self.seed, address, self.model, ask, system, opened)


class _Chair:
    """One session's participant, as far as the ledger has its answers."""

    def __init__(self, study: _Study, ledger: Ledger, session: int):
        self.study, self.ledger, self.session = study, ledger, session
        self.settings = study.settings(session)
        self.asked = asked_of(study.kept, self.settings)
        self.questions = ledger.questions(session)
        self.reason = ""
        self.picks = ledger.choices_of(session) if study.questions else {}

    def opened(self, environment: Environment, design: Design) -> Session:
        """Begin the session; where questions are chosen, with those that were."""
        if self.study.questions is None:
            return Session(environment, design)
        known = {turn: Picked(*choice) for turn, choice in self.picks.items()}
        fresh = self.picks_anew(environment, design)

        def pick(rows: Sequence[Mapping[str, Any]]) -> Picked | None:
            return known.get(len(rows)) or fresh(rows)

        return ChosenSession(environment, design, self.study.questions, pick)

    def picks_anew(self, environment: Environment, design: Design) -> Pick:
        """Return what picks questions that were not picked before: here, nothing does."""
        return lambda rows: None

    async def ask(self, turn: int, prompt: Prompt, judge: Judge) -> Asked | None:
        """Return what came of a question; see `participant.live`."""
        every = self.of_this_wording(turn, request_hash(self.asked, prompt))
        best: Asked | None = None
        attempts, cost = 0, None
        for slot in range(self.study.re_ask + 1):
            tries = [attempt for attempt in every if attempt.slot == slot]
            last = tries[-1] if tries else None
            ended = last is not None and (last.reply is not None or last.final)
            if not ended or (last and last.final and self.asks_again(turn, slot)):
                last = await self.answer(_Question(turn, slot, tries, prompt))
            if last is None:
                return None
            attempts += sum(attempt.state not in ("inflight", "unknown") for attempt in tries)
            if last.reply is None:
                # A malformed answer is kept if asking again brought none.
                error = Asked(Answer(Outcome.ERROR, note=last.note), None, attempts)
                return replace(best, attempt=attempts) if best else error
            if self.changed(last.reply):
                return None
            answer = judge(last.reply)
            if not last.outcome:
                self.note(last, answer)
            if self.ledger.price is not None:
                cost = (cost or 0) + last.used(self.ledger.price).money
            best = Asked(answer, last.reply, attempts, cost)
            if answer.outcome is not Outcome.MALFORMED:
                break
        return best

    def of_this_wording(self, turn: int, request: str) -> list[Attempt]:
        """Return what was sent for a question; ValueError if it was another question.

        Where a question has no answer and one before it was answered late, its words are not those
        of today: it told of a trial that had no answer. It is left aside, and counted.
        """
        every = self.questions.setdefault(turn, [])
        others = [attempt for attempt in every if attempt.request != request]
        late = any(
            len(tries) > 1 and any(one.state == "ok" for one in tries)
            for before, tries in self.questions.items()
            if before < turn
        )
        if others and (not late or any(one.state == "ok" for one in others)):
            raise ValueError(
                f"The ledger in {self.ledger.folder} has another question on trial {turn} of "
                f"session {self.session} than is asked now: the wording or the parsing has "
                "changed. Go on with the version and templates it was begun with."
            )
        return [attempt for attempt in every if attempt.request == request]

    def asks_again(self, turn: int, slot: int) -> bool:
        """Say whether a question is put again that had no answer."""
        return False

    def changed(self, reply: Reply) -> bool:
        """Say whether another model has answered than before."""
        before = self.ledger.model_served
        try:
            check_served(self.study.model, before, reply.model_served or before)
        except Failed as error:
            self.in_vain(error)
            return True
        return False

    def in_vain(self, error: Failed) -> None:
        """Note why the session stops here."""
        self.reason = str(error)

    def note(self, attempt: Attempt, answer: Answer) -> None:
        """Note what became of an answer."""

    async def answer(self, question: _Question) -> Attempt | None:
        """Ask what the ledger does not answer; None if the session stops here."""
        return None


@dataclass(frozen=True)
class _Question:
    """A question of a session, what was sent for it, and how often it was put again before."""

    turn: int
    slot: int
    tries: list[Attempt]
    prompt: Prompt


class _AskingChair(_Chair):
    """One session's participant, who may be asked."""

    def __init__(self, runner: _Runner, session: int):
        super().__init__(runner.study, runner.ledger, session)
        self.runner = runner

    def asks_again(self, turn: int, slot: int) -> bool:
        """Say whether a question is put again that had no answer."""
        return self.runner.retry_errors and slot == 0

    def waiting(self, question: _Question) -> Waiting:
        """Return a question as it goes into a batch."""
        request = request_of(self.asked, question.prompt)
        attempt = self.attempt(question, request)
        return Waiting(attempt, request, question.prompt, self.settings)

    def attempt(self, question: _Question, request: Request) -> Attempt:
        """Return a further attempt of a question, which is yet to be sent."""
        key = (self.session, question.turn, len(self.questions[question.turn]))
        received = self.settings.max_tokens or self.runner.answer_tokens
        most = _most_sent(question.prompt), received
        attempt = Attempt(key, question.slot, request.hash, "inflight", *most)
        question.tries.append(attempt)
        self.questions[question.turn].append(attempt)
        return attempt


class _Scout(_AskingChair):
    """Goes through a session whose trials stand alone, and takes down what is to be asked."""

    def __init__(self, runner: _Runner, session: int):
        super().__init__(runner, session)
        self.found: list[Waiting] = []

    async def answer(self, question: _Question) -> Attempt | None:
        """Take down a question; what comes next does not hang on its answer."""
        if not (question.tries and question.tries[-1].unread):
            self.found.append(self.waiting(question))
        return replace(question.tries[-1], final=True)


class _PaidChair(_AskingChair):
    """One session's participant, asked when the ledger has no answer."""

    def __init__(self, runner: _Runner, session: int):
        super().__init__(runner, session)
        answered = [t for t, tries in self.questions.items() if any(a.state == "ok" for a in tries)]
        self.answered = max(answered, default=-1)  # the last turn with an answer
        self.pauses = session_stream(self.study.seed, *self.study.address, session, _PAUSES)

    def picks_anew(self, environment: Environment, design: Design) -> Pick:
        """Return what picks further questions, and writes each down."""
        assert self.study.chosen is not None
        choose = self.study.chosen(environment, design)

        def pick(rows: Sequence[Mapping[str, Any]]) -> Picked | None:
            picked = choose(rows)
            if picked is not None:
                self.ledger.chose(self.session, len(rows), picked.position, picked.information)
            return picked

        return pick

    def asks_again(self, turn: int, slot: int) -> bool:
        """Say whether a question is put again that had no answer."""
        alone = self.study.environment.replies.stand_alone or turn > self.answered
        return super().asks_again(turn, slot) and alone

    async def ask(self, turn: int, prompt: Prompt, judge: Judge) -> Asked | None:
        """Ask, and tell whoever watches."""
        runner = self.runner
        before = runner.gate.sessions.get(self.session, Spent()).calls
        outcome = await super().ask(turn, prompt, judge)
        further = runner.study.environment.replies.further
        if outcome is not None and further(prompt, outcome.answer) is None:
            runner.trials += 1
            runner.missing += outcome.answer.outcome not in (Outcome.OK, Outcome.REPAIRED)
        if runner.gate.sessions.get(self.session, Spent()).calls != before:
            runner.tell()
        return outcome

    def note(self, attempt: Attempt, answer: Answer) -> None:
        """Note what became of an answer, in the ledger."""
        self.ledger.judged(attempt, answer.outcome.value, answer.note)

    def in_vain(self, error: Failed) -> None:
        """Stop the run."""
        super().in_vain(error)
        self.runner.fail(error)

    async def answer(self, question: _Question) -> Attempt | None:
        """Ask until there is an answer, or none is to be had."""
        runner = self.runner
        last = question.tries[-1] if question.tries else None
        if last is not None and last.unread and last.body is not None:
            most = last.used(runner.price)  # it came in an earlier start, and counts in full
            runner.settle(last, last.body, self.settings)
            runner.gate.reserved.add(most)
            runner.gate.settle(self.session, most, last.used(runner.price))
            reason = runner.gate.stopped
        elif runner.rounds is not None and runner.in_batches:
            waiting = self.waiting(question)
            last, reason = waiting.attempt, await runner.rounds.ask(waiting)
        else:
            last, reason = await self._call(question)
        if last.reply is not None or last.final:
            return last
        self.reason = reason
        return None

    async def _call(self, question: _Question) -> tuple[Attempt, str]:
        """Call until there is an answer, or none is to be had; return why there is none."""
        runner, gate = self.runner, self.runner.gate
        request = request_of(self.asked, question.prompt)
        failures: Counter[str] = Counter()
        while True:
            attempt = self.attempt(question, request)
            if reason := await gate.enter(self.session, attempt.used(runner.price)):
                return attempt, reason
            error = await self._send(attempt, request, question.prompt, failures)
            if error is None:
                runner.repeated = runner.unanswered = 0
                gate.went_well()
            if error is None or attempt.final or gate.stopped:
                return attempt, gate.stopped
            runner.tell()
            await gate.pause(self._pause(failures.total(), error.wait))

    async def _send(
        self, attempt: Attempt, request: Request, prompt: Prompt, failures: Counter[str]
    ) -> Failed | None:
        """Send a request once; the ledger is written before it leaves and before it is read."""
        runner, ledger, gate = self.runner, self.runner.ledger, self.runner.gate
        most, failure, entered = attempt.used(runner.price), None, gate.now()
        body = runner.adapter.request(prompt, self.settings)
        try:
            ledger.sent([(attempt, request)])
            try:
                came = ledger.came(attempt, await runner.adapter.send(body))
                await asyncio.sleep(0)  # others write down theirs before anyone goes on
                ledger.was_read(attempt, runner.adapter.read(came, self.settings))
            except Failed as error:
                failure = error
                failures["often" if error.kind == "often" else "others"] += 1
                if error.kind in _OVERLOADED:
                    gate.slow_down(entered, min(error.wait or 0.0, runner.retries.longest_wait))
                ledger.failed(attempt, error, final=self._gives_up(error, failures))
        finally:
            gate.leave(self.session, most, attempt.used(runner.price))
        return failure

    def _gives_up(self, error: Failed, failures: Counter[str]) -> bool:
        """Say whether a question stays without an answer; or stop the run, or neither."""
        runner, gate, retries = self.runner, self.runner.gate, self.runner.retries
        over = failures["others"] >= retries.attempts or failures["often"] >= retries.rate_limited
        if error.then == "stop":
            self.in_vain(error)
        elif error.wait is not None and error.wait > retries.longest_wait:
            gate.stop(f"the provider asks to wait for {error.wait:g} seconds")
        elif error.then == "retry" and not over:
            pass
        elif error.kind == "connection" and error.charged is False:
            gate.stop(str(error))  # nobody is there: that is no property of the question
        elif n := runner.gives_out(error):
            gate.stop(f"{n} {SILENT}: {error}")
        else:
            return True
        return False

    def _pause(self, failed: int, wait: float | None) -> float:
        """Return how long to wait after so many failures; a random part spreads the sessions."""
        retries, spread = self.runner.retries, 0.5 + self.pauses.random()
        if wait is not None:
            return wait + retries.pause * spread
        return min(retries.pause * 2.0 ** (failed - 1), retries.longest_pause) * spread


class _Runner:
    """A run under way."""

    def __init__(
        self,
        study: _Study,
        ledger: Ledger,
        adapter: Adapter,
        retries: Retries,
        caps: Caps,
        concurrency: int,
        progress: Callable[[Progress], None] | None,
    ):
        self.study, self.ledger, self.adapter = study, ledger, adapter
        self.retries, self.price, self.progress = retries, ledger.price, progress
        self.gate = Gate(concurrency, caps, ledger.spent())
        self.answer_tokens = study.sampling.max_tokens or caps.answer_tokens or ASSUMED_ANSWER
        self.failure: Failed | None = None
        self.rounds: Rounds | None = None
        self.in_batches = False
        self.sessions = self.trials = self.missing = 0
        self.expected = 0  # trials
        self.retry_errors = False
        # questions in a row without an answer, of the same kind and of any
        self.repeated = self.unanswered = 0
        self._trouble = ""

    def in_rounds(self, batching: Batching | None) -> None:
        """Have questions answered in batches; None if only those that are under way are read."""
        self.in_batches = batching is not None
        self.rounds = Rounds(
            batches_of(self.adapter),
            self.adapter,
            self.ledger,
            self.gate,
            batching or Batching(),
            self.settle,
            self.fail,
            self.tell,
        )

    def fail(self, error: Failed) -> None:
        """Stop the run, which is in vain."""
        self.failure = self.failure or error
        self.gate.stop(str(error))

    def settle(self, attempt: Attempt, came: bytes | Failed, settings: Sampling) -> None:
        """Write down what came of a request, and read it."""
        try:
            if isinstance(came, Failed):
                raise came
            body = self.ledger.came(attempt, came)
            self.ledger.was_read(attempt, self.adapter.read(body, settings))
        except Failed as error:
            self.ledger.failed(attempt, error, final=error.then != "stop")
            if error.then == "stop":
                self.fail(error)

    def beforehand(self) -> Iterator[Waiting]:
        """Return the questions whose words hang on no answer, of all sessions."""
        if self.in_batches and self.study.environment.replies.stand_alone:
            for i in range(self.study.n):
                scout = _Scout(self, i)
                without_waiting(self.study.live(scout))
                yield from scout.found

    async def run(self, save: bool) -> Run:
        """Live all sessions as far as may be; see `run_sessions_in`."""
        study, gate = self.study, self.gate
        self.expected = study.n * study.n_prompts  # fewer if some fall away
        sessions = [LivedSession([], False)] * study.n
        reasons: dict[int, str] = {}
        broken: BaseException | None = None
        interruption: asyncio.CancelledError | None = None
        begun = 0
        for until in study.stop.looks if study.stop else (study.n,):
            numbers = range(begun, until)
            broken, interruption = await self.live_through(numbers, sessions, reasons)
            begun = until
            whole = all(session.over for session in sessions[:until])
            if broken or interruption or gate.stopped or not whole:
                break
            if study.stop and self.stops(study.stop, sessions[:until]):
                break
        if isinstance(broken, LedgerFailed):
            raise broken
        self.ledger.end(gate.stopped, reasons)
        run = _summary(study, self.ledger, sessions[: asked_for(study.n, self.ledger)])
        if save and run.trials is not None:
            run.trials.save(run.folder / TRIALS)
        self.tell()
        for trouble in (broken, interruption, self.failure):
            if trouble is not None:
                raise trouble
        return run

    def stops(self, rule: Stops, sessions: Sequence[LivedSession]) -> bool:
        """Look at so many sessions, or at what an earlier look has shown; say whether to stop."""
        known = self.ledger.looks().get(len(sessions))
        if known is None:
            study = self.study
            rows = [row for session in sessions for row in session.rows]
            trials = record(rows, study.environment, study.sampling)
            known = dict(rule(trials, rule.looks.index(len(sessions))))
            self.ledger.looked(len(sessions), known)
        return bool(known["stop"])

    async def live_through(
        self, sessions: range, played: list[LivedSession], reasons: dict[int, str]
    ) -> tuple[BaseException | None, asyncio.CancelledError | None]:
        """Live these sessions as far as may be; return what broke, and what interrupted."""
        study, gate = self.study, self.gate
        numbers = iter(sessions)

        async def work() -> None:
            if self.rounds is not None:
                await self.rounds.opened.wait()
            for i in numbers:
                chair = _PaidChair(self, i)
                played[i] = await study.live(chair)
                if played[i].over:
                    self.sessions += 1
                    replies = study.environment.replies
                    n_asked = sum(not replies.continues(row) for row in played[i].rows)
                    self.expected -= study.n_prompts - n_asked
                elif chair.reason != gate.stopped:
                    reasons[i] = chair.reason
                await asyncio.sleep(0)  # a stored session never waits, and others want their turn
            if self.rounds is not None:
                self.rounds.leave()

        at_once = len(sessions) if self.in_batches else min(gate.concurrency, len(sessions))
        workers = [asyncio.create_task(work()) for _ in range(at_once)]
        if self.rounds is not None:
            self.rounds.sessions = at_once
            workers.append(asyncio.create_task(self.rounds.work(self.beforehand)))
        interruption: asyncio.CancelledError | None = None
        try:
            try:
                await asyncio.wait(workers, return_when=asyncio.FIRST_EXCEPTION)
            except asyncio.CancelledError as error:
                interruption = error
                gate.stop("interrupted")
            broken = next((e for w in workers if w.done() and (e := w.exception())), None)
            if broken is not None:
                gate.stop(f"{type(broken).__name__}: {broken}")
            await asyncio.wait(workers)  # what is under way comes to its end
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
        return broken, interruption

    def gives_out(self, error: Failed) -> int:
        """Return how many questions in a row have had no answer, if it is too many; otherwise 0."""
        self.repeated = self.repeated + 1 if error.kind == self._trouble else 1
        self.unanswered += 1
        self._trouble = error.kind
        if self.repeated >= self.retries.identical:
            return self.repeated
        return self.unanswered if self.unanswered >= self.retries.unanswered else 0

    def tell(self) -> None:
        """Tell whoever watches where the run stands."""
        if self.progress is None:
            return
        gate, study = self.gate, self.study
        known = self.price is not None
        self.progress(
            Progress(
                self.sessions,
                study.n,
                self.trials,
                self.expected,
                self.missing,
                gate.total.calls,
                gate.total.tokens,
                Decimal(gate.total.money - gate.reserved.money) / NANO if known else None,
                Decimal(gate.reserved.money) / NANO if known else None,
                gate.under_way,
                gate.allowed,
                self.rounds.sent if self.rounds else 0,
                self.rounds.done if self.rounds else 0,
            )
        )


class Questions:
    """Single questions to one model, with a ledger in a folder; nobody lives a session.

    What was answered in an earlier start is not asked again: the k-th time that a question is
    asked brings the k-th answer to it. Caps hold over all starts.

    Parameters
    ----------
    caps, price
        As in `RunOptions`.

    Raises
    ------
    ValueError
        If the folder holds another run, or is in use.
    """

    def __init__(
        self, folder: str | os.PathLike[str], adapter: Adapter, caps: Caps, price: Price | None
    ):
        self.caps = caps
        self.ledger = Ledger.open(
            folder,
            {
                "provider": adapter.provider,
                "model": adapter.model,
                "base_url": _public(adapter.base_url),
                "sampling": {},
                "session_seed": False,
                "seed": 0,
                "address": [],
                "re_ask": 0,
            },
            1,
            price=price,
            keys=known_keys(key_variable_of(adapter)),
        )
        no_experiment: Any = None
        study = _Study.of(self.ledger, no_experiment)
        self.runner = _Runner(study, self.ledger, adapter, Retries(), caps, 8, None)
        self._times: Counter[str] = Counter()

    async def ask(self, prompt: Prompt, settings: Sampling) -> Reply:
        """Return the reply to a question; `Failed` if there is none.

        Raises
        ------
        ValueError
            If a cap cannot be kept: no price, or an answer that nothing bounds.
        """
        adapter = self.runner.adapter
        check_caps(self.caps, settings, self.ledger.price, f"{adapter.provider}:{adapter.model}")
        check_heeds(adapter, settings, images=bool(prompt.images))
        chair = _QuestionChair(self.runner, prompt, settings)
        turn = self._times[chair.request]
        self._times[chair.request] += 1
        outcome = await _Chair.ask(chair, turn, prompt, lambda reply: Answer(Outcome.OK))
        if outcome is not None and outcome.reply is not None:
            return outcome.reply
        if outcome is not None:
            raise Failed(outcome.answer.note, "skip")
        raise self.runner.failure or Failed(chair.reason, "stop")

    async def close(self) -> None:
        """Give back connections and ledger."""
        self.ledger.end(self.runner.gate.stopped, {})
        self.ledger.close()
        await self.runner.adapter.close()


class _QuestionChair(_PaidChair):
    """Whoever answers one question; its hash stands for the number of the session."""

    def __init__(self, runner: _Runner, prompt: Prompt, settings: Sampling):
        who = asked_of(runner.study.kept, settings)
        self.request = request_hash(who, prompt)
        super().__init__(runner, int(self.request[:_HEX_DIGITS], 16))
        self.settings, self.asked = settings, who

    def asks_again(self, turn: int, slot: int) -> bool:
        """Say yes: a question that had no answer is put again by every start."""
        return True


def _summary(study: _Study, ledger: Ledger, sessions: Sequence[LivedSession]) -> Run:
    """Put together what the ledger and the sessions tell."""
    rows = [row for session in sessions for row in session.rows]
    starts = ledger.starts()
    last = starts[-1]
    stopped = last.reason
    if last.ended is None:
        stopped = "the run is still under way, or its process has died"
    unfinished = tuple(
        Unfinished(i, len(session.rows), last.sessions.get(i, stopped))
        for i, session in enumerate(sessions)
        if not session.over
    )
    return Run(
        ledger.folder,
        study.environment.name,
        f"{study.provider}:{study.model}",
        study.base_url,
        ledger.model_served,
        len(sessions),
        record(rows, study.environment, study.sampling) if rows else None,
        unfinished,
        stopped if unfinished else "",
        tuple(starts),
        ledger.account(),
        ledger.price,
        ledger.priced_from,
        study.kept,
        tuple(ledger.looks().values()),
    )


def check_caps(caps: Caps, sampling: Sampling, price: Price | None, llm: str) -> None:
    """Raise ValueError if caps cannot be kept: no price, or answers that nothing bounds."""
    if caps.on_money and price is None:
        raise ValueError(
            f"A cap on money needs a price, and none is known for {llm}. {REMEDY.format(llm=llm)}"
        )
    if caps.on_use and sampling.max_tokens is None and caps.answer_tokens is None:
        raise ValueError(
            "Under a cap on tokens or money an answer must be bounded; got no max_tokens. Set it, "
            "or say with answer_tokens how many tokens an answer can have."
        )


def asked_for(n: int, ledger: Ledger) -> int:
    """Return how many sessions a run is to live: n, or where its rule has stopped it."""
    ends = (sessions for sessions, look in ledger.looks().items() if look["stop"])
    return min((n, *ends))


def check_looks(stop: Stops, n: int, batching: Batching | None) -> None:
    """Raise ValueError if a rule's last look is not at the end, or it could not stop anything."""
    if batching is not None:
        raise ValueError(
            "A stopping rule looks before further sessions are asked, and batches ask all "
            "together. Leave --batch out."
        )
    if stop.looks[-1] != n:
        raise ValueError(
            f"A stopping rule looks last at the end of a run, after {stop.looks[-1]} sessions; "
            f"got {n}. Ask for as many (--sessions), or leave the number out."
        )


def check_chosen(chosen: Chosen, environment: Environment, batching: Batching | None) -> None:
    """Raise ValueError if questions cannot be chosen by the answers before them."""
    chosen.check(environment)
    if batching is not None:
        raise ValueError(
            "A batch is asked together, and which question comes next hangs on the answers before "
            "it. Leave --batch out."
        )


def price_in(folder: str | os.PathLike[str] | None) -> Price | None:
    """Return the price that a folder's run is reckoned with; None if there is none as yet."""
    if folder is None:
        return None
    try:
        with Ledger.read(folder) as ledger:
            return ledger.price
    except ValueError:  # none there yet; or none that can be opened, which is said when it is
        return None


def _most_sent(prompt: Prompt) -> int:
    """Return the input tokens that a prompt cannot exceed."""
    texts = [message.content for message in prompt.messages]
    return most_tokens_of(texts, [len(image) for image in prompt.images])


def _public(address: str) -> str:
    """Return an address without what may be secret in it."""
    parts = urlsplit(address)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], query=""))


def without_waiting(coroutine: Coroutine[Any, Any, LivedSession]) -> LivedSession:
    """Run what never waits, also where an event loop is already running."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        session: LivedSession = end.value
        return session
    raise AssertionError("A ledger answers at once.")
