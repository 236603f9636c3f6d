"""Models live the cells of a benchmark: what it costs first, under one cap, with one display."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from knownminds.agents import AGENTS
from knownminds.calling import Reach, Sampling
from knownminds.environments import Rate
from knownminds.environments.record.text_table import counted
from knownminds.llm_adapters import Adapter, Failed, check_heeds
from knownminds.llm_adapters.configuration import Participant
from knownminds.llm_adapters.runs.ledger import LedgerFile, stays_in
from knownminds.llm_adapters.runs.participant import RUN, check_prefix, session_settings
from knownminds.llm_adapters.runs.prices import Price, parse_price
from knownminds.llm_adapters.runs.run_result import Run
from knownminds.llm_adapters.runs.runner import Progress, RunOptions, check_caps, run_sessions_in
from knownminds.validation.costs.connect import connect, price_for, wait_for
from knownminds.validation.costs.dry_runs import DryRuns, dry_runs_of
from knownminds.validation.engine.arguments import resolve_model
from knownminds.validation.engine.usual_models import usual_model

from .benchmark import Played, begin, finished, folder_of_cell, read_benchmark
from .plan import Cell, Plan, sampling_of

logger = logging.getLogger(__name__)
DRY_RUNS = 2  # sessions of each cell from which its price is reckoned
Tell = Callable[[str], None]
Watch = Callable[[str, Cell, Progress], None]
Draw = Callable[[int, int | None, str], None]  # how much is over, of how much, and more words


@dataclass(frozen=True, eq=False)
class Player:
    """A language model of a benchmark, and how it is reached.

    Parameters
    ----------
    who : Its model, the settings that are its own, and its name.
    connection : Arguments of `connect`.
    price : What it costs; None if that is not known.
    sampling : What replaces the plan's sampling, and besides it.
    """

    who: Participant
    connection: Mapping[str, Any]
    price: Price | None
    sampling: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """What it is called on pages and in files, with the provider."""
        return str(self.who)

    def adapter(self, adapters: dict[str, Adapter], cell: Cell, seed: int) -> Adapter:
        """Return the adapter for a cell, from those that are open or a new one among them.

        Known agents and replayed runs need one for each experiment; a local model is loaded once.
        """
        name = cell.key if self.who.llm.partition(":")[0] in ("synthetic", "replay") else ""
        if name not in adapters:
            how = {"seed": seed, "stream": cell.stream(self.name), **self.connection}
            adapters[name] = connect(self.who.llm, cell.environment, **how)
        return adapters[name]

    def sampling_in(self, cell: Cell) -> Sampling:
        """Return the sampling in a cell."""
        given = {k: v for k, v in vars(cell.sampling).items() if v is not None}
        if self.draws_numbers:  # from a distribution of its own, whatever the plan's sampling
            given = {k: v for k, v in given.items() if k not in ("temperature", "top_p")}
        return sampling_of(self.name, given, self.sampling, self.who.sampling)

    @property
    def draws_numbers(self) -> bool:
        """Whether it is a known agent that has no temperature: it answers with numbers."""
        provider, _, name = self.who.llm.partition(":")
        return provider == "synthetic" and name in AGENTS and AGENTS[name].given != "action"


def players_of(
    plan: Plan,
    llms: Sequence[str],
    reach: Reach | None = None,
    *,
    prices: Sequence[str] = (),
    images: Sequence[str] = (),
) -> list[Player]:
    """Return the models of a benchmark: those of the plan, if none is named.

    Parameters
    ----------
    reach : Where those are of which the plan does not say it; None for where their providers are.
    prices : "provider:model=INPUT,OUTPUT", in dollars per million tokens.
    images : Models that see pictures although their names do not tell.
    """
    where = vars(reach or Reach())
    every = [_participant(plan, text) for text in llms or plan.models]
    if not every:
        raise ValueError(
            "A benchmark has one model at least: --llm PROVIDER:MODEL, or the table models of "
            "the plan; got none."
        )
    overrides = dict(parse_price(text) for text in prices)
    players: dict[str, Player] = {}
    for who, entry in every:
        name = str(who)
        if name in players:
            raise ValueError(
                f"Each participant has a name of its own; got {name} twice. Leave one out, or "
                f"name it: {who.llm}?name=..."
            )
        at = Reach(**{one: entry.get(one, value) for one, value in where.items()})
        sees = bool(entry.get("images")) or not {name, who.llm}.isdisjoint(images)
        price = price_for(who.text, overrides, elsewhere=at.base_url is not None)
        own = {} if "model" in entry else entry.get("sampling", {})
        players[name] = Player(who, {"reach": at, "images": sees}, price, own)
    return list(players.values())


def _participant(plan: Plan, text: str) -> tuple[Participant, Mapping[str, Any]]:
    """Return who is meant, and what the plan says of it."""
    entry = plan.models.get(text, {})
    if "model" in entry:
        table = {name: entry[name] for name in ("model", "price") if name in entry}
        return Participant.of_table(text, {**table, **entry.get("sampling", {})}), entry
    who = Participant.read(text)
    entry = entry or plan.models.get(str(who), {}) or plan.models.get(who.llm, {})
    return replace(who, price=who.price or entry.get("price", "")), entry


def blocked_of(plan: Plan, players: Sequence[Player]) -> dict[tuple[str, str], str]:
    """Return by model and cell why it cannot be played, as far as is known without a call.

    Raises
    ------
    ValueError : If a model is not named as one, or its settings contradict each other.
    """
    reasons: dict[tuple[str, str], str] = {}
    for player in players:
        adapters: dict[str, Adapter] = {}
        provider, _, agent = player.who.llm.partition(":")
        if provider == "synthetic":
            resolve_model(agent)  # a name that is none is not an agent that cannot play
        for cell in plan.cells:
            try:
                adapter = player.adapter(adapters, cell, plan.seed)
                pictures = cell.environment.pictures
                sampling = player.sampling_in(cell)
                check_heeds(adapter, session_settings(sampling, 0, False), images=pictures)
                check_prefix(adapter, cell.environment, sampling)
            except ImportError:
                continue  # which the run itself will say
            except Failed as error:
                if error.kind != "key":  # likewise
                    reasons[player.name, cell.key] = str(error)
            except ValueError as error:
                if provider != "synthetic":
                    raise
                reasons[player.name, cell.key] = str(error)  # an agent cannot play everything
    return reasons


def estimate(
    plan: Plan, players: Sequence[Player], blocked: Mapping[tuple[str, str], str]
) -> pd.DataFrame:
    """Reckon what a benchmark costs from dry runs through its prompts.

    Returns
    -------
    DataFrame : One row per model and cell: model, cell, calls, tokens_low, tokens_high, dollars_low
        and dollars_high (NaN where no price is known), and blocked, why it is not played, or "".
    """
    rows = []
    for cell in plan.cells:
        systems: dict[str | None, list[Player]] = {}
        for player in players:
            if (player.name, cell.key) not in blocked:
                systems.setdefault(player.sampling_in(cell).system, []).append(player)
        for system, alike in systems.items():
            runs = _dry_runs(plan, cell, system)
            usage = runs.usage(cell.sessions)
            tokens = (usage.input_tokens, usage.output_tokens)
            row = {
                "cell": cell.key, "calls": usage.calls, "blocked": "",
                "tokens_low": sum(t.low for t in tokens),
                "tokens_high": sum(t.high for t in tokens),
            }  # fmt: skip
            for player in alike:
                ends = (np.nan, np.nan)
                if player.price is not None:
                    dollars = runs.dollars(player.price, cell.sessions)
                    ends = float(dollars.low), float(dollars.high)
                rows.append({"model": player.name, **row, "dollars_low": ends[0],
                             "dollars_high": ends[1]})  # fmt: skip
    none = {"calls": 0, "tokens_low": 0, "tokens_high": 0, "dollars_low": 0.0, "dollars_high": 0.0}
    rows += [{"model": m, "cell": c, "blocked": why, **none} for (m, c), why in blocked.items()]
    return pd.DataFrame(rows)


def estimate_text(costs: pd.DataFrame, by_cell: bool = True) -> str:
    """Write down calls, tokens and money; then what each model costs, and what is left out."""
    by = costs.groupby("model", sort=False)[["dollars_low", "dollars_high"]].sum(skipna=False)
    priced = by.dropna()
    low, high = priced.sum()
    money = f"${low:.2f} to ${high:.2f}" if len(priced) else "no price is known"
    if 0 < len(priced) < len(by):
        unknown = ", ".join(map(str, by.index.difference(priced.index, sort=False)))
        money += f", besides {unknown}, of which no price is known"
    calls, fewest, most = costs[["calls", "tokens_low", "tokens_high"]].sum()
    lines = [
        f"estimate of the whole benchmark: {calls:,} calls, {fewest:,} to {most:,} tokens; {money}"
    ]
    played = costs[costs["blocked"] == ""].drop_duplicates("cell")
    lines += [
        f"{cell}: {calls:,} calls of each model"
        for cell, calls in zip(played["cell"], played["calls"], strict=True)
        if by_cell
    ]
    lines += [f"{name}: ${low:.2f} to ${high:.2f}" for name, low, high in priced.itertuples()]
    left_out = costs[costs["blocked"] != ""].groupby(["model", "blocked"], sort=False)["cell"]
    lines += [
        f"{model} does not take {', '.join(cells)}: {why}" for (model, why), cells in left_out
    ]
    return "\n".join(lines)


def _dry_runs(plan: Plan, cell: Cell, system: str | None) -> DryRuns:
    """Play a cell's prompts with a known agent, for players who get the same ones."""
    agents = filter(None, (plan.known_agent(name, cell) for name in plan.known))
    agent = next((str(settings["model"]) for settings in agents), usual_model(cell.environment))
    return dry_runs_of(cell.environment, AGENTS[agent], DRY_RUNS, plan.seed, system=system)


