"""`knownminds run`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from knownminds.validation.cli.application import app
from knownminds.validation.cli.output import check_own_folder, notes, print_json
from knownminds.validation.options import (
    Contaminate,
    DesignName,
    Experiment,
    Json,
    NTrials,
    Seed,
    Values,
)
from knownminds.validation.reading import (
    read_caps,
    read_contaminants,
    read_rates,
    resolve_experiment,
)
from knownminds.validation.studies import STUDIES

if TYPE_CHECKING:
    from knownminds.environments import Environment
    from knownminds.llm_adapters import Sampling
    from knownminds.llm_adapters.runs.runner import Progress as Standing


@contextmanager
def _money(sessions: int) -> Iterator[Callable[[Standing], None] | None]:
    """Give a progress callback of a run, with the money spent; None where stderr is no terminal."""
    if not notes.is_terminal:
        yield None
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("run"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[told]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=notes, transient=True) as bar:
        task = bar.add_task("run", total=None, told="")

        def show(now: Standing) -> None:
            told = _standing(now, sessions)
            bar.update(task, completed=now.trials, total=now.n_trials, told=told)

        yield show


def _standing(now: Standing, sessions: int) -> str:
    """Say where a run stands, in a line."""
    money = "no price" if now.dollars is None else f"${now.dollars:.4f}"
    return (
        f"{now.sessions}/{sessions} sessions, {now.missing} unread, {now.calls} calls, {money}, "
        f"{now.under_way} of {now.allowed} under way"
    )


def _tell_only(
    about: str, llm: str, place: Environment, settings: Sampling, reach: dict[str, Any]
) -> None:
    """Print the estimate, unless the run would stop before its first call."""
    from knownminds.llm_adapters import Unusable
    from knownminds.validation.costs.connect import rehearse

    try:
        rehearse(llm, place, settings, **reach)
    except Unusable as error:
        raise ValueError(str(error)) from None
    print(about)


@app.command()
def run(
    environment: Experiment,
    llm: Annotated[str, typer.Option(help="PROVIDER:MODEL, openai:gpt-4o-mini for instance.")],
    sessions: Annotated[int, typer.Option(help="How many sessions.", max=1_000_000)] = 1,
    trials: NTrials = None,
    design: DesignName = None,
    seed: Seed = 0,
    values: Values = None,
    base_url: Annotated[str | None, typer.Option(help="A server of your own.")] = None,
    key_variable: Annotated[
        str | None, typer.Option(help="The environment variable that holds the key.")
    ] = None,
    timeout: Annotated[float | None, typer.Option(help="Seconds until a call is given up.")] = None,
    images: Annotated[
        bool, typer.Option("--images", help="The model sees pictures; for one not known.")
    ] = False,
    temperature: Annotated[float | None, typer.Option(help="0 to 2.")] = None,
    top_p: Annotated[float | None, typer.Option(help="0 to 1.")] = None,
    max_tokens: Annotated[int | None, typer.Option(help="Where an answer is cut off.")] = None,
    reasoning: Annotated[str | None, typer.Option(help="none, low, medium or high.")] = None,
    top_log_probabilities: Annotated[
        int | None, typer.Option(help="Alternatives kept with each token.")
    ] = None,
    concurrency: Annotated[int, typer.Option(help="Sessions under way at a time.")] = 8,
    attempts: Annotated[int, typer.Option(help="Calls per question, if the provider fails.")] = 5,
    re_ask: Annotated[int, typer.Option(help="How often to ask again if malformed.")] = 0,
    retry_errors: Annotated[
        bool, typer.Option("--retry-errors", help="Ask trials again that had no answer.")
    ] = False,
    cap: Annotated[
        list[str] | None,
        typer.Option(help="NAME=MOST: calls, tokens, dollars, session_calls, ..., answer_tokens."),
    ] = None,
    price: Annotated[
        str | None, typer.Option(help="IN,OUT or IN,OUT,CACHED dollars per million tokens.")
    ] = None,
    contaminate: Contaminate = None,
    fault: Annotated[
        list[str] | None,
        typer.Option(help="NAME=RATE: rate_limited, failed, timed_out, ...: a rehearsal."),
    ] = None,
    dry_run: Annotated[bool, typer.Option(help="Only estimate calls, tokens and money.")] = False,
    out: Annotated[Path | None, typer.Option(help="Folder of the run.")] = None,
    as_json: Json = False,
) -> None:
    """Let a language model live sessions; the same command goes on where it stopped.

    The exit code is 0 once all sessions are lived to their end, 1 if some are not, 3 if not one
    answer could be read or questions in a row had no answer, 2 for bad input or a run in vain.
    """
    from knownminds.agents import AGENTS
    from knownminds.llm_adapters import Sampling, Unusable
    from knownminds.llm_adapters.known_minds.faulty import Faults
    from knownminds.llm_adapters.runs.ledger import LedgerFailed
    from knownminds.llm_adapters.runs.prices import parse_price
    from knownminds.llm_adapters.runs.runner import TRIALS, Retries, price_in, read_run
    from knownminds.validation.costs.connect import estimate, folder_of, price_for
    from knownminds.validation.costs.connect import run as run_sessions
    from knownminds.validation.report import write_report

    provider, _, model = llm.partition(":")
    minds = [AGENTS[model]] if provider == "synthetic" and model in AGENTS else []
    place, truth = resolve_experiment(environment, minds, trials, values, design)
    overrides = dict([parse_price(f"{llm}={price}")]) if price else {}
    folder = out or folder_of(place, llm)
    found = price_for(llm, overrides, elsewhere=base_url is not None)
    rates = price_in(folder) or found
    caps = read_caps(cap)
    settings = Sampling(
        temperature=temperature,
        top_p=top_p,
        max_tokens=max_tokens,
        reasoning=reasoning,  # type: ignore[arg-type]  # checked there, with the nearest name
        top_log_probabilities=top_log_probabilities,
    )
    about = estimate(place, llm, sessions, rates)
    reach = {"base_url": base_url, "key_variable": key_variable, "images": images}
    if dry_run:
        _tell_only(about, llm, place, settings, {**reach, "truth": truth})
        return
    notes.print(about, markup=False, soft_wrap=True)
    if price and found and rates and (found.rates, found.per_call) != (rates.rates, rates.per_call):
        notes.print(
            f"--price is not used: the run keeps the price it has, {rates}",
            markup=False,
            soft_wrap=True,
        )
    check_own_folder("run", folder)
    try:
        with _money(sessions) as progress:
            lived = run_sessions(
                place,
                llm,
                sessions=sessions,
                seed=seed,
                out=folder,
                settings=settings,
                concurrency=concurrency,
                retries=Retries(attempts=attempts),
                caps=caps,
                price=rates,
                re_ask=re_ask,
                retry_errors=retry_errors,
                progress=progress,
                **reach,
                timeout=timeout,
                truth=truth,
                contaminants=read_contaminants(contaminate),
                faults=read_rates("--fault", fault, Faults) if fault else None,
            )
    except (ImportError, LedgerFailed, Unusable) as error:
        kept = (
            f" What was paid for stays in {folder}." if (folder / "ledger.sqlite").exists() else ""
        )
        raise ValueError(f"{error}{kept}") from None
    except KeyboardInterrupt:
        if (folder / STUDIES["run"].file).exists():
            notes.print(str(read_run(folder, place)), markup=False, soft_wrap=True)
        raise
    notes.print(f"report: {write_report(lived, folder)}", markup=False, soft_wrap=True)
    if lived.trials is not None:
        notes.print(f"trials: {folder / TRIALS}", markup=False, soft_wrap=True)
    if as_json:
        print_json(lived.to_dict())
    else:
        print(lived)
    for sentence in filter(None, (lived.nothing_read, lived.remedy, lived.unanswered)):
        notes.print(sentence, markup=False, soft_wrap=True)
    if lived.nothing_read or lived.gave_out:
        raise typer.Exit(3)
    if lived.unfinished:
        raise typer.Exit(1)
