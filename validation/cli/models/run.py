"""`knownminds run`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import typer

from knownminds.validation.cli.output import check_own_folder, drawn_bar, notes, print_json
from knownminds.validation.cli.study import command
from knownminds.validation.engine.question import Question, asks, frozen_question, option
from knownminds.validation.options import (
    Adaptive,
    Contaminate,
    DesignName,
    Experiment,
    NTrials,
    Questions,
    Seed,
    Values,
)
from knownminds.validation.reading import (
    TEMPERATURES,
    read_caps,
    read_contaminants,
    read_temperature,
    resolve_experiment,
)
from knownminds.validation.studies import STUDIES

if TYPE_CHECKING:
    from knownminds.environments import Environment
    from knownminds.inference import ChosenQuestions
    from knownminds.llm_adapters import Sampling
    from knownminds.llm_adapters.runs.admission import Caps
    from knownminds.llm_adapters.runs.run_result import Run
    from knownminds.llm_adapters.runs.runner import Progress as Standing


@contextmanager
def _money(sessions: int) -> Iterator[Callable[[Standing], None] | None]:
    """Give a progress callback of a run, with the money spent; None where stderr is no terminal."""
    with drawn_bar("run") as draw:
        if draw is None:
            yield None
            return

        def show(now: Standing) -> None:
            told = _standing(now, sessions).replace(" unread, ", " unread\n")  # for 80 columns
            draw(now.trials, now.n_trials, told)

        yield show


def _standing(now: Standing, sessions: int) -> str:
    """Say where a run stands, in a line."""
    money = "no price" if now.dollars is None else f"${now.dollars:.4f}"
    return (
        f"{now.sessions}/{sessions} sessions, {now.missing} unread, {now.calls} calls, {money}, "
        + (
            f"in batches {now.done}/{now.submitted}"
            if now.submitted
            else f"{now.under_way} of {now.allowed} under way"
        )
    )


def _tell_only(
    about: str, llm: str, place: Environment, settings: Sampling, reach: dict[str, Any]
) -> None:
    """Print the estimate, unless the run would stop before its first call."""
    from knownminds.llm_adapters import Failed
    from knownminds.validation.costs.connect import rehearse

    try:
        rehearse(llm, place, settings, **reach)
    except Failed as error:
        raise ValueError(str(error)) from None
    print(about)


@frozen_question
class AskRun(Question[Any]):
    """What `run` is asked: who lives which sessions, how it is called, and what it may cost."""

    command: ClassVar[str] = "run"
    help: ClassVar[
        str
    ] = """Let a language model live sessions; the same command goes on where it stopped.

