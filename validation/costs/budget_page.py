"""The page of a budget: words, tables and figures."""

from __future__ import annotations

import inspect
import json
import shlex
from collections.abc import Sequence
from decimal import Decimal

import numpy as np

from knownminds.environments import make
from knownminds.llm_adapters.runs.prices import HALVED, Price
from knownminds.validation.engine.arguments import settings_asked, settings_but_size
from knownminds.validation.engine.monte_carlo import Score
from knownminds.validation.pages import figures as draw
from knownminds.validation.pages.page import Page, Table, counted, listed, table

from .budget import IMAGE_TOKENS, Budget, Cost
from .budget import budget as run_budget
from .priced_designs import PricedDesign

TABLE = "genai-prices"  # sources of other names are the user's
SESSIONS_DIFFER = "They also hold how sessions differ (95% prediction interval from the dry runs)."


def budget_page(budget: Budget) -> Page:
    """Return the page of a budget."""
    usage = budget.usage
    error = "" if usage.bytes_error is None else f" (standard error {usage.bytes_error:,.0f})"
    about, most = ("About ", "at most ") if budget.ends_early else ("", "")
    calls = f"{about}{counted(usage.calls, 'call')}"
    sentences = [
        f"{calls}: {usage.input_tokens} input tokens and "
        f"{usage.output_tokens} output tokens, whichever language model answers.",
        f"A session sends {usage.bytes_per_session:,.0f} bytes{error}; {usage.cacheable:.0%} of "
        "them begin as the previous prompt did.",
        *(f"{cost.price.llm} costs {cost.dollars}." for cost in budget.costs),
    ]
    settings = settings_but_size(make(budget.environment, **budget.settings))
    return Page(
        title=f"What does {budget.environment} cost with language models?",
        asked=[
            ("experiment", budget.environment),
            ("settings", listed(settings)),
            ("subjects", str(budget.subjects)),
            ("sessions per subject", str(budget.sessions)),
            ("trials per session", f"{most}{budget.trials}"),
            ("reasoning", f"{budget.reasoning_tokens} tokens per answer"),
            ("dry run", f"{counted(budget.dry_runs, 'session')} of {budget.model}"),
            ("prices of", budget.date.isoformat()),
            ("seed", str(budget.seed)),
        ],
        findings=[],
        sentences=sentences,
        notes=[
            "Ranges hold what is not known beforehand: how many tokens the bytes make, and how "
            "long the reasoning is.",
            *([SESSIONS_DIFFER] if budget.dry_runs > 1 else []),
            *budget.notes,
        ],
        tables=_tables(budget),
        figures=_figures(budget),
        command=budget_command(budget),
        versions={},
    )


def budget_command(budget: Budget) -> str:
    """Return the command line that reckons the budget again; empty if there is none.

    The folder of a power study whose designs were priced is not known here: it reads FOLDER.
    """
    if budget.dry_runs != inspect.signature(run_budget).parameters["dry_runs"].default:
        return ""  # the command has no option for it
    words = ["knownminds", "budget", budget.environment, "--model", budget.model]
    for cost in budget.costs:
        words += ["--llm", cost.price.llm]
    for name in ("subjects", "sessions", "trials"):
        words += [f"--{name}", str(getattr(budget, name))]
    thinking = budget.reasoning_tokens
    if thinking.high:
        words += ["--reasoning", f"{thinking.low}-{thinking.high}"]
    looking = budget.image_tokens
    if (looking.low, looking.high) != IMAGE_TOKENS:
        words += ["--image-tokens", f"{looking.low}-{looking.high}"]
    for cost in budget.costs:
        price = cost.price
        if not price.source.startswith(TABLE):
            full = 2 if price.source.endswith(HALVED) else 1
            rates = [price.input, price.output, price.cached_input]
            told = ",".join(_money(full * rate) for rate in rates if rate is not None)
            words += ["--price", f"{price.llm}={told}"]
    for name, value in settings_asked(make(budget.environment, **budget.settings)).items():
        words += ["--set", f"{name}={value if isinstance(value, str) else json.dumps(value)}"]
    words += ["--date", budget.date.isoformat(), "--seed", str(budget.seed)]
    words += ["--batch"] if any(c.price.source.endswith(HALVED) for c in budget.costs) else []
    words += ["--power", "FOLDER"] if budget.designs else []
    return shlex.join(words)


def _money(dollars: Decimal | None) -> str:
    return "unknown" if dollars is None else f"{dollars.normalize():f}"


def _tables(budget: Budget) -> list[Table]:
    usage = budget.usage
    return [
        table(
            "Cost",
            budget.costs,
            ("language model", "{price.llm}"),
            ("calls", lambda _: f"{usage.calls:,}"),
            ("input tokens", lambda _: str(usage.input_tokens)),
            ("output tokens", lambda _: str(usage.output_tokens)),
            ("dollars", "{dollars}"),
            ("at best from cache", lambda cost: str(cost.dollars_cached or "unknown")),
        ),
        _price_table([cost.price for cost in budget.costs]),
        table(
            "Designs and their power",
            budget.designs,
            ("language model", "{llm}"),
            *((size, f"{{design.{size}}}") for size in draw.SIZES),
            ("calls", "{calls:,}"),
            ("power", "{design.power:.3f} ({design.power_error:.3f})"),
            ("dollars", "{dollars}"),
            ("power per dollar", lambda row: f"{row.power_per_dollar:.3g}"),
            ("cheapest", lambda row: "frontier" if row.on_frontier else ""),
        ),
    ]


