"""Many sessions at once against one provider, with a ledger: nothing lost, nothing paid twice."""

from __future__ import annotations

import asyncio
import os
import warnings
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from decimal import Decimal
from typing import Any, Protocol
from urllib.parse import urlsplit, urlunsplit

from knownminds.calling import MOST_TOKENS, Calling, Caps, InBatches, Sampling, check_least
from knownminds.environments import (
    Answer,
    ChosenSession,
    Design,
    Environment,
    Outcome,
    PickedQuestion,
    Prompt,
    Session,
    Trials,
    controlled,
    make,
    session_stream,
)
from knownminds.environments.session import Pick
from knownminds.llm_adapters.adapter import Adapter, Failed, Reply, check_heeds, given
from knownminds.llm_adapters.batches import batches_of
from knownminds.llm_adapters.masking import known_keys
from knownminds.llm_adapters.providers.http import complaint

from .admission import NOT_SENT, SILENT, Admission, Batching
from .batch_queue import BatchQueue
from .ledger import OPEN, SENT_ANEW, Attempt, Ledger, LedgerFile, asked_of, price_in, request_hash
from .participant import (
    Asked,
    Judge,
    check_prefix,
    check_served,
    live,
    record,
    session_settings,
    settings_of,
)
from .prices import NANO, REMEDY, Price, most_tokens_of
from .run_result import ASSUMED_ANSWER, Run

TRIALS = "trials.parquet"
MOST_SESSIONS = 1_000_000

_OVERLOADED = ("often", "server 503", "server 529")  # kinds of a provider that has too much to do
_BROKEN = 2  # how often an answer that breaks off is asked for: each may have been paid
_LONGEST_PAUSE = 60.0  # seconds that the doubling of pauses ends at
_LONGEST_WAIT = 600.0  # seconds that a provider may ask to wait; if it asks for more, the run stops
_DENSEST = 8  # bytes for each token of words that a prompt has more; English has 4 to 5
_HEX_DIGITS = 15  # of a question's hash that are its number: 60 bits
_PAUSES = 2**32 - 2  # last part of the address of the stream that spreads the pauses


@dataclass(frozen=True)
class Retries:
    """When a call is tried again that fails in a way that may pass, and when a run gives up.

    Parameters
    ----------
    rate_limited : how often, at most, a provider may answer that it is called too often (429)
    pause : seconds before the second attempt; doubled before each further one up to a minute, and
        spread over 0.5 to 1.5 of that
    identical : how many questions in a row may remain without an answer for the same kind of
        reason (`Failed.kind`); the last of them stops the run and is sent again when it is
        resumed; where no connection can be made, the first does
    unanswered : how many may for whatever reasons
    """

    rate_limited: int = 20
    pause: float = 0.5
    identical: int = 3
    unanswered: int = 10

    def __post_init__(self) -> None:
        check_least(self, 1, "rate_limited", "identical", "unanswered")
        check_least(self, 0, "pause")


@dataclass(frozen=True)
class Progress:
    """Where a run stands, after every call.

    Parameters
    ----------
    sessions : sessions played to the end
    trials, n_trials : trials played, of how many (at most, where some may fall away); those that
        one reply answers count once
    missing : trials among them without a readable answer
    calls : requests sent, in all starts of all runs of the ledger
    dollars : spent by them, counting what may have been paid; None if no price is known
    under_way, allowed : calls under way, and how many may be
    submitted, done : requests sent in batches, and how many of them have come to an end as far as
        the provider says
    """

    sessions: int
    trials: int
    n_trials: int
    missing: int
    calls: int
    dollars: Decimal | None
    under_way: int
    allowed: int
    submitted: int = 0
    done: int = 0


class QuestionChooser(Protocol):
    """What chooses the questions of sessions, see `knownminds.inference.ChosenQuestions`."""

    @property
    def questions(self) -> int:
        """How many questions a session has."""

    def check(self, environment: Environment) -> None:
        """Raise ValueError if the questions of an experiment cannot be chosen."""

    def as_dict(self) -> dict[str, Any]:
        """Return what makes the choice what it is, JSON-able."""

    def __call__(self, environment: Environment, design: Design) -> Pick:
        """Return what picks the questions of the session with this design."""


class StopsRuns(Protocol):
    """What may stop a run after some of its sessions, see `Analysis` of `knownminds.inference`."""

    @property
    def looks(self) -> tuple[int, ...]:
        """After how many sessions it looks, rising; the last is how many there are at most."""

    def as_dict(self) -> dict[str, Any]:
        """Return what makes the rule what it is, JSON-able."""

    def __call__(self, trials: Trials, look: int) -> Mapping[str, Any]:
        """Return what the trials of so many sessions show; "stop" says whether to stop."""


