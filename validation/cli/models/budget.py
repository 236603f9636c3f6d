"""`knownminds budget`."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Annotated

import typer

from knownminds.validation.cli.application import app
from knownminds.validation.cli.output import check_own_folder, notes, print_json
from knownminds.validation.options import Experiment, Json, Model, NTrials, Out, Seed
from knownminds.validation.reading import resolve_experiment


def _between(option: str, text: str) -> tuple[int, int]:
    """Read LOW-HIGH."""
    low, dash, high = text.partition("-")
    if not (dash and low.isdecimal() and high.isdecimal()):
        raise ValueError(f"{option} takes LOW-HIGH, 0-500 for instance; got {text!r}.")
    return int(low), int(high)


def _day(text: str | None) -> datetime.date | None:
    """Read a date."""
    if text is None:
        return None
    try:
        return datetime.date.fromisoformat(text)
    except ValueError:
        raise ValueError(f"--date takes YYYY-MM-DD; got {text!r}.") from None


@app.command()
def budget(
    environment: Experiment,
    llm: Annotated[
        list[str] | None, typer.Option(help="PROVIDER:MODEL, openai:gpt-4o-mini for instance.")
    ] = None,
    model: Model = "rescorla_wagner_dual",
    subjects: Annotated[int | None, typer.Option(help="How many subjects.")] = None,
    sessions: Annotated[
        int | None, typer.Option(help="Sessions per subject.", max=1_000_000)
    ] = None,
    trials: NTrials = None,
    power_study: Annotated[
        Path | None, typer.Option("--power", help="Folder of a power study: price its designs.")
    ] = None,
    reasoning: Annotated[
        str, typer.Option(help="LOW-HIGH: tokens of thought before each answer.")
    ] = "0-0",
    image_tokens: Annotated[
        str, typer.Option(help="LOW-HIGH: tokens that a picture counts.")
    ] = "85-8500",
    price: Annotated[
        list[str] | None, typer.Option(help="PROVIDER:MODEL=IN,OUT dollars per million tokens.")
    ] = None,
    prices: Annotated[Path | None, typer.Option(help="A .toml or .json file of prices.")] = None,
    date: Annotated[str | None, typer.Option(help="YYYY-MM-DD: the day of the prices.")] = None,
    values: Annotated[
        list[str] | None, typer.Option("--set", help="NAME=VALUE: a setting of the experiment.")
    ] = None,
    seed: Seed = 0,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Reckon calls, tokens and money of a design from its real prompts."""
    from knownminds.llm_adapters.runs.prices import parse_price, read_prices
    from knownminds.validation.costs.budget import budget as run_budget
    from knownminds.validation.costs.priced_designs import designs_of
    from knownminds.validation.engine.arguments import resolve_model
    from knownminds.validation.report import read_result, write_report

    if out is not None:
        check_own_folder("budget", out)
    place, _ = resolve_experiment(environment, [], None, values)
    designs = [] if power_study is None else designs_of(read_result(power_study), place)
    chosen = designs[-1] if designs else None
    overrides = {} if prices is None else dict(read_prices(prices))
    overrides |= dict(parse_price(text) for text in price or ())
    result = run_budget(
        place,
        llm or [],
        model=resolve_model(model),
        subjects=subjects or (chosen.subjects if chosen else 1),
        sessions=sessions or (chosen.sessions if chosen else 1),
        trials=trials or (chosen.trials if chosen else None),
        reasoning_tokens=_between("--reasoning", reasoning),
        image_tokens=_between("--image-tokens", image_tokens),
        prices=overrides,
        date=_day(date),
        seed=seed,
        designs=designs,
    )
    if out is not None:
        result.save(out)
        notes.print(f"report: {write_report(result, out)}", markup=False, soft_wrap=True)
    if as_json:
        print_json(result.to_dict())
    else:
        print(result)
