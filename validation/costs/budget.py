"""What a study with language models will cost, from a dry run through the real prompts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from datetime import date as Date  # noqa: N812 - fields and arguments are called date
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from knownminds.agents import Agent
from knownminds.environments import Environment, unknown
from knownminds.llm_adapters.batches import BATCHES
from knownminds.llm_adapters.runs.prices import Overrides, Price, Range, in_batches, price_of
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
NOTES = (
    "Ranges hold what is not known beforehand: how many tokens the bytes make, and how long the "
    "reasoning is. Those of more than one dry run also hold how sessions differ (95% prediction "
    "interval). cached: if each repeated beginning is read from the provider's cache, which is the "
    "most that a cache can save. frontier: no other design has as much power for less, or more "
    "power for as much.",
)


def budget(
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
    prices: Overrides | None = None,
    date: Date | None = None,
    batch: bool = False,
    system: str | None = None,
) -> Result:
    """Reckon what a design costs before the first call is paid.

    A synthetic agent plays `dry_runs` sessions through the real prompts, answers in words, and is
    read by the real parser; bytes are counted exactly, with all growth of the history. Tokens are
    bracketed from them (see `llm_adapters.prices`). The ends of a range are those of the 95%
    prediction interval (Student's t) for the total of all sessions, so that they hold both the
    standard error of the dry runs' mean and the variation from session to session. Dry run i
    plays the session at the address (i,), with parameters drawn from the priors at (i, 0).

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
        Lowest and highest number of tokens that a picture counts. Each provider reckons it from
        the size in another way: the default holds for all models that we know of.
    designs
        Designs with their power, to be set against their cost; see `designs_of`.
    prices
        Prices that go before the table's: a file or a mapping (see `price_of`).
    date
        The day for which prices are looked up; None for today.
    batch
        Whether requests go in batches, at half the price.
    system
        What a system message says before every prompt, which is sent and charged with it.

    Returns
    -------
    Result
        With the tables "Cost" (a row for each language model; "cached" if each repeated beginning
        is read from the provider's cache, and nothing else put into it), "Usage", and "Designs and
        their power".

    Raises
    ------
    ValueError
        For a count below 1, a reversed range, no language model, one without a known price, or
        one that takes no batches.
    """
    charged = _charged(llms, prices, date, batch)
    for name, count in (("subjects", subjects), ("sessions", sessions), ("dry_runs", dry_runs)):
        check_count(name, count)
    n = int(subjects) * int(sessions)
    if n > MOST_SESSIONS:
        raise ValueError(f"A budget is for at most {MOST_SESSIONS:,} sessions; got {n:,}.")
    thinking = _range("reasoning_tokens", "answer", reasoning_tokens)
    looking = _range("image_tokens", "picture", image_tokens)
    agent = resolve_model(model)
    experiment = resolve_environment(environment, trials, listed=False)
    agent.check_plays(experiment)

    def dry(of: Environment) -> DryRuns:
        return dry_runs_of(of, agent, dry_runs, seed, thinking, looking, system)

    whole = dry(experiment)
    runs = {experiment.n_trials: whole}
    for size in () if designs is None else sorted(set(designs["trials"]) - set(runs)):
        runs[size] = dry(resolve_environment(experiment, size, listed=False))
    priced = pd.DataFrame() if designs is None else priced_designs(charged, designs, runs)
    costs = pd.DataFrame([_cost_row(price, whole, n) for price in charged]).set_index("llm")
    figures = {
        "Dollars, from the lowest to the highest; below, at best from the cache.": Drawing(
            costs.reset_index(), draw_dollars
        ),
        "Bytes of the prompt of each call, mean and range of the dry runs. Dashed: how many of "
        "them begin as the previous prompt did.": Drawing(whole.sizes(), draw_prompts),
    }
    if len(priced):
        figures["Power against the upper end of the cost. Filled: the frontier."] = Drawing(
            priced, draw_frontier
        )
    return Result(
        f"What does {experiment.name} cost with language models?",
        tables={
            "Cost": costs,
            "Usage": _usage_table(whole.usage(n)),
            "Designs and their power": priced.set_index("llm") if len(priced) else priced,
        },
        figures=figures,
        notes=[*NOTES, *whole.notes()],
        options={
            "experiment": experiment.name,
            "model": agent.name,
            "subjects": subjects,
            "sessions": sessions,
            "trials": experiment.n_trials,
            "dry runs": dry_runs,
        },
    )


def _charged(
    llms: Sequence[str | Price] | str, prices: Overrides | None, date: Date | None, batch: bool
) -> list[Price]:
    """Return the price of each language model; ValueError for one without a price or batches."""
    names = list(dict.fromkeys([llms] if isinstance(llms, str) else llms))
    if not names:
        raise ValueError('A budget is for at least one language model, "provider:model"; got none.')
    day = date or datetime.now(UTC).date()
    charged = [one if isinstance(one, Price) else price_of(one, day, prices) for one in names]
    if not batch:
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
    amounts["bytes per session"] = Score(use.bytes_per_session, use.bytes_error or np.nan)
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


def check_count(name: str, count: object) -> None:
    """Raise ValueError if this is no number of things, from 1 on."""
    if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 1:
        raise ValueError(f"{name} is a whole number from 1 on; got {count!r}.")


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
