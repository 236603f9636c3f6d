"""What a study with language models will cost, from a dry run through the real prompts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from knownminds.environments import Environment, unknown
from knownminds.llm_adapters.batches import BATCHES
from knownminds.llm_adapters.configuration import Participant
from knownminds.llm_adapters.runs.prices import Price, Range, in_batches, parse_price, price_of
from knownminds.validation.engine.arguments import (
    check_count,
    check_dollars,
    check_seed,
    resolve_environment,
    set_to,
)
from knownminds.validation.engine.parts import Drawing
from knownminds.validation.engine.question import verb
from knownminds.validation.engine.result import Result
from knownminds.validation.pages import figures as draw
from knownminds.validation.power.pilot import settings_of_run
from knownminds.validation.report import read_result

from .dry_runs import DesignUsage, DryRuns, dry_runs_of
from .priced_designs import designs_of, priced_designs
from .questions import AskBudget

MOST_SESSIONS = 1_000_000_000
SPLIT = ("--from", "--effect", "--dollars")
NOTES = (
    "Ranges hold what is not known beforehand: how many tokens the bytes make, and how long the "
    "reasoning is. Those of more than one dry run also hold how sessions differ (95% prediction "
    "interval). cached: if each repeated beginning is read from the provider's cache, which is the "
    "most that a cache can save. frontier: no other design has as much power for less, or more "
    "power for as much.",
)


budget = verb(AskBudget, __name__)


def compute(question: AskBudget) -> Result:
    """Answer `budget`: the tables "Cost", "Usage", and "Designs and their power"."""
    experiment = resolve_environment(question.environment, listed=False)
    if question.pilot is not None and isinstance(question.environment, str):
        experiment = set_to(experiment, settings_of_run(question.pilot, question.environment))
    experiment = set_to(experiment, question.settings)
    designs, doubts = pd.DataFrame(), []
    chosen: dict[Any, Any] = {"subjects": 1, "sessions": 1, "trials": None}
    if question.power is not None:
        study = read_result(question.power)
        designs = designs_of(study, experiment)
        if study.missing:
            doubts.append(
                f"The power study in {question.power} is not finished: the last design that it "
                "has tried is priced."
            )
        chosen = designs.iloc[-1].to_dict()
    subjects, sessions, trials = (
        given if (given := getattr(question, name)) is not None else chosen[name]
        for name in ("subjects", "sessions", "trials")
    )
    charged = _charged(question)
    check_seed(question.seed)
    for name, count in (
        ("subjects", subjects), ("sessions", sessions), ("dry_runs", question.dry_runs),
    ):  # fmt: skip
        check_count(name, count)
    n = int(subjects) * int(sessions)
    if n > MOST_SESSIONS:
        raise ValueError(f"A budget is for at most {MOST_SESSIONS:,} sessions; got {n:,}.")
    thinking = _range("reasoning", "answer", question.reasoning)
    looking = _range("image_tokens", "picture", question.image_tokens)
    agent = question.agent
    experiment = resolve_environment(experiment, trials, listed=False)
    agent.check_plays(experiment)

    def dry(of: Environment) -> DryRuns:
        n, seed = question.dry_runs, question.seed
        return dry_runs_of(of, agent, n, seed, thinking, looking, question.system)

    whole = dry(experiment)
    runs = {experiment.n_trials: whole}
    for size in sorted(set(designs.get("trials", ())) - set(runs)):
        runs[size] = dry(resolve_environment(experiment, size, listed=False))
    priced = priced_designs(charged, designs, runs) if len(designs) else designs
    splits, about = _splits(question, experiment, charged, whole)
    costs = pd.DataFrame([_cost_row(price, whole, n) for price in charged]).set_index("llm")
    figures = {
        "Dollars, from the lowest to the highest; below, at best from the cache.": Drawing(
            costs.reset_index(), draw_dollars
        )
    }
    if len(priced):
        figures["Power against the upper end of the cost. Filled: the frontier."] = Drawing(
            priced, draw_frontier
        )
    return Result(
        f"What {'does a session' if n == 1 else f'do {n} sessions'} of {experiment.name} cost with "
        "language models?",
        tables={
            **({"Wordings and sessions": splits} if len(splits) else {}),
            "Cost": costs,
            "Usage": _usage_table(whole.usage(n)),
            "Designs and their power": priced.set_index("llm") if len(priced) else priced,
        },
        figures=figures,
        warnings=[*doubts, *whole.warnings()],
        notes=[*about, *NOTES, *whole.notes()],
        options={
            "experiment": experiment.name,
            "model": agent.name,
            "subjects": subjects,
            "sessions": sessions,
            "trials": experiment.n_trials,
            "dry runs": question.dry_runs,
        },
        command=question.command_line(),
    )


def _splits(
    question: AskBudget, experiment: Environment, charged: Sequence[Price], runs: DryRuns
) -> tuple[pd.DataFrame, Sequence[str]]:
    """Split what may be paid into wordings and sessions, for each language model; say what it is.

    Raises
    ------
    ValueError : If an option is lacking, or the run is no pilot of wordings.
    """
    given = (question.pilot, question.effect, question.dollars)
    if all(one is None for one in given):
        return pd.DataFrame(), ()
    if any(one is None for one in given) or len(question.effect or ()) != 1:
        raise ValueError(
            "Dollars are split by a pilot and an effect: --from RUN, one --effect NAME=SIZE and "
            "--dollars D together; got "
            f"{', '.join(name for name, one in zip(SPLIT, given, strict=True) if one is not None)}."
        )
    from knownminds.validation.power import wordings

    for option in ("subjects", "sessions"):
        if getattr(question, option) is not None:
            raise ValueError(
                f"With --from the dollars say how many sessions there are; got --{option}. Leave "
                "it out."
            )
    assert question.dollars is not None
    check_dollars(question.dollars)
    dollars = Decimal(str(question.dollars))
    ((name, size),) = dict(question.effect or {}).items()
    bought = {price.llm: runs.affordable(price, dollars) for price in charged}
    table = wordings.split(
        str(question.pilot), name, size, experiment, question.agent, bought, question.seed
    )
    return table, wordings.NOTES


def _charged(question: AskBudget) -> list[Price]:
    """Return the price of each language model; ValueError for one without a price or batches."""
    llms = question.llm
    names = list(dict.fromkeys([llms] if isinstance(llms, str) else llms))
    if not names:
        raise ValueError('A budget is for at least one language model, "provider:model"; got none.')
    if any(isinstance(one, str) and "system" in Participant.read(one).sampling for one in names):
        raise ValueError("A budget has one system message for all models: say it with --system.")
    overrides = dict(parse_price(text) for text in question.price)
    day = question.date or datetime.now(UTC).date()
    charged = [one if isinstance(one, Price) else price_of(one, day, overrides) for one in names]
    if not question.batch:
        return charged
    for price in charged:
        if (provider := price.llm.partition(":")[0]) not in BATCHES:
            raise ValueError(unknown("provider with batches", provider, BATCHES))
    return [in_batches(price) for price in charged]


def _usage_table(use: DesignUsage) -> pd.DataFrame:
    """Return calls, bytes and tokens of all sessions."""
    amounts: dict[str, Any] = {"calls": use.calls}
    for name in ("input_bytes", "input_tokens", "output_tokens"):
        for end in ("low", "high"):
            amounts[f"{name.replace('_', ' ')} {end}"] = getattr(getattr(use, name), end)
    amounts["cacheable"] = use.cacheable
    amounts["bytes per session"] = round(use.bytes_per_session)
    if use.bytes_error:
        amounts["standard error of these bytes"] = round(use.bytes_error)
    table = pd.DataFrame({"amount": pd.Series(amounts, dtype=object)})
    return table.rename_axis("of")


def _range(name: str, unit: str, given: tuple[int, int]) -> Range:
    rule = f"{name} are the lowest and the highest number per {unit}, from 0 on"
    try:
        low, high = given
    except (TypeError, ValueError):
        raise ValueError(f"{rule}; got {given!r}.") from None
    for value in (low, high):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 0:
            raise ValueError(f"{rule}; got {given!r}.")
    if low > high:
        raise ValueError(f"{rule}; got {low} and {high}. Give the lower one first.")
    return Range(int(low), int(high))


def _cost_row(price: Price, runs: DryRuns, n: int) -> dict[str, Any]:
    """Return what n sessions cost at a price, without a cache and at best from one."""
    dollars, cached = runs.dollars(price, n), runs.dollars_cached(price, n)
    return {
        "llm": price.llm,
        "dollars low": float(dollars.low),
        "dollars high": float(dollars.high),
        "cached low": float(cached.low) if cached else np.nan,
        "cached high": float(cached.high) if cached else np.nan,
        "price input": float(price.input),
        "price output": float(price.output),
        "price cached input": np.nan if price.cached_input is None else float(price.cached_input),
        "priced as": f"{price.provider}:{price.model}",
        "source": price.source,
        "date": price.date.isoformat(),
    }


def draw_dollars(costs: pd.DataFrame) -> Figure:
    """Draw what each language model costs, from the dearest down."""
    figure, (axis,) = draw.panels(1)
    figure.set_size_inches(7.2, 0.9 + 0.42 * len(costs))
    rows = costs.sort_values("dollars high")
    low, high = costs["dollars low"].min(), costs["dollars high"].max()
    if low > 0 and high > 30 * low:
        axis.set_xscale("log")
    for k, row in enumerate(rows.to_dict("records")):
        ends = [row["dollars low"], row["dollars high"]]
        axis.plot(ends, [k, k], "|-", color=draw.BLUE, linewidth=6, solid_capstyle="butt")
        if np.isfinite(row["cached low"]):
            cached = [row["cached low"], row["cached high"]]
            axis.plot(cached, [k - 0.28] * 2, "|-", color=draw.ORANGE, linewidth=1.6, markersize=5)
    axis.set_yticks(range(len(rows)), list(rows["llm"]))
    axis.set_ylim(-0.6, len(rows) - 0.5)
    if axis.get_xscale() == "linear":
        axis.set_xlim(left=0)
    draw.dollars(axis)
    return figure


def draw_frontier(designs: pd.DataFrame) -> Figure:
    """Draw power against cost, one curve of best offers for each language model."""
    figure, (axis,) = draw.panels(1)
    figure.set_size_inches(6.4, 3.4)
    if (designs["dollars high"] > 0).all():
        axis.set_xscale("log")
    groups = list(designs.groupby("llm", sort=False))
    for (name, offers), (colour, marker, dash) in zip(
        groups, draw.styles(len(groups)), strict=True
    ):
        for best, some in offers.groupby("frontier"):
            look = (colour, marker, dash if best else "none")
            costs, scores = list(some["dollars high"]), list(some["power"])
            draw.curve(axis, costs, scores, look, str(name) if best else "", hollow=not best)
    draw.dollars(axis)
    axis.set(xlabel="upper end of the cost", ylabel="power", ylim=(0, 1.02))
    draw.key(figure, axis)
    return figure