def run_benchmark(
    plan: Plan,
    players: Sequence[Player],
    folder: str | Path,
    *,
    asking: RunOptions | None = None,
    options: Mapping[str, Any] | None = None,
    blocked: Mapping[tuple[str, str], str] | None = None,
    tell: Tell = lambda line: None,
    watch: Watch | None = None,
) -> Played:
    """Let all models live all cells, models side by side, and read what came of it.

    The same call goes on where it stopped: cells that are finished are not begun again, and the
    ledger keeps what was answered. All runs together keep the caps.

    Parameters
    ----------
    asking : Concurrency, retries and caps of all runs; None for the defaults.
    tell : Called with a line when a cell comes to its end and not all of it could be read. The
        others are logged.
    watch : Called with model, cell and where its run stands, after every call.
    """
    path, asking = Path(folder), asking or RunOptions()
    why = blocked_of(plan, players) if blocked is None else dict(blocked)
    for player in players:
        for cell in plan.cells:
            if (player.name, cell.key) not in why:
                check_caps(asking.caps, player.sampling_in(cell), player.price, player.name)
    names = [player.name for player in players]
    own = {player.name: [*player.who.sampling] for player in players}
    begin(path, plan, names, options or {}, why, own)

    async def every() -> None:
        with LedgerFile.open(path, durable=asking.durable) as ledger:
            tasks = [
                asyncio.create_task(_live(plan, player, ledger, asking, why, tell, watch))
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
    except Failed as error:
        raise ValueError(f"{error}{stays_in(path)}") from None
    begin(path, plan, names, options or {}, why, own)
    return read_benchmark(path)


async def _live(
    plan: Plan,
    player: Player,
    ledger: LedgerFile,
    asking: RunOptions,
    why: dict[tuple[str, str], str],
    tell: Tell,
    watch: Watch | None,
) -> None:
    """Let one model play its cells, one after the other."""
    adapters: dict[str, Adapter] = {}
    over = ""
    try:
        for cell in plan.cells:
            key = player.name, cell.key
            run = folder_of_cell(ledger.folder, player.name, cell)
            if key in why or (finished(run, cell) and not asking.retry_errors):
                continue
            if over:
                why[key] = over
                continue
            try:
                result = await run_sessions_in(
                    run,
                    player.adapter(adapters, cell, plan.seed),
                    cell.environment,
                    cell.sessions,
                    plan.seed,
                    address=RUN,
                    within=ledger,
                    how=replace(
                        asking,
                        settings=player.sampling_in(cell),
                        participant=player.who.own_name,
                        price=player.price,
                        progress=None if watch is None else partial(watch, player.name, cell),
                    ),
                )
            except (Failed, ImportError) as error:
                if isinstance(error, Failed) and error.kind == "ledger":
                    raise
                over = why[key] = str(error)
                tell(f"{player.name} in {cell.key}: {error}")
                continue
            whole = result.ended == result.n_sessions and result.readable == result.n_trials
            (logger.info if whole and not result.stopped else tell)(
                _ended(player.name, cell, result)
            )
            over = result.stopped or ""
    finally:
        for adapter in adapters.values():
            await adapter.close()


def _ended(llm: str, cell: Cell, run: Run) -> str:
    """Say in a line what a cell has come to."""
    money = "" if run.dollars is None else f", ${run.dollars:.4f}"
    read = Rate.count_of("read", run.readable, run.n_trials)
    text = f"{read.share:.1%} of {run.n_trials:,} trials readable" if run.n_trials else "no trial"
    stopped = f"; {run.stopped}" if run.stopped else ""
    return (
        f"{llm} in {cell.key}: {run.ended} of {counted(run.n_sessions, 'session')}, "
        f"{text}{money}{stopped}"
    )


def watching(plan: Plan, players: Sequence[Player], draw: Draw) -> Watch:
    """Return what draws how many trials of all models are over, and what they have cost."""
    total = len(players) * sum(cell.sessions * cell.environment.n_trials for cell in plan.cells)
    runs: dict[tuple[str, str], Progress] = {}

    def watch(llm: str, cell: Cell, now: Progress) -> None:
        runs[llm, cell.key] = now
        unread = sum(run.missing for run in runs.values())
        over = sum(run.trials for run in runs.values())
        money = f", ${now.dollars:.4f}" if now.dollars else ""
        draw(over, total, f"{unread} unread, {now.calls} calls{money}")

    return watch
