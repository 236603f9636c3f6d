"""What a study with language models will cost, from a dry run through the real prompts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from datetime import date as Date  # noqa: N812 - fields and arguments are called date
from typing import Any, TypedDict, Unpack

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from knownminds.agents import Agent
from knownminds.environments import Environment, unknown
from knownminds.llm_adapters.batches import BATCHES
from knownminds.llm_adapters.runs.prices import (
    Dollars,
    Overrides,
    Price,
    Range,
    in_batches,
    price_of,
)
from knownminds.validation.engine.arguments import resolve_environment, resolve_model
from knownminds.validation.engine.result import Drawing, Result
from knownminds.validation.engine.scores import Score
from knownminds.validation.pages import figures as draw

from .dry_runs import DesignUsage, DryRuns, dry_runs_of
from .priced_designs import priced_designs

MOST_SESSIONS = 1_000_000_000
# A picture of 512 x 512 counts 85 tokens with OpenAI's models at low detail, 255 with gpt-4o, 258
# with Google's, 350 with Anthropic's, and 8,500 with gpt-4o-mini.
IMAGE_TOKENS = (85, 8500)


class Pricing(TypedDict, total=False):
    """Where prices come from.

    Parameters
    ----------
    prices
        Prices that go before the table's: a file or a mapping (see `price_of`).
    date
        The day for which prices are looked up; None for today.
    batch
        Whether requests go in batches, at half the price.
    system
        What a system message says before every prompt, which is sent and charged with it.
    """

    prices: Overrides | None
    date: Date | None
    batch: bool
    system: str | None


@dataclass(frozen=True)
class Cost:
    """What one language model charges for the whole design.

    Parameters
    ----------
    dollars : without any cache
    dollars_cached : if each repeated beginning is read from the provider's cache, and nothing
        else put into it, which is the most that a cache can save; None where that price is unknown
    """

    price: Price
    dollars: Dollars
    dollars_cached: Dollars | None


@dataclass(frozen=True)
class Budget:
    """Calls, tokens and money of a design, and the dated prices that they were reckoned with.

    Parameters
    ----------
    environment : the experiment
    model, dry_runs : the synthetic agent that went through the prompts, how often
    subjects, sessions, trials : subjects, sessions of each, trials of each session
    sizes : bytes call by call, see `DryRuns.sizes`
    usage : bytes and tokens of the whole design
    costs : money, one entry for each language model
    designs : one row for each design and language model, see `priced_designs`; empty without
    notes : what the figures leave out
    """

    environment: str
    model: str
    dry_runs: int
    subjects: int
    sessions: int
    trials: int
    sizes: pd.DataFrame
    usage: DesignUsage
    costs: tuple[Cost, ...]
    designs: pd.DataFrame
    notes: tuple[str, ...]

    def __getitem__(self, llm: str) -> Cost:
        """Return the cost with this language model."""
        for cost in self.costs:
            if cost.price.llm == llm:
                return cost
        raise ValueError(
            unknown("language model", llm, [c.price.llm for c in self.costs], " in this budget")
        )


def reckon(
    environment: Environment | str,
    llms: Sequence[str | Price] | str,
    *,
    model: type[Agent] | str = "rescorla_wagner_dual",
    subjects: int = 1,
    sessions: int = 1,
    trials: int | None = None,
    reasoning_tokens: tuple[int, int] = (0, 0),
    image_tokens: tuple[int, int] = IMAGE_TOKENS,
    dry_runs: int = 4,
    seed: int = 0,
    designs: pd.DataFrame | None = None,
    **pricing: Unpack[Pricing],
) -> Budget:
    """Reckon what a design costs before the first call is paid.

    A synthetic agent lives `dry_runs` sessions through the real prompts, answers as asked, and is
    read by the real parser; bytes are counted exactly, with all growth of the history. Tokens are
    bracketed from them (see `llm_adapters.prices`). The ends of a range are those of the 95%
    prediction interval (Student's t) for the total of all sessions, so that they hold both the
    standard error of the dry runs' mean and the variation from session to session. Dry run i
    lives the session at the address (i,), with parameters drawn from the priors at (i, 0).

    Parameters
    ----------
    environment
        The experiment with its wording, or its name.
    llms
        Language models, each "provider:model", or the price of one.
    model
        The synthetic agent's model.
    subjects, sessions, trials
        The design: subjects, sessions of each, trials of each session (None for as many as the
        environment has). Each session begins with an empty history.
    reasoning_tokens
        Lowest and highest number of tokens that a language model thinks before one answer. They
        are charged as output. Where the answer may hold thoughts, the upper end takes them as
        part of it, so that they are sent again in each later prompt that repeats the answer.
    image_tokens
        Lowest and highest number of tokens that a picture counts. Providers reckon it from the
        size in ways of their own: what is the default holds for all models that we know of.
    designs
        Designs with their power, to be set against their cost; see `designs_of`.
    pricing
        See `Pricing`: `prices`, the `date` they are of, whether in a `batch`, `system` message.

    Raises
    ------
    ValueError
        For a count below 1, a reversed range, no language model, one without a known price, or
        one that takes no batches.
    """
    names = list(dict.fromkeys([llms] if isinstance(llms, str) else llms))
    if not names:
        raise ValueError('A budget is for at least one language model, "provider:model"; got none.')
    for name, count in (("subjects", subjects), ("sessions", sessions), ("dry_runs", dry_runs)):
        check_count(name, count)
    n = int(subjects) * int(sessions)
    if n > MOST_SESSIONS:
        raise ValueError(f"A budget is for at most {MOST_SESSIONS:,} sessions; got {n:,}.")
    thinking = _range("reasoning_tokens", "answer", reasoning_tokens)
    looking = _range("image_tokens", "picture", image_tokens)
    agent = resolve_model(model)
    environment = resolve_environment(environment, trials, listed=False)
    agent.check_plays(environment)
    charged, system = _charged(names, **pricing), pricing.get("system")

    def dry(of: Environment) -> DryRuns:
        return dry_runs_of(of, agent, dry_runs, seed, thinking, looking, system)

    runs = {environment.n_trials: dry(environment)}
    whole = runs[environment.n_trials]
    if designs is not None:
        for n_trials in sorted(set(designs["trials"]) - set(runs)):
            runs[n_trials] = dry(resolve_environment(environment, n_trials, listed=False))
    return Budget(
        environment=environment.name,
        model=agent.name,
        dry_runs=dry_runs,
        subjects=subjects,
        sessions=sessions,
        trials=environment.n_trials,
        sizes=whole.sizes(),
        usage=whole.usage(n),
        costs=tuple(Cost(p, whole.dollars(p, n), whole.dollars_cached(p, n)) for p in charged),
        designs=pd.DataFrame() if designs is None else priced_designs(charged, designs, runs),
        notes=whole.notes(),
    )


def _charged(names: Sequence[str | Price], **pricing: Unpack[Pricing]) -> list[Price]:
    """Look prices up."""
    day, prices = pricing.get("date") or datetime.now(UTC).date(), pricing.get("prices")
    charged = [n if isinstance(n, Price) else price_of(n, day, prices) for n in names]
    if not pricing.get("batch"):
        return charged
    for provider in (price.llm.partition(":")[0] for price in charged):
        if provider not in BATCHES:
            raise ValueError(unknown("provider with batches", provider, BATCHES))
    return [in_batches(price) for price in charged]


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


def check_count(name: str, count: object) -> None:
    """Raise ValueError if this is no number of things, from 1 on."""
    if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 1:
        raise ValueError(f"{name} is a whole number from 1 on; got {count!r}.")


NOTES = (
    "Ranges hold what is not known beforehand: how many tokens the bytes make, and how long the "
    "reasoning is. Those of more than one dry run also hold how sessions differ (95% prediction "
    "interval). cached: if each repeated beginning is read from the provider's cache, which is the "
    "most that a cache can save. frontier: no other design has as much power for less, or more "
    "power for as much.",
)


def budget(environment: Environment | str, llms: Sequence[str | Price] | str, **how: Any) -> Result:
    """Reckon what a design costs; arguments are those of `reckon`."""
    return say(reckon(environment, llms, **how))


def say(budget: Budget) -> Result:
    """Return the tables and figures of a budget."""
    usage = budget.usage
    costs = pd.DataFrame([_cost_row(cost) for cost in budget.costs]).set_index("llm")
    use = {
        "calls": usage.calls,
        "input bytes low": usage.input_bytes.low,
        "input bytes high": usage.input_bytes.high,
        "cacheable": usage.cacheable,
        "input tokens low": usage.input_tokens.low,
        "input tokens high": usage.input_tokens.high,
        "output tokens low": usage.output_tokens.low,
        "output tokens high": usage.output_tokens.high,
        "bytes per session": Score(usage.bytes_per_session, usage.bytes_error or np.nan),
    }
    sizes, designs = budget.sizes, budget.designs
    figures = {
        "Dollars, from the lowest to the highest; below, at best from the cache.": Drawing(
            costs.reset_index(), draw_dollars
        ),
        "Bytes of the prompt of each call, mean and range of the dry runs. Dashed: how many of "
        "them begin as the previous prompt did.": Drawing(sizes, draw_prompts),
    }
    if len(designs):
        figures["Power against the upper end of the cost. Filled: the frontier."] = Drawing(
            designs, draw_frontier
        )
    return Result(
        f"What does {budget.environment} cost with language models?",
        tables={
            "Cost": costs,
            "Usage": pd.DataFrame({"amount": pd.Series(use, dtype=object)}).rename_axis("of"),
            "Designs and their power": designs.set_index("llm") if len(designs) else designs,
        },
        figures=figures,
        notes=[*NOTES, *budget.notes],
        asked={
            "experiment": budget.environment,
            "model": budget.model,
            "subjects": budget.subjects,
            "sessions": budget.sessions,
            "trials": budget.trials,
            "dry runs": budget.dry_runs,
        },
    )


def _cost_row(cost: Cost) -> dict[str, Any]:
    price, cached = cost.price, cost.dollars_cached
    return {
        "llm": price.llm,
        "dollars low": float(cost.dollars.low),
        "dollars high": float(cost.dollars.high),
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


def draw_prompts(sizes: pd.DataFrame) -> Figure:
    """Draw the bytes of the prompts, trial by trial."""
    figure, (axis,) = draw.panels(1)
    figure.set_size_inches(6.4, 2.9)
    call = sizes["trial"] + 1
    ends = (sizes["prompt_bytes_low"], sizes["prompt_bytes_high"])
    axis.fill_between(call, *ends, color=draw.BLUE, alpha=0.25, linewidth=0)
    axis.plot(call, sizes["prompt_bytes"], color=draw.BLUE, linewidth=1.4, label="prompt")
    axis.plot(
        call, sizes["repeated_bytes"], "--",
        color=draw.ORANGE, linewidth=1.2, label="begins as the previous prompt",
    )  # fmt: skip
    axis.set(xlabel="call", ylabel="bytes")
    axis.set_ylim(bottom=0)
    axis.legend(frameon=False, fontsize=draw.SMALL)
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
