"""What a study with language models will cost, from a dry run through the real prompts."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, is_dataclass
from datetime import UTC, datetime
from datetime import date as Date  # noqa: N812 - fields and arguments are called date
from decimal import Decimal
from pathlib import Path
from types import NoneType
from typing import (
    Any,
    TypedDict,
    Unpack,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np
import pandas as pd

from knownminds.agents import Agent
from knownminds.environments import Environment, unknown
from knownminds.environments.record.folders import writable, write_text
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
from knownminds.validation.engine.reported import Reported

from .dry_runs import DesignUsage, DryRuns, TrialSize, dry_runs_of
from .priced_designs import DesignPower, PricedDesign, check_count, frontier_of

FILE = "budget.json"
FORMAT = 2
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
class Budget(Reported):
    """Calls, tokens and money of a design, and the dated prices that they were reckoned with.

    Parameters
    ----------
    environment, settings : the experiment; `make(environment, **settings)` rebuilds it
    model, dry_runs, seed : the synthetic agent that went through the prompts, how often
    subjects, sessions, trials : subjects, sessions of each, trials of each session
    reasoning_tokens, image_tokens : lowest and highest number for one answer and one picture
    sizes : bytes, trial by trial
    usage : bytes and tokens of the whole design
    costs : money, one entry for each language model
    designs : one entry for each design and language model, if designs were given
    notes : what the figures leave out
    """

    environment: str
    settings: Mapping[str, Any]
    model: str
    dry_runs: int
    seed: int
    subjects: int
    sessions: int
    trials: int
    reasoning_tokens: Range
    image_tokens: Range
    date: Date
    sizes: tuple[TrialSize, ...]
    usage: DesignUsage
    costs: tuple[Cost, ...]
    designs: tuple[PricedDesign, ...]
    notes: tuple[str, ...]

    @property
    def ends_early(self) -> bool:
        """Whether sessions of the dry runs had fewer than all trials."""
        return self.usage.calls != self.subjects * self.sessions * self.trials

    def __getitem__(self, llm: str) -> Cost:
        """Return the cost with this language model."""
        for cost in self.costs:
            if cost.price.llm == llm:
                return cost
        raise ValueError(
            unknown("language model", llm, [c.price.llm for c in self.costs], " in this budget")
        )

    def to_frame(self) -> pd.DataFrame:
        """One row per language model: calls, bytes, tokens, money and the price behind it."""
        usage = self.usage
        rows = []
        for cost in self.costs:
            cached = cost.dollars_cached
            rows.append(
                {
                    "llm": cost.price.llm,
                    "calls": usage.calls,
                    "input_bytes_low": usage.input_bytes.low,
                    "input_bytes_high": usage.input_bytes.high,
                    "cacheable": usage.cacheable,
                    "input_tokens_low": usage.input_tokens.low,
                    "input_tokens_high": usage.input_tokens.high,
                    "output_tokens_low": usage.output_tokens.low,
                    "output_tokens_high": usage.output_tokens.high,
                    "dollars_low": float(cost.dollars.low),
                    "dollars_high": float(cost.dollars.high),
                    "dollars_cached_low": float(cached.low) if cached else np.nan,
                    "dollars_cached_high": float(cached.high) if cached else np.nan,
                    "price_input": float(cost.price.input),
                    "price_output": float(cost.price.output),
                    "price_cached_input": float(cost.price.cached_input)
                    if cost.price.cached_input is not None
                    else np.nan,
                    "priced_as": f"{cost.price.provider}:{cost.price.model}",
                    "price_source": cost.price.source,
                    "price_date": cost.price.date.isoformat(),
                    "price_since": cost.price.since.isoformat() if cost.price.since else None,
                }
            )
        return pd.DataFrame(rows)

    def designs_to_frame(self) -> pd.DataFrame:
        """One row per design and language model, from cheap to dear."""
        rows = [
            {
                "llm": row.llm,
                **asdict(row.design),
                "calls": row.calls,
                "dollars_low": float(row.dollars.low),
                "dollars_high": float(row.dollars.high),
                "power_per_dollar": row.power_per_dollar,
                "on_frontier": row.on_frontier,
            }
            for row in self.designs
        ]
        return pd.DataFrame(rows)

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON-able values; ranges are {"low": ..., "high": ...}."""
        found: dict[str, Any] = _jsonable(asdict(self))
        return found

    def to_json(self) -> str:
        """All of it as JSON; money as numbers, in dollars."""
        return json.dumps(self.to_dict(), indent=2, allow_nan=False)

    def save(self, folder: str | os.PathLike[str]) -> Path:  # type: ignore[override]  # as ever
        """Write the budget into a folder, whole or not at all, and return the file.

        The folder is made if it is not there; a budget that it holds is replaced.
        """
        content = self.to_dict()
        whole = {
            "knownminds": "budget",
            "format": FORMAT,
            "sha256": _digest(content),
            "budget": content,
        }
        with writable(folder) as path:
            write_text(path / FILE, json.dumps(whole, indent=2, allow_nan=False) + "\n")
        return path / FILE

    def __str__(self) -> str:
        """Design, sizes, and a line for each language model."""
        usage = self.usage
        who = "1 subject" if self.subjects == 1 else f"{self.subjects} subjects"
        each = f" x {self.sessions} sessions" if self.sessions > 1 else ""
        spread = "" if usage.bytes_error is None else f" (se {usage.bytes_error:,.0f})"
        design = f"Budget of {self.environment}: {who}{each}"
        lines = [
            f"{design} x at most {self.trials} trials, about {usage.calls:,} calls"
            if self.ends_early
            else f"{design} x {self.trials} trials = {usage.calls:,} calls",
            f"  dry run       {self.dry_runs} sessions of {self.model}, seed {self.seed}; "
            f"{usage.bytes_per_session:,.0f} bytes of input per session{spread}",
            f"  input         {usage.input_bytes} bytes, {usage.input_tokens} tokens; "
            f"{usage.cacheable:.0%} of it begins as the previous prompt did",
            f"  output        {usage.output_tokens} tokens, with {self.reasoning_tokens} of "
            "reasoning per answer",
            "",
            _table(
                ["llm", "dollars", "at best from cache"],
                [
                    [cost.price.llm, str(cost.dollars), str(cost.dollars_cached or "unknown")]
                    for cost in self.costs
                ],
            ),
        ]
        if self.designs:
            head = ["llm", "subjects", "sessions", "trials", "power", "dollars", "power/$", ""]
            cells = [
                [
                    row.llm,
                    str(row.design.subjects),
                    str(row.design.sessions),
                    str(row.design.trials),
                    f"{row.design.power:.3f} ({row.design.power_error:.3f})",
                    str(row.dollars),
                    f"{row.power_per_dollar:.3g}",
                    "frontier" if row.on_frontier else "",
                ]
                for row in self.designs
            ]
            lines += ["", _table(head, cells)]
        rows = [f"  {cost.price}" for cost in self.costs]
        return "\n".join([*lines, "", *rows, "", *self.notes])


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
    designs: Sequence[DesignPower] = (),
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
        Designs with their power, to be set against their cost.
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

    def lived(of: Environment) -> DryRuns:
        return dry_runs_of(of, agent, dry_runs, seed, thinking, looking, system)

    runs = {environment.n_trials: lived(environment)}
    own = runs[environment.n_trials]
    offered = tuple(designs)
    rows: list[PricedDesign] = []
    for design in offered:
        if design.trials not in runs:
            other = resolve_environment(environment, design.trials, listed=False)
            runs[design.trials] = lived(other)
    for price in charged:
        rows += frontier_of(price, offered, runs)

    return Budget(
        environment=environment.name,
        settings=environment.settings,
        model=agent.name,
        dry_runs=dry_runs,
        seed=seed,
        subjects=subjects,
        sessions=sessions,
        trials=environment.n_trials,
        reasoning_tokens=thinking,
        image_tokens=looking,
        date=charged[0].date,
        sizes=own.sizes(),
        usage=own.usage(n),
        costs=tuple(Cost(p, own.dollars(p, n), own.dollars_cached(p, n)) for p in charged),
        designs=tuple(rows),
        notes=own.notes(),
    )