@dataclass(frozen=True, kw_only=True)
class RunOptions(Calling, InBatches):
    """How sessions are run: how a model is called, and what a run has besides.

    Parameters
    ----------
    settings : Sampling settings but the seed, which is the number of the session.
    retries : How calls that fail are made again.
    batching : How batches are waited for. Requests that fail, or that a batch leaves unanswered,
        are trials with the outcome "error". Batches that an earlier start has left are read in any
        case.
    price : What the model costs, if known; kept with the ledger once there is one, later ones are
        not looked at. Calls before it are reckoned with it.
    chosen : What chooses the questions of a session by the answers so far; None to ask all in
        order. Each choice is written down with its question, and a run that goes on asks what was
        chosen.
    stop : What looks after some sessions and may stop the run there. Sessions beyond a look begin
        when it has been written down. A run that goes on looks no second time. The number of
        sessions is that of its last look.
    progress : Called after every call.
    participant : What the model is called with its settings, where this is not the model's name.
    command : The command line of the run, for the record.
    """

    settings: Sampling = field(default_factory=Sampling)
    retries: Retries = field(default_factory=Retries)
    batching: Batching = field(default_factory=Batching)
    price: Price | None = None
    chosen: QuestionChooser | None = None
    stop: StopsRuns | None = None
    progress: Callable[[Progress], None] | None = None
    participant: str = ""
    command: str = ""

    def __post_init__(self) -> None:
        Calling.__post_init__(self)
        InBatches.__post_init__(self)


async def run_sessions_in(
    folder: str | os.PathLike[str] | None,
    adapter: Adapter,
    environment: Environment,
    n: int,
    seed: int,
    *,
    address: Sequence[int] = (),
    within: LedgerFile | str | os.PathLike[str] | None = None,
    how: RunOptions | None = None,
) -> Run:
    """Let a language model play n sessions, with a ledger in the folder.

    Session i has the address (*address, i). If the folder holds a ledger of the same run already,
    the run goes on. The sessions are played again with the stored answers, and nothing that is
    answered is sent again. Requests that were under way when the process died count as paid and are
    sent once more. The trials are left in the folder as trials.parquet, also if the run stops
    early. Without a folder nothing is left on disk.

    A cap, a failure that repeats, or an interruption (Ctrl-C, a cancelled task) stops the run. No
    further request is sent; what is under way is waited for and stored. A second Ctrl-C does not
    wait.

    Parameters
    ----------
    within : A folder above, or its open ledger, that has the ledger of several runs; the caps hold
        for all of them together. None if the run has one for itself.
    how : Settings, caps, batches, what chooses and what stops; None for the defaults.

    Raises
    ------
    ValueError : If the settings contradict each other, or the folder holds another run, or is in
        use.
    Failed : If the run is in vain: no key, no such model, a setting that is not heeded, or a model
        that changed on the way. What was paid for stays in the ledger.
    """
    how = how or RunOptions()
    chosen, stop = how.chosen, how.stop
    check_run(adapter, environment, n, how)
    price, name = price_in(folder) or how.price, f"{adapter.provider}:{adapter.model}"
    check_caps(how.caps, how.settings, price, name)
    configuration = _configuration(
        adapter, environment, how.settings, seed, address, how.re_ask, not how.no_seed
    )
    configuration |= {"participant": how.participant} if how.participant else {}
    configuration |= {"chosen": chosen.as_dict()} if chosen is not None else {}
    configuration |= {"stop": stop.as_dict()} if stop is not None else {}
    with Ledger.open(
        folder,
        configuration,
        n,
        within=within,
        price=how.price,
        caps={k: str(v) for k, v in asdict(how.caps).items() if v is not None},
        keys=known_keys(getattr(adapter, "key_variable", None)),
        durable=how.durable,
        command=how.command,
    ) as ledger:
        return await _Runner(ledger, environment, adapter, how).run(folder is not None)