def _price_table(prices: Sequence[Price]) -> Table:
    rows = []
    for price in prices:
        prompts = [f"above {rates.above:,} tokens" for rates in price.rates]
        prompts[0] = f"up to {price.rates[1].above:,} tokens" if len(prompts) > 1 else "any"
        rows += [
            {"price": price, "rates": rates, "prompt": prompt}
            for rates, prompt in zip(price.rates, prompts, strict=True)
        ]
    title, head, cells = table(
        "Prices (dollars per million tokens)",
        rows,
        ("language model", "{price.llm}"),
        ("matched to", "{price.provider}:{price.model}"),
        ("prompt", "{prompt}"),
        ("input", lambda row: _money(row["rates"].input)),
        ("output", lambda row: _money(row["rates"].output)),
        ("cached input", lambda row: _money(row["rates"].cached_input)),
        ("per call", lambda row: _money(row["price"].per_call)),
        ("source", "{price.source}"),
        ("for", "{price.date}"),
        ("since", lambda row: str(row["price"].since or "-")),
    )
    # Columns that say nothing would only make the table too wide for the page.
    columns = dict(zip(head, zip(*cells, strict=True), strict=True))
    silent = {name: (word,) * len(cells) for name, word in _SILENT.items()}
    silent["matched to"] = columns["language model"]
    told = {name: column for name, column in columns.items() if column != silent.get(name)}
    return title, list(told), list(zip(*told.values(), strict=True))


_SILENT = {"prompt": "any", "per call": "0", "since": "-"}


def _figures(budget: Budget) -> list[tuple[str, str]]:
    dollars = "Dollars for the whole design, from the lowest to the highest."
    if any(cost.dollars_cached is not None for cost in budget.costs):
        dollars += " Thin lines: if each repeated beginning is read from a cache."
    found = [
        (dollars, dollar_ranges(budget.costs)),
        (
            "Bytes of the prompt of each call, mean and range of the dry runs. Dashed: how many "
            "of them begin as the previous prompt did.",
            history_growth(budget),
        ),
    ]
    if budget.designs:
        found.append(
            (
                "Power against the upper end of the cost, with 2 Monte-Carlo standard errors. "
                "Filled and joined: the frontier, where no other design has as much power for "
                "less, or more power for as much.",
                frontier(budget.designs),
            )
        )
    return found


def dollar_ranges(costs: Sequence[Cost]) -> str:
    """Draw what each language model costs, from the dearest down."""
    figure, (axis,) = draw.panels(1)
    figure.set_size_inches(7.6, 0.9 + 0.42 * len(costs))
    ordered = sorted(costs, key=lambda cost: cost.dollars.high)
    ends = [float(end) for cost in costs for end in (cost.dollars.low, cost.dollars.high)]
    if min(ends) > 0 and max(ends) > 30 * min(ends):
        axis.set_xscale("log")
    for k, cost in enumerate(ordered):
        low, high = float(cost.dollars.low), float(cost.dollars.high)
        axis.plot(
            [low, high], [k, k], color=draw.BLUE, linewidth=7, solid_capstyle="butt", alpha=0.9
        )
        axis.plot([low, high], [k, k], "|", color=draw.BLUE, markersize=9)
        if cost.dollars_cached is not None:
            cached = [float(cost.dollars_cached.low), float(cost.dollars_cached.high)]
            axis.plot(cached, [k - 0.28] * 2, "|-", color=draw.ORANGE, linewidth=1.6, markersize=5)
    axis.set_yticks(range(len(ordered)), [cost.price.llm for cost in ordered])
    axis.set_ylim(-0.6, len(ordered) - 0.5)
    if axis.get_xscale() == "linear":
        axis.set_xlim(left=0)
    draw.dollars(axis)
    return draw.svg(figure)


def history_growth(budget: Budget) -> str:
    """Draw the bytes of the prompts, trial by trial."""
    figure, (axis,) = draw.panels(1)
    figure.set_size_inches(6.4, 2.9)
    sizes = budget.sizes
    trial = np.array([size.trial for size in sizes]) + 1
    sent = [size.prompt_bytes for size in sizes]
    lowest, highest = (
        [size.prompt_bytes_low for size in sizes],
        [size.prompt_bytes_high for size in sizes],
    )
    axis.fill_between(trial, lowest, highest, color=draw.BLUE, alpha=0.25, linewidth=0)
    axis.plot(trial, sent, color=draw.BLUE, linewidth=1.4, label="prompt")
    axis.plot(
        trial,
        [size.repeated_bytes for size in sizes],
        color=draw.ORANGE,
        linewidth=1.2,
        linestyle="--",
        label="begins as the previous prompt",
    )
    axis.set(xlabel="call", ylabel="bytes")
    axis.set_ylim(bottom=0)
    axis.legend(frameon=False, fontsize=draw.SMALL)
    return draw.svg(figure)


def frontier(designs: Sequence[PricedDesign]) -> str:
    """Draw power against cost, one curve of best offers for each language model."""
    figure, (axis,) = draw.panels(1)
    figure.set_size_inches(6.4, 3.4)
    names = list(dict.fromkeys(row.llm for row in designs))
    if all(row.dollars.high > 0 for row in designs):
        axis.set_xscale("log")
    for name, (colour, marker, dash) in zip(names, draw.styles(len(names)), strict=True):
        mine = [row for row in designs if row.llm == name]
        for best in (False, True):
            some = [row for row in mine if row.on_frontier is best]
            cost = [float(row.dollars.high) for row in some]
            scores = [Score(row.design.power, row.design.power_error) for row in some]
            look = (colour, marker, dash if best else "none")
            draw.curve(axis, cost, scores, look, name if best else "", hollow=not best)
    draw.dollars(axis)
    axis.set(xlabel="upper end of the cost", ylabel="power", ylim=(0, 1.02))
    draw.key(figure, axis)
    return draw.svg(figure)
