"""Commands of language models: runs, benchmarks, budgets, revealed beliefs, served known agents."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import typer

from knownminds.validation.chance.questions import RevealQuestion
from knownminds.validation.costs.questions import AskBudget
from knownminds.validation.engine.question import Question, command_line, frozen_question, option
from knownminds.validation.reading import (
    read_caps,
    read_contaminants,
    read_temperature,
    resolve_experiment,
)

from .application import Command, command, leave
from .interrupts import Stopped, kept_in
from .output import check_own_folder, note, print_json, progress_bar, prompt_text

if TYPE_CHECKING:
    from knownminds.environments import Environment
    from knownminds.inference import ChosenQuestions
    from knownminds.llm_adapters.runs.admission import Caps
    from knownminds.llm_adapters.runs.run_result import Run
    from knownminds.llm_adapters.runs.runner import Progress as Standing
    from knownminds.validation.benchmarks.plan import Plan

SHOWN = "-"  # the plan that --plan without a file asks to see


@frozen_question
class Calling(Question[Any]):
    """How language models are called.

    Parameters
    ----------
    timeout
        Seconds until a call is given up.
    concurrency
        Sessions of each model under way at a time.
    attempts
        Calls per question, if the provider fails.
    re_ask
        How often to ask again if malformed.
    retry_errors
        Ask trials again that had no answer.
    no_seed
        Send no sampling seed, which some servers refuse.
    """

    rare: ClassVar[tuple[str, ...]] = (
        "key_variable", "timeout", "concurrency", "attempts", "re_ask", "retry_errors", "no_seed",
    )  # fmt: skip

    base_url: str | None = None
    key_variable: str | None = None
    timeout: float | None = None
    concurrency: int = 8
    attempts: int = 5
    re_ask: int = 0
    retry_errors: bool = False
    no_seed: bool = False


@frozen_question
class AskRun(Calling):
    """Let a language model take sessions; the same command goes on where it stopped.

    The exit code is 0 once all sessions are taken to their end, 1 if some are not, 3 if not one
    answer could be read or questions in a row had no answer, 2 for bad input or a run in vain.

    Parameters
    ----------
    llm
        PROVIDER:MODEL, or PROVIDER:MODEL?reasoning_effort=low&name=... with settings of its own.
    sessions
        How many sessions; 1 if not given.
    stop
        A stopping rule (TOML), which looks after some sessions.
    values
        NAME=VALUE: a true parameter of a known agent, or a setting of the experiment.
    images
        The model sees pictures; for one not known.
    temperature
        0 to 2, or that of a paper: cogbench, colliders, magnitudes.
    top_p
        0 to 1.
    reasoning_effort
        none, minimal, low, medium, high, xhigh or max.
    verbosity
        low, medium or high.
    system
        What a system message says before every prompt.
    paraphrases
        In so many wordings, each a run of its own below --out.
    controls
        Add sessions that show whether the player heeds its instruction and what its choices bring.
    control
        Only this control: instruction, shuffled, reversed, relabelled or paraphrase.
    top_log_probabilities
        Alternatives kept with each token.
    batch
        Ask in batches, at half the price and within a day.
    batch_turns
        As --batch, where trials tell of earlier ones: a batch per trial.
    batch_size
        As --batch, with so many requests at most, and one batch after another.
    caps
        NAME=MOST: calls, tokens, dollars, session_calls, ..., answer_tokens.
    price
        IN,OUT or IN,OUT,CACHED dollars per million tokens.
    contaminate
        NAME=RATE of a known agent: refusal, malformed, truncation, verbosity.
    durable
        Let each write wait for the disk, against a power cut.
    show
        With --dry-run: the first so many prompts; in --out as files, with their pictures.
    out
        Folder of the run.
    """

    command: ClassVar[str] = "run"
    rare: ClassVar[tuple[str, ...]] = (
        "design", "stop", "questions", "adaptive", "images", "top_p", "verbosity", "system",
        "top_log_probabilities", "batch_turns", "batch_size", "price", "contaminate", "durable",
        "paraphrases", "control", "show",
    )  # fmt: skip

    environment: str = option(argument=True, kw_only=False)
    llm: str
    sessions: int | None = None
    stop: Path | None = None
    trials: int | None = None
    design: str | None = None
    seed: int = 0
    values: Sequence[str] | None = option("--set", default=None)
    questions: int | None = None
    adaptive: str | None = None
    images: bool = False
    temperature: str | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    reasoning_effort: str | None = None
    verbosity: str | None = None
    system: str | None = None
    paraphrases: int | None = None
    controls: bool = False
    control: Sequence[str] | None = None
    top_log_probabilities: int | None = None
    batch: bool = False
    batch_turns: bool = False
    batch_size: int | None = None
    caps: Caps | None = option("--cap", read=read_caps, default=None, several=True)
    price: str | None = None
    contaminate: Sequence[str] | None = None
    durable: bool = False
    dry_run: bool = False
    show: int | None = None
    out: Path | None = None


@frozen_question
class AskBenchmark(Calling):
    """Let models take a paper's experiments, and make its tables and figures of them.

    There are cogbench, colliders, magnitudes, diagnosis and revealed_belief. The same command goes
    on where it stopped. The exit code is 0 once all cells are taken to their end, 1 if some are
    not, 3 if not one answer could be read, 2 for bad input.

    Parameters
    ----------
    name
        The benchmark.
    llm
        PROVIDER:MODEL, once for each participant; PROVIDER:MODEL?reasoning_effort=low with
        settings of its own.
    plan
        A plan of your own; without a file, print the plan.
    small
        A tenth of the sessions.
    seed
        Everything random follows from it; the plan's, if left out.
    paraphrases
        Number of wordings of every question; the page then says how much wording matters.
    images
        PROVIDER:MODEL that sees pictures; for one not known.
    caps
        NAME=MOST of all runs together: calls, tokens, dollars, ...; answer_tokens.
    features
        A CSV file of what is known of the models.
    people
        People, of cogbench and colliders: their trials, or a CSV file of values: metric, value.
    from_
        Answers that there are: files of trials, folders of runs, logs of Inspect's. With --llm they
        stand beside models that run now.
    out
        Folder of the benchmark.
    """

    command: ClassVar[str] = "benchmark"
    rare: ClassVar[tuple[str, ...]] = ("images", "price", "features", "people")

    name: str = option(argument=True, kw_only=False)
    llm: Sequence[str] = ()
    plan: str | None = None
    small: bool = False
    seed: int | None = None
    paraphrases: int = 1
    images: Sequence[str] = ()
    caps: Caps | None = option("--cap", read=read_caps, default=None, several=True)
    price: Sequence[str] = ()
    features: Path | None = None
    people: Path | None = None
    from_: Sequence[Path] = ()
    dry_run: bool = False
    out: Path | None = None


@frozen_question
class AskServe(Question[None]):
    """Put a known agent behind an OpenAI-compatible address, until Ctrl-C.

    Parameters
    ----------
    model
        A model; the experiment's usual one if none. `knownminds list` shows all.
    values
        NAME=VALUE: a true parameter or a setting of the experiment.
    host
        Where to listen.
    port
        0 for a free one.
    name
        The model that requests must ask for.
    contaminate
        NAME=RATE: refusal, malformed, truncation, verbosity.
    seed_is_session
        Whether a request's seed is the session's number, as `run` sends it.
    key_variable
        Variable with a key that requests must bear.
    """

    command: ClassVar[str] = "serve"
    rare: ClassVar[tuple[str, ...]] = ("design", "contaminate", "seed_is_session", "key_variable")

    environment: str = option(argument=True, kw_only=False)
    model: str = "rescorla_wagner_dual"
    values: Sequence[str] | None = option("--set", default=None)
    trials: int | None = None
    design: str | None = None
    seed: int = 0
    host: str = "127.0.0.1"
    port: int = 0
    name: str = "known-mind"
    contaminate: Sequence[str] | None = None
    seed_is_session: bool = True
    key_variable: str | None = None


@contextmanager
def _money(sessions: int) -> Iterator[Callable[[Standing], None] | None]:
    """Give a progress callback of a run, with the money spent; None where stderr is no terminal."""
    with progress_bar("run") as draw:
        if draw is None:
            yield None
            return

        def show(now: Standing) -> None:
            text = _standing(now, sessions).replace(" unread, ", " unread\n")  # for 80 columns
            draw(now.trials, now.n_trials, text)

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


def _tell_only(about: str, *run: Any, **connection: Any) -> None:
    """Print the estimate, unless the run would stop before its first call."""
    from knownminds.llm_adapters import Failed
    from knownminds.validation.costs.connect import rehearse

    try:
        rehearse(*run, **connection)
    except Failed as error:
        raise ValueError(str(error)) from None
    print(about)


@dataclass(frozen=True)
class _Part:
    """One of several runs that a command makes.

    Parameters
    ----------
    name
        Of the wording or control; "" of the run itself.
    question
        Its options, with its folder.
    control
        By which its experiment is changed; "" for none.
    within
        Folder with the ledger of all of them; None if there is one run.
    """

    name: str
    question: AskRun
    control: str = ""
    within: Path | None = None


def _show_prompts(question: AskRun, environment: Environment, system: str | None) -> None:
    """Print the first prompts that a run would send, and keep them in its folder."""
    from knownminds.environments.record.folders import writable, write_text
    from knownminds.validation.costs.dry_runs import first_prompts

    if question.show is None:
        return
    prompts = first_prompts(environment, question.show, question.seed, system)
    for k, prompt in enumerate(prompts, start=1):
        names = [f"prompt-{k}-{i}.png" for i in range(1, len(prompt.images) + 1)]
        text = prompt_text(prompt, names if question.out else ())
        print(f"\nPrompt {k}:\n\n{text}")
        if question.out is not None:
            with writable(question.out) as folder:
                write_text(folder / f"prompt-{k}.txt", text + "\n")
                for name, image in zip(names, prompt.images, strict=True):
                    (folder / name).write_bytes(image)


def _check_show(question: AskRun) -> None:
    """Raise ValueError if no prompts can be shown."""
    if question.show is None:
        return
    if not question.dry_run or question.show < 1:
        raise ValueError(
            f"--show goes with --dry-run and is at least 1; got --show {question.show}"
            f"{'' if question.dry_run else ' without --dry-run'}."
        )
    if question.adaptive:
        raise ValueError(
            "Prompts are shown in their order, and with --adaptive the answers choose them. Leave "
            "--show out."
        )


def _run(question: AskRun, as_json: bool) -> None:
    _check_show(question)
    if question.paraphrases is None and not (question.controls or question.control):
        _run_part(_Part("", question), question, print_json if as_json else print)
        return
    from knownminds.llm_adapters.configuration import Participant
    from knownminds.validation.costs.connect import folder_of

    environment, _ = _resolved(question)
    whole = question.out or folder_of(environment, str(Participant.read(question.llm)))
    kind, parts = "wording", _in_wordings(question, environment, whole)
    if question.controls or question.control:
        kind, parts = "control", _with_controls(question, environment, whole)
    ends = []
    results: dict[str, Any] = {}  # by name, for the one object that --json prints
    for k, part in enumerate(parts, start=1):
        note(f"{kind} {part.name or 'none'} ({k} of {len(parts)}):")
        try:
            # What a control shows stands in one table behind the run.
            say = partial(results.__setitem__, part.name or "none")
            _run_part(part, question, say if as_json or part.control else print)
        except typer.Exit as end:
            ends.append(end.exit_code)
    judged = None
    if kind == "control" and not question.dry_run:
        from knownminds.validation.data.controls import controls_of_runs

        judged = replace(controls_of_runs([whole]), title="Controls")
    if as_json and results:
        print_json({f"{kind}s": results, **({"judged": judged.to_dict()} if judged else {})})
    elif judged:
        print(judged)
    if ends:
        raise typer.Exit(max(ends))


def _in_wordings(question: AskRun, environment: Environment, whole: Path) -> list[_Part]:
    """Return a run for each wording, below one folder."""
    from knownminds.validation.costs.wordings import wordings

    values, parts = question.values or [], []
    for k, name in enumerate(wordings(environment, question.paraphrases or 1)):
        more = [f"templates={name}"] if k else []
        of_wording = replace(question, values=[*values, *more], out=whole / name)
        parts.append(_Part(name, of_wording, within=whole))
    return parts


def _with_controls(question: AskRun, environment: Environment, whole: Path) -> list[_Part]:
    """Return the run, and its controls in a folder inside its own."""
    from knownminds.environments import check_controls
    from knownminds.validation.data.controls import FOLDER, SESSIONS

    for name in ("stop", "questions", "adaptive", "paraphrases"):
        if getattr(question, name) is not None:
            raise ValueError(
                f"Controls take the sessions of a run again, whole and in order; --{name} is "
                "given. Leave it out, or the controls."
            )
    sessions = 1 if question.sessions is None else question.sessions
    few = replace(question, sessions=min(sessions, SESSIONS))
    parts = [_Part("", replace(question, out=whole), within=whole)]
    for name in check_controls(environment, tuple(question.control or ())):
        parts.append(_Part(name, replace(few, out=whole / FOLDER / name), name, whole))
    return parts


def _resolved(question: AskRun) -> tuple[Environment, Any]:
    """Return the experiment, and the parameters of a known agent that plays it."""
    from knownminds.agents import AGENTS
    from knownminds.llm_adapters.configuration import Participant

    provider, _, model = Participant.read(question.llm).llm.partition(":")
    agents = [AGENTS[model]] if provider == "synthetic" and model in AGENTS else []
    return resolve_experiment(
        question.environment, agents, question.trials, question.values, question.design
    )


def _command_line(question: AskRun) -> str:
    """Return the command line of a run."""
    options = question.option_values()
    caps = {} if question.caps is None else vars(question.caps)
    options["cap"] = {name: str(most) for name, most in caps.items() if most is not None}
    return command_line(question.command, options.pop("subject_matter"), **options)


def _about(sessions: int, chosen: ChosenQuestions | None) -> str:
    """Say what a run whose questions are chosen will ask at most; "" of others."""
    if chosen is None:
        return ""
    return (
        f"{sessions * chosen.questions:,} calls at most; which questions they ask hangs on the "
        "answers, so tokens are not estimated (--cap bounds them)"
    )


def _run_part(part: _Part, typed: AskRun, say: Callable[[Any], object]) -> None:
    """Make one run; `say` gets what is to be printed, a dictionary unless it is `print`.

    `typed` is what was typed for all runs of the command, with the caps of all together.
    """
    from knownminds.environments import controlled
    from knownminds.environments.controls import CONTROLS, REPEAT
    from knownminds.llm_adapters import Failed, Sampling
    from knownminds.llm_adapters.configuration import Participant
    from knownminds.llm_adapters.runs.batch_rounds import Batching
    from knownminds.llm_adapters.runs.ledger import price_in, stays_in
    from knownminds.llm_adapters.runs.prices import in_batches, parse_price
    from knownminds.llm_adapters.runs.runner import Retries, RunOptions
    from knownminds.validation.costs.connect import estimate, folder_of, price_for
    from knownminds.validation.costs.connect import run as run_sessions
    from knownminds.validation.engine.arguments import resolve_chosen, resolve_stop

    environment, truth = _resolved(part.question)
    if part.control:
        environment = controlled(environment, part.control)
    stop = resolve_stop(environment, part.question.stop)
    question = part.question
    if question.sessions is None:
        question = replace(question, sessions=stop.looks[-1] if stop else 1)
    assert question.sessions is not None
    who = Participant.read(question.llm)
    if who.price and question.price and who.price != question.price:
        raise ValueError(
            f"price is {who.price} in {who.llm}, and {question.price} beside it. Say it once."
        )
    overrides = dict([parse_price(f"{who}={question.price}")]) if question.price else {}
    folder = question.out or folder_of(environment, str(who))
    price = price_for(question.llm, overrides, elsewhere=question.base_url is not None)
    rates = price_in(folder) or price
    typed_settings = {
        field.name: getattr(question, field.name)
        for field in fields(Sampling)
        if field.name not in ("seed", "temperature")
    }
    settings = who.settings(
        Sampling(temperature=read_temperature(question.temperature), **typed_settings)
    )
    batching = (
        Batching(turns=question.batch_turns, requests=question.batch_size)
        if question.batch or question.batch_turns or question.batch_size is not None
        else None
    )
    charged = in_batches(rates) if rates is not None and batching is not None else rates
    chosen = resolve_chosen(environment, question.questions, question.adaptive)
    known = question.llm.startswith("synthetic:")
    how = RunOptions(
        settings=settings,
        concurrency=question.concurrency,
        retries=Retries(attempts=question.attempts),
        caps=typed.caps or read_caps(()),
        price=rates,
        re_ask=question.re_ask,
        retry_errors=question.retry_errors,
        durable=question.durable,
        batching=batching,
        chosen=chosen,
        stop=stop,
        warn=note,
        seeded=not question.no_seed and (part.control != REPEAT or known),
        command=_command_line(typed),
    )
    about = _about(question.sessions, chosen) or estimate(
        environment, question.llm, question.sessions, charged, settings.system
    )
    names = ("base_url", "key_variable", "images")
    reach: dict[str, Any] = {name: getattr(question, name) for name in names}
    reach["truth"] = truth
    reach["stream"] = (*CONTROLS, REPEAT).index(part.control) if part.control and known else None
    if question.dry_run:
        _tell_only(about, question.llm, environment, question.sessions, how, **reach)
        _show_prompts(question, environment, settings.system)
        return
    note(about)
    if question.price and price and rates and price.rates != rates.rates:
        note(f"--price is not used: the run keeps the price it has, {rates}")
    whole = part.within or folder
    check_own_folder("ledger.sqlite", whole)
    with kept_in(whole, "ledger.sqlite"):
        try:
            with _money(question.sessions) as progress:
                result = run_sessions(
                    environment,
                    question.llm,
                    sessions=question.sessions,
                    seed=question.seed,
                    out=folder,
                    within=part.within,
                    **{**vars(how), "progress": progress},
                    **reach,
                    timeout=question.timeout,
                    contaminants=read_contaminants(question.contaminate),
                )
        except (Failed, ImportError) as error:
            raise ValueError(f"{error}{stays_in(folder)}") from None
        _leave(result, folder, say)


def _leave(result: Run, folder: Path, say: Callable[[Any], object]) -> None:
    """Print a run and leave its report; its exit code says how it went."""
    from knownminds.llm_adapters.runs.runner import TRIALS
    from knownminds.validation.costs.run_page import say as page_of_run
    from knownminds.validation.pages.result_page import write_page

    page = page_of_run(result)
    note(f"report: {write_page(page, folder)}")
    if result.trials is not None:
        note(f"trials: {folder / TRIALS}")
    say(page.about(parts=()) if say is print else result.to_dict())  # transcripts are on the page
    for sentence in filter(None, (result.nothing_read, result.remedy, result.unanswered)):
        note(sentence)
    if result.nothing_read or result.gave_out:
        raise typer.Exit(3)
    if result.unfinished:
        raise typer.Exit(1)


class _OptionalPlan(Command):
    """Takes --plan with a file, and without one."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Fill in what --plan without a file means."""
        after = [*args, "--"][1:]
        filled: list[str] = []
        for word, following in zip(args, after, strict=True):
            filled.append(word)
            if word == "--plan" and following.startswith("--"):
                filled.append(SHOWN)
        return super().parse_args(ctx, filled)


