"""Models live the cells of a benchmark: what it costs first, under one cap, with one display."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

from knownminds.agents import AGENTS
from knownminds.environments import Environment, Rate
from knownminds.environments.record.text_table import counted
from knownminds.llm_adapters import Adapter, Failed, Sampling, check_heeds
from knownminds.llm_adapters.runs.admission import Caps, Purse
from knownminds.llm_adapters.runs.ledger import LedgerFailed, spent_in
from knownminds.llm_adapters.runs.participant import RUN
from knownminds.llm_adapters.runs.prices import Price, parse_price, price_of
from knownminds.llm_adapters.runs.run_result import Run
from knownminds.llm_adapters.runs.runner import Progress, Retries, check_caps, run_sessions_in
from knownminds.validation.costs.budget import Budget, Cost, reckon
from knownminds.validation.costs.connect import connect, price_for, wait_for

from .benchmark import Played, begin, finished, folder_of_cell, models_in, read_benchmark
from .plan import Cell, Plan, sampling_of

DRY_RUNS = 2  # sessions of each cell from which its price is reckoned
Tell = Callable[[str], None]
Watch = Callable[[str, Cell, Progress], None]


@dataclass(frozen=True, eq=False)
class Player:
    """A language model of a benchmark, and how it is reached.

    Parameters
    ----------
    llm
        "provider:model".
    connection
        Arguments of `connect`.
    price
        What it costs; None if that is not known.
    sampling
        What it is asked with instead of the plan's sampling, and besides it.
    """

    llm: str
    connection: Mapping[str, Any]
    price: Price | None
    sampling: Mapping[str, Any] = field(default_factory=dict)

    @property
    def apart(self) -> bool:
        """Whether each cell needs an adapter of its own, made for its experiment."""
        return self.llm.partition(":")[0] in ("synthetic", "replay")

    def asked_with(self, cell: Cell) -> Sampling:
        """Return the sampling in a cell."""
        given = {k: v for k, v in vars(cell.sampling).items() if v is not None}
        if self.draws_numbers:  # from a distribution of its own, whatever the plan's sampling
            given = {k: v for k, v in given.items() if k not in ("temperature", "top_p")}
        return sampling_of(self.llm, given, self.sampling)

    @property
    def draws_numbers(self) -> bool:
        """Whether it is a known mind that has no temperature: it answers with numbers."""
        provider, _, name = self.llm.partition(":")
        return provider == "synthetic" and name in AGENTS and AGENTS[name].given != "action"


def players_of(
    plan: Plan,
    llms: Sequence[str],
    *,
    prices: Sequence[str] = (),
    images: Sequence[str] = (),
    base_url: str | None = None,
    key_variable: str | None = None,
    timeout: float | None = None,
) -> list[Player]:
    """Return the models of a benchmark: those of the plan, if none is named.

    Parameters
    ----------
    prices
        "provider:model=INPUT,OUTPUT", in dollars per million tokens.
    images
        Models that see pictures although their names do not tell.
    base_url, key_variable, timeout
        Of those to which the plan gives none.
    """
    connection = {"base_url": base_url, "key_variable": key_variable, "timeout": timeout}
    names = list(dict.fromkeys(llms or plan.models))
    if not names:
        raise ValueError(
            "A benchmark has one model at least: --llm PROVIDER:MODEL, or the table models of "
            "the plan; got none."
        )
    overrides = dict(parse_price(text) for text in prices)
    found = []
    for name in names:
        own = dict(plan.models.get(name, {}))
        reach = {name: own.get(name, value) for name, value in connection.items()}
        told: dict[str, Any] = {k: v for k, v in reach.items() if v is not None}
        if own.get("images") or name in images:
            told["images"] = True
        mine = dict(overrides)
        if name not in mine and "price" in own:
            mine |= dict([parse_price(f"{name}={own['price']}")])
        price = price_for(name, mine, elsewhere="base_url" in told)
        found.append(Player(name, told, price, own.get("sampling", {})))
    return found


def blocked_of(plan: Plan, players: Sequence[Player]) -> dict[tuple[str, str], str]:
    """Return by model and cell why it cannot be played, as far as can be told without a call.

    Raises
    ------
    ValueError
        If a model is not named as one, or its settings contradict each other.
    """
    found: dict[tuple[str, str], str] = {}
    for player in players:
        shared: Adapter | None = None  # a local model is loaded once
        for cell in plan.cells:
            try:
                adapter = shared or _connected(player, cell, plan.seed)
                if not player.apart:
                    shared = adapter
                if adapter is not None:
                    pictures = cell.environment.pictures
                    check_heeds(adapter, player.asked_with(cell), images=pictures)
            except Failed as error:
                found[player.llm, cell.key] = str(error)
            except ValueError as error:
                if not player.llm.startswith("synthetic:"):
                    raise
                found[player.llm, cell.key] = str(error)  # a known mind is not at home everywhere
    return found


def _connected(player: Player, cell: Cell, seed: int) -> Adapter | None:
    try:
        return connect(
            player.llm, cell.environment, seed=seed, stream=cell.stream, **player.connection
        )
    except ImportError:
        return None  # which the run itself will say
    except Failed as error:
        if error.kind == "key":
            return None  # likewise
        raise


@dataclass(frozen=True, eq=False)
class Estimate:
    """What a benchmark will send and cost.

    Parameters
    ----------
    calls
        Of all models in all cells.
    by_cell
        By cell, calls of each model.
    dollars
        By model, lowest and highest; None where no price is known.
    blocked
        By model and cell, why it is not played.
    """

    calls: int
    tokens: tuple[int, int]
    by_cell: Mapping[str, int]
    dollars: Mapping[str, tuple[Decimal, Decimal] | None]
    blocked: Mapping[tuple[str, str], str]

    def __str__(self) -> str:
        """Calls, tokens and money; then what each model costs, and what is left out."""
        low, high = (sum((d[i] for d in self.dollars.values() if d), Decimal(0)) for i in (0, 1))
        unknown = [name for name, money in self.dollars.items() if money is None]
        money = f"${low:.2f} to ${high:.2f}"
        if len(unknown) == len(self.dollars):
            money = "no price is known"
        elif unknown:
            money += f", besides {', '.join(unknown)}, of which no price is known"
        lines = [
            f"estimate of the whole benchmark: {self.calls:,} calls, {self.tokens[0]:,} to "
            f"{self.tokens[1]:,} tokens; {money}"
        ]
        lines += [f"{cell}: {calls:,} calls of each model" for cell, calls in self.by_cell.items()]
        lines += [
            f"{name}: ${money[0]:.2f} to ${money[1]:.2f}"
            for name, money in self.dollars.items()
            if money is not None
        ]
        reasons: dict[tuple[str, str], list[str]] = {}
        for (model, cell), why in self.blocked.items():
            reasons.setdefault((model, why), []).append(cell)
        lines += [
            f"{model} is not asked in {', '.join(cells)}: {why}"
            for (model, why), cells in reasons.items()
        ]
        return "\n".join(lines)


def estimate(
    plan: Plan, players: Sequence[Player], blocked: Mapping[tuple[str, str], str]
) -> Estimate:
    """Reckon what a benchmark costs from dry runs through its prompts."""
    calls, low, high = 0, 0, 0
    by_cell: dict[str, int] = {}
    money: dict[str, list[Decimal] | None] = {
        player.llm: None if player.price is None else [Decimal(0), Decimal(0)] for player in players
    }
    for cell in plan.cells:
        asked = [p for p in players if (p.llm, cell.key) not in blocked]
        if not asked:
            continue
        alike: dict[str | None, list[Player]] = {}
        for player in asked:
            alike.setdefault(player.asked_with(cell).system, []).append(player)
        for system, some in alike.items():
            found, costs = _of_cell(plan, cell, some, system)
            by_cell[cell.key] = found.usage.calls
            calls += found.usage.calls * len(some)
            low += (found.usage.input_tokens.low + found.usage.output_tokens.low) * len(some)
            high += (found.usage.input_tokens.high + found.usage.output_tokens.high) * len(some)
            for player in some:
                own = money[player.llm]
                if own is not None and player.price is not None:
                    own[0] += costs[player.price].dollars.low
                    own[1] += costs[player.price].dollars.high
    dollars = {name: None if own is None else (own[0], own[1]) for name, own in money.items()}
    return Estimate(calls, (low, high), by_cell, dollars, blocked)


def _of_cell(
    plan: Plan, cell: Cell, players: Sequence[Player], system: str | None
) -> tuple[Budget, dict[Price, Cost]]:
    """Reckon a cell for players who get the same prompts; what it costs at each one's price."""
    free = price_of("free:free", overrides={"free:free": {"input": 0, "output": 0}})
    known = list(dict.fromkeys(p.price for p in players if p.price is not None))
    found = reckon(
        cell.environment,
        [free, *known],
        model=_who_can(plan, cell),
        sessions=cell.sessions,
        dry_runs=DRY_RUNS,
        seed=plan.seed,
        system=system,
    )
    return found, dict(zip([free, *known], found.costs, strict=True))