def read_budget(folder: str | Path) -> Budget:
    """Read the budget that `Budget.save` wrote into a folder.

    Raises
    ------
    ValueError
        If there is none, or its file is damaged or of another kind or format.
    """
    file = Path(folder) / FILE
    try:
        whole = json.loads(file.read_text(encoding="utf-8"))
        if not isinstance(whole, dict) or whole.get("knownminds") != "budget":
            raise ValueError("it holds something else")
        if whole["format"] != FORMAT:
            raise ValueError(f"it has the format {whole['format']!r}")
        if whole["sha256"] != _digest(whole["budget"]):
            raise ValueError("its content does not have the checksum it was written with")
        return cast(Budget, _rebuilt(Budget, whole["budget"]))
    except FileNotFoundError:
        raise ValueError(f"A folder with a budget holds {FILE}; {folder} does not.") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{file} is not a budget of format {FORMAT}, or damaged: {error}. "
            "Compute the budget again."
        ) from None


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


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Lay cells out in columns, the first to the left and the numbers to the right."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    last = len(head) - 1
    lines = []
    for row in (head, *rows):
        cells = [
            cell.ljust(width) if k in (0, last) else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  " + "  ".join(cells).rstrip())
    return "\n".join(lines)


def _jsonable(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _jsonable(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_jsonable(entry) for entry in value]
    if isinstance(value, Decimal):
        return float(value)  # exact: no Decimal here has more than 15 digits
    if isinstance(value, np.generic):
        return value.item()
    return value.isoformat() if isinstance(value, Date) else value


def _digest(content: Mapping[str, Any]) -> str:
    written = json.dumps(content, sort_keys=True, allow_nan=False)
    return hashlib.sha256(written.encode()).hexdigest()


def _rebuilt(kind: Any, found: Any) -> Any:
    """Make a value of this type of what `to_dict` made of one."""
    inner = get_args(kind)
    if found is None or kind is Any:
        return found
    if NoneType in inner:
        return _rebuilt(inner[0], found)
    if get_origin(kind) is tuple:
        return tuple(_rebuilt(inner[0], one) for one in found)
    if kind is Decimal:
        return Decimal(repr(found))
    if kind is Date:
        return Date.fromisoformat(found)
    if is_dataclass(kind):
        types, make = get_type_hints(kind), cast(Any, kind)
        return make(**{name: _rebuilt(types[name], one) for name, one in found.items()})
    return found