def _benchmark(question: AskBenchmark, as_json: bool) -> None:
    from knownminds.llm_adapters.runs.runner import Retries, RunOptions
    from knownminds.validation.benchmarks.page import benchmark_result
    from knownminds.validation.benchmarks.plan import read_plan
    from knownminds.validation.benchmarks.registry import plan_of
    from knownminds.validation.benchmarks.running import (
        blocked_of,
        estimate,
        estimate_text,
        players_of,
        run_benchmark,
        watching,
    )

    if question.plan == SHOWN:
        print(plan_of(question.name).read_text(encoding="utf-8"), end="")
        return
    how = {name: getattr(question, name) for name in ("small", "seed", "paraphrases")}
    plan = read_plan(question.name, question.plan, **how)
    reach = {name: getattr(question, name) for name in ("base_url", "key_variable", "timeout")}
    if question.from_ and not question.dry_run:
        _take_in(question, plan)
    if question.from_ and not question.llm:
        return
    options = _options(question)
    players = players_of(plan, question.llm, prices=question.price, images=question.images, **reach)
    blocked = blocked_of(plan, players)
    about = estimate_text(estimate(plan, players, blocked))
    if question.dry_run:
        print(about)
        return
    out = question.out or Path(f"{question.name}-benchmark")
    check_own_folder("benchmark.json", out)
    note(about)
    asking = RunOptions(
        caps=question.caps or read_caps(()),
        concurrency=question.concurrency,
        retries=Retries(attempts=question.attempts),
        re_ask=question.re_ask,
        retry_errors=question.retry_errors,
        seeded=not question.no_seed,
    )
    with kept_in(out, "ledger.sqlite"), progress_bar(question.name) as draw:
        watch = None if draw is None else watching(plan, players, draw)
        played = run_benchmark(
            plan, players, out, asking=asking, options=options, blocked=blocked,
            tell=note, watch=watch,
        )  # fmt: skip
    leave(benchmark_result(played), out, as_json)
    if played.cells["trials"].sum() and not played.cells["readable"].sum():
        raise typer.Exit(3)
    if not played.complete:
        raise typer.Exit(1)