def _configuration(
    adapter: Adapter,
    environment: Environment | None = None,
    sampling: Sampling | None = None,
    seed: int = 0,
    address: Sequence[int] = (),
    re_ask: int = 0,
    seeded: bool = True,
) -> dict[str, Any]:
    """Return what makes a run what it is, JSON-able."""
    parts = urlsplit(adapter.base_url)
    public = parts._replace(netloc=parts.netloc.rpartition("@")[2], query="")
    played: dict[str, Any] = {}
    if environment is not None:
        played = {"environment": environment.name, "settings": environment.settings}
        changed_by = environment.changed_by
        played |= {"changed_by": changed_by} if changed_by else {}
    return {
        **played,
        "provider": adapter.provider,
        "model": adapter.model,
        "base_url": urlunsplit(public),
        "sampling": given(sampling or Sampling()),
        "session_seed": seeded and environment is not None and "seed" in adapter.heeds,
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
    """Let a language model play the session at this address of a study; nothing is left on disk.

    It is the session of `session_stream(seed, *address)`, as for simulated agents. The address's
    last part names the subject, and is sent as the sampling seed. A trial without a readable answer
    is used up and keeps its outcome; nothing is filled in. For models that cost something there is
    `run_sessions_in`.

    Raises
    ------
    ValueError : If the address has no part, or the settings have a seed.
    Failed : If the whole run is in vain: no key, no such model, a setting that is not heeded, or a
        model that changed on the way. Other failures are trials with the outcome "error".
    """
    if not address:
        raise ValueError("A session has an address of one part or more; got none. Give its number.")
    *before, number = address
    sampling = settings or Sampling()
    of_session = session_settings(sampling, number, "seed" in adapter.heeds)
    check_heeds(adapter, of_session, images=environment.pictures)
    check_prefix(adapter, environment, sampling)
    configuration = _configuration(adapter, environment, sampling, seed, before)
    patient = retries or Retries(identical=10**9, unanswered=10**9)
    how = RunOptions(settings=sampling, concurrency=1, attempts=3, retries=patient)
    keys = known_keys(getattr(adapter, "key_variable", None))
    with Ledger.open(None, configuration, number + 1, keys=keys) as ledger:
        runner = _Runner(ledger, environment, adapter, how)
        session = await _SessionPlayer(runner, number).live()
    if runner.failure is not None:
        raise runner.failure
    return record(session.rows, environment, sampling)


def check_run(adapter: Adapter, environment: Environment, n: int, how: RunOptions) -> None:
    """Raise what would stop a run of n sessions before its first call.

    Raises
    ------
    ValueError : If the options contradict each other or the experiment.
    Failed : If the adapter does not heed a setting, or takes no batches.
    """
    if not 1 <= n <= MOST_SESSIONS:
        raise ValueError(f"A run has 1 to {MOST_SESSIONS} sessions; got sessions={n}.")
    settings = session_settings(how.settings, 0, "seed" in adapter.heeds)
    check_heeds(adapter, settings, images=environment.pictures)
    check_prefix(adapter, environment, how.settings)
    if how.batched:
        batches_of(adapter)
        if not (environment.replies.stand_alone or how.batch_turns):
            raise ValueError(
                f"Trials that stand alone go in one batch; those of {environment.name} with these "
                "settings wait for earlier ones. Say --batch-turns for a batch per trial, with a "
                "request of each session, or leave --batch out."
            )
        if how.chosen is not None or how.stop is not None:
            raise ValueError(
                "Batches put all questions together; which question comes next, and whether a "
                "further session begins, hangs on the answers before it. Leave --batch out."
            )
    if how.chosen is not None:
        how.chosen.check(environment)
    if how.stop is not None and how.stop.looks[-1] != n:
        raise ValueError(
            f"A stopping rule looks last at the end of a run, after {how.stop.looks[-1]} sessions; "
            f"got {n}. Ask for as many (--sessions), or leave the number out."
        )


def read_run(folder: str | os.PathLike[str], environment: Environment | None = None) -> Run:
    """Read a run from its ledger alone: the trials, what became of them, and what they cost.

    No request is sent and nothing is written; the run may still be under way.

    Parameters
    ----------
    environment : The experiment; needed only if it is none of the library's.

    Raises
    ------
    ValueError : If the folder holds no ledger, or one of a newer format.
    """
    with Ledger.read(folder) as ledger:
        kept = ledger.configuration
        runner = _Runner(ledger, environment or environment_of_run(kept))
        players = [_SessionPlayer(runner, number) for number in range(runner.n)]
        return runner.summary([without_waiting(player.live()) for player in players])


def called(configuration: Mapping[str, Any]) -> str:
    """Return what the participant of a run is called, beside its provider."""
    return str(configuration.get("participant") or configuration["model"])


def environment_of_run(configuration: Mapping[str, Any]) -> Environment:
    """Return the experiment of a run, changed by its control if it has one."""
    environment = make(configuration["environment"], **configuration["settings"])
    changed_by = configuration.get("changed_by", "")
    return controlled(environment, changed_by) if changed_by else environment


class _SessionPlayer:
    """The participant of one session: the ledger as far as it has answers, then the model.

    Parameters
    ----------
    runner : Of the run.
    number : Of the session.
    settings : None for those of the session.
    """

    def __init__(self, runner: _Runner, number: int, settings: Sampling | None = None):
        self.runner, self.ledger, self.number = runner, runner.ledger, number
        self.settings = settings or settings_of(runner.kept, number)
        self.who = asked_of(runner.kept, self.settings)
        self.questions = self.ledger.questions(number)
        turns = [t for t, tries in self.questions.items() if any(a.state == "ok" for a in tries)]
        self.answered = max(turns, default=-1)  # the last turn with an answer
        self.fresh: set[int] = set()  # turns whose questions were put in this start
        self.reason = ""
        self.pauses = session_stream(runner.seed, *runner.address, number, _PAUSES)

    async def live(self) -> Session:
        """Play the session as far as answers come."""
        runner = self.runner
        if runner.queue is not None and runner.environment.replies.stand_alone:
            await self._ask_together(runner.queue)
        try:
            return await self._live(self.ask)
        finally:
            runner.counted.pop(self.number, None)

    def _live(self, ask: Any) -> Coroutine[Any, Any, Session]:
        runner = self.runner
        address, said = (*runner.address, self.number), runner.sampling
        model = called(runner.kept)
        return live(
            runner.environment, runner.seed, address, model, ask, said.system, self.opened,
            answer_prefix=said.answer_prefix,
        )  # fmt: skip

    def opened(self, environment: Environment, design: Design) -> Session:
        """Begin the session; where questions are chosen, with those that were."""
        questions, choose = self.runner.questions, self.runner.how.chosen
        if questions is None:
            return Session(environment, design)
        known = {
            t: PickedQuestion(*choice) for t, choice in self.ledger.choices_of(self.number).items()
        }
        fresh = choose(environment, design) if choose is not None else lambda rows: None

        def pick(rows: Sequence[Mapping[str, Any]]) -> PickedQuestion | None:
            picked = known.get(len(rows))
            if picked is None and (picked := fresh(rows)) is not None:
                self.ledger.chose(self.number, len(rows), picked.position, picked.information)
            return picked

        return ChosenSession(environment, design, questions, pick)

    async def _ask_together(self, queue: BatchQueue) -> None:
        """Ask all questions of a session whose words hang on no answer."""
        questions: list[tuple[int, Prompt, Judge]] = []

        async def note(turn: int, prompt: Prompt, judge: Judge) -> Asked:
            questions.append((turn, prompt, judge))
            return Asked(Answer(Outcome.ERROR), None)

        async def ask(turn: int, prompt: Prompt, judge: Judge) -> None:
            try:
                await self.answer(turn, prompt, judge)
            finally:
                queue.count(-1)

        await self._live(note)
        queue.count(len(questions) - 1)
        try:
            await asyncio.gather(*(ask(*question) for question in questions))
        finally:
            queue.count(1)

    async def ask(self, turn: int, prompt: Prompt, judge: Judge) -> Asked | None:
        """Return what came of a question, see `participant.live`; show where the run stands."""
        runner = self.runner
        before = runner.gate.used(self.number).calls
        asked = await self.answer(turn, prompt, judge)
        n = asked.reply.usage.input_tokens if asked and asked.reply else None
        if n and n > runner.counted.get(self.number, (prompt, 0))[1]:
            runner.counted[self.number] = prompt, n
        further = runner.environment.replies.further
        if asked is not None and further(prompt, asked.answer) is None:
            runner.trials += 1
            runner.missing += asked.answer.outcome not in (Outcome.OK, Outcome.REPAIRED)
        if runner.gate.used(self.number).calls != before:
            runner.tell()
        return asked

    async def answer(self, turn: int, prompt: Prompt, judge: Judge) -> Asked | None:
        """Return what came of a question: what is stored, or what comes now; None to stop."""
        every = self._of_this_wording(turn, request_hash(self.who, prompt.hash))
        best: Asked | None = None
        attempts, cost = 0, None
        for slot in range(self.runner.kept["re_ask"] + 1):
            tries = [attempt for attempt in every if attempt.slot == slot]
            last = tries[-1] if tries else None
            if last is None or not (last.reply or last.final) or self._asks_again(turn, last):
                last = await self._obtain(turn, slot, tries, prompt)
            if last is None:
                return None
            attempts += sum(one.counts not in ("inflight", "unknown", "anew") for one in tries)
            if last.reply is None:
                # A malformed answer is kept if asking again brought none.
                outcome = Outcome.REFUSED if last.state == "refused" else Outcome.ERROR
                error = Asked(Answer(outcome, note=last.note), None, attempts)
                return replace(best, attempt=attempts) if best else error
            if self._changed(last.reply):
                return None
            if self.ledger.price is not None:
                cost = (cost or 0) + last.used(self.ledger.price).money
            best = Asked(judge(last.reply), last.reply, attempts, cost)
            if best.answer.outcome is not Outcome.MALFORMED:
                break
        return best

    def _of_this_wording(self, turn: int, request: str) -> list[Attempt]:
        """Return what was sent for a question; ValueError if another one was answered.

        What has no answer is left aside if its words are not those of today. They showed a trial
        without an answer that has one now.
        """
        every = self.questions.setdefault(turn, [])
        if any(one.state == "ok" and one.request != request for one in every):
            raise ValueError(
                f"The ledger in {self.ledger.folder} has another question on trial {turn} of "
                f"session {self.number} than there is now: the wording or the parsing has "
                "changed. Go on with the version and templates it was begun with."
            )
        return [attempt for attempt in every if attempt.request == request]

    def _asks_again(self, turn: int, last: Attempt) -> bool:
        """Say whether a question is put again that had no answer in an earlier start."""
        runner = self.runner
        again = runner.how.retry_errors and last.final and not last.slot and turn not in self.fresh
        again = again and last.state != "refused"
        alone = runner.environment is None or runner.environment.replies.stand_alone
        return again and (alone or turn > self.answered)

    def _changed(self, reply: Reply) -> bool:
        """Say whether another model has answered than before, which stops the run."""
        before = self.ledger.model_served
        try:
            check_served(self.runner.kept["model"], before, reply.model_served or before)
        except Failed as error:
            self.reason = str(error)
            self.runner.fail(error)
            return True
        return False

    async def _obtain(
        self, turn: int, slot: int, tries: list[Attempt], prompt: Prompt
    ) -> Attempt | None:
        """Return an attempt that came to its end, with or without an answer; None to stop."""
        runner, last = self.runner, tries[-1] if tries else None
        if runner.adapter is None:
            return None
        self.fresh.add(turn)
        if last is not None and last.state == "ok" and last.body is not None:
            most = last.used(runner.price)  # it came in an earlier start, and counts in full
            runner.settle(last, last.body, prompt, self.settings)
            runner.gate.settle(self.number, most, last.used(runner.price))
            self.reason = runner.gate.stopped
        else:
            last = await self._call(turn, slot, tries, prompt)
        return last if last.reply is not None or last.final else None

    async def _call(self, turn: int, slot: int, tries: list[Attempt], prompt: Prompt) -> Attempt:
        """Call until there is an answer, or none is to be had; note why there is none."""
        runner, gate, every = self.runner, self.runner.gate, self.questions[turn]
        adapter = runner.adapter
        assert adapter is not None
        texts = [message.content for message in prompt.messages]
        sent = most_tokens_of(texts, [len(image) for image in prompt.images])
        received = self.settings.max_tokens or runner.answer_tokens
        failures: Counter[str] = Counter()
        while True:
            key = (self.number, turn, len(every))
            request = request_hash(self.who, prompt.hash)
            attempt = Attempt(key, slot, request, "inflight", sent, received)
            attempt.foresee(*self.ledger.beyond)
            attempt.shown = self.who, prompt
            attempt.batch = "" if runner.queue is None else NOT_SENT
            tries.append(attempt)
            every.append(attempt)
            seeded = runner.sends_seed
            body = runner.body_of(prompt, self.settings)
            if runner.queue is not None:
                self.reason = await runner.queue.ask(attempt, body)
                again = seeded and not (runner.sends_seed or self.reason or attempt.final)
                if again and attempt.state == "error_unpaid":
                    continue
                return attempt
            self.reason = await gate.enter(self.number, attempt.used(runner.price))
            if self.reason:
                return attempt
            reserved, failure, entered = attempt.used(runner.price), None, gate.now()
            try:
                self.ledger.sent([attempt])
                came = self.ledger.came(attempt, await adapter.send(body))
                await asyncio.sleep(0)  # others write down theirs before anyone goes on
                runner.read(attempt, came, prompt, self.settings)
            except Failed as error:
                failure = error
                failures[error.kind if error.kind in ("often", "broken") else "others"] += 1
                if error.kind in _OVERLOADED:
                    gate.slow_down(entered, min(error.wait or 0.0, _LONGEST_WAIT))
                self.ledger.failed(attempt, error, final=self._gives_up(error, failures, seeded))
            finally:
                gate.leave(self.number, reserved, attempt.used(runner.price))
            if failure is None:
                runner.repeated = runner.unanswered = 0
                gate.went_well()
            if failure is None or attempt.final or gate.stopped:
                self.reason = gate.stopped
                return attempt
            runner.tell()
            await gate.pause(self._pause(failures.total(), failure.wait))

    def _gives_up(self, error: Failed, failures: Counter[str], seeded: bool) -> bool:
        """Say whether a question stays without an answer; or stop the run, or neither."""
        runner, gate, how = self.runner, self.runner.gate, self.runner.how
        over = failures["others"] >= how.attempts or failures["often"] >= how.retries.rate_limited
        over = over or failures["broken"] >= min(how.attempts, _BROKEN)
        if runner.leaves_out(error, seeded):
            pass
        elif error.then == "stop":
            runner.fail(error)
        elif error.kind == "refused":
            return True
        elif error.kind == "quota":
            gate.stop(str(error))
        elif error.wait is not None and error.wait > _LONGEST_WAIT:
            gate.stop(f"the provider asks to wait for {error.wait:,.0f} seconds")
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
        retries, spread = self.runner.how.retries, 0.5 + self.pauses.random()
        if wait is not None:
            return wait + retries.pause * spread
        return min(retries.pause * 2.0 ** (failed - 1), _LONGEST_PAUSE) * spread


class _Runner:
    """A run: its ledger, who plays what, and, if it goes on, the adapter and what it may use."""

    def __init__(
        self,
        ledger: Ledger,
        environment: Any,
        adapter: Adapter | None = None,
        how: RunOptions | None = None,
    ):
        self.ledger, self.environment, self.adapter = ledger, environment, adapter
        self.kept = kept = ledger.configuration
        self.seed, self.address = kept["seed"], tuple(kept["address"])
        self.sampling = Sampling(**kept["sampling"])
        self.how = how or RunOptions()
        self.price = ledger.price
        self.left_out = ledger.left_out
        # How many questions are chosen in a session; None where all come in order.
        self.questions = kept["chosen"]["questions"] if "chosen" in kept else None
        self.answer_tokens = (
            self.sampling.max_tokens or self.how.caps.answer_tokens or ASSUMED_ANSWER
        )
        at_once = None if self.how.batched else self.how.concurrency
        self.gate = Admission(at_once, self.how.caps, ledger.file.spending, ledger.cell)
        self.failure: Failed | None = None
        self.queue: BatchQueue | None = None
        self.sessions = self.trials = self.missing = 0
        self.expected = 0  # trials
        # questions in a row without an answer, of the same kind and of any
        self.repeated = self.unanswered = 0
        self._trouble = ""
        # of each session under way: the first of its prompts with most tokens, and their number
        self.counted: dict[int, tuple[Prompt, int]] = {}
        self._warned = False

    @property
    def n(self) -> int:
        """How many sessions there are: those of the run, or where its rule has stopped it."""
        ends = (sessions for sessions, look in self.ledger.looks.items() if look["stop"])
        return min((self.ledger.sessions, *ends))

    @property
    def sends_seed(self) -> bool:
        """Whether the number of a session is sent as its sampling seed."""
        return bool(self.kept["session_seed"] and not self.left_out)

    def body_of(self, prompt: Prompt, settings: Sampling) -> dict[str, Any]:
        """Return what is sent; without the seed of a session, if the server does not take it."""
        assert self.adapter is not None
        return self.adapter.request(
            prompt, replace(settings, seed=None) if self.left_out else settings
        )

    def leaves_out(self, error: Failed, seeded: bool) -> bool:
        """Say whether a refusal is of a seed that nobody asked for; it is sent no more then."""
        if error.setting != "seed" or not (seeded and self.kept["session_seed"]):
            return False
        if not self.left_out:
            self.left_out = complaint(error.raw)[0]
            self.ledger.leave_out(self.left_out)
        error.args = (f"{SENT_ANEW}: {self.left_out}",)
        return True

    def fail(self, error: Failed) -> None:
        """Stop the run, which is in vain."""
        self.failure = self.failure or error
        self.gate.stop(str(error))

    def read(self, attempt: Attempt, body: bytes, prompt: Prompt, settings: Sampling) -> None:
        """Read what came, and write down what was read; `Failed` if it holds no reply.

        A server that has cut a prompt may say so nowhere. If it counts less for a prompt that has
        grown, it has not read all of it: its number is taken as not said.
        """
        assert self.adapter is not None
        reply = self.adapter.read(body, settings)
        n, before = reply.usage.input_tokens, self.counted.get(attempt.key[0])
        abroad = bool(self.adapter.base_url)  # what is in this process counts what it reads
        if abroad and n and before and n < before[1] + _fewest_more(before[0], prompt):
            reply = replace(reply, usage=replace(reply.usage, input_tokens=None, cut_prompts=1))
            self._warn_of_cut_prompt(n, before[1])
        self.ledger.was_read(attempt, reply)

    def _warn_of_cut_prompt(self, n: int, before: int) -> None:
        """Say once what it means that a server counts too little."""
        message = (
            f"{self.adapter} counts too few tokens for a prompt that has grown: {n:,}, after "
            f"{before:,} for an earlier one. It cuts prompts and does not say so, or counts them "
            "in part. If it cuts them, the answers are to a part of the question: give it a larger "
            "context."
        )
        if not self._warned:
            (self.how.tell or warnings.warn)(message)
        self._warned = True

    def settle(
        self, attempt: Attempt, came: bytes | Failed, prompt: Prompt, settings: Sampling
    ) -> None:
        """Write down what came of a request without a further call, and read it."""
        try:
            if isinstance(came, Failed):
                raise came
            self.read(attempt, self.ledger.came(attempt, came), prompt, settings)
        except Failed as error:
            leaves_out = self.leaves_out(error, True)
            self.ledger.failed(attempt, error, final=error.then != "stop")
            if error.then == "stop" and not leaves_out:
                self.fail(error)

    async def run(self, save: bool) -> Run:
        """Play all sessions as far as may be; see `run_sessions_in`."""
        n, stop = self.ledger.sessions, self.how.stop
        n_prompts = self.questions or self.environment.replies.n_prompts
        self.expected = n * n_prompts  # fewer if some fall away
        played: list[Session | None] = []  # None of a session that was not begun
        reasons: dict[int, str] = {}
        trouble: BaseException | None = None
        if self.how.batched or any(b.state in OPEN for b in self.ledger.batches):
            try:
                await self._read_batches()
            except asyncio.CancelledError as error:
                trouble = error
                self.gate.stop("interrupted")
        for until in stop.looks if stop else (n,):
            trouble = await self._play(range(len(played), until), played, reasons) or trouble
            whole = all(session is not None and session.over for session in played)
            if trouble or self.gate.stopped or not whole or (stop and self._stops(stop, played)):
                break
        if isinstance(trouble, Failed):  # the ledger
            raise trouble
        self.ledger.end(self.gate.stopped, reasons)
        run = self.summary(played)
        if save and run.trials is not None:
            run.trials.save(run.folder / TRIALS)
        self.tell()
        if trouble or self.failure:
            raise trouble or self.failure  # type: ignore[misc]  # one of them is there
        return run

    async def _read_batches(self) -> None:
        """Read the batches that earlier starts have left; ask in batches if that is set."""
        how = self.how
        self.queue = BatchQueue(self, how.batching, how.batch_size, how.retry_errors)
        await self.queue.collect()
        if not how.batched:
            self.queue = None

    def _stops(self, rule: StopsRuns, played: Sequence[Session | None]) -> bool:
        """Look at so many sessions, or at what an earlier look has shown; say whether to stop."""
        known = self.ledger.looks.get(len(played))
        if known is None:
            rows = [row for session in played if session for row in session.rows]
            trials = record(rows, self.environment, self.sampling)
            known = dict(rule(trials, rule.looks.index(len(played))))
            self.ledger.looked(len(played), known)
        return bool(known["stop"])

    async def _play(
        self, numbers: range, played: list[Session | None], reasons: dict[int, str]
    ) -> BaseException | None:
        """Play these sessions as far as may be; return what broke or interrupted them."""
        gate, left = self.gate, iter(numbers)
        sessions: dict[int, Session] = {}
        replies = self.environment.replies
        n_prompts = self.questions or replies.n_prompts

        async def work() -> None:
            for number in left:
                player = _SessionPlayer(self, number)
                session = sessions[number] = await player.live()
                if session.over:
                    self.sessions += 1
                    n_asked = sum(not replies.continues(row) for row in session.rows)
                    self.expected -= n_prompts - n_asked
                elif player.reason != gate.stopped:
                    reasons[number] = player.reason
                await asyncio.sleep(0)  # a stored session never waits, and others want their turn

        at_once = len(numbers) if self.queue else min(self.how.concurrency, len(numbers))
        play = [work() for _ in range(at_once)]
        if self.queue is not None:
            play = [self.queue.counted(one) for one in play]
        workers = [asyncio.create_task(one) for one in play]
        if self.queue is not None:
            workers.append(asyncio.create_task(self.queue.work()))
        trouble: BaseException | None = None
        try:
            try:
                await asyncio.wait(workers, return_when=asyncio.FIRST_EXCEPTION)
            except asyncio.CancelledError as error:
                trouble = error
                gate.stop("interrupted")
            broken = next((e for w in workers if w.done() and (e := w.exception())), None)
            if broken is not None:
                trouble = broken
                gate.stop(f"{type(broken).__name__}: {broken}")
            await asyncio.wait(workers)  # what is under way comes to its end
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
        played += [sessions.get(number) for number in numbers]
        return trouble

    def summary(self, played: Sequence[Session | None]) -> Run:
        """Put together what the ledger and the sessions show."""
        ledger, kept = self.ledger, self.kept
        rows = [row for session in played if session for row in session.rows]
        starts = ledger.starts
        stopped = starts[-1].reason
        if starts[-1].ended is None:
            stopped = "the run is still under way, or its process has died"
        unfinished = tuple(
            {
                "session": i,
                "trials": len(session.rows) if session else 0,
                "reason": starts[-1].sessions.get(str(i), stopped),
            }
            for i, session in enumerate(played)
            if not (session and session.over)
        )
        return Run(
            folder=ledger.folder,
            environment=self.environment.name,
            llm=f"{kept['provider']}:{called(kept)}",
            base_url=kept["base_url"],
            model_served=ledger.model_served,
            n_sessions=len(played),
            trials=record(rows, self.environment, self.sampling) if rows else None,
            unfinished=unfinished,
            stopped=stopped if unfinished else "",
            starts=tuple(starts),
            account=ledger.account(),
            price=ledger.price,
            configuration=kept,
            looks=tuple(ledger.looks.values()),
            left_out=ledger.left_out,
        )

    def gives_out(self, error: Failed) -> int:
        """Return how many questions in a row have had no answer, if it is too many; otherwise 0."""
        self.repeated = self.repeated + 1 if error.kind == self._trouble else 1
        self.unanswered += 1
        self._trouble = error.kind
        if self.repeated >= self.how.retries.identical:
            return self.repeated
        return self.unanswered if self.unanswered >= self.how.retries.unanswered else 0

    def tell(self) -> None:
        """Show whoever watches where the run stands."""
        if self.how.progress is None:
            return
        gate, spending = self.gate, self.gate.spending
        money = Decimal(spending.total.money - spending.reserved.money) / NANO
        self.how.progress(
            Progress(
                sessions=self.sessions,
                trials=self.trials,
                n_trials=self.expected,
                missing=self.missing,
                calls=spending.total.calls,
                dollars=None if self.price is None else money,
                under_way=gate.under_way,
                allowed=gate.allowed,
                submitted=self.queue.sent if self.queue else 0,
                done=self.queue.done if self.queue else 0,
            )
        )


class SingleQuestions:
    """Single questions to one model, with a ledger in a folder; nobody plays a session.

    A question that was answered in an earlier start is not sent again: the k-th time that it is
    put brings the k-th answer to it. Caps hold over all starts.

    Parameters
    ----------
    caps, price : As in `RunOptions`.

    Raises
    ------
    ValueError : If the folder holds another run, or is in use.
    """

    def __init__(
        self, folder: str | os.PathLike[str], adapter: Adapter, caps: Caps, price: Price | None
    ):
        keys = known_keys(getattr(adapter, "key_variable", None))
        self.ledger = Ledger.open(folder, _configuration(adapter), 1, price=price, keys=keys)
        how = RunOptions(caps=caps, retry_errors=True)
        self.runner = _Runner(self.ledger, None, adapter, how)
        self.adapter = adapter
        self._times: Counter[str] = Counter()

    async def ask(self, prompt: Prompt, settings: Sampling) -> Reply:
        """Return the reply to a question; `Failed` if there is none.

        Raises
        ------
        ValueError : If a cap cannot be kept: no price, or an answer that nothing bounds.
        """
        adapter, caps = self.adapter, self.runner.how.caps
        check_caps(caps, settings, self.ledger.price, f"{adapter.provider}:{adapter.model}")
        check_heeds(adapter, settings, images=bool(prompt.images))
        request = request_hash(asked_of(self.runner.kept, settings), prompt.hash)
        # A part of the hash stands for the number of the session.
        player = _SessionPlayer(self.runner, int(request[:_HEX_DIGITS], 16), settings)
        turn = self._times[request]
        self._times[request] += 1
        asked = await player.answer(turn, prompt, lambda reply: Answer(Outcome.OK))
        if asked is not None and asked.reply is not None:
            return asked.reply
        if asked is not None:
            raise Failed(asked.answer.note, "skip")
        raise self.runner.failure or Failed(player.reason, "stop")

    async def close(self) -> None:
        """Give back connections and ledger."""
        self.ledger.end(self.runner.gate.stopped, {})
        self.ledger.close()
        await self.adapter.close()


def check_caps(caps: Caps, sampling: Sampling, price: Price | None, llm: str) -> None:
    """Raise ValueError if caps cannot be kept: no price, or answers that nothing bounds."""
    if caps.on_money and price is None:
        raise ValueError(
            f"A cap on money needs a price, and none is known for {llm}. {REMEDY.format(llm=llm)}"
        )
    if caps.on_use and sampling.max_tokens is None and caps.answer_tokens is None:
        raise ValueError(
            "Under a cap on tokens or money an answer must be bounded; got no max_tokens. Add "
            "--max-tokens 16, say, or --cap answer_tokens=400, how many tokens one can have."
        )


def _fewest_more(before: Prompt, now: Prompt) -> int:
    """Return how many tokens a prompt has more than another at least, by their words.

    A word that is gone may have had a token for each byte.
    """
    if before.images != now.images:
        return -MOST_TOKENS
    old, new = (Counter(" ".join(m.content for m in p.messages).split()) for p in (before, now))
    more, less = (
        sum(len(word.encode()) * n for word, n in words.items()) for words in (new - old, old - new)
    )
    return more // _DENSEST - less - 2


def without_waiting(coroutine: Coroutine[Any, Any, Session]) -> Session:
    """Run what never waits, also where an event loop is already running."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        session: Session = end.value
        return session
    raise AssertionError("A ledger answers at once.")