def _who_can(plan: Plan, cell: Cell) -> str:
    """Return a model that plays a cell: that of a known mind of the plan, or any."""
    minds = [plan.mind(name, cell) for name in plan.known]
    own = [str(mind["model"]) for mind in minds if mind is not None]
    return own[0] if own else _any_for(cell.environment)


def _any_for(environment: Environment) -> str:
    return next(name for name, agent in AGENTS.items() if agent.plays(environment))


def purse_of(folder: Path, plan: Plan, models: Sequence[str], caps: Caps) -> Purse:
    """Return what all runs of a benchmark may use together, with what they have used."""
    runs = [folder_of_cell(folder, model, cell) for model in models for cell in plan.cells]
    return Purse(caps, {str(run): spent_in(run) for run in runs})


@dataclass(frozen=True, eq=False)
class Asking:
    """How the models of a benchmark are asked; see `run_sessions_in`."""

    caps: Caps = field(default_factory=Caps)
    concurrency: int = 8
    retries: Retries = field(default_factory=Retries)
    re_ask: int = 0
    retry_errors: bool = False


def run_benchmark(
    plan: Plan,
    players: Sequence[Player],
    folder: str | Path,
    *,
    asking: Asking | None = None,
    options: Mapping[str, Any] | None = None,
    blocked: Mapping[tuple[str, str], str] | None = None,
    tell: Tell = lambda line: None,
    watch: Watch | None = None,
) -> Played:
    """Let all models live all cells, models side by side, and read what came of it.

    The same call goes on where it stopped: cells that are finished are not begun again, and each
    run's ledger keeps what was answered. All runs together keep the caps.

    Parameters
    ----------
    tell
        Called with a line when a cell comes to its end.
    watch
        Called with model, cell and where its run stands, after every call.
    """
    place, asking = Path(folder), asking or Asking()
    why = blocked_of(plan, players) if blocked is None else dict(blocked)
    for player in players:
        for cell in plan.cells:
            if (player.llm, cell.key) not in why:
                check_caps(asking.caps, player.asked_with(cell), player.price, player.llm)
    names = [player.llm for player in players]
    begin(place, plan, names, options or {}, why)
    purse = purse_of(place, plan, models_in(place), asking.caps)

    async def every() -> None:
        tasks = [
            asyncio.create_task(_live(plan, player, place, asking, purse, why, tell, watch))
            for player in players
        ]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    try:
        wait_for(every())
    except LedgerFailed as error:
        raise ValueError(f"{error} What was paid for stays in {place}.") from None
    begin(place, plan, names, options or {}, why)
    return read_benchmark(place)