def _options(question: AskBenchmark) -> dict[str, Any]:
    """Return what the page is made of besides the trials."""
    from knownminds.validation.benchmarks.registry import paper_of

    if question.people is not None and not paper_of(question.name).people:
        raise ValueError(
            f"--people are values that models are set beside; the page of {question.name} has no "
            "place for them. Leave it out."
        )
    for name, file in (("--features", question.features), ("--people", question.people)):
        if file is not None and not file.is_file():
            raise ValueError(f"{name} is a CSV file; there is none at {file}.")
    return {
        "small": question.small or None,
        "seed": question.seed,
        "paraphrases": question.paraphrases if question.paraphrases > 1 else None,
        "features": None if question.features is None else str(question.features),
        "people": None if question.people is None else str(question.people),
    }


def _take_in(question: AskBenchmark, plan: Plan) -> None:
    """Take answers that there are into the folder; draw the page if nothing runs now."""
    from knownminds.validation.benchmarks.benchmark import take_answers
    from knownminds.validation.benchmarks.page import read_result

    out = question.out or Path(f"{question.name}-benchmark")
    check_own_folder("benchmark.json", out)
    for line in take_answers(out, plan, question.from_, _options(question)):
        note(line)
    if not question.llm:
        leave(read_result(out), out, False)