The exit code is 0 once all sessions are lived to their end, 1 if some are not, 3 if not one
answer could be read or questions in a row had no answer, 2 for bad input or a run in vain."""

    environment: str = asks(Experiment)
    llm: str = option(str, "PROVIDER:MODEL, openai:gpt-4o-mini for instance.")
    sessions: int | None = option(int | None, "How many sessions; 1 if not given.", default=None)
    stop: Path | None = option(
        Path | None, "A stopping rule (TOML), which looks after some sessions.", default=None
    )
    trials: int | None = asks(NTrials, default=None)
    design: str | None = asks(DesignName, default=None)
    seed: int = asks(Seed, default=0)
    values: list[str] | None = asks(Values, default=None)
    questions: int | None = asks(Questions, default=None)
    adaptive: str | None = asks(Adaptive, default=None)
    base_url: str | None = option(str | None, "A server of your own.", default=None)
    key_variable: str | None = option(
        str | None, "The environment variable that holds the key.", default=None
    )
    timeout: float | None = option(float | None, "Seconds until a call is given up.", default=None)
    images: bool = option(
        bool, "The model sees pictures; for one not known.", default=False, flag="--images"
    )
    temperature: str | None = option(
        str | None, f"0 to 2, or that of a paper: {', '.join(TEMPERATURES)}.", default=None
    )
    top_p: float | None = option(float | None, "0 to 1.", default=None)
    max_tokens: int | None = option(int | None, "Where an answer is cut off.", default=None)
    reasoning: str | None = option(
        str | None, "none, minimal, low, medium, high, xhigh or max.", default=None
    )
    verbosity: str | None = option(str | None, "low, medium or high.", default=None)
    system: str | None = option(
        str | None, "What a system message says before every prompt.", default=None
    )
    paraphrases: int | None = option(
        int | None, "In so many wordings, each a run of its own below --out.", default=None
    )
    top_log_probabilities: int | None = option(
        int | None, "Alternatives kept with each token.", default=None
    )
    concurrency: int = option(int, "Sessions under way at a time.", default=8)
    attempts: int = option(int, "Calls per question, if the provider fails.", default=5)
    re_ask: int = option(int, "How often to ask again if malformed.", default=0)
    retry_errors: bool = option(
        bool, "Ask trials again that had no answer.", default=False, flag="--retry-errors"
    )
    batch: bool = option(
        bool,
        "Ask in batches, at half the price and within a day.",
        default=False,
        flag="--batch",
    )
    batch_turns: bool = option(
        bool,
        "As --batch, where trials tell of earlier ones: a batch per trial.",
        default=False,
        flag="--batch-turns",
    )
    cap: list[str] | None = option(
        list[str] | None,
        "NAME=MOST: calls, tokens, dollars, session_calls, ..., answer_tokens.",
        default=None,
    )
    price: str | None = option(
        str | None, "IN,OUT or IN,OUT,CACHED dollars per million tokens.", default=None
    )
    contaminate: list[str] | None = asks(Contaminate, default=None)
    durable: bool = option(
        bool,
        "Let each write wait for the disk, against a power cut.",
        default=False,
        flag="--durable",
    )
    dry_run: bool = option(bool, "Only estimate calls, tokens and money.", default=False)
    out: Path | None = option(Path | None, "Folder of the run.", default=None)


def _run(given: dict[str, Any]) -> None:
    asked, as_json = AskRun(**AskRun.read(given)), given["as_json"]
    caps = read_caps(asked.cap)
    if asked.paraphrases is None:
        _run_one(asked, caps, print_json if as_json else print)
        return
    from knownminds.llm_adapters.runs.admission import Purse
    from knownminds.llm_adapters.runs.ledger import spent_in
    from knownminds.validation.costs.connect import folder_of
    from knownminds.validation.costs.wordings import wordings

    place, _ = _resolved(asked)
    whole = asked.out or folder_of(place, asked.llm)
    folders = {name: whole / name for name in wordings(place, asked.paraphrases)}
    purse = Purse(caps, {str(folder): spent_in(folder) for folder in folders.values()})
    ends = []
    told: dict[str, Any] = {}  # by wording, for the one object that --json prints
    for k, (name, folder) in enumerate(folders.items()):
        values = [*(asked.values or []), *([f"templates={name}"] if k else [])]
        notes.print(f"wording {name} ({k + 1} of {len(folders)}):", markup=False)
        try:
            one = replace(asked, values=values, out=folder)
            say = partial(told.__setitem__, name) if as_json else print
            _run_one(one, caps.sharing(purse, str(folder)), say)
        except typer.Exit as end:
            ends.append(end.exit_code)
    if told:
        print_json({"wordings": told})
    if ends:
        raise typer.Exit(max(ends))


def _resolved(asked: AskRun) -> tuple[Environment, Any]:
    """Return the experiment, and the parameters of a known mind that plays it."""
    from knownminds.agents import AGENTS

    provider, _, model = asked.llm.partition(":")
    minds = [AGENTS[model]] if provider == "synthetic" and model in AGENTS else []
    return resolve_experiment(asked.environment, minds, asked.trials, asked.values, asked.design)


def _about(sessions: int, chosen: ChosenQuestions | None) -> str:
    """Say what a run whose questions are chosen will ask at most; "" of others."""
    if chosen is None:
        return ""
    return (
        f"{sessions * chosen.questions:,} calls at most; which questions they ask hangs on the "
        "answers, so tokens are not estimated (--cap bounds them)"
    )


def _run_one(given: AskRun, caps: Caps, say: Callable[[Any], object]) -> None:
    """Run in one wording; `say` gets what is to be printed, a dictionary unless it is `print`."""
    from knownminds.llm_adapters import Failed, Sampling
    from knownminds.llm_adapters.runs.batch_rounds import Batching
    from knownminds.llm_adapters.runs.ledger import LedgerFailed
    from knownminds.llm_adapters.runs.prices import in_batches, parse_price
    from knownminds.llm_adapters.runs.runner import (
        MOST_SESSIONS,
        Retries,
        check_chosen,
        price_in,
        read_run,
    )
    from knownminds.validation.costs.connect import estimate, folder_of, price_for
    from knownminds.validation.costs.connect import run as run_sessions
    from knownminds.validation.engine.arguments import resolve_chosen, resolve_stop

    place, truth = _resolved(given)
    stop = resolve_stop(place, given.stop)
    least = stop.looks[-1] if stop else 1
    asked = replace(given, sessions=least if given.sessions is None else given.sessions)
    assert asked.sessions is not None
    overrides = dict([parse_price(f"{asked.llm}={asked.price}")]) if asked.price else {}
    folder = asked.out or folder_of(place, asked.llm)
    found = price_for(asked.llm, overrides, elsewhere=asked.base_url is not None)
    rates = price_in(folder) or found
    settings = Sampling(
        temperature=read_temperature(asked.temperature),
        top_p=asked.top_p,
        max_tokens=asked.max_tokens,
        reasoning=asked.reasoning,  # type: ignore[arg-type]  # checked there, with the nearest name
        top_log_probabilities=asked.top_log_probabilities,
        verbosity=asked.verbosity,  # type: ignore[arg-type]  # likewise
        system=asked.system,
    )
    if asked.sessions > MOST_SESSIONS:
        raise ValueError(f"A run has at most {MOST_SESSIONS} sessions; got {asked.sessions}.")
    batching = Batching(turns=asked.batch_turns) if asked.batch or asked.batch_turns else None
    charged = in_batches(rates) if rates is not None and batching is not None else rates
    chosen = resolve_chosen(place, asked.questions, asked.adaptive)
    if chosen is not None:
        check_chosen(chosen, place, batching)
    about = _about(asked.sessions, chosen) or estimate(
        place, asked.llm, asked.sessions, charged, asked.system
    )
    names = ("base_url", "key_variable", "images")
    reach: dict[str, Any] = {name: getattr(asked, name) for name in names}
    if asked.dry_run:
        reach |= {"truth": truth, "batching": batching}
        _tell_only(about, asked.llm, place, settings, reach)
        return
    notes.print(about, markup=False, soft_wrap=True)
    if (
        asked.price
        and found
        and rates
        and (found.rates, found.per_call) != (rates.rates, rates.per_call)
    ):
        notes.print(
            f"--price is not used: the run keeps the price it has, {rates}",
            markup=False,
            soft_wrap=True,
        )
    check_own_folder("run", folder)
    try:
        with _money(asked.sessions) as progress:
            lived = run_sessions(
                place,
                asked.llm,
                sessions=asked.sessions,
                seed=asked.seed,
                out=folder,
                settings=settings,
                concurrency=asked.concurrency,
                retries=Retries(attempts=asked.attempts),
                caps=caps,
                price=rates,
                re_ask=asked.re_ask,
                retry_errors=asked.retry_errors,
                durable=asked.durable,
                batching=batching,
                chosen=chosen,
                stop=stop,
                progress=progress,
                **reach,
                timeout=asked.timeout,
                truth=truth,
                contaminants=read_contaminants(asked.contaminate),
            )
    except (Failed, ImportError, LedgerFailed) as error:
        kept = (
            f" What was paid for stays in {folder}." if (folder / "ledger.sqlite").exists() else ""
        )
        raise ValueError(f"{error}{kept}") from None
    except KeyboardInterrupt:
        if (folder / STUDIES["run"].file).exists():
            notes.print(str(read_run(folder, place)), markup=False, soft_wrap=True)
        raise
    _leave(lived, folder, say)


def _leave(lived: Run, folder: Path, say: Callable[[Any], object]) -> None:
    """Print a run and leave its report; its exit code says how it went."""
    from knownminds.llm_adapters.runs.runner import TRIALS
    from knownminds.validation.costs.run_page import say as page_of_run
    from knownminds.validation.pages.result_page import write_page

    notes.print(f"report: {write_page(page_of_run(lived), folder)}", markup=False, soft_wrap=True)
    if lived.trials is not None:
        notes.print(f"trials: {folder / TRIALS}", markup=False, soft_wrap=True)
    say(lived if say is print else lived.to_dict())
    for sentence in filter(None, (lived.nothing_read, lived.remedy, lived.unanswered)):
        notes.print(sentence, markup=False, soft_wrap=True)
    if lived.nothing_read or lived.gave_out:
        raise typer.Exit(3)
    if lived.unfinished:
        raise typer.Exit(1)


command(AskRun, {}, _run)