async def _live(
    plan: Plan,
    player: Player,
    folder: Path,
    asking: Asking,
    purse: Purse,
    why: dict[tuple[str, str], str],
    tell: Tell,
    watch: Watch | None,
) -> None:
    """Let one model live its cells, one after the other."""
    shared: Adapter | None = None
    apart = player.apart
    over = ""
    try:
        for cell in plan.cells:
            key = player.llm, cell.key
            run = folder_of_cell(folder, player.llm, cell)
            if key in why:
                continue
            if finished(run, cell) and not asking.retry_errors:
                continue
            if over:
                why[key] = over
                continue
            adapter: Adapter | None = None
            try:
                if shared is None or apart:
                    adapter = connect(
                        player.llm,
                        cell.environment,
                        seed=plan.seed,
                        stream=cell.stream,
                        **player.connection,
                    )
                    shared = adapter if not apart else None
                lived = await run_sessions_in(
                    run,
                    adapter or shared,  # type: ignore[arg-type]  # one of them is there
                    cell.environment,
                    cell.sessions,
                    plan.seed,
                    address=RUN,
                    settings=player.asked_with(cell),
                    concurrency=asking.concurrency,
                    retries=asking.retries,
                    caps=asking.caps.sharing(purse, str(run)),
                    price=player.price,
                    re_ask=asking.re_ask,
                    retry_errors=asking.retry_errors,
                    progress=None if watch is None else partial(watch, player.llm, cell),
                )
            except (Failed, ImportError) as error:
                over = why[key] = str(error)
                tell(f"{player.llm} in {cell.key}: {error}")
                continue
            finally:
                if apart and adapter is not None:
                    await adapter.close()
            tell(_ended(player.llm, cell, lived))
            if lived.stopped:
                over = lived.stopped
    finally:
        if shared is not None:
            await shared.close()


def _ended(llm: str, cell: Cell, run: Run) -> str:
    """Say in a line what a cell has come to."""
    money = "" if run.dollars is None else f", ${run.dollars:.4f}"
    read = Rate.count_of("read", run.readable, run.n_trials)
    told = f"{read.share:.1%} of {run.n_trials:,} trials readable" if run.n_trials else "no trial"
    stopped = f"; {run.stopped}" if run.stopped else ""
    return (
        f"{llm} in {cell.key}: {run.ended} of {counted(run.n_sessions, 'session')}, "
        f"{told}{money}{stopped}"
    )


@contextmanager
def display(
    console: Any, plan: Plan, players: Sequence[Player]
) -> Iterator[tuple[Tell, Watch | None]]:
    """Give what tells of cells and what draws where each model stands, a line for each.

    Where the console is no terminal, only the ends of cells are told.
    """

    def say(line: str) -> None:
        console.print(line, markup=False, highlight=False, soft_wrap=True)

    if not console.is_terminal:
        yield say, None
        return
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[told]}"),
        TimeRemainingColumn(),
    )
    with Bars(*columns, console=console, transient=True) as bars:
        lines = {p.llm: bars.add_task(p.llm, total=None, told="") for p in players}
        number = {cell.key: k for k, cell in enumerate(plan.cells, start=1)}

        def show(llm: str, cell: Cell, now: Progress) -> None:
            money = "" if now.dollars is None else f", ${now.dollars:.4f}"
            bars.update(
                lines[llm],
                description=f"{llm}: {cell.key} ({number[cell.key]}/{len(plan.cells)})",
                completed=now.trials,
                total=now.n_trials,
                told=f"{now.sessions}/{now.n_sessions} sessions, {now.missing} unread, "
                f"{now.calls} calls{money}",
            )

        yield say, show
