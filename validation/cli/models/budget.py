"""`knownminds budget`."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from knownminds.validation.cli.output import check_own_folder
from knownminds.validation.cli.study import command, leave
from knownminds.validation.engine.question import (
    Question,
    asks,
    command_line,
    frozen_question,
    option,
)
from knownminds.validation.options import Experiment, Model, NTrials, Out, Seed
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


@frozen_question
class AskBudget(Question[Any]):
    """What `budget` is asked: a design, models and prices."""

    command: ClassVar[str] = "budget"
    help: ClassVar[str] = "Reckon calls, tokens and money of a design from its real prompts."

    environment: str = asks(Experiment)
    llm: list[str] | None = option(
        list[str] | None, "PROVIDER:MODEL, openai:gpt-4o-mini for instance.", default=None
    )
    model: str = asks(Model, default="rescorla_wagner_dual", untyped=None)
    subjects: int | None = option(int | None, "How many subjects.", default=None)
    sessions: int | None = option(int | None, "Sessions per subject.", default=None)
    trials: int | None = asks(NTrials, default=None)
    power_study: Path | None = option(
        Path | None, "Folder of a power study: price its designs.", default=None, flag="--power"
    )
    reasoning: str = option(str, "LOW-HIGH: tokens of thought before each answer.", default="0-0")
    image_tokens: str = option(str, "LOW-HIGH: tokens that a picture counts.", default="85-8500")
    price: list[str] | None = option(
        list[str] | None, "PROVIDER:MODEL=IN,OUT dollars per million tokens.", default=None
    )
    prices: Path | None = option(Path | None, "A .toml or .json file of prices.", default=None)
    batch: bool = option(
        bool, "Requests go in batches, at half the price.", default=False, flag="--batch"
    )
    date: str | None = option(str | None, "YYYY-MM-DD: the day of the prices.", default=None)
    values: list[str] | None = option(
        list[str] | None, "NAME=VALUE: a setting of the experiment.", default=None, flag="--set"
    )
    seed: int = asks(Seed, default=0)
    out: Path | None = asks(Out, default=None)


def _budget(given: dict[str, Any]) -> None:
    asked = AskBudget(**AskBudget.read(given))
    from knownminds.llm_adapters.runs.prices import parse_price, read_prices
    from knownminds.validation.costs.budget import budget as run_budget
    from knownminds.validation.costs.priced_designs import designs_of
    from knownminds.validation.engine.arguments import resolve_model
    from knownminds.validation.report import read_result

    if asked.out is not None:
        check_own_folder("budget", asked.out)
    place, _ = resolve_experiment(asked.environment, [], None, asked.values)
    designs = None
    chosen: Mapping[Any, Any] = {"subjects": 1, "sessions": 1, "trials": None}
    if asked.power_study is not None:
        designs = designs_of(read_result(asked.power_study), place)
        chosen = designs.iloc[-1].to_dict()
    overrides = {} if asked.prices is None else dict(read_prices(asked.prices))
    overrides |= dict(parse_price(text) for text in asked.price or ())
    result = run_budget(
        place,
        asked.llm or [],
        model=resolve_model(asked.model),
        subjects=asked.subjects or chosen["subjects"],
        sessions=asked.sessions or chosen["sessions"],
        trials=asked.trials or chosen["trials"],
        reasoning_tokens=_between("--reasoning", asked.reasoning),
        image_tokens=_between("--image-tokens", asked.image_tokens),
        prices=overrides,
        date=_day(asked.date),
        batch=asked.batch,
        seed=asked.seed,
        designs=designs,
    )
    options = {name: value for name, value in AskBudget.read(given).items() if name != "out"}
    typed = {AskBudget.typed()[name].name or name: value for name, value in options.items()}
    line = {"environment": "", "values": "set", "power_study": "power"}
    words = {line.get(name, name): value for name, value in typed.items() if name != "environment"}
    leave(result.about(command=command_line("budget", asked.environment, **words)), given)


command(AskBudget, {}, _budget)