def _budget(question: AskBudget, as_json: bool) -> None:
    if question.out is not None:
        check_own_folder("", question.out)
    leave(question.answer(), question.out, as_json)


def _reveal(question: RevealQuestion, as_json: bool) -> None:
    from knownminds.llm_adapters import Failed

    if question.out is not None:
        check_own_folder("revealed.json", question.out)
    try:
        with kept_in(question.out, "ledger.sqlite"), progress_bar("reveal") as progress:
            revealed = replace(question, progress=progress).answer()
    except (Failed, ImportError) as error:
        raise ValueError(str(error)) from None
    if question.out is None:
        note("--out FOLDER keeps the beliefs and their report.")
    leave(revealed.result(), question.out, as_json)


def _key(variable: str | None) -> str | None:
    """Read a key that requests must bear; None if they need none."""
    key = None if variable is None else os.environ.get(variable, "").strip()
    if key == "":
        raise ValueError(f"The key is read from the variable {variable}, which is empty. Set it.")
    return key


def _serve(question: AskServe, as_json: bool) -> None:
    from knownminds.llm_adapters.known_minds.serve import Served
    from knownminds.llm_adapters.runs.participant import RUN
    from knownminds.validation.costs.connect import known_agent
    from knownminds.validation.engine.arguments import resolve_model

    model = resolve_model(question.model)
    environment, truth = resolve_experiment(
        question.environment, model, question.trials, question.values, question.design
    )
    agent = known_agent(model, environment, truth)
    served = Served(
        environment,
        agent,
        seed=question.seed,
        address=RUN,
        host=question.host,
        port=question.port,
        contaminants=read_contaminants(question.contaminate),
        model=question.name,
        api_key=_key(question.key_variable),
        seed_is_session=question.seed_is_session,
    )
    try:
        note(f"{agent} at {served.base_url} as {question.name}; Ctrl-C ends it.")
        served.run()
    except KeyboardInterrupt:
        raise Stopped(
            f"{served.calls} calls were answered, of which nothing is kept; the same command "
            "serves again."
        ) from None
    finally:
        served.close()


command(AskRun, _run)
command(AskBenchmark, _benchmark, _OptionalPlan)
command(AskBudget, _budget)
command(RevealQuestion, _reveal)
command(AskServe, _serve)
